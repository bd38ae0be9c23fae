"""The parameters beside the messages: types of thinking, budgets, efforts, forced calls, sampling, edits, betas."""

from __future__ import annotations

from collections.abc import Iterator

from ..jsons import as_list, as_object, as_text
from ..verdict import Verdict
from .profiles import ADAPTIVE, BETWEEN, EFFORTS, INTERLEAVED_BETA, KNOWN_BETAS, MANUAL
from .refusals import refuse
from .request import CLEARING, Request

BUDGET_FLOOR = "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
BUDGET_CEILING = "`max_tokens` must be greater than `thinking.budget_tokens`"
NO_ADAPTIVE = "adaptive thinking is not supported on this model"  # text unconfirmed
UNSUPPORTED = '"thinking.type.{kind}" is not supported for this model. {hint}'
USE_ADAPTIVE = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
BAD_EFFORT = "This model does not support effort level '{effort}'. Supported levels: {levels}."
NO_EFFORT = "This model does not support the effort parameter."  # text unconfirmed
DEPRECATED = "`{name}` is deprecated for this model"
NO_PREFILL = (  # text unconfirmed
    "This model does not support assistant message prefill. The conversation must end with a user message."
)
BAD_BETA = (  # text unconfirmed
    "Unexpected value(s) `{beta}` for the `anthropic-beta` header. "
    "Please consult our documentation at docs.anthropic.com or try again without the header."
)
TOP_K = "`top_k` must be unset when thinking is enabled"  # text unconfirmed
TOP_P = "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled"  # text unconfirmed
# text unconfirmed; that thinking must be on is documented
CLEARS_NOTHING = "context_management: {edit} requires `thinking` to be enabled"
OWN = (NO_ADAPTIVE, NO_EFFORT, NO_PREFILL, BAD_BETA, TOP_K, TOP_P, CLEARS_NOTHING)
_LEAST_BUDGET = 1024
_LEAST_TOP_P = 0.95
_FORCED = frozenset({"any", "tool"})


def refused_parameter(request: Request) -> Verdict | None:
    """The first parameter that the model does not take."""
    for faults in (_beta_faults, _type_faults, _effort_faults, _choice_faults, _sampling_faults, _edit_faults):
        if (verdict := next(faults(request), None)) is not None:
            return verdict
    return None


def _beta_faults(request: Request) -> Iterator[Verdict]:
    for beta in sorted(request.caller.betas - KNOWN_BETAS if request.caller.host.strict_betas else ()):
        yield refuse(BAD_BETA.format(beta=beta), f"unknown beta {beta}")


def _type_faults(request: Request) -> Iterator[Verdict]:
    profile, kind = request.profile, request.mode
    if kind not in profile.types:
        if kind == ADAPTIVE:
            yield refuse(NO_ADAPTIVE, "adaptive thinking")
        yield refuse(UNSUPPORTED.format(kind=kind, hint=profile.hints.get(kind, USE_ADAPTIVE)), f"{kind} thinking")
    if kind == MANUAL and request.caller.host.signed:
        yield from _budget_faults(request)


def _budget_faults(request: Request) -> Iterator[Verdict]:
    budget, most = request.config.get("budget_tokens"), request.body.get("max_tokens")
    if not isinstance(budget, int):
        yield refuse("thinking.enabled.budget_tokens: Field required", "no budget")
    assert isinstance(budget, int)
    assert isinstance(most, int)
    if budget < _LEAST_BUDGET:
        yield refuse(BUDGET_FLOOR, "budget too small")
    # With interleaving the budget is for the whole turn, and may exceed one response.
    if budget >= most and not (INTERLEAVED_BETA in request.caller.betas and request.body.get("tools")):
        yield refuse(BUDGET_CEILING, "budget not below max_tokens")


def _effort_faults(request: Request) -> Iterator[Verdict]:
    effort = as_object(request.body.get("output_config")).get("effort")
    if effort is None:
        return
    if effort not in EFFORTS:
        listed = ", ".join(f"'{level}'" for level in EFFORTS[:-1])
        yield refuse(f"output_config.effort: Input should be {listed} or '{EFFORTS[-1]}'", "unknown effort")
    if not request.profile.efforts:
        yield refuse(NO_EFFORT, "effort")
    levels = request.profile.capped.get(request.mode, request.profile.efforts)
    if effort not in levels:
        yield refuse(BAD_EFFORT.format(effort=effort, levels=", ".join(sorted(levels))), f"effort {effort}")


def _choice_faults(request: Request) -> Iterator[Verdict]:
    choice = as_object(request.body.get("tool_choice"))
    kind = as_text(choice.get("type"))
    if choice and not request.body.get("tools"):
        yield refuse("tool_choice may only be specified while providing tools", "choice without tools")
    if choice and kind not in (*_FORCED, "auto", "none"):
        yield refuse(f"tool_choice: Input tag '{kind}' found using 'type' does not match any tag", "unknown choice")
    if kind == "tool" and choice.get("name") not in _names(request):
        yield refuse(f"Tool '{choice.get('name')}' not found in provided tools", "choice of an unknown tool")
    if kind in _FORCED and (request.mode == MANUAL or request.profile.always_unforced):
        yield refuse(request.profile.forced, "forced call")


def _names(request: Request) -> list[object]:
    return [as_object(tool).get("name") for tool in as_list(request.body.get("tools"))]


def _sampling_faults(request: Request) -> Iterator[Verdict]:
    body, profile = request.body, request.profile
    if not request.caller.host.signed:
        return
    on = request.thinking_on and request.mode != BETWEEN
    if on and body.get("temperature") not in (None, 1):
        yield refuse(profile.pinned, "temperature")
    for name in () if profile.sampling else ("temperature", "top_p", "top_k"):
        if body.get(name) is not None and not (on and name == "temperature"):
            yield refuse(DEPRECATED.format(name=name), name)
    if on and body.get("top_k") is not None:
        yield refuse(TOP_K, "top_k")
    top_p = body.get("top_p")
    if on and isinstance(top_p, int | float) and not _LEAST_TOP_P <= top_p <= 1:
        yield refuse(TOP_P, "top_p")


def _edit_faults(request: Request) -> Iterator[Verdict]:
    kinds = [as_object(edit).get("type") for edit in as_list(_management(request).get("edits"))]
    if CLEARING in kinds[1:]:
        yield refuse(f"context_management.edits: {CLEARING} must be listed first", "edits in the wrong order")
    if CLEARING in kinds and not request.thinking_on:
        yield refuse(CLEARS_NOTHING.format(edit=CLEARING), "edit without thinking")


def _management(request: Request) -> dict[str, object]:
    return dict(as_object(request.body.get("context_management")))
