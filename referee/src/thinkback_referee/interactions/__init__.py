"""Google's Interactions API at AI Studio: steps instead of messages, kept by the server or sent back whole."""

from __future__ import annotations

from ..credentials import accepted, account_of
from ..gemini.errors import refuse_credentials, studio_key
from ..gemini.profiles import PROFILES, STUDIO
from ..gemini.render import seal
from ..jsons import as_text, compact, read_object
from ..persona import Asked, Provider, Rendered
from ..prompts import Prompts
from ..script import Step
from ..streams import derived, sse
from ..transport import Incoming
from ..verdict import Verdict
from .judge import INVALID, NOT_FOUND, OWN, judge, refuse
from .ledger import Ledger, Mint, Stored
from .render import DONE, events, interaction, prepare
from .request import Request, view_of, words_of

_HOST = "gemini-interactions"
_PATH = "/v1beta/interactions"


def _read(host: str, path: str, incoming: Incoming, ledger: Ledger) -> Asked | Verdict | None:
    """A new interaction, or a stored one to be read or deleted."""
    identifier = path.removeprefix(f"{_PATH}/")
    if path != _PATH and (identifier == path or incoming.method == "POST"):
        return None
    key = studio_key(incoming.path, incoming.headers)
    if not accepted(key):
        return refuse_credentials(STUDIO, missing=not key)
    if path != _PATH:
        return _stored(ledger, identifier, account_of(key), incoming.method)
    if incoming.method != "POST":
        return None
    body = read_object(incoming.body)
    if isinstance(body, str):
        return refuse(f"Invalid JSON payload received. {body}", "invalid JSON")
    model = as_text((body or {}).get("model"))
    if not body or not model:
        return refuse("model is required.", "no model")
    return Asked(host, incoming.path, incoming.headers, body, model, body.get("stream") is True)


def _stored(ledger: Ledger, identifier: str, account: str, method: str) -> Verdict:
    found = ledger.stored.get(identifier)
    if found is None or found.account != account:
        return refuse(NOT_FOUND.format(id=identifier), "unknown interaction", status=404, code="not_found")
    if method == "DELETE":
        del ledger.stored[identifier]
        return Verdict(200, {})
    return Verdict(200, found.body)


def _request(asked: Asked, ledger: Ledger) -> Request | Verdict:
    if asked.model not in PROFILES:
        text = f"Model {asked.model} not found."
        return refuse(text, f"unknown model {asked.model}", status=404, code="not_found")
    account = account_of(studio_key(asked.path, asked.headers))
    return Request(PROFILES[asked.model], asked.body, account, ledger)


def _render(request: Request, ledger: Ledger, step: Step, digest: str, prompts: Prompts) -> Rendered:
    """The interaction and its events; stored unless the request says otherwise."""
    own = derived(digest, request.account)
    # A thought step comes with every response, whether or not there are tokens behind it.
    signature = seal(STUDIO, step.reasoning, own)
    words = words_of(request)
    hit = prompts.hit(_HOST, request.profile.reported, words)
    answer = prepare(request, step, own, signature, len(words), hit)
    ledger.add(Mint(answer.model, answer.steps, step.reasoning))
    whole = interaction(answer)
    if request.stored:
        ledger.stored[answer.id] = Stored((*request.steps, *answer.steps), answer.model, request.account, whole)
    return Rendered(compact(whole).encode(), events(answer), DONE)


def _broken(message: str, code: str) -> bytes:
    """An ``error`` event."""
    return sse({"error": {"message": message, "code": code}, "event_type": "error"}, "error")


INTERACTIONS = Provider(
    hosts={_HOST: "/v1beta"},
    models=lambda host: tuple(PROFILES),
    ledger=Ledger,
    read=_read,
    request=_request,
    judge=lambda request, ledger: judge(request),
    view=lambda request, ledger: view_of(request),
    render=_render,
    reject=lambda request: refuse(INVALID.format(index=0), "rejected as scripted"),
    broken=_broken,
    own=OWN,
)
