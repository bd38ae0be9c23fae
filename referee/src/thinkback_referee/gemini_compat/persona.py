"""The persona of the compatible endpoint: chat completions outside, generateContent inside."""

from __future__ import annotations

from collections.abc import Sequence

from ..credentials import accepted, account_of, bearer
from ..gemini.errors import refuse, refuse_credentials
from ..gemini.judge import judge_request
from ..gemini.ledger import Ledger, Mint
from ..gemini.profiles import GEMINI, PROFILES
from ..gemini.render import make_signature
from ..gemini.request import Request
from ..gemini.schema import read_body
from ..gemini.view import view_of, words_of
from ..jsons import JsonObject, as_object, as_text, compact, strict_loads
from ..persona import Asked, Rendered, View
from ..script import Step
from ..streams import derived, sse
from ..transport import Incoming
from ..verdict import Verdict
from .fields import malformed
from .render import DONE, completion, events, make_answer
from .translate import native_body

_BASE = "/v1beta/openai"
_NO_MODEL = "models/{model} is not found for API version v1main, or is not supported for generateContent."


class GeminiCompat:
    """Gemini as chat completions."""

    def __init__(self) -> None:
        self.ledger = Ledger()

    @property
    def hosts(self) -> Sequence[str]:
        """One name of its own."""
        return ("gemini-openai",)

    def base_path(self, host: str) -> str:
        """The version and the word."""
        return _BASE

    def models(self, host: str) -> Sequence[str]:
        """The models of AI Studio."""
        return tuple(PROFILES)

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """A request for a completion, or for the list of models."""
        chat = incoming.method == "POST" and path == f"{_BASE}/chat/completions"
        if not chat and (incoming.method != "GET" or path != f"{_BASE}/models"):
            return None
        key = bearer(incoming.headers)
        if not accepted(key):
            return _listed(refuse_credentials(GEMINI, missing=not key))
        if chat:
            return _asked(host, incoming)
        rows = [{"id": f"models/{model}", "object": "model", "owned_by": "google"} for model in PROFILES]
        return Verdict(200, {"object": "list", "data": rows})

    def judge(self, asked: Asked) -> Verdict:
        """The verdict of the native judge on the translated request; errors are a list of one."""
        if asked.model not in PROFILES:
            text = _NO_MODEL.format(model=asked.model)
            return _listed(refuse(text, f"unknown model {asked.model}", code=404))
        fault = malformed(asked.body)
        if fault is not None:
            return _listed(fault)
        request = _request(asked)
        return _listed(request if isinstance(request, Verdict) else judge_request(request, self.ledger))

    def view(self, asked: Asked) -> View:
        """The native contents, with the thoughts behind the signatures."""
        return view_of(_accepted(asked), self.ledger)

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The completion and the stream that say the same."""
        request, account = _accepted(asked), account_of(bearer(asked.headers))
        profile, own = request.profile, derived(digest, account)
        signature = make_signature(GEMINI, profile, step, bool(request.declarations), own)
        if signature:
            called = step.tool_calls[0].name if step.tool_calls else ""
            self.ledger.add(signature, Mint(asked.host, profile.reported, account, step.reasoning, called))
        counted = as_object(asked.body.get("stream_options")).get("include_usage") is True
        prompt = len(words_of(request))
        answer = make_answer(
            profile, step, own, signature, shown=request.shows_thoughts, prompt=prompt, counted=counted
        )
        return Rendered(compact(completion(answer)).encode(), events(answer), DONE)

    def reject(self, asked: Asked) -> Verdict:
        """The refusal of a signature."""
        return _listed(refuse(GEMINI.invalid, "rejected as scripted"))

    def broken(self, message: str, code: str) -> bytes:
        """A chunk that is a list of one error."""
        return sse([{"error": {"code": 500, "message": message, "status": code}}])

    def reset(self) -> None:
        """Forget everything minted."""
        self.ledger = Ledger()


def _asked(host: str, incoming: Incoming) -> Asked | Verdict:
    try:
        body = strict_loads(incoming.body)
    except (ValueError, RecursionError) as error:
        return _listed(refuse(f"Invalid JSON payload received. {error}", "invalid JSON"))
    found: JsonObject = dict(as_object(body))
    model = as_text(found.get("model")).removeprefix("models/")
    if not model:
        return _listed(refuse("model is not specified", "no model"))
    return Asked(host, incoming.path, incoming.headers, found, model, found.get("stream") is True)


def _request(asked: Asked) -> Request | Verdict:
    profile = PROFILES[asked.model]
    native = native_body(profile, asked.body)
    read = native if isinstance(native, Verdict) else read_body(native)
    return read if isinstance(read, Verdict) else Request(GEMINI, profile, read)


def _accepted(asked: Asked) -> Request:
    request = _request(asked)
    assert not isinstance(request, Verdict)
    return request


def _listed(verdict: Verdict) -> Verdict:
    return verdict if verdict.ok else Verdict(verdict.status, [verdict.body], verdict.reason)
