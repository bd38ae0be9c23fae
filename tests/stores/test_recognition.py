"""Responses found by what is visible of them, in every store: recorded with their step, gone with what they are of."""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from typing import Any

import msgspec
import pytest

from tests.stores.samples import fill, response_step, user_step
from thinkback.errors import ErasedSinceError, HeadMovedError, IdTakenError, NotFoundError, StoreError
from thinkback.log.protocol import MAIN, About, AppendRequest, Origin, Seen, Sighting, Store
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.commits import LEFT_OUT, Commit, Erased, Head, Step
from thinkback.stores import open_store

SCOPE, OTHER = b"a scope 16 bytes", b"another of those"
EMPTY = Head()
TOMB = canonical.encode(Erased("asked to", 9))


def digest(name: str) -> bytes:
    """A digest of 16 bytes."""
    return name.encode().ljust(16, b".")


def entry(id: str, seen: str = "", expected: Head = EMPTY, **changes: Any) -> AppendRequest:
    """A question and its answer as one step, found by ``seen``; in the session ``s`` unless told otherwise."""
    drafts = (*user_step(id).drafts, *response_step(id).drafts)
    sighting = Sighting(SCOPE, digest(seen or id), f"response of {id}")
    fields: dict[str, Any] = {
        "session": "s",
        "name": "name of s",
        "created": 7,
        "step": id,
        "commits": seal(Step(id, drafts, changes.pop("time", 2_000)), expected),
        "expected": expected,
        "sightings": (sighting,),
    }
    return AppendRequest(**{**fields, **changes})


def found(store: Store, *names: str, scope: bytes = SCOPE) -> list[tuple[str, str]]:
    """(session, response) of what is found under digests."""
    seen = store.recognition.lookup(scope, [digest(name) for name in names])
    return [(each.session, each.response) for each in seen]


def problems(store: Store) -> list[str]:
    return [f"{problem.where}: {problem.what}" for problem in store.fsck()]


def test_a_step_that_was_made_before_an_erasure_is_not_stored(store: Store) -> None:
    """Whether it opens its session, its branch or neither; made again it is, and a second time nothing is stored."""
    made = store.epoch()
    one, two = entry("1", epoch=made), entry("2", session="t", name="name of t", epoch=made)
    assert store.recognition.record(one)
    head = head_of(one.commits)
    assert made < store.care.begin_erasure() == store.epoch()
    late = [entry("3", expected=head, epoch=made), entry("4", expected=head, branch="work", epoch=made), two]
    for each in late:
        with pytest.raises(ErasedSinceError):
            store.recognition.record(each)
    assert 1 == len(store.list_sessions())
    assert list(one.commits) == store.read("s")
    for each in late:
        again = msgspec.structs.replace(each, epoch=store.epoch())
        assert [True, False] == [store.recognition.record(again), store.recognition.record(again)]
    assert [] == problems(store)


def test_an_erasure_begins_behind_every_step_that_was_made_before(place: str) -> None:
    """Steps that come by the hundred while epochs are counted up: each is in the log once the next epoch is there, or
    is not stored.
    """
    with closing(open_store(place)) as one, closing(open_store(place)) as other:
        stored: dict[str, int] = {}
        stop = threading.Event()

        def record() -> None:
            head, number = Head(), 0
            while not stop.is_set():
                number += 1
                made = other.epoch()
                step = entry(f"{number}", expected=head, epoch=made)
                with suppress(ErasedSinceError):
                    assert other.recognition.record(step)
                    head = head_of(step.commits)
                    stored[step.step] = made

        writer = threading.Thread(target=record)
        writer.start()
        try:
            seen: list[tuple[int, set[str]]] = []
            while len(stored) < 40 or len(seen) < 40:
                epoch = one.care.begin_erasure()
                there = one.read("s") if one.list_sessions() else []
                seen.append((epoch, {commit.response for commit in there if commit.response}))
        finally:
            stop.set()
            writer.join()
    for epoch, responses in seen:
        assert {f"response of {id}" for id, made in stored.items() if made < epoch} <= responses


def test_a_step_opens_its_session_and_is_found(store: Store) -> None:
    """Session, branch, commits and sightings come together; a second time nothing is stored."""
    one = entry("1", branch="work", about=About("codex", "shop", "/shop"))
    assert [True, False] == [store.recognition.record(one), store.recognition.record(one)]
    assert list(one.commits) == store.read("s", branch="work")
    info = store.find_session("name of s")
    assert info is not None
    assert ("s", 7, "work", len(one.commits)) == (info.id, info.created, info.branch, info.commits)
    assert one.about == store.summaries()["s"].about
    head = head_of(one.commits)
    assert [Seen(digest("1"), "s", "work", head, "response of 1")] == store.recognition.lookup(SCOPE, [digest("1")])
    assert [] == problems(store)


def test_a_step_goes_on_with_what_is_there(store: Store) -> None:
    """On the branch where that is at its head; else the head has moved, as for an append."""
    first = entry("1")
    store.recognition.record(first)
    second = entry("2", expected=head_of(first.commits))
    assert store.recognition.record(second)
    with pytest.raises(HeadMovedError):
        store.recognition.record(entry("3", expected=head_of(first.commits)))
    assert [*first.commits, *second.commits] == store.read("s")
    assert [("s", "response of 1"), ("s", "response of 2")] == found(store, "1", "2", "3")


