"""A step as the Messages API would send it: one object, or the events of a stream, in the shapes of the recordings.

Signatures, redacted data and ids look like the provider's and are derived from a digest.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..jsons import JsonObject, as_list, as_text, compact
from ..script import Call, Step
from ..streams import arguments_object, count_words, derived, pieces, slices
from .profiles import ADAPTIVE, COUNTING_BETA
from .request import Request
from .trace import Trace

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_HEADER = 70
_ID_LENGTH = 22


def signature(digest: str, thought: str) -> str:
    """A signature; it grows with the thought, as it carries the thought encrypted."""
    size = _HEADER + len(thought.encode())
    sealed = _field(10, _stream(f"{digest}:header", _HEADER)) + _field(42, _stream(f"{digest}:body", size))
    return base64.b64encode(_field(18, sealed) + b"\x18\x01").decode()


def identifier(prefix: str, digest: str) -> str:
    """An id: the prefix, then characters of which none is mistaken for another."""
    number = int(hashlib.sha256(digest.encode()).hexdigest(), 16)
    made = ""
    for _ in range(_ID_LENGTH):
        number, place = divmod(number, len(_ALPHABET))
        made += _ALPHABET[place]
    return prefix + made


def _field(tag: int, data: bytes) -> bytes:
    """A length-delimited field, so that the text begins as real ones do."""
    length, size = len(data), b""
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([tag]) + size + bytes([length]) + data


def _stream(key: str, size: int) -> bytes:
    return hashlib.shake_256(key.encode()).digest(size)


REDACTED = "ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING"
"""A thinking block that contains it is redacted."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A step as the answer to a request: blocks are sealed, calls have ids, tokens are counted."""

    request: Request
    step: Step
    id: str
    content: tuple[JsonObject, ...]
    thoughts: Mapping[str, str] = field(repr=False)
    """The thought behind each opaque value."""
    usage: JsonObject
    extras: JsonObject
    """``input_transformations`` and ``context_management``, where the request asked for them."""

    @property
    def stop_reason(self) -> str:
        """Why it stopped."""
        called = any(block["type"] == "tool_use" for block in self.content)
        return self.step.finish or ("refusal" if self.step.refusal else "tool_use" if called else "end_turn")

    @property
    def stop_details(self) -> JsonObject | None:
        """What a refusal says about itself."""
        return {"type": "refusal", "category": None, "explanation": self.step.refusal} if self.step.refusal else None


def answer_of(request: Request, step: Step, digest: str, found: Trace, prompt: int, hit: int) -> Answer:
    """Seal the thoughts, name the calls, count the tokens."""
    content, thoughts = _content(request, step, digest)
    name = identifier(request.caller.host.message_prefix, derived(digest, "message"))
    usage = _usage(request, step, prompt, hit)
    return Answer(request, step, name, content, thoughts, usage, _extras(request, found))


def whole(answer: Answer) -> JsonObject:
    """The response as one object."""
    return {
        **_envelope(answer),
        "content": list(answer.content),
        "stop_reason": answer.stop_reason,
        "stop_details": answer.stop_details,
        "usage": answer.usage,
        **answer.extras,
    }


def events(answer: Answer) -> list[JsonObject]:
    """The events of the stream, each with its type."""
    return list(_events(answer))


def units_of(step: Step) -> tuple[Step, ...]:
    """The units of a response: each a thought, a text and calls."""
    return (*step.earlier, step)


def _content(request: Request, step: Step, digest: str) -> tuple[tuple[JsonObject, ...], dict[str, str]]:
    thoughts: dict[str, str] = {}
    blocks: list[JsonObject] = []
    for number, unit in enumerate(units_of(step)):
        seed = derived(digest, request.caller.account, number)
        if unit.reasoning:
            blocks.append(_sealed(request, seed, unit.reasoning, thoughts))
        if unit.text:
            blocks.append({"type": "text", "text": unit.text})
        blocks += [_call(request, derived(seed, place), call) for place, call in enumerate(unit.tool_calls)]
    if request.profile.leads_blank and request.mode == ADAPTIVE and thoughts:
        blocks.insert(0, {"type": "text", "text": "\n\n"})
    return tuple(blocks), thoughts


def _sealed(request: Request, digest: str, thought: str, thoughts: dict[str, str]) -> JsonObject:
    if not request.caller.host.signed:
        return {"type": "thinking", "thinking": thought, "signature": ""}
    opaque = signature(digest, thought)
    thoughts[opaque] = thought
    if REDACTED in thought:
        return {"type": "redacted_thinking", "data": opaque}
    shown = "" if request.display == "omitted" else thought
    return {"type": "thinking", "thinking": shown, "signature": opaque}


