"""Ollama's native chat API: no keys, lines of JSON, thoughts as plain text."""

from __future__ import annotations

from collections.abc import Mapping

from ..jsons import as_text, compact, read_object
from ..messages import Thoughts
from ..persona import Asked, Provider, Rendered
from ..prompts import Prompts
from ..script import Step
from ..transport import Incoming
from ..verdict import Verdict
from . import profiles as say
from .judge import judge, refuse
from .profiles import PROFILES
from .render import lines, prepare, response
from .request import Request, read_message

_CHAT = "/api/chat"
_TAGS = "/api/tags"


def _read(host: str, path: str, incoming: Incoming, thoughts: Thoughts) -> Asked | Verdict | None:
    """A request for a chat response, or for the list of models; keys are not looked at."""
    if incoming.method == "GET" and path == _TAGS:
        return Verdict(200, {"models": [{"name": model, "model": model} for model in PROFILES]})
    if incoming.method != "POST" or path != _CHAT:
        return None
    body = read_object(incoming.body)
    if isinstance(body, str):
        return refuse(body, "invalid JSON")
    model = as_text((body or {}).get("model"))
    if not body or not model:
        return refuse(say.NO_MODEL, "no model")
    return Asked(host, path, incoming.headers, body, model, body.get("stream") is not False)


def _request(asked: Asked, thoughts: Thoughts) -> Request | Verdict:
    profile = PROFILES.get(asked.model)
    if profile is None:
        return refuse(say.UNKNOWN_MODEL.format(model=asked.model), f"unknown model {asked.model}", status=404)
    return Request(profile, asked.body)


def _render(request: Request, thoughts: Thoughts, step: Step, digest: str, prompts: Prompts) -> Rendered:
    answer = prepare(request, step, digest, len(request.said.words(request.body.get("tools"))))
    note(thoughts, answer.message)
    return Rendered(
        compact(response(answer)).encode(),
        lines(answer),
        content_type="application/x-ndjson",
        whole_type="application/json; charset=utf-8",
    )


def note(thoughts: Thoughts, raw: Mapping[str, object]) -> None:
    """Note the thought of a message."""
    message = read_message(0, raw)
    if "</think>" not in message.text:
        # A thought that leaked into the content may come back as content, as thinking, or not at all.
        thoughts.add(message.keys, message.thinking or "")


def _broken(message: str, code: str) -> bytes:
    """A line with an error."""
    return compact({"error": message}).encode() + b"\n"


OLLAMA = Provider(
    hosts={"ollama": "/api"},
    models=lambda host: tuple(PROFILES),
    ledger=Thoughts,
    read=_read,
    request=_request,
    judge=judge,
    view=lambda request, thoughts: request.view(),
    render=_render,
    reject=lambda request: refuse(say.CHANGED.format(index=request.said.last_assistant), "rejected as scripted"),
    broken=_broken,
    own=say.OWN,
)
