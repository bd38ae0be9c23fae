"""The same words as each dialect streams them: events in the shapes, and with the white space, of the providers.

Where a dialect gives calls whole there is one event for them instead of fragments.
"""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Callable
from itertools import count
from typing import Any

from bench.streams import Said, Stream, said, stream
from thinkback.wire.framing import Framing

MODEL = "model-of-the-day-20260801"
# Opaque values have about this size with a page of reasoning.
SIGNATURE = "EqQBCkYIBxgCKkD" * 40
_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_LIKE_GOOGLE = (",", ": ")


def _json(value: Any, separators: tuple[str, str] = (",", ":")) -> bytes:
    return json.dumps(value, separators=separators, ensure_ascii=False).encode()


def _named(name: str, value: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _json(value))


def _anthropic(script: Said) -> list[bytes]:
    chance = random.Random(5)

    def event(kind: str, **fields: Any) -> bytes:
        # The provider pads its events with spaces before the last brace.
        line = _json({"type": kind, **fields})[:-1] + b" " * chance.randrange(16) + b"}"
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), line)

    def block(index: int, start: dict[str, Any], kind: str, field: str, pieces: list[str]) -> list[bytes]:
        deltas = [{"type": kind, field: piece} for piece in pieces]
        if start["type"] == "thinking":
            deltas.append({"type": "signature_delta", "signature": SIGNATURE})
        return [
            event("content_block_start", index=index, content_block=start),
            *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
            event("content_block_stop", index=index),
        ]

    usage = {"input_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 8}
    message: dict[str, Any] = {"model": MODEL, "id": "msg_01", "type": "message", "role": "assistant", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    call = {"type": "tool_use", "id": "toolu_01", "name": "look_up", "input": {}}
    stop = {"stop_reason": "tool_use", "stop_sequence": None}
    return [
        event("message_start", message=message),
        event("ping"),
        *block(0, {"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", script.thoughts),
        *block(1, {"type": "text", "text": ""}, "text_delta", "text", script.texts),
        *block(2, call, "input_json_delta", "partial_json", script.fragments),
        event("message_delta", delta=stop, usage={**usage, "output_tokens": 5 * len(script.thoughts)}),
        event("message_stop"),
    ]


def _openai_responses(script: Said) -> list[bytes]:
    numbers, chance = count(), random.Random(6)

    def event(kind: str, **fields: Any) -> bytes:
        return _named(f"response.{kind}", {"type": f"response.{kind}", "sequence_number": next(numbers), **fields})

    def pieces(kind: str, at: dict[str, Any], texts: list[str]) -> list[bytes]:
        hidden = [_PADDING[: chance.randrange(16)] for _ in texts]
        return [event(kind, **at, delta=text, obfuscation=padding) for text, padding in zip(texts, hidden, strict=True)]

    thought, text, arguments = map("".join, script)
    response = {
        "id": "resp_01",
        "object": "response",
        "created_at": 1_767_225_600,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": MODEL,
        "output": [],
        "parallel_tool_calls": True,
        "reasoning": {"effort": "high", "summary": "detailed"},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }
    reasoning = {"id": "rs_01", "type": "reasoning", "summary": [], "encrypted_content": SIGNATURE}
    summary = {"item_id": "rs_01", "output_index": 0, "summary_index": 0}
    message = {"id": "msg_01", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    content = {"item_id": "msg_01", "output_index": 1, "content_index": 0}
    call = {"id": "fc_01", "type": "function_call", "status": "in_progress", "call_id": "call_01", "name": "look_up"}
    said_thought = {"type": "summary_text", "text": thought}
    said_text = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    done = [
        {**reasoning, "summary": [said_thought]},
        {**message, "status": "completed", "content": [said_text]},
        {**call, "status": "completed", "arguments": arguments},
    ]
    usage = {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5 * len(script.thoughts),
        "output_tokens_details": {"reasoning_tokens": 4 * len(script.thoughts)},
        "total_tokens": 20 + 5 * len(script.thoughts),
    }
    return [
        event("created", response=response),
        event("in_progress", response=response),
        event("output_item.added", output_index=0, item=reasoning),
        event("reasoning_summary_part.added", **summary, part={"type": "summary_text", "text": ""}),
        *pieces("reasoning_summary_text.delta", summary, script.thoughts),
        event("reasoning_summary_text.done", **summary, text=thought),
        event("reasoning_summary_part.done", **summary, part=said_thought),
        event("output_item.done", output_index=0, item=done[0]),
        event("output_item.added", output_index=1, item=message),
        event("content_part.added", **content, part={**said_text, "text": ""}),
        *pieces("output_text.delta", {**content, "logprobs": []}, script.texts),
        event("output_text.done", **content, text=text, logprobs=[]),
        event("content_part.done", **content, part=said_text),
        event("output_item.done", output_index=1, item=done[1]),
        event("output_item.added", output_index=2, item={**call, "arguments": ""}),
        *pieces("function_call_arguments.delta", {"item_id": "fc_01", "output_index": 2}, script.fragments),
        event("function_call_arguments.done", item_id="fc_01", output_index=2, name="look_up", arguments=arguments),
        event("output_item.done", output_index=2, item=done[2]),
        event("completed", response={**response, "status": "completed", "output": done, "usage": usage}),
    ]


def _gemini(script: Said) -> list[bytes]:
    tokens = count(1)

    def event(part: dict[str, Any], **rest: Any) -> bytes:
        said = next(tokens)
        usage = {
            "promptTokenCount": 20,
            "candidatesTokenCount": said,
            "totalTokenCount": 20 + said,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 20}],
            "thoughtsTokenCount": said,
            "serviceTier": "standard",
        }
        candidate = {"content": {"parts": [part], "role": "model"}, **rest, "index": 0}
        whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "U7-Fao_EK"}
        return b"data: %b\r\n\r\n" % _json(whole, _LIKE_GOOGLE)

    call = {"name": "look_up", "args": json.loads("".join(script.fragments))}
    return [
        *(event({"text": text, "thought": True}) for text in script.thoughts),
        *(event({"text": text}) for text in script.texts),
        event({"functionCall": call, "thoughtSignature": SIGNATURE}),
        event({"text": ""}, finishReason="STOP"),
    ]


def _gemini_interactions(script: Said) -> list[bytes]:
    numbers = count()

    def event(kind: str, **fields: Any) -> bytes:
        return _named(kind, {"event_type": kind, **fields, "event_id": f"ev_{next(numbers)}"})

    def step(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> list[bytes]:
        return [
            event("step.start", index=index, step=start),
            *(event("step.delta", index=index, delta=delta) for delta in deltas),
            event("step.stop", index=index),
        ]

    usage = {"total_input_tokens": 20, "total_output_tokens": 25, "total_thought_tokens": 4 * len(script.thoughts)}
    head = {"id": "v1_01", "model": MODEL, "object": "interaction"}
    call = {"type": "function_call", "id": "fc_01", "name": "look_up", "arguments": {}}
    summaries: list[dict[str, Any]] = [
        {"type": "thought_summary", "content": {"type": "text", "text": text}} for text in script.thoughts
    ]
    signature = {"type": "thought_signature", "signature": SIGNATURE}
    return [
        event("interaction.created", interaction={**head, "status": "in_progress"}),
        event("interaction.status_update", interaction_id="v1_01", status="in_progress"),
        *step(0, {"type": "thought"}, [*summaries, signature]),
        *step(1, {"type": "model_output"}, [{"type": "text", "text": text} for text in script.texts]),
        *step(2, call, [{"type": "arguments_delta", "arguments": fragment} for fragment in script.fragments]),
        event("interaction.completed", interaction={**head, "status": "requires_action", "usage": usage}),
        b"event: done\ndata: [DONE]\n\n",
    ]


def _bedrock(script: Said) -> list[bytes]:
    chance = random.Random(7)

    def header(name: str, value: str) -> bytes:
        return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()

    def event(kind: str, **fields: Any) -> bytes:
        payload = _json({**fields, "p": _PADDING[: chance.randrange(len(_PADDING))]})
        headers = header(":event-type", kind) + header(":content-type", "application/json")
        headers += header(":message-type", "event")
        prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
        message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
        return message + struct.pack(">I", zlib.crc32(message))

    def block(index: int, deltas: list[dict[str, Any]]) -> list[bytes]:
        stop = event("contentBlockStop", contentBlockIndex=index)
        return [*(event("contentBlockDelta", contentBlockIndex=index, delta=delta) for delta in deltas), stop]

    thoughts: list[dict[str, Any]] = [{"reasoningContent": {"text": text}} for text in script.thoughts]
    call = {"toolUse": {"toolUseId": "tooluse_01", "name": "look_up"}}
    usage = {"inputTokens": 20, "outputTokens": 5 * len(script.thoughts), "totalTokens": 20 + 5 * len(script.thoughts)}
    return [
        event("messageStart", role="assistant"),
        *block(0, [*thoughts, {"reasoningContent": {"signature": SIGNATURE}}]),
        *block(1, [{"text": text} for text in script.texts]),
        event("contentBlockStart", contentBlockIndex=2, start=call),
        *block(2, [{"toolUse": {"input": fragment}} for fragment in script.fragments]),
        event("messageStop", stopReason="tool_use"),
        event("metadata", metrics={"latencyMs": 11_454}, usage=usage),
    ]


def _mistral(script: Said) -> list[bytes]:
    chance = random.Random(8)

    def event(delta: dict[str, Any], finish: str | None = None, **rest: Any) -> bytes:
        chunk = {
            "id": "7bfa9194c90e44c5a0efa6c6efa474cd",
            "object": "chat.completion.chunk",
            "created": 1_767_225_600,
            "model": MODEL,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            **rest,
            "p": _PADDING[: chance.randrange(32)],
        }
        return b"data: %b\n\n" % _json(chunk)

    def thinking(text: str) -> dict[str, Any]:
        return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}], "closed": True}]}

    function = {"name": "look_up", "arguments": "".join(script.fragments)}
    usage = {"prompt_tokens": 20, "completion_tokens": 5 * len(script.thoughts)}
    call = {"content": "", "tool_calls": [{"id": "abcdefghi", "function": function, "index": 0}]}
    return [
        event({"role": "assistant", "content": ""}),
        *(event(thinking(text)) for text in script.thoughts),
        *(event({"content": text}) for text in script.texts),
        event(call, "tool_calls", usage=usage),
        b"data: [DONE]\n\n",
    ]


