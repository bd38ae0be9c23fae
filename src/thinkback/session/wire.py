"""thinkback without its HTTP: plan a request, send it by anything, take the response in; adopt a history."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import msgspec

from thinkback.drive.agenda import Agenda, answer
from thinkback.drive.clock import now
from thinkback.errors import ProviderError, ThinkbackError
from thinkback.model import canonical
from thinkback.model.blocks import Origin, ToolCall
from thinkback.model.commits import Commit, Compaction, Draft, Message
from thinkback.session import adopt, apps, requests, turns
from thinkback.session.ids import new_id
from thinkback.session.planning import plan_of
from thinkback.session.reply import Reply
from thinkback.session.requests import CallOptions, Options, Prompt
from thinkback.session.stream import reply_of
from thinkback.settings.registry import BEGUN_WITH
from thinkback.turn import events, failures, pressure
from thinkback.turn.ask import Ask
from thinkback.turn.first_commits import opening_drafts
from thinkback.turn.machine import Turn
from thinkback.turn.permissions import Verdict
from thinkback.turn.plan import History, Plan
from thinkback.turn.retry import asked_for, is_retryable
from thinkback.wire import registry

if TYPE_CHECKING:
    from thinkback.session.configuration import Configuration
    from thinkback.session.conversation import Conversation


class Planned(NamedTuple):
    """A plan that waits for its response, and how it was asked for."""

    plan: Plan
    options: Options
    prompt: str | None


class Wire:
    """``plan``, send ``plan.url``, ``plan.headers``, ``plan.body``, then ``ingest`` what came back."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def plan(
        self,
        prompt: Prompt | None = None,
        *,
        tool_results: Mapping[str, str] | None = None,
        **options: Unpack[CallOptions],
    ) -> Plan:
        """The next request, after ``tool_results`` (call id to text) and ``prompt`` are stored. Options as ``chat``.

        Raises ``ReplayRefused`` where the endpoint demands reasoning that may not be sent, ``CredentialError``
        without a key, ``ThinkbackError`` without ``prompt`` while calls have no result.
        """
        conversation = self._conversation
        read = requests.read_options(options)
        said = turns.message(conversation, prompt) if prompt is not None else None
        turns.preflight(conversation, conversation.configure(), read, said).prepare()
        conversation.last_turn.settle()
        conversation.take()
        try:
            return self._plan(read, said, prompt, tool_results or {})
        finally:  # what is done with the plan, and when, is the program's
            conversation.holder.release()

    def _plan(self, read: Options, said: Message | None, prompt: Prompt | None, results: Mapping[str, str]) -> Plan:
        conversation = self._conversation
        conversation.begin(is_new=said is not None)
        waiting = requests.open_calls(conversation.history.commits)
        answered = requests.result_drafts(results, waiting)
        if prompt is None:
            requests.check_answered(waiting, results, {})
        conversation.append(answered)
        configuration = conversation.configure()
        read = apps.completed(configuration.app, configuration.target, conversation.history, read)
        conversation.append(_opening(configuration, conversation.history, said, read))
        plan = plan_of(conversation, configuration, read, with_key=True)
        found = pressure.automatic(conversation.history, plan)
        if found is not None and not turns.refusal(conversation, found):
            if lost := pressure.thoughts_lost(conversation.history, plan, found):
                warnings.warn(lost, stacklevel=4)
            conversation.append([Draft("compaction", found)])
            plan = plan_of(conversation, configuration, read, with_key=True)
        plan.authenticate(plan)
        conversation.planned = Planned(plan, read, said.text if said is not None else None)
        return plan

    def ingest(
        self,
        body: bytes | bytearray | memoryview | str | Iterable[bytes],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        *,
        plan: Plan | None = None,
    ) -> Reply:
        """Take in the response to ``plan`` (the last one): its body whole or in pieces, cut anywhere.

        Returns a ``Reply``; its ``state`` is ``None`` where its calls wait for results. Raises ``ProviderError`` for
        an error status: ``details["repaired"]`` is true where the next ``plan`` leaves out what was refused, and
        ``details["retryable"]`` where the same plan may be sent and ingested again. Raises ``NetworkError`` when
        iterating ``body`` fails, after what arrived is stored.
        """
        conversation = self._conversation
        known = conversation.planned
        if known is None or (plan is not None and plan is not known.plan):
            known = Planned(plan, Options(), None) if plan is not None else None
        if known is None:
            raise ThinkbackError("there is no plan to ingest a response for", next_actions=("call wire.plan first",))
        conversation.last_turn.settle()
        conversation.take()
        try:
            return self._ingest(known, body, status, headers)
        finally:
            conversation.holder.release()

    def _ingest(
        self,
        known: Planned,
        body: bytes | bytearray | memoryview | str | Iterable[bytes],
        status: int,
        headers: Mapping[str, str] | None,
    ) -> Reply:
        conversation = self._conversation
        conversation.refresh()
        pieces = _pieces(body)
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        if is_retryable(status):
            conversation.planned = known
            raise _retryable(known.plan, b"".join(pieces), status, lowered)
        conversation.planned = None
        return _Ingest(conversation, known).run(pieces, status, lowered)

    def adopt(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        minted_by: tuple[str, str] | None = None,
        dialect: str = registry.CHAT,
    ) -> tuple[Commit, ...]:
        """Take over a history the program holds, in the form of ``dialect``; returns the new commits.

        What the session already has is recognised and only the rest is added. Opaque values of unknown origin are
        kept and not replayed; ``minted_by=(endpoint, model)`` vouches for theirs, and says the dialect. Raises
        ``ThinkbackError`` when the histories differ, ``WireError`` for a message that is none.
        """
        conversation = self._conversation
        conversation.last_turn.settle()
        conversation.refresh()
        origin = self._origin(minted_by, dialect)
        drafts = registry.dialect(origin.dialect).read_messages(messages, new_id, origin)
        layers = conversation.layers
        if BEGUN_WITH in layers.texts("session"):  # whose conversation it is says what is asked for
            conversation.write_layer(layers.unset("session", BEGUN_WITH))
        return conversation.append(adopt.new_drafts(conversation.history.commits, drafts))

    def _origin(self, minted_by: tuple[str, str] | None, spoken: str) -> Origin:
        if minted_by is None:
            return Origin(spoken, "", "")
        endpoint, model = minted_by
        configuration = self._conversation.configure()
        place = configuration.place.changed(configuration.rules, endpoint=endpoint, model=model)
        target = place.target(configuration.rules)
        return Origin(target.endpoint.dialect, target.base_url, model, model, target.account, target.account_known)


