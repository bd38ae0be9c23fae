"""What a response used of which nobody has said it: one that broke off, or of a provider that does not count.

Without this a client could use a key beyond its budget by leaving before each response ends. Pure. Errs rather high.
"""

from __future__ import annotations

from thinkback.compile.counts import DEFAULT_RATIO, weight_of
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Response, Step, Usage
from thinkback.stores.gateway_state.records import Use
from thinkback.turn.usage import counted


def estimate(step: Step, asked: int) -> Use | None:
    """The use of the response in ``step``, to a request of ``asked`` bytes; ``None`` where there is no response."""
    said, reasoned, usage, is_response = 0, 0, Usage(), False
    for draft in step.drafts:
        match draft.value:
            case Response():
                is_response = True
            case Usage() as usage:
                pass
            case ThinkingBlock() as block if draft.response:
                reasoned += weight_of(block)
            case Text(text=text) if draft.response:
                said += len(text)
            case ToolCall(arguments=arguments) if draft.response:
                said += len(arguments)
    if not is_response:
        return None
    given, output, counted_reasoning = map(counted, (usage.input, usage.output, usage.reasoning))
    reasoning = max(counted_reasoning or 0, _tokens(reasoned))
    return Use(1, given or _tokens(asked), max(output or 0, _tokens(said) + reasoning), reasoning)


def use_of(said: tuple[int | None, int | None, int | None], guessed: Use | None) -> Use:
    """One request, with the input, output and reasoning tokens that were said, else with those that are guessed.

    A number below zero says nothing: it would give a budget back.
    """
    input, output, reasoning = map(counted, said)
    if output is None and guessed is not None:
        return guessed
    return Use(1, input or 0, output or 0, reasoning or 0)


def _tokens(characters: int) -> int:
    return round(characters / DEFAULT_RATIO)
