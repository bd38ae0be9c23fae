"""Branches, forks and merges from the command line: what a person does, what a program reads, what is refused."""

from __future__ import annotations

import json
import shlex

import pytest

import thinkback
from tests.cli.command import Command, Outcome
from thinkback.cli.history import branching


@pytest.fixture
def notes(command: Command) -> Command:
    """The command with a log: session ``notes`` with two messages."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        session = store.session("notes")
        session.commit("one")
        session.commit("two")
    return command


def say(command: Command, text: str, **options: object) -> str:
    """Add a message to the current branch of ``notes``; returns its hash."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        return store.session("notes").commit(text, **options).hash  # type: ignore[arg-type]


def texts(command: Command, *arguments: str) -> list[str]:
    return [commit["text"] for commit in command("log", *arguments, "--json").json if commit["kind"] == "user"]


def done(outcome: Outcome) -> Outcome:
    assert 0 == outcome.code, outcome.err
    return outcome


def test_branches_are_made_switched_and_deleted(notes: Command) -> None:
    """A branch at a commit by name; the session goes on with the one it was switched to."""
    made = done(notes("branch", "early", "main^1"))
    assert made.err.startswith("created early, which begins before question 2; `thinkback switch --db ")
    done(notes("switch", "early"))
    say(notes, "other")
    assert (["one", "other"], ["one", "two"]) == (texts(notes), texts(notes, "notes", "--branch", "main"))
    listed = notes("branch", "--json").json
    assert [("early", 2, True), ("main", 2, False)] == [(b["name"], b["commits"], b["current"]) for b in listed]
    assert "* early" in notes("branch").out
    assert "  2 turns (2 commits)\n" in notes("branch").out
    spaced = notes("branch", "third", "try")
    assert (2, True) == (spaced.code, "no spaces: `thinkback branch --db" in spaced.err)
    done(notes("switch", "main"))
    refused = notes("branch", "early", "--delete")
    assert (2, True) == (refused.code, "force" in refused.err)
    done(notes("branch", "early", "--delete", "--force"))
    assert ["main"] == [branch["name"] for branch in notes("branch", "--json").json]


