"""Sources, sessions and entries that were erased here, so that no import brings them back.

Promises: nothing of them is kept but hashes, keyed for this log. They stand in a session that no list shows: the key
and the sources of imported sessions in what the log says of it, sessions and entries in its commits, so that an
erasure costs the same after any number of others. Who deletes that session takes the memory back.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import TypeGuard

import msgspec

from thinkback.errors import HeadMovedError
from thinkback.log.protocol import ERASED_MEMORY, EXPORT_SOURCE, About, SessionInfo, Store
from thinkback.log.seal import seal
from thinkback.model import canonical
from thinkback.model.blocks import Unknown
from thinkback.model.commits import Commit, Compaction, Content, Draft, Erased, Head, Kind, Message, Payload, Step
from thinkback.session.ids import new_id
from thinkback.settings.registry import IMPORTED

REASON = "erased here before"
"""The reason in place of what an import would have brought back."""
FILE = "file:"
"""How a source begins that is the path of a file."""


_SPOKEN: frozenset[Kind] = frozenset(
    {"user", "content", "compaction", "assistant", "reasoning", "tool_call", "tool_result", "branch_summary", "media"}
)
"""Kinds of commits that say something; what is left of the others says nothing without them."""
_SHORT = 100
"""Bytes of a payload that says the same as another one by chance: those are known together with their time."""
_BYTES = 12
"""Of the hash of an entry."""


class Memory(msgspec.Struct, frozen=True):
    """The key of a log, and the hashes of what was erased."""

    key: str = ""
    hashes: tuple[str, ...] = ()
    entries: frozenset[bytes] = frozenset()

    def holds(self, source: str) -> bool:
        """Tell if a source was erased."""
        return self.key != "" and _hash(self.key, source) in self.hashes

    def holds_session(self, id: str) -> bool:
        """Tell if the session of an id was deleted."""
        return bool(self.entries) and _session_hash(self.key, id) in self.entries

    def tombstone(self, commit: Commit) -> Commit:
        """Return the commit, or with its hash the tombstone of one that was erased here, wherever it stood."""
        if not self.entries or commit.kind not in _SPOKEN or isinstance(commit.value, Erased):
            return commit
        if _entry_hash(self.key, commit) not in self.entries:
            return commit
        # Of the commit's own time, so that each import makes the same of it.
        stone = Erased(REASON, commit.time, source=commit.value.source if _is_sourced(commit.value) else "")
        return msgspec.structs.replace(commit, value=stone, payload=canonical.encode(stone))


NOTHING_ERASED = Memory()


def recall(log: Store, *, entries: bool = False) -> Memory:
    """Read the memory; with ``entries`` sessions and entries, too."""
    found = log.find_session(ERASED_MEMORY)
    if found is None or found.id != ERASED_MEMORY:
        return NOTHING_ERASED
    key, *hashes = log.summaries([found.id])[found.id].about.sources or ("",)
    held = frozenset(_entries_in(log.read(ERASED_MEMORY))) if entries else frozenset()
    return Memory(key, tuple(hashes), held)


def _entries_in(line: Iterable[Commit]) -> Iterable[bytes]:
    for commit in line:
        if isinstance(commit.value, Unknown):
            held = base64.b64decode(canonical.decode(commit.value.wire.encode(), str))
            yield from (held[at : at + _BYTES] for at in range(0, len(held), _BYTES))


def remember_entries(log: Store, commits: Iterable[Commit], sessions: Iterable[SessionInfo] = ()) -> None:
    """Remember commits that are to be erased, and sessions that are to be deleted: to be called before it happens."""
    spoken = [each for each in commits if each.kind in _SPOKEN and not isinstance(each.value, Erased)]
    deleted = [info for info in sessions if info.id != ERASED_MEMORY]
    if not spoken and not deleted:
        return
    key = _key(log)
    hashes = dict.fromkeys(
        [*(_session_hash(key, info.id) for info in deleted), *(_entry_hash(key, each) for each in spoken)]
    )
    wire = canonical.string(base64.b64encode(b"".join(hashes)).decode()).decode()
    while True:
        info = log.find_session(ERASED_MEMORY)
        head = log.refs.list(ERASED_MEMORY)[0].head if info is not None else Head()
        try:
            log.append(ERASED_MEMORY, new_id(), seal(Step("", (Draft("other", Unknown(wire)),), 0), head), head)
        except HeadMovedError:
            continue  # somebody else erased at the same time
        return


def _key(log: Store) -> str:
    """Return the key of the log's memory, made if there is none."""
    key = recall(log).key
    if not key:
        key = secrets.token_hex(16)
        if log.create_session(ERASED_MEMORY, ERASED_MEMORY, 0).id == ERASED_MEMORY:
            log.describe(ERASED_MEMORY, About(sources=(key,)))
    return key


def _session_hash(key: str, id: str) -> bytes:
    return _mac(key, f"session\0{id}")[:_BYTES]


def _entry_hash(key: str, commit: Commit) -> bytes:
    """Hash what a commit says, without the id that its source had for it."""
    value = commit.value
    said = canonical.encode(msgspec.structs.replace(value, source="")) if _is_sourced(value) else commit.payload
    when = commit.time if len(said) <= _SHORT else ""
    return _mac(key, f"{commit.kind}\0{canonical.digest(said)}\0{when}")[:_BYTES]


def _is_sourced(value: Payload) -> TypeGuard[Message | Content | Compaction]:
    return isinstance(value, Message | Content | Compaction)


def sources_of(log: Store, sessions: Iterable[SessionInfo]) -> list[str]:
    """Of which sources sessions were made that were imported."""
    ids = [info.id for info in sessions if IMPORTED in info.settings]
    summaries = log.summaries(ids) if ids else {}
    sources = [source for id in ids if id in summaries for source in summaries[id].about.sources]
    return [source for source in sources if not source.startswith(FILE) and source != EXPORT_SOURCE]


def files_of(log: Store, sessions: Iterable[SessionInfo]) -> dict[str, list[str]]:
    """The files that sessions were read from, by the ids of the sessions."""
    ids = [info.id for info in sessions if info.id != ERASED_MEMORY]
    sources = {id: summary.about.sources for id, summary in (log.summaries(ids) if ids else {}).items()}
    return {id: [each.removeprefix(FILE) for each in held if each.startswith(FILE)] for id, held in sources.items()}


def remember(log: Store, sources: Iterable[str]) -> None:
    """Remember ``sources``, too; nothing is made where there are none."""
    held = [*sources]
    if held:
        key = _key(log)
        hashes = dict.fromkeys((*recall(log).hashes, *(_hash(key, source) for source in held)))
        log.describe(ERASED_MEMORY, About(sources=(key, *hashes)))


def _hash(key: str, source: str) -> str:
    return _mac(key, source).hex()[:32]


def _mac(key: str, text: str) -> bytes:
    return hmac.new(key.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
