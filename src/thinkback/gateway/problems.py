"""What a client is told of a failure: a status, and words without keys, file names and what is behind the gateway."""

from __future__ import annotations

from typing import NamedTuple

from thinkback.errors import (
    BudgetSpent,
    ContextRefused,
    CredentialError,
    NetworkError,
    NotFoundError,
    PhaseTimeout,
    ProviderError,
    ReplayRefused,
    SettingError,
    StoreError,
    ThinkbackError,
    UnsupportedContent,
    WireError,
)
from thinkback.gateway.refusals import Refused
from thinkback.wire.writing import Problem

_OF_THE_CLIENT = (WireError, UnsupportedContent, SettingError, ReplayRefused, ContextRefused)
# What an upstream says of the gateway's own credentials is nothing that a client could mend.
_CREDENTIALS = frozenset({401, 402, 403, 407})
RETRY = 5.0


class Told(NamedTuple):
    """A problem, and after how many seconds it may be gone (``None``: to ask again does not help)."""

    problem: Problem
    retry_after: float | None = None


def told(error: BaseException) -> Told:
    """What a client reads of ``error``."""
    match error:
        case Refused():
            param = str(error.details.get("param", ""))
            return Told(Problem(error.status, error.message, code=error.code, param=param), error.retry_after)
        case ProviderError():
            return _of_provider(error)
        case PhaseTimeout():
            return Told(Problem(504, f"the upstream did not answer in time: {error.message}", code="upstream_timeout"))
        case NetworkError() if "retry_after" in error.details:
            wait = float(str(error.details["retry_after"]))
            return Told(Problem(503, error.message, code="upstream_resting"), wait)
        case NetworkError() if "largest" in error.details:
            return Told(Problem(502, error.message, code="upstream_too_large"))
        case NetworkError():
            return Told(Problem(502, "the upstream cannot be reached, or broke off", code="upstream_unreachable"))
        case CredentialError():
            return Told(Problem(502, "the gateway has no credentials for this upstream", code="upstream_credentials"))
        case BudgetSpent():
            return Told(Problem(429, error.message, code="reasoning_budget_spent"))
        case NotFoundError():
            return Told(Problem(404, error.message, code="not_found"))
        case StoreError():
            return Told(Problem(503, "the gateway cannot store this request at the moment", code="store"), RETRY)
        case _ if isinstance(error, _OF_THE_CLIENT):
            assert isinstance(error, ThinkbackError)
            param = str(error.details.get("key", "") or error.details.get("param", ""))
            return Told(Problem(400, error.message, code=error.kind, param=param))
        case _:
            return Told(Problem(500, "the gateway failed", code="internal"))


def _of_provider(error: ProviderError) -> Told:
    status = int(str(error.details.get("status") or 0))
    words = str(error.details.get("provider_message") or error.message)
    kind, code = str(error.details.get("type") or ""), str(error.details.get("code") or "")
    if status in _CREDENTIALS:
        return Told(Problem(502, "the upstream refused the gateway's credentials", code="upstream_credentials"))
    if not 400 <= status < 600:
        return Told(Problem(502, words, code=code or "upstream_error"))
    wait = RETRY if status in (429, 503, 529) else None
    return Told(Problem(status, words, kind, code), wait)
