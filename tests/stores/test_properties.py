"""Laws of the stores, on inputs nobody chose."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.stores.samples import ORIGIN
from thinkback.errors import HeadMovedError, NotFoundError, StoreError
from thinkback.log.protocol import Store
from thinkback.log.seal import seal
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


sessions = st.sampled_from(["a", "b", "nobody"])
calls = st.one_of(
    st.tuples(st.just("create"), sessions.filter(lambda s: s != "nobody"), st.sampled_from(["a", "x", "y"])),
    st.tuples(st.just("append"), sessions, st.integers(0, 5), st.booleans()),
    st.tuples(st.just("read"), sessions, st.integers(-1, 6)),
    st.tuples(st.just("settings"), sessions, st.dictionaries(st.sampled_from("kl"), texts, max_size=2)),
    st.tuples(st.just("find"), st.text("0123456789abcdef", max_size=2)),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(calls, max_size=25))
def test_every_store_answers_alike(sequence: list[tuple[str, *tuple[object, ...]]]) -> None:
    """Any sequence of calls is answered by the SQLite file as by the memory, errors included."""
    with tempfile.TemporaryDirectory() as place:
        memory, file = open_store(":memory:"), open_store(Path(place) / "log.db", "normal")
        try:
            heads: dict[str, list[Head]] = {}
            for call in sequence:
                heads_before = {session: list(known) for session, known in heads.items()}
                expected = _answer(memory, call, heads_before)
                assert expected == _answer(file, call, heads)
            assert memory.list_sessions() == file.list_sessions()
            assert [] == list(memory.fsck()) == list(file.fsck())
        finally:
            memory.close()
            file.close()


def _answer(store: Store, call: tuple[str, *tuple[object, ...]], heads: dict[str, list[Head]]) -> object:
    """What the store says to ``call``; ``heads`` remembers the heads that sessions had, to append on old ones too."""
    try:
        match call:
            case ("create", str(session), str(name)):
                return store.create_session(session, name, 3)
            case ("append", str(session), int(number), bool(stale)):
                known = heads.setdefault(session, [Head()])
                head = known[0] if stale else known[-1]
                commits = seal(Step(f"{number}", (Draft("user", Message(f"{number}")),), number), head)
                stored = store.append(session, f"{number}", commits, head)
                if stored:
                    known.append(Head(commits[-1].hash, commits[-1].seq))
                return stored
            case ("read", str(session), int(since)):
                return store.read(session, since)
            case ("settings", str(session), dict(values)):
                store.write_settings(session, values)
                return None
            case ("find", str(prefix)):
                return store.find_commit(prefix)
    except (HeadMovedError, NotFoundError, StoreError) as error:
        return type(error), error.message, error.details
    raise AssertionError(call)
