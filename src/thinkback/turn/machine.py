"""The turn: from a user message to a terminal state, as a state machine.

``on(event)`` returns commands. Promises: a step is stored before its tools run and before ``Done``; a response is
one step, each tool result another; retries happen only before the first byte of a body; whatever ends the turn,
every byte that arrived is in the log and the outcome says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, assert_never

from thinkback.model.blocks import ToolCall
from thinkback.model.commits import (
    Commit,
    Compaction,
    Draft,
    Failure,
    Step,
    TurnEnded,
    TurnState,
)
from thinkback.model.deltas import Delta, Status
from thinkback.turn import failures, orphans, pressure
from thinkback.turn.ask import Ask
from thinkback.turn.calls import Calls
from thinkback.turn.events import (
    Answered,
    Append,
    Appended,
    Began,
    BuildRequest,
    Built,
    Bytes,
    Cancel,
    Closed,
    Command,
    Done,
    Emit,
    Event,
    Failed,
    Fired,
    Head,
    Interrupt,
    NetError,
    NextPlace,
    Outcome,
    Permitted,
    PlaceChosen,
    Review,
    Reviewed,
    Send,
    Timer,
    ToolDone,
)
from thinkback.turn.exchange import Exchange
from thinkback.turn.first_commits import opening_drafts
from thinkback.turn.orphans import OpenCall
from thinkback.turn.outcome import state_after
from thinkback.turn.overflow import is_overflow
from thinkback.turn.plan import History, Plan
from thinkback.turn.repair import asks_too_much, next_repair, stands_in
from thinkback.turn.reports import report_of
from thinkback.turn.retry import backoff, is_retryable, refuses_key
from thinkback.wire.result import ReadResult


class _Setback(NamedTuple):
    """A request brought no answer, for ``reason``; ``state`` and ``error`` end the turn where nothing helps.

    ``failure`` is what the provider said in place of one. ``moves``: another place may answer; ``waits``: this one may
    later. ``response`` is a stored response that only says so.
    """

    reason: str
    state: TurnState
    error: Exception | None
    failure: Failure | None = None
    moves: bool = False
    waits: bool = False
    response: tuple[ReadResult, tuple[Commit, ...]] | None = None


class Turn:
    """One turn. ``ids`` gives fresh random ids; ``jitter``, in [0, 1), parts turns that failed together."""

    def __init__(self, history: History, ask: Ask, ids: Callable[[], str], jitter: float) -> None:
        self._history = history
        self._ask = ask
        self._ids = ids
        self._jitter = jitter
        self._steps = 0
        self._retries = 0
        # The request: ``_plan`` was built last and ``_last`` went out last; ``_awaited`` is the id of the Send or Timer
        # whose events count, ``_unrecorded`` says that the record of what went out is not in the log yet.
        self._plan: Plan | None = None
        self._last: Exchange | None = None
        self._awaited = ""
        self._unrecorded = False
        self._responses: list[tuple[ReadResult, tuple[Commit, ...]]] = []
        # What is open: calls, appends, and the question about the next request; ``_setback`` is why there is to be one
        # in place of the last.
        self._calls = Calls(ask, ids)
        self._pending: dict[str, Callable[[Appended], list[Command]]] = {}
        self._question: BuildRequest | Review | NextPlace | None = None
        self._setback: _Setback | None = None
        # Why the last repair was made, until the request is built again.
        self._repaired: _Setback | None = None
        # What the provider said of a request that asked for more than its client.
        self._plain = ""
        self._interrupted = False
        self._warned: set[str] = set()
        self._ended = False

    @property
    def exchange(self) -> Exchange | None:
        """The request that went out last, with what has come back of it."""
        return self._last

    def on(self, event: Event) -> list[Command]:
        """Take one event; returns the commands it leads to. Events after ``Done`` are ignored."""
        if self._ended:
            return []
        match event:
            case Began():
                return self._begin(event.now)
            case Appended():
                return self._on_appended(event)
            case ToolDone():
                return self._on_tool_done(event)
            case Answered():
                return self._on_answered(event)
            case Permitted():
                return self._decide_calls(event.now) if self._calls.permitted(event.id, event.verdict) else []
            case Failed() if self._calls.is_permit(event.id):
                return self._decide_calls(event.now) if self._calls.permitted(event.id, event.error) else []
            case Built() | Reviewed() | PlaceChosen() | Failed():
                return self._on_answer(event)
            case Interrupt():
                return self._on_interrupt(event.now)
            case Head() | Bytes() | Closed() | NetError() | Fired():
                return self._on_awaited(event) if event.id == self._awaited else []
            case _:
                assert_never(event)

    def feed(self, event: Bytes) -> list[Delta]:
        """A piece of the body, as ``on`` takes it; what there is to show of it, with no command around each delta."""
        return self._sent.feed(event.data) if event.id == self._awaited and not self._ended else []

    @property
    def stops(self) -> bool:
        """True if the rest of the response that comes is not wanted."""
        return self._sent.stops

    def _on_awaited(self, event: Head | Bytes | Closed | NetError | Fired) -> list[Command]:
        match event:
            case Head():
                self._sent.head(event)
                return []
            case Bytes():
                return [Emit(delta) for delta in self.feed(event)]
            case Closed():
                return self._on_closed(event.now)
            case NetError():
                return self._on_net_error(event)
            case Fired():
                return self._build(event.now)
            case _:
                assert_never(event)

    # -- the opening -----------------------------------------------------------------------------------------------

    def _begin(self, now: int) -> list[Command]:
        drafts = opening_drafts(self._ask, self._history)
        if self._ask.message is not None:
            self._history.release()
        if not drafts:
            return self._go_on(now)
        return self._append(drafts, now, lambda done: self._go_on(done.now))

    def _go_on(self, now: int) -> list[Command]:
        """Run the calls that an earlier turn left open, else send a request."""
        waiting = orphans.open_calls(self._history.commits) if self._ask.message is None else []
        return self._run_calls(waiting, now) if waiting and self._ask.runnable else self._build(now)

    def _build(self, now: int) -> list[Command]:
        """Have the next request built, to send it."""
        if self._interrupted:
            return self._end("interrupted", now)
        self._setback = None
        return self._inquire(BuildRequest(self._ids(), self._plain))

    def _inquire(self, question: BuildRequest | Review | NextPlace) -> list[Command]:
        """Ask the host about the next request; one such question is open at most."""
        self._question = question
        return [question]

    def _on_answer(self, event: Built | Reviewed | PlaceChosen | Failed) -> list[Command]:
        """The answer to the open question; one that comes after an interrupt is ignored."""
        question = self._question
        if question is None or event.id != question.id:
            return []
        self._question = None
        match question, event:
            case _, Failed(error=error, now=now):
                return self._end("failed", now, error)
            case BuildRequest(), Built(plan=plan, now=now):
                self._plan = plan
                setback, self._repaired = self._repaired, None
                if setback is not None and _is_again(plan, self._sent.plan):
                    return self._mend(setback, now)  # the repair changes nothing here: it would be refused again
                return [*self._warning(plan), *self._review(pressure.automatic(self._history, plan) or plan)]
            case Review(subject=Compaction() as found), Reviewed(refusal="", now=now):
                return self._compact(found, now)
            case Review(subject=Compaction()), Reviewed(now=now):
                return self._mend(self._setback, now) if self._setback else self._review(self._built)
            case Review(), Reviewed():
                return self._send()
            case NextPlace(), PlaceChosen(place=place, now=now):
                return self._on_place(place, now)
        raise TypeError(f"{type(event).__name__} is no answer to {type(question).__name__}")

    def _review(self, subject: Plan | Compaction) -> list[Command]:
        """Make room first where the context is full, else send the request; the hooks see either before."""
        return self._inquire(Review(self._ids(), subject))

    def _send(self) -> list[Command]:
        plan = self._built
        self._awaited = self._ids()
        self._last, self._unrecorded = Exchange(plan, self._awaited), True
        return [Emit(Status("sending", plan.target.model)), Send(self._awaited, plan)]

    @property
    def _built(self) -> Plan:
        assert self._plan is not None
        return self._plan

    # -- the context fills up --------------------------------------------------------------------------------------

    def _warning(self, plan: Plan) -> list[Command]:
        """What runs out: the context, the budget of reasoning. Each is said once in a turn."""
        found: list[Status] = []
        if pressure.level(plan.counts, plan.wanted):
            found.append(Status("filling", pressure.share(plan.counts)))
        if plan.budget:
            found.append(Status("budget", plan.budget))
        new = [status for status in found if status.state not in self._warned]
        self._warned.update(status.state for status in new)
        return [Emit(status) for status in new]

    def _compact(self, found: Compaction, now: int) -> list[Command]:
        """Say which thoughts a checkpoint costs, store it and build the request again."""
        lost = pressure.thoughts_lost(self._history, self._built, found)
        told: list[Command] = [Emit(Status("dropping_thoughts", lost))] if lost else []
        told.append(Emit(Status("compacting", pressure.describe(found))))
        return told + self._append(
            [*self._record(), Draft("compaction", found)], now, lambda done: self._build(done.now)
        )

    # -- the response ----------------------------------------------------------------------------------------------

    @property
    def _sent(self) -> Exchange:
        assert self._last is not None
        return self._last

    def _on_closed(self, now: int) -> list[Command]:
        return self._on_refusal(now) if self._sent.is_refused else self._store_response(None, now, "partial_failed")

    def _store_response(self, failure: Failure | None, now: int, broken: TurnState) -> list[Command]:
        """One transaction: the request's record, the response, its blocks, its usage, and the end if it is one.

        ``failure`` is why it broke off, if it did, and ``broken`` the state that this leads to.
        """
        deltas, result = self._sent.end(failure)
        self._awaited, self._unrecorded = "", False
        self._steps += 1
        drafts = self._sent.drafts(result, self._history, self._ask.keep_text)
        shown: list[Command] = [Emit(delta) for delta in deltas]
        state, reason = state_after(result, broken, self._ask, self._steps)
        error = result.response.error
        if state is not None and error is not None and not result.blocks and is_overflow(error):
            return shown + self._append(drafts, now, lambda done: self._after_overflow(result, error, state, done))
        if state is not None:
            drafts.append(Draft("turn_ended", TurnEnded(state, reason)))
        return shown + self._append(drafts, now, lambda done: self._after_response(result, state, reason, done))

    def _after_overflow(self, result: ReadResult, failure: Failure, state: TurnState, done: Appended) -> list[Command]:
        """A response that only says that the context is full."""
        error = failures.broken_off(result, state, self._sent.plan.target)
        return self._set_back(_Setback("", state, error, failure, response=(result, done.commits)), done.now)

    def _after_response(self, result: ReadResult, state: TurnState | None, why: str, done: Appended) -> list[Command]:
        self._responses.append((result, done.commits))
        response = self._sent.response
        self._sent.plan.answered(report_of(response, done.commits), self._history.commits, response)
        self._retries = 0
        if state is not None:
            return self._finish(state, failures.broken_off(result, state, self._sent.plan.target), why)
        calls = [OpenCall(block, self._sent.response) for block in result.blocks if isinstance(block, ToolCall)]
        # A response that only pauses is sent back as it is, and the model goes on.
        passes = self._sent.plan.leaked_calls == "pass"
        return self._run_calls(calls, done.now, leaked=not passes) if calls else self._build(done.now)

    # -- tools -----------------------------------------------------------------------------------------------------

    def _run_calls(self, calls: Iterable[OpenCall], now: int, *, leaked: bool = True) -> list[Command]:
        self._calls.take(calls, {tool.name for tool in self._history.tools}, asks=leaked)
        return self._permit_calls(now)

    def _permit_calls(self, now: int) -> list[Command]:
        """Ask the settings about the calls that are not decided; a call that a person denied ends the turn."""
        if self._interrupted:
            return self._end_interrupted_tools(now)
        return ([] if self._calls.denied else self._calls.permits()) or self._decide_calls(now)

    def _decide_calls(self, now: int) -> list[Command]:
        """Every verdict is there: store what was decided of the calls."""
        calls = self._calls
        if not calls.denied:
            calls.decide()
        if calls.denied:
            return self._end_with(calls.not_run(), "denied", calls.denied, now)
        decided = calls.pending()
        if decided:
            return self._append(decided, now, lambda done: self._start_calls(done.now))
        return self._start_calls(now)

    def _start_calls(self, now: int) -> list[Command]:
        """Ask a person about the next call, or run them when all are decided."""
        if self._interrupted:
            return self._end_interrupted_tools(now)
        return self._calls.question() or self._calls.start() or self._finish(None, None)

    def _on_answered(self, event: Answered) -> list[Command]:
        return self._permit_calls(event.now) if self._calls.answer(event.id, event.answer) else []

    def _on_tool_done(self, event: ToolDone) -> list[Command]:
        done = self._calls.done(event)
        if done is None:
            return []
        status, storable = done
        commands: list[Command] = [Emit(status)]
        for drafts in storable:
            commands += self._append([*drafts], event.now, self._after_tool)
        return commands

    def _after_tool(self, done: Appended) -> list[Command]:
        if self._pending:
            return []
        if self._interrupted:
            return self._end_interrupted_tools(done.now)
        if self._calls.is_open:
            return []
        if self._calls.waits:
            return self._finish(None, None)
        if self._calls.stalled:
            return self._end_with([], "stalled", self._calls.stalled, done.now)
        return self._build(done.now)

    # -- failures --------------------------------------------------------------------------------------------------

    def _on_refusal(self, now: int) -> list[Command]:
        """A status that says no: repair it if it is about reasoning, wait and send again if that may help, else end."""
        self._awaited = ""
        failure = self._sent.refusal()
        error, may_pass = failures.refused(failure, self._sent.plan), is_retryable(failure.status)
        reason = f"HTTP {failure.status}: {failure.message}"
        moves = may_pass or (self._ask.leaves_on_bad_key and refuses_key(failure.status, failure.message))
        return self._set_back(_Setback(reason, "failed", error, failure, moves=moves, waits=may_pass), now)

    def _set_back(self, setback: _Setback, now: int) -> list[Command]:
        """Send less, where the provider said that it was too much, else try what else may help."""
        self._setback, failure = setback, setback.failure
        found = None
        if failure is not None and is_overflow(failure):
            found = pressure.after_refusal(self._history, self._sent.plan, failure.message)
        return self._review(found) if found is not None else self._mend(setback, now)

    def _mend(self, setback: _Setback, now: int) -> list[Command]:
        """Leave out what was refused, go on to the next place, or end the turn."""
        if setback.response is not None:
            self._responses.append(setback.response)
            return self._end(setback.state, now, setback.error)
        failure = setback.failure
        repair = next_repair(self._sent.plan, failure, self._history.commits) if failure is not None else None
        if failure is not None and repair is not None:
            told: list[Command] = [Emit(Status("repairing", failure.message))]
            self._repaired = setback
            return told + self._append(
                [*self._record(), Draft("repair", repair)], now, lambda done: self._build(done.now)
            )
        if failure is not None and not self._plain and asks_too_much(self._sent.plan, failure):
            self._plain, self._repaired = failure.message or setback.reason, setback
            return [
                Emit(Status("repairing", failure.message)),
                *self._append(self._record(), now, lambda done: self._build(done.now)),
            ]
        if setback.moves:
            return self._inquire(NextPlace(self._ids(), setback.reason))
        return self._end(setback.state, now, setback.error)

    def _on_place(self, place: str, now: int) -> list[Command]:
        """Send to the next place; where there is none, wait for this one if that may help."""
        setback = self._setback
        assert setback is not None
        if not place:
            again = self._wait(setback.reason, now) if setback.waits else []
            return again or self._end(setback.state, now, setback.error)
        self._retries = 0
        told: list[Command] = [Emit(Status("failing_over", f"{place}; {setback.reason}"))]
        return told + self._append(self._record(), now, lambda done: self._build(done.now))

    def _wait(self, reason: str, now: int) -> list[Command]:
        """Send again in a while; nothing where that was done often enough, or is not worth the time."""
        if self._retries >= self._ask.max_retries:
            return []
        seconds = backoff(self._retries + 1, self._sent.headers, now, self._jitter)
        if seconds is None:
            return []
        self._retries += 1
        self._awaited = self._ids()
        return [Emit(Status("retrying", f"{reason}; again in {seconds:.1f} s")), Timer(self._awaited, seconds)]

    def _on_net_error(self, event: NetError) -> list[Command]:
        if self._sent.is_refused:
            return self._on_refusal(event.now)
        timed_out = event.phase != "network"
        if not self._sent.has_begun:
            self._awaited = ""
            error = failures.unreachable(event, self._sent.plan.target)
            waits = not event.permanent and event.phase != "total"
            state: TurnState = "timed_out" if timed_out else "failed"
            return self._set_back(_Setback(event.message, state, error, moves=True, waits=waits), event.now)
        kind = "timeout" if timed_out else "network"
        failure = Failure(event.message, type=kind, code=event.phase if timed_out else "")
        return self._store_response(failure, event.now, "timed_out" if timed_out else "partial_failed")

    def _on_interrupt(self, now: int) -> list[Command]:
        if self._interrupted:
            return []
        self._interrupted = True
        self._question = None
        if self._pending:
            return []
        if self._calls.is_open:
            return self._end_interrupted_tools(now)
        cancel: list[Command] = [Cancel(self._awaited)] if self._awaited else []
        self._awaited = ""
        if self._unrecorded and self._sent.has_begun:
            return cancel + self._store_response(Failure("interrupted", type="interrupted"), now, "interrupted")
        return cancel + self._end("interrupted", now)

    def _end_interrupted_tools(self, now: int) -> list[Command]:
        """Calls that did not finish are told so in the log, so that the next request is valid."""
        return self._end_with(self._calls.interrupted(), "interrupted", "", now)

    # -- the log ---------------------------------------------------------------------------------------------------

    def _append(self, drafts: list[Draft], now: int, then: Callable[[Appended], list[Command]]) -> list[Command]:
        id = self._ids()
        self._pending[id] = then
        return [Append(id, Step(id, tuple(drafts), now))]

    def _on_appended(self, event: Appended) -> list[Command]:
        then = self._pending.pop(event.id, None)
        if then is None:
            return []
        self._history.take([*event.between, *event.commits])
        told: list[Command] = [Emit(Status("branched", event.opened))] if event.opened else []
        return told + then(event)

    def _record(self) -> list[Draft]:
        """The record of a request that went out and brought no response, for ``why``."""
        if not self._unrecorded:
            return []
        self._unrecorded = False
        return [self._sent.record()]

    def _end(self, state: TurnState, now: int, error: Exception | None = None) -> list[Command]:
        self._awaited = ""
        drafts = [*self._record(), Draft("turn_ended", TurnEnded(state, failures.reason_of(error)))]
        return self._append(drafts, now, lambda _: self._finish(state, error))

    def _end_with(self, drafts: list[Draft], state: TurnState, reason: str, now: int) -> list[Command]:
        ending = Draft("turn_ended", TurnEnded(state, reason))
        return self._append([*drafts, ending], now, lambda _: self._finish(state, None, reason))

    def _finish(self, state: TurnState | None, error: Exception | None, reason: str = "") -> list[Command]:
        self._ended = True
        if state is not None:
            self._history.release()
        return [Done(Outcome(state, tuple(self._responses), self._plan, error, reason))]


def _is_again(plan: Plan, sent: Plan) -> bool:
    """Whether ``plan`` is another one that says what the one that was sent said, with more than its client asked for or
    stand-ins for reasoning.
    """
    if (
        plan is sent
        or not (stands_in(sent) or sent.unasked)
        or (plan.url, plan.added_headers) != (sent.url, sent.added_headers)
    ):
        return False
    return bytes(plan) == bytes(sent)
