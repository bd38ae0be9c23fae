"""The calls of a response: put to the rules and to a person, run, answered.

Keeps what is open. Promises: nothing runs before all calls of the response are decided; each call gets one result, in
the order of the calls where several share an id. Must not: store anything, or know how the turn goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import takewhile

import msgspec

from thinkback.model.blocks import ToolCall, ToolResult, is_leaked
from thinkback.model.commits import Draft, Effect, PermissionDecision
from thinkback.model.deltas import Status
from thinkback.turn import orphans
from thinkback.turn.ask import Ask
from thinkback.turn.events import AskPerson, Command, Emit, Permit, RunTool, ToolDone
from thinkback.turn.failures import reason_of
from thinkback.turn.orphans import OpenCall
from thinkback.turn.permissions import PermissionAnswer, PermissionRequest, Verdict, always
from thinkback.turn.repeats import Repeats

NOBODY = "there is no one to approve it: no approve= was given"
LEAKED = "the call stood inside the model's reasoning, where it may be a quotation"
_BESIDE = "This call was not run: another call of the same response was denied, and that ended the turn."
_BESIDE_REFUSED = "This call was not run: the user refused another call of the same response."


class Calls:
    """What is open of one turn. ``ids`` gives fresh ids. ``denied`` is why the turn is to end, ``stalled`` likewise."""

    def __init__(self, ask: Ask, ids: Callable[[], str]) -> None:
        self._ask = ask
        self._ids = ids
        # In the order of the response: every call without a stored result. Those that neither wait nor are undecided
        # run; ``_callers`` are those that the caller runs.
        self._open: dict[str, OpenCall] = {}
        self._callers: set[str] = set()
        self._waiting: set[str] = set()
        self._undecided: list[str] = []
        self._verdicts: dict[str, Verdict] = {}
        self._results: dict[str, tuple[Draft, ...]] = {}
        self._effects: dict[str, Effect] = {}
        self._question: tuple[str, Verdict] | None = None
        self._told: dict[str, str] = {}
        # The results of calls that are not run though the turn goes on.
        self._refusals: dict[str, str] = {}
        self._repeats = Repeats(ask.max_repeats)
        self._decisions: list[Draft] = []
        self.denied = ""

    def take(self, calls: Iterable[OpenCall], offered: Collection[str], *, asks: bool = True) -> None:
        """The calls of a response. What is ``offered`` without a function waits for the caller's results.

        A name that nobody offered is run too: the model is told that there is no such tool. ``asks``: a person decides
        about calls that leaked into reasoning, whoever runs them.
        """
        self._repeats.next_response()
        runnable = self._ask.runnable
        for open_call in calls:
            id, call = self._ids(), open_call.call
            self._open[id] = open_call
            if call.name not in runnable and (not runnable or call.name in offered):
                self._callers.add(id)
            if call.name in runnable or (asks and is_leaked(call)):
                self._undecided.append(id)
            elif id in self._callers:
                self._waiting.add(id)

    @property
    def running(self) -> list[str]:
        """The ids of calls that were decided and have no stored result."""
        return [id for id in self._open if id not in self._waiting and id not in self._undecided]

    @property
    def is_open(self) -> bool:
        """Whether a call is being decided or run."""
        return len(self._open) > len(self._waiting)

    @property
    def waits(self) -> bool:
        """Whether a call waits for the caller."""
        return bool(self._waiting)

    @property
    def stalled(self) -> str:
        """What was tried in vain too often."""
        return self._repeats.stalled

    # -- whether they may run --------------------------------------------------------------------------------------

    def permits(self) -> list[Command]:
        """What is asked of the settings now: a verdict on each call that is not decided yet."""
        self._verdicts = {}
        return [Permit(id, self._open[id].call) for id in self._undecided]

    def is_permit(self, id: str) -> bool:
        """Whether a verdict on the call ``id`` is waited for."""
        return id in self._undecided and id not in self._verdicts

    def permitted(self, id: str, verdict: Verdict | Exception) -> bool:
        """Take the verdict on a call, or why there is none; returns whether it was the last one that is waited for."""
        if not self.is_permit(id):
            return False
        self._verdicts[id] = self._checked(self._open[id].call, verdict)
        return len(self._verdicts) == len(self._undecided)

    def decide(self) -> None:
        """Apply the verdicts, up to the next call that a person is to decide, or to one that is denied."""
        self._question = None
        verdicts = {id: self._verdicts[id] for id in self._undecided}
        for id, verdict in verdicts.items():
            if verdict.action == "deny":
                self._deny(id, verdict)
                return
        for id, verdict in verdicts.items():
            if verdict.action == "ask":
                self._question = id, verdict
                return
            self._decided(id, verdict)

    def question(self) -> list[Command]:
        """What a person is to be asked now."""
        if self._question is None:
            return []
        id, verdict = self._question
        call = self._open[id].call
        request = PermissionRequest(call, verdict.effect, verdict.reason, str(always(call, verdict)))
        return [Emit(Status("asking", call.name, call=call.id)), AskPerson(id, request)]

    def answer(self, id: str, answer: PermissionAnswer) -> bool:
        """Take a person's word; ``False`` where nobody asked for it."""
        if self._question is None or self._question[0] != id:
            return False
        verdict, self._question = self._question[1], None
        if answer.allow:
            self._decided(id, verdict, answer)
        elif answer.goes_on:
            self._refuse_all(id, verdict, answer)
        else:
            self._deny(id, verdict, answer)
        return True

    def _checked(self, call: ToolCall, verdict: Verdict | Exception) -> Verdict:
        """``verdict``, tightened where nobody is there to be asked, or the call leaked; what failed allows nothing."""
        if isinstance(verdict, Exception):
            return Verdict("deny", by="mode", reason=f"the permissions could not be read: {reason_of(verdict)}")
        if verdict.fault:
            return verdict
        if verdict.action == "allow" and is_leaked(call):
            verdict = msgspec.structs.replace(verdict, action="ask", by="mode", reason=LEAKED)
        if verdict.action == "ask" and not self._ask.asks:
            return msgspec.structs.replace(verdict, action="deny", reason=f"{verdict.reason}, and {NOBODY}")
        return verdict

    def _refuse_all(self, id: str, verdict: Verdict, answer: PermissionAnswer) -> None:
        """Nothing of the response runs; each call has a result, and the model answers them."""
        for other in self._open:
            self._refusals.setdefault(other, _BESIDE_REFUSED)
        self._refusals[id] = f"The user refused this call: {answer.note}".removesuffix(": ")
        self._undecided = []
        self._waiting.clear()
        self._record(id, verdict, answer)

    def _decided(self, id: str, verdict: Verdict, answer: PermissionAnswer | None = None) -> None:
        self._undecided.remove(id)
        self._effects[id] = verdict.effect
        if verdict.fault:
            self._refusals[id] = verdict.fault
        elif id in self._callers:
            self._waiting.add(id)
        self._record(id, verdict, answer)

    def _deny(self, id: str, verdict: Verdict, answer: PermissionAnswer | None = None) -> None:
        call = self._open[id].call
        said = f"denied by a person: {answer.note}".rstrip(": ") if answer else f"denied: {verdict.reason}"
        self._told[id] = f"This call was not run: it was {said}."
        self.denied = f"{call.name} was {said}"
        self._record(id, verdict, answer)

    def _record(self, id: str, verdict: Verdict, answer: PermissionAnswer | None) -> None:
        """A decision for the log, where anybody decided: what just runs, because no rule was made, is none."""
        if not verdict.by and answer is None:
            return
        call = self._open[id].call
        allows = answer.allow if answer else verdict.action == "allow"
        said = PermissionDecision(
            call.id,
            call.name,
            "allowed" if allows else "denied",
            "person" if answer else verdict.by or "mode",
            verdict.effect,
            verdict.reason,
            answer.note if answer else "",
            answer is not None and answer.always,
        )
        self._decisions.append(Draft("permission_decision", said))

    # -- running ---------------------------------------------------------------------------------------------------

    def start(self) -> list[Command]:
        """Run what was decided."""
        running = {id: self._open[id].call for id in self.running}
        started: list[Command] = [Emit(Status("tool_started", call.name, call=call.id)) for call in running.values()]
        return started + [RunTool(id, call, self._refusals.pop(id, "")) for id, call in running.items()]

    def done(self, event: ToolDone) -> tuple[Status, list[tuple[Draft, ...]]] | None:
        """A tool gave something: what to tell, and the results (with their notes) that can be stored now, none where
        one before them is missing. ``None`` where nothing waits for it.
        """
        if event.id in self._results or event.id not in self.running:
            return None
        call, response = self._open[event.id]
        result = ToolResult(call.id, event.content, name=call.name, is_error=event.is_error)
        self._results[event.id] = (Draft("tool_result", result, response), *event.notes)
        self._repeats.take(call, event, self._effects.pop(event.id, "runs"))
        storable = self._storable(call.id)
        for id in storable:
            del self._open[id]
        status = Status("tool_finished", call.name, call=call.id, failed=event.is_error, result=event.content)
        return status, [self._results.pop(id) for id in storable]

    def _storable(self, call_id: str) -> list[str]:
        """The calls under the id ``call_id`` whose results may be stored: where several share it, only the order of
        their results says which is whose."""
        sharing = (id for id in self.running if self._open[id].call.id == call_id)
        return list(takewhile(self._results.__contains__, sharing))

    # -- the end ---------------------------------------------------------------------------------------------------

    def interrupted(self) -> list[Draft]:
        """Results for all that is open, those that came as they came."""
        return self._close(lambda _, open_call: orphans.interrupted(open_call))

    def not_run(self) -> list[Draft]:
        """Results that tell of a denial, behind the decisions that are not stored yet."""
        return self.pending() + self._close(self._not_run)

    def _not_run(self, id: str, open_call: OpenCall) -> Draft:
        call, response = open_call
        text = self._told.get(id, _BESIDE)
        return Draft("tool_result", ToolResult(call.id, text, call.name, is_error=True, status="not_run"), response)

    def pending(self) -> list[Draft]:
        """The decisions that are not stored yet; they are taken to be, then."""
        decisions, self._decisions = self._decisions, []
        return decisions

    def _close(self, result: Callable[[str, OpenCall], Draft]) -> list[Draft]:
        owed = [self._results.get(id) or (result(id, open_call),) for id, open_call in self._open.items()]
        self._open, self._results, self._undecided, self._question = {}, {}, [], None
        self._waiting.clear()
        return [draft for drafts in owed for draft in drafts]
