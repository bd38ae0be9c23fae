"""How a response ends its turn, or that the turn goes on."""

from __future__ import annotations

from thinkback.model.blocks import ToolCall
from thinkback.model.commits import TurnState
from thinkback.turn.ask import Ask
from thinkback.wire.result import ReadResult

# Why a turn that came to its end in good order has no answer.
_UNANSWERED = {
    "max_tokens_in_reasoning": (
        "the output limit was reached while the model was still reasoning: allow more output, or ask for less effort"
    ),
    "reasoning_only": "the model reasoned and gave no answer",
}


def state_after(result: ReadResult, broken: TurnState, ask: Ask, steps: int) -> tuple[TurnState | None, str]:
    """(terminal state, reason) that response number ``steps`` of a turn brings; ``None`` when its calls are to be run,
    or it only pauses. ``broken`` is the state where it broke off.
    """
    error = result.response.error
    if error is not None:
        empty = not result.blocks and broken == "partial_failed"
        return ("failed" if empty else broken), error.message
    is_last = steps >= ask.max_steps
    if not any(isinstance(block, ToolCall) for block in result.blocks):
        if result.response.outcome == "paused":
            return ("capped", f"{ask.max_steps} steps") if is_last else (None, "")
        return "completed", _UNANSWERED.get(result.response.outcome, "")
    if not result.response.complete:
        return "partial_failed", f"the provider stopped the response: {result.response.finish}"
    if ask.runnable and is_last:
        return "capped", f"{ask.max_steps} steps"
    return None, ""