def test_a_list_reads_so_many_commits_for_all_branches_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The current one first; the turns of those that are too long for what is left are not told."""
    monkeypatch.setattr(branching, "_MOST_COUNTED", 3)
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        session = store.session("notes")
        session.commit("one")
        session.commit("two")
        session.branches.branch("also")
        session.branches.branch("early", "main^1")
        assert {"main": 2, "early": 1} == branching.turns_of(session, session.branches.list())


def test_a_commit_is_no_branch_to_switch_to(notes: Command) -> None:
    """It says how to make one; nothing moved."""
    refused = notes("switch", "main^1")
    assert (2, True) == (refused.code, "NAME 'main^1' --switch --session notes`" in refused.err)
    assert ["one", "two"] == texts(notes)


def test_a_reset_says_the_way_back(notes: Command) -> None:
    """The commits stay in the log; what ``~`` meant before is said where it counts more than one."""
    meant = "note: HEAD~2 counts questions; HEAD^2 counts commits, as ~ did before"
    assert meant in notes("compile", "HEAD~2", PYTHONWARNINGS="default").err
    back = done(notes("reset", "HEAD^1")).err
    assert ["one"] == texts(notes)
    assert "back: `thinkback reset " in back
    done(notes(*shlex.split(back.split("`")[1])[1:]))
    assert ["one", "two"] == texts(notes)


def test_a_clean_merge(notes: Command) -> None:
    """Both only appended: nothing is asked."""
    done(notes("branch", "side", "main^1", "--switch"))
    say(notes, "three")
    done(notes("switch", "main"))
    merged = done(notes("merge", "side", "--json")).json
    assert ("clean", True, []) == (merged["kind"], merged["stored"], merged["conflicts"])
    assert ["one", "two", "three"] == texts(notes)
    last = notes("log", "--json").json[-1]
    assert ("merge", 2) == (last["kind"], len(last["parents"]))
    assert f"other parent: {last['parents'][1]}\n" in notes("show", last["hash"]).out
    again = done(notes("branch", "again", last["parents"][1][:12]))  # the other parent, by its hash
    assert f"again, which begins after commit {last['parents'][1][:8]}; " in again.err
    assert ["one", "three"] == texts(notes, "notes", "--branch", "again")
    assert "up to date" in notes("merge", "side").out


def test_a_conflict_is_told_and_resolved(notes: Command) -> None:
    """Nothing is stored before each has a winner."""
    first = notes("log", "--json").json[0]["hash"]
    assert "switched to side, which begins at the end of main\n" == done(notes("branch", "side", "--switch")).err
    say(notes, "ours was wrong", edit=first)
    done(notes("switch", "main"))
    say(notes, "it was one and a half", edit=first)
    told = notes("merge", "side")
    assert (1, True) == (told.code, "1 conflict, nothing was stored\nboth edit" in told.out)
    assert 2 == notes("merge", "side", "--resolve", "ffff=ours").code
    (conflict,) = notes("merge", "side", "--json").json["conflicts"]
    assert ("it was one and a half", "ours was wrong") == (conflict["ours"], conflict["theirs"])
    done(notes("merge", "side", "--resolve", f"{conflict['target'][:10]}=both"))
    assert "both" in done(notes("log", "--style", "chat")).out


def test_picking_and_rebasing(notes: Command) -> None:
    """Copies stand on the current branch; the old commits stay where they were."""
    done(notes("branch", "side", "main^1", "--switch"))
    three = say(notes, "three")
    done(notes("rebase", "main"))
    assert ["one", "two", "three"] == texts(notes)
    done(notes("branch", "pick", "main^1", "--switch"))
    assert 1 == len(done(notes("cherry-pick", three, "--json")).json["commits"])
    assert ["one", "three"] == texts(notes)
    assert 2 == notes("cherry-pick", "ffffffff").code


def test_forks_and_their_family(notes: Command) -> None:
    """A fork shares its beginning; the tree shows who comes from where, the timeline what happened."""
    done(notes("fork", "main^1", "--name", "child", "--purpose", "try it"))
    with thinkback.open(notes.db) as store:
        store.session("child").commit("elsewhere")
    assert ["one", "elsewhere"] == texts(notes, "child")
    assert ["one", "two"] == texts(notes, "notes")
    shown = done(notes("tree", "-s", "child")).out
    assert shown.startswith("notes\n")
    assert "  child  try it\n" in shown
    assert "from notes/main after" in shown
    family = notes("timeline", "-s", "notes", "--json").json
    assert ["one", "two", "elsewhere"] == [event["text"] for event in family]
    done(notes("collapse", "child", "--text", "It worked.", "-s", "notes"))
    assert "It worked." in done(notes("log", "notes", "--style", "chat")).out


@pytest.mark.parametrize(("inherit", "options"), [("head_snapshot", ()), ("selective", ("--tag", "keep"))])
def test_a_child_with_less(notes: Command, inherit: str, options: tuple[str, ...]) -> None:
    """A summary of the context, or what has a tag."""
    say(notes, "three", tags=["keep"])
    told = done(notes("fork", "--inherit", inherit, *options, "--name", "less", "--json")).json
    assert ("less", "notes") == (told["name"], told["parent"])
    shown = done(notes("log", "less", "--style", "chat")).out
    assert ("three" in shown, inherit == "head_snapshot") == (True, "one" in shown)


def test_a_difference_shows_reasoning_apart(notes: Command) -> None:
    """What was added, changed and thought, with how far the two are apart."""
    first = notes("log", "--json").json[0]["hash"]
    done(notes("branch", "side", "--switch"))
    with thinkback.open(notes.db) as store:
        store.session("notes").reasoning("Think twice.")
    say(notes, "uno", edit=first)
    shown = done(notes("diff", "main")).out
    assert shown.startswith("HEAD is 2 ahead of main, 0 behind\n")
    assert "+ [reasoning]" in shown
    assert "- one\n+ uno\n" in shown
    assert "\x1b[2;36m+ Think twice." in notes.on_terminal("diff", "main").out
    assert {"added", "changed"} == {change["what"] for change in notes("diff", "main", "--json").json["changes"]}
    assert json.loads(notes("diff", "main", "--json").out)["ahead"] == 2


def test_a_branch_that_is_there_is_gone_to_and_not_deleted(notes: Command) -> None:
    """Who names it again wants to be there."""
    told = notes("branch", "main", "--switch")

    assert 2 == told.code
    assert "--session notes main` goes to it" in told.err
