"""Codex CLI: a rollout, JSON lines of a time, a type and a payload; the items of the Responses API stand among them.

What a model made since the last report of usage is one response. A roll-back takes turns away: what follows is a
branch. What the program says in the user's role (its environment, instructions) stands beside the conversation.
"""

from __future__ import annotations

from typing import Any

from thinkback.formats.history import Answer, Entry, Format, History, Notes, Read, Source, aside
from thinkback.formats.parts import (
    content_drafts,
    counts,
    first_records,
    id_in,
    items_of,
    microseconds,
    objects,
    result,
    text_of,
)
from thinkback.model import canonical
from thinkback.model.commits import Compaction, Draft
from thinkback.wire.openai_responses.blocks import block_of
from thinkback.wire.openai_responses.content import NAME as DIALECT
from thinkback.wire.values import members_of, plain

NAME = "codex"
_PASSED = "internal_chat_message_metadata_passthrough"
_KINDS = "content_item_kinds"
_CONTEXT = ("<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "<skill>", "# AGENTS.md")
_MADE = frozenset({"reasoning", "message", "function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_OUTPUT = "_output"
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "reasoning": "reasoning_output_tokens",
    "cached": "cached_input_tokens",
    "cache_write": "cache_write_input_tokens",
}


def read(source: Source) -> Read:
    """The session of a rollout."""
    notes = Notes()
    rollout = _Rollout(notes, id_in(source.name))
    for line, record in objects(source, notes, once=True):
        if isinstance(record.get("items"), list):  # the very first version had one object, and no types of lines
            rollout.take(line, members_of(record.get("session")))
            for at, item in enumerate(record["items"], line + 1):
                rollout.take(at, members_of(item))
        else:
            rollout.take(line, record)
    history = rollout.history()
    return Read((history,) if history.id and history.entries else (), notes.left())


class _Rollout:
    """A session as it is put together."""

    def __init__(self, notes: Notes, named: str) -> None:
        self._notes = notes
        # What the file is called by: its id, where its header cannot be read.
        self._named = named
        self._entries: list[tuple[str, str, int, tuple[Draft, ...] | Answer]] = []
        self._id = self._parent = self._tip = self._directory = self._model = ""
        self._created = 0
        self._open: Answer | None = None
        self._last: Answer | None = None
        # (entry before it) of each message of the user that still counts.
        self._asked: list[str] = []

    def history(self) -> History:
        """All of it."""
        if any(isinstance(made, Answer) for *_, made in self._entries):
            self._id = self._id or self._named
        entries = tuple(
            Entry(id, parent, time, made.drafts(NAME, self._id, id) if isinstance(made, Answer) else made)
            for id, parent, time, made in self._entries
        )
        return History(self._id, entries, self._tip, "", self._directory, self._created, self._parent)

    def take(self, line: int, record: dict[str, Any]) -> None:
        """A line."""
        payload = members_of(record.get("payload"))
        kind, time = plain(record.get("type")), microseconds(record.get("timestamp"))
        if "payload" not in record:  # the first versions had the items themselves
            kind, payload = ("response_item", record) if kind else ("session_meta", record)
        match kind:
            case "session_meta" if not self._id:
                self._begin(payload, time)
            case "turn_context":
                self._model = plain(payload.get("model")) or self._model
                self._directory = self._directory or plain(payload.get("cwd"))
            case "response_item":
                self._item(line, time, payload)
            case "token_usage_record":
                self._used(payload.get("usage"), plain(payload.get("response_id")))
            case "event_msg":
                self._event(line, payload)
            case "compacted":
                self._compact(line, time, payload)
            case _:
                self._notes.add(kind, line)

    def _begin(self, meta: dict[str, Any], time: int) -> None:
        self._id = plain(meta.get("id"))
        self._directory = plain(meta.get("cwd"))
        self._created = microseconds(meta.get("timestamp")) or time
        spawned = members_of(members_of(members_of(meta.get("source")).get("subagent")).get("thread_spawn"))
        self._parent = plain(spawned.get("parent_thread_id"))

    def _put(self, line: int, time: int, made: tuple[Draft, ...] | Answer) -> None:
        id = str(line)
        self._entries.append((id, self._tip, time, made))
        self._tip = id

    def _item(self, line: int, time: int, payload: dict[str, Any]) -> None:
        item = {key: value for key, value in payload.items() if key != _PASSED}
        kind, role = plain(item.get("type")), plain(item.get("role"))
        if kind.endswith(_OUTPUT):
            self._open = None
            output = item.get("output")
            held = members_of(output)
            self._put(line, time, (result(item.get("call_id"), held.get("content", output)),))
        elif kind == "message" and role != "assistant":
            self._open = None
            self._say(line, time, role, item.get("content"), members_of(payload.get(_PASSED)))
        elif kind in _MADE:
            self._made(line, time, item)
        else:
            self._notes.add(kind or "an item without a type", line)
            if kind:
                self._put(line, time, (aside(f"{NAME} {kind}", "", item),))

    def _made(self, line: int, time: int, item: dict[str, Any]) -> None:
        if self._open is None:
            self._open = self._last = Answer(model=self._model, dialect=DIALECT)
            self._put(line, time, self._open)
        self._open.blocks.append(block_of(item, canonical.source(item)))

    def _say(self, line: int, time: int, role: str, content: object, about: dict[str, Any]) -> None:
        text, kinds = text_of(content), items_of(about.get(_KINDS))
        is_context = "user.text" not in kinds if kinds else text.lstrip().startswith(_CONTEXT)
        if role != "user" or is_context:
            self._put(line, time, (aside(f"{NAME} context", text),))
            return
        self._asked.append(self._tip)
        self._put(line, time, content_drafts(content, NAME))

    def _used(self, usage: object, response: str) -> None:
        """What the last response used; of two reports of one the first counts."""
        last = self._last
        if last is not None and last.usage is None:
            last.usage = counts(usage, **_USAGE)
            last.id = response
        self._open = None

    def _event(self, line: int, payload: dict[str, Any]) -> None:
        kind = plain(payload.get("type"))
        if kind == "token_count":
            used = members_of(payload.get("info")).get("last_token_usage")
            if used:
                self._used(used, "")
        elif kind == "thread_rolled_back":
            turns = payload.get("num_turns")
            if isinstance(turns, int) and 0 < turns <= len(self._asked):
                self._tip = self._asked[-turns]
                del self._asked[-turns:]
            self._open = self._last = None
        else:
            self._notes.add(f"event {kind}", line)

    def _compact(self, line: int, time: int, payload: dict[str, Any]) -> None:
        """A summary stands for what came before; where it is sealed, the history stays as it is."""
        self._open = None
        summary = plain(payload.get("message"))
        made = Draft("compaction", Compaction("model", summary, reason=NAME)) if summary else None
        self._put(line, time, (made or aside(f"{NAME} compacted", "", payload),))


def _is_own(head: bytes) -> bool:
    found = first_records(head)
    if any(each.get("type") == "session_meta" for each in found):
        return True
    is_first = any(each.keys() >= {"id", "timestamp", "instructions"} for each in found[:1])
    return is_first or (b'"session"' in head and b'"items"' in head and b'"instructions"' in head)


FORMAT = Format(
    NAME,
    read,
    _is_own,
    home=".codex",
    variable="CODEX_HOME",
    folders=("sessions", "archived_sessions"),
    endings=(".jsonl", ".json"),
    has_ids=False,
)
