"""What a reader gives: sessions of entries, and what was left out; and what a format is.

Promises: the same bytes give the same values, ids included, so that a second import finds what the first one stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin, ToolCall
from thinkback.model.commits import (
    Compaction,
    Content,
    Draft,
    Failure,
    Message,
    Priority,
    Response,
    TurnEnded,
    Usage,
    block_draft,
)
from thinkback.rules.urls import server_of

_KINDS, _WORDS = 100, 80
"""Kinds of things that are left out of a file, and characters of each."""


class Entry(msgspec.Struct, frozen=True):
    """What a source has under one id: a message, a whole response, a result. ``parent`` is the id of the entry before
    it, empty at the beginning; ``time`` is in microseconds UTC, 0 where the source says none. The ``last`` of a
    ``Compaction`` in it is the id of the last entry that it stands for, empty for the one before it.
    """

    id: str
    parent: str
    time: int
    drafts: tuple[Draft, ...]


class History(msgspec.Struct, frozen=True):
    """A session of another program. ``id`` is the program's own, ``parent`` that of the session whose sub-agent it is;
    ``tip`` is the entry it stands at, ``cost`` in millionths of a US dollar as the program counted it.
    """

    id: str
    entries: tuple[Entry, ...]
    tip: str
    title: str = ""
    directory: str = ""
    created: int = 0
    parent: str = ""
    purpose: str = ""
    cost: int | None = None


class Left(msgspec.Struct, frozen=True):
    """What was not taken in: how often, and in which line first (0: no line)."""

    what: str
    count: int
    line: int = 0


class Read(msgspec.Struct, frozen=True):
    """What a reader found."""

    sessions: tuple[History, ...]
    left: tuple[Left, ...] = ()


class Source(msgspec.Struct, frozen=True):
    """A file as a reader gets it: ``name`` is its path below the program's folder; ``lines`` are its lines, where one
    that is very long comes in several pieces; ``tables`` are rows of a database, by the name of their table. Of a
    document a row has its ``id``, the id that it is ``within``, and its text as ``data``.
    """

    name: str
    lines: Iterable[bytes] = ()
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = {}


class Format(msgspec.Struct, frozen=True):
    """A program's histories. ``home`` is its folder below the person's, which the variable ``variable`` may name
    instead; ``folders`` are where histories are in it, ``endings`` how their files are called. Without a ``home`` a
    person names the file.

    ``tables`` are those that are read of a database, where it has them; what is no database has none. ``documents`` are
    the first of them where they are folders of JSON files instead, each file in one that is named after what it belongs
    to: ``documents[1]/ID/*.json`` belong to ``documents[0]/*/ID.json``, which is the file of a history. ``is_own``
    tells by the first bytes of a file whether it is one. ``has_ids``: its entries have ids of their own; else they go
    by their content (``by_content``), as their place in a file is no id.
    """

    name: str
    read: Callable[[Source], Read]
    is_own: Callable[[bytes], bool]
    home: str = ""
    variable: str = ""
    folders: tuple[str, ...] = ("",)
    endings: tuple[str, ...] = (".jsonl",)
    tables: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    has_ids: bool = True


class Line:
    """The entries of a session whose messages follow one another."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._ids: set[str] = set()

    @property
    def tip(self) -> str:
        """The last entry."""
        return self.entries[-1].id if self.entries else ""

    def put(self, id: str, time: int, drafts: Iterable[Draft]) -> None:
        """One more, where there is something to say; an id that is taken gets its place behind it."""
        held = tuple(drafts)
        if held:
            own = id if id not in self._ids else f"{id} {len(self.entries)}"
            self.entries.append(Entry(own, self.tip, time, held))
            self._ids.add(own)


