"""What was erased is gone from everything a gateway keeps, while it runs, and is not given back."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

import thinkback
from tests.old_logs import sets
from tests.old_logs.clients import Client
from tests.old_logs.providers import PLACES, Providers, behind
from tests.servers.gateway.harness.house import House, wait_until
from tests.stores.postgres_server import Server
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.session.store import SessionStore
from thinkback.stores.gateway_state.records import short
from thinkback.stores.rows import unpack
from thinkback_referee import HttpError, Step
from thinkback_referee.transport import Incoming, Reply

SPOOL, USAGE = "spool", "usage.jsonl"
XENIA, YORICK = "xenia@example.org", "yorick-" + "y" * 80


class Meanwhile(Providers):
    """Providers in whose next request something is done."""

    meanwhile: Callable[[], None] | None = None

    def respond(self, incoming: Incoming) -> Reply:
        work, self.meanwhile = self.meanwhile, None
        if work is not None:
            work()
        return super().respond(incoming)


@pytest.fixture(scope="module")
def providers() -> Iterator[Meanwhile]:
    """The providers of all."""
    with Meanwhile() as running:
        yield running


@pytest.fixture(params=sets.DATABASES)
def house(request: pytest.FixtureRequest, providers: Providers, tmp_path: Path) -> Iterator[House]:
    """A gateway on each database."""
    store = str(tmp_path / "store")
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        store = server.make_database(f"erased {secrets.token_hex(4)}")
    with (
        behind(providers),
        sets.running(sets.gateway(tmp_path / "house", providers, store, tmp_path / SPOOL)) as made,
    ):
        yield made


def log_of(house: House) -> str:
    """Where its log is."""
    return house.store if "://" in house.store else str(Path(house.store) / "default.db")


@pytest.mark.parametrize("recording", ["full", "reasoning"])
def test_an_end_user_is_found_at_every_provider(house: House, providers: Providers, recording: str) -> None:
    """Whether or not the provider has a name for end users, and where it takes none as long."""
    key = house.keys("create", "a key", "--recording", recording).split()[-1]
    for place in PLACES:
        for user in (XENIA, YORICK):
            providers.begin()
            client = Client("openai-chat", place.dialect, key, user, True, [])
            assert 200 == client.ask(house, f"What is {len(user)} plus 1, {place.dialect}?").status
    with thinkback.open(log_of(house)) as store:
        for user in (XENIA, YORICK):
            erased = store.care.purge(end_user=user)
            assert len(PLACES) == len(erased.sessions)
            assert {"request", "reasoning"} <= {gone.kind for gone in erased.commits}
            assert () == store.care.purge(end_user=user).commits


@pytest.mark.parametrize("recording", ["full", "metadata"])
def test_an_answer_that_was_erased_is_not_given_again(house: House, providers: Providers, recording: str) -> None:
    """The kept answer and the sealed response go with it; those of others stay."""
    key = house.keys("create", "a key", "--recording", recording).split()[-1]
    providers.begin()

    def ask(user: str) -> str:
        client = Client("openai-chat", "openai-chat", key, user, True, [])
        reply = client.ask(house, f"What is {len(user)} plus 1?", idempotency_key=f"of {user}")
        assert 200 == reply.status
        return reply.headers.get("idempotent-replayed", "")

    assert ["", "true", "", "true"] == [ask(XENIA), ask(XENIA), ask(YORICK), ask(YORICK)]
    with thinkback.open(log_of(house)) as store:
        assert 1 == len(store.care.purge(end_user=XENIA).sessions)
    assert ["", "true"] == [ask(XENIA), ask(YORICK)]
    with thinkback.open(log_of(house)) as store:
        for session in store.sessions():
            store.care.delete_session(session.name)
    assert ["", ""] == [ask(XENIA), ask(YORICK)]


def payloads_of(house: House) -> list[tuple[int, bytes]]:
    """Codecs and bytes of all payloads."""
    if "://" in house.store:
        with closing(psycopg.connect(house.store, autocommit=True)) as db:
            return db.execute("SELECT codec, payload FROM thinkback.commits").fetchall()
    with closing(sqlite3.connect(log_of(house))) as db:
        return db.execute("SELECT codec, payload FROM commits").fetchall()


def traces_of(house: House, word: str) -> list[bytes]:
    """How a word is in the files: as it is, and in what is stored of payloads, which are compressed."""
    stored = [payload for codec, payload in payloads_of(house) if word.encode() in unpack(codec, payload)]
    return [word.encode(), *stored]


def places_of(
    house: House, server: Server, words: list[str], responses: list[str], traces: Sequence[bytes] = ()
) -> set[str]:
    """Where any of the words, their traces, or what is kept of the responses, is found. Nothing is left to a look-up
    of ours.
    """
    found = set()
    with thinkback.open(log_of(house)) as store:
        while store.log.search.fill():
            pass
    files = [path for path in house.place.parent.rglob("*") if path.is_file() and path.name != USAGE]
    usage = house.place.parent / USAGE
    spooled = list(opened_spool(house.place.parent / SPOOL))
    if "://" in house.store:
        with closing(psycopg.connect(house.store, autocommit=True)) as db:
            for statement in ("VACUUM FULL", "CHECKPOINT"):
                db.execute(statement)
            vocabulary = str(db.execute("SELECT words FROM thinkback.entries").fetchall())
            ((own,),) = db.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchall()
        # where the server keeps this database, and none of other tests
        files += [path for path in (server.place / "data" / "base" / str(own)).rglob("*") if path.is_file()]
    else:
        with closing(sqlite3.connect(log_of(house))) as db:
            db.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, search_words, row)")
            vocabulary = str(db.execute("SELECT term FROM temp.terms").fetchall())
    raw, payloads = [held(path) for path in files], payloads_of(house)
    found |= {"files"} if any(trace in data for trace in traces for data in raw) else set()
    for word in words:
        found |= {"files"} if any(word.encode() in data for data in raw) else set()
        found |= {"payloads"} if any(word.encode() in unpack(*row) for row in payloads) else set()
        found |= {"vocabulary"} if word in vocabulary else set()
        found |= {"spool"} if any(word.encode() in data for data in spooled) else set()
        found |= {"usage log"} if usage.exists() and word in usage.read_text() else set()
    found |= {"kept"} if any(short(response) in data for response in responses for data in raw) else set()
    return found


def held(path: Path) -> bytes:
    """What is in a file of a server that runs, which may take it away at any time."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def opened_spool(place: Path) -> Iterator[bytes]:
    """What is sealed in a spool, done or not: whatever stands behind anything like the beginning of a record."""
    sealer = Sealer(b"5" * 64).of("spool")
    for path in place.glob("*.spool"):
        data = held(path)
        for mark in re.finditer(b"\xf5tb(?:spool|-done)", data):
            (length,) = struct.unpack_from(">I", data, mark.start() + 16)
            yield sealer.open_bytes(data[mark.start() + 24 :][:length], b"step") or b""


