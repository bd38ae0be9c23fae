"""Faults of the log under a transport, and how programs leave: what each call and each record then is."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

import thinkback
from tests.adapters.transport.provider import HEADERS, SSE, URL, WHOLE, Body, Provider, question, says, streams
from tests.proxy.playbook import ANSWER, chunk
from thinkback import stores
from thinkback.adapters.transport import journal as journals
from thinkback.adapters.transport import transports
from thinkback.adapters.transport.journal import Journal
from thinkback.errors import IdTakenError, NotFoundError, StoreError
from thinkback.proxy.events import Unavailable

REFUSED = b'{"error": {"message": "later"}}'


class Watched(Body):
    """A body that says whether it was closed."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True

    async def aclose(self) -> None:
        self.is_closed = True


def ask(client: httpx2.Client, *said: str, url: str = URL) -> bytes:
    """What the program reads."""
    return client.post(url, content=question(*said), headers=HEADERS).read()


def kinds(log: Path) -> list[str]:
    """The kinds of all commits."""
    with thinkback.open(log) as store:
        return [commit.kind for info in store.sessions() for commit in store.commits(info.id)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where it is recorded."""
    return tmp_path / "chats.db"


def test_a_journal_that_is_dropped_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    """Whatever address in memory the next one gets."""
    with thinkback.open(tmp_path / "a.db") as first, thinkback.open(tmp_path / "b.db") as second:
        before = journals._logs.all()
        for store in [first, second] * 20:
            journal = Journal(store)
            assert store.log is journal._log().store
            del journal
            gc.collect()
        assert before == journals._logs.all()


@pytest.mark.parametrize("key", ["ollama", "lm-studio"])
def test_a_key_of_the_program_that_is_a_word_stays_in_its_responses(log: Path, key: str) -> None:
    """Streams and documents, byte for byte."""
    stream = (chunk(content=f"Run {key}."), *ANSWER[1:])
    whole = WHOLE.replace(b"42.", key.encode())
    headers = {**HEADERS, "authorization": f"Bearer {key}"}
    provider = Provider(streams(*stream), says(200, whole))
    with thinkback.http_client(log, transport=provider) as client:
        assert b"".join(stream) == client.post(URL, content=question(), headers=headers).read()
        assert whole == client.post(URL, content=question("Other?", stream=False), headers=headers).read()


def _delete(log: Path) -> None:
    for file in log.parent.glob(f"{log.name}*"):
        file.unlink()


def _replace(log: Path) -> None:
    _delete(log)
    log.write_bytes(b"")


@pytest.mark.parametrize("lose", [_delete, _replace])
def test_a_log_that_is_lost_while_it_is_open_is_warned_of(log: Path, lose: Callable[[Path], None]) -> None:
    """Once: what is written to a file without a name is gone with the process, and nobody says that it is recorded."""
    with thinkback.http_client(log, transport=Provider(streams())) as client:
        ask(client)
        assert thinkback.why().recorded
        lose(log)
        with pytest.warns(RuntimeWarning, match="was deleted or replaced while it was open"):
            assert b"".join(ANSWER) == ask(client, "Else?")
        assert not thinkback.why().recorded
        assert b"".join(ANSWER) == ask(client, "And?")
    with thinkback.http_client(log, transport=Provider(streams()), on_log_error="raise") as client:
        ask(client)
        lose(log)
        with pytest.raises(StoreError, match="was deleted or replaced"):
            ask(client, "Else?")


def test_a_program_may_go_to_another_directory(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is of the directory in which the transport was made."""
    monkeypatch.chdir(log.parent)
    with thinkback.http_client(log.name, transport=Provider(streams())) as client:
        ask(client)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        ask(client, "Else?")
        assert thinkback.why().recorded


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("error", [NotFoundError("no such session"), IdTakenError("the id is taken")])
def test_a_step_that_can_never_be_stored_fails_no_other_call(
    log: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was held, whose session is deleted meanwhile, and one of the call itself."""

    def refuse(*_: object) -> None:
        raise error

    with thinkback.http_client(log, transport=Provider(says(503, REFUSED), streams())) as client:
        ask(client)
        journal: Journal = client._transport._options.office.journal  # type: ignore[attr-defined]
        store = journal._log().store
        monkeypatch.setattr(journals, "AGAIN", 0.0)
        with monkeypatch.context() as patched:
            patched.setattr(type(store.recognition), "record", refuse)
            assert b"".join(ANSWER) == ask(client, "Other?")
            assert not journal._log().held
            assert not journal.rests
        assert b"".join(ANSWER) == ask(client, "Third?")
        assert thinkback.why().recorded


def test_a_conversation_whose_log_fails_is_an_error_where_that_is_wanted(log: Path) -> None:
    """``on_log_error="raise"``: the request does not go."""
    log.write_bytes(b"this is no database, and it is long enough to be sure of that" * 20)
    provider = Provider(streams())
    with (
        thinkback.http_client(log, transport=provider, on_log_error="raise") as client,
        thinkback.conversation("named"),
        pytest.raises(StoreError),
    ):
        ask(client)
    assert [] == provider.asked


def test_an_attempt_at_another_host_is_another_attempt(log: Path) -> None:
    """Both are recorded, though their paths and bodies are the same."""
    provider = Provider(says(503, REFUSED), streams())
    with thinkback.http_client(log, transport=provider, endpoint="moonshot") as client:
        ask(client, url="https://one.invalid/v1/chat/completions")
        ask(client, url="https://two.invalid/v1/chat/completions")
    assert 2 == kinds(log).count("request")


def drop(client: httpx2.Client, *said: str, begun: bool) -> None:
    """Let go of a stream that only the collector finds."""
    request = client.build_request("POST", URL, content=question(*said), headers=HEADERS)
    response: Any = client.send(request, stream=True)
    response.pieces, response.itself = response.iter_bytes(), response
    if begun:
        next(response.pieces)


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("by", ["why", "request", "close"])
def test_a_stream_that_is_dropped_unclosed_is_recorded(log: Path, begun: bool, by: str) -> None:
    """Also one that was never begun. Nothing is done where it is collected, which may be inside any lock; the next
    thing that the program does here records it.
    """
    body = Watched((ANSWER[0], *ANSWER))
    provider = Provider(lambda: httpx2.Response(200, headers=SSE, stream=body), streams())
    with thinkback.http_client(log, transport=provider) as client:
        drop(client, begun=begun)
        journal: Journal = client._transport._options.office.journal  # type: ignore[attr-defined]
        opened = journal._log()

        def collect() -> None:
            with journals._logs._mine.lock, opened.lock:
                gc.collect()

        collector = threading.Thread(target=collect, daemon=True)
        collector.start()
        collector.join(10)
        assert (False, False) == (collector.is_alive(), body.is_closed)
        if by == "why":
            assert thinkback.why().recorded
        elif by == "request":
            ask(client, "Other?")
        assert body.is_closed is (by != "close")
    assert body.is_closed
    assert "turn_ended" in kinds(log)


def test_what_is_said_of_a_dropped_stream_is_not_said_of_a_later_request(log: Path) -> None:
    """It is recorded when the program asks why."""
    with thinkback.http_client(log, transport=Provider(streams())) as client:
        response = client.send(client.build_request("POST", URL, content=question(), headers=HEADERS), stream=True)
        ask(client, "Other?")
        said = thinkback.why().response
        del response
        gc.collect()
        assert said == thinkback.why().response != ""
    assert 2 == kinds(log).count("turn_ended")


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("by", ["close", "why"])
def test_a_stream_that_a_task_drops_unclosed_is_recorded(log: Path, begun: bool, by: str) -> None:
    """As without asyncio, by its own event loop; once that is closed, by whoever comes."""
    body = Watched((ANSWER[0], None))
    provider = Provider(lambda: httpx2.Response(200, headers=SSE, stream=body))
    client = thinkback.async_http_client(log, transport=provider)

    async def run() -> None:
        response = await client.send(
            client.build_request("POST", URL, content=question(), headers=HEADERS), stream=True
        )
        if begun:
            await anext(response.aiter_bytes())
        del response
        gc.collect()
        if by == "close":
            await client.aclose()
            assert body.is_closed or begun  # asyncio closes a generator in its own time

    asyncio.run(run())
    assert thinkback.why().recorded
    asyncio.run(client.aclose())
    assert "turn_ended" in kinds(log)


def test_streams_that_a_program_leaves_open_are_recorded_at_its_end(tmp_path: Path) -> None:
    """One that was dropped and one that is held, without asyncio and in a loop that is closed."""
    code = """
import asyncio, sys
from tests.adapters.transport.test_trouble import *
held = []
body = streams(ANSWER[0], *ANSWER)
client = thinkback.http_client(sys.argv[1], transport=Provider(body))
drop(client, "First?", begun=False)
held.append(client.send(client.build_request("POST", URL, content=question("Second?"), headers=HEADERS), stream=True))
next(held[0].iter_bytes(1))
other = thinkback.async_http_client(sys.argv[2], transport=Provider(body))
async def run():
    request = other.build_request("POST", URL, content=question(), headers=HEADERS)
    held.append(await other.send(request, stream=True))
asyncio.run(run())
"""
    logs = tmp_path / "a.db", tmp_path / "b.db"
    done = subprocess.run([sys.executable, "-c", code, *logs], capture_output=True, text=True, timeout=120, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    assert [2, 1] == [kinds(log).count("turn_ended") for log in logs]


def test_a_response_whose_flow_fails_is_hung_up(log: Path) -> None:
    """The network's own error, and nobody closes the response."""
    body = Watched((ANSWER[0], httpx2.ReadError("broken")))
    provider = Provider(lambda: httpx2.Response(200, headers=SSE, stream=body))
    with thinkback.http_client(log, transport=provider) as client, pytest.raises(httpx2.ReadError):
        ask(client)
    assert body.is_closed


def cancelled_in(log: Path, method: str, work: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Provider:
    """A request that is cancelled while the log does ``method``, which is ``work``."""
    provider = Provider(streams())

    async def run() -> None:
        async with thinkback.async_http_client(log, transport=provider) as client:
            loop, begun = asyncio.get_running_loop(), asyncio.Event()

            def replaced(*_: object) -> Any:
                loop.call_soon_threadsafe(begun.set)
                return work()

            with monkeypatch.context() as patched:
                patched.setattr(Journal, method, replaced)
                task = asyncio.create_task(client.post(URL, content=question(), headers=HEADERS))
                await begun.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.wait_for(task, 5)

    asyncio.run(run())
    return provider


def test_a_cancellation_is_not_lost_where_the_log_fails(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a step is stored, which then fails."""

    def fail() -> None:
        import time

        time.sleep(0.2)
        raise StoreError("no room")

    cancelled_in(log, "record", fail, monkeypatch)


def test_a_look_up_is_not_waited_for_by_who_is_cancelled(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes nothing; only what is stored is."""
    import time

    go_on = threading.Event()
    threading.Timer(3, go_on.set).start()
    before = time.monotonic()

    def wait() -> None:
        if not go_on.is_set():
            go_on.wait()
        raise Unavailable

    provider = Provider(streams())

    async def run() -> float:
        async with thinkback.async_http_client(log, transport=provider) as client:
            loop, begun = asyncio.get_running_loop(), asyncio.Event()

            def replaced(*_: object) -> None:
                loop.call_soon_threadsafe(begun.set)
                wait()

            monkeypatch.setattr(Journal, "answer", replaced)
            task = asyncio.create_task(client.post(URL, content=question("Why?", "42.", "And?"), headers=HEADERS))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            took = time.monotonic() - before
            go_on.set()
            return took

    assert asyncio.run(run()) < 2
    assert [] == provider.asked


def test_the_programs_own_threads_are_left_alone(log: Path) -> None:
    """All those of its loop wait for something of its own."""

    async def run() -> bytes:
        loop, go_on = asyncio.get_running_loop(), threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        waiting = loop.run_in_executor(None, go_on.wait, 10)
        try:
            async with thinkback.async_http_client(log, transport=Provider(streams())) as client:
                response = await asyncio.wait_for(client.post(URL, content=question(), headers=HEADERS), 5)
                return response.read()
        finally:
            go_on.set()
            await waiting

    assert b"".join(ANSWER) == asyncio.run(run())


def test_streams_go_on_while_another_log_is_waited_for(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By as many requests as there are threads for it; those of large requests, and new ones, on other logs."""
    slow, go_on, answer = str(tmp_path / "slow.db"), threading.Event(), Journal.answer
    monkeypatch.setattr(transports, "LARGE", 0)

    async def run() -> bytes:
        loop, waits = asyncio.get_running_loop(), asyncio.Semaphore(0)

        def answered(journal: Journal, question: Any) -> Any:
            if journal.shown == slow:
                loop.call_soon_threadsafe(waits.release)
                go_on.wait(10)
            return answer(journal, question)

        monkeypatch.setattr(Journal, "answer", answered)
        async with (
            thinkback.async_http_client(slow, transport=Provider(streams())) as other,
            thinkback.async_http_client(log, transport=Provider(streams())) as client,
            client.stream("POST", URL, content=question(), headers=HEADERS) as response,
        ):
            pieces = response.aiter_bytes()
            read = await anext(pieces)

            async def rest() -> bytes:
                later = await client.post(URL, content=question("Other?", "42.", "And?"), headers=HEADERS)
                return b"".join([read, *[piece async for piece in pieces], later.read()])

            said = [question(f"Why {number}?", "42.", "And?") for number in range(8)]
            tasks = [asyncio.create_task(other.post(URL, content=each, headers=HEADERS)) for each in said]
            try:
                for _ in tasks:
                    await waits.acquire()
                return await asyncio.wait_for(rest(), 5)
            finally:
                go_on.set()
                await asyncio.gather(*tasks)

    assert b"".join(ANSWER) * 2 == asyncio.run(run())


def in_child(work: Callable[[], object]) -> str:
    """What a forked process says of ``work``."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            said = "used"
        except BaseException as error:
            said = str(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as found:
        return found.read()


def test_a_store_that_the_parent_opened_is_not_used_in_a_forked_process(log: Path) -> None:
    """Said as PostgreSQL says it, also where the child is the first to use it; the parent goes on."""
    with thinkback.open(log) as store:
        journal = Journal(store, on_error="raise")
        for work in (partial(journal._tried, journal._log, None), partial(Journal, store)):
            assert "opened before this process was forked" in in_child(work)
        assert store.log is journal._log().store
        journal.close()


def test_a_forked_process_leaves_the_responses_of_its_parent_alone(log: Path) -> None:
    """One that it closes is neither recorded nor hung up there; the parent reads on."""
    body = Watched(ANSWER)
    provider = Provider(lambda: httpx2.Response(200, headers=SSE, stream=body))
    with (
        thinkback.http_client(log, transport=provider) as client,
        client.stream("POST", URL, content=question(), headers=HEADERS) as response,
    ):
        pieces = response.iter_bytes()
        read = next(pieces)

        def close() -> None:
            response.close()
            assert not body.is_closed, "it was hung up"

        assert "used" == in_child(close)
        assert b"".join(ANSWER) == read + b"".join(pieces)
    assert (1, 1, 1) == tuple(kinds(log).count(each) for each in ("response", "assistant", "turn_ended"))


def test_a_log_that_is_slow_to_open_delays_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each path is opened for itself, and by one thread; a transport is one user of it, whatever threads it has."""
    slow, go_on, opened = str(tmp_path / "slow.db"), threading.Event(), []

    def open_store(path: str, durability: Any) -> Any:
        opened.append(path)
        if path == slow:
            go_on.wait(10)
        return stores.open_store(path, durability)

    monkeypatch.setattr(journals, "open_store", open_store)
    shared = Journal(slow)
    logs = [Journal(tmp_path / "other.db"), shared, shared, Journal(slow)]
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(journal._log) for journal in logs]
        try:
            assert waiting[0].result(5).place == str(tmp_path / "other.db")
        finally:
            go_on.set()
        (there,) = {each.result() for each in waiting[1:]}
    assert [slow] == [path for path in opened if path == slow]
    for journal in logs:
        journal.close()
    with pytest.raises(StoreError, match="closed"):
        there.store.count()