class _Ingest:
    """Runs the turn machine over a response that somebody else fetched."""

    def __init__(self, conversation: Conversation, planned: Planned) -> None:
        self._conversation = conversation
        self._planned = planned
        ask, self._host = turns.ask_for(conversation, conversation.configure(), None, planned.options)
        ask = msgspec.structs.replace(ask, runnable=frozenset(), system=None, tools=None, max_retries=0)
        self._agenda = Agenda(Turn(conversation.history, ask, new_id, 0.0))
        self._sent = ""
        self._refused = ""

    def run(self, pieces: Iterable[bytes], status: int, headers: dict[str, str]) -> Reply:
        """Feed the response; returns the reply or raises what the turn ended with."""
        self._process(events.Began(now()))
        request = self._sent
        self._process(events.Head(request, status, headers, now()))
        try:
            for piece in pieces:
                self._process(events.Bytes(request, bytes(piece), now()))
        except Exception as error:  # the caller's own client: whatever it raises, what arrived is stored
            text = f"the response broke off: {type(error).__name__}: {error}"
            self._process(events.NetError(request, self._planned.plan.without_key(text), "network", now()))
            self._raise(error)
        except BaseException:
            self._process(events.Interrupt(now()))
            raise
        self._process(events.Closed(request, now()))
        self._raise(None)
        return reply_of(self._agenda.outcome, self._planned.prompt)

    def _raise(self, cause: Exception | None) -> None:
        outcome = self._agenda.outcome
        if outcome is None:
            raise ProviderError(
                self._refused,
                details={"repaired": True, "retryable": False, "provider_message": self._refused},
                next_actions=("plan and send again: what was refused is left out",),
            )
        error = outcome.error
        if isinstance(error, ProviderError):
            error.details |= {"repaired": False, "retryable": False}
        if error is not None:
            raise error from cause

    def _process(self, event: events.Event) -> None:
        """Pass the event on and perform what it leads to; once the request is repaired nothing more is sent here."""
        agenda = self._agenda
        agenda.tell(event)
        while (command := agenda.first()) is not None:
            match command:
                case events.BuildRequest() | events.Review() | events.Permit() | events.NextPlace():
                    agenda.tell(answer(self, command, now()))
                case events.Send():
                    self._sent = self._sent or command.id
                case events.Append():
                    self._append(command)
                case events.Emit() if getattr(command.delta, "state", "") in ("repairing", "compacting"):
                    self._refused = getattr(command.delta, "detail", "")
                case _:
                    pass
            agenda.done()

    def prepare(self) -> None:
        """The request is built; permissions are read where a call needs one."""

    def build(self) -> Plan:
        """The request that was sent: the turn begins behind it."""
        return self._planned.plan

    def review(self, subject: Plan | Compaction) -> str:
        """As for any turn of the session."""
        return self._host.review(subject)

    def permit(self, call: ToolCall) -> Verdict:
        """As for any turn of the session."""
        return self._host.permit(call)

    def next_place(self, reason: str) -> str:
        """The program sends elsewhere, or not."""
        return ""

    def _append(self, command: events.Append) -> None:
        conversation = self._conversation
        stored = conversation.line.append(command.step, conversation.history.head)
        self._agenda.tell(events.Appended(command.id, stored.commits, now(), stored.between, stored.opened))


def _opening(configuration: Configuration, history: History, said: Message | None, options: Options) -> list[Draft]:
    """What stands before the request: the end of a broken-off turn, changes of system and tools, the message."""
    offered = requests.stamped(options.tools, configuration.target.endpoint.dialect)
    drafts = opening_drafts(Ask(said, options.system, offered), history)
    if said is not None:
        history.release()
    return drafts


def _pieces(body: bytes | bytearray | memoryview | str | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(body, str):
        return [canonical.raw(body)]
    return [bytes(body)] if isinstance(body, bytes | bytearray | memoryview) else body


def _retryable(plan: Plan, body: bytes, status: int, headers: Mapping[str, str]) -> ProviderError:
    """The error for a refusal that may pass: nothing is stored, the plan stays good."""
    error = failures.refused(failures.read_failure(status, body, plan), plan)
    error.details |= {"repaired": False, "retryable": True, "retry_after": asked_for(headers, now())}
    error.next_actions = ("wait, then send the same plan again and ingest its response",)
    return error