@contextmanager
def away(server: Server, url: str) -> Iterator[None]:
    """The database takes nobody in, and turns those out who are in it."""
    name = url.partition("@/")[2].partition("?")[0].replace("%20", " ")
    with server.connect() as db:
        db.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            db.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


@pytest.mark.parametrize("house", ["postgres"], indirect=True)
def test_what_waited_in_the_spool_can_be_erased(house: House, providers: Providers, postgres: Server) -> None:
    """It waits sealed, and is in the log once that answers; erased there, it is nowhere, and the spool has no copy."""
    words = [f"secret{secrets.token_hex(6)}" for _ in range(3)]
    key = house.keys("create", "a key", "--recording", "full").split()[-1]
    providers.begin()
    client = Client("openai-chat", "openai-chat", key, XENIA, True, [])
    spool = house.place.parent / SPOOL
    assert 200 == Client("openai-chat", "openai-chat", key, YORICK, True, []).ask(house, "Is the key known?").status
    providers.push(Step(reasoning=f"Thought of {words[1]}.", text=f"Said {words[2]}."))
    with away(postgres, house.store):
        reply = client.ask(house, f"What is {words[0]}?")
        assert "store" == reply.headers.get("thinkback-degraded"), reply
        waiting = list(opened_spool(spool))
        for word in (*words, XENIA):
            assert any(word.encode() in data for data in waiting)
            assert not any(word.encode() in held(path) for path in spool.iterdir())
    wait_until(lambda: not list(opened_spool(spool)), "what was spooled is stored")

    for word in words:
        assert (
            {"payloads", "vocabulary"} <= places_of(house, postgres, [word], []) <= {"files", "payloads", "vocabulary"}
        )
    with thinkback.open(log_of(house)) as store:
        assert 1 == len(store.care.purge(end_user=XENIA).sessions)
    assert set() == places_of(house, postgres, [*words, XENIA], [])


