"""The engine: requests in, recognised, given their reasoning back, sent, answered and recorded.

``Engine`` is what the requests of one process share; ``Exchange`` is one of them. Promises: what goes upstream is what
compile decided on the history that the client's messages stand for; the dialect's last event follows the record;
whatever goes wrong, the client reads an error of its own dialect. Must not: touch a socket, or know a provider.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import msgspec

from thinkback.drive.http import AsyncTransport, Timeouts
from thinkback.drive.sync import now
from thinkback.errors import CredentialError, NetworkError, ProviderError, ThinkbackError, WireError
from thinkback.gateway.access.estimating import estimate
from thinkback.gateway.config.schema import Config
from thinkback.gateway.engine import client_state, spelling
from thinkback.gateway.engine.driver import Driver
from thinkback.gateway.engine.facts import Facts, read_body, read_facts
from thinkback.gateway.engine.relay import Relay
from thinkback.gateway.engine.settings import Effective
from thinkback.gateway.headers import of_dialect
from thinkback.gateway.incoming import ClientGone, Incoming, Sink
from thinkback.gateway.problems import told
from thinkback.gateway.recognition import conversation, references
from thinkback.gateway.recognition.histories import Histories
from thinkback.gateway.recognition.withheld import Withheld
from thinkback.gateway.secrets.sealing import Sealer
from thinkback.gateway.storing.recorder import Recorder
from thinkback.gateway.storing.spool import Spool
from thinkback.gateway.storing.storing import Storing
from thinkback.gateway.storing.tenants import TenantLogs
from thinkback.gateway.storing.writing import Writing
from thinkback.gateway.upstreams.routing import Choice, Route, Router
from thinkback.log.protocol import MAIN, Entry
from thinkback.log.seal import seal
from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin
from thinkback.model.commits import Commit, Head, Step
from thinkback.model.target import merge, merge_headers
from thinkback.rules import Rulebook
from thinkback.session.fresh import new_id
from thinkback.settings import snapshot
from thinkback.stores.office.protocol import Carriers
from thinkback.turn import events
from thinkback.turn.ask import Ask
from thinkback.turn.dialects import dialect, front
from thinkback.turn.machine import Turn
from thinkback.turn.plan import Plan
from thinkback.turn.reading import end_user_of
from thinkback.turn.translation.translate import plan_without_refused, translate
from thinkback.wire.result import ReadRequest, WantedOptions
from thinkback.wire.writing import Shown, counted_as, counts

T = TypeVar("T")
# Threads that wait for the store; so many requests share a transaction at most.
_THREADS = 16
# How often a place that is busy is asked again where there is no other: clients ask again themselves.
_RETRIES = 2
_SHOWN_AS = {"openai-chat": "chatcmpl-", "openai-responses": "resp_", "anthropic": "msg_", "gemini": ""}
_INCLUDE = "reasoning.includeInContext"


class Engine:
    """What the requests of one process share."""

    def __init__(
        self,
        config: Config,
        logs: TenantLogs,
        sealer: Sealer,
        rulebook: Rulebook,
        transport: Callable[[str | None], AsyncTransport],
        carriers: Carriers,
        spool: Spool | None = None,
    ) -> None:
        self.config = config
        self.logs = logs
        self.storing = Storing(lambda tenant, entry: logs.of(tenant).recognition.record(entry), spool)
        self.sealer = sealer
        self.withheld = Withheld(carriers, sealer, config.recording.carriers_for * 3600)
        self.rulebook = rulebook
        self.router = Router(config, rulebook)
        self.transport = transport
        self.effective = Effective()
        self.histories = Histories()
        self.executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="thinkback-store")
        self._writing = Writing(logs.of, self.executor)

    def configure(self, config: Config) -> None:
        """Another configuration for the requests that come from now on."""
        self.router = Router(config, self.rulebook, breakers=self.router.breakers)
        self.config = config

    async def respond(self, incoming: Incoming, sink: Sink) -> None:
        """Answer one request. Whatever goes wrong is told to the client; cancelled, what arrived is stored."""
        await Exchange(self, incoming, sink).run()

    async def record(self, tenant: str, entry: Entry) -> bool:
        """Store a step: ``True`` when it is in the log, ``False`` when it waits in the spool."""
        if self.storing.has_spool:
            return await self.in_thread(partial(self.storing, tenant, entry))
        await self._writing.record(tenant, entry)
        return True

    async def in_thread(self, work: Callable[[], T]) -> T:
        """What ``work`` gives, on a thread for the store."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, work)

    async def close(self) -> None:
        """Close the logs, after what is being stored."""
        await asyncio.to_thread(self.executor.shutdown)
        self.storing.close()
        self.logs.close()


