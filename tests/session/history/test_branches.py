"""``session.branches``: where a session stands, and what is done to its lines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.log.build import texts
from tests.session.chats import DEFINITION, KEY, get_weather, kinds, open_session, refusals, statuses
from thinkback.drive.hooks import Hooks
from thinkback.errors import (
    BranchError,
    DetachedError,
    HeadMovedError,
    MergeConflictError,
    NotFoundError,
    OpenTurnError,
    StoreError,
    Veto,
)
from thinkback.log.merge import MergeResult
from thinkback.model.blocks import Origin
from thinkback.model.commits import Commit, Draft, Priority, Response
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, Step


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionStore]:
    """An open log of each kind."""
    with thinkback.open(":memory:" if request.param == "memory" else tmp_path / "log.db") as opened:
        yield opened


@pytest.fixture
def session(store: SessionStore) -> Session:
    """A session with one turn by hand."""
    made = store.session("chat")
    turn(made, "q", "a")
    return made


def turn(session: Session, question: str, answer: str) -> Commit:
    """A question and its answer, by hand; returns the answer."""
    session.commit(question)
    return session.commit(answer, kind="assistant")


def said(session: Session) -> list[str]:
    return texts(session.log())


def names(session: Session) -> list[str]:
    return [branch.name for branch in session.branches.list()]


# -- branches ---------------------------------------------------------------------------------------------------------


def test_a_session_begins_on_main(session: Session) -> None:
    """Its one branch."""
    assert ("main", ["main"]) == (session.branches.current, names(session))


def test_branches_part(store: SessionStore, session: Session) -> None:
    """What is said on one is not on the other; the session is opened where it was left."""
    made = session.branches.branch("try")
    assert session.log()[-1].hash == made.head.hash
    session.commit("on main")
    session.branches.switch("try")
    session.commit("on try")
    assert (["q", "a", "on try"], "try") == (said(session), session.branches.current)
    session.branches.switch("-")
    assert (["q", "a", "on main"], "main") == (said(session), session.branches.current)
    session.branches.switch("-")
    assert ["q", "a", "on try"] == said(store.session("chat"))


def test_a_branch_anywhere(session: Session) -> None:
    """At a hash, its beginning, another branch, so many back; inside a response it is its end, and that is reported."""
    answer = turn(session, "more", "b")
    first = session.log()[0]
    for at, expected, notes in (
        (first.hash[:10], ["q"], []),
        (answer.hash, ["q", "a", "more", "b"], []),
        ("HEAD^1", ["q", "a", "more", "b"], ["HEAD^1 is inside a response; using the end of that response"]),
        ("HEAD^3", ["q", "a", "more"], []),
        ("main^4", ["q", "a"], []),
        ("main~1", ["q", "a"], []),
        ("~2", [], ["~2 counts questions; ^2 counts commits, as ~ did before"]),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            session.branches.branch("b", at, switch=True)
        assert notes == [str(each.message)[: len("".join(notes))] for each in told]
        assert expected == said(session)
        session.branches.switch("main")
        session.branches.delete("b", force=True)


def test_a_branch_before_a_commit_says_it_otherwise(session: Session) -> None:
    """Also before the first one, where it is empty; a commit of another line is refused, and nothing is made."""
    first, second = session.log()[0], turn(session, "r", "b")
    with pytest.warns(UserWarning, match="is inside a response"):
        session.branches.before(session.log()[2].hash, "other")
    assert ["q", "a"] == said(session)
    session.branches.before(first.hash, "empty")
    turn(session, "s", "c")

    assert ["s", "c"] == said(session)
    with pytest.raises(NotFoundError, match="is not on this branch"):
        session.branches.before(second.hash, "none")
    with pytest.raises(BranchError):
        session.branches.before(session.log()[0].hash, "not a name")
    assert ["empty", "main", "other"] == names(session)
    session.branches.switch("main")
    assert ["q", "a", "r", "b"] == said(session)


def test_an_empty_session_has_branches(store: SessionStore) -> None:
    """They begin with nothing."""
    session = store.session("new")
    session.branches.branch("other", switch=True)
    session.commit("hello")
    session.branches.switch("main")
    assert ([], ["main", "other"]) == (said(session), names(session))
    session.branches.merge("other")
    assert ["hello"] == said(session)


@pytest.mark.parametrize("name", ["HEAD", "a b", "-", "a~1"])
def test_names_that_mean_something_else_are_refused(session: Session, name: str) -> None:
    """So is one that is taken, and one of nothing."""
    with pytest.raises(BranchError, match="cannot be the name"):
        session.branches.branch(name)
    with pytest.raises(StoreError, match="'main' already"):
        session.branches.branch("main")
    assert ["main"] == names(session)


def test_names_of_nothing(session: Session) -> None:
    """Say what there is."""
    switch = session.branches.switch
    with pytest.raises(NotFoundError, match="no branch 'nosuch'") as caught:
        switch("nosuch")
    assert ("branches are main",) == caught.value.next_actions
    with pytest.raises(NotFoundError, match="no commit begins with"):
        switch("0" * 40)
    with pytest.raises(NotFoundError, match="before this one"):
        switch("-")
    with pytest.raises(NotFoundError, match="main has 4 commits, and 4 are to be left out"):
        switch("main^4")
    with pytest.raises(NotFoundError, match="no session 'other'"):
        switch("other:main")
    with pytest.raises(BranchError, match="there is nothing before main~1"):
        switch("main~1")


def test_an_ambiguous_hash_lists_the_candidates(session: Session) -> None:
    """As git does."""
    for at in range(16):
        session.commit(str(at))
    firsts = [commit.hash[0] for commit in session.log()]
    prefix = next(digit for digit in firsts if firsts.count(digit) > 1)
    with pytest.raises(NotFoundError, match=f"several commits begin with {prefix}: "):
        session.branches.switch(prefix)


def test_a_branch_wins_over_a_hash(session: Session) -> None:
    """As in git."""
    prefix = session.log()[0].hash[:6]
    session.branches.branch(prefix)
    session.branches.switch(prefix)
    assert (prefix, ["q", "a"]) == (session.branches.current, said(session))


def test_looking_at_a_commit(session: Session) -> None:
    """Reads work, appends say to branch; branching there goes on."""
    session.branches.switch("HEAD^3")
    assert ("", ["q"]) == (session.branches.current, said(session))
    operations: list[Callable[[], Any]] = [
        lambda: session.commit("more"),
        lambda: session.branches.reset("main"),
        lambda: session.branches.merge("main"),
        lambda: session.branches.cherry_pick("main^1"),
        lambda: session.branches.rebase("main"),
    ]
    for operation in operations:
        with pytest.raises(DetachedError, match="the session is detached at commit") as caught:
            operation()
        assert "branch(name, switch=True)" in str(caught.value)
    session.branches.branch("there", switch=True)
    session.commit("more")
    assert ["q", "more"] == said(session)
    session.branches.switch("-")
    assert ["q", "a"] == said(session)


def test_a_time(session: Session) -> None:
    """A branch as it was then."""
    session.branches.switch("main@{2200-01-01}")
    assert ["q", "a"] == said(session)
    with pytest.raises(NotFoundError, match="by then"):
        session.branches.switch("main@{2001-01-01}")


def test_reset(session: Session) -> None:
    """The branch points elsewhere; what it leaves is found by its hash, until gc."""
    answer = turn(session, "more", "b")
    session.branches.reset("HEAD^4")
    session.commit("another")
    assert ["q", "a", "another"] == said(session)
    session.branches.branch("back", answer.hash, switch=True)
    assert ["q", "a", "more", "b"] == said(session)
    session.branches.reset("main")
    assert ["q", "a", "another"] == said(session)


def test_inside_a_response_that_no_branch_has(session: Session) -> None:
    """What was left behind is still whole, and can be gone on from."""
    answer = turn(session, "more", "b")
    header = next(c for c in session.log() if c.response == answer.response)
    session.branches.reset("HEAD^4")
    with pytest.warns(UserWarning, match="is inside a response"):
        session.branches.branch("whole", header.hash, switch=True)
    assert ["q", "a", "more", "b"] == said(session)


def test_inside_a_response_that_is_nowhere_whole(session: Session) -> None:
    """A program that is none of ours stored a part of one."""
    header = session.conversation.append([Draft("response", Response(Origin("", "", ""), blocks=1), "r")])[0]
    with pytest.raises(BranchError, match="nowhere whole"):
        session.branches.branch("torn", header.hash)


def test_delete(store: SessionStore, session: Session) -> None:
    """Of a branch whose commits another one has; else only by force. Never the current one."""
    branches = session.branches
    branches.branch("same")
    branches.delete("same")
    branches.branch("more", switch=True)
    turn(session, "more", "b")
    with pytest.raises(BranchError, match="is the current branch"):
        branches.delete("more")
    branches.switch("main")
    with pytest.raises(BranchError, match="gone at the next gc"):
        branches.delete("more")
    branches.fork("child", "more")
    branches.delete("more")
    branches.branch("again", "child:main")
    branches.delete("again", force=True)
    with pytest.raises(NotFoundError, match="no branch 'again'"):
        branches.delete("again")
    assert ["main"] == names(session)
    assert [] == store.fsck()


# -- forks ------------------------------------------------------------------------------------------------------------


def test_fork(store: SessionStore, session: Session) -> None:
    """A session of the family that begins with this one's history; this one stays as it is, settings are copied."""
    session.set("reasoning.effort", "low")
    before = session.log()
    child = session.branches.fork("child", purpose="to try")
    child.commit("in the child")
    assert (["q", "a", "in the child"], before) == (said(child), session.log())
    info = store.find("child")
    assert (session.id, session.id, "to try") == (info.family, info.parent, info.purpose)
    expected = {"reasoning.effort": "low", "session.defaults": "1"}
    assert expected == store.find("chat").settings == info.settings
    other = session.branches.fork(at="HEAD^3")
    assert (["q"], True) == (said(other), other.name.startswith("chat-"))
    with pytest.raises(BranchError, match="'child' already"):
        session.branches.fork("child")
    assert ["q", "a", "in the child"] == said(store.session("child"))


