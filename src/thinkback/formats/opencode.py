"""opencode: a SQLite database of sessions, messages and parts, the latter two as JSON; ids grow with time. Versions
before it had a JSON file for each; opencode took these into its database with the same ids.

A step of an assistant message is a response: its parts up to the finish of the step, then the results of its calls.
What a provider adds to reasoning (signatures, ids, sealed values) is kept with it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from thinkback.formats.history import Answer, Entry, Format, History, Notes, Read, Source, aside
from thinkback.formats.parts import call, content_drafts, microseconds, number, object_of, result, text_of
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock
from thinkback.model.commits import Compaction, Draft, Usage
from thinkback.wire.values import members_of, plain

NAME = "opencode"
_BOOKKEEPING = frozenset({"step-start", "snapshot", "patch", "agent", "compaction", "subtask", "retry"})
_ENDED = ("completed", "error")
_IDS = ("sessionID", "messageID")
_SESSION = re.compile(rb'"id": *"ses_')


def read(source: Source) -> Read:
    """The sessions of a database, or that of a file."""
    notes = Notes()
    messages: dict[str, list[dict[str, Any]]] = defaultdict(list)
    parts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in source.tables.get("message", ()):
        messages[_within(row, "session_id")].append(_row(row, notes))
    for row in source.tables.get("part", ()):
        parts[_within(row, "message_id")].append(_row(row, notes))
    for _ in source.tables.get("session_message", ()):
        notes.add("a message of a newer form")
    sessions = [_about(row, notes) if "within" in row else row for row in source.tables.get("session", ())]
    found = (_session(row, messages[plain(row.get("id"))], parts, notes) for row in sessions)
    return Read(tuple(each for each in found if each.id and each.entries), notes.left())


def _within(row: Mapping[str, Any], column: str) -> str:
    return plain(row.get(column)) or plain(row.get("within"))


def _row(row: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """What a row says, as the database has it: a file says its ids too."""
    said = object_of(row.get("data"))
    if "within" in row:
        if not said:
            notes.add("a damaged file")
        said = {key: value for key, value in said.items() if key not in _IDS}
    return {**said, "id": plain(row.get("id")), "created": row.get("time_created")}


def _about(row: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """A file of a session as its row."""
    said = _row(row, notes)
    return {**said, "parent_id": said.get("parentID"), "time_created": _created(said)}


def _session(
    row: Mapping[str, Any],
    messages: list[dict[str, Any]],
    parts: Mapping[str, list[dict[str, Any]]],
    notes: Notes,
) -> History:
    made = _Session(plain(row.get("id")), notes)
    for message in sorted(messages, key=lambda message: (_created(message), message["id"])):
        made.take(message, sorted(parts.get(message["id"], ()), key=lambda part: part["id"]))
    title = plain(row.get("title"))
    entries, directory = tuple(made.entries), plain(row.get("directory"))
    created, parent = microseconds(row.get("time_created")), plain(row.get("parent_id"))
    cost = round(made.cost * 1_000_000) or None
    return History(made.id, entries, made.tip, title, directory, created, parent, title if parent else "", cost)


def _created(message: dict[str, Any]) -> int:
    return microseconds(members_of(message.get("time")).get("created") or message["created"])


class _Session:
    """A session as it is put together."""

    def __init__(self, id: str, notes: Notes) -> None:
        self.id = id
        self.entries: list[Entry] = []
        self.tip = ""
        self.cost = 0.0
        self._notes = notes
        self._seen: set[str] = set()

    def take(self, message: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        """A message."""
        role, time, id = plain(message.get("role")), _created(message), message["id"]
        if not id or id in self._seen:
            self._notes.add("a message without an id of its own")
            return
        self._seen.add(id)
        if role == "user":
            self._put(id, time, self._message_drafts(parts))
        elif role == "assistant":
            self._answers(id, time, message, parts)
        else:
            self._notes.add(f"message of {role or 'nobody'}")

    def _put(self, id: str, time: int, drafts: Iterable[Draft]) -> None:
        held = tuple(drafts)
        if held:
            self.entries.append(Entry(id, self.tip, time, held))
            self.tip = id

    def _message_drafts(self, parts: list[dict[str, Any]]) -> list[Draft]:
        """What the person said, in one message; what the program added stands beside it."""
        own: list[object] = []
        beside: list[Draft] = []
        for part in parts:
            kind = plain(part.get("type"))
            if kind == "text" and part.get("synthetic") is True:
                beside.append(aside(f"{NAME} context", text_of(part.get("text"))))
            elif kind == "text":
                own.append({"text": text_of(part.get("text"))})
            elif kind == "file" and plain(part.get("url")).startswith("data:"):
                own.append({"image_url": part["url"]})
            elif kind == "file":
                beside.append(aside(f"{NAME} file", plain(part.get("filename")), _bare(part)))
            else:
                self._notes.add(f"part {kind or 'without a type'}")
        return [*(content_drafts(own, NAME) if own else ()), *beside]

    def _answers(self, id: str, time: int, message: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        answer, results, step = _begun(message), list[Draft](), 0
        for part in parts:
            kind = plain(part.get("type"))
            if kind == "step-finish":
                answer.usage, answer.finish = _usage(part.get("tokens")), plain(part.get("reason"))
                self._step(f"{id}.{step}", time, answer, results)
                answer, results, step = _begun(message), [], step + 1
            elif kind in ("text", "reasoning", "tool", "file"):
                answer.blocks.append(_block(kind, part))
                results += _results(part) if kind == "tool" else []
            elif kind in _BOOKKEEPING:
                self._notes.add(f"part {kind}")
            else:
                self._notes.add(f"part {kind or 'without a type'}")
        failed = members_of(message.get("error"))
        if failed:
            data = members_of(failed.get("data"))
            answer.error = plain(data.get("message")) or plain(failed.get("name")) or canonical.source(failed)
        if answer.blocks or answer.error:
            answer.usage = _usage(message.get("tokens")) if not step else None
            self._step(f"{id}.{step}", time, answer, results)
        if message.get("summary") is True:
            text = "\n".join(text_of(part.get("text")) for part in parts if part.get("type") == "text")
            self._put(f"{id} summary", time, [Draft("compaction", Compaction("model", text, reason=NAME))])
        cost = message.get("cost")
        if isinstance(cost, int | float) and 0 <= cost < 1e9:
            self.cost += cost

    def _step(self, id: str, time: int, answer: Answer, results: list[Draft]) -> None:
        self._put(id, time, answer.drafts(NAME, self.id, id))
        self._put(f"{id} results", time, results)


def _begun(message: dict[str, Any]) -> Answer:
    return Answer(model=plain(message.get("modelID")), id=message["id"])


def _usage(raw: object) -> Usage | None:
    tokens = members_of(raw)
    cache = members_of(tokens.get("cache"))
    if number(tokens.get("input")) is None and number(tokens.get("output")) is None:
        return None
    return Usage(
        tokens.get("input"),
        tokens.get("output"),
        tokens.get("reasoning"),
        cache.get("read"),
        cache.get("write"),
        ("cache_beside_input", "reasoning_beside_output"),
        canonical.source(tokens),
    )


def _block(kind: str, part: dict[str, Any]) -> Block:
    match kind:
        case "text":
            return Text(text_of(part.get("text")))
        case "reasoning":
            return _thought(part)
        case "tool":
            return call(part.get("callID"), part.get("tool"), members_of(part.get("state")).get("input"))
        case _:
            url = plain(part.get("url"))
            return Media(plain(part.get("mime")) or "*/*", url=url, name=plain(part.get("filename")))


def _thought(part: dict[str, Any]) -> ThinkingBlock:
    """Reasoning with what its provider adds, also word for word."""
    words, about = text_of(part.get("text")), members_of(part.get("metadata"))
    signature, carriers = "", list[Carrier]()
    for fields in map(members_of, about.values()):
        signature = signature or plain(fields.get("signature"))
        if sealed := plain(fields.get("reasoningEncryptedContent")):
            carriers.append(Carrier("encrypted", sealed))
        if item := plain(fields.get("itemId")):
            carriers.append(Carrier("item_id", item))
        if redacted := plain(fields.get("redactedData")):
            carriers.append(Carrier("redacted", redacted))
        if tied := plain(fields.get("thoughtSignature")):
            carriers.append(Carrier("thought_signature", tied))
    kind = "raw" if words else "none"
    wire = canonical.source(_bare(part)) if about else ""
    return ThinkingBlock(words, False, "reasoning", signature, kind, carriers=tuple(carriers), wire=wire)  # type: ignore[arg-type]


def _results(part: dict[str, Any]) -> list[Draft]:
    state = members_of(part.get("state"))
    status = plain(state.get("status"))
    if status not in _ENDED:
        return []
    given = state.get("output") if status == "completed" else state.get("error")
    return [result(part.get("callID"), given, part.get("tool"), is_error=status == "error")]


def _bare(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "created"}


def _is_own(head: bytes) -> bool:
    return head.startswith(b"SQLite format 3\0") or (head.startswith(b"{") and _SESSION.search(head) is not None)


FORMAT = Format(
    NAME,
    read,
    _is_own,
    home=".local/share",
    variable="XDG_DATA_HOME",
    folders=(NAME,),
    endings=("opencode.db",),
    tables=("session", "message", "part", "session_message"),
    documents=("session", "message", "part"),
)
