"""Chat completions of DeepSeek, Kimi, Groq, Mistral and OpenAI: reasoning is readable, no carrier is opaque."""

from __future__ import annotations

from hashlib import sha256

from ..credentials import accepted, bearer
from ..jsons import as_text, compact, read_object
from ..persona import Asked, Provider, Rendered
from ..prompts import Prompts
from ..script import Step
from ..streams import arguments_text, sse
from ..transport import Incoming
from ..verdict import Verdict
from .judge import OWN, judge
from .ledger import Ledger, Mint
from .profiles import HOSTS, Profile, models_of, profile_for
from .refusals import refuse, unauthorized, unknown_model
from .render import DONE, Answer, completion, events, field_of
from .request import Request, count_usage, prompt_words, view_of

_CHAT = ("/chat/completions", "/v1/chat/completions", "/openai/v1/chat/completions")
_MODELS = ("/models", "/v1/models", "/openai/v1/models")


def _read(host: str, path: str, incoming: Incoming, ledger: Ledger) -> Asked | Verdict | None:
    """A request for a completion, or for the list of models."""
    played, listing = HOSTS[host], incoming.method == "GET" and path in _MODELS
    if not listing and not (incoming.method == "POST" and path in _CHAT):
        return None
    if not accepted(bearer(incoming.headers)):
        return unauthorized(played)
    if listing:
        rows = [{"id": model, "object": "model", "owned_by": host} for model in models_of(host)]
        return Verdict(200, {"object": "list", "data": rows})
    body = read_object(incoming.body)
    if isinstance(body, str):
        return refuse(played, f"Failed to parse the request body as JSON: {body}", "invalid JSON")
    if body is None:
        return refuse(played, "The request body must be a JSON object", "body is not an object")
    model = as_text(body.get("model"))
    if not model:
        return refuse(played, "missing field `model`", "no model")
    return Asked(host, path, incoming.headers, body, model, bool(body.get("stream")))


def _request(asked: Asked, ledger: Ledger) -> Request | Verdict:
    profile = profile_for(asked.host, asked.model)
    return unknown_model(HOSTS[asked.host], asked.model) if profile is None else Request(profile, asked.body)


def _render(request: Request, ledger: Ledger, step: Step, digest: str, prompts: Prompts) -> Rendered:
    profile, prompt = request.profile, prompt_words(request)
    calls = tuple(
        (call.id or _call_id(profile, digest, index), call.name, arguments_text(call))
        for index, call in enumerate(step.tool_calls)
    )
    hit = prompts.hit(profile.host.name, profile.reported, prompt)
    usage = count_usage(request, step, len(prompt), hit)
    answer = Answer(request, step, digest[:24], field_of(request, step), calls, usage)
    ledger.add(_mint(answer))
    return Rendered(compact(completion(answer)).encode(), events(answer), DONE)


def _call_id(profile: Profile, digest: str, index: int) -> str:
    return profile.host.call_prefix + sha256(f"{digest}:{index}".encode()).hexdigest()[:20]


def _mint(answer: Answer) -> Mint:
    profile = answer.request.profile
    tagged = answer.field == "tags"
    reasoning = "" if answer.field == "hidden" else answer.step.reasoning
    calls = tuple(identifier for identifier, _, _ in answer.calls)
    return Mint(profile.host.name, profile.model, reasoning, answer.text, calls, tagged)


def _reject(request: Request) -> Verdict:
    """The refusal of reasoning at the last assistant message."""
    index = max((message.index for message in request.assistants), default=0)
    host = request.profile.host
    return refuse(host, host.changed.format(index=index), "rejected as scripted")


def _broken(message: str, code: str) -> bytes:
    """A chunk with a top-level ``error``."""
    return sse({"error": {"message": message, "type": code, "code": code}})


CHAT = Provider(
    hosts={name: host.base_path for name, host in HOSTS.items()},
    models=models_of,
    ledger=Ledger,
    read=_read,
    request=_request,
    judge=lambda request, ledger: judge(request.profile, request.body, ledger),
    view=lambda request, ledger: view_of(request),
    render=_render,
    reject=_reject,
    broken=_broken,
    own=OWN,
)
