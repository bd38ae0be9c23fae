"""Logs of earlier versions live: they verify, reasoning goes back from them, conversations in them are recognised."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

import thinkback
from tests.old_logs import sets
from tests.old_logs.providers import ASKED, PLACES, Providers, Seen, behind
from tests.old_logs.sets import Conversation
from tests.servers.gateway.harness.carried import Carried, carried
from tests.servers.gateway.harness.house import House, wait_until
from tests.stores.postgres_server import Server
from thinkback.errors import ThinkbackError
from thinkback.log.protocol import Store
from thinkback.model.commits import Commit, Erased
from thinkback.stores import open_store

pytestmark = pytest.mark.filterwarnings("ignore:the log .* is being brought to format:UserWarning")
CONVERSATIONS = {name: sets.conversations(name) for name in sets.names()}
of_every_set = pytest.mark.parametrize(
    ("name", "database"), [(name, database) for name in CONVERSATIONS for database in sets.DATABASES]
)


class Old(NamedTuple):
    """A set that was laid out: where its logs are, and a gateway that goes on with it."""

    logs: tuple[tuple[str, str], ...]
    """(place, tenant): the gateway's, and the library's."""
    house: House
    providers: Providers
    conversations: list[Conversation]


Open = Callable[[str, str], Old]


@pytest.fixture(scope="module")
def providers() -> Iterator[Providers]:
    """The providers of all."""
    with Providers() as running:
        yield running


@pytest.fixture(scope="module")
def opened(providers: Providers, postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Lays out a set in a database when it is wanted first."""
    found: dict[tuple[str, str], Old] = {}

    def open(name: str, database: str) -> Old:
        if (name, database) not in found:
            place = tmp_path_factory.mktemp(database)
            sets.unpack(name, place)
            lay_out = _in_postgres if database == "postgres" else _in_files
            with behind(providers):
                found[name, database] = lay_out(place, providers, postgres, CONVERSATIONS[name][database])
        return found[name, database]

    yield open
    for old in found.values():
        with sets.running(old.house):
            pass


def _in_files(place: Path, providers: Providers, _: Server, conversations: list[Conversation]) -> Old:
    shutil.rmtree(place / "spool")
    house = sets.gateway(place / "house", providers, str(place / "store"), place / "spool")
    logs = ((str(place / "store" / "default.db"), "default"), (str(place / "library.db"), "default"))
    return Old(logs, house, providers, conversations)


def _in_postgres(place: Path, providers: Providers, server: Server, conversations: list[Conversation]) -> Old:
    database = f"old logs {secrets.token_hex(4)}"
    url = server.make_database(database)
    with server.connect(database) as connection:
        connection.execute((place / "postgres.sql").read_text().encode())
    house = sets.gateway(place / "house", providers, url, place / "spool")
    wait_until(lambda: not list((place / "spool").glob("*.spool")), "what was spooled is stored")
    return Old(((url, "default"), (url, sets.LIBRARY)), house, providers, conversations)


def given_back(dialect: str, seen: list[Seen]) -> list[list[Carried]]:
    """The reasoning that each request carried: between which turns and calls, however long the texts are there."""
    found = (carried(dialect, json.loads(each.body)) for each in seen)
    return [[piece._replace(place=(*piece.place[:2], 0)) for piece in pieces] for pieces in found]


def difference(conversation: Conversation, found: sets.Next) -> object:
    """What of it did not go on as it did with the code that made the log; ``None``: nothing."""
    then = conversation.then
    wanted = given_back(conversation.dialect, then.seen), [200] * len(then.seen), then.reattached
    got = given_back(conversation.dialect, found.seen), [seen.status for seen in found.seen], found.reattached
    return None if wanted == got else got


@of_every_set
def test_every_conversation_goes_on(opened: Open, name: str, database: str) -> None:
    """By what clients echo and by what they hold sealed: known, with all its reasoning, which the providers accept."""
    old = opened(name, database)
    faults = {}
    for conversation in old.conversations:
        if conversation.front:
            old.providers.begin(conversation.asked, conversation.then.seen)
            found = sets.go_on(old.providers, old.house, conversation)
            faults[conversation.name] = difference(conversation, found)
    assert len(faults) > 20
    assert {} == {name: fault for name, fault in faults.items() if fault is not None}


@of_every_set
def test_every_session_goes_on(opened: Open, name: str, database: str) -> None:
    """In an open loop of calls, and with another turn: the same reasoning goes back, and is accepted."""
    old = opened(name, database)
    place, tenant = old.logs[1]
    mine = [conversation for conversation in old.conversations if not conversation.front]
    faults = {}
    with behind(old.providers), thinkback.open(place, tenant=tenant) as store:
        for conversation, at in zip(mine, PLACES, strict=True):
            old.providers.begin(conversation.asked, conversation.then.seen)
            session = sets.session_of(store, old.providers, at, conversation.name)
            faults[conversation.name] = difference(conversation, sets.go_on_with(old.providers, session, conversation))
    assert {} == {name: fault for name, fault in faults.items() if fault is not None}


@of_every_set
def test_every_request_is_explained(opened: Open, name: str, database: str) -> None:
    """``why`` rebuilds each one of which nothing was erased, on every branch; it has the digest of what was sent."""
    counted, faults = 0, []
    for place, tenant in opened(name, database).logs:
        with thinkback.open(place, tenant=tenant) as store:
            for info in store.sessions():
                session, commits = store.session(info.name), all_of(store.log, info.id)
                if any(isinstance(commit.value, Erased) for commit in commits):
                    continue
                for request in (commit for commit in commits if commit.kind == "request"):
                    counted += 1
                    try:
                        assert session.why(request.hash).plan is not None
                    except ThinkbackError as error:
                        faults.append((info.name, error.message))
    assert counted > 50
    assert [] == faults


def all_of(log: Store, session: str) -> list[Commit]:
    """The commits on all branches."""
    found = {commit.hash: commit for ref in log.refs.list(session) for commit in log.read(session, branch=ref.name)}
    return list(found.values())


@of_every_set
def test_log_is_whole(opened: Open, name: str, database: str) -> None:
    """``fsck`` finds nothing."""
    for place, tenant in opened(name, database).logs:
        with closing(open_store(place, tenant=tenant)) as log:
            assert [] == list(log.fsck())


@of_every_set
def test_answers_are_given_again(opened: Open, name: str, database: str) -> None:
    """A request with an idempotency key is answered with what was kept."""
    old = opened(name, database)
    kept = {each.name: each.kept.body for each in old.conversations if each.kept is not None}
    found = {}
    for conversation in old.conversations:
        if conversation.kept is not None:
            old.providers.begin()
            client = conversation.client()
            client.messages = []
            asked = ASKED[0].format(name=conversation.name)
            reply = client.ask(old.house, asked, idempotency_key=conversation.kept.key)
            assert (200, "true") == (reply.status, reply.headers.get("idempotent-replayed"))
            found[conversation.name] = reply.body.decode()
    assert len(kept) > 10
    assert kept == found
