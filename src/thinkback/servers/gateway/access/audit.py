"""The audit log: one JSON line for each administrative act and each refusal of access, in a file for its owner alone.

Promises: names, ids and addresses, never a secret or anything that was said; a line is one write, so that processes may
share the file; the same refusal again and again is counted, not written; a log that cannot be written stops nothing and
is complained of.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

WINDOW = 60.0
"""Seconds for which a refusal like the last one is counted only."""
COUNTED = 4096
_MODE = 0o600


class Audit:
    """The file ``path``, which may be renamed at any time (by logrotate); ``None``: nothing is written.

    ``complain`` is told, once for each run of failures, that the file cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        complain: Callable[[str], object] = lambda text: print(text, file=sys.stderr),
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path = None if path is None else Path(path)
        self._complain, self._clock, self._now = complain, clock, now
        self._failed = False
        self._counts: dict[tuple[object, ...], tuple[float, int]] = {}

    def note(self, act: str, **facts: object) -> None:
        """One administrative act, such as ``key.created``."""
        self._write({"act": act, **facts})

    def refused(self, why: str, address: str, **facts: object) -> None:
        """A refusal of access. ``address`` is where the request came from, ``facts`` name the key as far as known.

        The next line of the same kind, at the earliest ``WINDOW`` seconds later, says with ``more`` how many came in
        between.
        """
        if self._path is None:
            return
        # what a stranger may make up is no other kind: who guesses keys would fill the disk
        kind, now = (why, address, facts.get("key")), self._clock()
        since, more = self._counts.get(kind, (None, 0))
        if since is not None and now - since < WINDOW:
            self._counts[kind] = (since, more + 1)
            return
        while kind not in self._counts and len(self._counts) >= COUNTED:
            self._report_repeats(next(iter(self._counts)))
        self._counts[kind] = (now, 0)
        self._write({"act": "refused", "why": why, "from": address, **facts, **({"more": more} if more else {})})

    def close(self) -> None:
        """Write what was counted and not told yet."""
        for kind in list(self._counts):
            self._report_repeats(kind)

    def _report_repeats(self, kind: tuple[object, ...]) -> None:
        _, more = self._counts.pop(kind)
        if more:
            self._write({"act": "refused", "why": kind[0], "from": kind[1], "more": more})

    def _write(self, facts: dict[str, object]) -> None:
        if self._path is None:
            return
        line = msgspec.json.encode({"time": self._now().isoformat(timespec="milliseconds"), **facts}) + b"\n"
        try:
            _append(self._path, line)
            self._failed = False
        except OSError as error:
            if not self._failed:
                self._failed = True
                self._complain(f"the audit log {self._path} cannot be written: {error.strerror}")


def person() -> str:
    """The user of this process, and who is behind it where it became another."""
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = f"uid {os.getuid()}"
    behind = os.environ.get("SUDO_USER") or os.environ.get("DOAS_USER") or ""
    return f"{behind} as {user}" if behind and behind != user else user


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:  # a device is everybody's
            os.fchmod(descriptor, _MODE)
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


NO_AUDIT = Audit(None)
