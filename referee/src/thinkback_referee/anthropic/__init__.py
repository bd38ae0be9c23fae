"""Claude's Messages API on Anthropic's own host and on Vertex, and DeepSeek's copy of the format.

Thinking is signed, redacted, preserved, and refused in the provider's own words. What is public here knows nothing of
HTTP but for headers, so that Bedrock's requests are judged and minted with it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..credentials import accepted, account_of, bearer
from ..jsons import JsonObject, as_list, as_text, compact, read_object
from ..persona import Asked, Provider, Rendered
from ..prompts import Prompts
from ..script import Step
from ..streams import sse
from ..transport import Incoming
from ..verdict import Verdict
from .judge import INVALID_SIGNATURE, NO_THINKING, OWN, PASSED_BACK, judge
from .ledger import Ledger
from .profiles import (
    ADAPTIVE,
    BETWEEN,
    BETWEEN_INSTEAD,
    BINDING_BETA,
    CLAUDE,
    CLEARING_BETA,
    COUNTING_BETA,
    DEEPSEEK,
    DISABLED,
    EFFORTS,
    HOSTS,
    INTERLEAVED_BETA,
    MANUAL,
    UPDATES_BETA,
    VERTEX,
    Host,
    Profile,
    models_of,
    profile_for,
)
from .refusals import error_body, extra, refuse, required, unauthorized, unknown_model
from .render import REDACTED, Answer, answer_of, events, marked_for_cache, whole
from .request import Caller, Request
from .shape import OWN as OWN_SHAPE
from .trace import trace
from .view import prompt_words, view_of

__all__ = [
    "ANTHROPIC",
    "BINDING_BETA",
    "CLEARING_BETA",
    "COUNTING_BETA",
    "INTERLEAVED_BETA",
    "REDACTED",
    "UPDATES_BETA",
    "VERSION",
    "body_of",
    "minted",
    "organisation",
    "parsed",
    "rejected",
]
VERSION = "2023-06-01"
EARLY = "early-"
"""How the keys of accounts begin that are from before preserved thinking was enforced."""
NO_KEY = "x-api-key header is required"
BAD_KEY_TEXT = "invalid x-api-key"
NO_VERSION = "anthropic-version: header is required"
_CREATED = "2026-01-01T00:00:00Z"
_MESSAGES = ("/messages", "/v1/messages")
_MODELS = re.compile(r"(?:/v1)?/models(?:/(?P<model>[^/]+))?")
_VERTEX = re.compile(
    r"(?:/v1)?/projects/(?P<project>[^/]+)/locations/[^/]+/publishers/anthropic/models/"
    r"(?P<model>[^/:]+):(?P<call>rawPredict|streamRawPredict)"
)
_UNAUTHENTICATED: JsonObject = {
    "error": {
        "code": 401,
        "message": (
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
            "valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
        ),
        "status": "UNAUTHENTICATED",
    }
}
_ENVELOPE = frozenset({"anthropic_version", "anthropic_beta"})


def organisation(key: str) -> str:
    """A name for the organisation of a key: what comes before its first dot counts, so that two keys can share one."""
    return account_of(key.partition(".")[0])


def minted(request: Request, ledger: Ledger, step: Step, digest: str, prompts: Prompts) -> Answer:
    """What the model says, sealed, and noted in the ledger."""
    found = trace(request, ledger)
    words = prompt_words(request, ledger, found)
    hit = prompts.hit(request.caller.host.name, request.profile.model, words) if marked_for_cache(request.body) else 0
    answer = answer_of(request, step, digest, found, len(words), hit)
    ledger.learn(request, whole(answer), found.kept, answer.thoughts)
    return answer


def rejected(request: Request) -> Verdict:
    """The refusal of the request's last thinking block, as if it were not valid."""
    if not request.caller.host.signed:
        return refuse(PASSED_BACK, "rejected as scripted")
    blocks = [block for message in request.assistants for block in message.thinking]
    path = blocks[-1].path if blocks else "messages.0.content.0"
    text = NO_THINKING if blocks and not blocks[-1].text else INVALID_SIGNATURE
    return refuse(text.format(path=path), "rejected as scripted")


def body_of(host: Host, body: JsonObject) -> JsonObject:
    """The body without what only its envelope needs."""
    return {name: value for name, value in body.items() if name not in _ENVELOPE} if host.version else body


def parsed(incoming: Incoming) -> JsonObject | Verdict:
    """The body as an object."""
    body = read_object(incoming.body)
    if isinstance(body, str):
        return refuse(f"The request body is not valid JSON: {body}", "invalid JSON")
    return refuse("The request body must be a JSON object", "body is not an object") if body is None else body