@pytest.mark.parametrize("via", [MAIN, "", "no such branch", "aside"])
def test_a_step_may_fork(store: Store, via: str) -> None:
    """A branch that is not there begins where the step stands, on whatever branch that is now."""
    first = entry("1")
    store.recognition.record(first)
    second = entry("2", expected=head_of(first.commits))
    store.recognition.record(second)
    store.refs.create("s", "aside", EMPTY)
    fork = entry("3", expected=head_of(first.commits), branch="fork", via=via)
    assert [True, False] == [store.recognition.record(fork), store.recognition.record(fork)]
    assert [*first.commits, *fork.commits] == store.read("s", branch="fork")
    (seen,) = store.recognition.lookup(SCOPE, [digest("3")])
    assert ("fork", head_of(fork.commits)) == (seen.branch, seen.head)
    assert MAIN == store.recognition.lookup(SCOPE, [digest("1")])[0].branch
    assert [] == problems(store)


def test_a_conversation_that_begins_again_is_what_its_name_denotes(store: Store) -> None:
    """Its branch becomes the current one; a fork of what is there does not, nor does going on elsewhere."""
    first = entry("1")
    second = entry("2", branch="again", via=MAIN)
    fork = entry("3", expected=head_of(first.commits), branch="fork", via=MAIN)
    current = []
    for step in (first, second, fork, entry("4", expected=head_of(first.commits))):
        store.recognition.record(step)
        info = store.find_session("name of s")
        assert info is not None
        current.append(info.branch)
    assert [MAIN, "again", "again", "again"] == current
    assert list(second.commits) == store.read("s", branch=current[-1])
    assert [] == problems(store)


def test_nothing_is_found_in_another_scope(store: Store) -> None:
    """A digest is one inside its scope alone."""
    store.recognition.record(entry("1"))
    assert [] == found(store, "1", scope=OTHER)


def test_the_newest_come_first_and_only_so_many(store: Store) -> None:
    """Of one digest at most the limit; digests in the order they were asked for."""
    head = EMPTY
    for id in "12345":
        one = entry(id, seen="same", expected=head)
        store.recognition.record(one)
        head = head_of(one.commits)
    assert [("s", f"response of {id}") for id in "543"] == found(store, "same")
    assert 5 == len(store.recognition.lookup(SCOPE, [digest("same")], limit=8))
    store.recognition.record(entry("6", expected=head))
    assert ["6", "5", "4", "3"] == [response[-1] for _, response in found(store, "6", "none", "same")]
    assert [] == store.recognition.lookup(SCOPE, [])


def test_a_step_is_found_by_many_digests(store: Store) -> None:
    """Several of one response, one twice, and in several scopes."""
    names = ["a", "b", "b"]
    seen = [Sighting(SCOPE, digest(name), "response of 1") for name in names]
    store.recognition.record(entry("1", sightings=(*seen, Sighting(OTHER, digest("a"), "response of 1"))))
    assert [("s", "response of 1")] * 2 == found(store, "a", "b")
    assert [("s", "response of 1")] == found(store, "a", scope=OTHER)


def test_a_step_without_sightings_is_an_append(store: Store) -> None:
    """Also one of no commits, which opens its session all the same."""
    assert store.recognition.record(entry("1", commits=(), sightings=()))
    assert [] == store.read("s")
    assert store.recognition.record(entry("2", sightings=()))
    assert 5 == len(store.read("s"))
    assert [] == problems(store)


def test_a_sighting_of_another_step_is_refused(store: Store) -> None:
    """A response is found by what is recorded with it; nothing is stored."""
    with pytest.raises(StoreError, match="not in step 1"):
        store.recognition.record(entry("1", sightings=(Sighting(SCOPE, digest("1"), "response of 2"),)))
    assert None is store.find_session("s")


def test_what_is_taken_is_refused(store: Store) -> None:
    """A name of another session, the id of a deleted one that others stand on, a session that is gone."""
    first = entry("1")
    store.recognition.record(first)
    with pytest.raises(StoreError, match="already"):
        store.recognition.record(entry("2", session="t"))
    store.create_session("f", "fork", 8, Origin("s", at=head_of(first.commits)))
    store.care.delete_session("s")
    with pytest.raises(IdTakenError):
        store.recognition.record(entry("2"))
    with pytest.raises(NotFoundError):
        store.recognition.record(entry("2", expected=head_of(first.commits)))
    with pytest.raises(NotFoundError):
        store.recognition.record(entry("2", session="f", branch="b", expected=Head("ab" * 32, 3)))
    assert [] == problems(store)


def test_a_deleted_conversation_is_not_found_again(store: Store) -> None:
    """Not even where a fork stands on what it held; what the fork recorded is."""
    first = entry("1")
    store.recognition.record(first)
    head = head_of(first.commits)
    store.create_session("f", "fork", 8, Origin("s", at=head))
    store.recognition.record(entry("2", session="f", expected=head))
    store.care.delete_session("s")
    assert [("f", "response of 2")] == found(store, "1", "2")
    store.care.delete_session("f")
    assert [] == found(store, "1", "2")
    fill(store, "t", [user_step("8"), response_step("9")])
    assert [] == found(store, "1", "2")
    assert [] == problems(store)


