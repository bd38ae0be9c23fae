"""What ``thinkback gateway --check`` finds around a configuration: files and modes, addresses, the store, disk, spool,
clock.

Promises: nothing is made, changed or stored; a text has paths, sizes, counts and formats, and nothing of what was said.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from thinkback.drive.http import Timeouts
from thinkback.errors import NetworkError, StoreError, ThinkbackError
from thinkback.proxy.problems import REFUSED
from thinkback.rules.urls import is_loopback
from thinkback.servers.gateway.commands.advising import without_keys
from thinkback.servers.gateway.config.schema import Config, Server, Store, Upstream
from thinkback.servers.gateway.http.listening import bind
from thinkback.servers.gateway.running.places import spool_place, state_place
from thinkback.servers.gateway.secrets.secret import NAME as SECRET
from thinkback.servers.gateway.secrets.secret import read_secret
from thinkback.servers.gateway.storing.spool import ASIDE, ENDING
from thinkback.session.config import keys
from thinkback.stores import SERVER
from thinkback.stores.gateway_state import FILE

FINE, ATTENTION, STOPS = 0, 1, 2
_PATIENCE = 5.0
"""Seconds for which a provider is asked about a key."""
_PLAIN = ("bearer", "header")
"""Ways to show a key that are the same for every request."""
LEAST_FREE = 500_000_000
"""Bytes below which a disk is reported."""
LARGEST_SKEW = 5.0
"""Seconds by which the clocks of a gateway and of its database may differ."""


class Finding(NamedTuple):
    """``level``: fine, in need of a person's ``ATTENTION``, or what ``STOPS`` the gateway from starting."""

    level: int
    text: str


