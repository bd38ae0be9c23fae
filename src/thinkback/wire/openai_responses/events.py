"""The wire shapes of a Responses stream: the events that come in numbers, typed for speed, usage and errors.

Only what the frequent events need is listed; everything else about an event is read where it matters, as a dict.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Failure, Usage

Field: TypeAlias = Literal["content", "summary", "arguments", "input"]


class Event(msgspec.Struct, gc=False):
    """Any event, as far as a piece of text goes. Hosts are known to leave ``output_index`` out."""

    type: str = ""
    output_index: int | None = None
    content_index: int = 0
    summary_index: int = 0
    delta: str | None = None


class TextLocation(NamedTuple):
    """Where the text of an event belongs: the field of the item, the type of a part in it, the type of the item."""

    field: Field
    part: str
    item: str


_REASONING = TextLocation("content", "reasoning_text", "reasoning")

PIECES: dict[str, TextLocation] = {
    "response.output_text.delta": TextLocation("content", "output_text", "message"),
    "response.refusal.delta": TextLocation("content", "refusal", "message"),
    "response.reasoning_text.delta": _REASONING,
    # the name of the first Open Responses schema
    "response.reasoning.delta": _REASONING,
    "response.reasoning_summary_text.delta": TextLocation("summary", "summary_text", "reasoning"),
    "response.function_call_arguments.delta": TextLocation("arguments", "", "function_call"),
    "response.custom_tool_call_input.delta": TextLocation("input", "", "custom_tool_call"),
}

decode_event = msgspec.json.Decoder(Event).decode


def read_usage(raw: Any) -> Usage | None:
    """Token counts of a ``usage`` object (already parsed); ``None`` when there are none."""
    if not isinstance(raw, dict) or not raw:
        return None
    given, made = _details(raw, "input"), _details(raw, "output")
    return Usage(
        input=raw.get("input_tokens"),
        output=raw.get("output_tokens"),
        reasoning=made.get("reasoning_tokens"),
        cached=given.get("cached_tokens"),
        cache_write=given.get("cache_write_tokens"),
        wire=canonical.source(raw),
    )


def _details(usage: dict[str, Any], side: str) -> dict[str, Any]:
    details = usage.get(f"{side}_tokens_details")
    return details if isinstance(details, dict) else {}


def read_failure(status: int, body: Any) -> Failure:
    """The provider's own words from a parsed error body or event, whatever shape the host gives it.

    An event has its error beside ``type``, under ``error`` or inside ``response``. Routers wrap the text of the
    provider behind them in ``error.metadata.raw``.
    """
    holder = body
    if isinstance(body, dict) and isinstance(body.get("response"), dict):
        holder = body["response"]
    error = (holder.get("error") or holder) if isinstance(holder, dict) else holder
    if not isinstance(error, dict):
        code = holder.get("code") if isinstance(holder, dict) else None
        return Failure(_text(error), status, code=_word(code))
    metadata = error.get("metadata")
    type = "" if error is holder and error.get("type") == "error" else error.get("type")
    return Failure(
        message=_text(error.get("message") or error.get("detail") or error),
        status=status,
        type=_word(type),
        code=_word(error.get("code")),
        upstream=_text(metadata["raw"]) if isinstance(metadata, dict) and metadata.get("raw") else "",
    )


def _word(value: object) -> str:
    return "" if value is None else _text(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else canonical.source(value)
