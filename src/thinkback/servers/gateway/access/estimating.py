"""What a response used of which nobody has said it: one that broke off, or of a provider that does not count.

Without this a client could use a key beyond its budget by leaving before each response ends. Pure. Errs rather high.
"""

from __future__ import annotations

import re

from thinkback.compile.counts import DEFAULT_RATIO, weigh, weight_of
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Response, Step, Usage
from thinkback.stores.gateway_state.records import Use

_FILE = re.compile(rb"[A-Za-z0-9+/=_-]{4096,}")
_FILE_TOKENS = 1_500


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
                said += weigh(text)
            case ToolCall(arguments=arguments) if draft.response:
                said += weigh(arguments)
    if not is_response:
        return None
    reasoning = max(usage.reasoning or 0, _tokens(reasoned))
    return Use(1, usage.input or _tokens(asked), max(usage.output or 0, _tokens(said) + reasoning), reasoning)


def use_of(said: tuple[int | None, int | None, int | None], guessed: Use | None) -> Use:
    """One request, with the input, output and reasoning tokens that were said, else with those that are guessed."""
    input, output, reasoning = said
    if output is None and guessed is not None:
        return guessed
    if input is None and guessed is not None:
        input = guessed.input
    return Use(1, input or 0, output or 0, reasoning or 0)


def estimate_input(body: bytes) -> int:
    """The input tokens of a request, by its bytes; a file that is in it counts as an image does, whatever its size."""
    files = [found.end() - found.start() for found in _FILE.finditer(body)]
    return _tokens(len(body) - sum(files)) + _FILE_TOKENS * len(files)


def _tokens(characters: int) -> int:
    return round(characters / DEFAULT_RATIO)
