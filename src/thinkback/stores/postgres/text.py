"""Text and commits as the columns of a PostgreSQL log hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from thinkback.model.commits import Commit
from thinkback.stores.database import Stored
from thinkback.stores.rows import from_rows

COLUMNS = "c.position, c.hash, c.parents, c.kind, c.digest, c.time, c.response, c.block, c.edit, c.codec, c.payload"
SHORT = 6
"""Bytes of a hash that the index holds."""


def stored(text: str) -> str:
    """``text`` as a column holds it: PostgreSQL takes every character but NUL."""
    return text.replace("\\", "\\\\").replace("\0", "\\0") if "\0" in text or "\\" in text else text


def given(text: str) -> str:
    """The text that a column holds."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def commits_of(rows: list[Stored], base: int) -> list[Commit]:
    """The commits of rows with ``COLUMNS``."""
    return from_rows(unescaped(rows), base)


def raw(hash: str) -> bytes:
    """The bytes of a hash; none where ``hash`` is not one."""
    try:
        return bytes.fromhex(hash)
    except ValueError:
        return b""


def unescaped(rows: Sequence[Stored]) -> Iterator[Stored]:
    """Rows with ``COLUMNS``, their text as it was given."""
    for row in rows:
        yield (*row[:6], given(row[6]), *row[7:]) if "\\" in row[6] else row
