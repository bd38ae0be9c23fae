"""Changes a person's TOML text and leaves everything else in it as it is: comments, order, spelling.

Text in, text out; the text must be valid TOML. tomlkit is imported when something is changed, and not before. A table
whose keys stand apart from each other is more than it can change; such a text is written anew, its comments first.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, MutableMapping
from typing import Any

from thinkback.settings.registry import is_group
from thinkback.settings.values import flatten


def edit(text: str, changes: Mapping[str, object]) -> str:
    """``text`` with each key of ``changes`` set, or taken out where it is ``None``; a dotted name is one of a group.

    Values are what TOML knows: texts, numbers, truth values, and tuples of them.
    """
    import tomlkit
    from tomlkit.container import OutOfOrderTableProxy

    document = tomlkit.parse(text)
    if any(isinstance(value, OutOfOrderTableProxy) for value in document.values()):
        comments = [f"{line}\n" for line in text.splitlines() if line.lstrip().startswith("#")]
        document = tomlkit.parse("".join(comments))
        changes = {**dict(flatten(tomllib.loads(text))), **changes}
    left = dict(changes)
    _change(document, "", left)
    for name, value in left.items():
        if value is not None:
            _add(document, name, value)
    return document.as_string()


def _change(table: MutableMapping[str, Any], path: str, left: dict[str, object]) -> None:
    """Change what is there already, wherever it stands; what remains ``left`` is to be added."""
    for part in list(table):
        name = f"{path}{part}"
        if isinstance(table[part], MutableMapping) and is_group(name):
            _change(table[part], f"{name}.", left)
        elif name in left:
            value = left.pop(name)
            if value is None:
                del table[part]
            elif table[part] != _plain(value):
                table[part] = _plain(value)


def _add(document: MutableMapping[str, Any], name: str, value: object) -> None:
    group, _, key = name.partition(".") if "." in name else ("", "", name)
    if group and not isinstance(document.get(group), MutableMapping):  # a value in place of a table is a fault
        import tomlkit

        document[group] = tomlkit.table()
    (document[group] if group else document)[key] = _plain(value)


def _plain(value: object) -> Any:
    return list(value) if isinstance(value, tuple) else value
