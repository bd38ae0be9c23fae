"""The persona of Claude's Messages API, on Anthropic's own host and on Vertex, and of DeepSeek's copy of the format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..credentials import accepted, account_of, bearer
from ..jsons import JsonObject, as_list, as_object, as_text, compact, strict_loads
from ..persona import Asked, Rendered, View
from ..prompts import Prompts
from ..script import Step
from ..streams import sse
from ..transport import Incoming
from ..verdict import Verdict
from .judge import judge
from .ledger import Ledger
from .models import listing
from .profiles import ANTHROPIC, DEEPSEEK, HOSTS, VERTEX, Host, models_of, profile_for
from .refusals import error_body, extra, refuse, required, unauthorized, unknown_model
from .render import Answer, answer_of, events, marked_for_cache, whole
from .replay import INVALID_SIGNATURE, NO_THINKING
from .request import Caller, Request
from .trace import trace
from .unsigned import PASSED_BACK
from .view import prompt_words, view_of

VERSION = "2023-06-01"
EARLY = "early-"
"""How the keys of accounts begin that are from before preserved thinking was enforced."""
NO_KEY = "x-api-key header is required"
BAD_KEY_TEXT = "invalid x-api-key"
NO_VERSION = "anthropic-version: header is required"
_MESSAGES = ("/messages", "/v1/messages")
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


def organisation(key: str) -> str:
    """A name for the organisation of a key: what comes before its first dot counts, so that two keys can share one."""
    return account_of(key.partition(".")[0])


class Anthropic:
    """Claude on its own host and on Vertex, and the Anthropic-compatible host of DeepSeek."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._prompts = Prompts()

    @property
    def hosts(self) -> Sequence[str]:
        """The names of its providers; Bedrock is played elsewhere, as it authenticates and frames its own way."""
        return (ANTHROPIC.name, VERTEX.name, DEEPSEEK.name)

    def base_path(self, host: str) -> str:
        """At Vertex a project and a place; else nothing: clients append ``/v1/messages``, or know the version."""
        return "/v1/projects/referee/locations/global" if host == "vertex-claude" else ""

    def models(self, host: str) -> Sequence[str]:
        """The host's rows."""
        return models_of(HOSTS[host])

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """A request for a message, or for models."""
        played = HOSTS[host]
        if played is VERTEX:
            return _read_vertex(path, incoming)
        listed = listing(played, path, incoming)
        if listed is None and (incoming.method != "POST" or path not in _MESSAGES):
            return None
        return _refused_headers(incoming.headers) or listed or _asked(played, path, incoming)

    def judge(self, asked: Asked) -> Verdict:
        """The verdict of the pure judge, or the 404 of a model without a row."""
        host = HOSTS[asked.host]
        profile = profile_for(host, asked.model)
        if profile is None:
            return unknown_model(asked.model)
        return judge(profile, body_of(host, asked.body), caller_of(asked), self.ledger)

    def view(self, asked: Asked) -> View:
        """The messages, with the thoughts that the model gets to read."""
        return view_of(_request(asked), self.ledger)

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The message and the stream that say the same."""
        request = _request(asked)
        answer = minted(request, step, digest, self.ledger, self._prompts)
        framed = [sse(event, as_text(event["type"])) for event in events(answer)]
        return Rendered(compact(whole(answer)).encode(), framed)

    def reject(self, asked: Asked) -> Verdict:
        """The refusal of the last thinking block."""
        return rejected(_request(asked))

    def broken(self, message: str, code: str) -> bytes:
        """An ``error`` event."""
        return sse(error_body(message, code), "error")

    def reset(self) -> None:
        """Forget mints and prompts."""
        self.ledger, self._prompts = Ledger(), Prompts()


def minted(request: Request, step: Step, digest: str, ledger: Ledger, prompts: Prompts) -> Answer:
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


_ENVELOPE = frozenset({"anthropic_version", "anthropic_beta"})


def caller_of(asked: Asked) -> Caller:
    """Who asks, by the path of a cloud project, else by the key."""
    host = HOSTS[asked.host]
    project = _VERTEX.fullmatch(asked.path)
    key = _key(asked.headers)
    account = project["project"] if project else organisation(key)
    named = [name.strip() for name in asked.headers.get("anthropic-beta", "").split(",")]
    listed = [as_text(name) for name in as_list(asked.body.get("anthropic_beta"))]
    is_early = not project and key.startswith(EARLY)
    return Caller(host, account, frozenset(name for name in (*named, *listed) if name), is_early)


def parsed(incoming: Incoming) -> JsonObject | Verdict:
    """The body as an object."""
    try:
        body = strict_loads(incoming.body)
    except (ValueError, RecursionError) as error:
        return refuse(f"The request body is not valid JSON: {error}", "invalid JSON")
    if not isinstance(body, dict):
        return refuse("The request body must be a JSON object", "body is not an object")
    return dict(as_object(body))


def _request(asked: Asked) -> Request:
    host = HOSTS[asked.host]
    profile = profile_for(host, asked.model)
    assert profile is not None
    return Request(profile, body_of(host, asked.body), caller_of(asked))


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


def _asked(host: Host, path: str, incoming: Incoming) -> Asked | Verdict:
    body = parsed(incoming)
    if isinstance(body, Verdict):
        return body
    model = as_text(body.get("model"))
    if not model:
        return required("model")
    return Asked(host.name, path, incoming.headers, body, model, body.get("stream") is True)


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
