"""Erasing: which commits somebody's wish is about, and what stands in their place.

A tombstone keeps what the log and its readers need to stay whole (who answered, how it ended, what it cost) and
nothing that anybody said. Must not: store anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple, TypeAlias, assert_never

import msgspec

from thinkback.log import echo_digests
from thinkback.log.protocol import About, AppendRequest
from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import (
    LEFT_OUT,
    Annotation,
    BranchSummary,
    Commit,
    Compaction,
    Content,
    Erased,
    Merge,
    Message,
    Payload,
    PermissionDecision,
    Repair,
    Request,
    Response,
    Tools,
    TurnEnded,
    Usage,
    surviving,
)
from thinkback.model.curation import curate
from thinkback.model.target import lookup

History: TypeAlias = Sequence[Commit]
Rests: TypeAlias = dict[str, Payload | None]
"""By hash, what is left of each payload that is to go; ``None`` for nothing."""

END_USER = "end_user"
"""What the record of a request calls the end user in its ``target``, where the gateway was given one."""

# Where requests of the dialects name an end user.
_NAMED = ("user", "safety_identifier", "metadata.user_id", "labels.user_id", "labels.user")
# What belongs to the conversation as a whole, not to who said something in it.
_LASTING = frozenset({"system", "tools", "merge"})
# What stands between turns or inside one without being part of it.
_ABOUT = frozenset({"annotation", "compaction", "branch_summary"})


class SessionHistory(NamedTuple):
    """A history, and the id of the session it is one of."""

    session: str
    history: History


def tombstone(reason: str, time: int, rest: Payload | None = None, source: str = "") -> Erased:
    """What stands in place of a payload of which ``rest`` is left. ``time`` is microseconds UTC, ``source`` the
    ``source_of`` the payload.
    """
    return Erased(reason, time, "" if rest is None else canonical.encode(rest).decode(), source)


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """An erasure, for steps that were made before ``time`` (microseconds UTC) and are stored later.

    It is of what was said for an end user (``end_user``: the SHA-256 of the name), before a time, or with a ``model``,
    or of all that together; or of the session with the id ``session``, or of all sessions. ``program`` and ``project``
    (SHA-256) bound it to sessions: those that a step opens for them, and those of the ids ``within``. ``messages`` are
    the digests of messages that lost words (hexadecimal, as ``echoed`` gives them): where they are repeated. It
    repeats nothing that is to go.
    """

    time: int
    reason: str
    end_user: str = ""
    before: int = 0
    session: str = ""
    sessions: bool = False
    model: str = ""
    program: str = ""
    project: str = ""
    within: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


class Selection(NamedTuple):
    """The turns that a purge is about: those of which all that is given holds. Empty: of any."""

    end_user: str = ""
    before: int | None = None
    model: str = ""

    def pick(self, told: Sequence[SessionHistory]) -> set[str]:
        """The commits of these turns, and what was said about them."""
        picked: set[str] | None = None
        for found in (
            of_end_user(told, self.end_user) if self.end_user else None,
            of_model(told, self.model) if self.model else None,
            None if self.before is None else before(told, self.before),
        ):
            if found is not None:
                picked = found if picked is None else picked & found
        return picked or set()


def order_for(
    selection: Selection, time: int, reason: str, program: str = "", project: str = "", within: Iterable[str] = ()
) -> Order:
    """The order for a purge."""
    user, program, project = (_hashed(name) if name else "" for name in (selection.end_user, program, project))
    return Order(
        time,
        reason,
        user,
        selection.before or 0,
        model=selection.model,
        program=program,
        project=project,
        within=tuple(within),
    )


def late(
    entry: AppendRequest, orders: Iterable[Order], erased: Set[str] = frozenset(), began: int | None = None
) -> AppendRequest | None:
    """A step as it is stored after ``orders``; ``None`` where the session that it is of is gone.

    Copies of ``erased`` responses, by their ids, are left out. ``began``: all of the step counts as said then, when the
    request that it is of came in.
    """
    stones: dict[str, Erased] = {}
    for order in orders:
        if order.session == entry.session or (order.sessions and _covers(order, entry) and entry.created < order.time):
            return None
        picked = _picked(order, entry) | _repeating(order, entry)
        earlier = [commit for commit in entry.commits if (commit.time if began is None else began) < order.time]
        for hash, rest in bare(earlier, picked).items():
            stones[hash] = tombstone(order.reason, order.time, rest)
    entry = without_copies(entry, erased)
    if not stones:
        return entry
    commits = [_in_place(commit, stones.get(commit.hash)) for commit in entry.commits]
    return msgspec.structs.replace(entry, commits=commits, sightings=(), about=About())


def _covers(order: Order, entry: AppendRequest) -> bool:
    """True if the session of a step is one that an order is of."""
    if entry.session in order.within or not (order.program or order.project):
        return True
    said = ((order.program, entry.about.program), (order.project, entry.about.project))
    return all(not wanted or (name and wanted == _hashed(name)) for wanted, name in said)


def _picked(order: Order, entry: AppendRequest) -> set[str]:
    """The commits of a step that an order is of."""
    if not _covers(order, entry):
        return set()
    told = [SessionHistory(entry.session, entry.commits)]
    picked = Selection("", order.before or None, order.model).pick(told)
    if not order.end_user:
        return picked
    named = {name for commit in entry.commits for name in end_users(commit.value)}
    theirs = {hash for name in named if order.end_user in (name, _hashed(name)) for hash in of_end_user(told, name)}
    return picked & theirs if order.before or order.model else theirs


def _repeating(order: Order, entry: AppendRequest) -> set[str]:
    """The commits of the messages in a step that lost words elsewhere."""
    if not order.messages:
        return set()
    repeated = {at for value, at in _placed(entry.commits) if value in order.messages}
    return {entry.commits[at].hash for at in repeated}


def echoed(told: Iterable[SessionHistory], erased: Set[str]) -> tuple[str, ...]:
    """The digests of the messages, as clients repeat them, that have any of the commits ``erased``."""
    return tuple(
        dict.fromkeys(value for _, history in told for value, at in _placed(history) if history[at].hash in erased)
    )


def _placed(history: History) -> Iterator[tuple[str, int]]:
    """The digests of messages, in each reading, with the places of their commits."""
    for message in echo_digests.echoed_messages(echo_digests.drafts_of(history)):
        for value in (message.value, *message.others):
            yield from ((value.hex(), at) for at in message.at)


def without_copies(entry: AppendRequest, erased: Set[str]) -> AppendRequest:
    """A step without what it has of responses, by their ids, that were erased since it was copied into it."""
    stones = {
        commit.hash: tombstone("erased", commit.time, skeleton(surviving(commit.value)))
        for commit in entry.commits
        if commit.response in erased
    }
    if not stones:
        return entry
    commits = [_in_place(commit, stones.get(commit.hash)) for commit in entry.commits]
    return msgspec.structs.replace(entry, commits=commits)


def copied(commits: Sequence[Commit]) -> frozenset[str]:
    """The ids of the responses in a step that were not asked for in it: what the log had of them, or a client's sealed
    value, was put in. Their originals may have been erased since.
    """
    asked = {each.response for each in commits if isinstance(each.value, Request) and each.value.target}
    minted = {each.response for each in commits if isinstance(each.value, Response) and each.value.origin.endpoint}
    return frozenset(minted - asked)


def _in_place(commit: Commit, stone: Erased | None) -> Commit:
    return commit if stone is None else msgspec.structs.replace(commit, value=stone, payload=canonical.encode(stone))


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def of_end_user(told: Sequence[SessionHistory], end_user: str) -> set[str]:
    """The commits of every turn that was asked or answered for ``end_user``, and of what was said about them.

    A provider may have been told the SHA-256 of a name that is too long for it.
    """
    names = {end_user, _hashed(end_user)}
    return _turns_with(told, lambda payload: not names.isdisjoint(end_users(payload)))


def of_model(told: Sequence[SessionHistory], model: str) -> set[str]:
    """The commits of every turn that ``model`` answered, served or requested, and of what was said about them."""

    def answered(payload: Payload) -> bool:
        value = surviving(payload)
        return isinstance(value, Response) and model in (value.origin.served_model, value.origin.requested_model)

    return _turns_with(told, answered)


def _turns_with(told: Sequence[SessionHistory], named: Callable[[Payload], bool]) -> set[str]:
    """The commits of every turn with a payload that is ``named``, and of what was said about them."""
    picked: set[str] = set()
    for _, history in told:
        for turn in _turns(history):
            if any(named(commit.value) for commit in turn):
                picked.update(c.hash for c in turn if c.kind not in _LASTING | _ABOUT and not c.edit)
    while more := set(about(told, picked)) - picked:
        picked |= more
    return picked


def before(told: Sequence[SessionHistory], time: int) -> set[str]:
    """The commits older than ``time``; what answers an older response goes with it."""
    old: set[str] = set()
    for _, history in told:
        responses = {commit.response for commit in history if commit.kind == "response" and commit.time < time}
        old.update(
            commit.hash
            for commit in history
            if commit.kind not in ("tools", "merge") and (commit.time < time or commit.response in responses)
        )
    return old


def bare(commits: Iterable[Commit], picked: set[str]) -> Rests:
    """What is left of the ``picked`` among ``commits``, those aside that say nothing."""
    rests: Rests = {}
    for commit in commits:
        if commit.hash in picked:
            whole = surviving(commit.value)
            rest = skeleton(whole)
            # Left out of an export is not erased: it would come back with a whole one.
            is_left_out = isinstance(commit.value, Erased) and commit.value.reason == LEFT_OUT
            if is_left_out or (rest != whole and not (rest is None and isinstance(whole, Erased))):
                rests[commit.hash] = rest
    return rests


def skeleton(value: Payload) -> Payload | None:
    """What stays of a payload that is erased: no text, no carrier, no name of a person."""
    match value:
        case Message() | Text() | ThinkingBlock() | ToolCall() | ToolResult() | Media() | Unknown():
            return None
        case Content() | BranchSummary() | Erased():
            return None
        case Response():
            origin = msgspec.structs.replace(value.origin, end_user="")
            return msgspec.structs.replace(value, origin=origin, id="", message="", envelope="", error=None)
        case Request():
            target = {name: said for name, said in value.target.items() if name != END_USER}
            return msgspec.structs.replace(value, target=target, params="{}")
        case Repair():
            return msgspec.structs.replace(value, refusal="")
        case PermissionDecision():
            return msgspec.structs.replace(value, reason="", note="")
        case TurnEnded():
            return TurnEnded(value.state)
        case Annotation():
            return Annotation(value.target, value.priority, value.default)
        case Compaction():
            return Compaction(
                value.strategy, model=value.model, usage=value.usage, before=value.before, after=value.after
            )
        case Tools() | Usage() | Merge():
            return value
        case _:
            assert_never(value)


def _turns(history: History) -> Iterator[History]:
    """The commits from a user message to the end of its turn, or to the next message after an answer."""
    start, answered = 0, False
    for at, commit in enumerate(history):
        if answered and commit.kind == "user" and not commit.edit:
            yield history[start:at]
            start, answered = at, False
        answered = answered or commit.kind == "response"
        if commit.kind == "turn_ended":
            yield history[start : at + 1]
            start, answered = at + 1, False
    yield history[start:]


def end_users(payload: Payload) -> Iterator[str]:
    """The end users that a payload names: as minted for, as the record of a request says, or in its parameters."""
    value = surviving(payload)
    if isinstance(value, Response):
        yield value.origin.end_user
    elif isinstance(value, Request):
        yield value.target.get(END_USER, "")
        try:
            params = canonical.decode(value.params)
        except msgspec.DecodeError:  # of another program's making
            return
        if isinstance(params, dict):
            yield from (named for path in _NAMED if isinstance(named := lookup(params, path), str))


def about(told: Sequence[SessionHistory], picked: set[str]) -> Iterator[str]:
    """Edits, annotations, checkpoints, copies and summaries of what is ``picked``."""
    touched: set[str] = set()
    for session, history in told:
        here = picked.intersection(commit.hash for commit in history)
        if not here:
            continue
        touched.add(session)
        curation = curate(history)
        for hash in here:
            yield from (said.hash for said in curation.mark(hash).history)
            yield from (edit.hash for edit in curation.edits.get(hash, ()))
        at = {commit.hash: commit.seq for commit in history}
        for checkpoint in curation.checkpoints:
            value = checkpoint.value
            if isinstance(value, Compaction) and not here.isdisjoint(_summarised(value, history, at)):
                yield checkpoint.hash
    for _, history in told:
        for commit in history:
            value = commit.value
            if isinstance(value, Merge):
                yield from (copy for original, copy in value.copies if original in picked)
            elif isinstance(value, BranchSummary) and value.session in touched:
                yield commit.hash


def _summarised(value: Compaction, history: History, at: Mapping[str, int]) -> Iterator[str]:
    """The commits that a checkpoint speaks for, or tells in other words."""
    yield from (hash for hash, _ in value.trimmed)
    if value.first in at and value.last in at:
        yield from (commit.hash for commit in history[at[value.first] : at[value.last] + 1])
