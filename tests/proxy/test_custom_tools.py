"""Tools that take any text (``apply_patch``): custom where the host has such tools, else a function of one string."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proxy.playbook import Playbook, to
from thinkback.log.protocol import Store as Log
from thinkback.proxy.events import Head, Route

JSON, SSE = Head(200, {"content-type": "application/json"}), Head(200, {"content-type": "text/event-stream"})
RECORD = "request response tool_call"
PATCH = '*** Begin Patch\n+print("hi")\n*** End Patch\n'
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
FLAT = {"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": GRAMMAR}
NESTED = {
    "type": "custom",
    "custom": {
        "name": "apply_patch",
        "description": "Edits files.",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /.+/"}},
    },
}
CALL = {"id": "c1", "type": "custom", "custom": {"name": "apply_patch", "input": PATCH}}


CHAT = to("openai-chat", "/chat/completions")
OPENAI = to("openai-chat", "/chat/completions", custom_tools=True)
RESPONSES = to("openai-responses", "/responses")
ANTHROPIC = to("anthropic", "/messages")


def chat(*more: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A request of chat completions with the custom tool."""
    return {"model": "thinker", "messages": [{"role": "user", "content": "Hi"}, *more], "tools": [NESTED], **fields}


def answer(call: dict[str, Any]) -> bytes:
    """What chat completions say, with one call."""
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return json.dumps(
        {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    ).encode()


def function(arguments: str) -> dict[str, Any]:
    """The call of the function that stands for the tool."""
    return {"id": "c1", "type": "function", "function": {"name": "apply_patch", "arguments": arguments}}


def asked(body: dict[str, Any], place: Route, reply: bytes, log: Log | None = None, **ways: Any) -> Playbook:
    """One exchange, to its end."""
    play = Playbook(body, log=log, **ways).asks().routes(place)
    play.answers(reply, head=JSON).keeps(RECORD).ends()
    return play


def test_a_custom_tool_stays_custom_where_the_host_has_such_tools() -> None:
    """Chat completions to Responses: definition, choice and call are custom there, and custom again to the client."""
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "apply_patch", "input": PATCH}
    reply = json.dumps({"id": "r", "object": "response", "status": "completed", "output": [item]}).encode()
    play = asked(chat(), RESPONSES, reply)
    assert [FLAT] == play.sent[0]["tools"]
    assert [CALL] == json.loads(play.body)["choices"][0]["message"]["tool_calls"]
    result = {"role": "tool", "tool_call_id": "c1", "content": "Done!"}
    again = chat({"role": "assistant", "content": None, "tool_calls": [CALL]}, result)
    play = asked(again, RESPONSES, reply, play.log)
    assert ["custom_tool_call", "custom_tool_call_output"] == [each["type"] for each in play.sent[0]["input"][1:]]
    assert [PATCH, "Done!"] == [each.get("input", each.get("output")) for each in play.sent[0]["input"][1:]]


@pytest.mark.parametrize("place", [CHAT, ANTHROPIC], ids=["chat completions", "anthropic"])
def test_elsewhere_it_is_a_function_of_one_string_and_back(place: Route) -> None:
    """The client has its own kind of call, the host its own; the next turn knows it, and people are told."""
    told = json.dumps({"input": PATCH})
    reply = answer(function(told))
    if place is ANTHROPIC:
        used = {"type": "tool_use", "id": "c1", "name": "apply_patch", "input": {"input": PATCH}}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "thinker", "content": [used]}
        reply = json.dumps({**message, "stop_reason": "tool_use", "usage": {}}).encode()
    play = asked(chat(tool_choice={"type": "custom", "custom": {"name": "apply_patch"}}), place, reply)
    assert '"custom"' not in json.dumps(play.sent)
    assert "start: /.+/" in json.dumps(play.sent[0]["tools"])
    assert [CALL] == json.loads(play.body)["choices"][0]["message"]["tool_calls"]
    assert "custom" in play.headers["thinkback-left-out"]
    session = play.headers["thinkback-session"]
    result = {"role": "tool", "tool_call_id": "c1", "content": "Done!"}
    again = chat({"role": "assistant", "content": None, "tool_calls": [CALL]}, result)
    play = asked(again, place, reply, play.log)
    assert session == play.headers["thinkback-session"]
    assert PATCH in [inner for inner in strings(play.sent[0]) for inner in (inner, input_of(inner))]
    assert '"custom"' not in json.dumps(play.sent)


