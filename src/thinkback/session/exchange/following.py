"""An import that keeps up while other programs write their histories.

Promises: a file is read again when its size or time changed, and each thing in it is stored once, as by imports one
after the other. The last response of a session is stored once something follows it, or its file rested: before, it may
be half of it. Must not: know what time it is, or wait, by itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from thinkback.errors import CorruptLogError, FormatVersionError, StoreError
from thinkback.log.protocol import Store
from thinkback.session.exchange.histories import MOVED, Gap, Histories, Took, Wanted

EVERY, RESTED = 2.0, 10.0
"""Seconds between two looks at the files, and after which one that did not change is taken for whole."""
SHARE = 4
"""How many times as long as a look the time to the next one is at least: large files do not take a processor."""

_Stamp: TypeAlias = tuple[tuple[int, int], ...]


class _Seen(msgspec.Struct):
    """A file as it was read last, since when it is like that, and whether something of it may be held back."""

    stamp: _Stamp
    since: float
    is_held: bool


class Following:
    """The files of a program, looked at again and again. ``clock`` gives seconds since 1970."""

    def __init__(self, log: Store, wanted: Wanted, clock: Callable[[], float]) -> None:
        self._histories = Histories(log, wanted)
        self._clock = clock
        self._seen: dict[Path, _Seen] = {}

    @property
    def gaps(self) -> list[Gap]:
        """What was not taken in of the files as they were read last."""
        return self._histories.gaps

    def look(self) -> Iterator[Took]:
        """What became of the sessions of each file that changed, or rested. Raises ``NotFoundError`` as ``files``."""
        now, is_recalled = self._clock(), False
        paths = self._histories.files()
        for path in paths:
            stamp = _stamp(path)
            seen = self._seen.get(path)
            if seen is not None and seen.stamp == stamp:
                if not seen.is_held or now - seen.since < RESTED:
                    continue
                is_held = False
            else:
                latest = max((time for _, time in stamp), default=0) / 1e9
                is_held = now - latest < RESTED
            if not is_recalled:
                self._histories.recall()
                is_recalled = True
            is_moved = False
            for took in self._histories.again(path, whole=not is_held):
                if took.skipped == MOVED:
                    is_moved = True
                else:
                    yield took
            # Not before: what the log did not take is read again.
            if is_moved:
                self._seen.pop(path, None)
            elif path in self._histories.unread:  # it may be readable in a while
                self._seen[path] = _Seen(stamp, now, True)
            else:
                self._seen[path] = _Seen(
                    stamp, seen.since if seen is not None and seen.stamp == stamp else now, is_held
                )
        for gone in self._seen.keys() - {*paths}:
            del self._seen[gone]


def follow(
    log: Store,
    wanted: Wanted,
    tell: Callable[[Took], None],
    clock: Callable[[], float],
    wait: Callable[[float], None],
    warn: Callable[[str], None] = lambda _: None,
) -> tuple[list[Took], list[Gap]]:
    """Import what is wanted, and what comes, until ``KeyboardInterrupt``; then what was taken in, once a session.

    ``tell`` hears of each session that something was added to, ``wait`` is called between two looks.
    ``warn`` hears once why the log took nothing, which is tried again; a damaged log is not.
    """
    done: dict[str, Took] = {}
    following, warned = Following(log, wanted, clock), ""
    try:
        while True:
            began = clock()
            try:
                for took in following.look():
                    _note(took, done, tell)
                warned = ""
            except (CorruptLogError, FormatVersionError):
                raise
            except StoreError as error:
                if error.message != warned:
                    warn(error.message)
                warned = error.message
            wait(max(EVERY, SHARE * (clock() - began)))
    except KeyboardInterrupt:
        return [*done.values()], following.gaps


def _note(took: Took, done: dict[str, Took], tell: Callable[[Took], None]) -> None:
    before = done.get(took.source, took)
    is_known = took.source in done
    if not is_known or took.commits or (took.skipped, took.erased) != (before.skipped, before.erased):
        tell(took)
    added = took.commits + (before.commits if is_known else 0)
    done[took.source] = msgspec.structs.replace(took, made=took.made or before.made, commits=added)


def _stamp(path: Path) -> _Stamp:
    """Size and time of a file, and of the log that a database is written to first."""
    found = []
    for each in (path, path.with_name(f"{path.name}-wal")):
        try:
            status = os.stat(each)
        except OSError:
            continue
        found.append((status.st_size, status.st_mtime_ns))
    return tuple(found)
