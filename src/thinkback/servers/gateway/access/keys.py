"""Virtual keys: how one is made, how a request presents it, and which ``Grant`` it stands for.

Promises: a secret is kept nowhere, its SHA-256 is what is looked up, so that the time of a look-up says nothing of it;
a key that was revoked opens nothing ``LIFE`` seconds later, on every process; a look-up is remembered, so that most
requests wait for no database. Must not: show a secret; look at what a request asks for.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import msgspec

from thinkback.drive import clock
from thinkback.errors import StoreError
from thinkback.model import canonical
from thinkback.proxy.problems import Refused
from thinkback.proxy.retention import Recording
from thinkback.servers.gateway.access.audit import NO_AUDIT, Audit
from thinkback.servers.gateway.grant import KEY_HEADER, OPEN, Budget, Grant, Limits, check_tenant
from thinkback.servers.gateway.grant import PREFIX as PREFIX
from thinkback.stores.gateway_state.records import KeyRow
from thinkback.stores.gateway_state.state import GatewayState
from thinkback.turn.credentials import SHOWN

LIFE = 1.0
"""Seconds for which a key that was found is not looked up again."""
PATIENCE = 2.0
"""Seconds for which a database that may do without is waited for."""
REMEMBERED = 20_000
_LONGEST = 200
_SHOWN = 4


def new_secret() -> str:
    """A secret that nobody guesses: ``tb-`` and 32 random bytes."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class Terms(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the holder of a key may do, as it is kept; ``recording`` is the configuration's where it is ``None``.

    ``continues`` is the key in whose place it came: its conversations and its usage are this one's.
    """

    models: tuple[str, ...] = ("*",)
    recording: Recording | None = None
    settings: Mapping[str, object] = {}
    budget: Budget = Budget()
    limits: Limits = Limits()
    view: bool = False
    team: str = ""
    continues: str = ""


def id_of(row: KeyRow) -> str:
    """The id that conversations and usage of a key go by: that of the first of those that came in its place."""
    return canonical.decode(row.terms, Terms).continues or row.id


def new_key(
    terms: Terms, created: int, *, tenant: str = "default", name: str = "", expires: int | None = None
) -> tuple[str, KeyRow]:
    """The secret of a new key, and what is kept of it. Raises ``SettingError`` for a name that no tenant can have."""
    check_tenant(tenant)
    secret = new_secret()
    return secret, KeyRow(
        id=f"key-{secrets.token_hex(6)}",
        digest=digest_of(secret),
        ending=secret[-_SHOWN:],
        tenant=tenant,
        name=name,
        terms=canonical.encode(terms),
        created=created,
        expires=expires,
    )


def grant_of(row: KeyRow, recording: Recording = "full") -> Grant:
    """The grant that a kept key stands for; ``recording`` is what holds where it does not say."""
    terms = canonical.decode(row.terms, Terms)
    return Grant(
        key=terms.continues or row.id,
        tenant=row.tenant,
        name=row.name,
        models=terms.models,
        recording=terms.recording or recording,
        settings=terms.settings,
        budget=terms.budget,
        limits=terms.limits,
        expires=row.expires,
        view=terms.view,
    )


def presented(headers: Mapping[str, str], query: Mapping[str, Sequence[str]]) -> str:
    """The secret that a request shows, in whichever way its dialect does; ``""`` for none.

    Where a client shows several (its SDK found another one in the environment), one that looks like ours is taken.
    Header names are in lower case.
    """
    if headers.get(KEY_HEADER, "").strip():
        return headers[KEY_HEADER].strip()
    scheme, _, bearer = headers.get("authorization", "").strip().partition(" ")
    shown = [
        bearer.strip() if scheme.lower() == "bearer" else "",
        *(headers.get(name, "").strip() for name in SHOWN if name != "authorization"),
        *query.get("key", ())[:1],
    ]
    return next((secret for secret in shown if secret.startswith(PREFIX)), next(filter(None, shown), ""))


class _Known(NamedTuple):
    """What was found for a digest, and when by the clock."""

    row: KeyRow | None
    grant: Grant | None
    at: float


class Access:
    """Who may come in. ``no_auth``: everybody, without a key (loopback alone; the server sees to that). A key of ours
    that is shown all the same holds, with its tenant and what may be recorded of it.

    ``recording`` holds for keys that do not say it. ``stale_for``: for so many seconds a key is taken as it was when
    the database does not answer; 0: not at all. ``clock`` gives seconds that only grow, ``now`` microseconds UTC.
    """

    def __init__(
        self,
        office: GatewayState,
        executor: Executor | None = None,
        *,
        no_auth: bool = False,
        recording: Recording = "full",
        stale_for: float = 0.0,
        audit: Audit = NO_AUDIT,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = clock.now,
    ) -> None:
        self._office, self._executor = office, executor
        self._open = msgspec.structs.replace(OPEN, recording=recording) if no_auth else None
        self._recording, self._stale_for, self._audit = recording, stale_for, audit
        self._clock, self._now = clock, now
        self._known: dict[bytes, _Known] = {}
        self._asking: dict[bytes, asyncio.Task[_Known]] = {}
        self._rests_until = float("-inf")

    async def admit(self, secret: str | None, address: str = "") -> Grant:
        """The grant of the key that was presented from ``address``.

        Raises ``Refused``: 401 where there is no such key or it is over, 503 where that cannot be found out.
        """
        if self._open is not None and not (secret or "").startswith(PREFIX):
            return self._open
        try:
            return await self._grant(secret or "")
        except Refused as refused:
            if refused.status == 401:
                self._audit.refused(refused.code, address, **refused.details)
            raise

    async def _grant(self, secret: str) -> Grant:
        if not secret:
            raise missing()
        if not secret.startswith(PREFIX) or len(secret) > _LONGEST:
            raise unknown(secret)
        return await self.again(digest_of(secret), secret)

    async def again(self, digest: bytes, secret: str = "") -> Grant:
        """The grant of a key as it is now, by its ``digest_of`` alone: for whoever was admitted and keeps no secret.

        ``secret`` is for the words of a refusal. Raises ``Refused`` as ``admit``.
        """
        known = self._known.get(digest)
        age = LIFE if known is None else self._clock() - known.at
        if known is None or age >= LIFE:
            known = await self._look_up(digest, known)
        elif age >= LIFE / 2 and digest not in self._asking:
            self._ask(digest)  # so that the next one need not wait
        return self._checked(known, secret)

    def _checked(self, known: _Known, secret: str) -> Grant:
        row, grant = known.row, known.grant
        if row is None or grant is None:
            raise unknown(secret)
        if row.revoked is not None:
            raise over("revoked_key", "was revoked", row)
        if row.expires is not None and row.expires <= self._now():
            raise over("expired_key", "has expired", row)
        return grant

    async def _look_up(self, digest: bytes, known: _Known | None) -> _Known:
        """What the database says now, or what it said where that may be taken and it does not answer soon."""
        usable = known is not None and self._clock() - known.at < self._stale_for
        if self._clock() >= self._rests_until:
            # one look-up for all who wait, which none of them ends by leaving
            task = self._asking.get(digest) or self._ask(digest)
            await asyncio.wait({task}, timeout=PATIENCE if usable else None)
            if task.done() and not isinstance(task.exception(), StoreError):
                return task.result()
            self._rests_until = self._clock() + LIFE
        if usable and known is not None:
            return known
        raise unavailable()

    def _ask(self, digest: bytes) -> asyncio.Task[_Known]:
        task = self._asking[digest] = asyncio.get_running_loop().create_task(self._find(digest))
        # where nobody waits for it any more, a failure is told to the next who asks
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def _find(self, digest: bytes) -> _Known:
        at = self._clock()
        try:
            row = await asyncio.get_running_loop().run_in_executor(self._executor, self._office.keys.find, digest)
        finally:
            del self._asking[digest]
        found = _Known(row, None if row is None else grant_of(row, self._recording), at)
        if row is not None or digest in self._known:  # guesses are not worth remembering
            while len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[digest] = found
        return found


def missing() -> Refused:
    """A request without a key."""
    return Refused(
        401,
        "missing_key",
        "no key was presented: send one of this gateway's keys as `Authorization: Bearer tb-...` or as `x-api-key`",
    )


def unknown(secret: str) -> Refused:
    """A key that is not one of ours, or a mistyped one."""
    if not secret.startswith(PREFIX):
        return Refused(
            401,
            "unknown_key",
            "the key that was presented is none of this gateway's, which begin with tb-: a provider's own key is not"
            " needed here, and should not be sent",
        )
    ending = secret[-_SHOWN:] if len(secret) > 5 * _SHOWN else ""
    return Refused(
        401,
        "unknown_key",
        f"this gateway knows no key that ends in ...{ending}" if ending else "this gateway knows no such key",
        details={"ending": ending},
    )


def over(code: str, what: str, row: KeyRow) -> Refused:
    """A key that opens nothing any more."""
    return Refused(
        401,
        code,
        f"the key that ends in ...{row.ending} {what}: ask the gateway's operator for another one",
        details={"key": row.id, "ending": row.ending},
    )


def unavailable() -> Refused:
    """The database does not answer."""
    return Refused(503, "store_unavailable", "keys cannot be checked at the moment; retry later", retry_after=5)
