"""A turn written down as what it asks for and what it is told, in the order it happens.

``play << command`` is what the turn must ask for next, ``play >> event`` what it is told then::

    Playbook("Why?") >> begins << keeps("user") << sends >> answers(said("42")) << keeps(...) << ends("completed")

A playbook is strict: a command that the script does not expect fails it where it comes up. What is only shown
(deltas) is not expected but collected in ``shown``. Questions to the host (the next request, a call's permission, the
next place, a hook's word) are answered at once by the functions that the playbook was made with; with ``scripted`` they
are expected and answered like anything else.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, TypeAlias

import msgspec

from thinkback.log.seal import seal
from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import (
    Commit,
    Compaction,
    Draft,
    Head,
    Message,
    PermissionDecision,
    Repair,
    Step,
    TurnEnded,
)
from thinkback.model.deltas import Delta, Status
from thinkback.model.rule import Auth, Endpoint, ModelInfo, Rule
from thinkback.model.target import Settings, Target
from thinkback.turn import events
from thinkback.turn.ask import Ask
from thinkback.turn.machine import Turn
from thinkback.turn.permissions import PermissionAnswer, Verdict
from thinkback.turn.plan import History, Plan

Telling: TypeAlias = Callable[["Playbook"], Iterable[events.Event]]
Expecting: TypeAlias = Callable[["Playbook", events.Command], None]

NOW = 1_770_000_000_000_000
KEY = "sk-of-the-playbook"
RULE = Rule(
    id="strict",
    endpoint="house",
    source="the tests",
    since="2025-01-01",
    form="field",
    open_turn="must",
    later="must",
    missing=("placeholder",),
    placeholder=" ",
)
ENDPOINT = Endpoint("house", "House", "https://house.example/v1", auth=Auth(env=("HOUSE_KEY",)))


def target(rule: Rule = RULE, model: str = "thinker", **changed: Any) -> Target:
    """A place under ``rule``; ``changed`` are fields of ``Target``."""
    endpoint = changed.pop("endpoint", ENDPOINT)
    place = Target(endpoint, endpoint.base_url, model, rule, ModelInfo(model), on="2026-11-21")
    return msgspec.structs.replace(place, **changed)


def rule(**changed: Any) -> Rule:
    """The strict rule with ``changed`` fields."""
    return msgspec.structs.replace(RULE, **changed)


class Playbook:
    """One turn. ``log`` is what the session holds before it; further arguments are those of ``Ask``."""

    def __init__(
        self,
        prompt: str | None = "Why?",
        *,
        log: Sequence[Draft] = (),
        history: History | None = None,
        at: Target | None = None,
        params: dict[str, Any] | None = None,
        plan: Callable[[], Plan] | None = None,
        permit: Callable[[ToolCall], Verdict] = lambda call: Verdict("allow"),
        sends: Callable[[Plan], object] = lambda plan: None,
        refuses: Callable[[Compaction], str] = lambda found: "",
        fail_over: Callable[[str], str] = lambda reason: "",
        scripted: bool = False,
        **ask: Any,
    ) -> None:
        self._host = (plan or self._plan, permit, sends, refuses, fail_over)
        self.scripted = scripted
        self.question: events.Question | None = None
        self.history = history or History(commits_of(log))
        self.at = at or target()
        self.params = {"stream": True} if params is None else params
        self.plans: list[Plan] = []
        self.plain: list[str] = []
        self.shown: list[Delta] = []
        self.outcome: events.Outcome | None = None
        self.open: dict[str, str] = {}
        self.unstored: deque[events.Append] = deque()
        self.waiting = ""
        self.asked: events.AskPerson | None = None
        self._queue: deque[events.Command] = deque()
        self._now = count(NOW)
        ids = count(1)
        message = Message(prompt) if prompt is not None else None
        asked = Ask(message=message, **ask)
        self.turn = Turn(self.history, asked, lambda: f"id-{next(ids)}", 0.5)

    def _plan(self) -> Plan:
        plan = self.history.plan(self.at, Settings(), None, self.params)
        return msgspec.structs.replace(plan, base_headers={"Authorization": f"Bearer {KEY}"})

    @property
    def now(self) -> int:
        """The clock; no two readings are equal."""
        return next(self._now)

    def __rshift__(self, telling: Telling) -> Playbook:
        """Tell the turn something; it must not have asked for anything that was not expected before."""
        self.nothing()
        for event in telling(self):
            self.tell(event)
        return self

    def __lshift__(self, expecting: Expecting) -> Playbook:
        """Expect a command."""
        assert self._queue, f"the turn asks for nothing where {expecting} was expected"
        expecting(self, self._queue.popleft())
        return self

    def tell(self, event: events.Event) -> None:
        """Pass one event on."""
        for command in self.turn.on(event):
            if isinstance(command, events.Emit):
                self.shown.append(command.delta)
            elif isinstance(command, events.Question) and not self.scripted:
                self.tell(self.answer(command))
            else:
                self._queue.append(command)

    def answer(self, question: events.Question) -> events.Event:
        """What the host says: ``Failed`` where it raises."""
        plan, permit, sends, refuses, fail_over = self._host
        try:
            match question:
                case events.BuildRequest(plain=plain):
                    self.plain.append(plain)
                    return events.Built(question.id, plan(), self.now)
                case events.Review(subject=subject):
                    if isinstance(subject, Compaction):
                        return events.Reviewed(question.id, refuses(subject), self.now)
                    sends(subject)
                    return events.Reviewed(question.id, "", self.now)
                case events.Permit():
                    return events.Permitted(question.id, permit(question.call), self.now)
                case events.NextPlace():
                    return events.PlaceChosen(question.id, fail_over(question.reason), self.now)
        except Exception as error:
            return events.Failed(question.id, error, self.now)

    def nothing(self) -> Playbook:
        """The turn asks for nothing (more)."""
        assert [] == list(self._queue)
        return self

    @property
    def kinds(self) -> list[str]:
        """What the session's log holds."""
        return [commit.kind for commit in self.history.commits]

    @property
    def statuses(self) -> list[str]:
        """The states of what was shown of the turn itself."""
        return [delta.state for delta in self.shown if isinstance(delta, Status)]

    @property
    def texts(self) -> list[tuple[str, str]]:
        """(role, content) of the messages of the last plan."""
        messages = [json.loads(message) for message in self.plans[-1].messages]
        return [(message["role"], message.get("content")) for message in messages]

    def reasoning(self) -> list[str | None]:
        """The reasoning on each assistant message of the last plan."""
        messages = [json.loads(message) for message in self.plans[-1].messages]
        return [message.get("reasoning_content") for message in messages if message["role"] == "assistant"]


