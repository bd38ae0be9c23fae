"""The tag splitter: which tags count, and that pieces join to the input at every cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thinkback.model.code_spans import CodeSpans
from thinkback.model.think_tags import LONE_CLOSINGS, TAGS, TagSegment, TagSplitter, Where, split_at, untagged

LONG = "x" * 4200

# name, content, pieces (T text, R reasoning, O opening, C closing, L lone closing)
CASES = [
    ("nothing", "", ""),
    ("plain text", "Hello", "T(Hello)"),
    ("at the start", "<think>a</think>b", "O(<think>)R(a)C(</think>)T(b)"),
    ("white space before", "\n <think>a</think>b", "T(\n )O(<think>)R(a)C(</think>)T(b)"),
    ("white space kept", "<think>\na\n</think>\n\nb", "O(<think>)R(\na\n)C(</think>)T(\n\nb)"),
    ("empty block", "<think>\n\n</think>\n\nb", "O(<think>)R(\n\n)C(</think>)T(\n\nb)"),
    ("nothing inside", "<think></think>b", "O(<think>)C(</think>)T(b)"),
    ("unclosed", "<think>a", "O(<think>)R(a)"),
    ("only the tag", "<think>", "O(<think>)"),
    ("ends in half a closing tag", "<think>a</thi", "O(<think>)R(a</thi)"),
    ("ends in half an opening tag", "<thin", "T(<thin)"),
    ("a lone closing tag", "a</think>b", "T(a)L(</think>)T(b)"),
    ("a lone closing tag first", "</think>b", "L(</think>)T(b)"),
    ("interleaved", "<think>a</think>b<think>c</think>d", "O(<think>)R(a)C(</think>)T(b)O(<think>)R(c)C(</think>)T(d)"),
    ("fragmented", "<think>a</think><think>b</think>", "O(<think>)R(a)C(</think>)O(<think>)R(b)C(</think>)"),
    ("kinds mixed", "<think>a</think>b[THINK]c[/THINK]", "O(<think>)R(a)C(</think>)T(b)O([THINK])R(c)C([/THINK])"),
    ("after a lone closing tag", "a</think>b<think>c</think>", "T(a)L(</think>)T(b)O(<think>)R(c)C(</think>)"),
    ("nested openings are text", "<think>a<think>b</think>c", "O(<think>)R(a<think>b)C(</think>)T(c)"),
    ("another kind inside", "<think>a</thinking>b</think>", "O(<think>)R(a</thinking>b)C(</think>)"),
    ("a second closing tag is text", "<think>a</think>b</think>c", "O(<think>)R(a)C(</think>)T(b</think>c)"),
    ("after answer text", "Say <think>a</think>b", "T(Say <think>a</think>b)"),
    (
        "a pair in the answer, then a lone one",
        "<b><think>a</think>b</think>c",
        "T(<b><think>a</think>b)L(</think>)T(c)",
    ),
    ("upper case", "<THINK>a</THINK>b", "O(<THINK>)R(a)C(</THINK>)T(b)"),
    ("cases mixed", "<Think>a</tHINK>b[think]c[/Think]", "O(<Think>)R(a)C(</tHINK>)T(b)O([think])R(c)C([/Think])"),
    ("a lone closing tag in upper case", "a</THINK>b", "T(a)L(</THINK>)T(b)"),
    ("upper case with attributes", '<THINK a="B">c</think>', 'O(<THINK a="B">)R(c)C(</think>)'),
    ("a letter that is another's upper case", "<thin\u212a>a", "T(<thin\u212a>a)"),
    ("upper case in the answer", "a<THINK>b</think>c", "T(a<THINK>b</think>c)"),
    ("in a code span", "Use `<think>` and `</think>`.", "T(Use `<think>` and `</think>`.)"),
    ("in a fence", "a\n```xml\n<think>\n</think>\n```\nb", "T(a\n```xml\n<think>\n</think>\n```\nb)"),
    ("after a fence", "```\nx\n```\ny</think>z", "T(```\nx\n```\ny)L(</think>)T(z)"),
    ("code after a block", "<think>a</think>`<think>`b", "O(<think>)R(a)C(</think>)T(`<think>`b)"),
    ("a fence inside reasoning", "<think>```\na</think>b", "O(<think>)R(```\na)C(</think>)T(b)"),
    ("attributes", '<think signature="a/b==">c</think>d', 'O(<think signature="a/b==">)R(c)C(</think>)T(d)'),
    ("attributes without quotes", "<thinking duration=3>c</thinking>", "O(<thinking duration=3>)R(c)C(</thinking>)"),
    ("attributes in the answer", "a<think x=1>b</think>c", "T(a<think x=1>b</think>c)"),
    ("words are no attributes", "<think about it>c", "T(<think about it>c)"),
    ("attributes without an end", "<think a=b", "T(<think a=b)"),
    ("attributes too long", f"<think a={LONG}>c", f"T(<think a={LONG}>c)"),
    ("harmony", "<|channel|>analysis<|message|>a<|end|>b", "O(<|channel|>analysis<|message|>)R(a)C(<|end|>)T(b)"),
    ("half of harmony", "<|channel|>analysis<think>", "T(<|channel|>analysis<think>)"),
    ("a lone harmony end is text", "a<|end|>b", "T(a<|end|>b)"),
    ("a doubled bracket", "<<think>a", "T(<<think>a)"),
    ("a bracket in reasoning", "<think>a < b</think>", "O(<think>)R(a < b)C(</think>)"),
]
# As above, where tags count anywhere in an answer.
ANYWHERE = [
    ("in the middle", "Hello <think>x</think> world", "T(Hello )O(<think>)R(x)C(</think>)T( world)"),
    ("unclosed at the end", "Answer. <think>one two and", "T(Answer. )O(<think>)R(one two and)"),
    ("at the start", "<think>a</think>b", "O(<think>)R(a)C(</think>)T(b)"),
    ("twice", "a<THINK>b</think>c[think]d[/THINK]", "T(a)O(<THINK>)R(b)C(</think>)T(c)O([think])R(d)C([/THINK])"),
    ("in a code span", "Use `<think>` and `</think>`.", "T(Use `<think>` and `</think>`.)"),
    ("in a fence", "a\n```xml\n<think>\n</think>\n```\nb", "T(a\n```xml\n<think>\n</think>\n```\nb)"),
    ("behind a span", "`a` <think>b</think>", "T(`a` )O(<think>)R(b)C(</think>)"),
    ("a lone closing tag", "a</think>b", "T(a)L(</think>)T(b)"),
    ("a second closing tag is text", "x<think>a</think>b</think>c", "T(x)O(<think>)R(a)C(</think>)T(b</think>c)"),
]
# As above, where no tag is read.
OFF = [
    ("a pair", "<think>a</think>b", "T(<think>a</think>b)"),
    ("a lone closing tag", "a</think>b", "T(a</think>b)"),
    ("half a tag", "<thi", "T(<thi)"),
]
KINDS = {"text": "T", "reasoning": "R", "open": "O", "close": "C", "lone_close": "L"}


def split(pieces: list[str], where: Where = "start", *, exact: bool = False, passing: bool = False) -> str:
    """The pieces of a text in cuts, equal neighbours joined, as one string; ``passing``: what may pass does so."""
    splitter = TagSplitter(where, exact=exact)
    found: list[list[str]] = []
    given: list[TagSegment] = []
    for cut in filter(None, pieces):
        flows = passing and splitter.flows and not splitter.doubtful([cut])
        given += [TagSegment("text", splitter.go_by([cut]))] if flows else splitter.feed(cut)
    for piece in given + splitter.close():
        assert piece.text
        if found and found[-1][0] == piece.kind and piece.kind in ("text", "reasoning"):
            found[-1][1] += piece.text
        else:
            found.append([piece.kind, piece.text])
    return "".join(f"{KINDS[kind]}({text})" for kind, text in found)


@pytest.mark.parametrize(("name", "content", "expected"), CASES, ids=[case[0] for case in CASES])
def test_content_is_split_by_the_rules_at_every_cut(name: str, content: str, expected: str) -> None:
    """Each content gives its pieces whole, by character, and cut once at any place."""
    assert expected == split([content])
    assert expected == split(list(content))
    assert expected == split(list(content), passing=True)
    for at in range(min(len(content), 60)):
        assert expected == split([content[:at], content[at:]])
        assert expected == split([content[:at], content[at:]], passing=True)


@pytest.mark.parametrize("tag", sorted({tag for pair in TAGS for tag in pair}))
def test_what_may_be_held_back_is_in_doubt(tag: str) -> None:
    """A tag, and each text that ends as one begins, in either case; what is beside them in time is not."""
    for length in range(1, len(tag)):
        for begins in (tag[:length], tag[:length].swapcase()):
            assert [1] == TagSplitter().doubtful(["a", f"b{begins}", "c"])
    assert [0, 2] == TagSplitter().doubtful([tag, "]x[ <>", f"a{tag}b"])
    assert [0, 1] == TagSplitter().doubtful([f"{tag[:1]}\0", "a"])


@pytest.mark.parametrize(
    ("where", "content", "expected"),
    [("anywhere", *case[1:]) for case in ANYWHERE] + [("off", *case[1:]) for case in OFF],
    ids=[f"anywhere, {case[0]}" for case in ANYWHERE] + [f"off, {case[0]}" for case in OFF],
)
def test_where_tags_count_is_a_choice(where: Where, content: str, expected: str) -> None:
    """In all of the answer outside its code, or nowhere; equal whole, by character, and cut once at any place."""
    assert expected == split([content], where)
    assert expected == split(list(content), where)
    for at in range(len(content)):
        assert expected == split([content[:at], content[at:]], where)


def test_tags_may_be_read_in_their_own_case_only() -> None:
    """So they were when the first normal form of a visible message was made."""
    assert "T(<THINK>a</THINK>b)" == split(["<THINK>a</THINK>b"], exact=True)
    assert "O(<think>)R(a</THINK>)C(</think>)T(b)" == split(list("<think>a</THINK></think>b"), exact=True)
    assert "O(<think>)R(a)C(</THINK>)T(</think>b)" == split(list("<think>a</THINK></think>b"))
    assert ("<THINK>a</THINK>b", "b") == (untagged("<THINK>a</THINK>b", exact=True), untagged("<THINK>a</THINK>b"))
    assert ("x <think>a</think>b", "x b") == tuple(untagged("x <think>a</think>b", where) for where in _PLACES)


_PLACES: tuple[Where, ...] = ("start", "anywhere")


@pytest.mark.parametrize(("opening", "closing"), TAGS, ids=[opening for opening, _ in TAGS])
def test_every_pair_of_tags_is_known(opening: str, closing: str) -> None:
    """Each delimiter of the table is found, at the start and after a first block, by character too."""
    text = f"{opening}a{closing}b{opening}c"
    expected = f"O({opening})R(a)C({closing})T(b)O({opening})R(c)"

    assert expected == split([text]) == split(list(text))


@pytest.mark.parametrize("closing", LONE_CLOSINGS)
def test_every_closing_tag_may_stand_alone(closing: str) -> None:
    """A closing tag that was never opened is found by itself, but not inside code."""
    assert f"T(a)L({closing})T(b)" == split([f"a{closing}b"]) == split(list(f"a{closing}b"))
    assert f"T(a `{closing}` b)" == split([f"a `{closing}` b"])


MARKS = [tag for pair in TAGS[:9] for tag in pair] + [
    "<THINK>",
    "</Think>",
    "<",
    "</",
    "think",
    ">",
    "`",
    "``",
    "```",
    "~~~",
    "\n",
    " ",
    "a",
    "[",
    "=",
]
CONTENTS = st.lists(st.sampled_from(MARKS), max_size=12).map("".join)


@given(CONTENTS, st.lists(st.integers(0, 80), max_size=4), st.sampled_from(["start", "anywhere", "off"]))
@example("`` `<think>", [], "start")
def test_pieces_join_to_the_input_and_cuts_do_not_matter(content: str, at: list[int], where: Where) -> None:
    """For tags and code strewn anyhow: the pieces are the input again, equal at every cut."""
    places = [0, *sorted(min(place, len(content)) for place in at), len(content)]
    pieces = [content[start:end] for start, end in itertools.pairwise(places)]
    splitter = TagSplitter(where)
    joined = "".join(piece.text for cut in pieces for piece in splitter.feed(cut))

    assert content == joined + "".join(piece.text for piece in splitter.close())
    assert split([content], where) == split(list(content), where) == split(pieces, where)
    assert split([content], where) == split(list(content), where, passing=True) == split(pieces, where, passing=True)


def test_a_text_that_ends_within_reasoning_thinks() -> None:
    """From the opening tag to the closing one."""
    splitter = TagSplitter()
    thinks = []
    for text in (" ", "<think>", "a</th", "ink>b"):
        splitter.feed(text)
        thinks.append(splitter.thinks)

    assert [False, True, True, False] == thinks


@given(CONTENTS)
def test_reasoning_is_released_as_it_arrives(content: str) -> None:
    """After each piece at most an unfinished tag is held back."""
    splitter, released = TagSplitter(), 0
    for at, character in enumerate(content):
        released += sum(len(piece.text) for piece in splitter.feed(character))
        held = content[released : at + 1]

        assert (
            not held
            or any(tag.lower().startswith(held.lower()) for pair in TAGS for tag in pair)
            or held.startswith("<think")
        )


CODE = [
    ("", False),
    ("a", False),
    ("`a", True),
    ("`a`", False),
    ("``a`", True),
    ("``a` b``", False),
    ("`a\n", False),
    ("```\n", True),
    ("```py", True),
    ("```py\na", True),
    ("```\na\n```\n", False),
    ("```\na\n``` b\n", True),
    ("```\na\n``\n", True),
    ("````\na\n```\n", True),
    ("````\na\n`````\n", False),
    ("~~~\na\n```\n", True),
    ("~~~\na\n~~~\n", False),
    ("~~~\na`b\n", True),
    ("~a~", False),
    ("a ```b", True),
    ("a ```\n", False),
    ("```a``` b", False),
    ("```a` b", True),
    ("  ```\na\n  ```\n", False),
    ("`~", True),
    ("~`", True),
    ("```~~~\n", True),
]


@pytest.mark.parametrize(("text", "expected"), CODE)
def test_code_spans_and_fences_of_an_answer(text: str, expected: bool) -> None:
    """What follows the text is inside code or not, noted whole or by character, asked once or twice."""
    whole, pieces = CodeSpans(), CodeSpans()
    whole.note(text)
    for character in text:
        pieces.note(character)

    assert expected == whole.inside() == whole.inside() == pieces.inside()


@given(CONTENTS, CONTENTS)
def test_code_is_known_the_same_whether_it_was_asked_before(before: str, after: str) -> None:
    """Asking in between, where no run of backticks is cut, changes nothing."""
    asked, fresh = CodeSpans(), CodeSpans()
    for spans in (asked, fresh):
        spans.note(before + "a")
        if spans is asked:
            spans.inside()
        spans.note(after)

    assert asked.inside() == fresh.inside()


def test_the_place_of_a_mark_or_of_its_beginning() -> None:
    """A mark is found; without one, the place from which it may still come is named."""
    assert (1, 1) == split_at("a<b>", 0, "<b>")
    assert (-1, 2) == split_at("aa<b", 1, "<b>")
    assert (-1, 3) == split_at("a<c", 0, "<b>")


@pytest.mark.parametrize("opening", ["", "[", "◁", "[/THINK"])
def test_the_beginning_of_a_tag_among_attributes_is_no_tag(opening: str) -> None:
    """What an attribute holds does not end the tag that is held back, wherever the text is cut."""
    text = f'so <think a="{opening}">why</think>'
    splitter = TagSplitter()
    pieces = [piece for one in text for piece in splitter.feed(one)] + splitter.close()

    assert {"text"} == {piece.kind for piece in pieces}
    assert text == "".join(piece.text for piece in pieces)
