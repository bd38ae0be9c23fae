"""The ASGI application: everything between a connection and ``Gateway.respond``.

Owns routes, who may ask, the limits of a request, and how a refusal is told. Promises: a key is looked at before a
body is read; whatever goes wrong is told in the dialect of the path; a client that leaves ends its request at once.
Must not: look into what is said, or show a key, a header with one, or an error's inside.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec

from thinkback.errors import CredentialError
from thinkback.proxy import losses
from thinkback.proxy.headers import passed_on
from thinkback.proxy.problems import Refused, problem_of
from thinkback.servers.gateway.access.keys import presented
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.grant import KEY_HEADER, PREFIX, Grant
from thinkback.servers.gateway.http import pages, routes
from thinkback.servers.gateway.http.answers import Answer, answer_of
from thinkback.servers.gateway.http.arrays import ArraySink
from thinkback.servers.gateway.http.backend import Behind
from thinkback.servers.gateway.http.body import check_text, read_body
from thinkback.servers.gateway.http.connections import OFFER
from thinkback.servers.gateway.http.origins import Origins
from thinkback.servers.gateway.http.response_stream import Headers, ResponseSink
from thinkback.servers.gateway.http.routes import GETS, Route
from thinkback.servers.gateway.http.scraping import check_scraper
from thinkback.servers.gateway.incoming import ClientGone, Incoming, Sink
from thinkback.servers.gateway.own import Own, own_of
from thinkback.servers.gateway.telemetry.logs import Log, Value, place_of
from thinkback.servers.gateway.telemetry.metrics import OPEN, STREAMS, Metrics
from thinkback.servers.gateway.telemetry.tracing import spans_of, traced
from thinkback.session.ids import new_id
from thinkback.turn.credentials import SHOWN
from thinkback.wire.registry import front
from thinkback.wire.writing import Problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HELD_BODIES = 8
"""Bodies of the largest size that are in memory at once; more are told to come again."""
LINGER = 5.0
"""Seconds for which a body that was refused is still read."""
_SAFE_ID = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class RequestContext(NamedTuple):
    """One request while it is looked at."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    route: Route
    id: str
    began: float


class Admitted(NamedTuple):
    """Who asks, and with which credential of its own."""

    grant: Grant
    own: Own | None