def test_a_fork_of_a_detached_session(session: Session) -> None:
    """Begins with what is looked at."""
    turn(session, "more", "b")
    session.branches.switch("HEAD^4")
    assert ["q", "a"] == said(session.branches.fork("child"))


def test_a_fork_goes_on_where_its_parent_would(store: SessionStore, referee: Referee) -> None:
    """Endpoint, model, key and functions are the parent's."""
    parent = open_session(store, referee)
    parent.chat("What is the weather?", tools=[get_weather])
    child = parent.branches.fork("child")
    assert child.chat("And now?").text
    assert parent.conversation.functions == child.conversation.functions
    assert len(parent.log()) < len(child.log())


def test_a_turn_under_way_comes_first(store: SessionStore, referee: Referee) -> None:
    """Whoever waits for its end is refused; an abandoned one is ended."""
    session = open_session(store, referee)
    session.chat("first")
    for _ in session.stream("second"):
        session.branches.branch("meanwhile")
        break
    assert "interrupted" == kinds(session)[-1]


def test_from_inside_a_tool_the_turn_is_under_way(store: SessionStore, referee: Referee) -> None:
    """A tool cannot take the session elsewhere."""
    referee.push(Step(tool_calls=[Call("move")]), Step(text="ok"))
    session = open_session(store, referee)

    def move() -> str:
        """Go to another branch."""
        session.branches.branch("inside", switch=True)
        return "moved"

    session.chat("go", tools=[move])
    (result,) = [commit.value for commit in session.log() if commit.kind == "tool_result"]
    assert "a turn of this session is under way" in getattr(result, "content", "")
    assert ["main"] == names(session)


