"""The page of a request: which requests stand beside the log on it, and what is said around them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.log.protocol import SessionInfo
from thinkback.model.commits import Commit, Repair, Request
from thinkback.rules import Rulebook
from thinkback.servers.viewer.lines import Line
from thinkback.servers.viewer.replay import Column, Row, SentItem, Tally, rows_of, sent_items, tally
from thinkback.session import config, requests
from thinkback.session.destination import Destination, after, destination_of
from thinkback.session.masking import without_keys
from thinkback.session.store import SessionStore
from thinkback.settings import Layers
from thinkback.turn.plan import History, Plan

ROWS = 120
"""Rows on a page."""
_SOME_MODELS = 3
_SECRET = re.compile("key|token|sig|secret|password|credential|auth|cookie", re.IGNORECASE)
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")


class Mending(NamedTuple):
    """A refusal and the repair of it: ``before`` is the request that was refused, ``after`` the one sent instead."""

    refusal: str
    stage: str
    blocks: tuple[str, ...]
    before: str
    after: str


class View(NamedTuple):
    """A page: ``shown`` of the ``rows``, page ``number`` of ``last``."""

    columns: Sequence[Column]
    tallies: Sequence[Tally]
    rows: Sequence[Row]
    shown: Sequence[Row]
    number: int
    last: int


def sent(line: Line, hash: str) -> Column:
    """The request ``hash`` of the line, rebuilt from its record and checked by its digest."""
    at = next((number for number, commit in enumerate(line.requests) if commit.hash == hash), None)
    if at is None:
        raise NotFoundError("that is no request of this branch", next_actions=("its conversation leads to requests",))
    commit = line.requests[at]
    title = f"Request {at + 1} of {len(line.requests)}"
    try:
        # what came right behind it is what the provider said of it
        plan = requests.rebuild(line.commits, commit.hash)
    except ThinkbackError as error:
        return Column(title, False, None, error.message, commit.seq, hash)
    return Column(title, False, plan, "", commit.seq, hash)


def coming(store: SessionStore, info: SessionInfo, line: Line, to: str, *, is_guest: bool = False) -> Column:
    """The next request of the current branch, to ``to`` (endpoint, or endpoint/model), else where the last one went.

    For a guest it is planned by the log and the rules of ``store`` alone: settings, profiles and keys of this machine
    are not looked at. To where a request of the line went it is as that one, with its settings and its account.
    """
    endpoint, _, model = to.strip().partition("/")
    place, end = Destination(endpoint, model), len(line.commits)
    try:
        plan = _foreseen(store.rulebook, info, line, place) if is_guest else _planned(store, info, line, place)
    except ThinkbackError as error:
        return Column(f"Next request, to {to.strip()}" if to else "Next request", True, None, error.message, end=end)
    return Column("Next request", True, plan, end=end)


def _planned(store: SessionStore, info: SessionInfo, line: Line, to: Destination) -> Plan:
    session = store.existing(info, destination_of(store, info, line.commits, to))
    session.on("notice", lambda _: None)
    return session.explain(next=True)


def _foreseen(rules: Rulebook, info: SessionInfo, line: Line, to: Destination) -> Plan:
    sent = [value for commit in reversed(line.requests) if isinstance(value := commit.value, Request)]
    history = History(line.commits)
    for record in sent:
        if to.endpoint in ("", record.target["endpoint"]) and to.model in ("", record.target["model"]):
            return requests.plan_like(record, line.commits, history)
    there = after(to, line.requests)
    if not there.is_complete:
        raise NotFoundError("say where: endpoint/model")
    same = next((record.target for record in sent if record.target["endpoint"] == there.endpoint), None)
    account, known = (same["account"], same["account_known"] == "true") if same is not None else ("", False)
    target = rules.target(
        there.endpoint,
        there.model,
        on=config.today(),
        base_url=there.base_url,
        account=account,
        account_known=known,
    )
    settings = Layers().replace("session", info.settings).effective(target.endpoint.settings)
    return history.plan(target, settings, None, requests.native_params(target, requests.Options(), settings))


def view(line: Line, columns: Sequence[Column], only: str, at: int) -> View:
    """The rows of a page; ``only`` the thoughts, or what is held back; the page with ``at``, else the last one."""
    rows = rows_of(line.entries, columns)
    tallies = [tally(rows, number) for number in range(len(columns))]
    if only == "thoughts":
        rows = [row for row in rows if row.part.kind == "thought"]
    elif only == "held":
        rows = [row for row in rows if any(cell.verdict in ("held", "stand-in") for cell in row.cells)]
    last = max(1, -(-len(rows) // ROWS))
    number = last
    if at >= 0:
        place = next((place for place, row in enumerate(rows) if row.part.commit.seq >= at), len(rows) - 1)
        number = max(place, 0) // ROWS + 1
    return View(columns, tallies, rows, rows[(number - 1) * ROWS : number * ROWS], number, last)


def mendings(commits: Sequence[Commit], hash: str) -> list[Mending]:
    """The refusals that led to the request ``hash``, or that it met."""
    found = []
    asked: Commit | None = None
    waiting: list[tuple[Repair, str]] = []
    for commit in commits:
        if isinstance(commit.value, Repair):
            waiting.append((commit.value, asked.hash if asked is not None else ""))
        elif isinstance(commit.value, Request):
            for repair, before in waiting:
                if hash in (before, commit.hash):
                    found.append(Mending(repair.refusal, repair.stage, repair.blocks, before, commit.hash))
            asked, waiting = commit, []
    return found


def sent_messages(column: Column, line: Line) -> tuple[list[SentItem], dict[str, Any]]:
    """The messages of a column and the rest of its body."""
    return sent_items(column.plan, line.commits) if column.plan is not None else ([], {})


def destinations(store: SessionStore) -> list[str]:
    """Where the next request could go: some models of every endpoint."""
    book = store.rulebook
    return [f"{row.id}/{model}" for row in book.endpoints() for model in book.served(row.id)[:_SOME_MODELS]]


def curl_of(column: Column, body: str) -> str:
    """The request as a command that sends the file ``body``; keys are the names of variables, in which they mostly are.

    What a user's own settings add to headers is not in the log, and not here.
    """
    if column.plan is None:
        return ""
    target = column.plan.target
    auth, (host, _, query) = target.endpoint.auth, column.plan.url.partition("?")
    scheme, slashes, host = host.partition("://")
    kept = [part for part in query.split("&") if part and not _SECRET.search(part.partition("=")[0])]
    url = f"{scheme}{slashes}{host.rpartition('@')[2]}{'?' if kept else ''}{'&'.join(kept)}"
    name = f"${next((each for each in auth.env if _VARIABLE.fullmatch(each)), 'API_KEY')}"
    headers = {"content-type": "application/json", **target.endpoint.headers, **target.rule.headers}
    lines = [f"curl {shlex.quote(url)}"]
    lines += [f"-H {shlex.quote(f'{key}: {said}')}" for key, said in headers.items() if not _SECRET.search(key)]
    match auth.scheme:
        case "bearer" | "google" | "azure":
            lines.append(f'-H "{auth.header}: Bearer {name}"')
        case "header":
            lines.append(f'-H "{auth.header}: {name}"')
        case "query":
            lines.append(f'--url-query "{auth.query}={name}"')
        case "sigv4":
            keys = '--user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"'
            lines.append(f'--aws-sigv4 "aws:amz:$AWS_REGION:{auth.service}" {keys}')
        case _:
            pass
    return without_keys(" \\\n  ".join([*lines, f"--data-binary @{body}"]))
