"""What a shell completes: sessions, branches, endpoints, models, settings, profiles, apps.

Promises: quick, and without a trace: no log is made, migrated or locked, nobody is asked over a network, and a file
that is wrong gives no names instead of an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, TypeAlias

import click

from thinkback.errors import ThinkbackError

if TYPE_CHECKING:
    from thinkback.rules import Rulebook

# What a name would have to be quoted for; scripts of shells do not, and take one name a line.
_SPECIAL = frozenset(" '\"\\$`*?[]{}()<>|&;!#~")

Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]


def _among(find: Callable[[click.Context], Iterable[str]]) -> Completer:
    """Those of what ``find`` gives that go on where the word breaks off; nothing where a file is wrong."""

    @wraps(find)
    def complete(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
        try:
            return [name for name in find(ctx) if name.startswith(begun) and _plain(name)]
        except (ThinkbackError, OSError):
            return []

    return complete


@_among
def sessions(ctx: click.Context) -> Iterable[str]:
    """The sessions of the log that is meant."""
    from thinkback.stores.names import session_names

    return session_names(_log(ctx))


@_among
def branches(ctx: click.Context) -> Iterable[str]:
    """The branches of the session that is meant; without one, of the newest."""
    from thinkback.stores.names import branch_names, session_names

    log = _log(ctx)
    session = ctx.params.get("session") or next(iter(session_names(log)), "")
    return branch_names(log, session)


@_among
def endpoints(_ctx: click.Context) -> Iterable[str]:
    """The endpoints there are."""
    return sorted(endpoint.id for endpoint in _book().endpoints())


@_among
def models(ctx: click.Context) -> Iterable[str]:
    """The models that are known at the endpoint that is meant; without one, of all."""
    book = _book()
    given = ctx.params.get("endpoint") or ctx.params.get("id")
    wanted = [book.endpoint(given)] if given else book.endpoints()
    return dict.fromkeys(model for endpoint in wanted for model in book.served(endpoint.id))


@_among
def settings(_ctx: click.Context) -> Iterable[str]:
    """The keys of settings."""
    from thinkback.settings import KEYS

    return KEYS


@_among
def assignments(_ctx: click.Context) -> Iterable[str]:
    """The keys of settings, as options take them."""
    from thinkback.settings import KEYS

    return (f"{key}=" for key in KEYS)


@_among
def values(ctx: click.Context) -> Iterable[str]:
    """The words that the setting that is meant may have."""
    from thinkback.settings import find

    return (word for word in find(ctx.params.get("key") or "").allowed if " " not in word)


@_among
def profiles(_ctx: click.Context) -> Iterable[str]:
    """The profiles there are."""
    from thinkback.session.profiles.files import listed

    return listed()


@_among
def apps(_ctx: click.Context) -> Iterable[str]:
    """The apps there are."""
    from thinkback.session.apps import listed

    return (row.id for row in listed())


def _plain(name: str) -> bool:
    return name.isprintable() and _SPECIAL.isdisjoint(name)


def _log(ctx: click.Context) -> str:
    from thinkback.cli.options import log_path

    path = log_path(ctx.params.get("db") or "")
    return "" if "://" in path else path  # what a server would say takes too long


def _book() -> Rulebook:
    from thinkback.session import config

    return config.rulebook()
