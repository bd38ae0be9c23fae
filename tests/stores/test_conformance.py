"""What every store does, whatever it is made of."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest

from tests.stores.samples import chain, fill, put, response_step, user_step
from thinkback.errors import HeadMovedError, NotFoundError, StoreError
from thinkback.log.protocol import SessionInfo, Store
from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Text
from thinkback.model.commits import Draft, Head, Message, Step

NOBODY = "there is no session"


def test_a_new_session_is_empty(store: Store) -> None:
    """A session begins without commits, updated when it was created."""
    made = store.create_session("s-1", "first", 7)
    assert SessionInfo("s-1", "first", 7, 7, 0, Head(), {}, family="s-1") == made
    assert made == store.find_session("first") == store.find_session("s-1")
    assert [] == store.read("s-1")


def test_creating_a_session_again_returns_it_as_it_is(store: Store) -> None:
    """The name decides: the second id and time are ignored."""
    made = store.create_session("s-1", "first", 7)
    assert made == store.create_session("s-2", "first", 9)
    assert [made] == store.list_sessions()


def test_a_session_id_belongs_to_one_name(store: Store) -> None:
    """A new name under an id that is taken is refused, and nothing is made."""
    store.create_session("s-1", "first", 7)
    with pytest.raises(StoreError, match="taken"):
        store.create_session("s-1", "second", 8)
    assert 1 == len(store.list_sessions())


def test_a_name_wins_over_an_id(store: Store) -> None:
    """A session that is named like another one's id is found by that name."""
    store.create_session("a", "b", 1)
    store.create_session("b", "c", 2)
    found = store.find_session("b")
    assert found is not None
    assert "a" == found.id


def test_appended_commits_are_read_in_order(store: Store) -> None:
    """What was appended comes back equal, field by field, in the order of ``seq``."""
    commits = fill(store, "s", [user_step("1"), response_step("2"), user_step("3"), response_step("4")])
    assert commits == store.read("s")
    assert list(range(10)) == [commit.seq for commit in commits]


def test_read_since_gives_only_what_is_later(store: Store) -> None:
    """``since`` is exclusive, and any integer is allowed."""
    commits = fill(store, "s", [response_step(str(n)) for n in range(3)])
    for since in (-5, -1, 0, 4, 10, 11, 99):
        assert [c for c in commits if c.seq > since] == store.read("s", since)


def test_a_step_is_stored_once(store: Store) -> None:
    """The second append of a step is answered with False, even when the head has moved on."""
    store.create_session("s", "s", 1)
    first, second = chain([user_step("1"), response_step("2")])
    assert store.append("s", "1", first, Head())
    assert not store.append("s", "1", first, Head())
    assert store.append("s", "2", second, head_of(first))
    assert not store.append("s", "1", first, Head())
    assert first + second == store.read("s")


def test_step_ids_belong_to_their_session(store: Store) -> None:
    """The same step id, and even the same commits, may be appended to two sessions."""
    for session in ("s", "t"):
        fill(store, session, [user_step("1")])
    assert store.read("s") == store.read("t")


def test_an_append_on_an_old_head_is_refused(store: Store) -> None:
    """Whoever comes second gets ``HeadMovedError`` with both heads, and nothing is stored."""
    commits = fill(store, "s", [user_step("1")])
    late = seal(user_step("2", "another"), Head())
    with pytest.raises(HeadMovedError) as caught:
        store.append("s", "2", late, Head())
    assert ("", commits[-1].hash) == (caught.value.details["expected"], caught.value.details["actual"])
    assert commits == store.read("s")
    assert store.append("s", "2", seal(user_step("2", "another"), head_of(commits)), head_of(commits))


def test_an_append_on_a_head_that_never_was_is_refused(store: Store) -> None:
    """A head of the right depth but another hash is not the head."""
    fill(store, "s", [user_step("1")])
    wrong = Head("0" * 64, 0)
    with pytest.raises(HeadMovedError):
        store.append("s", "2", seal(user_step("2"), wrong), wrong)


def test_commits_must_stand_on_the_expected_head(store: Store) -> None:
    """Commits that were sealed elsewhere, or left out of the middle, do not enter the log."""
    store.create_session("s", "s", 1)
    commits = seal(response_step("1"), Head())
    for wrong in (commits[1:], [commits[0], *commits[2:]], list(reversed(commits))):
        with pytest.raises(StoreError, match="does not follow"):
            store.append("s", "1", wrong, Head())
    assert [] == store.read("s")


