"""Finds the conversation that a request goes on with, and the responses that it echoes, by digests of what is visible.

A request is recognised by its longest beginning that is known, then message by message. Promises: among responses
whose whole visible history is that of the request one is always chosen, by the ids of calls that are the request's
alone, then by marks (log/twins.py), then as the newest; a message that is known by itself has a response only where
exactly one answers to it. Must not: look up, or know where.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Literal, TypeAlias

import msgspec

from thinkback.log.echo_digests import (
    WINDOW,
    EchoedMessage,
    call_ids,
    chain,
    cut,
    echoed_messages,
    narrowed,
    of_call,
    of_response,
    readings,
    window,
)
from thinkback.log.protocol import Seen, Sighting
from thinkback.log.twins import Level, Marks, levels, name_of
from thinkback.model.commits import Draft

IMPORTED_SCOPE = hashlib.sha256(b"thinkback imported\n").digest()[:16]
"""The scope of what was imported: it is no key's, and whoever has a log alone has it."""
CANDIDATES = 8
"""How many responses to ask for under one digest."""

_UNMARKED = Marks()
# Of how many of the model's messages, newest first, beginnings are looked up at once: mostly it is one of the first.
_FIRST, _TIMES, _MOST = 2, 8, 2048
# So many unknown messages may be of responses that broke off, the last ones: behind a known answer nobody asks.
_CUTS = 8

Why: TypeAlias = Literal["unknown", "ambiguous", "repeated", "another"]
"""Why a message has no response: none answers to it, several do, or the one that does is another message's or another
conversation's.
"""
BY_CALLS = "with the same ids of calls"


class Choice(msgspec.Struct, frozen=True):
    """The choice of one of ``fitting`` responses with an equal visible history; ``by`` are words for people."""

    by: str
    fitting: int

    def __str__(self) -> str:
        several = f"{self.fitting}{' or more' if self.fitting >= CANDIDATES else ''}"
        which = f"the newest {self.by}" if self.by else "the newest"
        return f"{several} conversations have these words; {which} was chosen"


class Recognised(msgspec.Struct, frozen=True):
    """What a request echoes.

    ``base`` is the response that ends the longest known beginning, ``through`` the index of its message (-1: there is
    none). Of the model's messages behind it, ``restored`` are those found one by one, ``missing`` all others;
    ``doubtful`` are those that answer to one of the missing together, newest first, and ``cuts`` responses that broke
    off where one of the missing stands. ``choice`` says how the base was chosen where several fitted; ``others`` of
    these have equal system and tools as well, and the base's name if that decided, in order.
    """

    base: Seen | None
    through: int
    restored: dict[int, Seen]
    missing: tuple[tuple[int, Why], ...]
    doubtful: dict[int, tuple[Seen, ...]] = {}
    cuts: dict[int, tuple[Seen, ...]] = {}
    choice: Choice | None = None
    others: tuple[Seen, ...] = ()


