"""What holds of every response writer: what it writes says what it was given, streamed at any cut and whole."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.dialects import DIALECTS, FRAMINGS, stream_of
from tests.wire.feeding import content, cuts
from tests.wire.fronts import IN_A_ROW, NOTHING, ORIGIN, expected, read_back, reader_of, told, written
from thinkback.errors import NotFoundError
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.commits import Failure, Response, Usage
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, Status, TextDelta, ToolCallDelta
from thinkback.wire.registry import FRONTS, front
from thinkback.wire.result import ReadResult, Stop, outcome_of
from thinkback.wire.splicing import spliced
from thinkback.wire.writing import Counts, Problem, Shown, counted_as, counts, problem_of

NAMES = FRONTS
SECRET = "an opaque value of the provider"

# No tags, which mean something in chat completions.
WORDS = st.text(alphabet='ab \n"\\é\U0001f600', max_size=12)
SIGNED = (Carrier("thought_signature", SECRET),)
TEXTS = st.builds(Text, WORDS, carriers=st.just(SIGNED), wire=st.just(SECRET))
REFUSALS = st.builds(Text, WORDS, st.just("refusal"))
THOUGHTS = st.builds(ThinkingBlock, WORDS, is_hidden=st.booleans(), signature=st.just(SECRET), wire=st.just(SECRET))
ARGUMENTS = st.sampled_from(
    ["", "{}", '{"a": 1}', '{\n "b":\r\n "é\\n"\n}', '{"n":12345678901234567890.10}', "[1]", "no"]
)
CALLS = st.builds(ToolCall, st.sampled_from(["", "c1", "é 2"]), st.sampled_from("fg"), ARGUMENTS, wire=st.just(SECRET))
OTHERS = st.sampled_from(
    [
        Unknown(SECRET),
        Media("image/png", data="AAAA", wire=SECRET),
        Media("image/*", url="https://example.org/a.png"),
        Media("image/png"),
        Media("audio/*", data="AAAA"),
    ]
)
BLOCKS = st.lists(TEXTS | THOUGHTS | CALLS | OTHERS, max_size=6) | st.lists(REFUSALS | THOUGHTS, max_size=4)
COUNTS = st.none() | st.integers(0, 9)
USAGES = st.none() | st.builds(
    Usage,
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    st.sampled_from([(), ("cache_beside_input",), ("reasoning_beside_output",)]),
)
STOPS = st.sampled_from(["stop", "length", "refusal", "safety", "paused"])


def result_of(
    blocks: Sequence[Block], stop: Stop = "stop", usage: Usage | None = None, error: Failure | None = None
) -> ReadResult:
    """A response with these blocks."""
    response = Response(ORIGIN, finish="stop", error=error, outcome=outcome_of(stop, blocks, error))
    return ReadResult(response, tuple(blocks), usage)


def deltas_of(blocks: Sequence[Block], length: int, *, in_turns: bool = True) -> list[Delta]:
    """The deltas of a response, in pieces of ``length``; with ``in_turns`` the arguments of all calls come last."""
    deltas: list[Delta] = []
    later: list[list[Delta]] = []
    for at, block in enumerate(blocks):
        match block:
            case Text():
                deltas += [TextDelta(piece, at) for piece in pieces(block.text, length)]
            case ThinkingBlock(is_hidden=False):
                deltas += [ReasoningDelta(piece, at) for piece in pieces(block.thought, length)]
            case ToolCall():
                deltas.append(ToolCallDelta(at, block.id, block.name))
                arguments: list[Delta] = [
                    ToolCallDelta(at, arguments=piece) for piece in pieces(block.arguments, length)
                ]
                if in_turns:
                    later.append(arguments)
                else:
                    deltas += arguments
            case _:
                deltas.append(Status("sending"))
    for turn in range(max(map(len, later), default=0)):
        deltas += [found[turn] for found in later if turn < len(found)]
    return deltas


def pieces(text: str, length: int) -> list[str]:
    """``text`` in pieces of ``length``, which may cut a character in two."""
    text = text.replace("\U0001f600", "\ud83d\ude00")
    return [text[at : at + length] for at in range(0, len(text), length)]


def block_at(blocks: Sequence[Block], index: int) -> Block:
    """The block at ``index``, as a reader has it."""
    return blocks[index]


def streamed(name: str, result: ReadResult, deltas: Sequence[Delta], shown: Shown, together: int = 1) -> bytes:
    """The stream of a response whose deltas come so many together."""
    writer = front(name).writer(shown)
    shows = [writer.show(deltas[at : at + together]) for at in range(0, len(deltas), together)]
    return b"".join((writer.begin(), *shows, writer.end(result)))


@pytest.mark.parametrize("name", NAMES)
@given(BLOCKS, STOPS, USAGES, st.integers(1, 5), st.integers(1, 3))
def test_what_was_written_reads_as_what_it_was_written_from(
    name: str, blocks: list[Block], stop: Stop, usage: Usage | None, length: int, together: int
) -> None:
    """Texts, reasoning, calls, end and counts come back from the stream and from the document, and no opaque value."""
    result = result_of(blocks, stop, usage)
    shown = Shown("resp-1", "asked-for", 7, block=functools.partial(block_at, blocks))
    stream = streamed(name, result, deltas_of(blocks, length), shown, together)
    document = front(name).write_response(result, shown)

    assert expected(name, result, streamed=True) == told(read_back(name, stream, "sse"))
    assert expected(name, result, streamed=False) == told(read_back(name, document, "json"))
    assert SECRET.encode() not in stream + document


@pytest.mark.covers(True)
@pytest.mark.parametrize("name", NAMES)
@given(BLOCKS, st.integers(1, 5), st.sampled_from([0, 200, 429, 529]))
def test_a_response_that_is_not_whole_ends_in_an_error(
    name: str, blocks: list[Block], length: int, status: int
) -> None:
    """What was shown stays, the error's message stands behind it, and nothing says that the response was finished."""
    result = result_of(blocks, error=Failure("broke off", status, type="truncated"))
    shown = Shown("resp-1", "asked-for", 7, block=functools.partial(block_at, blocks))
    deltas = deltas_of(blocks, length, in_turns=name not in IN_A_ROW)
    back = read_back(name, streamed(name, result, deltas, shown), "sse")

    assert expected(name, result, streamed=True) == told(back)
    assert back.response.finish in (None, "failed")
    assert front(name).write_error(problem_of(Failure("broke off", status, type="truncated"))) == front(
        name
    ).write_response(result, shown)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_stream_of_each_dialect_reads_the_same(name: str, dialect: str) -> None:
    """What each provider streams comes out of each writer with the same words, calls and counts."""
    raw = b"".join(stream_of(dialect, 60).pieces)
    made = written(name, reader_of(dialect, FRAMINGS[dialect]), cuts(raw, 3, 90))

    assert expected(name, made.result, streamed=True) == told(read_back(name, made.stream, "sse"))
    assert expected(name, made.result, streamed=False) == told(read_back(name, made.document, "json"))