# -- merges -----------------------------------------------------------------------------------------------------------


def parted(session: Session) -> None:
    """``try`` and ``main``, each with a turn of its own; the session is on ``main``."""
    session.branches.branch("try", switch=True)
    turn(session, "there", "t")
    session.branches.switch("main")
    turn(session, "here", "h")


def test_merge(store: SessionStore, session: Session) -> None:
    """Taken in behind, with a second parent; the other branch stays as it is."""
    parted(session)
    theirs = store.log.read(session.id, branch="try")
    result = session.branches.merge("try")
    assert ("clean", True, ["q", "a", "here", "h", "there", "t"]) == (result.kind, result.stored, said(session))
    assert theirs[-1].hash == session.log()[-1].parents[1]
    assert theirs == store.log.read(session.id, branch="try")
    assert ("up_to_date", False) == ((again := session.branches.merge("try")).kind, again.stored)
    assert [] == store.fsck()


def test_fast_forward(session: Session) -> None:
    """Only the pointer moves, unless that is not wanted."""
    session.branches.branch("try", switch=True)
    turn(session, "there", "t")
    session.branches.branch("more")
    session.branches.switch("main")
    assert ("fast_forward", True) == ((result := session.branches.merge("try")).kind, result.stored)
    assert ["q", "a", "there", "t"] == said(session)
    session.branches.switch("more")
    session.commit("m")
    session.branches.switch("main")
    assert "clean" == session.branches.merge("-", no_ff=True).kind
    assert "more" == getattr(session.log()[-1].value, "branch", "")


