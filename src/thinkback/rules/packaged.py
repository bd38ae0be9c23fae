"""The data that ships with the package, read file by file on first use and kept."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

import msgspec

from thinkback.model.rule import Endpoint, ModelInfo, Rule, Served
from thinkback.rules.files import RuleFile, read


class Endpoints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``endpoints.toml``. ``families``: which file under ``rules/`` holds the rows of which endpoints."""

    families: dict[str, tuple[str, ...]]
    endpoint: tuple[Endpoint, ...]


def text(path: str) -> str:
    """The text of a data file, by its path under ``data/``."""
    return resources.files("thinkback.rules").joinpath("data", *path.split("/")).read_text("utf-8")


@functools.cache
def endpoints() -> Endpoints:
    """Every endpoint."""
    return read("endpoints.toml", text("endpoints.toml"), Endpoints)


@functools.cache
def family(name: str) -> tuple[Rule, ...]:
    """The rule rows of one file."""
    return read(f"{name}.toml", text(f"rules/{name}.toml"), RuleFile).rule


def rules(endpoint: str) -> tuple[Rule, ...]:
    """The rule rows of one endpoint."""
    for name, members in endpoints().families.items():
        if endpoint in members:
            return tuple(row for row in family(name) if row.endpoint == endpoint)
    return ()


def rule(id: str) -> Rule | None:
    """The rule row with this id, whatever its endpoint; parses only a file that has the id in its text."""
    names = (name for name in endpoints().families if f'"{id}"' in text(f"rules/{name}.toml"))
    return next((row for name in names for row in family(name) if row.id == id), None)


@functools.cache
def models() -> tuple[ModelInfo, ...]:
    """Every model."""
    return read("models.toml", text("models.toml"), RuleFile).model


@functools.cache
def served() -> tuple[Served, ...]:
    """What is known to be served where."""
    return read("served.toml", text("served.toml"), RuleFile).served


@functools.cache
def providers() -> dict[str, str]:
    """What OpenTelemetry's conventions call the provider behind an endpoint, by the endpoint's id."""
    found: dict[str, str] = tomllib.loads(text("telemetry.toml"))["provider"]
    return found
