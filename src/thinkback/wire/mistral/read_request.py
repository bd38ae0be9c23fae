"""Request reader of the ``mistral`` dialect: a history of messages to drafts of the log.

Promises: what the writer would not rebuild is kept verbatim; assistant messages become responses of unknown origin
unless the caller knows better, so that their readable reasoning may go back and signatures may not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Media, Origin, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool
from thinkback.wire import histories
from thinkback.wire.mistral import media
from thinkback.wire.mistral.message import MessageBuilder
from thinkback.wire.result import ReadRequest
from thinkback.wire.values import source_of

NAME = "mistral"
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

    A tool message without an id answers the first open call. Raises ``WireError`` naming the message.
    """
    drafts: list[Draft] = []
    calls = {draft.value.id: draft.value.name for draft in after if isinstance(draft.value, ToolCall)}
    for draft in after:
        if isinstance(draft.value, ToolResult):
            calls.pop(draft.value.id, None)
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role in ("system", "user"):
            drafts.append(Draft(role, _plain(message)))
        elif role == "assistant":
            found = _assistant(message, ids(), origin)
            calls.update((draft.value.id, draft.value.name) for draft in found if isinstance(draft.value, ToolCall))
            drafts += found
        elif role == "tool":
            id = str(message.get("tool_call_id") or next(iter(calls), ""))
            drafts.append(Draft("tool_result", _result(message, id, calls.pop(id, ""))))
        else:
            raise histories.bad_role(at, role, "system, user, assistant and tool")
    return drafts


def _assistant(message: Mapping[str, Any], response: str, origin: Origin) -> list[Draft]:
    """One assistant message as a response and its blocks."""
    builder = MessageBuilder(keeps_index=True)
    builder.add_object(dict(message), complete=True)
    blocks, extra = builder.blocks(), builder.extra
    header = Response(
        origin=origin,
        content=builder.content,
        message=source_of(extra),
        blocks=len(blocks),
    )
    return histories.response_drafts(header, blocks, response)


def _plain(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        usual = set(message) == {"role", "content"}
        return Message(content, wire="" if usual else canonical.source(dict(message)), dialect="" if usual else NAME)
    parts = tuple(map(_part, content if isinstance(content, list) else ()))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return Message(text, parts, wire=canonical.source(dict(message)), dialect=NAME)


def _part(part: Any) -> Text | Media | Unknown:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return Text(part["text"], wire=canonical.source(part))
    return media.read_chunk(part) if media.is_media(part) else Unknown(canonical.source(part))


def _result(message: Mapping[str, Any], id: str, name: str) -> ToolResult:
    """A tool message; ``name`` is that of the call where the message does not say it."""
    content, said = message.get("content"), message.get("name")
    usual = isinstance(content, str) and set(message) == {"role", "tool_call_id", "name", "content"}
    return ToolResult(
        id,
        content if isinstance(content, str) else canonical.source(content),
        name=said if isinstance(said, str) and said else name,
        wire="" if usual and said else canonical.source(dict(message)),
        dialect="" if usual and said else NAME,
    )


def read_tool(tool: Any) -> Tool:
    """A tool definition; one that is no function has nothing but what stands on the wire, and its type for a name."""
    return histories.read_function(tool, NAME)