def test_conflicts_are_data(session: Session) -> None:
    """Nothing is stored until each is resolved."""
    parted(session)
    answer = next(c for c in session.log() if texts([c]) == ["a"])
    session.commit("mine", edit=answer.hash)
    session.branches.switch("try")
    session.commit("yours", edit=answer.hash)
    session.branches.switch("main")
    before = session.log()
    result = session.branches.merge("try")
    assert ("conflicts", False, before) == (result.kind, result.stored, session.log())
    (conflict,) = result.unresolved
    assert ("mine", "yours") == (conflict.ours.text, conflict.theirs.text)
    assert "conflicts" == session.branches.commit_merge(result).kind
    result.resolutions[conflict.target] = "both of us"
    done = session.branches.commit_merge(result)
    assert ("clean", True) == (done.kind, done.stored)
    assert ["q", "both of us", "here", "h", "there", "t"] == said(session)


@pytest.mark.parametrize(("strategy", "text"), [("ours", "mine"), ("theirs", "a")])
def test_strategies(session: Session, strategy: Any, text: str) -> None:
    """One side wins all."""
    parted(session)
    answer = next(c for c in session.log() if texts([c]) == ["a"])
    session.commit("mine", edit=answer.hash)
    assert session.branches.merge("try", strategy).stored
    assert ["q", text, "here", "h", "there", "t"] == said(session)
    with pytest.raises(ValueError, match="strategy must be one of"):
        session.branches.merge("try", "semantic")  # type: ignore[arg-type]


def test_a_child_can_be_merged(session: Session) -> None:
    """A branch of another session of the family, by its name."""
    child = session.branches.fork("child")
    turn(child, "there", "t")
    turn(session, "here", "h")
    assert "clean" == session.branches.merge("child:").kind
    assert ["q", "a", "here", "h", "there", "t"] == said(session)
    assert "clean" == child.branches.merge("chat:main").kind
    assert ["q", "a", "there", "t", "here", "h"] == said(child)


def test_a_merge_waits_for_calls(store: SessionStore, referee: Referee) -> None:
    """Of either side; answered, they are no hindrance."""
    referee.push(Step(tool_calls=[Call("get_weather", {"city": "Oslo"}, "c1")]), Step(text="rain"))
    session = open_session(store, referee)
    session.commit("before")
    session.branches.branch("other", switch=True)
    session.commit("there")
    session.branches.switch("main")
    session.chat("What is the weather?", tools=[DEFINITION])
    with pytest.raises(OpenTurnError, match="'c1' of get_weather"):
        session.branches.merge("other")
    session.branches.switch("other")
    with pytest.raises(OpenTurnError):
        session.branches.merge("main")
    session.branches.switch("main")
    session.generate({"c1": "rain"})
    assert session.branches.merge("other").stored


