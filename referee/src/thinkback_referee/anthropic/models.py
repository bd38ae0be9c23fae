"""What the Models API tells of each model: the types of thinking and the efforts it takes."""

from __future__ import annotations

import re

from ..jsons import JsonObject
from ..transport import Incoming
from ..verdict import Verdict
from .profiles import ADAPTIVE, BETWEEN, DISABLED, EFFORTS, MANUAL, Host, Profile, models_of, profile_for
from .refusals import unknown_model

_PATH = re.compile(r"(?:/v1)?/models(?:/(?P<model>[^/]+))?")
_CREATED = "2026-01-01T00:00:00Z"


def listing(host: Host, path: str, incoming: Incoming) -> Verdict | None:
    """All models of a host, or the one that the path names; None where the request asks for no model."""
    found = _PATH.fullmatch(path)
    if incoming.method != "GET" or found is None:
        return None
    named = found["model"]
    if named is None:
        listed = [_described(name, row) for name in models_of(host) if (row := profile_for(host, name))]
        ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]}
        return Verdict(200, {"data": listed, "has_more": False, **ends})
    profile = profile_for(host, named)
    return unknown_model(named) if profile is None else Verdict(200, _described(named, profile))


def _described(name: str, profile: Profile) -> JsonObject:
    types = {kind: _supported(kind in profile.types) for kind in _TYPES}
    efforts = {level: _supported(level in profile.efforts) for level in EFFORTS}
    thinking = {**_supported(True), "types": types}
    effort = {**_supported(bool(profile.efforts)), **efforts}
    capabilities = {"thinking": thinking, "effort": effort}
    return {"type": "model", "id": name, "display_name": name, "created_at": _CREATED, "capabilities": capabilities}


def _supported(value: bool) -> JsonObject:
    return {"supported": value}


_TYPES = (MANUAL, ADAPTIVE, DISABLED, BETWEEN)
