"""``gc`` and ``backup``: what those do who keep a log."""

from __future__ import annotations

import click

from thinkback.cli import terminal
from thinkback.cli.options import db_option, existing_log, json_option
from thinkback.cli.progress import progress_line
from thinkback.settings.registry import RETENTION

DAY = 86_400_000_000


@click.command("gc", short_help="Remove commits that no branch reaches, and what the retention erases.")
@click.option(
    "--older-than",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    default=7.0,
    show_default=True,
    help="Remove only commits older than this.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@db_option
@json_option
def gc_command(older_than: float, dry_run: bool, db: str, as_json: bool) -> None:
    """Remove commits that no branch of any session reaches and that are older than --older-than days.

    A reset, a deleted branch and a rebase leave such commits behind, and their hash still finds them.
    The setting log.retention, if it is set, also erases what was said more than that many days ago.
    """
    from thinkback.drive.clock import now
    from thinkback.session.history import retention

    with existing_log(db) as store, progress_line("looking" if dry_run else "removing") as progress:
        days = store.user_settings().get(RETENTION)
        erased = None
        if isinstance(days, int):
            erased = retention.apply(store.log, store.care, days, now(), dry_run=dry_run)
        removed = store.log.care.gc(now() - round(older_than * DAY), dry_run=dry_run, progress=progress)
    if as_json:
        found: dict[str, object] = {"commits": removed.commits, "bytes": removed.bytes, "dry_run": dry_run}
        if erased is not None:
            found |= {"erased": len(erased.commits), "busy": erased.busy}
        terminal.print_json(found)
        return
    would = "would be removed" if dry_run else "removed"
    terminal.out(f"{terminal.plural(removed.commits, 'commit')}, {removed.bytes:,} bytes {would}")
    if erased is not None and isinstance(days, int):
        would = "would be erased" if dry_run else "erased"
        count = terminal.plural(len(erased.commits), "commit")
        terminal.out(f"{count} older than {terminal.plural(days, 'day')} {would}")
        for name in erased.busy:
            terminal.note(terminal.clean(f"{name} loses nothing this time: a turn is under way in it"))


@click.command("backup", short_help="Copy the whole log, even while it is in use.")
@click.argument("file", type=click.Path(dir_okay=False))
@db_option
@json_option
def backup_command(file: str, db: str, as_json: bool) -> None:
    """Copy the log to FILE, which must not exist yet. Other processes may write to the log meanwhile.

    The copy holds everything: prompts, answers, reasoning and opaque values.
    """
    with existing_log(db) as store, progress_line("copying") as progress:
        store.backup(file, progress=progress)
    if as_json:
        terminal.print_json({"file": file})
    else:
        terminal.out(f"copied to {file}")
