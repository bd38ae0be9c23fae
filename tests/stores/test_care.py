"""Erasing, deleting and collecting, in every store: what goes, what stays, and that the log verifies afterwards."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.stores.samples import fill, put, put_on, response_step, user_step
from thinkback.errors import NotFoundError, StoreError
from thinkback.log.protocol import MAIN, About, Origin, Removed, Store
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.commits import LEFT_OUT, Commit, Draft, Erased, Head, Merge, Message, Step
from thinkback.stores import open_store
from thinkback.stores.care import cut, suspects
from thinkback.stores.reachability import pieces, unreached
from thinkback.stores.store import LogStore

EMPTY = Head()
FOREVER = 10**9
TOMB = Erased("asked to", 9_000, '{"type":"message","text":"[gone]"}')


@pytest.fixture
def trunk(store: Store) -> list[Commit]:
    """The session ``s``: two questions with their answers, ten commits, the oldest at 1,000, the newest at 4,000."""
    steps = [user_step("1"), response_step("2"), user_step("3", time=3_000), response_step("4", time=4_000)]
    return fill(store, "s", steps)


def _head(commits: list[Commit], seq: int) -> Head:
    return head_of(commits[: seq + 1])


def _erased(commit: Commit, tomb: Erased = TOMB) -> Commit:
    payload = canonical.encode(tomb)
    fields = {name: getattr(commit, name) for name in commit.__struct_fields__}
    return Commit(**{**fields, "value": tomb, "payload": payload})


def _problems(store: Store) -> list[str]:
    return [f"{problem.where}: {problem.what}" for problem in store.fsck()]


@pytest.mark.parametrize("seqs", [[0], [1], [2, 3], [9], list(range(10))])
def test_an_erased_payload_is_gone_and_the_chain_verifies(store: Store, trunk: list[Commit], seqs: list[int]) -> None:
    """A tombstone is read in its place, with the same hash and digest; the next append stands on it as before."""
    assert len(seqs) == store.care.erase("s", {trunk[seq].hash: canonical.encode(TOMB) for seq in seqs})
    expected = [_erased(commit) if commit.seq in seqs else commit for commit in trunk]
    assert expected == store.read("s")
    assert ("s", expected[seqs[0]]) == store.find_commit(trunk[seqs[0]].hash)
    assert [] == _problems(store)
    expected += put(store, "s", user_step("5"))
    assert expected == store.read("s")


def test_the_epoch_tells_of_what_was_erased_and_deleted(store: Store, trunk: list[Commit]) -> None:
    """Of that alone, also where a fork holds all that a deleted session had."""
    store.create_session("fork", "fork", 1, Origin("s", at=head_of(trunk)))
    epochs = [store.epoch()]
    put(store, "s", user_step("5"))
    store.describe("s", About("program"))
    assert epochs == [store.epoch()]
    store.care.erase("s", {trunk[0].hash: canonical.encode(TOMB)})
    epochs.append(store.epoch())
    store.care.delete_session("fork")
    epochs.append(store.epoch())
    store.care.delete_session("s")
    epochs.append(store.epoch())
    assert epochs == sorted(set(epochs))


def test_a_tombstone_may_be_large_and_replaced(store: Store, trunk: list[Commit]) -> None:
    """What is left of a payload is kept, however long; erasing again puts another tombstone there."""
    large = Erased("a pattern", 1, '{"type":"message","text":"' + "left " * 500 + '"}')
    for tomb in (large, TOMB):
        store.care.erase("s", {trunk[2].hash: canonical.encode(tomb)})
        assert _erased(trunk[2], tomb) == store.read("s")[2]
        assert [] == _problems(store)


def test_what_a_family_shares_is_erased_once(store: Store, trunk: list[Commit]) -> None:
    """Forks and branches see the tombstone, copies of the commit are erased too, and another family keeps its own."""
    store.create_session("t", "t", 9, Origin("s", at=_head(trunk, 4)))
    copy = seal(user_step("3", time=3_000), _head(trunk, 4))
    assert store.append("t", "again", copy, _head(trunk, 4))
    stranger = fill(store, "x", [user_step("1")])
    assert (trunk[0], trunk[5]) == (stranger[0], copy[0])
    store.care.erase("t", {trunk[0].hash: canonical.encode(TOMB), trunk[5].hash: canonical.encode(TOMB)})
    assert (TOMB, TOMB) == (store.read("s")[0].value, store.read("s")[5].value)
    assert (TOMB, TOMB) == (store.read("t")[0].value, store.read("t")[5].value)
    assert stranger == store.read("x")
    assert [] == _problems(store)


@pytest.mark.parametrize("payload", [b"", b"{", canonical.encode(Message("not erased")), b'{"type":"erased"}'])
def test_only_a_tombstone_may_take_a_payloads_place(store: Store, trunk: list[Commit], payload: bytes) -> None:
    """Anything else is refused, and nothing is changed."""
    with pytest.raises(StoreError, match="not a tombstone"):
        store.care.erase("s", {trunk[1].hash: canonical.encode(TOMB), trunk[0].hash: payload})
    assert trunk == store.read("s")


@pytest.mark.parametrize("hash", ["0" * 64, "no hash"])
def test_erasing_what_is_not_there_changes_nothing(store: Store, trunk: list[Commit], hash: str) -> None:
    """One hash that the family does not hold refuses them all."""
    with pytest.raises(NotFoundError, match="no commit"):
        store.care.erase("s", {trunk[1].hash: canonical.encode(TOMB), hash: canonical.encode(TOMB)})
    assert trunk == store.read("s")
    assert 0 == store.care.erase("s", {})


def test_an_erased_payload_may_be_appended(store: Store, trunk: list[Commit]) -> None:
    """Commits that come from elsewhere without their payloads are stored under the hashes they have."""
    store.create_session("copy", "copy", 1)
    bare = [_erased(commit) if commit.seq % 2 else commit for commit in trunk]
    assert store.append("copy", "import", bare, EMPTY)
    assert bare == store.read("copy")
    assert [] == _problems(store)


def test_a_deleted_session_is_gone(store: Store, trunk: list[Commit]) -> None:
    """Where nothing stands on it, all of it goes, with its branches; id and name are free again."""
    store.refs.create("s", "b", _head(trunk, 4), MAIN)
    put_on(store, "s", "b", user_step("5", "elsewhere"))
    others = fill(store, "x", [user_step("1")])
    assert 11 == store.care.delete_session("s")
    assert ["x"] == [info.id for info in store.list_sessions()]
    assert (None, None) == (store.find_session("s"), store.find_session("name of s"))
    for call in (lambda: store.read("s"), lambda: store.care.delete_session("s"), lambda: store.refs.list("s")):
        with pytest.raises(NotFoundError, match="no session"):
            call()
    with pytest.raises(NotFoundError):
        store.find_commit(trunk[5].hash)
    assert others == store.read("x")
    assert [] == _problems(store)
    assert trunk[:5] == fill(store, "s", [user_step("1"), response_step("2")])
    assert [] == _problems(store)


def test_what_forks_stand_on_stays_up_to_there(store: Store, trunk: list[Commit]) -> None:
    """A fork of a deleted session reads as before; what only the deleted one had is gone."""
    store.create_session("t", "t", 9, Origin("s", at=_head(trunk, 4)))
    own = fill(store, "t", [user_step("5", "elsewhere")])
    store.create_session("u", "u", 9, Origin("t", at=_head(trunk, 0)))
    assert 5 == store.care.delete_session("s")
    assert trunk[:5] + own == store.read("t")
    assert trunk[:1] == store.read("u")
    with pytest.raises(NotFoundError):
        store.find_commit(trunk[5].hash)
    assert ("t", trunk[2]) == store.find_commit(trunk[2].hash) == store.find_commit(trunk[2].hash, "u")
    info = store.find_session("t")
    assert info is not None
    assert ("s", "s") == (info.family, info.parent)
    assert [] == _problems(store)
    own += put(store, "t", response_step("6"))
    assert trunk[:5] + own == store.read_to("u", own[-1].hash)


def test_a_deleted_sessions_name_is_free_and_its_id_is_not(store: Store, trunk: list[Commit]) -> None:
    """While something descends from it, the id belongs to it; afterwards nothing is left."""
    store.create_session("t", "t", 9, Origin("s", at=_head(trunk, 4)))
    store.create_session("u", "u", 9, Origin("t"))
    store.care.delete_session("s")
    store.care.delete_session("t")
    for id in "st":
        with pytest.raises(StoreError, match="is taken"):
            store.create_session(id, "another name", 1)
        with pytest.raises(NotFoundError):
            store.create_session("v", "v", 1, Origin(id))
    assert "x" == store.create_session("x", "name of s", 1).id
    assert 0 == store.care.delete_session("u")
    for id in "stu":
        store.create_session(id, f"new {id}", 1)
    assert {"s", "t", "u", "x"} == {info.family for info in store.list_sessions()}
    assert [] == _problems(store)


def test_the_last_fork_takes_what_was_kept_for_it(store: Store, trunk: list[Commit]) -> None:
    """What a deleted session left to its fork goes with the fork."""
    store.create_session("t", "t", 9, Origin("s", at=_head(trunk, 4)))
    assert 5 == store.care.delete_session("s")
    assert 5 == store.care.delete_session("t")
    assert [] == store.list_sessions()
    assert (0, 0) == (store.care.gc(FOREVER).commits, store.care.gc(FOREVER).bytes)
    assert [] == _problems(store)


def test_deleting_a_fork_leaves_its_parent(store: Store, trunk: list[Commit]) -> None:
    """What is shared is the parent's."""
    store.create_session("t", "t", 9, Origin("s", at=_head(trunk, 4)))
    fill(store, "t", [user_step("5", "elsewhere")])
    assert 1 == store.care.delete_session("t")
    assert trunk == store.read("s")
    assert [] == _problems(store)


