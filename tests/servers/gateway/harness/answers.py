"""What an upstream of each dialect answers, and what a client of each asks: reasoning and text in given pieces."""

from __future__ import annotations

import json
from typing import Any

from tests.servers.gateway.harness.engines import CLAUDE, DEEPSEEK

FRONTS: tuple[str, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
MODELS = {
    "openai-chat": DEEPSEEK,
    "anthropic": CLAUDE,
    "openai-responses": "openai/gpt-5.5",
    "gemini": "gemini/gemini-3.1-pro-preview",
}


def _named(*events: dict[str, Any]) -> bytes:
    return b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)


def answer(dialect: str, thought: list[str], text: list[str], stream: bool) -> bytes:
    """A response of an upstream: reasoning and text in these pieces."""
    match dialect:
        case "openai-chat":
            if not stream:
                message = {"role": "assistant", "reasoning_content": "".join(thought), "content": "".join(text)}
                return json.dumps(
                    {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
                ).encode()
            deltas: list[dict[str, Any]] = [
                *({"reasoning_content": t} for t in thought),
                *({"content": t} for t in text),
            ]
            said = [{"id": "c", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
            said.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            return b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in said) + b"data: [DONE]\n\n"
        case "gemini":
            parts = [*({"text": t, "thought": True} for t in thought), *({"text": t} for t in text)]
            parts.append({"text": "", "thoughtSignature": "c2ln"})
            if not stream:
                content = {"role": "model", "parts": parts}
                return json.dumps({"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]}).encode()
            rows = [{"candidates": [{"index": 0, "content": {"role": "model", "parts": [p]}}]} for p in parts]
            rows[-1]["candidates"][0]["finishReason"] = "STOP"
            return b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in rows)
        case "anthropic":
            usage = {"input_tokens": 7, "output_tokens": 9}
            blocks = [
                {"type": "thinking", "thinking": "".join(thought), "signature": "c2ln"},
                {"type": "text", "text": "".join(text)},
            ]
            empty_message: dict[str, Any] = {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "c",
                "usage": usage,
            }
            if not stream:
                return json.dumps({**empty_message, "content": blocks, "stop_reason": "end_turn"}).encode()
            events: list[dict[str, Any]] = [{"type": "message_start", "message": {**empty_message, "content": []}}]
            for at, (kind, pieces) in enumerate((("thinking", thought), ("text", text))):
                empty = {"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})}
                events.append({"type": "content_block_start", "index": at, "content_block": empty})
                for piece in pieces:
                    delta = {"type": f"{kind}_delta", kind: piece}
                    events.append({"type": "content_block_delta", "index": at, "delta": delta})
                if kind == "thinking":
                    signed = {"type": "signature_delta", "signature": "c2ln"}
                    events.append({"type": "content_block_delta", "index": at, "delta": signed})
                events.append({"type": "content_block_stop", "index": at})
            events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
            return _named(*events, {"type": "message_stop"})
        case _:
            head: dict[str, Any] = {"id": "r", "object": "response", "created_at": 1, "model": "g"}
            summary = [{"type": "summary_text", "text": "".join(thought)}]
            item = {"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "ZW5j"}
            part = {"type": "output_text", "text": "".join(text), "annotations": []}
            said_item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
            whole = {**head, "status": "completed", "output": [item, said_item]}
            if not stream:
                return json.dumps(whole).encode()
            there = {"output_index": 1, "item_id": "m", "content_index": 0}
            inside = {"output_index": 0, "item_id": "rs", "summary_index": 0}
            return _named(
                {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}},
                {"type": "response.output_item.added", "output_index": 0, "item": {**item, "summary": []}},
                *({"type": "response.reasoning_summary_text.delta", **inside, "delta": t} for t in thought),
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.output_item.added", "output_index": 1, "item": {**said_item, "content": []}},
                {"type": "response.content_part.added", **there, "part": {**part, "text": ""}},
                *({"type": "response.output_text.delta", **there, "delta": t} for t in text),
                {"type": "response.output_item.done", "output_index": 1, "item": said_item},
                {"type": "response.completed", "response": whole},
            )


def request(front: str, upstream: str, stream: bool) -> tuple[dict[str, Any], str, bool | None]:
    """A request of one question that may be shown reasoning."""
    model = MODELS[upstream]
    match front:
        case "gemini":
            config = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
            return {"contents": [{"role": "user", "parts": [{"text": "Why?"}]}], **config}, model, stream
        case "openai-responses":
            return {"model": model, "input": "Why?", "stream": stream, "reasoning": {"summary": "auto"}}, "", None
        case _:
            body = {"model": model, "max_tokens": 3000, "messages": [{"role": "user", "content": "Why?"}]}
            thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if front == "anthropic" else {}
            return {**body, "stream": stream, **thinking}, "", None
