"""Options that several commands share, and what they mean: the log's file, a session, and where requests go.

What is not given is taken from the last request of the session.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from thinkback.cli import complete, terminal
from thinkback.cli.progress import upgrade_line
from thinkback.errors import CredentialError, NotFoundError, ThinkbackError, UnknownModelError
from thinkback.session.destination import Destination, after, open_at
from thinkback.wire.registry import PACKAGES

if TYPE_CHECKING:
    from thinkback.log.protocol import SessionInfo
    from thinkback.model.rule import Endpoint
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore

Command = TypeVar("Command", bound=Callable[..., Any])

DIALECTS = "\b\n" + textwrap.fill(f"Dialects: {', '.join(PACKAGES)}.", 76, break_on_hyphens=False)
"""A paragraph for help that names the wire formats."""

db_option = click.option("--db", metavar="PATH", default="", help="Use this log: a file, or postgresql://...")
session_option = click.option(
    "--session",
    "-s",
    metavar="NAME",
    default="",
    shell_complete=complete.sessions,
    help="Use this session instead of the one used last.",
)


continue_option = click.option("--continue", "-c", "go_on", is_flag=True, help="Continue the session used last.")


def refuse_two_sessions(session: str, go_on: bool) -> None:
    """Raise ``click.UsageError`` where ``--session`` and ``--continue`` are both given."""
    if session and go_on:
        raise click.UsageError("--continue continues the session used last; --session names another: give one of them")


def session_argument(command: Command) -> Command:
    """SESSION, or ``--session``; whichever is given is ``session``."""
    option = click.option(
        "--session",
        "-s",
        "named",
        metavar="NAME",
        default="",
        expose_value=False,
        shell_complete=complete.sessions,
        callback=_note_name,
        is_eager=True,
        help="Same as SESSION.",
    )
    return click.argument("session", default="", shell_complete=complete.sessions, callback=_one_name)(option(command))


def _note_name(ctx: click.Context, _option: click.Parameter, name: str) -> None:
    ctx.meta[_NAMED] = name


def _one_name(ctx: click.Context, _argument: click.Parameter, name: str) -> str:
    named: str = ctx.meta.get(_NAMED, "")
    if name and named and name != named:
        raise click.UsageError(f"SESSION is {name}, and --session is {named}: give one of them")
    return name or named


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


_NAMED = "thinkback.session"
_FEW = 20


class Names(NamedTuple):
    """What a session goes by besides a place: the app of a new one, and profiles, separated by commas."""

    app: str = ""
    profile: str = ""


app_option = click.option(
    "--app",
    metavar="NAME",
    default="",
    shell_complete=complete.apps,
    help="App of a new session; `thinkback apps` lists them.",
)

profile_option = click.option(
    "--profile",
    metavar="NAMES",
    default="",
    shell_complete=complete.profiles,
    help="Profiles of this session, separated by commas; default: none.",
)


_WAIT, _TAKE_OVER, _BESIDE = "thinkback.wait", "thinkback.take_over", "thinkback.beside"
"""What the options about turns of others say, in the context of the command."""


def _noted(key: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def note(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
        context.meta[key] = value

    return note


wait_option = click.option(
    "--wait",
    is_flag=True,
    expose_value=False,
    callback=_noted(_WAIT),
    help="Wait until another process's turn has ended.",
)
_take_over_option = click.option(
    "--take-over",
    is_flag=True,
    expose_value=False,
    callback=_noted(_TAKE_OVER),
    help="End another process's running turn.",
)


def busy_options(command: Command) -> Command:
    """``--wait`` and ``--take-over``, of commands that write to a session; ``opened`` goes by them."""
    return wait_option(_take_over_option(command))


def patience() -> float:
    """For how many seconds the command waits for a turn of another process."""
    return math.inf if click.get_current_context().meta.get(_WAIT) else 0


def takes_over() -> bool:
    """Whether the command ends a turn of another process."""
    return bool(click.get_current_context().meta.get(_TAKE_OVER))


beside_option = click.option(
    "--beside",
    is_flag=True,
    expose_value=False,
    callback=_noted(_BESIDE),
    help="If another process is running a turn, work on a new branch that starts before that turn.",
)


def place_options(command: Command) -> Command:
    """``--endpoint``, ``--model``, ``--base-url`` and ``--key-env``."""
    for option in (
        click.option(
            "--key-env",
            metavar="NAME",
            default="",
            help="Name of the key: an environment variable, or a name from `thinkback keys list`.",
        ),
        click.option(
            "--base-url",
            metavar="URL",
            default="",
            envvar="THINKBACK_BASE_URL",
            show_envvar=True,
            help="Base URL that replaces the endpoint's own; a known or local server needs no --endpoint.",
        ),
        click.option(
            "--model",
            "-m",
            metavar="NAME",
            default="",
            envvar="THINKBACK_MODEL",
            show_envvar=True,
            shell_complete=complete.models,
            help="Name of the model.",
        ),
        click.option(
            "--endpoint",
            metavar="ID",
            default="",
            envvar="THINKBACK_ENDPOINT",
            show_envvar=True,
            shell_complete=complete.endpoints,
            help="Provider or server; `thinkback endpoints` lists them.",
        ),
    ):
        command = option(command)
    return command


def log_path(db: str) -> str:
    """Where the log is: a file, or an address."""
    from thinkback.session import config

    return db or os.environ.get("THINKBACK_DB") or str(config.data_file())


def is_log_there(path: str) -> bool:
    """Whether there may be a log; of an address only its server knows."""
    return "://" in path or os.path.exists(path)


@contextmanager
def open_log(path: str, *, asks: bool = False, settings: Mapping[str, object] | None = None) -> Iterator[SessionStore]:
    """The log at ``path``, made if it is not there; of an address, that of the tenant in ``THINKBACK_TENANT``.

    ``asks``: models will be asked, so that the usage log is kept. ``settings`` stand in place of the user's file.
    """
    import thinkback
    from thinkback.session import config

    config.make_place(path)
    usage_log = config.usage_file() if asks else None
    tenant = os.environ.get("THINKBACK_TENANT") or "default"
    audit_command(path, tenant)
    with (
        upgrade_line() as progress,
        thinkback.open(path, tenant=tenant, usage_log=usage_log, settings=settings, progress=progress) as store,
    ):
        try:
            yield store
        except NotFoundError as error:
            if "session" in error.details and "://" in path:
                raise _with_tenants(error, path, tenant) from None
            if name := error.details.get("session") or error.details.get("prefix"):
                raise _with_gateway(error, path, str(name)) from None
            raise


def audit_command(path: str, tenant: str) -> None:
    """Write into a gateway's audit log that somebody opens a log of its store by a command, and which.

    It is the gateway whose ``gateway.toml`` is in the configuration directory, where that names an audit log.
    """
    from thinkback.session import config

    context = click.get_current_context(silent=True)
    if context is None or not os.path.isfile(config.config_dir() / "gateway.toml"):
        return
    from thinkback.servers.gateway.access.audit import Audit, person
    from thinkback.servers.gateway.running.places import configuration, state_place

    try:
        settled = configuration()
        place = state_place(settled.store)
    except ThinkbackError:
        return  # whoever starts the gateway is told what is wrong with its configuration
    is_its = path == place if "://" in path else Path(path).resolve().parent == Path(place).resolve()
    if not (settled.logs.audit and is_its):
        return
    said = {name: value for name, value in context.params.items() if name in _AUDITED and value}
    of = tenant if "://" in path else Path(path).stem
    command = context.command_path.partition(" ")[2]
    Audit(settled.logs.audit).note("log.opened", command=command, tenant=of, by=person(), **said)


_AUDITED = ("session", "end_user", "before", "tenant", "key", "hash", "dry_run")


def _with_gateway(error: NotFoundError, path: str, name: str) -> NotFoundError:
    """``error`` of a session ``name`` that the log at ``path`` does not have, with the log of the gateway that has it.

    It is the gateway whose ``gateway.toml`` is in the configuration directory, or that of the defaults. What has the
    form of a gateway's id may be in the log of another.
    """
    from thinkback.servers.gateway.running.places import configuration, state_place

    try:
        store = configuration().store
        logs = list(_gateway_logs(state_place(store), store.url, name))
    except ThinkbackError:
        logs = []
    for each in logs:
        if each.path and Path(each.path).resolve() == Path(path).resolve():
            continue
        found = _session_in(each, name)
        if found:
            context = click.get_current_context(silent=True)
            command = context.command_path if context is not None else "thinkback log"
            action = f"a gateway recorded it: `{each.before}{command} {found} --db {each.shown}`"
            return NotFoundError(error.message, details=error.details, next_actions=(action,))
    if not _GATEWAY_ID.fullmatch(name):
        return error
    elsewhere = (
        "if a gateway recorded it: give --db its log, TENANT.db in store.path (or store.url) of its --config file"
    )
    return NotFoundError(error.message, details=error.details, next_actions=(*error.next_actions, elsewhere))


_GATEWAY_ID = re.compile("[0-9a-f]{24}")


class _GatewayLog(NamedTuple):
    """A log to look into: its address and tenant, and how a command names them without a password."""

    address: str
    tenant: str
    shown: str
    before: str = ""
    path: str = ""


def _gateway_logs(place: str, reference: str, name: str) -> Iterator[_GatewayLog]:
    """The logs of the gateway whose state is at ``place``. Raises ``StoreError``."""
    if "://" not in place:
        for file in sorted(Path(place).expanduser().glob("*.db")):
            yield _GatewayLog(str(file), "default", shlex.quote(str(file)), path=str(file))
    elif _GATEWAY_ID.fullmatch(name):  # a database is asked for nothing that only looks like a name
        from thinkback.stores.formats import tenants_at

        kind, _, where = reference.partition(":")
        shown = {"env": f'"${where}"', "file": f'"$(cat {shlex.quote(where)})"'}.get(kind)
        for tenant in tenants_at(place):
            # an address that stands in the configuration has no password
            yield _GatewayLog(place, tenant, shown or shlex.quote(place), f"THINKBACK_TENANT={shlex.quote(tenant)} ")


def _session_in(place: _GatewayLog, name: str) -> str:
    """The id of the session ``name`` in a log; empty where it has none, or is no log (the gateway's own state)."""
    from thinkback.stores import open_store

    try:
        log = open_store(place.address, tenant=place.tenant, connections=1)
    except ThinkbackError:
        return ""
    try:
        found = log.find_session(name)
    except ThinkbackError:
        return ""
    finally:
        log.close()
    return found.id if found is not None else ""


def _with_tenants(error: NotFoundError, url: str, tenant: str) -> NotFoundError:
    """``error`` of a session that the log of ``tenant`` does not have, with the tenants in whose logs it may be."""
    from thinkback.errors import StoreError
    from thinkback.stores.formats import tenants_at

    try:
        others = [name for name in tenants_at(url) if name != tenant]
    except StoreError:
        return error
    if not others:
        return error
    which = f"this is the log of the tenant {tenant}; the database has those of {', '.join(others)}"
    actions = (*error.next_actions, f"{which}: name one, as THINKBACK_TENANT={others[0]}")
    return NotFoundError(error.message, details=error.details, next_actions=actions)


@contextmanager
def existing_log(db: str, settings: Mapping[str, object] | None = None) -> Iterator[SessionStore]:
    """The log, which must be there: looking never makes one. ``settings`` as ``open_log``."""
    with open_log(existing_path(db), settings=settings) as store:
        yield store


def existing_path(db: str) -> str:
    """Where the log is. Raises ``NotFoundError`` where there is none."""
    path = log_path(db)
    if not is_log_there(path):
        raise NotFoundError(
            f"there is no log at {path}",
            next_actions=(
                "`thinkback chat` or `thinkback run` begins one",
                f"or give --db{' another file' if db else ''}",
            ),
        )
    return path


def chosen(store: SessionStore, name: str | None) -> SessionInfo:
    """The session called ``name``, else the one used last that asked a model, sub-agents aside; without one the newest.

    A session that has only notes, tags or settings is no answer to a command that names none.
    """
    if name:
        return store.find(name)
    listed = store.sessions(_FEW)
    found = next((info for info in listed if not info.is_task and _has_request(store, info)), None)
    found = found or next((info for info in newest_first(store) if not info.is_task), None)
    if found is None:
        raise NotFoundError(
            "the log has no sessions yet", next_actions=("`thinkback chat` or `thinkback run` begins one",)
        )
    return found


def _has_request(store: SessionStore, info: SessionInfo) -> bool:
    """True where a model answered in the session, or was asked and did not."""
    summary = store.log.summaries([info.id]).get(info.id)
    if summary is not None and summary.tally.models:
        return True
    return any(commit.kind == "request" for commit in store.commits(info.id))


def newest_first(store: SessionStore) -> Iterator[SessionInfo]:
    """The sessions, last used first: mostly nobody asks for more than a few."""
    yield from (few := store.sessions(_FEW))
    if len(few) == _FEW:
        yield from store.sessions()[_FEW:]


def last_used(store: SessionStore) -> SessionInfo:
    """The session used last in which something was said, sub-agents aside; without one that used last."""
    said = (info for info in newest_first(store) if info.commits and not info.is_task)
    return next(said, None) or chosen(store, None)


def confirm(question: str) -> None:
    """Ask, and go on at a yes. Raises ``ThinkbackError`` at a no, ``click.UsageError`` where nobody answers."""
    try:
        is_wanted = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise click.UsageError("this needs confirmation, and there is no terminal to ask on: add --yes") from None
    if not is_wanted:
        raise ThinkbackError("nothing was changed")


def pairs(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    """The ``KEY=VALUE`` of a repeatable option. Raises ``click.UsageError``."""
    parts = [pair.partition("=") for pair in given]
    for key, equals, value in parts:
        if not key or not equals:
            raise click.UsageError(f"{option} wants KEY=VALUE, got {key + equals + value!r}")
    return [(key.strip(), value) for key, _, value in parts]


def place_in(given: Mapping[str, str]) -> Destination:
    """What the options of ``place_options`` say."""
    return Destination(given["endpoint"], given["model"], given["base_url"], given["key_env"])


def by_key(endpoints: Iterable[Endpoint]) -> dict[str, Endpoint]:
    """For each key, by its name, the first of ``endpoints`` for it: a provider of several has the shortest id there."""
    found: dict[str, Endpoint] = {}
    for row in endpoints:
        if row.auth.env and row.base_url:
            known = found.get(row.auth.env[0])
            if known is None or len(row.id) < len(known.id):
                found[row.auth.env[0]] = row
    return found


def knowing(store: SessionStore, error: ThinkbackError, endpoint: str, model: str) -> list[str]:
    """The endpoints that know ``model`` where ``endpoint`` does not, for an ``error`` over its key or the model.

    Those with a key on this machine, and the one where the model answered last in this log.
    """
    from thinkback.session.config import keys

    is_refused = isinstance(error, CredentialError | UnknownModelError) or error.details.get("status") in (401, 403)
    book = store.rulebook
    if not (is_refused and endpoint and model) or model in book.served(book.endpoint(endpoint).id):
        return []
    rows = [row for row in book.endpoints() if model in book.served(row.id)]
    there = keys.places([name for row in rows for name in row.auth.env])
    keyed = [row.id for row in by_key(rows).values() if any(name in there for name in row.auth.env)]
    summaries = store.log.summaries()
    used = (info for info in store.sessions() if info.id in summaries and model in summaries[info.id].tally.models)
    last = next(used, None)
    place = after(Destination(), store.commits(last.id)).endpoint if last is not None else ""
    return list(dict.fromkeys([*keyed, *(row.id for row in rows if row.id == place)]))


@contextmanager
def naming_endpoints(store: SessionStore, asked: Destination, to: Destination) -> Iterator[None]:
    """Where ``asked`` names a model and no endpoint, an error over key or model names the endpoints that know it."""
    try:
        yield
    except ThinkbackError as error:
        if not (asked.endpoint or asked.base_url) and (known := knowing(store, error, to.endpoint, asked.model)):
            ways = " or ".join(f"--endpoint {id}" for id in known)
            error.next_actions += (f"{asked.model} is known at {' and '.join(known)}: give {ways}",)
        raise


def opened(store: SessionStore, name: str, to: Destination, app: str = "", profile: str = "") -> Session:
    """The session called ``name``, made if it is not there, with its requests going ``to``; a new one's app."""
    session = open_at(store, name, to, app, profile)
    session.on("notice", _notify)
    _make_way(session)
    return session


def _make_way(session: Session) -> None:
    """What was asked for where somebody else has a turn under way; it is asked for once."""
    context = click.get_current_context(silent=True)
    asked = context.meta if context is not None else {}
    holder, branch = session.conversation.holder, session.conversation.line.branch
    if asked.get(_WAIT):
        holder.wait = math.inf
    if asked.pop(_TAKE_OVER, False):
        session.take_over()
    elif asked.pop(_BESIDE, False) and holder.found(branch) is not None:
        made = session.branches.beside()
        terminal.note(f"another process is running a turn on {branch}: continuing on branch {made.name}")


def _notify(text: str) -> None:
    terminal.complain(f"note: {text}")


@contextmanager
def open_line(db: str, name: str) -> Iterator[Session]:
    """The session, standing where it was left, with its requests going where the last one went.

    Where a commit is not found whose name is a session's, the error says how a session is named.
    """
    with existing_log(db) as store:
        info = chosen(store, name)
        try:
            yield opened(store, info.name, Destination())
        except NotFoundError as error:
            wanted = str(error.details.get("name", ""))
            if not wanted or store.log.find_session(wanted) is None:
                raise
            action = f"{wanted} is a session: name it with --session {wanted}"
            raise NotFoundError(
                error.message, details=error.details, next_actions=(action, *error.next_actions)
            ) from None
