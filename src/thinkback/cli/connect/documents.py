"""Changes of a configuration file as values: applied to its text, found in it, taken back, shown.

Text in, text out. Promises: whatever is written is read again and says what it said before and our values, and nothing
else; otherwise nothing is written. Taking back goes by values, so that it works on a file that its program has written
anew since. No diff shows a secret.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import NamedTuple, Protocol

from thinkback.cli.connect import dotenv, jsonc, toml, yaml
from thinkback.cli.connect.source import Damaged, Span, line_of

MISSING = object()
# each run of a name's characters is entered once, at its start, and never given back: a line costs its length
_NAME = re.compile(r"""(?<![\w.-])([\w.-]++)["']?+\s*+[:=]\s*+""")
_NAMES_A_SECRET = re.compile("(?i)key|token|secret|password|credential|authorization")
_VALUE = re.compile(r"""(?x) "(?:[^"\\]|\\.)*" | '[^']*' | \[ [^\]]* \]? | [^\s,"'}\]]+""")
# what keys of the known providers begin with, wherever they stand; and the password of an address
_KEY = re.compile(r"\b(?:sk-|tb-|gsk_|xai-|hf_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|AIza|AKIA|eyJ)[\w.-]{12,}")
_PASSWORD = re.compile(r"(://[^\s:/@]*:)[^\s/@]+(?=@)")
_NAMES_A_VARIABLE = re.compile(r"(?i)env_?key\W")


class Format(Protocol):
    """A module that reads a format and changes one key of it at a time."""

    def read(self, text: str) -> dict[str, object]:
        """The data of a text. Raises ``Damaged``, as the others do."""

    def span(self, text: str, path: Sequence[str]) -> Span | None:
        """Where a value stands."""

    def put(self, text: str, path: Sequence[str], value: object) -> str:
        """The text with a key set."""

    def drop(self, text: str, path: Sequence[str]) -> str:
        """The text without a key."""


FORMATS: Mapping[str, Format] = MappingProxyType({"jsonc": jsonc, "toml": toml, "yaml": yaml, "dotenv": dotenv})


class Change(NamedTuple):
    """A key and the value that it gets; ``is_secret``: the value is not kept, only its digest."""

    path: tuple[str, ...]
    value: object
    is_secret: bool = False

    @property
    def name(self) -> str:
        """The key as people write it."""
        return ".".join(self.path)


class Taken(NamedTuple):
    """A text with changes taken back, and those of them whose value is neither ours nor what it was before."""

    text: str
    changed: tuple[Change, ...]


def value_at(data: object, path: Sequence[str]) -> object:
    """The value at ``path``, or ``MISSING``."""
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return MISSING
        data = data[key]
    return data


def digest_of(value: object) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(str(value).encode()).hexdigest()


def holds(change: Change, value: object) -> bool:
    """Whether ``value`` is the one of ``change``; that of a secret may be its digest."""
    return value == change.value or (change.is_secret and value is not MISSING and digest_of(value) == change.value)


def unmet(format: Format, text: str, changes: Sequence[Change]) -> list[Change]:
    """Those of ``changes`` that ``text`` does not have. Raises ``Damaged``."""
    data = format.read(text)
    return [change for change in changes if not holds(change, value_at(data, change.path))]


def applied(format: Format, text: str, changes: Sequence[Change]) -> str:
    """``text`` with ``changes`` made. Raises ``Damaged`` for what cannot be read, or not be changed."""
    wanted = deepcopy(format.read(text))
    after = text
    for change in changes:
        _set(wanted, change.path, change.value)
        format.span(after, change.path)  # a key that stands twice is refused, also where the value is right
        if value_at(format.read(after), change.path) != change.value:
            after = format.put(after, change.path, change.value)
            _check(format, text, after, None)
    _check(format, text, after, wanted)
    return after


