"""The persona of the Interactions API at AI Studio: stored conversations, and stateless ones."""

from __future__ import annotations

from collections.abc import Sequence

from ..credentials import accepted, account_of
from ..gemini.errors import refuse_credentials
from ..gemini.keys import studio_key
from ..gemini.profiles import GEMINI, PROFILES
from ..gemini.render import seal
from ..jsons import as_object, as_text, compact, strict_loads
from ..persona import Asked, Rendered, View
from ..prompts import Prompts
from ..script import Step
from ..streams import derived, sse
from ..transport import Incoming
from ..verdict import Verdict
from .judge import INVALID, NOT_FOUND, judge, refuse
from .ledger import Ledger, Mint, Stored
from .render import DONE, events, interaction, prepare
from .request import Request
from .view import view_of, words_of

_PATH = "/v1beta/interactions"


class Interactions:
    """Gemini behind ``/interactions``."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._prompts = Prompts()

    @property
    def hosts(self) -> Sequence[str]:
        """One name of its own."""
        return ("gemini-interactions",)

    def base_path(self, host: str) -> str:
        """The version."""
        return "/v1beta"

    def models(self, host: str) -> Sequence[str]:
        """The models of AI Studio."""
        return tuple(PROFILES)

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """A new interaction, or a stored one to be read or deleted."""
        identifier = path.removeprefix(f"{_PATH}/")
        if path != _PATH and (identifier == path or incoming.method == "POST"):
            return None
        key = studio_key(incoming.path, incoming.headers)
        if not accepted(key):
            return refuse_credentials(GEMINI, missing=not key)
        if path != _PATH:
            return self._stored(identifier, account_of(key), incoming.method)
        return _asked(host, incoming) if incoming.method == "POST" else None

    def judge(self, asked: Asked) -> Verdict:
        """The verdict of the pure judge, or the 404 of a model without a row."""
        if asked.model not in PROFILES:
            text = f"Model {asked.model} not found."
            return refuse(text, f"unknown model {asked.model}", status=404, code="not_found")
        return judge(self._request(asked))

    def view(self, asked: Asked) -> View:
        """What the server kept and what came."""
        return view_of(self._request(asked))

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The interaction and its events; stored unless the request says otherwise."""
        request = self._request(asked)
        own = derived(digest, request.account)
        # A thought step comes with every response, whether or not there are tokens behind it.
        signature = seal(GEMINI, step.reasoning, own)
        words = words_of(request)
        hit = self._prompts.hit(asked.host, request.profile.reported, words)
        answer = prepare(request, step, own, signature, len(words), hit)
        self.ledger.add(Mint(answer.model, answer.steps, step.reasoning))
        whole = interaction(answer)
        if request.stored:
            kept = (*request.steps, *answer.steps)
            self.ledger.stored[answer.id] = Stored(kept, answer.model, request.account, whole)
        return Rendered(compact(whole).encode(), events(answer), DONE)

    def reject(self, asked: Asked) -> Verdict:
        """The refusal of a thought's signature."""
        return refuse(INVALID.format(index=0), "rejected as scripted")

    def broken(self, message: str, code: str) -> bytes:
        """An ``error`` event."""
        return sse({"error": {"message": message, "code": code}, "event_type": "error"}, "error")

    def reset(self) -> None:
        """Forget everything stored and minted."""
        self.ledger, self._prompts = Ledger(), Prompts()

    def _request(self, asked: Asked) -> Request:
        account = account_of(studio_key(asked.path, asked.headers))
        return Request(PROFILES[asked.model], asked.body, account, self.ledger)

    def _stored(self, identifier: str, account: str, method: str) -> Verdict:
        found = self.ledger.stored.get(identifier)
        if found is None or found.account != account:
            return refuse(NOT_FOUND.format(id=identifier), "unknown interaction", status=404, code="not_found")
        if method == "DELETE":
            del self.ledger.stored[identifier]
            return Verdict(200, {})
        return Verdict(200, found.body)


def _asked(host: str, incoming: Incoming) -> Asked | Verdict:
    try:
        body = strict_loads(incoming.body)
    except (ValueError, RecursionError) as error:
        return refuse(f"Invalid JSON payload received. {error}", "invalid JSON")
    found = dict(as_object(body))
    model = as_text(found.get("model"))
    if not model:
        return refuse("model is required.", "no model")
    return Asked(host, incoming.path, incoming.headers, found, model, found.get("stream") is True)
