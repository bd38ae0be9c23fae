"""Refusals in the shape and the words of the Messages API."""

from __future__ import annotations

from ..jsons import JsonObject
from ..verdict import Verdict

MALFORMED = "invalid_request_error"
# Errors of the provider name a request; here it is always the same, so that the same request gives the same bytes.
_REQUEST_ID = "req_011CReferee0000000000000"


def error_body(message: str, kind: str) -> JsonObject:
    """The object that reports an error, also inside a stream."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": _REQUEST_ID}


def refuse(message: str, reason: str, *, status: int = 400, kind: str = MALFORMED) -> Verdict:
    """A refusal; ``reason`` is for people and tests."""
    return Verdict(status, error_body(message, kind), reason)


def extra(path: str) -> Verdict:
    """The refusal of a field that has no place where it stands."""
    return refuse(f"{path}: Extra inputs are not permitted", f"unexpected {path}")


def required(path: str) -> Verdict:
    """The refusal of a request that lacks a field."""
    return refuse(f"{path}: Field required", f"missing {path}")


def wrong(path: str, wanted: str) -> Verdict:
    """The refusal of a field of another type or value than is wanted."""
    return refuse(f"{path}: Input should be {wanted}", f"bad {path}")


def unknown_model(model: str) -> Verdict:
    """The 404 of a model that is not served."""
    return refuse(f"model: {model}", f"unknown model {model}", status=404, kind="not_found_error")


def unauthorized(message: str) -> Verdict:
    """The 401 of a missing or wrong key."""
    return refuse(message, "unauthorized", status=401, kind="authentication_error")