def _read(host: str, path: str, incoming: Incoming, ledger: Ledger) -> Asked | Verdict | None:
    """A request for a message, or for models."""
    if host == VERTEX.name:
        return _read_vertex(path, incoming)
    listed = _listing(HOSTS[host], path, incoming)
    if listed is None and (incoming.method != "POST" or path not in _MESSAGES):
        return None
    fault = _refused_headers(incoming.headers)
    if fault is not None or listed is not None:
        return fault or listed
    body = parsed(incoming)
    if isinstance(body, Verdict):
        return body
    model = as_text(body.get("model"))
    if not model:
        return required("model")
    return Asked(host, path, incoming.headers, body, model, body.get("stream") is True)


def _read_vertex(path: str, incoming: Incoming) -> Asked | Verdict | None:
    found = _VERTEX.fullmatch(path)
    if incoming.method != "POST" or found is None:
        return None
    if not accepted(bearer(incoming.headers)):
        return Verdict(401, _UNAUTHENTICATED, "unauthorized")
    body = parsed(incoming)
    if isinstance(body, Verdict):
        return body
    if body.get("anthropic_version") != VERTEX.version:
        return required("anthropic_version")
    if "model" in body:
        return extra("model")
    stream = found["call"] == "streamRawPredict"
    return Asked(VERTEX.name, path, incoming.headers, {**body, "stream": stream}, found["model"], stream)


def _key(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key", "") or bearer(headers)


def _refused_headers(headers: Mapping[str, str]) -> Verdict | None:
    key = _key(headers)
    if not accepted(key):
        return unauthorized(BAD_KEY_TEXT if key else NO_KEY)
    # Versions are dates; newer ones than the first are sent by newer clients.
    if headers.get("anthropic-version", "") < VERSION:
        return refuse(NO_VERSION, "no version")
    return None


def _listing(host: Host, path: str, incoming: Incoming) -> Verdict | None:
    """All models of a host, or the one that the path names; None where the request asks for no model."""
    found = _MODELS.fullmatch(path)
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
    """A model with the types of thinking and the efforts that it takes."""
    types = {kind: {"supported": kind in profile.types} for kind in (MANUAL, ADAPTIVE, DISABLED, BETWEEN)}
    efforts = {level: {"supported": level in profile.efforts} for level in EFFORTS}
    thinking, effort = {"supported": True, "types": types}, {"supported": bool(profile.efforts), **efforts}
    capabilities = {"thinking": thinking, "effort": effort}
    return {"type": "model", "id": name, "display_name": name, "created_at": _CREATED, "capabilities": capabilities}


def _request(asked: Asked, ledger: Ledger) -> Request | Verdict:
    host = HOSTS[asked.host]
    profile = profile_for(host, asked.model)
    if profile is None:
        return unknown_model(asked.model)
    return Request(profile, body_of(host, asked.body), _caller(host, asked))


def _caller(host: Host, asked: Asked) -> Caller:
    """Who asks, by the path of a cloud project, else by the key."""
    project = _VERTEX.fullmatch(asked.path)
    key = _key(asked.headers)
    account = project["project"] if project else organisation(key)
    named = [name.strip() for name in asked.headers.get("anthropic-beta", "").split(",")]
    listed = [as_text(name) for name in as_list(asked.body.get("anthropic_beta"))]
    is_early = not project and key.startswith(EARLY)
    return Caller(host, account, frozenset(name for name in (*named, *listed) if name), is_early)


def _render(request: Request, ledger: Ledger, step: Step, digest: str, prompts: Prompts) -> Rendered:
    answer = minted(request, ledger, step, digest, prompts)
    framed = [sse(event, as_text(event["type"])) for event in events(answer)]
    return Rendered(compact(whole(answer)).encode(), framed)


ANTHROPIC = Provider(
    # Clients append ``/v1/messages``, or know the version; Bedrock authenticates and frames its own way.
    hosts={CLAUDE.name: "", VERTEX.name: "/v1/projects/referee/locations/global", DEEPSEEK.name: ""},
    models=lambda host: models_of(HOSTS[host]),
    ledger=Ledger,
    read=_read,
    request=_request,
    judge=judge,
    view=view_of,
    render=_render,
    reject=rejected,
    broken=lambda message, code: sse(error_body(message, code), "error"),
    own=(*OWN, *OWN_SHAPE, BETWEEN_INSTEAD),
)
