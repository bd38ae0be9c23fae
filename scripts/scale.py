"""Measures a sample in a private PostgreSQL and projects it to a million sessions; kept in docs/scale.md.

``python -m scripts.scale`` takes a minute or two. A session is 143 turns of a question (200 characters), a request's
record, a response with 2,000 characters of reasoning and 600 of answer, its usage and the turn's end: 1,001 commits.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from bench.conversation import place
from tests.stores.postgres_server import Server
from thinkback.log.protocol import MAIN, Query, Store
from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.commits import Commit, Draft, Head, Message, Response, Step, TurnEnded, Usage, block_draft
from thinkback.stores import open_store
from thinkback.turn.plan import History

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "scale.md"
MARK = "<!-- everything below is measured: python -m scripts.scale -->\n"

SESSIONS, TURNS = 100, 143
GOAL, SHARDS = 1_000_000, 128

_SIZES = """
SELECT c.relname, c.relkind, coalesce(t.relname, c.relname), s.n_live_tup,
       pg_relation_size(c.oid) + CASE WHEN c.reltoastrelid > 0 THEN pg_total_relation_size(c.reltoastrelid) ELSE 0 END
FROM pg_class AS c
LEFT JOIN pg_index AS i ON i.indexrelid = c.oid LEFT JOIN pg_class AS t ON t.oid = i.indrelid
LEFT JOIN pg_stat_user_tables AS s ON s.relid = c.oid
WHERE c.relnamespace = 'thinkback'::regnamespace AND c.relkind IN ('r', 'i')
  AND coalesce(t.relname, c.relname) <> 'migrations'
ORDER BY 3, 2 DESC, 1
"""


def steps() -> Iterator[tuple[Step, Step]]:
    """Turns without end: the question, and what its response brings. Words are those of the documentation."""
    chance = random.Random(7)
    words = [word for page in sorted(DOCS.glob("*.md")) if page != PAGE for word in page.read_text("utf-8").split()]
    at = place("deepseek", "deepseek-reasoner")
    whole = at.plan(History()).record()
    record = msgspec.structs.replace(whole, basis="")
    usage = '{"prompt_tokens":70,"completion_tokens":200,"completion_tokens_details":{"reasoning_tokens":150}}'

    def text(size: int) -> str:
        return " ".join(chance.choices(words, k=size // 4))[:size]

    number = 0
    while True:
        number += 1
        id = f"{chance.getrandbits(96):024x}"
        header = Response(at.origin, id=f"chatcmpl-{id}", finish="stop", content="text", blocks=2)
        answer = (
            Draft("request", whole if number % TURNS == 1 else record, id),
            Draft("response", header, id),
            block_draft(ThinkingBlock(text(2_000), source_field="reasoning_content"), id, 0),
            block_draft(Text(text(600)), id, 1),
            Draft("provider_usage", Usage(70, 200, 150, wire=usage), id),
            Draft("turn_ended", TurnEnded("completed")),
        )
        yield (
            Step(f"{chance.getrandbits(96):024x}", (Draft("user", Message(text(200))),), number),
            Step(f"{chance.getrandbits(96):024x}", answer, number),
        )


def fill(store: Store, sessions: int) -> int:
    """Make the sample; returns the bytes of its payloads."""
    made = steps()
    chance = random.Random(8)
    size = 0
    for number in range(sessions):
        id = f"{chance.getrandbits(96):024x}"
        store.create_session(id, f"session {number}", 0)
        head = Head()
        for _ in range(TURNS):
            for step in next(made):
                commits = seal(step, head)
                store.append(id, step.id, commits, head)
                head = head_of(commits)
                size += sum(len(commit.payload) for commit in commits)
    while store.search.fill():
        pass
    return size


def sizes(db: psycopg.Connection[tuple[Any, ...]]) -> list[tuple[str, str, str, int, int]]:
    """(name, kind, table, rows, bytes) of every table and index."""
    db.execute("VACUUM (ANALYZE)")
    return db.execute(_SIZES).fetchall()


def statements(server: Server, store: Store) -> Iterator[tuple[str, int, str]]:
    """(call, statements, what they are) of what a turn and its surroundings ask the server."""
    (info, other, *_) = store.list_sessions()
    head = info.head
    _, step = next(steps())

    def append() -> list[Commit]:
        nonlocal head, step
        commits = seal(msgspec.structs.replace(step, id=f"{step.id}.{head.seq}"), head)
        store.append(info.id, f"{step.id}.{head.seq}", commits, head)
        head = head_of(commits)
        return commits

    calls: list[tuple[str, Callable[[], object]]] = [
        ("find the session by its name", lambda: store.find_session(info.name)),
        ("first append of a process to a branch", append),
        ("append", append),
        ("look for what is new, nothing is", lambda: store.read(info.id, head.seq)),
        ("read a branch", lambda: store.read(info.id)),
        ("make a branch anywhere", lambda: store.refs.create(info.id, "b", info.head, MAIN)),
        ("find a commit of a session by its hash", lambda: store.find_commit(head.hash[:12], info.id)),
        ("search in a session", lambda: store.search.find(Query("reasoning", session=info.id))),
        ("search everywhere", lambda: store.search.find(Query("reasoning endpoint"))),
    ]
    store.read(other.id)
    for name, call in calls:
        before = len(_said(server))
        call()
        said = _said(server)[before:]
        asked = [sql for sql in said if not re.match(r"BEGIN|COMMIT", sql)]
        tables = sorted(set(re.findall(r"thinkback\.(\w+)", " ".join(asked))))
        yield name, len(asked), ", ".join(tables)


def _said(server: Server) -> list[str]:
    """The statements in the server's log."""
    log = (server.place / "log").read_text("utf-8", "replace")
    return [" ".join(said.split()) for said in re.findall(r"LOG:  execute [^:]*: (.*?)(?=\n\d{4}-|\Z)", log, re.DOTALL)]


