"""What two histories say differently."""

from __future__ import annotations

from tests.log.build import Line, ids
from thinkback.log import drafting
from thinkback.log.cherry_pick import rebase
from thinkback.log.diff import Change, Diff, compare, diff, render
from thinkback.log.diff import Line as Told
from thinkback.model.commits import Compaction, Content, Draft, Head, Priority


def two() -> tuple[Line, Line]:
    ours = Line()
    ours.turn("q", "a")
    return ours, ours.fork()


def changes(old: Line, new: Line) -> list[tuple[str, str, str, str]]:
    return [(c.what, c.kind, c.old, c.new) for c in diff(old.commits, new.commits).changes]


def test_the_same_history_has_no_difference() -> None:
    """Nor has one that only has records more."""
    ours, theirs = two()
    ours.edit(ours.of("a"), "b")
    assert ((), ()) == ((found := diff(ours.commits, ours.commits)).changes, found.renamed)
    assert [] == changes(theirs, theirs.fork(5))


def test_what_was_added_and_removed() -> None:
    """In reading order, reasoning as a change of its own."""
    ours, theirs = two()
    ours.user("here")
    theirs.turn("there", "t")
    assert [
        ("removed", "user", "here", ""),
        ("added", "user", "", "there"),
        ("added", "reasoning", "", "hm"),
        ("added", "assistant", "", "t"),
    ] == changes(ours, theirs)
    assert ours.commits[6].hash == diff(ours.commits, theirs.commits).base.hash


def test_edits_are_old_and_new() -> None:
    """In what both begin with, and in what one has copied; an edit that was taken back is none."""
    ours, theirs = two()
    theirs.edit(theirs.of("q"), "Q")
    theirs.edit(theirs.of("a"), "A")
    theirs.add(drafting.restored(theirs.of("a"), theirs.of("a").value))
    assert [("changed", "user", "q", "Q")] == changes(ours, theirs)
    assert [("changed", "user", "Q", "q")] == changes(theirs, ours)
    ours.user("here")
    theirs.merge(ours, strategy="theirs")
    theirs.edit(theirs.of("here"), "HERE")
    assert ("changed", "user", "here", "HERE") in changes(ours, theirs)


def test_priorities() -> None:
    """What was said explicitly, or comes with a content type; nothing said is the default."""
    ours, theirs = two()
    theirs.mark(theirs.of("a"), Priority.PINNED)
    theirs.mark(theirs.of("a"), tags=("t",))
    for line in (ours, theirs):
        line.add(Draft("content", Content("plan", "p", priority=Priority.IMPORTANT)))
    theirs.mark(theirs.of("p"), Priority.SKIP)
    assert [("priority", "assistant", "default", "pinned"), ("priority", "content", "important", "skip")] == changes(
        ours, theirs
    )


def test_a_rebase_changes_nothing_but_hashes() -> None:
    """Edits, marks and checkpoints of the copies included."""
    ours, onto = two()
    ours.turn("here", "h")
    ours.edit(ours.of("here"), "HERE")
    ours.mark(ours.of("h"), Priority.PINNED)
    here = ours.of("here")
    ours.add(Draft("compaction", Compaction("manual", "short", here.hash, here.hash)))
    onto.user("there")
    made = rebase(ours.commits, onto.commits, next(ours.clock), ids())
    found = diff(ours.commits, [*onto.commits, *made])
    assert (Change("added", "user", onto.of("there").hash, new="there"),) == found.changes
    assert 4 == len(found.renamed)


def test_how_far_apart() -> None:
    """What was merged is not lacking any more, though its commits are others."""
    ours, theirs = two()
    ours.user("here")
    theirs.turn("there", "t")
    before = compare(ours.commits, theirs.commits)
    assert (1, 6, 7) == (before.ahead, before.behind, before.base.seq + 1)
    ours.merge(theirs)
    after = compare(ours.commits, theirs.commits)
    assert (1, 0, theirs.commits[-1].hash) == (after.ahead, after.behind, after.base.hash)
    assert [("removed", "here")] == [(c.what, c.old) for c in after.diff.changes]


def test_lines() -> None:
    """A heading for each change, its text behind a sign; reasoning is muted."""
    ours, theirs = two()
    removed = ours.user("one\ntwo")
    theirs.edit(theirs.of("q"), "Q")
    theirs.edit(theirs.of("hm"), "aha")
    theirs.mark(theirs.of("hm"), Priority.PINNED)
    theirs.mark(theirs.of("a"), Priority.SKIP)
    added = theirs.user("three")
    q, thought, a = (theirs.of(text).hash[:8] for text in ("q", "hm", "a"))
    assert [
        Told(f"~ user {q}", "heading"),
        Told("- q", "removed"),
        Told("+ Q", "added"),
        Told(f"~ [reasoning] {thought}", "muted"),
        Told("- hm", "muted"),
        Told("+ aha", "muted"),
        Told(f"! [reasoning] {thought}: default -> pinned", "muted"),
        Told(f"! assistant {a}: default -> skip", "changed"),
        Told(f"- user {removed.hash[:8]}", "heading"),
        Told("- one", "removed"),
        Told("- two", "removed"),
        Told(f"+ user {added.hash[:8]}", "heading"),
        Told("+ three", "added"),
    ] == render(diff(ours.commits, theirs.commits))


def test_a_difference_is_shown_as_a_table() -> None:
    """In a notebook; printed, it is a line."""
    found = Diff(Head("abcdef0123", 1), (Change("changed", "user", "123456789a", "<old>", "new"),), ())
    assert "<Diff: 1 changes since abcdef01>" == repr(found)
    assert "| changed | user | 12345678 | \\<old\\> | new |\n" in found._repr_markdown_()
    assert "&lt;old&gt;" in found._repr_html_()
