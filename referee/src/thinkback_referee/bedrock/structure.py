"""Is a Converse request well formed? Roles, blocks, and results for calls, in the words that are widely reported.

Except where marked, none of these texts is in the reference (text unconfirmed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from ..jsons import JsonObject, as_list, as_object, as_text
from ..verdict import Verdict
from .refusals import refuse

ALTERNATE = (
    "A conversation must alternate between user and assistant roles. "
    "Make sure the conversation alternates between user and assistant roles and try again."
)
STARTS_WRONG = (
    "A conversation must start with a user message. Try again with a conversation that starts with a user message."
)
EMPTY = (
    "The content field in the Message object at messages.{index} is empty. "
    "Add a ContentBlock object to the content field and try again."
)
BLANK = "The text field in the ContentBlock object at {path} is blank. Add text to the text field, and try again."
NO_TOOLS = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
UNANSWERED = "Expected toolResult blocks at messages.{index}.content for the following Ids: {ids}"
TOO_MANY = (
    "The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks of previous turn."
)
EXTRANEOUS = (
    "Malformed input request: extraneous key [{key}] is not permitted, please reformat your input and try again."
)
UNION = "{path}: exactly one of the members of ContentBlock must be set"
_KEYS = frozenset(
    {
        "messages",
        "system",
        "inferenceConfig",
        "toolConfig",
        "additionalModelRequestFields",
        "additionalModelResponseFieldPaths",
        "guardrailConfig",
        "promptVariables",
        "requestMetadata",
        "performanceConfig",
        "serviceTier",
        "outputConfig",
    }
)
_BLOCKS = frozenset(
    {
        "text",
        "image",
        "document",
        "video",
        "audio",
        "toolUse",
        "toolResult",
        "guardContent",
        "cachePoint",
        "reasoningContent",
        "citationsContent",
        "searchResult",
    }
)


def malformed(body: JsonObject) -> Verdict | None:
    """The first fault in the shape of a Converse request."""
    checks: tuple[Callable[[JsonObject], Iterator[Verdict]], ...] = (_keys, _roles, _contents, _pairs, _tools)
    return next((verdict for check in checks for verdict in check(body)), None)


def _keys(body: JsonObject) -> Iterator[Verdict]:
    for name in body:
        if name not in _KEYS:
            yield refuse(EXTRANEOUS.format(key=name), f"unknown key {name}")
    if not as_list(body.get("messages")):
        yield refuse(STARTS_WRONG, "no messages")


def _roles(body: JsonObject) -> Iterator[Verdict]:
    roles = [as_text(message.get("role")) for message in _messages(body)]
    if roles[0] != "user":
        yield refuse(STARTS_WRONG, "first message is not the user's")
    for index, (one, other) in enumerate(pairwise(roles), 1):
        if {one, other} != {"user", "assistant"}:
            yield refuse(ALTERNATE, f"roles do not alternate at messages[{index}]")


def _contents(body: JsonObject) -> Iterator[Verdict]:
    for index, message in enumerate(_messages(body)):
        blocks = [as_object(block) for block in as_list(message.get("content"))]
        if not blocks:
            yield refuse(EMPTY.format(index=index), f"empty messages[{index}]")
        reasons = any("reasoningContent" in block for block in blocks)
        for place, block in enumerate(blocks):
            path = f"messages.{index}.content.{place}"
            if len(block) != 1 or not _BLOCKS.issuperset(block):
                yield refuse(UNION.format(path=path), f"bad block at {path}")
            # An empty text that came with reasoning goes back with it.
            if "text" in block and not as_text(block["text"]).strip() and not reasons:
                yield refuse(BLANK.format(path=path), f"blank text at {path}")
            if "reasoningContent" in block and not _is_union(as_object(block["reasoningContent"])):
                yield refuse(UNION.format(path=f"{path}.reasoningContent"), f"bad reasoning at {path}")


def _is_union(reasoning: Mapping[str, object]) -> bool:
    return len(reasoning) == 1 and {"reasoningText", "redactedContent"}.issuperset(reasoning)


def _pairs(body: JsonObject) -> Iterator[Verdict]:
    wanted: list[str] = []
    messages = _messages(body)
    for index, message in enumerate(messages):
        answered = [as_text(result.get("toolUseId")) for result in _members(message, "toolResult")]
        if len(answered) > len(wanted):
            yield refuse(TOO_MANY.format(index=index), f"result without a call at messages[{index}]")
        left = [call for call in wanted if call not in answered]
        if left:
            yield refuse(
                UNANSWERED.format(index=index, ids=", ".join(left)), f"unanswered call at messages[{index - 1}]"
            )
        wanted = [as_text(call.get("toolUseId")) for call in _members(message, "toolUse")]
    if wanted:
        text = UNANSWERED.format(index=len(messages), ids=", ".join(wanted))
        yield refuse(text, f"unanswered call at messages[{len(messages) - 1}]")


def _tools(body: JsonObject) -> Iterator[Verdict]:
    used = any(_members(message, name) for message in _messages(body) for name in ("toolUse", "toolResult"))
    if used and not as_list(as_object(body.get("toolConfig")).get("tools")):
        yield refuse(NO_TOOLS, "calls without tools")


def _messages(body: JsonObject) -> list[Mapping[str, object]]:
    return [as_object(message) for message in as_list(body.get("messages"))]


def _members(message: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    blocks = [as_object(block) for block in as_list(message.get("content"))]
    return [as_object(block[name]) for block in blocks if name in block]