class Search:
    """While ``wanted`` gives digests, look them up (at most ``CANDIDATES`` of each) and ``take`` what was found.

    ``links`` is the chain of ``messages``, where it is at hand; ``marks`` are those of the request.
    """

    def __init__(
        self, messages: Sequence[EchoedMessage], links: Sequence[bytes] = (), marks: Marks = _UNMARKED
    ) -> None:
        self._messages = messages
        self._levels, self._name = levels(marks), name_of(marks)
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
        self._choice: Choice | None = None
        self._alternatives: tuple[Seen, ...] = ()

    def wanted(self) -> list[bytes]:
        """The digests to look up next; none once everything is known that can be."""
        while self._base is None and self._waiting:
            batch = self._waiting[-self._size :]
            digests = [digest for at in batch for digest in (*self._chains(at), *self._calls(at))]
            if asked := self._unasked(digests):
                return asked
            known = next((at for at in reversed(batch) if self._all_found(self._chains(at))), None)
            if known is not None and len(self._all_found(self._chains(known))) > 1:
                narrower = (
                    digest for by in (self._ids_at(known), *self._levels) for digest in self._narrowed(known, by)
                )
                if asked := self._unasked(narrower):
                    return asked
            self._settle(batch, known)
        left = [at for at in self._behind if self._by_calls(at) is None]
        if asked := self._unasked(digest for at in left for digest in (*self._calls(at), *self._windows_of(at))):
            return asked
        several = (at for at in left if self._by_window(at) is None and self._several(at))
        named = (self._named([*self._calls(at), *self._windows_of(at)[:1]]) for at in several)
        if asked := self._unasked(digest for digests in named for digest in digests):
            return asked
        unknown = [at for at in sorted(left, reverse=True) if not self._several(at)][:_CUTS]
        return self._unasked(digest for at in unknown for digest in self._cuts(at))

    def take(self, found: Iterable[Seen]) -> None:
        """What was found under the digests that were wanted; of one response the row that comes first counts."""
        for seen in found:
            self._found[seen.digest].setdefault(seen.response, seen)

    def result(self) -> Recognised:
        """What is recognised, once nothing is wanted."""
        restored: dict[int, Seen] = {}
        missing: list[tuple[int, Why]] = []
        doubtful: dict[int, tuple[Seen, ...]] = {}
        cuts: dict[int, tuple[Seen, ...]] = {}
        taken = {self._base.response} if self._base is not None else set()
        for at in sorted(self._behind):
            found = self._by_calls(at) or self._by_window(at) or self._by_name(at)
            if found is None and (several := self._several(at)):
                missing.append((at, "ambiguous"))
                doubtful[at] = tuple(several.values())
            elif found is None:
                missing.append((at, "unknown"))
                if broke_off := self._all_found(self._cuts(at)):
                    cuts[at] = tuple(broke_off.values())
            elif found.response in taken:
                missing.append((at, "repeated"))
            else:
                restored[at] = found
                taken.add(found.response)
        base, through, choice, others = self._base, self._through, self._choice, self._alternatives
        return Recognised(base, through, restored, tuple(missing), doubtful, cuts, choice, others)

    def digests_of(self, at: int) -> list[bytes]:
        """All digests by which the response in message ``at`` may be found."""
        return [*self._chains(at), *self._calls(at), *self._windows_of(at)]

    def _settle(self, batch: Sequence[int], known: int | None) -> None:
        """Go on from ``known``, the last of these messages that ends a known beginning, if one does."""
        self._behind += [at for at in reversed(batch) if known is None or at > known]
        if known is not None:
            self._base, self._choice = self._chosen(known)
            self._through = known
            return
        del self._waiting[-len(batch) :]
        self._size = min(self._size * _TIMES, _MOST)

    def _chosen(self, at: int) -> tuple[Seen, Choice | None]:
        """The response that ends the beginning up to ``at``, of those that were found, and how it was chosen."""
        fitting = self._all_found(self._chains(at))
        if len(fitting) == 1:
            return next(iter(fitting.values())), None
        called = self._by_calls(at)
        alike = self._all_found(self._narrowed(at, self._ids_at(at)))
        if not alike and called is not None and called.response in fitting:  # recorded without a digest of all ids
            alike = {called.response: called}
        # Ids that many conversations have are counted by their host, and tell nothing.
        tells = 0 < len(alike) < CANDIDATES and not alike.keys() >= fitting.keys()
        for named in (True, False):
            sharing = [
                (level.words, id, seen)
                for level in self._levels
                if level.has_name is named
                for id, seen in self._all_found(self._narrowed(at, level)).items()
            ]
            same = [(f"{BY_CALLS}, {words}", id, seen) for words, id, seen in sharing if tells and id in alike]
            if same or (sharing and (named or not tells)):
                words, _, chosen = (same or sharing)[0]
                self._alternatives = self._in_context(at, chosen.response, {id for _, id, _ in same}, named=named)
                return chosen, Choice(words, len(fitting))
        chosen = next(iter((alike if tells else fitting).values()))
        return chosen, Choice(BY_CALLS if tells else "", len(fitting))

    def _in_context(self, at: int, chosen: str, same: Set[str], *, named: bool) -> tuple[Seen, ...]:
        """The others (of ``same``, if that has any) that end the beginning up to ``at`` with equal system and tools."""
        found: dict[str, Seen] = {}
        for level in self._levels:
            if level.has_context and level.has_name is named:
                for id, seen in self._all_found(self._narrowed(at, level)).items():
                    if id != chosen and (not same or id in same):
                        found.setdefault(id, seen)
        return tuple(found.values())

    def _by_calls(self, at: int) -> Seen | None:
        """The one response that made all calls of a message."""
        return self._only(self._calls(at))

    def _only(self, digests: Sequence[bytes]) -> Seen | None:
        """The one response that is found under each of ``digests``, where none has another."""
        found = [self._found.get(digest, {}) for digest in digests]
        if not found or len(found[0]) != 1 or any(each.keys() != found[0].keys() for each in found):
            return None
        return next(iter(found[0].values()))

    def _calls(self, at: int) -> list[bytes]:
        """The digests of a message's calls. Like windows they are made when asked for: mostly the chain is enough."""
        if at not in self._digests:
            self._digests[at] = [of_call(call) for call in self._messages[at].calls]
        return self._digests[at]

    def _named(self, digests: Iterable[bytes]) -> list[bytes]:
        """``digests`` as they are known in conversations of the request's name."""
        return [narrowed(digest, self._name) for digest in digests] if self._name else []

    def _by_name(self, at: int) -> Seen | None:
        """The one response of the request's name that made all calls of a message, or stands behind the same ones."""
        return self._only(self._named(self._calls(at))) or self._only(self._named(self._windows_of(at)[:1]))

    def _several(self, at: int) -> dict[str, Seen]:
        """All responses that a message may be by itself."""
        return self._all_found([*self._windows_of(at), *self._calls(at)])

    def _ids_at(self, at: int) -> Level:
        return Level(call_ids(self._messages[: at + 1]), BY_CALLS)

    def _narrowed(self, at: int, by: Level) -> list[bytes]:
        return [narrowed(link, by.data) for link in self._chains(at)] if by.data else []

    def _cuts(self, at: int) -> list[bytes]:
        return [cut(link) for link in self._chains(at - 1)] if at else []

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
        found: dict[str, Seen] = {}
        for digest in digests:
            for id, seen in self._found.get(digest, {}).items():
                found.setdefault(id, seen)
        return found

    def _unasked(self, digests: Iterable[bytes]) -> list[bytes]:
        """The first of those that were not looked up yet; from now on they were."""
        asked = [digest for digest in dict.fromkeys(digests) if digest not in self._found][:_MOST]
        self._found.update((digest, {}) for digest in asked)
        return asked


