"""``sessions``, ``log``, ``show`` and ``fsck``: what the log holds. Looking never makes a log and changes nothing."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from thinkback.cli import complete, exits, hints, terminal
from thinkback.cli.options import (
    chosen,
    db_option,
    existing_log,
    existing_path,
    is_log_there,
    json_option,
    log_path,
    session_argument,
)
from thinkback.cli.progress import progress_line
from thinkback.drive import clock
from thinkback.errors import NotFoundError
from thinkback.session.places import title_of

if TYPE_CHECKING:
    from thinkback.log.protocol import BranchInfo, SessionInfo, Summary
    from thinkback.model.commits import Commit
    from thinkback.session.store import SessionStore


_SHOWN = 50
"""Sessions that are listed for people."""
_MOST_COUNTED = 5_000
_MOST_READ = 50_000
"""Commits that are read for the costs of all that `sessions --json` lists; those used last come first."""
"""Commits of a session whose cost a list tells: of a longer one `usage` does."""
_MODEL, _LEAST_TITLE = 14, 14
"""Columns: of the model on a terminal of 80, and what the title has everywhere."""
_TITLE = 40


@click.command("sessions", short_help="List the sessions.")
@click.option("-n", "count", type=click.IntRange(min=1), metavar="N", help="List only the N sessions used last.")
@db_option
@json_option
def sessions_command(count: int | None, db: str, as_json: bool) -> None:
    """List the sessions, last used first: title (by default the first question), models, turns, cost and last use.
    Models, turns and cost are those of all branches.

    The setting session.title sets the title; `thinkback title SESSION` lets a model write one.
    """
    path = existing_path(db) if db else log_path("")
    if not is_log_there(path):
        if as_json:
            terminal.print_json([])
        else:
            _print_none(path)
        return
    with existing_log(db) as store:
        total = store.log.count_sessions()
        shown = store.sessions(count if count or as_json else _SHOWN)
        if as_json:
            summaries = store.log.summaries([info.id for info in shown] if count else None)
            room = _MOST_READ
            rows = []
            for at, info in enumerate(shown):
                summary = summaries.get(info.id)
                room -= info.commits
                cost = _cost(store, info, summary, reads=at < _SHOWN or room >= 0)
                rows.append(_session_json(info, summary, cost))
            terminal.print_json(rows)
        elif not shown:
            _print_none(path)
        else:
            print_sessions(store, shown)
    if len(shown) < total and not (count or as_json):
        terminal.note(f"the {_SHOWN} sessions used last are shown, of {total}: -n {total} shows all")


def _print_none(path: str) -> None:
    place = "the log" if "://" in path else path
    terminal.out(f"No sessions in {place}; {hints.command('chat')} begins one.")


def print_sessions(store: SessionStore, found: Sequence[SessionInfo]) -> None:
    """A line for each that fits the terminal: the title has what the other columns leave."""
    from thinkback.session.times import ago

    summaries = store.log.summaries([info.id for info in found])
    now = max([clock.now(), *(info.updated for info in found)])
    rows = []
    for info in found:
        summary = summaries.get(info.id)
        models = summary.tally.models if summary is not None else ()
        more = f" +{len(models) - 1}" if len(models) > 1 else ""
        room = max(_MODEL, terminal.width() // 3 - _MODEL)
        answered = terminal.one_line(models[0], room - len(more)) + more if models else "-"
        turns = str(summary.tally.turns) if summary is not None else "-"
        cost = _cost(store, info, summary)
        title = title_of(info, summary)
        if summary is not None and summary.about.project:
            title = f"{summary.about.project}: {title}"
        name, model = terminal.clean(info.name), answered
        rows.append((name, title, model, turns, "-" if cost is None else f"${cost:.4f}", ago(info.updated, now)))
    heading = ("session", "title", "model", "turns", "cost", "used")
    columns = enumerate(zip(heading, *rows, strict=True))
    others = sum(max(map(terminal.columns_of, column)) + 2 for at, column in columns if at != 1)
    room = max(terminal.width() - others, _LEAST_TITLE)
    told = [(name, terminal.one_line(title, room), *rest) for name, title, *rest in rows]
    first, *lines = terminal.table([heading, *told], right=(3, 4, 5))
    terminal.out(terminal.pen(sys.stdout)(first, "dim"))
    for line in lines:
        terminal.out(line)


def place_of(info: SessionInfo, summary: Summary | None) -> str:
    """A session as it stands beside what was found in it: that of an agent with its project and title too."""
    project = summary.about.project if summary is not None else ""
    return f"{info.name} ({project}: {terminal.one_line(title_of(info, summary), _TITLE)})" if project else info.name


def _cost(store: SessionStore, info: SessionInfo, summary: Summary | None, *, reads: bool = True) -> float | None:
    """US dollars, as a program said or by prices; ``None`` where none is known, and of sessions that are long.

    Without ``reads`` no session is read for it.
    """
    if summary is not None and summary.about.cost:  # a program that knows no price says 0
        return summary.about.cost / 1_000_000
    if not reads or info.commits > _MOST_COUNTED:
        return None
    from thinkback.session.observing import costs
    from thinkback.session.usage import own_steps

    found = costs(own_steps(store.log, info))
    return found.usd if found.usd or (found.known and not found.unknown) else None


@click.command("log", short_help="Show the messages of a session.")
@session_argument
@click.option(
    "--branch",
    default="",
    metavar="NAME",
    shell_complete=complete.branches,
    help="Show this branch instead of the current one.",
)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Show only commits of this kind; repeatable.")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="Show only commits with this tag; repeatable.")
@click.option("-n", "count", type=click.IntRange(min=1), metavar="N", help="Show only the last N turns.")
@click.option(
    "--style",
    type=click.Choice(("chat", "table", "list", "compact")),
    help="Output style; default: chat, or a list with --kind or --tag.",
)
@db_option
@json_option
def log_command(
    session: str,
    branch: str,
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    count: int | None,
    style: str | None,
    db: str,
    as_json: bool,
) -> None:
    """Show the messages and reasoning of SESSION (default: the session used last), oldest first.

    The current branch is shown: of a program that ran several times under one name, the newest conversation.

    On a terminal long output goes through a pager. The styles table, list and compact print a line for each commit,
    with its hash. The styles chat, table and compact show the current state, with edits, priorities and tags.
    """
    from thinkback.log.names import before_question
    from thinkback.model.curation import matching
    from thinkback.session.history.branches import unshown_branches
    from thinkback.session.transcripts.wording import first_words

    with existing_log(db) as store:
        info = chosen(store, session)
        every = store.log.read(info.id, branch=branch or info.branch)
        place = place_of(info, store.log.summaries([info.id]).get(info.id))
        others = [] if as_json else unshown_branches(store.log, info.id, every)
    wanted = {c.hash for c in every[before_question(every, count) :]} if count else None
    commits = [c for c in matching(every, kinds, frozenset(tags)) if wanted is None or c.hash in wanted]
    if as_json:
        terminal.print_json([{**_commit_json(commit), "text": first_words(commit.value)} for commit in commits])
        return
    at = f", branch {branch or info.branch or 'none'}" if sys.stdout.isatty() else ""
    told = f"session {terminal.clean(place)}{terminal.clean(at)}\n"
    heading = terminal.pen(sys.stdout)(told, "dim") if at or place != info.name else ""
    style = style or ("list" if kinds or tags else "chat")
    if style != "list":
        from thinkback.session.transcripts.printing import pprint

        page = terminal.Page()
        pprint(commits, style, page, every)
        terminal.show(heading + page.getvalue())
        note_others("log", info.name, others)
        return
    pen = terminal.pen(sys.stdout)
    column = max([14, *(len(commit.kind) for commit in commits)])
    terminal.show(
        heading + "".join(f"{_log_line(commit, first_words(commit.value), column, pen)}\n" for commit in commits)
    )
    note_others("log", info.name, others)


def note_others(command: Literal["log", "why"], session: str, others: Sequence[BranchInfo]) -> None:
    """Say on standard error how many ``others`` of the branches of ``session`` are not shown, and how to see them."""
    if not others:
        return
    number = "another branch is" if len(others) == 1 else f"{len(others)} other branches are"
    newest = hints.command("log", session, branch=others[0].name)
    if command == "why":
        newest = hints.command("why", session, branch=others[0].name)
    every = hints.command("branch", session=session)
    terminal.note(f"{number} not shown: {newest} shows {'it' if len(others) == 1 else 'the newest'}, {every} lists all")


@click.command("show", short_help="Show one commit.")
@click.argument("hash")
@click.option(
    "--with-carriers", is_flag=True, help="With --json: print opaque values in full, not only kind and length."
)
@db_option
@json_option
def show_command(hash: str, with_carriers: bool, db: str, as_json: bool) -> None:
    """Show the commit HASH (its first characters are enough), or the response with this id.

    The output includes the model and endpoint of its response, and its annotations. Opaque values are shown as kind and
    length only.
    """
    from thinkback.cli.history.payloads import concealed, payload_json, readable
    from thinkback.session.history.facts import facts_of, find

    if with_carriers and not as_json:
        raise click.UsageError("--with-carriers needs --json: opaque values are for programs")
    with existing_log(db) as store:
        try:
            owner, commit = find(store.log, hash)
        except NotFoundError as error:
            if store.log.find_session(hash) is None:
                raise
            raise NotFoundError(
                f"{hash} is a session, and no commit",
                details=error.details,
                next_actions=(f"`thinkback log {shlex.quote(hash)}` shows it",),
            ) from None
        session = store.find(owner).name
        facts = facts_of(store.log, owner, commit)
    if as_json:
        payload = payload_json(commit) if with_carriers else concealed(commit)
        terminal.print_json({"session": session, **_commit_json(commit), **facts._asdict(), "payload": payload})
        return
    pen = terminal.pen(sys.stdout)
    terminal.out(pen(f"commit {commit.hash}", "yellow"))
    place = f", block {commit.index} of response {terminal.short(commit.response)}" if commit.index >= 0 else ""
    terminal.out(pen(f"{commit.kind} {commit.seq} of session {terminal.clean(session)}{place}", "dim"))
    terminal.out(pen(f"{terminal.iso(commit.time)}, payload {commit.digest[:12]}", "dim"))
    for parent in commit.parents[1:]:
        terminal.out(pen(f"other parent: {parent}", "dim"))
    for name, value in facts._asdict().items():
        if value:
            told = ", ".join(value) if isinstance(value, list) else value
            said = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
            terminal.out(pen(terminal.clean(f"{name}: {said}"), "dim"))
    terminal.out()
    for line, styles in readable(commit):
        terminal.out(pen(line, *styles))


@click.command("fsck", short_help="Check every hash of the log.")
@db_option
@json_option
def fsck_command(db: str, as_json: bool) -> None:
    """Check the log: every stored byte against its hash, every commit against its parent."""
    with existing_log(db) as store:
        with progress_line("checking") as progress:
            problems = store.fsck(progress=progress)
        if not problems:
            sessions, commits = store.log.count_sessions(), store.log.count()
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


def _session_json(info: SessionInfo, summary: Summary | None, usd: float | None) -> dict[str, object]:
    counted = summary.tally if summary is not None else None
    about = summary.about if summary is not None else None
    return {
        "name": info.name,
        "id": info.id,
        "title": title_of(info, summary),
        "program": (about.program or None) if about is not None else None,
        "project": (about.project or None) if about is not None else None,
        "directory": (about.directory or None) if about is not None else None,
        "models": list(counted.models) if counted is not None else None,
        "turns": counted.turns if counted is not None else None,
        "tokens": counted.tokens if counted is not None else None,
        "cost_usd": usd,
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
