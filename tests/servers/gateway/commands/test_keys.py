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
from thinkback.servers.gateway.access.keys import digest_of, grant_of
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
    assert first.count("valid, 2127-01-31T00:00Z")
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


def test_key_is_changed_where_it_is_said(keys: Keys) -> None:
    """What is not named stays, what is cleared is as if it was never said; the secret stays too."""
    keys.out("create", "ci", "--tokens", "100", "--per", "day", "--at-once", "4", "--set", "reasoning.effort=high")
    (before,) = keys.rows()
    facts = json.loads(keys.out("update", "ci", "--tokens", "900", "--team", "red", "--expires", "30d", "--json"))
    assert {"period": "day", "tokens": 900} == facts["budget"]
    assert ({"at_once": 4}, {"reasoning.effort": "high"}) == (facts["limits"], facts["settings"])
    assert ("red", True) == (facts["team"], "expires" in facts)
    cleared = [part for name in ("tokens", "at-once", "set", "expires", "team") for part in ("--clear", name)]
    again = json.loads(keys.out("update", "ci", "--reasoning-tokens", "7", "--view", *cleared, "--json"))
    (after,) = keys.rows()

    assert {"period": "day", "reasoning": 7} == again["budget"]
    assert not any(again.get(name) for name in ("limits", "settings", "expires", "team"))
    assert again["view"]
    assert (before.id, before.digest) == (after.id, after.digest)
    assert ["key.created", "key.updated", "key.updated"] == [act["act"] for act in keys.acts()]
    assert isinstance(keys.run("update", "ci", "--per", "month").exception, click.UsageError)


@pytest.mark.parametrize("overlap", ["", "7d"])
def test_key_that_is_rotated_is_the_same_to_conversations(keys: Keys, overlap: str) -> None:
    """The new secret has the grant of the first key, however often; the old one opens for the overlap alone."""
    keys.out("create", "laptop", "--tokens", "100")
    secret = ""
    for _ in range(2):
        newest = keys.rows()[-1]
        secret = keys.out("rotate", newest.id, *(("--overlap", overlap) if overlap else ())).strip()
    first, second, third = keys.rows()

    assert digest_of(secret) == third.digest
    assert grant_of(first).key == grant_of(second).key == grant_of(third).key == first.id
    assert {grant_of(row).budget for row in (first, second, third)} == {grant_of(first).budget}
    assert [bool(overlap)] * 2 == [row.revoked is None and row.expires is not None for row in (first, second)]
    assert (None, None) == (third.revoked, third.expires)
    assert ["key.created", "key.rotated", "key.rotated"] == [act["act"] for act in keys.acts()]


def test_list_and_usage_show_what_keys_may_do_and_did(keys: Keys) -> None:
    """Limits, last use and sums by key, team and tenant; a key that replaced another has its usage."""
    for name, team, tenant in (("a", "red", "one"), ("b", "red", "two"), ("c", "blue", "two")):
        keys.out("create", name, "--team", team, "--tenant", tenant, "--tokens", "100", "--per", "month")
    office = open_gateway_state(keys.store)
    for number, row in enumerate(keys.rows(), 1):
        use = Use(1, 10 * number, 5, 2)
        office.spending.add([Spent(row.id, period, use) for period in ("2026-11-21", "2026-11", "total")])
    office.close()
    keys.out("rotate", "a")

    listed = {row["name"]: row for row in json.loads(keys.out("list", "--json"))}
    assert ("2026-11-21", 10) == (listed["a"]["last_use"], listed["a"]["used"]["input"])
    assert "100 tokens/month" in keys.out("list")
    assert "last 2026-11-21" in keys.out("list")
    by = {
        what: {
            row[what]: row["input"]
            for row in json.loads(keys.out("usage", "--by", what, "--period", "2026-11", "--json"))
        }
        for what in ("team", "tenant")
    }
    assert {"team": {"red": 30, "blue": 30}, "tenant": {"one": 10, "two": 50}} == by
    assert "1 requests" in keys.out("usage", "--period", "total")
    assert "nothing was used in 2020-01" in keys.run("usage", "--period", "2020-01").stderr


def test_audit_names_who_is_behind_sudo(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root is nobody."""
    monkeypatch.setenv("SUDO_USER", "ada")
    monkeypatch.setenv("LOGNAME", "root")
    keys.out("create", "laptop")

    assert "ada as root" == keys.acts()[0]["by"]


def test_key_that_was_rotated_is_revoked_by_its_name_with_all_its_secrets(keys: Keys) -> None:
    """By an id only that secret; the name stands for the newest."""
    keys.out("create", "laptop")
    for _ in range(3):
        keys.out("rotate", "laptop", "--overlap", "7d")
    ids = [row.id for row in keys.rows()]
    assert ids[-1] == json.loads(keys.out("show", "laptop", "--json"))["id"]
    keys.out("revoke", ids[1])
    assert [False, True, False, False] == [row.revoked is not None for row in keys.rows()]
    keys.out("revoke", "laptop")

    assert all(row.revoked is not None for row in keys.rows())
