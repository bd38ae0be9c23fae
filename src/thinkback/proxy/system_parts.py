"""A client's system messages: what must be said of a history so that they stand in it where the client has them now.

Clients change them without a word: a part grows, goes, comes back, is put before others. The history has each as a
commit; edits say that it reads otherwise, annotations that it is not there, and a new one names the commit that it
stands before. In one place each commit is a slot, which reads what the client has there now. Promises: what did not
change is not spoken of, and what comes back has its first bytes, whatever cache marks it has today. What a person
annotated stays as they left it. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from thinkback.compile.overrides import placed
from thinkback.log import echo_digests
from thinkback.log.echo_digests import EchoedMessage
from thinkback.model.commits import Annotation, Commit, Draft, Message, Priority, surviving
from thinkback.model.curation import Curation, curate

GONE = "the client does not send it any more"


class _Part(NamedTuple):
    """A system message of the history: its commit, its place (how many messages stand before it), and how it reads."""

    commit: Commit
    place: int
    value: Message
    is_gone: bool


class _Wanted(NamedTuple):
    """A system message of the client, and its place."""

    place: int
    value: Message


def changes(base: Sequence[Commit], asked: Sequence[Draft], said: Sequence[EchoedMessage]) -> list[Draft]:
    """What makes the system messages of ``base`` those among ``asked``, which says what ``base`` does.

    ``said`` are the messages of the client, those of ``asked`` first.
    """
    curation = curate(base)
    order = placed(base, curation)
    then = [
        (commit.kind, curation.value(commit))
        for commit in order
        if commit.kind in _ROUGHLY and not commit.edit and curation.priority(commit) is not Priority.SKIP
    ]
    if _are_there(then, [(draft.kind, draft.value) for draft in asked if draft.kind in _ROUGHLY]):
        return []
    starts = [message.at[0] for message in said]
    here = [
        _Wanted(sum(start < at for start in starts), draft.value)
        for at, draft in enumerate(asked)
        if draft.kind == "system" and isinstance(draft.value, Message)
    ]
    return _drafts(order, here, curation)


_ROUGHLY = frozenset({"system", "user"})


def _are_there(then: Sequence[tuple[str, object]], now: Sequence[tuple[str, object]]) -> bool:
    """True if the history reads as the client has it, as it mostly does; what the user said tells the places."""
    return [kind for kind, _ in then] == [kind for kind, _ in now] and all(
        kind != "system" or reads_the_same(value, other) for (kind, value), (_, other) in zip(then, now, strict=True)
    )


def reads_the_same(one: object, other: object) -> bool:
    """True if two system messages say the same, whatever cache marks are on them."""
    if not (isinstance(one, Message) and isinstance(other, Message)):
        return False
    return one.text.strip() == other.text.strip()


def _parts(order: Sequence[Commit], begins: Collection[int], curation: Curation) -> Iterator[_Part]:
    """The system messages of a history that people left as they were; its messages begin ``begins``."""
    place = 0
    for at, commit in enumerate(order):
        place += at in begins
        value = curation.value(commit)
        if commit.kind != "system" or commit.edit or not isinstance(value, Message):
            continue
        mark = curation.mark(commit.hash)
        is_gone = mark.priority is Priority.SKIP
        if not is_gone or mark.reason == GONE:
            yield _Part(commit, place, value, is_gone)


def _drafts(order: Sequence[Commit], here: Sequence[_Wanted], curation: Curation) -> list[Draft]:
    begins = _begins(order, max((each.place for each in here), default=0))
    there = list(_parts(order, frozenset(begins), curation))
    known = [value for part in there for value in _readings(part.commit, curation)]
    drafts: list[Draft] = []
    for place in sorted({part.place for part in there} | {each.place for each in here}):
        slots = [part for part in there if part.place == place]
        now = [
            next((one for one in known if reads_the_same(one, each.value)), each.value)
            for each in here
            if each.place == place
        ]
        for part, value in zip(slots, now, strict=False):
            drafts += _rewritten(part, value)
        left = (part for part in slots[len(now) :] if not part.is_gone)
        drafts += (Draft("annotation", Annotation(part.commit.hash, Priority.SKIP, reason=GONE)) for part in left)
        before = order[begins[place]].hash if place < len(begins) else ""
        drafts += (Draft("system", msgspec.structs.replace(value, before=before)) for value in now[len(slots) :])
    return drafts


def _begins(order: Sequence[Commit], place: int) -> list[int]:
    """Where the messages of a history begin, as far as its last system message and the message ``place``: in a long
    history mostly the first one.
    """
    last = max((at for at, commit in enumerate(order) if commit.kind == "system"), default=0)
    found: list[int] = []
    for start in echo_digests.message_starts(order):
        if start > last and len(found) > place:
            break
        found.append(start)
    return found


def _readings(commit: Commit, curation: Curation) -> Iterator[Message]:
    """A system message as it reads, and as it read before."""
    for each in (commit, *curation.edits.get(commit.hash, ())):
        value = surviving(each.value)
        if isinstance(value, Message):
            yield value


def _rewritten(part: _Part, value: Message) -> Iterator[Draft]:
    """The edit that makes a part of the history read ``value``."""
    if not reads_the_same(part.value, value):
        yield Draft("system", msgspec.structs.replace(value, before=part.value.before), edit=part.commit.hash)
    if part.is_gone:
        yield Draft("annotation", Annotation(part.commit.hash, None, default=True))
