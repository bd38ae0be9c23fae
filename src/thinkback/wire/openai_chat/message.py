"""A chat message under construction: each fragment goes to its channel, and what to show comes out."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from thinkback.model.blocks import Block, Carrier, Text, ThinkingBlock
from thinkback.wire.block_accumulator import Arrival
from thinkback.wire.openai_chat import chunks
from thinkback.wire.openai_chat.calls import Calls
from thinkback.wire.openai_chat.content import Content
from thinkback.wire.openai_chat.merge import Merged
from thinkback.wire.openai_chat.reasoning import DETAILS, OPAQUE, Reasoning
from thinkback.wire.result import AS_BUILT, ReadOptions


class MessageBuilder:
    """Give it deltas or a whole message, ``take`` what to show, ``close`` it, then ask for ``blocks``.

    ``content`` says how the content field stood on the wire (in a stream null says nothing), ``repeats`` names the
    fields that only repeated a block. With a ``reasoning_field`` no other field is read as reasoning; all are kept.
    Where calls leak, they may stand in the reasoning.
    """

    def __init__(self, response: str = "", options: ReadOptions = AS_BUILT) -> None:
        self._arrival = Arrival(response)
        self.take = self._arrival.take
        self.parts = self._arrival.parts
        self._calls = Calls(self._arrival)
        leaks = options.leaked_calls != ""
        self._reasoning = Reasoning(self._arrival, self._calls, options.reasoning_field, leaks=leaks)
        self._content = Content(self._arrival, self._reasoning, options.tags)
        self._reads_one_field = bool(options.reasoning_field)
        self._extra = Merged()
        self.content: Literal["absent", "null", "text"] = "absent"
        self.repeats: tuple[str, ...] = ()

    def add(self, delta: chunks.ChatDelta) -> None:
        """One streamed delta with known keys."""
        if self._reads_one_field:
            self.add_object({name: value for name, value in msgspec.structs.asdict(delta).items() if value is not None})
            return
        first, second, third = delta.reasoning_content, delta.reasoning, delta.reasoning_text
        details = delta.reasoning_details
        if first or second or third or details:
            self._content.end_thought()
        if details or (third and (first or second)) or (first and second):
            named = (("reasoning_content", first), ("reasoning", second), ("reasoning_text", third))
            self._reasoning.add([(name, text) for name, text in named if text], details or ())
        elif first:
            self._reasoning.say("reasoning_content", first)
        elif second:
            self._reasoning.say("reasoning", second)
        elif third:
            self._reasoning.say("reasoning_text", third)
        if delta.content is not None:
            self.content = "text"
            self._say(delta.content)
        if delta.tool_calls or delta.refusal or delta.channel or details is not None:
            self._add_rest(delta)

    def _say(self, text: str) -> None:
        if not text.isspace() and text:
            self._reasoning.answered()
        self._content.add(text)

    def _add_rest(self, delta: chunks.ChatDelta) -> None:
        if delta.tool_calls or delta.refusal:
            self._reasoning.answered()
            self._content.end_thought()
        for call in delta.tool_calls or ():
            function = call.function or chunks.NO_FUNCTION
            part = self._calls.add(call.index, call.id, function.name, function.arguments)
            if call.type:
                part.type = call.type
        if delta.refusal:
            self._content.append(delta.refusal, "refusal")
        if delta.channel:
            self._extra.add({"channel": delta.channel})
        if delta.reasoning_details == []:
            self._extra.add({DETAILS: []})

    def add_object(self, delta: dict[str, Any], complete: bool = False) -> None:
        """One streamed delta, or a ``complete`` message, with anything in it."""
        rest = {key: value for key, value in delta.items() if key not in ("role", "index")}
        if not isinstance(rest.get("content"), str | list):
            self._content.end_thought()
        self._reasoning.take(rest, complete)
        opaque = rest.get(OPAQUE)
        if opaque and isinstance(opaque, str):
            self._reasoning.add_opaque(opaque)
            del rest[OPAQUE]
        if "content" in rest:
            self._take_content(rest, complete)
        calls = rest.pop("tool_calls", None)
        if calls or rest.get("refusal"):
            self._reasoning.answered()
            self._content.end_thought()
        if isinstance(calls, list):
            for call in calls:
                if isinstance(call, dict):
                    self._calls.add_object(call, complete)
        elif calls:
            rest["tool_calls"] = calls
        if isinstance(rest.get("refusal"), str):
            refusal = rest.pop("refusal")
            if refusal:
                self._content.append(refusal, "refusal")
        self._extra.add(rest)

    def _take_content(self, rest: dict[str, Any], complete: bool) -> None:
        content = rest.pop("content")
        if isinstance(content, str):
            self.content = "text"
            self._say(content)
        elif isinstance(content, list):
            self.content = "text"
            if content:
                self._reasoning.answered()
            self._content.add_list(content, complete)
        elif content is not None:
            rest["content"] = content
        elif complete:
            self.content = "null"

    def close(self, calls: bool = False) -> None:
        """The message has ended: release what was held back. ``calls``: its finish reason fits calls."""
        self._content.close()
        self.repeats += self._reasoning.close(calls)

    def blocks(self) -> list[Block]:
        """The blocks as far as they have come, in order of arrival."""
        blocks = _hide_duplicates([part.block() for part in self._arrival.parts])
        signature = _signature(self._extra.value())
        return _signed(blocks, signature) if signature else blocks

    @property
    def extra(self) -> dict[str, Any]:
        """Message fields that no block owns."""
        extra = self._extra.value()
        if extra.get(DETAILS) == [] and self._reasoning.detailed:
            del extra[DETAILS]
        return extra


def _hide_duplicates(blocks: list[Block]) -> list[Block]:
    """Tags in ``content`` beside a reasoning field with the same text (llama.cpp ``deepseek-legacy``)."""
    thoughts = [block for block in blocks if isinstance(block, ThinkingBlock) and not block.is_hidden]
    field = "".join(block.thought for block in thoughts if block.source_field != "content").strip()
    if not field:
        return blocks

    def shown(block: Block) -> Block:
        if isinstance(block, ThinkingBlock) and block.source_field == "content" and block.thought.strip() == field:
            return msgspec.structs.replace(block, is_hidden=True)
        return block

    return [shown(block) for block in blocks]


def _signature(extra: dict[str, Any]) -> str:
    """Gemini's signature on the message, which its host says under one or two names."""
    content = extra.get("extra_content")
    google = content.get("google") if isinstance(content, dict) else None
    for holder in (google, extra):
        value = holder.get("thought_signature") if isinstance(holder, dict) else None
        if isinstance(value, str) and value:
            return value
    return ""


def _signed(blocks: list[Block], signature: str) -> list[Block]:
    """The signature on the text it belongs to, the last one, or on an empty one; not where a call has it already."""
    if any(carrier.value == signature for block in blocks for carrier in block.carriers):
        return blocks
    carriers = (Carrier("thought_signature", signature),)
    texts = [at for at, block in enumerate(blocks) if isinstance(block, Text) and block.source_field == "content"]
    if not texts:
        return [*blocks, Text("", carriers=carriers)]
    blocks[texts[-1]] = msgspec.structs.replace(blocks[texts[-1]], carriers=carriers)
    return blocks
