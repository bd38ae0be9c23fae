"""Options that several commands share, and what they mean: the log's file, a session, and where requests go.

What is not given is taken from the last request of the session.
"""

from __future__ import annotations

import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from thinkback.cli import terminal
from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.wire.registry import PACKAGES

if TYPE_CHECKING:
    from thinkback.log.protocol import SessionInfo
    from thinkback.model.commits import Commit
    from thinkback.rules import Rulebook
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore

Command = TypeVar("Command", bound=Callable[..., Any])

DIALECTS = "\b\n" + textwrap.fill(f"Dialects: {', '.join(PACKAGES)}.", 76, break_on_hyphens=False)
"""A paragraph for help that names the wire formats."""

db_option = click.option(
    "--db", metavar="PATH", default="", help="The log's file, or postgresql://..., instead of the default one."
)
session_option = click.option(
    "--session", "-s", metavar="NAME", default="", help="The session instead of the one used last."
)


def session_argument(command: Command) -> Command:
    """SESSION, or ``--session``; whichever is given is ``session``."""
    option = click.option(
        "--session",
        "-s",
        "named",
        metavar="NAME",
        default="",
        expose_value=False,
        callback=_note_name,
        is_eager=True,
        help="The same as SESSION.",
    )
    return click.argument("session", default="", callback=_one_name)(option(command))


def _note_name(ctx: click.Context, _option: click.Parameter, name: str) -> None:
    ctx.meta[_NAMED] = name


def _one_name(ctx: click.Context, _argument: click.Parameter, name: str) -> str:
    named: str = ctx.meta.get(_NAMED, "")
    if name and named and name != named:
        raise click.UsageError(f"SESSION is {name}, and --session is {named}: give one of them")
    return name or named


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


_NAMED = "thinkback.session"


_SOME = 5


class Place(NamedTuple):
    """Where requests go, as far as it is said. ``key_env`` names the variable that holds the key."""

    endpoint: str = ""
    model: str = ""
    base_url: str = ""
    key_env: str = ""


class Names(NamedTuple):
    """What a session goes by besides a place: the app of a new one, and profiles, separated by commas."""

    app: str = ""
    profile: str = ""


app_option = click.option(
    "--app", metavar="NAME", default="", help="The app of a new session; `thinkback apps` lists them."
)

profile_option = click.option(
    "--profile", metavar="NAMES", default="", help="The profiles of this session, separated by commas; default: none."
)


_WAIT, _TAKE_OVER, _BESIDE = "thinkback.wait", "thinkback.take_over", "thinkback.beside"
"""What the options about turns of others say, in the context of the command."""


