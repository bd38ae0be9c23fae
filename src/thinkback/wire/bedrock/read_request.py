"""Request reader of the ``bedrock`` dialect: Converse messages to drafts of the log.

Promises: what the writer would not write again as it was is kept verbatim; binary data that boto3 holds as bytes
is kept in base64; assistant messages become responses of unknown origin, so that their readable reasoning may go
back and their opaque values may not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from thinkback.errors import WireError
from thinkback.model import canonical
from thinkback.model.blocks import Media, Origin, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools
from thinkback.wire import histories
from thinkback.wire.bedrock import media
from thinkback.wire.bedrock.message import MessageBuilder
from thinkback.wire.result import ReadRequest

NAME = "bedrock"
UNKNOWN_ORIGIN = Origin(NAME, "", "")
_READ = frozenset({"messages", "modelId", "system"})


def read_request(body: Mapping[str, Any], ids: Callable[[], str], origin: Origin = UNKNOWN_ORIGIN) -> ReadRequest:
    """A whole request body. Raises ``WireError`` for messages that are none."""
    messages = body.get("messages")
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise WireError("the request has no list of messages")
    params = {key: value for key, value in body.items() if key not in _READ}
    config = params.get("toolConfig")
    drafts: list[Draft] = []
    if isinstance(config, Mapping) and isinstance(config.get("tools"), list):
        drafts.append(Draft("tools", Tools(tuple(map(read_tool, config["tools"])))))
        rest = {key: value for key, value in config.items() if key != "tools"}
        params = {**params, "toolConfig": rest} if rest else {k: v for k, v in params.items() if k != "toolConfig"}
    system = body.get("system")
    if isinstance(system, list) and system:
        drafts.append(Draft("system", _message(_plain(system, "system"))))
    drafts += read_messages(messages, ids, origin)
    return ReadRequest(str(body.get("modelId") or ""), tuple(drafts), params)


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
        content = message.get("content") if isinstance(message, Mapping) else None
        if role not in ("user", "assistant") or not isinstance(content, Sequence) or isinstance(content, str):
            raise WireError(
                f"messages[{at}] cannot be adopted: role {role!r}, content {type(content).__name__}",
                details={"message": at},
                next_actions=("roles are user and assistant, content is a list of content blocks",),
            )
        blocks = _plain(content, f"messages[{at}]")
        if role == "user":
            drafts += _user_drafts(blocks, names)
        else:
            added = _assistant_drafts(blocks, ids(), origin)
            names |= {draft.value.id: draft.value.name for draft in added if isinstance(draft.value, ToolCall)}
            drafts += added
    return drafts


def _plain(content: Sequence[Any], place: str) -> list[Any]:
    """Content blocks as JSON has them. Raises ``WireError`` for what it does not have."""
    try:
        plain: list[Any] = msgspec.to_builtins(list(content))
    except TypeError as error:
        raise WireError(f"{place} is not valid JSON: {error}", details={"place": place}) from None
    return plain


def _assistant_drafts(blocks: Iterable[Any], response: str, origin: Origin) -> list[Draft]:
    builder = MessageBuilder()
    for block in blocks:
        builder.add_block(block, canonical.source(block))
    builder.close()
    found = builder.blocks()
    return histories.response_drafts(Response(origin=origin, blocks=len(found)), found, response)


def _user_drafts(blocks: Sequence[Any], names: Mapping[str, str]) -> list[Draft]:
    """Results and messages in turns, as they stand in one message of the user."""
    drafts: list[Draft] = []
    said: list[Any] = []
    for block in blocks:
        result = block.get("toolResult") if isinstance(block, dict) and len(block) == 1 else None
        if not isinstance(result, dict):
            said.append(block)
            continue
        if said:
            drafts.append(Draft("user", _message(said)))
            said = []
        drafts.append(Draft("tool_result", _result(block, result, names)))
    if said or not drafts:
        drafts.append(Draft("user", _message(said)))
    return drafts


def _message(blocks: Sequence[Any]) -> Message:
    parts = tuple(map(_part, blocks))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    if len(parts) == 1 and parts == (Text(text),):
        return Message(text)
    return Message(text, parts, dialect=NAME)


def _part(block: Any) -> Text | Media | Unknown:
    if isinstance(block, dict) and block.keys() == {"text"} and isinstance(block["text"], str):
        return Text(block["text"])
    source = canonical.source(block)
    return media.read_part(block, source) if media.is_media(block) else Unknown(source)


def _result(block: dict[str, Any], result: dict[str, Any], names: Mapping[str, str]) -> ToolResult:
    id, content, status = str(result.get("toolUseId") or ""), result.get("content"), result.get("status")
    texts = [_text_of(item) for item in content] if isinstance(content, list) else [None]
    text = "".join(texts) if None not in texts else canonical.source(content)  # type: ignore[arg-type]
    usual = {"toolUseId", "content"} | ({"status"} if status == "error" else set())
    is_usual = set(result) == usual and len(texts) == 1 and texts[0] is not None
    return ToolResult(
        id,
        text,
        name=names.get(id, ""),
        is_error=status == "error",
        wire="" if is_usual else canonical.source(block),
        dialect="" if is_usual else NAME,
    )


def _text_of(item: Any) -> str | None:
    text = item.get("text") if isinstance(item, dict) and len(item) == 1 else None
    return text if isinstance(text, str) else None


def read_tool(tool: Any) -> Tool:
    """A tool definition; one that is no function has nothing but what stands on the wire, and its kind for a name."""
    wire = canonical.source(tool)
    spec = tool.get("toolSpec") if isinstance(tool, Mapping) else None
    schema = spec.get("inputSchema") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(schema, Mapping) or not isinstance(spec.get("name"), str):
        kind = next(iter(tool), "") if isinstance(tool, Mapping) else ""
        return Tool(str(kind), wire=wire, dialect=NAME)
    description = str(spec.get("description") or "")
    is_usual = spec.keys() <= {"name", "description", "inputSchema"} and schema.keys() == {"json"} and len(tool) == 1
    if "description" in spec and not description:
        is_usual = False
    parameters = canonical.source(schema.get("json", {}))
    return Tool(spec["name"], description, parameters, "" if is_usual else wire, "" if is_usual else NAME)
