"""The errors a turn ends with: what the provider, the network or the clock said, and what to do next."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from thinkback.errors import (
    AGAIN,
    OTHER_MODEL,
    WHY,
    NetworkError,
    PhaseTimeout,
    ProviderError,
    ThinkbackError,
    UnknownModelError,
)
from thinkback.model import canonical
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Failure, TurnState
from thinkback.model.target import Target
from thinkback.rules.urls import host_of, is_loopback, server_of
from thinkback.turn.events import NetError
from thinkback.turn.overflow import is_overflow
from thinkback.turn.plan import Plan
from thinkback.wire.documents import PAGE, page_of
from thinkback.wire.registry import dialect
from thinkback.wire.result import ReadResult

# Longer texts are pages for browsers.
_LONGEST_MESSAGE = 4_000
_STRICT = "the endpoint sent reasoning, and reasoning.strict refuses it"
_SHOWN = "; what was shown of the answer is refused with it"
CHECK_KEY = "check the key"
"""The first words of what to do about a key that was refused."""
_REFEREE = "referee"
"""Its endpoint is a server of our own, which a person starts."""
_ABOUT_KEYS = r"(?i)api[ _-]?key|credential|unauthenticated|unauthorized"
_ABOUT_MODELS = (
    r"(?i)\bmodel\b.{0,60}(invalid|not valid|not found|not exist)|(invalid|unknown|no such|not a valid) model\b"
)


def read_failure(status: int, body: bytes, plan: Plan) -> Failure:
    """The provider's own words; a key that it repeats is blotted out."""
    text = plan.without_key(body.decode("utf-8", "replace"))
    try:
        parsed: Any = canonical.decode(text)
    except msgspec.DecodeError:
        parsed = page_of(text) or text.strip() or "no error text"
    failure = dialect(plan.target.endpoint.dialect).failure(status, parsed)
    if isinstance(parsed, str) and page_of(text):
        failure = msgspec.structs.replace(failure, code=failure.code or PAGE)
    if len(failure.message) > _LONGEST_MESSAGE:
        failure = msgspec.structs.replace(failure, message=f"{failure.message[:_LONGEST_MESSAGE]}…")
    return failure


def refused(failure: Failure, plan: Plan) -> ProviderError:
    """The error for a status that says no."""
    endpoint, model = plan.target.endpoint.id, plan.target.model
    message = f"{endpoint} answered {failure.status}: {failure.message}"
    details: dict[str, object] = {
        "status": failure.status,
        "code": failure.code,
        "type": failure.type,
        "provider_message": failure.message,
        "model": model,
    }
    if _is_about_model(failure, model):
        unknown = f"{endpoint} knows no model {model!r}"
        return UnknownModelError(
            message, details={**details, "endpoint": endpoint}, next_actions=(unknown, OTHER_MODEL)
        )
    return ProviderError(message, details=details, next_actions=_advice(failure, plan))


def unreachable(event: NetError, target: Target) -> NetworkError:
    """The error for a request that brought nothing back."""
    kind = NetworkError if event.phase == "network" else PhaseTimeout
    server = server_of(target.base_url)
    return kind(
        f"{target.endpoint.id} at {server}: {event.message}",
        details={"phase": event.phase, "endpoint": target.endpoint.id, "server": server},
        next_actions=(_way_there(target), AGAIN),
    )


def _way_there(target: Target) -> str:
    """What to do where nobody answered: a server on this machine is there for a person to start."""
    if target.endpoint.id == _REFEREE:
        return "start it: `thinkback referee`"
    if not is_loopback(host_of(target.base_url)):
        return "check the address and network"
    is_local = is_loopback(host_of(target.endpoint.base_url))
    return f"start {target.endpoint.name if is_local else 'the server'} there, or correct the base URL"


def _not_there(target: Target) -> tuple[str, str]:
    """What to do where a page for browsers came."""
    return (
        "check the base URL and the network: a proxy, firewall or sign-in page answers in the endpoint's place",
        f"the base URL is {target.base_url}",
    )


