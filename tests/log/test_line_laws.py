"""Laws of lines: whatever was forked, said, picked, merged and rebased."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.log.build import Line, ids
from thinkback.log.cherry_pick import cherry_pick, rebase
from thinkback.log.diff import diff
from thinkback.log.lines import common, is_torn
from thinkback.log.merge_base import meet
from thinkback.model.commits import Commit, Priority, Response
from thinkback.model.curation import curate

DEEDS = ["turn", "turn", "tools", "fork", "merge", "merge", "merge --no-ff"]
Deed = tuple[str, int, int, int]


def deeds(*kinds: str) -> st.SearchStrategy[list[Deed]]:
    """Who does what, to whom."""
    deed = st.tuples(st.sampled_from([*DEEDS, *kinds]), st.integers(0, 3), st.integers(0, 3), st.integers(0, 99))
    return st.lists(deed, max_size=25)


def said(line: Line) -> Counter[str]:
    """What is said on a line, and how often; the results are of calls, whose names are unique."""
    return Counter(text for text in line.texts if text.startswith(("q", "a", "call")))


def play(done: list[Deed]) -> list[Line]:
    """Up to four lines of one family on which nobody edits anything."""
    lines = [Line()]
    for at, (deed, first, second, choice) in enumerate(done):
        line, other = lines[first % len(lines)], lines[second % len(lines)]
        if deed == "user":
            line.user(f"q{at}")
        elif deed == "turn":
            line.turn(f"q{at}", f"a{at}")
        elif deed == "tools":
            line.user(f"q{at}")
            response = line.call(f"call{at}")
            line.result(f"call{at}", "done", response)
            line.answer(f"a{at}")
        elif deed == "fork" and len(lines) < 4:
            lines.append(line.fork())
        elif deed.startswith("merge"):
            before = said(line) | said(other)
            result = line.merge(other, no_ff=deed != "merge")
            assert () == result.conflicts
            assert before == said(line)
        elif deed == "pick":
            pick(line, other, choice)
        elif deed == "rebase" and line is not other:
            made = rebase(line.commits, other.commits, next(line.clock), ids(f"rebase{at}"))
            before = said(line) | said(other)
            line.commits = [*other.commits, *made]
            assert before == said(line)
    return lines


def pick(line: Line, other: Line, choice: int) -> None:
    """One response of ``other`` that ``line`` does not have, by any of its commits."""
    here = {commit.response for commit in line.commits if isinstance(commit.value, Response)}
    parts = [c for c in other.commits if c.response and c.response not in here and c.kind != "request"]
    if not parts:
        return
    picked = parts[choice % len(parts)]
    made = cherry_pick(line.commits, [(other.commits, picked.hash)], next(line.clock), ids())
    line.commits += made
    assert parts_of(other.commits, picked.response) == parts_of(made, picked.response)


def parts_of(commits: list[Commit], response: str) -> list[tuple[str, int, str]]:
    """A response with its results."""
    return [(c.kind, c.index, c.digest) for c in commits if c.response == response and c.kind != "request"]


def whole(line: Line) -> bool:
    """Whether every response of the line is there with all its blocks, one behind the other."""
    for at, commit in enumerate(line.commits):
        if isinstance(commit.value, Response):
            behind = line.commits[at + 1 : at + 1 + commit.value.blocks]
            if [(commit.response, index) for index in range(commit.value.blocks)] != [
                (block.response, block.index) for block in behind
            ]:
                return False
    return not is_torn(line.commits)


@given(deeds("user", "user", "pick"))
def test_lines_that_only_append(done: list[Deed]) -> None:
    """Merges are clean and say every text once, picks keep responses whole; merging all into one has all."""
    all_in_one(play(done))


@given(deeds("rebase"))
def test_lines_that_are_rebased(done: list[Deed]) -> None:
    """The same for rebases of whole turns: their copies are known by their responses."""
    all_in_one(play(done))


def all_in_one(lines: list[Line]) -> None:
    first = lines[0]
    for line in lines:
        assert whole(line)
        first.merge(line)
    assert {1} >= set(said(first).values())
    assert {text for line in lines for text in said(line)} == set(said(first))
    for line in lines:
        assert "up_to_date" == first.merge(line).kind
        assert [] == meet(first.commits, line.commits).fresh
    assert whole(first)


@settings(max_examples=40)
@given(deeds("rebase"))
def test_what_two_lines_have_in_common(done: list[Deed]) -> None:
    """The longest common beginning, and no more."""
    lines = play(done)
    for one in lines:
        for other in lines:
            shared = common(one.commits, other.commits)
            assert one.commits[:shared] == other.commits[:shared]
            after = one.commits[shared : shared + 1], other.commits[shared : shared + 1]
            assert after[0] != after[1] or ([], []) == after


WORD = st.tuples(st.sampled_from(["turn", "edit", "skip", "tag"]), st.integers(0, 99))


@given(st.lists(WORD, max_size=8), st.lists(WORD, max_size=8), st.integers(0, 3))
def test_a_rebase_changes_nothing_but_hashes(
    before: list[tuple[str, int]], ours: list[tuple[str, int]], ahead: int
) -> None:
    """The difference is what the other line had more; edits, marks and tags of ours are those of the copies."""
    line = Line()
    line.turn("q", "a")
    speak(line, before, "before")
    onto = line.fork()
    for at in range(ahead):
        onto.user(f"their q{at}")
        onto.answer(f"their a{at}", "their thought")
    speak(line, ours, "ours")
    old = list(line.commits)
    made = rebase(old, onto.commits, next(line.clock), ids())
    found = diff(old, [*onto.commits, *made])
    assert ["added"] * 3 * ahead == [change.what for change in found.changes]
    rebased = Line([*onto.commits, *made])
    assert line.texts == [text for text in rebased.texts if not text.startswith("their")]
    tags = [sorted(mark.tags) for mark in curate(old).marks.values()]
    assert tags == [sorted(mark.tags) for mark in curate(rebased.commits).marks.values()]


def speak(line: Line, words: list[tuple[str, int]], name: str) -> None:
    """Turns, and things said about what is there."""
    for at, (word, choice) in enumerate(words):
        shown = [c for c in line.commits if c.kind in ("user", "reasoning", "assistant") and not c.edit]
        target = shown[choice % len(shown)]
        if word == "turn":
            line.turn(f"{name} q{at}", f"{name} a{at}")
        elif word == "edit":
            line.edit(target, f"{name} edit {at}")
        elif word == "skip":
            line.mark(target, Priority.SKIP)
        else:
            line.mark(target, tags=(f"{name}{at}",))


CHANGE = st.lists(st.tuples(st.sampled_from(["turn", "edit", "edit", "skip", "tag"]), st.integers(0, 5)), max_size=5)


@given(CHANGE, CHANGE, st.sampled_from(["ours", "theirs"]), CHANGE)
def test_conflicts_end_as_was_chosen(
    ours: list[tuple[str, int]], theirs: list[tuple[str, int]], winner: str, later: list[tuple[str, int]]
) -> None:
    """What is in conflict says afterwards what the winner said; the loser's words do not come back by themselves."""
    line = Line()
    line.turn("q", "a")
    other = line.fork()
    speak(line, ours, "ours")
    speak(other, theirs, "theirs")
    expected = {"ours": list(line.commits), "theirs": list(other.commits)}[winner]
    result = line.merge(other, strategy=winner)
    wanted, found = curate(expected), curate(line.commits)
    for conflict in result.conflicts:
        commit = line.commits[[c.hash for c in line.commits].index(conflict.target)]
        skipped = conflict.kind == "skip_vs_edit" and wanted.mark(commit.hash).priority is Priority.SKIP
        assert skipped or wanted.value(commit) == found.value(commit)
        assert conflict.kind != "skip_vs_edit" or skipped == (found.mark(commit.hash).priority is Priority.SKIP)
    assert "up_to_date" == line.merge(other).kind
    speak(other, [(word, choice) for word, choice in later if word in ("turn", "tag")], "later")
    again = line.merge(other)
    assert () == again.conflicts or result.kind == "up_to_date"