def test_a_step_without_commits_is_remembered(store: Store) -> None:
    """An empty step changes no head but is known afterwards."""
    store.create_session("s", "s", 1)
    assert store.append("s", "1", [], Head())
    assert not store.append("s", "1", [], Head())
    assert [] == list(store.fsck())


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.read("nobody"),
        lambda store: store.append("nobody", "1", seal(user_step("1"), Head()), Head()),
        lambda store: store.write_settings("nobody", {"a": "b"}),
    ],
)
def test_an_unknown_session_is_named(store: Store, call: Callable[[Store], object]) -> None:
    """Every call on a session that is not there says so."""
    with pytest.raises(NotFoundError, match=NOBODY):
        call(store)
    assert store.find_session("nobody") is None


def test_sessions_are_listed_last_updated_first(store: Store) -> None:
    """An append moves its session to the front; counts and heads are those of its branch."""
    commits = fill(store, "old", [user_step("1", time=50)])
    store.create_session("new", "new", 20)
    assert ["old", "new"] == [info.id for info in store.list_sessions()]
    fill(store, "newest", [user_step("1", time=60)])
    assert ["newest", "old", "new"] == [info.id for info in store.list_sessions()]
    assert SessionInfo("old", "name of old", 1, 50, 1, head_of(commits), family="old") == store.find_session("old")


def test_settings_are_replaced_as_a_whole(store: Store) -> None:
    """The session layer holds what was written last, and is no part of the history."""
    before = store.create_session("s", "s", 1)
    store.write_settings("s", {"reasoning.enabled": "true", "ключ": "\ud83d 値"})
    store.write_settings("s", {"reasoning.effort": "high \ud83d"})
    found = store.find_session("s")
    assert found is not None
    assert {"reasoning.effort": "high \ud83d"} == found.settings
    assert (before.updated, before.head) == (found.updated, found.head)


def test_a_commit_is_found_by_a_prefix_of_its_hash(store: Store) -> None:
    """The whole hash, an unambiguous beginning, and capitals find the commit and its session."""
    fill(store, "other", [user_step("1", "elsewhere")])
    commits = fill(store, "s", [user_step(str(n), f"text {n}") for n in range(40)])
    wanted = commits[17]
    for prefix in (wanted.hash, wanted.hash[:21], wanted.hash[:20].upper()):
        assert ("s", wanted) == store.find_commit(prefix)


def test_an_ambiguous_prefix_lists_what_it_fits(store: Store) -> None:
    """A prefix of several commits is refused with their hashes."""
    commits = fill(store, "s", [user_step(str(n), f"text {n}") for n in range(40)])
    digit = max("0123456789abcdef", key=lambda d: sum(commit.hash[0] == d for commit in commits))
    fitting = sorted(commit.hash for commit in commits if commit.hash[0] == digit)
    with pytest.raises(NotFoundError, match="several") as caught:
        store.find_commit(digit)
    assert fitting == caught.value.details["hashes"]


@pytest.mark.parametrize("prefix", ["", "xyz", "f" * 64, "0" * 65, "12 4", "é"])
def test_a_prefix_of_nothing_is_not_found(store: Store, prefix: str) -> None:
    """What is not a hash, or nobody's, raises ``NotFoundError``."""
    fill(store, "s", [user_step("1")])
    with pytest.raises(NotFoundError):
        store.find_commit(prefix)


def test_a_hash_that_two_sessions_share_is_found_in_the_first(store: Store) -> None:
    """Two sessions may begin with the very same commit; it is not ambiguous."""
    commits = fill(store, "s", [user_step("1")])
    fill(store, "t", [user_step("1")])
    assert ("s", commits[0]) == store.find_commit(commits[0].hash)


@pytest.mark.parametrize("text", ["half an emoji \ud83d", "\udc80", "naïve ☃ 𝄞", "\x00\x1f\n", "", "a" * 513])
def test_text_comes_back_as_it_was(store: Store, text: str) -> None:
    """Lone surrogates, control characters and text on either side of compression survive."""
    commits = fill(store, "s", [response_step("1", text, text), user_step("2", text)])
    assert commits == store.read("s")
    assert [] == list(store.fsck())


def test_a_large_payload_comes_back_as_it_was(store: Store) -> None:
    """Megabytes, compressible or not, are one commit like any other."""
    noise = "".join(chr(0x4E00 + n * n % 20_000) for n in range(500_000))
    commits = fill(store, "s", [user_step("1", "x" * 3_000_000), user_step("2", noise)])
    assert commits == store.read("s")


