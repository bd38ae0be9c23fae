"""One request and its response: read, taken up, planned, sent, shown and recorded.

Promises: what goes upstream is what compile decided on the history that the client's messages stand for; the dialect's
last event follows the record; whatever goes wrong, the client reads an error of its own dialect. Must not: touch a
socket, or know a provider.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from thinkback.drive.http import Timeouts
from thinkback.drive.sync import now
from thinkback.errors import CredentialError, NetworkError, ProviderError, ThinkbackError
from thinkback.gateway.access.estimating import estimate
from thinkback.gateway.engine import naming, planning, showing
from thinkback.gateway.engine.asked import Asked, check_length, read
from thinkback.gateway.engine.driver import Driver
from thinkback.gateway.engine.engine import Engine
from thinkback.gateway.engine.facts import read_body, read_facts
from thinkback.gateway.engine.relay import Relay
from thinkback.gateway.engine.showing import Showing, shown_as
from thinkback.gateway.engine.taking_up import TakenUp, take_up
from thinkback.gateway.grant import OPEN
from thinkback.gateway.incoming import ClientGone, Incoming, Notes, Sink
from thinkback.gateway.problems import told
from thinkback.gateway.recognition import conversation, references
from thinkback.gateway.upstreams.breakers import is_of_the_place
from thinkback.gateway.upstreams.routing import Choice
from thinkback.log.protocol import Entry
from thinkback.model import canonical
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Commit, Compaction, Step
from thinkback.session.fresh import new_id
from thinkback.turn import events, exchange
from thinkback.turn.ask import Ask
from thinkback.turn.machine import Turn
from thinkback.turn.permissions import Verdict
from thinkback.turn.plan import Plan
from thinkback.wire.registry import front
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import counted_as, counts

# How often a place that is busy is asked again where there is no other: clients ask again themselves.
_RETRIES = 2


async def respond(engine: Engine, incoming: Incoming, sink: Sink) -> None:
    """Answer one request. Whatever goes wrong is told to the client; cancelled, what arrived is stored."""
    await _Exchange(engine, incoming, sink).run()


class _Exchange:
    _asked: Asked
    _taken: TakenUp
    _showing: Showing
    _choice: Choice
    _driver: Driver
    _kept_there: tuple[str, ...]

    def __init__(self, engine: Engine, incoming: Incoming, sink: Sink) -> None:
        self._engine = engine
        self._config = engine.config
        self._incoming = incoming
        self._sink = sink
        self._notes = sink.notes
        self._began = now()
        self._turn: Turn | None = None
        self._left: tuple[str, ...] = ()
        self._brought = 0  # bytes that the response has in the log
        self._relay = Relay(
            sink,
            front(incoming.front),
            native=lambda plan: self._showing.is_native(plan),
            shown=lambda plan: self._showing.shown(plan),
            seal=lambda plan: self._showing.keeper(plan).value,
            sign=lambda plan: self._showing.keeper(plan).unsigned,
            headers=self._headers,
            apart=engine.apart,
        )

    async def run(self) -> None:
        """Answer; every failure but the client's leaving becomes an error in its dialect."""
        try:
            self._read()
            self._taken = await take_up(self._engine, self._asked, self._notes, new_id(), self._began)
            if self._incoming.counts_only:
                await self._count()
            else:
                await self._send()
        except ClientGone:
            self._notes.failure = "client_gone"
        except asyncio.CancelledError:
            self._notes.failure = self._notes.failure or "cancelled"
            if self._sink.stop is not None:
                await self._relay.fail(self._sink.stop)
            raise
        except Exception as error:  # the outermost place where a request may fail: the client is told
            await self._fail(error)
            if not isinstance(error, ThinkbackError):
                raise
        finally:
            # What it holds knows it: a large response would stay until Python looks for such circles.
            vars(self).clear()

    async def _fail(self, error: Exception) -> None:
        self._notes.failure = error.kind if isinstance(error, ThinkbackError) else type(error).__name__
        self._notes.reason = error.message if isinstance(error, CredentialError | NetworkError) else ""
        problem, retry_after = told(error)
        if isinstance(error, CredentialError) and self._incoming.grant.key == OPEN.key:
            # who asks without a key, on loopback, is who has to set it
            remedy = "; ".join((error.message, *error.next_actions))
            problem = msgspec.structs.replace(problem, message=f"{problem.message}: {remedy}")
        await self._relay.fail(problem, retry_after, is_told=isinstance(error, ProviderError))

    def _read(self) -> None:
        incoming = self._incoming
        body = read_body(incoming.body)
        facts = read_facts(incoming.front, body, model=incoming.model, streams=incoming.streams)
        check_length(facts, self._config.limits.max_messages)
        self._notes.model = facts.model
        naming.check_models(incoming.grant, incoming.front, body)
        self._kept_there = naming.kept(incoming.grant, incoming.front, body)
        self._relay.streams, self._relay.hides_counts = facts.streams, facts.hides_counts
        self._asked = read(incoming, body, facts, self._engine.sealer)
        report = front(incoming.front).reports
        self._relay.hides_report = bool(report) and report not in self._asked.request.params
        self._notes.said.asked = self._asked.request.drafts
        self._showing = Showing(self._asked, self._engine.sealer, self._began, self._under_way)

    async def _send(self) -> None:
        facts, history = self._asked.facts, self._taken.history
        origins = conversation.last_origins(history)
        choice = self._engine.router.choose(
            facts.model, self._incoming.grant, origins, facts.end_user, self._incoming.front
        )
        self._choice = choice
        self._turn = Turn(history, Ask(max_steps=1, max_retries=_RETRIES), new_id, random.random())
        limits = self._config.timeouts
        driver = self._driver = Driver(
            self._turn,
            self,
            self._relay,
            lambda plan: self._engine.transport(choice.current.place.proxy),
            Timeouts(limits.connect, limits.first_byte, limits.idle, limits.total),
            self._append,
            self._engine.executor,
            lambda plan: planning.body_of(plan, self._incoming),
            self._notes.phases,
            self._engine.apart,
        )
        await self._finish(await driver.run())

    def prepare(self) -> None:
        """Everything is in memory."""

    def build(self) -> Plan:
        """The next request, to where it goes now."""
        route, engine = self._choice.current, self._engine
        if not route.passes_stored and self._incoming.grant.key != OPEN.key:
            naming.check_kept(self._kept_there, route.upstream)
            references.check(self._taken.known.drafts)
        plan, left = planning.planned(self._asked, self._taken, route, engine.effective, self._config.settings)
        self._left = (*left, *self._showing.left(plan))
        self._notes.upstream, self._notes.served = route.name, route.target.model
        self._notes.attempts += 1
        return plan

    def review(self, subject: Plan | Compaction) -> str:
        """No hook sees a request, and no checkpoint is made."""
        return "" if isinstance(subject, Plan) else "the client says what its context is"

    def permit(self, call: ToolCall) -> Verdict:
        """Calls are the client's: none is decided here."""
        return Verdict("allow")

    def next_place(self, reason: str) -> str:
        """The next candidate of the model."""
        return self._choice.fail_over(reason)

    async def _count(self) -> None:
        """The tokens that the request would have, estimated."""
        self._choice = self._engine.router.choose(
            self._asked.facts.model, self._incoming.grant, front=self._incoming.front
        )
        body = canonical.encode({"input_tokens": self.build().counts.effective})
        await self._relay.document(200, body)

    async def _finish(self, outcome: events.Outcome) -> None:
        result = outcome.responses[-1][0] if outcome.responses else None
        if result is not None:
            _note_use(self._notes, result, self._choice)
        if outcome.error is not None or result is None:
            error = self._driver.refused or outcome.error or RuntimeError("the turn brought no response")
            if is_of_the_place(error):
                self._choice.failed()
            await self._fail(error)
            return
        self._choice.succeeded()
        self._notes.said.answered, self._notes.said.finish = result.blocks, result.response.outcome
        await self._relay.end(result)
        grant = self._incoming.grant
        if grant.withholds:  # memory, too, forgets what may not be recorded
            return
        weight = 4 * len(self._incoming.body) + 2 * self._brought + 4096
        self._engine.histories.keep(grant.tenant, self._taken.history, weight)

    async def _append(self, step: Step) -> Sequence[Commit]:
        """Store a step of the turn, with that by which its response is found again."""
        started = time.monotonic()
        engine, grant, scope = self._engine, self._incoming.grant, self._asked.scope
        commits, entry = await engine.apart(self._driver.received, partial(self._recorded, step))
        if grant.withholds:
            keep = partial(engine.withheld.keep, step, grant.tenant, scope)
            if await engine.storing.asked(partial(engine.in_thread, keep)) is None:
                self._notes.degraded = "store"
        await self._taken.recorder.store(commits, entry)
        self._brought += sum(len(commit.payload) for commit in commits)
        self._notes.phases["store"] = time.monotonic() - started
        return commits

    def _recorded(self, step: Step) -> tuple[list[Commit], Entry]:
        """The commits of a step, and how they are stored."""
        self._notes.guessed = estimate(step, len(self._incoming.body)) or self._notes.guessed
        sightings = conversation.sightings(self._taken.known, step, self._asked.scope, self._named)
        return self._taken.recorder.sealed(step, sightings)

    def _named(self, response: str) -> str:
        """The id by which a client may go on from a response; empty where its dialect has no such thing."""
        name = self._incoming.front
        return shown_as(name, response) if front(name).body.previous else ""

    def _under_way(self) -> exchange.Exchange | None:
        return self._turn.exchange if self._turn is not None else None

    def _headers(self) -> Mapping[str, str]:
        under_way = self._under_way()
        if under_way is not None:
            self._notes.response = under_way.response
        return showing.headers(self._notes, self._left)


def _note_use(notes: Notes, result: ReadResult, choice: Choice) -> None:
    """Note the tokens that the upstream says it used."""
    if result.usage is None:
        return
    usage = counted_as(result, choice.current.target.rule.reasoning_tokens).usage or result.usage
    used = counts(usage)
    notes.input_tokens, notes.output_tokens = used.input, used.output
    notes.reasoning_tokens, notes.cached_tokens = usage.reasoning, usage.cached
