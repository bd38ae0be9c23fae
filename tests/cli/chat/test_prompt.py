"""The input line, in a real terminal: keys, history, completion, several lines, and Ctrl-C in the middle of a turn."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

import thinkback
from tests.cli.chat.talks import asked, messages
from tests.cli.chat.terminal import Terminal
from tests.cli.command import KEY, PLACE, Command
from thinkback.cli.chat.prompt import PrivateHistory, holds_key, trim
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.commits import Commit, TurnEnded
from thinkback_referee import HttpError, Referee, Stall, Step

Open: TypeAlias = Callable[..., Terminal]
ENTER, ESCAPE, TAB, UP, CTRL_C, CTRL_D, CTRL_L, CTRL_T = "\r", "\x1b", "\t", "\x1b[A", "\x03", "\x04", "\x0c", "\x14"
STATUS = "deepseek-v4-pro"


@pytest.fixture
def talk(command: Command, referee: Referee) -> Iterator[Open]:
    """Opens a chat in a terminal; its session is ``talk``."""
    with ExitStack() as stack:

        def start(*arguments: str, **environment: str) -> Terminal:
            given = arguments or ("--session", "talk", *PLACE, referee.base_url("deepseek"))
            everything = {**command.environment, **environment}
            terminal = stack.enter_context(Terminal(command.quick_line("chat", *given), everything))
            terminal.wait_for(STATUS)
            return terminal

        yield start


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A chat in which something was said, for commands that go on from wherever it stands."""
    command = Command(tmp_path_factory.mktemp("talked"))
    with Referee() as referee:
        line = command.quick_line("chat", "--session", "talk", *PLACE, referee.base_url("deepseek"))
        inside = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(command.place), *line]
        with Terminal(inside, command.environment, columns=120, rows=60) as terminal:
            terminal.wait_for(STATUS)
            terminal.send(f"Hello{ENTER}")
            terminal.wait_for("You said:")
            ready(terminal)
            yield terminal


def history(command: Command) -> Path:
    """Where what was typed is kept."""
    return command.place / ".local" / "state" / "thinkback" / "history"


