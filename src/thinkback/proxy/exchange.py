"""One request and its response: read, recognised, resumed, planned, sent, relayed and recorded; a machine without I/O.

Promises: what goes upstream is what compile decided on the history that the client's messages stand for; the dialect's
last event follows the record; whatever goes wrong, the client reads an error of its own dialect, and what arrived is
stored. Must not: know a provider, or a server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import ceil, isfinite
from typing import assert_never

import msgspec

from thinkback.errors import (
    CredentialError,
    HeadMovedError,
    NetworkError,
    ProviderError,
    StoreError,
    ThinkbackError,
)
from thinkback.model import canonical
from thinkback.model.commits import Commit, Step
from thinkback.model.deltas import Delta
from thinkback.proxy import losses, planning, presentation, recognition, request_view, resume, retention
from thinkback.proxy.client_state import Sealing
from thinkback.proxy.events import (
    Answered,
    Choose,
    Command,
    End,
    Event,
    Failed,
    FindErased,
    FindErasure,
    Flow,
    Head,
    Interrupt,
    Interrupted,
    Judged,
    KeepHistory,
    NextPlace,
    Receive,
    Route,
    Send,
    Settle,
    Sleep,
    Start,
    Store,
    Unavailable,
    Write,
)
from thinkback.proxy.presentation import Clock
from thinkback.proxy.problems import REFUSED, problem_of, public_reason, reason_of, refuses_own_key
from thinkback.proxy.relay import STREAM, Relay
from thinkback.proxy.report import Report
from thinkback.proxy.request_view import Facts, Received, View
from thinkback.proxy.resume import Resumed
from thinkback.proxy.retention import Line
from thinkback.session.ids import new_id
from thinkback.turn import events as turn_events
from thinkback.turn import exchange as turn_exchange
from thinkback.turn.ask import Ask
from thinkback.turn.machine import Turn
from thinkback.turn.permissions import Verdict
from thinkback.turn.plan import Plan
from thinkback.turn.prompt_cache import CacheUse, cache_use
from thinkback.turn.retry import OF_CREDENTIALS, asked_for, is_retryable
from thinkback.wire.registry import front
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, counted_as, counts

LARGEST = 64 * 2**20
"""Bytes that one response may have, so also one line of it: it is held in memory until it is stored."""
RETRIES = 2
"""How often a place that is busy is asked again where there is no other: clients ask again themselves."""
_DOCUMENT = "application/json"
_RECEIVE = Receive()
_UNPAID = 402
# In place of a log's epoch, of a history that no log has like that: nobody is to go on with it.
_NO_LOG = -1
# So many bytes are read in one go where nobody waits for what they say: piece by piece takes twice as long.
_TOGETHER = 4096


class Exchange:
    """``begin`` gives the first command, ``on`` the one that follows an event; ``None``: it is over. While the command
    ``Receive`` is open ``take`` may be given pieces, which spares a command and an event for each.

    Without ``sealing`` opaque values leave as they came, and the client keeps nothing for us. ``most`` is how many
    messages a request may have; ``jitter`` is a number in [0, 1). ``degraded``: something of this request was not
    stored before; ``rests``: the log is in trouble; ``retries``: see ``RETRIES``.
    """

    def __init__(
        self,
        received: Received,
        sealing: Sealing | None,
        most: int,
        now: int,
        jitter: float,
        *,
        degraded: bool,
        rests: bool,
        retries: int = RETRIES,
        refusals: planning.Refusals | None = None,
    ) -> None:
        self._received = received
        self._sealing = sealing
        self._most = most
        self._rests = rests
        self._began = now
        self._jitter, self._retries = jitter, retries
        self._refusals = refusals if refusals is not None else planning.Refusals()
        self._plain: tuple[Route, str] | None = None
        self._clock = Clock(now)
        self._flow = self._run()
        # What was reached, for headers and report: each is set where it becomes known.
        self._facts: Facts | None = None
        self._view: View | None = None
        self._resumed: Resumed | None = None
        # How much of its history was there before the turn.
        self._begun_with = 0
        self._route: Route | None = None
        self._served: Route | None = None
        self._left: tuple[str, ...] = ()
        self._attempts, self._status = 0, 0
        # The headers of the provider's last response: what it says of when to come again is the client's to read.
        self._told: Mapping[str, str] = {}
        # Places that were left for others, and the one that was not asked as it rests.
        self._failed_over: list[str] = []
        self._unreached = ""
        self._degraded = degraded
        self._failure = self._reason = ""
        # Our id of the response: of the one that was sent for last, and as the client was told it.
        self._sent = self._response = ""
        # The request that was built last, and the hash of its record.
        self._plan: Plan | None = None
        self._dropped = losses.NONE_DROPPED
        self._answers: losses.Answers | None = None
        self._recorded = ""
        self._result: ReadResult | None = None
        self._is_whole = self._is_stored = False
        self._cache = CacheUse()
        # The response to the client: whether it has begun, and how it goes on.
        self._started = False
        self._relay: Relay | None = None
        # The response has reasoning, and none must come: what the client gets is ours.
        self.refuses_reasoning = False
        self._turn: _Turn | None = None

    def begin(self) -> Command | None:
        """The first command."""
        return self._next(Answered())

    def on(self, event: Event, now: int) -> Command | None:
        """Take the answer to the open command, or an interrupt; ``now`` is microseconds UTC.

        Raises what is no failure of a request but a fault, once its client was answered.
        """
        self._clock.now = now
        return self._next(event)

    def take(self, piece: bytes) -> bytes | None:
        """What goes to the client for a piece of its response, in place of ``on``; ``Receive`` stays open.

        ``None``: the piece is for ``on``, as there is more to do. So is what is raised here, as ``Failed``.
        """
        if not self._started or self._turn is None or self._turn.exchange.plan.strict:
            return None
        return self._turn.take(piece)

    @property
    def unread(self) -> int:
        """Bytes of the response since something came of them, which the next piece may make to be read together."""
        return self._turn.unread if self._turn is not None else 0

    def _next(self, event: Event) -> Command | None:
        try:
            match event:
                case Answered():
                    return self._flow.send(event.value)
                case Failed():
                    return self._flow.throw(event.error)
                case Interrupt():
                    return self._flow.throw(Interrupted(event))
                case _:
                    assert_never(event)
        except (StopIteration, Interrupted):
            return None

    @property
    def failure(self) -> str:
        """The kind of error in which it ended, or will; empty: none so far."""
        return self._failure

    def report(self) -> Report:
        """What is known by now."""
        facts, view, result = self._facts, self._view, self._result
        report = Report(
            model=facts.model if facts is not None else "",
            served=self._served.target.model if self._served is not None else "",
            upstream=self._served.name if self._served is not None else self._unreached,
            session=self.session,
            response=self._response,
            reattach=self._reattach,
            degraded=self._degraded,
            failure=self._failure,
            reason=self._reason,
            attempts=self._attempts,
            failed_over="; ".join(self._failed_over),
            record=self._recorded,
            plan=self._plan,
            asked=view.request.drafts if view is not None else (),
        )
        if result is not None and result.usage is not None and self._route is not None:
            usage = counted_as(result, self._route.target.rule.reasoning_tokens).usage or result.usage
            used = counts(usage)
            report = msgspec.structs.replace(
                report,
                input_tokens=used.input,
                output_tokens=used.output,
                reasoning_tokens=usage.reasoning,
                cached_tokens=usage.cached,
                cache_missed_tokens=self._cache.missed,
                cache_collapse=self._cache.cause,
            )
        if result is not None and self._is_whole:
            said = {"answered": result.blocks, "finish": result.response.outcome, "header": result.response}
            report = msgspec.structs.replace(report, **said)
        return report

    @property
    def session(self) -> str:
        """The session that the log has this exchange in, or will have: a response that began is stored, whole or not.

        Empty where nothing of it is recorded.
        """
        resumed = self._resumed
        if resumed is None or not self._received.client.records:
            return ""
        is_there = resumed.goes_on or self._relay is not None or self._is_stored
        return resumed.line.session if is_there else ""

    @property
    def _reattach(self) -> str:
        """The share of earlier answers whose reasoning is known and goes along; empty where none does."""
        resumed = self._resumed
        if resumed is None or self._received.as_written:
            return ""
        return self._dropped.amend(str(self._answers) if self._answers is not None else "unavailable")

    # -- the flow --------------------------------------------------------------------------------------------------

    def _run(self) -> Flow[None]:
        """Answer; every failure but the client's leaving becomes an error in its dialect."""
        try:
            view = yield from self._opened()
            resumed = yield from resume.resume(view, new_id(), new_id(), self._began, rests=self._rests)
            self._resumed, self._degraded, self._answers = resumed, resumed.degraded, resumed.answers
            self._begun_with = len(resumed.history.commits)
            self._refuse_unknown(resumed)
            if self._received.counts_only:
                yield from self._count(view, resumed)
            else:
                yield from self._respond(view, resumed)
        except Interrupted as cut:
            self._failure = self._failure or cut.interrupt.why
            if cut.interrupt.stop is not None:
                yield from self._send_problem(cut.interrupt.stop)
        except Exception as error:  # the outermost place where a request may fail: its client reads why
            yield from self._fail(error)
            if not isinstance(error, ThinkbackError):
                raise

    def _refuse_unknown(self, resumed: Resumed) -> None:
        """Raise ``Refused`` for a request that names a response of which nothing is known."""
        if resumed.unknown:
            raise resume.not_found(resumed.known.previous, front(self._received.front).body.previous)

    def _renewed(self, view: View, resumed: Resumed) -> Flow[tuple[View, Resumed]]:
        """The request as one that came in now, where anything was erased since it was looked up.

        It is recorded where it was to be, and its history is that of the turn under way, as the log has it now.
        """
        try:
            is_old = yield FindErasure()
        except Unavailable:  # what cannot be asked is as it was
            is_old = False
        if not is_old:
            return view, resumed
        view = yield from self._opened()
        found = yield from resume.resume(view, new_id(), new_id(), self._began, rests=False)
        history, begun_with = resumed.history, len(found.history.commits)
        history.renew([*found.history.commits, *history.commits[self._begun_with :]], _NO_LOG)
        self._resumed = found._replace(history=history, line=resumed.line, goes_on=resumed.goes_on)
        self._answers = found.answers
        self._begun_with = begun_with
        self._refuse_unknown(found)
        return view, self._resumed

    def _opened(self) -> Flow[View]:
        """The request, with its tokens opened but for those of responses that were erased since they were sealed."""
        view = self._read()
        if view.sealed:
            try:
                erased = yield FindErased(view.sealed)
            except Unavailable:  # what cannot be asked is as it was
                erased = frozenset()
            if erased:
                view = self._read(erased)
        return view

    def _read(self, erased: frozenset[str] = frozenset()) -> View:
        received = self._received
        body = request_view.read_body(received.body)
        if received.counts_only and isinstance(wrapped := body.get(front(received.front).counts_in), dict):
            body = wrapped
            received = self._received = received._replace(body=canonical.encode(body))
        facts = request_view.read_facts(received.front, body, model=received.model, streams=received.streams)
        request_view.check_length(facts, self._most)
        if not received.verbatim:
            request_view.check_served(received.front, body)
        self._facts = facts
        self._view = request_view.view_of(received, body, facts, self._sealing, erased)
        return self._view

    def _count(self, view: View, resumed: Resumed) -> Flow[None]:
        """The tokens that the request would have, estimated."""
        self._route = yield Choose(view.facts.model, (), "")
        plan = yield from self._build(view, resumed)
        counted = max(plan.counts.effective, 1)
        yield from self._document(200, canonical.encode({front(view.received.front).counted: counted}))

    def _respond(self, view: View, resumed: Resumed) -> Flow[None]:
        self._route = yield Choose(view.facts.model, resume.last_origins(resumed.history), view.facts.end_user)
        resumed = self._resumed = yield from self._nearest(view, resumed, self._route)
        turn = self._turn = _Turn(resumed, self._jitter, self._clock, self._retries)
        try:
            outcome = yield from self._perform(view, resumed, turn)
        except StoreError:
            raise
        except (Interrupted, Exception):  # also a fault of ours: what arrived is stored
            turn.interrupt(self._clock.now)
            yield from self._perform(view, resumed, turn)
            raise
        yield from self._finish(view, resumed, turn, outcome)

    def _nearest(self, view: View, resumed: Resumed, route: Route) -> Flow[Resumed]:
        """Of the conversations with equal words, system and tools the one with the most reasoning that is valid here.

        Where reasoning is bound to what stands before it, prompts that changed in the past, or that stand among the
        messages, tell them apart as well. The first in order counts where several have as much.
        """
        if not resumed.found.others or not route.target.rule.prefix_bound or self._received.as_written:
            return resumed
        settings = yield Settle(route)
        best, most = resumed, planning.bound_reasoning(view, resumed, route, settings)
        for other in resumed.found.others:
            if most.goes == most.there:
                break
            trial: Resumed = yield from resume.on_another(view, resumed, other, new_id())
            has = planning.bound_reasoning(view, trial, route, settings)
            if has.goes > most.goes:
                best, most = trial, has
        return best

    def _finish(self, view: View, resumed: Resumed, turn: _Turn, outcome: turn_events.Outcome) -> Flow[None]:
        result = outcome.responses[-1][0] if outcome.responses else None
        if outcome.error is not None or result is None:
            error = turn.refused or outcome.error or RuntimeError("the turn brought no response")
            yield Judged(error)
            self._result = result
            self.refuses_reasoning = isinstance(error, ProviderError) and error.details.get("type") == "strict"
            relay = self._relay
            if relay is not None and result is not None and relay.has_document(result) and not refuses_own_key(error):
                # What the provider said is the client's to read, as it would be without us.
                self._failure, self._reason = failure_kind(error), reason_of(error)
                yield from self._document(200, relay.end(result))
            else:
                yield from self._fail(error)
            return
        yield Judged(None)
        self._result, self._is_whole = result, True
        if self._plain is not None:
            self._refusals.add(planning.place_of(self._plain[0]), self._clock.now)
        self._cache = cache_use(turn.exchange.plan)
        assert self._relay is not None
        data = self._relay.end(result)
        if view.facts.streams:
            yield from self._start(STREAM)
            yield End(data)
        else:
            yield from self._document(200, data)
        if not self._received.client.withholds:  # memory, too, forgets what may not be recorded
            weight = 4 * len(self._received.body) + 2 * turn.brought + 4096
            yield KeepHistory(resumed.history, weight)

    # -- the turn --------------------------------------------------------------------------------------------------

    def _perform(self, view: View, resumed: Resumed, turn: _Turn) -> Flow[turn_events.Outcome]:
        """Perform the turn's commands, in order, up to its end. One that is cut short is performed again."""
        while True:
            command = turn.first()
            match command:
                case turn_events.BuildRequest():
                    turn.done()
                    if command.plain and self._plain is None and self._route is not None:
                        self._plain = self._route, f"the provider refused it: {command.plain}"
                    try:
                        if self._attempts:  # a while has passed
                            view, resumed = yield from self._renewed(view, resumed)
                        plan = yield from self._build(view, resumed)
                    except ThinkbackError as error:  # refused: the turn says so and ends
                        turn.on(turn_events.Failed(command.id, error, self._clock.now))
                    else:
                        turn.on(turn_events.Built(command.id, plan, self._clock.now))
                case turn_events.Review(subject=subject):
                    turn.done()
                    # no hook sees a request, and no checkpoint is made
                    refusal = "" if isinstance(subject, Plan) else "the client says what its context is"
                    turn.on(turn_events.Reviewed(command.id, refusal, self._clock.now))
                case turn_events.Permit():
                    turn.done()
                    turn.on(turn_events.Permitted(command.id, Verdict("allow"), self._clock.now))
                case turn_events.NextPlace():
                    turn.done()
                    following = yield from self._next_place(command.reason)
                    place = "/".join(following.key) if following is not None else ""
                    turn.on(turn_events.PlaceChosen(command.id, place, self._clock.now))
                case turn_events.Append():
                    commits = yield from self._record(view, resumed, turn, command.step)
                    turn.done()
                    turn.on(turn_events.Appended(command.id, tuple(commits), self._clock.now))
                case turn_events.Emit():
                    turn.done()
                    if not turn.is_over:
                        yield from self._show((command.delta,))
                case turn_events.Send():
                    turn.done()
                    yield from self._send(view, turn, command)
                case turn_events.Timer():
                    turn.done()
                    yield Sleep(command.seconds)
                    turn.on(turn_events.Fired(command.id, self._clock.now))
                case turn_events.Cancel():
                    turn.done()
                case turn_events.Done():
                    return command.outcome
                case turn_events.RunTool() | turn_events.AskPerson():
                    raise RuntimeError("the gateway runs no tools: they are the client's")
                case _:
                    assert_never(command)

    def _next_place(self, reason: str) -> Flow[Route | None]:
        """Go on to the next place, where there is one."""
        left = self._route
        if left is not None and left.payer and self._status in OF_CREDENTIALS:
            return None  # the client's own credential: nobody else is asked in its place
        following: Route | None = yield NextPlace(reason)
        if following is not None and left is not None:
            self._failed_over.append(f"{left.name} ({public_reason(reason)})")
            self._route = following
        return following

    def _build(self, view: View, resumed: Resumed) -> Flow[Plan]:
        """The next request, to where it goes now."""
        route = self._route
        assert route is not None
        if self._received.as_written and self._attempts:
            raise ThinkbackError("a request that goes as its client wrote it cannot be repaired")
        if not route.passes_stored and not self._received.client.alone:
            request_view.check_stored(view.stored, route.upstream)
            recognition.check_names(resumed.known.drafts)
        settings = yield Settle(route)
        place = planning.place_of(route)
        refusal = self._plain[1] if self._plain is not None else self._refusals.why(place, self._clock.now)
        plan, left = planning.planned(view, resumed, route, settings, refusal)
        self._left = (*left, *presentation.withheld_from(view, plan))
        self._served, self._plan = route, plan
        self._dropped = losses.dropped(plan, resumed.history.commits)
        if resumed.answers is not None and (resumed.answers.missing or resumed.answers.brought):
            own = losses.own_reasoning(plan, resumed.history.commits)
            self._answers = losses.answers(resumed.history.commits, resumed.lost, own)
        self._attempts += 1
        return plan

    def _send(self, view: View, turn: _Turn, command: turn_events.Send) -> Flow[None]:
        """Send the request, and pass on what comes of it."""
        plan = command.plan
        self._sent = command.id
        body = planning.body_of(plan, self._received)
        try:
            self._status, self._told = 0, {}
            head: Head = yield Send(plan, body)
            self._status, self._told = head.status, head.headers
            turn.on(turn_events.Head(command.id, head.status, head.headers, self._clock.now))
            turn.begin(command.id, self._relayed(view, turn, plan, head) if 200 <= head.status < 300 else None)
            del body
            # what a provider says of a client's credential may quote it: nobody stores or repeats that
            mute = self._route is not None and self._route.payer != "" and head.status in REFUSED
            while not mute and (piece := (yield _RECEIVE)):
                data = turn.take(piece)
                if data is None:
                    turn.refused = _too_large()
                    turn.on(self._net_error(command.id, turn.refused))
                    return
                if data:
                    yield from self._write(data)
                if turn.stops:
                    break
            turn.on(turn_events.Closed(command.id, self._clock.now))
        except NetworkError as error:
            turn.on(self._net_error(command.id, error))

    def _net_error(self, id: str, error: NetworkError) -> turn_events.NetError:
        phase = error.details.get("phase", "network")
        # who was silent for as long as is waited is not asked again: clients ask themselves, and would wait three times
        permanent = bool(error.details.get("permanent")) or phase == "first_byte"
        return turn_events.NetError(id, error.message, phase, self._clock.now, permanent)  # type: ignore[arg-type]

    def _relayed(self, view: View, turn: _Turn, plan: Plan, head: Head) -> Relay:
        """The way of a response that begins."""
        exchange = turn.exchange
        keeper = presentation.keeper_of(view, self._sealing, exchange)
        shown = presentation.shown(view, exchange, keeper, self._began, self._clock)
        self._relay = Relay(view, plan, head.headers.get("content-type", ""), keeper, shown)
        return self._relay

    def _record(self, view: View, resumed: Resumed, turn: _Turn, step: Step) -> Flow[list[Commit]]:
        """Store a step of the turn, with that by which its response is found again."""
        shape, client = front(self._received.front), self._received.client
        goes_on = bool(shape.body.previous)
        sightings = retention.sightings(resumed.known, step, view.scope, shape.id_prefix, goes_on=goes_on)
        commits, entry = turn.line.sealed(step, sightings)
        kept = retention.packed(step) if client.withholds else None
        try:
            stored = yield Store(step, entry if client.records else None, kept, view.scope)
        except HeadMovedError:
            entry = retention.branched(entry)
            stored = yield Store(step, entry, None, view.scope)
        self._degraded, self._is_stored = self._degraded or not stored, True
        if stored and client.records:
            self._recorded = next((commit.hash for commit in commits if commit.kind == "request"), self._recorded)
        turn.line = turn.line.behind(commits, entry.branch)
        turn.brought += sum(len(commit.payload) for commit in commits)
        return commits

    # -- the client ------------------------------------------------------------------------------------------------

    def _show(self, deltas: Sequence[Delta]) -> Flow[None]:
        data = self._relay.show(deltas) if self._relay is not None else b""
        if data:
            yield from self._write(data)

    def _write(self, data: bytes) -> Flow[None]:
        if not self._started:
            yield from self._start(STREAM)
        yield Write(data)

    def _document(self, status: int, body: bytes, more: dict[str, str] | None = None) -> Flow[None]:
        """A whole response of this status."""
        yield from self._start(_DOCUMENT, status, more)
        yield End(body)

    def _start(self, kind: str, status: int = 200, more: dict[str, str] | None = None) -> Flow[None]:
        if self._started:
            return
        self._started = True
        kind = f"{kind}; charset=utf-8" if kind == STREAM else kind
        yield Start(status, {"content-type": kind, **(more or {}), **self._headers()})

    def _headers(self) -> dict[str, str]:
        """What the headers of a response say of it."""
        self._response = self._sent
        served = self._served
        values = {
            "thinkback-session": self.session,
            "thinkback-response": self._response,
            "thinkback-upstream": served.name if served is not None else "",
            "thinkback-failed-over": "; ".join(self._failed_over),
            "thinkback-reattach": self._reattach,
            "thinkback-degraded": "store" if self._degraded else "",
            "thinkback-left-out": "; ".join(self._left),
            "thinkback-system": presentation.system_of(self._plan),
        }
        return {name: presentation.header(value) for name, value in values.items() if value}

    def _fail(self, error: Exception) -> Flow[None]:
        self._failure = failure_kind(error)
        self._reason = reason_of(error)
        if isinstance(error, NetworkError):
            self._unreached = str(error.details.get("upstream", ""))
        problem, retry_after = problem_of(error)
        asked = asked_for(self._told, self._clock.now) if isinstance(error, ProviderError) else None
        if asked is not None and isfinite(asked) and is_retryable(problem.status):
            retry_after = max(asked, retry_after or 0.0)
        if isinstance(error, ProviderError) and self._route is not None and self._route.payer:
            problem = _of_own(error, problem)
        if isinstance(error, CredentialError) and self._received.client.alone:
            # who asks without a key, on loopback, is who has to set it
            remedy = "; ".join((error.message, *error.actions_for_people))
            problem = msgspec.structs.replace(problem, message=f"{problem.message}: {remedy}")
        yield from self._send_problem(problem, retry_after, by_provider=isinstance(error, ProviderError))

    def _send_problem(
        self, problem: Problem, retry_after: float | None = None, *, by_provider: bool = False
    ) -> Flow[None]:
        """No response, or not all of one: the client reads why in its dialect.

        ``by_provider``: the provider failed, so that its own last event may say so.
        """
        if self._started:
            assert self._relay is not None
            yield End(self._relay.fail(problem, by_provider=by_provider))
            return
        more = {"retry-after": str(max(1, ceil(retry_after)))} if retry_after is not None else {}
        yield from self._document(problem.status, front(self._received.front).write_error(problem), more)


