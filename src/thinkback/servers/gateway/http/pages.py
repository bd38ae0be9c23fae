"""What the gateway says of itself: its models in each dialect, its health, its description."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import msgspec

from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.http.answers import Answer
from thinkback.servers.gateway.http.backend import Health
from thinkback.wire import registry
from thinkback.wire.front import Listed


def json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """``value`` as a document."""
    return Answer(status, {"content-type": "application/json", **(headers or {})}, msgspec.json.encode(value))


def text(said: str, kind: str = "text/plain; charset=utf-8") -> Answer:
    """``said`` as it is."""
    return Answer(200, {"content-type": kind}, said.encode())


def ready(health: Health, *, draining: bool) -> Answer:
    """Whether requests should be sent here; says what is degraded even where they should."""
    parts = {**health.parts, **({"server": "draining"} if draining else {})}
    fine = health.ready and not draining
    headers = {} if fine else {"retry-after": "1"}
    return json({"ready": fine, "parts": parts}, 200 if fine else 503, headers)


def models(front: str, listed: Sequence[Listed]) -> Answer:
    """All models, as clients of the dialect expect them."""
    return json(registry.front(front).list_models(listed))


def model(front: str, listed: Sequence[Listed], id: str) -> Answer:
    """One of them. Raises ``Refused``."""
    for each in listed:
        if each.id == id:
            return json(registry.front(front).show_model(each))
    raise Refused(404, "model_not_found", "there is no model of this name")


@functools.cache
def openapi() -> Answer:
    """The description of all paths."""
    from thinkback.servers.gateway.http.openapi import DESCRIPTION

    return json(DESCRIPTION)