def test_a_fork_inside_a_response_keeps_the_response_whole(store: Store, trunk: list[Commit]) -> None:
    """Half a response never stays in a log: it is kept to its last block."""
    store.create_session("t", "t", 9, Origin("s", at=_head(trunk, 6)))
    assert 1 == store.care.delete_session("s")
    assert trunk[:7] == store.read("t")
    assert trunk[:9] == store.read_to("t", trunk[8].hash)
    assert [] == _problems(store)


def test_gc_takes_what_no_branch_reaches(store: Store, trunk: list[Commit]) -> None:
    """After a reset and a deleted branch, what they left goes, at the ends of segments and as whole segments."""
    store.refs.create("s", "b", _head(trunk, 4), MAIN)
    own = put_on(store, "s", "b", user_step("5", "elsewhere"))
    store.refs.create("s", "c", head_of(own), "b")
    put_on(store, "s", "b", user_step("6", "more"))
    lost = put_on(store, "s", "c", user_step("7", "and more"))
    store.refs.delete("s", "c", head_of(lost))
    store.refs.move("s", MAIN, head_of(trunk), _head(trunk, 4), MAIN)
    kept = store.read("s", branch="b")
    found = store.care.gc(FOREVER, dry_run=True)
    assert (6, True) == (found.commits, found.bytes > 0)
    assert trunk == store.read_to("s", trunk[-1].hash)
    assert found == store.care.gc(FOREVER)
    assert (trunk[:5], kept) == (store.read("s"), store.read("s", branch="b"))
    for gone in (trunk[5], trunk[9], lost[0]):
        with pytest.raises(NotFoundError):
            store.find_commit(gone.hash)
    assert 0 == store.care.gc(FOREVER).commits
    assert [] == _problems(store)
    assert trunk[:5] + put(store, "s", user_step("8", "on")) == store.read("s")
    assert kept + put_on(store, "s", "b", user_step("9", "on")) == store.read("s", branch="b")
    assert [] == _problems(store)


