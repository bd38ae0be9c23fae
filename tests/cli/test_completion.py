"""What a shell completes: by click's protocol, by a real shell, in no time, and without a trace."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import click
import pytest

import thinkback
from tests.cli.command import KEY
from tests.cli.conftest import Inside
from tests.cli.test_app import EVERY
from thinkback.rules import load_rulebook

BOOK = load_rulebook()
SCHEMA = Path(thinkback.__file__).parent / "stores" / "sqlite_schema"

OFFERED = {
    "thinkback chat --session s": ["sea", "sky"],
    "thinkback why s": ["sea", "sky"],
    "thinkback delete ": ["sea", "sky"],
    "thinkback switch --session sea ": ["main", "other-way"],
    "thinkback switch -s sky ": ["main"],
    "thinkback merge --session sea o": ["other-way"],
    "thinkback chat --endpoint deepseek-": ["deepseek-anthropic", "deepseek-responses"],
    "thinkback models refe": ["referee"],
    "thinkback run Hi --endpoint referee --model ": BOOK.served("referee"),
    "thinkback chat --endpoint nosuch --model ": [],
    "thinkback settings get reasoning.e": ["reasoning.enabled", "reasoning.effort"],
    "thinkback settings set display.reasoning ": ["full", "collapsed", "hidden"],
    "thinkback run --set reasoning.ef": ["reasoning.effort="],
    "thinkback chat --profile ": ["work"],
    "thinkback chat --app tu": ["tutor"],
    "thinkback compl": ["completion"],
    "thinkback completion ": ["bash", "zsh", "fish"],
}


@pytest.fixture
def made(inside: Inside) -> Inside:
    """A log with two sessions, one of which has a branch, and a profile."""
    with thinkback.open(inside.db, rules={}, settings={}) as store:
        for name in ("my chat", "sky"):
            store.session(name, endpoint="deepseek", model="deepseek-v4-pro", api_key=KEY).commit("Hi")
        sea = store.session("sea", endpoint="deepseek", model="deepseek-v4-pro", api_key=KEY)
        sea.commit("Hi")
        sea.branches.branch("other-way")
    inside("profile", "save", "work", "--endpoint", "deepseek", "--model", "deepseek-v4-pro")
    return inside


def offered(inside: Inside, line: str) -> list[str]:
    """What may stand at the end of ``line``."""
    words = line.split(" ")
    given = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_THINKBACK_COMPLETE": "bash_complete"}
    done = inside(stdin=b"", **given)
    assert (0, "") == (done.code, done.err)
    return [row.partition(",")[2] for row in done.out.splitlines() if row]


def test_names_are_offered(made: Inside) -> None:
    """Of the log and the endpoint that are meant; what would have to be quoted is left out."""
    found = {line: sorted(offered(made, line)) for line in OFFERED}

    assert {line: sorted(expected) for line, expected in OFFERED.items()} == found


def test_every_parameter_that_takes_such_a_name_offers_them() -> None:
    """Whatever command it belongs to."""
    wanted = {"session", "endpoint", "model", "app", "profile"}
    silent = [
        (" ".join(path), parameter.name)
        for path, command in EVERY
        for parameter in command.params
        if path not in (("connect",), ("purge",))  # models of a gateway, and of what was recorded
        if parameter.name in wanted and not isinstance(parameter.type, click.Choice | click.Path)
        if parameter._custom_shell_complete is None  # click has no other way to ask
    ]
    assert [] == silent


def test_nothing_is_made_or_changed(made: Inside) -> None:
    """Neither beside a log that is there nor where there is none; a log of the first format stays in it."""

    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in made.place.rglob("*") if path.is_file()}

    first = made.place / "first.db"
    with closing(sqlite3.connect(first)) as connection:
        connection.executescript((SCHEMA / "0001_log.sql").read_text(encoding="utf-8"))
        connection.execute("INSERT INTO sessions VALUES (1, 'id', 'old', 1, 0, '{}')")
        connection.commit()
    before = contents()
    assert ["old"] == offered(made, f"thinkback log --db {first} ")
    assert ["sea", "sky"] == sorted(offered(made, "thinkback log "))
    assert [] == offered(made, f"thinkback log --db {made.place}/none/log.db ")
    assert [] == offered(made, f"thinkback log --db {made.config}/profiles/work.toml ")
    del made.environment["THINKBACK_DB"]
    assert [] == offered(made, "thinkback log ")
    assert before == contents()
    assert not (made.place / ".local").exists()


def test_names_of_an_open_log_are_seen(made: Inside) -> None:
    """Also those that are in the file beside it."""
    with thinkback.open(made.db, rules={}, settings={}) as store:
        store.session("skywards")
        assert ["sky", "skywards"] == sorted(offered(made, "thinkback log sk"))


def test_completion_takes_no_time(made: Inside) -> None:
    """200 ms of processor time are the most, for the slowest kind of name."""
    line = [sys.executable, "-m", "thinkback"]
    given = {"COMP_WORDS": "thinkback chat --endpoint referee --model ", "COMP_CWORD": "5"}
    environment = {**made.environment, **given, "_THINKBACK_COMPLETE": "bash_complete"}

    def seconds() -> float:
        before = os.times()
        subprocess.run(line, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        return after.children_user - before.children_user + after.children_system - before.children_system

    assert min(seconds() for _ in range(3)) < 0.2


BASH = 'eval "$(thinkback completion bash)"; COMP_WORDS=(thinkback why s) COMP_CWORD=2; _thinkback_completion thinkback'
ZSH = 'autoload -Uz compinit && compinit -u; eval "$(thinkback completion zsh)"; whence -w _thinkback_completion'
FISH = "thinkback completion fish | source; complete -C 'thinkback why s'"


@pytest.mark.parametrize(
    ("shell", "script", "expected"),
    [
        ("bash", f'{BASH}; printf "%s\\n" "${{COMPREPLY[@]}}"', "sea\nsky\n"),
        ("zsh", ZSH, "_thinkback_completion: function\n"),
        ("fish", FISH, "sea\nsky\n"),
    ],
)
def test_a_shell_takes_the_script(made: Inside, shell: str, script: str, expected: str) -> None:
    """As the page says it is set up."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    program = made.place / "bin" / "thinkback"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m thinkback "$@"\n')
    program.chmod(0o700)
    path = f"{program.parent}{os.pathsep}{made.environment['PATH']}"
    done = subprocess.run(
        [shell, "-c", script], env={**made.environment, "PATH": path}, capture_output=True, text=True, timeout=60
    )
    assert ("", sorted(expected.split())) == (done.stderr, sorted(done.stdout.split()))


def test_the_page_says_how_each_shell_takes_it() -> None:
    """In a line each."""
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for shell in ("bash", "zsh", "fish"):
        assert f"thinkback completion {shell}" in page
