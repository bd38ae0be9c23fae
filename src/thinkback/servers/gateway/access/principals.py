"""Whose a client's own credential is, by the word of the provider that it is for.

Promises: what is remembered is a keyed hash, for a while, of so many at most, and what was refused never in the place
of what was taken; who is meant is said by the provider's
response alone, never by the client; before the provider answered 2xx to a credential on this gateway, nobody is meant
by it. Must not: send a credential to any place but the one that it is for.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from thinkback.errors import NetworkError
from thinkback.proxy.events import Route
from thinkback.proxy.problems import REFUSED, Refused
from thinkback.proxy.retention import Recording
from thinkback.servers.gateway.grant import Grant
from thinkback.servers.gateway.own import Own, nobody, not_listed
from thinkback.wire.registry import front

LIFE = 300.0
"""Seconds for which a credential that its provider took is not asked about again."""
FAILED = 10.0
"""Seconds for which the same is so of one that the provider refused."""
REMEMBERED = 4096
REFUSALS = 512
"""Credentials that lead to nobody are remembered apart: anybody can make them up."""
AT_ONCE = 32
"""Credentials that are asked about at once; more are told to come again."""
_LONGEST_ID = 200
_WITHOUT_LIST = frozenset({404, 405})
_BUSY = 429
# One for all grants, so that the settings in force are found by its identity.
_NO_SETTINGS: Mapping[str, object] = {}


class _Known(NamedTuple):
    """Whose a credential is (``""``: the provider took it and named nobody), or why not; until when that holds."""

    principal: str
    refused: int
    until: float


Ask = Callable[[Route, Mapping[str, str]], Awaitable[tuple[int, Mapping[str, str]]]]
"""Asks the place of a route, with these headers, for its list of models: status, and headers in lower case."""


class Principals:
    """Who shows which credential. Of one event loop; ``ask`` asks a provider, ``clock`` gives growing seconds."""

    def __init__(self, ask: Ask, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._secret = os.urandom(32)
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._nobodies: OrderedDict[bytes, _Known] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[_Known]] = {}

    async def admit(
        self, own: Own | None, recording: Recording, organisations: Mapping[str, str] | None = None
    ) -> Grant:
        """The grant of whoever shows ``own``: it leads to its place alone. ``organisations``: those that may come, each
        with its tenant; ``None``: all.

        Raises ``Refused``: 401 where the provider does not take it or names nobody, 403 for an organisation that may
        not come, 503 where that is not to be known.
        """
        route = own.place if own is not None else None
        if own is None or route is None or not route.target.endpoint.auth.principal:
            raise nobody()
        if organisations is not None and not organisations:
            raise nobody(keys_alone=True)
        known = await self._look_up(route, own)
        if known.refused in REFUSED:
            raise Refused(401, "refused_credential", f"the provider refused the credential ({known.refused})")
        if known.refused == _BUSY:
            wait = known.until - self._clock()
            raise Refused(429, "provider_busy", "the provider limits requests; come again", retry_after=wait)
        if known.refused:
            raise Refused(
                503, "provider_unavailable", "the provider cannot be asked about the credential", retry_after=FAILED
            )
        if not known.principal:
            raise nobody()
        if organisations is not None and known.principal not in organisations:
            raise not_listed(known.principal)
        who = "\n".join((route.upstream, route.target.base_url, known.principal))
        key = f"own-{hashlib.sha256(who.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"
        return Grant(
            key,
            organisations[known.principal] if organisations is not None else "default",
            name=key,
            recording=recording,
            settings=_NO_SETTINGS,
            upstream=route.upstream,
            account=known.principal,
        )

    async def account(self, own: Own) -> str:
        """Whose ``own`` is, as its provider names them; nothing where the provider does not say it."""
        if own.place is None or not own.place.target.endpoint.auth.principal:
            return ""
        try:
            return (await self._look_up(own.place, own)).principal
        except Refused:  # too many ask
            return ""

    def took(self, route: Route, own: Own, said: Mapping[str, str]) -> None:
        """The provider answered 2xx with these headers, which say whose a credential is, or that it still is theirs."""
        at = self._hash(route, own.headers(route.target.endpoint.auth))
        known = self._known.get(at)
        principal = _principal(route, said) or (known.principal if known is not None else "")
        if principal:
            _remember(self._known, REMEMBERED, at, _Known(principal, 0, self._clock() + LIFE))

    def refused(self, route: Route, own: Own) -> None:
        """The provider does not take the credential any more."""
        self._known.pop(self._hash(route, own.headers(route.target.endpoint.auth)), None)

    def _hash(self, route: Route, headers: Mapping[str, str]) -> bytes:
        digest = hmac.new(self._secret, digestmod="sha256")
        for part in (route.upstream, route.target.base_url, *(f"{name}: {headers[name]}" for name in sorted(headers))):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8) + data)
        return digest.digest()

    async def _look_up(self, route: Route, own: Own) -> _Known:
        headers = own.headers(route.target.endpoint.auth)
        named = front(route.target.endpoint.dialect).headers
        more = {name: own.beside[name] for name in named if name in own.beside}
        at, whole = self._hash(route, headers), self._hash(route, {**more, **headers})
        for table, place in ((self._known, at), (self._nobodies, whole)):
            known = table.get(place)
            if known is not None and self._clock() < known.until:
                table.move_to_end(place)
                return known
        task = self._asking.get(whole)
        if task is None:
            if len(self._asking) >= AT_ONCE:
                raise Refused(503, "busy", "too many credentials are being checked; come again", retry_after=1)
            finding = self._find(at, whole, route, {**more, **headers})
            task = self._asking[whole] = asyncio.get_running_loop().create_task(finding)
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _find(self, at: bytes, whole: bytes, route: Route, headers: Mapping[str, str]) -> _Known:
        try:
            status, said = await self._ask(route, headers)
        except NetworkError:
            status, said = 503, {}
        finally:
            del self._asking[whole]
        now = self._clock()
        if status == _BUSY:  # says nothing of the credential
            return _Known("", status, now + _seconds(said.get("retry-after", "")))
        if status in _WITHOUT_LIST:
            return _remember(self._nobodies, REFUSALS, whole, _Known("", 0, now + LIFE))
        if not 200 <= status < 300:
            return _remember(self._nobodies, REFUSALS, whole, _Known("", status, now + FAILED))
        known = _Known(_principal(route, said), 0, now + LIFE)
        if not known.principal:
            return _remember(self._nobodies, REFUSALS, whole, known)
        return _remember(self._known, REMEMBERED, at, known)


def _principal(route: Route, said: Mapping[str, str]) -> str:
    """Whom a provider names in these headers (names in lower case)."""
    names = (name.lower() for name in route.target.endpoint.auth.principal)
    return next((said[name].strip() for name in names if said.get(name, "").strip()), "")[:_LONGEST_ID]


def _remember(table: OrderedDict[bytes, _Known], most: int, at: bytes, known: _Known) -> _Known:
    table[at] = known
    table.move_to_end(at)
    if len(table) > most:
        table.popitem(last=False)
    return known


def _seconds(after: str) -> int:
    """What a provider says of when to come again, where that is soon."""
    return max(1, int(after)) if after.isascii() and after.isdecimal() and len(after) < 5 else 1
