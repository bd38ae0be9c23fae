"""Rows as TOML text, and a row in its place in a file that a person keeps."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from thinkback.errors import RuleFileError
from thinkback.model import canonical
from thinkback.model.rule import Endpoint, Rule
from thinkback.turn.probing.row import Probed

Table: TypeAlias = Literal["rule", "endpoint"]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ALWAYS = ("endpoint", "model", "since", "source")


def rule_text(probed: Probed, like: str) -> str:
    """The row as TOML. ``like``: the id of the row that the other keys are taken from; without one all are written."""
    values: dict[str, Any] = msgspec.to_builtins(probed.rule)
    said = {"id": probed.rule.id, **({"like": like} if like else {})} | {name: values[name] for name in _ALWAYS}
    said |= {key.name: values[key.name] for key in probed.keys}
    if probed.rule.unconfirmed:  # a row never takes over the doubts of another
        said["unconfirmed"] = values["unconfirmed"]
    if not like:
        said |= _lean(values, msgspec.to_builtins(Rule("", "", "", "")))
    return _table("rule", said)


def endpoint_text(endpoint: Endpoint) -> str:
    """An endpoint as TOML, without what is the default."""
    values: dict[str, Any] = msgspec.to_builtins(endpoint)
    return _table("endpoint", _lean(values, msgspec.to_builtins(Endpoint("", "", ""))))


def _lean(values: dict[str, Any], blank: dict[str, Any]) -> dict[str, Any]:
    """``values`` without those that ``blank`` has too, also in tables within."""
    left: dict[str, Any] = {}
    for name, value in values.items():
        default = blank.get(name)
        if value != default:
            left[name] = _lean(value, default) if isinstance(value, dict) and isinstance(default, dict) else value
    return left


def replaced(text: str, table: Table, id: str, row: str) -> str:
    """The file ``text`` with ``row`` in place of the row of ``table`` with this id, else at its end.

    Every other row and comment stays. Raises ``RuleFileError`` where that cannot be made sure of.
    """
    if not holds(text, table, id):
        gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{row}"
    wanted = {**_others(text, table, id), "": tomllib.loads(row).get(table, [])}
    for after in _candidates(text.splitlines(keepends=True), table, id, row):
        if _parse(after, table, id) == wanted:
            return after
    raise RuleFileError(
        f"the row {id!r} cannot be replaced without a change to others",
        details={"id": id},
        next_actions=("take the row out of the file by hand",),
    )


def without(text: str, table: Table, id: str) -> str:
    """The file without the row. Raises ``RuleFileError`` as ``replaced`` does."""
    return replaced(text, table, id, "") if holds(text, table, id) else text


def holds(text: str, table: Table, id: str) -> bool:
    """Whether a file has the row."""
    return _rows(tomllib.loads(text), table, id) != []


def _candidates(lines: list[str], table: Table, id: str, row: str) -> Iterator[str]:
    """The file with ``row`` in place of whatever might be the row, by its lines; the shortest first.

    A line that looks like a header may stand inside a text, so only what is read back can tell.
    """
    headers = [at for at, line in enumerate(lines) if line.lstrip().startswith("[")]
    starts = [at for at in headers if re.match(rf"\s*\[\[\s*{table}\s*\]\]", lines[at])]
    places = ((start, end) for start in starts for end in (*headers, len(lines)) if end > start)
    for start, end in sorted(places, key=lambda place: place[1] - place[0]):
        while not lines[end - 1].split("#")[0].strip():  # comments before the next row are about that
            end -= 1
        if id in "".join(lines[start:end]):
            yield "".join([*lines[:start], row, *lines[end:]])


def _parse(text: str, table: Table, id: str) -> dict[str, Any]:
    """Everything that a file says, with the row by itself; nothing where it cannot be read."""
    try:
        return {**_others(text, table, id), "": _rows(tomllib.loads(text), table, id)}
    except tomllib.TOMLDecodeError:
        return {}


def _rows(said: dict[str, Any], table: Table, id: str) -> list[Any]:
    return [row for row in said.get(table, []) if row.get("id") == id]


def _others(text: str, table: Table, id: str) -> dict[str, Any]:
    """Everything that a file says but the row."""
    said: dict[str, Any] = tomllib.loads(text)
    left = [row for row in said.pop(table, []) if row.get("id") != id]
    return {**said, table: left}


def _table(name: Table, values: Mapping[str, Any]) -> str:
    return "\n".join([f"[[{name}]]", *(f"{key} = {_value(value)}" for key, value in values.items()), ""])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _string(value) if isinstance(value, str) else str(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    """A JSON string is one of TOML, but for the delete character and what no file can hold."""
    sound = text.encode("utf-8", "replace").decode()
    return canonical.encode(sound).decode().replace("\x7f", "\\u007f")
