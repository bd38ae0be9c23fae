"""ChatGPT's data export: ``conversations.json``, each a tree of messages by ``mapping``.

Messages of the assistant that follow one another without a branch are one response: thoughts, calls, the answer.
"""

from __future__ import annotations

from typing import Any

from thinkback.formats.history import Answer, Entry, Format, History, Notes, Read, Source, aside
from thinkback.formats.parts import call, content_drafts, documents, items_of, microseconds, result, text_of
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Draft
from thinkback.wire.values import members_of, plain

NAME = "chatgpt"
_BESIDE = frozenset({"user_editable_context", "model_editable_context", "reasoning_recap", "system_error"})


def read(source: Source) -> Read:
    """The conversations of an export."""
    notes = Notes()
    found = [_Conversation(value, notes).history() for value in documents(source.lines, notes)]
    for each in found:
        if each.entries and not each.id:
            notes.add("a conversation without an id")
    return Read(tuple(each for each in found if each.id and each.entries), notes.left())


class _Conversation:
    """A conversation as it is put together."""

    def __init__(self, value: dict[str, Any], notes: Notes) -> None:
        self._value = value
        self._notes = notes
        self._id = plain(value.get("conversation_id")) or plain(value.get("id"))
        self._nodes = {id: members_of(node) for id, node in members_of(value.get("mapping")).items()}
        if self._nodes.pop("", None) is not None:  # it would stand above itself
            notes.add("a message without an id")
        self._entries: dict[str, tuple[str, int, tuple[Draft, ...] | Answer]] = {}
        self._places: dict[str, str] = {}

    def history(self) -> History:
        """All of it."""
        children: dict[str, list[str]] = {}
        for id, node in self._nodes.items():
            parent = plain(node.get("parent"))
            children.setdefault(parent if parent in self._nodes else "", []).append(id)
        waiting = children.get("", [])[::-1]
        while waiting:
            id = waiting.pop()
            parent = plain(self._nodes[id].get("parent"))
            self._take(id, parent, is_only=len(children.get(parent, ())) == 1)
            waiting += children.get(id, [])[::-1]
        for _ in range(len(self._nodes) - len(self._places)):
            self._notes.add("a message in a circle")
        entries = tuple(
            Entry(id, parent, time, made.drafts(NAME, self._id, id) if isinstance(made, Answer) else made)
            for id, (parent, time, made) in self._entries.items()
        )
        last = next(reversed(self._entries), "")
        tip = self._places.get(plain(self._value.get("current_node"))) or last
        created = microseconds(self._value.get("create_time"))
        return History(self._id, entries, tip, plain(self._value.get("title")), "", created)

    def _take(self, id: str, parent: str, *, is_only: bool) -> None:
        above = self._places.get(parent, "")
        message = members_of(self._nodes[id].get("message"))
        self._note_files(message)
        time = microseconds(message.get("create_time"))
        if plain(members_of(message.get("author")).get("role")) == "assistant":
            self._answer(id, above, time, message, is_only=is_only)
            return
        drafts = self._drafts(message, above)
        self._places[id] = id if drafts else above
        if drafts:
            self._entries[id] = above, time, drafts

    def _note_files(self, message: dict[str, Any]) -> None:
        """What the export has beside its text, or not at all."""
        for _ in items_of(members_of(message.get("metadata")).get("attachments")):
            self._notes.add("an attachment")
        for part in items_of(members_of(message.get("content")).get("parts")):
            kind = plain(members_of(part).get("content_type"))
            if kind and not text_of(members_of(part).get("text")):
                self._notes.add(f"part {kind}")

    def _answer(self, id: str, above: str, time: int, message: dict[str, Any], *, is_only: bool) -> None:
        blocks = self._blocks(id, message)
        model = plain(members_of(message.get("metadata")).get("model_slug"))
        known = self._entries.get(above)
        if known is not None and is_only and isinstance(known[2], Answer):
            known[2].blocks += blocks
            known[2].model = model or known[2].model
            self._places[id] = above
        else:
            self._places[id] = id if blocks else above
            if blocks:
                self._entries[id] = above, time, Answer(blocks, model)

    def _blocks(self, id: str, message: dict[str, Any]) -> list[Block]:
        content = members_of(message.get("content"))
        kind, recipient = plain(content.get("content_type")), plain(message.get("recipient")) or "all"
        if kind == "thoughts":
            return [_thought(members_of(each)) for each in items_of(content.get("thoughts"))]
        if kind in _BESIDE:
            self._notes.add(f"content {kind}")
            return []
        text = text_of(content.get("parts")) or text_of(content.get("text"))
        if recipient != "all":
            return [call(id, recipient, text)]
        if kind not in ("text", "code", "multimodal_text"):
            self._notes.add(f"content {kind}" if kind else "content without a type")
        return [Text(text)] if text else []

    def _drafts(self, message: dict[str, Any], above: str) -> tuple[Draft, ...]:
        author, content = members_of(message.get("author")), members_of(message.get("content"))
        role, kind = plain(author.get("role")), plain(content.get("content_type"))
        text = text_of(content.get("parts")) or text_of(content.get("text")) or text_of(content.get("result"))
        is_hidden = members_of(message.get("metadata")).get("is_visually_hidden_from_conversation") is True
        if role == "user" and not is_hidden and kind not in _BESIDE:
            spoken = items_of(content.get("parts")) or text
            return content_drafts(spoken, NAME) if spoken else ()
        if role == "tool":
            made = self._entries.get(above, ("", 0, ()))[2]
            calls = [block for block in made.blocks if isinstance(block, ToolCall)] if isinstance(made, Answer) else []
            if calls:
                return (result(calls[-1].id, text, author.get("name")),)
        elif role not in ("", "user", "system"):
            self._notes.add(f"message of {role}")
        return (aside(f"{NAME} {role}", text, content if not text else None),) if text or role == "tool" else ()


def _thought(fields: dict[str, Any]) -> ThinkingBlock:
    summary, content = plain(fields.get("summary")), plain(fields.get("content"))
    words = "\n".join(word for word in (f"**{summary}**" if summary else "", content) if word)
    return ThinkingBlock(words, source_field="thoughts", kind="summary" if words else "none")


def _is_own(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") or (b'"mapping"' in head and b'"create_time"' in head)


FORMAT = Format(NAME, read, _is_own, endings=(".json", ".zip"))