@pytest.mark.parametrize(("older_than", "gone"), [(1_000, 0), (4_000, 0), (4_001, 5), (FOREVER, 5)])
def test_gc_leaves_what_is_young(store: Store, trunk: list[Commit], older_than: int, gone: int) -> None:
    """A commit that is not older than the time stays, with everything it stands on."""
    store.refs.move("s", MAIN, head_of(trunk), _head(trunk, 4), MAIN)
    assert gone == store.care.gc(older_than).commits
    assert trunk[: 10 - gone] == store.read_to("s", trunk[9 - gone].hash)
    assert [] == _problems(store)


def test_gc_leaves_what_a_young_commit_stands_on(store: Store, trunk: list[Commit]) -> None:
    """A young commit that nothing reaches keeps the old one before it, in another segment."""
    store.refs.create("s", "b", head_of(trunk), MAIN)
    put(store, "s", user_step("5", "the line goes on", time=1))
    young = put_on(store, "s", "b", user_step("6", "young", time=8_000))
    store.refs.delete("s", "b", head_of(young))
    store.refs.move("s", MAIN, Head(store.read("s")[-1].hash, 10), EMPTY)
    assert 1 == store.care.gc(5_000).commits
    assert trunk + young == store.read_to("s", young[0].hash)
    assert 11 == store.care.gc(FOREVER).commits
    assert [] == _problems(store)


