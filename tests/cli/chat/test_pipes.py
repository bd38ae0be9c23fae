"""Without a terminal: each line of standard input is a message, and what is printed is plain text."""

from __future__ import annotations

import os
import signal
import subprocess
from functools import partial

import pytest

import thinkback
from tests.cli.chat.talks import asked, messages, say
from tests.cli.command import KEY, PLACE, Command
from tests.cli.conftest import Inside
from tests.formats.samples import SAMPLES, write_database
from thinkback.cli import exits
from thinkback.cli.chat.chat import Chat
from thinkback.cli.chat.slash.row import Slash
from thinkback.cli.chat.table import table
from thinkback.formats.registry import MODULES, program
from thinkback.model.commits import TurnEnded
from thinkback_referee import HttpError, Referee, Stall, Step


def place(referee: Referee) -> tuple[str, ...]:
    """Where to ask."""
    return (*PLACE, referee.base_url("deepseek"))


def states(command: Command, name: str) -> list[str]:
    """How the turns of a session ended."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        ends = store.session(name).log(kinds=("turn_ended",))
    return [commit.value.state for commit in ends if isinstance(commit.value, TurnEnded)]


def test_each_line_is_a_message(command: Command, referee: Referee) -> None:
    """Answers are printed, reasoning beside them, empty lines are no messages, and no escape code is printed."""
    referee.push(Step(reasoning="Thinking.", text="One."), Step(text="Two."))

    done = command("chat", *place(referee), stdin=b"First\n\n  \nSecond")

    assert (0, ["First", "Second"]) == (done.code, asked(referee))
    assert "One.\nTwo.\n" == done.out
    assert "Thinking:\nThinking.\n(Thought" in done.err
    assert "\x1b" not in done.out + done.err


def test_a_chat_begins_with_settings_fields_and_a_system_prompt(command: Command, referee: Referee) -> None:
    """``--set``, ``--param`` and ``--system`` hold for the session; a wrong one is refused, and nothing is stored."""
    options = ("--set", "reasoning.effort=high", "--param", "temperature=0.25", "--system", "One word.")

    done = command("chat", "--session", "s", *options, *place(referee), stdin=b"First\nSecond\n")

    sent = [request.body for request in referee.requests]
    assert (0, [0.25, 0.25]) == (done.code, [body["temperature"] for body in sent])
    assert ["system", "user", "assistant", "user"] == [one["role"] for one in messages(referee)]
    assert "high" == command("settings", "--session", "s", "get", "reasoning.effort").out.strip()

    refused = command("chat", "--session", "t", "--set", "reasoning.effort=silly", *place(referee), stdin=b"First\n")

    assert (2, 2) == (refused.code, len(referee.requests))
    assert ["s"] == [row["name"] for row in command("sessions", "--json").json]


@pytest.mark.parametrize(
    ("arguments", "lines", "left"),
    [
        ((), b"/set reasoning.effort high\n/quit\n", {}),
        (("--session", "nope"), b"/quit\n", {}),
        ((), b"/new nope\n", {}),
        (("--session", "mine"), b"/set reasoning.effort high\n", {"mine": "high"}),
        (("--session", "mine", "--set", "reasoning.effort=high"), b"", {"mine": "high"}),
        ((), b"/fork other\n", {"other": None, "chat": None}),
        ((), b"Hi\n/undo\n", {"chat": None}),
    ],
    ids=["without a word", "named", "named later", "named and set", "set by an option", "forked", "taken back"],
)
def test_a_session_that_nobody_used_is_not_left_behind(
    inside: Inside, referee: Referee, arguments: tuple[str, ...], lines: bytes, left: dict[str, str | None]
) -> None:
    """Not one with a misspelt name either. Its settings go with one without a name, and keep one that has a name; what
    was said on any branch keeps both.
    """
    inside("chat", *arguments, *place(referee), stdin=lines, DEEPSEEK_API_KEY=KEY)

    with thinkback.open(inside.db, rules={}, settings={}) as store:
        efforts = {info.name.partition("-")[0]: info.settings.get("reasoning.effort") for info in store.sessions()}
    assert left == efforts


def test_a_backslash_at_the_end_goes_on_in_the_next_line(command: Command, referee: Referee) -> None:
    """Also at the end of the input; two slashes begin a message with one."""
    command("chat", *place(referee), stdin=b"One\\\ntwo\n//three\nfour\\")

    assert ["One\ntwo", "/three", "four\n"] == asked(referee)


def test_commands_work_in_a_pipe(command: Command, referee: Referee) -> None:
    """A setting acts on the next line; what is refused is told on standard error."""
    done = command("chat", *place(referee), stdin=b"/set reasoning.effort high\nHi\n/nonsense\n/quit\nnot asked\n")

    assert ["Hi"] == asked(referee)
    assert "high" == referee.requests[0].body["reasoning_effort"]
    assert "there is no command /nonsense" in done.err


def test_an_error_is_told_and_the_chat_goes_on(command: Command, referee: Referee) -> None:
    """With what to do next; the exit code is that of the last turn."""
    referee.push(Step(fault=HttpError(400, {"error": {"message": "no such thing"}})), Step(text="Fine."))

    done = command("chat", *place(referee), stdin=b"One\nTwo\n")

    assert (0, ["One", "Two"]) == (done.code, asked(referee))
    assert "no such thing" in done.out + done.err
    assert "Fine." in done.out


def test_a_fault_of_ours_ends_no_conversation(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told as one, and the next line is read; a developer sees where it happened."""

    def broken(_chat: Chat, _rest: str) -> None:
        raise ZeroDivisionError("a fault")

    table()["broken"] = Slash("broken", "broken", "", broken)
    try:
        say(chat, "/broken", "Hello")
    finally:
        del table()["broken"]

    shown = capsys.readouterr()
    assert "unexpected failure: ZeroDivisionError: a fault" in shown.err
    assert 'You said: "Hello".' in shown.out


