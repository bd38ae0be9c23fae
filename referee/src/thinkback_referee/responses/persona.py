"""The persona of everybody who speaks the Responses API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..credentials import accepted, account_of, bearer
from ..jsons import as_object, as_text, strict_loads
from ..persona import Asked, Rendered, View
from ..prompts import Prompts
from ..script import Step
from ..streams import derived, sse
from ..transport import Incoming
from ..verdict import Verdict
from .answer import DONE, WHOLE, Answer
from .hosts import HOSTS, Host
from .judge import judge
from .learn import copies_of, made_of
from .ledger import Kept, Ledger, Origin
from .profiles import Profile, models_of, profile_for
from .refusals import invalid_value, refuse, unauthorized, unknown_model, unverified
from .render import render, whole
from .request import Request, prefixes_of, read_item
from .usage import count_usage, prompt_words
from .view import view_of

_PERSISTED = "Encrypted content cannot be requested for persisted responses"


class Responses:
    """OpenAI, Azure, xAI, ChatGPT's Codex backend, Copilot, Meta, OpenRouter, DeepSeek and LM Studio."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._prompts = Prompts()
        self._learned = 0

    @property
    def hosts(self) -> Sequence[str]:
        """The names of its providers."""
        return tuple(HOSTS)

    def base_path(self, host: str) -> str:
        """The host's usual base path."""
        return HOSTS[host].base_path

    def models(self, host: str) -> Sequence[str]:
        """The host's rows."""
        return models_of(host)

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """A request for a response, a stored response to see or delete, or the list of models."""
        played = HOSTS[host]
        bases = (played.base_path, *played.other_paths, *filter(None, [played.versioned_path]))
        base = next((base for base in bases if path in (f"{base}/responses", f"{base}/models")), None)
        stored = path.rpartition("/responses/")
        if base is None and not (stored[0] in bases and stored[2]):
            return None
        if not _authorized(played, incoming):
            return unauthorized(played)
        if base is None:
            return self._stored(played, stored[2], incoming)
        if base == (played.versioned_path or None) and "api-version=" not in incoming.path:
            # text unconfirmed
            return refuse(played, "Missing required query parameter: api-version", "no api-version")
        if incoming.method == "GET" and path.endswith("/models"):
            return Verdict(
                200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models(host)]}
            )
        return _asked(played, path, incoming) if incoming.method == "POST" and path.endswith("/responses") else None

    def judge(self, asked: Asked) -> Verdict:
        """The verdict of the pure judge, or the 404 of a model without a row."""
        profile = profile_for(asked.host, asked.model)
        return judge(self._request(profile, asked)) if profile else unknown_model(HOSTS[asked.host], asked.model)

    def view(self, asked: Asked) -> View:
        """The conversation, with the reasoning that the model gets to read."""
        return view_of(self._known(asked))

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The response and the stream that say the same; notes its items, and itself where it is stored."""
        request = self._known(asked)
        prompt = prompt_words(request)
        usage = count_usage(step, len(prompt), self._prompts.hit(asked.host, request.profile.reported, prompt))
        answer = Answer(request, step, derived(digest, request.account), usage, len(prompt))
        self._note(answer)
        return render(answer)

    def reject(self, asked: Asked) -> Verdict:
        """The refusal of the last encrypted content, as if it could not be decrypted."""
        request = self._known(asked)
        carried = [item for item in request.input if item.carrier]
        identifier, carrier = (carried[-1].id, carried[-1].carrier) if carried else ("rs_0", "")
        return unverified(request.profile.host, identifier, carrier, "rejected as scripted")

    def broken(self, message: str, code: str) -> bytes:
        """An ``error`` event."""
        return sse({"type": "error", "code": code, "message": message, "param": None, "sequence_number": 0}, "error")

    def reset(self) -> None:
        """Forget mints, stored responses and prompts."""
        self.ledger, self._prompts, self._learned = Ledger(), Prompts(), 0

    def learn(self, host: str, account: str, body: Mapping[str, object], response: Mapping[str, object] | str) -> None:
        """Note what a recorded response to ``body`` minted: a response object, or the text of an event stream."""
        profile = profile_for(host, as_text(body.get("model")))
        if profile is None:
            raise LookupError(f"no row for {host} {body.get('model')}")
        found, copies = copies_of(response)
        request = Request(profile, dict(body), account, self.ledger)
        stored = request.store and found.get("store") is not False
        origin = Origin(host, profile.reported, account, request.user, stored)
        self._learned += 1
        name = f"{found.get('id')}#{self._learned}"
        self.ledger.add(made_of(origin, name, copies, _prefixes(request, copies[0])))
        if stored:
            said = (*(item.raw for item in request.items), *copies[0])
            self.ledger.keep(as_text(found.get("id")), Kept(origin, said, found))

    def _note(self, answer: Answer) -> None:
        request = answer.request
        profile = request.profile
        origin = Origin(profile.host.name, profile.reported, request.account, request.user, request.store)
        copies = [[answer.item(output, copy) for output in answer.outputs] for copy in (DONE, WHOLE)]
        thoughts = [output.text for output in answer.outputs if output.kind == "reasoning"]
        self.ledger.add(made_of(origin, answer.id, copies, _prefixes(request, copies[0]), thoughts))
        if request.store:
            said = (*(item.raw for item in request.items), *copies[0])
            self.ledger.keep(answer.id, Kept(origin, said, whole(answer)))

    def _stored(self, host: Host, identifier: str, incoming: Incoming) -> Verdict | None:
        kept = self.ledger.kept(identifier, host.name, _account(host, incoming.headers))
        if kept is None:
            return refuse(host, f"Response with id '{identifier}' not found.", "unknown response", status=404)
        if incoming.method == "DELETE":
            self.ledger.forget(identifier)
            return Verdict(200, {"id": identifier, "object": "response", "deleted": True})
        if "reasoning.encrypted_content" in incoming.path:
            return refuse(host, _PERSISTED, "encrypted content of a stored response")
        return Verdict(200, kept.body) if incoming.method == "GET" else None

    def _known(self, asked: Asked) -> Request:
        profile = profile_for(asked.host, asked.model)
        assert profile is not None
        return self._request(profile, asked)

    def _request(self, profile: Profile, asked: Asked) -> Request:
        return Request(profile, asked.body, _account(profile.host, asked.headers), self.ledger)


def _prefixes(request: Request, output: Sequence[Mapping[str, object]]) -> list[str]:
    items = [*request.items, *(read_item(-1, raw) for raw in output)]
    return prefixes_of(request, items)[len(request.items) :]


def _key(host: Host, headers: Mapping[str, str]) -> str:
    given = (bearer(headers) if name == "authorization" else headers.get(name, "") for name in host.keys)
    return next((key for key in given if key), "")


def _authorized(host: Host, incoming: Incoming) -> bool:
    named = not host.account_header or bool(incoming.headers.get(host.account_header))
    return named and (not host.keys or accepted(_key(host, incoming.headers)))


def _account(host: Host, headers: Mapping[str, str]) -> str:
    return headers.get(host.account_header or "openai-project", "") or account_of(_key(host, headers))


def _asked(host: Host, path: str, incoming: Incoming) -> Asked | Verdict:
    try:
        body = strict_loads(incoming.body)
    except (ValueError, RecursionError) as error:
        return refuse(host, f"We could not parse the JSON body of your request: {error}", "invalid JSON")
    if not isinstance(body, dict):
        return refuse(host, "The request body must be a JSON object", "body is not an object")
    model = as_text(body.get("model"))
    if not model:
        return refuse(host, "Missing required parameter: 'model'.", "no model", code="missing_required_parameter")
    if not isinstance(body.get("stream") or False, bool):
        return invalid_value(host, "stream", "Invalid type for 'stream': expected a boolean.")
    return Asked(host.name, path, incoming.headers, dict(as_object(body)), model, bool(body.get("stream")))
