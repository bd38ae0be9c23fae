"""What is behind the server, put together from the configuration: keys and limits, the engine, the stores."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from thinkback.drive.clock import now
from thinkback.errors import StoreError, ThinkbackError
from thinkback.proxy.events import Route
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.access.audit import Audit
from thinkback.servers.gateway.access.estimating import estimate_input, use_of
from thinkback.servers.gateway.access.idempotency import Idempotency
from thinkback.servers.gateway.access.keys import Access
from thinkback.servers.gateway.access.limits import Limiter, SharedMinutes
from thinkback.servers.gateway.access.spending import EVERY, Reservation, Spending
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.engine.driver import respond
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.grant import Budget, Grant, Limits
from thinkback.servers.gateway.http.backend import Health
from thinkback.servers.gateway.incoming import Incoming, Sink
from thinkback.servers.gateway.own import Own
from thinkback.servers.gateway.running.places import spool_place, state_place
from thinkback.servers.gateway.running.retaining import AFTER as RETAINS_AFTER
from thinkback.servers.gateway.running.retaining import Retaining
from thinkback.servers.gateway.running.sweeping import EVERY as SWEEPS_EVERY
from thinkback.servers.gateway.running.sweeping import sweep
from thinkback.servers.gateway.running.upkeep import FIRST_PAUSE, LONGEST_PAUSE, Upkeep, look_at_descriptors
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.servers.gateway.secrets.secret import own_secret, read_secret
from thinkback.servers.gateway.storing.disk import Disks
from thinkback.servers.gateway.storing.spool import Drained, Spool
from thinkback.servers.gateway.storing.tenants import TenantLogs
from thinkback.servers.gateway.telemetry.logs import Log
from thinkback.servers.gateway.telemetry.metrics import DISK, DISK_FULL, SPOOL, STORE, Metrics
from thinkback.servers.gateway.upstreams.routing import without_key
from thinkback.servers.gateway.upstreams.upstream import Upstream
from thinkback.session.config import rulebook as user_rulebook
from thinkback.settings.registry import RETENTION
from thinkback.stores import SERVER
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.state import GatewayState
from thinkback.wire.front import Listed

_THREADS = 4
_TRIAL = 64 * 1024
NO_BUDGET = Budget()
# Seconds for which the store is waited for when it is asked whether it answers.
_PATIENCE = 5.0
# What PostgreSQL says while it lets nobody in.
_RECOVERS = "57P03"
# Seconds between two looks at whether the store answers.
_STORE_EVERY = 5.0
# While the office cannot be asked, keys are taken as they were for so many seconds, where that is allowed.
_STALE = 3600.0


class Wired:
    """Everything behind the server of one process."""

    def __init__(
        self,
        config: Config,
        office: GatewayState,
        engine: Engine,
        log: Log,
        transports: Transports,
        metrics: Metrics,
    ) -> None:
        self._office = office
        self._engine = engine
        self._log = log
        self._transports = transports
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="thinkback-office")
        self._blind = config.store.degraded == "pass"
        self._spending = Spending(office, self._executor, blind=self._blind)
        self._store_answers = True
        self._retaining = Retaining(engine.logs, office, state_place(config.store), partial(log.line, "warning"))
        self._settle(config)
        self._audit.note("start", process=os.getpid())
        self._upkeep = Upkeep(log, metrics)
        self._upkeep.begin("spending", self._spending.keep, EVERY)
        self._upkeep.begin("disk", engine.disks.keep)
        self._upkeep.begin("store", self._look_at_store)
        self._upkeep.begin("descriptors", look_at_descriptors)
        metrics.gauge(STORE, lambda: self._store_answers)
        self._upkeep.begin("spool", partial(engine.storing.keep, self._log_spool))
        # all processes of a store sweep, and not at once
        sweeps = partial(sweep, office, self._spending, self._executor)
        self._upkeep.begin("sweeping", sweeps, SWEEPS_EVERY * random.random())
        self._upkeep.begin("retention", partial(self._retaining.keep, self._executor), RETAINS_AFTER)

    def _settle(self, config: Config) -> None:
        """What is made anew when the configuration changes; the store is not."""
        days = config.settings.get(RETENTION)
        self._retaining.days = days if isinstance(days, int) else None
        keyless, of = len(without_key(config, self._engine.rulebook)), len(config.upstreams)
        self._upstreams = {"upstreams": f"{keyless} of {of} have no key"} if keyless else {}
        self._audit = Audit(config.logs.audit or None, self._say)
        self._access = Access(
            self._office,
            self._executor,
            no_auth=config.server.no_auth,
            recording=config.recording.mode,
            stale_for=_STALE if self._blind else 0.0,
            audit=self._audit,
        )
        shared = config.server.workers > 1 or state_place(config.store).startswith(SERVER)
        limits = _limits(config)
        self._limiter = Limiter(limits, alone=not shared)
        self._minutes = SharedMinutes(self._office, self._executor, limits, blind=self._blind) if shared else None
        self._once = Idempotency(
            self._office,
            self._engine.sealer,
            self._executor,
            keep_for=config.recording.idempotency_for * 3600,
            blind=self._blind,
        )

    def _say(self, text: str) -> None:
        self._log.line("warning", "audit_not_written", {"reason": text})

    def _log_spool(self, drained: Drained) -> None:
        """What became of steps that had waited for the database."""
        self._log.line("error" if drained.aside else "info", "spool_drained", dict(drained._asdict()))

    async def admit(self, secret: str, address: str) -> Grant:
        """The grant of the key that was presented. Raises ``Refused``."""
        grant = await self._access.admit(secret, address)
        await self._spending.check(grant)
        return grant

    def own_place(self, front: str) -> Route | None:
        """Where a client's own credential goes that is shown at ``front``."""
        return self._engine.router.own_place(front)

    async def admit_own(self, own: Own | None, address: str) -> Grant:
        """The grant of who shows a credential of its own. Raises ``Refused``."""
        config = self._engine.config
        upstream = config.upstreams.get(own.place.upstream) if own is not None and own.place is not None else None
        listed = upstream.organisations if upstream is not None else None
        try:
            return await self._engine.principals.admit(own, config.recording.mode, listed)
        except Refused as refused:
            if refused.status in (401, 403):
                self._audit.refused(refused.code, address, **refused.details)
            raise

    @asynccontextmanager
    async def entered(self, grant: Grant) -> AsyncIterator[None]:
        """One request of ``grant`` while it is read and answered. Raises ``Refused``.

        What could not be stored is refused here, before a provider is asked, and paid.
        """
        if not self._engine.disks.takes_steps(server_rests=self._engine.storing.rests):
            raise Refused(503, "disk_full", "the gateway has no room to store this request; retry later", retry_after=5)
        with self._limiter.entered(grant):
            if self._minutes is not None:
                await self._minutes.enter(grant)
            yield

    async def respond(self, incoming: Incoming, sink: Sink) -> None:
        """Answer one request, and count what it used."""
        grant, spending = incoming.grant, self._spending
        reservation: Reservation | None = None

        async def answer(incoming: Incoming, sink: Sink) -> None:
            nonlocal reservation
            if not incoming.request.counts_only and grant.budget != NO_BUDGET:
                body = incoming.request.body
                tokens = await self._engine.apart(len(body), partial(estimate_input, body))
                reservation = spending.reserve(grant, tokens)
            await respond(self._engine, incoming, sink)

        try:
            await self._once.respond(incoming, sink, answer)
        finally:
            report = sink.notes.report
            use = use_of((report.input_tokens, report.output_tokens, report.reasoning_tokens), sink.notes.guessed)
            spending.add(grant, use)
            if reservation is not None:
                spending.settle(reservation, use)

    def models(self, grant: Grant, front: str, asked: str = "") -> list[Listed]:
        """What may be asked for with ``grant`` at ``front``; of one that is ``asked`` for, that one or nothing."""
        router = self._engine.router
        if asked:
            return [Listed(asked)] if router.may_ask(asked, grant, front) else []
        return [Listed(name) for name in router.names(grant, front)]

    async def health(self) -> Health:
        """Whether requests can be served."""
        disks, rests = self._engine.disks, self._engine.storing.rests
        parts = {
            **self._upstreams,
            **{task: f"fails: {kind}" for task, kind in self._upkeep.failing.items()},
            **{f"upstream {name}": why for name, why in self._engine.router.refused_keys().items()},
            **{f"disk of the {name}": why for name, why in disks.full.items()},
        }
        room = disks.takes_steps(server_rests=rests)
        await self._look_at_store()
        if not self._store_answers:
            return Health(self._blind and room, {"store": "does not answer", **parts})
        return Health(room, {"store": "ok", **parts})

    async def _look_at_store(self) -> float:
        """Ask the store anything; returns the seconds until the next time."""
        try:
            async with asyncio.timeout(_PATIENCE):
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._executor, self._office.keys.find, b"\0" * 32)
        except (StoreError, TimeoutError):
            self._store_answers = False
        else:
            self._store_answers = True
        return _STORE_EVERY

    async def configure(self, config: Config) -> None:
        """Serve requests that come from now on by ``config``."""
        self._engine.configure(config)
        self._audit.close()
        self._settle(config)
        self._audit.note("configuration.reloaded", process=os.getpid())

    async def close(self) -> None:
        """Close what is open, after what is being stored."""
        await self._upkeep.close()
        with suppress(Exception):  # it was logged already, or the database is away: nothing is left to do about it
            await self._spending.flush()
        await self._engine.close()
        await self._transports.close()
        await asyncio.to_thread(self._executor.shutdown)
        self._office.close()
        self._audit.close()
        self._audit.note("stop", process=os.getpid())


