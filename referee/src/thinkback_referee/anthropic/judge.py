"""The judge: a request body, who sends it and the ledger, to a verdict. Pure; no I/O.

The checks run in the order of ``_faults`` and the first refusal is the verdict: shape before pairs, parameters
before thinking, genuineness before fit. With thinking off the history's thoughts are ignored, but still must be
genuine: a client that sends what nobody minted is wrong whether or not it is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..jsons import as_object, as_objects, as_text
from ..verdict import Verdict, first
from .ledger import Ledger, Minted
from .profiles import ADAPTIVE, BETWEEN, EFFORTS, INTERLEAVED_BETA, KNOWN_BETAS, MANUAL
from .refusals import refuse
from .request import CLEARING, THINKING, Block, Message, Request
from .shape import body_faults, ends_in_thinking, pair_faults
from .trace import PREFIX, Trace, may_read, trace

EXPECTED_THINKING = (
    "messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` "
    "is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "
    "`tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this "
    "requirement, disable `thinking`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
)
MODIFIED = (
    "{path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)
INVALID_SIGNATURE = "{path}: Invalid `signature` in `thinking` block"
INVALID_DATA = "{path}: Invalid `data` in `redacted_thinking` block"  # text unconfirmed
NO_THINKING = "{path}.thinking: each thinking block must contain thinking"
BLANK_THINKING = "{path}.thinking: each thinking block must contain non-whitespace thinking"
BOUND = (
    "{path}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the "
    'block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
_NEEDS_BETA = " That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
OTHER_MESSAGES = " The messages before it differ from those this block was created with."  # text unconfirmed
_DIFFERS = {
    "system": " The `system` prompt differs from the one this block was created with.",
    "tools": " The `tools` list differs from the one this block was created with.",
    "messages": OTHER_MESSAGES,
    "chain": " The `thinking` block that preceded this one when it was created is missing from this request.",
}
_CHANGES = frozenset({"changed", "repeated", "moved"})
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
OWN = (
    NO_ADAPTIVE, NO_EFFORT, NO_PREFILL, BAD_BETA, TOP_K, TOP_P, CLEARS_NOTHING, INVALID_DATA, OTHER_MESSAGES,
)  # fmt: skip
_LEAST_BUDGET = 1024
_LEAST_TOP_P = 0.95
_FORCED = frozenset({"any", "tool"})
# DeepSeek's endpoint: thinking is unsigned text, and its absence is an error.
PASSED_BACK = "The `content[].thinking` in the thinking mode must be passed back to the API."


def judge(request: Request, ledger: Ledger) -> Verdict:
    """The verdict on a request to the profile's model; reads the ledger and changes nothing."""
    return first(_faults(request, ledger))


def _faults(request: Request, ledger: Ledger) -> Iterator[Verdict]:
    yield from body_faults(request.caller, request.profile.late_system, request.body)
    yield from pair_faults(request)
    yield from _parameter_faults(request)
    if not request.caller.host.signed:
        yield from not_passed_back(request, ledger)
        return
    yield from ends_in_thinking(request)
    yield from prefilled(request, ledger)
    yield from starts_wrong(request, ledger)
    yield from not_genuine(request, ledger)
    found = trace(request, ledger)
    yield from modified(request, ledger, found)
    yield from bound_elsewhere(request, found)
    yield from missing(request, found)


def starts_wrong(request: Request, ledger: Ledger) -> Iterator[Verdict]:
    """In manual mode the assistant's part of an open turn must start with thinking.

    The first message of the turn and the last one, whoever wrote them, unless they were minted otherwise: without
    interleaving the model thinks once per turn.
    """
    turn = request.open_turn
    if request.mode != MANUAL or not turn:
        return
    for message in (turn[0], turn[-1]):
        kind = message.blocks[0].kind if message.blocks else "text"
        if kind not in THINKING and not _minted_so(ledger.answers(message)):
            text = EXPECTED_THINKING.format(index=message.index, kind=kind)
            yield refuse(text, f"missing at messages.{message.index}")


def _minted_so(answers: list[Minted]) -> bool:
    return bool(answers) and all(minted.thought_late for minted in answers)


def not_genuine(request: Request, ledger: Ledger) -> Iterator[Verdict]:
    """Refuse blocks that nobody minted, that were altered, moved or sent twice."""
    seen: set[str] = set()
    for message in request.assistants:
        for block in message.thinking:
            reason = _fault(request, ledger, message, block, seen)
            if reason:
                latest = message is request.assistants[-1] and reason in _CHANGES
                text = MODIFIED.format(path=block.path) if latest else _invalid(block)
                yield refuse(text, f"{reason} at {block.path}")
            seen.add(block.opaque)


def _fault(request: Request, ledger: Ledger, message: Message, block: Block, seen: set[str]) -> str:
    seal = ledger.seal(block.opaque)
    if seal is None:
        return "unknown carrier"
    if (seal.kind, seal.text) != (block.kind, block.text):
        return "changed"
    if block.opaque in seen:
        return "repeated"
    answer = next((minted for minted in ledger.answers(message) if minted.id == seal.answer), None)
    if answer is not None and answer.calls and not set(answer.calls) & set(message.calls):
        return "moved"
    # Preserved thinking drops what another organisation minted; of older models only "Invalid signature" is known.
    return "" if request.profile.bound or may_read(request, seal) else "foreign carrier"


