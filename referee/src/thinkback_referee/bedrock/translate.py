"""Converse in terms of the Messages format and back, as the service does for Claude: places of blocks stay the same.

Recorded responses are translated too, so that a ledger can learn from them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..jsons import JsonObject, as_list, as_object, as_objects, as_text, compact

# Without maxTokens the service asks for as many as the model can write.
_MOST_TOKENS = 64_000
# Both names of the same parameter were accepted in recordings.
_THINKING = "reasoning_config"


def messages_body(body: JsonObject) -> JsonObject:
    """A Converse body as a Messages body; what only Converse has is left out."""
    limits = as_object(body.get("inferenceConfig"))
    fields = dict(as_object(body.get("additionalModelRequestFields")))
    if _THINKING in fields:
        fields.setdefault("thinking", fields.pop(_THINKING))
    effort = as_object(body.get("outputConfig")).get("effort")
    found: JsonObject = {
        "messages": [_message(as_object(message)) for message in as_list(body.get("messages"))],
        "max_tokens": limits.get("maxTokens", _MOST_TOKENS),
        "system": messages_content(body.get("system")),
        **_given(temperature=limits.get("temperature"), top_p=limits.get("topP")),
        **_given(stop_sequences=limits.get("stopSequences")),
        **_tools(as_object(body.get("toolConfig"))),
        **_given(output_config=None if effort is None else {"effort": effort}),
    }
    return {**found, **{name: value for name, value in fields.items() if name != "anthropic_beta"}}


def betas_of(fields: object) -> frozenset[str]:
    """The beta names that a body, or the additional fields of one, ask for."""
    return frozenset(as_text(name) for name in as_list(as_object(fields).get("anthropic_beta")))


def converse_block(block: Mapping[str, object]) -> JsonObject:
    """A block of a Messages response as Converse gives it."""
    match block["type"]:
        case "thinking":
            signed = {"signature": block["signature"]} if block["signature"] else {}
            return {"reasoningContent": {"reasoningText": {"text": block["thinking"], **signed}}}
        case "redacted_thinking":
            return {"reasoningContent": {"redactedContent": base64.b64encode(as_text(block["data"]).encode()).decode()}}
        case "tool_use":
            return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
        case _:
            return {"text": block["text"]}


def _message(message: Mapping[str, object]) -> JsonObject:
    return {"role": message.get("role"), "content": messages_content(message.get("content"))}


def messages_content(content: object) -> list[JsonObject]:
    """Content blocks of Converse as those of the Messages format."""
    blocks: list[JsonObject] = []
    for block in as_objects(content):
        name = next(iter(block), "")
        if name == "cachePoint":
            # A mark of its own here is a field of the block before it there.
            blocks[-1:] = [{**last, "cache_control": {"type": "ephemeral"}} for last in blocks[-1:]]
        else:
            blocks.append(_READERS.get(name, _document)(block.get(name)))
    return blocks


def _text(value: object) -> JsonObject:
    # An empty text beside reasoning is allowed here and not there.
    return {"type": "text", "text": as_text(value) or " "}


def _reasoning(value: object) -> JsonObject:
    reasoning = as_object(value)
    if "redactedContent" in reasoning:
        return {"type": "redacted_thinking", "data": _decoded(as_text(reasoning["redactedContent"]))}
    text = as_object(reasoning.get("reasoningText"))
    signed = {"signature": text["signature"]} if "signature" in text else {}
    return {"type": "thinking", "thinking": text.get("text"), **signed}


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return f"not base64: {data}"


def _call(value: object) -> JsonObject:
    call = as_object(value)
    return {"type": "tool_use", "id": call.get("toolUseId"), "name": call.get("name"), "input": call.get("input")}


def _result(value: object) -> JsonObject:
    result = as_object(value)
    parts = as_objects(result.get("content"))
    content = [
        {"type": "text", "text": as_text(part.get("text")) or compact(part.get("json", ""))}
        for part in parts
        if "text" in part or "json" in part
    ]
    failed = {"is_error": True} if result.get("status") == "error" else {}
    return {"type": "tool_result", "tool_use_id": result.get("toolUseId"), "content": content, **failed}


def _document(value: object) -> JsonObject:
    return {"type": "document", "source": value}


_READERS: Mapping[str, Callable[[object], JsonObject]] = MappingProxyType(
    {"text": _text, "reasoningContent": _reasoning, "toolUse": _call, "toolResult": _result}
)


def _tools(config: Mapping[str, object]) -> JsonObject:
    tools: list[object] = []
    for spec in (as_object(as_object(tool).get("toolSpec")) for tool in as_list(config.get("tools"))):
        if spec:
            schema = as_object(spec.get("inputSchema")).get("json")
            described = _given(description=spec.get("description"))
            tools.append({"name": spec.get("name"), **described, "input_schema": schema})
    choice = as_object(config.get("toolChoice"))
    kind = next(iter(choice), "")
    chosen = {"tool_choice": {"type": kind, **as_object(choice.get(kind))}} if kind else {}
    return {**({"tools": tools} if tools else {}), **chosen}


def _given(**values: object) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}
