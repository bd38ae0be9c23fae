"""The data that ships with the package: a file by each host's name, the facts about models, names for telemetry.

A file is cut into its tables, and only the tables that are asked for are parsed, with those that they are ``like``:
a program that talks to one host need not wait for the rows of all the others.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Literal, NamedTuple

import msgspec

from thinkback.model.rule import Endpoint, ModelInfo, Overhead, Rule, Served
from thinkback.rules.files import RuleFile, read

_MODELS = "models.toml"
_TELEMETRY = "telemetry.toml"
_LIMITS = "limits.toml"
_OVERHEADS = "overheads.toml"
BESIDES = frozenset({_MODELS, _TELEMETRY, _LIMITS, _OVERHEADS})
"""The files that are no host's."""
_TABLE = re.compile(r"^\[\[(endpoint|rule|served)\]\]\n", re.MULTILINE)
_NAMED = re.compile(r'^(id|like|endpoint) = "([^"\n]*)"$', re.MULTILINE)


class Limit(NamedTuple):
    """The tokens that a request may have, since when that is known, and from where."""

    tokens: int
    since: str
    source: str


class _Rules(NamedTuple):
    """The rule tables as text by id, and what each says of where it stands and which one it is ``like``."""

    texts: dict[str, str]
    endpoints: dict[str, str]
    like: dict[str, str]


@functools.cache
def texts() -> dict[str, str]:
    """The text of each file, by its name."""
    found = resources.files("thinkback.rules").joinpath("data").iterdir()
    return {each.name: each.read_text("utf-8") for each in sorted(found, key=lambda each: each.name)}


@functools.cache
def tables() -> dict[str, list[str]]:
    """The tables of all hosts as text, by kind, in the order of the files."""
    found: dict[str, list[str]] = {"endpoint": [], "rule": [], "served": []}
    for name, text in texts().items():
        if name not in BESIDES:
            _, *parts = _TABLE.split(text)
            for kind, body in zip(parts[::2], parts[1::2], strict=True):
                found[kind].append(f"[[{kind}]]\n{body}")
    return found


@functools.cache
def endpoints() -> tuple[Endpoint, ...]:
    """Every endpoint."""
    return _parsed("endpoint").endpoint


@functools.cache
def rules(endpoint: str) -> tuple[Rule, ...]:
    """The rule rows of one endpoint."""
    known = _rules()
    return _with_likes(id for id in known.texts if _endpoint_of(id) == endpoint)


@functools.cache
def rule(id: str) -> Rule | None:
    """The rule row with this id, whatever its endpoint."""
    return _with_likes([id])[0] if id in _rules().texts else None


@functools.cache
def models() -> tuple[ModelInfo, ...]:
    """Every model."""
    return read(_MODELS, texts()[_MODELS], RuleFile).model


@functools.cache
def limits(endpoint: str) -> Mapping[str, Limit]:
    """How many tokens a request to each model at ``endpoint`` may have, by the model's name in lower case.

    From a catalogue, below every row of ``models``. Only this endpoint's table is parsed.
    """
    for table in texts()[_LIMITS].split("\n[[limit]]\n")[1:]:
        head, _, models = table.partition("\n[limit.models]\n")
        said = tomllib.loads(head)
        if endpoint in said["endpoint"]:
            rows: dict[str, list[str]] = tomllib.loads(models)
            return {
                name.lower(): Limit(int(tokens), said["since"], said["source"])
                for tokens, names in rows.items()
                for name in names
            }
    return {}


@functools.cache
def overheads() -> tuple[tuple[tuple[str, ...], Overhead], ...]:
    """The tokens that chat templates add to requests, by patterns of models' names. The first that fits holds."""
    rows = tomllib.loads(texts()[_OVERHEADS])["overhead"]
    return tuple((tuple(row["model"]), msgspec.convert(row["tokens"], Overhead)) for row in rows)


@functools.cache
def served() -> tuple[Served, ...]:
    """What is known to be served where."""
    return _parsed("served").served


@functools.cache
def providers() -> dict[str, str]:
    """What OpenTelemetry's conventions call the provider behind an endpoint, by the endpoint's id."""
    found: dict[str, str] = tomllib.loads(texts()[_TELEMETRY])["provider"]
    return found


def _parsed(kind: Literal["endpoint", "served"]) -> RuleFile:
    return read(f"{kind} tables", "".join(tables()[kind]), RuleFile)


@functools.cache
def _rules() -> _Rules:
    found = _Rules({}, {}, {})
    for table in tables()["rule"]:
        said = dict(_NAMED.findall(table))
        id = said["id"]
        found.texts[id] = table
        found.endpoints[id], found.like[id] = said.get("endpoint", ""), said.get("like", "")
    return found


def _endpoint_of(id: str) -> str:
    known = _rules()
    while not known.endpoints[id]:
        id = known.like[id]
    return known.endpoints[id]


def _with_likes(ids: Iterable[str]) -> tuple[Rule, ...]:
    """The rows with these ids; those that they are like are parsed with them."""
    wanted = dict.fromkeys(ids)
    needed = dict(wanted)
    known = _rules()
    for id in wanted:
        while id := known.like[id]:
            needed[id] = None
    rows = read("rule tables", "".join(known.texts[id] for id in needed), RuleFile).rule
    return rows[: len(wanted)]
