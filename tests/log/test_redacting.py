"""A pattern is taken out of everything that can be read of a commit, however it is spelled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compile.build import Talk, call, say, signed_call, think
from thinkback.log.erasing import SessionHistory, tombstone
from thinkback.log.redacting import Expression, redacted, voided, without
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Compaction,
    Content,
    Draft,
    Erased,
    Failure,
    Merge,
    Message,
    Payload,
    Repair,
    Request,
    Response,
    Tool,
    Tools,
    TurnEnded,
    Usage,
)

KEY = Expression(re.compile("k[e3]y-[0-9]+"))
HELD = (Carrier("signature", "OPAQUE"),)
OUT = "[redacted]"
ORIGIN = Talk().origin
RECORD = Request({}, {}, (), '{"a":"key-1","b":2.50}', "", "", "", "", "", "", "")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Text("a key-1", carriers=HELD, wire="{}"), Text("a [redacted]")),
        (Text("a", carriers=HELD, wire='{"more":"k\\u0065y-1"}'), Text("a")),
        (ThinkingBlock("key-1", signature="s", carriers=HELD), ThinkingBlock(OUT)),
        (ThinkingBlock("key-1", inner=((2, "</think><think>"),)), ThinkingBlock(OUT)),
        (ToolCall("c", "n", '{"k":"k\\u0065y-1"}', carriers=HELD), ToolCall("c", "n", '{"k":"[redacted]"}')),
        (ToolResult("c", "key-1\nkey-2", wire="{}"), ToolResult("c", "[redacted]\n[redacted]")),
        (Media("image/png", url="https://h/key-1", name="key-2"), Media("image/png", url=f"https://h/{OUT}", name=OUT)),
        (Unknown('{"a":["key-1"]}', HELD), None),
        (
            Message("key-1 b", (Text("key-1 b"), Unknown('"key-1"')), '"key-1"'),
            Message(f"{OUT} b", (Text(f"{OUT} b"),)),
        ),
        (Message("a", wire='{"a":"key-1"}'), Message("a")),
        (
            Tools((Tool("n", "key-1", '{"key-1":1}', '"key-1"'),)),
            Tools((Tool("n", OUT, '{"[redacted]":1}', '"[redacted]"'),)),
        ),
        (
            Response(ORIGIN, message='"key-1"', envelope='["key-1"]', error=Failure("key-1", upstream="key-2")),
            Response(ORIGIN, message=f'"{OUT}"', envelope=f'["{OUT}"]', error=Failure(OUT, upstream=OUT)),
        ),
        (RECORD, msgspec.structs.replace(RECORD, params='{"a":"[redacted]","b":2.5}')),
        (
            Annotation("h", reason="key-1", retain=("key-1",), tags=("key-1",), metadata='{"n":"key-1"}'),
            Annotation("h", reason=OUT, retain=(OUT,), tags=(OUT,), metadata='{"n":"[redacted]"}'),
        ),
        (Content("note", "key-1", data='["key-1"]'), Content("note", OUT, data='["[redacted]"]')),
        (
            Compaction("manual", "key-1", "f", "l", trimmed=(("h", "key-1"),), note="key-1"),
            Compaction("manual", OUT, "f", "l", trimmed=(("h", OUT),), note=OUT),
        ),
        (BranchSummary("key-1", purpose="key-1"), BranchSummary(OUT, purpose=OUT)),
        (Repair("block", (), "key-1", "e", "m"), Repair("block", (), OUT, "e", "m")),
        (TurnEnded("failed", "key-1"), TurnEnded("failed", OUT)),
    ],
)
def test_it_is_taken_out_wherever_it_can_be_read(value: Payload, expected: Payload | None) -> None:
    """With what repeats it verbatim, and with the block's carriers."""
    assert expected == without(value, KEY)


@pytest.mark.parametrize(
    "value",
    [
        Text("a", carriers=HELD, wire='{"a":1}'),
        Unknown('{"a":1}', HELD),
        Message("a", (Text("a"),), wire="{}"),
        Response(ORIGIN, "id", envelope='{"n":1.50}'),
        Merge("key-1", "h"),
        Usage(wire='"key-1"'),
        Erased("key-1", 1),
        Content("note", "a", data='{"n": 1.50}'),
    ],
)
def test_what_does_not_have_it_stays_byte_for_byte(value: Payload) -> None:
    """Also source text that is not spelled as we would."""
    assert value == without(value, KEY)