class Transports:
    """The ways out: one for each proxy."""

    def __init__(self) -> None:
        self._open: dict[str | None, Upstream] = {}

    def __call__(self, proxy: str | None) -> Upstream:
        """The way through ``proxy``, or as the environment says."""
        if proxy not in self._open:
            self._open[proxy] = Upstream(proxy)
        return self._open[proxy]

    async def close(self) -> None:
        """Close all connections."""
        for transport in self._open.values():
            await transport.aclose()


async def open_behind(
    config: Config, log: Log, metrics: Metrics, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> Wired:
    """Open everything that ``config`` names. A server that starts up or recovers is waited for, whoever is told to end
    meanwhile ends. Raises ``ThinkbackError``.
    """
    again = FIRST_PAUSE
    while True:
        try:
            office, engine, transports = await asyncio.to_thread(_opened, config, log, metrics)
        except StoreError as error:
            if error.details.get("code") != _RECOVERS:
                raise
            log.line("warning", "store_recovers", {"again_in": again})
            await pause(again)
            again = min(2 * again, LONGEST_PAUSE)
        else:
            return Wired(config, office, engine, log, transports, metrics)


def _opened(config: Config, log: Log, metrics: Metrics) -> tuple[GatewayState, Engine, Transports]:
    place = state_place(config.store)
    office = open_gateway_state(place, config.store.durability, min(_THREADS, config.store.connections))
    try:
        sealer = sealer_of(config, place)
        transports = Transports()
        logs = TenantLogs(place, config.store)
        spool = Spool(spool_place(config.store, place), sealer) if config.store.degraded == "pass" else None
        if spool is not None:
            metrics.gauge(SPOOL, spool.bytes)
        disks = _disks(config, place, metrics, partial(_write_trial, office))
        rulebook = user_rulebook()
        engine = Engine(
            config, logs, sealer, rulebook, transports, office.carriers, spool, office.erasures, disks, metrics, log
        )
    except ThinkbackError:
        office.close()
        raise
    return office, engine, transports


def _write_trial(office: GatewayState) -> None:
    """Write what the next sweep removes. Raises ``StoreError``."""
    office.carriers.put("", b"tb-trial-of-disk", {"": bytes(_TRIAL)}, now())


def _disks(config: Config, place: str, metrics: Metrics, trial: Callable[[], object]) -> Disks:
    """The disks that steps go to, with their measures."""
    places = {} if place.startswith(SERVER) else {"store": Path(place)}
    if config.store.degraded == "pass":
        places["spool"] = spool_place(config.store, place)
    disks = Disks(places, config.store.min_free, trial=trial)
    for name in places:
        metrics.gauge(DISK, partial(disks.free.__getitem__, name), {"disk": name})
        metrics.gauge(DISK_FULL, partial(disks.is_full, name), {"disk": name})
    return disks


def sealer_of(config: Config, place: str) -> Sealer:
    """Seals by the secrets that are configured, else by one that is kept at ``place``. Raises ``CredentialError``."""
    secrets = config.secrets
    current = read_secret(secrets.current, os.environ) if secrets.current else own_secret(Path(place))
    return Sealer(current, [read_secret(secrets.previous, os.environ)] if secrets.previous else ())


def _limits(config: Config) -> Limits:
    return Limits(config.limits.per_minute, config.limits.at_once)