def test_a_step_may_bring_a_whole_history(store: Store) -> None:
    """Thousands of commits, as an import brings them, are one step like any other."""
    drafts = tuple(Draft("user", Message(f"text {n}")) for n in range(7_000))
    (before, *_) = commits = fill(store, "s", [user_step("1"), Step("2", drafts, 1), user_step("3")])
    assert commits == store.read("s")
    assert not store.append("s", "2", commits[1:-1], head_of([before]))
    assert [] == list(store.fsck())


def test_names_may_be_any_unicode(store: Store) -> None:
    """Names, ids and step ids are kept as given, and told apart without normalising."""
    names = ["Straße ☕", "e\u0301", "\u00e9", "' OR 1=1 --", "名前", "a\x00b"]
    for name in names:
        store.create_session(f"id {name}", name, 1)
        put(store, name if name.startswith("id ") else f"id {name}", user_step(f"step {name}"))
    assert sorted(names) == sorted(info.name for info in store.list_sessions())


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.create_session("s", "\ud83d", 1),
        lambda store: store.create_session("\ud83d", "s", 1),
        lambda store: store.find_session("\ud83d"),
        lambda store: store.append("s", "\ud83d", seal(user_step("1"), Head()), Head()),
    ],
)
def test_names_that_are_not_unicode_are_refused(store: Store, call: Callable[[Store], object]) -> None:
    """A lone surrogate in a name or id is named as the fault."""
    with pytest.raises(StoreError, match="not valid Unicode"):
        call(store)


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.read("s"),
        lambda store: store.append("s", "2", seal(user_step("2"), Head()), Head()),
        lambda store: store.create_session("t", "t", 1),
        lambda store: store.find_session("s"),
        lambda store: store.list_sessions(),
        lambda store: store.write_settings("s", {}),
        lambda store: store.find_commit("0"),
        lambda store: list(store.fsck()),
    ],
)
def test_a_closed_store_says_so(store: Store, call: Callable[[Store], object]) -> None:
    """After ``close``, which may be called twice, every call raises ``StoreError`` and leaves no connection open."""
    fill(store, "s", [user_step("1")])
    store.close()
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        call(store)
    gc.collect()  # from Python 3.13 on, a connection that nobody closed fails the test it is collected in


def test_threads_append_and_read_without_loss(store: Store) -> None:
    """Eight threads on sessions of their own and one they fight for: every step is there once, in one chain."""
    store.create_session("shared", "shared", 1)
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            fill(store, f"own {worker}", [response_step(f"{worker}-{n}") for n in range(8)])
            for n in range(8):
                _append_anyhow(store, "shared", user_step(f"{worker}-{n}"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failures
    assert [32] * 8 == [len(store.read(f"own {worker}")) for worker in range(8)]
    assert 64 == len(store.read("shared"))
    assert [] == list(store.fsck())


def test_fsck_names_a_response_whose_blocks_are_not_all_there(store: Store) -> None:
    """A response of two blocks that has one, twice one, or one too many is a problem."""
    whole = response_step("1").drafts
    spare = Draft("assistant", Text("more"), whole[0].response, 2)
    for session, drafts in {"few": whole[:2], "twice": (*whole[:2], whole[1]), "many": (*whole, spare)}.items():
        fill(store, session, [Step("1", tuple(drafts), 1)])
    found = [problem.what for problem in store.fsck()]
    assert 3 == len([what for what in found if "has 2 blocks" in what]) == len(found)


def test_fsck_names_a_block_without_its_response(store: Store) -> None:
    """A block before its response, or of none, is a problem."""
    fill(store, "s", [Step("1", response_step("1").drafts[1:], 1)])
    assert 2 == len([problem for problem in store.fsck() if "does not come before it" in problem.what])


def test_fsck_names_a_commit_whose_hash_is_wrong(store: Store) -> None:
    """A commit that was sealed with another time does not verify."""
    store.create_session("s", "s", 1)
    (commit,) = seal(Step("1", (Draft("system", Message("Be brief.")),), 1), Head())
    (other,) = seal(Step("1", (Draft("system", Message("Be brief.")),), 2), Head())
    wrong = type(commit)(other.hash, (), 0, commit.kind, commit.value, commit.payload, commit.digest, commit.time)
    store.append("s", "1", [wrong], Head())
    (problem,) = store.fsck()
    assert (f"its fields hash to {commit.hash}", True) == (problem.what, other.hash in problem.where)


def _append_anyhow(store: Store, session: str, step: Step) -> None:
    """Append on whatever the head is, as a writer does that lost a race."""
    while True:
        info = store.find_session(session)
        assert info is not None
        try:
            assert store.append(session, step.id, seal(step, info.head), info.head)
        except HeadMovedError:
            continue
        return
