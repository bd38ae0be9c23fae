"""Full-text search, whatever the store is made of."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stores.postgres_server import Server
from tests.stores.samples import fill, put, response_step, user_step
from thinkback.errors import NotFoundError, StoreError
from thinkback.log.protocol import Hit, Origin, Query, Store
from thinkback.log.seal import head_of
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.blocks import Origin as Minted
from thinkback.model.commits import (
    Annotation,
    Commit,
    Content,
    Draft,
    Erased,
    Head,
    Message,
    Priority,
    Response,
    Step,
    TurnEnded,
    Usage,
    block_draft,
)
from thinkback.stores import open_store

GONE = canonical.encode(Erased("asked for", 9))
_ids = count()


def answer(*blocks: Block, model: str = "reasoner", served: str = "", usage: Usage | None = None) -> list[Draft]:
    """A whole response as a turn stores it."""
    id = f"response {next(_ids)}"
    drafts = [Draft("response", Response(Minted("openai-chat", "", model, served), blocks=len(blocks)), id)]
    drafts += [block_draft(block, id, at) for at, block in enumerate(blocks)]
    if usage is not None:
        drafts.append(Draft("provider_usage", usage, id))
    return drafts


def step(*drafts: Draft, time: int = 1_000) -> Step:
    """A step of its own."""
    return Step(f"step {next(_ids)}", drafts, time)


def said(text: str, time: int = 1_000) -> Step:
    """A step of one user message."""
    return step(Draft("user", Message(text)), time=time)


def filled(store: Store, session: str, steps: Sequence[Step]) -> list[Commit]:
    """A session of these steps, all of it in the index."""
    commits = fill(store, session, steps)
    catch_up(store)
    return commits


def catch_up(store: Store, limit: int = 5000) -> int:
    """Fill the index to the end; returns in how many transactions."""
    return sum(1 for _ in iter(lambda: store.search.fill(limit), 0))


def found(store: Store, text: str = "", **filters: object) -> list[str]:
    """The hashes that are found."""
    return [hit.hash for hit in store.search.find(msgspec.convert({"text": text, **filters}, Query))]


def test_reasoning_is_found_by_what_it_says(store: Store) -> None:
    """A hit says which commit of which session it is, who minted it, what followed, and shows the match."""
    thought = "I should look at the file first. " * 20 + "The parser drops the last byte. " + "So it is. " * 40
    commits = filled(
        store,
        "s",
        [
            said("Why does it fail?", 5),
            step(
                *answer(
                    ThinkingBlock(thought),
                    ToolCall("1", "read_file", '{"path":"parser.c"}'),
                    served="reasoner-7",
                    usage=Usage(output=500, reasoning=400),
                ),
                time=6,
            ),
        ],
    )
    reasoning = next(commit for commit in commits if commit.kind == "reasoning")
    (hit,) = store.search.find(Query('"drops the last byte" parser'))
    assert (
        Hit("s", reasoning.hash, "reasoning", 6, reasoning.response, "reasoner-7", "read_file", 400, "", 0)
    ) == msgspec.structs.replace(hit, excerpt="", arrival=0)
    assert "The parser drops the last byte." in hit.excerpt
    assert len(hit.excerpt) <= 200


def test_nothing_is_found_before_it_is_taken_in(store: Store) -> None:
    """The index lags behind the log until it is filled, and ``fill`` says how much it took."""
    commits = fill(store, "s", [said("blue"), response_step("1", "blue sky")])
    assert [] == found(store, "blue")
    assert len(commits) == store.search.fill()
    assert 2 == len(found(store, "blue"))
    assert 0 == store.search.fill()


def test_the_newest_come_first_and_pages_join_up(store: Store) -> None:
    """By when they were said, not by when they were stored: an import brings what is older. A page begins where the one
    before ended, also when something was added meanwhile.
    """
    times = [50, 10, 90, 10, 70, 30, 50, 20, 80, 60]
    commits = filled(store, "s", [said(f"blue {n}", time) for n, time in enumerate(times)])
    newest = sorted(enumerate(commits), key=lambda each: (each[1].time, each[0]), reverse=True)
    pages: list[list[Hit]] = [store.search.find(Query("blue", limit=4))]
    put(store, "s", said("blue again", 95))
    catch_up(store)
    while pages[-1]:
        pages.append(store.search.find(Query("blue", limit=4, before=pages[-1][-1].arrival)))
    assert [4, 4, 2, 0] == [len(page) for page in pages]
    assert [commit.hash for _, commit in newest] == [hit.hash for page in pages for hit in page]
    assert [95, *(commit.time for _, commit in newest)] == [hit.time for hit in store.search.find_bare(Query("blue"))]


@pytest.mark.parametrize("limit", [0, -3])
def test_no_hits_are_found_where_none_are_wanted(store: Store, limit: int) -> None:
    """A page of nothing is empty; taking in nothing takes nothing."""
    filled(store, "s", [said("blue")])
    put(store, "s", said("blue"))
    assert [] == found(store, "blue", limit=limit)
    assert 0 == store.search.fill(limit)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("blue", [2, 1, 0]),
        ("sky BLUE", [1, 0]),
        ('"sky is blue"', [0]),
        ('"blue sky"', [1]),
        ("bl", []),
        ("blue OR green", []),
        ("blue NOT sky", []),
        ("cafe", [3]),
        ("天空", [4]),
        ("蓝天", []),
        ("the_sky", [0]),
        ("§kuser", []),
        ("&& **", []),
    ],
)
def test_words_and_phrases(store: Store, text: str, places: list[int]) -> None:
    """All words must be there, whole ones; quotes hold them side by side; nothing is an operator."""
    said_so = ["Why: the sky is blue", "A blue sky?", "blue is it, not white", "CAFÉ", "天空为什么是蓝色"]
    commits = filled(store, "s", [said(text) for text in said_so])
    assert [commits[place].hash for place in places] == found(store, text)


def test_the_last_word_may_be_the_beginning_of_one(store: Store) -> None:
    """Of three letters or more, outside quotes; the newest first, by the same filters as whole words."""
    said_so = ["Why: Rayleigh scatters it", "A ray scatters", "X-ray, gray", "天空为什么是蓝色? Cafeshops"]
    commits = filled(store, "s", [said(text) for text in said_so])
    for text, places in (
        ("ray", [2, 1, 0]),
        ("RAYL", [0]),
        ("scatters ray", [1, 0]),
        ("ray scat", [1]),
        ("why_rayl", [0]),
        ('scatters "rayl"', []),
        ("ra", []),
        ("天空", [3]),
        ("cafés", [3]),
    ):
        assert [commits[place].hash for place in places] == found(store, text, prefix=True)
    assert [] == found(store, "ray", prefix=True, kinds=("reasoning",))


def test_every_filter_filters(store: Store) -> None:
    """Each alone and all together."""
    commits = filled(
        store,
        "s",
        [
            said("blue", 10),
            step(*answer(ThinkingBlock("blue " * 100), ToolCall("1", "bash", "{}"), Text("blue")), time=20),
            step(Draft("tool_result", ToolResult("1", "blue", "bash"), "r"), time=30),
            step(*answer(ThinkingBlock("blue"), Text("green"), model="other"), time=40),
        ],
    )
    where = {commit.hash: commit.seq for commit in commits}

    def seqs(**filters: object) -> list[int]:
        return [where[hash] for hash in found(store, "blue", **filters)]

    assert [7, 5, 4, 2, 0] == seqs()
    assert [7, 2] == seqs(kinds=("reasoning",))
    assert [5, 0] == seqs(kinds=("user", "tool_result"))
    assert [] == seqs(kinds=("branch_summary",)) == seqs(kinds=('x" OR "§kuser',))
    assert [7] == seqs(model="other")
    assert [4, 2] == seqs(model="reasoner")
    assert [5, 2] == seqs(tool="bash")
    assert [5, 4, 2] == seqs(since=20, until=40)
    assert [0] == seqs(until=20)
    assert [] == seqs(since=41)
    assert [2] == seqs(min_tokens=100)
    assert [7, 5, 4, 0] == seqs(max_tokens=124)
    assert [2] == seqs(min_tokens=125, max_tokens=125)
    assert [] == seqs(min_tokens=2, max_tokens=1)
    assert [7, 5, 4, 2, 0] == seqs(priority="normal")
    assert [] == seqs(priority="pinned")
    assert [2] == seqs(
        kinds=("reasoning",), session="s", model="reasoner", tool="bash", since=20, until=21, min_tokens=9
    )


def test_filters_alone_find_reasoning_that_cannot_be_read(store: Store) -> None:
    """Encrypted reasoning has no words, and is found by who minted it and what it cost."""
    hidden = ThinkingBlock("", carriers=(Carrier("encrypted", "c2VjcmV0"),))
    commits = filled(store, "s", [step(*answer(hidden, Text("Blue."), usage=Usage(reasoning=900)))])
    assert [commits[1].hash] == found(store, kinds=("reasoning",), min_tokens=900)
    assert [commits[2].hash, commits[1].hash] == found(store)
    assert [] == found(store, "c2VjcmV0")


def test_names_with_any_sign_are_told_apart(store: Store) -> None:
    """Models and tools are compared as they are, case and signs included."""
    names = ["a/b", "a b", "A/B", "a\x00b", '"a" OR b', "模型", "\ud83d", "x" * 300]
    blocks = [answer(ThinkingBlock("so"), ToolCall("1", name, "{}"), model=name) for name in names]
    filled(store, "s", [step(*drafts) for drafts in blocks])
    for name in names:
        (hit,) = store.search.find(Query(kinds=("reasoning",), model=name, tool=name))
        assert (name, name) == (hit.model, hit.tool)
    assert [] == found(store, model="a-b")


def test_what_sessions_stored_is_found_by_ids_of_any_sign(store: Store) -> None:
    """Of the sessions that are asked for, what is left of deleted ones that stands in them included; of no other."""
    ids = ["a/b", "a\\0b", "a\\b", "'a", "模型"]
    for id in ids:
        filled(store, id, [said("blue")])
    (root,) = filled(store, "root", [said("blue")])
    store.create_session("fork", "fork", 9, Origin("root", at=Head(root.hash, 0)))
    store.care.delete_session("root")
    for owner in (*ids, "fork"):
        assert [owner] == [hit.session for hit in store.search.find(Query("blue", owners=(owner,)))]
    assert {*ids, "fork"} == {hit.session for hit in store.search.find(Query("blue", owners=(*ids, "root", "fork")))}
    assert [] == store.search.find(Query("blue", owners=("root", "gone")))


def test_a_priority_is_what_was_said_last(store: Store) -> None:
    """Annotations of earlier and of the same transactions count; a content type has a priority of its own."""
    user, note = filled(
        store, "s", [said("blue"), step(Draft("content", Content("note", "blue", priority=Priority.PINNED)))]
    )
    assert [note.hash] == found(store, "blue", priority="pinned")
    for priority, pinned, normal in (
        ("important", [], [user.hash]),
        ("pinned", [note.hash], [user.hash]),
        ("normal", [], [note.hash, user.hash]),
    ):
        put(store, "s", step(Draft("annotation", Annotation(note.hash, Priority(priority)))))
        catch_up(store)
        assert (pinned, normal) == (found(store, priority="pinned"), found(store, "blue", priority="normal"))
    put(store, "s", step(Draft("annotation", Annotation(note.hash, default=True))))
    put(store, "s", step(Draft("user", Message("blue too")), Draft("annotation", Annotation(priority=Priority.PINNED))))
    put(store, "s", step(Draft("annotation", Annotation("no hash", Priority.PINNED))))
    put(store, "s", step(Draft("annotation", Annotation("0" * 64, Priority.PINNED))))
    catch_up(store)
    assert 2 == len(found(store, "blue", priority="pinned"))
    assert [note.hash] == found(store, "blue", priority="pinned", max_tokens=1)
    assert [user.hash] == found(store, priority="normal")


def test_an_annotation_without_a_target_looks_past_others(store: Store) -> None:
    """However many annotations, with a target or none, each stored and taken in alone, stand before it."""
    first, second = filled(store, "s", [said("blue 1"), said("blue 2")])
    for target, priority in ((first.hash, "pinned"), ("", "pinned"), (first.hash, "skip"), ("", "important")):
        put(store, "s", step(Draft("annotation", Annotation(target, Priority(priority)))))
        catch_up(store, 1)
    put(store, "s", step(Draft("annotation", Annotation(first.hash, Priority.SKIP))))
    for priority in ("skip", "normal"):
        put(store, "s", step(Draft("annotation", Annotation("", Priority(priority)))))
    catch_up(store)
    assert ([first.hash], [second.hash]) == (found(store, priority="skip"), found(store, priority="normal"))


def test_an_annotation_is_of_its_own_session(store: Store) -> None:
    """Where two sessions hold the same commit, each has its own priority."""
    (first,) = filled(store, "s", [user_step("1")])
    (second,) = filled(store, "t", [user_step("1")])
    assert first == second
    put(store, "s", step(Draft("annotation", Annotation(first.hash, Priority.PINNED))))
    catch_up(store)
    assert ["s"] == [hit.session for hit in store.search.find(Query(priority=Priority.PINNED))]


def test_a_session_is_all_that_its_branches_reach(store: Store) -> None:
    """A fork finds what it shares with its parent and not what the parent added since; a reset hides, not deletes."""
    one, two, three = filled(store, "s", [said("blue 1"), said("blue 2"), said("blue 3")])
    store.create_session("fork", "fork", 9, Origin("s", at=head_of([two])))
    (four,) = put(store, "fork", said("blue 4"))
    store.refs.create("s", "side", head_of([one]))
    store.refs.move("s", "main", head_of([three]), head_of([two]))
    filled(store, "other", [said("blue 5")])
    assert [two.hash, one.hash] == found(store, "blue", session="s")
    assert [four.hash, two.hash, one.hash] == found(store, "blue", session="fork")
    assert 5 == len(found(store, "blue"))
    hits = store.search.find(Query("blue", session="fork"))
    assert ["fork", "s", "s"] == [hit.session for hit in hits]
    assert [] == found(store, "green", session="s")


def test_a_session_without_commits_finds_nothing(store: Store) -> None:
    """And one that does not exist is named."""
    filled(store, "s", [said("blue")])
    store.create_session("empty", "empty", 1)
    assert [] == found(store, session="empty")
    with pytest.raises(NotFoundError, match="there is no session"):
        found(store, session="nobody")


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_however_it_is_filled_the_same_is_found(store: Store, limit: int) -> None:
    """A response is never taken in by halves, nor apart from what is said of it."""
    turns = [
        step(
            Draft("user", Message(f"blue {n}")),
            Draft("annotation", Annotation(priority=Priority.PINNED)),
            *answer(ThinkingBlock("blue"), ToolCall("1", "bash", "{}"), usage=Usage(reasoning=99)),
            Draft("turn_ended", TurnEnded("completed")),
        )
        for n in range(4)
    ]
    fill(store, "s", turns)
    assert catch_up(store, limit) >= 4
    whole = store.search.find(Query())
    assert [("tool_call", "bash", 2), ("reasoning", "bash", 99), ("user", "", 2)] * 4 == [
        (hit.kind, hit.tool, hit.tokens) for hit in whole
    ]
    assert 4 == len(found(store, kinds=("user",), priority="pinned"))
    store.search.rebuild()
    assert [] == found(store)
    catch_up(store)
    assert whole == store.search.find(Query())


def test_what_is_erased_or_removed_is_not_found(store: Store) -> None:
    """Nor by what its neighbours knew of it; what comes after it is found, and what is left of it."""
    commits = filled(
        store,
        "s",
        [said("green secret"), step(*answer(ThinkingBlock("blue"), ToolCall("1", "bash", '{"key":"secret"}')))],
    )
    user, _, thought, call = commits
    rest = canonical.encode(Message("green ***")).decode()
    store.care.erase("s", {user.hash: canonical.encode(Erased("asked", 9, rest)), call.hash: GONE})
    assert [] == found(store, "secret") + found(store, tool="bash")
    assert ([user.hash], [thought.hash]) == (found(store, "green"), found(store, "blue"))
    filled(store, "t", [said("blue too")])
    store.care.delete_session("t")
    assert [thought.hash] == found(store, "blue")
    (later,) = filled(store, "u", [said("blue again")])
    assert [later.hash, thought.hash] == found(store, "blue")
    store.care.delete_session("s")
    assert [later.hash] == found(store)
    store.search.rebuild()
    catch_up(store)
    assert [later.hash] == found(store)


def test_what_gc_takes_is_not_found(store: Store) -> None:
    """And what was never reached by a branch is found until then."""
    one, two, three = filled(store, "s", [said("blue 1"), said("blue 2"), said("blue 3")])
    store.refs.move("s", "main", head_of([three]), head_of([one]))
    assert [three.hash, two.hash, one.hash] == found(store, "blue")
    store.care.gc(10**18)
    assert [one.hash] == found(store, "blue")
    put(store, "s", said("blue 4"))
    catch_up(store)
    assert 2 == len(found(store, "blue"))


def test_a_very_long_text_is_found_by_any_part(store: Store) -> None:
    """And so is a query as long as a page."""
    words = [f"word{n}" for n in range(30_000)]
    (commit,) = filled(store, "s", [said(" ".join(words))])
    assert [commit.hash] == found(store, '"word29998 word29999"')
    assert [commit.hash] == found(store, " ".join(words[:3000]))
    assert [commit.hash] == found(store, f'"{" ".join(words[500:4000])}"')
    assert [] == found(store, " ".join([*words[:3000], "nowhere"]))


@pytest.mark.parametrize(
    "call", [lambda store: store.search.fill(), lambda store: found(store), lambda store: store.search.rebuild()]
)
def test_a_closed_store_says_so(store: Store, call) -> None:  # type: ignore[no-untyped-def]
    """Every call raises ``StoreError`` after ``close``."""
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        call(store)


texts = st.text(st.sampled_from("ab \"'*-():^&|§\x00_é天\ud83d"), max_size=12) | st.text(max_size=8)
names = st.sampled_from(["bash", "read"])
blocks = st.one_of(
    st.builds(ThinkingBlock, texts, is_hidden=st.booleans()),
    st.builds(Text, texts),
    st.builds(ToolCall, texts, names, texts),
)
responses = st.builds(
    lambda blocks, model, reasoning: answer(*blocks, model=model, usage=Usage(reasoning=reasoning)),
    st.lists(blocks, max_size=4),
    names,
    st.none() | st.integers(0, 99),
)
priorities = st.sampled_from(Priority)
steps = st.builds(
    lambda drafts, time: Step("", tuple(drafts), time),
    st.one_of(
        st.builds(lambda text: [Draft("user", Message(text))], texts),
        st.builds(lambda text, own: [Draft("content", Content("note", text, priority=own))], texts, priorities),
        st.builds(lambda said: [Draft("annotation", Annotation(priority=said))], priorities),
        responses,
    ),
    st.integers(0, 9),
)
queries = st.builds(
    Query,
    text=texts,
    kinds=st.lists(st.sampled_from(["reasoning", "user", "tool_call", "content"]), max_size=2).map(tuple),
    session=st.sampled_from(["", "", "s", "t"]),
    model=st.sampled_from(["", "", "bash"]),
    tool=st.sampled_from(["", "", "bash"]),
    priority=st.none() | priorities,
    since=st.none() | st.integers(-1, 9),
    until=st.none() | st.integers(-1, 9),
    min_tokens=st.none() | st.integers(-1, 20),
    max_tokens=st.none() | st.integers(-1, 20),
    limit=st.integers(0, 5) | st.just(50),
    owners=st.none() | st.lists(st.sampled_from(["s", "t", "u"]), max_size=2).map(tuple),
    prefix=st.booleans(),
)


@given(st.lists(st.tuples(st.sampled_from("st"), steps, st.integers(0, 3)), max_size=12), st.lists(queries, max_size=6))
def test_every_store_finds_the_same(postgres: Server, log: list[tuple[str, Step, int]], asked: list[Query]) -> None:
    """Any text, log and query is answered by a SQLite file and by PostgreSQL as by looking at every commit."""
    with tempfile.TemporaryDirectory() as place:
        memory, file = open_store(":memory:"), open_store(Path(place) / "log.db", "normal")
        server = open_store(postgres.url(), "normal", tenant=secrets.token_hex(8))
        with closing(memory), closing(file), closing(server):
            for store in (memory, file, server):
                for session in "st":
                    store.create_session(session, session, 1)
                for at, (session, made, limit) in enumerate(log):
                    put(store, session, msgspec.structs.replace(made, id=str(at)))
                    store.search.fill(limit)
                catch_up(store)
            assert [] == list(file.fsck())
            for query in asked:
                expected = [msgspec.structs.replace(hit, arrival=0) for hit in memory.search.find(query)]
                for store in (file, server):
                    assert expected == [msgspec.structs.replace(hit, arrival=0) for hit in store.search.find(query)]
                    assert memory.search.find_bare(query) == store.search.find_bare(query)
                    found = [at.search.find_owners(query.text, prefix=query.prefix) for at in (memory, store)]
                    assert found[0] == found[1]
