"""Gemini CLI: JSON lines of a header, messages and changes, or in older versions one object with all messages.

A message that stands there again is the same one, grown. The program keeps titles and descriptions of thoughts, each as
it was streamed, and no signatures. Results stand beside the call, and once more as a message of the user.
"""

from __future__ import annotations

import re
from typing import Any

from thinkback.formats.history import Answer, Entry, Format, History, Notes, Read, Source, aside
from thinkback.formats.parts import (
    call,
    content_drafts,
    counts,
    first_records,
    items_of,
    microseconds,
    objects,
    result,
    text_of,
)
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.commits import Draft
from thinkback.wire.values import members_of, plain

NAME = "gemini-cli"
_PLACE = re.compile(r"([^/\\]+)[/\\]chats[/\\]")
_HASH = re.compile(r"[0-9a-f]{64}")
_CONTEXT = "<session_context>"
_USAGE = {"input": "input", "output": "output", "cached": "cached", "reasoning": "thoughts"}


def read(source: Source) -> Read:
    """The session of a file."""
    notes = Notes()
    chat = _Chat(notes)
    for line, record in objects(source, notes):
        chat.take(line, record)
    found = _PLACE.search(source.name)
    project = found[1] if found is not None and not _HASH.fullmatch(found[1]) else ""
    history = chat.history(project)
    return Read((history,) if history.id and history.entries else (), notes.left())


class _Chat:
    """A session as it is put together: messages by their id, in the order in which they first stood there."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._messages: dict[str, tuple[str, int, dict[str, Any]]] = {}
        self._id = self._tip = self._title = ""
        self._created = 0

    def take(self, line: int, record: dict[str, Any]) -> None:
        """A line: the header, a message, or a change."""
        for name, value in record.items():
            if name == "sessionId":
                self._id = self._id or plain(value)
            elif name == "startTime":
                self._created = self._created or microseconds(value)
            elif name == "summary":
                self._title = plain(value) or self._title
        changes = members_of(record.get("$set"))
        for message in (*items_of(record.get("messages")), *items_of(changes.get("messages"))):
            self._put(line, members_of(message))
        back = plain(record.get("$rewindTo"))
        if back in self._messages:
            self._tip = self._messages[back][0]
        elif "type" in record:
            self._put(line, record)
        elif "$set" not in record and "sessionId" not in record:
            self._notes.add("a line of an unknown kind", line)

    def _put(self, line: int, message: dict[str, Any]) -> None:
        id = plain(message.get("id"))
        if not id:
            self._notes.add("a message without an id", line)
            return
        known = self._messages.get(id)
        if known is not None and known[2].get("type") != message.get(
            "type"
        ):  # a result by the id of its call's message
            id = f"{id} {plain(message.get('type'))}"
            known = self._messages.get(id)
        if known is not None and _size(message) < _size(known[2]):
            return  # when it is opened again, the program writes down what it asks the model with: less than it had
        self._messages[id] = (self._tip if known is None else known[0], line, message)
        self._tip = id if known is None else self._tip

    def history(self, project: str) -> History:
        """All of it."""
        entries: list[Entry] = []
        # Where each message stands, and the calls that have their result.
        places: dict[str, str] = {"": ""}
        answered: set[str] = set()
        for id, (parent, line, message) in self._messages.items():
            time, at = microseconds(message.get("timestamp")), places[parent]
            for name, drafts in self._drafts(id, line, message, answered):
                if drafts:
                    entries.append(Entry(name, at, time, drafts))
                    at = name
            places[id] = at
        return History(self._id, tuple(entries), places[self._tip], self._title, project, self._created)

    def _drafts(
        self, id: str, line: int, message: dict[str, Any], answered: set[str]
    ) -> list[tuple[str, tuple[Draft, ...]]]:
        kind, content = plain(message.get("type")), message.get("content")
        if kind == "gemini":
            calls = _calls(message)
            results = tuple(
                _result(each)
                for each in calls
                if each.get("result") is not None or plain(each.get("status")) == "error"
            )
            answered.update(draft.value.id for draft in results)  # type: ignore[union-attr]
            return [(id, _answer(message, calls).drafts(NAME, self._id, id)), (f"{id} results", results)]
        if kind == "user":
            return [(id, self._message_drafts(content, answered))]
        self._notes.add(f"message of type {kind}" if kind else "a message without a type", line)
        return [(id, (aside(f"{NAME} {kind}", text_of(content)),) if kind else ())]

    def _message_drafts(self, content: object, answered: set[str]) -> tuple[Draft, ...]:
        text = text_of(content)
        if text.lstrip().startswith(_CONTEXT):
            return (aside(f"{NAME} context", text),)
        parts = items_of(content)
        given = [members_of(part)["functionResponse"] for part in parts if "functionResponse" in members_of(part)]
        late = [members_of(each) for each in given if plain(members_of(each).get("id")) not in answered]
        results = tuple(result(each.get("id"), _outcome(each), each.get("name")) for each in late)
        rest = [part for part in parts if "functionResponse" not in members_of(part)] if parts else content
        return (*results, *(content_drafts(rest, NAME) if rest else ()))


def _size(message: dict[str, Any]) -> int:
    """How much of a response stands beside its content."""
    return len(items_of(message.get("thoughts"))) + len(items_of(message.get("toolCalls")))


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls, with their results; or as the model made them."""
    parts = [members_of(part) for part in items_of(message.get("content"))]
    made = [part["functionCall"] for part in parts if "functionCall" in part]
    return [members_of(each) for each in items_of(message.get("toolCalls")) or made]


