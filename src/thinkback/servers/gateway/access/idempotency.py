"""Requests with an ``Idempotency-Key``: answered once, and told again to who asks again.

Promises: of requests with the same key of the same client, one is answered at a time, whichever processes they come
to, and an answer that came whole is given to the others as it was, with ``idempotent-replayed: true``. It is kept
before its last bytes go out, sealed, for a limited time. A failure is not kept: who asks again tries again. The claim
of a process that died ends by itself. Must not: look into what is said.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import TypeVar, assert_never

import msgspec

from thinkback.drive import clock
from thinkback.errors import StoreError
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.incoming import Incoming, Notes, Sink
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.stores.gateway_state.records import (
    Answered,
    Claimed,
    Otherwise,
    Slot,
    UnderWay,
    labelled,
    without_label,
)
from thinkback.stores.gateway_state.state import GatewayState
from thinkback.wire.writing import Problem

T = TypeVar("T")
Respond = Callable[[Incoming, Sink], Awaitable[None]]

HEADER = "idempotency-key"
SETTINGS = "thinkback-set"
RESPONSE = "thinkback-response"
LONGEST_KEY = 255
LARGEST = 8 << 20
"""Bytes of an answer that is kept; of a larger one it is kept that there was one."""
LEASE = 30.0
"""Seconds after which the claim of a process that says nothing is over."""
WAIT = 20.0
"""Seconds for which a request waits for another one's answer."""
PAUSES = (0.05, 0.1, 0.25, 0.5)


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """An answer; ``body`` is ``None`` where it was too large."""

    status: int
    headers: dict[str, str]
    body: bytes | None


