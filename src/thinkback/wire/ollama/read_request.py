"""Request reader of the ``ollama`` dialect: a history of messages to drafts of the log.

Promises: what the writer would not rebuild is kept verbatim; a result is tied to the response whose call it answers,
because Ollama's calls and results need no ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Media, Origin, Text, ToolCall, ToolResult
from thinkback.model.commits import Draft, Message, Response, Tool
from thinkback.wire import histories
from thinkback.wire.ollama.message import MessageBuilder
from thinkback.wire.result import ReadRequest
from thinkback.wire.values import source_of

NAME = "ollama"
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

    A tool message without an id answers the first open call of its tool. Raises ``WireError`` naming the message.
    """
    drafts: list[Draft] = []
    open_calls = _OpenCalls(after)
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role in ("system", "user"):
            found = [Draft(role, _plain(message))]
        elif role == "assistant":
            found = _assistant(message, ids(), origin)
        elif role == "tool":
            found = [_result(message, open_calls)]
        else:
            raise histories.bad_role(at, role, "system, user, assistant and tool")
        drafts += found
        open_calls.note(found)
    return drafts


class _OpenCalls:
    """The calls that have no result yet, in order."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._calls: list[tuple[ToolCall, str]] = []
        self.note(drafts)

    def note(self, drafts: Sequence[Draft]) -> None:
        """Calls to be answered, and results that answer them."""
        for draft in drafts:
            if isinstance(draft.value, ToolCall):
                self._calls.append((draft.value, draft.response))
            elif isinstance(draft.value, ToolResult):
                self.answer(draft.value.id, draft.value.name)

    def answer(self, id: str, name: str) -> None:
        """A result came for this call."""
        found = self.find(id, name)
        if found is not None:
            self._calls.remove(found)

    def find(self, id: str, name: str) -> tuple[ToolCall, str] | None:
        """The call that a result with this id, or for this tool, answers, and its response."""
        fitting = [entry for entry in self._calls if entry[0].id == id] if id else self._calls
        named = [entry for entry in fitting if entry[0].name == name]
        return next(iter(named or fitting), None)


def _assistant(message: Mapping[str, Any], response: str, origin: Origin) -> list[Draft]:
    """One assistant message as a response and its blocks."""
    builder = MessageBuilder(keeps_index=True)
    builder.add_object(dict(message))
    builder.close()
    blocks, extra = builder.blocks(), builder.extra
    header = Response(
        origin=origin,
        content=builder.content,
        message=source_of(extra),
        blocks=len(blocks),
    )
    return histories.response_drafts(header, blocks, response)


def _plain(message: Mapping[str, Any]) -> Message:
    """A message with its images; text and images alone can be written again without the original."""
    content, images = message.get("content"), message.get("images")
    text = content if isinstance(content, str) else ""
    data = [image for image in images if isinstance(image, str)] if isinstance(images, list) else []
    parts: tuple[Text | Media, ...] = ()
    if data:
        parts = (Text(text), *(Media("image/*", data=image) for image in data))
    rebuilt = {"role": message["role"], "content": text, **({"images": data} if data else {})}
    if rebuilt == message:
        return Message(text, parts)
    return Message(text, parts, wire=canonical.source(dict(message)), dialect=NAME)


def _result(message: Mapping[str, Any], open_calls: _OpenCalls) -> Draft:
    """A tool message as the result of the call that it answers."""
    content, said = message.get("content"), message.get("tool_name") or message.get("name")
    given = message.get("tool_call_id")
    found = open_calls.find(given if isinstance(given, str) else "", str(said or ""))
    call, response = found if found is not None else (ToolCall(str(given or ""), "", "{}"), "")
    result = ToolResult(
        call.id, content if isinstance(content, str) else canonical.source(content), str(said or call.name)
    )
    rebuilt = {"role": "tool", "content": result.content}
    rebuilt |= {"tool_name": result.name} if result.name else {}
    rebuilt |= {"tool_call_id": result.id} if result.id else {}
    if rebuilt != message:
        wire = canonical.source(dict(message))
        result = ToolResult(result.id, result.content, result.name, wire=wire, dialect=NAME)
    return Draft("tool_result", result, response)


def read_tool(tool: Any) -> Tool:
    """A tool definition; one that is no function has nothing but what stands on the wire, and its type for a name."""
    return histories.read_function(tool, NAME)
