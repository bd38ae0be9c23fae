"""Tools that take any text instead of a JSON object: ``custom`` ones of chat completions and of Responses.

Promises: a definition, a call and a choice in the words of either dialect, and as a function of one string for a host
that has functions only, so that the text is the same there and back. Must not: know which host takes what.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import CUSTOM_CALL, ToolCall
from thinkback.model.commits import Tool

ONE_STRING = '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'
"""The parameters of the function that stands for a custom tool."""
_KINDS = frozenset({"function", "custom"})


def definition_of(tool: Tool) -> dict[str, Any] | None:
    """The members of a custom tool, all at one level as Responses has them; ``None`` of any other tool."""
    if '"custom"' not in tool.wire:
        return None
    written = canonical.decode(tool.wire)
    if not isinstance(written, dict) or written.get("type") != "custom":
        return None
    inner = written.get("custom", written)
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        return None
    found = {"type": "custom", **{key: value for key, value in inner.items() if key != "type"}}
    form = found.get("format")
    if isinstance(form, dict) and isinstance(form.get("grammar"), dict):
        found["format"] = {**{key: value for key, value in form.items() if key != "grammar"}, **form["grammar"]}
    return found


def flat_source(tool: Tool) -> str:
    """The definition in the words of Responses."""
    return canonical.source(definition_of(tool))


def nested_source(tool: Tool) -> str:
    """The definition in the words of chat completions."""
    inner = {key: value for key, value in (definition_of(tool) or {}).items() if key != "type"}
    form = inner.get("format")
    if isinstance(form, dict) and form.get("type") == "grammar":
        inner["format"] = {
            "type": "grammar",
            "grammar": {key: value for key, value in form.items() if key != "type"},
        }
    return canonical.source({"type": "custom", "custom": inner})


def as_function(tool: Tool) -> Tool:
    """The function of one string that stands for a custom tool; a grammar is told in its description."""
    found = definition_of(tool) or {}
    said, form = str(found.get("description") or ""), found.get("format")
    if isinstance(form, dict) and isinstance(form.get("definition"), str):
        grammar = f"The input is text of this grammar ({form.get('syntax', 'lark')}):\n{form['definition']}"
        said = f"{said}\n\n{grammar}" if said else grammar
    return Tool(str(found.get("name", "")), said, ONE_STRING)


def read_custom(tool: Any, dialect: str) -> Tool | None:
    """A custom tool as a program of ``dialect`` defined it; ``None`` of anything else."""
    if not isinstance(tool, dict) or tool.get("type") != "custom":
        return None
    read = Tool("", wire=canonical.source(tool), dialect=dialect)
    found = definition_of(read)
    if found is None:
        return None
    said = str(found.get("description") or "")
    return msgspec.structs.replace(read, name=found["name"], description=said, parameters=ONE_STRING)


def is_custom(call: ToolCall) -> bool:
    """True if a tool that takes any text was called."""
    return call.source_field == CUSTOM_CALL


def call_for(call: ToolCall, *, takes_custom: bool) -> ToolCall:
    """A call of a custom tool as it goes to a host that has such tools, or to one that has functions only.

    The verbatim object stays where it is of that kind.
    """
    is_function = bool(call.wire) and kind_of(call) not in ("custom", CUSTOM_CALL)
    wire = call.wire if is_function is not takes_custom else ""
    if takes_custom or wire:
        return call if wire == call.wire else msgspec.structs.replace(call, wire=wire)
    told = canonical.source({"input": call.arguments})
    return msgspec.structs.replace(call, arguments=told, source_field="tool_calls", wire="")


class _Kind(msgspec.Struct):
    type: Any = "function"


def kind_of(call: ToolCall) -> Any:
    """The type that the verbatim object of a call names."""
    kind: _Kind = canonical.decode(call.wire, _Kind)
    return kind.type


def call_from_function(call: ToolCall) -> ToolCall:
    """The call of a custom tool that the call of its function is: the text that is its only argument.

    What a model wrote instead of an object with one string goes to the tool as it is.
    """
    try:
        told = canonical.decode(call.arguments, dict[str, Any])
    except msgspec.DecodeError:
        told = {}
    text = told.get("input") if len(told) == 1 else None
    arguments = text if isinstance(text, str) else call.arguments
    return msgspec.structs.replace(call, arguments=arguments, source_field=CUSTOM_CALL)


def choice_for(choice: Any, names: Collection[str], *, takes_custom: bool) -> Any:
    """A tool choice of either dialect, with each tool of ``names`` under the kind that it is offered as."""
    if isinstance(choice, list):
        return [choice_for(each, names, takes_custom=takes_custom) for each in choice]
    if not isinstance(choice, dict):
        return choice
    kind = choice.get("type")
    if kind == "allowed_tools":
        inner = {key: value for key, value in choice.items() if key in ("tools", "allowed_tools")}
        within = inner.get("allowed_tools")
        if isinstance(within, dict):
            return {**choice, "allowed_tools": _allowed(within, names, takes_custom)}
        return _allowed(choice, names, takes_custom)
    if kind not in _KINDS:
        return choice
    named = choice.get(kind, choice)
    if not isinstance(named, dict) or named.get("name") not in names:
        return choice
    wanted = "custom" if takes_custom else "function"
    return {"type": wanted, wanted: named} if kind in choice else {**choice, "type": wanted}


def _allowed(choice: dict[str, Any], names: Collection[str], takes_custom: bool) -> dict[str, Any]:
    return {**choice, "tools": choice_for(choice.get("tools"), names, takes_custom=takes_custom)}
