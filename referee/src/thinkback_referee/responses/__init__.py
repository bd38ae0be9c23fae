"""The Responses API of OpenAI, Azure, xAI, ChatGPT's Codex backend, Copilot, Meta, OpenRouter, DeepSeek, LM Studio."""

from __future__ import annotations

from collections.abc import Mapping

from ..credentials import accepted, account_of, bearer
from ..jsons import as_text, read_object
from ..persona import Asked, Provider, Rendered
from ..prompts import Prompts
from ..script import Step
from ..streams import derived, sse
from ..transport import Incoming
from ..verdict import Verdict
from .answer import DONE, WHOLE, Answer
from .judge import OWN, judge
from .ledger import Kept, Ledger, Origin, made_of
from .profiles import HOSTS, Host, models_of, profile_for
from .refusals import invalid_value, refuse, unauthorized, unknown_model, unverified
from .render import render, whole
from .replay import OWN as OWN_REPLAY
from .request import Request, count_usage, prefixes_after, prompt_words, view_of

_PERSISTED = "Encrypted content cannot be requested for persisted responses"


def _read(host: str, path: str, incoming: Incoming, ledger: Ledger) -> Asked | Verdict | None:
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
        return _stored(ledger, played, stored[2], incoming)
    if base == (played.versioned_path or None) and "api-version=" not in incoming.path:
        # text unconfirmed
        return refuse(played, "Missing required query parameter: api-version", "no api-version")
    if incoming.method == "GET" and path.endswith("/models"):
        rows = [{"id": name, "object": "model"} for name in models_of(host)]
        return Verdict(200, {"object": "list", "data": rows})
    return _asked(played, path, incoming) if incoming.method == "POST" and path.endswith("/responses") else None


def _asked(host: Host, path: str, incoming: Incoming) -> Asked | Verdict:
    body = read_object(incoming.body)
    if isinstance(body, str):
        return refuse(host, f"We could not parse the JSON body of your request: {body}", "invalid JSON")
    if body is None:
        return refuse(host, "The request body must be a JSON object", "body is not an object")
    model, stream = as_text(body.get("model")), body.get("stream")
    if not model:
        return refuse(host, "Missing required parameter: 'model'.", "no model", code="missing_required_parameter")
    if not isinstance(stream or False, bool):
        return invalid_value(host, "stream", "Invalid type for 'stream': expected a boolean.")
    return Asked(host.name, path, incoming.headers, body, model, bool(stream))


def _stored(ledger: Ledger, host: Host, identifier: str, incoming: Incoming) -> Verdict | None:
    kept = ledger.kept(identifier, host.name, _account(host, incoming.headers))
    if kept is None:
        return refuse(host, f"Response with id '{identifier}' not found.", "unknown response", status=404)
    if incoming.method == "DELETE":
        ledger.forget(identifier)
        return Verdict(200, {"id": identifier, "object": "response", "deleted": True})
    if "reasoning.encrypted_content" in incoming.path:
        return refuse(host, _PERSISTED, "encrypted content of a stored response")
    return Verdict(200, kept.body) if incoming.method == "GET" else None


def _key(host: Host, headers: Mapping[str, str]) -> str:
    given = (bearer(headers) if name == "authorization" else headers.get(name, "") for name in host.keys)
    return next((key for key in given if key), "")


def _authorized(host: Host, incoming: Incoming) -> bool:
    named = not host.account_header or bool(incoming.headers.get(host.account_header))
    return named and (not host.keys or accepted(_key(host, incoming.headers)))


def _account(host: Host, headers: Mapping[str, str]) -> str:
    return headers.get(host.account_header or "openai-project", "") or account_of(_key(host, headers))


def _request(asked: Asked, ledger: Ledger) -> Request | Verdict:
    profile = profile_for(asked.host, asked.model)
    if profile is None:
        return unknown_model(HOSTS[asked.host], asked.model)
    return Request(profile, asked.body, _account(profile.host, asked.headers), ledger)


def _render(request: Request, ledger: Ledger, step: Step, digest: str, prompts: Prompts) -> Rendered:
    """The response and the stream that say the same; notes its items, and itself where it is stored."""
    profile, prompt = request.profile, prompt_words(request)
    usage = count_usage(step, len(prompt), prompts.hit(profile.host.name, profile.reported, prompt))
    answer = Answer(request, step, derived(digest, request.account), usage, len(prompt))
    origin = Origin(profile.host.name, profile.reported, request.account, request.user, request.store)
    copies = [[answer.item(output, copy) for output in answer.outputs] for copy in (DONE, WHOLE)]
    thoughts = [output.text for output in answer.outputs if output.kind == "reasoning"]
    ledger.add(made_of(origin, answer.id, copies, prefixes_after(request, copies[0]), thoughts))
    if request.store:
        said = (*(item.raw for item in request.items), *copies[0])
        ledger.keep(answer.id, Kept(origin, said, whole(answer)))
    return render(answer)


def _reject(request: Request) -> Verdict:
    """The refusal of the last encrypted content, as if it could not be decrypted."""
    carried = [item for item in request.input if item.carrier]
    identifier, carrier = (carried[-1].id, carried[-1].carrier) if carried else ("rs_0", "")
    return unverified(request.profile.host, identifier, carrier, "rejected as scripted")


def _broken(message: str, code: str) -> bytes:
    """An ``error`` event."""
    return sse({"type": "error", "code": code, "message": message, "param": None, "sequence_number": 0}, "error")


RESPONSES = Provider(
    hosts={name: host.base_path for name, host in HOSTS.items()},
    models=models_of,
    ledger=Ledger,
    read=_read,
    request=_request,
    judge=lambda request, ledger: judge(request),
    view=lambda request, ledger: view_of(request),
    render=_render,
    reject=_reject,
    broken=_broken,
    own=(*OWN, *OWN_REPLAY),
)
