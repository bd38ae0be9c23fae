"""What a request line asks for. Pure: method and path to a route, or to what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from thinkback.wire.registry import CHAT, FRONTS, front

Page: TypeAlias = Literal["respond", "models", "model", "health", "ready", "metrics", "openapi", "root"]

GETS = ("GET", "HEAD")
PREFIX = re.compile(r"/(?:v1/v1|v1beta/openai/v1|v1beta/openai|openai/v1|openai|v1beta|v1alpha|v1)(?=/)")
DEPLOYMENT = re.compile(r"/openai/deployments/(?P<model>.+)(?P<rest>/chat/completions)")
CALL = re.compile(r"/models/(?P<model>.+):(?P<call>[A-Za-z]+)")
MODEL = re.compile(r"/models/(?P<model>.+)")
UNSERVED: Mapping[str, str] = {
    "/interactions": "the Interactions API is not served here: send POST /v1beta/models/MODEL:generateContent",
}
"""Paths of a provider that clients may ask for, and what to send instead."""
PAGES: Mapping[str, Page] = {
    "/": "root",
    "/healthz": "health",
    "/readyz": "ready",
    "/metrics": "metrics",
    "/openapi.json": "openapi",
}


class Route(NamedTuple):
    """A page, its methods, and the dialect that errors on it are told in."""

    page: Page
    front: str = CHAT
    methods: tuple[str, ...] = GETS
    model: str = ""
    streams: bool | None = None
    counts_only: bool = False


def find(path: str, headers: Mapping[str, str]) -> Route | None:
    """The route of ``path`` (decoded, without query); ``None`` where there is none. Headers tell dialects apart."""
    path = path.rstrip("/") or "/"
    if path in PAGES:
        return Route(PAGES[path])
    deployment = DEPLOYMENT.fullmatch(path)
    rest = deployment["rest"] if deployment else _unversioned(path)
    model_of = deployment["model"] if deployment else ""
    call = CALL.fullmatch(rest)
    for name in FRONTS:
        address = front(name).address
        if rest in address.paths:
            return Route("respond", name, ("POST",), model_of, counts_only=address.paths[rest])
        if call and call["call"] in address.calls:
            return Route("respond", name, ("POST",), call["model"], address.calls[call["call"]])
        if call and call["call"] == address.counting:
            return Route("respond", name, ("POST",), call["model"], streams=False, counts_only=True)
    named = front_of(path, headers)
    if rest == "/models":
        return Route("models", named)
    model = MODEL.fullmatch(rest)
    return Route("model", named, model=model["model"]) if model else None


def why_not(path: str) -> str:
    """The reason for which there is nothing at ``path``."""
    rest = _unversioned(path)
    unserved = (why for begin, why in UNSERVED.items() if rest == begin or rest.startswith(f"{begin}/"))
    return next(unserved, f"no resource exists at {path[:200]}")


def _unversioned(path: str) -> str:
    prefix = PREFIX.match(path)
    return path[prefix.end() :] if prefix else path


def front_of(path: str, headers: Mapping[str, str]) -> str:
    """The dialect of a client that asks for ``path``: the last front that claims it; the first claims every path."""
    claims = ((name, front(name).address) for name in reversed(FRONTS))
    return next(name for name, address in claims if address.header in headers or address.marks.search(path))
