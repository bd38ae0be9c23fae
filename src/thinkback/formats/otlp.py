"""Traces: spans of requests to models, as OTLP in JSON lines, as the SDK's console exporter or as Phoenix writes them.

Messages are read by OpenTelemetry's conventions for generative AI, else by OpenInference's. Each span repeats the
conversation before it: a message that says the same behind the same messages is one entry, so that a session takes
what its messages take, each once. What a span was answered with wins over what a later one repeats of it. A context
that differs, as of a program that shortened it, is a branch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from thinkback.formats.genai import OURS, block_of
from thinkback.formats.history import Answer, Entry, Format, History, Notes, Read, Source, aside, key_of
from thinkback.formats.openinference import attributes_of, messages_of
from thinkback.formats.parts import claimed_count, items_of, message_of, microseconds, number, records, result, value_of
from thinkback.model import canonical
from thinkback.model.blocks import Media, Text
from thinkback.model.commits import Draft, Usage
from thinkback.rules import packaged
from thinkback.rules.urls import server_of
from thinkback.wire.openai_responses.content import NAME as SEALS_ITEMS
from thinkback.wire.values import members_of, plain

NAME = "otlp"
_GROUPS = ("resourceSpans", "resource_spans")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_SESSIONS = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
_MODELS = ("gen_ai.request.model", "llm.model_name", "gen_ai.response.model")
_PROVIDERS = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
_USAGE = {
    "input": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "output": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
    "reasoning": ("gen_ai.usage.reasoning.output_tokens", "llm.token_count.completion_details.reasoning"),
    "cached": ("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"),
    "cache_write": ("gen_ai.usage.cache_creation.input_tokens", "llm.token_count.prompt_details.cache_write"),
}
_SYSTEM = ("system", "developer")
_NO_SPAN = "a line without spans"
_NO_REQUEST = "a span that is no request"
_NO_MESSAGES = "a request without its messages"
_DETAILS = "gen_ai.client.inference.operation.details"
_OWN = re.compile(rb'\s*\{\s*"(?:resource_?[sS]pans"|name": .{0,300}?"context": \{\s*"trace_id")', re.DOTALL)


class _Header(msgspec.Struct):
    """What our own traces say of a response besides its blocks."""

    content: Literal["absent", "null", "text"] = "absent"
    message: str = ""
    repeats: tuple[str, ...] = ()


class _Node(msgspec.Struct):
    """An entry as it is put together; ``is_answer``: it is what a span was answered with, no repetition."""

    parent: str
    time: int
    made: tuple[Draft, ...] | Answer
    is_answer: bool


class _Session(msgspec.Struct):
    nodes: dict[str, _Node] = {}
    tip: str = ""
    last: int = -1


def read(source: Source) -> Read:
    """The conversations of a file of spans."""
    notes = Notes()
    sessions: dict[str, _Session] = {}
    for line, record in records(source.lines, notes):
        spans = _spans(record)
        if spans is None:
            notes.add(_NO_SPAN, line)
            continue
        for span in spans:
            _take(members_of(span), sessions, notes, line)
    found = (_history(id, session) for id, session in sessions.items())
    return Read(tuple(each for each in found if each.entries), notes.left())


def _spans(record: dict[str, Any]) -> Iterable[Any] | None:
    """The spans of a line; ``None`` where it is of another kind."""
    for name in _GROUPS:
        if name in record:
            return _inside(items_of(record[name]))
    if isinstance(record.get("data"), list):
        return items_of(record["data"])
    return [record] if "attributes" in record else None


def _inside(groups: list[Any]) -> Iterator[Any]:
    for group in groups:
        for name in _SCOPES:
            for scope in items_of(members_of(group).get(name)):
                yield from items_of(members_of(scope).get("spans"))


def _take(span: dict[str, Any], sessions: dict[str, _Session], notes: Notes, line: int) -> None:
    said = attributes_of(span.get("attributes"))
    for event in items_of(span.get("events")):
        if members_of(event).get("name") == _DETAILS:
            said |= attributes_of(event["attributes"]) if "attributes" in event else {}
    asked, answered = _messages(said, "input"), _messages(said, "output")
    if not asked and not answered:
        is_request = any(name in said for name in _MODELS)
        notes.add(_NO_MESSAGES if is_request else _NO_REQUEST, line)
        return
    context = members_of(span.get("context"))
    trace = plain(span.get("traceId")) or plain(span.get("trace_id")) or plain(context.get("trace_id"))
    id = next((name for key in _SESSIONS if (name := plain(said.get(key)))), "") or trace or "trace"
    began = _time(span, "startTimeUnixNano", "start_time_unix_nano", "start_time")
    ended = _time(span, "endTimeUnixNano", "end_time_unix_nano", "end_time") or began
    _Conversation(id, sessions.setdefault(id, _Session()), notes, line).take(said, asked, answered, began, ended)


def _time(span: dict[str, Any], *names: str) -> int:
    """Microseconds: a number is of nanoseconds, also as text."""
    for name in names:
        value = span.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value // 1000 if 0 <= value < 2**63 else 0
        if isinstance(value, str):
            return microseconds(value)
    return 0


def _messages(said: dict[str, Any], which: str) -> list[dict[str, Any]]:
    """The messages of a span: by the conventions of OpenTelemetry, else by those of OpenInference."""
    given = said.get(f"gen_ai.{which}.messages")
    found = items_of(value_of(given) if isinstance(given, str) else given)
    return [members_of(each) for each in found] or messages_of(said, f"llm.{which}_messages.")


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    held = [*items_of(message.get("parts")), *([{"type": "text", "content": content}] if plain(content) else [])]
    return [members_of(part) for part in held]


class _Conversation:
    """One span on its way into its session."""

    def __init__(self, id: str, session: _Session, notes: Notes, line: int) -> None:
        self._id, self._session, self._notes, self._line = id, session, notes, line

    def take(
        self,
        said: dict[str, Any],
        asked: Sequence[dict[str, Any]],
        answered: Sequence[dict[str, Any]],
        began: int,
        ended: int,
    ) -> None:
        """Put its messages behind each other, and its answer behind them."""
        system = items_of(_decoded(said.get("gen_ai.system_instructions")))
        notes = [aside(f"{NAME} system", text)] if (text := _text([members_of(part) for part in system])) else []
        at, place = "", _place(said, [part for message in answered for part in _parts(message)])
        for message in asked:
            role, parts = plain(message.get("role")), _parts(message)
            if role in _SYSTEM:  # beside the conversation: one that changes makes no other
                notes += [aside(f"{NAME} system", text)] if (text := _text(parts)) else []
                continue
            if role in ("assistant", "model"):
                made: tuple[Draft, ...] | Answer = self._answer(message, place)
            else:
                made = self._drafts(role, parts)
                if not made:
                    continue
            at = self._put(at, role, parts, began, made, notes)
        if answered[1:]:
            self._notes.add("another choice", self._line)
        for message in answered[:1]:
            answer = self._answer(message, place)
            answer.usage, answer.id = _usage(said), plain(said.get("gen_ai.response.id"))
            at = self._put(at, "assistant", _parts(message), ended, answer, notes, is_answer=True)
        if ended >= self._session.last and at:
            self._session.tip, self._session.last = at, ended

    def _put(
        self,
        parent: str,
        role: str,
        parts: list[dict[str, Any]],
        time: int,
        made: tuple[Draft, ...] | Answer,
        notes: list[Draft],
        *,
        is_answer: bool = False,
    ) -> str:
        """An entry, where it is not there yet; ``notes`` stand before the first one."""
        id = key_of(NAME, parent, _visible("assistant" if role == "model" else role, parts))
        there = self._session.nodes.get(id)
        if there is None:
            if not parent and not isinstance(made, Answer):
                made = (*notes, *made)
            self._session.nodes[id] = _Node(parent, time, made, is_answer)
        elif is_answer and not there.is_answer:
            self._session.nodes[id] = _Node(parent, time, made, is_answer)
        return id

    def _answer(self, message: dict[str, Any], place: tuple[str, str, str]) -> Answer:
        dialect, server, model = place
        blocks = [block_of(part) for part in _parts(message)]
        finish = plain(message.get("finish_reason"))
        answer = Answer(blocks, model, finish=finish, dialect=dialect, server=server)
        with suppress(msgspec.ValidationError):
            header = canonical.convert(members_of(message.get(OURS)), _Header)
            answer.content, answer.message, answer.repeats = header.content, header.message, header.repeats
        return answer

    def _drafts(self, role: str, parts: list[dict[str, Any]]) -> tuple[Draft, ...]:
        found: list[Draft] = []
        spoken: list[Text | Media] = []
        for part in parts:
            kind = part.get("type")
            block = _media(part) if kind in ("blob", "uri", "file") else block_of(part)
            if kind == "tool_call_response":
                id, said = part.get("id"), part.get("response", part.get("result"))
                found.append(result(id, said, part.get("name"), is_error=part.get("is_error") is True))
            elif isinstance(block, Text | Media):
                spoken.append(block)
            elif block is not None:
                found.append(aside(f"{NAME} part", "", part))
            else:
                self._notes.add("media without its data", self._line)
        if role not in ("user", "tool"):
            text = "".join(block.text for block in spoken if isinstance(block, Text))
            self._notes.add(f"message of {role or 'nobody'}", self._line)
            return (*found, *([aside(f"{NAME} {role or 'message'}", text)] if text else []))
        return (*found, *([Draft("user", message_of(spoken))] if spoken else []))


def _media(part: dict[str, Any]) -> Media | None:
    kind = plain(part.get("mime_type")) or f"{plain(part.get('modality')) or 'image'}/*"
    data, url = plain(part.get("content")), plain(part.get("uri"))
    return Media(kind, data, url) if data or url else None


def _text(parts: list[dict[str, Any]]) -> str:
    return "\n".join(text for part in parts if (text := plain(part.get("content"))))


def _decoded(value: object) -> object:
    return value_of(value) if isinstance(value, str) else value


def _visible(role: str, parts: list[dict[str, Any]]) -> str:
    """What makes a message: who says it, its texts, calls and results; no reasoning, and nothing opaque."""
    said: list[object] = [role]
    texts: list[str] = []
    for part in parts:
        match part.get("type"):
            case "text":
                texts.append(plain(part.get("content")))
            case "tool_call":
                arguments = _decoded(part.get("arguments"))
                said.append([plain(part.get("id")), plain(part.get("name")), arguments])
            case "tool_call_response":
                said.append([plain(part.get("id")), part.get("response", part.get("result"))])
            case "reasoning":
                pass
            case _:
                said.append({name: value for name, value in part.items() if name != OURS})
    return canonical.encode([*said, "".join(texts)]).decode()


def _usage(said: dict[str, Any]) -> Usage | None:
    found = {
        field: next((count for name in names if (count := claimed_count(said.get(name))) is not None), None)
        for field, names in _USAGE.items()
    }
    return Usage(**found) if any(count is not None for count in found.values()) else None  # type: ignore[arg-type]


def _place(said: dict[str, Any], parts: list[dict[str, Any]]) -> tuple[str, str, str]:
    """The dialect of an answer, the server that made it and the model; empty what nobody says.

    A dialect is only there with a server: of what nobody knows where it is from, nothing goes back anywhere.
    """
    model = next((name for key in _MODELS if (name := plain(said.get(key)))), "")
    _, _, upstream = plain(said.get("thinkback.upstream")).partition("/")
    own = plain(said.get("thinkback.dialect")), server_of(plain(said.get("thinkback.base_url")))
    if all(own):
        return (*own, upstream or model)
    provider = next((name for key in _PROVIDERS if (name := plain(said.get(key)))), "")
    names = packaged.providers()
    known = [row for row in packaged.endpoints() if names.get(row.id, row.id) == provider]
    sealed = any(part.get("type") == "reasoning" and part.get("encrypted_content") for part in parts)
    row = next((row for row in known if (row.dialect == SEALS_ITEMS) == sealed), None)
    address, port = plain(said.get("server.address")), number(said.get("server.port"))
    given = f"https://{address}{f':{port}' if port else ''}" if address else ""
    server = server_of(given or (row.base_url if row is not None else ""))
    return row.dialect if row is not None and server else "", server, model


def _history(id: str, session: _Session) -> History:
    entries = tuple(_entry(id, key, node) for key, node in session.nodes.items())
    created = min((entry.time for entry in entries if entry.time), default=0)
    return History(id, entries, session.tip, created=created)


def _entry(session: str, id: str, node: _Node) -> Entry:
    made = node.made
    drafts = made.drafts(NAME, session, id) if isinstance(made, Answer) else made
    return Entry(id, node.parent, node.time, drafts)


def _is_own(head: bytes) -> bool:
    return _OWN.match(head) is not None


FORMAT = Format(NAME, read, _is_own, endings=(".jsonl", ".json"), has_ids=False)
