"""Names of commits as people write them: ``HEAD``, a branch, ``main~2``, ``HEAD^``, ``-``, the beginning of a hash,
``main@{2026-11-21T10:00}``. ``~N`` counts questions, ``^N`` commits. Must not: look anything up; a name is parsed here
and a history walked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from thinkback.errors import BranchError, NotFoundError
from thinkback.model.commits import Commit

HEAD = "HEAD"
PREVIOUS = "-"
_NAME = re.compile(r"(?P<base>.*?)(?:@\{(?P<time>[^{}]*)\})?(?P<back>(?:[~^]\d*)*)", re.DOTALL)
_STEP = re.compile(r"([~^])(\d*)")
# What has a meaning of its own in a name, or would be taken for an option or a range.
_RESERVED = re.compile(r"[\s~^:{}\x00-\x1f\x7f]|\.\.|@\{|^-|^@$|^HEAD$|^$")


class Step(NamedTuple):
    """``number`` of questions (``~``) or commits (``^``) towards the beginning."""

    sign: str
    number: int


class Name(NamedTuple):
    """``base`` (``HEAD``, ``-``, a branch or the beginning of a hash), as of ``time`` (microseconds UTC), and from
    there ``steps`` towards the beginning, one after the other."""

    base: str
    steps: tuple[Step, ...] = ()
    time: int | None = None


def parse(text: str) -> Name:
    """Take a name apart. Raises ``NotFoundError`` for a time that is none."""
    found = _NAME.fullmatch(text)
    assert found is not None
    base = found["base"] if found["base"] not in ("", "@") else HEAD
    steps = tuple(Step(step[1], int(step[2] or 1)) for step in _STEP.finditer(found["back"]))
    return Name(base, steps, None if found["time"] is None else _time(found["time"]))


def _time(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise NotFoundError(
            f"{text!r} is not a time", details={"time": text}, next_actions=("write it as 2026-11-21T10:00, in UTC",)
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)


def walk(history: Sequence[Commit], name: Name) -> Sequence[Commit]:
    """``history`` up to the commit that ``name`` means, where its base is the end of ``history``.

    A step over the first question may leave nothing. Raises ``NotFoundError`` where there is no such commit.
    """
    end = len(history)
    if name.time is not None:
        while end and history[end - 1].time > name.time:
            end -= 1
    then = " by then" if name.time is not None else ""
    if not end:
        raise _missing(name, f"{name.base} has no commits{then}")
    for step in name.steps:
        if step.sign == "~":
            end = _before_question(history, end, step.number, name, then)
        elif end > step.number:
            end -= step.number
        else:
            raise _missing(name, f"{name.base} has {end} commits{then}, and {step.number} are to be left out")
    return history[:end]


def _before_question(history: Sequence[Commit], end: int, count: int, name: Name, then: str) -> int:
    end, left = _back(history, end, count)
    if left:
        raise _missing(name, f"{name.base} has {count - left} questions{then}, and {count} are to be left out")
    return end


def before_question(history: Sequence[Commit], count: int) -> int:
    """Where ``history`` ended before its ``count``-th last question was asked; 0 where it has fewer."""
    return _back(history, len(history), count)[0]


def questions(history: Iterable[Commit]) -> int:
    """How many questions ``history`` has: what ``~N`` counts, and people call turns."""
    return sum(_is_question(commit) for commit in history)


def _is_question(commit: Commit) -> bool:
    return commit.kind == "user" and not commit.edit


def _back(history: Sequence[Commit], end: int, count: int) -> tuple[int, int]:
    """Where it ended before the ``count``-th question from ``end``, and how many were not there."""
    left = count
    while left and end:
        end -= 1
        left -= _is_question(history[end])
    # System prompt and tools come with the question that they are first sent for.
    while count and end and history[end - 1].kind in ("system", "tools"):
        end -= 1
    return end, left


def _missing(name: Name, fact: str) -> NotFoundError:
    return NotFoundError(
        f"there is no such commit: {fact}",
        details={"name": name.base},
        next_actions=("count with `log`: ~N goes back over N questions, ^N over N commits",),
    )


def check_branch(name: str) -> str:
    """``name``, if a branch may have it. Raises ``BranchError``."""
    if _RESERVED.search(name):
        raise BranchError(
            f"{name!r} cannot be the name of a branch",
            details={"branch": name},
            next_actions=("use a name without spaces, ~ ^ : { } or .., that does not begin with -",),
        )
    return name