def test_somebody_is_quicker(session: Session) -> None:
    """What was appended meanwhile is taken into account; who never lets us have a turn is told of."""
    parted(session)
    other = session.conversation.store.session("chat")
    quick = iter(["one", "two"])
    session.on("pre_merge", lambda result: [other.commit(text) for text in [next(quick, "")] if text])
    result = session.branches.merge("try")
    assert (True, ["q", "a", "here", "h", "one", "two", "there", "t"]) == (result.stored, said(session))
    session.branches.branch("more", "try")
    session.branches.switch("more")
    session.commit("m")
    session.branches.switch("main")
    other.branches.switch("main")
    session.conversation.line.hooks = Hooks()
    session.on("pre_merge", lambda result: other.commit("again"))
    with pytest.raises(HeadMovedError):
        session.branches.merge("more")


def test_a_hook_may_refuse_a_merge(session: Session) -> None:
    """With the result before it; nothing is stored."""
    parted(session)
    seen: list[MergeResult] = []

    def refuse(result: MergeResult) -> None:
        seen.append(result)
        raise Veto("not today")

    session.on("pre_merge", refuse)
    with pytest.raises(Veto, match="not today"):
        session.branches.merge("try")
    assert (1, ["q", "a", "here", "h"]) == (len(seen), said(session))


def test_hooks_see_what_a_merge_stores(session: Session) -> None:
    """As for any other step."""
    parted(session)
    before: list[int] = []
    after: list[Commit] = []
    session.on("pre_commit", lambda drafts: before.append(len(drafts)))
    session.on("post_commit", after.extend)
    result = session.branches.merge("try")
    assert ([len(result.commits)], list(result.commits)) == (before, after)


# -- picks and rebases ------------------------------------------------------------------------------------------------


def test_cherry_pick(store: SessionStore, session: Session) -> None:
    """By any name; a response whole. The copies are returned."""
    parted(session)
    made = session.branches.cherry_pick("try^1")
    assert (["response", "assistant", "turn_ended"], ["q", "a", "here", "h", "t"]) == (
        [commit.kind for commit in made],
        said(session),
    )
    there = next(c for c in store.log.read(session.id, branch="try") if texts([c]) == ["there"])
    session.branches.cherry_pick(there.hash[:12], there.hash)
    assert ["q", "a", "here", "h", "t", "there"] == said(session)
    with pytest.raises(NotFoundError):
        session.branches.cherry_pick("nosuch")


def test_a_response_that_was_left_behind_is_picked(session: Session) -> None:
    """From a line that no branch holds any more."""
    answer = turn(session, "more", "b")
    session.branches.reset("HEAD^4")
    session.branches.cherry_pick(answer.hash)
    assert ["q", "a", "b"] == said(session)


def test_a_response_is_picked_from_where_it_is_whole(store: SessionStore, referee: Referee) -> None:
    """Its result is on one branch; another, which comes first, has the call open."""
    referee.push(Step(tool_calls=[Call("get_weather", {"city": "Oslo"}, "c1")]), Step(text="rain"))
    session = open_session(store, referee)
    session.commit("before")
    session.branches.branch("other")
    session.chat("What is the weather?", tools=[DEFINITION])
    call = next(commit for commit in session.log() if commit.kind == "tool_call")
    session.branches.branch("left")
    session.branches.switch("other")
    with pytest.raises(BranchError, match="'c1' has no result"):
        session.branches.cherry_pick(call.hash)
    session.branches.switch("main")
    session.generate({"c1": "rain"})
    session.branches.switch("other")
    made = session.branches.cherry_pick(call.hash)
    assert "tool_result" in [commit.kind for commit in made]


def test_picking_again_when_somebody_is_quicker(session: Session) -> None:
    """The copies are sealed on what is the head then."""
    parted(session)
    other = session.conversation.store.session("chat")
    quick = iter(["one"])
    session.on("pre_commit", lambda drafts: [other.commit(text) for text in [next(quick, "")] if text])
    session.branches.cherry_pick("try")
    assert ["q", "a", "here", "h", "one", "t"] == said(session)


