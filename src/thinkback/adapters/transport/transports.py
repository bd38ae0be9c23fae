"""``Transport`` and ``AsyncTransport``, and clients with one in them: what a program gives to an SDK.

Promises: what is no request for a response of a model, and what goes to a place that is not known, passes as it is.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any
from urllib.request import getproxies
from weakref import WeakKeyDictionary

import httpx2

from thinkback.adapters.open_logs import Log
from thinkback.adapters.threads import Threads
from thinkback.adapters.transport import dropped, telling
from thinkback.adapters.transport.journal import Journal, OnLogError
from thinkback.adapters.transport.passage import (
    Begin,
    Do,
    Flow,
    Given,
    Gone,
    HangUp,
    Nap,
    Need,
    Office,
    Out,
    Passage,
    Post,
    Pour,
    Pull,
    Untouched,
)
from thinkback.adapters.transport.recognising import Apis, Unknown
from thinkback.drive.http import usual_context
from thinkback.drive.shielded import to_the_end
from thinkback.errors import NotFoundError, SettingError
from thinkback.log.protocol import Durability
from thinkback.session.ids import outside

# As the SDKs have it for clients of their own.
_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
_OF_CONNECTIONS = ("verify", "cert", "http1", "http2", "limits", "proxy", "trust_env", "mounts")
_GIVEN = (Begin, Out, Pour, Untouched)
LEAST = "openai 3.0 and anthropic 1.0"
"""The first releases that stand on httpx2."""
LARGE = 16 * 1024
"""Bytes of a request from which on an event loop leaves it to a thread."""


class _Options:
    """What both transports are made of. ``log`` is the path of a log, its address, or an open store."""

    def __init__(
        self,
        log: Log,
        endpoint: str,
        route: str,
        settings: Mapping[str, object] | None,
        strict: bool,
        durability: Durability,
        on_log_error: OnLogError,
    ) -> None:
        _typed("endpoint", endpoint, str)
        _typed("route", route, str)
        _typed("settings", settings or {}, Mapping)
        journal = Journal(log, durability, on_log_error)
        book = journal.rulebook
        self.strict = strict
        self.office = Office(journal, book, settings or {}, _place(route))
        if self.office.route is not None:
            book.endpoint(self.office.route[0])
        if endpoint:
            book.endpoint(endpoint)
        self.apis = Apis(book, endpoint, anywhere=bool(route))
        self._warned: set[str] = set()

    def passage(self, request: httpx2.Request) -> Passage | None:
        """The way of ``request``; ``None`` where it passes as it is."""
        self.office.journal.check_open()
        _check_request(request)
        api = self.apis.of(request.method, str(request.url))
        if isinstance(api, Unknown):
            if self.strict and api.unnamed:
                raise NotFoundError(
                    api.why, next_actions=("give endpoint=; `thinkback endpoints` lists them", "or leave strict=True")
                )
            if api.unnamed and api.why not in self._warned:
                self._warned.add(api.why)
                warnings.warn(f"thinkback: requests are not recorded: {api.why}", RuntimeWarning, stacklevel=outside())
            self._passes(api.why)
            return None
        if not isinstance(request.stream, httpx2.ByteStream) or "content-encoding" in request.headers:
            self._passes("its body cannot be read")
            return None
        request.read()
        return Passage(self.office, api, request)

    def _passes(self, why: str) -> None:
        telling.told(telling.listening(), telling.Why(False, why))


def _typed(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} is a {kind.__name__}, and {value!r} is none")


def _check_request(request: object) -> None:
    """Raise ``TypeError`` for a request of another library, which would not understand the response."""
    if not isinstance(request, httpx2.Request):
        made = type(request).__module__.partition(".")[0]
        raise TypeError(
            f"thinkback.Transport takes requests of httpx2, and this one is of {made}: SDKs stand on httpx2 from "
            f"{LEAST} on; for older ones, and other clients of httpx, use httpx_client(log) or "
            "async_httpx_client(log) of thinkback.adapters.transport.httpx_clients"
        )


def _place(route: str) -> tuple[str, str] | None:
    endpoint, slash, model = route.partition("/")
    if route and not (endpoint and slash and model):
        raise SettingError(
            f"route: {route!r} names no endpoint and model",
            details={"key": "route", "value": route},
            next_actions=("write it as anthropic/claude-opus-5-5",),
        )
    return (endpoint, model) if route else None


def _checked(inner: Any, kind: type, ours: tuple[type, ...], other: str) -> None:
    """Raise ``TypeError`` for an inner transport that cannot be one."""
    if isinstance(inner, ours):
        raise TypeError("one transport of thinkback is enough: a request would be recorded twice")
    if not isinstance(inner, kind):
        made = f"{type(inner).__module__.partition('.')[0]}.{type(inner).__name__}"
        raise TypeError(
            f"the inner transport must be an httpx2.{kind.__name__}, and {made} is none{other or _of_httpx(made)}"
        )


def _of_httpx(name: str) -> str:
    return (
        "; httpx's own goes with httpx_client of thinkback.adapters.transport.httpx_clients, without an inner one"
        if name.startswith("httpx.")
        else ""
    )


class Transport(httpx2.BaseTransport):
    """Requests go through ``inner`` (one of the program's own, else httpx2's) with the reasoning that they need.

    ``log`` is where they are recorded: a path, an address, or an open store. ``endpoint`` names the provider where its
    address does not; ``route`` (``ENDPOINT/MODEL``) sends requests elsewhere, with a key of the environment.
    ``settings`` are those of ``thinkback settings``. With ``strict`` a host that is not known is an error;
    ``on_log_error="raise"`` makes one of a log that cannot be used. For any number of threads. Raises
    ``NotFoundError``, ``SettingError``, ``StoreError`` for a closed store, ``TypeError`` for a foreign ``inner``.
    """

    def __init__(
        self,
        log: Log,
        inner: httpx2.BaseTransport | None = None,
        *,
        endpoint: str = "",
        route: str = "",
        settings: Mapping[str, object] | None = None,
        strict: bool = False,
        durability: Durability = "full",
        on_log_error: OnLogError = "warn",
    ) -> None:
        inner = httpx2.HTTPTransport(verify=_context(), limits=_LIMITS) if inner is None else inner
        hint = ": use thinkback.AsyncTransport" if isinstance(inner, httpx2.AsyncBaseTransport) else ""
        _checked(inner, httpx2.BaseTransport, (Transport,), hint)
        self._inner = inner
        self._options = _Options(log, endpoint, route, settings, strict, durability, on_log_error)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to ``request``."""
        dropped.record()
        passage = self._options.passage(request)
        if passage is None:
            return self._inner.handle_request(request)
        performer = _Performer(self._inner, passage.run())
        first = performer.next()
        if isinstance(first, Untouched):
            return self._inner.handle_request(first.request)
        assert isinstance(first, Begin)
        return httpx2.Response(
            first.status, headers=first.headers, stream=_Stream(performer), extensions=first.extensions
        )

    def close(self) -> None:
        """Let go of the log, and close ``inner``."""
        dropped.record()
        self._options.office.journal.close()
        self._inner.close()


