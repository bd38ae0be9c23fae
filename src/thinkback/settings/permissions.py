r"""Rules of permission as text: ``shell=ask, write=deny, mcp:*=ask, shell(git status*)=allow``.

A rule is the name of a tool, in parentheses what its call is about if not any, and what is to happen. ``*`` stands for
any characters; ``\`` takes the meaning of the one behind it away. What a rule means is in ``turn.permissions``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, get_args

Action: TypeAlias = Literal["allow", "ask", "deny"]

ACTIONS: tuple[str, ...] = get_args(Action)
WORDS = f"rules like shell=ask, write(docs/*)=allow, mcp*=deny; each ends in {', '.join(ACTIONS)}"

_RULE = re.compile(
    r"\s*(?P<tool>[^\s()=,]+)\s*"
    r"(?:\((?P<pattern>(?:[^()\\]|\\.)*)\)\s*)?"
    rf"=\s*(?P<action>{'|'.join(ACTIONS)})\s*(?:,|\Z)",
    re.DOTALL,
)
_TOKEN = re.compile(r"\\(.)|(.)", re.DOTALL)
_SPECIAL = re.compile(r"([\\()*])")


class Rule(NamedTuple):
    """``pattern`` is ``None`` where the rule is about every call of the tool."""

    tool: str
    action: Action
    pattern: str | None = None

    def __str__(self) -> str:
        about = "" if self.pattern is None else f"({self.pattern})"
        return f"{self.tool}{about}={self.action}"

    @property
    def is_wide(self) -> bool:
        """Whether the pattern has an asterisk that stands for anything."""
        return any(wild for _, wild in _tokens(self.pattern or ""))


def read_rules(text: str) -> tuple[Rule, ...] | None:
    """The rules of ``text`` in order; ``None`` where it is none."""
    rules: list[Rule] = []
    at = 0
    while at < len(text.rstrip()):
        found = _RULE.match(text, at)
        if found is None:
            return None
        rules.append(Rule(found["tool"], found["action"], found["pattern"]))  # type: ignore[arg-type]
        at = found.end()
    return tuple(rules) or None


def write_rules(rules: Iterable[Rule]) -> str:
    """The text that ``read_rules`` reads back."""
    return ",".join(map(str, rules))


def literal(text: str) -> str:
    """A pattern that means ``text`` and nothing else."""
    return _SPECIAL.sub(r"\\\1", text)


def is_like(pattern: str, text: str, *, any_case: bool = False) -> bool:
    """Whether all of ``text`` is what ``pattern`` says."""
    return _compiled(pattern, any_case).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str, any_case: bool) -> re.Pattern[str]:
    pieces = [""]
    for character, wild in _tokens(pattern):
        if wild:
            pieces.append("")
        else:
            pieces[-1] += re.escape(character)
    source = pieces[0]
    if len(pieces) > 1:
        # each piece where it comes first, never elsewhere: time grows with the text, whatever the pattern
        source += "".join(f"(?>.*?{piece})" for piece in pieces[1:-1]) + f".*{pieces[-1]}"
    return re.compile(source, re.DOTALL | (re.IGNORECASE if any_case else re.NOFLAG))


def _tokens(pattern: str) -> list[tuple[str, bool]]:
    """(character, whether it is an asterisk that stands for anything)."""
    return [(escaped or plain, plain == "*") for escaped, plain in _TOKEN.findall(pattern)]
