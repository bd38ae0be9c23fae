"""The entry point: speed, help, exit codes, and failures told without a traceback or a key."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from tests.cli.command import KEY, PLACE, Command
from tests.cli.conftest import Inside
from thinkback.cli import exits
from thinkback.cli.app import COMMANDS, group
from thinkback.errors import ThinkbackError
from thinkback_referee import Referee


def commands(parent: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """(names, command) of every command and subcommand."""
    context = click.Context(parent)
    for name in parent.list_commands(context):
        found = parent.get_command(context, name)
        assert found is not None
        yield (*path, name), found
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))


EVERY = list(commands(group))


@pytest.mark.parametrize(("path", "found"), EVERY, ids=[" ".join(path) for path, _ in EVERY])
def test_every_command_explains_itself_and_each_of_its_options(path: tuple[str, ...], found: click.Command) -> None:
    """The help of a command has a text, and names and explains each option."""
    options = [parameter for parameter in found.params if isinstance(parameter, click.Option)]
    # With the settings of a call: a command keeps the help option that it is first asked for.
    shown = found.get_help(click.Context(found, click.Context(group, **group.context_settings), " ".join(path)))

    assert found.help
    assert [] == [option.name for option in options if not option.help or option.opts[-1] not in shown]


def test_the_help_lists_every_command_and_every_exit_code(command: Command) -> None:
    """``--help`` names all commands and prints the table of exit codes."""
    shown = command("--help")

    assert 0 == shown.code
    assert [] == [name for name in COMMANDS if f"\n  {name} " not in shown.out]
    told = " ".join(shown.out.split())
    assert [] == [row for row in exits.EXITS if f"{row.code} {row.meaning}" not in told]
    narrow = command("--help", COLUMNS="80").out.splitlines()
    assert [] == [line for line in narrow if len(line) > 80]
    headings = [line for line in narrow if line.endswith(":") and not line.startswith(" ")]
    assert ["Options:", "Every day:"] == headings[:2]
    assert ["Exit codes:", "Environment:"] == headings[-2:]


def test_every_kind_of_error_has_an_exit_code() -> None:
    """No error of the library falls through the table of exit codes."""

    def kinds(of: type[ThinkbackError]) -> set[str]:
        return {of.kind}.union(*map(kinds, of.__subclasses__()))

    tabled = {kind for row in exits.EXITS for kind in row.kinds}

    assert set() == kinds(ThinkbackError) - tabled


def test_the_version_needs_little_more_than_click(command: Command) -> None:
    """``--version`` answers within 120 ms of processor time and imports nothing of the library's weight."""

    def seconds() -> float:
        before = os.times()
        subprocess.run(command.line("--version"), env=command.environment, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        return after.children_user - before.children_user + after.children_system - before.children_system

    line = [sys.executable, "-X", "importtime", *command.line("--version")[1:]]
    told = subprocess.run(line, env=command.environment, check=True, capture_output=True).stderr.decode()
    loaded = {row.rpartition("|")[2].strip() for row in told.splitlines()}

    assert min(seconds() for _ in range(5)) < 0.12
    assert set() == loaded & {"msgspec", "httpx2", "sqlite3", "tomllib", "platformdirs", "thinkback.session.store"}


@pytest.mark.parametrize("line", [("sessions",), ("run", "--help"), ("mcp", "--help"), ("acp", "--help")], ids=" ".join)
def test_what_few_commands_need_is_imported_by_them_alone(command: Command, line: tuple[str, ...]) -> None:
    """No start waits for the packages of the protocols, of keyrings and of the chat."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", *command.line(*line)[1:]],
        env=command.environment,
        check=True,
        capture_output=True,
    )
    loaded = {row.rpartition("|")[2].strip() for row in told.stderr.decode().splitlines()}

    few = {"mcp", "acp", "pydantic", "anyio", "keyring", "prompt_toolkit", "rich", "asyncio.runners"}
    assert set() == loaded & {*few, "jinja2", "starlette", "uvicorn"}


FIRST = """
import importlib, os
from thinkback.cli.app import COMMANDS
for name in sorted(set(COMMANDS.values())):
    if os.fork() == 0:
        importlib.import_module(name if name.startswith("thinkback.") else f"thinkback.cli.{name}")
        os._exit(0)
    if os.wait()[1]:
        print(name)
"""


def test_every_command_may_be_the_first_that_is_imported(command: Command) -> None:
    """None works only because another has imported what it needs, as it would in a fork of the warm server."""
    line = [sys.executable, "-c", FIRST]
    done = subprocess.run(line, env=command.environment, check=True, capture_output=True)

    assert (b"", b"") == (done.stdout, done.stderr)


def test_an_unknown_command_is_wrong_use(command: Command) -> None:
    """A mistyped command ends with exit code 2 and a message."""
    done = command("wyh")

    assert 2 == done.code
    assert "No such command 'wyh'. Did you mean why?" in done.err
    assert "No such command 'hello'. To ask a model: thinkback run hello\n" in command("hello").err
    assert "thinkback run 'what is 2+2'" in command("what is 2+2").err


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("resume", "chat --continue"),
        ("login", "keys set ENDPOINT"),
        ("exec", "run PROMPT"),
        ("histroy", "log SESSION"),
        ("list", "sessions"),
    ],
)
def test_a_command_of_another_program_leads_to_its_own(name: str, line: str, inside: Inside) -> None:
    """Instead of to one that is spelt alike and undoes something."""
    done = inside(name)

    assert 2 == done.code
    assert done.err.endswith(f": thinkback {line}\n")
    assert "Did you mean" not in done.err


@pytest.mark.parametrize("line", [("run", "--effort", "high", "Hi"), ("chat", "--effort=high")])
def test_an_option_of_another_program_leads_to_the_setting(line: tuple[str, ...], inside: Inside) -> None:
    """Where the command takes settings."""
    assert "Did you mean --set reasoning.effort=high?" in inside(*line).err
    assert "reasoning.effort" not in inside("log", "--effort", "high").err


@pytest.mark.parametrize(("line", "code"), [("sessions >&-", 0), ("run - <&-", 2), ("log >&- 2>&- <&-", 2)])
def test_closed_standard_streams_are_no_failure(command: Command, line: str, code: int) -> None:
    """What is written to them goes nowhere, what is read of them is nothing; the log does not stand in their place."""
    first, *rest = line.split()
    given = " ".join([shlex.join(command.line(first)), *rest])
    done = subprocess.run(["sh", "-c", given], env=command.environment, capture_output=True, text=True)
    assert (code, False) == (done.returncode, "unexpected failure" in done.stderr)


def test_an_error_is_a_message_with_advice(command: Command) -> None:
    """A failure is told on standard error with what to do next, and without a traceback."""
    done = command("log")

    assert 2 == done.code
    assert "" == done.out
    assert done.err.startswith("thinkback: there is no log at")
    assert f"\n  - `thinkback chat --db {command.db}` or `thinkback run --db {command.db}` begins one" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("line", "code", "kind", "said"),
    [
        (("log", "--json"), 2, "not-found", "there is no log at"),
        (("log", "--json", "--nosuch"), 2, "usage", "No such option"),
        (("run", "--json", "--endpoint", "nosuch", "--model", "m", "Hi"), 2, "not-found", "nosuch"),
        (("run", "--json", "--endpoint", "sk-hidden-123456", "--model", "m", "Hi"), 2, "not-found", "<SOME_API_KEY>"),
        (("run", "--json", *PLACE, "http://127.0.0.1:9", "Hi"), 4, "network", "127.0.0.1:9"),
    ],
    ids=["nothing", "option", "endpoint", "secret", "network"],
)
def test_a_failure_is_one_object_for_programs(
    command: Command, line: tuple[str, ...], code: int, kind: str, said: str
) -> None:
    """With ``--json``: on standard output, with kind, message, details and advice; the exit code says it as before."""
    done = command(*line, SOME_API_KEY="sk-hidden-123456", DEEPSEEK_API_KEY=KEY)

    error = done.json["error"]
    assert (code, kind, {"error"}) == (done.code, error["kind"], set(done.json))
    assert ["kind", "message", "details", "next_actions"] == list(error)
    assert said in error["message"]
    assert "sk-hidden" not in done.out


FOR_PEOPLE = (
    "demo",
    "chat",
    "connect",
    "profile",
    "keys",
    "rules",
    "completion",
    "gateway",
    "gateway backup",
    "gateway keys",
    "referee",
    "view",
    "mcp",
    "acp",
)
"""Groups, servers, and what is a conversation or a script."""


def test_every_command_that_tells_something_tells_it_to_programs(inside: Inside) -> None:
    """With ``--json`` one value, and of a failure one object, whatever fails: an option, a log that is none, a name."""
    takes = {" ".join(path): found for path, found in EVERY if any("--json" in each.opts for each in found.params)}
    assert set(FOR_PEOPLE) == {" ".join(path) for path, _ in EVERY} - takes.keys()
    inside.db.write_text("no log at all, and long enough to be read as one " * 100)
    codes = set()
    for name, found in takes.items():
        needed = [str(inside.place / "x") for each in found.params if isinstance(each, click.Argument)]
        for options in (needed, ["--no-such-option"]):
            done = inside(*name.split(), *options, "--json")
            codes.add(done.code)
            assert done.code == 0 or (
                {"error"} == set(done.json)
                and ["kind", "message", "details", "next_actions"] == list(done.json["error"])
                and "unexpected failure" not in done.json["error"]["message"]
            ), (name, options, done)
    assert {2, 7} <= codes


def test_a_traceback_is_shown_on_request(command: Command) -> None:
    """``THINKBACK_DEBUG=1`` shows where an error was raised."""
    assert "Traceback" in command("log", THINKBACK_DEBUG="1").err


def test_a_traceback_holds_no_key_and_nothing_a_terminal_obeys(command: Command) -> None:
    """Whatever an error quotes."""
    given = ("--model", "m", "--endpoint", "sk-hidden-123456\x1b[2J")
    done = command("run", *given, "Hi", THINKBACK_DEBUG="1", SOME_API_KEY="sk-hidden-123456")
    assert "Traceback" in done.err
    assert "<SOME_API_KEY>" in done.err
    assert "sk-hidden" not in done.err
    assert "\x1b[2J" not in done.err


def test_a_file_that_cannot_be_made_is_told_without_a_traceback(command: Command) -> None:
    """What the operating system refuses is told with the path."""
    command.config.write_text("not a directory")

    done = command("settings", "set", "reasoning.effort", "high")

    assert 1 == done.code
    assert str(command.config) in done.err
    assert "Traceback" not in done.err


def test_a_home_that_may_not_be_written_is_told_with_the_way_round(command: Command, referee: Referee) -> None:
    """The log cannot be made in its usual place; another one can be named."""
    (command.place / "file").touch()
    place = (*PLACE, referee.base_url("deepseek"))
    done = command("run", "Hi", *place, THINKBACK_DB="", XDG_DATA_HOME=str(command.place / "file"))

    assert 7 == done.code
    assert "thinkback.db cannot be made" in done.err
    assert "--db" in done.err


def test_a_reader_that_leaves_ends_the_command_quietly(talked: Command) -> None:
    """A closed pipe is no failure worth a word."""
    with talked.start("log") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        told = process.stderr.read()

    assert b"" == told


@pytest.mark.parametrize("key", [KEY, f"{KEY}\nsecond line", "bad-key-" + KEY], ids=["plain", "two lines", "odd"])
def test_no_error_repeats_the_key(command: Command, referee: Referee, key: str) -> None:
    """Whatever is wrong with a key or a request, the key is in no output."""
    place = (*PLACE, referee.base_url("deepseek"), "--model", "no-such-model")

    done = command("run", "Hi", *place, DEEPSEEK_API_KEY=key)

    stored = command.db.read_bytes() if command.db.exists() else b""

    assert done.code in (2, 3)
    assert KEY not in done.out + done.err
    assert KEY.encode() not in stored