def _noted(key: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def note(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
        context.meta[key] = value

    return note


def busy_options(command: Command) -> Command:
    """``--wait`` and ``--take-over``, of commands that write to a session; ``opened`` goes by them."""
    for flag, key, help in (
        ("--take-over", _TAKE_OVER, "End the turn that another process has under way there."),
        ("--wait", _WAIT, "Wait while another process has a turn under way there."),
    ):
        command = click.option(flag, is_flag=True, expose_value=False, callback=_noted(key), help=help)(command)
    return command


beside_option = click.option(
    "--beside",
    is_flag=True,
    expose_value=False,
    callback=_noted(_BESIDE),
    help="Where another process has a turn under way, go on in a branch that begins before it.",
)


def place_options(command: Command) -> Command:
    """``--endpoint``, ``--model``, ``--base-url`` and ``--key-env``."""
    for option in (
        click.option(
            "--key-env",
            metavar="NAME",
            default="",
            help="The name of the key: an environment variable, or one of `thinkback keys`.",
        ),
        click.option(
            "--base-url",
            metavar="URL",
            default="",
            envvar="THINKBACK_BASE_URL",
            show_envvar=True,
            help="Address instead of the endpoint's own; alone it is enough for a known or local server.",
        ),
        click.option(
            "--model", metavar="NAME", default="", envvar="THINKBACK_MODEL", show_envvar=True, help="The model's name."
        ),
        click.option(
            "--endpoint",
            metavar="ID",
            default="",
            envvar="THINKBACK_ENDPOINT",
            show_envvar=True,
            help="Which provider or server; `thinkback endpoints` lists them.",
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


def open_log(path: str, *, asks: bool = False, settings: Mapping[str, object] | None = None) -> SessionStore:
    """The log at ``path``, made if it is not there; of an address, that of the tenant in ``THINKBACK_TENANT``.

    ``asks``: models will be asked, so that the usage log is kept. ``settings`` stand in place of the user's file.
    """
    import thinkback
    from thinkback.session import config

    usage_log = config.usage_file() if asks else None
    tenant = os.environ.get("THINKBACK_TENANT") or "default"
    return thinkback.open(path, tenant=tenant, usage_log=usage_log, settings=settings)


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
    """The session called ``name``, else the one used last, sub-agents aside."""
    if name:
        return store.find(name)
    sessions = [info for info in store.sessions() if not info.is_task]
    if not sessions:
        raise NotFoundError(
            "the log has no sessions yet", next_actions=("`thinkback chat` or `thinkback run` begins one",)
        )
    return sessions[0]


def confirm(question: str) -> None:
    """Ask, and go on at a yes. Raises ``click.Abort`` at a no, ``click.UsageError`` where nobody answers."""
    try:
        is_wanted = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise click.UsageError("nobody answers here: --yes does it without being asked") from None
    if not is_wanted:
        raise click.Abort


def pairs(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    """The ``KEY=VALUE`` of a repeatable option. Raises ``click.UsageError``."""
    parts = [pair.partition("=") for pair in given]
    for key, equals, value in parts:
        if not key or not equals:
            raise click.UsageError(f"{option} wants KEY=VALUE, got {key + equals + value!r}")
    return [(key.strip(), value) for key, _, value in parts]


def place_in(given: Mapping[str, str]) -> Place:
    """What the options of ``place_options`` say."""
    return Place(given["endpoint"], given["model"], given["base_url"], given["key_env"])


def place_after(given: Place, commits: Sequence[Commit]) -> Place:
    """``given``, completed from the last request among ``commits``; another endpoint or address owes it nothing."""
    from thinkback.model.commits import Request

    last = next((commit.value for commit in reversed(commits) if isinstance(commit.value, Request)), None)
    if last is None:
        return given
    target = last.target
    elsewhere = (given.endpoint and given.endpoint != target["endpoint"]) or (
        given.base_url and given.base_url.rstrip("/") != target["base_url"]
    )
    if elsewhere:
        return given
    return Place(target["endpoint"], given.model or target["model"], target["base_url"], given.key_env)


def place_here(store: SessionStore, known: SessionInfo | None, commits: Sequence[Commit], given: Place) -> Place:
    """The same for requests: a key, and what is said, do not go to an address that only somebody's file names."""
    found = place_after(given, commits)
    if known is None or not found.base_url or found.base_url == given.base_url or not _is_imported(store, known):
        return found
    return found if _is_known(store, found) else given


def _is_imported(store: SessionStore, info: SessionInfo) -> bool:
    """Whether a session, or one that it was made from, came in a file."""
    from thinkback.settings.registry import IMPORTED

    return IMPORTED in info.settings or bool(info.parent and _is_imported(store, store.find(info.parent)))


def _is_known(store: SessionStore, place: Place) -> bool:
    """Whether an address is the endpoint's own, or stands in a profile of this machine."""
    from thinkback.session.endpoint_config import is_home
    from thinkback.session.profiles import files

    try:
        endpoint = store.rulebook.endpoint(place.endpoint)
    except NotFoundError:
        return False
    own = []
    for name in files.listed():
        try:
            own.append(files.read(name).base_url)
        except ThinkbackError:  # a profile that cannot be read names no address
            continue
    return is_home(place.base_url, endpoint, *own)


def place_of(
    store: SessionStore, known: SessionInfo | None, commits: Sequence[Commit], given: Place, profile: str = ""
) -> Place:
    """``given``, completed by the profiles that are named or that the session has, else from its last request, else by
    the user's default profiles.
    """
    from thinkback.session.profiles.files import SETTING
    from thinkback.settings.registry import DEFAULT

    own = profile or (known.settings.get(SETTING, "") if known is not None else "")
    if own and own != DEFAULT:
        given = _profiled(store, given, own)
    if not (own and given.endpoint and given.model):
        given = place_here(store, known, commits, given)
    default = "" if own else str(store.user_settings().get(SETTING, DEFAULT))
    return _profiled(store, given, default) if default not in ("", DEFAULT) else given


def _profiled(store: SessionStore, given: Place, names: str) -> Place:
    from thinkback.session import requests
    from thinkback.session.configuration import checked
    from thinkback.settings.profiles import names_in

    place = requests.Place(model=given.model, endpoint=given.endpoint, base_url=given.base_url, key_env=given.key_env)
    there = checked(store.rulebook, place, names_in(names), fill=True)
    return Place(there.endpoint, there.model, there.base_url, there.key_env)


def check_place(place: Place, rulebook: Rulebook) -> None:
    """Raise ``NotFoundError`` where nobody said where a request goes; of models it names some."""
    if not (place.endpoint or place.base_url):
        raise NotFoundError(
            "no endpoint is set",
            next_actions=("give --endpoint (`thinkback endpoints` lists them) or --base-url",),
        )
    if not place.model:
        where = rulebook.endpoint(place.endpoint) if place.endpoint else rulebook.endpoint_for_url(place.base_url)
        known = rulebook.served(where.id)
        some = f": {', '.join(known[:_SOME])}{', ...' if len(known) > _SOME else ''}" if known else ""
        raise NotFoundError(
            "no model is set",
            next_actions=(f"give --model{some}", f"`thinkback models {where.id}` lists those that are known"),
        )


def opened(store: SessionStore, name: str, place: Place, app: str = "", profile: str = "") -> Session:
    """The session called ``name``, made if it is not there, with its requests going to ``place``; a new one's app."""
    session = store.session(
        name,
        endpoint=place.endpoint,
        model=place.model,
        base_url=place.base_url,
        key_env=place.key_env,
        app=app,
        profile=profile,
    )
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
        terminal.note(f"another process has a turn under way on {branch}: on branch {made.name} from here on")


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
            yield opened(store, info.name, place_here(store, info, store.commits(info.id), Place()))
        except NotFoundError as error:
            wanted = str(error.details.get("name", ""))
            if not wanted or store.log.find_session(wanted) is None:
                raise
            action = f"{wanted} is a session: name it with --session {wanted}"
            raise NotFoundError(
                error.message, details=error.details, next_actions=(action, *error.next_actions)
            ) from None
