"""``export`` and ``import``: sessions to files and back. What is meant for sharing says no more than it must."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from thinkback.cli import terminal
from thinkback.cli.options import db_option, existing_log, json_option, log_path, open_log

if TYPE_CHECKING:
    from thinkback.session.exchange.exporting import Exported

FORMATS = ("jsonl", "markdown", "html", "parquet")


@click.command("export", short_help="Write sessions to a file.")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--session", "-s", default="", metavar="NAME", help="Only this session, with what it was forked from.")
@click.option("--family", is_flag=True, help="With --session: all sessions that forked from one another.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: from FILE's extension.")
@click.option("--with-reasoning", is_flag=True, help="Include reasoning.")
@click.option("--with-carriers", is_flag=True, help="Include opaque values.")
@click.option("--with-history", is_flag=True, help="Show what edits and checkpoints replaced.")
@click.option("--complete", is_flag=True, help="Include everything, as for a copy of your own.")
@db_option
@json_option
def export_command(
    file: str,
    session: str,
    family: bool,
    form: str | None,
    with_reasoning: bool,
    with_carriers: bool,
    with_history: bool,
    complete: bool,
    db: str,
    as_json: bool,
) -> None:
    """Write the log, or one session, to FILE (`-` is standard output) as JSON Lines, Markdown, HTML or Parquet.

    Reasoning, opaque values and accounts stay here unless they are asked for; hashes still verify. `thinkback import`
    reads JSON Lines.
    """
    if family and not session:
        raise click.UsageError("--family goes with --session")
    with existing_log(db) as store:
        if file != "-" and not session and not form and store.log.find_session(file) is not None:
            raise click.UsageError(f"{file} is a session: name it with --session {file}, and a file such as {file}.md")
        done = store.export(
            sys.stdout.buffer if file == "-" else file,
            session=session,
            family=family,
            format=form or ("jsonl" if file == "-" else ""),
            with_reasoning=with_reasoning,
            with_carriers=with_carriers,
            with_history=with_history,
            complete=complete,
        )
    if file == "-":
        return
    if as_json:
        terminal.print_json({"sessions": done.sessions, "commits": done.commits, "left_out": done.left_out})
        return
    print_exported(done, file)


def print_exported(done: Exported, file: str) -> None:
    """How much went to ``file``, and whether something stayed."""
    terminal.out(f"{terminal.plural(done.sessions, 'session')}, {terminal.plural(done.commits, 'commit')} to {file}")
    if done.left_out:
        commits = terminal.plural(done.left_out, "commit")
        terminal.note(f"reasoning or opaque values of {commits} were left out: --complete keeps them")


@click.command("import", short_help="Read sessions from a file.")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@db_option
@json_option
def import_command(file: str, db: str, as_json: bool) -> None:
    """Take in the sessions of FILE (`-` is standard input), JSON Lines as `thinkback export` writes them.

    Every hash is checked; what is there already stays as it is.
    """
    with open_log(log_path(db)) as store:
        done = store.import_(sys.stdin.buffer if file == "-" else file)
    if as_json:
        import msgspec

        terminal.print_json(msgspec.to_builtins(done.sessions))
        return
    for session in done.sessions:
        made = "new" if session.made else "was here"
        elsewhere = f", its own way here: {', '.join(session.elsewhere)}" if session.elsewhere else ""
        told = f"{session.name}: {terminal.plural(session.commits, 'commit')} added, {made}{elsewhere}"
        terminal.out(terminal.clean(told))
        if session.left_out:
            terminal.note(
                terminal.clean(f"{session.name}: settings that mean nothing here: {', '.join(session.left_out)}")
            )
