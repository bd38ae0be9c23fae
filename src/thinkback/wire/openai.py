"""What the dialects of OpenAI's API share: the body of an error, the lists of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thinkback.model import canonical
from thinkback.wire.front import Listed
from thinkback.wire.writing import Problem

_TYPES = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_OWN_TYPES = frozenset({"invalid_request_error", "server_error", "api_error", "tokens", "requests", *_TYPES.values()})


def write_error(problem: Problem) -> bytes:
    """The body of an error. A type that is no word of this dialect stands as the code where there is no other."""
    own = problem.type in _OWN_TYPES
    kind = problem.type if own else _TYPES.get(problem.status, "")
    if problem.code == "insufficient_quota":
        kind = problem.code
    error = {
        "message": problem.message,
        "type": kind or ("server_error" if problem.status >= 500 else "invalid_request_error"),
        "param": problem.param or None,
        "code": problem.code or ("" if own else problem.type) or None,
    }
    return canonical.raw(canonical.source({"error": error}))


def list_models(listed: Sequence[Listed]) -> dict[str, Any]:
    """The document of all models."""
    return {"object": "list", "data": [show_model(each) for each in listed]}


def show_model(listed: Listed) -> dict[str, Any]:
    """The document of one."""
    return {"id": listed.id, "object": "model", "created": listed.created, "owned_by": listed.owner}