def taken_back(format: Format, text: str, original: str, changes: Sequence[Change]) -> Taken:
    """``text`` with what ``changes`` made of ``original`` undone, key by key, and what was changed since left alone."""
    before, data = format.read(original), format.read(text)
    wanted, changed, after = deepcopy(data), [], text
    for change in changes:
        now, old = value_at(data, change.path), value_at(before, change.path)
        if now == old or (now is MISSING and old is MISSING):
            continue
        if not holds(change, now):
            changed.append(change)
        elif old is MISSING:
            after = format.drop(after, change.path)
            _unset(wanted, change.path)
            for size in range(len(change.path) - 1, 0, -1):
                path = change.path[:size]
                place = format.span(after, path)
                has_comment = place is not None and after[place.start : place.end].strip("{} \t\r\n")
                if value_at(wanted, path) != {} or value_at(before, path) is not MISSING or has_comment:
                    break
                _unset(wanted, path)
                after = format.drop(after, path)
        else:
            here, there = format.span(after, change.path), format.span(original, change.path)
            assert here is not None
            after = (
                after[: here.start] + original[there.start : there.end] + after[here.end :]
                if there is not None
                else format.put(after, change.path, old)
            )
            _set(wanted, change.path, old)
    _check(format, text, after, wanted)
    is_as_before = wanted == before and "".join(after.split()) == "".join(original.split())
    return Taken(original if is_as_before else after, tuple(changed))


def standing(format: Format, text: str, changes: Sequence[Change], earlier: Sequence[Change]) -> list[Change]:
    """Those of ``changes`` and, where a write ended in between, of ``earlier`` that ``text`` has: one a key."""
    data = format.read(text)
    found: dict[tuple[str, ...], Change] = {}
    for change in (*changes, *earlier):
        value = value_at(data, change.path)
        if change.path not in found or (holds(change, value) and not holds(found[change.path], value)):
            found[change.path] = change
    return list(found.values())


def diff(name: str, before: str, after: str, secrets: Sequence[str] = ()) -> Iterator[str]:
    """The lines of a unified diff, without secrets."""
    old, new = (text.replace("\r\n", "\n").splitlines() for text in (before, after))
    for line in difflib.unified_diff(old, new, name, name, n=2, lineterm=""):
        yield masked(line, secrets)


def masked(line: str, secrets: Sequence[str] = ()) -> str:
    """``line`` with nothing but the ends of secrets: ours, what looks like one, and what stands under such a name."""
    for secret in secrets:
        line = line.replace(secret, ending(secret))
    if not _NAMES_A_VARIABLE.search(line):
        line = _hide_values(line)
    return _PASSWORD.sub(r"\1...", _KEY.sub(lambda found: ending(found[0]), line))


def ending(secret: str) -> str:
    """The last letters of a secret that is long enough to have some."""
    return f"...{secret[-4:]}" if len(secret) >= 16 else "..."


def _hide_values(line: str) -> str:
    """``line`` with the values masked that stand under a name for secrets."""
    pieces, shown, at = [], 0, 0
    while found := _NAME.search(line, at):
        at = found.end()
        value = _VALUE.match(line, at) if _NAMES_A_SECRET.search(found[1]) else None
        if value is not None:
            pieces += [line[shown:at], _hidden(value[0])]
            shown = at = value.end()
    return "".join(pieces) + line[shown:]


def _hidden(value: str) -> str:
    quote = value[0] if value[0] in "\"'" else ""
    inner = value.strip("\"'")
    is_open = inner in ("", "none", "true", "false", "null", "[", "[]", "{", "{}") or inner.isdigit()
    if is_open or inner.startswith(("...", "$", "{env:")):
        return value
    return f"{quote}{ending(inner)}{quote}"


def _check(format: Format, before: str, after: str, wanted: object) -> None:
    """Raise ``Damaged`` where ``after`` cannot be read, or does not say what is ``wanted``, if that is given."""
    try:
        found = format.read(after)
        is_right = after == before or wanted is None or found == wanted
    except Damaged:
        is_right = False
    if not is_right:
        at = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
        raise Damaged(
            line_of(before, min(at, len(before))), "this form cannot be edited without changing other settings"
        )


def _set(data: dict[str, object], path: Sequence[str], value: object) -> None:
    for key in path[:-1]:
        below = data.setdefault(key, {})
        if not isinstance(below, dict):
            below = data[key] = {}
        data = below
    data[path[-1]] = value


def _unset(data: dict[str, object], path: Sequence[str]) -> None:
    above = value_at(data, path[:-1])
    if isinstance(above, dict):
        above.pop(path[-1], None)
