"""The fold: commits to the next request.

``extend`` takes commits into a state; ``Request`` turns a state into messages, decisions and counts. Finished turns
whose rendering can no longer change are *settled*: their bytes are kept, so that a further turn costs what it adds.
Promises: a state is never changed by ``extend``; from empty or step by step, the bytes are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from thinkback.compile.bound import NO_CHAIN, Chain, Prefix
from thinkback.compile.counts import Tally
from thinkback.compile.grouping import Grouper
from thinkback.compile.grown import Grown, Known
from thinkback.compile.policy import Inputs, Policy
from thinkback.compile.reached import START, Reached
from thinkback.compile.render import Rendering
from thinkback.compile.select import Selection, grouped, selected, window
from thinkback.compile.units import Minted, Turn, before_break, count_finished, is_told
from thinkback.compile.written import Bare, bare_bytes
from thinkback.errors import ContextRefused
from thinkback.model import canonical
from thinkback.model.commits import Commit, Repair, Tool, Tools
from thinkback.model.plan import Counts, Digests, Writer
from thinkback.model.rule import Switch
from thinkback.model.target import Decision, merge, merge_headers

BEYOND = "context.size leaves the turn out"


class State(msgspec.Struct, frozen=True):
    """What the fold knows. ``pending`` turns may still change; the ``settled`` ones before them cannot.

    ``selection`` is what people said about commits, where anybody did. ``sent`` are the opaque values that the settled
    messages carry, ``off`` whether one of them turns thinking off, ``lifts`` whether reasoning of one goes only because
    an annotation asks for it. ``reached`` is how far they are, ``chain`` what became of reasoning that is bound to its
    prefix, ``under`` the digest of the system messages it was judged under, ``floor`` how many responses are left out
    of it to avoid a gap, and ``known`` how many messages are as they were when it was made.
    """

    inputs: Inputs
    policy: Policy
    invalid: frozenset[str]
    commits: Grown[Commit]
    fragments: Grown[bytes]
    bare: Grown[Bare]
    carried: Grown[bytes]
    system: Grown[bytes]
    decisions: Grown[Decision]
    sent: Known
    tally: Tally
    settled: int = 0
    pending: tuple[Turn, ...] = ()
    tools: Tools | None = None
    minted: tuple[str, Minted] | None = None
    selection: Selection | None = None
    off: bool = False
    lifts: bool = False
    reached: Reached = START
    chain: Chain = NO_CHAIN
    under: str = ""
    floor: int = 0
    known: int = 0


def empty(inputs: Inputs) -> State:
    """The state before the first commit."""
    return _start(inputs, ())


def fold(inputs: Inputs, commits: Sequence[Commit], writer: Writer, floor: int = 0) -> State:
    """The state after ``commits``, from empty. Raises ``ReplayRefused``."""
    grouper, selection = grouped(commits)
    return _take(_start(inputs, grouper.repairs, floor, selection), commits, grouper, writer)


def extend(state: State, commits: Sequence[Commit], writer: Writer) -> State:
    """``state`` with ``commits`` taken in. Raises ``ReplayRefused``.

    All is folded again where what is settled may change: a repair voids blocks, somebody said something about commits,
    something came late for them, or they are bound to system messages and a further one came.
    """
    grouper = Grouper(state.pending, state.tools, state.minted, keyed=state.selection is not None)
    grouper.take(commits)
    late = state.settled > 0 and (grouper.missed or _is_under_others(state, grouper.turns, writer))
    if late or grouper.curated or any(_applies(repair, state.inputs) for repair in grouper.repairs):
        return fold(state.inputs, (*state.commits, *commits), writer)
    return _take(state, commits, grouper, writer)


def _is_under_others(state: State, turns: Sequence[Turn], writer: Writer) -> bool:
    """Whether reasoning that is settled was judged under other system messages than there are now."""
    if not state.policy.binds or state.policy.settings.context_size is not None:
        return False
    return state.under != _under(state, selected(turns, state.selection), writer)


def _start(inputs: Inputs, repairs: Sequence[Repair], floor: int = 0, selection: Selection | None = None) -> State:
    """An empty state that knows which of ``repairs`` hold for ``inputs``."""
    holding = [repair for repair in repairs if _applies(repair, inputs)]
    return State(
        inputs=inputs,
        policy=Policy(inputs, [repair.stage for repair in holding], _named(holding, flat=True)),
        invalid=_named(holding, flat=False),
        commits=Grown(),
        fragments=Grown(),
        bare=Grown(),
        carried=Grown(),
        system=Grown(),
        decisions=Grown(),
        sent=Known(),
        tally=Tally(),
        selection=selection,
        floor=floor,
    )


def _named(repairs: Sequence[Repair], *, flat: bool) -> frozenset[str]:
    """What ``repairs`` name: the responses that go as text, or the blocks that must not go."""
    named = (repair.blocks for repair in repairs if (repair.stage == "flatten") == flat)
    return frozenset(hash for blocks in named for hash in blocks)


def _applies(repair: Repair, inputs: Inputs) -> bool:
    """A repair holds until the target differs."""
    return repair.endpoint == inputs.target.base_url and repair.model == inputs.target.model


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
    out = _rendering(state, writer, under)
    done, pending = turns[:settled][::-1], tuple(grouper.turns[settled:])
    gone = "" if size is None else BEYOND
    # So that each turn goes as soon as it is rendered.
    turns.clear()
    grouper.turns.clear()
    while done:
        # Whatever keepLast keeps is still pending, and so is all that context.size lets go.
        out.add(done.pop(), is_open=False, kept=None if keep_last is None else (), gone=gone)
    return msgspec.structs.replace(
        state,
        commits=state.commits.grow(commits),
        fragments=state.fragments.grow(out.fragments),
        bare=state.bare.grow(out.bare),
        carried=state.carried.grow(out.carried),
        system=state.system.grow(out.system),
        decisions=state.decisions.grow(out.decisions),
        sent=state.sent.grow(tuple(out.opaque)),
        tally=state.tally + out.tally,
        settled=state.settled + settled,
        pending=pending,
        tools=grouper.tools,
        minted=grouper.minted,
        off=state.off or out.off,
        lifts=state.lifts or out.lifts,
        reached=out.reached,
        chain=out.chain,
        under=under,
        known=out.known,
    )


def _rendering(state: State, writer: Writer, under: str) -> Rendering:
    """Where the rendering of what follows the settled messages begins; ``under`` as in ``State``."""
    prefix = None
    if state.policy.binds:
        hasher = state.bare.hasher(b"", b"", b"\n", partial(bare_bytes, writer=writer))
        digests = under, state.inputs.prefix[1]
        prefix = Prefix(hasher, digests, state.floor, state.known, state.reached.changed)
    return Rendering(state.policy, state.invalid, writer, state.reached, state.chain, state.sent, prefix)


def _under(state: State, turns: Sequence[Turn], writer: Writer) -> str:
    """The digest of the system messages that reasoning in ``turns`` and before is judged under."""
    if not state.policy.binds or state.inputs.prefix[0]:
        return state.inputs.prefix[0]
    out = Rendering(state.policy, state.invalid, writer, state.reached)
    cut = window(turns, state.policy.settings.context_size)
    return _digest(state.system.hasher(b"", b"", b"\n", _same), out.systems(turns, cut))


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


def _kept(turns: Sequence[Turn], keep_last: int | None, *, carries: bool) -> frozenset[str] | None:
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
    """The next request of ``state``; and the state, folded again where what is bound to its prefix has a gap.

    Raises ``ReplayRefused``, and ``ContextRefused`` where what is left is no conversation.
    """
    made = Request(state, writer)
    if made.gap > state.floor:
        state = fold(state.inputs, tuple(state.commits), writer, made.gap)
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
        self._tail = tail = _rendering(state, writer, state.under)
        turns = selected(state.pending, state.selection)
        size = state.policy.settings.context_size
        finished = count_finished(turns, by_user=writer.results_by_user)
        cut = window(turns, size)
        if size is not None and cut + state.settled:
            # What stood before the turns that are left is gone for all but the last of them.
            tail.change(next((unit.seq for unit in turns[-1].responses), -1))
        kept = _kept(turns[cut:finished], state.policy.keep_last, carries=state.policy.settings.carry)
        for at, turn in enumerate(turns):
            tail.add(turn, is_open=at >= finished, kept=kept, gone=BEYOND if at < cut else "")
        self.off, self.lifts = state.off or tail.off, state.lifts or tail.lifts
        self.gap = tail.chain.gap
        self._skip, self._kept_messages, self.kept = tail.anchor or (0, 0, "")
        open_at = tail.open_at if tail.open_at >= 0 else tail.reached.messages
        self.open_at = max(open_at - self._kept_messages, 0)
        self._counts: Counts | None = None

    def check(self, writer: Writer) -> None:
        """Raises ``ContextRefused`` where what is left after what people took away is no conversation."""
        reached, endpoint = self._tail.reached, self.state.inputs.target.endpoint.id
        refused = {"never": (), "calls": ("calls",), "always": ("calls", "assistant")}[writer.user_first]
        if not reached.left or (reached.first and reached.first not in refused):
            return
        what = "the first message that is left is not the user's" if reached.first else "nothing is left to send"
        more = reached.left - len(reached.named)
        named = ", ".join(reached.named) + (f" and {more} more" if more else "")
        raise ContextRefused(
            f"{what}, and {endpoint} would refuse it; left out: {named}",
            details={"endpoint": endpoint, "left_out": reached.left},
            next_actions=("annotate one of the user's messages as normal", "or raise context.size, or ask something"),
        )

    @property
    def system(self) -> list[bytes]:
        """The system messages that stand on top."""
        return [*self.state.system, *self._tail.system] if self._tail.is_on_top else []

    def fragments(self) -> Iterator[bytes]:
        """What is sent between start and end, in order."""
        if not self._skip:
            yield from self.state.fragments
        yield from self._rest()

    def body(self, writer: Writer, end: bytes) -> Iterator[bytes]:
        """The pieces of the request body, many messages in each."""
        yield writer.start
        separator = b""
        settled = () if self._skip else self.state.fragments.batches()
        for fragments in (*settled, self._rest()):
            if fragments:
                yield separator + writer.separator.join(fragments)
                separator = writer.separator
        yield end

    def digests(self, writer: Writer, end: bytes, tools: Sequence[Tool]) -> Digests:
        """Digests for the request record; of what is settled only the new part is hashed."""
        tail, fragments = self._tail, self._rest()
        if self._skip:
            sent, between = hashlib.sha256(writer.start), b""
        else:
            sent = self.state.fragments.hasher(writer.start, writer.separator, b"", _same)
            between = writer.separator if self.state.fragments.length and fragments else b""
        sent.update(between + writer.separator.join(fragments) + end)
        bare = partial(bare_bytes, writer=writer)
        return Digests(
            system=_digest(self.state.system.hasher(b"", b"", b"\n", _same), tail.system),
            tools=tools_digest(tools),
            messages=_digest(self.state.bare.hasher(b"", b"", b"\n", bare), [bare(item) for item in tail.bare]),
            carriers=_digest(self.state.carried.hasher(b"", b"", b"\n", _same), tail.carried),
            sent=sent.hexdigest(),
        )

    def _rest(self) -> list[bytes]:
        """The fragments that are not settled, without those that the provider keeps."""
        rest = self._tail.fragments[self._skip :]
        return [self._tail.first, *rest[1:]] if self._skip and rest and self._tail.first else rest

    def decisions(self) -> list[Decision]:
        """Every decision, in order of the log; ``message`` is the index in the message array."""
        made = [*self.state.decisions, *self._tail.decisions]
        return [self._left_out(decision) for decision in made] if self.kept else made

    def _left_out(self, decision: Decision) -> Decision:
        """What the provider has anyway is not sent, and what is sent begins a new array."""
        if decision.message >= self._kept_messages:
            return msgspec.structs.replace(decision, message=decision.message - self._kept_messages)
        if decision.action == "drop":
            return decision
        reason = f"the provider keeps the conversation up to response {self.kept}"
        return msgspec.structs.replace(decision, action="server", message=-1, reason=reason)

    def __len__(self) -> int:
        return self._tail.reached.messages - self._kept_messages

    def counts(self) -> Counts:
        """Estimated tokens, stored and sent."""
        if self._counts is None:
            self._counts = self._counted()
        return self._counts

    def _counted(self) -> Counts:
        sums = self.state.tally + self._tail.tally
        reasoning = sums.reasoning(sums.sent_reasoning)
        return Counts(
            raw=round(sums.other(sums.raw - sums.raw_reasoning) + sums.reasoning(sums.raw_reasoning)),
            effective=round(sums.other(sums.sent - sums.sent_reasoning) + reasoning),
            effective_reasoning=round(reasoning),
            limit=self.state.inputs.target.info.context,
            calibrated=sums.is_calibrated,
        )


def tools_digest(tools: Sequence[Tool]) -> str:
    """Hex SHA-256 of the tools as they are offered."""
    return hashlib.sha256(canonical.encode(tuple(tools))).hexdigest()


def _same(item: bytes) -> bytes:
    return item


def _digest(hasher: hashlib._Hash, tail: Sequence[bytes]) -> str:
    hasher.update(b"".join(item + b"\n" for item in tail))
    return hasher.hexdigest()


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
