"""Claude Code: JSON lines, a tree by ``uuid`` and ``parentUuid``; a response stands in a line for each of its blocks.

Lines of one message id are one response. Results of calls that ran side by side hang at their own call's line; here
they stand one behind the other. A compaction goes on where ``logicalParentUuid`` says. Lines of a sub-agent are a
session of its own. An ``attachment`` is something that the model read beside the messages: words that a person typed
while a tool ran, files and selections that they named, and notes of the program.
"""

from __future__ import annotations

from typing import Any

from thinkback.formats.history import Answer, Entry, Format, History, Notes, Read, Source, aside
from thinkback.formats.parts import (
    content_drafts,
    first_records,
    id_in,
    items_of,
    microseconds,
    records,
    result,
    text_of,
)
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media
from thinkback.model.commits import Compaction, Content, Draft, Message
from thinkback.wire.anthropic.blocks import NAME as DIALECT
from thinkback.wire.anthropic.events import read_usage
from thinkback.wire.anthropic.parts import Part
from thinkback.wire.values import members_of, plain

NAME = "claude-code"
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
_SYNTHETIC = "<synthetic>"
_NAMED = {
    "directory": ("directory", "path"),
    "file": ("file", "filename"),
    "mcp_resource": ("resource", "uri"),
    "pdf_reference": ("file", "filename"),
    "selected_lines_in_ide": ("selection", "filename"),
}
"""Attachments that a person named, by type: how they are called here, and which member says what they are of."""
_NOTES = {
    "agent_listing_delta": "addedLines",
    "agent_mention": "agentType",
    "critical_system_reminder": "content",
    "edited_text_file": "snippet",
    "hook_additional_context": "content",
    "hook_blocking_error": "blockingError",
    "invoked_skills": "skills",
    "nested_memory": "content",
    "opened_file_in_ide": "filename",
    "plan_file_reference": "planContent",
    "relevant_memories": "memories",
    "skill_listing": "content",
}
"""Attachments in which the program tells the model something, and the member with the words."""


def read(source: Source) -> Read:
    """The session of a file, and those of the sub-agents in it."""
    notes = Notes()
    threads: dict[str, _Thread] = {}
    agents: dict[str, str] = {}
    title, session = "", id_in(source.name)
    for line, record in records(source.lines, notes):
        kind = plain(record.get("type"))
        session = plain(record.get("sessionId")) or plain(record.get("session_id")) or session
        if kind in _TITLES:
            title = plain(record.get(_TITLES[kind])) or title
        elif session and plain(record.get("uuid")):
            agent = _agent(record, agents)
            key = f"{session}/{agent}" if agent else session
            if key not in threads:
                threads[key] = _Thread(key, session if agent else "", notes)
            threads[key].take(line, kind, record)
        else:
            notes.add(kind or "a line without a type", line)
    found = tuple(thread.history(title) for thread in threads.values())
    return Read(tuple(each for each in found if each.entries), notes.left())


def _agent(record: dict[str, Any], agents: dict[str, str]) -> str:
    """Whose line it is; older versions do not name a sub-agent, and its first line does."""
    if plain(record.get("parent_tool_use_id")):  # what it writes to its standard output
        return plain(record["parent_tool_use_id"])
    if record.get("isSidechain") is not True:
        return ""
    id = plain(record["uuid"])
    agents[id] = plain(record.get("agentId")) or agents.get(plain(record.get("parentUuid")), id)
    return agents[id]


