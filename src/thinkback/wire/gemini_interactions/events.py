"""The wire shapes of interactions: events that bring a piece of text, typed for speed, and small objects.

A key that is not listed makes decoding fail, and ``read`` falls back to a reading that keeps whatever comes.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Usage
from thinkback.wire.documents import NOT_LISTED


class SummaryText(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """A text of the summary of a thought, and nothing beside it."""

    type: Literal["text"]
    text: str


class TextOrArguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """A piece of a text, of the arguments of a call, or a text of a summary."""

    type: str
    text: str | None = None
    arguments: str | None = None
    content: SummaryText | None = None


class StepDelta(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """What is added to the step of an index."""

    event_type: Literal["step.delta", "content.delta"]
    index: int
    delta: TextOrArguments
    event_id: str = ""


class _Step(msgspec.Struct, frozen=True):
    arguments: msgspec.Raw = msgspec.Raw()


class _Steps(msgspec.Struct, frozen=True):
    steps: list[_Step] = []
    outputs: list[_Step] = []


decode_delta = msgspec.json.Decoder(StepDelta).decode
_decode_steps = msgspec.json.Decoder(_Steps).decode


def arguments_of(payload: bytes) -> list[str | None]:
    """The source text of ``arguments`` for each step, as far as there is any; maybe none at all."""
    try:
        found = _decode_steps(payload)
        return [bytes(step.arguments).decode() or None for step in found.steps or found.outputs]
    except NOT_LISTED:
        return []


def read_usage(raw: object) -> Usage | None:
    """Token counts of a ``usage`` object (already parsed); ``None`` when there are none."""
    if not isinstance(raw, dict) or not raw:
        return None
    return Usage(
        input=raw.get("total_input_tokens"),
        output=raw.get("total_output_tokens"),
        reasoning=raw.get("total_thought_tokens"),
        cached=raw.get("total_cached_tokens"),
        counted=("reasoning_beside_output",),
        wire=canonical.source(raw),
    )