def broken_off(result: ReadResult, state: TurnState, target: Target) -> ThinkbackError | None:
    """The error for a response of ``target`` that began well and did not end so; ``None`` for one that did, or was
    interrupted.
    """
    error, partial = result.response.error, bool(result.blocks)
    if error is None or state == "interrupted":
        return None
    if error.type == "strict":
        return ProviderError(
            error.message,
            details={"partial": partial, "type": error.type},
            next_actions=(
                "set reasoning.strict to false",
                "or use a model without reasoning",
                "what arrived is in the log, marked incomplete, and goes into no request",
            ),
        )
    if state == "timed_out":
        return PhaseTimeout(error.message, details={"phase": error.code, "partial": partial}, next_actions=(AGAIN,))
    remedy = _not_there(target) if error.code == PAGE else ("what arrived is in the log, marked incomplete",)
    kind = NetworkError if error.type in ("network", "truncated") else ProviderError
    return kind(
        error.message,
        details={
            "status": error.status,
            "code": error.code,
            "type": error.type,
            "provider_message": error.message,
            "partial": partial,
        },
        next_actions=(*remedy, AGAIN),
    )


def refused_reasoning(*, has_shown: bool) -> Failure:
    """Why a response with reasoning is refused where none must come; ``has_shown``: it was shown up to there."""
    return Failure(_STRICT + (_SHOWN if has_shown else ""), type="strict")


def screened(result: ReadResult, plan: Plan) -> ReadResult:
    """``result`` without the key that its error may repeat; refused as a whole where reasoning must not come and came
    all the same.
    """
    response = result.response
    error = response.error
    if error is not None:
        error = msgspec.structs.replace(error, message=plan.without_key(error.message))
        response = msgspec.structs.replace(response, error=error)
    elif plan.strict and any(isinstance(block, ThinkingBlock) for block in result.blocks):
        error = refused_reasoning(has_shown=False)
        response = msgspec.structs.replace(response, complete=False, error=error, outcome="failed")
    return msgspec.structs.replace(result, response=response)


def reason_of(error: Exception | None) -> str:
    """What the log says of ``error``; of foreign exceptions only the kind, because their text may hold anything."""
    if isinstance(error, ThinkbackError):
        return error.message
    return type(error).__name__ if error is not None else ""


def _is_about_model(failure: Failure, model: str) -> bool:
    """Whether the endpoint knows no such model; some hosts answer that with 400 and say so in words only."""
    message = failure.message
    if failure.code == PAGE or failure.status not in (400, 404):
        return False
    if failure.status == 400 and re.search(_ABOUT_KEYS, message):
        return False
    return bool(re.search(_ABOUT_MODELS, message)) or (failure.status == 404 and model in message)


def _advice(failure: Failure, plan: Plan) -> tuple[str, ...]:
    """What to do next; some hosts answer a bad key with 400 and say so in words only."""
    status = failure.status
    if failure.code == PAGE:
        return _not_there(plan.target)
    if status == 400 and re.search(_ABOUT_KEYS, failure.message):
        status = 401
    if status in (401, 403) and plan.waits:
        return (f"check what {plan.target.endpoint.auth.scheme} signs in as, and what that may use",)
    if status in (401, 403):
        names = " or ".join(plan.target.endpoint.auth.env) or "api_key="
        return (f"{CHECK_KEY}: {names}",)
    if status == 402:
        return ("the account has no credit left: add some at the provider, or use another endpoint", AGAIN)
    if is_overflow(failure):
        return ("`thinkback compact` shortens the conversation", "or use a model with a larger context", AGAIN)
    if status == 404:
        return (f"check the model name {plan.target.model!r} and the base URL {plan.target.base_url}",)
    if 300 <= status < 400:
        return (f"redirects are not followed: correct the base URL {plan.target.base_url}",)
    if status == 429:
        return ("wait, or use another endpoint", AGAIN)
    return (WHY, AGAIN)