class App:
    """The ASGI callable. ``configure`` exchanges what it serves by, for requests that come later."""

    def __init__(self, behind: Behind, config: Config, *, log: Log, metrics: Metrics) -> None:
        self.metrics = metrics
        self.measures: Callable[[], Awaitable[str]] = self._own_measures
        self.leaving = self.draining = False
        self._log = log
        self._open: set[ResponseSink] = set()
        self._held = 0
        self.configure(behind, config)
        metrics.gauge(OPEN, lambda: len(self._open))
        metrics.gauge(STREAMS, lambda: sum(sink.streams for sink in self._open))

    def configure(self, behind: Behind, config: Config, metrics_key: str = "") -> None:
        """Serve requests that come from now on by these."""
        self._behind, self._config, self._metrics_key = behind, config, metrics_key
        self._takes_own = bool(config.of_clients)
        self._origins = Origins(config.server)
        self._spans = spans_of(config.telemetry)

    async def _own_measures(self) -> str:
        return self.metrics.page()

    @property
    def open(self) -> int:
        """How many requests are being answered."""
        return len(self._open)

    def leave(self) -> None:
        """Be not ready, and ask clients not to come again on their connections; requests are served as before."""
        self.leaving = True

    def drain(self) -> None:
        """Take no new requests; what is open goes on."""
        self.leaving = self.draining = True

    def stop(self) -> None:
        """End what is open: each client is told in its dialect."""
        told = Problem(503, "the gateway is restarting; retry")
        for sink in list(self._open):
            sink.leave("draining", told)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not served")
        began = time.perf_counter()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        path = scope["path"]
        route = routes.find(path, headers)
        known = route or Route("root", routes.front_of(path, headers))
        asked = RequestContext(
            scope["method"],
            path,
            _query(scope.get("query_string", b"")),
            headers,
            known,
            request_id(headers.get("x-request-id", "")),
            began,
        )
        sink = ResponseSink(send, self._extra(asked), self._config.server.write_timeout)
        try:
            self._check(scope, asked, found=route is not None)
            if asked.method == "OPTIONS":
                await _write(sink, self._origins.preflight(asked.headers, asked.route.methods))
            elif asked.method == "HEAD" and known.page == "respond":
                await _write(sink, Answer(200, {"allow": ", ".join(known.methods)}, b""))
            elif known.page == "respond":
                await self._respond(scope, asked, receive, sink)
            else:
                await _write(sink, await self._page(scope, asked))
        except ClientGone:
            sink.gone = sink.gone or "client"
        except Exception as error:  # the outermost loop of a request
            await self._fail(asked, sink, error, receive)
        finally:
            sink.close()
            self._log_request(asked, sink)
            if not sink.ended:
                # what a deaf client does not take would be kept for it
                scope.get("state", {}).get("abort", lambda: None)()

    def _check(self, scope: Mapping[str, Any], asked: RequestContext, *, found: bool) -> None:
        """Refuse what is wrong with a request before anybody is asked who it is from."""
        refused = scope.get("state", {}).get("refused")
        if refused is not None and not (asked.route.page in ("health", "ready", "metrics") and refused.status == 503):
            raise refused
        self._origins.check(scope["headers"], asked.headers, asked.method)
        given = [name.decode("latin-1") for name, _ in scope["headers"]]
        if twice := next((name for name in (*SHOWN, KEY_HEADER) if given.count(name) > 1), None):
            raise Refused(400, "two_credentials", f"there are two {twice} headers: send one")
        if (
            asked.method == "GET"
            and asked.route.page == "respond"
            and asked.headers.get(OFFER, "").lower() == "websocket"
        ):
            raise Refused(426, "no_websocket", "there is no WebSocket at this path: send a POST")
        if not found:
            raise Refused(404, "not_found", routes.why_not(asked.path))
        if asked.method not in (*asked.route.methods, "HEAD", "OPTIONS"):
            raise Refused(405, "method_not_allowed", f"{asked.method} is not a method of this path")

    async def _page(self, scope: Mapping[str, Any], asked: RequestContext) -> Answer:
        route = asked.route
        if route.page == "health":
            return pages.text("ok\n")
        if route.page == "ready":
            return pages.ready(await self._behind.health(), draining=self.leaving)
        if route.page == "metrics":
            check_scraper(scope.get("client"), asked.headers, self._metrics_key)
            return pages.text(await self.measures(), "text/plain; version=0.0.4; charset=utf-8")
        if route.page == "openapi":
            return pages.openapi()
        if route.page == "root":
            return pages.json({"name": "thinkback gateway", "openapi": "/openapi.json"})
        grant = await self._admit(scope, asked, self._own(asked))
        listed = self._behind.models(grant, route.front, route.model)
        if route.page == "models":
            return pages.models(route.front, listed)
        return pages.model(route.front, listed, route.model)

    async def _admit(self, scope: Mapping[str, Any], asked: RequestContext, own: Own | None) -> Grant:
        """Whoever asks: by a key, else by a credential of their own where an upstream takes such ones."""
        client = scope.get("client")
        address, secret = client[0] if client else "", presented(asked.headers, asked.query)
        by_own = self._takes_own and not self._config.server.no_auth and not asked.headers.get(KEY_HEADER, "").strip()
        if by_own and not secret.startswith(PREFIX):
            return await self._behind.admit_own(own, address)
        return await self._behind.admit(secret, address)

    def _own(self, asked: RequestContext) -> Own | None:
        """The client's own credential for a provider, where an upstream takes such ones. Raises ``Refused``."""
        own = own_of(asked.headers, asked.query) if self._takes_own else None
        if own is None:
            return None
        speaks = asked.route.front
        if asked.route.page != "respond" and not front(speaks).address.header:
            # a list of models that clients of several dialects ask for in the same words, with a bearer token
            return own._replace(place=self._behind.own_place("")) if [*own.shown] == ["authorization"] else None
        return own._replace(place=self._behind.own_place(speaks))

    async def _respond(
        self, scope: Mapping[str, Any], asked: RequestContext, receive: Receive, sink: ResponseSink
    ) -> None:
        if self.draining:
            raise Refused(503, "draining", "the gateway is restarting; retry", retry_after=1)
        own = self._own(asked)
        grant = await self._admit(scope, asked, own)
        sink.key = grant.key
        kind = asked.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise Refused(415, "not_json", "send a request as JSON, with the header content-type: application/json")
        async with self._behind.entered(grant):
            await self._answer(scope, asked, receive, sink, Admitted(grant, own))

    async def _answer(
        self, scope: Mapping[str, Any], asked: RequestContext, receive: Receive, sink: ResponseSink, by: Admitted
    ) -> None:
        """Read the body, and let the engine answer."""
        server = self._config.server
        with self._holding() as hold:
            body = await read_body(receive, asked.headers, server.max_body, server.body_timeout, hold)
            sink.body_read = True
            check_text(body)
            sink.notes.phases["body"] = time.perf_counter() - asked.began
            incoming = Incoming.of(
                asked.route.front,
                body,
                passed_on(scope["headers"]),
                by.grant,
                asked.id,
                asked.route.model,
                asked.route.streams,
                asked.route.counts_only,
                by.own,
            )
            del body
            as_array = asked.route.streams and asked.query.get("alt") != ["sse"]
            to = ArraySink(sink) if as_array else sink
            if self._spans is None:
                await self._exchange(incoming, receive, sink, to)
            else:
                with traced(self._spans, incoming, sink):
                    await self._exchange(incoming, receive, sink, to)

    async def _exchange(self, incoming: Incoming, receive: Receive, sink: ResponseSink, to: Sink) -> None:
        """Let the engine answer, as long as somebody reads."""
        own = asyncio.current_task()
        assert own is not None
        sink.writes_in(own)
        self._open.add(sink)
        watch = asyncio.ensure_future(_until_left(receive, sink))
        try:
            await self._behind.respond(incoming, to)
        except asyncio.CancelledError:
            if not sink.gone and sink.stop is None:
                raise
            # it was we who cancelled, so it ends here
            own.uncancel()
            if sink.stop is not None and not sink.started:
                raise Refused(sink.stop.status, "draining", sink.stop.message, retry_after=1) from None
        finally:
            watch.cancel()
            self._open.discard(sink)

    @contextmanager
    def _holding(self) -> Iterator[Callable[[int], None]]:
        """Counts a body that is in memory, unpacked, as it grows; refuses it where there are too many."""
        held = 0
        most = HELD_BODIES * self._config.server.max_body

        def hold(size: int) -> None:
            nonlocal held
            if self._held > held and self._held + size > most:
                raise Refused(503, "busy", "too many large requests are running; retry later", retry_after=1)
            self._held += size
            held += size

        try:
            yield hold
        finally:
            self._held -= held

    def _extra(self, asked: RequestContext) -> Headers:
        """Headers of every response to this request."""
        id = asked.id.encode()
        lines = [(b"connection", b"close")] if self.leaving else []
        lines += [(b"x-request-id", id), *self._origins.headers(asked.headers.get("origin", ""))]
        named = front(asked.route.front).request_id
        return [*lines, (named.encode(), id)] if named else lines

    async def _fail(self, asked: RequestContext, sink: ResponseSink, error: Exception, receive: Receive) -> None:
        """Tell the client of ``error``, where nothing was told yet; what is ours is logged with its place."""
        problem, retry_after = problem_of(error)
        notes = sink.notes
        failure = notes.report.failure or problem.code or type(error).__name__
        notes.report = msgspec.structs.replace(notes.report, failure=failure)
        if problem.status >= 500 and not isinstance(error, Refused):
            self._log.line("error", "failed", {"id": asked.id, "error": type(error).__name__, "at": place_of(error)})
        if sink.started:
            return
        answer = answer_of(asked.route.front, problem, retry_after)
        if problem.status == 426:
            answer = answer._replace(headers={**answer.headers, "upgrade": "HTTP/1.1"})
        if problem.status == 405:
            answer = answer._replace(headers={**answer.headers, "allow": ", ".join(asked.route.methods)})
        try:
            if sink.body_read or asked.method in GETS:
                await _write(sink, answer)
            else:
                await _write_and_read_on(sink, answer, receive)
        except ClientGone:
            return

    def _log_request(self, asked: RequestContext, sink: ResponseSink) -> None:
        """The line and the measures of a request that is over."""
        took, notes = time.perf_counter() - asked.began, sink.notes
        ended = "" if sink.ended else sink.gone or "gateway"
        if asked.route.page == "respond":
            self.metrics.request(asked.route.front, sink.status, took, notes, ended=ended, key=sink.key)
        lost = losses.DROPPED in notes.report.reattach
        # Without a key for the upstream the client gets a status that it does not repeat; the operator must act.
        is_ours = sink.status >= 500 or notes.report.failure == CredentialError.kind
        level = "error" if is_ours else "warning" if lost else "info"
        if self._log.wants(level):
            self._log.line(level, "request", line_of(asked, sink, took, ended))


