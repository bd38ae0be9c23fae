"""The usage log: one JSON line for each request, in a file that processes share.

Promises: numbers and names alone, never a key or an opaque value; what was asked and answered only where the person
wants it; a line is one write, so that no other falls between; a log that cannot be written is said once and stops
nothing. Measuring costs next to nothing per piece of a stream: once the answer has begun, it is not looked at.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import msgspec

from thinkback.model.blocks import Block, Text, ThinkingBlock
from thinkback.model.commits import Response, Usage
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta
from thinkback.turn import events
from thinkback.turn.controls import effort_sent
from thinkback.turn.plan import Plan
from thinkback.turn.usage import token_use

MESSAGE = "Processing responses API query"
LARGEST = 10_000_000
"""Bytes from which on a file is put aside as ``NAME.1``, where it takes the place of the one before."""
_MODE = 0o600


Priced: TypeAlias = Callable[[Plan, Usage, str, int], float | None]


class UsageLog:
    """The file. It is put aside once it has ``largest`` bytes."""

    def __init__(self, path: str | os.PathLike[str], *, largest: int = LARGEST) -> None:
        self.path = Path(path)
        self._largest = largest
        self._failed = False

    def write(self, row: Mapping[str, object]) -> None:
        """Add one line. Warns where that cannot be done, once."""
        try:
            self._add(msgspec.json.encode(row) + b"\n")
        except OSError as error:
            if not self._failed:
                self._failed = True
                warnings.warn(f"the usage log {self.path} cannot be written: {error}", stacklevel=2)

    def erase(self, requests: Collection[str]) -> None:
        """Take out what was asked and answered in these requests, also where the file was put aside; the rest of their
        lines stays. Each is overwritten in its place, so that lines which others add meanwhile are not lost.

        Raises ``OSError``.
        """
        for path in (self.path, self.path.with_name(f"{self.path.name}.1")):
            if path.exists():
                with path.open("r+b") as file:
                    _blank(file, requests)

    def _add(self, line: bytes) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
        try:
            found = os.fstat(descriptor)
            if found.st_mode & 0o077:
                os.fchmod(descriptor, _MODE)
            os.write(descriptor, line)
            if found.st_size + len(line) >= self._largest:
                self._put_aside(descriptor)
        finally:
            os.close(descriptor)

    def _put_aside(self, descriptor: int) -> None:
        """Rename the file that is open, unless another process has just done so."""
        try:
            import fcntl
        except ImportError:  # Windows does not rename what others have open
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        own, there = os.fstat(descriptor), self.path.stat()
        if (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino):
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))


def _blank(file: BinaryIO, requests: Collection[str]) -> None:
    at = 0
    for line in file.read().splitlines(keepends=True):
        row = _row(line)
        if row.get("request") in requests and (row.get("prompt") or row.get("answer")):
            rest = msgspec.json.encode({**row, "prompt": None, "answer": None})
            file.seek(at)
            file.write(rest.ljust(len(line) - 1) + b"\n")
        at += len(line)
    file.flush()
    os.fsync(file.fileno())


def _row(line: bytes) -> dict[str, Any]:
    """The columns of a line; none where it is not one, or has not come to its end."""
    try:
        row = msgspec.json.decode(line) if line.endswith(b"\n") else None
    except msgspec.DecodeError:
        row = None
    return row if isinstance(row, dict) else {}


class Watch:
    """One turn, as its agenda tells of it. ``waits``: pieces of the stream are still worth showing.

    ``prompt`` is what was asked, where it and the answer are to be written. ``cost`` says what a response cost, in US
    dollars. ``clock`` gives nanoseconds that only grow, ``now`` seconds since 1970.
    """

    def __init__(
        self,
        log: UsageLog,
        session: str,
        prompt: str | None = None,
        cost: Priced = lambda plan, usage, model, at: None,
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._log = log
        self._session = session
        self._prompt = prompt
        self._cost = cost
        self._clock = clock
        self._now = now
        self._sent: _Sent | None = None
        self._attempt = 0
        self.waits = False

    def sent(self, command: events.Send) -> None:
        """A request goes out."""
        self._end()
        self._attempt += 1
        self._sent = _Sent(command.id, command.plan, self._now(), self._clock(), self._attempt)
        self.waits = True

    def shown(self, deltas: Sequence[Delta]) -> None:
        """Pieces of the stream, while ``waits``."""
        sent = self._sent
        if sent is None:
            return
        for delta in deltas:
            if isinstance(delta, ReasoningDelta):
                sent.reasoning = sent.reasoning or self._clock()
            elif isinstance(delta, TextDelta):
                sent.answer = self._clock()
                self.waits = False
                return

    def notify(self, event: events.Event) -> None:
        """What happened to the request."""
        sent = self._sent
        if sent is None:
            return
        match event:
            case events.Head():
                sent.status = event.status
            case events.Closed() | events.NetError() | events.Interrupt():
                sent.end = sent.end or self._clock()
                sent.error = event.phase if isinstance(event, events.NetError) else sent.error
            case events.Appended() if any(commit.response == sent.id for commit in event.commits):
                sent.take([commit.value for commit in event.commits if commit.response == sent.id])
                self._end()
            case _:
                pass

    def over(self) -> None:
        """The turn is over."""
        self._end()

    def _end(self) -> None:
        """Write the line of the request under way."""
        sent, self._sent, self.waits = self._sent, None, False
        if sent is None:
            return
        if sent.response is not None:
            self._attempt = 0
        sent.end = sent.end or self._clock()
        row = {"session": self._session, **sent.row(), "cost_usd": None}
        if sent.usage is not None:
            model = row["served_model"] or row["model"]
            row["cost_usd"] = self._cost(sent.plan, sent.usage, model, int(sent.time * 1_000_000))
        if self._prompt is not None:
            row |= {"prompt": sent.plan.without_key(self._prompt), "answer": sent.plan.without_key(sent.text())}
        self._log.write(row)


class _Sent:
    """A request under way. Times are the clock's, 0 where it has not come to it."""

    def __init__(self, id: str, plan: Plan, at: float, start: int, attempt: int) -> None:
        self.id, self.plan, self.time, self.start, self.attempt = id, plan, at, start, attempt
        self.status = self.reasoning = self.answer = self.end = 0
        self.error = ""
        self.response: Response | None = None
        self.usage: Usage | None = None
        self.blocks: list[Block] = []

    def take(self, values: Sequence[object]) -> None:
        """What was stored of its response."""
        for value in values:
            if isinstance(value, Response):
                self.response = value
            elif isinstance(value, Usage):
                self.usage = value
            elif isinstance(value, Text | ThinkingBlock):
                self.blocks.append(value)

    def text(self) -> str:
        """What was answered."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    def row(self) -> dict[str, Any]:
        """Its line; what is not known is ``null``, so that every line has the same columns."""
        plan, target, response = self.plan, self.plan.target, self.response
        failure = response.error if response is not None else None
        used = token_use(self.usage, self.blocks, target.rule.reasoning_tokens)
        return {
            "time": _iso(self.time),
            "message": MESSAGE,
            "request": self.id,
            "endpoint": target.endpoint.id,
            "model": target.model,
            "served_model": (response.origin.served_model if response is not None else "") or None,
            "effort": plan.wanted.effort,
            "effort_sent": effort_sent(plan.target, plan.params),
            "status": self.status or None,
            "outcome": (response.outcome if response is not None else "") or None,
            "error": (failure.type if failure is not None else self.error) or None,
            "attempt": self.attempt,
            "input_tokens": used.input,
            "cached_tokens": used.cached,
            "output_tokens": used.output,
            "reasoning_tokens": used.reasoning,
            "reasoning_estimated": used.estimated,
            "first_reasoning_ms": self._after(self.reasoning),
            "first_answer_ms": self._after(self.answer),
            "total_ms": self._after(self.end),
        }

    def _after(self, at: int) -> float | None:
        return round((at - self.start) / 1_000_000, 1) if at else None


def _iso(seconds: float) -> str:
    whole = int(seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int((seconds - whole) * 1000):03d}Z"
