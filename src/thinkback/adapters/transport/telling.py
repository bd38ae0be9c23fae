"""What a program says of its requests, and is told of them: the name of a conversation, and why a request went so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import msgspec

from thinkback.adapters.transport import dropped
from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.model.target import Decisions

if TYPE_CHECKING:
    from thinkback.turn.plan import Plan


class Why(msgspec.Struct, frozen=True):
    """What became of a request.

    ``recorded`` says whether it is in the log, in ``session`` as ``response``; ``reason`` why it is not, why it went as
    the program wrote it, with nothing of ours in it, or what it went without since the provider refused it. ``sent``
    counts requests that went out for it; ``chosen`` is how its conversation was chosen among several with equal words,
    empty where it was the only one; ``repaired`` says whether an earlier one was refused for its reasoning, or for a
    field that was added. ``reattached`` is what is known of earlier answers (as the gateway's header says it);
    ``left_out`` names what the program asked for and the place does not take. Both are empty, and ``plan`` is none,
    where a request went as the program wrote it.
    """

    recorded: bool
    reason: str = ""
    session: str = ""
    response: str = ""
    model: str = ""
    sent: int = 1
    reattached: str = ""
    left_out: str = ""
    plan: Plan | None = None
    chosen: str = ""

    @property
    def repaired(self) -> bool:
        """Whether the provider refused what it was sent first."""
        return self.sent > 1

    @property
    def decisions(self) -> Decisions:
        """What was done with each block of earlier reasoning, by which rule, and why."""
        return Decisions(self.plan.decisions if self.plan is not None else ())

    def __repr__(self) -> str:
        return f"<Why {'recorded in ' + self.session if self.recorded else 'not recorded: ' + self.reason}>"

    def __str__(self) -> str:
        """As lines for people."""
        if not self.recorded:
            return f"not recorded: {self.reason}"
        lines = [f"{self.model}, recorded in session {self.session}"]
        reason = self.reason or ("the provider refused its reasoning first" if self.repaired else "")
        lines += [f"sent {self.sent} times: {reason}" if self.repaired else reason] if reason else []
        lines += [f"earlier answers: {self.reattached}"] if self.reattached else []
        lines += [self.chosen] if self.chosen else []
        lines += [f"left out: {self.left_out}"] if self.left_out else []
        for made in self.decisions:
            rule = "" if made.rule in made.reason else f" (rule {made.rule})"
            lines.append(f"{made.action} {made.what} {made.block[:12] or '-'}: {made.reason}{rule}")
        return "\n".join(lines)


class _Last:
    """The last request of a context, and of those that were copied from it."""

    def __init__(self) -> None:
        self.why: Why | None = None


_EVERYWHERE = _Last()
_LAST: ContextVar[_Last] = ContextVar("thinkback_last", default=_EVERYWHERE)
_NAMED: ContextVar[str] = ContextVar("thinkback_conversation", default="")


@contextmanager
def conversation(name: str) -> Iterator[None]:
    """Conversations that begin inside go into the session ``name``; one that goes on stays where it is.

    In this thread or task, and in those that copy its context. ``why`` inside is about requests made inside.
    """
    given: object = name
    if not given or not isinstance(given, str):
        raise _nameless(name)
    with inside(name):
        yield


@contextmanager
def inside(name: str = "") -> Iterator[None]:
    """The same where there may be no name: ``why`` inside is about requests made inside."""
    if not name.isprintable():
        raise _nameless(name)
    named, last = _NAMED.set(name), _LAST.set(_Last())
    try:
        yield
    finally:
        _NAMED.reset(named)
        _LAST.reset(last)


def _nameless(name: str) -> ThinkbackError:
    return ThinkbackError(f"{name!r} cannot be the name of a session", next_actions=("give a name that prints",))


def why() -> Why:
    """What became of the last request: inside ``conversation`` of its own, else of this process.

    Raises ``NotFoundError`` where there was none.
    """
    dropped.record()
    found = _LAST.get().why
    if found is None:
        raise NotFoundError(
            "no request went through a transport of thinkback here",
            next_actions=("give thinkback.http_client(...) to the SDK as its http_client",),
        )
    return found


def named() -> str:
    """The name of the conversation that a request is made in; empty where it has none."""
    return _NAMED.get()


def told(last: _Last, said: Why, instead_of: Why | None = None) -> None:
    """Note what became of a request, which was made while ``last`` was this context's; ``instead_of`` what was noted of
    it before, where that is given: of a later request more was said since.
    """
    for each in (last, _EVERYWHERE):
        if instead_of is None or each.why is instead_of:
            each.why = said


def listening() -> _Last:
    """Where ``why`` looks in this context."""
    return _LAST.get()
