"""Pointers to tests, ``folder/test_file.py::test_name`` below ``tests``; one that leads nowhere is found."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent.parent


class Row(NamedTuple):
    """One thing that is promised: what it says, the tests that prove it, and what of it is missing or comes later."""

    id: str
    says: str
    tests: tuple[str, ...] = ()
    open: str = ""


def row(id: int | str, says: str, *tests: str, open: str = "") -> Row:
    """A row of a table."""
    return Row(str(id), says, tests, open)


def named(row: Row) -> str:
    """The name of a row as the name of its test."""
    return f"{row.id} {row.says}"


def missing(tests: Iterable[str]) -> list[str]:
    """The pointers that lead to no test function."""
    return [pointer for pointer in tests if pointer.partition("::")[2] not in _functions(pointer.partition("::")[0])]


@functools.cache
def _functions(file: str) -> frozenset[str]:
    path = TESTS / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(name for name in functions if name.startswith("test_"))
