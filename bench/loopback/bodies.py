"""What client and provider say to each other: about 1 KB each way, or a stream of 495 chunks."""

from __future__ import annotations

import json

MODEL = "deepseek-v4-pro"
CHUNKS = 495
"""Events of a stream with a delta, without the one of the usage and the last word."""
STREAMS, HOLDS = b'"stream":true', b"hold-this-stream"
HELD = 20
"""Events that a held stream sends before it falls silent."""
_SYSTEM = "You are a careful assistant who answers questions about engineering in plain words. " * 5
_ASKED = "Why does the bridge hold although its deck is thin? Explain the forces step by step, please. " * 4
_THOUGHT = "The deck is thin but the cables carry it; the towers take the pressure and the anchors the pull. " * 4
_SAID = "The cables carry the deck and hand its weight to the towers and anchors. " * 4


def request(number: int, *, stream: bool = False, hold: bool = False) -> bytes:
    """A conversation of its own, by its number."""
    place = b"%016x %b" % (number, HOLDS if hold else b"")
    return (_STREAM_REQUEST if stream else _REQUEST).replace(b"{place}", place)


def conversation(number: int, messages: int) -> list[dict[str, object]]:
    """A history of about ``messages`` messages that ends with a question; what is said differs by its place."""
    said: list[dict[str, object]] = [{"role": "system", "content": _SYSTEM}]
    for turn in range(messages // 2):
        if turn:
            said.append({"role": "assistant", "content": f"{number:x}/{turn}: {_SAID}"})
        said.append({"role": "user", "content": f"{number:x}/{turn}: {_ASKED[:200]}"})
    return said


def encoded(value: object) -> bytes:
    """JSON as clients write it, without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()


def answer(number: int) -> bytes:
    """A whole response."""
    message = {"role": "assistant", "content": _SAID, "reasoning_content": f"{number:012x} {_THOUGHT}"}
    return encoded(
        {
            "id": f"chatcmpl-{number:012x}",
            "object": "chat.completion",
            "created": 1_760_000_000,
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage(),
        }
    )


def _request(stream: bool) -> bytes:
    said = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": f"{{place}} {_ASKED}"}]
    return encoded({"model": MODEL, "messages": said, "stream": stream})


_REQUEST, _STREAM_REQUEST = _request(False), _request(True)


def usage() -> dict[str, object]:
    """Tokens, some of them for reasoning."""
    return {
        "prompt_tokens": 210,
        "completion_tokens": 495,
        "total_tokens": 705,
        "completion_tokens_details": {"reasoning_tokens": 330},
    }


def events(number: int) -> list[bytes]:
    """The server-sent events of a stream: reasoning, two thirds of it, then the answer, then the usage and the end."""
    deltas: list[dict[str, object]] = [{"reasoning_content": f" word{at}"} for at in range(CHUNKS * 2 // 3)]
    deltas += [{"content": f" word{at}"} for at in range(CHUNKS - len(deltas))]
    deltas[0] = {"role": "assistant", "content": None, "reasoning_content": f"{number:012x}"}
    told = [_event(number, [{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    told[-1] = _event(number, [{"index": 0, "delta": deltas[-1], "finish_reason": "stop"}])
    return [*told, _event(number, [], usage()), b"data: [DONE]\n\n"]


def _event(number: int, choices: object, used: object = None) -> bytes:
    event = {
        "id": f"chatcmpl-{number:012x}",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": MODEL,
        "choices": choices,
        "usage": used,
    }
    return b"data: " + encoded(event) + b"\n\n"
