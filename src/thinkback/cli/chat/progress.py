"""A line that says that something takes a while, and for how long; only where somebody watches."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Before that nobody wonders.
_PATIENCE = 0.3
_BEAT = 0.2


@contextmanager
def working(what: str) -> Iterator[None]:
    """``what``, with the seconds, on standard error while the block runs; gone afterwards."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    teller = threading.Thread(target=_show_progress, args=(what, over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _show_progress(what: str, over: threading.Event) -> None:
    began = time.monotonic()
    if over.wait(_PATIENCE):
        return
    longest = 0
    while True:
        said = f"{what} ... {time.monotonic() - began:.0f} s"
        longest = max(longest, len(said))
        sys.stderr.write(f"\r{said}")
        sys.stderr.flush()
        if over.wait(_BEAT):
            break
    sys.stderr.write(f"\r{' ' * longest}\r")
    sys.stderr.flush()
