"""The fold: commits to the next request.

``extend`` takes commits into a state; ``Request`` turns a state into messages, decisions and counts. Finished turns
whose rendering can no longer change are *settled*: their bytes are kept, so that a further turn costs what it adds.
Promises: a state is never changed by ``extend``; from empty or step by step, the bytes are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from thinkback.compile.counts import Tally
from thinkback.compile.grown import Grown, Known
from thinkback.compile.policy import Inputs, Policy
from thinkback.compile.render import Bare, Rendering
from thinkback.compile.units import Grouper, Turn, count_finished
from thinkback.model import canonical
from thinkback.model.commits import Commit, Repair, Tool, Tools
from thinkback.model.plan import NOTHING, Counts, Digests, Writer
from thinkback.model.target import Decision, merge


class State(msgspec.Struct, frozen=True):
    """What the fold knows. ``pending`` turns may still change; the ``settled`` ones before them cannot.

    ``sent`` are the opaque values that the settled messages carry, ``off`` whether one of them turns thinking off.
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
    off: bool = False


def empty(inputs: Inputs) -> State:
    """The state before the first commit."""
    return _start(inputs, ())


def fold(inputs: Inputs, commits: Sequence[Commit], writer: Writer) -> State:
    """The state after ``commits``, from empty. Raises ``ReplayRefused``."""
    grouper = Grouper()
    grouper.take(commits)
    return _take(_start(inputs, grouper.repairs), commits, grouper, writer)


def extend(state: State, commits: Sequence[Commit], writer: Writer) -> State:
    """``state`` with ``commits`` taken in. Raises ``ReplayRefused``.

    All is folded again where what is settled may change: a repair voids blocks, or something came late for them.
    """
    grouper = Grouper(state.pending, state.tools)
    grouper.take(commits)
    late = grouper.missed and state.settled > 0
    if late or any(_applies(repair, state.inputs) for repair in grouper.repairs):
        return fold(state.inputs, (*state.commits, *commits), writer)
    return _take(state, commits, grouper, writer)


def _start(inputs: Inputs, repairs: Sequence[Repair]) -> State:
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
    )


def _applies(repair: Repair, inputs: Inputs) -> bool:
    """A repair holds until the target differs."""
    return repair.endpoint == inputs.target.base_url and repair.model == inputs.target.model


def _take(state: State, commits: Sequence[Commit], grouper: Grouper, writer: Writer) -> State:
    """``state`` with what ``grouper`` made of ``commits``; what can no longer change is rendered and settled."""
    turns = grouper.turns
    keep_last = state.policy.keep_last
    settled = _count_settled(turns, keep_last)
    out = Rendering(state.policy, state.invalid, writer, len(state.fragments), state.sent)
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
        off=state.off or out.off,
    )


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


class Request:
    """The next request as pieces: settled bytes shared with the state, and those of the turns that may change.

    ``off``: thinking must be off in this request. Raises ``ReplayRefused``.
    """

    def __init__(self, state: State, writer: Writer) -> None:
        self.state = state
        self._tail = Rendering(state.policy, state.invalid, writer, len(state.fragments), state.sent)
        turns = list(state.pending)
        finished = count_finished(turns)
        kept = _kept(turns[:finished], state.policy.keep_last)
        for at, turn in enumerate(turns):
            self._tail.add(turn, is_open=at >= finished, kept=kept)
        self.off = state.off or self._tail.off

    def fragments(self) -> Iterator[bytes]:
        """The messages in order."""
        yield from self.state.fragments
        yield from self._tail.fragments

    def body(self, writer: Writer, end: bytes) -> Iterator[bytes]:
        """The pieces of the request body, many messages in each."""
        yield writer.start
        separator = b""
        for fragments in (*self.state.fragments.batches(), self._tail.fragments):
            if fragments:
                yield separator + writer.separator.join(fragments)
                separator = writer.separator
        yield end

    def digests(self, writer: Writer, end: bytes, tools: Sequence[Tool]) -> Digests:
        """Digests for the request record; of what is settled only the new part is hashed."""
        tail = self._tail
        sent = self.state.fragments.hasher(writer.start, writer.separator, b"", _same)
        between = writer.separator if self.state.fragments.length and tail.fragments else b""
        sent.update(between + writer.separator.join(tail.fragments) + end)

        def bare(item: Bare) -> bytes:
            return item if isinstance(item, bytes) else writer.assistant(*item, NOTHING)

        return Digests(
            system=_digest(self.state.system.hasher(b"", b"", b"\n", _same), tail.system),
            tools=hashlib.sha256(canonical.encode(tuple(tools))).hexdigest(),
            messages=_digest(self.state.bare.hasher(b"", b"", b"\n", bare), [bare(item) for item in tail.bare]),
            carriers=_digest(self.state.carried.hasher(b"", b"", b"\n", _same), tail.carried),
            sent=sent.hexdigest(),
        )

    def decisions(self) -> list[Decision]:
        """Every decision, in order of the log; ``message`` is the index in the message array."""
        return [*self.state.decisions, *self._tail.decisions]

    def __len__(self) -> int:
        return len(self.state.fragments) + len(self._tail.fragments)

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


def _same(item: bytes) -> bytes:
    return item


def _digest(hasher: hashlib._Hash, tail: Sequence[bytes]) -> str:
    hasher.update(b"".join(item + b"\n" for item in tail))
    return hasher.hexdigest()


def added_params(policy: Policy, off: bool) -> dict[str, Any]:
    """Parameters that go along with what is sent: the retention switch, or thinking off for this turn."""
    rule = policy.rule
    params: dict[str, Any] = {}
    if rule.keep_switch is not None and policy.thinking and not off and policy.keeps_later():
        params = merge(params, rule.keep_switch.params)
    if rule.server_drop is not None and "server_drop" in policy.repaired:
        params = merge(params, rule.server_drop.params)
    return merge(params, rule.thinking_off) if off else params
