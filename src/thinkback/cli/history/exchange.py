"""``export`` and ``import``: sessions to files and back. What is meant for sharing says no more than it must."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from thinkback.cli import complete, hints, terminal
from thinkback.cli.options import db_option, existing_log, is_log_there, json_option, log_path, open_log
from thinkback.cli.progress import progress_line
from thinkback.errors import FileTakenError, NotFoundError, install_hint
from thinkback.formats.registry import MODULES

if TYPE_CHECKING:
    from thinkback.session.exchange.exporting import Exported
    from thinkback.session.exchange.histories import Gap, Took
    from thinkback.session.store import SessionStore

FORMATS = ("jsonl", "markdown", "html", "parquet")


@click.command("export", short_help="Write sessions to a file.")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "--session",
    "-s",
    shell_complete=complete.sessions,
    default="",
    metavar="NAME",
    help="Export only this session, with the commits that it was forked from.",
)
@click.option(
    "--branch",
    metavar="BRANCH",
    default="",
    shell_complete=complete.branches,
    help="With --session: export this branch to Markdown or HTML instead of the current one.",
)
@click.option("--family", is_flag=True, help="With --session: export all sessions of its family of forks.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: from FILE's extension.")
@click.option("--with-reasoning", is_flag=True, help="Include reasoning, which is left out otherwise.")
@click.option("--with-carriers", is_flag=True, help="Include opaque values.")
@click.option("--with-history", is_flag=True, help="Show what edits and checkpoints replaced.")
@click.option("--complete", is_flag=True, help="Include everything, for a copy of your own.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@db_option
@json_option
def export_command(
    file: str,
    session: str,
    branch: str,
    family: bool,
    form: str | None,
    with_reasoning: bool,
    with_carriers: bool,
    with_history: bool,
    complete: bool,
    force: bool,
    db: str,
    as_json: bool,
) -> None:
    """Write the log, or one session, to FILE (`-` is standard output) as JSON Lines, Markdown, HTML or Parquet.

    Reasoning, opaque values and accounts are left out unless an option includes them; hashes still verify.
    `thinkback import FILE` reads JSON Lines. HTML is one page as `thinkback view` has it, never with opaque values;
    without the packages of the extra viewer it is a plainer one.
    """
    if family and not session:
        raise click.UsageError("--family goes with --session")
    if branch and (family or not session):
        raise click.UsageError("--branch goes with --session, and without --family")
    from thinkback.session.exchange.exporting import format_of

    with existing_log(db) as store:
        if file != "-" and not session and not form:
            if store.log.find_session(file) is not None:
                raise click.UsageError(
                    f"{file} is a session: name it with --session {file}, and a file such as {file}.md"
                )
            _check_ending(file)
        if branch and (form or ("jsonl" if file == "-" else format_of(file))) in ("jsonl", "parquet"):
            raise click.UsageError("--branch is for Markdown and HTML: JSON Lines and Parquet have every branch")
        refuse_taken(file, force)
        write = _writer(store, file, form)

        def export(with_reasoning: bool) -> Exported:
            with progress_line("exporting") as progress:
                return write(
                    sys.stdout.buffer if file == "-" else file,
                    session=session,
                    branch=branch,
                    family=family,
                    with_reasoning=with_reasoning,
                    with_carriers=with_carriers,
                    with_history=with_history,
                    complete=complete,
                    progress=progress,
                )

        done = export(with_reasoning)
        asks = done.reasoning and file != "-" and not as_json and sys.stdin.isatty() and sys.stderr.isatty()
        if asks and click.confirm(
            f"{terminal.plural(done.reasoning, 'reasoning block')} left out. Write them too?", err=True
        ):
            done = export(True)
    if as_json and file != "-":
        terminal.print_json(
            {
                "sessions": done.sessions,
                "commits": done.commits,
                "left_out": done.left_out,
                "reasoning_left_out": done.reasoning,
                "branches_left_out": done.branches,
            }
        )
    elif file != "-":
        print_exported(done, file)
    tell_left_out(done, form or ("jsonl" if file == "-" else format_of(file)))


def _check_ending(file: str) -> None:
    """Raise ``NotFoundError`` where ``file`` names no format; what has no ending may have been meant for a session."""
    from thinkback.session.exchange.exporting import format_of

    try:
        format_of(file)
    except NotFoundError as error:
        if not os.path.splitext(file)[1]:
            right = hints.command(f"export {shlex.quote(file)}.md", session=file)
            error.next_actions += (f"FILE comes first, a session is named with --session: {right}",)
        raise


def _writer(store: SessionStore, file: str, form: str | None) -> Callable[..., Exported]:
    """What writes ``form``, else that of the file: HTML as the viewer shows it, where what that needs is installed."""
    plain = partial(store.export, format=form or ("jsonl" if file == "-" else ""))
    if form != "html" and (form or not file.lower().endswith(".html")):
        return plain
    try:
        from thinkback.servers.viewer import sharing
    except ImportError:
        terminal.note(f"a plain page; for one as `thinkback view` has it, {install_hint('viewer')}")
        return plain
    return partial(sharing.export, store)


def refuse_taken(file: str, force: bool) -> None:
    """Raise ``FileTakenError`` where ``file`` is one that is there already, unless ``force`` allows to overwrite it."""
    if not force and os.path.isfile(file):
        raise FileTakenError(f"{file} exists already", details={"path": file}, next_actions=("--force overwrites it",))


def print_exported(done: Exported, file: str) -> None:
    """How much went to ``file``."""
    turns, commits = terminal.plural(done.turns, "turn"), terminal.plural(done.commits, "commit")
    terminal.out(f"{terminal.plural(done.sessions, 'session')}, {turns} ({commits}) to {file}")


def tell_left_out(done: Exported, form: str) -> None:
    """What stayed here, and the option that includes it; pages for people have no opaque values either way."""
    parts = []
    if done.reasoning:
        thought, them = terminal.plural(done.reasoning, "block"), "it" if done.reasoning == 1 else "them"
        parts.append(f"{thought} of reasoning (--with-reasoning includes {them})")
    if done.left_out and form not in ("html", "markdown"):
        parts.append("opaque values and accounts (--complete includes everything, for a copy of your own)")
    if done.branches:
        others = "1 other branch" if done.branches == 1 else f"{done.branches} other branches"
        parts.append(f"{others} (--branch NAME writes another one, a .jsonl file has all)")
    if parts:
        terminal.note(f"left out: {'; '.join(parts)}")


@click.command("import", short_help="Read sessions from a file, or from another program's histories.")
@click.argument("file", default="", type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "--program",
    type=click.Choice(tuple(MODULES)),
    help="Import this program's histories; its files are found automatically.",
)
@click.option("--dir", "folder", metavar="PATH", default="", help="The program's folder, if not the usual one.")
@click.option("--since", metavar="TIME", default="", help="Import only what is newer than a date or an age (30d, 12h).")
@click.option(
    "--project", metavar="NAME", default="", help="Import only sessions in a folder of this name, or below this path."
)
@click.option("--dry-run", is_flag=True, help="List what would be imported, and import nothing.")
@click.option("--follow", is_flag=True, help="Keep importing while the program writes, until Ctrl-C.")
@click.option(
    "--same-account",
    "endpoint",
    metavar="ENDPOINT",
    shell_complete=complete.endpoints,
    default="",
    help="Confirm that the sessions come from your account at ENDPOINT, so that opaque values may be sent back there.",
)
@click.option(
    "--base-url",
    metavar="URL",
    default="",
    help="Base URL of that ENDPOINT, if it has one for each region or customer; one of the hosts known for it.",
)
@db_option
@json_option
def import_command(
    file: str,
    program: str | None,
    folder: str,
    since: str,
    project: str,
    dry_run: bool,
    follow: bool,
    endpoint: str,
    base_url: str,
    db: str,
    as_json: bool,
) -> None:
    """Import the sessions of FILE (`-` is standard input): JSON Lines of `thinkback export FILE.jsonl`, or another
    program's histories.

    The program that wrote FILE is detected. With --program and without FILE, import all histories of that program.
    Its files are only read, and nothing is imported twice. Of an export every hash is checked; commits already in the
    log stay unchanged.
    """
    if program and (file == "-" or (file and folder)):
        raise click.UsageError("with --program name one file, or a folder with --dir")
    if not program and not folder:
        program = _detected(file)
        if program:
            terminal.note(f"{file} is a history of {program}")
    if program:
        if follow and dry_run:
            raise click.UsageError("--follow stores what it reads: leave out --dry-run")
        if base_url and not endpoint:
            raise click.UsageError("--base-url goes with --same-account")
        account = (endpoint, base_url)
        _import_histories(program, file or folder, since, project, dry_run, account, db, as_json, follow=follow)
        return
    if folder or since or project or dry_run or follow or endpoint or base_url:
        apart = "--dir, --since, --project, --dry-run, --follow, --same-account and --base-url"
        raise click.UsageError(f"{apart} go with --program")
    if not file:
        raise click.UsageError("name a file, or a program with --program")
    with open_log(log_path(db)) as store, progress_line("importing") as progress:
        done = store.import_(sys.stdin.buffer if file == "-" else file, progress=progress)
    if as_json:
        import msgspec

        terminal.print_json(msgspec.to_builtins(done.sessions))
        return
    for session in done.sessions:
        if session.skipped:
            terminal.note(terminal.clean(f"{session.name}: {session.skipped}"))
            continue
        made = "new" if session.made else "was here"
        elsewhere = f", with own commits here on: {', '.join(session.elsewhere)}" if session.elsewhere else ""
        more = f", {terminal.plural(session.restored, 'commit')} completed" if session.restored else ""
        told = f"{session.name}: {terminal.plural(session.commits, 'commit')} added{more}, {made}{elsewhere}"
        terminal.out(terminal.clean(told))
        if session.left_out:
            terminal.note(terminal.clean(f"{session.name}: unknown settings: {', '.join(session.left_out)}"))
        if session.erased:
            told = f"{terminal.plural(session.erased, 'commit')} erased here, left out again"
            terminal.note(terminal.clean(f"{session.name}: {told}"))
    _explain_skipped([session.skipped for session in done.sessions])


def _detected(file: str) -> str:
    """The program whose history a file is; empty for an export, for standard input, and where there is no file."""
    if file in ("", "-") or not os.path.isfile(file):
        return ""
    from pathlib import Path

    from thinkback.session.exchange.program_detection import EXPORT, detect

    found = detect(Path(file))
    return "" if found == EXPORT else found


def _import_histories(
    program: str,
    place: str,
    since: str,
    project: str,
    dry_run: bool,
    account: tuple[str, str],
    db: str,
    as_json: bool,
    *,
    follow: bool,
) -> None:
    from thinkback.drive.clock import now
    from thinkback.session.exchange import following, histories
    from thinkback.session.times import moment

    path, began = log_path(db), moment(since or None, now()) or 0
    # Looking makes no log.
    with open_log(":memory:" if dry_run and not is_log_there(path) else path) as store:
        vouched = histories.vouched(store, *account) if account[0] else None
        wanted = histories.Wanted(program, place, began, project, dry_run, vouched)
        tell: Callable[[Took], None] = (lambda _: None) if as_json else _print_import
        if follow:
            terminal.note("following: Ctrl-C ends")
            done, gaps = following.follow(store.log, wanted, tell, time.time, time.sleep, _warn)
        else:
            done, gaps = histories.run(store.log, wanted, tell)
    if as_json:
        import msgspec

        terminal.print_json({"sessions": msgspec.to_builtins(done), "left_out": msgspec.to_builtins(gaps)})
        return
    _print_total(done, gaps, dry_run)


def _warn(message: str) -> None:
    terminal.note(terminal.clean(f"the log took nothing: {message}; trying again"))


def _print_import(took: Took) -> None:
    """A session as it is done."""
    if took.skipped:
        terminal.note(f"{took.name}: {took.skipped}")
    elif took.commits:
        made = "new" if took.made else "was here"
        shown = " ".join(word for word in (took.project, took.title) if word)
        added = f"{terminal.plural(took.messages, 'message')}, {terminal.plural(took.commits, 'commit')} added, {made}"
        terminal.out(terminal.clean(f"{took.name}: {added}{f' ({shown})' if shown else ''}"))
    if took.cut:
        terminal.note(
            f"{took.name}: only the newest {took.branches} branches are imported, {took.cut} older ones are not"
        )
    if took.erased:
        terminal.note(f"{took.name}: {terminal.plural(took.erased, 'commit')} erased here, left out again")


def _explain_skipped(reasons: Sequence[str]) -> None:
    """Say what to do, where an import skipped every session."""
    from thinkback.session.exchange.importing import STAYS_ERASED

    if not all(reasons) or not reasons:
        return
    if {*reasons} == {STAYS_ERASED}:
        terminal.note(
            "nothing was imported: all of it was erased in this log. Import it into another log (--db FILE), or run "
            "`thinkback delete erased-imports` first: the log then forgets what was erased"
        )
    else:
        terminal.note("nothing was imported: every session was skipped, for the reason beside its name")


def _print_total(done: Sequence[Took], gaps: Sequence[Gap], dry_run: bool) -> None:
    """How much it was, and a line for each kind of thing that was not taken in."""
    commits, changed = sum(took.commits for took in done), [took for took in done if took.commits]
    would = "would be added" if dry_run else "added"
    told = f"{terminal.plural(len(done), 'session')}, {len(changed)} with something new, {commits} commits {would}"
    terminal.out(told)
    _explain_skipped([took.skipped for took in done])
    kinds: dict[str, tuple[int, Gap]] = {}
    for gap in gaps:
        count, first = kinds.get(gap.left.what, (0, gap))
        kinds[gap.left.what] = (count + gap.left.count, first)
    for what, (count, first) in kinds.items():
        line = f", line {first.left.line}" if first.left.line else ""
        terminal.note(f"left out: {what} ({count}; first in {first.file}{line})")
