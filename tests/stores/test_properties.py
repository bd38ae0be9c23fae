"""Laws of the stores, on inputs nobody chose."""

from __future__ import annotations

import random
import secrets
import tempfile
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stores.life import TOMB, change, looks
from tests.stores.postgres_server import Server
from tests.stores.samples import ORIGIN
from thinkback.errors import HeadMovedError, NotFoundError, StoreError
from thinkback.log.protocol import Origin, Query, Removed, Store
from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Carrier, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Head, Message, Response, Step, Usage, block_draft
from thinkback.stores import open_store
from thinkback.stores.rows import from_rows, pack, to_rows, unpack

# Text as models send it: any code point, lone surrogates among them, often long enough to be compressed.
texts = st.text(st.characters(), max_size=40).flatmap(lambda text: st.sampled_from([text, text * 30]))
carriers = st.lists(st.builds(Carrier, st.sampled_from(["signature", "encrypted", "item_id"]), texts), max_size=2)
blocks = st.one_of(
    st.builds(Text, texts, carriers=carriers.map(tuple)),
    st.builds(ThinkingBlock, texts, signature=texts, carriers=carriers.map(tuple)),
    st.builds(ToolCall, texts, texts, texts),
    st.builds(ToolResult, texts, texts),
    st.builds(Unknown, texts),
)
drafts = st.one_of(
    st.builds(lambda text: Draft("user", Message(text)), texts),
    st.builds(lambda block, index: block_draft(block, "r", index), blocks, st.integers(0, 9)),
    st.builds(lambda n: Draft("response", Response(ORIGIN, blocks=n), "r"), st.integers(0, 2**40)),
    st.builds(lambda wire: Draft("provider_usage", Usage(wire=wire), "r"), texts),
)
steps = st.builds(Step, st.just("step"), st.lists(drafts, max_size=6).map(tuple), st.integers(-(2**62), 2**62))


@given(steps)
def test_commits_survive_their_rows(step: Step) -> None:
    """Reading the rows of any commits gives the commits back, equal in every field."""
    commits = seal(step, Head("ab" * 32, 4))
    rows = [(position, *row) for position, row in enumerate(to_rows(commits), 5)]
    assert commits == from_rows(rows, 0)


@given(st.binary(max_size=2_000) | st.binary(max_size=40).map(lambda data: data * 50))
def test_payloads_survive_packing(payload: bytes) -> None:
    """Whatever the codec, unpacking gives the same bytes, and packing never makes them more."""
    codec, stored = pack(payload)
    assert payload == unpack(codec, stored)
    assert len(stored) <= len(payload)


sessions = st.sampled_from(["a", "b", "c", "nobody"])
names = st.sampled_from(["main", "x", ""])
places = st.integers(0, 12)  # which of the commits that were ever made, the first is none
calls = st.one_of(
    st.tuples(st.just("create"), sessions.filter(lambda s: s != "nobody"), st.sampled_from(["a", "x", "y"])),
    st.tuples(st.just("append"), sessions, st.integers(0, 5), st.booleans()),
    st.tuples(st.just("read"), sessions, st.integers(-1, 6)),
    st.tuples(st.just("settings"), sessions, st.dictionaries(st.sampled_from("kl"), texts, max_size=2)),
    st.tuples(st.just("find"), st.text("0123456789abcdef", max_size=2)),
    st.tuples(st.just("find in"), st.text("0123456789abcdef", max_size=2), sessions),
    st.tuples(st.just("fork"), st.sampled_from(["c", "d"]), sessions, names, places),
    st.tuples(st.just("branch"), sessions, names, places, names),
    st.tuples(st.just("move"), sessions, names, places, places, names),
    st.tuples(st.just("drop"), sessions, names, places),
    st.tuples(st.just("switch"), sessions, names),
    st.tuples(st.just("grow"), sessions, names, places, st.integers(0, 9)),
    st.tuples(st.just("look"), sessions, names, st.integers(-2, 4)),
    st.tuples(st.just("look at"), sessions, places),
    st.tuples(st.just("erase"), sessions, places),
    st.tuples(st.just("gc"), st.integers(0, 9), st.booleans()),
    st.tuples(st.just("delete"), sessions),
    st.tuples(st.just("ends"), sessions),
)


