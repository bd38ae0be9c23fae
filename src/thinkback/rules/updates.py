"""Rule updates: dated files of rows that lie between the package's data and a person's own files.

Promises: a file is checked whole, and refused whole, before it is kept. One that was kept never makes rows of the
package older: a row that the package has newer is left out, and so is one that a later version has no endpoint for.
Must not: say where requests or keys go; an update has no endpoints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec

from thinkback.errors import RuleFileError
from thinkback.model.rule import ModelInfo, Rule, Served
from thinkback.rules import packaged
from thinkback.rules.files import RuleFile, check, check_duplicates, is_date, malformed, read

ANY = "*"
MOST_BYTES = 256 * 1024
MOST_ROWS = 500
_MARK = " [rule update of "
_HEADER = {"endpoint": "an update says no endpoints: where requests and keys go stands in your own rule files alone"}
_REPEATED_GROUP = re.compile(r"\)[*+{]")
Row = TypeVar("Row", Rule, ModelInfo)


class RuleUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an update may hold: the day on which it was written, where it comes from, and rows."""

    date: str
    source: str
    rule: tuple[Rule, ...] = ()
    model: tuple[ModelInfo, ...] = ()
    served: tuple[Served, ...] = ()


class InForce(NamedTuple):
    """One update as it holds: how many of its rows do, and of each other one, why it does not."""

    name: str
    date: str
    source: str
    rows: int
    left_out: tuple[str, ...]


class Layer(NamedTuple):
    """The rows of all updates that hold, the newest of each."""

    rules: Mapping[str, Rule] = MappingProxyType({})
    models: tuple[ModelInfo, ...] = ()
    served: tuple[Served, ...] = ()
    updates: tuple[InForce, ...] = ()

    def rule(self, id: str) -> Rule | None:
        """The row with this id, of an update or of the package."""
        return self.rules.get(id) or packaged.rule(id)


def checked(name: str, text: str, below: Layer, endpoints: Iterable[str], today: str) -> RuleUpdate:
    """The update in ``text``, which may be kept on top of ``below``; ``endpoints`` are the ids that rows may name.

    Raises ``RuleFileError`` with file, line and reason for one that is malformed, too large, dated after ``today``, or
    that would be worse than useless.
    """
    if len(text.encode()) > MOST_BYTES:
        raise malformed(name, "", f"an update has at most {MOST_BYTES // 1024} KiB")
    try:
        update = _read(name, text, below)
        for key, reason in _faults(update, {*endpoints, ANY}, today):
            raise malformed(name, key, reason)
        return update
    except RuleFileError as error:
        raise _with_line(error, text) from error


def _faults(update: RuleUpdate, endpoints: set[str], today: str) -> Iterable[tuple[str, str]]:
    if not is_date(update.date) or update.date > today:
        yield "date", f"{update.date!r} is not a date (YYYY-MM-DD) that has come"
    if not update.source.strip():
        yield "source", "say where the update comes from"
    if not 0 < len(update.rule) + len(update.model) + len(update.served) <= MOST_ROWS:
        yield "", f"an update has between one and {MOST_ROWS} rows"
    named = (
        *((f"rule[{at}]", (row.endpoint,), row.since) for at, row in enumerate(update.rule)),
        *((f"model[{at}]", (row.endpoint,), row.since) for at, row in enumerate(update.model)),
        *((f"served[{at}]", row.endpoint, row.since) for at, row in enumerate(update.served)),
    )
    for key, ids, since in named:
        if not since or since > update.date:
            yield f"{key}.since", f"{since!r} is not a day up to the update's own, {update.date}"
        for id in ids:
            if id not in endpoints:
                yield f"{key}.endpoint", f"no endpoint has the id {id!r}"
    for at, rule in enumerate(update.rule):
        for number, pattern in enumerate(rule.refusals):
            if _REPEATED_GROUP.search(pattern):
                yield f"rule[{at}].refusals[{number}]", "a group that is repeated may match for ever"


