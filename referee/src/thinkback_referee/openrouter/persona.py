"""The persona of OpenRouter's chat completions; its Responses are played by their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..chat.refusals import refuse, unauthorized
from ..chat.usage import count_usage, prompt_words
from ..chat.view import view_of
from ..credentials import accepted, account_of, bearer
from ..jsons import as_object, as_text, strict_loads
from ..persona import Asked, Rendered, View
from ..prompts import Prompts
from ..script import Step
from ..streams import derived, sse
from ..transport import Incoming
from ..verdict import Verdict
from .judge import invalid, judge
from .ledger import Ledger, Mint
from .profiles import OPENROUTER, ROWS
from .render import Answer, render
from .request import Request

_BASE = "/api/v1"


class OpenRouter:
    """OpenRouter, with models of four families of providers behind it."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._prompts = Prompts()

    @property
    def hosts(self) -> Sequence[str]:
        """Its one name."""
        return (OPENROUTER.name,)

    def base_path(self, host: str) -> str:
        """The one of its API."""
        return _BASE

    def models(self, host: str) -> Sequence[str]:
        """The rows."""
        return tuple(ROWS)

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """A request for a completion, or for the list of models."""
        asks = incoming.method == "POST" and path == f"{_BASE}/chat/completions"
        if not asks and not (incoming.method == "GET" and path == f"{_BASE}/models"):
            return None
        if not accepted(bearer(incoming.headers)):
            return unauthorized(OPENROUTER)
        return _asked(path, incoming) if asks else Verdict(200, {"data": [{"id": model} for model in ROWS]})

    def judge(self, asked: Asked) -> Verdict:
        """The verdict of the pure judge, or the refusal of a model without a row."""
        if asked.model in ROWS:
            return judge(self._request(asked))
        text = OPENROUTER.unknown_model[0].format(model=asked.model)
        return refuse(OPENROUTER, text, f"unknown model {asked.model}")

    def view(self, asked: Asked) -> View:
        """The messages, with the reasoning that the provider would decrypt, or read."""
        request = self._request(asked)
        view = view_of(request.chat)
        if not request.thinks:
            return dataclasses.replace(view, thinks=False, notes=(), readable=False, began=False)
        return dataclasses.replace(view, notes=_notes(request))

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The completion and the stream; notes the details."""
        request = self._request(asked)
        prompt = prompt_words(request.chat)
        hit = self._prompts.hit(asked.host, asked.model, prompt)
        usage = count_usage(request.chat, step, len(prompt), hit)
        answer = Answer(request, step, derived(digest, request.account), usage)
        calls = tuple(identifier for identifier, _, _ in answer.calls)
        carriers = (answer.carrier,) if answer.carrier else ()
        if answer.details:
            self.ledger.add(Mint(asked.model, request.account, carriers, step.reasoning, calls))
        return render(answer)

    def reject(self, asked: Asked) -> Verdict:
        """The provider's refusal of the last carrier."""
        request = self._request(asked)
        back = [back for back in request.returned if back.carriers]
        index, entries = (back[-1].message.index, back[-1].entries) if back else (0, ())
        identifier = next((as_text(entry.get("id")) for entry in entries if entry.get("id")), "")
        return invalid(request, index, identifier, "rejected as scripted")

    def broken(self, message: str, code: str) -> bytes:
        """A chunk with a top-level ``error`` that also finishes the choice."""
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        return sse({"error": {"code": code, "message": message}, "choices": [choice]})

    def reset(self) -> None:
        """Forget mints and prompts."""
        self.ledger, self._prompts = Ledger(), Prompts()

    def _request(self, asked: Asked) -> Request:
        return Request(ROWS[asked.model], asked.body, account_of(bearer(asked.headers)), self.ledger)


def _notes(request: Request) -> tuple[str, ...]:
    texts = []
    for back in request.returned:
        minted = request.minted(back)
        texts.append(minted.thought if minted else "" if request.row.family.carrier else back.text)
    return tuple(text for text in texts if text)


def _asked(path: str, incoming: Incoming) -> Asked | Verdict:
    try:
        body = strict_loads(incoming.body)
    except (ValueError, RecursionError) as error:
        return refuse(OPENROUTER, f"Invalid JSON: {error}", "invalid JSON")
    model = as_text(as_object(body).get("model"))
    if not model:
        return refuse(OPENROUTER, "No models provided", "no model")
    found = dict(as_object(body))
    return Asked(OPENROUTER.name, path, incoming.headers, found, model, found.get("stream") is True)