class Exchange:
    """One request and its response."""

    _request: ReadRequest
    _facts: Facts
    _scope: bytes
    _known: conversation.Request
    _found: conversation.Found
    _recorder: Recorder
    _choice: Choice
    _turn: Turn

    def __init__(self, engine: Engine, incoming: Incoming, sink: Sink) -> None:
        self._engine = engine
        self._config = engine.config
        self._incoming = incoming
        self._grant = incoming.grant
        self._sink = sink
        self._notes = sink.notes
        self._id = new_id()
        self._now = now()
        self._left: tuple[str, ...] = ()
        self._brought = 0  # bytes that the response has in the log
        self._missing: list[tuple[int, str]] = []
        self._keepers: dict[str, client_state.Keeper] = {}
        self._relay = Relay(
            sink,
            front(incoming.front),
            native=self._is_native,
            shown=self._shown,
            seal=lambda plan: self._keeper(plan).value,
            headers=self._headers,
        )

    async def run(self) -> None:
        """Answer; every failure but the client's leaving becomes an error in its dialect."""
        try:
            await self._read()
            await self._recognise()
            if self._incoming.counts_only:
                await self._count()
            else:
                await self._exchange()
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
        await self._relay.fail(problem, retry_after, is_told=isinstance(error, ProviderError))

    # -- the conversation ------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        incoming = self._incoming
        body = read_body(incoming.body)
        facts = self._facts = read_facts(incoming.front, body, model=incoming.model, streams=incoming.streams)
        most = self._config.limits.max_messages
        if facts.messages > most:
            raise WireError(f"the request has {facts.messages} messages, and {most} are allowed")
        self._notes.model = facts.model
        self._relay.streams = facts.streams
        self._relay.hides_counts = facts.streams and not facts.wants_usage
        self._scope = self._grant.scope(facts.end_user)
        self._request = dialect(incoming.front).read_request(body, new_id, Origin(incoming.front, "", ""))
        report = front(incoming.front).reports
        self._relay.hides_report = bool(report) and report not in self._request.params
        drafts = self._notes.said.asked = self._request.drafts
        if client_state.holds_tokens(incoming.body):
            sealer, scope = self._engine.sealer, self._scope
            drafts = tuple(
                client_state.opened(drafts, lambda token: sealer.open(token, scope), front(incoming.front).bare)
            )
        self._known = conversation.request_of(drafts, facts.previous_response)

    async def _recognise(self) -> None:
        known = self._known
        started = time.monotonic()
        records = self._grant.recording != "off"
        found = conversation.unknown(known)
        echoes = any(message.speaker == "assistant" for message in known.said) or references.names(known.drafts)
        goes_on = bool(known.previous or echoes)
        self._notes.degraded = "store" if records and self._engine.storing.rests else ""
        if records and goes_on:
            in_log = await self._engine.storing.asked(self._find)
            self._notes.degraded = "store" if in_log is None else ""
            found, known = in_log or found, self._known
        self._known, self._found = conversation.whole(found, known), found
        self._notes.phases["recognise"] = time.monotonic() - started
        history, mode = found.history, self._grant.recording
        self._missing = conversation.still_missing(found, known)
        at = history.head
        commits = seal(Step(self._id, tuple(conversation.opening(found, known)), self._now), at)
        history.take(commits)
        if self._withholds:  # the log has another history than the one that is sent: without what was said
            at = found.base.head if found.base is not None else Head()
            commits = seal(Step(self._id, tuple(conversation.unrecorded(found, known)), self._now), at)
        session, branch = (found.base.session, found.base.branch) if found.base is not None else (new_id(), MAIN)
        branch = branch or f"{MAIN}-{self._id[:8]}"  # where it was seen there is no branch any more
        store = self._store if records else _nowhere
        self._recorder = Recorder(store, session, f"{self._grant.key}/{session}", self._now, branch, at, mode)
        self._recorder.hold(commits)
        self._notes.session = session if records else ""
        can_know = records and not (goes_on and self._notes.degraded)
        self._notes.reattach = _reattach(known, self._missing) if can_know else "unavailable"
        if can_know and known.previous and found.base is None:
            self._notes.reattach = "none; missing=1"
            raise conversation.not_found(known.previous)

    async def _find(self) -> conversation.Found:
        engine, tenant = self._engine, self._grant.tenant
        log = await engine.in_thread(partial(engine.logs.of, tenant))
        if references.names(self._known.drafts):
            drafts = await references.resolved(self._known.drafts, log, self._scope, engine.in_thread)
            self._known = conversation.request_of(drafts, self._known.previous)
        if self._withholds:
            return await engine.withheld.find(self._known, log, tenant, self._scope, engine.in_thread)
        return await conversation.find(self._known, log, tenant, self._scope, engine.histories, engine.in_thread)

    @property
    def _withholds(self) -> bool:
        """Whether something of what is said is not to be recorded, and something is."""
        return self._grant.recording not in ("full", "off")

    async def _store(self, entry: Entry) -> None:
        if not await self._engine.record(self._grant.tenant, entry):
            self._notes.degraded = "store"

    # -- the request -----------------------------------------------------------------------------------------------

    async def _exchange(self) -> None:
        origins = conversation.last_origins(self._found.history)
        choice = self._choice = self._engine.router.choose(
            self._facts.model, self._grant, origins, self._facts.end_user
        )
        ask = Ask(
            plan=self._plan,
            max_steps=1,
            max_retries=_RETRIES,
            refuses=lambda found: "the client says what its context is",
            fail_over=choice.fail_over,
        )
        turn = self._turn = Turn(self._found.history, ask, new_id, random.random)
        driver = Driver(
            turn,
            self._relay,
            lambda plan: self._engine.transport(choice.current.place.proxy),
            self._timeouts(),
            self._append,
            self._engine.executor,
            self._body_of,
            self._notes.phases,
        )
        await self._finish(await driver.run())

    def _timeouts(self) -> Timeouts:
        limits = self._config.timeouts
        return Timeouts(limits.connect, limits.first_byte, limits.idle, limits.total)

    def _plan(self) -> Plan:
        """The next request, to where it goes now."""
        route, front_name = self._choice.current, self._incoming.front
        target = route.target
        settings = self._engine.effective.of(
            self._config.settings,
            route.settings,
            self._grant.settings,
            self._incoming.headers,
            target.endpoint.settings,
        )
        if _INCLUDE not in settings.explicit and any(draft.kind == "reasoning" for draft in self._request.drafts):
            # A client that sends reasoning back wants it to go along, wherever it may.
            settings = msgspec.structs.replace(
                settings, include_in_context=True, explicit=settings.explicit | {_INCLUDE}
            )
        asked = self._request.params
        if self._known.previous and self._found.base is not None:
            asked = {key: value for key, value in asked.items() if key != "previous_response_id"}
        translated = translate(front_name, target, asked, settings)
        params = translated.params
        if front_name != target.endpoint.dialect:
            references.check(self._known.drafts)
            params = self._streaming(route, params)
        elif self._relay.hides_counts and target.endpoint.stream_usage:
            wanted = WantedOptions(self._facts.streams, usage=True)
            params = merge(params, dialect(front_name).options(wanted))
        plan, refused = plan_without_refused(self._found.history, target, translated.settings, params)
        self._left = (*translated.left, *refused)
        plan.settings = snapshot(translated.settings)
        if self._missing:
            plan.remarks["not_found"] = "; ".join(f"{at}: {why}" for at, why in self._missing)
        if target.endpoint.stream_path:
            plan.streams = self._facts.streams
        plan.headers = merge_headers(route.streaming if plan.streams else route.whole, plan.added_headers)
        if front_name == target.endpoint.dialect:
            plan.headers = merge_headers(plan.headers, of_dialect(front_name, self._incoming.headers))
        plan.authenticator = route.authenticator
        self._notes.upstream, self._notes.served = route.name, target.model
        self._notes.attempts += 1
        return plan

    def _streaming(self, route: Route, params: dict[str, Any]) -> dict[str, Any]:
        """``params`` with what asks for a stream in the upstream's words."""
        endpoint = route.target.endpoint
        wanted = WantedOptions(self._facts.streams and not endpoint.stream_path, endpoint.stream_usage)
        rest = {key: value for key, value in params.items() if key != "stream"}
        return {**rest, **dialect(endpoint.dialect).options(wanted)}

    def _body_of(self, plan: Plan) -> bytes:
        """What is sent: the plan's request, in the client's own bytes where both speak one dialect."""
        planned = bytes(plan)
        if plan.target.endpoint.dialect != self._incoming.front:
            return planned
        as_asked = front(self._incoming.front).as_asked
        if as_asked is not None:
            planned = as_asked(self._incoming.body, planned)
        return spelling.spelled(self._incoming.body, planned)

    async def _count(self) -> None:
        """The tokens that the request would have, estimated."""
        self._choice = self._engine.router.choose(self._facts.model, self._grant)
        counts = self._plan().counts
        body = canonical.encode({"input_tokens": counts.effective})
        await self._relay.document(200, body)

    # -- the response ----------------------------------------------------------------------------------------------

    async def _finish(self, outcome: events.Outcome) -> None:
        result = outcome.responses[-1][0] if outcome.responses else None
        if result is not None and result.usage is not None:
            counted = counted_as(result, self._choice.current.target.rule.reasoning_tokens)
            usage = counted.usage or result.usage
            used, notes = counts(usage), self._notes
            notes.input_tokens, notes.output_tokens = used.input, used.output
            notes.reasoning_tokens, notes.cached_tokens = usage.reasoning, usage.cached
        if outcome.error is not None or result is None:
            error = outcome.error or RuntimeError("the turn brought no response")
            if _is_upstreams(error):
                self._choice.failed(type(error).__name__)
            await self._fail(error)
            return
        self._choice.succeeded()
        self._notes.said.answered, self._notes.said.finish = result.blocks, result.response.outcome
        await self._relay.end(result)
        if self._withholds:  # memory, too, forgets what may not be recorded
            return
        weight = 4 * len(self._incoming.body) + 2 * self._brought + 4096
        self._engine.histories.keep(self._grant.tenant, self._found.history, weight)

    async def _append(self, step: Step) -> Sequence[Commit]:
        """Store a step of the turn, with that by which its response is found again."""
        started = time.monotonic()
        names = self._shown_as if self._incoming.front == "openai-responses" else lambda response: ""
        sightings = conversation.sightings(self._known, step, self._scope, names)
        if self._withholds:
            keep = partial(self._engine.withheld.keep, step, self._grant.tenant, self._scope)
            if await self._engine.storing.asked(partial(self._engine.in_thread, keep)) is None:
                self._notes.degraded = "store"
        self._notes.guessed = estimate(step, len(self._incoming.body)) or self._notes.guessed
        commits = await self._recorder.append(step, sightings)
        self._brought += sum(len(commit.payload) for commit in commits)
        self._notes.phases["store"] = time.monotonic() - started
        return commits

    def _shown_as(self, response: str) -> str:
        return f"{_SHOWN_AS[self._incoming.front]}{response}"

    def _is_native(self, plan: Plan) -> bool:
        """Whether the client is given the upstream's own bytes."""
        return plan.target.endpoint.dialect == self._incoming.front and plan.wanted.include_in_response

    def _shown(self, plan: Plan) -> Shown:
        exchange = self._turn.exchange
        assert exchange is not None
        takes = self._facts.takes_reasoning
        return Shown(
            id=self._shown_as(exchange.response),
            model=self._facts.model,
            created=self._now // 1_000_000,
            reasoning=plan.wanted.include_in_response and takes,
            usage=self._facts.wants_usage,
            state=self._keeper(plan).blocks if takes else _no_state,
            block=exchange.block,
            request=self._request.params,
        )

    def _keeper(self, plan: Plan) -> client_state.Keeper:
        """Seals what the response to ``plan`` brings, for its client to keep."""
        exchange = self._turn.exchange
        assert exchange is not None
        known = self._keepers.get(exchange.response)
        if known is not None:
            return known
        target, scope, sealer = plan.target, self._scope, self._engine.sealer
        origin = Origin(
            dialect=target.endpoint.dialect,
            endpoint=target.base_url,
            requested_model=target.model,
            account=target.account,
            account_known=target.account_known,
            end_user=end_user_of(target.rule.guard.end_user, plan.params),
        )
        minted = client_state.minted_of(plan.record()) if target.rule.prefix_bound else None
        made = client_state.Keeper(lambda data: sealer.seal(data, scope), origin, exchange.response, minted)
        self._keepers[exchange.response] = made
        return made

    def _headers(self) -> Mapping[str, str]:
        notes = self._notes
        turn = self.__dict__.get("_turn")
        if turn is not None and turn.exchange is not None:
            notes.response = turn.exchange.response
        said = {
            "thinkback-session": notes.session,
            "thinkback-response": notes.response,
            "thinkback-upstream": notes.upstream,
            "thinkback-reattach": notes.reattach,
            "thinkback-degraded": notes.degraded,
            "thinkback-left-out": "; ".join(self._left),
        }
        return {name: _header(value) for name, value in said.items() if value}


def _reattach(request: conversation.Request, missing: Sequence[object]) -> str:
    answers = sum(message.speaker == "assistant" for message in request.said)
    if not answers and not request.previous:
        return "not-needed"
    if not missing:
        return "complete"
    return f"{'none' if len(missing) == answers else 'partial'}; missing={len(missing)}"


def _no_state(blocks: Sequence[Block]) -> str:
    """Nothing for the client to keep: the gateway remembers."""
    return ""


def _is_upstreams(error: Exception) -> bool:
    """Whether the place that was asked is at fault, and not what it was asked."""
    if isinstance(error, ProviderError):
        status = int(str(error.details.get("status") or 0))
        return status == 429 or not 400 <= status < 500
    return isinstance(error, NetworkError)


async def _nowhere(entry: Entry) -> None:
    """Nothing is recorded."""


def _header(value: str) -> str:
    """``value`` as a header can carry it."""
    return value.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")[:1000]
