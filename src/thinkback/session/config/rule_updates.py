"""Rule updates on the user's machine: a file is read and checked, compared, kept, and the last one is taken back.

Each is kept as it came, under a number, in ``rules/updates`` of the configuration directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from thinkback.errors import NotFoundError, RuleFileError
from thinkback.model.rule import ModelInfo, Rule
from thinkback.rules import Rulebook, packaged
from thinkback.rules.book import endpoint_ids, with_layer
from thinkback.rules.updates import ANY, MOST_BYTES, InForce, Layer, RuleUpdate, checked, laid, origin, stacked
from thinkback.session import config

_MOST = 100


class Changed(NamedTuple):
    """A row of an update: ``fields`` are the keys that differ from the row below, with old and new value.

    A row that is new has none.
    """

    kind: str
    name: str
    endpoint: str
    is_new: bool
    fields: tuple[tuple[str, object, object], ...]


class Prepared(NamedTuple):
    """An update that may be kept: its text, how its rows would hold, what they change, the rules before and after."""

    text: str
    holds: InForce
    changes: tuple[Changed, ...]
    before: Rulebook
    after: Rulebook


def prepare(path: Path) -> Prepared:
    """Read and check the file at ``path``. Raises ``NotFoundError``, and ``RuleFileError`` with line and reason."""
    text = _text(path)
    own, kept = config.user_rule_files(), config.rule_update_files()
    if len(kept) >= _MOST:
        raise RuleFileError(f"{_MOST} updates are kept", next_actions=("`thinkback rules undo` takes the last back",))
    ids = endpoint_ids()
    below = stacked(kept, lambda: ids)
    update = checked(str(path), text, below, ids, config.today())
    layer = laid(below, str(path), update, {*ids, ANY})
    changes = tuple(_changes(update, below, layer))
    return Prepared(text, layer.updates[-1], changes, with_layer(own, below), with_layer(own, layer))


def keep(text: str) -> Path:
    """Lay a checked update on those that are kept; its file is there whole or not at all."""
    last = max((int(Path(name).stem) for name in config.rule_update_files()), default=0)
    path = _directory() / f"{last + 1:04}.toml"
    config.write_file(path, text)
    return path


def in_force() -> tuple[InForce, ...]:
    """The updates that are kept, the oldest first, with the rows that do not hold. Raises ``RuleFileError``."""
    return stacked(config.rule_update_files(), endpoint_ids).updates


def undo() -> Path:
    """Take back the update that was kept last, whatever its file says. Raises ``NotFoundError``."""
    names = list(config.rule_update_files())
    if not names:
        raise NotFoundError("no rule update is in force")
    last = Path(names[-1])
    last.unlink()
    return last


def _directory() -> Path:
    return config.config_dir() / "rules" / "updates"


def _text(path: Path) -> str:
    if not path.exists():
        raise NotFoundError(f"there is no file {path}")
    if not path.is_file():
        raise RuleFileError(f"{path} is no file", details={"file": str(path)})
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if len(data) > MOST_BYTES:
            return " " * len(data)  # cut inside a letter: refused for its size
        line = data.count(b"\n", 0, error.start) + 1
        raise RuleFileError(
            f"{path}: line {line}: it is not UTF-8", details={"file": str(path), "line": line}
        ) from None


def _changes(update: RuleUpdate, below: Layer, layer: Layer) -> Iterator[Changed]:
    """What the rows that hold change."""
    for row in update.rule:
        if layer.rules.get(row.id) is not below.rules.get(row.id):
            yield _compared("rule", row.id, below.rule(row.id), row)
    known = (*below.models, *packaged.models())
    kept = {(info.endpoint, info.model, info.since) for info in layer.models if info not in below.models}
    for info in update.model:
        if (info.endpoint, info.model, info.since) in kept:
            rows = (one for one in known if (one.endpoint, one.model) == (info.endpoint, info.model))
            yield _compared("model", info.model, next(rows, None), info)
    there = (*below.served, *packaged.served())
    for served in (row for row in update.served if row in layer.served and row not in there):
        yield Changed("served", ", ".join(served.models), ", ".join(served.endpoint), True, ())


def _compared(kind: str, name: str, old: Rule | ModelInfo | None, new: Rule | ModelInfo) -> Changed:
    if old is None:
        return Changed(kind, name, new.endpoint, True, ())
    was = {**msgspec.structs.asdict(old), "source": origin(old.source)[0]}
    fields = tuple((key, was[key], value) for key, value in msgspec.structs.asdict(new).items() if was[key] != value)
    return Changed(kind, name, new.endpoint, False, fields)