def _ollama(script: Said) -> list[bytes]:
    moments = count(100_000)

    def line(message: dict[str, Any], **rest: Any) -> bytes:
        moment = f"2026-08-04T19:59:11.{next(moments)}Z"
        head = {"model": "qwen3:4b", "created_at": moment, "message": {"role": "assistant", **message}}
        return _json({**head, "done": False, **rest}) + b"\n"

    function = {"name": "look_up", "arguments": json.loads("".join(script.fragments))}
    counts = {"total_duration": 9, "prompt_eval_count": 20, "eval_count": 5 * len(script.thoughts)}
    return [
        *(line({"content": "", "thinking": text}) for text in script.thoughts),
        *(line({"content": text}) for text in script.texts),
        line({"content": "", "tool_calls": [{"id": "call_01", "function": {"index": 0, **function}}]}),
        line({"content": ""}, done=True, done_reason="stop", **counts),
    ]


def _cohere(script: Said) -> list[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return _named(kind, {"type": kind, **fields})

    def item(index: int, kind: str, pieces: list[str]) -> list[bytes]:
        def message(text: str, **rest: Any) -> dict[str, Any]:
            return {"message": {"content": {**rest, kind: text}}}

        return [
            event("content-start", index=index, delta=message("", type=kind)),
            *(event("content-delta", index=index, delta=message(text)) for text in pieces),
            event("content-end", index=index),
        ]

    def call(function: dict[str, Any], **rest: Any) -> dict[str, Any]:
        return {"message": {"tool_calls": {**rest, "function": function}}}

    message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    tokens = {"input_tokens": 20, "output_tokens": 5 * len(script.thoughts)}
    start = call({"name": "look_up", "arguments": ""}, id="look_up_01", type="function")
    return [
        event("message-start", id="65c1c25d-3196-4b31-9273-15b3f75c3cd8", delta={"message": message}),
        *item(0, "thinking", script.thoughts),
        *item(1, "text", script.texts),
        event("tool-call-start", index=0, delta=start),
        *(event("tool-call-delta", index=0, delta=call({"arguments": text})) for text in script.fragments),
        event("tool-call-end", index=0),
        event("message-end", delta={"finish_reason": "TOOL_CALL", "usage": {"tokens": tokens}}),
    ]


_EVENTS: dict[str, Callable[[Said], list[bytes]]] = {
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "gemini-interactions": _gemini_interactions,
    "bedrock": _bedrock,
    "mistral": _mistral,
    "ollama": _ollama,
    "cohere": _cohere,
}
DIALECTS = ("openai-chat", *_EVENTS)
FRAMINGS: dict[str, Framing] = dict.fromkeys(DIALECTS, "sse")
FRAMINGS |= {"ollama": "ndjson", "bedrock": "event-stream"}


def stream_of(dialect: str, deltas: int) -> Stream:
    """The stream of ``dialect`` with ``deltas`` reasoning deltas, a quarter as many of text, and a call."""
    if dialect == "openai-chat":
        return stream(deltas)
    script = said(deltas)
    given = script.stream(_EVENTS[dialect](script))
    # Each summary of an interaction is a text of its own, told apart by a blank line.
    return given._replace(reasoning="\n\n".join(script.thoughts)) if dialect == "gemini-interactions" else given
