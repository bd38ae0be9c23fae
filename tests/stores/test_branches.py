"""Branches and forks, in every store: where they may stand, what an append to one leaves of the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.stores.samples import fill, put, put_on, response_step, user_step
from thinkback.errors import HeadMovedError, IdTakenError, NotFoundError, StoreError
from thinkback.log.protocol import MAIN, BranchInfo, Origin, SessionInfo, Store
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Commit, Draft, Head, Merge, Message, Step

EMPTY = Head()


@pytest.fixture
def trunk(store: Store) -> list[Commit]:
    """The session ``s``: two questions with their answers, ten commits."""
    steps = [user_step("1"), response_step("2"), user_step("3", time=3_000), response_step("4", time=4_000)]
    return fill(store, "s", steps)


def _head(commits: list[Commit], seq: int) -> Head:
    return head_of(commits[: seq + 1])


def test_a_session_begins_on_main(store: Store) -> None:
    """One branch, the current one, empty until something is appended."""
    store.create_session("s", "s", 7)
    assert [BranchInfo(MAIN, EMPTY, 7)] == store.refs.list("s")
    commits = put(store, "s", user_step("1", time=9))
    assert [BranchInfo(MAIN, head_of(commits), 9)] == store.refs.list("s")


@pytest.mark.parametrize("via", [MAIN, ""])
@pytest.mark.parametrize("seq", [-1, 0, 4, 6, 9])
def test_a_branch_may_stand_anywhere(store: Store, trunk: list[Commit], seq: int, via: str) -> None:
    """Before the first commit, on the first, at a turn's end, inside a response, on the last; it grows by itself."""
    made = store.refs.create("s", "b", _head(trunk, seq), via)
    assert BranchInfo("b", _head(trunk, seq), trunk[seq].time if seq >= 0 else 1) == made
    assert trunk[: seq + 1] == store.read("s", branch="b")
    own = put_on(store, "s", "b", user_step("5", "elsewhere")) + put_on(store, "s", "b", response_step("6"))
    assert trunk[: seq + 1] + own == store.read("s", branch="b")
    assert own[2:] == store.read("s", own[1].seq, branch="b")
    assert trunk == store.read("s")
    assert [] == list(store.fsck())


def test_two_branches_at_one_commit_both_grow(store: Store, trunk: list[Commit]) -> None:
    """The first append extends the line, the second parts from it, and neither sees the other."""
    for name in ("b", "c"):
        store.refs.create("s", name, head_of(trunk), MAIN)
    lines = {name: put_on(store, "s", name, user_step(f"to {name}", name)) for name in ("b", MAIN, "c")}
    for name, own in lines.items():
        own += put_on(store, "s", name, response_step(f"more to {name}"))
    assert {name: trunk + own for name, own in lines.items()} == {name: store.read("s", branch=name) for name in lines}
    assert sorted(lines) == [branch.name for branch in store.refs.list("s")]
    assert [] == list(store.fsck())


def test_all_that_is_stored_is_counted(store: Store, trunk: list[Commit]) -> None:
    """What two branches or two sessions share once, what is on no current branch too."""
    store.refs.create("s", "b", _head(trunk, 1), MAIN)
    put_on(store, "s", "b", user_step("aside"))
    store.create_session("f", "fork", 1, Origin("s", at=head_of(trunk)))
    assert len(trunk) + 1 == store.count()


def test_two_branches_before_the_first_commit_are_apart(store: Store) -> None:
    """Branches of an empty session do not share a beginning."""
    store.create_session("s", "s", 1)
    for name in ("b", "c"):
        store.refs.create("s", name, EMPTY, MAIN)
    own = {name: put_on(store, "s", name, user_step(name, name)) for name in ("b", "c", MAIN)}
    assert own == {name: store.read("s", branch=name) for name in own}
    assert [] == list(store.fsck())


