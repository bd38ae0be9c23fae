"""What an operator does: ask ``--check`` what is there, copy a gateway that serves, go on from the copy."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Inside
from tests.docs.test_gateway_page import trial
from tests.servers.gateway.harness.engines import TOOL
from tests.stores.postgres_server import Server
from thinkback.servers.gateway.commands import inspecting
from thinkback.stores import formats, open_store
from thinkback.stores.gateway_state.sqlite import NEWEST as GATEWAY
from thinkback.stores.migrations import APPLICATION_ID, FORMAT
from thinkback_referee import Referee

CHAT = "/v1/chat/completions"
QUESTION = {"role": "user", "content": "What is the weather in Oslo? SECRET-OF-A-CLIENT"}


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    """``thinkback`` in this process."""
    return Inside(tmp_path, monkeypatch, capsys)


@pytest.fixture
def store(inside: Inside) -> Path:
    """The directory of a gateway with a key and an empty log."""
    place = inside.place / "store"
    assert 0 == inside("gateway", "--store", str(place), "keys", "create", "laptop").code
    open_store(place / "default.db").close()
    return place


def _state(place: Path) -> Iterator[tuple[str, int, int]]:
    for each in sorted(place.rglob("*")):
        yield str(each), each.stat().st_mode, each.stat().st_mtime_ns


def test_a_check_of_a_store_in_order_says_its_formats_and_changes_nothing(inside: Inside, store: Path) -> None:
    """Exit code 0; no file is made or touched."""
    before = list(_state(store))
    done = inside("gateway", "--check", "--store", str(store))

    assert (0, "") == (done.code, done.err)
    assert f"{store} has gateway.db at format {len(GATEWAY.names)}, 1 log at format {FORMAT}\n" in done.out
    assert before == list(_state(store))


def test_a_check_reports_what_needs_a_person(inside: Inside, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that others may read, a spool that nobody stores, steps put aside, a full disk, a clock: exit code 1."""
    (store / "gateway.db").chmod(0o644)
    (spool := store / "spool" / "aside").mkdir(parents=True)
    (spool / "1").write_bytes(b"x")
    (spool.parent / "1.spool").write_bytes(b"1234")
    inside.config.mkdir()
    (inside.config / "keys.toml").write_text("[keys]\n")
    (inside.config / "keys.toml").chmod(0o640)
    later = os.stat(store).st_mtime + 3600
    os.utime(store / "default.db", (later, later))
    file = inside.place / "gateway.toml"
    file.write_text('[logs]\naudit = "/no/where/audit.log"\n')
    monkeypatch.setattr(inspecting, "LEAST_FREE", 1 << 62)
    done = inside("gateway", "--check", "--store", str(store), "--config", str(file))

    assert (1, True) == (done.code, "something needs attention" in done.out)
    for said in (
        f"others may use {store / 'gateway.db'} (mode 0644); chmod 600",
        f"4 bytes wait in {store / 'spool'}, and nothing stores them",
        f"steps that could not be stored are in {spool} (1)",
        "keys.toml holds keys, and others may read it (mode 0640)",
        "this machine's clock is behind",
        "logs.audit: /no/where is not a directory",
        f"GB are free on the disk of {store}",
    ):
        assert said in done.err
    assert 7 == done.err.count("look at this: ")


def test_a_place_that_strangers_may_use_needs_a_person(inside: Inside) -> None:
    """Exit code 1, and the key that ends it."""
    file = inside.place / "gateway.toml"
    file.write_text('[server]\nhost = "0.0.0.0"\n[upstreams.c]\nendpoint = "anthropic"\ncredentials = "client"\n')
    done = inside("gateway", "--check", "--store", str(inside.place / "none"), "--config", str(file))

    assert 1 == done.code
    assert "look at this: upstreams.c: other machines reach this gateway" in done.err
    assert "upstreams.c.organisations lists who may" in done.err


def test_a_check_beside_the_gateway_that_runs_says_that_the_port_is_in_use(inside: Inside, store: Path) -> None:
    """It is no fault: a check of a new version runs beside the old one. Other machines may come, as there is a key."""
    before = list(_state(store))
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        done = inside("gateway", "--check", "--store", str(store), "--port", str(port))
    public = inside("gateway", "--check", "--store", str(store), "--host", "0.0.0.0", "--port", "0")

    assert (0, 0) == (done.code, public.code)
    assert f"127.0.0.1:{port} is in use: by the gateway, if it runs" in done.out
    assert before == list(_state(store))


def test_an_audit_log_that_is_a_directory_needs_a_person(inside: Inside, store: Path) -> None:
    """The gateway would serve without it."""
    file = inside.place / "gateway.toml"
    file.write_text(f'[logs]\naudit = "{store}"\n')
    done = inside("gateway", "--check", "--store", str(store), "--config", str(file))

    assert 1 == done.code
    assert f"logs.audit: {store} is not a file that this user may write to" in done.err


