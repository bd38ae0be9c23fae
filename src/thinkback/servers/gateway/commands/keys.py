"""``thinkback gateway keys``: make, list, show, change, replace and revoke the keys that clients of a gateway use.

A secret is printed once, when it is made. Whoever may read the gateway's database may do all of this: it needs no
running gateway, and a running one sees a change within a second or two.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
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


_CLEARABLE = ("model", "expires", "tokens", "reasoning-tokens", "per-minute", "at-once", "recording", "set", "team")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("keys", short_help="Create, list, show and revoke keys of clients.")
def keys_group() -> None:
    """Create, list, show and revoke keys of clients. A client sends such a key in place of a provider's. Only
    hashes are stored: replace a lost key by a new one."""


def terms_options(command: Command) -> Command:
    """The rights of a key's holder."""
    for option in (
        click.option(
            "--model",
            "models",
            multiple=True,
            metavar="PATTERN",
            help="Models that the key may use; * matches anything; repeatable.",
        ),
        click.option("--expires", metavar="TIME", default="", help="Expiry: 12h, 30d, 8w, or a date; default: never."),
        click.option("--tokens", type=click.IntRange(0), metavar="N", help="Token limit, input and output."),
        click.option("--reasoning-tokens", type=click.IntRange(0), metavar="N", help="Reasoning token limit."),
        click.option("--per", type=click.Choice(["day", "month", "total"]), help="Period of both limits (UTC)."),
        click.option(
            "--per-minute", type=click.IntRange(1), metavar="N", help="Limit of requests per minute, in all processes."
        ),
        click.option(
            "--at-once", type=click.IntRange(1), metavar="N", help="Limit of concurrent requests per process."
        ),
        click.option(
            "--recording",
            type=click.Choice(["full", "reasoning", "metadata", "off"]),
            default=None,
            help="What to record of its requests; default: from the configuration.",
        ),
        click.option(
            "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a setting of its requests; repeatable."
        ),
        click.option(
            "--view/--no-view", default=None, help="Let the key sign in to the gateway's viewer, as its tenant."
        ),
        click.option("--team", metavar="NAME", default=None, help="Team whose usage `keys usage --by team` adds up."),
    )[::-1]:
        command = option(command)
    return command


