"""``export`` and ``import`` from the command line: nothing leaves by accident, everything comes back."""

from __future__ import annotations

import json
import os
import pty
import subprocess

import pytest

import thinkback
from tests.cli.command import Command
from tests.cli.conftest import ENCRYPTED, SIGNATURE, Inside
from tests.formats.samples import SAMPLES
from thinkback_referee import Referee


def test_a_complete_copy_comes_back(talked: Command) -> None:
    """The same commits, in another log; a second import adds nothing."""
    file, other = talked.place / "talk.jsonl", talked.place / "other.db"
    assert 0 == talked("export", str(file), "--complete").code
    assert "new" in talked("import", str(file), "--db", str(other)).out
    with thinkback.open(talked.db) as one, thinkback.open(other) as two:
        assert one.commits("talk") == two.commits("talk")
    (again,) = talked("import", str(file), "--db", str(other), "--json").json
    assert (0, False) == (again["commits"], again["made"])


def test_what_is_shared_says_no_more_than_it_must(opaque: Command) -> None:
    """Reasoning is asked for, opaque values too; standard output is JSON Lines."""
    plain = opaque("export", "-", "-s", "opaque")
    assert all(word not in plain.out for word in (SIGNATURE, ENCRYPTED, "A thought."))
    assert all(json.loads(line) for line in plain.out.splitlines())
    opaque_too = "opaque values and accounts (--complete includes everything, for a copy of your own)\n"
    assert plain.err.endswith(f"left out: 1 block of reasoning (--with-reasoning includes it); {opaque_too}")
    assert 1 == plain.err.count("left out")
    thought = opaque("export", "-", "--with-reasoning")
    assert ("A thought." in thought.out, SIGNATURE in thought.out) == (True, False)
    assert thought.err.endswith(f"left out: {opaque_too}")
    assert SIGNATURE in opaque("export", "-", "--with-reasoning", "--with-carriers").out
    page = opaque("export", str(opaque.place / "x.md"))
    assert (0, f"1 session, 1 turn (7 commits) to {opaque.place / 'x.md'}\n") == (page.code, page.out)
    assert page.err.endswith("left out: 1 block of reasoning (--with-reasoning includes it)\n")
    told = opaque("export", str(opaque.place / "x.md"), "--json")
    assert (2, "file-taken") == (told.code, told.json["error"]["kind"])
    assert 0 == opaque("export", str(opaque.place / "x.md"), "--force").code
    assert "An answer." in (opaque.place / "x.md").read_text()
    assert "<details" in _page(opaque)


@pytest.mark.parametrize("ending", ["md", "html"])
def test_pages_name_the_branches_that_they_leave_out(talked: Command, inside: Inside, ending: str) -> None:
    """On the page and on standard error, with the option that writes another one; JSON Lines have all."""
    question = inside("log", "--json").json[0]["hash"]
    inside("branch", "aside", question, "--session", "talk", "--switch")
    place = talked.place / f"talk.{ending}"
    left = inside("export", str(place), "--session", "talk")
    assert "1 other branch (--branch NAME writes another one, a .jsonl file has all)" in left.err.replace("\n", " ")
    assert "The branch main is not in this file: thinkback export --branch NAME" in place.read_text()
    whole = talked.place / f"whole.{ending}"
    done = inside("export", str(whole), "--session", "talk", "--branch", "main")
    assert "other branch" not in done.err  # aside ends within main
    assert len(whole.read_text()) > len(place.read_text())
    assert "other branch" not in inside("export", str(talked.place / "all.jsonl"), "--session", "talk").err
    assert 2 == inside("export", str(talked.place / "no.jsonl"), "--session", "talk", "--branch", "main").code


