"""``ConversationStore``: pydantic-ai's conversations in the log.

A conversation is a session of its id. An entry is a step with a note; the record is a note as well, behind the entries
that are stored with it, in the same transaction. The record in force is the last one on the current branch.

Promises: entries and records come back equal; a save goes by the revision that it was loaded with, and of two at once
one is a conflict that leaves nothing behind; what a conversation leaves, or deletes, stays in the log.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import conversation_store as host
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from thinkback.adapters.framework_log import FrameworkLog, Note, note, noted, notes, whole_steps
from thinkback.adapters.open_logs import Log
from thinkback.adapters.pydantic_ai.messages import NAME, WORDS, drafts_of
from thinkback.drive.clock import now
from thinkback.errors import HeadMovedError, NotFoundError, SettingError, StoreError
from thinkback.log.protocol import About, Durability, Origin, SessionInfo
from thinkback.model import canonical
from thinkback.model.blocks import Origin as Minted
from thinkback.model.commits import Commit, Draft, Head
from thinkback.rules.book import UNKNOWN
from thinkback.rules.urls import normalise_url, server_of
from thinkback.session.ids import new_id
from thinkback.turn.orphans import last_system
from thinkback.wire.values import members_of, plain

_ENTRY, _RECORD, _DELETED = "entry", "record", "deleted"
_PLACES = 65_536
_TOLD = 256
_RECORDS: TypeAdapter[host.ConversationRecord] = TypeAdapter(host.ConversationRecord)


class _Place(NamedTuple):
    """Where an entry is: its note is the commit ``head`` of the family of ``session``."""

    session: str
    head: Head


class _State(NamedTuple):
    """A conversation: its session, the record in force, whether it ever had one, and the entry at its end."""

    info: SessionInfo
    record: host.ConversationRecord | None
    is_ours: bool
    last: str | None


class ConversationStore(host.ConversationStore):
    """A store of pydantic-ai: ``ConversationStore("chats.db")``.

    ``log`` is a path, a ``postgresql://`` address (with its ``tenant``), or an open store. Deleting a conversation ends
    it for pydantic-ai; its entries stay in the log, where ``care.delete_session`` removes them.
    """

    def __init__(
        self,
        log: Log,
        *,
        tenant: str = "default",
        durability: Durability = "full",
    ) -> None:
        self._log = FrameworkLog(NAME, log, tenant=tenant, durability=durability)
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._lock = threading.Lock()
        self._told: dict[str, str] = {}

    def close(self) -> None:
        """Let go of the log. Later calls raise ``StoreError``."""
        self._log.close()

    # -- the framework's primitives ------------------------------------------------------------------------------------

    async def read_record(self, conversation_id: str) -> host.ConversationRecord | None:
        """The record of a conversation, if it is stored."""
        return await self._log.read(lambda: (state := self._state(conversation_id)) and state.record)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[host.ConversationRecord]:
        """The records, newest first."""
        return await self._log.read(lambda: self._records(scope, limit))

    async def write_record(
        self,
        record: host.ConversationRecord,
        *,
        new_entries: Sequence[host.ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record with the entries that it adds. Raises ``ConversationConflict``, and ``BusyError`` where
        somebody else has a turn under way in the session.
        """
        data = _RECORDS.dump_python(record, mode="json")
        messages = ModelMessagesTypeAdapter.dump_python([entry.message for entry in new_entries], mode="json")
        await self._log.write(lambda: self._write(record, data, new_entries, messages, expected_revision))

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """End a conversation. Its entries stay in the log. Raises ``ConversationConflict``."""
        await self._log.write(lambda: self._delete(conversation_id, expected_revision))

    async def read_entry(self, entry_id: str) -> host.ConversationEntry:
        """An entry. Raises ``LookupError``."""
        return (await self.read_history(entry_id, limit=1))[-1]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[host.ConversationEntry]:
        """The entries up to ``head_id``, or the last ``limit`` of them. Raises ``LookupError``."""
        if head_id is None or limit == 0:
            return []
        return await self._log.read(lambda: self._history(head_id, limit))

    # -- in the log's threads ------------------------------------------------------------------------------------------

    def _state(self, conversation: str) -> _State | None:
        """What is stored of a conversation; ``None`` without a session."""
        info = self._log.find(conversation)
        return None if info is None else self._read_state(info)

    def _read_state(self, info: SessionInfo) -> _State:
        found: dict[str, Any] = {}

        def enough(commits: list[Commit]) -> bool:
            found.clear()
            ends = True
            for part in reversed(list(notes(NAME, commits))):
                if not isinstance(part, Note):
                    ends = ends and all(commit.kind == "annotation" for commit in part)
                    continue
                value = members_of(part.value)
                if _ENTRY in value:
                    found.setdefault("last", value[_ENTRY] if ends else None)
                    self._keep(value[_ENTRY], _Place(info.id, part.head))
                if found.get("record") is None and info.name in (value.get(_DELETED), _id_in(value)):
                    found["record"] = value
                if len(found) == 2:
                    return True
            return False

        enough(self._log.tail(info, enough))
        value = found.get("record")
        record = _RECORDS.validate_json(canonical.encode(value[_RECORD])) if value and _RECORD in value else None
        for tip, place in members_of((value or {}).get("places")).items():
            self._keep(tip, _Place(place[0], Head(place[1], place[2])))
        return _State(info, record, value is not None, found.get("last"))

    def _records(self, scope: str | None, limit: int | None) -> list[host.ConversationRecord]:
        abouts = self._log.store.summaries()
        found: list[host.ConversationRecord] = []
        for info in self._log.store.list_sessions():
            summary = abouts.get(info.id)
            if summary is None or summary.about.program != NAME:
                continue
            record = self._read_state(info).record
            if record is not None and scope in (None, record.scope):
                found.append(record)
        found.sort(key=lambda record: record.updated_at, reverse=True)
        return found[:limit]

    def _history(self, head_id: str, limit: int | None) -> list[host.ConversationEntry]:
        place = self._place(head_id)
        if place is None:
            raise LookupError(f"there is no entry {head_id!r}")
        try:
            commits = self._window(place, limit)
        except NotFoundError as error:
            raise LookupError(f"there is no entry {head_id!r}") from error
        found = [
            (members_of(part.value), part.head)
            for part in notes(NAME, commits)
            if isinstance(part, Note) and _ENTRY in members_of(part.value)
        ]
        wanted = found if limit is None else found[-limit:]
        for value, head in wanted:
            self._keep(value[_ENTRY], _Place(place.session, head))
        messages = _messages([value["message"] for value, _ in wanted])
        return [
            host.ConversationEntry(id=value[_ENTRY], parent_id=value["parent"], message=message)
            for (value, _), message in zip(wanted, messages, strict=True)
        ]

    def _window(self, place: _Place, limit: int | None) -> list[Commit]:
        """The line that ends with an entry, or enough of its end."""
        store = self._log.store
        info = store.find_session(place.session)
        if limit is not None and info is not None and info.head.seq >= place.head.seq:
            width = 16 * (limit + 1)
            since = place.head.seq - width
            while since > -1:
                commits = store.read(info.id, since, info.branch)
                at = place.head.seq - since - 1
                if at >= len(commits) or commits[at].hash != place.head.hash:
                    break
                line = whole_steps(commits[: at + 1])
                if sum(isinstance(p, Note) and _ENTRY in members_of(p.value) for p in notes(NAME, line)) >= limit:
                    return line
                width *= 4
                since = place.head.seq - width
        return store.read_to(place.session, place.head.hash)

    def _write(
        self,
        record: host.ConversationRecord,
        data: Any,
        entries: Sequence[host.ConversationEntry],
        messages: Sequence[Any],
        expected: str | None,
    ) -> None:
        conversation = record.conversation_id
        state = self._state(conversation)
        stored = state.record if state is not None else None
        if (stored.revision if stored is not None else None) != expected:
            raise host.ConversationConflict(conversation)
        if state is not None and not state.is_ours and state.info.head.seq >= 0:
            self._refuse_foreign(state.info)
        behind = entries[0].parent_id if entries else record.head_id
        if entries and record.head_id != entries[-1].id and self._place(record.head_id or "") is None:
            raise host.ConversationConflict(conversation)
        base = Head()
        if behind is not None:
            place = self._place(behind)
            if place is None:
                raise host.ConversationConflict(conversation)
            base = place.head
            if state is None:
                made = Origin(place.session, at=place.head)
                state = self._made(conversation, made)
        if state is None:
            state = self._made(conversation, None)
        drafts = self._drafts(state, entries, messages, base)
        tips = {tip: _pointer(place) for tip in record.branches if (place := self._place(tip)) is not None}
        drafts.append(note(NAME, {_RECORD: data, "places": tips}, drafts, WORDS))
        try:
            if state.last == behind and (behind is not None or state.info.head.seq < 0):
                commits = self._log.append(state.info, drafts, state.info.head)
            else:
                commits = self._log.replace(state.info, state.info.head, base, drafts)
        except HeadMovedError:
            raise host.ConversationConflict(conversation) from None
        except NotFoundError as error:
            raise StoreError(
                f"conversation {conversation!r} cannot go on behind an entry of another one",
                details={"conversation": conversation},
                next_actions=("fork that conversation into one with a new id",),
            ) from error
        for part in notes(NAME, commits, unpack=False):
            if isinstance(part, Note) and _ENTRY in members_of(part.value):
                self._keep(part.value[_ENTRY], _Place(state.info.id, part.head))

    def _drafts(
        self, state: _State, entries: Sequence[host.ConversationEntry], messages: Sequence[Any], base: Head
    ) -> list[Draft]:
        """What the entries say, each with its note. Instructions are said where they change."""
        drafts: list[Draft] = []
        told = ""
        if base.seq >= 0 and any(message.get("instructions") for message in messages):
            before = self._told.get(entries[0].parent_id or "")
            told = (
                before if before is not None else last_system(self._log.store.read_to(state.info.id, base.hash)) or ""
            )
        for entry, message in zip(entries, messages, strict=True):
            said = drafts_of(message, entry.id, told, self._minted(plain(message.get("provider_url"))))
            told = plain(message.get("instructions")) or told
            drafts += noted(NAME, {_ENTRY: entry.id, "parent": entry.parent_id, "message": message}, said, WORDS)
        if entries:
            self._told = {**dict(list(self._told.items())[-_TOLD:]), entries[-1].id: told}
        return drafts

    def _minted(self, url: str) -> Minted | None:
        """The address of a provider, where it is one that our data knows."""
        if not url:
            return None
        try:
            given = normalise_url(url)
        except SettingError:
            return None
        endpoint = self._log.rulebook.endpoint_for_url(given)
        if endpoint.id == UNKNOWN:
            return None
        own = endpoint.base_url
        return Minted("", own if "{" not in own and server_of(own) == server_of(given) else given, "")

    def _made(self, conversation: str, origin: Origin | None) -> _State:
        about = About(program=NAME)
        self._log.store.create_session(new_id(), conversation, now(), origin, about=about)
        state = self._state(conversation)
        if state is None or state.record is not None:
            raise host.ConversationConflict(conversation)
        return state

    def _refuse_foreign(self, info: SessionInfo) -> None:
        summary = self._log.store.summaries([info.id]).get(info.id)
        if summary is None or summary.about.program != NAME:
            raise StoreError(
                f"there is a session {info.name!r} already, which is no conversation of pydantic-ai",
                details={"session": info.id},
                next_actions=("take another conversation_id",),
            )

    def _delete(self, conversation: str, expected: str) -> None:
        state = self._state(conversation)
        if state is None or state.record is None or state.record.revision != expected:
            raise host.ConversationConflict(conversation)
        try:
            self._log.append(state.info, [note(NAME, {_DELETED: conversation}, [])], state.info.head)
        except HeadMovedError:
            raise host.ConversationConflict(conversation) from None

    # -- where entries are ---------------------------------------------------------------------------------------------

    def _keep(self, entry: str, place: _Place) -> None:
        with self._lock:
            self._places[entry] = place
            self._places.move_to_end(entry)
            while len(self._places) > _PLACES:
                self._places.popitem(last=False)

    def _place(self, entry: str) -> _Place | None:
        """Where an entry is: as far as that is not in memory, the log is searched, newest session first."""
        found = self._places.get(entry)
        if not entry or (found is not None and self._log.store.find_session(found.session) is not None):
            return found
        for info in self._log.store.list_sessions():
            for line in self._lines(info):
                for part in notes(NAME, line, unpack=False):
                    if isinstance(part, Note) and members_of(part.value).get(_ENTRY) == entry:
                        place = _Place(info.id, part.head)
                        self._keep(entry, place)
                        return place
        return None

    def _lines(self, info: SessionInfo) -> Iterator[list[Commit]]:
        for branch in self._log.store.refs.list(info.id):
            yield self._log.store.read(info.id, branch=branch.name)


def _messages(values: list[Any]) -> list[ModelMessage]:
    found: list[ModelMessage]
    try:
        found = ModelMessagesTypeAdapter.validate_json(canonical.encode(values))
    except ValidationError:  # it reads no lone surrogate; where there is one, no bytes are among them
        found = ModelMessagesTypeAdapter.validate_python(values)
    return found


def _pointer(place: _Place) -> list[Any]:
    return [place.session, place.head.hash, place.head.seq]


def _id_in(value: dict[str, Any]) -> str:
    return plain(members_of(value.get(_RECORD)).get("conversation_id"))
