"""How many tokens a request may have, as the server that takes it says: by the queries in its endpoint's data.

Promises: each server and model is asked once a process, for half a second in all, and only the server that requests go
to; whatever goes wrong, nothing is known and nothing is raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple
from urllib.parse import urljoin

import msgspec

from thinkback.drive.deadline import Deadline
from thinkback.drive.http import Httpx2Transport, Timeouts, Verify
from thinkback.errors import ThinkbackError
from thinkback.model import canonical
from thinkback.model.commits import token_count
from thinkback.model.rule import LimitQuery
from thinkback.model.target import Target
from thinkback.turn.credentials import Authenticator

SECONDS = 0.5
"""So long the first request to a server may wait for its limit."""
_MOST_BYTES = 8_000_000


class AskedLimit(NamedTuple):
    """The tokens that a server takes (0: it did not say), and the day (YYYY-MM-DD) on which it said so."""

    tokens: int
    day: str


_ASKED: dict[tuple[str, str], AskedLimit] = {}


def with_asked_limit(target: Target) -> Target:
    """``target`` with the limit that its server told this process, if it did."""
    found = _ASKED.get((target.base_url, target.model))
    if found is None or not found.tokens:
        return target
    source = f"asked of {target.base_url} on {found.day}"
    source = f"{target.info.source}; the context: {source}" if target.info.source else source
    info = msgspec.structs.replace(target.info, context=found.tokens, source=source)
    return msgspec.structs.replace(target, info=info, limit_asked=found.day)


def ask_limit(target: Target, authenticator: Authenticator, proxy: str | None, verify: Verify) -> None:
    """Ask the server of ``target`` how many tokens its model takes, unless this process asked already."""
    key = (target.base_url, target.model)
    if not target.endpoint.limit_queries or key in _ASKED:
        return
    _ASKED[key] = AskedLimit(0, target.on)  # whoever comes meanwhile does not ask again
    client, deadline = Httpx2Transport(proxy, verify), Deadline(SECONDS)
    try:
        for query in target.endpoint.limit_queries:
            answer = _fetched(client, target, query, authenticator, deadline)
            if tokens := limit_told(query, answer, target.model):
                _ASKED[key] = AskedLimit(tokens, target.on)
                return
    finally:
        client.close()


def _fetched(
    client: Httpx2Transport, target: Target, query: LimitQuery, authenticator: Authenticator, deadline: Deadline
) -> Any:
    """The server's answer as a value; nothing where it has none."""
    left = deadline.remaining()
    if deadline.passed:
        return None
    url = urljoin(f"{target.base_url.partition('?')[0]}/", query.path)
    body = canonical.encode({"model": target.model}) if query.method == "POST" else b""
    data = bytearray()
    try:
        headers = {"accept": "application/json", **({"content-type": "application/json"} if body else {})}
        headers = {**headers, **authenticator(url, headers, body).headers}
        with client.request(query.method, url, headers, body, Timeouts(left, left, left, left)) as response:
            for piece in response.body:
                data += piece
                if len(data) > _MOST_BYTES:
                    return None
            return canonical.decode(bytes(data)) if response.status == 200 else None
    except (ThinkbackError, ValueError):  # no limit is known, which the chat shows
        return None


def limit_told(query: LimitQuery, answer: Any, model: str) -> int:
    """The tokens that ``answer`` says ``model`` takes; 0 where it says none."""
    if query.list:
        rows = answer.get(query.list) if isinstance(answer, dict) else None
        found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        answer = next((row for row in found if model in (row.get(name) for name in query.names)), None)
    for field in query.fields:
        for value in _values(answer, field):
            tokens = token_count(int(value) if isinstance(value, str) and value.isdecimal() else value)
            if tokens:
                return tokens
    return 0


def _values(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """Values at ``path``, whose steps are patterns of names; a text is a table of lines, each a name and a value."""
    if not path:
        yield value
        return
    if isinstance(value, str):
        lines = (line.split(None, 1) for line in value.splitlines())
        value = {line[0]: line[1].strip() for line in lines if len(line) == 2}
    if isinstance(value, dict):
        for name, inner in value.items():
            if fnmatchcase(name, path[0]):
                yield from _values(inner, path[1:])
