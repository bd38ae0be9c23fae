"""What a request line asks for. Pure: method and path to a route, or to what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from thinkback.gateway.incoming import Front

Page: TypeAlias = Literal["respond", "models", "model", "health", "ready", "metrics", "openapi", "root"]

GETS = ("GET", "HEAD")
PREFIX = re.compile(r"/(?:v1/v1|v1beta|v1alpha|v1)(?=/)")
CALL = re.compile(r"/models/(?P<model>.+):(?P<call>[A-Za-z]+)")
MODEL = re.compile(r"/models/(?P<model>.+)")
RESPOND: Mapping[str, tuple[Front, bool]] = {
    "/chat/completions": ("openai-chat", False),
    "/responses": ("openai-responses", False),
    "/messages": ("anthropic", False),
    "/messages/count_tokens": ("anthropic", True),
}
"""Path behind the version to the dialect, and whether tokens are counted only."""
CALLS: Mapping[str, bool] = {"generateContent": False, "streamGenerateContent": True}
"""Method of a Gemini model to whether it streams."""
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
    front: Front = "openai-chat"
    methods: tuple[str, ...] = GETS
    model: str = ""
    streams: bool | None = None
    counts_only: bool = False


def find(path: str, headers: Mapping[str, str]) -> Route | None:
    """The route of ``path`` (decoded, without query); ``None`` where there is none. Headers tell dialects apart."""
    path = path.rstrip("/") or "/"
    if path in PAGES:
        return Route(PAGES[path])
    prefix = PREFIX.match(path)
    rest = path[prefix.end() :] if prefix else path
    if rest in RESPOND:
        front, counts_only = RESPOND[rest]
        return Route("respond", front, ("POST",), counts_only=counts_only)
    call = CALL.fullmatch(rest)
    if call and call["call"] in CALLS:
        return Route("respond", "gemini", ("POST",), call["model"], CALLS[call["call"]])
    named = front_of(path, headers)
    if rest == "/models":
        return Route("models", named)
    model = MODEL.fullmatch(rest)
    return Route("model", named, model=model["model"]) if model else None


def front_of(path: str, headers: Mapping[str, str]) -> Front:
    """The dialect of a client that asks for ``path``, OpenAI's where nothing speaks for another."""
    if path.startswith(("/v1beta", "/v1alpha")) or "x-goog-api-key" in headers:
        return "gemini"
    if "anthropic-version" in headers or "/messages" in path:
        return "anthropic"
    return "openai-responses" if path.endswith("/responses") else "openai-chat"
