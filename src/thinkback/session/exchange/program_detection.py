"""Which program wrote a file: asked of every format that can be imported, or a description of what is in it.

Promises: reads the beginning of a file only, of a database the names of its tables. Must not: store anything.
"""

from __future__ import annotations

import re
from pathlib import Path

from thinkback.errors import NotFoundError, StoreError
from thinkback.formats.registry import MODULES, program
from thinkback.log.exchange import is_export
from thinkback.session.exchange.history_files import head_of, members_of_archive
from thinkback.stores.foreign import table_names

EXPORT = "thinkback"
"""The name for what ``thinkback export`` writes."""
_SHOWN = 8
_LOOKED_AT = 4096
_MEMBER = re.compile(rb'"(\w{1,40})"\s*:')
_DATABASE = b"SQLite format 3\0"
_ARCHIVE = b"PK\x03\x04"


def detect(path: Path) -> str:
    """The program that wrote the file at ``path``, or ``EXPORT``.

    Raises ``NotFoundError`` that names what is in the file, and what to do, for one of no program or of several.
    """
    try:
        head = head_of(path)
    except OSError as error:
        why = error.strerror or error
        raise NotFoundError(f"{path} cannot be read ({why})", next_actions=("check its permissions",)) from error
    if not head.strip():
        raise NotFoundError(f"nothing was imported: there is no session in {path}, it is empty")
    if is_export(head):
        return EXPORT
    found = likely(path, head)
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFoundError(
            f"{path} may be a history of {' or '.join(found)}",
            details={"path": str(path)},
            next_actions=(f"name one with --program {found[0]}",),
        )
    raise NotFoundError(
        f"{path} is of no program whose histories can be imported: it is {seen(path, head)}",
        details={"path": str(path)},
        next_actions=(
            f"name the program with --program, if it is one of: {', '.join(sorted(MODULES))}",
            'write it as chat completions, {"messages": [...]} a line, and import that with --program chat-jsonl',
        ),
    )


def likely(path: Path, head: bytes) -> list[str]:
    """The programs whose histories begin with ``head``; of databases those with most of the tables that are there."""
    found = [name for name in MODULES if program(name).is_own(head)]
    if head.startswith(_ARCHIVE) and members_of_archive(path):
        return []  # of one with conversations, ``head`` is theirs
    if len(found) < 2 or not head.startswith(_DATABASE):
        return found
    try:
        there = table_names(str(path))
    except (OSError, StoreError):
        return found
    fits = {name: len(there.intersection(program(name).tables)) for name in found}
    return [name for name in found if fits[name] == max(fits.values()) > 0]


def seen(path: Path, head: bytes) -> str:
    """A file's content in a few words."""
    if head.startswith(_DATABASE):
        try:
            return f"a database with the tables {_listed(sorted(table_names(str(path))))}"
        except (OSError, StoreError):
            return "a damaged database"
    if head.startswith(_ARCHIVE):
        return f"an archive with {_listed(members_of_archive(path))}"
    names = [name.decode() for name in dict.fromkeys(_MEMBER.findall(head[:_LOOKED_AT]))]
    if names and head.lstrip()[:1] in (b"{", b"["):
        return f"JSON with the members {_listed(names)}"
    return (
        "a binary file"
        if b"\0" in head
        else "text that begins with " + repr(head.lstrip()[:20].decode("utf-8", "replace"))
    )


def _listed(names: list[str]) -> str:
    shown = [name[:80] for name in names[:_SHOWN]]
    return ", ".join(shown) + (", ..." if len(names) > _SHOWN else "") if shown else "no names"