def stored(command: Command, kind: str) -> list[Commit]:
    """The commits of a kind of the session."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        return store.session("talk").log(kinds=(kind,))


def states(command: Command) -> list[str]:
    """How the turns ended."""
    ends = stored(command, "turn_ended")
    return [commit.value.state for commit in ends if isinstance(commit.value, TurnEnded)]


def ready(terminal: Terminal) -> None:
    """Wait until the prompt is back: the last line that begins with its mark is empty, and the status stands."""
    terminal.wait_until(
        lambda: (
            [line for line in terminal.lines if line.startswith(">")][-1:] == [">"] and STATUS in terminal.lines[-1]
        ),
        "an empty prompt",
    )


def test_a_turn_streams_and_the_status_follows(talk: Open, referee: Referee) -> None:
    """Reasoning, then the answer; then model, effort, context, reasoning tokens and cache hits under the prompt."""
    referee.push(Step(reasoning="I wonder.", text="I know."), Step(text="Again."))
    terminal = talk()

    terminal.send(f"Hello{ENTER}")
    terminal.wait_for("I know.")
    ready(terminal)
    terminal.send(f"/set reasoning.effort high{ENTER}")
    terminal.wait_for("effort high")
    terminal.send(f"More{ENTER}")
    terminal.wait_for("Again.")
    terminal.wait_for("cached")

    assert "Thought for" in terminal.text
    assert f"{STATUS} · effort high · context " in terminal.lines[-1]
    assert "/1M · reasoning " in terminal.lines[-1]
    terminal.send(CTRL_D)
    assert 0 == terminal.wait_for_end()


def test_several_lines_are_one_message(talk: Open, referee: Referee) -> None:
    """A backslash at the end, or Alt-Enter, begins a line; Enter sends."""
    terminal = talk()

    terminal.send(f"one\\{ENTER}two{ESCAPE}{ENTER}three{ENTER}")
    terminal.wait_for("You said:")

    assert ["one\ntwo\nthree"] == asked(referee)


def test_a_paste_of_10000_lines_is_one_message(talk: Open, referee: Referee) -> None:
    """In brackets, as terminals paste: folded while it is typed, and sent whole within seconds."""
    text = "\n".join(f"line {at} of a paste" for at in range(10_000))
    terminal = talk()

    terminal.send(f"\x1b[200~{text}\x1b[201~")
    terminal.wait_for("> [pasted 10000 lines]", 5)
    terminal.send(f"!{ENTER}")
    terminal.wait_for("You said:", 10)

    assert [f"{text}!"] == asked(referee)


def test_the_history_is_private_and_survives(talk: Open, command: Command) -> None:
    """Up brings back what was typed in the chat before; a command with a key in it was never kept."""
    terminal = talk()
    terminal.send(f"/usage turn{ENTER}")
    ready(terminal)
    terminal.send(f"/endpoint {KEY}{ENTER}")
    ready(terminal)
    terminal.send(CTRL_D)
    terminal.wait_for_end()

    kept = history(command)
    assert 0o600 == kept.stat().st_mode & 0o777
    assert "/usage turn" in kept.read_text()
    assert KEY not in kept.read_text()
    again = talk()
    again.send(UP)
    again.wait_for("> /usage turn")


def test_a_history_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    """Somebody copied it there, or another program made it."""
    file = tmp_path / "history"
    file.write_text("")
    file.chmod(0o644)
    PrivateHistory(str(file)).store_string("hello")
    assert 0o600 == file.stat().st_mode & 0o777


def test_a_long_history_forgets_its_older_half(tmp_path: Path) -> None:
    """At the beginning of an entry, and as private as before; a short one is left alone."""
    file = tmp_path / "history"
    history = PrivateHistory(str(file))
    for at in range(100):
        history.store_string(f"entry {at}\nof two lines")
    whole = file.read_bytes()

    trim(file, len(whole))
    assert whole == file.read_bytes()
    trim(file, len(whole) - 1)
    entries = list(history.load_history_strings())

    assert "entry 99\nof two lines" == entries[0]
    assert 40 < len(entries) < 60
    assert all(entry.endswith("\nof two lines") for entry in entries)
    assert 0o600 == file.stat().st_mode & 0o777
    assert ["history"] == [one.name for one in tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("line", "is_private"),
    [
        ("/set reasoning.effort high", False),
        ("/why 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", False),
        ("/endpoint deepseek --key-env DEEPSEEK_API_KEY", False),
        ("/export ~/some/long/path/to/a/file/with-2-numbers.jsonl --complete", False),
        ("what is the key sk-0123456789abcdef", False),
        ("/endpoint openai sk-proj-0123456789abcdef", True),
        ("/set api_key abcdefgh12345678", True),
        ("/set x AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", True),
    ],
)
def test_a_command_with_a_key_is_told_from_others(line: str, is_private: bool) -> None:
    """By what keys look like, and by what stands before them; messages are kept as they are."""
    assert is_private == holds_key(line)


def test_completion_offers_commands_keys_and_values(talk: Open) -> None:
    """While a command is typed; Tab takes one, Enter takes the one that is chosen without sending the line."""
    terminal = talk()

    terminal.send("/prof")
    terminal.wait_for("profile  Save this session's settings as a")
    terminal.send(CTRL_C)
    terminal.send("/set reasoning.eff")
    terminal.wait_for(" reasoning.effort")
    terminal.send(TAB)
    terminal.wait_for("> /set reasoning.effort")
    terminal.send(" ")
    terminal.wait_for(" minimal")
    terminal.send("lo")
    terminal.wait_until(lambda: " minimal" not in terminal.text, "fewer words")
    terminal.send(TAB)
    terminal.wait_for("> /set reasoning.effort low")
    terminal.send(ENTER)
    terminal.send(ENTER)

    terminal.wait_for("effort low")


def test_ctrl_c_at_the_prompt_clears_it(talk: Open, referee: Referee) -> None:
    """What was typed is gone, and nothing is sent; Ctrl-D leaves only an empty line."""
    terminal = talk()
    terminal.send("never sent")
    terminal.wait_for("> never sent")
    terminal.send(CTRL_C)
    ready(terminal)
    terminal.send(f"sent{ENTER}")
    terminal.wait_for("You said:")

    assert ["sent"] == asked(referee)


def interrupt_and_go_on(terminal: Terminal, at: str) -> None:
    """Ctrl-C in the first turn once ``at`` stands there, then a turn that is answered."""
    terminal.send(f"One{ENTER}")
    terminal.wait_for(at)
    terminal.send(CTRL_C)
    terminal.wait_for("partial: interrupted")
    ready(terminal)
    terminal.send(f"Two{ENTER}")
    terminal.wait_for("Fine.")
    ready(terminal)


def test_ctrl_c_in_the_middle_of_reasoning(talk: Open, command: Command, referee: Referee) -> None:
    """The turn ends as interrupted, what was thought is kept and shown as partial, and the chat goes on."""
    referee.push(Step(reasoning="I was thinking. " * 20, text="Never.", fault=Stall(60, after=4)), Step(text="Fine."))
    interrupt_and_go_on(talk(), "I was")

    assert ["interrupted", "completed"] == states(command)
    thought = stored(command, "reasoning")[0].value
    assert isinstance(thought, ThinkingBlock)
    assert thought.thought.startswith("I was")
    assert ["user", "user"] == [one["role"] for one in messages(referee)]


def test_ctrl_c_in_the_middle_of_an_answer(talk: Open, command: Command, referee: Referee) -> None:
    """The partial answer is kept, and is not sent back."""
    referee.push(Step(text="Half an answer. " * 40, fault=Stall(60, after=6)), Step(text="Fine."))
    interrupt_and_go_on(talk(), "Half an")

    assert ["interrupted", "completed"] == states(command)
    answer = stored(command, "assistant")[0].value
    assert isinstance(answer, Text)
    assert answer.text.startswith("Half an")
    assert "Half" not in str(messages(referee))


def test_an_impatient_ctrl_c_loses_nothing(talk: Open, command: Command, referee: Referee) -> None:
    """Pressed again while the turn is being stored, it waits for that."""
    referee.push(Step(reasoning="I was thinking. " * 20, text="Never.", fault=Stall(60, after=4)))
    terminal = talk()
    terminal.send(f"One{ENTER}")
    terminal.wait_for("I was")
    terminal.send(CTRL_C + CTRL_C)
    terminal.wait_for("partial: interrupted")
    ready(terminal)

    assert ["interrupted"] == states(command)


def test_a_window_that_is_closed_in_the_middle_of_a_turn_loses_nothing(
    talk: Open, command: Command, referee: Referee
) -> None:
    """The turn ends as interrupted, with what was there."""
    referee.push(Step(reasoning="I was thinking. " * 20, text="Never.", fault=Stall(60, after=4)))
    terminal = talk()
    terminal.send(f"One{ENTER}")
    terminal.wait_for("I was")
    os.kill(terminal.process.pid, signal.SIGHUP)

    assert 128 + signal.SIGHUP == terminal.wait_for_end()
    assert ["interrupted"] == states(command)
    assert stored(command, "reasoning")


def test_ctrl_d_right_behind_an_answer_leaves(talk: Open, referee: Referee) -> None:
    """Typed before the prompt is there, it is there for the prompt."""
    referee.push(Step(reasoning="I think. " * 10, text="Done.", pace=0.01))
    terminal = talk()
    terminal.send(f"One{ENTER}")
    terminal.wait_for_written("Ctrl-C stops")
    terminal.send(CTRL_D)

    assert 0 == terminal.wait_for_end()
    assert "Done." in terminal.everything


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_chat_that_is_ended_at_its_prompt_leaves_the_terminal_as_it_was(talk: Open, number: signal.Signals) -> None:
    """Whoever sits there can type on."""
    terminal = talk()
    assert not terminal.is_in_line_mode
    os.kill(terminal.process.pid, number)

    assert 128 + number == terminal.wait_for_end()
    assert terminal.is_in_line_mode


def test_what_is_typed_during_a_turn_stands_at_the_next_prompt(talk: Open, referee: Referee) -> None:
    """And not in the middle of the answer."""
    referee.push(Step(reasoning="I think. " * 10, text="Done.", pace=0.01))
    terminal = talk()
    terminal.send(f"One{ENTER}")
    terminal.wait_for_written("Ctrl-C stops")
    terminal.send("typed ahead")
    terminal.wait_for("Done.")
    terminal.wait_for("> typed ahead")

    assert 1 == terminal.everything.count("typed ahead")


def test_an_error_is_shown_and_the_chat_goes_on(talk: Open, referee: Referee) -> None:
    """With what to do next."""
    referee.push(Step(fault=HttpError(400, {"error": {"message": "no such thing"}})), Step(text="Fine."))
    terminal = talk()
    terminal.send(f"One{ENTER}")
    terminal.wait_for("no such thing")
    ready(terminal)
    terminal.send(f"Two{ENTER}")

    terminal.wait_for("Fine.")


def test_edit_puts_the_last_message_into_the_line(talk: Open, referee: Referee) -> None:
    """It is changed there, asked on a branch of its own; Ctrl-C gives it up."""
    terminal = talk()
    terminal.send(f"One{ENTER}")
    terminal.wait_for("You said:")
    ready(terminal)
    terminal.send(f"/edit{ENTER}")
    terminal.wait_for("edit> One")
    terminal.send(CTRL_C)
    terminal.wait_for("given up")
    ready(terminal)
    terminal.send(f"/edit{ENTER}")
    terminal.wait_until(lambda: 2 == terminal.text.count("edit> One"), "the line again")
    terminal.send(f" and two{ENTER}")
    terminal.wait_for('You said: "One and two".')

    assert ["One", "One and two"] == asked(referee)


def test_edit_keeps_the_lines_of_the_last_message(talk: Open, referee: Referee) -> None:
    """All of them stand there to be changed."""
    terminal = talk()
    terminal.send(f"one\\{ENTER}two{ENTER}")
    terminal.wait_for("You said:")
    ready(terminal)
    terminal.send(f"/edit{ENTER}")
    terminal.wait_for("edit> one")
    terminal.send(f"\\{ENTER}three{ENTER}")
    terminal.wait_until(lambda: 2 == len(referee.requests), "the second request")

    assert ["one\ntwo", "one\ntwo\nthree"] == asked(referee)


def test_a_state_directory_that_cannot_be_written_ends_nothing(talk: Open, command: Command, referee: Referee) -> None:
    """The history of the chat under way is there all the same."""
    (command.place / ".local").write_text("not a directory")
    terminal = talk()
    terminal.send(f"Hello{ENTER}")
    terminal.wait_for("You said:")
    ready(terminal)
    terminal.send(UP)

    terminal.wait_for("> Hello\n")


def test_ctrl_t_changes_how_thinking_is_shown(talk: Open, referee: Referee) -> None:
    """From collapsed to full to hidden, from the next turn on."""
    referee.push(*(Step(reasoning=f"Thought {at}.", text=f"Answer {at}.") for at in range(3)))
    terminal = talk()
    for at in range(3):
        terminal.send(f"Go{ENTER}")
        terminal.wait_for(f"Answer {at}.")
        ready(terminal)
        terminal.send(CTRL_T)

    shown = terminal.everything
    assert "Thought 0." not in shown
    assert "Thought 1." in shown
    assert 2 == shown.count("Thought for")


def test_a_killed_chat_resumes(talk: Open, command: Command, referee: Referee) -> None:
    """What was stored is shown, and what was cut off is no obstacle for the next turn."""
    referee.push(Step(reasoning="I think.", text="First answer."), Step(text="Never.", fault=Stall(60, after=1)))
    terminal = talk()
    terminal.send(f"One{ENTER}")
    terminal.wait_for("First answer.")
    ready(terminal)
    terminal.send(f"Two{ENTER}")
    terminal.wait_until(lambda: 2 == len(referee.requests), "the second request")
    os.kill(terminal.process.pid, signal.SIGKILL)
    terminal.wait_for_end()

    referee.push(Step(text="Third answer."))
    again = talk("--continue")
    again.wait_for("First answer.")
    assert "> One" in again.text
    assert "the last message has no complete answer" in again.text
    assert "Thought for" in again.text
    again.send(f"Three{ENTER}")
    again.wait_for("Third answer.")

    assert [200, 200, 200] == [exchange.status for exchange in referee.requests]


def test_a_chat_without_a_model_says_what_to_do(command: Command, referee: Referee) -> None:
    """Endpoint and model can be said there as well, in a session that a program made without them."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        store.session("talk")
    with Terminal(command.quick_line("chat", "-s", "talk", "--endpoint", "xai"), command.environment) as terminal:
        terminal.wait_for("no model yet: /endpoint ID, /model NAME")
        terminal.send(f"Hello{ENTER}")
        terminal.wait_for("no endpoint or model is set: use /endpoint ID, then /model NAME")
        terminal.send(f"/endpoint deepseek --base-url {referee.base_url('deepseek')}{ENTER}")
        terminal.wait_for("deepseek, no model yet: /model NAME")
        terminal.send(f"/model deepseek-v4-pro{ENTER}")
        terminal.wait_for("rule deepseek-v4")
        ready(terminal)
        terminal.send(f"Hello{ENTER}")
        terminal.wait_for("You said:")

    assert ["Hello"] == asked(referee)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("/set", "/set all lists every setting, /set KEY explains one"),
        ("/set reasoning.effort", "How hard the model should think"),
        ("/set reasoning.effort enormous", "allowed: none, minimal"),
        ("/profile", "no profiles yet"),
        ("/profile load nobody", "nobody"),
        ("/model", "deepseek deepseek-v4-pro ("),
        ("/endpoint nowhere", "no endpoint is called"),
        ("/app", "translator"),
        ("/app nonsense", "there is no app"),
        ("/why", "last request: deepseek"),
        ("/why ffffffff", "ffffffff"),
        ("/think", "No tool is needed"),
        ("/think 7", "allowed is last, or a number from 1 to "),
        ("/usage", "tokens of 1,000,000; stored: about"),
        ("/usage weekly", "allowed are model, turn, step"),
        ("/search tool", "No tool is needed"),
        ("/search", "usage: /search"),
        ("/branch", "commits"),
        ("/branch a..b", "cannot be the name"),
        ("/switch nowhere", "there is no branch"),
        ("/fork talk", "thinkback:"),
        ("/retry", "goes back"),
        ("/edit Otherwise", 'You said: "Otherwise".'),
        ("/compact", "there is nothing new to summarise"),
        ("/export", "usage: /export"),
        ("/export kept.md", "to kept.md"),
        ("/sessions", "turns"),
        ("/resume nobody", "there is no session"),
        ("/help", "Send the last message again"),
        ("/nonsense", "there is no command /nonsense"),
    ],
)
def test_commands_on_a_terminal(talked: Terminal, line: str, shown: str) -> None:
    """What each shows or refuses, after which the prompt is back."""
    talked.send(CTRL_L)
    talked.wait_until(lambda: talked.lines[0] == ">", "an empty screen")
    talked.send(f"{line}{ENTER}")
    talked.wait_until(lambda: shown in " ".join(talked.text.split()), shown)
    ready(talked)


