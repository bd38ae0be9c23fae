"""One short response in the words of each dialect that clients speak, and what clients make of what they are given.

The openai and anthropic packages read what arrived as they would from a socket; Gemini's is read by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import anthropic
import httpx2
import openai

from tests.servers.gateway.harness.engines import Kept

THOUGHT, TEXT = "Hm, so.", "Forty-two."
PLACES = {
    "deepseek": "http://deepseek.test/v1",
    "anthropic": "http://claude.test",
    "openai": "http://openai.test/v1",
    "gemini": "http://gemini.test/v1beta",
}
MODELS = {
    "openai-chat": "deepseek/deepseek-v4-pro",
    "anthropic": "anthropic/claude-opus-5-5",
    "openai-responses": "openai/gpt-5.5",
    "gemini": "gemini/gemini-3.1-pro-preview",
}


class Read(NamedTuple):
    """What a client has read: the texts in their order, and the error that its package raised or was given."""

    texts: list[str]
    error: str
    whole: bool


def _named(*events: dict[str, Any]) -> bytes:
    return b"".join(b"event: %s\ndata: %s\n\n" % (each["type"].encode(), json.dumps(each).encode()) for each in events)


def _data(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in events)


def _chat() -> bytes:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    return _data(
        chunk({"role": "assistant", "reasoning_content": THOUGHT}),
        *(chunk({"content": piece}) for piece in ("Forty", "-two.")),
        chunk({}, "stop"),
    ) + (b"data: [DONE]\n\n")


def _anthropic() -> bytes:
    def delta(index: int, **said: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": said}

    usage = {"input_tokens": 7, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "usage": usage}
    return _named(
        {"type": "message_start", "message": message},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        delta(0, type="thinking_delta", thinking=THOUGHT),
        delta(0, type="signature_delta", signature="c2ln"),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        *(delta(1, type="text_delta", text=piece) for piece in ("Forty", "-two.")),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )


def _responses() -> bytes:
    head: dict[str, Any] = {"id": "r", "object": "response", "created_at": 1, "model": "g"}
    thought = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "ZW5j"}
    part = {"type": "output_text", "text": TEXT, "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    at = {"output_index": 1, "item_id": "m", "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": thought},
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        {"type": "response.output_item.added", "output_index": 1, "item": {**message, "content": []}},
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": piece} for piece in ("Forty", "-two.")),
        {"type": "response.output_text.done", **at, "text": TEXT},
        {"type": "response.content_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {"type": "response.completed", "response": {**head, "status": "completed", "output": [thought, message]}},
    ]
    return _named(*({**event, "sequence_number": at} for at, event in enumerate(events)))


def _gemini() -> bytes:
    def chunk(*parts: dict[str, Any], **more: str) -> dict[str, Any]:
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": list(parts)}, **more}]}

    return _data(
        chunk({"text": THOUGHT, "thought": True}),
        chunk({"text": "Forty"}),
        chunk({"text": "-two."}),
        chunk({"text": "", "thoughtSignature": "c2ln"}, finishReason="STOP"),
    )


STREAMS: dict[str, bytes] = {
    "openai-chat": _chat(),
    "anthropic": _anthropic(),
    "openai-responses": _responses(),
    "gemini": _gemini(),
}


def asked(front: str, model: str, words: str) -> tuple[dict[str, Any], str]:
    """A request of a client of ``front`` for a stream, and the model that its address names."""
    messages = [{"role": "user", "content": words}]
    match front:
        case "openai-chat":
            return {"model": model, "messages": messages, "stream": True}, ""
        case "openai-responses":
            return {"model": model, "input": words, "stream": True}, ""
        case "anthropic":
            return {"model": model, "max_tokens": 2000, "messages": messages, "stream": True}, ""
        case _:
            return {"contents": [{"role": "user", "parts": [{"text": words}]}]}, model


def whole_events(body: bytes) -> list[Any]:
    """The payloads of a stream; fails where an event is not whole."""
    assert body.endswith((b"\n\n", b"\r\n\r\n")), body[-100:]
    found = []
    for block in body.decode().replace("\r\n", "\n").removesuffix("\n\n").split("\n\n"):
        said = [line.partition(":")[2].strip() for line in block.split("\n") if line.startswith("data:")]
        found += [line if line == "[DONE]" else json.loads(line) for line in said]
    return found


def read(front: str, kept: Kept) -> Read:
    """What a client makes of a response."""
    return _READERS[front](kept)


def _transport(kept: Kept) -> httpx2.MockTransport:
    return httpx2.MockTransport(lambda request: httpx2.Response(kept.status, headers=kept.headers, content=kept.body))


def _guarded(events: Callable[[], Iterable[tuple[str, str, bool]]], raised: type[Exception]) -> Read:
    """``events`` gives (text, error, whether it is over)."""
    found = Read([], "", whole=False)
    try:
        for text, error, over in events():
            found = Read([*found.texts, text] if text else found.texts, found.error or error, found.whole or over)
    except raised as error:
        return found._replace(error=str(error) or type(error).__name__, whole=False)
    return found


def _read_chat(kept: Kept) -> Read:
    def events() -> Iterable[tuple[str, str, bool]]:
        client = openai.OpenAI(base_url=_URL, api_key="k", max_retries=0, http_client=_client(kept))
        message: Any = {"role": "user", "content": "?"}
        for chunk in client.chat.completions.create(model="m", messages=[message], stream=True):
            for choice in chunk.choices:
                yield choice.delta.content or "", "", choice.finish_reason is not None

    return _guarded(events, openai.APIError)


def _read_responses(kept: Kept) -> Read:
    def events() -> Iterable[tuple[str, str, bool]]:
        client = openai.OpenAI(base_url=_URL, api_key="k", max_retries=0, http_client=_client(kept))
        for event in client.responses.create(model="m", input="?", stream=True):
            said: Any = event
            failure = said.response.error.message if event.type == "response.failed" else ""
            text = said.delta if event.type == "response.output_text.delta" else ""
            yield text, said.message if event.type == "error" else failure, event.type == "response.completed"

    return _guarded(events, openai.APIError)


def _read_anthropic(kept: Kept) -> Read:
    def events() -> Iterable[tuple[str, str, bool]]:
        client = anthropic.Anthropic(base_url=_URL, api_key="k", max_retries=0, http_client=_client(kept))
        message: Any = {"role": "user", "content": "?"}
        for event in client.messages.create(model="m", max_tokens=9, messages=[message], stream=True):
            said: Any = event
            text = getattr(said.delta, "text", "") if event.type == "content_block_delta" else ""
            yield text or "", "", event.type == "message_stop"

    return _guarded(events, anthropic.APIError)


def _read_gemini(kept: Kept) -> Read:
    if kept.status != 200:
        return Read([], kept.json["error"]["message"], whole=False)
    found = Read([], "", whole=False)
    for event in whole_events(kept.body):
        if "error" in event:
            assert {"code", "message", "status"} <= set(event["error"])
            return found._replace(error=event["error"]["message"])
        for candidate in event.get("candidates", ()):
            for part in candidate.get("content", {}).get("parts", ()):
                found.texts.extend([part["text"]] if part.get("text") and not part.get("thought") else [])
            found = found._replace(whole=found.whole or "finishReason" in candidate)
    return found


_URL = "http://gateway.test/v1"
_READERS: dict[str, Callable[[Kept], Read]] = {
    "openai-chat": _read_chat,
    "openai-responses": _read_responses,
    "anthropic": _read_anthropic,
    "gemini": _read_gemini,
}


def _client(kept: Kept) -> httpx2.Client:
    return httpx2.Client(transport=_transport(kept))