def _answer(message: dict[str, Any], calls: list[dict[str, Any]]) -> Answer:
    content = message.get("content")
    parts = [members_of(part) for part in items_of(content)]
    told = [{"description": part.get("text")} for part in parts if part.get("thought") is True]
    thoughts = _thoughts([members_of(each) for each in items_of(message.get("thoughts")) or told])
    text = text_of([part for part in parts if part.get("thought") is not True] if parts else content)
    made = [call(each.get("id"), each.get("name"), each.get("args")) for each in calls]
    usage = counts(message.get("tokens"), ("reasoning_beside_output",), **_USAGE)
    return Answer([*thoughts, *([Text(text)] if text else []), *made], model=plain(message.get("model")), usage=usage)


def _thoughts(given: list[dict[str, Any]]) -> list[ThinkingBlock]:
    """The program stores what it got with each event, without the white space around it: what has no subject goes on
    with the thought before it.
    """
    found: list[str] = []
    for fields in given:
        subject, description = plain(fields.get("subject")), plain(fields.get("description"))
        if found and not subject:
            found[-1] = f"{found[-1]} {description}".strip()
        else:
            found.append("\n".join(word for word in (f"**{subject}**" if subject else "", description) if word))
    return [ThinkingBlock(words, source_field="thought", kind="summary" if words else "none") for words in found]


def _result(fields: dict[str, Any]) -> Draft:
    """What a call gave back; where the program keeps the answers of calls made at once with each, its own."""
    parts = [members_of(each) for each in items_of(fields.get("result"))]
    given = [members_of(part["functionResponse"]) for part in parts if "functionResponse" in part]
    own = [each for each in given if each.get("id") == fields.get("id")] if len(given) > 1 else given
    said = _outcome(own[0]) if len(own) == 1 and len(given) == len(parts) else fields.get("result")
    shown = fields.get("resultDisplay") if said is None else said
    return result(fields.get("id"), shown, fields.get("name"), is_error=plain(fields.get("status")) == "error")


def _outcome(answer: dict[str, Any]) -> object:
    response = answer.get("response")
    inner = members_of(response)
    return inner["output"] if inner.keys() == {"output"} else response


def _is_own(head: bytes) -> bool:
    if any({"sessionId", "projectHash"} <= record.keys() for record in first_records(head)):
        return True
    return b'"sessionId"' in head and b'"projectHash"' in head and head.lstrip().startswith(b"{")


FORMAT = Format(NAME, read, _is_own, home=".gemini", folders=("tmp",), endings=(".jsonl", ".json"))
