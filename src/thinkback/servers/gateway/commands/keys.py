"""``thinkback gateway keys``: make, list, show and revoke the keys that clients of a gateway use.

A secret is printed once, when it is made. Whoever may read the gateway's database may do all of this: it needs no
running gateway, and a running one sees a change within a second or two.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from thinkback.drive import clock
from thinkback.session.transcripts.ink import fitted

if TYPE_CHECKING:
    from thinkback.servers.gateway.access.audit import Audit
    from thinkback.servers.gateway.access.keys import Terms
    from thinkback.servers.gateway.config.schema import Config
    from thinkback.stores.gateway_state.records import KeyRow, Use
    from thinkback.stores.gateway_state.state import GatewayState

Command = TypeVar("Command", bound=Callable[..., Any])


def place_options(command: Command) -> Command:
    """``--config`` and ``--store``: whose keys."""
    config = click.option(
        "--config",
        metavar="FILE",
        default="",
        help="Configuration of the gateway; default: gateway.toml in the configuration directory.",
    )
    store = click.option(
        "--store", metavar="PLACE", default="", help="Store of the gateway: a directory or postgresql://..."
    )
    return config(store(command))


def completed(text: str) -> str:
    """``text`` with the commands in it of the gateway that this call is about, as the command line writes them."""
    complete = click.get_current_context().find_root().obj
    return str(complete(text)) if complete is not None else text


def say(text: str, *, err: bool = False) -> None:
    """A line for people, broken between words on a terminal."""
    click.echo(fitted(text, sys.stderr if err else sys.stdout), err=err)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("keys", short_help="Create, list, show and revoke keys of clients.")
def keys_group() -> None:
    """Create, list, show and revoke keys of clients. A client sends such a key in place of a provider's. Only
    hashes are stored: replace a lost key by a new one."""


@keys_group.command("create")
@click.argument("name", default="")
@click.option(
    "--tenant", metavar="NAME", default="default", help="Tenant whose log stores the conversations; default: default."
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="PATTERN",
    help="Models that the key may use; * matches anything; repeatable.",
)
@click.option("--expires", metavar="TIME", default="", help="Expiry: 12h, 30d, 8w, or a date; default: never.")
@click.option("--tokens", type=click.IntRange(0), metavar="N", help="Token limit, input and output.")
@click.option("--reasoning-tokens", type=click.IntRange(0), metavar="N", help="Reasoning token limit.")
@click.option("--per", type=click.Choice(["day", "month", "total"]), help="Period of both limits (UTC).")
@click.option(
    "--per-minute", type=click.IntRange(1), metavar="N", help="Limit of requests per minute, in all processes."
)
@click.option("--at-once", type=click.IntRange(1), metavar="N", help="Limit of concurrent requests per process.")
@click.option(
    "--recording",
    type=click.Choice(["full", "reasoning", "metadata", "off"]),
    default=None,
    help="What to record of its requests; default: from the configuration.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a setting of its requests; repeatable."
)
@click.option("--view", is_flag=True, help="Let the key sign in to the gateway's viewer, as its tenant.")
@json_option
@place_options
def create_command(name: str, as_json: bool, config: str, store: str, **given: Any) -> None:
    """Create a key called NAME and print its secret once."""
    from thinkback.servers.gateway.access.keys import new_key

    now = clock.now()
    expires = _moment(given["expires"], now) if given["expires"] else None
    secret, row = new_key(_terms(given), now, tenant=given["tenant"], name=name, expires=expires)
    with _opened(config, store) as (office, audit):
        office.keys.create(row)
        audit.note("key.created", key=row.id, name=name, tenant=row.tenant, by=_user())
    if as_json:
        _print_json({"secret": secret, **_facts(row)})
        return
    click.echo(secret)
    say(f"this is {row.id}, and its secret is not shown again: keep it now", err=True)


@keys_group.command("list")
@click.option("--tenant", metavar="NAME", default="", help="List only keys of this tenant.")
@click.option("--all", "revoked", is_flag=True, help="Include revoked and expired keys.")
@json_option
@place_options
def list_command(tenant: str, revoked: bool, as_json: bool, config: str, store: str) -> None:
    """List the valid keys, oldest first."""
    from thinkback.session.transcripts.ink import one_line, table

    now = clock.now()
    with _opened(config, store) as (office, _):
        rows = [
            row for row in office.keys.list() if tenant in ("", row.tenant) and (revoked or _state(row, now) == "valid")
        ]
    if as_json:
        _print_json([_facts(row, now) for row in rows])
        return
    lines = [
        (row.id, one_line(row.name, 30), one_line(row.tenant, 30), f"...{row.ending}", _until(row, now)) for row in rows
    ]
    for line in table(lines):
        click.echo(line)
    if not rows:
        say(completed("no keys: `thinkback gateway keys create NAME` creates one"), err=True)


@keys_group.command("show")
@click.argument("key")
@json_option
@place_options
def show_command(key: str, as_json: bool, config: str, store: str) -> None:
    """Show the permissions and the usage of KEY (an id or a name)."""
    from thinkback.session.transcripts.ink import clean, table

    now = clock.now()
    with _opened(config, store) as (office, _):
        row = _find(office, key)
        used = office.spending.read(row.id)
    facts = {**_facts(row, now), "used": _used(used)}
    if as_json:
        _print_json(facts)
        return
    lines = [(name, clean(value if isinstance(value, str) else json.dumps(value))) for name, value in facts.items()]
    for line in table(lines):
        click.echo(line)


@keys_group.command("revoke")
@click.argument("key")
@json_option
@place_options
def revoke_command(key: str, as_json: bool, config: str, store: str) -> None:
    """Revoke KEY (an id or a name). Running gateways refuse it within two seconds."""
    from thinkback.errors import NotFoundError

    with _opened(config, store) as (office, audit):
        row = _find(office, key)
        if not office.keys.revoke(row.id, clock.now()):
            raise NotFoundError(f"the key {row.id} was revoked before")
        audit.note("key.revoked", key=row.id, name=row.name, tenant=row.tenant, by=_user())
    if as_json:
        _print_json({"id": row.id, "name": row.name, "revoked": True})
    else:
        click.echo(f"{row.id} is revoked")


def configured(config: str, store: str) -> Config:
    """The configuration of a gateway. What is not given here may stand before the command."""
    import msgspec

    from thinkback.servers.gateway.config.schema import Store
    from thinkback.servers.gateway.running.places import configuration
    from thinkback.stores import SERVER

    settled = configuration(config or _above("config"))
    place = store or _above("store")
    if place:
        is_url = place.startswith((*SERVER, "env:", "file:"))
        settled = msgspec.structs.replace(settled, store=Store(url=place) if is_url else Store(path=place))
    return settled


@contextmanager
def _opened(config: str, store: str) -> Iterator[tuple[GatewayState, Audit]]:
    """The office and the audit log of a gateway."""
    from thinkback.servers.gateway.access.audit import Audit
    from thinkback.servers.gateway.running.places import office_of

    settled = configured(config, store)
    office = office_of(settled)
    try:
        yield office, Audit(settled.logs.audit or None, lambda text: click.echo(text, err=True))
    finally:
        office.close()


def _above(name: str) -> str:
    """An option of the commands above this one."""
    context = click.get_current_context().parent
    while context is not None:
        if context.params.get(name):
            return str(context.params[name])
        context = context.parent
    return ""


def _terms(given: Mapping[str, Any]) -> Terms:
    from thinkback.servers.gateway.access.keys import Terms
    from thinkback.servers.gateway.grant import Budget, Limits

    if "" in given["models"]:
        raise click.UsageError(
            "--model needs a pattern such as 'deepseek/*'; without --model the key may use every model"
        )
    if given["per"] and given["tokens"] is None and given["reasoning_tokens"] is None:
        raise click.UsageError("--per is the period of a budget: name one with --tokens or --reasoning-tokens")
    return Terms(
        models=given["models"] or ("*",),
        recording=given["recording"],
        settings=dict(map(_setting, given["settings"])),
        budget=Budget(given["per"] or "total", given["tokens"], given["reasoning_tokens"]),
        limits=Limits(given["per_minute"], given["at_once"]),
        view=given["view"],
    )


def _setting(text: str) -> tuple[str, object]:
    from thinkback.settings import values
    from thinkback.settings.registry import PARAMS

    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"a setting is KEY=VALUE, as in reasoning.effort=high, and not {text!r}")
    if name.strip().startswith(f"{PARAMS}."):
        raise click.UsageError(f"--set {name.strip()}: clients of a gateway set request fields themselves")
    return name.strip(), values.parse(name.strip(), value.strip())


_UNITS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}


def _moment(text: str, now: int) -> int:
    """Microseconds UTC of a time from now (``30d``) or of a date. Raises ``click.UsageError``."""
    from thinkback.errors import ThinkbackError
    from thinkback.session.times import microseconds

    moment: int | None
    count, unit = text[:-1], text[-1:]
    if unit in _UNITS and count.isascii() and count.isdigit() and len(count) < 6:
        moment = now + int(count) * _UNITS[unit] * 1_000_000
    else:
        try:
            moment = microseconds(text)
        except ThinkbackError:
            moment = None
    if moment is None or moment <= now:
        what = "is over already" if moment is not None else "is not a time"
        raise click.UsageError(f"--expires {text} {what}: write it as 12h, 30d, 8w, 2027-01-31 or 2027-01-31T18:00:00Z")
    return moment


def _find(office: GatewayState, name: str) -> KeyRow:
    """The key with that id, or the only one of that name, those that are over last."""
    from thinkback.errors import NotFoundError

    rows = office.keys.list()
    found = [row for row in rows if row.id == name] or [row for row in rows if row.name == name]
    valid = [row for row in found if row.revoked is None] or found
    if len(valid) == 1:
        return valid[0]
    if not found:
        raise NotFoundError(
            f"there is no key {name!r}", next_actions=("`thinkback gateway keys list --all` lists them by their ids",)
        )
    raise NotFoundError(
        f"{len(valid)} keys are called {name!r}",
        next_actions=(f"name one by its id: {', '.join(row.id for row in valid)}",),
    )


def _state(row: KeyRow, now: int) -> str:
    if row.revoked is not None:
        return "revoked"
    return "expired" if row.expires is not None and row.expires <= now else "valid"


def _until(row: KeyRow, now: int) -> str:
    from thinkback.session.transcripts.ink import iso

    if row.expires is None or row.revoked is not None:
        return _state(row, now)
    return f"{_state(row, now)}, {iso(row.expires)[:16]}Z"


def _facts(row: KeyRow, now: int = 0) -> dict[str, Any]:
    """All that is known of a key."""
    from thinkback.model import canonical
    from thinkback.session.transcripts.ink import iso

    facts: dict[str, Any] = {
        "id": row.id,
        "name": row.name,
        "tenant": row.tenant,
        "ending": row.ending,
        "state": _state(row, now),
        "created": iso(row.created),
    }
    for name, time_ in (("expires", row.expires), ("revoked", row.revoked)):
        if time_ is not None:
            facts[name] = iso(time_)
    return {**facts, **canonical.decode(row.terms, dict[str, Any])}


def _used(uses: Mapping[str, Use]) -> dict[str, Any]:
    return {period: uses[period]._asdict() for period in sorted(uses, reverse=True)[:63]}


def _print_json(value: object) -> None:
    from thinkback.session.transcripts.ink import clean_json

    click.echo(clean_json(json.dumps(value, indent=2, ensure_ascii=False)))


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return ""