@pytest.mark.parametrize("house", ["postgres"], indirect=True)
@pytest.mark.parametrize("how", ["end user", "before", "tenant"])
def test_an_erasure_reaches_what_waits_in_the_spool(
    house: House, providers: Providers, postgres: Server, how: str
) -> None:
    """The gateway is down while its spool waits and the log is erased: what is stored afterwards has nothing of it,
    and what was said later, and to others, stays.
    """
    words = [f"secret{secrets.token_hex(6)}" for _ in range(3)]
    key = house.keys("create", "a key", "--recording", "full").split()[-1]
    providers.begin()
    spool = house.place.parent / SPOOL
    client = Client("openai-chat", "openai-chat", key, XENIA, True, [])
    assert 200 == client.ask(house, "Is the key known?").status
    providers.push(Step(reasoning=f"Thought of {words[1]}.", text=f"Said {words[2]}."))
    with away(postgres, house.store):
        reply = client.ask(house, f"What is {words[0]}?")
        assert "store" == reply.headers.get("thinkback-degraded"), reply
        house.stop()
    for word in words:
        assert {"spool"} == places_of(house, postgres, [word], [])
    with thinkback.open(log_of(house)) as store:
        match how:
            case "end user":
                store.care.purge(end_user=XENIA)
            case "before":
                store.care.purge(before=(time.time_ns() // 1000) + 1)
            case _:
                store.care.purge(tenant="default")
    house.start()
    wait_until(lambda: not list(opened_spool(spool)), "what was spooled is stored, or gone")
    other = f"word{secrets.token_hex(6)}"
    for user in (XENIA, YORICK):
        assert 200 == Client("openai-chat", "openai-chat", key, user, True, []).ask(house, f"What is {other}?").status

    assert set() == places_of(house, postgres, words, [])
    assert {"payloads", "vocabulary"} <= places_of(house, postgres, [other], [])
    with thinkback.open(log_of(house)) as store:
        assert [] == list(store.fsck())


def test_erased_is_gone(house: House, providers: Providers, postgres: Server) -> None:
    """Question, thought and answer are found everywhere by one search, also in a usage log whose owner wanted them
    there, and after the purge by the same one nowhere. The lines of the usage log stay, with their numbers.
    """
    words = [f"secret{secrets.token_hex(6)}" for _ in range(3)]
    responses = []
    for recording in ("full", "metadata"):
        key = house.keys("create", recording, "--recording", recording).split()[-1]
        providers.begin()
        providers.push(Step(reasoning=f"Thought of {words[1]}.", text=f"Said {words[2]}."))
        client = Client("openai-chat", "openai-chat", key, XENIA, True, [])
        reply = client.ask(house, f"What is {words[0]}?", idempotency_key="once")
        assert 200 == reply.status
        responses.append(reply.headers["thinkback-response"])
    providers.push(Step(reasoning=f"Thought of {words[1]}.", text=f"Said {words[2]}."))
    usage = house.place.parent / USAGE
    with thinkback.open(log_of(house), usage_log=usage, settings={"usage.logContent": True}) as store:
        session = sets.session_of(store, providers, PLACES[0], "own")
        session.chat(f"What is {words[0]}?", params={"user": XENIA})
    everywhere = {"files", "payloads", "vocabulary", "kept"}

    traces = [trace for word in words for trace in traces_of(house, word)]
    for word, logged in zip(words, ({"usage log"}, set(), {"usage log"}), strict=True):
        assert everywhere | logged == places_of(house, postgres, [word], responses, traces_of(house, word))
    assert "usage log" not in places_of(house, postgres, [XENIA], responses)
    with thinkback.open(log_of(house), usage_log=usage) as store:
        assert 3 == len(store.care.purge(end_user=XENIA).sessions)
    (line,) = map(json.loads, usage.read_text().splitlines())
    assert (None, None, True) == (line["prompt"], line["answer"], line["output_tokens"] > 0)
    assert set() == places_of(house, postgres, words, responses, traces)
    assert set() == places_of(house, postgres, [XENIA], responses)


def holds(store: SessionStore, name: str, word: bytes) -> bool:
    """Whether a session says it."""
    return any(word in commit.payload for commit in store.commits(name))


@pytest.mark.parametrize("front", ["openai-responses", "anthropic"])
@pytest.mark.parametrize("how", ["redact", "end user", "delete", "tenant"])
def test_a_sealed_value_of_what_was_erased_opens_no_more(
    house: House, providers: Providers, front: str, how: str
) -> None:
    """A client that kept it sends it again: what is in it goes nowhere, and is stored nowhere. What the client says
    anew does, and what was sealed of others opens.
    """
    key = house.keys("create", "a key", "--recording", "full").split()[-1]
    providers.begin()
    clients = [Client(front, "openai-chat", key, user, False, []) for user in (XENIA, YORICK)]
    for client, thought in zip(clients, ("secretthought", "otherthought"), strict=True):
        providers.push(Step(reasoning=thought, text="Said."))
        assert 200 == client.ask(house, f"What is {client.user}?").status
    with thinkback.open(log_of(house)) as store:
        (info,) = [info for info in store.sessions() if holds(store, info.name, b"secretthought")]
        match how:
            case "redact":
                (said,) = [each for each in store.commits(info.name) if each.kind == "reasoning"]
                store.care.redact(said.hash, "secretthought", session=info.name)
            case "end user":
                store.care.purge(end_user=XENIA)
            case "delete":
                store.care.delete_session(info.name)
            case _:
                store.care.purge(tenant="default")
    for client in clients:
        assert 200 == client.ask(house, "And what is said anew?").status
    erased, other = (seen.body for seen in providers.seen[-2:])
    assert "secretthought" not in erased
    assert "said anew" in erased
    assert ("otherthought" in other) == (how != "tenant")
    assert not any(b"secretthought" in unpack(*row) for row in payloads_of(house))


def test_a_sealed_value_that_was_stored_again_is_erased_with_what_was_stored(
    house: House, providers: Providers
) -> None:
    """A client goes on with its tokens in a conversation that is not recognised; erasing that one voids them, too."""
    key = house.keys("create", "a key", "--recording", "full").split()[-1]
    providers.begin()
    client = Client("openai-responses", "openai-chat", key, XENIA, False, [])
    providers.push(Step(reasoning="secretthought", text="Said."))
    assert 200 == client.ask(house, "What is the weather?").status
    client.messages[0]["content"] = "What was the weather?"
    assert 200 == client.ask(house, "And now?").status
    assert "secretthought" in providers.seen[-1].body
    with thinkback.open(log_of(house)) as store:
        sessions = [info.name for info in store.sessions() if holds(store, info.name, b"What was the weather?")]
        assert [] != sessions
        for name in sessions:
            store.care.delete_session(name)
    until = len(providers.seen)
    assert 200 == client.ask(house, "And then?").status
    assert all("secretthought" not in seen.body for seen in providers.seen[until:])


def test_a_history_that_a_gateway_has_in_memory_goes_with_what_was_erased(house: House, providers: Meanwhile) -> None:
    """Of a conversation that goes on from a request which was under way then."""
    key = house.keys("create", "a key", "--recording", "full").split()[-1]
    providers.begin()
    client = Client("openai-chat", "openai-chat", key, XENIA, True, [])
    providers.push(Step(reasoning="secretthought", text="Said."))
    assert 200 == client.ask(house, "What is the weather?").status
    with thinkback.open(log_of(house)) as store:
        (info,) = store.sessions()

        def erase() -> None:
            (thought, *_) = [each for each in store.commits(info.name) if each.kind == "reasoning"]
            store.care.redact(thought.hash, "secretthought", session=info.name)

        providers.meanwhile = erase
        assert 200 == client.ask(house, "And now?").status
        until = len(providers.seen)
        assert 200 == client.ask(house, "And then?").status
    assert "secretthought" in providers.seen[until - 1].body
    assert all("secretthought" not in seen.body for seen in providers.seen[until:])
    assert not any(b"secretthought" in unpack(*row) for row in payloads_of(house))


def test_the_first_request_of_a_conversation_stores_nothing_of_a_user_who_is_purged_meanwhile(
    house: House, providers: Meanwhile
) -> None:
    """For it nothing was looked up in the log, whose epoch would tell."""
    key = house.keys("create", "a key", "--recording", "full").split()[-1]
    providers.begin()
    client = Client("openai-chat", "openai-chat", key, XENIA, True, [])
    with thinkback.open(log_of(house)) as store:

        def purge() -> None:
            store.care.purge(end_user=XENIA)

        providers.meanwhile = purge
        assert 200 == client.ask(house, "What is the zebrasecret?").status
        assert [] != store.sessions()
    assert not any(b"zebrasecret" in unpack(*row) for row in payloads_of(house))


def test_a_request_that_is_sent_again_has_nothing_of_what_was_erased_meanwhile(
    house: House, providers: Meanwhile
) -> None:
    """The provider is busy; while the gateway waits the thought is taken out of the log. What the client says stays."""
    key = house.keys("create", "a key", "--recording", "full").split()[-1]
    providers.begin()
    client = Client("openai-chat", "openai-chat", key, XENIA, True, [])
    providers.push(Step(reasoning="secretthought", text="Said."))
    assert 200 == client.ask(house, "What is the weather?").status
    with thinkback.open(log_of(house)) as store:
        (info,) = store.sessions()

        def erase() -> None:
            (thought, *_) = [each for each in store.commits(info.name) if each.kind == "reasoning"]
            store.care.redact(thought.hash, "secretthought", session=info.name)

        providers.meanwhile = erase
        providers.push(Step(fault=HttpError(503)))
        assert 200 == client.ask(house, "And now?").status
    first, again = (seen.body for seen in providers.seen[-2:])
    assert "secretthought" in first
    assert "secretthought" not in again
    assert all(word in again for word in ("What is the weather?", "Said.", "And now?"))
    until = len(providers.seen)
    assert 200 == client.ask(house, "And then?").status
    assert all("secretthought" not in seen.body for seen in providers.seen[until:])
    assert not any(b"secretthought" in unpack(*row) for row in payloads_of(house))


@pytest.mark.parametrize("house", ["postgres"], indirect=True)
def test_a_redaction_reaches_what_is_repeated_in_the_spool(
    house: House, providers: Providers, postgres: Server
) -> None:
    """A conversation goes on while the log cannot be reached: its client repeats what is taken out of the log before
    the spool is stored. What the client said besides stays.
    """
    words = [f"secret{secrets.token_hex(6)}" for _ in range(2)]
    key = house.keys("create", "a key", "--recording", "full").split()[-1]
    providers.begin()
    spool = house.place.parent / SPOOL
    client = Client("openai-chat", "openai-chat", key, XENIA, True, [])
    providers.push(Step(reasoning="Hm.", text=f"Said {words[1]}."))
    assert 200 == client.ask(house, f"What is {words[0]}?").status
    other = f"word{secrets.token_hex(6)}"
    with away(postgres, house.store):
        assert "store" == client.ask(house, f"And what is {other}?").headers.get("thinkback-degraded")
        house.stop()
    with thinkback.open(log_of(house)) as store:
        (info,) = store.sessions()
        for word in words:
            for commit in store.commits(info.name):
                if word.encode() in commit.payload:
                    store.care.redact(commit.hash, word, session=info.name)
    house.start()
    wait_until(lambda: not list(opened_spool(spool)), "what was spooled is stored, or gone")
    assert set() == places_of(house, postgres, words, [])
    assert {"payloads", "vocabulary"} <= places_of(house, postgres, [other], [])
    with thinkback.open(log_of(house)) as store:
        assert [] == list(store.fsck())
