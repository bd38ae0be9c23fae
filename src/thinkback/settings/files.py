"""Reads the text of a person's settings file.

The file is TOML with a table per group: ``[reasoning]`` and under it ``effort = "high"``. Finding and opening the
file is the caller's work.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

from thinkback.errors import RuleFileError, SettingError
from thinkback.settings.registry import Value, ours
from thinkback.settings.values import flatten, parse, shorten


def parse_user_file(name: str, text: str) -> Mapping[str, Value]:
    """The settings in ``text`` by key, for ``Layers.replace``; ``RuleFileError`` names file, key path or line, reason.

    ``name`` is what the file is called in error texts.
    """
    values, faults = split_settings(name, read_toml(name, text))
    if faults:
        fault = faults[0]
        fault.next_actions += (f"`thinkback settings unset {fault.details['key']}` takes it out of the file",)
        raise fault
    return values


def parse_settings(name: str, table: Mapping[str, object]) -> dict[str, Value]:
    """The settings in ``table``, which stands in the file ``name``, by key; ``RuleFileError`` as above."""
    values, faults = split_settings(name, table)
    if faults:
        raise faults[0]
    return values


def split_settings(name: str, table: Mapping[str, object]) -> tuple[dict[str, Value], list[RuleFileError]]:
    """The settings in ``table`` that hold, and an error for each entry that does not: for commands that repair."""
    values: dict[str, Value] = {}
    faults: list[RuleFileError] = []
    for written, raw in flatten(table):
        key = ours(written)
        if key in values:
            faults.append(RuleFileError(f"{name}: {key}: it is given twice", details={"file": name, "key": written}))
            continue
        try:
            values[key] = parse(key, raw)
        except SettingError as error:
            found = RuleFileError(
                f"{name}: {key}: {reason_of(key, error)}",
                details={**error.details, "file": name, "key": key},
                next_actions=error.next_actions,
            )
            found.__cause__ = error
            faults.append(found)
    return values, faults


def reason_of(key: str, error: SettingError) -> str:
    """The message of ``error`` for a text that names ``key`` already."""
    unknown = f"there is no setting {shorten(key)}"
    return "there is no setting of this name" if error.message == unknown else error.message.removeprefix(f"{key} ")


def read_toml(name: str, text: str) -> dict[str, object]:
    """``text`` as a table; ``RuleFileError`` names the file and, where it is known, the line."""
    try:
        return tomllib.loads(text)
    # tomllib lets int() refuse endless numbers and the interpreter refuse endless nesting
    except (ValueError, RecursionError) as error:
        line = _line(str(error), text)
        where = f", line {line}" if line else ""
        raise RuleFileError(
            f"{name}{where}: not valid TOML: {error}",
            details={"file": name, "line": line},
            next_actions=(f"correct {name}, or move it away",),
        ) from error


def _line(reason: str, text: str) -> int:
    """The line a TOML error is about, counted from 1; 0 where the parser does not say."""
    if reason.endswith("(at end of document)"):
        return text.rstrip().count("\n") + 1
    said = re.search(r"\(at line (\d+), column \d+\)$", reason)
    return int(said[1]) if said else 0
