"""Request reader of the ``openai-chat`` dialect: a history of messages to drafts of the log.

Promises: each message is kept verbatim beside what was understood; assistant messages become responses of unknown
origin, so that their readable reasoning may go back and their opaque values may not (DESIGN 3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Media, Origin, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool
from thinkback.model.think_tags import is_plain
from thinkback.wire import histories
from thinkback.wire.openai_chat import media
from thinkback.wire.openai_chat.message import MessageBuilder
from thinkback.wire.result import ReadRequest
from thinkback.wire.values import source_of

DIALECT = "openai-chat"
UNKNOWN_ORIGIN = Origin(DIALECT, "", "")
_USUAL = {"role", "content"}


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
            raise histories.bad_role(at, role, "system, developer, user, assistant and tool")
    return drafts


def assistant_drafts(message: Mapping[str, Any], response: str, origin: Origin) -> list[Draft]:
    """One assistant message as a response and its blocks."""
    content = message.get("content")
    if message.keys() == _USUAL and isinstance(content, str) and content and is_plain(content):
        # Most messages of most conversations; all else is put together as if it came in pieces.
        header = Response(origin=origin, content="text", blocks=1)
        return histories.response_drafts(header, [Text(canonical.whole(content))], response)
    builder = MessageBuilder()
    builder.add_object(dict(message), complete=True)
    builder.close()
    blocks, extra = builder.blocks(), builder.extra
    header = Response(
        origin=origin,
        content=builder.content,
        message=source_of(extra),
        repeats=builder.repeats,
        blocks=len(blocks),
    )
    return histories.response_drafts(header, blocks, response)


def _plain(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        usual = message.keys() == _USUAL and message["role"] != "developer"
        return Message(content, wire="" if usual else canonical.source(message), dialect="" if usual else DIALECT)
    parts = tuple(map(_part, content if isinstance(content, list) else []))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return Message(text, parts, wire=canonical.source(message), dialect=DIALECT)


def _part(part: Any) -> Text | Media | Unknown:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return Text(part["text"], wire=canonical.source(part))
    return media.read_part(part) if media.is_media(part) else Unknown(canonical.source(part))


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
    text = content if isinstance(content, str) else canonical.source(content)
    return ToolResult(
        id,
        text,
        name=str(message.get("name") or ""),
        wire="" if is_usual else canonical.source(message),
        dialect="" if is_usual else DIALECT,
    )


def read_tool(tool: Any) -> Tool:
    """A tool definition; one that is no function has nothing but what stands on the wire, and its type for a name."""
    return histories.read_function(tool, DIALECT, lambda value: canonical.encode(value).decode())