@pytest.mark.parametrize("wrong", ["another program's", "newer", "no file", "secret", "address", "nobody", "revoked"])
def test_a_check_fails_where_the_gateway_would_not_start(inside: Inside, store: Path, wrong: str) -> None:
    """A database that it cannot use, a place where it cannot write, a secret that others may read, an address that is
    not this machine's, nobody who may come from elsewhere: exit code 2.
    """
    said = {"another program's": "of another program", "newer": "has format 99", "secret": "read by other users"}
    said |= {"address": "cannot listen on 192.0.2.1", "nobody": "it has no keys", "revoked": "it has no keys"}
    host = {"address": "192.0.2.1", "nobody": "0.0.0.0", "revoked": "0.0.0.0"}.get(wrong, "127.0.0.1")
    if wrong == "nobody":
        (store / "gateway.db").unlink()
    elif wrong == "revoked":
        assert 0 == inside("gateway", "--store", str(store), "keys", "revoke", "laptop").code
    elif wrong == "secret":
        (store / "secret").write_text("s" * 40)
        (store / "secret").chmod(0o644)
    elif wrong == "no file":
        shutil.rmtree(store)
        store.write_text("a file")
    else:
        (store / "other.db").unlink(missing_ok=True)
        with closing(sqlite3.connect(store / "other.db")) as db, db:
            db.execute("CREATE TABLE t (x)")
            mark = APPLICATION_ID if wrong == "newer" else 5
            db.execute(f"PRAGMA application_id = {mark}")
            db.execute("PRAGMA user_version = 99")
    done = inside("gateway", "--check", "--store", str(store), "--host", host)

    assert 2 == done.code
    assert "it would not start: " in done.err
    assert said.get(wrong, "is not a directory") in done.err


def test_a_check_asks_postgres(
    inside: Inside, postgres: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it answers, its formats before and after the first start, its clock; the password is not shown."""
    file = inside.place / "gateway.toml"
    file.write_text('[store]\nurl = "env:D"\n[secrets]\ncurrent = "env:S"\n')

    def check(url: str) -> tuple[int, str]:
        done = inside("gateway", "--check", "--config", str(file), D=url, S="s" * 40)
        return done.code, done.out + done.err

    fresh = check(database)
    monkeypatch.setenv("D", database)
    monkeypatch.setenv("S", "s" * 40)
    assert 0 == inside("gateway", "--config", str(file), "keys", "create", "laptop").code
    used = check(database)
    gone = check("postgresql://me:pass-word@127.0.0.1:1/none")
    file.write_text(f'[server]\nhost = "0.0.0.0"\nport = 0\n{file.read_text()}')
    assert 0 == check(database)[0]
    assert 0 == inside("gateway", "--config", str(file), "keys", "revoke", "laptop").code
    public = check(database)
    monkeypatch.setattr(inspecting, "LARGEST_SKEW", -1.0)
    skewed = check(database)

    assert (0, 0, 2, 2, 2) == (fresh[0], used[0], gone[0], public[0], skewed[0])
    assert "it has no keys" in public[1]
    assert "log not made yet, keys and usage not made yet" in fresh[1]
    assert "keys and usage at format 1" in used[1]
    assert "cannot be reached" in gone[1]
    assert "pass-word" not in gone[1]
    assert "clock: the database's is 0 s" in skewed[1]


def test_a_gateway_goes_on_from_a_copy_that_was_made_while_it_served(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a tool loop: the restored gateway recognises the call, and gives its reasoning back."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-test-0123456789abcdef")
    place, copy = inside.place / "gateway", inside.place / "copy"
    messages: list[object] = [QUESTION]
    with Referee() as referee:
        with trial(referee, place) as house:
            asked: dict[str, object] = {"model": "deepseek/deepseek-v4-pro", "messages": messages, "tools": [TOOL]}
            call = house.ask(CHAT, asked, key=None).json["choices"][0]["message"]["tool_calls"][0]
            done = inside("gateway", "--store", str(place), "backup", str(copy))
            again = inside("gateway", "backup", "--store", str(place), str(copy))
            house.ask(CHAT, {**asked, "messages": [{"role": "user", "content": "later"}]}, key=None)
        shutil.rmtree(place)
        copy.rename(place)
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "rain"},
        ]
        with trial(referee, place) as house:
            reply = house.ask(CHAT, asked, key=None)

    assert (0, 2, True) == (done.code, again.code, "is not empty" in again.err), done.err
    assert (200, "complete") == (reply.status, reply.headers["thinkback-reattach"])
    assert {0o600} == {each.stat().st_mode & 0o777 for each in place.iterdir() if each.is_file()}
    checked = inside("gateway", "--check", "--store", str(place))
    assert (0, False) == (checked.code, "SECRET" in checked.out + checked.err)


def test_a_step_that_leaves_the_spool_meanwhile_is_in_the_copy(
    inside: Inside, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spool is copied before the logs: what is stored in between is in both, and not in neither."""
    (store / "spool").mkdir()
    (waiting := store / "spool" / "1.spool").write_bytes(b"a step")
    copies = formats.copy_file

    def drained(path: str, target: str) -> None:
        waiting.unlink(missing_ok=True)
        copies(path, target)

    monkeypatch.setattr(formats, "copy_file", drained)
    done = inside("gateway", "backup", "--store", str(store), str(inside.place / "copy"))

    assert (0, b"a step") == (done.code, (inside.place / "copy" / "spool" / "1.spool").read_bytes())


@pytest.mark.parametrize(("place", "said"), [("postgresql://h/d", "pg_dump"), ("nowhere", "no gateway's directory")])
def test_what_cannot_be_copied_is_refused(inside: Inside, place: str, said: str) -> None:
    """A database on a server, and a directory that is none of a gateway; nothing is made."""
    done = inside("gateway", "backup", "--store", place, str(inside.place / "copy"))

    assert (True, True) == (done.code > 0, said in done.err)
    assert not (inside.place / "copy").exists()
