"""What a response reader hands over when the body has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Draft, Failure, Outcome, Response, Usage
from thinkback.model.rule import Markers
from thinkback.model.think_tags import Where

Stop: TypeAlias = Literal["stop", "tool_calls", "length", "refusal", "safety", "paused", "error", ""]
"""Why a model stopped, in words that all dialects share; nothing while it has not said so."""


class ReadOptions(msgspec.Struct, frozen=True):
    """``reasoning_field``: the one message field that holds reasoning (no fallback to others when it is set).

    ``leaked_calls``: markers of calls that are read as calls where they stand in reasoning; by default they are text.
    ``tags``: where tags in a text make reasoning of what stands between them.
    """

    reasoning_field: str = ""
    leaked_calls: Markers = ""
    tags: Where = "start"


AS_BUILT = ReadOptions()


class ReadResult(msgspec.Struct, frozen=True):
    """A response as values: its header, its blocks in arrival order, and the usage it reported."""

    response: Response
    blocks: tuple[Block, ...]
    usage: Usage | None


def stamped(result: ReadResult) -> ReadResult:
    """``result`` with the response's origin on each of its blocks."""
    origin = result.response.origin
    blocks = tuple(msgspec.structs.replace(block, origin=origin) for block in result.blocks)
    return msgspec.structs.replace(result, blocks=blocks)


class ReadRequest(msgspec.Struct, frozen=True):
    """A request as values: ``drafts`` of its system, tools and messages in order, and what else stood in it.

    ``amid`` are parameters that stand among the messages, the last of each: a request in another dialect says them in
    its own parameters.
    """

    model: str
    drafts: tuple[Draft, ...]
    params: dict[str, Any]
    amid: dict[str, Any] = {}


class Report(msgspec.Struct, frozen=True):
    """What a provider says it did with reasoning that was sent.

    ``removed``: (where, what): an item id or a path like ``messages.3.content.0``, and the provider's words.
    ``edits`` are sentences about what else it changed.
    """

    removed: tuple[tuple[str, str], ...] = ()
    edits: tuple[str, ...] = ()


class WantedOptions(msgspec.Struct, frozen=True):
    """What a caller wants of a response, whatever the dialect calls it.

    ``usage``: token counts in the stream, where they must be asked for. ``schema``: a JSON schema that the answer has
    to fit, called ``schema_name``.
    """

    stream: bool = False
    usage: bool = True
    schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"


def outcome_of(stop: Stop, blocks: Sequence[Block], error: Failure | None) -> Outcome:
    """How a response came out, from why it stopped and what it brought."""
    if error is not None:
        return "cut" if error.type in _CUT else "failed"
    refused = any(isinstance(block, Text) and block.source_field == "refusal" for block in blocks)
    calls = any(isinstance(block, ToolCall) for block in blocks)
    says = any(isinstance(block, Text) and block.text.strip() for block in blocks)
    reasons = any(isinstance(block, ThinkingBlock) for block in blocks)
    if stop == "safety":
        return "safety"
    if stop == "refusal" or refused:
        return "refused"
    if stop == "paused":
        return "paused"
    if stop == "length":
        return "max_tokens" if says or calls or not reasons else "max_tokens_in_reasoning"
    if calls:
        return "tool_calls"
    if says:
        return "answered"
    return "reasoning_only" if reasons else "empty"


UNDER_WAY = "under_way"
"""The type of failure of a response that the provider answered before it was done: it waits there, or works on it."""
_CUT = frozenset({"truncated", "network", "timeout", "interrupted", UNDER_WAY})
