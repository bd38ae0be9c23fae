"""Where a session's requests go where nobody says it: what its profiles, its last request, the environment and the
user's default profiles say, in this order.

Promises: what was sent to an address that only somebody's imported file names is not sent there again by itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from thinkback.errors import NotFoundError, ThinkbackError

if TYPE_CHECKING:
    from thinkback.log.protocol import SessionInfo
    from thinkback.model.commits import Commit
    from thinkback.rules import Rulebook
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore

_SOME = 5


class Destination(NamedTuple):
    """Where requests go, as far as it is said; ``key_env`` names the variable that holds the key."""

    endpoint: str = ""
    model: str = ""
    base_url: str = ""
    key_env: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether it says an endpoint and a model."""
        return bool((self.endpoint or self.base_url) and self.model)


def of_environment() -> Destination:
    """What ``THINKBACK_ENDPOINT``, ``THINKBACK_MODEL`` and ``THINKBACK_BASE_URL`` say."""
    said = (os.environ.get(f"THINKBACK_{name}", "") for name in ("ENDPOINT", "MODEL", "BASE_URL"))
    return Destination(*said)


def after(given: Destination, commits: Sequence[Commit]) -> Destination:
    """``given``, completed from the last request among ``commits``; another endpoint or address owes it nothing."""
    from thinkback.model.commits import Request

    asked = (commit.value for commit in reversed(commits) if isinstance(commit.value, Request))
    last = next((record for record in asked if record.target), None)  # one that was asked elsewhere names no place
    if last is None:
        return given
    target = last.target
    elsewhere = (given.endpoint and given.endpoint != target["endpoint"]) or (
        given.base_url and given.base_url.rstrip("/") != target["base_url"]
    )
    if elsewhere:
        return given
    return Destination(target["endpoint"], given.model or target["model"], target["base_url"], given.key_env)


def remembered(
    store: SessionStore, known: SessionInfo | None, commits: Sequence[Commit], given: Destination
) -> Destination:
    """The same for requests: a key, and what is said, do not go to an address that only somebody's file names."""
    found = after(given, commits)
    if known is not None and found == given and not (given.endpoint and given.model):
        found = after(given, _elsewhere(store, known))
    if known is None or not found.base_url or found.base_url == given.base_url or not _may_be_named(store, known):
        return found
    return found if _is_known(store, found) else given


def _elsewhere(store: SessionStore, known: SessionInfo) -> list[Commit]:
    """The commits of the other branches: where a question was taken back, the one that has it says where it went."""
    names = [branch.name for branch in store.log.refs.list(known.id) if branch.name != known.branch]
    return [commit for name in names for commit in store.log.read(known.id, branch=name)]


def _may_be_named(store: SessionStore, info: SessionInfo) -> bool:
    """Tell if a file may have named the address of a request of a session, or of one that it was made from.

    A history of another program names none: what was asked in such a session was asked here.
    """
    from thinkback.log.protocol import EXPORT_SOURCE
    from thinkback.settings.registry import IMPORTED

    if IMPORTED in info.settings:
        sources = store.log.summaries([info.id])[info.id].about.sources
        if not sources or EXPORT_SOURCE in sources:
            return True
    return bool(info.parent) and _may_be_named(store, store.find(info.parent))


def _is_known(store: SessionStore, to: Destination) -> bool:
    """Whether an address is the endpoint's own, or stands in a profile of this machine."""
    from thinkback.session.endpoint_config import is_home
    from thinkback.session.profiles import files

    try:
        endpoint = store.rulebook.endpoint(to.endpoint)
    except NotFoundError:
        return False
    own = []
    for name in files.listed():
        try:
            own.append(files.read(name).base_url)
        except ThinkbackError:  # a profile that cannot be read names no address
            continue
    return is_home(to.base_url, endpoint, *own)


def destination_of(
    store: SessionStore, known: SessionInfo | None, commits: Sequence[Commit], given: Destination, profile: str = ""
) -> Destination:
    """``given``, completed by the profiles that are named or that the session has, else from its last request, else by
    the user's default profiles.
    """
    from thinkback.session.profiles.files import SETTING
    from thinkback.settings.registry import DEFAULT

    own = profile or (known.settings.get(SETTING, "") if known is not None else "")
    given = recalled(store, known, lambda: commits, given, own)
    default = "" if own else str(store.user_settings().get(SETTING, DEFAULT))
    return _profiled(store, given, default) if default not in ("", DEFAULT) else given


def recalled(
    store: SessionStore,
    known: SessionInfo | None,
    commits: Callable[[], Sequence[Commit]],
    given: Destination,
    own: str,
) -> Destination:
    """The same without the default profiles; ``own`` are the session's."""
    from thinkback.settings.registry import DEFAULT

    if own and own != DEFAULT:
        given = _profiled(store, given, own)
    if not (own and given.endpoint and given.model):
        given = remembered(store, known, commits(), given)
    return given


def _profiled(store: SessionStore, given: Destination, names: str) -> Destination:
    from thinkback.session import requests
    from thinkback.session.configuration import checked
    from thinkback.settings.profiles import names_in

    place = requests.EndpointConfig(
        model=given.model, endpoint=given.endpoint, base_url=given.base_url, key_env=given.key_env
    )
    there = checked(store.rulebook, place, names_in(names), fill=True)
    return Destination(there.endpoint, there.model, there.base_url, there.key_env)


def check_destination(to: Destination, rulebook: Rulebook) -> None:
    """Raise ``NotFoundError`` where nobody said where a request goes; of models it names some."""
    if not (to.endpoint or to.base_url):
        raise NotFoundError(
            "no endpoint is set",
            next_actions=(
                "`thinkback chat` on a terminal sets one up",
                "give --endpoint (`thinkback endpoints` lists them) or --base-url",
                "without a key: --endpoint referee, a stand-in for providers",
            ),
        )
    if not to.model:
        where = rulebook.endpoint(to.endpoint) if to.endpoint else rulebook.endpoint_for_url(to.base_url)
        known = rulebook.served(where.id)
        some = f": {', '.join(known[:_SOME])}{', ...' if len(known) > _SOME else ''}" if known else ""
        raise NotFoundError(
            "no model is set",
            next_actions=(f"give --model{some}", f"`thinkback models {where.id}` lists those that are known"),
        )


def open_at(store: SessionStore, name: str, to: Destination, app: str = "", profile: str = "") -> Session:
    """The session called ``name``, made if it is not there, with its requests going ``to``; a new one's app."""
    return store.session(
        name,
        endpoint=to.endpoint,
        model=to.model,
        base_url=to.base_url,
        key_env=to.key_env,
        app=app,
        profile=profile,
    )
