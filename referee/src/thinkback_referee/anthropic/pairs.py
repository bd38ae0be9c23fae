"""Is every call answered once, directly after, and does no message end in a thought?"""

from __future__ import annotations

from collections.abc import Iterator

from ..jsons import as_text
from ..verdict import Verdict
from .refusals import refuse
from .request import THINKING, Block, Message, Request

# Widely reported texts, not in the reference (text unconfirmed).
UNANSWERED = (
    "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
STRAY = (
    "{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. "
    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
)
TWICE = "{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
NOT_UNIQUE = "messages: `tool_use` ids must be unique"
NO_TOOLS = "Requests which include `tool_use` or `tool_result` blocks must define tools"
# The reference's own text.
ENDS_IN_THINKING = "messages.{index}: The final block in an assistant message cannot be `{kind}`."


def unpaired(request: Request) -> Verdict | None:
    """Refuse calls without exactly one result in the next user message, and results without a call."""
    return next(_pair_faults(request.messages), None) or next(_tool_faults(request), None)


def ends_in_thinking(request: Request) -> Verdict | None:
    """Refuse assistant messages whose last block is a thought."""
    for message in request.assistants:
        if message.blocks and (kind := message.blocks[-1].kind) in THINKING:
            text = ENDS_IN_THINKING.format(index=message.index, kind=kind)
            return refuse(text, f"thinking comes last at messages.{message.index}")
    return None


def _pair_faults(messages: tuple[Message, ...]) -> Iterator[Verdict]:
    made = [call for message in messages for call in message.calls]
    if len(set(made)) < len(made):
        yield refuse(NOT_UNIQUE, "repeated call id")
    owner, wanted = 0, list[str]()
    for message in messages:
        answered = [block for block in message.blocks if block.kind == "tool_result"]
        for block in answered:
            yield from _result_faults(block, answered, wanted)
        # Results come first in their message, as each must follow its call immediately.
        if wanted and (len(answered) < len(wanted) or message.blocks[len(answered) - 1].kind != "tool_result"):
            break
        owner, wanted = message.index, list(message.calls)
    if wanted:
        left = [call for call in wanted if owner + 1 >= len(messages) or call not in messages[owner + 1].results]
        text = UNANSWERED.format(index=owner, ids=", ".join(left or wanted))
        yield refuse(text, f"unanswered call at messages.{owner}")


def _result_faults(block: Block, answered: list[Block], wanted: list[str]) -> Iterator[Verdict]:
    call = as_text(block.raw.get("tool_use_id"))
    if call not in wanted:
        yield refuse(STRAY.format(path=block.path, id=call), f"result without a call at {block.path}")
    if sum(other.raw.get("tool_use_id") == call for other in answered) > 1:
        yield refuse(TWICE.format(path=block.path, id=call), f"repeated result at {block.path}")


def _tool_faults(request: Request) -> Iterator[Verdict]:
    used = any(message.calls or message.results for message in request.messages)
    if used and not request.body.get("tools"):
        yield refuse(NO_TOOLS, "calls without tools")
