"""Request reader of the ``anthropic`` dialect: a history of messages to drafts of the log.

Promises: what the writer would not write again from what was understood is kept verbatim; assistant messages become
responses, each entry one of its own; tool results come before what else stands in their message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thinkback.errors import WireError
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Origin, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools
from thinkback.wire import histories
from thinkback.wire.anthropic import media, write
from thinkback.wire.anthropic.blocks import NAME, wire_object
from thinkback.wire.anthropic.parts import Part, summary_in
from thinkback.wire.result import ReadRequest
from thinkback.wire.values import source_of

UNKNOWN_ORIGIN = Origin(NAME, "", "")
_READ = frozenset({"messages", "model", "system", "tools"})
_THINKING = ("thinking", "redacted_thinking")


def read_request(body: Mapping[str, Any], ids: Callable[[], str], origin: Origin = UNKNOWN_ORIGIN) -> ReadRequest:
    """A whole request body. Raises ``WireError`` for messages that are none."""
    tools = body.get("tools")
    offered = tuple(map(read_tool, tools)) if isinstance(tools, Sequence) and not isinstance(tools, str) else ()
    drafts = [Draft("tools", Tools(offered))] if offered else []
    drafts += [Draft("system", message) for message in _system(body.get("system"))]
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

    Raises ``WireError`` naming the message.
    """
    names = _names(after)
    drafts: list[Draft] = []
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("system", "user", "assistant"):
            raise WireError(
                f"messages[{at}] cannot be adopted: role {role!r}",
                details={"message": at},
                next_actions=("roles are user and assistant, and system after the first message",),
            )
        content = _content(message, f"messages[{at}]")
        if role == "assistant":
            said = _assistant(message, content, ids(), origin)
            names.update(_names(said))
            drafts += said
        elif role == "system":
            drafts.append(Draft("system", _message(message, content)))
        else:
            drafts += _user(message, content, names)
    return drafts


def _content(message: Mapping[str, Any], place: str) -> str | list[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence) or not all(isinstance(block, Mapping) for block in content):
        raise WireError(
            f"{place} cannot be adopted: its content is neither a text nor a list of blocks",
            details={"place": place},
        )
    return list(content)


def _names(drafts: Sequence[Draft]) -> dict[str, str]:
    """Tool names by the ids of their calls."""
    return {draft.value.id: draft.value.name for draft in drafts if isinstance(draft.value, ToolCall)}


def _system(system: Any) -> list[Message]:
    """A message for each entry of ``system``."""
    if not system:
        return []
    content = _content({"content": system}, "system")
    return [Message(content)] if isinstance(content, str) else [_of_parts([part]) for part in content]


def _assistant(
    message: Mapping[str, Any], content: str | list[Mapping[str, Any]], response: str, origin: Origin
) -> list[Draft]:
    """One assistant message as a response and its blocks."""
    blocks: list[Block] = []
    if isinstance(content, str):
        blocks += [Text(content)] if content else []
    else:
        blocks += [_parse_block(at, block) for at, block in enumerate(content)]
    extra = {key: value for key, value in message.items() if key not in ("role", "content")}
    header = Response(
        origin=origin,
        content="text" if isinstance(content, str) else "absent",
        message=source_of(extra),
        blocks=len(blocks),
    )
    return histories.response_drafts(header, blocks, response)


def _parse_block(at: int, block: Mapping[str, Any]) -> Block:
    """A content block; cache marks are not allowed on thinking, wherever they come from."""
    marked = str(block.get("type")) in _THINKING
    own = {key: value for key, value in block.items() if not (marked and key == "cache_control")}
    part = Part(at, own, canonical.source(own), "")
    part.close()
    return part.block()


def _user(message: Mapping[str, Any], content: str | list[Mapping[str, Any]], names: dict[str, str]) -> list[Draft]:
    if isinstance(content, str):
        return [Draft("user", _message(message, content))]
    drafts = [Draft("tool_result", _result(part, names)) for part in content if _is_result(part)]
    rest = [part for part in content if not _is_result(part)]
    if rest or not drafts:
        drafts.append(Draft("user", _message(message, rest)))
    return drafts


def _is_result(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "tool_result"


def _message(message: Mapping[str, Any], content: str | list[Mapping[str, Any]]) -> Message:
    plain = Message(content) if isinstance(content, str) else _of_parts(content)
    # A system message without its wire is one of those on top.
    if content and set(message) == {"role", "content"} and message["role"] == "user":
        return plain
    return Message(plain.text, plain.parts, canonical.source({**message, "content": content}), NAME)


def _of_parts(content: Sequence[Mapping[str, Any]]) -> Message:
    parts = tuple(map(_part, content))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return Message(text, parts, dialect=NAME if any(part.wire for part in parts) else "")


def _part(part: Mapping[str, Any]) -> Text | Media | Unknown:
    text = part.get("text")
    if part.get("type") == "text" and isinstance(text, str):
        return Text(text, wire="" if set(part) == {"type", "text"} else canonical.source(part))
    if media.is_media(part):
        return media.read_part(part)
    wire = canonical.source(part)
    return Unknown(wire, text=summary_in(wire) if part.get("type") == "compaction" else "")


def _result(part: Mapping[str, Any], names: dict[str, str]) -> ToolResult:
    id, content = str(part.get("tool_use_id") or ""), part.get("content")
    result = ToolResult(id, _text(content), name=names.get(id, ""), is_error=part.get("is_error") is True)
    if canonical.decode(wire_object(result)) == part:
        return result
    return ToolResult(id, result.content, result.name, result.is_error, wire=canonical.source(part), dialect=NAME)


def _text(content: Any) -> str:
    """What a tool gave back: its text, or the source of anything else."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
    if len(texts) == len(parts):
        return "".join(texts)
    return canonical.source(content)


def read_tool(tool: Any) -> Tool:
    """A tool definition; one that the provider runs has nothing but what stands on the wire, and its name."""
    wire = canonical.source(tool)
    if not isinstance(tool, Mapping):
        return Tool("", wire=wire, dialect=NAME)
    name, schema = str(tool.get("name") or tool.get("type") or ""), tool.get("input_schema")
    if not isinstance(schema, Mapping):
        return Tool(name, wire=wire, dialect=NAME)
    plain = Tool(name, str(tool.get("description") or ""), canonical.source(schema))
    if canonical.decode(write.tool(plain)) == tool:
        return plain
    return Tool(name, plain.description, plain.parameters, wire, NAME)
