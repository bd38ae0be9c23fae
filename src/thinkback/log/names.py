"""Names of commits as people write them: ``HEAD``, a branch, ``main~2``, ``HEAD^``, ``-``, the beginning of a hash,
``main@{2026-11-21T10:00}``. Must not: look anything up; a name is taken apart here and a history walked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from thinkback.errors import BranchError, NotFoundError
from thinkback.model.commits import Commit

HEAD = "HEAD"
PREVIOUS = "-"
_NAME = re.compile(r"(?P<base>.*?)(?:@\{(?P<time>[^{}]*)\})?(?P<back>(?:~\d*|\^)*)", re.DOTALL)
_STEP = re.compile(r"~(\d*)|\^")
# What has a meaning of its own in a name, or would be taken for an option or a range.
_RESERVED = re.compile(r"[\s~^:{}\x00-\x1f\x7f]|\.\.|@\{|^-|^@$|^HEAD$|^$")


class Name(NamedTuple):
    """``base`` (``HEAD``, ``-``, a branch or the beginning of a hash), as of ``time`` (microseconds UTC), and from
    there ``back`` commits towards the beginning."""

    base: str
    back: int = 0
    time: int | None = None


def parse(text: str) -> Name:
    """Take a name apart. Raises ``NotFoundError`` for a time that is none."""
    found = _NAME.fullmatch(text)
    assert found is not None
    base = found["base"] if found["base"] not in ("", "@") else HEAD
    back = sum(int(step[1] or 1) if step[1] is not None else 1 for step in _STEP.finditer(found["back"]))
    return Name(base, back, None if found["time"] is None else _time(found["time"]))


def _time(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise NotFoundError(
            f"{text!r} is no time", details={"time": text}, next_actions=("write it as 2026-11-21T10:00, in UTC",)
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)


def walk(history: Sequence[Commit], name: Name) -> Sequence[Commit]:
    """``history`` up to the commit that ``name`` means, where its base is the end of ``history``.

    Raises ``NotFoundError`` where there is none.
    """
    end = len(history)
    if name.time is not None:
        while end and history[end - 1].time > name.time:
            end -= 1
    if end - name.back <= 0:
        raise NotFoundError(
            f"there is no such commit: {name.base} has {end} of them{' by then' if name.time is not None else ''}",
            details={"name": name.base, "commits": end, "back": name.back},
            next_actions=("check it with the log",),
        )
    return history[: end - name.back]


def check_branch(name: str) -> str:
    """``name``, if a branch may have it. Raises ``BranchError``."""
    if _RESERVED.search(name):
        raise BranchError(
            f"{name!r} cannot be the name of a branch",
            details={"branch": name},
            next_actions=("use a name without spaces, ~ ^ : { } or .., that does not begin with -",),
        )
    return name
