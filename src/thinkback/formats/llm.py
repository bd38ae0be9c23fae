"""llm: ``logs.db``. From 0.32 on messages with parts, shared by threads that fork; before, a prompt and its response.

A thread is a session, with the messages up to its tip. The tables of both generations are read; a response that stands
in both counts once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from thinkback.formats.history import Answer, Entry, Format, History, Notes, Read, Source, aside
from thinkback.formats.parts import (
    call,
    claimed_count,
    content_drafts,
    microseconds,
    number,
    object_of,
    result,
    text_of,
)
from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, Unknown
from thinkback.model.commits import Draft, Usage
from thinkback.wire.values import members_of, plain

NAME = "llm"
_Row = Mapping[str, Any]


def read(source: Source) -> Read:
    """The threads and conversations of a database."""
    notes = Notes()
    tables = source.tables
    messages = _Messages(tables, notes)
    turns = _by(tables.get("turns", ()), "thread_id")
    threads = [messages.thread(row, turns[plain(row.get("id"))]) for row in tables.get("threads", ())]
    known = {plain(row.get("id")) for row in tables.get("turns", ())}
    older = _by((row for row in tables.get("responses", ()) if plain(row.get("id")) not in known), "conversation_id")
    names = {plain(row.get("id")): plain(row.get("name")) for row in tables.get("conversations", ())}
    calls, results = (_by(tables.get(name, ()), "response_id") for name in ("tool_calls", "tool_results"))
    groups = [
        (id or plain(row.get("id")), rows if id else [row])
        for id, rows in older.items()
        for row in (rows[:1] if id else rows)
    ]
    chats = [_conversation(id, names.get(id, ""), rows, calls, results) for id, rows in groups]
    return Read(tuple(each for each in (*threads, *chats) if each.id and each.entries), notes.left())


def _by(rows: Iterable[_Row], column: str) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        found[plain(row.get(column))].append(row)
    return found


class _Messages:
    """The messages of the newer tables, by their hash."""

    def __init__(self, tables: Mapping[str, Sequence[_Row]], notes: Notes) -> None:
        self._notes = notes
        self._messages = {plain(row.get("hash")): row for row in tables.get("messages", ())}
        self._parts = _by(tables.get("parts", ()), "message_hash")
        self._fragments = {row.get("id"): plain(row.get("content")) for row in tables.get("fragments", ()) if _id(row)}

    def thread(self, row: _Row, turns: list[_Row]) -> History:
        """A thread with the messages that lead to its tip."""
        id, tip = plain(row.get("id")), plain(row.get("tip_message_hash"))
        line: list[str] = []
        seen = {""}
        while tip not in seen and tip in self._messages:
            line.append(tip)
            seen.add(tip)
            tip = plain(self._messages[tip].get("parent_hash"))
        ends = {plain(turn.get("tip_message_hash")): turn for turn in turns}
        turn: _Row = {}
        told: list[tuple[str, _Row]] = []
        for hash in line:  # from the tip back: a message is of the turn that it led to
            turn = ends.get(hash, turn)
            told.append((hash, turn))
        entries: list[Entry] = []
        for hash, turn in reversed(told):
            drafts = self._drafts(id, hash, turn, is_tip=hash in ends)
            if drafts:
                entries.append(Entry(hash, entries[-1].id if entries else "", _time(turn), drafts))
        last = entries[-1].id if entries else ""
        return History(id, tuple(entries), last, plain(row.get("name")), "", microseconds(row.get("datetime_utc")))

    def _drafts(self, thread: str, hash: str, turn: _Row, *, is_tip: bool) -> tuple[Draft, ...]:
        role = plain(self._messages[hash].get("role"))
        found = [self._part(row) for row in sorted(self._parts[hash], key=_position)]
        if role == "assistant":
            model = plain(turn.get("resolved_model")) or plain(turn.get("model"))
            made = [_block(part) for part in found if part["type"] != "tool_result"]
            answer = Answer(made, model, usage=_usage(turn) if is_tip else None)
            return answer.drafts(NAME, thread, hash)
        results = [_result(part) for part in found if part["type"] == "tool_result"]
        rest = [part for part in found if part["type"] != "tool_result"]
        if role == "user" and rest:
            return (*results, *content_drafts([self._user_part(part) for part in rest], NAME))
        if role not in ("user", "tool", "system"):
            self._notes.add(f"message of {role or 'nobody'}")
        text = text_of(rest)
        return (*results, *([aside(f"{NAME} {role}", text)] if text else []))

    def _part(self, row: _Row) -> dict[str, Any]:
        """A part with its text, which may borrow from fragments."""
        payload = object_of(row.get("payload"))
        pieces = payload.pop("text_ref", None)
        text = row.get("text")
        if isinstance(pieces, list):
            text = "".join(self._piece(members_of(piece)) for piece in pieces)
        named = {"name": plain(row.get("tool_name"))} if plain(row.get("tool_name")) else {}
        return {**payload, **named, "type": plain(row.get("type")), **({"text": text} if isinstance(text, str) else {})}

    def _piece(self, piece: dict[str, Any]) -> str:
        id = piece.get("fragment")
        return self._fragments.get(id, "") if isinstance(id, int) else plain(piece.get("literal"))

    def _user_part(self, part: dict[str, Any]) -> object:
        if part["type"] == "attachment":
            self._notes.add("an attachment")
        return part


def _id(row: _Row) -> bool:
    return isinstance(row.get("id"), int)


def _position(row: _Row) -> int:
    return number(row.get("position")) or 0


def _time(row: _Row) -> int:
    return microseconds(row.get("datetime_utc"))


def _block(part: dict[str, Any]) -> Block:
    match part["type"]:
        case "text":
            return Text(plain(part.get("text")))
        case "reasoning":
            words = plain(part.get("text"))
            wire = canonical.source(part) if part.get("provider_metadata") or part.get("redacted") else ""
            return ThinkingBlock(words, source_field="reasoning", kind="raw" if words else "none", wire=wire)
        case "tool_call":
            return call(part.get("tool_call_id"), part.get("name"), part.get("arguments"))
    return Unknown(canonical.source(part))


def _result(part: dict[str, Any]) -> Draft:
    failed = plain(part.get("exception")) != ""
    return result(part.get("tool_call_id"), part.get("output"), part.get("name"), is_error=failed)


def _usage(row: _Row) -> Usage | None:
    given, made, details = (
        claimed_count(row.get("input_tokens")),
        claimed_count(row.get("output_tokens")),
        object_of(row.get("token_details")),
    )
    if given is None and made is None:
        return None
    inner = [members_of(each) for each in details.values()]
    reasoning = next(
        (found for each in (details, *inner) if (found := claimed_count(each.get("reasoning_tokens"))) is not None),
        None,
    )
    return Usage(given, made, reasoning, wire=canonical.source(details) if details else "")


def _conversation(
    id: str,
    name: str,
    rows: list[_Row],
    calls: Mapping[str, list[_Row]],
    results: Mapping[str, list[_Row]],
) -> History:
    """A conversation of the older tables: each row is a prompt with its response."""
    entries: list[Entry] = []
    seen = {""}
    for row in rows:
        own = plain(row.get("id"))
        asked = [
            *(result(each.get("tool_call_id"), each.get("output"), each.get("name")) for each in results.get(own, ())),
            *([aside(f"{NAME} system", plain(row.get("system")))] if plain(row.get("system")) else []),
            *(content_drafts(plain(row.get("prompt")), NAME) if plain(row.get("prompt")) else ()),
        ]
        text = plain(row.get("response"))
        called = [
            call(each.get("tool_call_id"), each.get("name"), each.get("arguments")) for each in calls.get(own, ())
        ]
        model = plain(row.get("resolved_model")) or plain(row.get("model"))
        answer = Answer([*([Text(text)] if text else []), *called], model, usage=_usage(row))
        for key, drafts in ((f"{own} prompt", tuple(asked)), (own, answer.drafts(NAME, id, own))):
            if drafts and own not in seen:
                entries.append(Entry(key, entries[-1].id if entries else "", _time(row), drafts))
        seen.add(own)
    last = entries[-1].id if entries else ""
    return History(id, tuple(entries), last, name, created=entries[0].time if entries else 0)


def _is_own(head: bytes) -> bool:
    return head.startswith(b"SQLite format 3\0")


FORMAT = Format(
    NAME,
    read,
    _is_own,
    home=".config/io.datasette.llm",
    variable="LLM_USER_PATH",
    endings=("logs.db",),
    tables=(
        *("threads", "turns", "messages", "parts", "fragments"),
        *("conversations", "responses", "tool_calls", "tool_results"),
    ),
)
