"""What a gateway asks its PostgreSQL while it serves: every statement says on which shard its tables are."""

from __future__ import annotations

import re
import time
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.docs.test_examples import ROOT
from tests.servers.gateway.harness.engines import TOOL
from tests.servers.gateway.harness.running import Running, running
from tests.servers.gateway.harness.statements import asked, astray, reached
from tests.stores.postgres_server import Server
from thinkback.servers.gateway.access.keys import Terms, new_key
from thinkback.servers.gateway.grant import Budget, Limits
from thinkback.stores import open_store
from thinkback.stores.gateway_state import open_gateway_state
from thinkback_referee import Referee

CHAT = "/v1/chat/completions"
MODEL = "deepseek/deepseek-v4-pro"
# Read before a tenant is known, or one of the keys of a single row; a copy of them is everywhere.
EVERYWHERE = {"thinkback.migrations", "thinkback_gateway.migrations", "thinkback_gateway.keys"}
# A key is one tenant's.
WITHOUT_TENANT = {"thinkback_gateway.spending"}


def shards() -> dict[str, tuple[str, ...]]:
    """The columns that docs/scale.md distributes each table by, with the tenant."""
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    (sql,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    (many,) = re.findall(r"'thinkback\.' \|\| name, '(\w+)'", sql)
    (names,) = re.findall(r"ARRAY\[(.*?)\]", sql, re.DOTALL)
    found = {f"thinkback.{name}": many for name in re.findall(r"'(\w+)'", names)}
    found |= dict(re.findall(r"create_distributed_table\('([\w.]+)', '(\w+)'", sql))
    return {
        table: tuple({column} if table in WITHOUT_TENANT else {"tenant", column}) for table, column in found.items()
    }


def test_a_statement_that_leaves_a_shard_open_is_found() -> None:
    """In a join, under another name, in a query inside another, and where rows are put in."""
    by = {"thinkback.a": ("tenant", "family"), "thinkback.b": ("tenant", "key")}
    fine = (
        "SELECT 1 FROM thinkback.a WHERE tenant = $1 AND family = $2",
        "UPDATE thinkback.a SET x = $1 WHERE tenant = $1 AND family IN ($2)",
        "INSERT INTO thinkback.b (tenant, key, x) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        "SELECT 1 FROM thinkback.a AS a JOIN thinkback.b AS b ON b.tenant = a.tenant AND b.key = $1 "
        "WHERE a.tenant = $2 AND $3 = a.family",
        "WITH m AS (DELETE FROM thinkback.b WHERE tenant = $1 AND key = $2 RETURNING 1) "
        "INSERT INTO thinkback.a (tenant, family) SELECT $1, $2 FROM m",
    )
    astray_ones = (
        ("SELECT 1 FROM thinkback.a WHERE tenant = $1", ["thinkback.a"]),
        ("UPDATE thinkback.a SET family = $1 WHERE tenant = $2", ["thinkback.a"]),
        ("INSERT INTO thinkback.b (tenant, x) VALUES ($1, $2)", ["thinkback.b"]),
        (
            "SELECT 1 FROM thinkback.a WHERE tenant = $1 AND family = (SELECT x FROM thinkback.b)",
            ["thinkback.b", "thinkback.a"],
        ),
        (
            "SELECT 1 FROM thinkback.a AS a JOIN thinkback.b AS b ON b.tenant = a.tenant AND b.key = $1 "
            "WHERE a.tenant = $2",
            ["thinkback.a"],
        ),
    )

    assert [[]] * len(fine) == [astray(sql, by) for sql in fine]
    assert [tables for _, tables in astray_ones] == [astray(sql, by) for sql, _ in astray_ones]


def statements_of(database: str) -> None:
    """From now on the server logs what new connections to the database ask."""
    with psycopg.connect(database, autocommit=True) as db:
        (name,) = db.execute("SELECT quote_ident(current_database())").fetchone() or ("",)
        db.execute(f"ALTER DATABASE {name} SET log_statement = 'all'")


def gateway(database: str, referee: Referee) -> AbstractContextManager[Running]:
    """A gateway on that database."""
    return running(
        "thinkback.servers.gateway.running.wiring:open_behind",
        store={"url": database},
        secrets={"current": "env:STATEMENTS_SECRET"},
        upstreams={"deepseek": {"endpoint": "deepseek", "base_url": referee.base_url("deepseek")}},
    )


def talk(house: Running, secret: str, name: str, **headers: str) -> list[str]:
    """A tool loop, one more question, and the first answer again with another; what became of earlier reasoning."""
    messages: list[Any] = [{"role": "user", "content": f"What is the weather in {name}?"}]
    body = {"model": MODEL, "messages": messages, "tools": [TOOL], "user": name}
    became = []
    for number in range(4):
        marked = {key: f"{value}-{number}" for key, value in headers.items()}
        reply = house.ask(CHAT, body, key=secret, headers=marked)
        assert 200 == reply.status, reply.body
        became.append(reply.headers["thinkback-reattach"])
        said = reply.json["choices"][0]["message"]
        calls = said.get("tool_calls") or []
        messages.append({"role": "assistant", "content": said["content"], **({"tool_calls": calls} if calls else {})})
        messages.extend({"role": "tool", "tool_call_id": call["id"], "content": "rain"} for call in calls)
        if not calls:
            del messages[4:]
            messages.append({"role": "user", "content": f"And on day {number}?"})
    return became


def limits_of(statements: list[str]) -> list[str]:
    """The statements about requests per minute."""
    return [sql for sql in statements if re.search(r"\b60000000\b", sql)]


def test_a_limit_per_minute_holds_over_gateways_and_costs_a_statement(
    postgres: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two gateways, asked in turn; one statement for a request, one more for the first refusal of each."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setenv("STATEMENTS_SECRET", "s" * 40)
    key, row = new_key(Terms(limits=Limits(per_minute=3)), time.time_ns() // 1000)
    state = open_gateway_state(database)
    state.keys.create(row)
    state.close()
    statements_of(database)
    log = postgres.place / "log"
    with Referee() as referee, gateway(database, referee) as one, gateway(database, referee) as other:
        since = log.stat().st_size
        body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}]}
        statuses = [house.ask(CHAT, body, key=key).status for house in (one, other) * 4]
        asked_for = [sql.split()[0] for sql in limits_of(asked(log, since))]

    assert [200] * 3 + [429] * 5 == statuses
    assert {"INSERT": 5, "SELECT": 2} == Counter(asked_for)