def strings(value: Any) -> list[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in strings(each)]


def input_of(text: str) -> str:
    """The one text of an object in JSON."""
    return str(json.loads(text)["input"]) if text.startswith('{"input"') else ""


def test_a_host_of_the_same_dialect_that_has_custom_tools_gets_the_bytes_of_the_client() -> None:
    """OpenAI's own chat completions."""
    play = asked(chat(), OPENAI, answer(CALL))
    assert [NESTED] == play.sent[0]["tools"]
    assert [CALL] == json.loads(play.body)["choices"][0]["message"]["tool_calls"]
    assert "thinkback-left-out" not in play.headers
    result = {"role": "tool", "tool_call_id": "c1", "content": "Done!"}
    play = asked(
        chat({"role": "assistant", "content": None, "tool_calls": [CALL]}, result), OPENAI, answer(CALL), play.log
    )
    assert [CALL] == play.sent[0]["messages"][1]["tool_calls"]


def test_responses_have_it_back_as_a_custom_call() -> None:
    """A client of Responses whose host has functions only, as Codex at DeepSeek."""
    body = {
        "model": "thinker",
        "input": "Hi",
        "tools": [FLAT],
        "tool_choice": {"type": "custom", "name": "apply_patch"},
    }
    play = asked(body, CHAT, answer(function(json.dumps({"input": PATCH}))), front="openai-responses")
    assert {"type": "function", "function": {"name": "apply_patch"}} == play.sent[0]["tool_choice"]
    items = json.loads(play.body)["output"]
    assert [("custom_tool_call", PATCH)] == [(item["type"], item["input"]) for item in items]


def chunk(**delta: Any) -> bytes:
    """A chunk of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return b"data: %b\n\n" % json.dumps({"id": "x", "choices": [choice]}).encode()


@given(st.text(max_size=12), st.integers(1, 40), st.booleans())
def test_a_stream_says_what_a_whole_response_says(text: str, size: int, parallel: bool) -> None:
    """The text is the same however the function's arguments are cut, also beside a call of a function."""
    arguments = json.dumps({"input": text})
    other = {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": '{"a":1}'}}
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "apply_patch", "arguments": ""}}
    events = [chunk(tool_calls=[first])]
    for at in range(0, len(arguments), size):
        events.append(chunk(tool_calls=[{"index": 0, "function": {"arguments": arguments[at : at + size]}}]))
    if parallel:
        events.append(chunk(tool_calls=[{"index": 1, **other}]))
    end = b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    play = Playbook(chat(stream=True)).asks().routes(CHAT)
    play.answers(*events, end, head=SSE).keeps(
        RECORD if not parallel else "request response tool_call tool_call"
    ).ends()
    calls: dict[int, dict[str, Any]] = {}
    for line in play.body.split(b"\n\n"):
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:])["choices"]:
                for each in choice["delta"].get("tool_calls", ()):
                    call = calls.setdefault(each["index"], {"id": each.get("id"), "type": each.get("type"), "said": ""})
                    call["said"] += each.get("custom", each.get("function", {})).get(
                        "input" if call["type"] == "custom" else "arguments", ""
                    )
    expected = {0: {"id": "c1", "type": "custom", "said": text}}
    assert (expected | {1: {"id": "c2", "type": "function", "said": '{"a":1}'}} if parallel else expected) == calls
