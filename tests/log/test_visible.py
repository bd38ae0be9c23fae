"""What a client sees of a conversation: the same value for what is stored and for every echo of it."""

from __future__ import annotations

import hashlib
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.echoes import CHANGES, FRONTS, echoed, written
from thinkback.log.visible import chain, of_call, of_response, said, windows
from thinkback.model.blocks import Block, Media, Origin, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Draft, Message, Response, block_draft

UPSTREAM = Origin("elsewhere", "https://api.example.com/v1", "reasoner")
PNG = Media("image/png", data="iVBORw0KGgo=")

words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12
) | st.sampled_from(["Hello", "a\nb", "<think>", "</think>", "`<think>`", "4 < 5", " ", "\n\n", "[THINK]x[/THINK]"])
texts = st.lists(words, min_size=1, max_size=4).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
arguments = st.dictionaries(words, values, max_size=3).map(json.dumps) | st.sampled_from(["", "{}", "no json", "[1]"])
results = words | values.map(json.dumps)
said_by_user = texts.filter(lambda text: text.strip()).map(Message) | st.builds(
    lambda text: Message(text, (Text(text), PNG)), texts.filter(lambda text: text.strip())
)


@st.composite
def histories(draw: st.DrawFn) -> list[Draft]:
    """Turns of a user and a model, some of them with calls."""
    drafts: list[Draft] = []
    calls = itertools.count()
    for turn in range(draw(st.integers(1, 3))):
        drafts.append(Draft("user", draw(said_by_user)))
        for step in range(draw(st.integers(1, 2))):
            blocks: list[Block] = [ThinkingBlock("Hm.", source_field="reasoning_content")]
            blocks += [Text(text) for text in draw(st.lists(texts, min_size=1, max_size=2))]
            made = [
                ToolCall(f"call_{next(calls)}", draw(st.sampled_from(["look", "run"])), source)
                for source in draw(st.lists(arguments, max_size=2))
            ]
            id = f"response-{turn}-{step}"
            blocks += made
            drafts.append(Draft("response", Response(UPSTREAM, content="text", blocks=len(blocks)), id))
            drafts += [block_draft(block, id, at) for at, block in enumerate(blocks)]
            drafts += [Draft("tool_result", ToolResult(call.id, draw(results), call.name)) for call in made]
            if not made:
                break
    return drafts


@pytest.mark.parametrize("front", FRONTS)
@given(drafts=histories(), changes=st.sets(st.sampled_from(sorted(CHANGES))))
def test_an_echo_has_the_values_of_what_is_stored(front: str, drafts: list[Draft], changes: set[str]) -> None:
    """In every dialect of a client, whatever it changed of what was not its own."""
    body = written(drafts, front)
    for name, change in CHANGES.items():
        # without ids only their order says what results are of
        if name in changes and not (name == "ids" and front == "gemini" and "results in another order" in changes):
            change(body)
    stored = said(drafts)
    assert [one.value for one in stored] == [one.value for one in echoed(body, front)]


def test_digests_are_those_of_the_specification() -> None:
    """docs/format.md says how another program comes to them."""
    drafts = [
        Draft("system", Message("Be brief.")),
        Draft("user", Message(" Weather in\r\nOslo? ", (Text(" Weather in\r\nOslo? "), PNG))),
        Draft("response", Response(UPSTREAM), "r1"),
        Draft("reasoning", ThinkingBlock("Hm."), "r1", 0),
        Draft("assistant", Text("<think>Hm.</think>Let me see."), "r1", 1),
        Draft("tool_call", ToolCall("c1", "weather", '{ "b": 1.0, "a": [] }'), "r1", 2),
        Draft("tool_result", ToolResult("c1", '{"result": " 7 "}')),
    ]
    image = hashlib.sha256(b"iVBORw0KGgo").hexdigest()
    forms = [
        f'["user","Weather in\\nOslo?",["media","{image}"]]',
        '["assistant","Letmesee.",["weather","{\\"a\\":[],\\"b\\":1}"]]',
        '["tool",[0,"7"]]',
    ]
    expected = [hashlib.sha256(f"thinkback visible 1\n{form}".encode()).digest()[:16] for form in forms]
    seen = said(drafts)
    assert expected == [one.value for one in seen]
    first = expected[0][:6] + hashlib.sha256(b"thinkback chain 1\n" + expected[0]).digest()[:10]
    second = expected[1][:6] + hashlib.sha256(b"thinkback chain 1\n" + first + expected[1]).digest()[:10]
    assert [first, second] == chain(expected[:2])
    five = [*expected, expected[0], expected[1]]
    window = hashlib.sha256(b"thinkback window 1\n" + b"".join(five[1:])).digest()
    assert expected[1][:6] + window[:10] == windows(five)[4]
    call = 'c1\nweather\n{"a":[],"b":1}'
    assert hashlib.sha256(f"thinkback call 1\n{call}".encode()).digest()[:16] == of_call(call)
    assert hashlib.sha256(b"thinkback response 1\nc1").digest()[:16] == of_response("c1")
    assert [((1,), ()), ((2, 3, 4, 5), (call,)), ((6,), ())] == [(one.at, one.calls) for one in seen]
    assert [(), ("r1",), ()] == [one.responses for one in seen]