def inspect(config: Config, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """What there is. ``config`` names nothing that is not there (``advising.absent``)."""
    place = state_place(config.store, environment)
    yield from _keys()
    yield from _address(config.server)
    if config.viewer.listen:
        yield from _address(config.viewer.server)
    yield from (_server(place, config) if place.startswith(SERVER) else _directory(Path(place), config))
    yield from _spool(config.store, place)
    yield from _audit(config.logs.audit)
    yield from _keys_at_providers(config)


def _keys_at_providers(config: Config) -> Iterator[Finding]:
    """Upstreams that do not take the key that there is: each is asked for its list of models, which costs nothing."""
    answers = asyncio.run(_answers(config))
    for name, status in answers.items():
        if status in REFUSED:
            yield Finding(ATTENTION, f"upstream {name}: the provider does not take its key ({status})")


async def _answers(config: Config) -> dict[str, int]:
    """The status of each upstream that has a key and answers."""
    from thinkback.servers.gateway.running.wiring import Transports
    from thinkback.servers.gateway.upstreams.routing import authenticator_of, place_of
    from thinkback.session.config import rulebook as user_rulebook

    rulebook, transports = user_rulebook(), Transports()
    timeouts = Timeouts(_PATIENCE, _PATIENCE, _PATIENCE, _PATIENCE)

    async def ask(upstream: Upstream) -> int:
        try:
            place = place_of(upstream, "any")
            target, authenticator = place.target(rulebook), authenticator_of(upstream, place, rulebook)
            if authenticator.waits or target.endpoint.auth.scheme not in _PLAIN:
                return 0
            base, _, query = target.base_url.partition("?")
            url = f"{base}/models?{query}" if query else f"{base}/models"
            headers = place.headers(rulebook, streams=False)
            given = authenticator(url, headers, b"")
            async with transports(place.proxy).get(url, {**headers, **given.headers}, timeouts) as response:
                return response.status
        except ThinkbackError:  # a key that is missing, and an address where nobody answers, are told elsewhere
            return 0

    asked = {name: upstream for name, upstream in config.upstreams.items() if not upstream.is_clients}
    try:
        return dict(zip(asked, await asyncio.gather(*map(ask, asked.values())), strict=True))
    finally:
        await transports.close()


def _keys() -> Iterator[Finding]:
    try:
        keys.read_file()
    except ThinkbackError as error:
        yield Finding(ATTENTION, _said(error))


def _address(server: Server) -> Iterator[Finding]:
    try:
        bind(server).close()
    except NetworkError as error:
        if error.details["errno"] == errno.EADDRINUSE:
            yield Finding(FINE, f"address: {server.host}:{server.port} is in use: by the gateway, if it runs")
        else:
            yield Finding(STOPS, error.message)


def _nobody(config: Config, *, has_keys: bool) -> Iterator[Finding]:
    """Other machines reach the gateway, and none of their requests could be answered."""
    if not (has_keys or config.of_clients or is_loopback(config.server.host)):
        yield Finding(STOPS, _said(without_keys(config)))


def _server(url: str, config: Config) -> Iterator[Finding]:
    from thinkback.stores.formats import server_state
    from thinkback.stores.gateway_state.postgres import NEWEST as GATEWAY
    from thinkback.stores.postgres.schema import NEWEST

    try:
        asked = time.time()
        found = server_state(url)
    except StoreError as error:
        yield Finding(STOPS, _said(error))
        return
    formats = (
        f"log {_format(found.log, len(NEWEST.names))}, keys and usage {_format(found.gateway, len(GATEWAY.names))}"
    )
    yield Finding(FINE, f"store: {found.shown} answers (PostgreSQL {found.release}): {formats}")
    if found.is_standby:
        yield Finding(STOPS, f"store: {found.shown} is a standby, which may only be read; name the primary server")
    elif not (found.log and found.gateway) and not found.may_create:
        yield Finding(STOPS, f"store: {found.shown} lacks tables, and this user may not make them; see docs/scale.md")
    yield from _nobody(config, has_keys=found.has_keys)
    ahead = found.time - (asked + time.time()) / 2
    if abs(ahead) > LARGEST_SKEW:
        yield Finding(ATTENTION, f"clock: the database's is {abs(ahead):.0f} s {'ahead' if ahead > 0 else 'behind'}")


def _directory(place: Path, config: Config) -> Iterator[Finding]:
    standing = next((each for each in (place, *place.parents) if each.exists()), place)
    if not (standing.is_dir() and os.access(standing, os.W_OK | os.X_OK)):
        yield Finding(STOPS, f"store: {standing} is not a directory that this user may write to")
        return
    yield from _room("store", standing)
    if standing != place:
        yield Finding(FINE, f"store: {place} is not there yet; the gateway makes it")
        yield from _nobody(config, has_keys=False)
        return
    yield from _private(place)
    if not config.secrets.current and (place / SECRET).exists():
        try:
            read_secret(f"file:{place / SECRET}", {})
        except ThinkbackError as error:
            yield Finding(STOPS, _said(error))
    yield from _files(place, config)


def _files(place: Path, config: Config) -> Iterator[Finding]:
    """The databases in ``place``."""
    from thinkback.stores.formats import file_format, has_keys
    from thinkback.stores.gateway_state.sqlite import NEWEST as GATEWAY
    from thinkback.stores.migrations import NEWEST

    logs: dict[str, int] = {}
    own: list[str] = []
    is_keyed = False
    for file in sorted(place.glob("*.db")):
        schema = GATEWAY if file.name == FILE else NEWEST
        try:
            format = file_format(str(file), schema)
            found = _format(format, len(schema.names))
        except StoreError as error:
            yield Finding(STOPS, _said(error))
            continue
        if schema is GATEWAY:
            own.append(f"{FILE} {found}")
            is_keyed = format > 0 and has_keys(str(file))
        else:
            logs[found] = logs.get(found, 0) + 1
        yield from _private(file)
        if not os.access(file, os.W_OK):
            yield Finding(STOPS, f"store: this user may not write to {file}")
        ahead = file.stat().st_mtime - time.time()
        if ahead > LARGEST_SKEW:
            yield Finding(
                ATTENTION, f"clock: {file} was written {ahead:.0f} s from now; this machine's clock is behind"
            )
    listed = [*own, *(f"{count} log{'s'[: count > 1]} {found}" for found, count in logs.items())]
    yield Finding(FINE, f"store: {place} has {', '.join(listed) or 'no database yet'}")
    yield from _nobody(config, has_keys=is_keyed)


def _spool(store: Store, place: str) -> Iterator[Finding]:
    spool = spool_place(store, place)
    if store.degraded == "pass":
        standing = next(each for each in (spool, *spool.parents) if each.exists())
        if not (standing.is_dir() and os.access(standing, os.W_OK | os.X_OK)):
            yield Finding(STOPS, f"spool: {standing} is not a directory that this user may write to")
            return
        yield from _room("spool", standing)
    try:
        waiting = [each.stat().st_size for each in spool.glob(f"*{ENDING}")]
        aside = [each.stat().st_size for each in (spool / ASIDE).glob("*")]
    except OSError as error:
        yield Finding(ATTENTION, f"spool: {spool} cannot be read ({error.strerror})")
        return
    if sum(waiting) and store.degraded == "pass":
        yield Finding(FINE, f"spool: {sum(waiting):,} bytes wait in {spool}; the gateway stores them while it runs")
    elif sum(waiting):
        why = 'nothing stores them while store.degraded is "refuse"'
        yield Finding(ATTENTION, f"spool: {sum(waiting):,} bytes wait in {spool}, and {why}")
    if aside:
        yield Finding(ATTENTION, f"spool: steps that could not be stored are in {spool / ASIDE} ({len(aside)})")


def _audit(file: str) -> Iterator[Finding]:
    directory = Path(file).expanduser().parent
    if file and not (directory.is_dir() and os.access(directory, os.W_OK | os.X_OK)):
        yield Finding(ATTENTION, f"logs.audit: {directory} is not a directory that this user may write to")
    elif file and (found := Path(file).expanduser()).exists() and (found.is_dir() or not os.access(found, os.W_OK)):
        yield Finding(ATTENTION, f"logs.audit: {found} is not a file that this user may write to")


def _room(what: str, directory: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(directory).free
    text = f"{what}: {free / 1e9:.1f} GB are free on the disk of {directory}"
    yield Finding(ATTENTION if free < LEAST_FREE else FINE, text)


def _private(path: Path) -> Iterator[Finding]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        right = "700" if path.is_dir() else "600"
        yield Finding(ATTENTION, f"store: others may use {path} (mode {mode:04o}); chmod {right} {path}")


def _format(found: int, newest: int) -> str:
    """A format for people."""
    if not found:
        return "not made yet"
    return f"at format {found}" + (f", which the first write brings to {newest}" if found < newest else "")


def _said(error: ThinkbackError) -> str:
    return "; ".join((error.message, *error.next_actions[:1]))
