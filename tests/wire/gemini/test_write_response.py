"""Responses of Gemini as clients get them: their shape as events and whole, the state in them, and errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.wire.gemini.feeding import ORIGIN
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Failure, Response, Usage
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.gemini.opaque import armoured
from thinkback.wire.gemini.write_response import Writer, write_error, write_response
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, Shown

USAGE = Usage(10, 5, 3, 4, 1, ("cache_beside_input",))
BLOCKS: list[Block] = [
    ThinkingBlock("a plan", signature="theirs"),
    Text("an answer"),
    ToolCall("c1", "f", '{\n"a": 1}', carriers=(Carrier("thought_signature", "theirs"),)),
    ToolCall("", "g", "none"),
    Media("image/png", data="AAAA"),
    Media("image/*", data="AAAA"),
]
DELTAS: list[Delta] = [
    ReasoningDelta("a plan", 0),
    TextDelta("an answer", 1),
    ToolCallDelta(2, "c1", "f", "{"),
    ToolCallDelta(2, arguments='\n"a": 1}'),
    ToolCallDelta(3, name="g", arguments="none"),
]
THOUGHT, ANSWER = {"text": "a plan", "thought": True}, {"text": "an answer"}
CALLS: list[dict[str, Any]] = [
    {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}, "thoughtSignature": armoured("tb1.AA")},
    {"functionCall": {"name": "g", "args": {"arguments": "none"}}},
]
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
COUNTS = {
    "promptTokenCount": 15,
    "candidatesTokenCount": 2,
    "thoughtsTokenCount": 3,
    "cachedContentTokenCount": 4,
    "totalTokenCount": 20,
}
NAMED = {"modelVersion": "asked-for", "responseId": "resp-1"}


def shown(**fields: Any) -> Shown:
    """How these tests show a response."""
    return Shown("resp-1", "asked-for", 7, block=BLOCKS.__getitem__, **fields)


def result(blocks: Sequence[Block], error: Failure | None = None) -> ReadResult:
    """A response with these blocks."""
    outcome = "cut" if error else "answered"
    return ReadResult(Response(ORIGIN, error=error, outcome=outcome), tuple(blocks), USAGE)  # type: ignore[arg-type]


def chunk(*parts: Any, **fields: Any) -> dict[str, Any]:
    """One response of a stream."""
    return {"candidates": [{"content": {"parts": [*parts], "role": "model"}, "index": 0, **fields}], **NAMED}


def state(blocks: Sequence[Block]) -> str:
    """A state for every response."""
    return "tb1.AA"


EXPECTED = [
    chunk(THOUGHT),
    chunk(ANSWER),
    {**chunk(*CALLS, IMAGE, finishReason="STOP"), "usageMetadata": COUNTS},
]


def test_a_stream_has_calls_whole_and_the_state_on_the_first() -> None:
    """Each event is one line, whatever the white space in arguments."""
    writer = Writer(shown(state=state))
    stream = writer.begin() + writer.show(DELTAS) + writer.end(result(BLOCKS))

    lines = stream.decode().split("\r\n\r\n")
    assert "" == lines.pop()
    assert EXPECTED == [json.loads(line.removeprefix("data: ")) for line in lines]
    assert not any("\n" in line for line in lines)


def test_a_stream_that_breaks_off_ends_with_the_error() -> None:
    """It is one more event, with Google's word for it."""
    cut = Writer(shown()).end(result(BLOCKS, Failure("broke off", type="truncated")))

    error = {"error": {"code": 502, "message": "broke off", "status": "UNAVAILABLE"}}
    assert error == json.loads(cut.removeprefix(b"data: "))


@pytest.mark.parametrize(
    ("blocks", "parts"),
    [
        (BLOCKS, [THOUGHT, ANSWER, *CALLS, IMAGE]),
        (BLOCKS[:2], [THOUGHT, {**ANSWER, "thoughtSignature": armoured("tb1.AA")}]),
        ([], [{"text": "", "thoughtSignature": armoured("tb1.AA")}]),
    ],
)
def test_a_whole_response_has_its_parts_in_order(blocks: Sequence[Block], parts: list[Any]) -> None:
    """The state is on the first call, else on the last part, on an empty one where there is none."""
    found = {**chunk(*parts, finishReason="STOP"), "usageMetadata": COUNTS}

    assert found == json.loads(write_response(result(blocks), shown(state=state)))


def test_a_stream_without_calls_has_the_state_in_the_last_response() -> None:
    """The last piece of text is held back for it; an empty one carries it where nothing was said."""
    for deltas, text in ([TextDelta("an ", 1), TextDelta("answer", 1)], "answer"), ([], ""):
        writer = Writer(shown(state=state, usage=False))
        before = writer.show(deltas)
        last = json.loads(writer.end(result(BLOCKS[:2])).removeprefix(b"data: "))

        assert text not in before.decode() or not text
        assert chunk({"text": text, "thoughtSignature": armoured("tb1.AA")}, finishReason="STOP") == last


def test_what_was_held_back_comes_before_an_error() -> None:
    """A stream that fails has said all that came."""
    writer = Writer(shown(state=state))

    assert b"" == writer.show([TextDelta("an answer", 1)])
    assert b"an answer" in writer.fail(Problem(502, "broke off")).split(b"\r\n\r\n")[0]


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (Problem(400, "m"), "INVALID_ARGUMENT"),
        (Problem(401, "m", "authentication_error"), "UNAUTHENTICATED"),
        (Problem(403, "m"), "PERMISSION_DENIED"),
        (Problem(404, "m"), "NOT_FOUND"),
        (Problem(418, "m"), "INVALID_ARGUMENT"),
        (Problem(400, "m", "FAILED_PRECONDITION"), "FAILED_PRECONDITION"),
        (Problem(429, "m"), "RESOURCE_EXHAUSTED"),
        (Problem(500, "m"), "INTERNAL"),
        (Problem(503, "m"), "UNAVAILABLE"),
        (Problem(504, "\ud83d"), "DEADLINE_EXCEEDED"),
    ],
)
def test_an_error_has_the_words_of_the_dialect(problem: Problem, status: str) -> None:
    """Google's own status stays, each other one follows from the HTTP status."""
    error = {"code": problem.status, "message": problem.message, "status": status}

    assert {"error": error} == json.loads(write_error(problem))
