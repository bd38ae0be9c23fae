"""Request reader of the ``gemini-interactions`` dialect: steps to drafts of the log.

Promises: what the writer would not rebuild is kept verbatim; neighbouring steps of the model become one response of
unknown origin. An input that is a text, or a list of contents, is a message of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from thinkback.errors import WireError
from thinkback.model import canonical
from thinkback.model.blocks import Media, Origin, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools
from thinkback.wire import histories
from thinkback.wire.gemini_interactions import write
from thinkback.wire.gemini_interactions.blocks import CONTENTS, read_content, wire_object
from thinkback.wire.gemini_interactions.steps import Steps
from thinkback.wire.gemini_interactions.write import NAME
from thinkback.wire.result import ReadRequest

UNKNOWN_ORIGIN = Origin(NAME, "", "")
_INPUT, _RESULT = "user_input", "function_result"
_READ = frozenset({"input", "model", "tools", "system_instruction"})


def read_request(body: Mapping[str, Any], ids: Callable[[], str], origin: Origin = UNKNOWN_ORIGIN) -> ReadRequest:
    """A whole request body. Raises ``WireError`` for an input that is none."""
    tools = body.get("tools")
    offered = tuple(map(read_tool, tools)) if isinstance(tools, Sequence) and not isinstance(tools, str) else ()
    drafts = [Draft("tools", Tools(offered))] if offered else []
    if isinstance(body.get("system_instruction"), str):
        drafts.append(Draft("system", Message(body["system_instruction"])))
    given = body.get("input")
    if not isinstance(given, str | Mapping | Sequence):
        raise WireError("the request has no input")
    entries = [given] if isinstance(given, str | Mapping) else given
    drafts += read_messages(entries, ids, origin)
    params = {key: value for key, value in body.items() if key not in _READ}
    return ReadRequest(str(body.get("model") or ""), tuple(drafts), params)


def read_messages(
    entries: Sequence[Any],
    ids: Callable[[], str],
    origin: Origin = UNKNOWN_ORIGIN,
    *,
    after: Sequence[Draft] = (),
) -> list[Draft]:
    """The drafts of steps in order; ``ids`` gives response ids, ``after`` is what came before them.

    Raises ``WireError`` naming the step.
    """
    drafts: list[Draft] = []
    names = _names([draft.value for draft in after])
    at = 0
    for kind, group in groupby(entries, _sort):
        steps = list(group)
        if not kind:
            raise WireError(
                f"input[{at}] cannot be adopted: it is not a step",
                details={"message": at},
                next_actions=("steps are objects with a type, such as user_input",),
            )
        if kind == "model":
            found = _response(steps, ids(), origin)
        elif kind == "content":
            found = _user_drafts({"type": _INPUT, "content": [_content(each) for each in steps]}, names)
        else:
            found = [draft for step in steps for draft in _user_drafts(step, names)]
        names.update(_names([draft.value for draft in found]))
        drafts += found
        at += len(steps)
    return drafts


def _sort(entry: Any) -> str:
    """What an entry of the input is a part of; nothing for what is no entry."""
    if isinstance(entry, str):
        return "content"
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    if not isinstance(kind, str):
        return ""
    if kind in CONTENTS:
        return "content"
    return "user" if kind in (_INPUT, _RESULT) else "model"


def _content(entry: Any) -> Any:
    return {"type": "text", "text": entry} if isinstance(entry, str) else entry


def _names(values: Sequence[Any]) -> dict[str, str]:
    """The names of calls by their ids."""
    return {value.id: value.name for value in values if isinstance(value, ToolCall)}


def _response(steps: Sequence[Mapping[str, Any]], response: str, origin: Origin) -> list[Draft]:
    """Neighbouring steps of the model as one response and its blocks."""
    read = Steps()
    for step in steps:
        read.add(step)
    blocks = read.blocks()
    header = Response(origin=origin, blocks=len(blocks))
    return histories.response_drafts(header, blocks, response)


def _user_drafts(step: Mapping[str, Any], names: Mapping[str, str]) -> list[Draft]:
    """A step of the user: a result, a message, or results and a message with the rest."""
    if step["type"] == _RESULT:
        return [Draft("tool_result", _result(step, step, names))]
    given = step.get("content")
    contents = [given] if isinstance(given, str | Mapping) else list(given) if isinstance(given, Sequence) else []
    answers = [each for each in contents if isinstance(each, Mapping) and each.get("type") == _RESULT]
    drafts = [Draft("tool_result", _result(each, {**step, "content": [each]}, names)) for each in answers]
    rest = [each for each in contents if each not in answers]
    if not answers:
        drafts.append(Draft("user", _message(step, contents)))
    elif rest:
        drafts.append(Draft("user", _message({**step, "content": rest}, rest)))
    return drafts


def _message(step: Mapping[str, Any], contents: Sequence[Any]) -> Message:
    """A message, verbatim where the writer would not give it back."""
    parts = tuple(map(_part, contents))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    message = Message(text) if parts == (Text(text),) else Message(text, parts, dialect=NAME)
    if canonical.decode(write.message("user", message)) == step:
        return message
    return Message(text, message.parts, canonical.source(dict(step)), NAME)


def _part(content: Any) -> Text | Media | Unknown:
    content = _content(content)
    return read_content(content) if isinstance(content, Mapping) else Unknown(canonical.source(content))


def _result(answer: Mapping[str, Any], object: Mapping[str, Any], names: Mapping[str, str]) -> ToolResult:
    """What a tool gave back, verbatim as ``object`` where the writer would not give that back."""
    id, value = str(answer.get("call_id") or ""), answer.get("result")
    content = value if isinstance(value, str) else canonical.source(value)
    name = str(answer.get("name") or names.get(id, ""))
    result = ToolResult(id, content, name, answer.get("is_error") is True)
    if canonical.decode(wire_object(result)) == object:
        return result
    return ToolResult(id, content, name, result.is_error, wire=canonical.source(dict(object)), dialect=NAME)


def read_tool(tool: Any) -> Tool:
    """A tool definition; one that is no function has nothing but what stands on the wire, and its type for a name."""
    wire = canonical.source(tool)
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        kind = tool.get("type") if isinstance(tool, Mapping) else ""
        return Tool(str(kind or ""), wire=wire, dialect=NAME)
    parameters = canonical.encode(tool.get("parameters") or {}).decode()
    return Tool(str(tool.get("name") or ""), str(tool.get("description") or ""), parameters, wire, NAME)