@keys_group.command("create")
@click.argument("name", default="")
@click.option(
    "--tenant", metavar="NAME", default="default", help="Tenant whose log stores the conversations; default: default."
)
@terms_options
@json_option
@place_options
def create_command(name: str, as_json: bool, config: str, store: str, **given: Any) -> None:
    """Create a key called NAME and print its secret once."""
    from thinkback.servers.gateway.access.audit import person
    from thinkback.servers.gateway.access.keys import new_key

    now = clock.now()
    expires = _moment(given["expires"], now) if given["expires"] else None
    secret, row = new_key(_terms(given), now, tenant=given["tenant"], name=name, expires=expires)
    with _opened(config, store) as (office, audit):
        office.keys.create(row)
        audit.note("key.created", key=row.id, name=name, tenant=row.tenant, by=person())
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
        used = office.spending.summary("total")
        rows = [
            row for row in office.keys.list() if tenant in ("", row.tenant) and (revoked or _state(row, now) == "valid")
        ]
    if as_json:
        _print_json([{**_facts(row, now), **_summary(row, used)} for row in rows])
        return
    lines = [
        (
            row.id,
            one_line(row.name, 30),
            one_line(row.tenant, 30),
            f"...{row.ending}",
            _until(row, now),
            _limits(row),
            _last_use(_summary(row, used)),
        )
        for row in rows
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
    from thinkback.servers.gateway.access.keys import id_of

    now = clock.now()
    with _opened(config, store) as (office, _):
        row = _find(office, key)
        used = office.spending.read(id_of(row))
    facts = {**_facts(row, now), "used": _used(used)}
    if as_json:
        _print_json(facts)
        return
    _print_facts(facts)


@keys_group.command("update")
@click.argument("key")
@terms_options
@click.option(
    "--clear", "cleared", multiple=True, type=click.Choice(_CLEARABLE), help="Remove what this option set; repeatable."
)
@json_option
@place_options
def update_command(key: str, cleared: tuple[str, ...], as_json: bool, config: str, store: str, **given: Any) -> None:
    """Change what KEY (an id or a name) may do; its secret stays, and what is not named too."""
    import msgspec

    from thinkback.model import canonical
    from thinkback.servers.gateway.access.audit import person
    from thinkback.servers.gateway.access.keys import Terms

    now = clock.now()
    with _opened(config, store) as (office, audit):
        row = _find(office, key)
        terms = canonical.encode(_changed(canonical.decode(row.terms, Terms), given, cleared))
        expires = _moment(given["expires"], now) if given["expires"] else row.expires
        expires = None if "expires" in cleared else expires
        office.keys.update(row.id, terms, expires)
        audit.note("key.updated", key=row.id, name=row.name, tenant=row.tenant, by=person())
    facts = _facts(msgspec.structs.replace(row, terms=terms, expires=expires), now)
    if as_json:
        _print_json(facts)
    else:
        _print_facts(facts)


@keys_group.command("rotate")
@click.argument("key")
@click.option("--overlap", metavar="TIME", default="", help="Let the old secret open for so long: 12h, 7d; default: 0.")
@json_option
@place_options
def rotate_command(key: str, overlap: str, as_json: bool, config: str, store: str) -> None:
    """Replace the secret of KEY (an id or a name) and print the new one once.

    Conversations keep their reasoning, and usage goes on: the new key continues the old one.
    """
    import msgspec

    from thinkback.model import canonical
    from thinkback.servers.gateway.access.audit import person
    from thinkback.servers.gateway.access.keys import Terms, id_of, new_key

    now = clock.now()
    with _opened(config, store) as (office, audit):
        old = _find(office, key)
        terms = msgspec.structs.replace(canonical.decode(old.terms, Terms), continues=id_of(old))
        secret, row = new_key(terms, now, tenant=old.tenant, name=old.name, expires=old.expires)
        ends = min(filter(None, (_moment(overlap, now), old.expires))) if overlap else None
        office.keys.create(row)
        if ends is None:
            office.keys.revoke(old.id, now)
        else:
            office.keys.update(old.id, old.terms, ends)
        audit.note("key.rotated", key=row.id, replaces=old.id, name=row.name, tenant=row.tenant, by=person())
    if as_json:
        _print_json({"secret": secret, **_facts(row, now), "replaces": old.id})
        return
    click.echo(secret)
    until = f"opens until {_until(msgspec.structs.replace(old, expires=ends), now)}" if ends else "is revoked"
    say(f"this is {row.id}, and its secret is not shown again: keep it now; {old.id} {until}", err=True)


@keys_group.command("usage")
@click.option("--by", type=click.Choice(["key", "team", "tenant"]), default="key", help="What to add up; default: key.")
@click.option("--period", metavar="TIME", default="", help="A day, a month, or total; default: this month (UTC).")
@json_option
@place_options
def usage_command(by: str, period: str, as_json: bool, config: str, store: str) -> None:
    """Show what keys used, by key, team or tenant: requests and tokens."""
    from datetime import UTC, datetime

    from thinkback.model import canonical
    from thinkback.servers.gateway.access.keys import Terms, id_of
    from thinkback.session.transcripts.ink import one_line, table

    period = period or datetime.now(UTC).strftime("%Y-%m")
    with _opened(config, store) as (office, _):
        used, rows = office.spending.summary(period), office.keys.list()
    of = {"key": lambda row: id_of(row), "team": lambda row: canonical.decode(row.terms, Terms).team, "tenant": _tenant}
    groups = {id_of(row): of[by](row) for row in rows}
    sums: dict[str, Any] = {}
    for key, (_last, use) in used.items():
        if any(use):
            group = groups.get(key, key if by == "key" else "")
            sums[group] = sums[group].plus(use) if group in sums else use
    ordered = sorted(sums.items(), key=lambda each: -(each[1].input + each[1].output))
    if as_json:
        _print_json([{by: group, "period": period, **use._asdict()} for group, use in ordered])
        return
    names = {id_of(row): row.name for row in rows} if by == "key" else {}
    lines = [
        (
            one_line(group or "-", 30),
            one_line(names.get(group, ""), 30),
            f"{use.requests} requests",
            f"{use.input} in",
            f"{use.output} out",
            f"{use.reasoning} reasoning",
        )
        for group, use in ordered
    ]
    for line in table(lines):
        click.echo(line)
    if not ordered:
        say(f"nothing was used in {period}", err=True)


@keys_group.command("revoke")
@click.argument("key")
@json_option
@place_options
def revoke_command(key: str, as_json: bool, config: str, store: str) -> None:
    """Revoke KEY (an id or a name). Running gateways refuse it within two seconds."""
    from thinkback.errors import NotFoundError
    from thinkback.servers.gateway.access.audit import person
    from thinkback.servers.gateway.access.keys import id_of

    with _opened(config, store) as (office, audit):
        row, now = _find(office, key), clock.now()
        if not office.keys.revoke(row.id, now):
            raise NotFoundError(f"the key {row.id} was revoked before")
        if key != row.id:  # by its name, the secrets that it had before open nothing any more either
            for earlier in office.keys.list():
                if id_of(earlier) == id_of(row):
                    office.keys.revoke(earlier.id, now)
        audit.note("key.revoked", key=row.id, name=row.name, tenant=row.tenant, by=person())
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
        view=bool(given["view"]),
        team=given["team"] or "",
    )


