"""Who may look: the start token of ``thinkback view``, the cookie it is exchanged for, and what every answer says.

Promises: nothing of the log leaves for a request without the cookie, to another host's name, or for a page of another
origin; the token works once and for a minute; no page may run, frame or fetch anything that is not the viewer's own.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Iterable
from html import escape
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thinkback.errors import ThinkbackError

LIFETIME = 60.0
"""Seconds that a start token holds."""
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_QUIET = (b"referrer-policy", b"no-referrer")
# Of pages with forms: to `no-referrer` a browser does not say which page sent a form, and its word is needed.
TOLD_HERE = (b"referrer-policy", b"same-origin")
_NO_STORE = (b"cache-control", b"no-store")
_REFUSAL = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>thinkback</title><h1>Nothing to see from here</h1><p>{}</p></html>
"""
_WAY = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>thinkback</title><p><a href="{}">To the viewer</a></p></html>
"""
_START_AGAIN = "The link of `thinkback view` works once, within a minute. Start the command again for another."


class Door:
    """``app`` behind a check of each request. ``hosts`` are the names, with ports, that the viewer answers to.

    ``token`` is what a link carries as ``?token=`` to be let in; ``clock`` counts seconds. ``writes``: forms of its own
    pages may be sent to it, and nobody else's.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Iterable[str],
        token: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        writes: bool = False,
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._token = token
        self._clock = clock
        self._writes = writes
        self._deadline = clock() + LIFETIME
        # Cookies are shared by all ports of a host: another viewer's must not be in the way of this one's.
        self._name = f"thinkback-{secrets.token_hex(8)}"
        self._value = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, exchange its token, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1 or headers["host"].lower() not in self._hosts:
            await _refuse(send, 403, "The viewer does not answer to this name.")
        elif (origin := headers.get("origin")) is not None and not self._is_ours(origin):
            await _refuse(send, 403, "Pages of another origin may not ask.")
        elif scope["method"] not in ("GET", "HEAD") and not (self._writes and scope["method"] == "POST"):
            await _refuse(send, 405, "The viewer only looks.")
        elif scope["method"] == "POST" and not (self._is_known(headers) and is_from_here(headers)):
            await _refuse(send, 403, "Only a form of the viewer's own pages may change something.")
        elif (token := _token_in(scope)) is not None:
            await self._exchange(scope, headers, token, send)
        elif not self._is_known(headers):
            await _refuse(send, 403, _START_AGAIN)
        else:
            await self._app(scope, receive, with_headers(send, TOLD_HERE if self._writes else _QUIET))

    def _is_ours(self, origin: str) -> bool:
        scheme, separator, host = origin.lower().partition("://")
        return scheme == "http" and separator != "" and host in self._hosts

    def _is_known(self, headers: Headers) -> bool:
        return _same(cookie_of(headers, self._name), self._value)

    async def _exchange(self, scope: Scope, headers: Headers, token: str, send: Send) -> None:
        """The cookie, and the way to the same page without the token, which is dead from here on.

        Whoever follows a link of another site's page gets there as that site, and a redirect goes on as it: the cookie
        would not be sent. A page that leads on is ours.
        """
        is_good = self._token != "" and _same(token, self._token) and self._clock() < self._deadline
        if not is_good and not self._is_known(headers):
            await _refuse(send, 403, _START_AGAIN)
            return
        way = _without_token(scope)
        body = leading_on(way)
        told = [(b"refresh", b"0; url=" + way.encode("ascii")), *_page(body)]
        if is_good:
            self._token = ""
            cookie = f"{self._name}={self._value}; Path=/; HttpOnly; SameSite=Strict"
            told.append((b"set-cookie", cookie.encode("ascii")))
        await with_headers(send)({"type": "http.response.start", "status": 200, "headers": told})
        await send({"type": "http.response.body", "body": body})


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=20)


def _token_in(scope: Scope) -> str | None:
    try:
        return next((value for name, value in _query(scope) if name == "token"), None)
    except ValueError:  # too many fields
        return None


def _without_token(scope: Scope) -> str:
    """The path, which stays on this host, and the rest of the query."""
    rest = [(name, value) for name, value in _query(scope) if name != "token"]
    path = "/" + quote(scope["path"].lstrip("/\\"), safe="/-._~")
    return f"{path}?{urlencode(rest)}" if rest else path


def leading_on(way: str) -> bytes:
    """A page that leads to ``way``."""
    return _WAY.format(escape(way)).encode()


def _page(body: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())]


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = _REFUSAL.format(escape(reason)).encode()
    await with_headers(send)({"type": "http.response.start", "status": status, "headers": _page(body)})
    await send({"type": "http.response.body", "body": body})


async def form_of(request: Request, most: int) -> dict[str, str]:
    """The fields of a form of at most ``most`` bytes. Raises ``ThinkbackError`` for one that is none of ours."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise ThinkbackError(
                "that is too much text for a form", next_actions=("`thinkback edit HASH TEXT` takes any",)
            )
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise ThinkbackError("that is no form of the viewer", next_actions=("load its page again",))
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise ThinkbackError("that is no form of the viewer", next_actions=("load its page again",)) from None


def cookie_of(headers: Headers, name: str) -> str:
    """The cookie of that name; empty without it. Browsers send what other servers on this host set as well."""
    return cookie_parser(headers.get("cookie", "")).get(name, "")


def is_from_here(headers: Headers) -> bool:
    """Whether a page of this very host sent a form: browsers say where from, and their word is needed."""
    return "origin" in headers and headers.get("sec-fetch-site", "same-origin") == "same-origin"


def with_headers(send: Send, referrer: tuple[bytes, bytes] = _QUIET) -> Send:
    """``send``, with what every answer of a viewer forbids a page."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            kept = () if any(name == b"cache-control" for name, _ in own) else (_NO_STORE,)
            message = {**message, "headers": [*own, *_HEADERS, referrer, *kept]}
        await send(message)

    return sending
