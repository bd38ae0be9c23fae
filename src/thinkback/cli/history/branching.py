"""``branch switch fork reset merge cherry-pick rebase collapse``: the lines of a session, as git has them.

A NAME of a commit is a branch, ``HEAD``, ``main~2`` (before the second last question), ``main^2`` (without the last two
commits), ``-`` (the branch before), ``main@{2026-11-21T10:00}``, or the beginning of a hash.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from thinkback.cli import complete, exits, hints, terminal
from thinkback.cli.options import (
    busy_options,
    chosen,
    db_option,
    existing_log,
    json_option,
    open_line,
    opened,
    session_option,
)
from thinkback.errors import NotFoundError
from thinkback.log.names import questions
from thinkback.session.destination import Destination

if TYPE_CHECKING:
    from thinkback.log.merge import MergeResult, Strategy
    from thinkback.log.protocol import BranchInfo
    from thinkback.model.commits import Commit
    from thinkback.session.history.children import Inheritance
    from thinkback.session.session import Session

_MOST_COUNTED = 5_000
"""Commits that are read for the turns in a list of branches."""


@click.command("branch", short_help="List, create or delete branches.")
@click.argument("name", required=False)
@click.argument("at", default="HEAD", shell_complete=complete.branches)
@click.option("--switch", is_flag=True, help="Switch to the new branch.")
@click.option("--delete", is_flag=True, help="Delete the branch NAME.")
@click.option("--force", is_flag=True, help="Delete it even if no other branch reaches its commits.")
@session_option
@db_option
@json_option
def branch_command(
    name: str | None, at: str, switch: bool, delete: bool, force: bool, session: str, db: str, as_json: bool
) -> None:
    """List the branches of a session, or create the branch NAME at the commit AT."""
    told = ""
    with open_line(db, session) as found:
        branches = found.branches
        if name and delete:
            branches.delete(name, force=force)
        elif name:
            if any(branch.name == name for branch in branches.list()):
                raise click.UsageError(
                    f"{found.name} has a branch {name} already: "
                    f"{hints.command('switch', name, session=found.name)} goes to it"
                )
            before, current = found.log(), branches.current
            try:
                made = beginning(branches.branch(name, at, switch=switch), current, before)
            except NotFoundError as error:
                if at != "HEAD" and at.isalpha():  # a second word of a name rather than a commit
                    joined = hints.command("branch", f"{name}-{at}", session=found.name)
                    error.next_actions += (f"the name of a branch has no spaces: {joined}",)
                raise
            go = f"; {hints.command('switch', name, session=found.name)} goes to it"
            told = f"switched to {made}" if switch else f"created {made}{go}"
        listed, current = branches.list(), branches.current
        turns = {} if as_json else turns_of(found, listed)
    if as_json:
        terminal.print_json(
            [
                {"name": b.name, "head": b.head.hash or None, "commits": b.head.seq + 1, "current": b.name == current}
                for b in listed
            ]
        )
        return
    print_branches(listed, current, turns)
    if told:
        terminal.note(told)


def beginning(branch: BranchInfo, current: str, history: Sequence[Commit]) -> str:
    """A new branch and where it begins, by the ``history`` of the branch that was ``current`` when it was made."""
    line = ["", *(commit.hash for commit in history)]
    at = line.index(branch.head.hash) if branch.head.hash in line else -1
    if at == len(history):
        where = f"at the end of {current or 'the session'}"
    elif at == 0 or (at > 0 and questions(history[at : at + 1])):
        where = f"before question {questions(history[:at]) + 1}"
    else:
        where = f"after commit {terminal.short(branch.head.hash)}"
    return f"{branch.name}, which begins {where}"


def turns_of(session: Session, listed: Sequence[BranchInfo]) -> dict[str, int]:
    """How many turns branches have, by name, the current one first: as far as they are short enough together."""
    log, current, room = session.conversation.store.log, session.branches.current, _MOST_COUNTED
    turns: dict[str, int] = {}
    for branch in sorted(listed, key=lambda branch: branch.name != current):
        if branch.head.seq < room:
            room -= branch.head.seq + 1
            turns[branch.name] = questions(log.read(session.id, branch=branch.name))
    return turns


def print_branches(listed: Sequence[BranchInfo], current: str, turns: Mapping[str, int]) -> None:
    """A line for each, the current one marked."""
    pen = terminal.pen(sys.stdout)
    for b in listed:
        mark = "*" if b.name == current else " "
        counts = terminal.plural(b.head.seq + 1, "commit")
        if b.name in turns:
            counts = f"{terminal.plural(turns[b.name], 'turn')} ({counts})"
        line = f"{mark} {b.name}  {terminal.short(b.head.hash) or '(empty)'}  {counts}"
        terminal.out(pen(terminal.clean(line), *(("green",) if b.name == current else ())))


@click.command("switch", short_help="Switch to another branch.")
@click.argument("name", shell_complete=complete.branches)
@session_option
@db_option
@json_option
def switch_command(name: str, session: str, db: str, as_json: bool) -> None:
    """Make NAME the current branch of the session."""
    with open_line(db, session) as found:
        found.branches.switch(name)
        if not found.branches.current:
            raise click.UsageError(
                f"{name} is a commit: make a branch there with "
                + hints.command(f"branch NAME {shlex.quote(name)} --switch", session=found.name)
            )
        told = {"session": found.name, "branch": found.branches.current}
    terminal.tell(told, f"{told['session']}: {told['branch']}", as_json=as_json)


@click.command("fork", short_help="Create a session that starts from another one.")
@click.argument("at", default="HEAD", shell_complete=complete.branches)
@click.option("--name", metavar="NAME", help="Name of the new session.")
@click.option("--purpose", default="", help="Purpose of the new session.")
@click.option(
    "--inherit",
    type=click.Choice(("full_clone", "head_snapshot", "selective")),
    default="full_clone",
    help="Inherit the whole history up to AT, a summary of the context, or only the commits with --tag.",
)
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="With selective: inherit the commits with this tag.")
@session_option
@db_option
@json_option
def fork_command(
    at: str,
    name: str | None,
    purpose: str,
    inherit: Inheritance,
    tags: tuple[str, ...],
    session: str,
    db: str,
    as_json: bool,
) -> None:
    """Create a session that starts from the commit AT of another one, which stays unchanged."""
    with open_line(db, session) as found:
        if tags and inherit != "selective":
            raise click.UsageError("--tag goes with --inherit selective")
        if inherit == "full_clone":
            child = found.branches.fork(name, at, purpose=purpose)
        else:
            from thinkback.session.history.children import spawn

            child = spawn(found, name, purpose=purpose, inheritance=inherit, tags=tags)
        commits = child.log()
    if as_json:
        terminal.print_json({"name": child.name, "id": child.id, "parent": found.name, "commits": len(commits)})
    else:
        turns = terminal.plural(questions(commits), "turn")
        terminal.out(f"session {child.name} with {turns} ({terminal.plural(len(commits), 'commit')})")


@click.command("collapse", short_help="Add the outcome of a child session as one message.")
@click.argument("child")
@click.option("--text", help="Text of the message; default: purpose, counts and last answer.")
@session_option
@busy_options
@db_option
@json_option
def collapse_command(child: str, text: str | None, session: str, db: str, as_json: bool) -> None:
    """Add one message with the outcome of the session CHILD to the session; CHILD stays unchanged."""
    from thinkback.session.history.children import collapse

    with existing_log(db) as store:
        into = opened(store, chosen(store, session).name, Destination())
        commit = collapse(opened(store, store.find(child).name, Destination()), into, text)
    _print_commits([commit.hash], as_json)


@click.command("reset", short_help="Point the current branch at another commit.")
@click.argument("to", shell_complete=complete.branches)
@session_option
@busy_options
@db_option
@json_option
def reset_command(to: str, session: str, db: str, as_json: bool) -> None:
    """Point the current branch at the commit TO. Later commits stay in the log until `thinkback gc`."""
    with open_line(db, session) as found:
        before = found.log()
        head = found.branches.reset(to)
    if as_json:
        terminal.print_json({"head": head.hash, "before": before[-1].hash if before else None})
        return
    terminal.out(f"at {terminal.short(head.hash)}, {terminal.plural(head.seq + 1, 'commit')}")
    if before and before[-1].hash != head.hash:
        terminal.note(f"back: {hints.command('reset', before[-1].hash[:12], session=found.name)}")


@click.command("merge", short_help="Merge another branch into the current one.")
@click.argument("source", shell_complete=complete.branches)
@click.option(
    "--strategy", type=click.Choice(("auto", "ours", "theirs")), default="auto", help="Which side wins a conflict."
)
@click.option(
    "--resolve",
    "resolved",
    multiple=True,
    metavar="HASH=WORD",
    help="Resolve the conflict HASH: ours, theirs or a text; repeatable.",
)
@click.option("--no-ff", is_flag=True, help="Create a merge commit even if a fast-forward is possible.")
@session_option
@busy_options
@db_option
@json_option
def merge_command(
    source: str, strategy: Strategy, resolved: tuple[str, ...], no_ff: bool, session: str, db: str, as_json: bool
) -> None:
    """Merge the branch SOURCE into the current one.

    On a conflict nothing is stored and each conflict is listed; choose the winner with --resolve or --strategy.
    """
    with open_line(db, session) as found:
        result = found.branches.merge(source, strategy, no_ff=no_ff)
        for wanted in resolved if result.unresolved else ():
            hash, _, word = wanted.partition("=")
            conflict = next((c for c in result.conflicts if hash and c.target.startswith(hash.lower())), None)
            if conflict is None or not word:
                raise click.UsageError(
                    f"--resolve {wanted}: give the hash of a conflict, =, and ours, theirs or a text"
                )
            result.resolutions[conflict.target] = word
        if not result.stored and result.kind == "conflicts" and not result.unresolved:
            result = found.branches.commit_merge(result)
    if as_json:
        terminal.print_json(_merge_json(result))
    else:
        _print_merge(result)
    if result.unresolved:
        sys.exit(exits.FAILED)


@click.command("cherry-pick", short_help="Copy commits onto the current branch.")
@click.argument("names", nargs=-1, required=True)
@session_option
@busy_options
@db_option
@json_option
def cherry_pick_command(names: tuple[str, ...], session: str, db: str, as_json: bool) -> None:
    """Copy the commits NAMES onto the current branch. A response is copied whole, with its tool results."""
    with open_line(db, session) as found:
        commits = found.branches.cherry_pick(*names)
    _print_commits([commit.hash for commit in commits], as_json)


@click.command("rebase", short_help="Move the current branch's own commits onto another head.")
@click.argument("onto", shell_complete=complete.branches)
@session_option
@busy_options
@db_option
@json_option
def rebase_command(onto: str, session: str, db: str, as_json: bool) -> None:
    """Copy the commits that the current branch added since it left ONTO to the head of ONTO, and continue there."""
    with open_line(db, session) as found:
        commits = found.branches.rebase(onto)
    _print_commits([commit.hash for commit in commits], as_json)


def _print_commits(hashes: list[str], as_json: bool) -> None:
    if as_json:
        terminal.print_json({"commits": hashes})
        return
    terminal.out(f"{terminal.plural(len(hashes), 'commit')}{f', up to {terminal.short(hashes[-1])}' if hashes else ''}")


def _merge_json(result: MergeResult) -> dict[str, object]:
    return {
        "kind": result.kind,
        "stored": result.stored,
        "branch": result.branch,
        "base": result.base.hash or None,
        "commits": [commit.hash for commit in result.commits],
        "left_out": list(result.left_out),
        "conflicts": [
            {
                "kind": conflict.kind,
                "target": conflict.target,
                "before": conflict.before,
                "ours": conflict.ours.text,
                "theirs": conflict.theirs.text,
                "resolution": result.resolutions.get(conflict.target),
            }
            for conflict in result.conflicts
        ],
    }


def _print_merge(result: MergeResult) -> None:
    pen = terminal.pen(sys.stdout)
    if not result.unresolved:
        terminal.out(f"{result.kind.replace('_', ' ')}: {terminal.plural(len(result.commits), 'commit')} taken in")
        return
    terminal.out(f"{terminal.plural(len(result.unresolved), 'conflict')}, nothing was stored")
    for conflict in result.unresolved:
        terminal.out(pen(f"{conflict.kind.replace('_', ' ')} {terminal.short(conflict.target)}", "bold"))
        for name, side in (("ours", conflict.ours), ("theirs", conflict.theirs)):
            said = "(skipped)" if side.skipped else terminal.one_line(side.text, 60)
            terminal.out(f"  {name}: {said}")
    terminal.out("resolve with --resolve HASH=ours, HASH=theirs or HASH='a text', or with --strategy")
