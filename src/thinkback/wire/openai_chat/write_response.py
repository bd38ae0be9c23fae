"""Response writer of the ``openai-chat`` dialect: values of any dialect to a chat completion or its chunks.

Promises: readable reasoning is in ``reasoning_content``, each call has an id and arguments, counts are in OpenAI's
meaning (output with reasoning, input with what was cached), and the gateway's state is one entry of
``reasoning_details``, which never stands behind what the model said: the last event of a stream is held back for it. A
refused response without words of refusal and one stopped by a filter end in ``content_filter``; one that the provider
would go on with ends in ``length``, because it is not whole. Must not: write what only another dialect understands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, is_shown
from thinkback.model.commits import Outcome, Usage
from thinkback.model.custom_tools import is_custom
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, TextDelta, ToolCallDelta
from thinkback.wire.openai import write_error
from thinkback.wire.openai_chat import media
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, Shown, call_id, closing_tag, counts, problem_in

__all__ = ["Writer", "write_error", "write_response"]

_DONE = b"data: [DONE]\n\n"
_END = b'},"finish_reason":null}]}\n\n'
_FINISHES: dict[Outcome, str] = {
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "max_tokens_in_reasoning": "length",
    "paused": "length",
    "safety": "content_filter",
}


class _Call:
    """A call under way; ``made_up`` is its id where the provider gives none.

    ``has_begun``: its first event was written; ``is_given``: so were arguments.
    """

    __slots__ = ("has_begun", "id", "is_custom", "is_given", "made_up", "name", "number")

    def __init__(self, number: int, made_up: str, *, custom: bool) -> None:
        self.number = number
        self.is_custom = custom
        self.made_up = made_up
        self.id = ""
        self.name = ""
        self.has_begun = False
        self.is_given = False


class Writer:
    """A streamed chat completion; see ``ResponseWriter``."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        head = (canonical.string(shown.id), shown.created, canonical.string(shown.model))
        self._head = b'data: {"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,"choices":[' % head
        self._delta = self._head + b'{"index":0,"delta":{'
        self._reasoning = self._delta + b'"reasoning_content":' if shown.reasoning else b""
        self._content = self._delta + b'"content":'
        self._text = self._content
        self._index = -1
        self._calls: dict[int, _Call] = {}
        self._waiting: deque[_Call] = deque()
        # The last event so far: the state stands in it, and nothing behind it.
        self._held = b""

    def begin(self) -> bytes:
        """The chunk with the role."""
        return self._delta + b'"role":"assistant","content":""' + _END

    def show(self, deltas: Sequence[Delta]) -> bytes:
        """A chunk for each delta; text goes to ``content`` or, where its block is one, to ``refusal``."""
        events: list[bytes] = []
        last = 0
        for delta in deltas:
            before = len(events)
            if isinstance(delta, TextDelta):
                if delta.index != self._index:
                    self._turn_to(delta.index)
                events += (self._text, canonical.string(delta.text), _END)
            elif isinstance(delta, ReasoningDelta):
                if self._reasoning:
                    events += (self._reasoning, canonical.string(delta.text), _END)
            elif isinstance(delta, ToolCallDelta):
                called = self._show_call(delta)
                events += (called,) if called else ()
            elif isinstance(delta, Reclassified):
                tag = closing_tag(delta, self._shown)
                events += (self._content, canonical.string(tag), _END) if tag else ()
            last = before if len(events) > before else last
        if not events:
            return b""
        shown = b"".join((self._held, *events[:last]))
        self._held = b"".join(events[last:])
        return shown

    def end(self, result: ReadResult) -> bytes:
        """Calls that were not shown, the state, why it ended, the usage, and the mark of the end."""
        problem = problem_in(result)
        if problem is not None:
            return self.fail(problem)
        calls, images = self._rest_of_calls(result.blocks), _images(result.blocks)
        events = [self._held, calls, self._event({"images": images}) if images else b""]
        details = _details(result.blocks, self._shown)
        if details:
            self._append_details(details, events)
        finish = canonical.string(_finish(result))
        events += (self._head, b'{"index":0,"delta":{},"finish_reason":', finish, b"}]}\n\n")
        if self._shown.usage and result.usage is not None:
            events += (self._head, b'],"usage":', canonical.source(_usage(result.usage)).encode(), b"}\n\n")
        return b"".join((*events, _DONE))

    def fail(self, problem: Problem) -> bytes:
        """What was held back, the error and the mark of the end."""
        return b"%bdata: %b\n\n%b" % (self._held, write_error(problem), _DONE)

    def _event(self, members: dict[str, Any]) -> bytes:
        return self._delta + canonical.source(members)[1:-1].encode() + _END

    def _append_details(self, details: list[dict[str, Any]], events: list[bytes]) -> None:
        """The state beside what was said last; by itself where nothing was."""
        told = self._event({"reasoning_details": details})
        at = max((at for at, event in enumerate(events) if event), default=-1)
        if at < 0:
            events.append(told)
        else:
            events[at] = told.removesuffix(_END) + b"," + events[at].removeprefix(self._delta)

    def _turn_to(self, index: int) -> None:
        """The field of the text block at ``index``."""
        self._index = index
        block = self._shown.block(index)
        refuses = isinstance(block, Text) and block.source_field == "refusal"
        self._text = self._delta + b'"refusal":' if refuses else self._content

    def _show_call(self, delta: ToolCallDelta) -> bytes:
        """A call begins with its first arguments, or those of a later one: names come in pieces, and ids late."""
        call = self._call(delta.index)
        call.id = call.id or delta.id
        call.name += delta.name
        if not delta.arguments:
            return b""
        return (b"" if call.has_begun else self._begin(call)) + self._fragment(call, delta.arguments)

    def _call(self, index: int) -> _Call:
        call = self._calls.get(index)
        if call is None:
            block = self._shown.block(index)
            custom = isinstance(block, ToolCall) and is_custom(block)
            call = self._calls[index] = _Call(len(self._calls), call_id("", self._shown.id, index), custom=custom)
            self._waiting.append(call)
        return call

    def _begin(self, last: _Call) -> bytes:
        """The first events of the calls that wait, up to ``last``: clients count on their order."""
        events = []
        while not last.has_begun:
            call = self._waiting.popleft()
            call.has_begun = True
            fields = (self._delta, call.number, canonical.string(call.id or call.made_up), canonical.string(call.name))
            head = b'%b"tool_calls":[{"index":%d,"id":%b,"type":"function","function":{"name":%b,"arguments":""}}]'
            if call.is_custom:
                head = b'%b"tool_calls":[{"index":%d,"id":%b,"type":"custom","custom":{"name":%b,"input":""}}]'
            events.append(head % fields + _END)
        return b"".join(events)

    def _fragment(self, call: _Call, arguments: str) -> bytes:
        call.is_given = True
        fields = (self._delta, call.number, canonical.string(arguments))
        if call.is_custom:
            return b'%b"tool_calls":[{"index":%d,"custom":{"input":%b}}]' % fields + _END
        return b'%b"tool_calls":[{"index":%d,"function":{"arguments":%b}}]' % fields + _END

    def _rest_of_calls(self, blocks: Iterable[Block]) -> bytes:
        """The calls that no delta brought arguments of, as their blocks have them."""
        events = []
        for index, block in enumerate(blocks):
            if not isinstance(block, ToolCall):
                continue
            call = self._call(index)
            if not call.has_begun:
                call.id, call.name = block.id, block.name
                events.append(self._begin(call))
            if not call.is_given:
                events.append(self._fragment(call, block.arguments or ("" if call.is_custom else "{}")))
        return b"".join(events)