def recognise(
    messages: Sequence[EchoedMessage], lookup: Callable[[list[bytes]], Iterable[Seen]], marks: Marks = _UNMARKED
) -> Recognised:
    """What is recognised of a request by what ``lookup`` finds under digests."""
    search = Search(messages, marks=marks)
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
    marks: Marks = _UNMARKED,
) -> list[Sighting]:
    """By what the response in ``answer`` is found when it comes back behind what was ``asked`` under ``marks``.

    ``messages`` is what is visible of ``asked``, ``links`` their chain where it is at hand. Calls have the ids that the
    client was given, and so has the response, if it got an ``id``. Nothing where nothing of it is visible.
    """
    response = answer[-1].response if answer else ""
    before = list(messages)
    if before and before[-1].speaker == "assistant":
        answer = [*(asked[at] for at in before.pop().at), *answer]
    digests = [of_response(id)] if id else []
    narrower = [level.data for level in levels(marks)]
    for last in echoed_messages(answer):
        ids = call_ids([*before, last])
        named = []
        for at, values in enumerate(readings(before)):
            link = links[len(before) - 1] if links and before and not at else b"".join(chain(values)[-1:])
            (here,) = chain([last.value], link)
            near = window([*values[1 - WINDOW :], last.value])
            digests += [here, near]
            if not at:
                digests += [narrowed(here, data) for data in (ids, *narrower) if data]
                named.append(near)
        called = [of_call(call) for call in last.calls]
        digests += called
        if name := name_of(marks):  # many conversations may have the call or its neighbours, and one the name as well
            digests += [narrowed(digest, name) for digest in (*named, *called)]
    return [Sighting(scope, digest, response) for digest in dict.fromkeys(digests)]


def beginning(messages: Sequence[EchoedMessage]) -> list[bytes]:
    """The digests by which a whole history is found: its chain up to the model's first message; none without one."""
    first = next((at for at, message in enumerate(messages) if message.speaker == "assistant"), -1)
    return list(dict.fromkeys(chain(values)[-1] for values in readings(messages[: first + 1]) if values))


def line_sightings(scope: bytes, line: Iterable[Draft], response: str) -> list[Sighting]:
    """By what the history ``line`` is found as a whole, of which ``response`` is the last that came whole."""
    begun: list[Draft] = []
    answered = False
    for draft in line:
        if answered and draft.kind in ("user", "tool_result"):
            break
        answered = answered or draft.kind in ("assistant", "tool_call")
        begun.append(draft)
    return [Sighting(scope, digest, response) for digest in beginning(echoed_messages(begun))]


def cut_sightings(
    scope: bytes, messages: Sequence[EchoedMessage], response: str, links: Sequence[bytes] = ()
) -> list[Sighting]:
    """By what a response is found that broke off behind ``messages``: its client keeps as much of it as it likes.

    ``links`` is their chain where it is at hand.
    """
    if not messages or messages[-1].speaker == "assistant":
        return []
    ends = [(links if links and not at else chain(values))[-1] for at, values in enumerate(readings(messages))]
    return [Sighting(scope, digest, response) for digest in dict.fromkeys(map(cut, ends))]
