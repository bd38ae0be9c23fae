"""Request reader of the ``openai-chat`` dialect: a history of messages to drafts of the log.

Promises: each message is kept verbatim beside what was understood; assistant messages become responses of unknown
origin, so that their readable reasoning may go back and their opaque values may not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Origin, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool
from thinkback.model.custom_tools import read_custom
from thinkback.model.think_tags import is_plain
from thinkback.wire import histories
from thinkback.wire.openai_chat import media
from thinkback.wire.openai_chat.message import MessageBuilder
from thinkback.wire.result import ReadRequest
from thinkback.wire.values import source_of

NAME = "openai-chat"
UNKNOWN_ORIGIN = Origin(NAME, "", "")
_PLAIN = {"role", "content"}
_USUAL = {"role", "content", "tool_calls"}
_CALL = {"id", "type", "function"}
_FUNCTION = {"name", "arguments"}
_ABSENT = object()


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
    unanswered = _Unanswered(after)
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role in ("system", "developer"):
            drafts.append(Draft("system", _plain(message)))
        elif role == "user":
            drafts.append(Draft("user", _plain(message)))
        elif role == "assistant":
            drafts += assistant_drafts(message, ids(), origin)
        elif role == "tool":
            id = str(message.get("tool_call_id") or unanswered.first(drafts))
            drafts.append(Draft("tool_result", _result(message, id)))
        else:
            raise histories.bad_role(at, role, "system, developer, user, assistant and tool")
    return drafts


def assistant_drafts(message: Mapping[str, Any], response: str, origin: Origin) -> list[Draft]:
    """One assistant message as a response and its blocks."""
    usual = _usual_blocks(message) if message.keys() <= _USUAL else None
    if usual is not None:
        said = message.get("content", _ABSENT)
        form: Literal["absent", "null", "text"] = "absent" if said is _ABSENT else "null" if said is None else "text"
        header = Response(origin=origin, content=form, blocks=len(usual))
        return histories.response_drafts(header, usual, response)
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


def _usual_blocks(message: Mapping[str, Any]) -> list[Block] | None:
    """A text without tags and calls of the usual form: most messages of most conversations.

    ``None`` for all else, which is put together as if it came in pieces.
    """
    content, calls = message.get("content"), message.get("tool_calls", ())
    blocks: list[Block] = []
    if content:
        if not isinstance(content, str) or not is_plain(content):
            return None
        blocks.append(Text(canonical.whole(content)))
    elif content is not None and content != "":
        return None
    if calls == ():
        return blocks
    if not isinstance(calls, list):
        return None
    for call in calls:
        function = call.get("function") if isinstance(call, dict) and call.keys() == _CALL else None
        if not isinstance(function, dict) or function.keys() != _FUNCTION or call["type"] != "function":
            return None
        id, name, arguments = call["id"], function["name"], function["arguments"]
        if not (isinstance(id, str) and isinstance(name, str) and isinstance(arguments, str)):
            return None
        blocks.append(ToolCall(id, name, canonical.whole(arguments), source_field="tool_calls"))
    return blocks


def _plain(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        usual = message.keys() == _PLAIN and message["role"] != "developer"
        return Message(content, wire="" if usual else canonical.source(message), dialect="" if usual else NAME)
    parts = tuple(map(_part, content if isinstance(content, list) else []))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return Message(text, parts, wire=canonical.source(message), dialect=NAME)


def _part(part: Any) -> Text | Media | Unknown:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return Text(part["text"], wire=canonical.source(part))
    return media.read_part(part) if media.is_media(part) else Unknown(canonical.source(part))


class _Unanswered:
    """The calls without a result: a tool message without an id answers the first."""

    def __init__(self, after: Sequence[Draft]) -> None:
        self._calls: dict[str, None] = {}
        self._taken = 0
        self._take(after)

    def first(self, drafts: Sequence[Draft]) -> str:
        """The first behind ``drafts``, which begin with those of the last time; each is looked at once."""
        self._take(drafts[self._taken :])
        self._taken = len(drafts)
        return next(iter(self._calls), "")

    def _take(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            if isinstance(draft.value, ToolCall):
                self._calls[draft.value.id] = None
            elif isinstance(draft.value, ToolResult):
                self._calls.pop(draft.value.id, None)


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
        dialect="" if is_usual else NAME,
    )


def read_tool(tool: Any) -> Tool:
    """A tool definition; one that is no function has nothing but what stands on the wire, and its type for a name."""
    custom = read_custom(tool, NAME)
    if custom is not None:
        return custom
    return histories.read_function(tool, NAME, lambda value: canonical.encode(value).decode())
