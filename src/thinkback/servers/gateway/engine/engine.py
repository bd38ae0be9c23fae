"""What the requests of one process share: the logs, the way out, what was learned of places and of conversations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from thinkback.drive.http import AsyncTransport, Timeouts
from thinkback.errors import StoreError
from thinkback.log.protocol import AppendRequest
from thinkback.proxy.events import Route
from thinkback.proxy.histories import Histories
from thinkback.proxy.planning import Refusals
from thinkback.proxy.problems import REFUSED
from thinkback.rules import Rulebook
from thinkback.servers.gateway.access.principals import Principals
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.engine.apart import Apart
from thinkback.servers.gateway.engine.memory import Withheld
from thinkback.servers.gateway.engine.settings import Effective
from thinkback.servers.gateway.own import Own
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.servers.gateway.storing.batch_writer import Writing
from thinkback.servers.gateway.storing.disk import Disks
from thinkback.servers.gateway.storing.failover import Storing
from thinkback.servers.gateway.storing.spool import Spool
from thinkback.servers.gateway.storing.tenants import TenantLogs
from thinkback.servers.gateway.telemetry.logs import Log
from thinkback.servers.gateway.telemetry.metrics import ATTEMPTS, BREAKERS, BROKEN, FAILOVERS, Metrics
from thinkback.servers.gateway.upstreams.breakers import Breakers
from thinkback.servers.gateway.upstreams.routing import Router
from thinkback.servers.gateway.upstreams.upstream import Upstream
from thinkback.stores.gateway_state.state import Carriers, Erasures

T = TypeVar("T")
# Threads that wait for the store; so many requests share a transaction at most.
_THREADS = 16
_PATIENCE = 10.0
"""Seconds for which a provider is asked about a credential."""


class Engine:
    """Of one event loop; ``driver.respond`` answers a request by it."""

    def __init__(
        self,
        config: Config,
        logs: TenantLogs,
        sealer: Sealer,
        rulebook: Rulebook,
        transport: Callable[[str | None], AsyncTransport],
        carriers: Carriers,
        spool: Spool | None = None,
        erasures: Erasures | None = None,
        disks: Disks | None = None,
        metrics: Metrics | None = None,
        log: Log | None = None,
    ) -> None:
        self.metrics, self._log = metrics or Metrics(), log
        self.config = config
        self.disks = disks or Disks({}, 0)
        self.logs = logs
        self.storing = Storing(
            lambda tenant, entry: logs.of(tenant).recognition.record(entry),
            spool,
            erasures=erasures,
            epoch=lambda tenant: logs.of(tenant).epoch(),
        )
        self.sealer = sealer
        self.erasures = erasures
        self.withheld = Withheld(carriers, sealer, config.recording.carriers_for * 3600)
        self.rulebook = rulebook
        self.router = Router(config, rulebook, breakers=Breakers(time.monotonic, tell=self._note_breaker))
        self._note_upstreams(config)
        self.transport = transport
        self.effective = Effective()
        self.histories = Histories()
        self.refusals = Refusals()
        self.executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="thinkback-store")
        self.apart = Apart()
        self._writing = Writing(logs.of, self.executor)
        self.principals = Principals(self._ask)

    def configure(self, config: Config) -> None:
        """Another configuration for the requests that come from now on."""
        self.router = Router(config, self.rulebook, breakers=self.router.breakers)
        self.config = config
        self._note_upstreams(config)

    def note_attempt(self, route: Route, outcome: str) -> None:
        """Note the outcome of a request to ``route``: a status, or in a word why there is none."""
        self.metrics.count(ATTEMPTS, {"upstream": route.upstream, "outcome": outcome})
        if not route.payer and outcome.isdecimal():
            self.router.note_answer(route.upstream, int(outcome))

    def _note_upstreams(self, config: Config) -> None:
        """Their measures are there before anything happens, so that the first time is seen as a rise."""
        for name in config.upstreams:
            for family in (BREAKERS, FAILOVERS, BROKEN):
                self.metrics.count(family, {"upstream": name}, 0)
            self.metrics.count(ATTEMPTS, {"upstream": name, "outcome": "200"}, 0)

    def _note_breaker(self, key: Hashable, opened: bool, reason: str) -> None:
        """A breaker of (upstream, model) opened or closed."""
        assert isinstance(key, tuple)
        self.metrics.count(BREAKERS, {"upstream": key[0]}, 1 if opened else -1)
        if self._log is not None:
            event, level = ("breaker_opened", "warning") if opened else ("breaker_closed", "info")
            self._log.line(level, event, {"upstream": key[0], "model": key[1], "reason": reason})

    def answered(self, route: Route, own: Own, status: int, headers: Mapping[str, str]) -> None:
        """What a provider made of a client's own credential."""
        if 200 <= status < 300:
            self.principals.took(route, own, headers)
        elif status in REFUSED:
            self.principals.refused(route, own)

    async def _ask(self, route: Route, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str]]:
        """A provider's answer to a request for its list of models, which costs nothing."""
        base, _, query = route.target.base_url.partition("?")
        url = f"{base}/models?{query}" if query else f"{base}/models"
        timeouts = Timeouts(self.config.timeouts.connect, _PATIENCE, _PATIENCE, _PATIENCE)
        transport = self.transport(route.place.proxy)
        assert isinstance(transport, Upstream)
        async with transport.get(url, {**route.whole, **headers}, timeouts) as response:
            return response.status, response.headers

    async def record(self, tenant: str, entry: AppendRequest) -> bool:
        """Store a step: ``True`` when it is in the log, ``False`` when it waits in the spool."""
        try:
            if self.storing.has_spool:
                return await self.in_thread(partial(self.storing, tenant, entry))
            await self._writing.record(tenant, entry)
        except StoreError as error:
            self.disks.note(error)
            raise
        return True

    async def in_thread(self, work: Callable[[], T]) -> T:
        """What ``work`` gives, on a thread for the store."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, work)

    async def close(self) -> None:
        """Close the logs, after what is being stored."""
        await asyncio.to_thread(self.apart.close)
        await asyncio.to_thread(self.executor.shutdown)
        self.storing.close()
        self.logs.close()
