"""What came back against what was minted: the rules about thinking blocks, in the provider's order and words.

Each rule returns the first refusal, or None. With thinking off the history's thoughts are ignored, but still must be
genuine: a client that sends what nobody minted is wrong whether or not it is noticed.
"""

from __future__ import annotations

from ..verdict import Verdict
from .ledger import Ledger, Minted
from .parameters import NO_PREFILL
from .profiles import MANUAL
from .refusals import refuse
from .request import THINKING, Block, Message, Request
from .trace import PREFIX, Fate, Trace, may_read

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


def starts_wrong(request: Request, ledger: Ledger) -> Verdict | None:
    """In manual mode the assistant's part of an open turn must start with thinking.

    The first message of the turn and the last one, whoever wrote them, unless they were minted otherwise: without
    interleaving the model thinks once per turn.
    """
    turn = request.open_turn
    if request.mode != MANUAL or not turn:
        return None
    for message in (turn[0], turn[-1]):
        kind = message.blocks[0].kind if message.blocks else "text"
        if kind not in THINKING and not _minted_so(ledger.answers(message)):
            text = EXPECTED_THINKING.format(index=message.index, kind=kind)
            return refuse(text, f"missing at messages.{message.index}")
    return None


def _minted_so(answers: list[Minted]) -> bool:
    return bool(answers) and all(minted.thought_late for minted in answers)


def not_genuine(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse blocks that nobody minted, that were altered, moved or sent twice."""
    seen: set[str] = set()
    for message in request.assistants:
        for block in message.thinking:
            reason = _fault(request, ledger, message, block, seen)
            if reason:
                latest = message is request.assistants[-1] and reason in _CHANGES
                text = MODIFIED.format(path=block.path) if latest else _invalid(block)
                return refuse(text, f"{reason} at {block.path}")
            seen.add(block.opaque)
    return None


_CHANGES = frozenset({"changed", "repeated", "moved"})


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


def modified(request: Request, ledger: Ledger, found: Trace) -> Verdict | None:
    """Refuse the latest assistant message if its thinking blocks are not all there, in their places."""
    if not request.thinking_on or not request.assistants:
        return None
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
            return refuse(MODIFIED.format(path=path), f"changed at messages.{latest.index}")
    return None


def bound_elsewhere(request: Request, found: Trace) -> Verdict | None:
    """Refuse a bound block whose conversation is another one, unless it may be dropped."""
    if request.drops or not request.thinking_on:
        return None
    for fate in found.dropped:
        if fate.reason == PREFIX and fate.block is not None:
            text = BOUND.format(path=fate.block.path) + ("" if request.reports else _NEEDS_BETA) + _DIFFERS[fate.part]
            return refuse(text, f"other {fate.part} at {fate.block.path}")
    return None


def missing(request: Request, found: Trace) -> Verdict | None:
    """Refuse an open turn that lacks thinking which was minted for it and would count.

    Stricter than the provider, which in adaptive mode says nothing and thinks worse; the text is that of a change.
    """
    if not request.thinking_on:
        return None
    turn = {message.index for message in request.open_turn}
    for fate in found.missing:
        if fate.message.index in turn:
            return _absent(fate)
    return None


def _absent(fate: Fate) -> Verdict:
    index = fate.message.index
    return refuse(MODIFIED.format(path=f"messages.{index}.content.0"), f"missing at messages.{index}")


def prefilled(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse to continue an assistant message, unless it is one that paused, or the model takes prefill."""
    last = request.messages[-1]
    if last.role != "assistant" or request.profile.prefill:
        return None
    paused = any(minted.paused for minted in ledger.answers(last))
    return None if paused else refuse(NO_PREFILL, "last message is an assistant message")
