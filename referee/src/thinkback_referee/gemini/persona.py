"""The persona of Google's generateContent, at AI Studio ("gemini") and at Vertex ("vertex").

One ledger for both: a signature issued at one host is genuine at the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs, urlsplit

from ..credentials import accepted, account_of, bearer
from ..jsons import JsonObject, as_object, compact, strict_loads
from ..persona import Asked, Rendered, View
from ..prompts import Prompts
from ..script import Step
from ..streams import derived
from ..transport import Incoming
from ..verdict import Verdict
from .errors import refuse, refuse_credentials
from .judge import judge
from .keys import studio_key
from .ledger import Ledger
from .profiles import HOSTS, PROFILES, Profile
from .render import Answer, chunks, completion, count_usage, make_call, make_signature
from .request import Request
from .schema import read_body
from .view import view_of, words_of

_METHODS = "generateContent|streamGenerateContent"
_STUDIO = re.compile(rf"/v1(?:beta|alpha)?/(?:models|tunedModels)/(?P<model>[^/:]+):(?P<method>{_METHODS})")
_VERTEX = re.compile(
    r"/v1(?:beta1)?/projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/publishers/google/models/"
    rf"(?P<model>[^/:]+):(?P<method>{_METHODS})"
)
_PATHS: Mapping[str, re.Pattern[str]] = {"gemini": _STUDIO, "vertex": _VERTEX}
_BASES: Mapping[str, str] = {"gemini": "/v1beta", "vertex": "/v1/projects/referee/locations/global"}
_LISTS = ("/v1beta/models", "/v1/models")
_STREAM = "streamGenerateContent"


class Gemini:
    """Gemini at both of Google's doors."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._prompts = Prompts()

    @property
    def hosts(self) -> Sequence[str]:
        """AI Studio and Vertex."""
        return tuple(HOSTS)

    def base_path(self, host: str) -> str:
        """The version; at Vertex also some project and place, any of which will do."""
        return _BASES[host]

    def models(self, host: str) -> Sequence[str]:
        """All rows, at both hosts."""
        return tuple(PROFILES)

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """A request to a model, or for the list of models at AI Studio."""
        found = _PATHS[host].fullmatch(path)
        listed = incoming.method == "GET" and host == "gemini" and path in _LISTS
        if not listed and (found is None or incoming.method != "POST"):
            return None
        key = _key(host, incoming.path, incoming.headers)
        if not accepted(key):
            return refuse_credentials(HOSTS[host], missing=not key)
        if found is None:
            models = [{"name": f"models/{model}", "displayName": model} for model in PROFILES]
            return Verdict(200, {"models": models})
        body = _body(incoming)
        if isinstance(body, Verdict):
            return body
        stream = found["method"] == _STREAM
        return Asked(host, incoming.path, incoming.headers, body, found["model"], stream)

    def judge(self, asked: Asked) -> Verdict:
        """The verdict of the pure judge, or the 404 of a model without a row."""
        host, profile = HOSTS[asked.host], PROFILES.get(asked.model)
        if profile is None:
            found = _PATHS[asked.host].search(asked.path)
            named = found.groupdict() if found else {}
            verdict = refuse(host.unknown_model.format(**named), f"unknown model {asked.model}", code=404)
        else:
            verdict = judge(host, profile, asked.body, self.ledger)
        return _listed(asked, verdict)

    def view(self, asked: Asked) -> View:
        """The contents, with the thoughts behind the signatures."""
        return view_of(_request(asked), self.ledger)

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The response, its chunks, and the JSON array of them where server-sent events were not asked for."""
        request = _request(asked)
        answer = self._prepare(request, step, derived(digest, _account(asked)))
        if answer.signature:
            self.ledger.add(answer.signature, answer.mint(_account(asked), streamed=asked.stream))
        parts = chunks(answer)
        if _is_sse(asked):
            return Rendered(compact(completion(answer)).encode(), [_event(part) for part in parts])
        texts = [compact(part).encode() for part in parts]
        listed = [(b",\r\n" if index else b"[") + text for index, text in enumerate(texts)]
        return Rendered(compact(completion(answer)).encode(), listed, b"]", "application/json; charset=UTF-8")

    def reject(self, asked: Asked) -> Verdict:
        """The host's refusal of a signature."""
        return _listed(asked, refuse(HOSTS[asked.host].invalid, "rejected as scripted"))

    def broken(self, message: str, code: str) -> bytes:
        """An event with an error object."""
        return _event({"error": {"code": 500, "message": message, "status": code}})

    def reset(self) -> None:
        """Forget mints and prompts."""
        self.ledger, self._prompts = Ledger(), Prompts()

    def _prepare(self, request: Request, step: Step, digest: str) -> Answer:
        host, profile = request.host, request.profile
        words = words_of(request)
        usage = count_usage(host, step, len(words), self._prompts.hit(host.name, profile.reported, words))
        calls = tuple(make_call(profile, call, digest, index) for index, call in enumerate(step.tool_calls))
        signature = make_signature(host, profile, step, bool(request.declarations), digest)
        return Answer(request, step, digest[:22], calls, signature, usage)


def _key(host: str, path: str, headers: Mapping[str, str]) -> str:
    return bearer(headers) if host == "vertex" else studio_key(path, headers)


def _account(asked: Asked) -> str:
    """The project at Vertex, else the owner of the key."""
    found = _VERTEX.search(asked.path)
    return found["project"] if found else account_of(studio_key(asked.path, asked.headers))


def _body(incoming: Incoming) -> JsonObject | Verdict:
    try:
        body = strict_loads(incoming.body)
    except (ValueError, RecursionError) as error:
        return refuse(f"Invalid JSON payload received. {error}", "invalid JSON")
    if not isinstance(body, dict):
        return refuse("Invalid JSON payload received. Expected an object.", "body is not an object")
    return dict(as_object(body))


def _request(asked: Asked) -> Request:
    profile: Profile = PROFILES[asked.model]
    body = read_body(asked.body)
    assert not isinstance(body, Verdict)
    return Request(HOSTS[asked.host], profile, body)


def _is_sse(asked: Asked) -> bool:
    return parse_qs(urlsplit(asked.path).query).get("alt") == ["sse"]


def _listed(asked: Asked, verdict: Verdict) -> Verdict:
    """An error of a stream without server-sent events is the only member of the array that the stream is."""
    if verdict.ok or not asked.stream or _is_sse(asked):
        return verdict
    return Verdict(verdict.status, [verdict.body], verdict.reason)


def _event(value: object) -> bytes:
    return f"data: {compact(value)}\r\n\r\n".encode()
