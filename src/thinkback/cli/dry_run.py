"""What ``run`` would send, worked out on a copy of the session in memory: no key needed, nothing stored."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

import thinkback
from thinkback.cli import terminal
from thinkback.cli.config.apps import app_of, placed, tools_of
from thinkback.cli.decisions import control_line
from thinkback.cli.options import Names, is_log_there, log_path, open_log
from thinkback.cli.referee import completed
from thinkback.session.destination import Destination, check_destination, destination_of

if TYPE_CHECKING:
    from thinkback.log.protocol import SessionInfo
    from thinkback.model.commits import Commit
    from thinkback.rules import Rulebook
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore

_NAME = "dry run"
_NO_KEY = "none"


def dry_run(
    db: str, name: str, place: Destination, names: Names, prompt: str, options: Mapping[str, Any], as_json: bool
) -> None:
    """Print the body of the request that ``prompt`` would lead to; with ``as_json`` where it goes and why, too."""
    known, commits, place = _stored(db, name, place, names.profile)
    with thinkback.open(":memory:") as store:
        place = completed(destination_of(store, None, commits, place, names.profile))
        place = placed(place, names.app or app_of(known, place), store.rulebook)
        check_destination(place, store.rulebook)
        session = _copy(store, place, names, known, commits)
        with tools_of(session) as tools:
            plan = session.wire.plan(prompt, **options, **tools)
    body = bytes(plan)
    if as_json:
        terminal.print_json(
            {
                "url": plan.without_key(plan.url),
                "body": msgspec.json.decode(body),
                "decisions": [msgspec.structs.asdict(decision) for decision in plan.decisions],
                "counts": msgspec.structs.asdict(plan.counts),
                "dropped": [msgspec.structs.asdict(dropped) for dropped in plan.dropped],
            }
        )
        return
    terminal.note(f"POST {plan.without_key(plan.url)}")
    for dropped in plan.dropped:
        terminal.note(control_line(dropped))
    sys.stdout.write(body.decode("utf-8", "surrogatepass") + "\n")


def _stored(
    db: str, name: str, place: Destination, profile: str
) -> tuple[SessionInfo | None, list[Commit], Destination]:
    """The session and its commits as far as there are any, and ``place`` with what its own log knows; a log is never
    made.
    """
    path = log_path(db)
    if not name or not is_log_there(path):
        return None, [], place
    with open_log(path) as store:
        info = store.log.find_session(name)
        if info is None:
            return None, [], place
        commits = store.commits(info.id)
        return info, commits, destination_of(store, info, commits, place, profile)


def _copy(
    store: SessionStore, place: Destination, names: Names, known: SessionInfo | None, commits: list[Commit]
) -> Session:
    """The copy. Planning wants a key where the endpoint does: any will do."""
    from thinkback.drive.clock import now
    from thinkback.model.commits import Head

    if known is not None:
        info = store.log.create_session(_NAME, _NAME, now(), settings=known.settings)
        if commits:
            store.log.append(info.id, "copy", commits, Head())
    session = store.session(
        _NAME,
        endpoint=place.endpoint,
        model=place.model,
        base_url=place.base_url,
        api_key=_key(store.rulebook, place),
        app=names.app,
        profile=names.profile,
    )
    session.on("notice", lambda _: None)  # what is not sent is printed with the request
    return session


def _key(rulebook: Rulebook, place: Destination) -> str:
    from thinkback.session.config import keys

    known = rulebook.endpoint(place.endpoint) if place.endpoint else rulebook.endpoint_for_url(place.base_url)
    return keys.of_endpoint(known, None, place.key_env) or _NO_KEY
