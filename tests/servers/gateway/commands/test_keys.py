"""``thinkback gateway keys``: what is printed, what is kept, and what is refused with which words."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from thinkback.errors import ThinkbackError
from thinkback.servers.gateway.access.keys import digest_of
from thinkback.servers.gateway.commands.gateway import gateway_command
from thinkback.servers.gateway.commands.keys import keys_group
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.records import KeyRow, Spent, Use


class Keys:
    """The command on a store of its own, with an audit log."""

    def __init__(self, place: Path) -> None:
        self.store, self.audit = place / "store", place / "audit.jsonl"
        self.config = place / "gateway.toml"
        self.config.write_text(f'[store]\npath = "{self.store}"\n[logs]\naudit = "{self.audit}"\n')

    def run(self, *arguments: str) -> Result:
        """Run it to its end."""
        return CliRunner().invoke(keys_group, [*arguments, "--config", str(self.config)], standalone_mode=False)

    def out(self, *arguments: str) -> str:
        """What it printed; it must succeed."""
        result = self.run(*arguments)
        assert None is result.exception, result.exception
        return result.stdout

    def rows(self) -> list[KeyRow]:
        """What is kept."""
        office = open_gateway_state(self.store)
        try:
            return office.keys.list()
        finally:
            office.close()

    def acts(self) -> list[dict[str, Any]]:
        """What the audit log says."""
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """The command."""
    return Keys(tmp_path)


def test_the_secret_is_printed_once_and_kept_nowhere(keys: Keys) -> None:
    """Alone on standard output, so that a script can take it; store and audit log do not have it."""
    secret = keys.out("create", "laptop").removesuffix("\n")
    (row,) = keys.rows()
    assert (digest_of(secret), secret[-4:]) == (row.digest, row.ending)
    everything = b"".join(file.read_bytes() for file in [*keys.store.iterdir(), keys.audit])
    assert secret.encode() not in everything
    for command in (["list"], ["list", "--json"], ["show", "laptop"], ["show", "laptop", "--json"]):
        assert secret not in keys.out(*command)
    assert [("key.created", row.id, "laptop")] == [(act["act"], act["key"], act["name"]) for act in keys.acts()]


def test_a_key_is_made_as_it_was_asked_for(keys: Keys) -> None:
    """Every option arrives, and ``show`` says it."""
    before = time.time_ns() // 1000
    made = json.loads(
        keys.out(
            *("create", "team", "--tenant", "acme", "--model", "gpt-*", "--model", "fast", "--expires", "30d"),
            *("--tokens", "1000", "--reasoning-tokens", "500", "--per", "day", "--per-minute", "60", "--at-once", "4"),
            *("--recording", "metadata", "--set", "reasoning.effort=high", "--view", "--json"),
        )
    )
    shown = json.loads(keys.out("show", made["id"], "--json"))
    assert made.pop("secret").startswith("tb-")
    assert {
        **made,
        "tenant": "acme",
        "name": "team",
        "state": "valid",
        "models": ["gpt-*", "fast"],
        "recording": "metadata",
        "settings": {"reasoning.effort": "high"},
        "budget": {"period": "day", "tokens": 1000, "reasoning": 500},
        "limits": {"per_minute": 60, "at_once": 4},
        "view": True,
        "used": {},
    } == shown
    (row,) = keys.rows()
    assert row.expires is not None
    assert 30 * 86_400 - 1 < (row.expires - before) / 1_000_000 < 30 * 86_400 + 60


def test_what_was_used_is_shown(keys: Keys) -> None:
    """By period, the newest first."""
    keys.out("create", "laptop")
    (row,) = keys.rows()
    office = open_gateway_state(keys.store)
    office.spending.add([Spent(row.id, "total", Use(2, 30, 20, 10)), Spent(row.id, "2026-11", Use(1, 3, 2, 1))])
    office.close()
    shown = json.loads(keys.out("show", "laptop", "--json"))
    assert {
        "total": {"requests": 2, "input": 30, "output": 20, "reasoning": 10},
        "2026-11": {"requests": 1, "input": 3, "output": 2, "reasoning": 1},
    } == shown["used"]


def test_the_list_has_keys_that_are_valid(keys: Keys) -> None:
    """Those that are over only where they are asked for, those of others never with ``--tenant``."""
    assert "" == keys.out("list")
    for name, tenant in (("a", "one"), ("b", "two"), ("c", "two")):
        keys.out("create", name, "--tenant", tenant, "--expires", "2127-01-31")
    assert keys.out("revoke", "c").endswith(" is revoked\n")

    def names(*options: str) -> list[tuple[str, str]]:
        return [(row["name"], row["state"]) for row in json.loads(keys.out("list", "--json", *options))]

    assert [("a", "valid"), ("b", "valid")] == names()
    assert [("b", "valid")] == names("--tenant", "two")
    assert [("a", "valid"), ("b", "valid"), ("c", "revoked")] == names("--all")
    first, second = keys.out("list").splitlines()
    assert first.endswith("valid, 2127-01-31T00:00Z")
    assert "two" in second


def test_a_key_is_revoked_by_its_name_or_its_id(keys: Keys) -> None:
    """A name that was used again means the key that is valid; twice is an error; both are in the audit log."""
    keys.out("create", "laptop")
    keys.out("revoke", "laptop")
    keys.out("create", "laptop")
    keys.out("revoke", "laptop")
    first, second = keys.rows()
    assert None is not first.revoked
    assert None is not second.revoked
    assert [first.id, second.id] == [act["key"] for act in keys.acts() if act["act"] == "key.revoked"]
    result = keys.run("revoke", first.id)
    assert f"the key {first.id} was revoked before" == str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["create", "--tenant", "Acme"], "'Acme' cannot be the name of a tenant"),
        (["create", "--expires", "soon"], "--expires soon is not a time: write it as 12h, 30d"),
        (["create", "--expires", "2020-01-01"], "--expires 2020-01-01 is over already"),
        (["create", "--expires", "0h"], "--expires 0h is over already"),
        (["create", "--set", "reasoning.effort"], "a setting is KEY=VALUE"),
        (["create", "--set", "reasoning.effort=most"], "reasoning.effort cannot be 'most'"),
        (["create", "--set", "reasoning.efort=high"], "there is no setting 'reasoning.efort'"),
        (["create", "--per", "week"], "'week' is not one of 'day', 'month', 'total'"),
        (["create", "--per", "day"], "--per is the period of a budget: name one with --tokens or --reasoning-tokens"),
        (["create", "--tokens", "-1"], "-1 is not in the range"),
        (["create", "--model", ""], "--model needs a pattern such as"),
        (["show", "nobody"], "there is no key 'nobody'"),
        (["revoke", "twice"], "2 keys are called 'twice'"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_made(keys: Keys, arguments: list[str], what: str) -> None:
    """Each refusal says what was wrong; no key is left behind by one."""
    for _ in range(2):
        keys.out("create", "twice")
    result = keys.run(*arguments)
    assert isinstance(result.exception, click.ClickException | ThinkbackError)
    message = result.exception.message
    assert what in message
    assert 2 == len(keys.rows())


def test_the_store_can_be_named_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--store`` goes before the configuration, and a configuration that is not there is told."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    runner = CliRunner()
    made = runner.invoke(keys_group, ["create", "--store", str(tmp_path / "own")], standalone_mode=False)
    assert None is made.exception
    assert (tmp_path / "own" / "gateway.db").exists()
    absent = runner.invoke(keys_group, ["list", "--config", str(tmp_path / "absent.toml")], standalone_mode=False)
    assert "there is no configuration" in str(absent.exception)
    usual = runner.invoke(keys_group, ["list"], standalone_mode=False)
    assert None is usual.exception
    assert (tmp_path / "data" / "thinkback" / "gateway" / "gateway.db").exists()


def test_options_may_stand_before_keys(tmp_path: Path) -> None:
    """``thinkback gateway --store PLACE keys create`` means that place, and so does a reference to an address."""
    runner, place = CliRunner(), tmp_path / "own"
    made = runner.invoke(gateway_command, ["--store", str(place), "keys", "create"], standalone_mode=False)
    assert None is made.exception
    assert (place / "gateway.db").exists()
    absent = runner.invoke(gateway_command, ["--config", str(place / "no"), "keys", "list"], standalone_mode=False)
    assert "there is no configuration" in str(absent.exception)
    unset = runner.invoke(gateway_command, ["keys", "list", "--store", "env:UNSET"], standalone_mode=False)
    assert "variable UNSET, which is not set" in str(unset.exception)


def test_a_reference_to_what_is_no_address_makes_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``store.url`` is a database or nothing: a slip in the environment opens no log elsewhere, and is not repeated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLACE", "mysql://me:hidden@host/d")
    wrong = CliRunner().invoke(gateway_command, ["keys", "list", "--store", "env:PLACE"], standalone_mode=False)
    assert "env:PLACE is not a database address" in str(wrong.exception)
    assert "hidden" not in str(wrong.exception)
    assert [] == list(tmp_path.iterdir())
