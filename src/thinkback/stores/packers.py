"""Processes that pack payloads beside this one, as many as there are processors: half of what a long session costs to
store. Threads would not do: each payload would wait for the interpreter twice.

Promises: payloads come back in order; those that a process does not give back, because it cannot be started or was
ended, are packed here, and so are those whose sums are not those of what was given to it. A process sees nothing but
payloads, and ends with what holds it; one that was forked from its holder leaves it alone and starts others.
"""

from __future__ import annotations

import marshal
import os
import sys
import threading
import weakref
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from thinkback.stores import packing

if TYPE_CHECKING:
    import subprocess

_MANY = 1024 * 1024
"""Bytes from which on a process is worth its start, a fiftieth of a second."""
_ROUND = 32 * 1024 * 1024
"""Bytes that are packed at a time, and in memory twice meanwhile."""
_MOST = 4
"""Processes, this one included."""


class Packers:
    """The processes of one log, started when there is much to pack for the first time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._others: list[subprocess.Popen[bytes]] | None = None
        self._process = os.getpid()

    def pack(self, payloads: Sequence[bytes]) -> list[bytes]:
        """Each of ``payloads``, compressed."""
        if sum(map(len, payloads)) < _MANY or not self._lock.acquire(blocking=False):
            return list(map(packing.packed, payloads))
        try:
            return [small for part in _parts(payloads, _ROUND) for small in self._shared(part)]
        finally:
            self._lock.release()

    def _shared(self, payloads: Sequence[bytes]) -> list[bytes]:
        if self._others is None or self._process != os.getpid():
            self._others, self._process = _started(min(_processors(), _MOST) - 1), os.getpid()
            weakref.finalize(self, _end, self._others, self._process)
        size = sum(map(len, payloads)) // (len(self._others) + 1) + 1
        own, *rest = _parts(payloads, size)
        try:
            asked = [_ask(other, part) for other, part in zip(self._others, rest, strict=False)]
            found = list(map(packing.packed, own))
            for is_asked, other, part in zip(asked, self._others, rest, strict=False):
                answer = _answer(other, part) if is_asked else None
                found += list(map(packing.packed, part)) if answer is None else answer
        except BaseException:
            _end(self._others, self._process)  # what they would answer is nobody's any more
            raise
        return found


def _parts(payloads: Sequence[bytes], size: int) -> Iterator[list[bytes]]:
    """``payloads`` in order, some ``size`` bytes at a time."""
    part: list[bytes] = []
    held = 0
    for payload in payloads:
        if held >= size:
            yield part
            part, held = [], 0
        part.append(payload)
        held += len(payload)
    yield part


def _processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _started(count: int) -> list[subprocess.Popen[bytes]]:
    import subprocess  # where it is needed: a hundredth of a second of every start

    if not os.path.basename(sys.executable or "").lower().startswith(("python", "pypy")):
        return []  # a program that has Python built in would be started once more
    command = [sys.executable, "-I", "-S", packing.__file__]
    pipe = subprocess.PIPE
    try:
        return [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) for _ in range(count)]
    except (OSError, ValueError):
        return []


def _ask(process: subprocess.Popen[bytes], payloads: list[bytes]) -> bool:
    """Give a process its part; ``False`` where it takes none."""
    assert process.stdin is not None
    try:
        process.stdin.write(packing.framed(payloads))
        process.stdin.flush()
    except (OSError, ValueError):
        return False
    return True


def _answer(process: subprocess.Popen[bytes], payloads: list[bytes]) -> list[bytes] | None:
    """What a process packed of ``payloads``; ``None`` where it ended before, or its answer is to something else."""
    assert process.stdout is not None
    length = process.stdout.read(packing.LENGTH)
    data = process.stdout.read(int.from_bytes(length))
    if not data or len(data) != int.from_bytes(length):
        return None
    packed: list[bytes] = marshal.loads(data)
    sums = [zlib.crc32(payload).to_bytes(packing.SUM) for payload in payloads]
    return packed if sums == [small[-packing.SUM :] for small in packed] else None


def _end(processes: list[subprocess.Popen[bytes]], holder: int) -> None:
    """End what the process ``holder`` has started, if that is this one."""
    while processes and holder == os.getpid():
        process = processes.pop()
        process.kill()
        process.communicate()