class _Thread:
    """A session as it is put together."""

    def __init__(self, id: str, parent: str, notes: Notes) -> None:
        self._id = id
        self._parent = parent
        self._notes = notes
        self._entries: dict[str, tuple[str, int, tuple[Draft, ...] | Answer]] = {}
        # Where each line of the file stands; the entry that results stand behind, and the last of those behind it.
        self._places: dict[str, str] = {}
        self._chains: dict[str, str] = {}
        self._ends: dict[str, str] = {}
        self._answers: dict[str, str] = {}
        self._tip = self._directory = self._task = ""
        self._created = 0

    def take(self, line: int, kind: str, record: dict[str, Any]) -> None:
        """A line."""
        id = plain(record["uuid"])
        if id in self._places:
            self._notes.add("a line that is there twice", line)
            return
        parent, time = self._above(record), microseconds(record.get("timestamp"))
        self._directory = self._directory or plain(record.get("cwd"))
        self._created = self._created or time
        message = members_of(record.get("message"))
        if kind == "assistant":
            self._answer(id, parent, time, record, message)
        elif kind == "user":
            self._say(id, parent, time, record, message)
        elif kind == "attachment" and (drafts := _attached(members_of(record.get("attachment")))):
            self._put(id, parent, time, drafts)
        else:
            self._places[id] = parent
            self._notes.add(plain(record.get("subtype")) or kind, line)

    def history(self, title: str) -> History:
        """All of it."""
        entries = tuple(
            Entry(id, parent, time, made.drafts(NAME, self._id, id) if isinstance(made, Answer) else made)
            for id, (parent, time, made) in self._entries.items()
        )
        place = self._directory
        return History(self._id, entries, self._tip, title, place, self._created, self._parent, self._task)

    def _above(self, record: dict[str, Any]) -> str:
        """The entry that a line follows; where it is not there, the one before it in the file."""
        named = record.get("parentUuid") or record.get("logicalParentUuid")
        if named is None and "parentUuid" in record:
            return ""
        place = self._places.get(plain(named), self._tip)
        return self._ends.get(self._chains.get(place, place), place)

    def _put(self, id: str, parent: str, time: int, made: tuple[Draft, ...] | Answer) -> None:
        self._entries[id] = (parent, time, made)
        self._places[id] = self._tip = id

    def _answer(self, id: str, parent: str, time: int, record: dict[str, Any], message: dict[str, Any]) -> None:
        named = plain(message.get("id")) or id
        at = self._answers.setdefault(named, id)
        if at == id:
            self._put(id, parent, time, Answer(id=plain(message.get("id")), dialect=DIALECT))
        answer = self._entries[at][2]
        assert isinstance(answer, Answer)
        self._places[id] = at
        content = message.get("content")
        raw = [{"type": "text", "text": content}] if isinstance(content, str) else items_of(content)
        answer.blocks += map(block_of, raw)
        model = plain(message.get("model"))
        answer.model = "" if model == _SYNTHETIC else model
        answer.finish = plain(message.get("stop_reason")) or answer.finish
        answer.usage = read_usage(members_of(message.get("usage"))) or answer.usage
        if record.get("isApiErrorMessage") is True or model == _SYNTHETIC:
            answer.error = text_of(content) or "the program wrote it, not a model"

    def _say(self, id: str, parent: str, time: int, record: dict[str, Any], message: dict[str, Any]) -> None:
        content = message.get("content")
        if record.get("isCompactSummary") is True:
            self._put(id, parent, time, (Draft("compaction", Compaction("model", text_of(content), reason=NAME)),))
            return
        parts = items_of(content)
        results = [part for part in parts if members_of(part).get("type") == "tool_result"]
        rest = content if isinstance(content, str) else [part for part in parts if part not in results]
        drafts = [
            result(part.get("tool_use_id"), part.get("content"), is_error=part.get("is_error") is True)
            for part in results
        ]
        if record.get("isMeta") is True:
            drafts.append(aside(f"{NAME} context", text_of(rest)))
        elif rest or not results:
            drafts += content_drafts(rest, NAME)
            self._task = self._task or (text_of(rest) if self._parent else "")
        self._put(id, parent, time, tuple(drafts))
        if results and parent:  # what follows the response, or another of its results, follows this one
            self._chains[id] = self._chains.get(parent, parent)
            self._ends[self._chains[id]] = id


def _attached(attachment: dict[str, Any]) -> tuple[Draft, ...]:
    """The model's view of an attachment; nothing for one that it did not see, or of a kind that is not known."""
    kind = plain(attachment.get("type"))
    if kind == "queued_command":
        return _queued(attachment)
    if kind in _NAMED:
        name, subject = _NAMED[kind]
        return _shown(name, plain(attachment.get(subject)), attachment)
    words = _words_in(attachment.get(_NOTES[kind])) if kind in _NOTES else ""
    about = plain(attachment.get("filename"))
    text = "\n".join(dict.fromkeys(filter(None, (about, words))))
    return (aside(f"{NAME} context", text),) if words else ()


def _queued(attachment: dict[str, Any]) -> tuple[Draft, ...]:
    """A message that waited while the model worked: a person's, or one of the program."""
    prompt = attachment.get("prompt")
    source = plain(members_of(attachment.get("origin")).get("kind")) or plain(attachment.get("commandMode"))
    if attachment.get("isMeta") is True or source not in ("", "prompt", "human"):
        words = text_of(prompt)
        return (aside(f"{NAME} context", words),) if words else ()
    return content_drafts(prompt, NAME) if prompt else ()


def _shown(name: str, subject: str, attachment: dict[str, Any]) -> tuple[Draft, ...]:
    """A file, selection or folder as the model read it: a picture or document as one, anything else as text."""
    content = attachment.get("content")
    file = members_of(members_of(content).get("file"))
    if data := plain(file.get("base64")):
        media_type = plain(file.get("type")) or "application/pdf"
        return (Draft("user", Message("", (Media(media_type, data, name=subject),))),)
    lines = [str(at) for key in ("lineStart", "lineEnd") if isinstance(at := attachment.get(key), int)]
    heading = f"{subject}, lines {' to '.join(lines)}" if lines else subject
    text = "\n".join(filter(None, (heading, _words_in(content))))
    return (Draft("content", Content(f"{NAME} {name}", text)),) if text else ()


def _words_in(value: object) -> str:
    """The words of a member, whatever it holds them in."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_words_in, value)))
    fields = members_of(value)
    if not fields:
        return plain(value)
    held = (
        fields[key]
        for key in ("file", "contents", "content", "text", "cells", "source", "blockingError")
        if key in fields
    )
    return _words_in(next(held, ""))


def block_of(raw: object) -> Block:
    """A content block of a model."""
    fields = members_of(raw) or {"type": "", "value": raw}
    part = Part(0, fields, canonical.source(fields), "")
    part.close()
    return part.block()


def _is_own(head: bytes) -> bool:
    found = [each for each in first_records(head) if "type" in each]
    if any("parts" in members_of(each.get("message")) or "systemPayload" in each for each in found):
        return False  # programs that grew out of Gemini CLI name their sessions alike
    return any(each.keys() & {"sessionId", "session_id", "leafUuid"} for each in found)


FORMAT = Format(
    NAME, read, _is_own, home=".claude", variable="CLAUDE_CONFIG_DIR", folders=("projects",), endings=(".jsonl",)
)