def commits_of(drafts: Sequence[Draft], time: int = NOW) -> list[Commit]:
    """``drafts`` as the log of a session."""
    return seal(Step("given", tuple(drafts), time), Head())


# -- what a turn asks for ----------------------------------------------------------------------------------------------


def stores(kinds: str) -> Expecting:
    """An append of drafts of these kinds, not answered yet; a ``turn_ended`` is written as its state, a ``repair`` as
    its stage, a decision as what it says, a tool result that is not the tool's own word as ``result:status``."""

    def expect(play: Playbook, command: events.Command) -> None:
        assert isinstance(command, events.Append), command
        assert kinds.split() == [_word(draft) for draft in command.step.drafts]
        play.unstored.append(command)

    return expect


def keeps(kinds: str) -> Expecting:
    """The same, stored at once."""

    def expect(play: Playbook, command: events.Command) -> None:
        stores(kinds)(play, command)
        for event in stored(play):
            play.tell(event)

    return expect


def _word(draft: Draft) -> str:
    match draft.value:
        case TurnEnded():
            return draft.value.state
        case Repair():
            return f"repair:{draft.value.stage}"
        case PermissionDecision():
            return draft.value.decision
        case ToolResult() if draft.value.status != "run":
            return f"result:{draft.value.status}"
        case ToolResult():
            return "result"
        case _:
            return draft.kind


def sends(play: Playbook, command: events.Command) -> None:
    """A request; its plan is in ``plans``."""
    assert isinstance(command, events.Send), command
    play.plans.append(command.plan)
    play.waiting = command.id


def waits(seconds: float) -> Expecting:
    """A timer of about so many seconds."""

    def expect(play: Playbook, command: events.Command) -> None:
        assert isinstance(command, events.Timer), command
        assert seconds == round(command.seconds, 3)
        play.waiting = command.id

    return expect


def runs(*names: str) -> Expecting:
    """The calls of these tools, in order: the first is this command, the rest follow.

    A second call under one id is known as ``id#2``.
    """

    def expect(play: Playbook, command: events.Command) -> None:
        commands = [command, *(play._queue.popleft() for _ in names[1:])]
        for name, found in zip(names, commands, strict=True):
            assert isinstance(found, events.RunTool), found
            assert name == found.call.name
            same = sum(known.partition("#")[0] == found.call.id for known in play.open)
            play.open[f"{found.call.id}#{same + 1}" if same else found.call.id] = found.id

    return expect


def refused(**results: str) -> Expecting:
    """The calls of these tools come as refused, in order, each with its result."""

    def expect(play: Playbook, command: events.Command) -> None:
        found = [command, *(play._queue.popleft() for _ in list(results)[1:])]
        assert [*results.items()] == [(one.call.name, one.refusal) for one in found if isinstance(one, events.RunTool)]
        play.open |= {one.call.id: one.id for one in found if isinstance(one, events.RunTool)}

    return expect


def cancels(play: Playbook, command: events.Command) -> None:
    """The request or timer under way is given up."""
    assert events.Cancel(play.waiting) == command


def ends(state: str | None, error: type[Exception] | None = None) -> Expecting:
    """The turn is over."""

    def expect(play: Playbook, command: events.Command) -> None:
        assert isinstance(command, events.Done), command
        play.outcome = command.outcome
        assert (state, error) == (
            command.outcome.state,
            None if command.outcome.error is None else type(command.outcome.error),
        )
        play.nothing()

    return expect


