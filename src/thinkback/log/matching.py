"""Finds the conversation that a request goes on with, and the responses that it echoes, by digests of what is visible.

A request is recognised by its longest beginning that is known, then message by message. Promises: a response is found
only where exactly one answers to what the message says; several are none. Must not: look up, or know where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from thinkback.log.echo_digests import (
    WINDOW,
    EchoedMessage,
    chain,
    echoed_messages,
    of_call,
    of_response,
    readings,
    window,
)
from thinkback.log.protocol import Seen, Sighting
from thinkback.model.commits import Draft

CANDIDATES = 8
"""How many responses to ask for under one digest."""

# Of how many of the model's messages, newest first, beginnings are looked up at once: mostly it is one of the first.
_FIRST, _TIMES, _MOST = 2, 8, 2048

Why: TypeAlias = Literal["unknown", "ambiguous", "repeated"]
"""Why a message has no response: none answers to it, several do, or the one that does is another message's."""


class Recognised(msgspec.Struct, frozen=True):
    """What a request echoes.

    ``base`` is the response that ends the longest known beginning, ``through`` the index of its message (-1: there is
    none). Of the model's messages behind it, ``restored`` are those found one by one, ``missing`` all others.
    """

    base: Seen | None
    through: int
    restored: dict[int, Seen]
    missing: tuple[tuple[int, Why], ...]


class Search:
    """While ``wanted`` gives digests, look them up (at most ``CANDIDATES`` of each) and ``take`` what was found.

    ``links`` is the chain of ``messages``, where it is at hand.
    """

    def __init__(self, messages: Sequence[EchoedMessage], links: Sequence[bytes] = ()) -> None:
        self._messages = messages
        self._values, *self._others = readings(messages)
        self.links = links or chain(self._values)
        self._other_links = [chain(values) for values in self._others]
        self._digests: dict[int, list[bytes]] = {}
        self._windows: dict[int, list[bytes]] = {}
        self._waiting = [at for at, message in enumerate(messages) if message.speaker == "assistant"]
        self._behind: list[int] = []
        self._size = _FIRST
        self._found: dict[bytes, dict[str, Seen]] = {}
        self._base: Seen | None = None
        self._through = -1

    def wanted(self) -> list[bytes]:
        """The digests to look up next; none once everything is known that can be."""
        while self._base is None and self._waiting:
            batch = self._waiting[-self._size :]
            digests = [digest for at in batch for digest in (*self._chains(at), *self._calls(at))]
            if asked := self._unasked(digests):
                return asked
            self._settle(batch)
        left = [at for at in self._behind if self._by_calls(at) is None]
        return self._unasked(digest for at in left for digest in (*self._calls(at), *self._windows_of(at)))

    def take(self, found: Iterable[Seen]) -> None:
        """What was found under the digests that were wanted; of one response the row that comes first counts."""
        for seen in found:
            self._found[seen.digest].setdefault(seen.response, seen)

    def result(self) -> Recognised:
        """What is recognised, once nothing is wanted."""
        restored: dict[int, Seen] = {}
        missing: list[tuple[int, Why]] = []
        taken = {self._base.response} if self._base is not None else set()
        for at in sorted(self._behind):
            found = self._by_calls(at) or self._by_window(at)
            if found is None:
                several = any(self._found[digest] for digest in (*self._windows_of(at), *self._calls(at)))
                missing.append((at, "ambiguous" if several else "unknown"))
            elif found.response in taken:
                missing.append((at, "repeated"))
            else:
                restored[at] = found
                taken.add(found.response)
        return Recognised(self._base, self._through, restored, tuple(missing))

    def digests_of(self, at: int) -> list[bytes]:
        """All digests by which the response in message ``at`` may be found."""
        return [*self._chains(at), *self._calls(at), *self._windows_of(at)]

    def _settle(self, batch: Sequence[int]) -> None:
        """Find the last of these messages, which were looked up, that ends a known beginning."""
        for at in reversed(batch):
            candidates = self._all_found(self._chains(at))
            if len(candidates) > 1 and (called := self._by_calls(at)) is not None:
                candidates = {id: seen for id, seen in candidates.items() if id == called.response}
            if len(candidates) == 1:
                (self._base,) = candidates.values()
                self._through = at
                return
            self._behind.append(at)
        del self._waiting[-len(batch) :]
        self._size = min(self._size * _TIMES, _MOST)

    def _by_calls(self, at: int) -> Seen | None:
        """The one response that made all calls of a message."""
        found = [self._found.get(digest, {}) for digest in self._calls(at)]
        if not found or any(candidates.keys() != found[0].keys() for candidates in found):
            return None
        return next(iter(found[0].values())) if len(found[0]) == 1 else None

    def _calls(self, at: int) -> list[bytes]:
        """The digests of a message's calls. Like windows they are made when asked for: mostly the chain is enough."""
        if at not in self._digests:
            self._digests[at] = [of_call(call) for call in self._messages[at].calls]
        return self._digests[at]

    def _chains(self, at: int) -> list[bytes]:
        return list(dict.fromkeys((self.links[at], *(links[at] for links in self._other_links))))

    def _windows_of(self, at: int) -> list[bytes]:
        if at not in self._windows:
            found = [window(values[max(0, at - WINDOW + 1) : at + 1]) for values in (self._values, *self._others)]
            self._windows[at] = list(dict.fromkeys(found))
        return self._windows[at]

    def _by_window(self, at: int) -> Seen | None:
        found = self._all_found(self._windows_of(at))
        return next(iter(found.values())) if len(found) == 1 else None

    def _all_found(self, digests: Sequence[bytes]) -> dict[str, Seen]:
        """What answers to any of ``digests``."""
        if len(digests) == 1:
            return self._found.get(digests[0], {})
        return {id: seen for digest in reversed(digests) for id, seen in self._found.get(digest, {}).items()}

    def _unasked(self, digests: Iterable[bytes]) -> list[bytes]:
        """The first of those that were not looked up yet; from now on they were."""
        asked = [digest for digest in dict.fromkeys(digests) if digest not in self._found][:_MOST]
        self._found.update((digest, {}) for digest in asked)
        return asked


def recognise(messages: Sequence[EchoedMessage], lookup: Callable[[list[bytes]], Iterable[Seen]]) -> Recognised:
    """What is recognised of a request by what ``lookup`` finds under digests."""
    search = Search(messages)
    while digests := search.wanted():
        search.take(lookup(digests))
    return search.result()


def sightings(
    scope: bytes,
    asked: Sequence[Draft],
    messages: Sequence[EchoedMessage],
    answer: Sequence[Draft],
    id: str = "",
    links: Sequence[bytes] = (),
) -> list[Sighting]:
    """By what the response in ``answer`` is found when it comes back behind what was ``asked``.

    ``messages`` is what is visible of ``asked``, ``links`` their chain where it is at hand. Calls have the ids that the
    client was given, and so has the response, if it got an ``id``. Nothing where nothing of it is visible.
    """
    response = answer[-1].response if answer else ""
    before = list(messages)
    if before and before[-1].speaker == "assistant":
        answer = [*(asked[at] for at in before.pop().at), *answer]
    digests = [of_response(id)] if id else []
    for last in echoed_messages(answer):
        for at, values in enumerate(readings(before)):
            link = links[len(before) - 1] if links and before and not at else b"".join(chain(values)[-1:])
            digests += [chain([last.value], link)[0], window([*values[1 - WINDOW :], last.value])]
        digests += [of_call(call) for call in last.calls]
    return [Sighting(scope, digest, response) for digest in dict.fromkeys(digests)]
