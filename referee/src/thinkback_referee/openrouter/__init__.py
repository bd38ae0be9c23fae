"""OpenRouter's chat completions: ``reasoning_details`` with the carriers of the model's own provider.

Models of four families of providers are behind it. Its Responses are played with everybody else's.
"""

from __future__ import annotations

import dataclasses

from ..chat.refusals import refuse, unauthorized
from ..chat.request import count_usage, prompt_words, view_of
from ..credentials import accepted, account_of, bearer
from ..jsons import as_text, read_object
from ..persona import Asked, Provider, Rendered, View
from ..prompts import Prompts
from ..script import Step
from ..streams import derived, sse
from ..transport import Incoming
from ..verdict import Verdict
from .judge import OWN, invalid, judge
from .profiles import CHANGED, HOST, ROWS
from .render import Answer, render
from .request import Ledger, Mint, Request


def _read(host: str, path: str, incoming: Incoming, ledger: Ledger) -> Asked | Verdict | None:
    """A request for a completion, or for the list of models."""
    asks = incoming.method == "POST" and path == f"{HOST.base_path}/chat/completions"
    if not asks and not (incoming.method == "GET" and path == f"{HOST.base_path}/models"):
        return None
    if not accepted(bearer(incoming.headers)):
        return unauthorized(HOST)
    if not asks:
        return Verdict(200, {"data": [{"id": model} for model in ROWS]})
    body = read_object(incoming.body)
    if isinstance(body, str):
        return refuse(HOST, f"Invalid JSON: {body}", "invalid JSON")
    model = as_text((body or {}).get("model"))
    if not body or not model:
        return refuse(HOST, "No models provided", "no model")
    return Asked(host, path, incoming.headers, body, model, body.get("stream") is True)


def _request(asked: Asked, ledger: Ledger) -> Request | Verdict:
    if asked.model not in ROWS:
        text = HOST.unknown_model[0].format(model=asked.model)
        return refuse(HOST, text, f"unknown model {asked.model}")
    return Request(ROWS[asked.model], asked.body, account_of(bearer(asked.headers)), ledger)


def _view(request: Request, ledger: Ledger) -> View:
    """The messages, with the reasoning that the provider would decrypt, or read."""
    view = view_of(request.chat)
    if not request.thinks:
        return dataclasses.replace(view, thinks=False, notes=(), readable=False, began=False)
    notes = []
    for back in request.returned:
        minted = request.minted(back)
        notes.append(minted.thought if minted else "" if request.row.family.carrier else back.text)
    return dataclasses.replace(view, notes=tuple(note for note in notes if note))


def _render(request: Request, ledger: Ledger, step: Step, digest: str, prompts: Prompts) -> Rendered:
    prompt, model = prompt_words(request.chat), request.row.chat.model
    usage = count_usage(request.chat, step, len(prompt), prompts.hit(HOST.name, model, prompt))
    answer = Answer(request, step, derived(digest, request.account), usage)
    if answer.details:
        calls = tuple(identifier for identifier, _, _ in answer.calls)
        carriers = (answer.carrier,) if answer.carrier else ()
        ledger.add(Mint(model, request.account, carriers, step.reasoning, calls))
    return render(answer)


def _reject(request: Request) -> Verdict:
    """The provider's refusal of the last carrier."""
    back = [back for back in request.returned if back.carriers]
    index, entries = (back[-1].message.index, back[-1].entries) if back else (0, ())
    identifier = next((as_text(entry.get("id")) for entry in entries if entry.get("id")), "")
    return invalid(request, index, identifier, "rejected as scripted")


def _broken(message: str, code: str) -> bytes:
    """A chunk with a top-level ``error`` that also finishes the choice."""
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    return sse({"error": {"code": code, "message": message}, "choices": [choice]})


OPENROUTER = Provider(
    hosts={HOST.name: HOST.base_path},
    models=lambda host: tuple(ROWS),
    ledger=Ledger,
    read=_read,
    request=_request,
    judge=lambda request, ledger: judge(request),
    view=_view,
    render=_render,
    reject=_reject,
    broken=_broken,
    own=(*OWN, CHANGED),
)