def asks(name: str) -> Expecting:
    """A person is asked about a call of this tool."""

    def expect(play: Playbook, command: events.Command) -> None:
        assert isinstance(command, events.AskPerson), command
        assert name == command.request.call.name
        play.asked = command

    return expect


def questions(kind: type[events.Question]) -> Expecting:
    """The host is asked; only where the playbook is ``scripted``."""

    def expect(play: Playbook, command: events.Command) -> None:
        assert isinstance(command, events.Question), command
        assert isinstance(command, kind), command
        play.question = command

    return expect


# -- what it is told ---------------------------------------------------------------------------------------------------


def begins(play: Playbook) -> list[events.Event]:
    """Start."""
    return [events.Began(play.now)]


def stored(play: Playbook) -> list[events.Event]:
    """The oldest append that was not answered is stored."""
    command = play.unstored.popleft()
    return [events.Appended(command.id, tuple(seal(command.step, play.history.head)), play.now)]


def stored_after(*between: Draft) -> Telling:
    """The same, and another writer was first."""

    def tell(play: Playbook) -> list[events.Event]:
        command = play.unstored.popleft()
        others = seal(Step("other", between, play.now), play.history.head)
        head = msgspec.structs.replace(play.history.head, hash=others[-1].hash, seq=others[-1].seq)
        return [events.Appended(command.id, tuple(seal(command.step, head)), play.now, tuple(others))]

    return tell


def status(code: int, **headers: str) -> Telling:
    """The response's head."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda play: [events.Head(play.waiting, code, named, play.now)]


def brings(*pieces: bytes) -> Telling:
    """Pieces of the body."""
    return lambda play: [events.Bytes(play.waiting, piece, play.now) for piece in pieces]


def closes(play: Playbook) -> list[events.Event]:
    """The body ended in good order."""
    return [events.Closed(play.waiting, play.now)]


def answers(*pieces: bytes, code: int = 200, kind: str = "text/event-stream", **headers: str) -> Telling:
    """A whole response."""

    def tell(play: Playbook) -> list[events.Event]:
        head = status(code, **{"content_type": kind}, **headers)
        return [event for telling in (head, brings(*pieces), closes) for event in telling(play)]

    return tell


def refuses(code: int, message: str = "no", **headers: str) -> Telling:
    """An HTTP error in the common shape."""
    body = json.dumps({"error": {"message": message, "type": "refused", "code": "no"}}).encode()
    return answers(body, code=code, kind="application/json", **headers)


def breaks(phase: events.Phase = "network", permanent: bool = False) -> Telling:
    """The connection fails, or a time runs out."""
    return lambda play: [events.NetError(play.waiting, f"{phase} trouble", phase, play.now, permanent)]


def fires(play: Playbook) -> list[events.Event]:
    """The timer runs out."""
    return [events.Fired(play.waiting, play.now)]


def gives(call: str, content: str = "done", is_error: bool = False) -> Telling:
    """The tool of the call ``call`` returns."""
    return lambda play: [events.ToolDone(play.open[call], content, is_error, play.now)]


def says(allow: bool, note: str = "", always: bool = False, goes_on: bool = False) -> Telling:
    """The person answers the question."""

    def tell(play: Playbook) -> list[events.Event]:
        assert play.asked is not None
        return [events.Answered(play.asked.id, PermissionAnswer(allow, always, note, goes_on), play.now)]

    return tell


def replies(play: Playbook) -> list[events.Event]:
    """The host answers the last question."""
    assert play.question is not None
    return [play.answer(play.question)]


def fails(error: Exception) -> Telling:
    """The host cannot answer the last question."""

    def tell(play: Playbook) -> list[events.Event]:
        assert play.question is not None
        return [events.Failed(play.question.id, error, play.now)]

    return tell


def interrupts(play: Playbook) -> list[events.Event]:
    """Ctrl-C, a closed stream, a cancelled task."""
    return [events.Interrupt(play.now)]


# -- what providers say ------------------------------------------------------------------------------------------------


def chunk(finish: str | None = None, **delta: Any) -> bytes:
    """One server-sent event."""
    body = {"id": "r", "model": "thinker", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def thought(text: str) -> bytes:
    """A piece of reasoning."""
    return chunk(reasoning_content=text)


def word(text: str) -> bytes:
    """A piece of the answer."""
    return chunk(content=text)


def call(id: str, name: str, arguments: str = "{}", index: int = 0) -> bytes:
    """A tool call."""
    function = {"name": name, "arguments": arguments}
    return chunk(tool_calls=[{"index": index, "id": id, "type": "function", "function": function}])


def said(text: str = "", reasoning: str = "", *calls: str) -> bytes:
    """A whole stream; ``calls`` are ids, of the tool named by the part before the dash."""
    pieces = [thought(reasoning)] if reasoning else []
    pieces += [word(text)] if text else []
    pieces += [call(id, id.partition("-")[0], index=at) for at, id in enumerate(calls)]
    return b"".join([*pieces, chunk("tool_calls" if calls else "stop"), b"data: [DONE]\n\n"])


ANSWER = "request response reasoning assistant completed"
CALLS = "request response reasoning tool_call"
