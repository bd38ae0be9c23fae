"""A response has one value: as it was stored from any dialect, and as a client of any dialect gives it back."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.dialects import DIALECTS, FRAMINGS, stream_of
from tests.log.echoes import CHANGES, FRONTS, echoed
from tests.wire.fronts import read_back, reader_of, written
from tests.wire.test_fronts import BLOCKS, deltas_of, result_of, streamed
from thinkback.log.echo_digests import EchoedMessage, echoed_messages
from thinkback.model.blocks import Block, Text, ToolCall
from thinkback.model.commits import Draft, Message
from thinkback.wire.histories import response_drafts
from thinkback.wire.registry import dialect, front
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Shown

ASKED = "What is it?"
TAGGED = st.builds(
    Text,
    st.lists(st.sampled_from(["a", " b", "<think>", "</think>", "`<think>`", "[THINK]", "\n", "<"]), max_size=6).map(
        "".join
    ),
)


def stored(result: ReadResult) -> list[EchoedMessage]:
    """What is visible of the question and its response, as the log has them."""
    answer = response_drafts(result.response, result.blocks, "r")
    return echoed_messages([Draft("user", Message(ASKED)), *answer])


def request(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """The next request of a client that keeps of a response what its dialect's document says."""
    match name:
        case "openai-chat":
            message = document["choices"][0]["message"]
            return {"messages": [{"role": "user", "content": ASKED}, message]}
        case "openai-responses":
            return {"input": [{"role": "user", "content": ASKED}, *document["output"]]}
        case "anthropic":
            answer = {"role": "assistant", "content": document["content"]}
            return {"messages": [{"role": "user", "content": ASKED}, answer]}
        case _:
            content = document["candidates"][0].get("content", {"role": "model", "parts": []})
            return {"contents": [{"role": "user", "parts": [{"text": ASKED}]}, content]}


def values(messages: list[EchoedMessage]) -> list[tuple[str, bytes]]:
    return [(message.speaker, message.value) for message in messages]


@pytest.mark.parametrize("name", FRONTS)
@pytest.mark.parametrize("upstream", DIALECTS)
def test_a_response_of_any_dialect_is_known_from_any_client(upstream: str, name: str) -> None:
    """Streamed and whole, from the reader of the one through the writer and the request reader of the other."""
    stream = stream_of(upstream, 40)
    framing = FRAMINGS[upstream]
    made = written(name, reader_of(upstream, framing), [stream.body])
    expected = values(stored(made.result))
    assert ["user", "assistant"] == [speaker for speaker, _ in expected]
    assert expected == values(echoed(request(name, json.loads(made.document)), name))
    raw = dialect(name).raw_response(read_back(name, made.stream, "sse"))
    assert expected == values(echoed(request(name, raw), name))


@pytest.mark.covers(True)
@pytest.mark.parametrize("name", FRONTS)
@example(blocks=[Text("</think>" * 5)], changes=set())
@given(blocks=BLOCKS | st.lists(TAGGED, max_size=3), changes=st.sets(st.sampled_from(sorted(CHANGES))))
def test_a_response_of_any_shape_is_known_from_any_client(name: str, blocks: list[Block], changes: set[str]) -> None:
    """Whatever blocks it has, and whatever the client does to it."""
    result = result_of(blocks)
    shown = Shown("resp-1", "asked-for", 7, block=functools.partial(_at, blocks))
    expected = values(stored(result))
    bodies = [json.loads(front(name).write_response(result, shown))]
    back = read_back(name, streamed(name, result, deltas_of(blocks, 3), shown), "sse")
    bodies.append(dialect(name).raw_response(back))
    for document in bodies:
        body = request(name, document)
        assert expected == values(echoed(body, name))
        for change in (CHANGES[name] for name in CHANGES if name in changes):
            change(body)
        assert expected == values(echoed(body, name))


def _at(blocks: list[Block], index: int) -> Block:
    return blocks[index]


def test_a_call_whose_arguments_are_no_object_is_the_same_where_they_must_be_one() -> None:
    """A dialect that takes nothing else has the text inside an object."""
    for arguments in ("no json", "[1]", "", " ", '"text"', "5", '{"arguments": "x"}', "null"):
        expected = values(stored(result_of([ToolCall("c1", "f", arguments)])))
        for name in FRONTS:
            shown = Shown("resp-1", "asked-for", 7)
            document = json.loads(front(name).write_response(result_of([ToolCall("c1", "f", arguments)]), shown))
            assert expected == values(echoed(request(name, document), name)), (name, arguments)
