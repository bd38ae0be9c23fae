"""Failures as a client reads them: a status, and words without keys, file names and what is behind the server.

``Refused`` is a failure that the server decides on its own account.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

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
from thinkback.turn.retry import refuses_key
from thinkback.wire.result import UNDER_WAY
from thinkback.wire.writing import Problem

_OF_THE_CLIENT = (WireError, UnsupportedContent, SettingError, ReplayRefused, ContextRefused)
# Answers that are no fault: a status that SDKs retry would make one call several runs at the provider.
_UNDERSTOOD = {UNDER_WAY: "upstream_under_way", "blocked": "content_filter", "strict": "reasoning_refused"}
_OF_KEYS = frozenset({"401", "403", "invalid_api_key", "authentication_error", "permission_error"})
REFUSED = frozenset({401, 403})
"""The answers by which a provider refuses a client's own credential; what it says there may quote it."""
RETRY = 5.0
_STATUS = re.compile(r"HTTP (\d{3})\b")
_PLACE = re.compile(r"[a-z_]+(?:[.\[][a-z_0-9\]]+)+(?=:)")
_QUOTED = re.compile(r"""(?<!\w)(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`)""")


class Refused(ThinkbackError):
    """A request that the server does not serve. The message is for clients: no key, no content, no name of a file.

    ``code`` is a stable word for programs; ``retry_after`` is in seconds, ``None`` where to try again is of no use.
    """

    kind: ClassVar[str] = "refused"

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retry_after: float | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, details=details)
        self.status, self.code, self.retry_after = status, code, retry_after


class Answer(NamedTuple):
    """A problem, and after how many seconds it may be gone (``None``: to ask again does not help)."""

    problem: Problem
    retry_after: float | None = None


def problem_of(error: BaseException) -> Answer:
    """``error`` as its client reads it."""
    match error:
        case Refused():
            param = str(error.details.get("param", ""))
            return Answer(Problem(error.status, error.message, code=error.code, param=param), error.retry_after)
        case ProviderError():
            return _of_provider(error)
        case PhaseTimeout():
            return Answer(
                Problem(504, f"the upstream did not answer in time: {error.message}", code="upstream_timeout")
            )
        case NetworkError() if "retry_after" in error.details:
            wait = float(str(error.details["retry_after"]))
            return Answer(Problem(503, error.message, code="upstream_resting"), wait)
        case NetworkError() if "largest" in error.details:
            return Answer(Problem(502, error.message, code="upstream_too_large"))
        case NetworkError():
            return Answer(Problem(502, "the upstream cannot be reached, or broke off", code="upstream_unreachable"))
        case CredentialError():
            return Answer(Problem(400, _without_credentials(error), code="upstream_credentials"))
        case BudgetSpent():
            return Answer(Problem(429, error.message, code="reasoning_budget_spent"))
        case NotFoundError():
            return Answer(Problem(404, error.message, code="not_found"))
        case StoreError():
            return Answer(Problem(503, "the gateway cannot store this request at the moment", code="store"), RETRY)
        case _ if isinstance(error, _OF_THE_CLIENT):
            assert isinstance(error, ThinkbackError)
            param = str(error.details.get("key", "") or error.details.get("param", ""))
            return Answer(Problem(400, error.message, code=error.kind, param=param))
        case _:
            return Answer(Problem(500, "the gateway failed", code="internal"))


def _without_credentials(error: CredentialError) -> str:
    """The words for a client whose request cannot go out: SDKs send a 5xx again, which would not help."""
    variables = error.details.get("variables")
    if not isinstance(variables, list):
        return "the gateway has no usable credentials for this upstream: its log says why"
    names = " or ".join(map(str, variables)) or "a key"
    return (
        f"the gateway has no key for {error.details['endpoint']}: set {names} in the gateway's environment, "
        "or name the key of the upstream in gateway.toml"
    )


def refuses_own_key(error: Exception) -> bool:
    """True where a provider refused the gateway's key: its words are not for clients."""
    return isinstance(error, ProviderError) and _refuses_key(error)


def _refuses_key(error: ProviderError) -> bool:
    status = int(str(error.details.get("status") or 0))
    # A document of status 200 may say so too.
    named = {str(error.details.get("type") or ""), str(error.details.get("code") or "")} if status < 400 else set()
    return bool(named & _OF_KEYS) or refuses_key(status, str(error.details))


def public_reason(reason: str) -> str:
    """Reduce a reason to what clients may read: a status, none of a provider's words, and no address."""
    found = _STATUS.match(reason)
    if found is None:
        return "no response"
    return f"status {found[1]}"


def reason_of(error: Exception) -> str:
    """Why a request failed, for a log: our own words without what they quote, a provider's status and code, and the
    place that it names; never its text, which may repeat what was said.
    """
    match error:
        case ProviderError():
            status, said = error.details.get("status"), str(error.details.get("provider_message") or "")
            place = _PLACE.match(said)
            parts = ["the provider refused the gateway's key:" if _refuses_key(error) else "the provider answered"]
            parts += [str(each) for each in (status, error.details.get("type"), error.details.get("code")) if each]
            return " ".join([*parts, f"at {place[0]}"] if place else parts)
        case CredentialError() | NetworkError():
            return error.message
        case _ if isinstance(error, _OF_THE_CLIENT):
            assert isinstance(error, ThinkbackError)
            return _QUOTED.sub("...", error.message)
        case _:
            return ""


def _of_provider(error: ProviderError) -> Answer:
    status = int(str(error.details.get("status") or 0))
    words = str(error.details.get("provider_message") or error.message)
    kind, code = str(error.details.get("type") or ""), str(error.details.get("code") or "")
    if _refuses_key(error):  # nothing that a client could mend
        return Answer(Problem(502, "the upstream refused the gateway's credentials", code="upstream_credentials"))
    if kind in _UNDERSTOOD and not 400 <= status < 600:
        return Answer(Problem(400, words, code=_UNDERSTOOD[kind]))
    if not 400 <= status < 600:
        return Answer(Problem(502, words, code=code or "upstream_error"))
    wait = RETRY if status in (429, 503, 529) else None
    return Answer(Problem(status, words, kind, code), wait)