class Idempotency:
    """Answers requests with an idempotency key once. ``keep_for`` is in seconds.

    ``blind``: where the database does not answer, such a request is answered like any other. ``now`` is microseconds
    UTC, ``pause`` waits for so many seconds.
    """

    def __init__(
        self,
        office: GatewayState,
        sealer: Sealer,
        executor: Executor | None = None,
        *,
        keep_for: float = 86_400.0,
        blind: bool = False,
        now: Callable[[], int] = clock.now,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._office, self._sealer, self._executor = office, sealer.of("idempotency"), executor
        self._keep_for, self._blind, self._now, self._pause = keep_for, blind, now, pause

    async def respond(self, incoming: Incoming, sink: Sink, respond: Respond) -> None:
        """Answer with ``respond``, or with what it answered before.

        Raises ``Refused`` for a key that stands for another request, or whose answer takes too long, was too large or
        cannot be read any more. Of a key whose recording is off nothing may be kept: it is answered like any other.
        """
        name = incoming.request.headers.get(HEADER, "")
        if not name or incoming.grant.recording == "off":
            await respond(incoming, sink)
            return
        if len(name) > LONGEST_KEY or not name.isprintable():
            raise Refused(400, "idempotency_key", f"an idempotency key has at most {LONGEST_KEY} printable letters")
        slot, owner = _slot(incoming, name), secrets.token_hex(8)
        try:
            sealed = await self._claimed(slot, _digest(incoming), owner)
        except StoreError as error:
            if not self._blind:
                raise unavailable() from error
            sink.notes.degraded = "store"
            await respond(incoming, sink)
            return
        if sealed is not None:
            await _tell_again(self._opened(slot, sealed), sink)
            return
        await self._once(incoming, sink, respond, slot, owner)

    async def _claimed(self, slot: Slot, body: bytes, owner: str) -> bytes | None:
        """``None`` where it is ours to answer, else the answer there is. Raises ``Refused`` and ``StoreError``."""
        waited, pauses = 0.0, iter(PAUSES)
        while True:
            now = self._now()
            claim = await self._run(self._office.replays.claim, slot, body, owner, now, now + _micros(LEASE))
            match claim:
                case Claimed():
                    return None
                case Answered(sealed):
                    return sealed
                case Otherwise():
                    raise Refused(
                        422, "idempotency_key_reused", "this idempotency key was used before, for another request"
                    )
                case UnderWay():
                    if waited >= WAIT:
                        raise Refused(
                            409,
                            "idempotency_under_way",
                            "a request with this idempotency key is still running; retry later to get its response",
                            retry_after=PAUSES[-1],
                        )
                case _:
                    assert_never(claim)
            pause = next(pauses, PAUSES[-1])
            waited += pause
            await self._pause(pause)

    async def _once(self, incoming: Incoming, sink: Sink, respond: Respond, slot: Slot, owner: str) -> None:
        """Answer, keep the claim meanwhile, and give it up where no answer came of it."""

        async def keep(kept: _Kept) -> None:
            sealed = self._sealer.seal_bytes(msgspec.msgpack.encode(kept), _scope(slot))
            until = self._now() + _micros(self._keep_for)
            response = kept.headers.get(RESPONSE, "")
            answer = labelled(sealed, response) if response else sealed
            try:
                await self._run(self._office.replays.finish, slot, owner, answer, until)
            except StoreError:
                # the client gets its answer all the same; who asks again meanwhile waits for the claim to end
                sink.notes.degraded = "store"

        keeping = _Keeping(sink, keep)
        renewing = asyncio.create_task(self._renew(slot, owner))
        try:
            await respond(incoming, keeping)
        finally:
            renewing.cancel()
            if not keeping.kept:
                # also when this task is being ended
                await asyncio.shield(asyncio.ensure_future(self._release(slot, owner)))

    async def _renew(self, slot: Slot, owner: str) -> None:
        while True:
            await self._pause(LEASE / 3)
            try:
                await self._run(self._office.replays.renew, slot, owner, self._now() + _micros(LEASE))
            except StoreError:
                continue

    async def _release(self, slot: Slot, owner: str) -> None:
        try:
            await self._run(self._office.replays.release, slot, owner)
        except StoreError:
            return  # it ends by itself

    def _opened(self, slot: Slot, sealed: bytes) -> _Kept:
        data = self._sealer.open_bytes(without_label(sealed), _scope(slot))
        if data is None:
            raise Refused(409, "idempotency_lost", "the stored response cannot be read any more")
        kept = msgspec.msgpack.decode(data, type=_Kept)
        if kept.body is None:
            raise Refused(
                409,
                "idempotency_too_large",
                f"the response to this idempotency key had more than {LARGEST} bytes and was not stored",
            )
        return kept

    async def _run(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)


class _Keeping:
    """A sink that passes everything on, and keeps what came whole before it sends the last of it."""

    def __init__(self, sink: Sink, keep: Callable[[_Kept], Awaitable[None]]) -> None:
        self._sink, self._keep = sink, keep
        self._status, self._headers = 0, dict[str, str]()
        self._pieces: list[bytes] = []
        self._size = 0
        self.kept = False

    @property
    def notes(self) -> Notes:
        """Those of the request."""
        return self._sink.notes

    @property
    def stop(self) -> Problem | None:
        """What is to be told, once the task was cancelled."""
        return self._sink.stop

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Status and headers."""
        self._status, self._headers = status, dict(headers)
        await self._sink.start(status, headers)

    async def write(self, data: bytes) -> None:
        """A piece of the body."""
        self._take(data)
        await self._sink.write(data)

    async def end(self, data: bytes = b"") -> None:
        """The last piece."""
        self._take(data)
        if 200 <= self._status < 300 and not self.notes.report.failure:
            body = b"".join(self._pieces) if self._size <= LARGEST else None
            await self._keep(_Kept(self._status, self._headers, body))
            self.kept = True
        self._pieces = []
        await self._sink.end(data)

    def _take(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= LARGEST:
            self._pieces.append(data)
        else:
            self._pieces = []


async def _tell_again(kept: _Kept, sink: Sink) -> None:
    await sink.start(kept.status, {**kept.headers, "idempotent-replayed": "true"})
    await sink.end(kept.body or b"")


def _slot(incoming: Incoming, name: str) -> Slot:
    text = f"{incoming.grant.key}\n{name}"
    return Slot(incoming.grant.tenant, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16])


def _scope(slot: Slot) -> bytes:
    return slot.id + slot.tenant.encode("utf-8", "surrogatepass")


def _digest(incoming: Incoming) -> bytes:
    """What makes it the same request: where it goes, what it says, and the settings it asks for."""
    parts = (
        incoming.request.front.encode(),
        incoming.request.model.encode("utf-8", "surrogatepass"),
        repr((incoming.request.streams, incoming.request.counts_only)).encode(),
        incoming.request.headers.get(SETTINGS, "").encode("utf-8", "surrogatepass"),
        incoming.request.body,
    )
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()


def _micros(seconds: float) -> int:
    return int(seconds * 1_000_000)


def unavailable() -> Refused:
    """The database does not answer."""
    return Refused(503, "store_unavailable", "idempotency keys cannot be checked at the moment", retry_after=5)
