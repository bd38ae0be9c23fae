"""The shapes in which each chat provider words a refusal."""

from __future__ import annotations

from ..jsons import JsonObject
from ..verdict import Verdict
from .profiles import Host

_KIND = "invalid_request_error"


def refuse(
    host: Host, message: str, reason: str, *, status: int = 400, kind: str = _KIND, code: str | None = None
) -> Verdict:
    """A refusal in the host's own error shape."""
    return Verdict(status, _error(host, message, kind, code), reason)


def _error(host: Host, message: str, kind: str, code: str | None) -> JsonObject:
    match host.name:
        case "deepseek":
            return {"error": {"message": message, "type": kind, "param": None, "code": code or kind}}
        case "kimi" | "groq":
            return {"error": {"message": message, "type": kind, **({"code": code} if code else {})}}
        case "mistral":
            return {"object": "error", "message": message, "type": kind, "param": None, "code": code}
        case "openrouter":
            return {"error": {"message": message, "code": int(kind) if kind.isdigit() else 400}}
        case _:
            return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def refuse_field(host: Host, index: int, role: str, name: str, value: object) -> Verdict:
    """A refusal of a message field that the host does not know, in its own words."""
    reason, place = f"unknown field {name} at messages[{index}]", f"messages[{index}].{name}"
    match host.name:
        case "groq":
            named = f"'messages.{index}'"
            text = (
                f"{named} : for 'role:{role}' the following must be satisfied"
                f"[({named} : property '{name}' is unsupported)]"
            )
            return refuse(host, text, reason)
        case "mistral":
            entry: JsonObject = {
                "type": "extra_forbidden",
                "loc": ["body", "messages", index, role, name],
                "msg": "Extra inputs are not permitted",
                "input": value,
            }
            return Verdict(422, {"detail": [entry]}, reason)
        case "openai":
            # text unconfirmed for fields of messages; this is how OpenAI words it elsewhere
            error = {"message": f"Unknown parameter: '{place}'.", "type": _KIND, "param": place}
            return Verdict(400, {"error": {**error, "code": "unknown_parameter"}}, reason)
        case "openrouter":
            # The real OpenRouter ignores what it does not know.
            return refuse(host, f'Unrecognized key: "{place}"', reason)
        case _:
            # The real DeepSeek and Kimi ignore what they do not know; the wording and the shape are OpenAI's.
            text = f"Unrecognized request argument supplied: {place}"
            return Verdict(400, {"error": {"message": text, "type": _KIND, "param": None, "code": _KIND}}, reason)


def unauthorized(host: Host) -> Verdict:
    """The 401 of a missing or wrong key."""
    message, kind, code = host.unauthorized
    return refuse(host, message, "unauthorized", status=401, kind=kind, code=code)


def unknown_model(host: Host, model: str) -> Verdict:
    """The 404 of a model that the host does not serve."""
    message, kind, code = host.unknown_model
    return refuse(host, message.format(model=model), f"unknown model {model}", status=404, kind=kind, code=code)
