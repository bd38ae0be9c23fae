"""Request reader of the ``cohere`` dialect: a history of messages to drafts of the log.

Promises: what the writer would not write again as it was is kept verbatim, citations aside (they are output);
assistant messages become responses of unknown origin, so that their readable reasoning may go back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Media, Origin, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool
from thinkback.wire import histories
from thinkback.wire.cohere import media
from thinkback.wire.cohere.message import MessageBuilder
from thinkback.wire.result import ReadRequest
from thinkback.wire.values import source_of

NAME = "cohere"
UNKNOWN_ORIGIN = Origin(NAME, "", "")


def read_request(body: Mapping[str, Any], ids: Callable[[], str], origin: Origin = UNKNOWN_ORIGIN) -> ReadRequest:
    """A whole request body. Raises ``WireError`` for messages that are none."""
    return histories.read_body(body, lambda messages: read_messages(messages, ids, origin), read_tool)


def read_messages(
    messages: Sequence[Any],
    ids: Callable[[], str],
    origin: Origin = UNKNOWN_ORIGIN,
    *,
    after: Sequence[Draft] = (),
) -> list[Draft]:
    """The drafts of ``messages`` in order; ``ids`` gives response ids, ``after`` is what came before them.

    Raises ``WireError`` naming the message.
    """
    drafts: list[Draft] = []
    names = {draft.value.id: draft.value.name for draft in after if isinstance(draft.value, ToolCall)}
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "system":
            drafts.append(Draft("system", _message(message)))
        elif role == "user":
            drafts.append(Draft("user", _message(message)))
        elif role == "assistant":
            added = _assistant_drafts(message, ids(), origin)
            names |= {draft.value.id: draft.value.name for draft in added if isinstance(draft.value, ToolCall)}
            drafts += added
        elif role == "tool":
            drafts.append(Draft("tool_result", _result(message, names)))
        else:
            raise histories.bad_role(at, role, "system, user, assistant and tool")
    return drafts


def _assistant_drafts(message: Mapping[str, Any], response: str, origin: Origin) -> list[Draft]:
    builder = MessageBuilder()
    builder.add_message(dict(message))
    found, extra = builder.blocks(), builder.extra
    header = Response(
        origin=origin,
        content=builder.content,
        message=source_of(extra),
        blocks=len(found),
    )
    return histories.response_drafts(header, found, response)


def _message(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    is_list = isinstance(content, list) and content != []
    usual = message.keys() == {"role", "content"} and (is_list or isinstance(content, str))
    wire, dialect = ("", "") if usual else (canonical.source(dict(message)), NAME)
    if isinstance(content, str):
        return Message(content, wire=wire, dialect=dialect)
    parts = tuple(map(_part, content if isinstance(content, list) else ()))
    return Message("".join(part.text for part in parts if isinstance(part, Text)), parts, wire, NAME)


def _part(part: Any) -> Text | Media | Unknown:
    if media.is_media(part):
        return media.read_part(part)
    source = canonical.source(part)
    if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return Text(part["text"], wire=source if len(part) > 2 else "")
    return Unknown(source)


def _result(message: Mapping[str, Any], names: Mapping[str, str]) -> ToolResult:
    id, content = str(message.get("tool_call_id") or ""), message.get("content")
    usual = message.keys() == {"role", "tool_call_id", "content"} and isinstance(content, str)
    return ToolResult(
        id,
        content if isinstance(content, str) else _text_of(content),
        name=names.get(id, ""),
        wire="" if usual else canonical.source(dict(message)),
        dialect="" if usual else NAME,
    )


def _text_of(content: Any) -> str:
    """The text of a list of text items; anything else as JSON."""
    parts = [_part(part) for part in content] if isinstance(content, list) else []
    texts = [part.text for part in parts if isinstance(part, Text)]
    return "".join(texts) if texts and len(texts) == len(parts) else canonical.source(content)


def read_tool(tool: Any) -> Tool:
    """A tool definition; one that is no function has nothing but what stands on the wire, and its type for a name."""
    wire = canonical.source(tool)
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping):
        kind = tool.get("type") if isinstance(tool, Mapping) else ""
        return Tool(str(kind or ""), wire=wire, dialect=NAME)
    name, description = str(function.get("name") or ""), str(function.get("description") or "")
    parameters = function.get("parameters")
    written = {"name": name, "parameters": parameters, **({"description": description} if description else {})}
    usual = isinstance(parameters, Mapping) and tool == {"type": "function", "function": written}
    source = canonical.source(parameters if isinstance(parameters, Mapping) else {})
    return Tool(name, description, source, "" if usual else wire, "" if usual else NAME)
