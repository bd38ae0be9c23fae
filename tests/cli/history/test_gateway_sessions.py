"""Sessions that a gateway recorded are in its own log, which the commands for the user's log name."""

from __future__ import annotations

import shlex

import pytest

import thinkback
from tests.cli.conftest import Inside


@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize("name", ["log", "why"])
def test_a_session_of_the_gateway_is_named_with_its_log_and_the_command(
    inside: Inside, configured: bool, name: str
) -> None:
    """Where it is configured to be, or by itself; the command that is named finds it."""
    store = inside.place / ("its own" if configured else "data/thinkback/gateway")
    store.mkdir(parents=True)
    if configured:
        inside.config.mkdir(exist_ok=True)
        (inside.config / "gateway.toml").write_text(f'[store]\npath = "{store}"\n')
    inside.environment["XDG_DATA_HOME"] = str(inside.place / "data")
    with thinkback.open(store / "default.db", rules={}, settings={}) as log:
        log.session("k1/abc", endpoint="deepseek", model="deepseek-v4-pro", api_key="none")
        session = log.find("k1/abc").id
    with thinkback.open(inside.db, rules={}, settings={}) as log:
        log.session("mine", endpoint="deepseek", model="deepseek-v4-pro", api_key="none")

    missed = inside(name, session)
    assert 0 != missed.code
    assert f"thinkback {name} {session} --db {shlex.quote(str(store / 'default.db'))}`" in missed.err
    assert session[:8] not in inside("sessions").out
    assert "recorded it" not in inside(name, "nobody").err


@pytest.mark.parametrize("kept", ["env", "file", "plain"])
def test_a_session_in_a_gateways_database_is_named_without_its_password(
    inside: Inside, database: str, kept: str
) -> None:
    """With the tenant that has it, and the address by its reference: the command that is named finds it."""
    inside.config.mkdir(exist_ok=True)
    (inside.place / "url").write_text(database)
    (inside.place / "url").chmod(0o600)
    url = {"env": "env:GATEWAY_DATABASE", "file": f"file:{inside.place / 'url'}", "plain": database}[kept]
    (inside.config / "gateway.toml").write_text(f'[store]\nurl = "{url}"\n[secrets]\ncurrent = "env:GATEWAY_SECRET"\n')
    inside.environment["GATEWAY_DATABASE"] = database
    with thinkback.open(database, tenant="acme", rules={}, settings={}) as log:
        log.session("k1/abc", endpoint="deepseek", model="deepseek-v4-pro", api_key="none")
        session = log.find("k1/abc").id
    with thinkback.open(inside.db, rules={}, settings={}) as log:
        log.session("mine", endpoint="deepseek", model="deepseek-v4-pro", api_key="none")

    missed = inside("log", session)
    shown = {"env": '"$GATEWAY_DATABASE"', "file": f'"$(cat {inside.place / "url"})"', "plain": shlex.quote(database)}[
        kept
    ]
    assert 0 != missed.code
    assert f"THINKBACK_TENANT=acme thinkback log {session} --db {shown}" in missed.err
    assert (kept == "plain") == (database in missed.err)
    assert 0 == inside("log", session, "--db", database, THINKBACK_TENANT="acme").code


def test_an_id_that_no_gateway_here_has_is_said_to_be_elsewhere(inside: Inside) -> None:
    """A gateway that was started with a file of its own; a name of a person's is none of its ids."""
    inside.environment["XDG_DATA_HOME"] = str(inside.place / "data")
    with thinkback.open(inside.db, rules={}, settings={}) as log:
        log.session("mine", endpoint="deepseek", model="deepseek-v4-pro", api_key="none")
    assert "store.path (or store.url) of its --config file" in " ".join(inside("log", "0f" * 12).err.split())
    assert "--config" not in inside("log", "nobody").err
