"""Reads, combines and writes profiles: endpoint, model and settings under a name, as the TOML text of a file.

A profile of kind ``model`` says where requests go; one of kind ``failover`` or ``round-robin`` names such profiles.
A profile holds no keys: ``key_env`` is the name of one. Finding and opening files is the caller's work.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from thinkback.errors import RuleFileError, SettingError
from thinkback.settings.editing import edit
from thinkback.settings.files import parse_settings, read_toml
from thinkback.settings.registry import DEFAULT, ELSEWHERE, Value, ours
from thinkback.settings.values import find, flatten, quote

Kind: TypeAlias = Literal["model", "failover", "round-robin"]

KINDS: tuple[Kind, ...] = get_args(Kind)
PLACE = ("endpoint", "model", "base_url", "key_env")
_FIELDS = ("kind", "targets", *PLACE)
# LLxprt's names for them, for a kind, and for the table that its settings stand in.
_THEIRS = {"provider": "endpoint", "base-url": "base_url", "policy": "kind", "profiles": "targets"}
_POLICIES = {"roundrobin": "round-robin"}
_THEIR_SETTINGS = "ephemeralSettings"
_THEIR_MARKS = ("version", "type")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Profile(msgspec.Struct, frozen=True):
    """What a profile says; what is empty it does not say. ``targets`` are names of profiles, the first one first."""

    kind: Kind = "model"
    endpoint: str = ""
    model: str = ""
    base_url: str = ""
    key_env: str = ""
    targets: tuple[str, ...] = ()
    settings: Mapping[str, Value] = {}


def is_name(name: str) -> bool:
    """Whether a profile may be called so: such a name is a file's name everywhere, and no path."""
    return _NAME.fullmatch(name) is not None and name != DEFAULT


def names_in(text: str) -> tuple[str, ...]:
    """The names in a value of ``session.profile``, in order."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def parse_profile(file: str, text: str) -> Profile:
    """The profile in ``text``; ``RuleFileError`` names the file, the key path or line, and the reason."""
    table = _named(file, read_toml(file, text))
    said = {key: table.pop(key) for key in _FIELDS if key in table}
    for key, raw in table.items():
        if not isinstance(raw, dict) and "." not in key and ours(key) == key and key not in ELSEWHERE:
            close = difflib.get_close_matches(key, _FIELDS, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(_FIELDS)} and tables of settings"
            raise _fault(file, key, f"there is no such key; {hint}")
    settings = parse_settings(file, table)
    for key in settings:
        if "profile" in find(key).refused_in:
            raise _fault(file, key, "it cannot be set in a profile")
    kind = said.get("kind", "model")
    kind = _POLICIES.get(kind, kind) if isinstance(kind, str) else kind
    if kind not in KINDS:
        raise _fault(file, "kind", f"it cannot be {quote(kind)} (allowed: {', '.join(KINDS)})")
    place: dict[str, Any] = {key: _word(file, key, said[key]) for key in PLACE if key in said}
    if kind == "model":
        if "targets" in said:
            raise _fault(file, "targets", f"only a profile of kind {' or '.join(KINDS[1:])} has targets")
        return Profile(kind, **place, settings=settings)
    if place:
        raise _fault(file, next(iter(place)), f"a {kind} profile takes its endpoint and model from its targets")
    return Profile(kind, targets=_targets(file, said.get("targets")), settings=settings)


def _named(file: str, table: dict[str, Any]) -> dict[str, Any]:
    """``table`` with our names in place of another program's, whose marks of a file are left out."""
    if "version" in table:
        table = {key: raw for key, raw in table.items() if key not in _THEIR_MARKS}
    inside = table.pop(_THEIR_SETTINGS) if isinstance(table.get(_THEIR_SETTINGS), dict) else {}
    found: dict[str, Any] = {}
    for key, raw in (*table.items(), *inside.items()):
        name = _THEIRS.get(key, key)
        if name in found:
            raise _fault(file, name, "it is given twice")
        found[name] = raw
    return found


def combine(profiles: Mapping[str, Profile]) -> Profile:
    """The profiles as one: what a later one says wins, and another endpoint or address forgets what was for the old.

    Raises ``SettingError`` for profiles of different kinds.
    """
    whole = Profile()
    for at, (name, profile) in enumerate(profiles.items()):
        if at and profile.kind != whole.kind:
            raise SettingError(
                f"profiles of different kinds cannot be combined: {name} is of kind {profile.kind}, "
                f"{next(iter(profiles))} of kind {whole.kind}",
                details={"profiles": tuple(profiles)},
                next_actions=["load one of them"],
            )
        whole = _over(whole, profile)
    return whole


def render(profile: Profile, over: str = "") -> str:
    """The text of ``profile`` for a file; of the text ``over`` that it takes the place of, comments stay.

    Raises ``RuleFileError`` where ``over`` is not valid TOML.
    """
    old = [name for name, _ in flatten(read_toml("the file that is there", over))]
    kind = {} if profile.kind == "model" else {"kind": profile.kind}
    place = {key: getattr(profile, key) for key in PLACE if getattr(profile, key)}
    targets = {"targets": profile.targets} if profile.targets else {}
    wanted: dict[str, object] = {**kind, **place, **targets, **profile.settings}
    return edit(over, {**dict.fromkeys(old), **wanted})


def _over(base: Profile, profile: Profile) -> Profile:
    said = {key: value for key in (*PLACE, "targets") if (value := getattr(profile, key))}
    moved = ("endpoint" in said and said["endpoint"] != base.endpoint) or "base_url" in said
    if moved:
        said = {"base_url": "", "key_env": "", **said}
    settings = {**base.settings, **profile.settings}
    return msgspec.structs.replace(base, kind=profile.kind, settings=settings, **said)


def _word(file: str, key: str, raw: object) -> str:
    """The text at ``key``. The error does not repeat it: it may be a key that stands in the wrong place."""
    if key == "key_env":
        if isinstance(raw, str) and _VARIABLE.fullmatch(raw):
            return raw
        raise _fault(
            file,
            key,
            "it is the name of an environment variable, and not the key itself",
            "`thinkback keys set NAME` keeps a key under such a name",
        )
    if isinstance(raw, str) and raw and raw.isprintable() and not any(map(str.isspace, raw)):
        return raw
    raise _fault(file, key, "it must be text without spaces")


def _targets(file: str, raw: object) -> tuple[str, ...]:
    names = raw if isinstance(raw, list) else []
    if not names or not all(isinstance(name, str) and is_name(name) for name in names) or len(set(names)) < len(names):
        raise _fault(file, "targets", "it must be a list of the names of profiles, each once, like ['first', 'second']")
    return tuple(names)


def _fault(file: str, key: str, reason: str, *actions: str) -> RuleFileError:
    return RuleFileError(f"{file}: {key}: {reason}", details={"file": file, "key": key}, next_actions=actions)
