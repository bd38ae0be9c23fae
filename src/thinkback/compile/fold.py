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
from thinkback.compile.grown import Grown, Known
from thinkback.compile.policy import Inputs, Policy
from thinkback.compile.render import START, Bare, Reached, Rendering, bare_bytes
from thinkback.compile.units import Grouper, Minted, Turn, count_finished
from thinkback.model import canonical
from thinkback.model.commits import Commit, Repair, Tool, Tools
from thinkback.model.plan import Counts, Digests, Writer
from thinkback.model.rule import Switch
from thinkback.model.target import Decision, merge, merge_headers


class State(msgspec.Struct, frozen=True):
    """What the fold knows. ``pending`` turns may still change; the ``settled`` ones before them cannot.

    ``sent`` are the opaque values that the settled messages carry, ``off`` whether one of them turns thinking off.
    ``reached`` is how far they are, ``chain`` what became of reasoning that is bound to its prefix, ``floor`` how many
    responses are left out of it to avoid a gap, and ``known`` how many messages are as they were when it was made.
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
    off: bool = False
    reached: Reached = START
    chain: Chain = NO_CHAIN
    floor: int = 0
    known: int = 0


def empty(inputs: Inputs) -> State:
    """The state before the first commit."""
    return _start(inputs, ())


def fold(inputs: Inputs, commits: Sequence[Commit], writer: Writer, floor: int = 0) -> State:
    """The state after ``commits``, from empty. Raises ``ReplayRefused``."""
    grouper = Grouper()
    grouper.take(commits)
    return _take(_start(inputs, grouper.repairs, floor), commits, grouper, writer)


def extend(state: State, commits: Sequence[Commit], writer: Writer) -> State:
    """``state`` with ``commits`` taken in. Raises ``ReplayRefused``.

    All is folded again where what is settled may change: a repair voids blocks, or something came late for them.
    """
    grouper = Grouper(state.pending, state.tools, state.minted)
    grouper.take(commits)
    late = grouper.missed and state.settled > 0
    if late or any(_applies(repair, state.inputs) for repair in grouper.repairs):
        return fold(state.inputs, (*state.commits, *commits), writer)
    return _take(state, commits, grouper, writer)


def _start(inputs: Inputs, repairs: Sequence[Repair], floor: int = 0) -> State:
    """An empty state that knows which of ``repairs`` hold for ``inputs``."""
    holding = [repair for repair in repairs if _applies(repair, inputs)]
    return State(
        inputs=inputs,
        policy=Policy(inputs, frozenset(repair.stage for repair in holding)),
        invalid=frozenset(hash for repair in holding for hash in repair.blocks),
        commits=Grown(),
        fragments=Grown(),
        bare=Grown(),
        carried=Grown(),
        system=Grown(),
        decisions=Grown(),
        sent=Known(),
        tally=Tally(),
        floor=floor,
    )


def _applies(repair: Repair, inputs: Inputs) -> bool:
    """A repair holds until the target differs."""
    return repair.endpoint == inputs.target.base_url and repair.model == inputs.target.model


def _take(state: State, commits: Sequence[Commit], grouper: Grouper, writer: Writer) -> State:
    """``state`` with what ``grouper`` made of ``commits``; what can no longer change is rendered and settled."""
    turns = grouper.turns
    keep_last = state.policy.keep_last
    settled = _count_settled(turns, keep_last)
    out = _rendering(state, writer)
    done, pending = turns[:settled][::-1], tuple(turns[settled:])
    turns.clear()  # so that each turn goes as soon as it is rendered
    while done:
        # Whatever keepLast keeps is still pending.
        out.add(done.pop(), is_open=False, kept=None if keep_last is None else ())
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
        reached=out.reached,
        chain=out.chain,
        known=out.known,
    )


def _rendering(state: State, writer: Writer) -> Rendering:
    """Where the rendering of what follows the settled messages begins."""
    prefix = None
    if state.policy.binds:
        hasher = state.bare.hasher(b"", b"", b"\n", partial(bare_bytes, writer=writer))
        prefix = Prefix(hasher, state.inputs.prefix, state.floor, state.known)
    return Rendering(state.policy, state.invalid, writer, state.reached, state.chain, state.sent, prefix)


def _count_settled(turns: list[Turn], keep_last: int | None) -> int:
    """How many leading turns can no longer change: finished, and out of reach of ``keepLast``."""
    finished = count_finished(turns)
    # The last finished turn stays: results and usage that come late mostly belong to it.
    limit = max(finished - 1, 0)
    if not keep_last:
        return limit
    behind = 0
    for at in range(finished - 1, -1, -1):
        if at < limit and behind >= keep_last:
            return at + 1
        behind += sum(unit.reasons for unit in turns[at].responses)
    return 0


def _kept(turns: Sequence[Turn], keep_last: int | None) -> frozenset[str] | None:
    """The last responses with reasoning of finished ``turns``; ``None``: all keep it."""
    if keep_last is None:
        return None
    hashes = [unit.hash for turn in turns for unit in turn.responses if unit.reasons]
    return frozenset(hashes[-keep_last:] if keep_last else ())


def request(state: State, writer: Writer) -> tuple[State, Request]:
    """The next request of ``state``; and the state, folded again where what is bound to its prefix has a gap.

    Raises ``ReplayRefused``.
    """
    made = Request(state, writer)
    if made.gap > state.floor:
        state = fold(state.inputs, tuple(state.commits), writer, made.gap)
        made = Request(state, writer)
    return state, made


class Request:
    """The next request as pieces: settled bytes shared with the state, and those of the turns that may change.

    ``off``: thinking must be off in this request. ``kept`` is the id of the response up to which the provider has the
    conversation, so that only what follows it is sent. Raises ``ReplayRefused``.
    """

    def __init__(self, state: State, writer: Writer) -> None:
        self.state = state
        self._tail = tail = _rendering(state, writer)
        turns = list(state.pending)
        finished = count_finished(turns)
        kept = _kept(turns[:finished], state.policy.keep_last)
        for at, turn in enumerate(turns):
            tail.add(turn, is_open=at >= finished, kept=kept)
        self.off = state.off or tail.off
        self.gap = tail.chain.gap
        self._skip, self._kept_messages, self.kept = tail.anchor or (0, 0, "")
        open_at = tail.open_at if tail.open_at >= 0 else tail.reached.messages
        self.open_at = max(open_at - self._kept_messages, 0)

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


def system_digest(messages: Sequence[bytes]) -> str:
    """Hex SHA-256 of the system messages on top."""
    return hashlib.sha256(b"".join(message + b"\n" for message in messages)).hexdigest()


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
        switch = rule.keep_switch if policy.keeps_later() else rule.drop_switch
        if switch is not None and (policy.asks or not switch.asked):
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
