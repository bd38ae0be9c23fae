"""Gemini behind Google's OpenAI-compatible endpoint: chat completions outside, generateContent inside."""

from __future__ import annotations

from dataclasses import dataclass

from ..credentials import accepted, account_of, bearer
from ..gemini.errors import refuse, refuse_credentials
from ..gemini.judge import judge_request
from ..gemini.ledger import Ledger, Mint
from ..gemini.profiles import PROFILES, STUDIO
from ..gemini.render import make_signature
from ..gemini.request import Request, view_of, words_of
from ..gemini.schema import read_body
from ..jsons import as_object, as_text, compact, read_object
from ..persona import Asked, Provider, Rendered
from ..prompts import Prompts
from ..script import Step
from ..streams import derived, sse
from ..transport import Incoming
from ..verdict import Verdict
from .render import DONE, completion, events, make_answer
from .translate import OWN, malformed, native_body

_BASE = "/v1beta/openai"
_HOST = "gemini-openai"
_NO_MODEL = "models/{model} is not found for API version v1main, or is not supported for generateContent."


@dataclass(frozen=True, slots=True)
class Compatible:
    """A chat request as Google reads it; ``counts``: its stream is to end with its usage."""

    native: Request
    account: str
    counts: bool


def _read(host: str, path: str, incoming: Incoming, ledger: Ledger) -> Asked | Verdict | None:
    """A request for a completion, or for the list of models."""
    asks = incoming.method == "POST" and path == f"{_BASE}/chat/completions"
    if not asks and (incoming.method != "GET" or path != f"{_BASE}/models"):
        return None
    key = bearer(incoming.headers)
    if not accepted(key):
        return _listed(refuse_credentials(STUDIO, missing=not key))
    if not asks:
        rows = [{"id": f"models/{model}", "object": "model", "owned_by": "google"} for model in PROFILES]
        return Verdict(200, {"object": "list", "data": rows})
    body = read_object(incoming.body)
    if isinstance(body, str):
        return _listed(refuse(f"Invalid JSON payload received. {body}", "invalid JSON"))
    model = as_text((body or {}).get("model")).removeprefix("models/")
    if not body or not model:
        return _listed(refuse("model is not specified", "no model"))
    return Asked(host, incoming.path, incoming.headers, body, model, body.get("stream") is True)


def _request(asked: Asked, ledger: Ledger) -> Compatible | Verdict:
    profile = PROFILES.get(asked.model)
    if profile is None:
        text = _NO_MODEL.format(model=asked.model)
        return _listed(refuse(text, f"unknown model {asked.model}", code=404))
    native = malformed(asked.body) or native_body(profile, asked.body)
    read = native if isinstance(native, Verdict) else read_body(native)
    if isinstance(read, Verdict):
        return _listed(read)
    counts = as_object(asked.body.get("stream_options")).get("include_usage") is True
    return Compatible(Request(STUDIO, profile, read), account_of(bearer(asked.headers)), counts)


def _render(request: Compatible, ledger: Ledger, step: Step, digest: str, prompts: Prompts) -> Rendered:
    native, own = request.native, derived(digest, request.account)
    signature = make_signature(STUDIO, native.profile, step, bool(native.declarations), own)
    if signature:
        called = step.tool_calls[0].name if step.tool_calls else ""
        ledger.add(signature, Mint(_HOST, native.profile.reported, request.account, step.reasoning, called))
    prompt = len(words_of(native))
    answer = make_answer(
        native.profile, step, own, signature, shown=native.shows_thoughts, prompt=prompt, counted=request.counts
    )
    return Rendered(compact(completion(answer)).encode(), events(answer), DONE)


def _broken(message: str, code: str) -> bytes:
    """A chunk that is a list of one error."""
    return sse([{"error": {"code": 500, "message": message, "status": code}}])


def _listed(verdict: Verdict) -> Verdict:
    """An error is the only member of a list."""
    return verdict if verdict.ok else Verdict(verdict.status, [verdict.body], verdict.reason)


GEMINI_COMPAT = Provider(
    hosts={_HOST: _BASE},
    models=lambda host: tuple(PROFILES),
    ledger=Ledger,
    read=_read,
    request=_request,
    judge=lambda request, ledger: _listed(judge_request(request.native, ledger)),
    view=lambda request, ledger: view_of(request.native, ledger),
    render=_render,
    reject=lambda request: _listed(refuse(STUDIO.invalid, "rejected as scripted")),
    broken=_broken,
    own=OWN,
)