def test_any_script_is_typed_sent_and_shown(talk: Open, referee: Referee) -> None:
    """Right to left, wide, and combined letters, in a window that is made narrow meanwhile."""
    terminal = talk()
    terminal.send("שלום 你好 é ")
    terminal.resize(50, 20)
    terminal.send(f"مرحبا{ENTER}")
    terminal.wait_for("You said:")

    assert ["שלום 你好 é مرحبا"] == asked(referee)


def test_the_key_that_suspends_is_no_part_of_a_message(talk: Open, referee: Referee) -> None:
    """It is the shell's; where there is none to stop the chat, nothing happens."""
    terminal = talk()
    terminal.send("Hello\x1a")
    terminal.wait_for("> Hello")
    terminal.send(f" there{ENTER}")
    terminal.wait_for("You said:")

    assert ["Hello there"] == asked(referee)


def test_a_dumb_terminal_gets_plain_text(command: Command, referee: Referee) -> None:
    """No colour and no drawing over where the terminal cannot do it."""
    referee.push(Step(reasoning="I wonder.", text="I know."))
    line = command.quick_line("chat", *PLACE, referee.base_url("deepseek"))
    with Terminal(line, {**command.environment, "TERM": "dumb"}) as terminal:
        terminal.wait_for(">")
        terminal.send(f"Hello{ENTER}")
        terminal.wait_for("I know.")
        terminal.send("never sent")
        terminal.wait_for("never sent")
        terminal.send(CTRL_C)
        terminal.wait_until(lambda: terminal.text.rstrip().endswith("\n>"), "an empty line")
        terminal.send(f"/quit{ENTER}")

        assert 0 == terminal.wait_for_end()
        assert b"\x1b[3m" not in terminal.received
        assert 1 == len(referee.requests)


def test_hostile_names_do_not_reach_the_terminal(talk: Open, command: Command) -> None:
    """A session's name is data too."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        store.session("evil\x1b]0;title\x07name")
    terminal = talk()
    terminal.send(f"/sessions{ENTER}")
    terminal.wait_for("name")
    ready(terminal)
    terminal.send("/resume ev")
    terminal.wait_for("evil")

    assert "" == terminal.title
