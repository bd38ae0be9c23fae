"""Google's generateContent, at AI Studio ("gemini") and at Vertex ("vertex").

One ledger for both: a signature issued at one host is genuine at the other.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

from ..credentials import accepted, account_of, bearer
from ..jsons import compact, read_object
from ..persona import Asked, Provider, Rendered
from ..prompts import Prompts
from ..script import Step
from ..streams import derived
from ..transport import Incoming
from ..verdict import Verdict
from .errors import refuse, refuse_credentials, studio_key
from .judge import OWN, judge_request
from .ledger import Ledger
from .profiles import HOSTS, PROFILES
from .render import Answer, chunks, completion, count_usage, make_call, make_signature
from .request import Request, view_of, words_of
from .schema import read_body

_METHODS = "generateContent|streamGenerateContent"
_STUDIO = re.compile(rf"/v1(?:beta|alpha)?/(?:models|tunedModels)/(?P<model>[^/:]+):(?P<method>{_METHODS})")
_VERTEX = re.compile(
    r"/v1(?:beta1)?/projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/publishers/google/models/"
    rf"(?P<model>[^/:]+):(?P<method>{_METHODS})"
)
_PATHS: Mapping[str, re.Pattern[str]] = {"gemini": _STUDIO, "vertex": _VERTEX}
_LISTS = ("/v1beta/models", "/v1/models")


def _read(host: str, path: str, incoming: Incoming, ledger: Ledger) -> Asked | Verdict | None:
    """A request to a model, or for the list of models at AI Studio."""
    found = _PATHS[host].fullmatch(path)
    listing = incoming.method == "GET" and host == "gemini" and path in _LISTS
    if not listing and (found is None or incoming.method != "POST"):
        return None
    key = bearer(incoming.headers) if host == "vertex" else studio_key(incoming.path, incoming.headers)
    if not accepted(key):
        return refuse_credentials(HOSTS[host], missing=not key)
    if found is None:
        return Verdict(200, {"models": [{"name": f"models/{model}", "displayName": model} for model in PROFILES]})
    body = read_object(incoming.body)
    if isinstance(body, str):
        return refuse(f"Invalid JSON payload received. {body}", "invalid JSON")
    if body is None:
        return refuse("Invalid JSON payload received. Expected an object.", "body is not an object")
    stream = found["method"] == "streamGenerateContent"
    return Asked(host, incoming.path, incoming.headers, body, found["model"], stream)


def _request(asked: Asked, ledger: Ledger) -> Request | Verdict:
    host, profile = HOSTS[asked.host], PROFILES.get(asked.model)
    # A stream without server-sent events is an array of its chunks.
    listed = asked.stream and parse_qs(urlsplit(asked.path).query).get("alt") != ["sse"]
    if profile is None:
        found = _PATHS[asked.host].search(asked.path)
        text = host.unknown_model.format(**(found.groupdict() if found else {}))
        return _listed(listed, refuse(text, f"unknown model {asked.model}", code=404))
    body = read_body(asked.body)
    if isinstance(body, Verdict):
        return _listed(listed, body)
    project = _VERTEX.search(asked.path)
    account = project["project"] if project else account_of(studio_key(asked.path, asked.headers))
    return Request(host, profile, body, account, asked.stream, listed)


def _render(request: Request, ledger: Ledger, step: Step, digest: str, prompts: Prompts) -> Rendered:
    """The response, its chunks, and the JSON array of them where server-sent events were not asked for."""
    host, profile, own = request.host, request.profile, derived(digest, request.account)
    words = words_of(request)
    usage = count_usage(host, step, len(words), prompts.hit(host.name, profile.reported, words))
    calls = tuple(make_call(profile, call, own, index) for index, call in enumerate(step.tool_calls))
    signature = make_signature(host, profile, step, bool(request.declarations), own)
    answer = Answer(request, step, own[:22], calls, signature, usage)
    if signature:
        ledger.add(signature, answer.mint())
    whole, parts = compact(completion(answer)).encode(), chunks(answer)
    if not request.streams or not request.listed:
        return Rendered(whole, [_event(part) for part in parts])
    texts = [compact(part).encode() for part in parts]
    listed = [(b",\r\n" if index else b"[") + text for index, text in enumerate(texts)]
    return Rendered(whole, listed, b"]", "application/json; charset=UTF-8")


def _broken(message: str, code: str) -> bytes:
    """An event with an error object."""
    return _event({"error": {"code": 500, "message": message, "status": code}})


def _event(value: object) -> bytes:
    return f"data: {compact(value)}\r\n\r\n".encode()


def _listed(listed: bool, verdict: Verdict) -> Verdict:
    """An error of a stream that is an array is its only member."""
    return dataclasses.replace(verdict, body=[verdict.body]) if listed and not verdict.ok else verdict


GEMINI = Provider(
    # At Vertex any project and place will do.
    hosts={"gemini": "/v1beta", "vertex": "/v1/projects/referee/locations/global"},
    models=lambda host: tuple(PROFILES),
    ledger=Ledger,
    read=_read,
    request=_request,
    judge=lambda request, ledger: _listed(request.listed, judge_request(request, ledger)),
    view=view_of,
    render=_render,
    reject=lambda request: _listed(request.listed, refuse(request.host.invalid, "rejected as scripted")),
    broken=_broken,
    own=OWN,
)