@pytest.mark.parametrize("name", NAMES)
def test_reasoning_that_is_not_shown_is_nowhere(name: str) -> None:
    """Neither the stream nor the document has the reasoning; the rest is there."""
    blocks: list[Block] = [ThinkingBlock("a plan"), Text("an answer")]
    shown = Shown("resp-1", "m", 7, reasoning=False, usage=False, block=functools.partial(block_at, blocks))
    result = result_of(blocks, usage=Usage(1, 2))
    stream = streamed(name, result, deltas_of(blocks, 20), shown)

    assert b"a plan" not in stream + front(name).write_response(result, shown)
    nothing = NOTHING if name == "anthropic" else None
    assert told(result)._replace(reasoning="", counts=nothing) == told(read_back(name, stream, "sse"))


@pytest.mark.parametrize("name", NAMES)
def test_text_that_was_reasoning_stays_with_the_tag_behind_it(name: str) -> None:
    """Shown text cannot be taken back: the closing tag follows where the block has one, nothing where no text was."""
    closed = ThinkingBlock("a plan", source_field="content", closing="</think>\n")
    blocks: list[Block] = [closed, Text("an answer")]
    deltas: list[Delta] = [
        TextDelta("a plan", 0),
        Reclassified("a plan", 0),
        TextDelta("an answer", 1),
        Reclassified("", 2),
    ]
    known = Shown("resp-1", "m", 7, block=functools.partial(block_at, blocks))
    for shown, spoken in (
        (known, "a plan</think>\nan answer"),
        (Shown("resp-1", "m", 7), "a plan</think>an answer"),
    ):
        back = read_back(name, streamed(name, result_of(blocks), deltas, shown), "sse")

        assert spoken == content(back.blocks)


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        (Usage(), Counts(0, 0, 0, 0, 0)),
        (Usage(10, 5, 3, 4, 1), Counts(10, 5, 3, 4, 1)),
        (Usage(10, 5, 3, 4, 1, ("cache_beside_input",)), Counts(15, 5, 3, 4, 1)),
        (Usage(10, 5, 3, 4, 1, ("reasoning_beside_output",)), Counts(10, 8, 3, 4, 1)),
        (Usage(10, 2, 3), Counts(10, 3, 3, 0, 0)),
    ],
)
def test_counts_have_one_meaning(usage: Usage, found: Counts) -> None:
    """Input has what was cached and output what was reasoned, whatever the provider leaves out."""
    assert found == counts(usage)


