"""Claude.ai's data export: ``conversations.json``, each a list of messages whose content is blocks.

A message of the assistant holds the results of its calls between its blocks: what stands between them is a response.
"""

from __future__ import annotations

from typing import Any

from thinkback.formats.history import Answer, Entry, Format, History, Notes, Read, Source, aside
from thinkback.formats.parts import call, content_drafts, documents, items_of, microseconds, result, text_of, thought
from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, Unknown
from thinkback.model.commits import Draft
from thinkback.wire.values import members_of, plain

NAME = "claude-ai"


def read(source: Source) -> Read:
    """The conversations of an export."""
    notes = Notes()
    found = [_history(value, notes) for value in documents(source.lines, notes)]
    for each in found:
        if each.entries and not each.id:
            notes.add("a conversation without an id")
    return Read(tuple(each for each in found if each.id and each.entries), notes.left())


def _history(value: dict[str, Any], notes: Notes) -> History:
    id = plain(value.get("uuid"))
    made = _Conversation(id, plain(value.get("model")), notes)
    for message in items_of(value.get("chat_messages")):
        made.take(members_of(message))
    created = microseconds(value.get("created_at"))
    tip = made.places.get(plain(value.get("current_leaf_message_uuid"))) or made.last
    return History(id, tuple(made.entries), tip, plain(value.get("name")), "", created)


class _Conversation:
    """A conversation as it is put together; messages follow one another where they do not name what they follow."""

    def __init__(self, id: str, model: str, notes: Notes) -> None:
        self.entries: list[Entry] = []
        # Where each message ends.
        self.places: dict[str, str] = {}
        self.last = ""
        self._id = id
        self._model = model
        self._notes = notes

    def take(self, message: dict[str, Any]) -> None:
        """A message."""
        id, sender = plain(message.get("uuid")), plain(message.get("sender"))
        if not id or id in self.places:
            self._notes.add("a message without an id of its own")
            return
        self.last = self.places.get(plain(message.get("parent_message_uuid")), self.last)
        time = microseconds(message.get("created_at"))
        content = items_of(message.get("content")) or [{"type": "text", "text": text_of(message.get("text"))}]
        if sender == "assistant":
            self._answers(id, time, content)
        else:
            if sender != "human":
                self._notes.add(f"message of {sender or 'nobody'}")
            files = [*items_of(message.get("attachments")), *items_of(message.get("files"))]
            beside = (_file(members_of(each)) for each in files)
            self._put(id, time, (*(content_drafts(content, NAME) if sender == "human" else ()), *beside))
        self.places[id] = self.last

    def _put(self, id: str, time: int, drafts: tuple[Draft, ...]) -> None:
        if drafts:
            self.entries.append(Entry(id, self.last, time, drafts))
            self.last = id

    def _answers(self, id: str, time: int, content: list[Any]) -> None:
        blocks: list[Block] = []
        results: list[Draft] = []
        calls: list[str] = []
        step = 0
        for at, raw in enumerate([*content, None]):
            fields = members_of(raw)
            kind = plain(fields.get("type"))
            if kind == "tool_result":
                given = plain(fields.get("tool_use_id")) or (calls.pop(0) if calls else "")
                failed = fields.get("is_error") is True
                results.append(result(given, fields.get("content"), fields.get("name"), is_error=failed))
                continue
            if results or raw is None:
                self._step(f"{id}.{step}", time, blocks, results)
                blocks, results, calls, step = [], [], [], step + 1
            if raw is None:
                continue
            if kind == "tool_use":
                calls.append(plain(fields.get("id")) or f"{id}:{at}")
            blocks.append(_block(kind, fields, calls[-1] if calls else ""))

    def _step(self, id: str, time: int, blocks: list[Block], results: list[Draft]) -> None:
        if blocks:
            self._put(id, time, Answer(blocks, self._model).drafts(NAME, self._id, id))
        self._put(f"{id} results", time, tuple(results))


def _block(kind: str, fields: dict[str, Any], id: str) -> Block:
    match kind:
        case "text":
            return Text(plain(fields.get("text")))
        case "thinking":
            return thought(fields.get("thinking"), "thinking", fields.get("signature"))
        case "tool_use":
            return call(id, fields.get("name"), fields.get("input"))
    return Unknown(canonical.source(fields))


def _file(fields: dict[str, Any]) -> Draft:
    text = plain(fields.get("extracted_content")) or plain(fields.get("file_name"))
    return aside(f"{NAME} file", text, {"file_name": plain(fields.get("file_name"))})


def _is_own(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") or (b'"chat_messages"' in head and b'"uuid"' in head)


FORMAT = Format(NAME, read, _is_own, endings=(".json", ".zip"))
