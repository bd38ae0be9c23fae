"""The commands that errors and notes name: of the log that is meant, quoted, in the words of the surface."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import thinkback
from tests.cli.chat.talks import open_chat, say
from tests.cli.command import KEY, PLACE
from tests.cli.conftest import Inside
from thinkback.cli import hints
from thinkback_referee import Referee

NAMES = ["my chat", "-x", "a`b$c"]


def said(err: str, start: str) -> list[list[str]]:
    """The words of each command in ``err`` that begins so, as a shell reads them."""
    return [shlex.split(found) for found in re.findall(rf"`({start}.*?)`(?!b\$c)", err)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["log", "--db", "my log.db"], ["thinkback", "fsck", "--db", "my log.db"]),
        (["log", "--db=l.db"], ["thinkback", "fsck", "--db", "l.db"]),
        (["log"], ["thinkback", "fsck", "--db", "of the environment.db"]),
        (["run", "--", "--db", "x"], ["thinkback", "fsck", "--db", "of the environment.db"]),
        (["log", "--db", "postgresql://me:secret@h/d"], ["thinkback", "fsck", "--db", "postgresql://me:...@h/d"]),
    ],
    ids=["apart", "equals", "environment", "prompt", "password"],
)
def test_a_command_is_of_the_log_that_was_given(
    arguments: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an option, or by the environment of this one call; a password is not repeated."""
    monkeypatch.setenv("THINKBACK_DB", "of the environment.db")

    assert [expected] == said(hints.given(arguments)("run `thinkback fsck` to see how far"), "thinkback")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "`thinkback gateway keys create NAME` makes one",
            "`thinkback gateway keys create --config g.toml NAME` makes one",
        ),
        ("`thinkback keys set NAME` stores a key", "`thinkback keys set NAME` stores a key"),
        ("`thinkback why --next` shows it", "`thinkback why --db l.db --next` shows it"),
        ("`thinkback chat` or `thinkback run`", "`thinkback chat --db l.db` or `thinkback run --db l.db`"),
        ("`thinkback nosuch`", "`thinkback nosuch`"),
    ],
)
def test_a_command_gets_the_options_that_it_takes(text: str, expected: str) -> None:
    """Behind the words that name it; what takes none stays as it is."""
    assert expected == hints.Given((("--db", "l.db"), ("--config", "g.toml")))(text)


def test_errors_name_the_log_that_they_are_about(line: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is pasted looks into the same log, and not into the one of the usual place."""
    thinkback.open("new.db").close()

    assert "`thinkback sessions --db new.db` lists them" in line("why", "nosuch", "--db", "new.db").err
    assert "or give --db another file" in line("log", "--db", "nothere.db").err
    assert "`thinkback chat --db nothere.db` or" in line("sessions", "--db", "nothere.db").err
    assert "`thinkback chat --db new.db` begins one" in line("sessions", "--db", "new.db").out
    assert ["`thinkback sessions --db new.db` lists them"] == line("why", "x", "--db", "new.db", "--json").json[
        "error"
    ]["next_actions"]


@pytest.mark.parametrize("name", NAMES)
def test_names_in_commands_are_quoted(name: str, line: Inside, referee: Referee) -> None:
    """Whatever a session is called, what a run prints can be pasted."""
    place = (*PLACE, referee.base_url("deepseek"))

    told = line("run", "Hi", f"--session={name}", *place, "--db", "l.db").err
    (why,) = re.findall(r": `(thinkback why.*)` shows", told)
    assert 0 == line(*shlex.split(why)[1:]).code


def test_a_run_that_nobody_answered_leaves_no_session(line: Inside, referee: Referee) -> None:
    """It never becomes the one used last; a session that was named stays, and the error says how to go on in it."""
    nowhere = (*PLACE, "http://127.0.0.1:9", "--db", "l.db")
    alone = line("run", "Hi", *nowhere)
    named = line("run", "Hi", "--session", "my sky", *nowhere)

    assert (4, 4) == (alone.code, named.code)
    assert "ask again" not in alone.err + named.err
    assert "/retry" not in alone.err
    assert "`thinkback chat --db l.db --session 'my sky'`, then /retry, asks again" in named.err
    with thinkback.open("l.db") as store:
        assert ["my sky"] == [info.name for info in store.sessions()]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/resume nope", "`/sessions` lists them"),
        ("/app nope", "`/app`"),
        ("/why", "`/why next` shows the next one"),
        ("/branch x abcdef", "(in a shell) lists the commits"),
        ("Hi", "/retry asks again"),
    ],
)
def test_a_chat_names_what_can_be_typed_in_it(
    typed: str, expected: str, referee: Referee, capsys: pytest.CaptureFixture[str]
) -> None:
    """No command of the shell, but where it is called one."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        chat = open_chat(store, referee)
        chat.session.use(base_url="http://127.0.0.1:9", api_key=KEY)
        chat.session.set("session.app", "default")
        say(chat, typed)
    shown = "".join(capsys.readouterr())

    assert expected in shown
    assert [] == re.findall(r"`thinkback [^`]*`(?! \(in a shell\))", shown)


def test_a_chat_without_a_key_says_where_one_is_kept(referee: Referee, capsys: pytest.CaptureFixture[str]) -> None:
    """That is done in a shell."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        chat = open_chat(store, referee)
        chat.session = store.session("other", endpoint="deepseek", model="deepseek-v4-pro")
        say(chat, "Hi")

    assert "`thinkback keys set deepseek` (in a shell)" in "".join(capsys.readouterr())


def test_the_gateway_names_keys_of_its_own_store(line: Inside) -> None:
    """Not those of the gateway in the usual place."""
    assert (
        "`thinkback gateway keys create --store other NAME`" in line("gateway", "keys", "list", "--store", "other").err
    )
    assert not Path("data").exists()


def test_a_model_of_another_endpoint_is_told_where_it_is_known(line: Inside) -> None:
    """By a key that is there, or by the log; an endpoint that was named is meant."""
    line("profile", "save", "usual", "--endpoint", "anthropic", "--model", "claude-sonnet-5-5")
    line("profile", "default", "usual")
    wanted = ("run", "Hi", "-m", "deepseek-v4-pro")
    known = "deepseek-v4-pro is known at"

    assert known not in line(*wanted, DEEPSEEK_API_KEY="").err
    assert f"{known} deepseek: give --endpoint deepseek\n" in line(*wanted).err
    assert known not in line(*wanted, "--endpoint", "anthropic").err
    assert f"{known} deepseek: /endpoint deepseek deepseek-v4-pro\n" in line("chat", *wanted[2:], stdin=b"Hi\n").out
    line("run", "Hi", "--endpoint", "referee")
    assert f"{known} referee: give --endpoint referee\n" in line(*wanted, DEEPSEEK_API_KEY="").err
