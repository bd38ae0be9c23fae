"""The fold: commits to the next request.

``extend`` takes commits into a state; ``Request`` turns a state into messages, decisions and counts. Finished turns
whose rendering can no longer change are *settled*: their bytes are kept, so that a further turn costs what it adds.
Promises: a state is never changed by ``extend``; from empty or step by step, the bytes are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from thinkback.compile.counts import DEFAULT_RATIO, Counted, counted_request, weigh_tools
from thinkback.compile.grouping import Grouper
from thinkback.compile.persistent_list import LINES, Framing, PersistentList, PersistentSet, hash_items
from thinkback.compile.policy import Inputs, Policy, appends, applies
from thinkback.compile.prefix_binding import Member, Prefix, left_out
from thinkback.compile.select import Selection, grouped, selected, window
from thinkback.compile.units import Minted, ResponseUnit, Turn, before_break, count_finished, is_told
from thinkback.compile.write import Anchor, Cache, Cursor, Loop, Output, Plain, hash_plain, plain_bytes
from thinkback.errors import ContextRefused
from thinkback.model import canonical
from thinkback.model.commits import Commit, Repair, Tool, Tools
from thinkback.model.plan import Beginnings, Counts, Digests, Writer
from thinkback.model.rule import Switch
from thinkback.model.target import Decision, merge, merge_headers

BEYOND = "context.size leaves the turn out"


class Settled(msgspec.Struct, frozen=True):
    """What the settled turns came to, as in ``Output``; versions share it."""

    fragments: PersistentList[bytes] = msgspec.field(default_factory=PersistentList)
    plain: PersistentList[Plain] = msgspec.field(default_factory=PersistentList)
    carried: PersistentList[bytes] = msgspec.field(default_factory=PersistentList)
    system: PersistentList[bytes] = msgspec.field(default_factory=PersistentList)
    decisions: PersistentList[Decision] = msgspec.field(default_factory=PersistentList)
    opaque: PersistentSet = msgspec.field(default_factory=PersistentSet)
    chain: PersistentList[Member] = msgspec.field(default_factory=PersistentList)

    def grow(self, out: Output) -> Settled:
        """A version with ``out`` behind it."""
        return Settled(
            self.fragments.grow(out.fragments),
            self.plain.grow(out.plain),
            self.carried.grow(out.carried),
            self.system.grow(out.system),
            self.decisions.grow(out.decisions),
            self.opaque.grow(tuple(out.opaque)),
            self.chain.grow(out.chain),
        )


class State(msgspec.Struct, frozen=True):
    """What the fold knows. ``pending`` turns may still change; the ``settled`` ones before them cannot.

    ``out`` is what the settled turns came to, ``cursor`` how far they are, ``under`` the digest of the system messages
    that reasoning in them was judged under, ``unfit`` why some responses (commit hashes) are left out of it. ``cache``
    has what was written of pending turns. ``selection`` is what people said about commits, where anybody did.
    ``counted`` is the last request to this model that the provider counted and whose record has an estimate, be its
    response among what is sent or not.
    """

    inputs: Inputs
    policy: Policy
    commits: PersistentList[Commit]
    out: Settled
    cursor: Cursor
    cache: Cache
    settled: int = 0
    pending: tuple[Turn, ...] = ()
    tools: Tools | None = None
    minted: tuple[str, Minted] | None = None
    selection: Selection | None = None
    under: str = ""
    unfit: Mapping[str, str] = {}
    counted: Counted | None = None


def empty(inputs: Inputs) -> State:
    """The state before the first commit."""
    return _start(inputs, ())


def fold(inputs: Inputs, commits: Sequence[Commit], writer: Writer, unfit: Mapping[str, str] | None = None) -> State:
    """The state after ``commits``, from empty. Raises ``ReplayRefused``."""
    grouper, selection = grouped(commits, appends=appends(inputs))
    return _take(_start(inputs, grouper.repairs, unfit, selection), commits, grouper, writer)


def extend(state: State, commits: Sequence[Commit], writer: Writer) -> State:
    """``state`` with ``commits`` taken in. Raises ``ReplayRefused``.

    All is folded again where what is settled may change: a repair voids blocks, somebody said something about commits,
    something came late for them, or they are bound to system messages and a further one came.
    """
    grouper = Grouper(state.pending, state.tools, state.minted)
    grouper.take(commits)
    late = state.settled > 0 and (grouper.missed or _is_under_others(state, grouper.turns, writer))
    if late or grouper.curated or any(applies(repair, state.inputs.target) for repair in grouper.repairs):
        return fold(state.inputs, (*state.commits, *commits), writer)
    return _take(state, commits, grouper, writer)


def _is_under_others(state: State, turns: Sequence[Turn], writer: Writer) -> bool:
    """Whether reasoning that is settled was judged under other system messages than there are now."""
    if not state.policy.binds or state.policy.settings.context_size is not None:
        return False
    return state.under != _under(state, selected(turns, state.selection), writer)


def _start(
    inputs: Inputs,
    repairs: Sequence[Repair],
    unfit: Mapping[str, str] | None = None,
    selection: Selection | None = None,
) -> State:
    """An empty state that knows which of ``repairs`` hold for ``inputs``."""
    policy = Policy(inputs, repairs)
    return State(inputs, policy, PersistentList(), Settled(), Cursor(), Cache(), selection=selection, unfit=unfit or {})


def _take(state: State, commits: Sequence[Commit], grouper: Grouper, writer: Writer) -> State:
    """``state`` with what ``grouper`` made of ``commits``; what can no longer change is rendered and settled."""
    turns = selected(grouper.turns, state.selection)
    keep_last, size = state.policy.keep_last, state.policy.settings.context_size
    by_user = writer.results_by_user
    if size is None:
        settled = _count_settled(turns, keep_last, by_user=by_user, carries=state.policy.settings.carry)
    else:
        settled = _count_gone(turns, size, by_user=by_user)
    under = _under(state, turns, writer)
    # What was written of a first history is not worth keeping: nearly all of it is settled.
    loop = _loop(state, writer, under, keeps=bool(state.pending))
    done, pending = turns[:settled][::-1], tuple(grouper.turns[settled:])
    gone = "" if size is None else BEYOND
    # So that each turn goes as soon as it is written.
    turns.clear()
    grouper.turns.clear()
    while done:
        # Whatever keepLast keeps is still pending, and so is all that context.size lets go.
        turn = done.pop()
        loop.add(turn, is_open=False, kept=None if keep_last is None else (), gone=gone)
        if state.pending:
            state.cache.forget(turn)
    return msgspec.structs.replace(
        state,
        commits=state.commits.grow(commits),
        out=state.out.grow(loop.out),
        cursor=loop.cursor,
        settled=state.settled + settled,
        pending=pending,
        tools=grouper.tools,
        minted=grouper.minted,
        under=under,
        counted=_counted(grouper.reported, state.policy) or state.counted,
    )


def _counted(units: Sequence[ResponseUnit], policy: Policy) -> Counted | None:
    """The last of the requests for ``units`` to this model that the provider counted, if it has an estimate."""
    for unit in reversed(units):
        size = unit.minted.size if unit.minted is not None else 0
        if not size or unit.usage is None or not policy.calibrates(unit.header.origin):
            continue
        if (found := counted_request(unit, unit.usage, size)) is not None:
            return found
    return None


def _loop(state: State, writer: Writer, under: str, *, keeps: bool = True) -> Loop:
    """The loop that writes what follows the settled messages; ``under`` as in ``State``."""
    prefix = None
    if state.policy.binds:
        prefix = Prefix(hash_plain(state.out.plain, writer), under, state.inputs.prefix[1])
    return Loop(state.policy, writer, state.cursor, state.cache, state.out.opaque, prefix, state.unfit, keeps=keeps)


def _under(state: State, turns: Sequence[Turn], writer: Writer) -> str:
    """The digest of the system messages that reasoning in ``turns`` and before is judged under."""
    if not state.policy.binds or state.inputs.prefix[0]:
        return state.inputs.prefix[0]
    loop = Loop(state.policy, writer, state.cursor, state.cache)
    cut = window(turns, state.policy.settings.context_size)
    return _digest(hash_items(state.out.system, LINES), loop.systems(turns, cut))


def _count_gone(turns: list[Turn], size: int, *, by_user: bool) -> int:
    """How many leading turns are beyond ``context.size`` for good."""
    return min(window(turns, size), max(count_finished(turns, by_user=by_user) - 1, 0))


def _count_settled(turns: list[Turn], keep_last: int | None, *, by_user: bool, carries: bool) -> int:
    """How many leading turns can no longer change: finished, and out of reach of ``keepLast`` or of what is carried."""
    finished = count_finished(turns, by_user=by_user)
    # The last finished turn stays: results and usage that come late mostly belong to it. So does what it goes on with.
    limit = before_break(turns, max(finished - 1, 0), by_user=by_user)
    if not keep_last:
        return limit
    behind = 0
    for at in range(finished - 1, -1, -1):
        if at < limit and (behind >= keep_last or (carries and _empties(turns[at]))):
            return before_break(turns, at + 1, by_user=by_user)
        behind += sum(unit.reasons for unit in turns[at].responses)
    return 0


def _retained(turns: Sequence[Turn], keep_last: int | None, *, carries: bool) -> frozenset[str] | None:
    """The last responses with reasoning of finished ``turns``; ``None``: all keep it.

    What an app carries is emptied by a turn without reasoning.
    """
    if keep_last is None:
        return None
    since = next((at + 1 for at in range(len(turns) - 1, -1, -1) if carries and _empties(turns[at])), 0)
    hashes = [unit.hash for turn in turns[since:] for unit in turn.responses if unit.reasons]
    return frozenset(hashes[-keep_last:] if keep_last else ())


def _empties(turn: Turn) -> bool:
    """Whether a finished turn was answered without any reasoning."""
    answers = [unit for unit in turn.responses if not unit.withheld]
    return answers != [] and not any(is_told(block) for unit in answers for _, block in unit.thoughts)


def request(state: State, writer: Writer) -> tuple[State, Request]:
    """The next request of ``state``; and the state, folded again where what is bound to its prefix does not fit.

    Raises ``ReplayRefused``, and ``ContextRefused`` where what is left is no conversation.
    """
    made = Request(state, writer)
    while unfit := made.unfit():
        state = fold(state.inputs, tuple(state.commits), writer, {**state.unfit, **unfit})
        made = Request(state, writer)
    made.check(writer)
    return state, made


class Request:
    """The next request as pieces: settled bytes shared with the state, and those of the turns that may change.

    ``off``: thinking must be off in this request. ``kept`` is the id of the response up to which the provider has the
    conversation, so that only what follows it is sent. Raises ``ReplayRefused``.
    """

    def __init__(self, state: State, writer: Writer) -> None:
        self.state = state
        self._loop = loop = _loop(state, writer, state.under)
        turns = selected(state.pending, state.selection)
        size = state.policy.settings.context_size
        finished = count_finished(turns, by_user=writer.results_by_user)
        cut = window(turns, size)
        if size is not None and cut + state.settled:
            # What stood before the turns that are left is gone for all but the last of them.
            loop.change(next((unit.seq for unit in turns[-1].responses), -1))
        kept = _retained(turns[cut:finished], state.policy.keep_last, carries=state.policy.settings.carry)
        for at, turn in enumerate(turns):
            loop.add(turn, is_open=at >= finished, kept=kept, gone=BEYOND if at < cut else "")
        self._out, self._cursor = loop.out, loop.cursor
        self.off, self.lifts = loop.cursor.off, loop.cursor.lifts
        self.chain = loop.cursor.chain.sent if state.policy.rule.prefix_bound else None
        self._anchor = loop.anchor or Anchor(0, 0, "")
        self.kept = self._anchor.response
        open_at = loop.open_at if loop.open_at >= 0 else loop.cursor.messages
        self.open_at = max(open_at - self._anchor.messages, 0)

    def check(self, writer: Writer) -> None:
        """Raises ``ContextRefused`` where what is left after what people took away is no conversation."""
        cursor, endpoint = self._cursor, self.state.inputs.target.endpoint.id
        refused = {"never": (), "calls": ("calls",), "always": ("calls", "assistant")}[writer.user_first]
        if not cursor.left or (cursor.first and cursor.first not in refused):
            return
        what = "the first message that is left is not the user's" if cursor.first else "nothing is left to send"
        more = cursor.left - len(cursor.named)
        named = ", ".join(cursor.named) + (f" and {more} more" if more else "")
        raise ContextRefused(
            f"{what}, and {endpoint} would refuse it; left out: {named}",
            details={"endpoint": endpoint, "left_out": cursor.left},
            next_actions=("annotate one of the user's messages as normal", "or raise context.size, or ask something"),
        )

    def unfit(self) -> dict[str, str]:
        """The responses (commit hashes) whose bound reasoning must stay away so that the rest is valid, and why."""
        progress = self._cursor.chain
        ends_broken = self.state.inputs.recipe == 1 and progress.broken and progress.sent.length > 0
        if progress.fits and not ends_broken:
            return {}
        return left_out([*self.state.out.chain, *self._out.chain], ends_broken=ends_broken)

    @property
    def system(self) -> list[bytes]:
        """The system messages that stand on top."""
        return [*self.state.out.system, *self._out.system] if self._loop.is_on_top else []

    def fragments(self) -> Iterator[bytes]:
        """What is sent between start and end, in order."""
        if not self._anchor.fragments:
            yield from self.state.out.fragments
        yield from self._rest()

    def body(self, writer: Writer, end: bytes) -> Iterator[bytes]:
        """The pieces of the request body, many messages in each."""
        yield writer.start
        separator = b""
        settled = () if self._anchor.fragments else self.state.out.fragments.batches()
        for fragments in (*settled, self._rest()):
            if fragments:
                yield separator + writer.separator.join(fragments)
                separator = writer.separator
        yield end

    def digests(self, writer: Writer, end: bytes, tools: Sequence[Tool]) -> Digests:
        """Digests for the request record; of what is settled only the new part is hashed."""
        settled, out, fragments = self.state.out, self._out, self._rest()
        if self._anchor.fragments:
            sent, between = hashlib.sha256(writer.start), b""
        else:
            sent = hash_items(settled.fragments, Framing(writer.start, writer.separator))
            between = writer.separator if settled.fragments.length and fragments else b""
        sent.update(between + writer.separator.join(fragments) + end)
        return Digests(
            system=_digest(hash_items(settled.system, LINES), out.system),
            tools=tools_digest(tools),
            messages=_digest(hash_plain(settled.plain, writer), [plain_bytes(item, writer) for item in out.plain]),
            carriers=_digest(hash_items(settled.carried, LINES), out.carried),
            sent=sent.hexdigest(),
        )

    def beginnings(self, writer: Writer) -> Beginnings:
        """Digests of every beginning of the messages, as ``digests`` has those of the whole."""
        settled, out = self.state.out, self._out
        plain = (plain_bytes(item, writer) for item in (*settled.plain, *out.plain))
        return Beginnings(_running(plain), _running((*settled.carried, *out.carried)))

    def _rest(self) -> list[bytes]:
        """The fragments that are not settled, without those that the provider keeps."""
        skip = self._anchor.fragments
        rest = self._out.fragments[skip:]
        return [self._loop.resumed, *rest[1:]] if skip and rest and self._loop.resumed else rest

    def decisions(self) -> list[Decision]:
        """Every decision, in order of the log; ``message`` is the index in the message array."""
        made = [*self.state.out.decisions, *self._out.decisions]
        return [self._left_out(decision) for decision in made] if self.kept else made

    def _left_out(self, decision: Decision) -> Decision:
        """What the provider has anyway is not sent, and what is sent begins a new array."""
        if decision.message >= self._anchor.messages:
            return msgspec.structs.replace(decision, message=decision.message - self._anchor.messages)
        if decision.action == "drop":
            return decision
        reason = f"the provider keeps the conversation up to response {self.kept}"
        return msgspec.structs.replace(decision, action="server", message=-1, reason=reason)

    def __len__(self) -> int:
        return self._cursor.messages - self._anchor.messages

    def counts(self, tools: Sequence[Tool]) -> Counts:
        """Tokens, stored and sent; ``tools`` go beside the messages."""
        sums, beside = self._cursor.tally, weigh_tools(tools) / DEFAULT_RATIO
        if self.state.selection is not None and sums.counted is not None:
            # What stood before that response may have been something else when it was asked for.
            sums = msgspec.structs.replace(sums, counted=None)
        target, wanted = self.state.inputs.target, self.state.inputs.settings.context_limit
        added = target.info.overhead.tokens(self._cursor.messages, len(tools))
        size, counted = sums.size(self.state.counted, beside, added), self.state.counted
        # By a record alone: a size that is estimated again depends on the settings, and what is stored does not.
        unseen = max(counted.input - counted.estimate, 0) if counted is not None else added
        return Counts(
            raw=round(sums.raw.tokens + beside + unseen),
            effective=round(size),
            effective_reasoning=round(sums.sent.thought),
            limit=wanted or target.info.context,
            calibrated=(self.state.counted or sums.counted) is not None,
            limit_asked="" if wanted else target.limit_asked,
        )

    def size(self, tools: Sequence[Tool]) -> int:
        """The estimate of this request that no report is in, for the record: the next one is measured by it."""
        return round(self._cursor.tally.sent.tokens + weigh_tools(tools) / DEFAULT_RATIO)


def tools_digest(tools: Sequence[Tool]) -> str:
    """Hex SHA-256 of the tools as they are offered."""
    return hashlib.sha256(canonical.encode(tuple(tools))).hexdigest()


def _digest(hasher: hashlib._Hash, tail: Sequence[bytes]) -> str:
    hasher.update(b"".join(item + b"\n" for item in tail))
    return hasher.hexdigest()


def _running(items: Iterable[bytes]) -> frozenset[str]:
    """The digests of no item, of the first, of the first two ..."""
    hasher = hashlib.sha256()
    found = {hasher.hexdigest()}
    for item in items:
        hasher.update(item + b"\n")
        found.add(hasher.hexdigest())
    return frozenset(found)


def added(policy: Policy, request: Request) -> Switch:
    """What goes along with what is sent: the retention switch, the server's own state, thinking off for this turn."""
    rule = policy.rule
    switches: list[Switch] = []
    if policy.strict:
        return Switch()
    if policy.thinking and not request.off:
        switch = rule.keep_switch if policy.keeps_later() or request.lifts else rule.drop_switch
        wanted = switch is not None and (policy.asks or request.lifts or not switch.asked)
        if switch is not None and wanted and not policy.excludes(switch):
            switches.append(switch)
    if rule.server_drop is not None and "server_drop" in policy.repaired:
        switches.append(rule.server_drop)
    if rule.server_state is not None:
        state = rule.server_state
        switches.append(Switch(state.on if policy.server is not None else state.off))
        if request.kept:
            switches.append(Switch({state.param: request.kept}))
    params: dict[str, Any] = {}
    headers: dict[str, str] = {}
    for switch in switches:
        params = merge(params, switch.params)
        headers = merge_headers(headers, switch.headers)
    return Switch(params, headers)
