"""What is shown to somebody who has set up nothing: what to do next, and a dialogue that leaves nothing half done."""

from __future__ import annotations

from pathlib import Path

import pytest

import thinkback
from tests.cli.chat.terminal import Terminal
from tests.cli.command import KEY, Command
from tests.cli.conftest import Inside
from thinkback.rules import load_rulebook

MODELS = load_rulebook().served("deepseek")


def tree(place: Path) -> set[str]:
    """Every file and directory there."""
    return {str(path.relative_to(place)) for path in place.rglob("*")}


def written_by_hand(path: Path) -> str:
    """A log with the session ``notes``, of which no request was made."""
    with thinkback.open(path, rules={}, settings={}) as store:
        store.session("notes").reasoning("A thought.")
    return str(path)


@pytest.fixture
def empty(command: Command) -> Command:
    """A home with nothing in it, where nothing says which log is meant."""
    del command.environment["THINKBACK_DB"], command.environment["THINKBACK_CONFIG_DIR"]
    command.place = command.place / "home"
    command.place.mkdir()
    command.environment["HOME"] = str(command.place)
    return command


def test_without_arguments_it_shows_what_to_do_next(line: Inside) -> None:
    """By what there is: nothing at first, an endpoint, sessions; a log is not made for it."""
    line.config.rmdir()
    before = tree(line.place)
    first = line()
    after = tree(line.place)
    line("profile", "save", "work", "--endpoint", "deepseek", "--model", "deepseek-v4-pro")
    line("profile", "default", "work")
    second = line()
    line("run", "Hello", "--endpoint", "referee")
    third = line()

    assert (0, "", before) == (first.code, first.err, after)
    assert "thinkback chat --endpoint referee  try it without a key" in first.out
    assert "thinkback chat                     choose an endpoint, and begin a chat" in first.out
    assert "begin a chat (profile work)" in second.out
    assert "--continue" not in first.out + second.out
    assert "thinkback chat --continue  go on with the session used last" in third.out
    assert "list 1 session\n" in third.out
    assert max(len(shown.out.splitlines()) for shown in (first, second, third)) < 10


def test_the_dialogue_ends_with_a_default_profile(empty: Command) -> None:
    """Keys are named, and never shown; the next chat asks nothing."""
    with Terminal(empty.quick_line("chat"), empty.environment) as terminal:
        terminal.wait_for("Endpoint, by number or name [1]:")
        assert "Keys that were found: DEEPSEEK_API_KEY (environment)." in terminal.text
        assert f"1  deepseek  {', '.join(MODELS[:3])}" in terminal.text
        terminal.send("nosuch\r")
        terminal.wait_for("no endpoint is called 'nosuch'")
        terminal.send("\r")
        terminal.wait_for(f"Model [{MODELS[0]}]:")
        terminal.send("deepsek\r")
        terminal.wait_for("No model deepsek is known at deepseek. Use it? [y/N]:")
        terminal.send("n\r")
        terminal.wait_for(f"Model [{MODELS[0]}]:")
        terminal.send("\r")
        terminal.wait_for("new session chat-")
        assert KEY not in terminal.everything
        terminal.send("\x04")
        assert 0 == terminal.wait_for_end()

    assert "deepseek" == empty("profile", "default").out.strip()
    assert f"model     {MODELS[0]}" in empty("profile", "show", "deepseek").out
    assert "begin a chat (profile deepseek)" in empty().out


def test_a_key_that_is_nowhere_is_asked_for(empty: Command) -> None:
    """Without showing it; it is kept with the profile. Each endpoint that is offered stands on one line."""
    del empty.environment["DEEPSEEK_API_KEY"]
    with Terminal(empty.quick_line("chat"), empty.environment) as terminal:
        terminal.wait_for("Endpoint, by number or name [1]:")
        offered = terminal.text.partition("Keys that were found: none.")[2].partition("Any other")[0].split("\n")
        assert list(range(1, 10)) == [int(line.split()[0]) for line in offered if line.strip()]
        terminal.send("deepseek\r")
        terminal.wait_for("Model [")
        terminal.send("\r")
        terminal.wait_for("Key DEEPSEEK_API_KEY")
        terminal.send(f"{KEY}\r")
        terminal.wait_for("/help lists the commands")
        assert KEY not in terminal.everything

    assert "DEEPSEEK_API_KEY  file" in empty("keys", "list").out


def test_a_try_without_a_key_sets_nothing_up(empty: Command) -> None:
    """The stand-in is among what is offered, and answers; a session in which nothing was asked is asked for like a new
    one.
    """
    del empty.environment["DEEPSEEK_API_KEY"]
    log = written_by_hand(empty.place / "log.db")
    with Terminal(empty.quick_line("chat", "--db", log, "--continue"), empty.environment) as terminal:
        terminal.wait_for("Endpoint, by number or name [1]:")
        terminal.send("referee\r")
        terminal.wait_for("nothing is stored: `thinkback chat")
        terminal.wait_for("a stand-in, not a model")
        terminal.wait_for("session notes. /help lists the commands")

    assert "none" == empty("profile", "default").out.strip()


@pytest.mark.parametrize("answers", [[], ["deepseek"], ["deepseek", ""]], ids=["endpoint", "model", "key"])
def test_ctrl_c_leaves_nothing_behind(empty: Command, answers: list[str]) -> None:
    """Wherever it comes."""
    del empty.environment["DEEPSEEK_API_KEY"]
    with Terminal(empty.quick_line("chat"), empty.environment) as terminal:
        questions = ("Endpoint, by", "Model [", "Key DEEP")
        for question, answer in zip(questions, answers, strict=False):
            terminal.wait_for(question)
            terminal.send(f"{answer}\r")
        terminal.wait_for(questions[len(answers)])
        assert 130 == terminal.interrupt()

    assert set() == tree(empty.place)


def test_without_a_terminal_a_sentence_says_what_does_it(line: Inside) -> None:
    """And nothing is made."""
    before = tree(line.place)
    done = line("chat", stdin=b"Hi\n")

    assert (2, "", before) == (done.code, done.out, tree(line.place))
    said = "no endpoint is set: `thinkback chat` on a terminal asks for one, or give --endpoint and --model"
    assert said == done.err.removeprefix("thinkback: ").strip()
    log = written_by_hand(line.place / "log.db")
    for which in ("--continue", "--session=notes"):
        done = line("chat", which, "--db", log, stdin=b"Hi\n")
        assert (2, "") == (done.code, done.out)
        assert f"`thinkback chat --db {log} --session notes` on a terminal asks for one, or give" in done.err


def test_a_session_that_is_there_needs_no_dialogue(line: Inside) -> None:
    """It goes on where its last request went; one that nobody knows does not."""
    line("run", "Hello", "--session", "try", "--endpoint", "referee")

    assert 0 == line("chat", "--session", "try", stdin=b"Hi\n").code
    assert 0 == line("chat", "--continue", stdin=b"Hi\n").code
    assert 2 == line("chat", "--session", "other", stdin=b"Hi\n").code
    with thinkback.open(line.place / "data" / "thinkback" / "thinkback.db") as store:
        assert ["try"] == [info.name for info in store.sessions()]
