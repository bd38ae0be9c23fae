"""``delete``, ``purge`` and ``redact``: what was said is erased; the hashes of what stays still verify."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import click

from thinkback.cli import complete, hints, terminal
from thinkback.cli.options import (
    busy_options,
    confirm,
    db_option,
    existing_log,
    json_option,
    patience,
    takes_over,
    wait_option,
)
from thinkback.cli.progress import progress_line
from thinkback.errors import NotFoundError, ThinkbackError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from thinkback.session.history.erasing import Erasure

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be erased, and erase nothing.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
reason_option = click.option("--reason", default="", help="Reason, stored in place of the erased text.")
_SHOWN, _NAMED = 10, 5


@click.command("delete", short_help="Delete a session.")
@click.argument("session", shell_complete=complete.sessions)
@dry_run_option
@yes_option
@busy_options
@db_option
@json_option
def delete_command(session: str, dry_run: bool, yes: bool, db: str, as_json: bool) -> None:
    """Delete SESSION with its branches. Commits that other sessions build on stay with those sessions."""
    with existing_log(db) as store:
        _do(
            lambda dry: store.care.delete_session(session, dry_run=dry, wait=patience(), take_over=takes_over()),
            dry_run,
            yes,
            as_json,
        )


@click.command("purge", short_help="Erase turns of an end user or a model, sessions of a project, and so on.")
@click.option("--end-user", default="", metavar="ID", help="Erase every turn of this end user.")
@click.option("--before", metavar="TIME", help="Erase everything before this time, e.g. 2026-07-01.")
@click.option("--model", default="", metavar="NAME", help="Erase every turn that this model answered.")
@click.option("--program", default="", metavar="NAME", help="Erase only in sessions of this program.")
@click.option("--project", default="", metavar="NAME", help="Erase only in sessions of this project.")
@click.option("--tenant", default="", help="Erase every session of this tenant.")
@click.option("--key", default="", metavar="ID", help="Delete every session that a gateway recorded for this key.")
@reason_option
@dry_run_option
@yes_option
@wait_option
@db_option
@json_option
def purge_command(
    end_user: str,
    before: str | None,
    tenant: str,
    key: str,
    reason: str,
    dry_run: bool,
    yes: bool,
    db: str,
    as_json: bool,
    **only: str,
) -> None:
    """Erase content from the log and its search index. A note of time and reason takes its place.

    Of several conditions all must hold. --program and --project without another condition delete the sessions.
    """
    if key and (end_user or before or tenant or any(only.values())):
        raise click.UsageError("--key stands alone: its sessions are deleted")
    if not (end_user or before or tenant or key or any(only.values())):
        actions = (
            "say what to erase: --end-user ID, --before TIME, --model NAME, --program NAME, --project NAME, "
            "--tenant TEXT or --key ID",
        )
        raise ThinkbackError("nothing to purge was named", next_actions=actions)
    try:
        moment = datetime.fromisoformat(before) if before else None
    except ValueError:
        raise click.UsageError(
            f"--before: {before!r} is not a time; write it as 2026-07-01 or 2026-07-01T12:30"
        ) from None
    with existing_log(db) as store:

        def purge(dry: bool) -> Erasure:
            with progress_line("looking" if dry else "erasing") as progress:
                if key:
                    return store.care.purge_key(key, dry_run=dry, wait=patience(), progress=progress)
                return store.care.purge(
                    end_user=end_user,
                    before=moment,
                    tenant=tenant,
                    reason=reason or "purged",
                    dry_run=dry,
                    wait=patience(),
                    progress=progress,
                    **only,
                )

        _do(
            purge,
            dry_run,
            yes,
            as_json,
            _nobody(end_user, only),
            names_stay=bool(end_user or before or only["model"]),
            file=store.file,
        )


def _nobody(end_user: str, only: Mapping[str, str]) -> str:
    """The error where somebody or something is named that is not in the log."""
    if end_user:
        return f"no turn for the end user {end_user!r} is in this log: nothing was erased"
    named = next((f"{what} {name!r}" for what, name in only.items() if name), "")
    return f"nothing of the {named} is in this log: nothing was erased" if named else ""


@click.command("redact", short_help="Remove matching text from a commit.")
@click.argument("hash")
@click.option("--pattern", required=True, metavar="REGEX", help="Regular expression of the text to remove.")
@click.option(
    "--session",
    "-s",
    shell_complete=complete.sessions,
    default="",
    metavar="NAME",
    help="Session in which to look for the commit.",
)
@reason_option
@dry_run_option
@yes_option
@db_option
@json_option
def redact_command(
    hash: str, pattern: str, session: str, reason: str, dry_run: bool, yes: bool, db: str, as_json: bool
) -> None:
    """Remove matching text from the commit HASH, its copies and its edits. The opaque values of its
    response are removed too."""
    with existing_log(db) as store:
        _do(
            lambda dry: store.care.redact(hash, pattern, session=session, reason=reason or "redacted", dry_run=dry),
            dry_run,
            yes,
            as_json,
        )


def _do(
    erase: Callable[[bool], Erasure],
    dry_run: bool,
    yes: bool,
    as_json: bool,
    nobody: str = "",
    *,
    names_stay: bool = False,
    file: str = "",
) -> None:
    """Say what goes, ask, and erase it: there is no way back. Raises ``NotFoundError`` that says ``nobody``, if given,
    where there is nothing.
    """
    erasure = erase(True)
    if not dry_run and erasure.commits:
        if not yes:
            _print_commits(erasure)
            confirm("This cannot be undone. Erase it?")
        erasure = erase(False)
    elif not dry_run:
        erasure = erase(False)
    if not erasure.commits and nobody:
        raise NotFoundError(nobody, next_actions=("names are compared letter by letter",))
    if as_json:
        import msgspec

        terminal.print_json(msgspec.to_builtins(erasure))
        return
    names = erasure.sessions
    where = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} sessions"
    would = "would be erased" if erasure.dry_run else "erased"
    kinds = Counter(gone.kind for gone in erasure.commits)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    total = terminal.plural(len(erasure.commits), "commit")
    terminal.out(terminal.clean(f"{total}{f' of {where}' if where else ''} {would}{f': {counts}' if counts else ''}"))
    if file and not dry_run and os.path.isfile(file):
        size = os.path.getsize(file) / 1_000_000
        terminal.note(
            f"the log's file keeps its size ({size:,.1f} MB) and reuses the freed space: "
            f"`sqlite3 {shlex.quote(file)} VACUUM` shrinks it while no program uses it"
        )
    if dry_run:
        _print_commits(erasure)
    if erasure.files:
        terminal.note("other programs' files still hold it; an import leaves it out:")
    for path in erasure.files:
        terminal.note(terminal.clean(f"  {path}"))
    if names_stay and erasure.sessions:
        terminal.note(f"the names of sessions stay: {hints.command('delete SESSION')} removes a session with its name")


def _print_commits(erasure: Erasure) -> None:
    for gone in erasure.commits[:_SHOWN]:
        part = "" if gone.whole else ", in part"
        terminal.note(f"{terminal.short(gone.hash)}  {gone.kind}  {terminal.clock(gone.time)}  {gone.session}{part}")
    if len(erasure.commits) > _SHOWN:
        terminal.note(f"and {len(erasure.commits) - _SHOWN} more")