def _leave(flow: Flow, perform: Callable[[Need], Any]) -> None:
    """End ``flow``, whose program reads no more."""
    try:
        need = flow.throw(Gone())
        while True:
            try:
                found = None if isinstance(need, _GIVEN) else perform(need)
            except Exception as error:
                need = flow.throw(error)
            else:
                need = flow.send(found)
    except (StopIteration, Gone):
        return


def _without_connection(need: Need) -> Any:
    """Perform what needs no event loop: that of the connection is gone."""
    return need.work() if isinstance(need, Do) else None


class _Performer:
    """Performs a flow on the program's own thread."""

    def __init__(self, inner: httpx2.BaseTransport, flow: Flow) -> None:
        self._inner, self._flow = inner, flow
        self._response: httpx2.Response | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._poured: bytes | Exception | None = None
        self.claim = dropped.Claim()

    def next(self) -> Given | None:
        """What the program gets next; ``None`` at the end."""
        poured, self._poured = self._poured, None
        try:
            need = self._flow.throw(poured) if isinstance(poured, Exception) else self._flow.send(poured)
            while not isinstance(need, _GIVEN):
                try:
                    found = self._perform(need)
                except Exception as error:
                    need = self._flow.throw(error)
                except BaseException:
                    with suppress(Exception):  # it is told in place of what fails behind it
                        self.leave()
                    raise
                else:
                    need = self._flow.send(found)
        except StopIteration:
            self.claim.take(self)
            return None
        except BaseException:
            self.claim.take(self)
            with suppress(Exception):
                self._hang_up()
            raise
        return need

    def pour(self, take: Callable[[bytes], bytes | None]) -> bytes:
        """The next that ``take`` makes of the body; nothing where ``next`` goes on, with what ended it."""
        try:
            for piece in self._pieces:
                data = take(piece)
                if data:
                    return data
                if data is None:
                    self._poured = piece
                    return b""
            self._hang_up()
            self._poured = b""
        except Exception as error:
            self._poured = error
        except BaseException:
            with suppress(Exception):  # it is told in place of what fails behind it
                self.leave()
            raise
        return b""

    def leave(self) -> None:
        """The program reads no more: what came is recorded, nothing more is given."""
        if self.claim.take(self):
            try:
                _leave(self._flow, self._perform)
            finally:
                self._hang_up()

    def record(self, *, at_exit: bool = False) -> bool:
        """What came of a response that the program let go of."""
        with suppress(Exception):  # of a connection that nobody wants
            self.leave()
        return True

    def _perform(self, need: Need) -> Any:
        match need:
            case Pull():
                piece = next(self._pieces, b"")
                if not piece:
                    self._hang_up()
                return piece
            case Do(work=work):
                return work()
            case Post(request=request):
                self._hang_up()
                self._response = self._inner.handle_request(request)
                self._pieces = _unpacked(self._response)
                return self._response
            case HangUp():
                return self._hang_up()
            case Nap(seconds=seconds):
                import time

                return time.sleep(seconds)

    def _hang_up(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.close()


def _unpacked(response: httpx2.Response) -> Iterator[bytes]:
    """The pieces of a body; what is not packed goes no detour."""
    stream = response.stream
    if isinstance(stream, httpx2.SyncByteStream) and "content-encoding" not in response.headers:
        return filter(None, stream)
    return response.iter_bytes()


def _unpacked_async(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The same for asyncio; a piece may be empty."""
    stream = response.stream
    if isinstance(stream, httpx2.AsyncByteStream) and "content-encoding" not in response.headers:
        return aiter(stream)
    return response.aiter_bytes()


class _Stream(httpx2.SyncByteStream):
    """The body of a response to the program."""

    def __init__(self, performer: _Performer) -> None:
        self._performer = performer
        performer.claim.begin(performer)

    def __del__(self) -> None:
        self._performer.claim.drop(self._performer)

    def __iter__(self) -> Iterator[bytes]:
        try:
            while (given := self._performer.next()) is not None:
                if isinstance(given, Pour):
                    while data := self._performer.pour(given.take):
                        yield data
                elif isinstance(given, Out) and given.data:
                    yield given.data
        except GeneratorExit:  # mostly it was collected
            self._performer.claim.drop(self._performer)
            raise

    def close(self) -> None:
        if dropped.is_collecting():
            self._performer.claim.drop(self._performer)
        else:
            self._performer.leave()


class AsyncTransport(httpx2.AsyncBaseTransport):
    """As ``Transport``, for asyncio; for any number of tasks and event loops."""

    def __init__(
        self,
        log: Log,
        inner: httpx2.AsyncBaseTransport | None = None,
        *,
        endpoint: str = "",
        route: str = "",
        settings: Mapping[str, object] | None = None,
        strict: bool = False,
        durability: Durability = "full",
        on_log_error: OnLogError = "warn",
    ) -> None:
        inner = _ByLoop(_own_connections) if inner is None else inner
        hint = ": use thinkback.Transport" if isinstance(inner, httpx2.BaseTransport) else ""
        _checked(inner, httpx2.AsyncBaseTransport, (AsyncTransport,), hint)
        self._inner = inner
        self._options = _Options(log, endpoint, route, settings, strict, durability, on_log_error)
        self._waiting = Threads(8, "thinkback-log")

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to ``request``."""
        await _record_dropped(self._waiting)
        passage = self._options.passage(request)
        if passage is None:
            return await self._inner.handle_async_request(request)
        performer = _AsyncPerformer(self._inner, passage.run(), len(request.content), self._waiting)
        first = await performer.next()
        if isinstance(first, Untouched):
            return await self._inner.handle_async_request(first.request)
        assert isinstance(first, Begin)
        return httpx2.Response(
            first.status, headers=first.headers, stream=_AsyncStream(performer), extensions=first.extensions
        )

    async def aclose(self) -> None:
        """Let go of the log, and close ``inner``."""
        await _record_dropped(self._waiting)
        await self._waiting.run(self._options.office.journal.close)
        await self._inner.aclose()


class _AsyncPerformer:
    """Performs a flow in a task, for a request of ``size`` bytes; what waits for the log does so on a thread of
    ``waiting``.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, flow: Flow, size: int, waiting: Threads) -> None:
        self._inner, self._flow, self._size, self._waiting = inner, flow, size, waiting
        self._comes = False
        self._response: httpx2.Response | None = None
        self._pieces: AsyncIterator[bytes]
        self._poured: bytes | Exception | None = None
        self.claim = dropped.Claim()
        self.loop = asyncio.get_running_loop()

    async def next(self) -> Given | None:
        """What the program gets next; ``None`` at the end."""
        poured, self._poured = self._poured, None
        go_on: Callable[[Any], Need | Given] = self._flow.throw if isinstance(poured, Exception) else self._flow.send
        try:
            # behind a piece of a response the flow only says what it has found out already
            need = _stepped(go_on, poured) if self._comes else await self._step(go_on, poured)
            while need is not None and not isinstance(need, _GIVEN):
                try:
                    found = await self._perform(need)
                except Exception as error:
                    need = await self._step(self._flow.throw, error)
                else:
                    need = await self._step(self._flow.send, found)
        except Exception:
            self.claim.take(self)
            with suppress(Exception):
                await self._hang_up()
            raise
        except BaseException:
            with suppress(Exception):  # it is told in place of what fails behind it
                await self.leave()
            raise
        if need is None:
            self.claim.take(self)
        return need

    async def pour(self, take: Callable[[bytes], bytes | None]) -> bytes:
        """The next that ``take`` makes of the body; nothing where ``next`` goes on, with what ended it."""
        try:
            async for piece in self._pieces:
                data = take(piece) if piece else piece
                if data:
                    return data
                if data is None:
                    self._poured = piece
                    return b""
            self._comes = False
            await self._hang_up()
            self._poured = b""
        except Exception as error:
            self._comes = False
            self._poured = error
        return b""

    async def leave(self) -> None:
        """The program reads no more: what came is recorded, whatever else happens, and nothing more is given."""
        if self.claim.take(self):
            await to_the_end(self._left())

    def record(self, *, at_exit: bool = False) -> bool:
        """What came of a response that the program let go of, once its event loop cannot do so."""
        if not self.claim.is_taken and not at_exit and not self.loop.is_closed():
            return False
        if self.claim.take(self):
            with suppress(Exception):  # of a flow that another thread is in, as the process ends
                _leave(self._flow, _without_connection)
        return True

    async def _left(self) -> None:
        try:
            await self._hang_up()
        finally:  # in one piece: who ends a loop cancels its tasks
            await to_the_end(self._waiting.run(partial(_leave, self._flow, _without_connection)))

    async def _step(self, go_on: Callable[[Any], Need | Given], given: Any) -> Need | Given | None:
        """What the flow wants next; ``None`` at its end. A piece of a body is quickly looked at; else the loop would
        stand while a large request is worked on.
        """
        if self._size < LARGE or (given and isinstance(given, bytes)):
            return _stepped(go_on, given)
        return await to_the_end(_working.run(partial(copy_context().run, _stepped, go_on, given)))

    async def _perform(self, need: Need) -> Any:
        match need:
            case Pull():
                piece = b""
                async for piece in self._pieces:
                    if piece:
                        break
                self._comes = bool(piece)
                if not piece:
                    await self._hang_up()
                return piece
            case Do(work=work, stores=stores):
                done = self._waiting.run(work)
                return await (to_the_end(done) if stores else done)
            case Post(request=request):
                await self._hang_up()
                self._response = await self._inner.handle_async_request(request)
                self._pieces = _unpacked_async(self._response)
                return self._response
            case HangUp():
                return await self._hang_up()
            case Nap(seconds=seconds):
                return await asyncio.sleep(seconds)

    async def _hang_up(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            await response.aclose()


def _stepped(go_on: Callable[[Any], Need | Given], given: Any) -> Need | Given | None:
    try:
        return go_on(given)
    except StopIteration:  # which no future can hold
        return None


_working = Threads(4, "thinkback-work")
"""Those that look at large requests, and never wait."""


async def _record_dropped(threads: Threads) -> None:
    """Record the responses that were dropped, but for those of other event loops that are not closed."""
    mine, loop = dropped.responses(), asyncio.get_running_loop()
    for response in mine.take():
        if not isinstance(response, _AsyncPerformer) or response.loop.is_closed():
            await to_the_end(threads.run(response.record))
        elif response.loop is loop:
            with suppress(Exception):  # of a connection that nobody wants
                await response.leave()
        else:
            mine.drop(response)


class _AsyncStream(httpx2.AsyncByteStream):
    """The body of a response to the program."""

    def __init__(self, performer: _AsyncPerformer) -> None:
        self._performer = performer
        performer.claim.begin(performer)

    def __del__(self) -> None:
        self._performer.claim.drop(self._performer)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while (given := await self._performer.next()) is not None:
                if isinstance(given, Pour):
                    while data := await self._performer.pour(given.take):
                        yield data
                elif isinstance(given, Out) and given.data:
                    yield given.data
        finally:  # also of a program that forgets to close it
            await self._performer.leave()

    async def aclose(self) -> None:
        await self._performer.leave()


def http_client(
    log: Log,
    *,
    endpoint: str = "",
    route: str = "",
    settings: Mapping[str, object] | None = None,
    strict: bool = False,
    durability: Durability = "full",
    on_log_error: OnLogError = "warn",
    transport: httpx2.BaseTransport | None = None,
    **options: Any,
) -> httpx2.Client:
    """A client for an SDK: ``openai.OpenAI(http_client=thinkback.http_client("chats.db"))``.

    Redirects and limits are as SDKs have them; time-outs are the SDK's, unless ``options`` (of ``httpx2.Client``) say
    otherwise. Proxies of the environment are used. ``transport`` is one of the program's own; the rest is of
    ``Transport``, which says what is raised.
    """
    connections = _below(options, transport)
    made = transport_of(
        log,
        transport,
        endpoint=endpoint,
        route=route,
        settings=settings,
        strict=strict,
        durability=durability,
        on_log_error=on_log_error,
        **connections,
    )
    return httpx2.Client(transport=made, **{"follow_redirects": True, **options})


def async_http_client(
    log: Log,
    *,
    endpoint: str = "",
    route: str = "",
    settings: Mapping[str, object] | None = None,
    strict: bool = False,
    durability: Durability = "full",
    on_log_error: OnLogError = "warn",
    transport: httpx2.AsyncBaseTransport | None = None,
    **options: Any,
) -> httpx2.AsyncClient:
    """The same for asyncio: ``openai.AsyncOpenAI(http_client=thinkback.async_http_client("chats.db"))``."""
    connections = _below(options, transport)
    made = async_transport_of(
        log,
        transport,
        endpoint=endpoint,
        route=route,
        settings=settings,
        strict=strict,
        durability=durability,
        on_log_error=on_log_error,
        **connections,
    )
    return httpx2.AsyncClient(transport=made, **{"follow_redirects": True, **options})


def transport_of(log: Log, transport: httpx2.BaseTransport | None = None, **options: Any) -> Transport:
    """The transport of a client: its ``options`` are those of ``Transport``, and of connections, such as ``proxy``."""
    connections = _below(options, transport)
    own = _ByClient(connections) if connections or getproxies() else None
    return Transport(log, transport if transport is not None else own, **options)


def async_transport_of(log: Log, transport: httpx2.AsyncBaseTransport | None = None, **options: Any) -> AsyncTransport:
    """The same for asyncio."""
    connections = _below(options, transport)
    own = _ByLoop(lambda: _AsyncByClient(connections)) if connections or getproxies() else None
    return AsyncTransport(log, transport if transport is not None else own, **options)


def _below(options: dict[str, Any], transport: object) -> dict[str, Any]:
    """Those of ``options``, which they leave, that are about connections: a client with a transport ignores them."""
    below = {name: options.pop(name) for name in _OF_CONNECTIONS if name in options}
    if below and transport is not None:
        raise TypeError(f"{', '.join(below)}: a client with transport= ignores it; give it to that transport")
    return below


def _context() -> Any:
    return usual_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


def _own_connections() -> httpx2.AsyncBaseTransport:
    return httpx2.AsyncHTTPTransport(verify=_context(), limits=_LIMITS)


class _ByLoop(httpx2.AsyncBaseTransport):
    """Connections for each event loop: those of one are of no use in another, where a program runs several in turn."""

    def __init__(self, make: Callable[[], httpx2.AsyncBaseTransport]) -> None:
        self._make = make
        self._of: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncBaseTransport] = WeakKeyDictionary()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        loop = asyncio.get_running_loop()
        found = self._of.get(loop)
        if found is None:
            found = self._of[loop] = self._make()
        return await found.handle_async_request(request)

    async def aclose(self) -> None:
        """Those of this loop; who ends a loop has let go of its own."""
        found = self._of.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.aclose()


class _ByClient(httpx2.BaseTransport):
    """A client that finds the proxies of the environment, which one with a transport of its own does not."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._client = httpx2.Client(**{"limits": _LIMITS, "verify": _context(), **options})

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._client.send(request, stream=True, follow_redirects=False)

    def close(self) -> None:
        self._client.close()


class _AsyncByClient(httpx2.AsyncBaseTransport):
    """The same for asyncio."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._client = httpx2.AsyncClient(**{"limits": _LIMITS, "verify": _context(), **options})

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._client.send(request, stream=True, follow_redirects=False)

    async def aclose(self) -> None:
        await self._client.aclose()
