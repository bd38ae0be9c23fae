"""A conversation compiled without a target: messages for people and programs, and the forms they are exported in.

Promises: reasoning is a message of its own and never stands in the text of an answer; no opaque value and no verbatim
object of a provider is in any of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from thinkback.compile.grouping import NOBODY
from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Message, Priority, Response
from thinkback.model.plan import NOTHING, Carry, Writer

Role: TypeAlias = Literal["system", "user", "reasoning", "assistant", "tool"]


class CompiledMessage(msgspec.Struct, frozen=True):
    """One message. Reasoning is a role of its own, and stands before the answer it led to.

    ``hash`` is the commit it is of (of an answer its ``response`` commit; empty for the result of a call that has
    none), ``commits`` all that it is made of. ``response`` is the id that reasoning, answer and results share.
    """

    role: Role
    text: str
    blocks: tuple[Block, ...]
    hash: str
    commits: tuple[str, ...] = ()
    priority: Priority = Priority.NORMAL
    response: str = ""


class Compiled(msgspec.Struct, frozen=True):
    """What a conversation says. ``token_count`` is estimated; ``token_source``: whether usage that providers reported
    set the characters per token. ``warnings`` are for people.
    """

    messages: tuple[CompiledMessage, ...]
    token_count: int
    token_source: Literal["estimated", "calibrated"] = "estimated"
    warnings: tuple[str, ...] = ()

    @property
    def commit_hashes(self) -> tuple[str, ...]:
        """The commits that the messages are made of, in their order."""
        return tuple(hash for message in self.messages for hash in message.commits)

    @property
    def commit_count(self) -> int:
        """How many those are."""
        return len(self.commit_hashes)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Role and content as chat completions have them; reasoning in ``reasoning`` of the answer it led to."""
        return [made for group in _groups(self.messages) for made in _dicts(group)]

    def to_text(self) -> str:
        """For people."""
        return "\n\n".join("\n".join(_lines(message)) for message in self.messages)

    def to_request(self, writer: Writer, model: str = "", field: str = "", *, native: bool = False) -> dict[str, Any]:
        """The body of a request as a dialect's ``writer`` writes it.

        Reasoning goes into the message field ``field``, or, ``native``, as the dialect's own blocks without a
        signature; with neither it stays away. Raises ``UnsupportedContent``.
        """
        written, before = [writer.start], ""
        system: list[bytes] = []
        for group in _groups(self.messages):
            last = group[-1]
            role = "assistant" if last.role == "reasoning" else last.role
            if role == "system" and writer.system_on_top:
                system.append(writer.top(_message(last)))
                continue
            for fragment in _fragments(group, writer, field, native=native):
                if writer.alternates:
                    written.append(writer.turn_over(before, role)[0])
                elif before:
                    written.append(writer.separator)
                written.append(fragment)
                before = role
        body: dict[str, Any] = canonical.decode(b"".join((*written, writer.end(model, (), system, {}))))
        return body


def _groups(messages: Sequence[CompiledMessage]) -> Iterator[list[CompiledMessage]]:
    """An answer with the reasoning before it, the results of a response together, any other message alone."""
    group: list[CompiledMessage] = []
    for message in messages:
        if group and not _belongs(group[-1], message):
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _belongs(last: CompiledMessage, message: CompiledMessage) -> bool:
    if not message.response or message.response != last.response:
        return False
    leads = last.role == "reasoning" and message.role in ("reasoning", "assistant")
    return leads or last.role == message.role == "tool"


def _fragments(group: Sequence[CompiledMessage], writer: Writer, field: str, *, native: bool) -> Sequence[bytes]:
    last = group[-1]
    blocks = [block for message in group for block in message.blocks]
    if last.role == "system" or last.role == "user":
        return (writer.message(last.role, _message(last)),)
    if last.role == "tool":
        return writer.results([block for block in blocks if isinstance(block, ToolResult)])
    shown = blocks if native else [block for block in blocks if not isinstance(block, ThinkingBlock)]
    text = _reasoning(group) if field else ""
    carry = Carry(fields=(field,), text=text) if text else NOTHING
    return writer.assistant(Response(NOBODY, content="text"), shown, carry) if shown or text else ()


def _message(message: CompiledMessage) -> Message:
    """The message as it is written; its parts, where it has more than text."""
    parts: Any = message.blocks
    return Message(message.text, () if all(isinstance(part, Text) for part in parts) else parts)


def _dicts(group: Sequence[CompiledMessage]) -> Iterator[dict[str, Any]]:
    """A dict per message; an answer takes the reasoning before it along."""
    if group[-1].role not in ("reasoning", "assistant"):
        yield from map(_dict, group)
        return
    said = [message for message in group if message.role == "assistant"]
    made: dict[str, Any] = {"role": "assistant", "content": "".join(message.text for message in said)}
    reasoning = _reasoning(group)
    calls = [block for message in said for block in message.blocks if isinstance(block, ToolCall)]
    if reasoning:
        made["reasoning"] = reasoning
    if calls:
        function = [{"name": call.name, "arguments": call.arguments} for call in calls]
        made["tool_calls"] = [
            {"id": call.id, "type": "function", "function": each} for call, each in zip(calls, function, strict=True)
        ]
    yield made


def _dict(message: CompiledMessage) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": message.text}
    for block in message.blocks:
        if isinstance(block, ToolResult):
            made["tool_call_id"] = block.id
    return made


def _reasoning(group: Sequence[CompiledMessage]) -> str:
    return "\n".join(message.text for message in group if message.role == "reasoning")


def _lines(message: CompiledMessage) -> Iterator[str]:
    yield f"{message.role}: {message.text}".rstrip()
    for block in message.blocks:
        if isinstance(block, ToolCall):
            yield f"[{block.name}({block.arguments})]"
