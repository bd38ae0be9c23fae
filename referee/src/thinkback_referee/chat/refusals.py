"""The shapes in which each chat provider words a refusal."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from ..jsons import JsonObject
from ..verdict import Verdict
from .profiles import Host

_Shape = Callable[[str, str, str | None], JsonObject]


def _openai(message: str, kind: str, code: str | None) -> JsonObject:
    return {"error": {"message": message, "type": kind, "param": None, "code": code or kind}}


def _null_code(message: str, kind: str, code: str | None) -> JsonObject:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _brief(message: str, kind: str, code: str | None) -> JsonObject:
    error: JsonObject = {"message": message, "type": kind}
    return {"error": {**error, "code": code} if code else error}


def _routed(message: str, kind: str, code: str | None) -> JsonObject:
    return {"error": {"message": message, "code": int(kind) if kind.isdigit() else 400}}


def _flat(message: str, kind: str, code: str | None) -> JsonObject:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


_SHAPES: MappingProxyType[str, _Shape] = MappingProxyType(
    {"deepseek": _openai, "kimi": _brief, "groq": _brief, "mistral": _flat, "openai": _null_code, "openrouter": _routed}
)
_DEFAULT_KIND = "invalid_request_error"


def refuse(
    host: Host, message: str, reason: str, *, status: int = 400, kind: str = _DEFAULT_KIND, code: str | None = None
) -> Verdict:
    """A refusal in the host's own error shape."""
    return Verdict(status, _SHAPES[host.name](message, kind, code), reason)


def refuse_field(host: Host, index: int, role: str, name: str, value: object) -> Verdict:
    """A refusal of a message field that the host does not know, in its own words."""
    status, body = _FIELD_SHAPES[host.name](index, role, name, value)
    return Verdict(status, body, f"unknown field {name} at messages[{index}]")


def _field_unrecognized(index: int, role: str, name: str, value: object) -> tuple[int, JsonObject]:
    # The real DeepSeek and Kimi ignore what they do not know; the wording here is OpenAI's.
    return 400, _openai(f"Unrecognized request argument supplied: messages[{index}].{name}", _DEFAULT_KIND, None)


def _field_unknown(index: int, role: str, name: str, value: object) -> tuple[int, JsonObject]:
    # text unconfirmed for fields of messages; this is how OpenAI words it elsewhere
    param = f"messages[{index}].{name}"
    error: JsonObject = {"message": f"Unknown parameter: '{param}'.", "type": _DEFAULT_KIND, "param": param}
    return 400, {"error": {**error, "code": "unknown_parameter"}}


def _field_routed(index: int, role: str, name: str, value: object) -> tuple[int, JsonObject]:
    # The real OpenRouter ignores what it does not know.
    return 400, _routed(f'Unrecognized key: "messages[{index}].{name}"', _DEFAULT_KIND, None)


def _field_unsupported(index: int, role: str, name: str, value: object) -> tuple[int, JsonObject]:
    place = f"'messages.{index}'"
    message = (
        f"{place} : for 'role:{role}' the following must be satisfied[({place} : property '{name}' is unsupported)]"
    )
    return 400, _brief(message, _DEFAULT_KIND, None)


def _field_forbidden(index: int, role: str, name: str, value: object) -> tuple[int, JsonObject]:
    entry: JsonObject = {
        "type": "extra_forbidden",
        "loc": ["body", "messages", index, role, name],
        "msg": "Extra inputs are not permitted",
        "input": value,
    }
    return 422, {"detail": [entry]}


_FIELD_SHAPES: MappingProxyType[str, Callable[[int, str, str, object], tuple[int, JsonObject]]] = MappingProxyType(
    {
        "deepseek": _field_unrecognized,
        "kimi": _field_unrecognized,
        "groq": _field_unsupported,
        "mistral": _field_forbidden,
        "openai": _field_unknown,
        "openrouter": _field_routed,
    }
)


def unauthorized(host: Host) -> Verdict:
    """The 401 of a missing or wrong key."""
    message, kind, code = host.unauthorized
    return refuse(host, message, "unauthorized", status=401, kind=kind, code=code)


def unknown_model(host: Host, model: str) -> Verdict:
    """The 404 of a model that the host does not serve."""
    message, kind, code = host.unknown_model
    return refuse(host, message.format(model=model), f"unknown model {model}", status=404, kind=kind, code=code)