def write_response(result: ReadResult, shown: Shown) -> bytes:
    """A whole chat completion; the error where the response is not whole."""
    problem = problem_in(result)
    if problem is not None:
        return write_error(problem)
    blocks = result.blocks
    texts = [block for block in blocks if isinstance(block, Text)]
    refusal = "".join(block.text for block in texts if block.source_field == "refusal")
    content = "".join(block.text for block in texts if block.source_field != "refusal")
    reasoning = "".join(b.thought for b in blocks if isinstance(b, ThinkingBlock) and is_shown(b))
    fields: dict[str, Any] = {
        "reasoning_content": reasoning if shown.reasoning else "",
        "refusal": refusal,
        "tool_calls": _calls(blocks, shown),
        "images": _images(blocks),
        "reasoning_details": _details(blocks, shown),
    }
    message = {"role": "assistant", "content": content or None}
    message.update((name, value) for name, value in fields.items() if value)
    body = {
        "id": shown.id,
        "object": "chat.completion",
        "created": shown.created,
        "model": shown.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(result)}],
    }
    if result.usage is not None:
        body["usage"] = _usage(result.usage)
    return canonical.raw(canonical.source(body))


def _calls(blocks: Iterable[Block], shown: Shown) -> list[dict[str, Any]]:
    return [
        {"id": call_id(block.id, shown.id, index), **_called(block)}
        for index, block in enumerate(blocks)
        if isinstance(block, ToolCall)
    ]


def _called(call: ToolCall) -> dict[str, Any]:
    if is_custom(call):
        return {"type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


def _images(blocks: Iterable[Block]) -> list[Any]:
    """Images as content parts, in the field where clients look for them; what has no part is left out."""
    images = []
    for block in blocks:
        if isinstance(block, Media) and block.media_type.startswith("image/"):
            try:
                images.append(canonical.decode(media.part(block)))
            except UnsupportedContent:
                continue
    return images


def _details(blocks: Sequence[Block], shown: Shown) -> list[dict[str, Any]]:
    """The state that the client may send back, in the one entry that generic clients keep."""
    state = shown.state(blocks)
    entry = {"type": "reasoning.encrypted", "data": state, "format": "thinkback-v1", "id": shown.id, "index": 0}
    return [entry] if state else []


def _finish(result: ReadResult) -> str:
    outcome = result.response.outcome
    if outcome == "refused":
        texts = [block for block in result.blocks if isinstance(block, Text)]
        return "stop" if any(text.source_field == "refusal" and text.text for text in texts) else "content_filter"
    return _FINISHES.get(outcome, "stop")


def _usage(usage: Usage) -> dict[str, Any]:
    """Counts as OpenAI gives them; what nobody reported is left out of the details."""
    found = counts(usage)
    told: dict[str, Any] = {
        "prompt_tokens": found.input,
        "completion_tokens": found.output,
        "total_tokens": found.input + found.output,
    }
    prompt = {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write}
    prompt = {name: value for name, value in prompt.items() if value is not None}
    if prompt:
        told["prompt_tokens_details"] = prompt
    if usage.reasoning is not None:
        told["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return told
