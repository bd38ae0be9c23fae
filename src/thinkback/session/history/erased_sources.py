"""Which sources of imported sessions were erased here, so that a second import leaves them out.

Promises: of a source nothing is kept but a hash, keyed for this log. It stands in what the log says of a session
without commits, which is the last in every list; who deletes that session takes the memory back.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

import msgspec

from thinkback.log.protocol import About, SessionInfo, Store
from thinkback.settings.registry import IMPORTED

NAME = "erased-imports"
"""The name and id of the session."""
FILE = "file:"
"""How a source begins that is the path of a file."""


class Memory(msgspec.Struct, frozen=True):
    """The key of a log, and the hashes of what was erased."""

    key: str = ""
    hashes: tuple[str, ...] = ()

    def holds(self, source: str) -> bool:
        """Whether a source was erased."""
        return self.key != "" and _hash(self.key, source) in self.hashes


def recall(log: Store) -> Memory:
    """What is remembered."""
    found = log.find_session(NAME)
    if found is None or found.id != NAME:
        return Memory()
    key, *hashes = log.summaries([found.id])[found.id].about.sources or ("",)
    return Memory(key, tuple(hashes))


def sources_of(log: Store, sessions: Iterable[SessionInfo]) -> list[str]:
    """Of which sources sessions were made that were imported."""
    ids = [info.id for info in sessions if IMPORTED in info.settings]
    summaries = log.summaries(ids) if ids else {}
    sources = [source for id in ids if id in summaries for source in summaries[id].about.sources]
    return [source for source in sources if not source.startswith(FILE)]


def files_of(log: Store) -> dict[str, list[str]]:
    """The files that imported sessions were read from, by the ids of the sessions."""
    sources = {id: summary.about.sources for id, summary in log.summaries().items() if id != NAME}
    return {id: [each.removeprefix(FILE) for each in held if each.startswith(FILE)] for id, held in sources.items()}


def remember(log: Store, sources: Iterable[str], before: Memory) -> None:
    """Add ``sources`` to what was remembered ``before``; nothing is made where there are none."""
    held = [*sources]
    if not held and not before.hashes:
        return
    key = before.key or secrets.token_hex(16)
    hashes = dict.fromkeys((*before.hashes, *(_hash(key, source) for source in held)))
    info = log.create_session(NAME, NAME, 0)
    if info.id == NAME:
        log.describe(info.id, About(sources=(key, *hashes)))


def _hash(key: str, source: str) -> str:
    return hmac.new(key.encode(), source.encode(), hashlib.sha256).hexdigest()[:32]