def _call(request: Request, digest: str, call: Call) -> JsonObject:
    name = call.id or identifier(request.caller.host.call_prefix, digest)
    return {"type": "tool_use", "id": name, "name": call.name, "input": arguments_object(call), "caller": _DIRECT}


_DIRECT = {"type": "direct"}


def _envelope(answer: Answer) -> JsonObject:
    profile = answer.request.profile
    return {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": profile.served or profile.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
    }


def _events(answer: Answer) -> Iterator[JsonObject]:
    start = {**answer.usage, "output_tokens": 1}
    start.pop("output_tokens_details", None)
    edits = {name: value for name, value in answer.extras.items() if name == "context_management"}
    early = {name: value for name, value in answer.extras.items() if name not in edits}
    yield {"type": "message_start", "message": {**_envelope(answer), "usage": start, **early}}
    for index, block in enumerate(answer.content):
        yield {"type": "content_block_start", "index": index, "content_block": _opened(block)}
        if not index:
            yield {"type": "ping"}
        for delta in _deltas(answer, block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": answer.stop_reason, "stop_sequence": None, "stop_details": answer.stop_details}
    counted = {name: value for name, value in answer.usage.items() if name not in _ONLY_AT_START}
    yield {"type": "message_delta", "delta": delta, "usage": counted, **edits}
    yield {"type": "message_stop"}


_ONLY_AT_START = frozenset({"cache_creation", "service_tier", "inference_geo"})


def _opened(block: JsonObject) -> JsonObject:
    """A block as it starts: its readable parts come as deltas; redacted data comes at once."""
    empty: JsonObject = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: empty.get(name, value) for name, value in block.items()}


def _deltas(answer: Answer, block: JsonObject) -> Iterator[JsonObject]:
    match block["type"]:
        case "thinking":
            yield from _thinking_deltas(answer, block)
        case "text":
            for piece in pieces(as_text(block["text"])):
                yield {"type": "text_delta", "text": piece}
        case "tool_use":
            for piece in ("", *slices(compact(block["input"]) if block["input"] else "")):
                yield {"type": "input_json_delta", "partial_json": piece}


def _thinking_deltas(answer: Answer, block: JsonObject) -> Iterator[JsonObject]:
    counted = COUNTING_BETA in answer.request.caller.betas and not block["thinking"]
    extra: JsonObject = {"estimated_tokens": 1} if counted else {}
    # With the display omitted there is one empty delta, as recorded.
    for piece in [*pieces(as_text(block["thinking"])), *([] if block["thinking"] else [""])]:
        yield {"type": "thinking_delta", "thinking": piece, **extra}
    if block["signature"]:
        yield {"type": "signature_delta", "signature": block["signature"]}


def _usage(request: Request, step: Step, prompt: int, hit: int) -> JsonObject:
    units = units_of(step)
    thought = count_words(*(unit.reasoning for unit in units))
    calls = [f"{call.name} {compact(arguments_object(call))}" for unit in units for call in unit.tool_calls]
    said = count_words(*(unit.text for unit in units), step.refusal, *calls)
    counted: JsonObject = {
        "input_tokens": prompt - hit,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": hit,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": thought + said,
        "service_tier": "standard",
        "inference_geo": "global",
    }
    details: JsonObject = {"output_tokens_details": {"thinking_tokens": thought}} if request.profile.counts else {}
    return {**counted, **details, **step.usage}


def _extras(request: Request, found: Trace) -> JsonObject:
    extras: JsonObject = {}
    if request.reports:
        extras["input_transformations"] = found.transformations()
    if request.body.get("context_management") is not None:
        extras["context_management"] = {"applied_edits": _applied(request)}
    return extras


def _applied(request: Request) -> list[JsonObject]:
    cleared = [turn for turn in request.thinking_turns if turn not in request.visible_turns]
    if request.clearing is None or not cleared:
        return []
    gone = [block for message in request.assistants if message.turn in cleared for block in message.thinking]
    return [
        {
            "type": "clear_thinking_20251015",
            "cleared_thinking_turns": len(cleared),
            "cleared_input_tokens": sum(max(1, len(block.text.split())) for block in gone),
        }
    ]


def marked_for_cache(body: object) -> bool:
    """Whether anything in a request is marked to be cached."""
    if isinstance(body, dict):
        return body.get("cache_control") is not None or any(map(marked_for_cache, body.values()))
    return any(map(marked_for_cache, as_list(body)))
