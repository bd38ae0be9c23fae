"""The command line on a log in PostgreSQL."""

from __future__ import annotations

import thinkback
from tests.cli.command import KEY, Command
from tests.stores.postgres_server import PASSWORD, Server
from thinkback_referee import Referee


def test_a_log_at_an_address_is_like_one_in_a_file(command: Command, referee: Referee, database: str) -> None:
    """A turn is stored and read there; the tenant is named by the environment, another one has nothing."""
    command.environment |= {"THINKBACK_DB": database, "THINKBACK_TENANT": "research"}
    with thinkback.open(database, tenant="research", rules={}, settings={}) as store:
        address = referee.base_url("deepseek")
        session = store.session("talk", endpoint="deepseek", model="deepseek-v4-pro", base_url=address, api_key=KEY)
        session.chat("Why is the sky blue?")
        commits = [commit.hash for commit in store.commits("talk")]
    assert ["talk"] == [session["name"] for session in command("sessions", "--json").json]
    assert commits == [commit["hash"] for commit in command("log", "talk", "--json").json]
    assert 0 == command("fsck").code
    assert [] == command("sessions", "--json", "--db", database, THINKBACK_TENANT="").json


def test_session_of_another_tenant_is_not_shown_but_how_to_ask_for_it(command: Command, database: str) -> None:
    """Who has the id of a session from the gateway need not know its tenant by heart."""
    for tenant in ("acme", "research"):
        with thinkback.open(database, tenant=tenant, rules={}, settings={}) as store:
            store.session(f"talk of {tenant}", endpoint="deepseek", model="deepseek-v4-pro", api_key=KEY)
    lost = command("why", "talk of acme", "--db", database)
    within = command("why", "nowhere", "--db", database, THINKBACK_TENANT="acme")

    assert 0 != lost.code
    assert "there is no session 'talk of acme'" in lost.err
    assert "this is the log of the tenant default" in lost.err
    assert "acme, research: name one, as THINKBACK_TENANT=acme" in " ".join(lost.err.split())
    assert "the tenant acme; the database has those of research" in " ".join(within.err.split())


def test_an_address_is_printed_without_its_password(command: Command, postgres: Server) -> None:
    """Neither where there is nothing nor where nobody is let in."""
    url = postgres.url(user="guarded", password=PASSWORD)
    shown = [command("sessions", THINKBACK_DB=url, THINKBACK_TENANT="nobody")]
    shown.append(command("log", THINKBACK_DB=url.replace("guarded", "stranger")))
    assert [0, 7] == [outcome.code for outcome in shown]
    assert "No sessions in the log" in shown[0].out
    assert "does not let this user in" in shown[1].err
    for outcome in shown:
        assert "s3cr3t" not in outcome.out + outcome.err
