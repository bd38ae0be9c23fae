"""``thinkback gateway backup``: a copy of a gateway's directory while the gateway serves."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from thinkback.servers.gateway.commands.keys import configured, place_options


@click.command("backup", short_help="Copy the gateway's directory while it serves.")
@click.argument("directory", type=click.Path(file_okay=False))
@place_options
def backup_command(directory: str, config: str, store: str) -> None:
    """Copy logs, keys, spool and secret to DIRECTORY, which must be empty or not there yet. The gateway may serve.

    The copy holds everything: prompts, answers, reasoning, and the secret that opens what clients store. To restore
    it, stop the gateway and put the copy in the place of its directory. Of a PostgreSQL store use pg_dump.
    """
    from thinkback.errors import FileTakenError, NotFoundError, StoreError
    from thinkback.servers.gateway.running.places import spool_place, state_place
    from thinkback.servers.gateway.secrets.secret import NAME
    from thinkback.stores import SERVER
    from thinkback.stores.gateway_state import FILE

    kept = configured(config, store)
    place = state_place(kept.store)
    if place.startswith(SERVER):
        raise StoreError(
            "this gateway stores everything but its spool in PostgreSQL",
            next_actions=("copy the database with pg_dump, or use the server's archive: docs/operating.md",),
        )
    source, target = Path(place), Path(directory).absolute()
    if not (source / FILE).is_file():
        raise NotFoundError(
            f"there is no gateway's directory at {source}",
            details={"path": str(source)},
            next_actions=("name it with --store, or its configuration with --config",),
        )
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise FileTakenError(f"{target} is not empty", next_actions=("name a directory that is not there yet",))
        _copy_spool(spool_place(kept.store, place), target / "spool")
        size = _copy_databases(source, target)
        if (source / NAME).is_file():
            _copy_private(source / NAME, target / NAME)
    except OSError as error:
        raise StoreError(
            f"the copy in {target} cannot be made ({error.strerror})", details={"path": str(target)}
        ) from error
    click.echo(f"copied to {target}: {size:,} bytes of databases")
    if kept.secrets.current:
        click.echo(f"the secret is not in the copy: keep that of {kept.secrets.current} as well", err=True)


def _copy_spool(spool: Path, target: Path) -> None:
    """Before the logs: a step leaves the spool once it is in its log, so it is in the copy of one or of both, and a
    step that is in both is stored once.
    """
    from thinkback.servers.gateway.storing.spool import ASIDE

    for part in ("", ASIDE):
        files = [file for file in (spool / part).glob("*") if file.is_file()]
        if files:
            target.mkdir(mode=0o700, exist_ok=True)
            (target / part).mkdir(mode=0o700, exist_ok=True)
        for file in files:
            _copy_private(file, target / part / file.name)


def _copy_databases(source: Path, target: Path) -> int:
    from thinkback.stores.formats import copy_file

    size = 0
    for file in sorted(source.glob("*.db")):
        copy_file(str(file), str(target / file.name))
        size += (target / file.name).stat().st_size
    return size


def _copy_private(file: Path, target: Path) -> None:
    """A file that goes while the gateway serves was one of its spool, and is in a log by then."""
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as copy:
        try:
            with file.open("rb") as original:
                shutil.copyfileobj(original, copy)
        except FileNotFoundError:
            target.unlink()