class Notes:
    """What a reader leaves out, counted by what it is: of kinds that a file invents no more than some."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, int]] = {}

    def add(self, what: str, line: int = 0) -> None:
        """One more of it."""
        what = what[:_WORDS]
        if what not in self._found and len(self._found) >= _KINDS:
            what = "things of other kinds"
        count, first = self._found.get(what, (0, line))
        self._found[what] = (count + 1, first)

    def left(self) -> tuple[Left, ...]:
        """All of it, as first met."""
        return tuple(Left(what, count, line) for what, (count, line) in self._found.items())


class Answer(msgspec.Struct):
    """A response as it is put together: one entry, however many records of the source it stands in.

    ``dialect`` is the one that its blocks are written in, empty where nobody knows; ``server`` is who made it, where
    the source says that. ``content``, ``message`` and ``repeats`` are those of a ``Response``.
    """

    blocks: list[Block] = []
    model: str = ""
    id: str = ""
    finish: str = ""
    usage: Usage | None = None
    error: str = ""
    dialect: str = ""
    server: str = ""
    content: Literal["absent", "null", "text"] = "absent"
    message: str = ""
    repeats: tuple[str, ...] = ()

    def drafts(self, program: str, session: str, entry: str) -> tuple[Draft, ...]:
        """Its commits. Its id is made of the source's ids; one without calls ends its turn."""
        key = key_of(program, session, entry)
        has_calls = any(isinstance(block, ToolCall) for block in self.blocks)
        header = Response(
            Origin(self.dialect, self.server, self.model, self.model),
            id=self.id,
            finish=self.finish or None,
            complete=not self.error,
            content=self.content,
            message=self.message,
            repeats=self.repeats,
            error=Failure(self.error) if self.error else None,
            blocks=len(self.blocks),
            outcome="failed" if self.error else "tool_calls" if has_calls else "answered",
        )
        ended = TurnEnded("failed" if self.error else "completed", "imported")
        return (
            Draft("response", header, key),
            *(block_draft(block, key, at) for at, block in enumerate(self.blocks)),
            *([Draft("provider_usage", self.usage, key)] if self.usage is not None else []),
            *([] if has_calls else [Draft("turn_ended", ended)]),
        )


def key_of(*names: str) -> str:
    """The id of a response here, made of what the source calls it."""
    return canonical.digest("\0".join(names).encode("utf-8", "surrogatepass"))[:24]


def by_content(history: History, program: str) -> History:
    """The history with entries that are called by what they say, and when; of equal ones the later has a number."""
    ids, taken = {"": ""}, Counter[str]()
    entries = []
    for entry in history.entries:
        digest = key_of(str(entry.time), *_content_id(entry.drafts))
        taken[digest] += 1
        id = ids[entry.id] = digest if taken[digest] == 1 else f"{digest} {taken[digest]}"
        key = key_of(program, history.id, id)
        drafts = (msgspec.structs.replace(each, response=key if each.response else "") for each in entry.drafts)
        entries.append(Entry(id, ids[entry.parent], entry.time, tuple(_renamed(each, ids) for each in drafts)))
    return msgspec.structs.replace(history, entries=tuple(entries), tip=ids[history.tip])


def _content_id(drafts: Sequence[Draft]) -> Iterator[str]:
    """Identify an entry that has no id: a response by its first block, as more of them may follow."""
    for draft in [each for each in drafts if each.index == 0] or drafts:
        id = next((each.value for each in getattr(draft.value, "carriers", ()) if each.kind == "item_id"), "")
        yield draft.kind
        yield id or canonical.encode(draft.value).decode()


def _renamed(draft: Draft, ids: Mapping[str, str]) -> Draft:
    """A checkpoint with the entry that it names."""
    if not isinstance(draft.value, Compaction):
        return draft
    return msgspec.structs.replace(draft, value=msgspec.structs.replace(draft.value, last=ids[draft.value.last]))


def placed(
    draft: Draft, program: str, vouched: Origin | None = None, *, counts: bool = True, source: str = ""
) -> Draft:
    """A draft as it may be stored: with an origin that nothing opaque, and nothing word for word, goes back by, and the
    ``source`` of what was spoken.

    ``vouched`` is the place that a person vouched for; what was written in another dialect, or made by a server that
    the source calls by another name, is not from there. Usage names the program where it ``counts``.
    """
    value = draft.value
    if isinstance(value, Message | Content | Compaction):
        return msgspec.structs.replace(draft, value=msgspec.structs.replace(value, source=source))
    if isinstance(value, Usage) and counts:
        return msgspec.structs.replace(draft, value=msgspec.structs.replace(value, program=program))
    if not isinstance(value, Response):
        return draft
    origin = Origin(program, "", value.origin.requested_model, value.origin.served_model)
    made_by = value.origin.endpoint
    is_there = vouched is not None and (not made_by or server_of(made_by) == server_of(vouched.endpoint))
    if vouched is not None and is_there and vouched.dialect == value.origin.dialect:
        model = value.origin.requested_model
        origin = msgspec.structs.replace(vouched, requested_model=model, served_model=model)
    return msgspec.structs.replace(draft, value=msgspec.structs.replace(value, origin=origin))


def aside(what: str, text: str, data: object = None) -> Draft:
    """What a program put beside the conversation: to be looked at and found, never sent to a model."""
    source = canonical.source(data) if data is not None else ""
    return Draft("content", Content(what, text, "user", Priority.SKIP, data=source))
