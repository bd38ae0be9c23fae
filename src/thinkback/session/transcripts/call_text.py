"""Calls as people read them before they allow one: whole, with nothing in them that cannot be seen."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.session.transcripts.ink import Style

_LARGEST_FILE = 1_000_000


def plain(text: str) -> str:
    """One line of ``text`` with everything in it to be seen: what shows nothing is named by its number."""
    return "".join(letter if letter.isprintable() else f"<U+{ord(letter):04X}>" for letter in text.expandtabs(4))


def lines(name: str, arguments: str) -> Iterator[tuple[str, Style | None]]:
    """A call as people read it, whole: a command, a change as a diff, and whatever else is said, by argument."""
    try:
        given: Any = canonical.decode(arguments or "{}")
    except msgspec.DecodeError:
        given = None
    rest: dict[Any, Any] = {}
    match given:
        case {"command": str(command), **rest}:
            yield from ((f"  {line}", None) for line in command.split("\n"))
        case {"path": str(path), "old_string": str(old), "new_string": str(new), **rest}:
            before = _there(path)
            after = before.replace(old, new, -1 if rest.get("replace_all") is True else 1)
            # an edit that fits nowhere is shown by its own words
            yield from _diff(path, before, after) if old and old in before else _diff(path, old, new)
        case {"path": str(path), "content": str(content), **rest} if name == "write":
            yield from _diff(path, _there(path), content)
        case {**rest}:
            pass
        case _:
            rest = {"": arguments}
    for key, value in rest.items():
        text = value if isinstance(value, str) else canonical.encode(value).decode()
        first, *others = text.split("\n")
        yield f"  {key}: {first}" if key else f"  {first}", None
        yield from ((f"    {line}", None) for line in others)


def _diff(path: str, old: str, new: str) -> Iterator[tuple[str, Style | None]]:
    yield f"  {path}", None
    changed = difflib.unified_diff(_lines(old), _lines(new), lineterm="", n=3)
    for line in [*changed][2:]:
        styles: Mapping[str, Style] = {"+": "green", "-": "red", "@": "cyan"}
        yield f"  {line}", styles.get(line[:1])


def _lines(text: str) -> list[str]:
    """Lines as a shell sees them: nothing but a line feed ends one."""
    return text.removesuffix("\n").split("\n") if text else []


def _there(path: str) -> str:
    """What a file says now; nothing where it is not there, or is no text."""
    file = Path(path)
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_FILE:
            return ""
        return file.read_bytes().decode()
    except (OSError, ValueError):
        return ""