def test_every_statement_of_a_request_names_tenant_and_shard(
    postgres: Server, database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the server's own log, of keys with a budget, with answers that are replayed and with sealed carriers."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setenv("STATEMENTS_SECRET", "s" * 40)
    now = time.time_ns() // 1000
    full, full_row = new_key(Terms(budget=Budget("day", tokens=10**9)), now, tenant="acme", name="full")
    some, some_row = new_key(Terms(recording="metadata"), now, tenant="acme", name="some")
    state = open_gateway_state(database)
    for row in (full_row, some_row):
        state.keys.create(row)
    state.close()
    open_store(database, tenant="acme").close()
    statements_of(database)
    log = postgres.place / "log"
    with Referee() as referee, gateway(database, referee) as house:
        since = log.stat().st_size
        became = talk(house, full, "Oslo", **{"Idempotency-Key": "once"}), talk(house, some, "Bergen")
    statements = asked(log, since)
    tables = {each.table for sql in statements for each in reached(sql)}
    by = shards()

    assert (["not-needed", "complete", "complete", "complete"],) * 2 == became
    assert [] == limits_of(statements)
    assert {f"thinkback_gateway.{name}" for name in ("replays", "carriers", "spending")} <= tables
    assert {f"thinkback.{name}" for name in ("sightings", "commits", "branches", "steps", "keys", "bases")} <= tables
    assert tables - EVERYWHERE <= set(by)
    assert [] == [(astray(sql, by), sql) for sql in dict.fromkeys(statements) if astray(sql, by)]
