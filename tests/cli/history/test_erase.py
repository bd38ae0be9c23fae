"""``delete``, ``purge`` and ``redact`` from the command line: said first, asked for, gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import thinkback
from tests.cli.command import Command
from tests.cli.conftest import Inside


def test_a_session_is_deleted(talked: Command) -> None:
    """After a yes; a dry run changes nothing."""
    assert "would be erased" in talked("delete", "talk", "--dry-run").out
    unasked = talked("delete", "talk")
    assert (2, True) == (unasked.code, "add --yes" in unasked.err)
    declined = talked("delete", "talk", "--json", stdin=b"n\n")
    assert (1, "nothing was changed") == (declined.code, declined.json["error"]["message"])
    assert 0 == talked("delete", "talk", "--yes").code
    assert ([], 0) == (talked("sessions", "--json").json, talked("fsck").code)
    assert 2 == talked("delete", "talk", "--yes").code


def test_words_are_taken_out(talked: Command) -> None:
    """From the file and from the index; the chain still verifies, and the request says why it cannot be rebuilt."""
    said = next(c for c in talked("log", "--json").json if c["kind"] == "user")
    assert 0 == talked("search", "Oslo").code
    done = talked("redact", said["hash"], "--pattern", "O.lo", "--reason", "a city", "--yes", "--json").json
    assert [said["hash"]] == [gone["hash"] for gone in done["commits"]]
    assert "Oslo" not in talked("show", said["hash"]).out
    assert said["hash"] not in [hit["hash"] for hit in talked("search", "Oslo", "--json").json]
    assert 0 == talked("fsck").code
    refused = talked("why", "talk")
    assert (2, True) == (refused.code, "erased" in refused.err)
    assert 1 == talked("redact", said["hash"], "--pattern", "(", "--yes").code


def test_everything_before_a_time_is_purged(talked: Command) -> None:
    """Nothing where nothing is that old; a time that is none, or no wish at all, is refused."""
    assert "0 commits" in talked("purge", "--before", "2001-01-01").out
    done = talked("purge", "--before", "2101-01-01", "--yes")
    assert (0, True) == (done.code, "the names of sessions stay" in done.err)
    assert "Oslo" not in talked("log", "--json").out
    assert 0 == talked("fsck").code
    assert 2 == talked("purge", "--before", "soon").code
    done = talked("purge")
    assert (1, True) == (done.code, "--tenant TEXT or --key ID" in done.err)


def test_a_purge_that_matches_nobody_fails(talked: Command) -> None:
    """It says so, also where it only looks: whoever asked for it would think that all is gone."""
    for options in ((), ("--dry-run",), ("--yes", "--json")):
        done = talked("purge", "--end-user", "nobody", *options)
        assert (2, True) == (done.code, "no turn for the end user 'nobody'" in done.err)


def test_turns_of_a_model_and_sessions_of_a_program_are_purged(talked: Command) -> None:
    """The first leaves the session, the second nothing; a name that nobody has fails."""
    done = talked("purge", "--model", "no-such", "--yes")
    assert (2, True) == (done.code, "nothing of the model 'no-such' is in this log" in done.err)
    assert 2 == talked("purge", "--program", "thinkback", "--key", "k", "--yes").code
    done = talked("purge", "--program", "thinkback", "--before", "2101-01-01", "--yes")
    assert (0, True) == (done.code, "the names of sessions stay" in done.err)
    assert "Oslo" not in talked("log", "--json").out
    done = talked("purge", "--program", "thinkback", "--yes")
    assert (0, False) == (done.code, "the names of sessions stay" in done.err)
    assert [] == talked("sessions", "--json").json


def test_what_is_left_of_an_erased_commit_is_shown_as_it_is(talked: Command, inside: Inside, tmp_path: Path) -> None:
    """Not as text that is quoted inside of text; what an export left out is not called erased."""
    file = str(tmp_path / "shared.jsonl")
    other: dict[str, Any] = {"THINKBACK_DB": str(tmp_path / "other.db")}
    assert (0, 0) == (inside("export", file).code, inside("import", file, **other).code)
    rows = inside("log", "talk", "--json", **other).json
    request = next(row["hash"] for row in rows if row["kind"] == "request")
    shown, told = (inside("show", request, *more, **other) for more in ((), ("--json",)))

    assert "(left out of the export)\nwhat is left of it: {" in shown.out
    assert '\\"' not in shown.out
    assert isinstance(told.json["payload"]["remainder"], dict)
    listed = inside("log", "talk", **other).out
    assert (True, False) == ("left out of the export" in listed, "erased" in listed)


def test_commands_on_a_gateways_log_are_in_its_audit_log(command: Command) -> None:
    """Who reads and erases, by which command; a log elsewhere is nobody's business."""
    store, audit = command.place / "store", command.place / "audit.jsonl"
    store.mkdir()
    command.config.mkdir()
    text = f'[store]\npath = "{store}"\n[logs]\naudit = "{audit}"\n'
    (command.config / "gateway.toml").write_text(text)
    log = str(store / "acme.db")
    for place in (log, str(command.db)):
        with thinkback.open(place, rules={}, settings={}) as opened:
            opened.session("key-1/a").commit("Hello.")
    assert 0 == command("log", "key-1/a", "--db", log, SUDO_USER="ada").code
    assert 0 == command("log", "key-1/a").code
    done = command("purge", "--key", "key-1", "--yes", "--db", log)
    again = command("purge", "--key", "key-1", "--before", "2026-01-01", "--yes", "--db", log)
    acts = [json.loads(line) for line in audit.read_text().splitlines()]

    assert (0, True) == (done.code, "1 commit of key-1/a erased" in done.out)
    assert "--key stands alone" in again.err
    assert [("log.opened", "log", "acme"), ("log.opened", "purge", "acme")] == [
        (act["act"], act["command"], act["tenant"]) for act in acts
    ]
    assert acts[0]["by"].startswith("ada")
    assert ("key-1/a", "key-1") == (acts[0]["session"], acts[1]["key"])
