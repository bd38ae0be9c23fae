"""``keys``: a key goes in by standard input or a prompt, and comes out nowhere."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import PLACE, SOURCES, Command
from tests.cli.conftest import Inside
from thinkback_referee import HttpError, Referee, Step

SECRET = "sk-kept-where-nobody-looks"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def bare(command: Command) -> Command:
    """The command without a key, and with a keyring of its own."""
    command.environment.pop("DEEPSEEK_API_KEY")
    command.environment["TEST_KEYRING"] = str(command.place / "keyring.json")
    command.environment["PYTHON_KEYRING_BACKEND"] = "tests.session.keyrings.FileKeyring"
    command.environment["PYTHONPATH"] = os.pathsep.join((str(SOURCES), str(ROOT)))
    return command


@pytest.mark.parametrize("options", [(), ("--keyring",)])
def test_a_key_is_kept_used_listed_and_removed(bare: Command, referee: Referee, options: tuple[str, ...]) -> None:
    """From standard input to the request, and nowhere else."""
    assert 2 == bare("run", "Hello", *PLACE, referee.base_url("deepseek")).code
    kept = bare("keys", "set", "deepseek", *options, stdin=f"{SECRET}\n".encode())
    where = "keyring" if options else "file"
    listed = bare("keys", "list")
    assert ["DEEPSEEK_API_KEY", where] == listed.out.split()[:2]
    assert where == bare("keys", "list", "--json").json[0]["in"]
    ran = bare("run", "Hello", *PLACE, referee.base_url("deepseek"), "--json")
    referee.push(Step(fault=HttpError(401, {"error": {"message": f"no such key: {SECRET}"}})))
    failed = bare("run", "Hello", *PLACE, referee.base_url("deepseek"))
    removed = bare("keys", "remove", "DEEPSEEK_API_KEY")
    assert [0, 0, 0, 3, 0] == [done.code for done in (kept, listed, ran, failed, removed)]
    shown = [text for done in (kept, listed, ran, failed, removed) for text in (done.out, done.err) if SECRET in text]
    assert [] == shown
    assert "no keys" in bare("keys", "list").err
    assert SECRET not in (bare.config / "keys.toml").read_text()
    assert 0o600 == stat.S_IMODE((bare.config / "keys.toml").stat().st_mode)


def test_a_key_is_asked_for_without_showing_it(bare: Command) -> None:
    """On a terminal nothing of what is typed comes back."""
    import pty

    master, slave = pty.openpty()
    line = bare.line("keys", "set", "deepseek")
    with subprocess.Popen(
        line, stdin=slave, stdout=slave, stderr=slave, env=bare.environment, start_new_session=True
    ) as process:
        os.close(slave)
        shown = b""
        while b"DEEPSEEK_API_KEY" not in shown:
            shown += os.read(master, 4096)
        os.write(master, f"{SECRET}\n".encode())
        try:
            while piece := os.read(master, 4096):
                shown += piece
        except OSError:  # Linux says so when the other side of a terminal has closed
            pass
    os.close(master)
    assert (0, False) == (process.returncode, SECRET.encode() in shown)
    assert SECRET in (bare.config / "keys.toml").read_text()


@pytest.mark.parametrize("name", ["deepseek", "WORK_KEY"])
def test_a_key_on_the_command_line_is_refused_and_not_repeated(bare: Command, name: str) -> None:
    """Other programs could read it there."""
    done = bare("keys", "set", name, SECRET)
    assert 2 == done.code
    assert "not taken from the command line" in done.err
    assert SECRET not in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("set", SECRET), "no endpoint of this name"),
        (("remove", SECRET), "no endpoint of this name"),
        (("set", "deepsek"), "no endpoint 'deepsek'\n  - did you mean deepseek?"),
        (("set", "unknown"), "has no variable for its key"),
        (("set", "deepseek"), "the key for DEEPSEEK_API_KEY is empty"),
        (("remove", "deepseek"), "no key DEEPSEEK_API_KEY is kept"),
    ],
)
def test_a_mistake_is_told(bare: Command, arguments: tuple[str, ...], told: str) -> None:
    """Without repeating what may be a key, and without making a file."""
    done = bare("keys", *arguments)
    assert (2, True) == (done.code, told in done.err)
    assert SECRET not in done.err
    assert not bare.config.exists()


def test_a_file_that_cannot_be_made_is_named_and_not_its_draft(inside: Inside) -> None:
    """Whoever is told of it knows the one and never sees the other."""
    for line, file in (
        (("keys", "set", "deepseek"), "keys.toml"),
        (("settings", "set", "reasoning.effort", "low"), "settings.toml"),
    ):
        done = inside(*line, stdin=SECRET.encode(), THINKBACK_CONFIG_DIR="/proc/self/fd")
        assert (1, True) == (done.code, f"/proc/self/fd/{file}" in done.err)
        assert f"/.{file}" not in done.err


def test_what_is_missing_names_the_command(bare: Command, referee: Referee) -> None:
    """An endpoint without a key, and a key of a name of one's own; nothing that only a program can do."""
    where = (*PLACE, referee.base_url("deepseek"))
    unset = bare("run", "Hello", *where).err
    assert (True, False) == ("thinkback keys set deepseek" in unset, "api_key" in unset)
    assert "thinkback keys set WORK_KEY" in bare("run", "Hello", *where, "--key-env", "WORK_KEY").err
    assert 0 == bare("keys", "set", "WORK_KEY", stdin=SECRET.encode()).code
    assert 0 == bare("run", "Hello", *where, "--key-env", "WORK_KEY").code


def test_the_environment_wins_and_says_so(bare: Command) -> None:
    """A key that is kept beside one in the environment is not the one that is used."""
    done = bare("keys", "set", "deepseek", stdin=SECRET.encode(), DEEPSEEK_API_KEY="of-the-environment")
    assert "the environment has DEEPSEEK_API_KEY too, which takes precedence" in done.err
    assert "environment" == bare("keys", "list", "--json", DEEPSEEK_API_KEY="x" * 9).json[0]["in"]
    removed = bare("keys", "remove", "deepseek", DEEPSEEK_API_KEY="of-the-environment")
    assert "the environment has DEEPSEEK_API_KEY still" in removed.err


def test_a_machine_without_a_keyring_is_no_error(bare: Command, referee: Referee) -> None:
    """It only cannot keep a key there."""
    bare.environment["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    missing = bare("run", "Hello", *PLACE, referee.base_url("deepseek"))
    assert (2, True) == (missing.code, "deepseek needs a key" in missing.err)
    kept = bare("keys", "set", "deepseek", "--keyring", stdin=SECRET.encode())
    assert (2, True) == (kept.code, "without --keyring" in kept.err)