def test_gc_leaves_what_forks_stand_on(store: Store, trunk: list[Commit]) -> None:
    """A fork, and a branch that another session's segment follows, hold what they need of the parent."""
    store.create_session("t", "t", 9, Origin("s", at=_head(trunk, 4)))
    own = fill(store, "t", [user_step("5", "elsewhere")])
    store.create_session("u", "u", 9, Origin("s", at=_head(trunk, 5)))
    store.refs.move("s", MAIN, head_of(trunk), EMPTY)
    assert 4 == store.care.gc(FOREVER).commits
    assert (trunk[:5] + own, trunk[:6]) == (store.read("t"), store.read("u"))
    assert [] == store.read("s")
    assert [] == _problems(store)


def test_gc_leaves_what_was_merged(store: Store, trunk: list[Commit]) -> None:
    """The second parent of a merge is reached, with the line it ends."""
    store.refs.create("s", "b", _head(trunk, 4), MAIN)
    theirs = put_on(store, "s", "b", user_step("5", "elsewhere")) + put_on(store, "s", "b", response_step("6"))
    tail = put_on(store, "s", "b", user_step("7", "after the merge"))
    merge = Draft("merge", Merge("b", theirs[-1].hash, trunk[4].hash), parents=(theirs[-1].hash,))
    merged = put(store, "s", Step("merge", (Draft("user", Message("elsewhere")), merge), 9_000))
    store.refs.delete("s", "b", head_of(tail))
    assert 1 == store.care.gc(FOREVER).commits
    assert trunk[:5] + theirs == store.read_to("s", theirs[-1].hash)
    store.refs.move("s", MAIN, head_of(merged), head_of(merged[:1]), MAIN)
    assert 6 == store.care.gc(FOREVER).commits
    assert trunk + merged[:1] == store.read("s")
    assert [] == _problems(store)


def test_steps_that_were_collected_may_be_stored_again(store: Store, trunk: list[Commit]) -> None:
    """A step whose commits are gone is unknown; one that is still there in part, or had none, is known."""
    assert store.append("s", "empty", [], head_of(trunk))
    store.refs.move("s", MAIN, head_of(trunk), _head(trunk, 2), MAIN)
    assert 6 == store.care.gc(FOREVER).commits
    with pytest.raises(StoreError):
        store.append("s", "4", trunk[6:], _head(trunk, 5))
    assert not store.append("s", "2", trunk[1:5], _head(trunk, 0))
    assert not store.append("s", "empty", [], _head(trunk, 2))
    store.refs.move("s", MAIN, _head(trunk, 2), EMPTY)
    assert 4 == store.care.gc(FOREVER).commits
    assert not store.append("s", "empty", [], EMPTY)
    assert store.append("s", "1", trunk[:1], EMPTY)
    assert [] == _problems(store)


def test_nothing_is_collected_from_a_log_in_order(store: Store, trunk: list[Commit]) -> None:
    """Branches, forks and empty sessions are not taken for something left behind."""
    store.refs.create("s", "b", EMPTY)
    store.create_session("t", "t", 9, Origin("s"))
    store.create_session("u", "u", 9, Origin("s", at=_head(trunk, 0)))
    assert (0, 0) == (store.care.gc(FOREVER).commits, store.care.gc(FOREVER).bytes)
    for session, branch in (("s", "b"), ("t", MAIN), ("u", MAIN)):
        put_on(store, session, branch, user_step("7", session))
    assert [] == _problems(store)


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.care.erase("s", {}),
        lambda store: store.care.ends("s"),
        lambda store: store.care.delete_session("s"),
        lambda store: store.care.gc(0),
        lambda store: store.care.gc(0, dry_run=True),
        lambda store: store.care.backup("/nowhere/copy.db"),
    ],
)
def test_a_closed_store_is_not_cared_for(store: Store, call: Callable[[Store], object]) -> None:
    """After ``close`` every call raises ``StoreError``."""
    store.create_session("s", "s", 1)
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        call(store)


