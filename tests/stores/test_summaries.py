"""What a list of sessions shows, in every store: kept up to date by whatever changes a session."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.stores.samples import asked_step, fill, put, put_on, response_step, user_step
from thinkback.log.protocol import MAIN, About, Origin, Store
from thinkback.log.seal import head_of, seal
from thinkback.log.tally import Tally
from thinkback.model import canonical
from thinkback.model.commits import Erased, Step
from thinkback.stores import open_store

FOREVER = 10**9


def tallies(store: Store) -> dict[str, Tally]:
    """By session."""
    return {id: found.tally for id, found in store.summaries().items()}


def test_an_append_adds_to_the_summary_of_its_session(store: Store) -> None:
    """On whatever branch; a fork counts what it stores itself."""
    trunk = fill(store, "s", [user_step("1"), asked_step("2", "hm", "So.", 2_000)])
    assert {"s": Tally("Why is the sky blue?", ("reasoner",), 1, 30, 5, 2_000)} == tallies(store)
    store.refs.create("s", "b", head_of(trunk[:1]), MAIN)
    put_on(store, "s", "b", asked_step("3", "hm", "No.", 5_000))
    store.create_session("f", "fork", 1, Origin("s", at=head_of(trunk)))
    assert Tally() == tallies(store)["f"]
    put(store, "f", user_step("4", "And the sea?", 3_000))
    sums = tallies(store)
    assert Tally("Why is the sky blue?", ("reasoner",), 2, 60, 10, 5_000) == sums["s"]
    assert Tally("And the sea?", (), 0, 0, 0, 3_000) == sums["f"]
    assert [] == list(store.fsck())


def test_a_request_may_come_a_step_before_its_response(store: Store) -> None:
    """As in a file that was imported in pieces; a response whose request is nowhere is a copy."""
    whole = asked_step("2", "hm", "So.", 2_000)
    fill(store, "s", [user_step("1"), Step("a", whole.drafts[:1], 2), Step("b", whole.drafts[1:], 3)])
    fill(store, "s", [response_step("9")])
    assert Tally("Why is the sky blue?", ("reasoner",), 1, 30, 5, 2_000) == tallies(store)["s"]
    assert [] == list(store.fsck())


def test_a_title_is_the_words_of_a_person(store: Store) -> None:
    """Of what a program writes before them there is none."""
    fill(store, "s", [user_step("1", "<session_context>a</session_context>Why?")])
    fill(store, "t", [user_step("1", "<session_context>a</session_context>")])
    assert {"s": "Why?", "t": ""} == {id: found.title for id, found in tallies(store).items()}
    assert [] == list(store.fsck())


def test_a_title_goes_with_its_text(store: Store) -> None:
    """What was erased, collected or deleted is in no summary."""
    trunk = fill(store, "s", [user_step("1", "secret"), user_step("2", "open")])
    store.care.erase("s", {trunk[0].hash: canonical.encode(Erased("asked to", 1))})
    assert "open" == tallies(store)["s"].title
    store.refs.move("s", MAIN, head_of(trunk), head_of(trunk[:1]), MAIN)
    store.care.gc(FOREVER)
    assert Tally(last=1_000) == tallies(store)["s"]
    fill(store, "t", [asked_step("3", "hm", "So.", 1)])
    store.care.delete_session("s")
    assert ["t"] == list(tallies(store))
    assert [] == list(store.fsck())


def test_programs_say_what_a_session_is_about(store: Store) -> None:
    """When it is made, and afterwards; appends leave that alone."""
    about = About("chat \0", "thinkback", "/home/me", ("a\\b", "é"), 1_500_000)
    store.create_session("s", "s", 1, about=about)
    store.create_session("t", "t", 1)
    put(store, "s", user_step("1"))
    assert [about, About()] == [store.summaries()[id].about for id in "st"]
    store.describe("s", About(cost=0))
    assert About(cost=0) == store.summaries()["s"].about
    store.create_session("s2", "s", 1, about=about)
    assert {"s", "t"} == {*store.summaries()}


def test_a_step_that_is_stored_twice_counts_once(store: Store) -> None:
    """Also where the answer to the first time was lost."""
    store.create_session("s", "s", 1)
    info = store.find_session("s")
    assert info is not None
    commits = seal(asked_step("1", "hm", "So.", 7), info.head)
    assert [True, False] == [store.append("s", "1", commits, info.head) for _ in range(2)]
    assert Tally("", ("reasoner",), 1, 30, 5, 7) == tallies(store)["s"]


def test_the_first_of_a_list_are_those_of_the_whole(store: Store) -> None:
    """In the same order, with the same summaries; a name that is another's id leads to nobody else's."""
    for number in range(6):
        fill(store, f"s{number}", [user_step(f"{number}", time=1_000 * (number * 5 % 6))])
    store.create_session("fork", "fork", 9_000, Origin("s1"))
    every = store.list_sessions()
    assert len(every) == store.count_sessions()
    for most in (0, 1, 3, 7, 9):
        assert every[:most] == store.list_sessions(most)
    wanted = [info.id for info in every[1:3]]
    assert {id: each for id, each in store.summaries().items() if id in wanted} == store.summaries(wanted)
    assert {} == store.summaries(["nobody"]) == store.summaries([])


def test_sums_of_earlier_versions_are_counted_again_once(tmp_path: Path) -> None:
    """By whoever lists the session first; an append counts what it adds to by itself."""
    path = str(tmp_path / "log.db")
    with closing(open_store(path)) as store:
        for id in ("s", "t"):
            fill(store, id, [user_step("1"), asked_step("2", "hm", "So.", 2_000)])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE summaries SET counted = 1, tokens = 7")
    with closing(open_store(path)) as store:
        put(store, "t", user_step("3"))
        assert [30] == [found.tally.tokens for found in store.summaries(["s"]).values()]
        assert [] == list(store.fsck())
    with closing(sqlite3.connect(path)) as db:
        assert [(2, 30)] * 2 == db.execute("SELECT counted, tokens FROM summaries").fetchall()


def test_sessions_are_found_by_who_made_them(store: Store) -> None:
    """By program and project; what was made from another is of that one's, where nobody says otherwise."""

    def make(name: str, program: str = "", project: str = "", above: str = "") -> None:
        origin = Origin(above) if above else None
        about = About(program, project)
        assert store.create_session(name, name, 1, origin, None, about).id == name

    make("a", "codex", "shop")
    make("b", "codex", "house")
    make("c")
    make("a1", above="a")
    make("a2", project="house", above="a1")
    make("c1", "codex", above="c")
    for program, project, is_own, expected in (
        ("codex", "", False, {"a", "b", "a1", "a2", "c1"}),
        ("codex", "shop", False, {"a", "a1"}),
        ("codex", "house", False, {"b", "a2"}),
        ("", "house", False, {"b", "a2"}),
        ("thinkback", "", True, {"c"}),
        ("thinkback", "house", True, set()),
        ("nobody", "", False, set()),
    ):
        assert expected == set(store.owned_sessions(program, project, is_own=is_own)), (program, project)


def test_families_are_found_by_age_and_by_their_sessions(store: Store) -> None:
    """Each with its sessions, the oldest first; a session that has nothing has a family all the same."""
    for number, id in enumerate(("a", "b", "c")):
        fill(store, id, [user_step(f"of {id}", time=1_000 * (number + 1))])
    store.create_session("d", "d", 5, Origin("b"))
    store.create_session("e", "e", 9_000)
    sizes = store.care.family_sizes()
    assert {"a": 1, "b": 1, "c": 1, "e": 0} == dict(sizes)
    assert ["a", "b"] == sorted(root for root, _ in store.care.family_sizes(before=2_001))
    assert ["b", "c"] == sorted(root for root, _ in store.care.family_sizes(ids=["d", "c"]))
    assert ["b"] == [root for root, _ in store.care.family_sizes(before=2_001, ids=["d", "c"])]
    assert {"b", "d", "e"} == {info.id for info in store.care.family_infos(["b", "e"])}
    assert [] == store.care.family_infos([])