def _invalid(block: Block) -> str:
    if block.kind == "redacted_thinking":
        return INVALID_DATA.format(path=block.path)
    if not block.text.strip():
        return (BLANK_THINKING if block.text else NO_THINKING).format(path=block.path)
    return INVALID_SIGNATURE.format(path=block.path)


def modified(request: Request, ledger: Ledger, found: Trace) -> Iterator[Verdict]:
    """Refuse the latest assistant message if its thinking blocks are not all there, in their places."""
    if not request.thinking_on or not request.assistants:
        return
    latest = request.assistants[-1]
    there = [block.opaque or str(block.raw.get("id", "")) for block in latest.blocks]
    for minted in ledger.answers(latest):
        if not {seal.opaque for seal in minted.seals} & set(there):
            continue
        # What would not count here may go; the refusal of a bound block asks for it.
        absent = [fate for fate in found.fates if fate.message is latest and fate.block is None]
        gone = {fate.seal.opaque for fate in absent if fate.reason} | set(minted.calls) - set(there)
        if [name for name in there if name in minted.order] != [name for name in minted.order if name not in gone]:
            path = latest.thinking[0].path
            yield refuse(MODIFIED.format(path=path), f"changed at messages.{latest.index}")


def bound_elsewhere(request: Request, found: Trace) -> Iterator[Verdict]:
    """Refuse a bound block whose conversation is another one, unless it may be dropped."""
    if request.drops or not request.thinking_on:
        return
    for fate in found.dropped:
        if fate.reason == PREFIX and fate.block is not None:
            text = BOUND.format(path=fate.block.path) + ("" if request.reports else _NEEDS_BETA) + _DIFFERS[fate.part]
            yield refuse(text, f"other {fate.part} at {fate.block.path}")


def missing(request: Request, found: Trace) -> Iterator[Verdict]:
    """Refuse an open turn that lacks thinking which was minted for it and would count.

    Stricter than the provider, which in adaptive mode says nothing and thinks worse; the text is that of a change.
    """
    if not request.thinking_on:
        return
    turn = {message.index for message in request.open_turn}
    for fate in found.missing:
        if fate.message.index in turn:
            index = fate.message.index
            yield refuse(MODIFIED.format(path=f"messages.{index}.content.0"), f"missing at messages.{index}")
            return


def prefilled(request: Request, ledger: Ledger) -> Iterator[Verdict]:
    """Refuse to continue an assistant message, unless it is one that paused, or the model takes prefill."""
    last = request.messages[-1]
    if last.role != "assistant" or request.profile.prefill:
        return
    if not any(minted.paused for minted in ledger.answers(last)):
        yield refuse(NO_PREFILL, "last message is an assistant message")


def _parameter_faults(request: Request) -> Iterator[Verdict]:
    yield from _beta_faults(request)
    yield from _type_faults(request)
    yield from _effort_faults(request)
    yield from _choice_faults(request)
    yield from _sampling_faults(request)
    yield from _edit_faults(request)


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
    offered = [tool.get("name") for tool in as_objects(request.body.get("tools"))]
    if kind == "tool" and choice.get("name") not in offered:
        yield refuse(f"Tool '{choice.get('name')}' not found in provided tools", "choice of an unknown tool")
    if kind in _FORCED and (request.mode == MANUAL or request.profile.always_unforced):
        yield refuse(request.profile.forced, "forced call")


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
    management = as_object(request.body.get("context_management"))
    kinds = [edit.get("type") for edit in as_objects(management.get("edits"))]
    if CLEARING in kinds[1:]:
        yield refuse(f"context_management.edits: {CLEARING} must be listed first", "edits in the wrong order")
    if CLEARING in kinds and not request.thinking_on:
        yield refuse(CLEARS_NOTHING.format(edit=CLEARING), "edit without thinking")


def not_passed_back(request: Request, ledger: Ledger) -> Iterator[Verdict]:
    """Refuse messages whose thinking is missing or is not what was minted, where it is unsigned.

    The rule is that of DeepSeek's chat endpoint: while it thinks, all messages of turns with calls, and every message
    once tools are offered, must carry what it thought. Altered text is refused with the same words; the real one
    cannot tell.
    """
    if not request.thinking_on:
        return
    for message in request.assistants:
        texts = {block.text for block in message.thinking}
        minted = {seal.text for answer in ledger.answers(message) for seal in answer.seals}
        if texts and minted and not texts <= minted:
            yield refuse(PASSED_BACK, f"changed at messages.{message.index}")
        if not texts and _wanted(request, message):
            yield refuse(PASSED_BACK, f"missing at messages.{message.index}")


def _wanted(request: Request, message: Message) -> bool:
    with_calls = {other.turn for other in request.assistants if other.calls}
    return bool(request.body.get("tools")) or message.turn in with_calls
