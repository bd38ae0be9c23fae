"""All stand-ins behind one address, a provider a folder; and what each was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from tests.world.anthropic import Anthropic
from tests.world.bedrock import Bedrock
from tests.world.chat import Chat
from tests.world.gemini import Gemini, Interactions
from tests.world.mind import Answer, Ask, Json, Memory, Mind, Minted, Mood, Refused, dumps, serials, size_of
from tests.world.others import Cohere, Mistral, Ollama
from tests.world.responses import Responses


class Provider(Protocol):
    """A provider that speaks one dialect."""

    dialect: str
    streams_as: str

    def ask(self, path: str, body: Json) -> Ask:
        """The request as the model sees it."""

    def prefix(self, body: Json) -> Any:
        """What an answer's reasoning is bound to, if it is."""

    def check(self, body: Json, ask: Ask, account: str, memory: Memory) -> list[Json] | None:
        """Raise what the provider refuses; what it leaves out instead, if it reports that."""

    def whole(self, answer: Answer) -> Json:
        """A response in one piece."""

    def events(self, answer: Answer) -> list[bytes]:
        """A response as a stream."""


class Exchange(NamedTuple):
    """One request, and what became of it: the ``serial`` of its answer (0: there is none), and its true size."""

    provider: str
    path: str
    headers: Mapping[str, str]
    body: Json
    status: int
    serial: int
    tokens: int

    @property
    def carried(self) -> list[int]:
        """Whose reasoning the request carries."""
        return serials(self.body)


class Place(NamedTuple):
    """Where thinkback finds a provider: the endpoint that it is, a model, the path of its folder."""

    provider: str
    endpoint: str
    model: str
    path: str = "/v1"


PLACES: Mapping[str, Place] = {
    place.provider: place
    for place in (
        Place("kimi", "kimi", "kimi-k2.6"),
        Place("deepseek", "deepseek", "deepseek-v4-pro", ""),
        Place("openai-chat", "openai-chat", "gpt-5"),
        Place("vllm", "vllm", "qwen3-32b"),
        Place("openai", "openai", "gpt-5.4"),
        Place("anthropic", "anthropic", "claude-opus-5-5"),
        Place("gemini", "gemini", "gemini-3.1-pro-preview", "/v1beta"),
        Place("interactions", "gemini-interactions", "gemini-3.5-flash", "/v1beta"),
        Place("bedrock", "bedrock", "us.anthropic.claude-sonnet-4-6-v1:0", ""),
        Place("mistral", "mistral", "mistral-small-2603"),
        Place("ollama", "ollama-native", "qwen3:4b", "/api"),
        Place("cohere", "cohere", "command-a-reasoning-08-2025", "/v2"),
    )
}


def _providers() -> dict[str, Provider]:
    flavours = {
        name: Chat(flavour)
        for name, flavour in (
            ("kimi", "kimi"),
            ("deepseek", "deepseek"),
            ("openai-chat", "openai"),
            ("vllm", "vllm"),
        )
    }
    return {
        **flavours,
        "openai": Responses(),
        "anthropic": Anthropic(),
        "gemini": Gemini(),
        "interactions": Interactions(),
        "bedrock": Bedrock(),
        "mistral": Mistral(),
        "ollama": Ollama(),
        "cohere": Cohere(),
    }


@dataclass
class World:
    """The providers, while they listen. ``mood`` may be changed between requests; ``gate`` holds answers back, and
    ``arrived`` is released by each request.
    """

    mood: Mood = field(default_factory=Mood)
    exchanges: list[Exchange] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        self.providers = _providers()
        self.memories = {name: Memory() for name in self.providers}
        self.gate.set()
        self._mind = Mind()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.request_queue_size = 128
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> World:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def url(self, provider: str) -> str:
        """The base URL of a provider."""
        return f"{self.origin}/{provider}{PLACES[provider].path}"

    def of(self, provider: str) -> list[Exchange]:
        """What a provider was asked, in order."""
        return [each for each in self.exchanges if each.provider == provider]

    def respond(self, path: str, headers: Mapping[str, str], body: Json) -> tuple[Provider, Answer]:
        """Check a request and answer it; each is noted, refused ones too."""
        name = path.split("/")[1]
        provider, memory = self.providers[name], self.memories[name]
        account = headers.get("x-api-key") or headers.get("x-goog-api-key") or headers.get("authorization") or ""
        status, serial = 200, 0
        try:
            ask = provider.ask(path, body)
            with self._lock:
                report = provider.check(body, ask, account, memory)
                if self.mood.status != 200:
                    raise Refused(
                        {"error": {"message": "The server had an error.", "type": "server_error"}}, self.mood.status
                    )
                answer = self._mind.answer(ask, body, memory, self.mood)
                serial, answer.report = answer.serial, report or []
                thinking = self.mood.thinking or len(answer.thought) // 4
                memory.opaque[answer.opaque] = Minted(serial, account, ask.model, provider.prefix(body), thinking)
                if isinstance(provider, Responses):
                    provider.remember(answer, memory)
            return provider, answer
        except Refused as refused:
            status = refused.status
            raise
        finally:
            size = size_of(body, memory)
            self.exchanges.append(Exchange(name, path, headers, body, status, serial, size))


def _handler(world: World) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            """Answer whole or as a stream, as far as the mood goes."""
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            path = unquote(urlsplit(self.path).path)
            world.arrived.release()
            world.gate.wait(20)
            try:
                provider, answer = world.respond(path, {n.lower(): v for n, v in self.headers.items()}, json.loads(raw))
            except Refused as refused:
                self._send(refused.status, dumps(refused.body))
                return
            if answer.ask.streams:
                self._stream(provider, answer)
            else:
                self._send(200, dumps(provider.whole(answer)))

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, provider: Provider, answer: Answer) -> None:
            self.send_response(200)
            self.send_header("content-type", provider.streams_as)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            events = provider.events(answer)
            for event in events[: answer.mood.breaks_after]:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            if answer.mood.breaks_after is None or answer.mood.breaks_after >= len(events):
                self.wfile.write(b"0\r\n\r\n")
            else:
                self.close_connection = True

        def handle(self) -> None:
            """A client may leave at any time."""
            with suppress(ConnectionError):
                super().handle()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed."""

    return Handler
