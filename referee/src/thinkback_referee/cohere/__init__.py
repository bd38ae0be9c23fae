"""Cohere's chat API, version 2: readable thinking in content items, nothing opaque, unknown fields refused."""

from __future__ import annotations

from ..credentials import accepted, account_of, bearer
from ..jsons import JsonObject, as_text, compact, read_object
from ..messages import Thoughts
from ..persona import Asked, Provider, Rendered
from ..prompts import Prompts
from ..script import Step
from ..streams import derived, sse
from ..transport import Incoming
from ..verdict import Verdict
from . import profiles as say
from .judge import judge, refuse
from .profiles import PROFILES
from .render import DONE, events, prepare, response
from .request import Request, read_message

_CHAT = ("/v2/chat", "/chat")


def _read(host: str, path: str, incoming: Incoming, thoughts: Thoughts) -> Asked | Verdict | None:
    """A request for a chat response, or for the list of models."""
    listed = incoming.method == "GET" and path == "/v1/models"
    if not listed and (incoming.method != "POST" or path not in _CHAT):
        return None
    key = bearer(incoming.headers)
    if not accepted(key):
        return refuse(say.UNAUTHORIZED if key else say.NO_KEY, "unauthorized", status=401)
    if listed:
        return Verdict(200, {"models": [{"name": model, "endpoints": ["chat"]} for model in PROFILES]})
    body = read_object(incoming.body)
    if isinstance(body, str):
        return refuse(say.BAD_JSON.format(error=body), "invalid JSON")
    model = as_text((body or {}).get("model"))
    if not body or not model:
        return refuse(say.NO_MODEL, "no model")
    return Asked(host, path, incoming.headers, body, model, body.get("stream") is True)


def _request(asked: Asked, thoughts: Thoughts) -> Request | Verdict:
    profile = PROFILES.get(asked.model)
    if profile is None:
        return refuse(say.UNKNOWN_MODEL.format(model=asked.model), f"unknown model {asked.model}", status=404)
    return Request(profile, asked.body, account_of(bearer(asked.headers)))


def _render(request: Request, thoughts: Thoughts, step: Step, digest: str, prompts: Prompts) -> Rendered:
    words = request.said.words(request.body.get("tools"))
    hit = prompts.hit("cohere", request.profile.model, words)
    answer = prepare(step, derived(digest, request.account), len(words), hit)
    thoughts.add(read_message(0, answer.message).keys, step.reasoning)
    return Rendered(compact(response(answer)).encode(), events(answer), DONE)


def _broken(message: str, code: str) -> bytes:
    """A message-end that names an error."""
    delta: JsonObject = {"finish_reason": "ERROR", "error": message}
    return sse({"type": "message-end", "delta": delta}, "message-end")


COHERE = Provider(
    hosts={"cohere": "/v2"},
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
