"""Scripts: what a scripted model says, and what goes wrong while it says it. Data only.

A script is a sequence of steps, consumed one per accepted request. When it is used up, or when there is none, the
house script answers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. ``arguments`` as text is sent verbatim; an empty ``id`` gets one derived from the request."""

    name: str
    arguments: Mapping[str, object] | str = dataclasses.field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class HttpError:
    """Answer with this status and body instead (``retry-after`` goes into ``headers``)."""

    status: int
    body: Mapping[str, object] | str = ""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CutAfterBytes:
    """Close the connection after this many bytes of the body, without ending it properly."""

    count: int


@dataclass(frozen=True, slots=True)
class ErrorInStream:
    """After some events, one that reports an error as the provider does inside HTTP 200, then nothing more."""

    message: str = "Internal server error"
    code: str = "server_error"
    after: int = 2
    event: str = ""
    """Name for an ``event:`` line before it, as Groq sends (``error``)."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Go silent after some events; ends early when the referee closes."""

    seconds: float
    after: int = 2


@dataclass(frozen=True, slots=True)
class MalformedJson:
    """After some events, one whose JSON is broken off."""

    after: int = 2


@dataclass(frozen=True, slots=True)
class NoDone:
    """End the stream in good order but without what marks its end: ``[DONE]``, or else the last event."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Send one event, counted from 0, twice."""

    at: int = 1


@dataclass(frozen=True, slots=True)
class Swapped:
    """Send two neighbouring events, the first counted from 0, in the wrong order."""

    at: int = 1


@dataclass(frozen=True, slots=True)
class RejectCarrier:
    """Refuse the request as if a carrier in it were not valid, in the provider's own words, although it is genuine."""


Fault = HttpError | CutAfterBytes | ErrorInStream | Stall | MalformedJson | NoDone | Duplicate | Swapped | RejectCarrier


@dataclass(frozen=True, slots=True)
class Step:
    """One model response.

    ``earlier`` are units of the same response that stand before this one, each with reasoning of its own, text and
    calls: only in formats that can interleave them (Responses, Messages); the others leave them out.
    ``field`` overrides where the reasoning travels: ``reasoning_content``, ``reasoning``, ``thinking`` (content
    chunks) or ``tags`` (``<think>`` inside the text). ``usage`` overrides single numbers. ``split_every`` writes the
    body in pieces of so many bytes, so that reads end anywhere; ``pace`` is the pause between events in seconds.
    """

    reasoning: str = ""
    text: str = ""
    tool_calls: Sequence[Call] = ()
    refusal: str = ""
    finish: str = ""
    field: str = ""
    usage: Mapping[str, object] = dataclasses.field(default_factory=dict)
    repeat_usage: bool = False
    split_every: int = 0
    pace: float | None = None
    fault: Fault | None = None
    earlier: Sequence[Step] = ()


Script = Sequence[Step]