@given(st.lists(calls, max_size=25))
def test_every_store_answers_alike(postgres: Server, sequence: list[tuple[str, *tuple[object, ...]]]) -> None:
    """Any sequence of calls is answered by a SQLite file and by PostgreSQL as by the memory, errors included."""
    with (
        tempfile.TemporaryDirectory() as place,
        closing(open_store(":memory:")) as memory,
        closing(open_store(Path(place) / "log.db", "normal")) as file,
        closing(open_store(postgres.url(), "normal", tenant=secrets.token_hex(8))) as server,
    ):
        heads: list[Head] = [Head()]
        for call in sequence:
            before = list(heads)
            expected = _answer(memory, call, heads)
            assert expected == _answer(file, call, list(before))
            assert expected == _answer(server, call, list(before))
        assert looks(memory) == looks(file) == looks(server)
        assert [] == list(memory.fsck()) == list(file.fsck()) == list(server.fsck())


def _answer(store: Store, call: tuple[str, *tuple[object, ...]], heads: list[Head]) -> object:
    """What the store says to ``call``; ``heads`` are those there ever were, to which this adds."""
    try:
        match call:
            case ("create", str(session), str(name)):
                return store.create_session(session, name, 3)
            case ("append", str(session), int(number), bool(stale)):
                info = store.find_session(session)
                return _append(store, session, "main", number, heads[0] if stale or not info else info.head, heads)
            case ("grow", str(session), str(branch), int(at), int(number)):
                return _append(store, session, branch, number, heads[at % len(heads)], heads)
            case ("read", str(session), int(since)):
                return store.read(session, since)
            case ("settings", str(session), dict(values)):
                store.write_settings(session, values)
                return None
            case ("find", str(prefix)):
                return store.find_commit(prefix)
            case _:
                return _answer_of_branches(store, call, heads)
    except (HeadMovedError, NotFoundError, StoreError) as error:
        return type(error), error.message, error.details


def _answer_of_branches(store: Store, call: tuple[str, *tuple[object, ...]], heads: list[Head]) -> object:
    def head(at: int) -> Head:
        return heads[at % len(heads)]

    match call:
        case ("find in", str(prefix), str(session)):
            return store.find_commit(prefix, session)
        case ("fork", str(session), str(parent), str(branch), int(at)):
            return store.create_session(session, session, 5, Origin(parent, branch, head(at) if at else None))
        case ("branch", str(session), str(name), int(at), str(via)):
            return store.refs.create(session, name, head(at), via)
        case ("move", str(session), str(name), int(expected), int(to), str(via)):
            store.refs.move(session, name, head(expected), head(to), via)
        case ("drop", str(session), str(name), int(expected)):
            store.refs.delete(session, name, head(expected))
        case ("switch", str(session), str(name)):
            store.refs.switch(session, name)
        case ("look", str(session), str(name), int(since)):
            return store.read(session, since, name), store.refs.list(session)
        case ("look at", str(session), int(at)):
            return store.read_to(session, head(at).hash)
        case ("erase", str(session), int(at)):
            return store.care.erase(session, {head(at).hash: TOMB})
        case ("gc", int(older_than), bool(dry_run)):
            return store.care.gc(older_than, dry_run=dry_run).commits
        case ("delete", str(session)):
            return store.care.delete_session(session)
        case ("ends", str(session)):
            return store.care.ends(session)
        case _:
            raise AssertionError(call)
    return None


def _append(store: Store, session: str, branch: str, number: int, head: Head, heads: list[Head]) -> bool:
    commits = seal(Step(f"{number}", (Draft("user", Message(f"{number}")),), number), head)
    stored = store.append(session, f"{number}", commits, head, branch)
    if stored:
        heads.append(head_of(commits))
    return stored


@pytest.mark.parametrize("seed", range(4))
def test_every_store_lives_the_same_life(store: Store, seed: int) -> None:
    """After each of seventy changes of any kind, a store looks as the one in memory does and answered alike."""
    memory = open_store(":memory:")
    chance = random.Random(seed)
    for number in range(70):
        make = change(chance, memory, f"{number}")
        expected, answer = make(memory), make(store)
        if isinstance(expected, Removed) and isinstance(answer, Removed):  # bytes are those of the kind of store
            assert expected.commits == answer.commits
        else:
            assert expected == answer
        assert looks(memory) == looks(store)
        assert not number % 10 or _found(memory) == _found(store)
    for info in memory.list_sessions():
        assert set(memory.care.ends(info.id)) == set(store.care.ends(info.id))
    assert [] == list(memory.fsck()) == list(store.fsck())


def _found(store: Store) -> list[object]:
    """All that a search finds, of all sessions and of each."""
    while store.search.fill():
        pass
    sessions = ["", *sorted(info.id for info in store.list_sessions())]
    queries = [Query(text, session=session, limit=10**6) for session in sessions for text in ("", "text", "thought")]
    return [[msgspec.structs.replace(hit, arrival=0) for hit in store.search.find(query)] for query in queries]
