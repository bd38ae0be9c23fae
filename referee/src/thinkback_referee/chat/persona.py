"""The persona of the providers that speak chat completions and return readable reasoning: no carrier is opaque."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from ..credentials import accepted, bearer
from ..jsons import JsonObject, as_object, as_text, compact, strict_loads
from ..persona import Asked, Rendered, View
from ..prompts import Prompts
from ..script import Step
from ..streams import sse
from ..transport import Incoming
from ..verdict import Verdict
from .judge import judge
from .ledger import Ledger, Mint
from .profiles import HOSTS, Host, Profile, models_of, profile_for
from .refusals import refuse, unauthorized, unknown_model
from .render import DONE, Answer, arguments_text, completion, events, field_of
from .request import Request
from .usage import count_usage, prompt_words
from .view import view_of

_CHAT = ("/chat/completions", "/v1/chat/completions", "/openai/v1/chat/completions")
_MODELS = ("/models", "/v1/models", "/openai/v1/models")


class Chat:
    """DeepSeek, Kimi, Groq, Mistral, and OpenAI's chat completions."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._prompts = Prompts()

    @property
    def hosts(self) -> Sequence[str]:
        """The names of its providers."""
        return tuple(HOSTS)

    def base_path(self, host: str) -> str:
        """The host's; base URLs with and without a version work."""
        return HOSTS[host].base_path

    def models(self, host: str) -> Sequence[str]:
        """The host's rows."""
        return models_of(host)

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """A request for a completion, or for the list of models."""
        played = HOSTS[host]
        if (incoming.method == "POST" and path in _CHAT) or (incoming.method == "GET" and path in _MODELS):
            if not accepted(bearer(incoming.headers)):
                return unauthorized(played)
            return _asked(played, path, incoming) if incoming.method == "POST" else _listed(played)
        return None

    def judge(self, asked: Asked) -> Verdict:
        """The verdict of the pure judge, or the 404 of a model without a row."""
        profile = profile_for(asked.host, asked.model)
        if profile is None:
            return unknown_model(HOSTS[asked.host], asked.model)
        return judge(profile, asked.body, self.ledger)

    def view(self, asked: Asked) -> View:
        """The messages, with the reasoning that the model gets to read."""
        return view_of(_request(asked))

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The completion and the stream that say the same."""
        answer = self._prepare(_request(asked), step, digest)
        self.ledger.add(_mint(answer))
        return Rendered(compact(completion(answer)).encode(), events(answer), DONE)

    def reject(self, asked: Asked) -> Verdict:
        """The refusal of reasoning at the last assistant message."""
        request = _request(asked)
        index = max((message.index for message in request.assistants), default=0)
        host = request.profile.host
        return refuse(host, host.changed.format(index=index), "rejected as scripted")

    def broken(self, message: str, code: str) -> bytes:
        """A chunk with a top-level ``error``."""
        return sse({"error": {"message": message, "type": code, "code": code}})

    def reset(self) -> None:
        """Forget mints and prompts."""
        self.ledger, self._prompts = Ledger(), Prompts()

    def _prepare(self, request: Request, step: Step, digest: str) -> Answer:
        profile = request.profile
        calls = tuple(
            (call.id or _call_id(profile, digest, index), call.name, arguments_text(call))
            for index, call in enumerate(step.tool_calls)
        )
        prompt = prompt_words(request)
        hit = self._prompts.hit(profile.host.name, profile.reported, prompt)
        usage = count_usage(request, step, len(prompt), hit)
        return Answer(request, step, digest[:24], field_of(request, step), calls, usage)


def _asked(host: Host, path: str, incoming: Incoming) -> Asked | Verdict:
    try:
        body = strict_loads(incoming.body)
    except (ValueError, RecursionError) as error:
        return refuse(host, f"Failed to parse the request body as JSON: {error}", "invalid JSON")
    if not isinstance(body, dict):
        return refuse(host, "The request body must be a JSON object", "body is not an object")
    found: JsonObject = dict(as_object(body))
    model = as_text(found.get("model"))
    if not model:
        return refuse(host, "missing field `model`", "no model")
    return Asked(host.name, path, incoming.headers, found, model, bool(found.get("stream")))


def _listed(host: Host) -> Verdict:
    listed = [{"id": model, "object": "model", "owned_by": host.name} for model in models_of(host.name)]
    return Verdict(200, {"object": "list", "data": listed})


def _request(asked: Asked) -> Request:
    profile = profile_for(asked.host, asked.model)
    assert profile is not None
    return Request(profile, asked.body)


def _call_id(profile: Profile, digest: str, index: int) -> str:
    return profile.host.call_prefix + sha256(f"{digest}:{index}".encode()).hexdigest()[:20]


def _mint(answer: Answer) -> Mint:
    profile = answer.request.profile
    tagged = answer.field == "tags"
    reasoning = "" if answer.field == "hidden" else answer.step.reasoning
    calls = tuple(identifier for identifier, _, _ in answer.calls)
    return Mint(profile.host.name, profile.model, reasoning, answer.text, calls, tagged)
