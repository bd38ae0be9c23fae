"""Reads the text of a person's settings file.

The file is TOML with a table per group: ``[reasoning]`` and under it ``effort = "high"``. Finding and opening the
file is the caller's work.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

from thinkback.errors import RuleFileError, SettingError
from thinkback.settings.registry import Value
from thinkback.settings.values import flatten, parse


def parse_user_file(name: str, text: str) -> Mapping[str, Value]:
    """The settings in ``text`` by key, for ``Layers.replace``; ``RuleFileError`` names file, key path or line, reason.

    ``name`` is what the file is called in error texts.
    """
    return parse_settings(name, read_toml(name, text))


def parse_settings(name: str, table: Mapping[str, object]) -> dict[str, Value]:
    """The settings in ``table``, which stands in the file ``name``, by key; ``RuleFileError`` as above."""
    values: dict[str, Value] = {}
    for key, raw in flatten(table):
        if key in values:
            raise RuleFileError(f"{name}: {key}: it is given twice", details={"file": name, "key": key})
        try:
            values[key] = parse(key, raw)
        except SettingError as error:
            raise RuleFileError(
                f"{name}: {key}: {error.message}",
                details={**error.details, "file": name, "key": key},
                next_actions=error.next_actions,
            ) from error
    return values


def read_toml(name: str, text: str) -> dict[str, object]:
    """``text`` as a table; ``RuleFileError`` names the file and, where it is known, the line."""
    try:
        return tomllib.loads(text)
    # tomllib lets int() refuse endless numbers and the interpreter refuse endless nesting
    except (ValueError, RecursionError) as error:
        line = _line(str(error), text)
        where = f", line {line}" if line else ""
        raise RuleFileError(f"{name}{where}: not valid TOML: {error}", details={"file": name, "line": line}) from error


def _line(reason: str, text: str) -> int:
    """The line a TOML error is about, counted from 1; 0 where the parser does not say."""
    if reason.endswith("(at end of document)"):
        return text.rstrip().count("\n") + 1
    said = re.search(r"\(at line (\d+), column \d+\)$", reason)
    return int(said[1]) if said else 0
