"""Reads rule files: TOML text to typed rows, and refuses what is malformed with file, key path or line, and reason.

A rule row may be ``like`` another one: it takes over the keys that it does not have itself, before anything else is
looked at, so that whoever reads the typed rows need not know of it.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from thinkback.errors import RuleFileError, SettingError
from thinkback.model.rule import Auth, Endpoint, Forbidden, Guard, ModelInfo, Overhead, Rule, Served
from thinkback.rules.urls import normalise_url

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
DISPLAYS = ("auto", "summarized", "updates", "omitted")
WORDS = {
    "effort": EFFORTS,
    "effort_budgets": EFFORTS,
    "display": DISPLAYS,
    "display_with_tools": DISPLAYS,
    "display_headers": DISPLAYS,
    "verbosity": ("low", "medium", "high"),
}
"""The neutral words that the tables of ``controls`` have as keys."""
PATTERN = frozenset("*?[")
"""What makes a pattern of a name."""
NEVER_TAKEN = frozenset({"id", "model", "since", "source", "unconfirmed", "omits", "adds"})
"""What a row says about itself alone, so that ``like`` leaves it out."""


class RuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file may hold: any number of each kind of row."""

    endpoint: tuple[Endpoint, ...] = ()
    rule: tuple[Rule, ...] = ()
    model: tuple[ModelInfo, ...] = ()
    served: tuple[Served, ...] = ()


class _Link(msgspec.Struct, frozen=True):
    """What of a rule row says who is like whom."""

    id: str = ""
    like: str = ""


class _Links(msgspec.Struct, frozen=True):
    rule: tuple[_Link, ...] = ()


Shape = TypeVar("Shape", bound=msgspec.Struct)
Row = TypeVar("Row", Endpoint, Rule, ModelInfo, Served)
Table: TypeAlias = dict[str, Any]
Elsewhere: TypeAlias = Callable[[str], Rule | None]
Fault = tuple[str, str]


def read(name: str, text: str, shape: type[Shape], elsewhere: Elsewhere = lambda id: None) -> Shape:
    """``text`` as ``shape``; ``name`` is what the file is called in errors.

    ``elsewhere`` finds the rows of other files that a rule row may be ``like``.
    """
    try:
        table = tomllib.loads(text)
    # besides its own error tomllib lets through what int() and the interpreter say to endless numbers and nesting
    except (ValueError, RecursionError) as error:
        line = _line(str(error), text)
        where = f"line {line}: " if line else ""
        raise RuleFileError(
            f"{name}: {where}not valid TOML: {error}",
            details={"file": name, "line": line},
            next_actions=(_correct(name),),
        ) from error
    try:
        links = msgspec.convert(table, _Links).rule
        if links:
            table["rule"] = _filled_in(name, table["rule"], links, elsewhere)
        return msgspec.convert(table, shape)
    except msgspec.ValidationError as error:
        raise malformed(name, *_translate(str(error))) from error


def check(name: str, file: RuleFile) -> None:
    """Refuse rows of ``file`` that have the right types and still make no sense."""
    _check_rows(name, "endpoint", file.endpoint, _endpoint_faults)
    _check_rows(name, "rule", file.rule, _rule_faults)
    _check_rows(name, "model", file.model, _model_faults)
    _check_rows(name, "served", file.served, _served_faults)


def check_duplicates(files: Mapping[str, RuleFile]) -> None:
    """Refuse a row that is given twice: one of the two would be ignored."""
    seen: dict[tuple[str, ...], str] = {}
    for name, file in files.items():
        keys = (
            *((("endpoint", row.id), f"endpoint[{at}].id") for at, row in enumerate(file.endpoint)),
            *((("rule", row.id), f"rule[{at}].id") for at, row in enumerate(file.rule)),
            *((("model", row.endpoint, row.model, row.since), f"model[{at}]") for at, row in enumerate(file.model)),
        )
        for what, key in keys:
            if what in seen:
                raise malformed(name, key, f"{' '.join(what).strip()} is given twice, first in {seen[what]}")
            seen[what] = f"{name}, {key}"


def malformed(name: str, key: str, reason: str) -> RuleFileError:
    """The error for a file that is refused because of what stands at ``key``."""
    where = f"{key}: " if key else ""
    return RuleFileError(
        f"{name}: {where}{reason}",
        details={"file": name, "key": key, "reason": reason},
        next_actions=(_correct(name),),
    )


def _correct(name: str) -> str:
    return f"correct {name}, or move it away; docs/rules.md says what a row may hold"


def is_date(text: str) -> bool:
    """Whether ``text`` is a calendar day written YYYY-MM-DD."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _filled_in(name: str, rows: list[Table], links: tuple[_Link, ...], elsewhere: Elsewhere) -> list[Table]:
    """``rows`` with what each takes over from the row it is like, and that one from the next."""
    own = {link.id: at for at, link in enumerate(links)}
    return [_follow(name, at, rows, own, elsewhere) for at in range(len(rows))]


def _follow(name: str, at: int, rows: list[Table], own: dict[str, int], elsewhere: Elsewhere) -> Table:
    """Row ``at`` with every key it lacks, along the chain of rows that it leads to.

    Rows of the same file come first; a row is never like itself, so that one that replaces a row of another file may
    be like the row it replaces.
    """
    row, passed = dict(rows[at]), [at]
    while (like := row.pop("like", None)) is not None:
        key, found = f"rule[{passed[-1]}].like", own.get(like)
        if found is None or found == passed[-1]:
            other = elsewhere(like)
            if other is None:
                raise malformed(name, key, f"no {'' if found is None else 'other '}rule has the id {like!r}")
            return _taken(msgspec.to_builtins(other)) | row
        if found in passed:
            raise malformed(name, key, f"{like!r} is like this row already, directly or by way of others")
        passed.append(found)
        row = _taken(rows[found]) | row
    return row


def _taken(row: Table) -> Table:
    return {key: value for key, value in row.items() if key not in NEVER_TAKEN}


def _line(reason: str, text: str) -> int:
    """The line a TOML error is about, counted from 1; 0 where the parser does not say."""
    if reason.endswith("(at end of document)"):
        return text.rstrip().count("\n") + 1
    said = re.search(r"\(at line (\d+), column \d+\)$", reason)
    return int(said[1]) if said else 0


def _translate(message: str) -> Fault:
    """A converter's message as key path and reason: ``... - at `$.rule[3].since` `` is about ``rule[3].since``."""
    reason, _, at = message.partition(" - at `$")
    path = at.rstrip("`").removeprefix(".")
    named = re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", reason, re.DOTALL)
    if named:
        key = f"{path}.{named[2]}" if path else named[2]
        return key, "is required" if named[1] == "missing required" else "is not a key of this table"
    if reason.startswith("Invalid enum value"):
        reason += f", allowed: {', '.join(_allowed(path))}"
    return path, reason


