"""The rules of the models that are not Claude: their reasoning controls, and that no reasoning may come back."""

from __future__ import annotations

from ..jsons import JsonObject, as_list, as_object, as_text
from ..verdict import ACCEPTED, Verdict
from .profiles import Plain
from .refusals import refuse
from .structure import EXTRANEOUS

NO_REASONING = "User messages cannot contain reasoning content. Please remove the reasoning content and try again."
# Texts of the following unconfirmed.
BAD_EFFORT = "Value '{value}' at '{field}' failed to satisfy constraint: must be one of {efforts}"
NO_LIMIT = "maxTokens must not be set when maxReasoningEffort is high"


def judge_plain(row: Plain, body: JsonObject) -> Verdict:
    """The verdict on a well-formed request to such a model."""
    for index, message in enumerate(map(as_object, as_list(body.get("messages")))):
        if any("reasoningContent" in as_object(block) for block in as_list(message.get("content"))):
            return refuse(NO_REASONING, f"reasoning at messages[{index}]")
    fields = as_object(body.get("additionalModelRequestFields"))
    extraneous = [name for name in fields if name != row.field]
    if extraneous:
        return refuse(EXTRANEOUS.format(key=extraneous[0]), f"unknown key {extraneous[0]}")
    effort = _effort(row, fields.get(row.field))
    if row.field in fields and effort not in row.efforts:
        text = BAD_EFFORT.format(value=effort, field=row.field, efforts=", ".join(row.efforts))
        return refuse(text, f"effort {effort}")
    if row.nested and effort == "high" and "maxTokens" in as_object(body.get("inferenceConfig")):
        return refuse(NO_LIMIT, "maxTokens beside high effort")
    return ACCEPTED


def thinks(row: Plain, body: JsonObject) -> bool:
    """Whether the model reasons on this request."""
    return row.thinks or row.field in as_object(body.get("additionalModelRequestFields"))


def _effort(row: Plain, value: object) -> str:
    return as_text(as_object(value).get("maxReasoningEffort")) if row.nested else as_text(value)
