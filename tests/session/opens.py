"""Which files are opened, and by which thread: Python's own audit events."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_watched: list[tuple[str, list[tuple[str, int]]]] = []


def _on_open(event: str, args: tuple[object, ...]) -> None:
    if event == "open" and _watched and isinstance(args[0], str):
        for below, seen in _watched:
            if args[0].startswith(below):
                seen.append((os.path.relpath(args[0], below), threading.get_ident()))


sys.addaudithook(_on_open)


@contextmanager
def opens(below: Path) -> Iterator[list[tuple[str, int]]]:
    """The files under ``below`` that are opened meanwhile, each with the thread that opened it."""
    watch: tuple[str, list[tuple[str, int]]] = (str(below), [])
    _watched.append(watch)
    try:
        yield watch[1]
    finally:
        _watched.remove(watch)


def settled(*paths: Path) -> None:
    """Wait until files were last written so long ago that they may be taken from memory."""
    while any(time_since(path) < 0.06 for path in paths):
        threading.Event().wait(0.01)


def time_since(path: Path) -> float:
    """Seconds since ``path`` was changed."""
    import time

    found = path.stat()
    return (time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns)) / 1e9
