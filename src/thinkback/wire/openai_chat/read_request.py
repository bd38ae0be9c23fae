"""Request reader of the ``openai-chat`` dialect: a history of messages to drafts of the log.

Promises: each message is kept verbatim beside what was understood; assistant messages become responses of unknown
origin, so that their readable reasoning may go back and their opaque values may not (DESIGN 3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thinkback.errors import WireError
from thinkback.model import canonical
from thinkback.model.blocks import Media, Origin, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools, block_draft
from thinkback.wire.openai_chat import media
from thinkback.wire.openai_chat.message import MessageBuilder
from thinkback.wire.result import ReadRequest

DIALECT = "openai-chat"
UNKNOWN_ORIGIN = Origin(DIALECT, "", "")
_READ = frozenset({"messages", "model", "tools"})


def read_request(body: Mapping[str, Any], ids: Callable[[], str], origin: Origin = UNKNOWN_ORIGIN) -> ReadRequest:
    """A whole request body. Raises ``WireError`` for messages that are none."""
    tools = body.get("tools")
    offered = tuple(map(read_tool, tools)) if isinstance(tools, Sequence) and not isinstance(tools, str) else ()
    drafts = [Draft("tools", Tools(offered))] if offered else []
    messages = body.get("messages")
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise WireError("the request has no list of messages")
    drafts += read_messages(messages, ids, origin)
    params = {key: value for key, value in body.items() if key not in _READ}
    return ReadRequest(str(body.get("model") or ""), tuple(drafts), params)


def read_messages(
    messages: Sequence[Any],
    ids: Callable[[], str],
    origin: Origin = UNKNOWN_ORIGIN,
    *,
    after: Sequence[Draft] = (),
) -> list[Draft]:
    """The drafts of ``messages`` in order; ``ids`` gives response ids, ``after`` is what came before them.

    A tool message without an id answers the first open call. Raises ``WireError`` naming the message.
    """
    drafts: list[Draft] = []
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role in ("system", "developer"):
            drafts.append(Draft("system", _plain(message)))
        elif role == "user":
            drafts.append(Draft("user", _plain(message)))
        elif role == "assistant":
            drafts += assistant_drafts(message, ids(), origin)
        elif role == "tool":
            id = str(message.get("tool_call_id") or _unanswered([*after, *drafts]))
            drafts.append(Draft("tool_result", _result(message, id)))
        else:
            raise WireError(
                f"messages[{at}] cannot be adopted: role {role!r}",
                details={"message": at},
                next_actions=("roles are system, developer, user, assistant and tool",),
            )
    return drafts


def assistant_drafts(message: Mapping[str, Any], response: str, origin: Origin) -> list[Draft]:
    """One assistant message as a response and its blocks."""
    builder = MessageBuilder()
    builder.add_object(dict(message), complete=True)
    builder.close()
    blocks, extra = builder.blocks(), builder.extra
    header = Response(
        origin=origin,
        content=builder.content,
        message=_source(extra) if extra else "",
        repeats=builder.repeats,
        blocks=len(blocks),
    )
    return [
        Draft("response", header, response),
        *(block_draft(block, response, at) for at, block in enumerate(blocks)),
    ]


def _plain(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        usual = set(message) == {"role", "content"} and message["role"] != "developer"
        return Message(content, wire="" if usual else _source(message), dialect="" if usual else DIALECT)
    parts = tuple(map(_part, content if isinstance(content, list) else []))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return Message(text, parts, wire=_source(message), dialect=DIALECT)


def _part(part: Any) -> Text | Media | Unknown:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return Text(part["text"], wire=_source(part))
    return media.read_part(part) if media.is_media(part) else Unknown(_source(part))


def _unanswered(drafts: Sequence[Draft]) -> str:
    """The first call without a result: what a tool message without an id answers."""
    open_calls: dict[str, None] = {}
    for draft in drafts:
        if isinstance(draft.value, ToolCall):
            open_calls[draft.value.id] = None
        elif isinstance(draft.value, ToolResult):
            open_calls.pop(draft.value.id, None)
    return next(iter(open_calls), "")


def _result(message: Mapping[str, Any], id: str) -> ToolResult:
    content = message.get("content")
    usual = {"role", "tool_call_id", "content"}
    is_usual = set(message) == usual and isinstance(content, str)
    text = content if isinstance(content, str) else _source(content)
    return ToolResult(
        id,
        text,
        name=str(message.get("name") or ""),
        wire="" if is_usual else _source(message),
        dialect="" if is_usual else DIALECT,
    )


def read_tool(tool: Any) -> Tool:
    """A tool definition; one that is no function has nothing but what stands on the wire, and its type for a name."""
    wire = _source(tool)
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping):
        kind = tool.get("type") if isinstance(tool, Mapping) else ""
        return Tool(str(kind or ""), wire=wire, dialect=DIALECT)
    parameters = canonical.encode(function.get("parameters") or {}).decode()
    name, description = str(function.get("name") or ""), str(function.get("description") or "")
    return Tool(name, description, parameters, wire, DIALECT)


def _source(value: Any) -> str:
    return canonical.source(value)