def test_nobody_is_not_cared_for(store: Store) -> None:
    """An unknown session is named."""
    calls: list[Callable[[], object]] = [
        lambda: store.care.erase("nobody", {}),
        lambda: store.care.ends("nobody"),
        lambda: store.care.delete_session("nobody"),
    ]
    for call in calls:
        with pytest.raises(NotFoundError, match="no session 'nobody'"):
            call()


def test_the_ends_of_a_session_lead_to_all_it_stored(store: Store, trunk: list[Commit]) -> None:
    """One for each segment: those of branches, and those that a reset or a deleted branch left; none of a fork's."""
    store.refs.create("s", "b", _head(trunk, 4), MAIN)
    own = put_on(store, "s", "b", user_step("5", "elsewhere"))
    store.refs.delete("s", "b", head_of(own))
    store.refs.move("s", MAIN, head_of(trunk), _head(trunk, 2), MAIN)
    store.refs.create("s", "empty", EMPTY)
    store.create_session("t", "t", 9, Origin("s", "", _head(trunk, 4)))
    assert [] == store.care.ends("t")
    theirs = fill(store, "t", [user_step("6", "in the fork")])
    assert [head_of(theirs)] == store.care.ends("t")
    assert {head_of(trunk), head_of(own)} == set(store.care.ends("s"))


def _opened(place: str) -> LogStore:
    store = open_store(place)
    assert isinstance(store, LogStore)
    return store


def test_a_place_that_is_taken_again_is_not_cut(place: str) -> None:
    """What somebody branched from, or appended, after the plan was made stays."""
    store = _opened(place)
    commits = fill(store, "s", [user_step("1"), response_step("2"), user_step("3"), response_step("4")])
    store.refs.create("s", "b", head_of(commits[:1]), MAIN)
    store.refs.move("s", MAIN, head_of(commits), head_of(commits[:5]), MAIN)
    read, write = store.database.read, store.database.write
    (within,) = read(suspects)
    (spare,) = read(unreached, within, FOREVER)
    store.refs.create("s", "c", head_of(commits[:7]))
    assert Removed(0, 0) == write(cut, within, spare.cut, FOREVER)
    store.refs.delete("s", "c", head_of(commits[:7]))
    assert Removed(0, 0) == write(cut, within, spare.cut, 1_000)
    assert spare.removed == write(cut, within, spare.cut, FOREVER)
    assert commits[:5] == store.read("s")
    assert [] == list(store.fsck())
    store.close()


def test_a_long_end_is_cut_in_pieces(place: str) -> None:
    """Each piece leaves whole responses and whole steps, whichever is the last that was made."""
    store = _opened(place)
    commits = fill(store, "s", [response_step(f"{number}") for number in range(10)])
    store.refs.move("s", MAIN, head_of(commits), Head())
    read, write = store.database.read, store.database.write
    (within,) = read(suspects)
    (spare,) = read(unreached, within, FOREVER)
    left = []
    for piece in read(pieces, within, spare, 7):
        write(cut, within, piece)
        assert [] == list(store.fsck())
        left.append([head.seq for head in store.care.ends("s")])
    assert [[34], [27], [22], [14], [6], []] == left
    store.close()


def test_what_an_export_left_out_is_put_back(store: Store, trunk: list[Commit]) -> None:
    """The whole payload, which the hash proves, or more of it; what is neither is refused, and the log verifies."""
    stone = _erased(trunk[0], Erased(LEFT_OUT, 9_000))
    store.care.erase("s", {trunk[0].hash: stone.payload, trunk[1].hash: stone.payload})
    part = _erased(trunk[1])
    store.care.restore("s", [trunk[0], part])
    assert [trunk[0], part, *trunk[2:]] == store.read("s")
    assert [] == _problems(store)
    forged = msgspec.structs.replace(trunk[0], value=Message("forged"), payload=canonical.encode(Message("forged")))
    with pytest.raises(StoreError, match="not what its hash is of"):
        store.care.restore("s", [forged])
    absent = seal(Step("9", (Draft("user", Message("elsewhere")),), 1), EMPTY)
    with pytest.raises(NotFoundError):
        store.care.restore("s", absent)
