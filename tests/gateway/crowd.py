"""Several people who talk to one or more engines at once, and an upstream whose reasoning says whose it is."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from tests.gateway.engines import Kept
from thinkback.drive.http import HttpResponse, Timeouts
from thinkback.gateway.engine import Engine
from thinkback.gateway.grant import Grant
from thinkback.gateway.incoming import Incoming

Json: TypeAlias = dict[str, Any]
Front: TypeAlias = Literal["openai-chat", "anthropic"]

MODELS = ("deepseek/deepseek-v4-pro", "anthropic/claude-opus-5-5")
MARK = re.compile(r"<<(\d+) of ([^>]*)>>")
TOOL = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Person(NamedTuple):
    """Who asks. Reasoning of one person must never reach another."""

    grant: Grant
    user: str

    def __str__(self) -> str:
        return f"{self.grant.tenant}/{self.grant.key}/{self.user}"


class Said(NamedTuple):
    """An answer as a client has it: ``number`` is that of the response, ``message`` what it was given."""

    number: int
    text: str
    call: str
    message: Json


class Turn(NamedTuple):
    """What a person says, or the result of the call ``call``."""

    text: str
    call: str = ""


@dataclass
class Asking:
    """The request under way: who asks, what the answer to what is visible of it is, and which response has it."""

    person: Person
    text: str
    call: str
    number: int = 0


_ASKING: ContextVar[Asking] = ContextVar("_ASKING")


class Upstream:
    """Answers alike what looks alike, whoever asks; the reasoning is another one each time."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[Person, str, str]] = {}
        self.sent: list[tuple[Person, Json]] = []

    @asynccontextmanager
    async def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AsyncIterator[HttpResponse]:
        asking = _ASKING.get()
        asked = json.loads(body)
        self.sent.append((asking.person, asked))
        number = asking.number = len(self.made) + 1
        self.made[number] = (asking.person, asking.text, asking.call)
        thought = f"<<{number} of {asking.person}>>"
        answer = (_claude if "/messages" in url else _chat)(asking, thought, number)
        streams = bool(asked.get("stream"))
        data = (_claude_stream if "/messages" in url else _chat_stream)(answer) if streams else json.dumps(answer)

        async def give() -> AsyncIterator[bytes]:
            for at in range(0, len(data), 300):
                await asyncio.sleep(0)
                yield data[at : at + 300].encode()

        yield HttpResponse(200, {"content-type": "text/event-stream" if streams else "application/json"}, give())

    async def aclose(self) -> None:
        """Nothing is open."""