def test_rebase(store: SessionStore, session: Session) -> None:
    """Ours on top of theirs; the old commits are still found by their hashes."""
    parted(session)
    old = session.log()
    made = session.branches.rebase("try")
    assert (["q", "a", "there", "t", "here", "h"], ["main", "try"]) == (said(session), names(session))
    assert list(made) == session.log()[-len(made) :]
    assert old == store.log.read_to(session.id, old[-1].hash)
    assert ((), ()) == (session.branches.rebase("try"), session.branches.diff("HEAD", "HEAD").changes)
    difference = session.branches.diff(old[-1].hash)
    assert ["there", "t"] == [change.new for change in difference.changes]


def test_a_rebase_of_nothing_moves_the_pointer(session: Session) -> None:
    """There is nothing to copy."""
    session.branches.branch("try", switch=True)
    turn(session, "there", "t")
    session.branches.switch("main")
    assert () == session.branches.rebase("try")
    assert ["q", "a", "there", "t"] == said(session)


def test_a_rebase_that_fails_leaves_nothing(session: Session) -> None:
    """Neither for a contradiction, nor for a veto."""
    parted(session)
    session.on("pre_commit", _refuse_responses)
    with pytest.raises(Veto):
        session.branches.rebase("try")
    assert (["main", "try"], ["q", "a", "here", "h"]) == (names(session), said(session))
    answer = next(c for c in session.log() if texts([c]) == ["a"])
    for branch in ("try", "main"):
        session.branches.switch(branch)
        session.commit(f"of {branch}", edit=answer.hash)
    with pytest.raises(MergeConflictError):
        session.branches.rebase("try")
    assert ["main", "try"] == names(session)


def _refuse_responses(drafts: Any) -> None:
    if any(draft.kind == "response" for draft in drafts):
        raise Veto("no")


# -- looking ----------------------------------------------------------------------------------------------------------


def test_diff_and_compare(session: Session) -> None:
    """Between any two names; the second is HEAD unless it is said."""
    parted(session)
    session.annotate(session.log()[0].hash, Priority.PINNED)
    changes = session.branches.diff("try").changes
    assert ["priority", "removed", "removed", "added", "added"] == [change.what for change in changes]
    found = session.branches.compare("main", "try")
    assert (5, 4) == (found.ahead, found.behind)


def test_tree(session: Session) -> None:
    """Sessions, branches, and where each left another."""
    parted(session)
    child = session.branches.fork("child", "try", purpose="to try")
    child.commit("c")
    root, leaf = session.branches.tree()
    assert (("chat", "", "main"), ("child", "chat", "main")) == (
        (root.name, root.parent, root.current),
        (leaf.name, leaf.parent, leaf.current),
    )
    assert "to try" == leaf.purpose
    main, other = root.branches
    assert ("main", None, "try", ("chat", "main")) == (main.name, main.parent, other.name, other.parent)
    assert session.log()[3].hash == other.fork.hash
    assert (("chat", "try"), other.head) == (leaf.branches[0].parent, leaf.branches[0].fork)
    assert session.branches.tree() == child.branches.tree()


def bound_talk(store: SessionStore, referee: Referee) -> Session:
    """Reasoning that is bound to what stood before it, on two branches; the session is on ``main``."""
    url = referee.base_url("anthropic")
    session = store.session("bound", endpoint="anthropic", model="claude-opus-5-5", base_url=url, api_key=KEY)
    session.chat("first")
    session.branches.branch("try", switch=True)
    session.chat("there")
    session.branches.switch("main")
    session.chat("here")
    return session


@pytest.mark.parametrize("operation", ["merge", "cherry_pick", "rebase"])
def test_what_is_bound_to_another_line_is_not_sent(store: SessionStore, referee: Referee, operation: str) -> None:
    """A copy stands behind other words than it was made behind: it stays away, with the reason, before any refusal."""
    session = bound_talk(store, referee)
    getattr(session.branches, operation)("try")
    reply = session.chat("and now?")
    assert [] == refusals(referee)
    assert {200} == set(statuses(referee))
    assert any("copied here from another line" in decision.reason for decision in reply.decisions)
    session.chat("and later?")
    assert [] == refusals(referee)