def test_what_was_collected_is_not_found_again(store: Store) -> None:
    """Nor what took its place in the log; what is on no branch is found until then, and goes by no branch."""
    first = entry("1")
    store.recognition.record(first)
    second = entry("2", expected=head_of(first.commits))
    store.recognition.record(second)
    store.refs.move("s", MAIN, head_of(second.commits), head_of(first.commits))
    (seen,) = store.recognition.lookup(SCOPE, [digest("2")])
    assert ("", head_of(second.commits)) == (seen.branch, seen.head)
    store.care.gc(10**15)
    store.recognition.record(entry("3", expected=head_of(first.commits)))
    assert [("s", "response of 1"), ("s", "response of 3")] == found(store, "1", "2", "3")
    assert [] == problems(store)


def test_a_branch_that_goes_on_elsewhere_is_named(store: Store) -> None:
    """Where the branch itself has left, one that goes on from there, in a segment of its own."""
    first = entry("1")
    store.recognition.record(first)
    second = entry("2", expected=head_of(first.commits))
    store.recognition.record(second)
    store.recognition.record(entry("3", expected=head_of(second.commits), branch="b", via=MAIN))
    third = entry("4", expected=head_of(second.commits))
    store.recognition.record(third)
    store.refs.move("s", MAIN, head_of(third.commits), head_of(first.commits))
    assert "b" == store.recognition.lookup(SCOPE, [digest("2")])[0].branch
    assert MAIN == store.recognition.lookup(SCOPE, [digest("1")])[0].branch


def test_every_store_names_the_same_of_several_branches(store: Store) -> None:
    """The one that ends first in the response's segment, else the first by name, however long the others are."""
    first = entry("1")
    store.recognition.record(first)
    at = head_of(first.commits)
    for name in ("c", "b"):
        store.refs.create("s", name, at, MAIN)
    assert "b" == store.recognition.lookup(SCOPE, [digest("1")])[0].branch
    last = entry("2", expected=at)
    store.recognition.record(last)
    long = entry("3", expected=at, branch="b")
    store.recognition.record(long)
    store.recognition.record(entry("4", expected=head_of(long.commits), branch="b"))
    store.recognition.record(entry("5", expected=at, branch="c"))
    store.refs.move("s", MAIN, head_of(last.commits), EMPTY)
    assert "b" == store.recognition.lookup(SCOPE, [digest("1")])[0].branch


def test_what_was_erased_is_not_found_again(store: Store) -> None:
    """A conversation of which something was erased is not the one that its client holds; others are."""
    first = entry("1")
    store.recognition.record(first)
    store.recognition.record(entry("2", session="t", name="another"))
    store.care.erase("s", {first.commits[0].hash: TOMB})
    assert [("t", "response of 2")] == found(store, "1", "2")
    store.recognition.record(entry("3", expected=head_of(first.commits)))
    assert [("s", "response of 3")] == found(store, "3")
    assert [] == problems(store)


def test_what_an_export_had_left_out_is_put_back_and_found_as_before(store: Store) -> None:
    """Restoring takes nothing away: the responses of the family are found by what they were found by."""
    stone = Erased(LEFT_OUT, 1)
    first = entry("1")
    commit = first.commits[0]
    left_out = msgspec.structs.replace(commit, value=stone, payload=canonical.encode(stone))
    store.recognition.record(msgspec.structs.replace(first, commits=[left_out, *first.commits[1:]]))
    before = found(store, "1")
    assert [("s", "response of 1")] == before
    store.care.restore("s", [commit])
    assert before == found(store, "1")
    assert [] == problems(store)


def test_threads_that_record_at_once_are_each_stored(store: Store) -> None:
    """Steps of many sessions share transactions; one that fails takes nothing of the others with it."""
    entries = [entry(str(number), session=str(number), name=f"name {number}") for number in range(24)]
    entries += [entry("bad", session=str(number), expected=Head("ab" * 32, 0)) for number in range(4)]
    failures: list[Exception] = []

    def record(one: AppendRequest) -> None:
        try:
            store.recognition.record(one)
        except (NotFoundError, HeadMovedError) as error:
            failures.append(error)

    threads = [threading.Thread(target=record, args=(one,)) for one in entries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [str(number) for number in range(24)]
    assert [(name, f"response of {name}") for name in names] == found(store, *names)
    assert (4, []) == (len(failures), problems(store))


def test_commits_are_the_same_as_appended(store: Store) -> None:
    """What was recorded is read, searched and appended to as anything else."""
    one = entry("1")
    store.recognition.record(one)
    commits: list[Commit] = [*one.commits]
    more = seal(user_step("2"), head_of(commits))
    assert store.append("s", "2", more, head_of(commits))
    assert [*commits, *more] == store.read("s")
    assert ("s", commits[2]) == store.find_commit(commits[2].hash)