def _chat(asking: Asking, thought: str, number: int) -> Json:
    message: Json = {"role": "assistant", "content": asking.text, "reasoning_content": thought}
    if asking.call:
        function = {"name": "look", "arguments": '{"n":1}'}
        message["tool_calls"] = [{"id": asking.call, "type": "function", "function": function}]
    finish = "tool_calls" if asking.call else "stop"
    return {"id": f"c{number}", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _chat_stream(answer: Json) -> str:
    choice = answer["choices"][0]
    message = choice.pop("message")
    calls = [{"index": at, **call} for at, call in enumerate(message.pop("tool_calls", ()))]
    thought = message.pop("reasoning_content")
    deltas = [{"role": "assistant", "reasoning_content": thought}, {"content": message["content"]}]
    deltas += [{"tool_calls": calls}] if calls else []
    chunks = [{**answer, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**answer, "choices": [{**choice, "delta": {}}]})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def _claude(asking: Asking, thought: str, number: int) -> Json:
    content: list[Json] = [
        {"type": "thinking", "thinking": thought, "signature": f"signed {thought}"},
        {"type": "text", "text": asking.text},
    ]
    if asking.call:
        content.append({"type": "tool_use", "id": asking.call, "name": "look", "input": {"n": 1}})
    reason = "tool_use" if asking.call else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m"}
    return {**head, "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def _claude_stream(answer: Json) -> str:
    content = answer["content"]
    events: list[Json] = [{"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}}]
    for at, block in enumerate(content):
        if block["type"] == "thinking":
            empty = {**block, "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        elif block["type"] == "text":
            empty, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        else:
            given = json.dumps(block["input"])
            empty, deltas = {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": given}]
        events.append({"type": "content_block_start", "index": at, "content_block": empty})
        events += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": at})
    delta = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    events += [{"type": "message_delta", "delta": delta, "usage": answer["usage"]}, {"type": "message_stop"}]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


class Talk:
    """A conversation of ``person``, who speaks ``front``; one that ``echoes`` sends back all that it was given."""

    def __init__(self, person: Person, front: Front, model: str, *, echoes: bool, streams: bool) -> None:
        self.person, self.front, self.model = person, front, model
        self.echoes, self.streams = echoes, streams
        self.history: list[Said | Turn] = []

    def fork(self, person: Person | None = None) -> Talk:
        """Another conversation with the same history, of the same or of another person who was shown it."""
        made = Talk(person or self.person, self.front, self.model, echoes=self.echoes, streams=self.streams)
        made.history = list(self.history)
        return made

    def say(self, text: str) -> None:
        """Go on: with the result of a call that waits for one, else with ``text``."""
        last = self.history[-1] if self.history else None
        if isinstance(last, Said):
            self.history.append(Turn("7", last.call) if last.call else Turn(text))
        elif last is None:
            self.history.append(Turn(text))

    def back(self, at: int, text: str) -> None:
        """Say something else at the place ``at`` of what the person said; all behind it is gone."""
        places = [place for place, each in enumerate(self.history) if isinstance(each, Turn) and not each.call]
        if places:
            place = places[at % len(places)]
            self.history = [*self.history[:place], Turn(text)]

    def forget(self, at: int) -> None:
        """Leave out a question with all that was said to it."""
        places = [place for place, each in enumerate(self.history) if isinstance(each, Turn) and not each.call]
        if len(places) > 1:
            place = at % (len(places) - 1)
            del self.history[places[place] : places[place + 1]]

    async def ask(self, engine: Engine, leaves_after: int = -1) -> Kept:
        """Send the conversation as it stands; the answer is its next message."""
        text, call = _answer(self.history, self.front)
        asking = Asking(self.person, text, call)
        _ASKING.set(asking)
        kept = Kept(leaves_after)
        body = json.dumps(self.body()).encode()
        await engine.respond(Incoming(self.front, body, {}, self.person.grant, "r"), kept)
        if kept.status == 200 and kept.ended:
            self.history.append(Said(asking.number, text, call, self._kept(kept, text, call)))
        return kept

    def body(self) -> Json:
        """The request."""
        messages = [self._message(each) for each in self.history]
        body: Json = {"model": self.model, "messages": messages, "stream": self.streams}
        if self.front == "anthropic":
            tools: list[Json] = [{"name": "look", "input_schema": TOOL}]
            body |= {"max_tokens": 2000, "metadata": {"user_id": self.person.user}}
            body |= {"thinking": {"type": "enabled", "budget_tokens": 1024}} if self.echoes else {}
        else:
            tools = [{"type": "function", "function": {"name": "look", "parameters": TOOL}}]
            body |= {"user": self.person.user}
        return {**body, "tools": tools}

    def _message(self, each: Said | Turn) -> Json:
        if isinstance(each, Said):
            return each.message
        if not each.call:
            return {"role": "user", "content": each.text}
        if self.front == "anthropic":
            result = {"type": "tool_result", "tool_use_id": each.call, "content": each.text}
            return {"role": "user", "content": [result]}
        return {"role": "tool", "tool_call_id": each.call, "content": each.text}

    def _kept(self, kept: Kept, text: str, call: str) -> Json:
        """The message as this client keeps it."""
        if self.front == "anthropic":
            if self.echoes and not self.streams:
                return {"role": "assistant", "content": kept.json["content"]}
            content: list[Json] = [{"type": "text", "text": text}]
            content += [{"type": "tool_use", "id": call, "name": "look", "input": {"n": 1}}] if call else []
            return {"role": "assistant", "content": content}
        if self.echoes and not self.streams:
            message: Json = kept.json["choices"][0]["message"]
            return message
        function = {"name": "look", "arguments": '{ "n": 1 }'}
        calls = {"tool_calls": [{"id": call, "type": "function", "function": function}]} if call else {}
        return {"role": "assistant", "content": text, **calls}


def asks(person: Person, text: str = "answer") -> None:
    """The requests of this context are ``person``'s, and are answered with ``text``."""
    _ASKING.set(Asking(person, text, ""))


def _answer(history: Sequence[Said | Turn], front: Front) -> tuple[str, str]:
    """What a model says to what is visible, and the id of its call, if it makes one."""
    visible = [("model", each.text, each.call) if isinstance(each, Said) else ("", *each) for each in history]
    digest = hashlib.sha256(json.dumps(visible).encode()).hexdigest()
    calls = int(digest[:2], 16) < 100 and not (isinstance(history[-1], Turn) and history[-1].call)
    return f"answer {digest[:12]}", f"call_{digest[12:24]}" if calls else ""


def reasoning_in(message: Json) -> list[tuple[int, str]]:
    """(number, whose) of each thought that a message of an upstream request carries."""
    return [(int(number), whose) for number, whose in MARK.findall(json.dumps(message))]
