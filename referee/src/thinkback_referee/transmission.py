"""What goes over the connection, as a list of actions: write, wait, cut. Faults are applied here; still no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, assert_never

from .jsons import compact
from .script import (
    CutAfterBytes,
    Duplicate,
    ErrorInStream,
    Fault,
    HttpError,
    MalformedJson,
    NoDone,
    RejectCarrier,
    Stall,
    Step,
    Swapped,
)


@dataclass(frozen=True, slots=True)
class Write:
    """Send these bytes of the body."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Wait:
    """Send nothing for so long, or until the referee closes."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """Close the connection here, with the body unfinished."""


Action = Write | Wait | Cut
Broken = Callable[[str, str], bytes]


class Stream(Protocol):
    """The parts of a stream; see ``persona.Rendered``."""

    @property
    def events(self) -> Sequence[bytes]: ...

    @property
    def end(self) -> bytes: ...

    @property
    def malformed(self) -> bytes: ...


def transmit_stream(rendered: Stream, step: Step, pace: float, broken: Broken) -> list[Action]:
    """The actions of a streamed answer; ``broken`` makes the event that reports an error."""
    actions = _faulty_stream(rendered, step.fault, broken)
    pause = pace if step.pace is None else step.pace
    return list(_split(_paced(actions, pause) if pause > 0 else actions, step.split_every))


def transmit_whole(data: bytes, step: Step) -> list[Action]:
    """The actions of an answer that is not streamed; faults that only a stream can have break the one body."""
    return list(_split(_faulty_whole(data, step.fault), step.split_every))


def body_length(actions: Sequence[Action]) -> int:
    """The number of bytes that the actions write."""
    return sum(len(action.data) for action in actions if isinstance(action, Write))


def _faulty_stream(rendered: Stream, fault: Fault | None, broken: Broken) -> list[Action]:
    events = [*rendered.events, *([rendered.end] if rendered.end else [])]
    match fault:
        case None | HttpError() | RejectCarrier():
            return _writes(events)
        case NoDone():
            return _writes(events[:-1])
        case CutAfterBytes(count):
            return [Write(b"".join(events)[:count]), Cut()]
        case Stall(seconds, after):
            return [*_writes(events[:after]), Wait(seconds), *_writes(events[after:])]
        case MalformedJson(after):
            damaged = rendered.malformed or _damaged(events[min(after, len(rendered.events) - 1)])
            return _writes([*events[:after], damaged, *events[after:]])
        case ErrorInStream(message, code, after, event):
            named = f"event: {event}\n".encode() if event else b""
            return _writes([*events[:after], named + broken(message, code)])
        case Duplicate(at):
            return _writes([*events[: at + 1], *events[at:]])
        case Swapped(at):
            return _writes([*events[:at], *reversed(events[at : at + 2]), *events[at + 2 :]])
        case _:
            assert_never(fault)


def _faulty_whole(data: bytes, fault: Fault | None) -> list[Action]:
    match fault:
        case None | HttpError() | RejectCarrier() | NoDone() | Duplicate() | Swapped():
            return [Write(data)]
        case CutAfterBytes(count):
            return [Write(data[:count]), Cut()]
        case Stall(seconds, _):
            return [Wait(seconds), Write(data)]
        case MalformedJson():
            return [Write(data[:-1])]
        case ErrorInStream(message, code):
            return [Write(compact({"error": {"message": message, "type": code, "code": code}}).encode())]
        case _:
            assert_never(fault)


def _writes(parts: Iterable[bytes]) -> list[Action]:
    return [Write(part) for part in parts]


def _damaged(event: bytes) -> bytes:
    """The event with the second half of its last line missing, and its line ends kept."""
    text = event.rstrip(b"\r\n")
    return text[: -max(1, len(text.rpartition(b"\n")[2]) // 2)] + event[len(text) :]


def _paced(actions: Sequence[Action], seconds: float) -> Iterator[Action]:
    for index, action in enumerate(actions):
        if index:
            yield Wait(seconds)
        yield action


def _split(actions: Iterator[Action] | Sequence[Action], size: int) -> Iterator[Action]:
    """Writes of exactly ``size`` bytes where it is set; a wait or cut ends a run."""
    held = b""
    for action in actions:
        if not size:
            yield action
            continue
        if isinstance(action, Write):
            held += action.data
            while len(held) >= size:
                yield Write(held[:size])
                held = held[size:]
            continue
        if held:
            yield Write(held)
        held = b""
        yield action
    if held:
        yield Write(held)
