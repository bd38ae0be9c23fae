"""``rules``: rule rows without an upgrade, from a file; which updates are in force; the last one taken back."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import terminal
from thinkback.cli.options import confirm, db_option, is_log_there, json_option, log_path, open_log

if TYPE_CHECKING:
    from thinkback.session.config.rule_updates import Changed, Prepared

_SESSIONS = 50


@click.group("rules", short_help="Update rule rows from a file, list updates, undo one.")
def rules_command() -> None:
    """Update the rule rows, list updates, and undo one. A rule row states which earlier reasoning a provider needs. An
    update is a dated file of rows: it overrides the rows that thinkback ships; your own rule files override it.
    docs/rules.md describes the file.
    """


@rules_command.command("update")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@db_option
@json_option
def update_command(file: Path, yes: bool, db: str, as_json: bool) -> None:
    """Check FILE, show what it changes and which of your profiles and sessions that affects, ask, and store it.

    A row that is older than the row in force is left out. Running programs keep the rules that they have loaded.
    """
    from thinkback.session.config import rule_updates

    prepared = rule_updates.prepare(file)
    concerned = list(_concerned(prepared, db))
    if not as_json:
        _show(prepared, concerned)
    if not any(row.is_new or row.fields for row in prepared.changes):
        told = {"file": None, **_as_json(prepared, concerned)}
        terminal.tell(told, "the update changes nothing and was not stored", as_json=as_json)
        return
    if not yes:
        if as_json:
            raise click.UsageError("--json cannot ask for confirmation: add --yes")
        confirm("Keep this update?")
    path = rule_updates.keep(prepared.text)
    told = {"file": str(path), **_as_json(prepared, concerned)}
    terminal.tell(told, "in force; `thinkback rules undo` undoes it", as_json=as_json)


@rules_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the updates in force, oldest first, with the rows that newer updates have replaced."""
    from thinkback.session.config import rule_updates

    updates = rule_updates.in_force()
    if as_json:
        terminal.print_json([update._asdict() for update in updates])
        return
    pen = terminal.pen(sys.stdout)
    for update in updates:
        head = f"{update.date}  {terminal.one_line(update.source, 200)}"
        terminal.out(f"{pen(head, 'bold')}; {terminal.plural(update.rows, 'row')}")
        for reason in update.left_out:
            terminal.out(f"  left out: {terminal.clean(reason)}")
    if not updates:
        terminal.note("no rule update is in force")


@rules_command.command("undo")
@json_option
def undo_command(as_json: bool) -> None:
    """Undo the update that was stored last."""
    from thinkback.session.config import rule_updates

    path = str(rule_updates.undo())
    terminal.tell({"file": path}, f"undone: {terminal.clean(path)} is deleted", as_json=as_json)


def _show(prepared: Prepared, concerned: list[str]) -> None:
    pen = terminal.pen(sys.stdout)
    holds = prepared.holds
    terminal.out(pen(f"rule update of {holds.date}: {terminal.one_line(holds.source, 200)}", "bold"))
    for row in prepared.changes:
        for line in _change_lines(row):
            terminal.out(line)
    for reason in holds.left_out:
        terminal.out(f"left out: {terminal.one_line(reason, 300)}")
    for each in concerned:
        terminal.out(f"concerns {terminal.clean(each)}")
    if not concerned:
        terminal.out("concerns none of your profiles and sessions")


def _change_lines(row: Changed) -> Iterator[str]:
    where = "every endpoint" if row.endpoint == "*" else row.endpoint
    head = f"{row.kind} {terminal.one_line(row.name, 200)} ({where})"
    if row.is_new or not row.fields:
        yield f"{head}: {'new' if row.is_new else 'as it is'}"
        return
    yield f"{head}:"
    for key, old, new in row.fields:
        yield terminal.wrap(terminal.clean(f"{key}: {_value(old)} → {_value(new)}"), 2)


def _value(value: object) -> str:
    """A value of a row on one line."""
    from thinkback.cli.config.endpoints import rule_lines

    return "; ".join(" ".join(line.split()) or '""' for line in rule_lines(value)) or "nothing"


def _concerned(prepared: Prepared, db: str) -> Iterator[str]:
    """Profiles, and the sessions used last, for whose endpoint and model another row would be in force."""
    from thinkback.errors import ThinkbackError
    from thinkback.session import config

    day = config.today()
    for name, endpoint, model in itertools.chain(_profiles(), _sessions(db)):
        with suppress(ThinkbackError):  # a place that is not known has no rows that change
            before, after = (
                (book.rule_for(id, model, day), book.model_info(id, model, day))
                for book in (prepared.before, prepared.after)
                for id in (book.endpoint(endpoint).id,)
            )
            if before != after:
                yield f"{name}: {endpoint} {model}, rule {before[0][0].id} → {after[0][0].id}"


def _profiles() -> Iterator[tuple[str, str, str]]:
    from thinkback.errors import ThinkbackError
    from thinkback.session.profiles import files

    for name in files.listed():
        with suppress(ThinkbackError):
            profile = files.read(name)
            yield f"profile {name}", profile.endpoint, profile.model


def _sessions(db: str) -> Iterator[tuple[str, str, str]]:
    from thinkback.errors import ThinkbackError
    from thinkback.session.destination import Destination, destination_of

    path = log_path(db)
    if not is_log_there(path):
        return
    try:
        with open_log(path) as store:
            for info in store.sessions()[:_SESSIONS]:
                with suppress(ThinkbackError):
                    place = destination_of(store, info, store.commits(info.id), Destination())
                    yield f"session {info.name}", place.endpoint, place.model
    except ThinkbackError as error:
        terminal.note(f"sessions were not checked: {error.message}")


def _as_json(prepared: Prepared, concerned: list[str]) -> dict[str, Any]:
    import msgspec

    holds = prepared.holds
    changes = [
        {
            "kind": row.kind,
            "name": row.name,
            "endpoint": row.endpoint,
            "new": row.is_new,
            "fields": {key: [msgspec.to_builtins(old), msgspec.to_builtins(new)] for key, old, new in row.fields},
        }
        for row in prepared.changes
    ]
    return {
        "date": holds.date,
        "source": holds.source,
        "changes": changes,
        "left_out": holds.left_out,
        "concerned": concerned,
    }
