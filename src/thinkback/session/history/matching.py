"""Matching a person's regular expression, which may take years: what stops a match under way is the end of a process.

Promises: in any thread and on any system it ends in time, where this Python can be started again; where it cannot (a
program that has it built in), it is matched here and runs to its end. The other process imports nothing but the
standard library and sees nothing but the pattern and the texts. Must not: know what the texts are.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from thinkback.errors import PatternTimeout
from thinkback.log.redacting import Expression, Pattern

_READY = "ready"
_MATCHER = f"""
import json, re, sys
pattern = re.compile(*json.loads(sys.stdin.readline()))
print({_READY!r}, flush=True)
for line in sys.stdin:
    print(json.dumps([match.span() for match in pattern.finditer(json.loads(line))]), flush=True)
"""


@contextmanager
def matching(pattern: re.Pattern[str], seconds: float) -> Iterator[Pattern]:
    """``pattern`` for use inside. Raises ``PatternTimeout`` there after ``seconds``."""
    process = _started(pattern)
    if process is None:
        yield Expression(pattern)
        return
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield _Elsewhere(process, pattern.pattern, seconds)
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


class _Elsewhere:
    """The pattern in another process; texts are asked about once."""

    def __init__(self, process: subprocess.Popen[str], pattern: str, seconds: float) -> None:
        self._process, self._pattern, self._seconds = process, pattern, seconds
        self._known: dict[str, list[tuple[int, int]]] = {}

    def spans(self, text: str) -> list[tuple[int, int]]:
        if text not in self._known:
            self._known[text] = [(start, end) for start, end in json.loads(self._request(text))]
        return self._known[text]

    def _request(self, text: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(text), file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise PatternTimeout(
                f"matching {self._pattern!r} took longer than {self._seconds:g} seconds: nothing was erased",
                details={"pattern": self._pattern, "seconds": self._seconds},
                next_actions=("repeat nothing that repeats itself: a+ instead of (a+)+", "name less in one pattern"),
            )
        return answer


def _started(pattern: re.Pattern[str]) -> subprocess.Popen[str] | None:
    """A process that matches ``pattern``; ``None`` where none can be started."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _MATCHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="ascii",
        )
    except (OSError, ValueError):
        return None
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        print(json.dumps([pattern.pattern, pattern.flags]), file=process.stdin, flush=True)
        if process.stdout.readline().rstrip() == _READY:
            return process
    except BrokenPipeError:
        pass
    process.kill()
    process.communicate()
    return None