@pytest.mark.parametrize(
    ("arguments", "pattern", "expected"),
    [
        ('{"n":5551234,"m":1.5}', "5551234", '{"n":"[redacted]","m":1.5}'),
        ('{"a":"x","b":[true,null]}', "true|null", '{"a":"x","b":["[redacted]","[redacted]"]}'),
        ('{"a":"x","b":"y"}', 'x","b', "{}"),
        ("not JSON key-1", "key-1", "not JSON [redacted]"),
        ('{"a":"abc"}', "x*", '{"a":"abc"}'),
    ],
)
def test_arguments_are_taken_apart(arguments: str, pattern: str, expected: str) -> None:
    """Values and their spelling; what spans several takes all of them; nothing is found nowhere."""
    rest = without(ToolCall("c", "n", arguments), Expression(re.compile(pattern)))
    assert ToolCall("c", "n", expected) == rest


def spoken(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        yield from (text for each in value for text in spoken(each))
    elif isinstance(value, str):
        yield value


@given(st.text(st.characters(), max_size=30), st.text(st.characters(exclude_characters="{}"), min_size=1, max_size=3))
def test_it_is_nowhere_afterwards(text: str, word: str) -> None:
    """In the text, or in anything that was made of it."""
    source = canonical.source({"a": [text, {"b": text + word}]})
    pattern = Expression(re.compile(re.escape(word)))
    for value in (Text(text, wire=source), ToolCall("c", "n", source), Content("n", text, data=source)):
        rest = without(value, pattern)
        for name in {"text", "wire", "arguments", "data"} & set(dir(rest)):
            assert not pattern.compiled.search(getattr(rest, name).replace(OUT, "")), name
    call = without(ToolCall("c", "n", source), pattern)
    assert isinstance(call, ToolCall)
    left = [said.replace(OUT, "") for said in spoken(canonical.decode(call.arguments))]
    assert [] == list(filter(pattern.compiled.search, left))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Text("a", carriers=HELD, wire="{}"), Text("a")),
        (ThinkingBlock("a", signature="s", carriers=HELD, wire="{}"), ThinkingBlock("a")),
        (ToolCall("c", "n", "{}", carriers=HELD, wire="{}"), ToolCall("c", "n", "{}")),
        (Media("image/png", "AAAA", carriers=HELD), Media("image/png", "AAAA")),
        (Unknown("{}"), None),
        (Response(ORIGIN, "id", message="{}", envelope="{}", blocks=1), Response(ORIGIN, blocks=1)),
        (Message("a"), Message("a")),
    ],
)
def test_a_void_piece_has_nothing_opaque(value: Payload, expected: Payload | None) -> None:
    """And nothing verbatim."""
    assert expected == voided(value)


def test_a_response_loses_its_carriers_with_any_of_its_text() -> None:
    """All of its pieces do; other responses keep theirs, and so does it where only the question had the text."""
    talk = Talk().user("key-1?")
    talk.reply(think("key-1", signature="s"), signed_call(), Unknown("{}"), think("plain"), id="x").result()
    talk.reply(think("b", signature="s2"), say("key-1"))
    commits = talk.commits
    thought = commits[2]
    rests = redacted([SessionHistory("s", commits)], thought, KEY)
    header, plain = commits[1], commits[5]
    assert {thought.hash, header.hash, commits[3].hash, commits[4].hash} == rests.keys()
    assert ThinkingBlock(OUT, source_field="reasoning_content") == rests[thought.hash]
    assert (call(), None) == (rests[commits[3].hash], rests[commits[4].hash])
    assert plain.hash not in rests
    assert {commits[0].hash} == redacted([SessionHistory("s", commits)], commits[0], KEY).keys()


def test_versions_and_copies_lose_it_too() -> None:
    """What it says now and said before, what was said about it, and the same payload on another line."""
    talk = Talk().user("key-1").user("other key-1")
    first = talk.commits[0]
    (edit,) = talk.add(Draft("user", Message("k3y-1"), edit=first.hash))
    talk.note("annotation", Annotation(first.hash, reason="has key-1"))
    copy = Talk().user("before").user("key-1")
    told = [SessionHistory("s", talk.commits), SessionHistory("t", copy.commits)]
    expected = {first.hash, edit.hash, talk.commits[3].hash, copy.commits[1].hash}
    assert expected == redacted(told, first, KEY).keys() == redacted(told, edit, KEY).keys()


def test_what_is_left_of_an_erased_commit_can_lose_more() -> None:
    """And one of which nothing is left loses nothing."""
    talk = Talk().user("a").reply(say("b"), say("key-1"))
    user, header, one, two = talk.commits
    stone = msgspec.structs.replace(user, value=tombstone("asked", 1, Message("key-1")))
    void = msgspec.structs.replace(one, value=tombstone("asked", 1))
    told = [SessionHistory("s", [stone, header, void, two])]
    assert {user.hash: Message(OUT)} == redacted(told, stone, KEY)
    assert {} == redacted(told, void, KEY)
    assert {two.hash: Text(OUT)} == redacted(told, two, KEY)
    gone = Talk().reply(Unknown('"key-1"'))
    assert {gone.commits[1].hash: None} == redacted([SessionHistory("s", gone.commits)], gone.commits[1], KEY)
