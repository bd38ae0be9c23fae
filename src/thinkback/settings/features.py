"""What an app may ask for besides settings, and what endpoints and models refuse together with it: packaged data.

Nothing here decides by the name of a vendor: rows of ``data/features.toml`` say what goes with what.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from importlib import resources
from typing import Any

import msgspec

from thinkback.model.target import model_matches

TOOLS = "tools"
"""Stands among features for an app that has tools of its own."""


class OwnTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool that ``endpoints`` run themselves, in their own words."""

    endpoints: tuple[str, ...]
    tool: dict[str, Any]
    source: str


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One feature. ``tools``: the providers' own tools that it stands for, where it stands for any."""

    name: str
    help: str
    tools: tuple[OwnTool, ...] = ()


class Effort(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The effort of apps whose first model is one of ``models`` and whose author says none."""

    effort: str
    models: tuple[str, ...]
    source: str


class Constraint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of ``features`` together are refused by ``endpoints`` and ``models`` at ``efforts``; empty means any.

    ``advice`` says what to take in its place.
    """

    features: tuple[str, ...]
    reason: str
    advice: str
    since: str
    source: str
    endpoints: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()

    def holds(self, asked: Collection[str], endpoint: str, model: str, effort: str) -> bool:
        """Whether a request with these features is refused; an unknown endpoint or model is not taken for one."""
        return (
            set(self.features) <= set(asked)
            and (not self.endpoints or endpoint in self.endpoints)
            and (not self.models or model_matches(model, self.models))
            and (not self.efforts or effort in self.efforts)
        )


class FeatureFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``data/features.toml``."""

    feature: tuple[Feature, ...]
    effort: tuple[Effort, ...]
    constraint: tuple[Constraint, ...]


@functools.cache
def packaged() -> FeatureFile:
    """The rows that ship with the package, read on first use and kept."""
    text = resources.files("thinkback.settings").joinpath("data", "features.toml").read_text("utf-8")
    return msgspec.toml.decode(text, type=FeatureFile)


def violated(asked: Collection[str], endpoint: str, model: str, effort: str) -> list[Constraint]:
    """The constraints that a request with these features goes against."""
    return [row for row in packaged().constraint if row.holds(asked, endpoint, model, effort)]


def usual_effort(model: str) -> str:
    """The effort of an app whose first model is ``model`` and whose author says none; empty for the provider's."""
    return next((row.effort for row in packaged().effort if model_matches(model, row.models)), "")
