"""Who may look at a viewer for many: a key is sent by a form, and exchanged for a cookie that holds for some hours.

Promises: nothing of a log leaves without the cookie, and with it only what is of its holder's tenant; a key is taken
from a field of the form alone and not kept; a key that no longer holds ends what was begun with it, open streams too;
guesses of one address are few. Must not: know whose keys they are, or take a form but those for signing in and out.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from typing import NamedTuple, Protocol
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thinkback.errors import StoreError, ThinkbackError
from thinkback.proxy.problems import Refused
from thinkback.servers.viewer.app import static_file
from thinkback.servers.viewer.door import TOLD_HERE, cookie_of, form_of, is_from_here, leading_on, with_headers
from thinkback.servers.viewer.pages import page

LIFE, IDLE = 8 * 3600.0, 1800.0
"""Seconds for which a cookie holds, in all and from one request to the next."""
MOST, EACH = 1000, 20
"""Cookies that hold at a time, and of one key: beyond that the oldest does not."""
ATTEMPTS, WINDOW = 10, 60.0
"""Sign-ins of an address that may fail in so many seconds."""
_ADDRESSES = 4096
_LARGEST = 8192
_PATIENCE = 10.0
"""Bytes of a form, and seconds for it."""
_WAY = re.compile(r"/(?![/\\])[!-~]*")


class Guest(NamedTuple):
    """Whose ``tenant`` may be looked at, by which ``key``; by ``proof`` that is known again, and cannot be used."""

    tenant: str
    proof: bytes
    key: str = ""


class Keys(Protocol):
    """Knows keys. ``admit`` and ``again`` raise ``Refused``: with 503 where that cannot be found out at the moment.

    ``too_many`` is told of a sign-in that was refused unseen, as too many of that address had failed; ``looked`` of the
    first time that a guest looks at a session.
    """

    async def admit(self, secret: str, address: str) -> Guest: ...

    async def again(self, guest: Guest) -> None: ...

    def too_many(self, address: str) -> None: ...

    def looked(self, guest: Guest, session: str) -> None: ...


class _Visit:
    """What the cookie with the digest ``at`` stands for; times by the clock."""

    def __init__(self, at: bytes, guest: Guest, now: float) -> None:
        self.at, self.guest, self.since, self.used = at, guest, now, now
        self.sessions: set[str] = set()


class SignIn:
    """The viewers of tenants, each behind a check of each request. ``room`` makes that of a tenant.

    ``check`` raises ``Refused`` for a name that is not ours and for a page of another origin, by the request's headers.
    """

    def __init__(
        self,
        keys: Keys,
        room: Callable[[str], ASGIApp],
        check: Callable[[Headers], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys, self._room, self._check, self._clock = keys, room, check, clock
        # Cookies are shared by all ports of a host: another viewer's must not be in the way of this one's.
        self._name = f"thinkback-{secrets.token_hex(8)}"
        self._visits: dict[bytes, _Visit] = {}
        self._rooms: dict[str, ASGIApp] = {}
        self._failed: OrderedDict[str, tuple[float, int]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through to its holder's tenant, or answer it here."""
        if scope["type"] != "http":
            return
        headers, way = Headers(scope=scope), f"{scope['method']} {scope['path']}"
        sending = with_headers(send, TOLD_HERE)
        try:
            self._check(headers)
            if scope["method"] == "POST" and not is_from_here(headers):
                raise Refused(403, "foreign_form", "only forms of the viewer's own pages are taken")
            if way == "POST /sign-in":
                answer = await self._sign_in(Request(scope, receive), headers)
            elif way == "POST /sign-out":
                answer = self._sign_out(headers)
            elif scope["method"] not in ("GET", "HEAD"):
                raise Refused(405, "read_only", "the viewer only looks")
            elif scope["path"].startswith("/static/"):
                answer = static_file(scope["path"].removeprefix("/static/"))
            elif (visit := await self._visit(headers)) is not None:
                self._note_look(visit, scope["path"])
                app = await self._app(visit.guest.tenant)
                await app(scope, receive, self._while_there(visit, sending))
                return
            else:
                answer = _outside(scope, headers)
        except Refused as refused:
            answer = PlainTextResponse(refused.message, refused.status, _again_in(refused))
        except StoreError:  # its words are for who runs this
            answer = PlainTextResponse("the log does not answer at the moment", 503)
        await answer(scope, receive, sending)

    def _note_look(self, visit: _Visit, path: str) -> None:
        """Tell of a session that is looked at, once in a visit."""
        parts = path.split("/")
        if parts[1] == "session" and len(parts) > 2 and parts[2] not in visit.sessions:
            visit.sessions.add(parts[2])
            self._keys.looked(visit.guest, parts[2])

    async def _sign_in(self, request: Request, headers: Headers) -> Response:
        host = request.client.host if request.client is not None else ""
        address = _counted(host)
        self._count(address, host)
        try:
            async with asyncio.timeout(_PATIENCE):
                given = await form_of(request, _LARGEST)
        except (ThinkbackError, TimeoutError):
            raise Refused(400, "no_form", "that is not the form for signing in") from None
        to = given.get("to", "")
        way = to if _WAY.fullmatch(to) else "/"
        try:
            guest = await self._keys.admit(given.get("key", "").strip(), host)
        except Refused as refused:
            if refused.status == 503:  # nobody looked at the key: that was no guess
                self._forgive(address)
            return _form(way, refused.status, refused.message, _again_in(refused))
        self._forgive(address)
        self._visits.pop(self._shown(headers), None)
        mine = [visit.at for visit in self._visits.values() if visit.guest.proof == guest.proof]
        for at in [*mine[: max(0, len(mine) - EACH + 1)], *list(self._visits)[: max(0, len(self._visits) - MOST + 1)]]:
            self._visits.pop(at, None)
        value = secrets.token_urlsafe(32)
        visit = _Visit(_digest(value), guest, self._clock())
        self._visits[visit.at] = visit
        answer = RedirectResponse(way, 303)
        # A browser says itself whether it sent the form over TLS, which ends at a proxy.
        self._set_cookie(answer, value, secure=headers["origin"].lower().startswith("https://"))
        return answer

    def _sign_out(self, headers: Headers) -> Response:
        self._visits.pop(self._shown(headers), None)
        self._tidy()
        answer = RedirectResponse("/", 303)
        self._set_cookie(answer, "", secure=False)
        return answer

    def _set_cookie(self, answer: Response, value: str, *, secure: bool) -> None:
        age = None if value else 0
        answer.set_cookie(self._name, value, max_age=age, secure=secure, httponly=True, samesite="strict")

    def _shown(self, headers: Headers) -> bytes:
        """The digest of the cookie that a request shows. What is looked up is no secret, as with keys."""
        return _digest(cookie_of(headers, self._name))

    async def _visit(self, headers: Headers) -> _Visit | None:
        """The visit that a request is part of. Raises ``Refused`` where that cannot be found out."""
        visit = self._visits.get(self._shown(headers))
        if visit is None or not await self._holds(visit):
            return None
        visit.used = self._clock()
        return visit

    async def _holds(self, visit: _Visit) -> bool:
        """Whether a visit goes on: it was not ended, is not too long, and its key still holds."""
        self._tidy()
        try:
            await self._keys.again(visit.guest)
        except Refused as refused:
            if refused.status == 503:
                raise
            self._visits.pop(visit.at, None)
        return visit.at in self._visits

    def _tidy(self) -> None:
        """Forget visits that are over, and the pages that were made for them."""
        now = self._clock()
        kept = [one for one in self._visits.values() if now - one.since < LIFE and now - one.used < IDLE]
        self._visits = {visit.at: visit for visit in kept}
        tenants = {visit.guest.tenant for visit in self._visits.values()}
        self._rooms = {tenant: room for tenant, room in self._rooms.items() if tenant in tenants}

    async def _app(self, tenant: str) -> ASGIApp:
        found = self._rooms.get(tenant)
        if found is None:
            made = await run_in_threadpool(self._room, tenant)
            # not before: meanwhile the rooms may have been tidied
            found = self._rooms.setdefault(tenant, made)
        return found

    def _while_there(self, visit: _Visit, send: Send) -> Send:
        """``send`` that ends a stream with the visit: it may be open for hours."""
        is_stream = is_over = False

        async def sending(message: Message) -> None:
            nonlocal is_stream, is_over
            if message["type"] == "http.response.start":
                is_stream = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
            elif is_stream and not is_over:
                try:
                    is_over = not await self._holds(visit)
                except Refused:
                    is_over = True
                message = {"type": "http.response.body"} if is_over else message
            elif is_over:
                return
            await send(message)

        return sending

    def _count(self, address: str, host: str) -> None:
        """Count a sign-in before it is looked at. Raises ``Refused`` where too many failed."""
        now = self._clock()
        since, count = self._failed.get(address, (now, 0))
        if now - since >= WINDOW:
            since, count = now, 0
        if count >= ATTEMPTS:
            self._keys.too_many(host)
            wait = max(1.0, WINDOW - (now - since))
            raise Refused(429, "too_many_attempts", "too many sign-ins failed; try again later", retry_after=wait)
        self._failed[address] = (since, count + 1)
        self._failed.move_to_end(address)
        while len(self._failed) > _ADDRESSES:
            self._failed.popitem(last=False)

    def _forgive(self, address: str) -> None:
        since, count = self._failed.get(address, (0.0, 0))
        if count:
            self._failed[address] = (since, count - 1)