@pytest.mark.parametrize(("typed", "goes"), [(b"y\n", True), (b"n\n", False)])
def test_a_person_is_asked_whether_reasoning_goes_along(opaque: Command, typed: bytes, goes: bool) -> None:
    """On a terminal; opaque values do not go along either way."""
    file = opaque.place / "x.md"
    master, slave = pty.openpty()
    os.write(master, typed)
    environment = opaque.environment
    line = opaque.line("export", str(file), "-s", "opaque")
    assert 0 == subprocess.run(line, stdin=slave, stdout=slave, stderr=slave, env=environment, check=False).returncode
    said = os.read(master, 65536).decode()
    os.close(slave)
    os.close(master)
    assert "1 reasoning block left out. Write them too? [y/N]" in said
    text = file.read_text()
    assert (goes, False) == ("A thought." in text, SIGNATURE in text)


def _page(command: Command) -> str:
    file = command.place / "x.html"
    assert 0 == command("export", str(file), "--with-reasoning").code
    return file.read_text()


def test_bad_files_are_told(talked: Command) -> None:
    """A changed line by its number; no such file, no such session, no such format."""
    file = talked.place / "talk.jsonl"
    assert 0 == talked("export", str(file), "--complete").code
    lines = file.read_text().splitlines()
    lines[2] = lines[2].replace("Oslo", "Rome").replace("2", "3", 1)
    file.write_text("\n".join(lines))
    refused = talked("import", str(file), "--db", str(talked.place / "other.db"))
    assert (2, True) == (refused.code, "line 3" in refused.err)
    assert 2 == talked("import", str(talked.place / "gone.jsonl")).code
    assert 2 == talked("export", str(file), "-s", "gone").code
    assert 2 == talked("export", str(file), "--family").code


def test_a_file_of_somebody_else_gets_no_key_and_permits_nothing(command: Command, referee: Referee) -> None:
    """What it says goes on where this machine goes, or where a person says; so does what is forked from it."""
    elsewhere, file = referee.base_url("deepseek").replace("127.0.0.1", "0.0.0.0"), str(command.place / "theirs.jsonl")
    with thinkback.open(command.place / "theirs.db", rules={}, settings={}) as theirs:
        session = theirs.session(
            "theirs", endpoint="deepseek", model="deepseek-v4-pro", base_url=elsewhere, api_key="sk-theirs-0000"
        )
        session.set("permissions.rules", "shell=allow")
        session.set("permissions.mode", "auto")
        session.set("reasoning.effort", "high")
        session.chat("Hi")
        theirs.export(file, complete=True)

    assert "new" in command("import", file).out
    assert 0 == command("fork", "--name", "mine", "-s", "theirs").code
    sent = len(referee.requests)
    for name in ("theirs", "mine"):
        refused = command("run", "--session", name, "Hi")
        assert 0 != refused.code
        assert "--base-url" in refused.err
        assert "no endpoint is set: `thinkback chat" in command("chat", "-s", name, stdin=b"Hi\n").err
    command("compact", "theirs", "--strategy", "model", "--tail", "0")
    assert sent == len(referee.requests)
    assert 0 == command("run", "--session", "theirs", "--base-url", elsewhere, "Hi").code

    with thinkback.open(command.db, rules={}, settings={}) as store:
        said = store.find("theirs").settings
    assert {"reasoning.effort": "high", "session.imported": "true", "session.defaults": "1"} == said