def test_a_rule_says_that_reasoning_was_counted_beside_output() -> None:
    """A rule's word ``added`` counts once, and only where there are counts."""
    plain, added = result_of([], usage=Usage(1, 2, 3)), Usage(1, 2, 3, counted=("reasoning_beside_output",))

    assert plain == counted_as(plain, "inside")
    assert result_of([]) == counted_as(result_of([]), "added")
    assert result_of([], usage=added) == counted_as(counted_as(plain, "added"), "added")


def test_a_failure_inside_a_response_is_no_success() -> None:
    """Only a status of an error is one; what broke off inside a response that began well is a bad gateway."""
    assert Problem(429, "m", "t", "c") == problem_of(Failure("m", 429, "t", "c"))
    assert Problem(502, "m") == problem_of(Failure("m", 200)) == problem_of(Failure("m"))


@pytest.mark.parametrize("name", ["bedrock", "none"])
def test_a_dialect_that_clients_do_not_speak_is_no_front(name: str) -> None:
    """What there is instead is said."""
    with pytest.raises(NotFoundError, match=name):
        front(name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "k", 'a"\\b', "\ud83d", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["k", "a", "é"]), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, st.sampled_from([None, 1]), st.booleans())
@example({"k": {"k": ["x", "k", {"k": "x"}]}, "a": "k"}, None, False)
def test_texts_are_replaced_where_their_path_is_meant_and_nowhere_else(
    value: object, indent: int | None, escaped: bool
) -> None:
    """The document with texts under ``k`` changed is what the value with those changed is, in the same form."""

    def changed(inner: object, meant: bool) -> object:
        if isinstance(inner, dict):
            return {key: changed(item, key == "k") for key, item in inner.items()}
        if isinstance(inner, list):
            return [changed(item, False) for item in inner]
        return f"<{inner}>" if meant and isinstance(inner, str) and inner else inner

    document = json.dumps(value, indent=indent, ensure_ascii=escaped).encode("utf-8", "backslashreplace")
    made = spliced(document, lambda path: bool(path) and path[-1] == b"k", lambda text: f"<{text}>")

    assert changed(value, False) == canonical.decode(made)
    assert document == spliced(document, lambda path: True, str)
    if changed(value, False) == value:
        assert document == made


@pytest.mark.covers(True)
@given(st.binary(max_size=40) | st.text(alphabet='{}[],:"\\a', max_size=40).map(str.encode))
def test_bytes_that_are_no_json_do_not_raise(noise: bytes) -> None:
    """Whatever the bytes, those outside of texts stay."""
    assert noise == spliced(noise, lambda path: True, str)
    spliced(noise, lambda path: True, lambda text: text + "x")


@pytest.mark.parametrize("document", [b'"' + b'\\"' * 300_000, b'{"a":' * 100_000, b'"a" ' * 100_000, b"]" * 300_000])
def test_a_hostile_document_takes_no_longer_than_its_length(document: bytes) -> None:
    """A string without an end, or many levels, are gone through once; the square of that would never come back."""
    assert document == spliced(document, lambda path: path[-1:] == [b"b"], str.upper)
