"""Refusals in each host's own error shape, with OpenAI's texts where several rules share one."""

from __future__ import annotations

from ..jsons import JsonObject, compact
from ..verdict import Verdict
from .profiles import Host

_KIND = "invalid_request_error"


def refuse(
    host: Host, message: str, reason: str, *, param: str | None = None, code: str | None = None, status: int = 400
) -> Verdict:
    """A refusal in the host's own error shape."""
    return Verdict(status, _error(host.shape, status, message, param, code), reason)


def _error(shape: str, status: int, message: str, param: str | None, code: str | None) -> JsonObject:
    match shape:
        case "deepseek":
            return {"error": {"message": message, "type": _KIND, "param": None, "code": _KIND}}
        case "xai":
            return {"code": "not-found" if status == 404 else "invalid-argument", "error": message}
        case "openrouter":
            return {"error": {"message": message, "code": status}}
        case _:
            return {"error": {"message": message, "type": _KIND, "param": param, "code": code}}


def refuse_upstream(
    host: Host, message: str, reason: str, *, param: str | None = None, code: str | None = None, status: int = 400
) -> Verdict:
    """A refusal of the model's own provider, which a router passes on inside its own error."""
    if host.shape != "openrouter":
        return refuse(host, message, reason, param=param, code=code, status=status)
    raw = compact(_error("openai", status, message, param, code))
    metadata = {"raw": raw, "provider_name": "OpenAI"}
    return Verdict(
        status, {"error": {"message": "Provider returned error", "code": status, "metadata": metadata}}, reason
    )


def refuse_detail(message: str, reason: str, status: int = 400) -> Verdict:
    """A refusal of ChatGPT's backend, before a request reaches the model's servers."""
    return Verdict(status, {"detail": message}, reason)


def unknown_parameter(host: Host, name: str) -> Verdict:
    """A parameter or field that the host does not know."""
    return refuse(host, f"Unknown parameter: '{name}'.", f"unknown {name}", param=name, code="unknown_parameter")


def missing_parameter(host: Host, name: str) -> Verdict:
    """A parameter or field that must be there."""
    message = f"Missing required parameter: '{name}'."
    return refuse(host, message, f"missing {name}", param=name, code="missing_required_parameter")


def unsupported_parameter(host: Host, name: str) -> Verdict:
    """A parameter that the model does not take."""
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    return refuse(host, message, f"unsupported {name}", param=name, code="unsupported_parameter")


def unsupported_value(host: Host, name: str, value: object, model: str, allowed: tuple[str, ...]) -> Verdict:
    """A value that the model does not take, with those it does."""
    quoted = [f"'{word}'" for word in allowed]
    listed = f"{', '.join(quoted[:-1])}, and {quoted[-1]}" if len(quoted) > 2 else " and ".join(quoted)
    message = f"Unsupported value: '{value}' is not supported with the '{model}' model. Supported values are: {listed}."
    return refuse(host, message, f"bad {name}", param=name, code="unsupported_value")


def invalid_value(host: Host, name: str, message: str) -> Verdict:
    """A value of the wrong kind."""
    return refuse(host, message, f"bad {name}", param=name, code="invalid_value")


def item_not_found(host: Host, identifier: str, index: int, *, store: bool) -> Verdict:
    """An item that was to be looked up by its id and is not there (E3)."""
    if host.unfound:
        return refuse(host, host.unfound, f"not found at input[{index}]")
    message = f"Item with id '{identifier}' not found."
    if not store:
        message += (
            " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove "
            "this item from your input."
        )
    return refuse_upstream(host, message, f"not found at input[{index}]", param="input", status=404)


def unverified(host: Host, identifier: str, carrier: str, reason: str) -> Verdict:
    """Encrypted content that cannot be read (E4)."""
    if host.undecryptable:
        return refuse(host, host.undecryptable, reason)
    named = f"for item {identifier}" if identifier else f"{carrier[:4]}...{carrier[-4:]}"
    message = (
        f"The encrypted content {named} could not be verified. "
        "Reason: Encrypted content could not be decrypted or parsed."
    )
    return refuse_upstream(host, message, reason, code="invalid_encrypted_content")


def unauthorized(host: Host) -> Verdict:
    """A missing or wrong key."""
    status, message, code = host.unauthorized
    if host.session_only:
        return refuse_detail(message, "unauthorized", status)
    return refuse(host, message, "unauthorized", code=code, status=status)


def unknown_model(host: Host, model: str) -> Verdict:
    """A model that the host does not serve."""
    message = f"The model '{model}' does not exist or you do not have access to it."
    return refuse(host, message, f"unknown model {model}", code="model_not_found", status=404)