def test_histories_of_other_programs_are_found_and_taken_in(inside: Inside) -> None:
    """From the program's own folder; trying makes no log, and a line tells of each thing that was left out."""
    place = inside.place / ".codex" / "sessions" / "2026"
    place.mkdir(parents=True)
    (place / "rollout-1.jsonl").write_bytes(SAMPLES["codex"] + b"{\n")
    tried = inside("import", "--program", "codex", "--dry-run")
    assert (0, True, False) == (tried.code, "13 commits would be added" in tried.out, inside.db.exists())
    done = inside("import", "--program", "codex", "--since", "2020-01-01")
    assert "9 messages" not in done.out
    assert "1 session, 1 with something new, 13 commits added" in done.out
    assert "left out: a damaged line (1; first in" in done.err
    again = inside("import", "--program", "codex", "--since", "9999w", "--json").json
    assert ([0], ["event task_complete", "a damaged line"]) == (
        [session["commits"] for session in again["sessions"]],
        [gap["left"]["what"] for gap in again["left_out"]],
    )
    purged = inside("purge", "--before", "2099-01-01", "--dry-run").err
    assert ("still hold it" in purged, str(place / "rollout-1.jsonl") in purged) == (True, True)
    assert 2 == inside("import").code == inside("import", "x", "--dry-run").code
    refused = inside("import", "x", "--follow")
    assert (2, True) == (refused.code, "go with --program" in refused.err)
    assert 2 == inside("import", "--program", "codex", "--follow", "--dry-run").code
    assert "no histories of pi" in inside("import", "--program", "pi", "--follow").err
    assert 2 == inside("import", "--program", "codex", "-").code == inside("import", "--program", "llm").code
    assert "gone" in inside("import", "--program", "codex", "--same-account", "gone").err
    regional = ("import", "--program", "pi", "--same-account", "bedrock")
    assert "bedrock has no fixed address" in inside(*regional).err
    assert (
        "no histories of pi" in inside(*regional, "--base-url", "https://bedrock-runtime.eu-west-1.amazonaws.com").err
    )
    for url in ("https://a.example", "http://bedrock-runtime.eu-west-1.amazonaws.com"):
        assert f"{url} is no host of bedrock" in inside(*regional, "--base-url", url).err
    fixed = inside("import", "--program", "pi", "--same-account", "anthropic", "--base-url", "https://a.example").err
    assert "anthropic has an address of its own" in fixed
    nowhere = inside("import", "--program", "pi", "--same-account", "bedrock-claude", "--base-url", "https://a.example")
    assert "in a rule file" in nowhere.err
    assert "goes with --same-account" in inside("import", "--program", "pi", "--base-url", "https://a.example").err


def test_import_detects_the_program_of_a_file(inside: Inside) -> None:
    """Without --program; an unknown file is an error that says what is in it and what to do, and stores nothing."""
    file = inside.place / "rollout.jsonl"
    file.write_bytes(SAMPLES["codex"])
    tried = inside("import", str(file), "--dry-run")
    assert (0, True, True) == (tried.code, "history of codex" in tried.err, "13 commits would be added" in tried.out)
    assert "13 commits added" in inside("import", str(file)).out
    assert "goes with --same-account" in inside("import", str(file), "--base-url", "https://a.example").err
    assert "leave out --dry-run" in inside("import", str(file), "--follow", "--dry-run").err
    other = inside.place / "other.json"
    other.write_text('{"steps": [{"kind": "say"}]}')
    refused = inside("import", str(other))
    assert (2, "") == (refused.code, refused.out)
    assert "JSON with the members steps, kind" in refused.err
    assert "--program chat-jsonl" in refused.err


def test_an_import_that_skips_everything_says_why_and_what_to_do(inside: Inside) -> None:
    """In one sentence, for a history of another program and for an export."""
    history, export = inside.place / "s1.jsonl", str(inside.place / "own.jsonl")
    history.write_bytes(SAMPLES["claude-code"])
    inside("import", str(history))
    (info,) = inside("sessions", "--json").json
    inside("export", export, "--complete")
    assert 0 == inside("delete", info["name"], "--yes").code
    assert [] == inside("sessions", "--json").json
    for file in (str(history), export):
        done = inside("import", file)
        assert 0 == done.code
        assert "nothing was imported: all of it was erased in this log. Import it into another log" in done.err
        assert "`thinkback delete erased-imports`" in done.err
    assert 0 == inside("delete", "erased-imports", "--yes").code
    assert "nothing was imported" not in inside("import", export).err
    assert [info["name"]] == [each["name"] for each in inside("sessions", "--json").json]