def test_the_exit_code_is_that_of_the_last_turn(command: Command, referee: Referee) -> None:
    """A script learns that the last answer is missing."""
    referee.push(Step(fault=HttpError(400, {"error": {"message": "no such thing"}})))

    assert exits.code_of("provider") == command("chat", *place(referee), stdin=b"One\n").code


def test_a_chat_ends_with_the_name_of_its_session(inside: Inside, referee: Referee) -> None:
    """On standard error; a session that nobody named, and whose questions all went to a model that is not there, is not
    kept. One question that failed otherwise keeps it.
    """
    lines, key = b"Hi\n", {"DEEPSEEK_API_KEY": KEY}
    wrong = inside("chat", *place(referee), "--model", "deepseek-v4-por", stdin=lines, **key)
    mended = inside(
        "chat", *place(referee), "-m", "deepseek-v4-por", stdin=b"Hi\n/model deepseek-v4-pro\n/retry\n", **key
    )

    names = [session["name"] for session in inside("sessions", "--json").json]
    assert (3, 0, 1) == (wrong.code, mended.code, len(names))
    assert "continues this session" not in wrong.err
    assert "/model NAME changes the model; then /retry" in wrong.out + wrong.err
    assert mended.err.endswith(f" --session {names[0]}` continues this session\n")

    referee.push(Step(fault=HttpError(400, {"error": {"message": "no such thing"}})))
    kept = inside(
        *("chat", *place(referee), "-m", "deepseek-v4-por"),
        stdin=b"Hi\n/model deepseek-v4-pro\nA question.\n/model deepseek-v4-por\nAnother.\n",
        **key,
    )
    assert (3, 2) == (kept.code, len(inside("sessions", "--json").json))
    assert kept.err.endswith("` continues this session\n")


def test_an_imported_session_of_every_program_goes_on(inside: Inside, referee: Referee) -> None:
    """The strict provider answers the next question, and the one after, with what was asked before in both."""
    for name in MODULES:
        file = inside.place / name
        if program(name).tables:
            write_database(file, SAMPLES[name])
        else:
            file.write_bytes(SAMPLES[name])
        (took,) = inside("import", str(file), "--program", name, "--json").json["sessions"][:1]
        before = len(referee.requests)
        lines = b"Go on.\nAnd now?\n"
        done = inside("chat", *place(referee), "--session", took["name"], stdin=lines, DEEPSEEK_API_KEY=KEY)
        sent = referee.requests[before:]
        assert (0, [(200, True)] * 2) == (done.code, [(each.status, b"Which" in each.raw) for each in sent]), name
        assert b"Go on." in sent[-1].raw


def test_without_a_place_nothing_is_made(command: Command) -> None:
    """Nobody said where to ask."""
    done = command("chat", stdin=b"Hi\n")

    assert 2 == done.code
    assert "no endpoint is set" in done.err


def test_an_app_and_a_profile_say_what_is_not_given(command: Command, referee: Referee) -> None:
    """``--app`` gives a new session its system prompt, ``--profile`` place and settings; both stay with it."""
    command("chat", *place(referee), stdin=b"/set reasoning.effort high\n/profile save deep\n")

    first = command("chat", "--app", "tutor", "--profile", "deep", "--session", "lesson", stdin=b"Hi\n")
    second = command("chat", "--session", "lesson", stdin=b"More\n")

    assert (0, 0) == (first.code, second.code)
    assert ["system", "user"] == [one["role"] for one in messages(referee, 0)]
    assert ["high", "high"] == [exchange.body["reasoning_effort"] for exchange in referee.requests]


