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

from tests.servers.gateway.harness.engines import Kept
from thinkback.drive.http import HttpResponse, Timeouts
from thinkback.servers.gateway.engine.driver import respond
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.grant import Grant
from thinkback.servers.gateway.incoming import Incoming

Json: TypeAlias = dict[str, Any]
Front: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]

FRONTS: tuple[Front, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
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
    """An answer as a client has it: ``number`` is that of the response, ``messages`` are what it sends back of it."""

    number: int
    text: str
    call: str
    messages: list[Json]


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
        by_address = (self.model, self.streams) if self.front == "gemini" else ("", None)
        await respond(engine, Incoming.of(self.front, body, {}, self.person.grant, "r", *by_address), kept)
        if kept.status == 200 and kept.ended:
            whole = self.echoes and not self.streams
            messages = _given(self.front, kept.json) if whole else _visible(self.front, text, call)
            self.history.append(Said(asking.number, text, call, messages))
        return kept

    def body(self) -> Json:
        """The request."""
        messages: list[Json] = []
        for each in self.history:
            messages += each.messages if isinstance(each, Said) else [_turn(self.front, each)]
        body: Json = {"model": self.model, "stream": self.streams, _MESSAGES.get(self.front, "messages"): messages}
        look = {"name": "look", "parameters": TOOL}
        match self.front:
            case "anthropic":
                body |= {"max_tokens": 2000, "metadata": {"user_id": self.person.user}}
                body |= {"thinking": {"type": "enabled", "budget_tokens": 1024}} if self.echoes else {}
                body["tools"] = [{"name": "look", "input_schema": TOOL}]
            case "gemini":
                del body["model"], body["stream"]
                body |= {"labels": {"user": self.person.user}, "tools": [{"functionDeclarations": [look]}]}
                body |= {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}} if self.echoes else {}
            case "openai-responses":
                body |= {"user": self.person.user, "tools": [{"type": "function", **look}]}
            case _:
                body |= {"user": self.person.user, "tools": [{"type": "function", "function": look}]}
        return body


_MESSAGES = {"gemini": "contents", "openai-responses": "input"}


def _turn(front: Front, turn: Turn) -> Json:
    """What a person says, or a result."""
    text, call = turn
    match front:
        case "gemini" if call:
            return {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": text}}}]}
        case "gemini":
            return {"role": "user", "parts": [{"text": text}]}
        case "anthropic" if call:
            result = {"type": "tool_result", "tool_use_id": call, "content": text}
            return {"role": "user", "content": [result]}
        case "openai-responses" if call:
            return {"type": "function_call_output", "call_id": call, "output": text}
        case "openai-chat" if call:
            return {"role": "tool", "tool_call_id": call, "content": text}
        case _:
            return {"role": "user", "content": text}


def _given(front: Front, answer: Json) -> list[Json]:
    """A response as a client sends it back that leaves nothing out."""
    match front:
        case "anthropic":
            return [{"role": "assistant", "content": answer["content"]}]
        case "gemini":
            return [answer["candidates"][0]["content"]]
        case "openai-responses":
            items: list[Json] = answer["output"]
            return items
        case "openai-chat":
            return [answer["choices"][0]["message"]]


def _visible(front: Front, text: str, call: str) -> list[Json]:
    """A response as a client sends it back that keeps texts and calls."""
    given = {"n": 1}
    match front:
        case "anthropic":
            content: list[Json] = [{"type": "text", "text": text}]
            content += [{"type": "tool_use", "id": call, "name": "look", "input": given}] if call else []
            return [{"role": "assistant", "content": content}]
        case "gemini":
            parts: list[Json] = [{"text": text}]
            return [
                {"role": "model", "parts": parts + [{"functionCall": {"name": "look", "args": given}}] * bool(call)}
            ]
        case "openai-responses":
            items: list[Json] = [{"role": "assistant", "content": text}]
            made = {"type": "function_call", "call_id": call, "name": "look", "arguments": '{ "n": 1 }'}
            return [*items, made] if call else items
        case "openai-chat":
            function = {"name": "look", "arguments": '{ "n": 1 }'}
            calls = {"tool_calls": [{"id": call, "type": "function", "function": function}]} if call else {}
            return [{"role": "assistant", "content": text, **calls}]


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
