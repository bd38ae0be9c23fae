"""``ThinkbackMiddleware``: an agent of LangChain whose model calls go through our transport.

The messages of an agent are what its chat model made of responses, without what that has no place for. So nothing can
be given back among messages: a call is made by a copy of the model whose SDK stands on the transport.
Promises: the model that the program gave is never changed, and an HTTP client of its own goes on below the transport.
Must not: touch messages, but for what it says of a call in the answer's ``response_metadata``.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx2
from langchain.agents.middleware import AgentMiddleware

from thinkback.adapters.open_logs import Log
from thinkback.adapters.transport import telling
from thinkback.adapters.transport.transports import async_http_client, http_client
from thinkback.errors import NotFoundError

T = TypeVar("T")
METADATA = "thinkback"


class ThinkbackMiddleware(AgentMiddleware):  # type: ignore[misc]
    """Middleware of ``create_agent``: gives back what the chat model forgot, repairs known refusals, and records.

    ``log`` and ``options`` are those of ``thinkback.http_client``. The session of a conversation has the name of the
    agent's ``thread_id``, if it has one. ``response_metadata["thinkback"]`` of each answer says what became of the
    call. For models on the SDKs of OpenAI and Anthropic and on google-genai; any other is a ``TypeError``.
    """

    def __init__(self, log: Log, **options: Any) -> None:
        super().__init__()
        self.tools: list[Any] = []
        self._log, self._options = log, options
        self._lock = threading.Lock()
        self._clients: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        # Clients of google-genai on the transport, by those that they stand for and by event loop.
        self.made: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        # Wrong options, and a log that is closed, are said here.
        self._sync: httpx2.Client = http_client(log, **options)
        self._async: httpx2.AsyncClient = async_http_client(log, **options)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Make the call through the transport."""
        with _conversation(request):
            return _explained(handler(request.override(model=self.through(request.model))))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same for asyncio."""
        with _conversation(request):
            return _explained(await handler(request.override(model=self.through(request.model))))

    def through(self, model: Any) -> Any:
        """A copy of a chat model that goes through the transport. Raises ``TypeError`` for one that cannot."""
        for part, inside in _KINDS:
            if part in getattr(type(model), "model_fields", {}):
                return inside(model, self)
        raise TypeError(
            f"{type(model).__name__} has no HTTP client that can be replaced: use a chat model on the SDK of OpenAI or "
            "Anthropic or on google-genai, or point it at `thinkback gateway`"
        )

    def client(self, below: Any = None, proxy: tuple[Any, str | None] = (None, None)) -> httpx2.Client:
        """The client of the transport: one for all, but for whoever sends by ``below`` or by a proxy of its own."""
        if below is not None:
            return self._kept(below, http_client, transport=_Below(below))
        owner, address = proxy
        if address:
            return self._kept(owner, http_client, proxy=address)
        return self._sync

    def async_client(self, below: Any = None, proxy: tuple[Any, str | None] = (None, None)) -> httpx2.AsyncClient:
        """The same for asyncio: one for each event loop, which its connections belong to."""
        if below is not None:
            return self._kept(below, async_http_client, transport=_AsyncBelow(below))
        owner, address = proxy
        if address:
            return self._kept(owner, async_http_client, proxy=address)
        loop = self.loop()
        # A call without a loop needs none, but the SDK wants to be given one.
        return self._async if loop is self else self._kept(loop, async_http_client)

    def apart(self) -> dict[str, Any]:
        """Both for google-genai, which closes what it is given."""
        made = http_client(self._log, **self._options), async_http_client(self._log, **self._options)
        return {"httpx_client": made[0], "httpx_async_client": made[1]}

    def loop(self) -> Any:
        """The event loop of this call; without one, this object."""
        try:
            return asyncio.get_running_loop()
        except RuntimeError:
            return self

    def _kept(self, owner: Any, make: Callable[..., T], **more: Any) -> T:
        """A client that is made once for ``owner``, and goes with it."""
        with self._lock:
            found: T | None = self._clients.get(owner)
            if found is None:
                found = self._clients[owner] = make(self._log, **self._options, **more)
        return found


# -- models ------------------------------------------------------------------------------------------------------------


def _on_openai(model: Any, by: ThinkbackMiddleware) -> Any:
    """``ChatOpenAI`` and what is made of it."""
    changed: dict[str, Any] = {}
    if model.root_client is not None:
        changed["root_client"] = model.root_client.with_options(http_client=by.client(model.http_client))
        changed["client"] = changed["root_client"].chat.completions
    if model.root_async_client is not None:
        own = by.async_client(model.http_async_client)
        changed["root_async_client"] = model.root_async_client.with_options(http_client=own)
        changed["async_client"] = changed["root_async_client"].chat.completions
    return model.model_copy(update=changed)


def _on_anthropic(model: Any, by: ThinkbackMiddleware) -> Any:
    """``ChatAnthropic``, which makes its clients when they are first needed."""
    own, own_async, proxy = model._client, model._async_client, model.anthropic_proxy
    copied = model.model_copy()
    vars(copied)["_client"] = own.with_options(http_client=by.client(proxy=(own, proxy)))
    vars(copied)["_async_client"] = own_async.with_options(http_client=by.async_client(proxy=(own_async, proxy)))
    return copied


def _on_google(model: Any, by: ThinkbackMiddleware) -> Any:
    """``ChatGoogleGenerativeAI``: it takes no HTTP client, but its SDK does."""
    if model.client_args and "transport" in model.client_args:
        raise TypeError(
            f"{type(model).__name__} has a transport of its own: the calls of one on google-genai can't go through two"
        )
    by_loop = by.made.setdefault(model.client, weakref.WeakKeyDictionary())
    made = by_loop.get(by.loop())
    if made is None:
        api = model.client._api_client
        options = api._http_options.model_copy(update={**by.apart(), "client_args": None, "async_client_args": None})
        made = by_loop[by.loop()] = type(model.client)(
            vertexai=api.vertexai,
            api_key=api.api_key,
            credentials=api._credentials,
            project=api.project,
            location=api.location,
            http_options=options,
        )
    return model.model_copy(update={"client": made})


_KINDS: tuple[tuple[str, Callable[[Any, ThinkbackMiddleware], Any]], ...] = (
    ("root_client", _on_openai),
    ("client_args", _on_google),
    ("anthropic_proxy", _on_anthropic),
)
"""By which of its fields each kind of model is known."""


# -- a call ------------------------------------------------------------------------------------------------------------


@contextmanager
def _conversation(request: Any) -> Iterator[None]:
    """What is said of requests inside is of this call; conversations that begin have the name of the agent's thread."""
    info = getattr(request.runtime, "execution_info", None)
    outer = telling.listening()
    with telling.inside(telling.named() or str(getattr(info, "thread_id", None) or "")):
        inner = telling.listening()
        try:
            yield
        finally:
            if inner.why is not None:
                telling.told(outer, inner.why)


def _explained(answer: Any) -> Any:
    """``answer`` with what became of the call, on its message."""
    try:
        why = telling.why()
    except NotFoundError:  # the handler did not ask: another middleware answered
        return answer
    response = getattr(answer, "model_response", answer)
    for message in getattr(response, "result", [response]):
        if message.type == "ai":
            said = {"session": why.session, "response": why.response, "why": str(why)}
            message.response_metadata = {**message.response_metadata, METADATA: said}
    return answer


class _Below(httpx2.BaseTransport):
    """A client of the program's own, as what the transport sends by."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = weakref.ref(client)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return _there(self._client).send(request, stream=True, follow_redirects=False)  # type: ignore[no-any-return]


class _AsyncBelow(httpx2.AsyncBaseTransport):
    """The same for asyncio."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = weakref.ref(client)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await _there(self._client).send(request, stream=True, follow_redirects=False)  # type: ignore[no-any-return]


def _there(held: weakref.ref[Any]) -> Any:
    """The client: whoever calls has the model, and the model has it."""
    client = held()
    assert client is not None
    return client
