"""Responses that are large or hostile: the loop goes on meanwhile, each byte is looked at once, and there is an end."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Iterator

import pytest

from tests.servers.gateway.harness.engines import GRANT, PLACES, SSE, Kept, Plays, chunks, engine, question
from thinkback.proxy import relay
from thinkback.proxy.exchange import LARGEST
from thinkback.proxy.relay import Rest
from thinkback.servers.gateway.engine.apart import LARGE, Apart
from thinkback.servers.gateway.engine.driver import respond
from thinkback.servers.gateway.incoming import Incoming

MIB = 2**20
LINE = b'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n'


@pytest.mark.parametrize("piece", [b": wait\n\n", b"\n", b"\r", b"data:{}\n\n"])
def test_the_loop_is_left_to_others_in_every_mebibyte(piece: bytes) -> None:
    """Comments and empty lines show nothing, and what is there at once is not waited for: nobody else would run."""
    others, seen, kept = 0, [], Kept()

    def pieces() -> Iterator[bytes]:
        for _ in range(4):
            seen.append(others)
            yield piece * (MIB // len(piece))
        seen.append(others)
        yield chunks("", "Hm.")

    made = engine(Plays(lambda body: (200, SSE, pieces())), PLACES)  # type: ignore[arg-type, return-value]

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    async def run() -> None:
        task = asyncio.create_task(other())
        body = json.dumps(question(stream=True)).encode()
        await respond(made, Incoming.of("openai-chat", body, {}, GRANT, "r1"), kept)
        task.cancel()
        await made.close()

    asyncio.run(run())

    assert 200 == kept.status
    assert all(after > before for before, after in itertools.pairwise(seen))


def test_a_large_event_is_read_on_a_thread() -> None:
    """What one step takes long for is no step of the loop."""
    apart, own = Apart(), threading.get_ident()

    async def run() -> list[bool]:
        return [own == await apart(size, threading.get_ident) for size in (LARGE - 1, LARGE)]

    assert [True, False] == asyncio.run(run())
    apart.close()


def test_a_long_line_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pieces an event comes in, each byte is searched for its end once, but for the last three."""
    searched: list[int] = []
    end = relay._end

    def counting(data: bytes) -> int:
        searched.append(len(data))
        return end(data)

    monkeypatch.setattr(relay, "_end", counting)
    event, piece = LINE % (b"a" * MIB), 1000
    rest = Rest()
    found = [rest.take(event[at : at + piece]) for at in range(0, len(event), piece)]

    assert [event] == [whole for whole in found if whole]
    assert sum(searched) <= len(event) + 3 * len(searched)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 11])
@pytest.mark.parametrize("blank", [b"\n\n", b"\r\n\r\n"])
def test_events_are_whole_at_any_cut(size: int, blank: bytes) -> None:
    """Pieces of any size give the same events, and what is left behind them."""
    stream = blank.join([b"data: 1", b"data: 2", b"event: a\ndata: 3", b"data: 4"])
    rest = Rest()
    found = b"".join(rest.take(stream[at : at + size]) for at in range(0, len(stream), size))

    assert (stream[: -len(b"data: 4")], b"data: 4") == (found, rest.left)


@pytest.mark.parametrize("line", [b"a" * MIB, b": wait\n\n" * (MIB // 8)])
@pytest.mark.parametrize("stream", [True, False])
def test_a_response_without_end_is_ended_and_its_client_told_why(line: bytes, stream: bool) -> None:
    """One line of it may be as long as a whole response: an image comes in one."""
    made = engine(Plays(lambda body: (200, SSE, [line] * (LARGEST // len(line) + 1))), PLACES)
    kept = Kept()

    async def run() -> None:
        body = json.dumps(question(stream=stream)).encode()
        await respond(made, Incoming.of("openai-chat", body, {}, GRANT, "r1"), kept)
        await made.close()

    asyncio.run(run())

    assert f"has more than {LARGEST} bytes" in kept.body.decode()