def _allowed(path: str) -> list[str]:
    """The words allowed at ``path``, from the types of the rows."""
    words: dict[str, list[str]] = {}
    for struct in (Auth, Rule, Guard, Forbidden):
        for field in msgspec.inspect.type_info(struct).fields:  # type: ignore[attr-defined]
            kind = getattr(field.type, "item_type", field.type)
            if isinstance(kind, msgspec.inspect.LiteralType):
                words[field.name] = [str(value) for value in kind.values]
    return words[re.sub(r"\[[^]]*\]", "", path).rpartition(".")[2]]


def _check_rows(name: str, table: str, rows: tuple[Row, ...], faults: Callable[[Row], Iterator[Fault]]) -> None:
    for at, row in enumerate(rows):
        for key, reason in faults(row):
            raise malformed(name, f"{table}[{at}].{key}", reason)


def _endpoint_faults(row: Endpoint) -> Iterator[Fault]:
    if not row.id or row.id == "*":
        yield "id", "an endpoint needs a name of its own"
    if not row.source:
        yield "source", "say where the facts of this row come from"
    if row.base_url:
        try:
            normalise_url(row.base_url)
        except SettingError as error:
            yield "base_url", error.message


def _rule_faults(row: Rule) -> Iterator[Fault]:
    if not row.id:
        yield "id", "a rule needs a name of its own"
    if not row.source:
        yield "source", "say where the facts of this row come from"
    if not is_date(row.since):
        yield "since", f"{row.since!r} is not a date (YYYY-MM-DD)"
    if not row.model or not all(row.model):
        yield "model", "name at least one model, or leave it out for every model"
    if row.endpoint == "*" and "*" in row.model:
        yield "model", "a rule for every endpoint must name its models"
    if row.form == "none" and {row.open_turn, row.later} != {"never"}:
        yield "form", 'form "none" sends nothing, so open_turn and later can only be "never"'
    if not row.placeholder and (row.placeholder_on != "never" or "placeholder" in row.missing):
        yield "placeholder", "the text that stands in is empty"
    if "dummy" in row.missing and not row.dummy:
        yield "dummy", "missing names a dummy, but there is none"
    if "thinking-off-for-this-turn" in row.missing and not row.thinking_off:
        yield "thinking_off", "missing names thinking-off-for-this-turn, but no parameters say it"
    if row.limit_param and not row.limit:
        yield "limit", "limit_param names an output limit, but no value is given for it"
    for table, words in WORDS.items():
        for word in getattr(row.controls, table):
            if word not in words:
                what = "an effort word" if words is EFFORTS else "a word of this table"
                yield f"controls.{table}.{word}", f"not {what}, allowed: {', '.join(words)}"
    for at, refused in enumerate(row.forbids):
        if not refused.path or not refused.reason:
            yield f"forbids[{at}]", "say what is refused, and why"
    for key, text in row.unconfirmed.items():
        if not text or key.partition(".")[0] not in Rule.__struct_fields__:
            yield f"unconfirmed.{key}", "name a key of the row, and say what nobody has confirmed of it"
    for at, pattern in enumerate(row.refusals):
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"refusals[{at}]", f"not a regular expression: {error}"
    for key, differences in (("omits", row.omits), ("adds", row.adds)):
        for at, difference in enumerate(differences):
            if not difference.source:
                yield f"{key}[{at}].source", "say where the difference is known from"


def _model_faults(row: ModelInfo) -> Iterator[Fault]:
    if not row.model:
        yield "model", "name the model"
    if not row.source:
        yield "source", "say where the facts of this row come from"
    if row.since and not is_date(row.since):
        yield "since", f"{row.since!r} is not a date (YYYY-MM-DD)"
    for key, value in (("context", row.context), ("max_output", row.max_output)):
        if value < 0:
            yield key, "cannot be negative; 0 means unknown"
    for key in Overhead.__struct_fields__:
        if getattr(row.overhead, key) < 0:
            yield f"overhead.{key}", "cannot be negative; 0 means unknown"
    for at, word in enumerate(row.efforts):
        if word not in EFFORTS:
            yield f"efforts[{at}]", f"not an effort word, allowed: {', '.join(EFFORTS)}"


def _served_faults(row: Served) -> Iterator[Fault]:
    if not row.source:
        yield "source", "say where the facts of this row come from"
    if not is_date(row.since):
        yield "since", f"{row.since!r} is not a date (YYYY-MM-DD)"
    for at, model in enumerate(row.models):
        if not model or not PATTERN.isdisjoint(model):
            yield f"models[{at}]", "write the name of one model: a pattern names none"