def test_branches_of_branches_read_through(store: Store, trunk: list[Commit]) -> None:
    """Twenty branches, each parting from the one before: the last one's history runs through all of them."""
    expected, name = trunk, MAIN
    for number in range(20):
        at, before = _head(expected, len(expected) - 1 - number % 2), name
        name = f"b{number}"
        store.refs.create("s", name, at, before)
        expected = expected[: at.seq + 1] + put_on(store, "s", name, user_step(name, name))
    assert expected == store.read("s", branch=name)
    for since in (-1, 3, len(expected) // 2, len(expected) - 1):
        assert [commit for commit in expected if commit.seq > since] == store.read("s", since, name)
    deep = store.refs.create("s", "deep", _head(expected, 3), name)
    assert _head(trunk, 3) == deep.head
    assert [] == list(store.fsck())


def test_a_name_is_taken_once(store: Store, trunk: list[Commit]) -> None:
    """A branch of that name is left as it is."""
    with pytest.raises(StoreError, match="already"):
        store.refs.create("s", MAIN, EMPTY)
    assert trunk == store.read("s")


@pytest.mark.parametrize(
    ("at", "via"),
    [
        (Head("0" * 64, 3), MAIN),
        (Head("0" * 64, 3), ""),
        (Head("0" * 64, 99), MAIN),
        (Head("0" * 64, -1), MAIN),
        (Head("", 4), MAIN),
        (Head("no hash", 4), ""),
    ],
)
def test_a_branch_stands_on_a_commit_that_is_there(store: Store, trunk: list[Commit], at: Head, via: str) -> None:
    """A place that is not of the history is refused, for a new branch, a moved one and a fork; nothing is made."""
    with pytest.raises(NotFoundError):
        store.refs.create("s", "b", at, via)
    with pytest.raises(NotFoundError):
        store.refs.move("s", MAIN, head_of(trunk), at, via)
    with pytest.raises(NotFoundError):
        store.create_session("t", "t", 1, Origin("s", via, at))
    assert [MAIN] == [branch.name for branch in store.refs.list("s")]
    assert (trunk, None) == (store.read("s"), store.find_session("t"))


def test_a_commit_of_another_branch_is_not_on_this_one(store: Store, trunk: list[Commit]) -> None:
    """``via`` is believed only where it is true, also for a commit of the right depth."""
    store.refs.create("s", "b", _head(trunk, 4), MAIN)
    own = put_on(store, "s", "b", user_step("5", "elsewhere"))
    for at, via in ((_head(trunk, 5), "b"), (head_of(own), MAIN)):
        with pytest.raises(NotFoundError, match="is not on branch"):
            store.refs.create("s", "c", at, via)
    with pytest.raises(NotFoundError, match="has no branch"):
        store.refs.create("s", "c", head_of(own), "nowhere")


def test_a_detached_commit_can_be_branched_from(store: Store, trunk: list[Commit]) -> None:
    """After a reset, the commits left behind are found by their hash, read, and branched from."""
    store.refs.move("s", MAIN, head_of(trunk), _head(trunk, 4), MAIN)
    lost = trunk[8]
    assert ("s", lost) == store.find_commit(lost.hash[:12], "s")
    assert trunk[:9] == store.read_to("s", lost.hash)
    store.refs.create("s", "rescued", Head(lost.hash, lost.seq))
    more = put_on(store, "s", "rescued", user_step("5", "go on"))
    assert trunk[:9] + more == store.read("s", branch="rescued")
    assert trunk[:5] == store.read("s")
    assert [] == list(store.fsck())


def test_a_reset_branch_grows_beside_what_it_left(store: Store, trunk: list[Commit]) -> None:
    """An append after a reset overwrites nothing, and the branch can be moved back."""
    store.refs.move("s", MAIN, head_of(trunk), _head(trunk, 4), MAIN)
    other = put(store, "s", user_step("5", "instead"))
    assert trunk[:5] + other == store.read("s")
    store.refs.move("s", MAIN, head_of(other), head_of(trunk))
    more = put(store, "s", user_step("6", "back again"))
    assert trunk + more == store.read("s")
    store.refs.move("s", MAIN, head_of(more), EMPTY)
    again = put(store, "s", user_step("7", "from the start"))
    assert again == store.read("s")
    assert [] == list(store.fsck())


def test_a_branch_moves_forward(store: Store, trunk: list[Commit]) -> None:
    """A fast-forward is a move to another branch's head."""
    store.refs.create("s", "b", head_of(trunk), MAIN)
    own = put_on(store, "s", "b", user_step("5", "ahead"))
    store.refs.move("s", MAIN, head_of(trunk), head_of(own), "b")
    assert trunk + own == store.read("s")


def test_a_branch_that_moved_is_not_moved_again(store: Store, trunk: list[Commit]) -> None:
    """``move`` and ``delete`` compare the head first, and say where it is."""
    store.refs.create("s", "b", head_of(trunk), MAIN)
    calls: list[Callable[[], None]] = [
        lambda: store.refs.move("s", "b", _head(trunk, 4), EMPTY),
        lambda: store.refs.delete("s", "b", EMPTY),
    ]
    for call in calls:
        with pytest.raises(HeadMovedError) as caught:
            call()
        assert trunk[-1].hash == caught.value.details["actual"]
    assert trunk == store.read("s", branch="b")


def test_a_deleted_branch_is_forgotten(store: Store, trunk: list[Commit]) -> None:
    """Its name is free, its commits are still found by hash; the current branch cannot be deleted."""
    store.refs.create("s", "b", _head(trunk, 4), MAIN)
    own = put_on(store, "s", "b", user_step("5", "elsewhere"))
    store.refs.delete("s", "b", head_of(own))
    assert [MAIN] == [branch.name for branch in store.refs.list("s")]
    assert trunk[:5] + own == store.read_to("s", own[0].hash)
    with pytest.raises(NotFoundError, match="has no branch 'b'"):
        store.read("s", branch="b")
    store.refs.create("s", "b", EMPTY)
    with pytest.raises(StoreError, match="current branch"):
        store.refs.delete("s", MAIN, head_of(trunk))
    assert [] == list(store.fsck())


def test_a_step_is_known_after_its_branch_is_gone(store: Store, trunk: list[Commit]) -> None:
    """Repeating an append is harmless even where the branch was deleted meanwhile."""
    store.refs.create("s", "b", head_of(trunk), MAIN)
    own = put_on(store, "s", "b", user_step("5", "elsewhere"))
    store.refs.delete("s", "b", head_of(own))
    assert not store.append("s", "5", own, head_of(trunk), "b")
    with pytest.raises(NotFoundError, match="has no branch 'b'"):
        store.append("s", "6", seal(user_step("6"), head_of(own)), head_of(own), "b")


def test_the_current_branch_is_remembered(store: Store, trunk: list[Commit]) -> None:
    """``switch`` changes what a session is listed with, and nothing else."""
    store.refs.create("s", "b", _head(trunk, 4), MAIN)
    store.refs.switch("s", "b")
    expected = SessionInfo("s", "name of s", 1, 2_000, 5, _head(trunk, 4), {}, "b", "s")
    assert [expected] == store.list_sessions()
    assert expected == store.find_session("s")
    assert trunk == store.read("s")
    store.refs.delete("s", MAIN, head_of(trunk))
    with pytest.raises(NotFoundError, match="has no branch"):
        store.refs.switch("s", MAIN)
    assert expected == store.find_session("s")


def test_a_fork_shares_its_parents_history(store: Store, trunk: list[Commit]) -> None:
    """A fork begins with the parent's commits, says where it is from, and never touches the parent."""
    made = store.create_session("t", "fork", 9, Origin("s", at=_head(trunk, 4), purpose="try it shorter"))
    expected = SessionInfo("t", "fork", 9, 2_000, 5, _head(trunk, 4), {}, MAIN, "s", "s", "try it shorter")
    assert expected == made == store.find_session("t")
    before = store.find_session("s")
    own = fill(store, "t", [user_step("5", "elsewhere"), response_step("6")])
    assert trunk[:5] + own == store.read("t")
    assert (trunk, before) == (store.read("s"), store.find_session("s"))
    assert [] == list(store.fsck())


def test_a_fork_at_the_parents_end_leaves_the_end_to_it(store: Store, trunk: list[Commit]) -> None:
    """Both go on from the same commit; the fork does not take the parent's place, whoever is first."""
    for first in ("t", "u"):
        store.create_session(first, first, 9, Origin("s", at=head_of(trunk)))
    theirs = fill(store, "t", [user_step("5", "in the fork")])
    trunk += put(store, "s", user_step("5", "in the parent"))
    others = fill(store, "u", [user_step("5", "in the second fork")])
    assert trunk == store.read("s")
    assert (trunk[:-1] + theirs, trunk[:-1] + others) == (store.read("t"), store.read("u"))
    assert [] == list(store.fsck())


def test_forks_of_forks_are_one_family(store: Store, trunk: list[Commit]) -> None:
    """A fork of a fork reads through both, belongs to the root's family, and may fork before its own commits."""
    store.create_session("t", "t", 9, Origin("s", at=_head(trunk, 4)))
    middle = fill(store, "t", [user_step("5", "middle")])
    store.create_session("u", "u", 10, Origin("t", at=head_of(middle)))
    last = fill(store, "u", [user_step("6", "last")])
    early = store.create_session("v", "v", 11, Origin("u", at=_head(trunk, 2)))
    assert trunk[:5] + middle + last == store.read("u")
    assert trunk[:3] == store.read("v")
    assert ("s", "u", 3) == (early.family, early.parent, early.commits)
    assert [] == list(store.fsck())


def test_a_fork_may_be_of_another_branch(store: Store, trunk: list[Commit]) -> None:
    """``Origin.branch`` names the branch that the place is on; empty, it may be on none."""
    store.refs.create("s", "b", _head(trunk, 4), MAIN)
    own = put_on(store, "s", "b", user_step("5", "elsewhere"))
    with pytest.raises(NotFoundError, match="is not on branch main"):
        store.create_session("t", "t", 9, Origin("s", at=head_of(own)))
    store.create_session("t", "t", 9, Origin("s", "b", head_of(own)))
    store.refs.delete("s", "b", head_of(own))
    store.create_session("u", "u", 9, Origin("s", "", head_of(own)))
    assert trunk[:5] + own == store.read("t") == store.read("u")


@pytest.mark.parametrize("at", [None, EMPTY])
def test_a_child_may_begin_empty(store: Store, trunk: list[Commit], at: Head | None) -> None:
    """A session made from another without its history is of the family and has nothing in it."""
    made = store.create_session("t", "t", 9, Origin("s", at=at, purpose="look it up"))
    assert SessionInfo("t", "t", 9, 9, 0, EMPTY, {}, MAIN, "s", "s", "look it up") == made
    assert fill(store, "t", [user_step("1")]) == store.read("t")
    assert [] == list(store.fsck())


def test_a_fork_of_nobody_is_refused(store: Store) -> None:
    """The origin must be there; an existing session of the name, or a taken id, is told whatever the origin says."""
    with pytest.raises(NotFoundError, match="no session 'nobody'"):
        store.create_session("t", "t", 9, Origin("nobody"))
    made = store.create_session("t", "t", 9)
    assert made == store.create_session("u", "t", 9, Origin("nobody"))
    with pytest.raises(IdTakenError):
        store.create_session("t", "u", 9, Origin("nobody"))


def test_a_hash_is_looked_for_in_the_family(store: Store, trunk: list[Commit]) -> None:
    """The same commit in two families is found in each; a family's prefix is not ambiguous through another's."""
    fill(store, "x", [user_step("1")])
    store.create_session("y", "y", 9, Origin("x"))
    theirs = fill(store, "y", [user_step(str(number), f"text {number}") for number in range(40)])
    assert ("s", trunk[0]) == store.find_commit(trunk[0].hash)
    assert ("s", trunk[0]) == store.find_commit(trunk[0].hash, "s")
    assert ("x", trunk[0]) == store.find_commit(trunk[0].hash, "x")
    assert ("x", trunk[0]) == store.find_commit(trunk[0].hash, "y")
    assert ("s", trunk[5]) == store.find_commit(trunk[5].hash[:16], "s")
    for session, hash in (("s", theirs[7].hash), ("y", trunk[5].hash)):
        with pytest.raises(NotFoundError):
            store.find_commit(hash, session)
        with pytest.raises(NotFoundError):
            store.read_to(session, hash)
    with pytest.raises(NotFoundError, match="no session"):
        store.find_commit(trunk[0].hash, "nobody")


def test_a_commit_that_stands_twice_is_read_where_it_is_the_sessions_own(store: Store, trunk: list[Commit]) -> None:
    """The same step on two branches makes the same commits; either may be branched from, read and gone on with."""
    store.refs.create("s", "b", _head(trunk, 4), MAIN)
    again = seal(user_step("3", time=3_000), _head(trunk, 4))
    assert store.append("s", "again", again, _head(trunk, 4), "b")
    assert trunk[5] == again[0]
    assert trunk[:6] == store.read_to("s", again[0].hash) == store.read("s", branch="b")
    store.create_session("t", "t", 9, Origin("s", "b", head_of(again)))
    own = put(store, "t", user_step("6", "further"))
    assert trunk[:6] + own == store.read("t")
    assert ("s", again[0]) == store.find_commit(again[0].hash, "t")
    assert [] == list(store.fsck())


def test_an_empty_step_on_a_fork_opens_nothing(store: Store, trunk: list[Commit]) -> None:
    """A step without commits is remembered by its session and leaves the branch where it is."""
    store.create_session("t", "t", 9, Origin("s", at=_head(trunk, 4)))
    assert store.append("t", "1", [], _head(trunk, 4))
    assert not store.append("t", "1", [], _head(trunk, 4))
    assert trunk[:5] == store.read("t")
    assert [] == list(store.fsck())


def test_a_merge_has_two_parents(store: Store, trunk: list[Commit]) -> None:
    """A commit with a further parent is stored, read and verified like any other."""
    store.refs.create("s", "b", _head(trunk, 4), MAIN)
    own = put_on(store, "s", "b", user_step("5", "elsewhere"))
    copy = Draft("user", Message("elsewhere"))
    merge = Draft("merge", Merge("b", own[0].hash, trunk[4].hash), parents=(own[0].hash,))
    merged = put(store, "s", Step("merge", (copy, merge), 9_000))
    assert (merged[0].hash, own[0].hash) == merged[1].parents
    assert trunk + merged == store.read("s")
    more = put(store, "s", user_step("6", "after it"))
    assert trunk + merged + more == store.read("s")
    assert [] == list(store.fsck())


def test_a_clock_that_jumps_back_changes_no_order(store: Store) -> None:
    """Commits stand in the order they came in, whatever their times say; ``updated`` is the last one's."""
    commits = fill(store, "s", [user_step("1", time=5_000), response_step("2", time=-7), user_step("3", time=20)])
    store.refs.create("s", "b", _head(commits, 2), MAIN)
    commits += put(store, "s", user_step("4", time=1))
    assert ([5_000, -7, -7, -7, -7, 20, 1], list(range(7))) == (
        [commit.time for commit in store.read("s")],
        [commit.seq for commit in store.read("s")],
    )
    assert [-7, 1] == [branch.updated for branch in store.refs.list("s")]
    assert [] == list(store.fsck())


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.refs.list("nobody"),
        lambda store: store.refs.create("nobody", "b", EMPTY),
        lambda store: store.refs.move("nobody", MAIN, EMPTY, EMPTY),
        lambda store: store.refs.delete("nobody", MAIN, EMPTY),
        lambda store: store.refs.switch("nobody", MAIN),
        lambda store: store.read_to("nobody", "0" * 64),
    ],
)
def test_branches_of_nobody_are_refused(store: Store, call: Callable[[Store], object]) -> None:
    """Every call names the session that is not there."""
    with pytest.raises(NotFoundError, match="there is no session 'nobody'"):
        call(store)


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.refs.move("s", "b", EMPTY, EMPTY),
        lambda store: store.refs.delete("s", "b", EMPTY),
        lambda store: store.refs.switch("s", "b"),
        lambda store: store.read("s", branch="b"),
        lambda store: store.append("s", "1", seal(user_step("1"), EMPTY), EMPTY, "b"),
        lambda store: store.refs.create("s", "c", Head("0" * 64, 0), "b"),
    ],
)
def test_a_branch_that_is_not_there_is_named(store: Store, call: Callable[[Store], object]) -> None:
    """Every call names the branch, and those that there are."""
    store.create_session("s", "s", 1)
    with pytest.raises(NotFoundError, match="has no branch 'b'") as caught:
        call(store)
    assert "main" in caught.value.next_actions[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.refs.list("s"),
        lambda store: store.refs.create("s", "b", EMPTY),
        lambda store: store.refs.move("s", MAIN, EMPTY, EMPTY),
        lambda store: store.refs.delete("s", MAIN, EMPTY),
        lambda store: store.refs.switch("s", MAIN),
        lambda store: store.read_to("s", "0" * 64),
    ],
)
def test_a_closed_store_has_no_branches(store: Store, call: Callable[[Store], object]) -> None:
    """After ``close`` every call raises ``StoreError``."""
    store.create_session("s", "s", 1)
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        call(store)


def test_a_branch_name_must_be_unicode(store: Store) -> None:
    """A lone surrogate is named as the fault; any other text is a name."""
    store.create_session("s", "s", 1)
    with pytest.raises(StoreError, match="not valid Unicode"):
        store.refs.create("s", "\ud83d", EMPTY)
    names = ["Straße ☕", "e\u0301", "\u00e9", "' OR 1=1 --", "", "a\x00b", "feature/x"]
    for name in names:
        store.refs.create("s", name, EMPTY)
        put_on(store, "s", name, user_step(name))
    assert sorted([MAIN, *names]) == [branch.name for branch in store.refs.list("s")]
