"""What the gateway says of itself: its models in each dialect, its health, its description."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from thinkback.gateway.http.answers import Answer
from thinkback.gateway.http.behind import Health, Listed
from thinkback.gateway.incoming import Front
from thinkback.gateway.refusals import Refused


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


def models(front: Front, listed: Sequence[Listed]) -> Answer:
    """All models, as clients of the dialect expect them."""
    if front == "anthropic":
        rows = [_anthropic(each) for each in listed]
        first, last = (rows[0]["id"], rows[-1]["id"]) if rows else (None, None)
        return json({"data": rows, "has_more": False, "first_id": first, "last_id": last})
    if front == "gemini":
        return json({"models": [_gemini(each) for each in listed]})
    return json({"object": "list", "data": [_openai(each) for each in listed]})


def model(front: Front, listed: Sequence[Listed], id: str) -> Answer:
    """One of them. Raises ``Refused``."""
    for each in listed:
        if each.id == id:
            shape = {"anthropic": _anthropic, "gemini": _gemini}.get(front, _openai)
            return json(shape(each))
    raise Refused(404, "model_not_found", "there is no model of this name")


def _openai(listed: Listed) -> dict[str, Any]:
    return {"id": listed.id, "object": "model", "created": listed.created, "owned_by": listed.owner}


def _anthropic(listed: Listed) -> dict[str, Any]:
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(listed.created))
    return {"type": "model", "id": listed.id, "display_name": listed.display or listed.id, "created_at": made}


def _gemini(listed: Listed) -> dict[str, Any]:
    sizes = {"inputTokenLimit": listed.context, "outputTokenLimit": listed.max_output}
    return {
        "name": f"models/{listed.id}",
        "displayName": listed.display or listed.id,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent"],
        **{key: size for key, size in sizes.items() if size},
    }


@functools.cache
def openapi() -> Answer:
    """The description of all paths."""
    from thinkback.gateway.http.openapi import DESCRIPTION

    return json(DESCRIPTION)