def test_an_unknown_app_or_profile_is_refused(command: Command, referee: Referee) -> None:
    """Before anything is asked."""
    app = command("chat", *place(referee), "--app", "nonsense", stdin=b"Hi\n")
    profile = command("chat", *place(referee), "--profile", "nonsense", stdin=b"Hi\n")

    assert (2, 2) == (app.code, profile.code)
    assert "there is no app 'nonsense'" in app.err
    assert "nonsense" in profile.err
    assert [] == referee.requests


def test_a_named_session_is_gone_on_with(command: Command, referee: Referee) -> None:
    """Endpoint and model are those of its last request; what was said before is not printed for a program again."""
    command("chat", *place(referee), "--session", "talk", stdin=b"First\n")

    by_name = command("chat", "--session", "talk", stdin=b"Second\n")
    command("chat", *place(referee))  # a session in which nothing is said
    last = command("chat", "--continue", stdin=b"Third\n")
    dry = command("run", "Fourth", "-c", "--dry-run")
    once = command("run", "Fourth", "-c")

    assert ["First", "Second", "Third", "Fourth"] == asked(referee)
    assert [*messages(referee)] == dry.json["messages"]
    assert "session talk: " in once.err
    assert 7 == len(messages(referee))
    assert (1, 1) == (by_name.out.count("You said:"), last.out.count("You said:"))
    assert "Second" in by_name.out
    assert "Third" in last.out
    assert ["completed"] * 4 == states(command, "talk")


@pytest.mark.parametrize("line", [("chat",), ("run", "Hi")])
def test_continue_and_session_exclude_each_other(inside: Inside, line: tuple[str, ...]) -> None:
    """One of them says where to go on."""
    done = inside(*line, "--continue", "--session", "talk")

    assert 2 == done.code
    assert "--continue continues the session used last" in done.err


def test_only_the_last_turns_of_a_long_session_are_shown(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    """And how many there are before them."""
    say(chat, *(f"Message number {at}." for at in range(13)))
    capsys.readouterr()

    say(chat, "/resume talk")

    shown = capsys.readouterr()
    assert "Message number 2." not in shown.out
    assert "Message number 3." in shown.out
    assert "3 turns before that" in shown.err


def test_a_key_is_in_no_output(command: Command, referee: Referee) -> None:
    """Whatever a command with a key says."""
    stdin = b"/endpoint deepseek deepseek-v4-pro --key-env MY_KEY\nHi\n/set\n/why\n"

    done = command("chat", *place(referee), stdin=stdin, MY_KEY="sk-secret-0123456789")

    assert "sk-secret-0123456789" not in done.out + done.err


def test_bytes_that_are_no_text_are_asked_as_far_as_they_are(command: Command, referee: Referee) -> None:
    """A stray byte ends no conversation."""
    assert 0 == command("chat", *place(referee), stdin=b"caf\xe9\n").code
    assert ["caf\ufffd"] == asked(referee)


def test_ctrl_c_keeps_what_arrived(command: Command, referee: Referee) -> None:
    """The turn ends as interrupted, with what was there; a pipe is not read on."""
    referee.push(Step(reasoning="Thinking. " * 50, text="Never.", fault=Stall(30, after=4)))
    with subprocess.Popen(
        command.line("chat", *place(referee), "--session", "talk"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=command.environment,
        # where the tests run in the background, Ctrl-C would be ignored
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"Hi\nnot asked\n")
        process.stdin.flush()
        thought = b""
        while b"Thinking" not in thought:
            thought += os.read(process.stderr.fileno(), 65536)
        process.send_signal(signal.SIGINT)
        shown = process.communicate(timeout=20)[0]

    assert exits.INTERRUPTED == process.returncode
    assert b"partial: interrupted" in shown
    assert ["interrupted"] == states(command, "talk")
    assert ["Hi"] == asked(referee)
    with thinkback.open(command.db, rules={}, settings={}) as store:
        assert "Thinking." in str(store.session("talk").log(kinds=("reasoning",))[0].value)


def test_a_setting_that_cannot_be_sent_is_reported_once(command: Command, referee: Referee) -> None:
    """In a chat, at the first question that it concerns."""
    done = command("chat", *place(referee), stdin=b"/set reasoning.maxTokens 500\nOne?\nTwo?\n")

    assert 1 == done.err.count("reasoning.maxTokens = 500 is not sent: deepseek has no way to say it")
