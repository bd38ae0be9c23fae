"""``sessions``, ``log``, ``show`` and ``fsck``: what the log holds. Looking never makes a log and changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from thinkback.cli import complete, exits, hints, terminal
from thinkback.cli.options import (
    chosen,
    db_option,
    existing_log,
    is_log_there,
    json_option,
    log_path,
    session_argument,
)

if TYPE_CHECKING:
    from thinkback.log.protocol import SessionInfo
    from thinkback.model.commits import Commit


@click.command("sessions", short_help="List the sessions.")
@db_option
@json_option
def sessions_command(db: str, as_json: bool) -> None:
    """List the sessions, last used first."""
    found: list[SessionInfo] = []
    path = log_path(db)
    if is_log_there(path):
        with existing_log(db) as store:
            found = store.sessions()
    if as_json:
        terminal.print_json([_session_json(info) for info in found])
    elif not found:
        place = "the log" if "://" in path else path
        terminal.out(f"No sessions in {place}; {hints.command('chat')} begins one.")
    else:
        print_sessions(found)


def print_sessions(found: Sequence[SessionInfo]) -> None:
    """A line for each."""
    rows = [(terminal.clean(i.name), str(i.commits), terminal.clock(i.updated), terminal.short(i.id)) for i in found]
    heading, *lines = terminal.table([("session", "commits", "last used", "id"), *rows], right=(1,))
    terminal.out(terminal.pen(sys.stdout)(heading, "dim"))
    for line in lines:
        terminal.out(line)


@click.command("log", short_help="List the commits of a session.")
@session_argument
@click.option(
    "--branch",
    default="",
    metavar="NAME",
    shell_complete=complete.branches,
    help="Another branch than the current one.",
)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only commits of this kind; may be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="Only commits with this tag; may be repeated.")
@click.option("--style", type=click.Choice(("list", "chat", "table", "compact")), default="list", help="How it looks.")
@db_option
@json_option
def log_command(
    session: str,
    branch: str,
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    style: str,
    db: str,
    as_json: bool,
) -> None:
    """List the commits of SESSION, oldest first; of the session used last if none is named.

    The styles chat, table and compact show what holds now, with priorities and tags.
    """
    from thinkback.model.curation import matching
    from thinkback.session.transcripts.wording import first_words

    with existing_log(db) as store:
        info = chosen(store, session)
        every = store.log.read(info.id, branch=branch or info.branch)
        commits = matching(every, kinds, frozenset(tags))
    if style != "list" and not as_json:
        from thinkback.session.transcripts.printing import pprint

        pprint(commits, style, sys.stdout, every)
        return
    if as_json:
        terminal.print_json([{**_commit_json(commit), "text": first_words(commit.value)} for commit in commits])
        return
    pen = terminal.pen(sys.stdout)
    column = max([14, *(len(commit.kind) for commit in commits)])
    for commit in commits:
        terminal.out(_log_line(commit, first_words(commit.value), column, pen))


@click.command("show", short_help="Show one commit.")
@click.argument("hash")
@click.option("--with-carriers", is_flag=True, help="With --json: opaque values in full, instead of kind and length.")
@db_option
@json_option
def show_command(hash: str, with_carriers: bool, db: str, as_json: bool) -> None:
    """Show the commit HASH (its first characters are enough). Opaque values appear as kind and length only."""
    from thinkback.cli.history.payloads import concealed, payload_json, readable

    if with_carriers and not as_json:
        raise click.UsageError("--with-carriers needs --json: opaque values are for programs")
    with existing_log(db) as store:
        owner, commit = store.log.find_commit(hash)
        session = store.find(owner).name
    if as_json:
        payload = payload_json(commit) if with_carriers else concealed(commit)
        terminal.print_json({"session": session, **_commit_json(commit), "payload": payload})
        return
    pen = terminal.pen(sys.stdout)
    terminal.out(pen(f"commit {commit.hash}", "yellow"))
    place = f", block {commit.index} of response {terminal.short(commit.response)}" if commit.index >= 0 else ""
    terminal.out(pen(f"{commit.kind} {commit.seq} of session {terminal.clean(session)}{place}", "dim"))
    terminal.out(pen(f"{terminal.iso(commit.time)}, payload {commit.digest[:12]}", "dim"))
    terminal.out()
    for line, styles in readable(commit):
        terminal.out(pen(line, *styles))


@click.command("fsck", short_help="Check every hash of the log.")
@db_option
@json_option
def fsck_command(db: str, as_json: bool) -> None:
    """Check the log: every stored byte against its hash, every commit against its parent."""
    with existing_log(db) as store:
        problems = store.fsck()
        if not problems:
            sessions, commits = len(store.sessions()), store.log.count()
            if as_json:
                terminal.print_json({"problems": [], "sessions": sessions, "commits": commits})
            else:
                terminal.out(f"clean: {terminal.plural(sessions, 'session')}, {terminal.plural(commits, 'commit')}")
            return
    damage = f"the log is damaged: {terminal.plural(len(problems), 'finding')}"
    if as_json:
        found = [{"where": each.where, "what": each.what} for each in problems]
        terminal.print_error("corrupt", damage, {"problems": found})
    else:
        for problem in problems:
            terminal.out(terminal.clean(f"{problem.where}: {problem.what}"))
    terminal.complain(damage)
    sys.exit(exits.DAMAGED)


def _session_json(info: SessionInfo) -> dict[str, object]:
    return {
        "name": info.name,
        "id": info.id,
        "commits": info.commits,
        "created": terminal.iso(info.created),
        "updated": terminal.iso(info.updated),
        "head": info.head.hash or None,
        "settings": info.settings,
    }


def _commit_json(commit: Commit) -> dict[str, object]:
    return {
        "hash": commit.hash,
        "parents": list(commit.parents),
        "seq": commit.seq,
        "kind": commit.kind,
        "time": terminal.iso(commit.time),
        "response": commit.response or None,
        "index": commit.index if commit.index >= 0 else None,
    }


def _log_line(commit: Commit, words: str, column: int, pen: terminal.Pen) -> str:
    is_reasoning = commit.kind == "reasoning"
    kind = terminal.pad("[reasoning]" if is_reasoning else commit.kind, column)
    before = f"{terminal.short(commit.hash)}  {kind}  {terminal.clock(commit.time)}  "
    text = terminal.one_line(words, max(terminal.width() - len(before), 20))
    if is_reasoning:
        kind, text = pen(kind, "dim", "cyan"), pen(text, "dim")
    return f"{pen(terminal.short(commit.hash), 'yellow')}  {kind}  {pen(terminal.clock(commit.time), 'dim')}  {text}"
