"""Upstreams that stall, lie, or say too much, and clients that are slow or leave: told, in bounded memory."""

from __future__ import annotations

import json
import re
import socket
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.drive.servers import Asked, Server, head
from tests.servers.gateway.harness.house import House, Reply, chat, wait_until
from tests.servers.gateway.harness.running import read_until

LIMITS = "[timeouts]\nconnect = 1\nfirst_byte = 1\nidle = 1\ntotal = 20\n"
PIECE = 60_000
MIB = 2**20


class Odd:
    """An upstream that does what the question says; ``sent`` counts the bytes that the gateway took."""

    def __init__(self) -> None:
        self.sent = 0
        self.left = threading.Semaphore(0)
        self._server = Server(self._answer)

    def __enter__(self) -> Odd:
        self._server.__enter__()
        return self

    def __exit__(self, *why: object) -> None:
        self._server.__exit__(*why)

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"{self._server.url}/v1"

    def _answer(self, server: Server, asked: Asked) -> Iterable[bytes]:
        words = json.loads(asked.body)["messages"][-1]["content"].split()
        pieces: Iterator[bytes] = getattr(self, words[0])(server, *map(int, words[1:]))
        try:
            for piece in pieces:
                yield piece
                self.sent += len(piece)
        except GeneratorExit:
            self.left.release()
            raise

    def silent(self, server: Server) -> Iterator[bytes]:
        """Takes the request, and says nothing."""
        server.hold()
        yield b""

    def stalls(self, server: Server) -> Iterator[bytes]:
        """One event, and then nothing."""
        yield head() + chunk(content="One.")
        server.hold()

    def drips(self, server: Server) -> Iterator[bytes]:
        """Comments, again and again."""
        yield head() + chunk(content="One.")
        while not server._stopping.wait(0.1):
            yield b": wait\n\n"

    def chatters(self, server: Server) -> Iterator[bytes]:
        """One event after the other, until nobody takes them."""
        yield head()
        while not server._stopping.wait(0.05):
            yield chunk(content="One.")

    def garbage(self, server: Server) -> Iterator[bytes]:
        """No HTTP."""
        yield b"\x16\x03\x01 this is not the protocol you look for\r\n\r\n"

    def page(self, server: Server) -> Iterator[bytes]:
        """What a proxy in between says."""
        yield head(length=28, kind="text/html") + b"<html><p>Hello.</p></html>\r\n"

    def other(self, server: Server) -> Iterator[bytes]:
        """JSON of another kind."""
        yield head(length=17, kind="application/json") + b'[{"what": "ever"}'

    def error(self, server: Server) -> Iterator[bytes]:
        """A 200 that is none."""
        said = b'{"error": {"message": "overloaded", "type": "server_error", "code": 503}}'
        yield head(length=len(said), kind="application/json") + said

    def late(self, server: Server) -> Iterator[bytes]:
        """An error within the stream."""
        yield head() + chunk(content="One.") + b'data: {"error": {"message": "overloaded", "code": 503}}\n\n'

    def empty(self, server: Server) -> Iterator[bytes]:
        """Nothing, in good order."""
        yield head(length=0)

    def document(self, server: Server, pieces: int) -> Iterator[bytes]:
        """A whole response of so many pieces."""
        choice = {"index": 0, "message": {"role": "assistant", "content": "a" * PIECE * pieces}}
        said = json.dumps({"id": "c", "choices": [{**choice, "finish_reason": "stop"}]}).encode()
        yield head(length=len(said), kind="application/json")
        for at in range(0, len(said), PIECE):
            yield said[at : at + PIECE]

    def line(self, server: Server, pieces: int) -> Iterator[bytes]:
        """A line of so many megabytes."""
        yield head() + b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "'
        for _ in range(pieces):
            yield b"a" * MIB

    def comments(self, server: Server, pieces: int) -> Iterator[bytes]:
        """So many megabytes of comments, packed."""
        packer = zlib.compressobj(wbits=31)
        yield head().replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n")
        for _ in range(pieces):
            yield packer.compress(b": wait\n\n" * (MIB // 8))

    def stream(self, server: Server, pieces: int) -> Iterator[bytes]:
        """So many large events, and the end."""
        yield head()
        for _ in range(pieces):
            yield chunk(content="a" * PIECE)
        yield chunk(finish="stop") + b"data: [DONE]\n\n"


def chunk(finish: str | None = None, **delta: Any) -> bytes:
    """An event of chat completions."""
    said = {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: %s\n\n" % json.dumps(said).encode()


@pytest.fixture(scope="module")
def odd() -> Iterator[Odd]:
    """An upstream."""
    with Odd() as running:
        yield running


@pytest.fixture(scope="module")
def house(odd: Odd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A gateway before it."""
    place = tmp_path_factory.mktemp("odd")
    with full() as port:
        stuck = f'[upstreams.stuck]\nendpoint = "deepseek"\nbase_url = "http://127.0.0.1:{port}/v1"\nkey_env = "UP"\n'
        alias = '[models.stuck]\ntargets = [{ upstream = "stuck", model = "deepseek-v4-pro" }]\n'
        made = House(place, odd.url, str(place / "store"), f"no_auth = true\n{LIMITS}{stuck}{alias}")
        yield made
        assert 0 == made.stop()


@contextmanager
def full() -> Iterator[int]:
    """A port at which nobody accepts, and as many wait as may."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as listening, ExitStack() as waiting:
        for _ in range(4):
            client = waiting.enter_context(closing(socket.socket()))
            client.setblocking(False)
            with suppress(BlockingIOError):
                client.connect(listening.getsockname())
        yield listening.getsockname()[1]


def memory(house: House, name: str) -> int:
    """Bytes: ``VmRSS`` now, ``VmHWM`` at most so far."""
    status = Path(f"/proc/{house.process.pid}/status").read_text()
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def told(reply: Reply) -> str:
    """What a client reads of an error, in whatever way."""
    if reply.status == 200:
        line = next(line for line in reply.body.splitlines() if b'"error"' in line)
        return str(json.loads(line.removeprefix(b"data: "))["error"]["message"])
    return str(json.loads(reply.body)["error"]["message"])


@pytest.mark.parametrize(
    ("word", "statuses", "words"),
    [
        ("silent", {504}, "in time"),
        ("stalls", {200, 504}, "in time"),
        pytest.param("drips", {200, 504}, "in time", marks=pytest.mark.soak),
        ("garbage", {502}, "upstream"),
        ("page", {502}, ""),
        ("other", {502}, ""),
        # a document goes as it came, as it would without us; in a stream nothing else came
        ("error", {200, 500, 502, 503}, "overloaded"),
        ("late", {200, 500, 502, 503}, "overloaded"),
        ("empty", {502}, ""),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_upstream_that_is_at_fault(house: House, word: str, statuses: set[int], words: str, stream: bool) -> None:
    """The client is told in its dialect; the next request is answered."""
    reply = house.ask(chat([word], stream=stream))

    assert reply.status in statuses
    assert words in told(reply)
    assert house.talk(["stream 1"]).is_acknowledged


def test_upstream_that_does_not_accept(house: House) -> None:
    """The phase before all others."""
    reply = house.ask(chat(["silent"], model="stuck"))

    assert (504, True) == (reply.status, "in time" in told(reply))


def test_large_responses_leave_no_memory_behind(house: House) -> None:
    """Of 12 MB each, as documents and as streams: the first ones are gone when the last one comes."""
    assert 200 == house.ask(chat(["document 200"], stream=False)).status
    once = memory(house, "VmHWM")
    for _ in range(2):
        assert house.talk(["stream 200"]).is_acknowledged
        assert 200 == house.ask(chat(["document 200"], stream=False)).status

    assert memory(house, "VmHWM") < once + 50 * MIB


def test_endless_stream_is_ended(house: House) -> None:
    """A response that nobody could keep: its client is told, and the upstream's connection is closed."""
    reply = house.talk(["stream 100000"])

    assert "more than 67108864 bytes" in told(reply)
    assert memory(house, "VmHWM") < 600 * MIB
    assert house.talk(["stream 1"]).is_acknowledged


@pytest.mark.parametrize("words", ["line 1000", "comments 1000"])
def test_a_line_without_end_is_ended_and_leaves_nothing_behind(house: House, words: str) -> None:
    """A megabyte for each of the words' number: its client is told why, and memory is given back."""
    assert house.talk(["stream 1"]).is_acknowledged
    before = memory(house, "VmRSS")
    reply = house.talk([words])

    assert "more than 67108864 bytes" in told(reply)
    assert house.talk(["stream 1"]).is_acknowledged
    assert memory(house, "VmRSS") - before < 128 * MIB


def test_slow_client_slows_its_upstream(house: House, odd: Odd) -> None:
    """One that reads a little and no more: the gateway takes no more than its buffers hold, and others are served."""
    odd.sent, before = 0, memory(house, "VmRSS")
    with closing(open_stream(house, "stream 800")) as client:
        client.recv(1024)
        settled = Settled(lambda: odd.sent)
        wait_until(settled, "the upstream is slowed")
        client.recv(1024)

        assert odd.sent < 24 * MIB
        assert memory(house, "VmRSS") - before < 24 * MIB
        assert house.talk(["late"]).status == 200


def test_client_that_leaves_closes_its_upstream(house: House, odd: Odd) -> None:
    """At once, in the middle of a stream."""
    odd.left = threading.Semaphore(0)
    with closing(open_stream(house, "chatters")) as client:
        read_until(client, b"One.")
    assert odd.left.acquire(timeout=20)
    assert house.talk(["stream 1"]).is_acknowledged


class Settled:
    """Whether a number has stayed the same for thirty looks."""

    def __init__(self, number: Callable[[], int]) -> None:
        self._number, self._last, self._same = number, -1, 0

    def __call__(self) -> bool:
        now = self._number()
        self._same = self._same + 1 if now == self._last and now else 0
        self._last = now
        return self._same >= 30


def open_stream(house: House, words: str) -> socket.socket:
    """A connection on which that was asked, with small buffers."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    client.settimeout(30)
    client.connect(("127.0.0.1", house.port))
    body = json.dumps(chat([words])).encode()
    lines = ("POST /v1/chat/completions HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    client.sendall("\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body)
    return client
