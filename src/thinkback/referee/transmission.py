"""What goes over the connection, as a list of actions: write, wait, cut. Faults are applied here; still no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from .jsons import compact
from .render import DONE, Answer, completion, events, sse
from .script import CutAfterBytes, ErrorInStream, Fault, HttpError, MalformedJson, NoDone, Stall


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


def transmit_stream(answer: Answer, pace: float) -> list[Action]:
    """The actions of a streamed answer."""
    step = answer.step
    actions = _faulty_stream(events(answer), step.fault)
    pause = pace if step.pace is None else step.pace
    return list(_split(_paced(actions, pause) if pause > 0 else actions, step.split_every))


def transmit_whole(answer: Answer) -> list[Action]:
    """The actions of an answer that is not streamed; faults that only a stream can have break the one body."""
    data = compact(completion(answer)).encode()
    return list(_split(_faulty_whole(data, answer.step.fault), answer.step.split_every))


def body_length(actions: Sequence[Action]) -> int:
    """The number of bytes that the actions write."""
    return sum(len(action.data) for action in actions if isinstance(action, Write))


def _faulty_stream(parts: list[bytes], fault: Fault | None) -> list[Action]:
    whole: list[Action] = [Write(part) for part in (*parts, DONE)]
    match fault:
        case None | HttpError():
            return whole
        case NoDone():
            return whole[:-1]
        case CutAfterBytes(count):
            return [Write(b"".join((*parts, DONE))[:count]), Cut()]
        case Stall(seconds, after):
            return [*whole[:after], Wait(seconds), *whole[after:]]
        case MalformedJson(after):
            return [*whole[:after], Write(b'data: {"choices":[{"index":0,"delta":{"content":\n\n'), *whole[after:]]
        case ErrorInStream(_, _, after, event):
            named = f"event: {event}\n".encode() if event else b""
            return [*whole[:after], Write(named + sse(_error(fault)))]
        case _:
            assert_never(fault)


def _faulty_whole(data: bytes, fault: Fault | None) -> list[Action]:
    match fault:
        case None | HttpError() | NoDone():
            return [Write(data)]
        case CutAfterBytes(count):
            return [Write(data[:count]), Cut()]
        case Stall(seconds, _):
            return [Wait(seconds), Write(data)]
        case MalformedJson():
            return [Write(data[:-1])]
        case ErrorInStream():
            return [Write(compact(_error(fault)).encode())]
        case _:
            assert_never(fault)


def _error(fault: ErrorInStream) -> dict[str, dict[str, str]]:
    return {"error": {"message": fault.message, "type": fault.code, "code": fault.code}}


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