def _changed(terms: Terms, given: Mapping[str, Any], cleared: Collection[str]) -> Terms:
    """``terms`` with what is given in their place; ``cleared`` names options that say nothing any more."""
    import msgspec

    new, plain = _terms(given), _terms({**dict.fromkeys(given), "models": (), "settings": ()})
    old_budget, old_limits = terms.budget, terms.limits
    if given["per"] and given["per"] != old_budget.period and not (given["tokens"] or given["reasoning_tokens"]):
        raise click.UsageError("--per changes the period of a budget: name its --tokens or --reasoning-tokens too")

    def settled(option: str, was: Any, now: Any, nothing: Any) -> Any:
        return nothing if option in cleared else now if given[_NAMES.get(option, option)] not in (None, ()) else was

    budget = type(old_budget)(
        new.budget.period if given["per"] else old_budget.period,
        settled("tokens", old_budget.tokens, given["tokens"], None),
        settled("reasoning-tokens", old_budget.reasoning, given["reasoning_tokens"], None),
    )
    limits = type(old_limits)(
        settled("per-minute", old_limits.per_minute, given["per_minute"], None),
        settled("at-once", old_limits.at_once, given["at_once"], None),
    )
    return msgspec.structs.replace(
        terms,
        models=settled("model", terms.models, new.models, plain.models),
        recording=settled("recording", terms.recording, new.recording, None),
        settings=settled("set", terms.settings, {**terms.settings, **new.settings}, {}),
        budget=budget,
        limits=limits,
        view=terms.view if given["view"] is None else given["view"],
        team=settled("team", terms.team, new.team, ""),
    )


_NAMES = {
    "model": "models",
    "set": "settings",
    "reasoning-tokens": "reasoning_tokens",
    "per-minute": "per_minute",
    "at-once": "at_once",
}


def _setting(text: str) -> tuple[str, object]:
    from thinkback.servers.gateway.config.naming import UNSERVED
    from thinkback.settings import values
    from thinkback.settings.registry import PARAMS

    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"a setting is KEY=VALUE, as in reasoning.effort=high, and not {text!r}")
    if name.strip().startswith(f"{PARAMS}."):
        raise click.UsageError(f"--set {name.strip()}: clients of a gateway set request fields themselves")
    if name.strip() in UNSERVED:
        raise click.UsageError(f"--set {name.strip()} has no effect in a gateway: {UNSERVED[name.strip()]}")
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
    """The key with that id, or the only one of that name, those that are over last.

    Of one that was rotated the newest: what came in its place has its name.
    """
    from thinkback.errors import NotFoundError
    from thinkback.servers.gateway.access.keys import id_of

    rows = office.keys.list()
    found = [row for row in rows if row.id == name] or [row for row in rows if row.name == name]
    valid = [row for row in found if row.revoked is None] or found
    if valid and len(set(map(id_of, valid))) == 1:
        return valid[-1]
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


def _tenant(row: KeyRow) -> str:
    return row.tenant


def _summary(row: KeyRow, used: Mapping[str, tuple[str, Use]]) -> dict[str, Any]:
    """When a key was used last, and how much in all."""
    from thinkback.servers.gateway.access.keys import id_of

    found = used.get(id_of(row))
    return {"last_use": found[0], "used": found[1]._asdict()} if found is not None else {"last_use": "", "used": {}}


def _last_use(summary: Mapping[str, Any]) -> str:
    used = summary["used"]
    return f"{used['input'] + used['output']} tokens, last {summary['last_use'] or 'long ago'}" if used else "not used"


def _limits(row: KeyRow) -> str:
    """The budget and the limits of a key in a few words."""
    from thinkback.model import canonical
    from thinkback.servers.gateway.access.keys import Terms

    terms = canonical.decode(row.terms, Terms)
    budget, limits = terms.budget, terms.limits
    per = f"/{budget.period}" if budget.period != "total" else ""
    said = (
        f"{budget.tokens} tokens{per}" if budget.tokens is not None else "",
        f"{budget.reasoning} reasoning{per}" if budget.reasoning is not None else "",
        f"{limits.per_minute}/minute" if limits.per_minute else "",
        f"{limits.at_once} at once" if limits.at_once else "",
    )
    return ", ".join(filter(None, said)) or "no limits"


def _print_facts(facts: Mapping[str, Any]) -> None:
    from thinkback.session.transcripts.ink import clean, table

    lines = [(name, clean(value if isinstance(value, str) else json.dumps(value))) for name, value in facts.items()]
    for line in table(lines):
        click.echo(line)


def _used(uses: Mapping[str, Use]) -> dict[str, Any]:
    return {period: uses[period]._asdict() for period in sorted(uses, reverse=True)[:63]}


def _print_json(value: object) -> None:
    from thinkback.session.transcripts.ink import clean_json

    click.echo(clean_json(json.dumps(value, indent=2, ensure_ascii=False)))
