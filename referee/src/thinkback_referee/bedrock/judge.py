"""Is a Converse request well formed, and may it go to a model that is not Claude? In AWS's words and framing.

Except where marked, none of the texts on structure is in the reference: they are widely reported (text unconfirmed).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from ..jsons import JsonObject, as_list, as_object, as_objects, as_text, names
from ..verdict import Verdict
from .profiles import Plain

VALIDATION = "ValidationException"
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
_KEYS = names(
    "messages system inferenceConfig toolConfig additionalModelRequestFields additionalModelResponseFieldPaths "
    "guardrailConfig promptVariables requestMetadata performanceConfig serviceTier outputConfig"
)
_BLOCKS = names(
    "text image document video audio toolUse toolResult guardContent cachePoint reasoningContent citationsContent "
    "searchResult"
)
NO_REASONING = "User messages cannot contain reasoning content. Please remove the reasoning content and try again."
# Texts of the following unconfirmed.
BAD_EFFORT = "Value '{value}' at '{field}' failed to satisfy constraint: must be one of {efforts}"
NO_LIMIT = "maxTokens must not be set when maxReasoningEffort is high"
OWN = (BAD_EFFORT, NO_LIMIT)


def refuse(message: str, reason: str, *, status: int = 400, kind: str = VALIDATION) -> Verdict:
    """A refusal; ``reason`` is for people and tests."""
    return Verdict(status, {"message": message}, reason, {"x-amzn-errortype": kind})


def shape_faults(body: JsonObject) -> Iterator[Verdict]:
    """What is wrong with the shape of a Converse request."""
    yield from _keys(body)
    yield from _roles(body)
    yield from _contents(body)
    yield from _pairs(body)
    yield from _tools(body)


def plain_faults(row: Plain, body: JsonObject) -> Iterator[Verdict]:
    """What such a model refuses in a well-formed request."""
    for index, message in enumerate(_messages(body)):
        if _members(message, "reasoningContent"):
            yield refuse(NO_REASONING, f"reasoning at messages[{index}]")
    fields = as_object(body.get("additionalModelRequestFields"))
    for name in fields:
        if name != row.field:
            yield refuse(EXTRANEOUS.format(key=name), f"unknown key {name}")
    effort = _effort(row, fields.get(row.field))
    if row.field in fields and effort not in row.efforts:
        text = BAD_EFFORT.format(value=effort, field=row.field, efforts=", ".join(row.efforts))
        yield refuse(text, f"effort {effort}")
    if row.nested and effort == "high" and "maxTokens" in as_object(body.get("inferenceConfig")):
        yield refuse(NO_LIMIT, "maxTokens beside high effort")


def wrapped(verdict: Verdict) -> Verdict:
    """A refusal by the model's own server, as Converse passes it on."""
    return refuse(f"The model returned the following errors: {verdict.message}", verdict.reason)


def passed_on(verdict: Verdict) -> Verdict:
    """A refusal by the model's own server, as InvokeModel passes it on."""
    return refuse(verdict.message, verdict.reason)


def unknown_model(model: str) -> Verdict:
    """The refusal of a model that is not served."""
    return refuse("The provided model identifier is invalid.", f"unknown model {model}")


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
        blocks = as_objects(message.get("content"))
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
    return as_objects(body.get("messages"))


def _members(message: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    return [as_object(block[name]) for block in as_objects(message.get("content")) if name in block]


def thinks(row: Plain, body: JsonObject) -> bool:
    """Whether the model reasons on this request."""
    return row.thinks or row.field in as_object(body.get("additionalModelRequestFields"))


def _effort(row: Plain, value: object) -> str:
    return as_text(as_object(value).get("maxReasoningEffort")) if row.nested else as_text(value)