def report() -> str:
    """The measured part of the page."""
    with Server() as server:
        url = server.make_database("scale")
        store = open_store(url)
        raw = fill(store, SESSIONS)
        with server.connect("scale") as db:
            rows = sizes(db)
            db.execute("ALTER SYSTEM SET log_statement = 'all'")
            db.execute("SELECT pg_reload_conf()")
            while db.execute("SHOW log_statement").fetchone() != ("all",):
                pass
        store.close()
        store = open_store(url)
        asked = list(statements(server, store))
        store.close()
    return "\n".join([*_sizes(rows, raw), "", *_statements(asked)])


def _sizes(rows: list[tuple[str, str, str, int, int]], raw: int) -> Iterator[str]:
    commits = next(live for name, _, _, live, _ in rows if name == "commits")
    total = sum(size for *_, size in rows)
    sessions = commits // (TURNS * 7)
    yield f"A sample of {sessions} sessions with {commits // sessions:,} commits each, whose payloads are on average"
    yield f"{raw / commits:.0f} bytes of JSON; the index has taken all of it in. Projected to {GOAL:,} sessions"
    yield f"on {SHARDS} shards:"
    yield ""
    yield "| table or index | rows a session | bytes a commit | GB in all | GB a shard |"
    yield "|---|---:|---:|---:|---:|"
    for name, kind, _, live, size in rows:
        scaled = size / sessions * GOAL / 1e9
        count = f"{live / sessions:,.0f}" if kind == "r" else ""
        shown = f"`{name}`" if kind == "r" else f"index `{name}`"
        yield f"| {shown} | {count} | {size / commits:.1f} | {scaled:,.1f} | {scaled / SHARDS:,.2f} |"
    scaled = total / sessions * GOAL / 1e9
    yield f"| all | | {total / commits:.1f} | {scaled:,.0f} | {scaled / SHARDS:,.1f} |"
    yield f"| the payloads as JSON | | {raw / commits:.1f} | {raw / sessions * GOAL / 1e9:,.0f} | |"


def _statements(asked: list[tuple[str, int, str]]) -> Iterator[str]:
    yield "What each call asks the server, `BEGIN` and `COMMIT` aside:"
    yield ""
    yield "| call | statements | tables |"
    yield "|---|---:|---|"
    for name, count, tables in asked:
        yield f"| {name} | {count} | {tables} |"


if __name__ == "__main__":
    head, _, _ = PAGE.read_text("utf-8").partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n{report()}\n", encoding="utf-8")
