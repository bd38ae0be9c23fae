"""What a program does whenever a response has to be waited for: it draws, say, and lets more arrive before it reads on.

Promises: ``rest`` is called in the thread that reads, before each wait for a body's next bytes, when all that came was
handed over; not at all where the client's connection does not let itself be watched. Must not: outlive the response,
whose connection serves others after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Rest = Callable[[], object]
REST: ContextVar[Rest | None] = ContextVar("rest", default=None)


@contextmanager
def resting(rest: Rest) -> Iterator[None]:
    """While inside: responses that this thread reads are waited for with ``rest``."""
    token = REST.set(rest)
    try:
        yield
    finally:
        REST.reset(token)


@contextmanager
def before_reads(connection: Any) -> Iterator[None]:
    """While inside: have ``connection``, the client's network stream, rest before it reads."""
    rest = REST.get()
    if rest is None or connection is None:
        yield
        return
    read = connection.read

    def rested(*given: Any, **named: Any) -> Any:
        rest()
        return read(*given, **named)

    try:
        connection.read = rested
    except AttributeError:
        yield
        return
    try:
        yield
    finally:
        del connection.read