def stacked(files: Mapping[str, str], endpoints: Callable[[], Iterable[str]]) -> Layer:
    """The updates in ``files``, name to text, oldest first. Raises ``RuleFileError`` where one is not understood."""
    layer = Layer()
    known = {*endpoints(), ANY} if files else set()
    for name, text in files.items():
        try:
            layer = laid(layer, name, _read(name, text, layer), known)
        except RuleFileError as error:
            error.next_actions = ("`thinkback rules undo` takes the last update back",)
            raise
    return layer


def laid(below: Layer, name: str, update: RuleUpdate, known: set[str]) -> Layer:
    """``below`` with the rows of ``update`` that hold."""
    left_out: list[str] = []

    def holds(what: str, since: str, there: str, endpoints: Iterable[str]) -> bool:
        if there > since:
            left_out.append(f"{what} is of {since}, and the row that is there of {there}")
        elif not known.issuperset(endpoints):
            left_out.append(f"{what} is for {', '.join(endpoints)}, which this version does not have")
        else:
            return True
        return False

    def since_of(id: str) -> str:
        there = below.rule(id)
        return there.since if there is not None else ""

    def newest(row: ModelInfo) -> str:
        rows = (*below.models, *packaged.models())
        return max((one.since for one in rows if _about(one) == _about(row)), default="")

    origin = f"{_MARK}{update.date}: {update.source}]"
    rules = [row for row in update.rule if holds(f"rule {row.id}", row.since, since_of(row.id), (row.endpoint,))]
    models = [row for row in update.model if holds(f"model {row.model}", row.since, newest(row), (row.endpoint,))]
    served = [row for row in update.served if holds("a list of models", row.since, "", row.endpoint)]
    replaced = {_about(row) for row in models}
    return Layer(
        {**below.rules, **{row.id: _from(row, origin) for row in rules}},
        (*(row for row in below.models if _about(row) not in replaced), *(_from(row, origin) for row in models)),
        (*served, *below.served),
        (
            *below.updates,
            InForce(name, update.date, update.source, len(rules) + len(models) + len(served), tuple(left_out)),
        ),
    )


def beside(rules: Iterable[Rule], own: Iterable[Rule]) -> tuple[Rule, ...]:
    """``rules`` of updates without those that a person has, and without the patterns a person has a row for."""
    own = tuple(own)
    ids = {row.id for row in own}
    taken = {(row.endpoint, row.dialect, pattern) for row in own for pattern in row.model}
    left = (
        msgspec.structs.replace(row, model=models)
        for row in rules
        if row.id not in ids
        and (models := tuple(one for one in row.model if (row.endpoint, row.dialect, one) not in taken))
    )
    return tuple(left)


def origin(source: str) -> tuple[str, str]:
    """The source that a row was written with, and the update that it comes from, empty for any other row."""
    own, _, update = source.partition(_MARK)
    return own, update.removesuffix("]")


def _read(name: str, text: str, below: Layer) -> RuleUpdate:
    try:
        update = read(name, text, RuleUpdate, below.rule)
    except RuleFileError as error:
        reason = _HEADER.get(str(error.details.get("key")))
        raise malformed(name, "endpoint", reason) if reason else error from None
    file = RuleFile(rule=update.rule, model=update.model, served=update.served)
    check(name, file)
    check_duplicates({name: file})
    return update


def _from(row: Row, origin: str) -> Row:
    return msgspec.structs.replace(row, source=row.source + origin)


def _about(row: ModelInfo) -> tuple[str, str]:
    return row.endpoint, row.model


def _with_line(error: RuleFileError, text: str) -> RuleFileError:
    """``error`` with the line of ``text`` on which the row that it names begins, or its key stands."""
    key, name = str(error.details.get("key", "")), error.details.get("file")
    said = re.match(r"(\w+)\[(\d+)\]", key)
    begins = rf"^\s*\[\[\s*{said[1]}\s*\]\]" if said else rf"^\s*\[*{re.escape(key)}\b"
    found = [match.end() for match in re.finditer(begins, text, re.MULTILINE)] if key else []
    at = int(said[2]) if said else 0
    if at >= len(found):
        return error
    line = text.count("\n", 0, found[at]) + 1
    reason = error.details["reason"]
    return RuleFileError(
        f"{name}: line {line}: {key}: {reason}",
        details={**error.details, "line": line},
        next_actions=error.next_actions,
    )
