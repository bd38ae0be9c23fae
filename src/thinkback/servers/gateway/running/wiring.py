"""What is behind the server, put together from the configuration: keys and limits, the engine, the stores."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from thinkback.errors import StoreError, ThinkbackError
from thinkback.proxy.events import Route
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.access.audit import Audit
from thinkback.servers.gateway.access.estimating import use_of
from thinkback.servers.gateway.access.idempotency import Idempotency
from thinkback.servers.gateway.access.keys import Access
from thinkback.servers.gateway.access.limits import Limiter, SharedMinutes
from thinkback.servers.gateway.access.spending import Spending
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.engine.driver import respond
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.grant import Grant, Limits
from thinkback.servers.gateway.http.backend import Health
from thinkback.servers.gateway.incoming import Incoming, Sink
from thinkback.servers.gateway.own import Own
from thinkback.servers.gateway.running.places import spool_place, state_place
from thinkback.servers.gateway.running.sweeping import sweep
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.servers.gateway.secrets.secret import own_secret, read_secret
from thinkback.servers.gateway.storing.spool import Drained, Spool
from thinkback.servers.gateway.storing.tenants import TenantLogs
from thinkback.servers.gateway.telemetry.logs import Log
from thinkback.servers.gateway.telemetry.metrics import SPOOL, Metrics
from thinkback.servers.gateway.upstreams.routing import without_key
from thinkback.servers.gateway.upstreams.upstream import Upstream
from thinkback.session.config import rulebook as user_rulebook
from thinkback.stores import SERVER
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.state import GatewayState
from thinkback.wire.front import Listed

_THREADS = 4
# While the office cannot be asked, keys are taken as they were for so many seconds, where that is allowed.
_STALE = 3600.0


class Wired:
    """Everything behind the server of one process."""

    def __init__(self, config: Config, office: GatewayState, engine: Engine, log: Log, transports: Transports) -> None:
        self._office = office
        self._engine = engine
        self._log = log
        self._transports = transports
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="thinkback-office")
        self._blind = config.store.degraded == "pass"
        self._spending = Spending(office, self._executor, blind=self._blind)
        self._settle(config)
        self._audit.note("start", process=os.getpid())
        self._keeping = (
            asyncio.create_task(self._spending.keep(self._complain)),
            asyncio.create_task(engine.storing.keep(self._log_spool)),
            asyncio.create_task(sweep(office, self._spending, self._executor, self._complain)),
        )

    def _settle(self, config: Config) -> None:
        """What is made anew when the configuration changes; the store is not."""
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

    def _complain(self, error: StoreError) -> None:
        self._log.line("warning", "office_not_stored", {"reason": error.kind})

    def _log_spool(self, of_the_spool: Drained | ThinkbackError) -> None:
        """What became of steps that had waited for the database."""
        if isinstance(of_the_spool, ThinkbackError):
            self._log.line("warning", "spool_not_drained", {"reason": of_the_spool.kind})
        else:
            level = "error" if of_the_spool.aside else "info"
            self._log.line(level, "spool_drained", dict(of_the_spool._asdict()))

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
        """One request of ``grant`` while it is read and answered."""
        with self._limiter.entered(grant):
            if self._minutes is not None:
                await self._minutes.enter(grant)
            yield

    async def respond(self, incoming: Incoming, sink: Sink) -> None:
        """Answer one request, and count what it used."""
        try:
            await self._once.respond(incoming, sink, partial(respond, self._engine))
        finally:
            report = sink.notes.report
            said = (report.input_tokens, report.output_tokens, report.reasoning_tokens)
            self._spending.add(incoming.grant, use_of(said, sink.notes.guessed))

    def models(self, grant: Grant, front: str, asked: str = "") -> list[Listed]:
        """What may be asked for with ``grant`` at ``front``; of one that is ``asked`` for, that one or nothing."""
        router = self._engine.router
        if asked:
            return [Listed(asked)] if router.may_ask(asked, grant, front) else []
        return [Listed(name) for name in router.names(grant, front)]

    async def health(self) -> Health:
        """Whether requests can be served."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._office.keys.find, b"\0" * 32)
        except StoreError:
            return Health(self._blind, {"store": "does not answer", **self._upstreams})
        return Health(True, {"store": "ok", **self._upstreams})

    async def configure(self, config: Config) -> None:
        """Serve requests that come from now on by ``config``."""
        self._engine.configure(config)
        self._audit.close()
        self._settle(config)
        self._audit.note("configuration.reloaded", process=os.getpid())

    async def close(self) -> None:
        """Close what is open, after what is being stored."""
        for keeping in self._keeping:
            keeping.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        with suppress(StoreError):
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


async def open_behind(config: Config, log: Log, metrics: Metrics) -> Wired:
    """Open everything that ``config`` names. Raises ``ThinkbackError``."""
    office, engine, transports = await asyncio.to_thread(_opened, config, metrics)
    return Wired(config, office, engine, log, transports)


def _opened(config: Config, metrics: Metrics) -> tuple[GatewayState, Engine, Transports]:
    place = state_place(config.store)
    office = open_gateway_state(place, config.store.durability, min(_THREADS, config.store.connections))
    try:
        sealer = sealer_of(config, place)
        transports = Transports()
        logs = TenantLogs(place, config.store)
        spool = Spool(spool_place(config.store, place), sealer) if config.store.degraded == "pass" else None
        if spool is not None:
            metrics.gauge(SPOOL, spool.bytes)
        rulebook = user_rulebook()
        engine = Engine(config, logs, sealer, rulebook, transports, office.carriers, spool, office.erasures)
    except ThinkbackError:
        office.close()
        raise
    return office, engine, transports


def sealer_of(config: Config, place: str) -> Sealer:
    """Seals by the secrets that are configured, else by one that is kept at ``place``. Raises ``CredentialError``."""
    secrets = config.secrets
    current = read_secret(secrets.current, os.environ) if secrets.current else own_secret(Path(place))
    return Sealer(current, [read_secret(secrets.previous, os.environ)] if secrets.previous else ())


def _limits(config: Config) -> Limits:
    return Limits(config.limits.per_minute, config.limits.at_once)
