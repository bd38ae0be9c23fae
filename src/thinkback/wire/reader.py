"""What the response readers of all dialects share: bytes to payloads, and the ways in which a body ends.

Promises, whatever the dialect: nothing is read behind an error, and the first failure stays; the last event of a
stream is read although its end is missing, and is cut off rather than malformed if it cannot be; a body that its
framing finds corrupt is malformed. Must not: know what a payload says.

A base class because a reader is state over time, and this half of the state is the same in each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from thinkback.model.blocks import Block, Origin
from thinkback.model.commits import Failure
from thinkback.model.deltas import Delta
from thinkback.wire.documents import read_object
from thinkback.wire.framing import FRAMERS, Framer, Framing
from thinkback.wire.halves import Halves
from thinkback.wire.placeholders import Placeholders
from thinkback.wire.result import AS_BUILT, ReadOptions
from thinkback.wire.tagging import Tagging, split

_MOST_VALUES = 1_000_000
_TOO_MANY = Failure(f"a part of the response has more than {_MOST_VALUES:,} values", type="malformed")


class _Part(Protocol):
    """One block to be."""

    def block(self) -> Block: ...


class BodyReader:
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response.

    A dialect brings ``_read``, which reads complete payloads until one sets ``_error``; ``_take``, the deltas since
    the last time, and ``_begun`` (mostly those of its accumulator, with no call in between); and ``result``.
    """

    _read: Callable[[list[bytes]], None]
    _take: Callable[[], list[Delta]]
    # The parts of the response that have begun.
    _begun: Sequence[_Part]
    # What a stream consists of, as its failures call it.
    _unit = "an event"
    # Set where the dialect's texts are blocks of their own, and its builders look for no tags in them.
    _tagging: Tagging | None = None
    # Set where hosts show placeholders for reasoning, and its builders mark them.
    _placeholders: Placeholders | None = None

    def __init__(self, origin: Origin, framing: Framing) -> None:
        self._origin = origin
        self._framing = framing
        self._framer: Framer = FRAMERS[framing]()
        # No payload to come is longer than what was fed since the last one was complete.
        self._fed = 0
        self._finish: str | None = None
        self._is_whole = False
        self._tail: Failure | None = None
        self._halves = Halves()
        # Whether half a letter may stand at the end of a delta. Typed decoders refuse it.
        self._may_be_cut = False
        self._error: Failure | None = None

    def feed(self, data: bytes) -> list[Delta]:
        """The deltas that ``data`` completes."""
        if self._error is not None:
            return []
        payloads = self._framer.feed(data)
        self._fed += len(data)
        if not payloads:
            return []
        if self._fed > _MOST_VALUES and _have_too_many_values(payloads):
            self._error = _TOO_MANY
            return []
        self._fed = len(data)
        self._read(payloads)
        deltas = self._take()
        if self._may_be_cut:
            deltas = self._halves.joined(deltas)
            self._may_be_cut = self._halves.held is not None
        return self._shown(deltas)

    def close(self) -> list[Delta]:
        """The body has ended: whatever was held back is read and released."""
        rest = self._framer.close()
        self._error = self._error or self._fault()
        if self._error is None and _have_too_many_values(rest):
            self._error = _TOO_MANY
        if self._error is None and self._framing == "json":
            for document in rest:
                self._read_document(document)
        elif self._error is None:
            self._read(rest)
            if self._error is not None and self._error.type == "malformed":
                # The last event had no end: it is cut off rather than malformed.
                self._tail = Failure(f"the stream ended in the middle of {self._unit}", type="truncated")
                self._error = None
        self._release()
        deltas = self._take()
        if self._may_be_cut:
            deltas = [*self._halves.joined(deltas), *self._halves.released()]
        shown = self._shown(deltas, is_last=True)
        return shown if self._tagging is None else self._tagging.end()

    def fail(self, failure: Failure) -> None:
        """The connection broke or the caller stopped reading; the first failure stays."""
        self._error = self._error or self._fault() or failure

    @property
    def finish(self) -> str | None:
        """Why the response ended, in the provider's word; ``None`` while it gave none."""
        return self._finish or None

    def block(self, index: int) -> Block | None:
        """The block at ``index`` as far as it has come; ``None`` where none was begun."""
        if self._tagging is not None and self._tagging.finds:
            blocks = self._split([part.block() for part in self._begun])
            return blocks[index] if 0 <= index < len(blocks) else None
        return self._begun[index].block() if 0 <= index < len(self._begun) else None

    def _look_for_tags(self, options: ReadOptions | None, response: str) -> None:
        """Have reasoning between tags told from the texts that were begun."""
        where = (options or AS_BUILT).tags
        if where != "off":
            self._tagging = Tagging(where, self._begun, response)

    def _shown(self, deltas: list[Delta], *, is_last: bool = False) -> list[Delta]:
        held = self._placeholders
        if held is not None:
            deltas = held.without(deltas)
            if is_last:
                deltas += held.rest()
        return deltas if self._tagging is None else self._tagging.show(deltas)

    def _split(self, blocks: Sequence[Block]) -> list[Block]:
        """``blocks`` with the reasoning between tags apart from the text it stood in."""
        return list(blocks) if self._tagging is None else split(blocks, self._tagging.where)

    def _read_document(self, payload: bytes) -> None:
        """A body that is one JSON document."""
        self._read([payload])

    def _release(self) -> None:
        """Nothing more will come: what waited for more is shown as it is."""

    def _fault(self) -> Failure | None:
        fault = self._framer.fault
        return Failure(fault, type="malformed") if fault else None

    def _unfinished(self) -> Failure | None:
        """Why the response is incomplete although nothing said so outright."""
        return None if self.finish or self._is_whole else self._broken_off()

    def _broken_off(self) -> Failure:
        return self._tail or Failure("the stream ended before the response was finished", type="truncated")

    def _object(self, payload: bytes) -> dict[str, Any] | None:
        """The object that ``payload`` is; ``None`` after setting the error where it is none that can be used."""
        read = read_object(payload)
        if isinstance(read, Failure):
            self._error = read
            return None
        body, may_be_cut = read
        self._may_be_cut = self._may_be_cut or may_be_cut
        return body


def _have_too_many_values(payloads: Sequence[bytes]) -> bool:
    """Whether one would take a hundred times its size as values. What stands in texts counts as well: a text of that
    many commas is longer than any that a model writes.
    """
    large = (payload for payload in payloads if len(payload) > _MOST_VALUES)
    return any(sum(map(payload.count, (b",", b"[", b"{"))) > _MOST_VALUES for payload in large)