def _outside(scope: Scope, headers: Headers) -> Response:
    """The form, which leads to where somebody wanted to go.

    Whoever follows a link of another site's page gets here as that site, and the cookie was not sent: a page of ours
    leads on to the same place.
    """
    way, query = "/" + quote(scope["path"].lstrip("/\\"), safe="/-._~"), scope["query_string"].decode("latin-1")
    way = "/" if way in ("/sign-in", "/sign-out") else f"{way}?{query}" if query else way
    way = way if _WAY.fullmatch(way) else "/"
    is_from_elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
    if is_from_elsewhere and headers.get("sec-fetch-mode") == "navigate":
        return Response(leading_on(way), headers={"refresh": f"0; url={way}"}, media_type="text/html")
    return _form(way, 401)


def _form(way: str, status: int, failed: str = "", told: Mapping[str, str] | None = None) -> Response:
    return Response(page("sign_in.html", to=way, failed=failed), status, told, "text/html")


def _again_in(refused: Refused) -> dict[str, str]:
    return {} if refused.retry_after is None else {"retry-after": f"{refused.retry_after:.0f}"}


def _counted(host: str) -> str:
    """What attempts are counted by: an address, or the network that one holder of IPv6 addresses has."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:  # a socket for both kinds has those of IPv4 in this form
        return str(address.ipv4_mapped)
    return str(ip_network((address, 64), strict=False))


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()