def request_id(given: str) -> str:
    """The client's id where it is a short word, else one of ours."""
    return given if 0 < len(given) <= 128 and set(given) <= _SAFE_ID else f"req_{new_id()}"


def line_of(asked: RequestContext, sink: ResponseSink, took: float, ended: str) -> dict[str, Value]:
    """What the log says of a request."""
    notes, report = sink.notes, sink.notes.report
    return {
        "id": asked.id,
        "key": sink.key,
        "front": asked.route.front,
        "page": asked.route.page,
        "method": asked.method,
        "path": asked.path[:200] if sink.status == 404 else "",
        "status": sink.status,
        "seconds": took,
        "bytes": sink.sent,
        "stream": sink.streams,
        "ended_by": ended,
        "model": report.model,
        "served": report.served,
        "upstream": report.upstream,
        "session": report.session,
        "response": report.response,
        "reattach": report.reattach,
        "degraded": notes.degraded,
        "failure": report.failure,
        "reason": report.reason,
        "attempts": report.attempts or None,
        "failed_over": report.failed_over,
        "input_tokens": report.input_tokens,
        "output_tokens": report.output_tokens,
        "reasoning_tokens": report.reasoning_tokens,
        "cached_tokens": report.cached_tokens,
        "cache_missed_tokens": report.cache_missed_tokens,
        "cache_collapse": report.cache_collapse,
        **{f"{phase}_seconds": seconds for phase, seconds in notes.phases.items()},
    }


async def _until_left(receive: Receive, sink: ResponseSink) -> None:
    """Wait for the client to leave; the end of the response counts as that, and changes nothing then."""
    while (await receive())["type"] != "http.disconnect":
        pass
    sink.leave("client")


async def _write(sink: ResponseSink, answer: Answer) -> None:
    await sink.start(answer.status, answer.headers)
    await sink.end(answer.body)


async def _write_and_read_on(sink: ResponseSink, answer: Answer, receive: Receive) -> None:
    """An answer to a body that was not read. Closing at once would take it from a client that is still writing."""
    headers = {**answer.headers, "connection": "close", "content-length": str(len(answer.body))}
    await sink.start(answer.status, headers)
    await sink.write(answer.body)
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    break
    await sink.finish()


def _query(raw: bytes) -> Mapping[str, list[str]]:
    try:
        return parse_qs(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=100) if raw else {}
    except ValueError:
        return {}