def failure_kind(error: Exception) -> str:
    """The kind of ``error``, for logs and measures."""
    return error.kind if isinstance(error, ThinkbackError) else type(error).__name__


def _of_own(error: ProviderError, problem: Problem) -> Problem:
    """What a provider made of a client's own credential: the client can mend it."""
    status = int(str(error.details.get("status") or 0))
    if status in REFUSED:
        return Problem(status, "the provider refused the credential that was sent", code="refused_credential")
    if status == _UNPAID:
        return Problem(status, str(error.details.get("provider_message") or error.message), code="unpaid")
    return problem


class _Turn:
    """The inner turn with what it still wants done, in order, and the line that it is recorded on.

    ``unread`` counts bytes of the response since something came of them, and ``refused`` is why no more of it is taken;
    ``brought`` counts the bytes that the turn has in the log. It ``is_over`` once nobody reads any more and only what
    is left is to be stored.
    """

    def __init__(self, resumed: Resumed, jitter: float, clock: Clock, retries: int) -> None:
        self.line: Line = resumed.line
        self.refused: NetworkError | None = None
        self.brought = self.unread = 0
        self.is_over = False
        # The response that comes: of which request, how it goes on, its size so far, and what of it is not read yet.
        self._id, self._size = "", 0
        self._relay: Relay | None = None
        self._pieces: list[bytes] = []
        self._clock = clock
        self._turn = Turn(
            resumed.history, Ask(max_steps=1, max_retries=retries, leaves_on_bad_key=True), new_id, jitter
        )
        self._waiting = deque(self._turn.on(turn_events.Began(clock.now)))

    @property
    def exchange(self) -> turn_exchange.Exchange:
        """The request that went out last."""
        assert self._turn.exchange is not None
        return self._turn.exchange

    def first(self) -> turn_events.Command:
        """The command to perform now."""
        if not self._waiting:
            raise RuntimeError("the turn is not over and waits for nothing: a command or its answer was lost")
        return self._waiting[0]

    def done(self) -> None:
        """The first command was performed."""
        self._waiting.popleft()

    def on(self, event: turn_events.Event) -> None:
        """Pass ``event`` on, behind all that came before it."""
        self._read()
        self._waiting.extend(self._turn.on(event))

    def begin(self, id: str, relay: Relay | None) -> None:
        """The body of what was sent for as ``id`` comes, which passes by ``relay`` where it is a response."""
        self._id, self._relay, self._size, self.unread = id, relay, 0, 0

    @property
    def stops(self) -> bool:
        """Whether the rest of the response is not read: it has reasoning, and none must come."""
        return self._turn.stops

    def take(self, piece: bytes) -> bytes | None:
        """What goes to the client for a piece of the body; ``None`` where that is too large.

        Where the bytes themselves pass, they are read when it suits: what they say is of no account before the end. But
        where no reasoning must come, none passes.
        """
        size, relay = len(piece), self._relay
        self._size += size
        if self._size > LARGEST:
            return None
        self.unread += size
        self._pieces.append(piece)
        if relay is not None and relay.passes:
            if self.exchange.plan.strict:
                self._read()
                if self.stops:
                    return b""
            data = relay.piece(piece)
            if self.unread >= _TOGETHER:
                self._read()
            return data
        deltas = self._read()
        return relay.show(deltas) if relay is not None and deltas else b""

    def _read(self) -> list[Delta]:
        """What there is to show of the pieces that were not read."""
        if not self._pieces:
            return []
        data = b"".join(self._pieces)
        self._pieces.clear()
        deltas = self._turn.feed(turn_events.Bytes(self._id, data, self._clock.now))
        if deltas:
            self.unread = 0
        return deltas

    def interrupt(self, now: int) -> None:
        """End the turn: of what was not begun only appends remain."""
        self.is_over = True
        owed = (turn_events.Append, turn_events.Done)
        self._waiting = deque(command for command in self._waiting if isinstance(command, owed))
        self.on(turn_events.Interrupt(now))


def _too_large() -> NetworkError:
    details = {"phase": "network", "permanent": True, "largest": LARGEST}
    return NetworkError(f"the response of the upstream has more than {LARGEST} bytes", details=details)
