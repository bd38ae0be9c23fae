"""What a PostgreSQL was asked, by its own log, and which tables a statement reaches without saying on which shard."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_SAID = re.compile(r"LOG:  (?:execute [^:]*|statement): (.*?)(?=\n\d{4}-|\Z)", re.DOTALL)
_BEGINS = re.compile(r"(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\b")
_TABLE = re.compile(r"\b(FROM|JOIN|INTO|UPDATE)\s+(thinkback(?:_gateway)?\.\w+)(?:\s+AS\s+(\w+))?")
_LISTED = re.compile(r"\s*\(([^)]*)\)")


class Reached(NamedTuple):
    """A table in one query of a statement, and the columns that it is held to or given."""

    table: str
    columns: frozenset[str]


def asked(log: Path, since: int = 0) -> list[str]:
    """The statements in a server's log (``log_statement = all``) from the byte ``since`` on, each on one line."""
    return [" ".join(said.split()) for said in _SAID.findall(log.read_bytes()[since:].decode("utf-8", "replace"))]


def reached(sql: str) -> Iterator[Reached]:
    """Every table that a statement names, query by query."""
    for query in _queries(sql):
        named = list(_TABLE.finditer(query))
        is_alone = sum(each[1] != "INTO" for each in named) == 1
        for found in named:
            table, alias = found[2], found[3] or found[2].partition(".")[2]
            behind = query[found.end() :]
            if found[1] == "INTO":
                listed = _LISTED.match(behind)
                yield Reached(
                    table, frozenset(name.strip() for name in listed[1].split(",")) if listed else frozenset()
                )
                continue
            conditions = behind.partition(" WHERE ")[2] if found[1] == "UPDATE" else behind
            own = rf"(?:\b{alias}\.|(?<![\w.]))" if is_alone else rf"\b{alias}\."
            pairs = re.findall(rf"{own}(\w+) (?:=|IN) |= {own}(\w+)", conditions)
            yield Reached(table, frozenset(name for pair in pairs for name in pair if name))


def astray(sql: str, shards: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The tables that ``sql`` reaches without naming all of their columns in ``shards``."""
    return [each.table for each in reached(sql) if each.table in shards and not each.columns >= set(shards[each.table])]


def _queries(sql: str) -> Iterator[str]:
    """Each query by itself: one in parentheses is taken out of the one around it, whose columns it may still name."""
    open_at: list[int] = []
    at = 0
    while at < len(sql):
        if sql[at] == "(":
            open_at.append(at)
        elif sql[at] == ")" and open_at:
            start = open_at.pop()
            inner = sql[start + 1 : at]
            if _BEGINS.match(inner.strip()):
                for part in re.split(r"\bUNION(?: ALL)?\b", inner):
                    yield part.strip()
                sql = sql[:start] + " " * (at + 1 - start) + sql[at + 1 :]
        at += 1
    for part in re.split(r"\bUNION(?: ALL)?\b", sql):
        yield part.strip()
