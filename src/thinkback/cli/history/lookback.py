"""``tree diff compile timeline``: a family of sessions, two of its lines side by side, a context as of then."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from thinkback.cli import complete, terminal
from thinkback.cli.options import (
    chosen,
    db_option,
    existing_log,
    json_option,
    open_line,
    session_argument,
    session_option,
)

if TYPE_CHECKING:
    from thinkback.log.diff import Style as DiffStyle

_STYLES: dict[DiffStyle, tuple[terminal.Style, ...]] = {
    "heading": ("bold",),
    "added": ("green",),
    "removed": ("red",),
    "changed": ("yellow",),
    "muted": ("dim", "cyan"),
}


@click.command("tree", short_help="Show a family of forked sessions and their branches.")
@session_argument
@db_option
@json_option
def tree_command(session: str, db: str, as_json: bool) -> None:
    """Show the sessions that were forked from one another, their branches, and the points where they fork."""
    with open_line(db, session) as found:
        nodes = found.branches.tree()
    if as_json:
        import msgspec

        terminal.print_json(msgspec.to_builtins(nodes))
        return
    pen = terminal.pen(sys.stdout)
    depth: dict[str, int] = {}
    for node in nodes:
        depth[node.name] = depth.get(node.parent, -1) + 1
        indent = "  " * depth[node.name]
        said = f"  {terminal.one_line(node.purpose, 50)}" if node.purpose else ""
        terminal.out(f"{indent}{pen(terminal.clean(node.name), 'bold')}{pen(said, 'dim')}")
        for branch in node.branches:
            mark = "*" if branch.name == node.current else " "
            left = ""
            if branch.parent is not None:
                place = "/".join(branch.parent) if branch.parent[0] != node.name else branch.parent[1]
                left = f"  from {place} after {terminal.short(branch.fork.hash)}"
            count = terminal.plural(branch.head.seq + 1, "commit")
            terminal.out(
                terminal.clean(f"{indent}  {mark} {branch.name}  {terminal.short(branch.head.hash)}  {count}{left}")
            )


@click.command("diff", short_help="Compare two commits, reasoning included.")
@click.argument("old", shell_complete=complete.branches)
@click.argument("new", default="HEAD", shell_complete=complete.branches)
@session_option
@db_option
@json_option
def diff_command(old: str, new: str, session: str, db: str, as_json: bool) -> None:
    """Show the differences between the session at the commit OLD and at NEW: messages, reasoning, edits, priorities."""
    from thinkback.log.diff import render

    with open_line(db, session) as found:
        compared = found.branches.compare(new, old)
        difference = found.branches.diff(old, new)
    if as_json:
        import msgspec

        told = msgspec.to_builtins(difference)
        terminal.print_json({**told, "ahead": compared.ahead, "behind": compared.behind})
        return
    pen = terminal.pen(sys.stdout)
    terminal.out(
        pen(
            f"{terminal.clean(new)} is {compared.ahead} ahead of {terminal.clean(old)}, {compared.behind} behind", "dim"
        )
    )
    for line in render(difference):
        terminal.out(pen(terminal.clean(line.text), *_STYLES[line.style]))


@click.command("timeline", short_help="List the commits of a family of sessions by time.")
@session_argument
@db_option
@json_option
def timeline_command(session: str, db: str, as_json: bool) -> None:
    """List the commits of all sessions and branches of a family of forks, each once, by time."""
    from thinkback.session.history.children import timeline
    from thinkback.session.transcripts.wording import first_words

    with existing_log(db) as store:
        events = timeline(store.log, chosen(store, session).family)
    if as_json:
        terminal.print_json(
            [
                {
                    "session": event.session,
                    "hash": event.commit.hash,
                    "kind": event.commit.kind,
                    "time": terminal.iso(event.commit.time),
                    "text": first_words(event.commit.value),
                }
                for event in events
            ]
        )
        return
    pen = terminal.pen(sys.stdout)
    column = max([14, *(len(event.commit.kind) for event in events)])
    for event in events:
        reasons = event.commit.kind == "reasoning"
        kind = terminal.pad("[reasoning]" if reasons else event.commit.kind, column)
        when, name = terminal.clock(event.commit.time), terminal.clean(event.session)
        before = f"{terminal.short(event.commit.hash)}  {when}  {name}  {kind} "
        text = terminal.one_line(first_words(event.commit.value), max(terminal.width() - len(before), 20))
        terminal.out(pen(before + text, *(("dim", "cyan") if reasons else ())))
