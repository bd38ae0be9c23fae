"""What the chat shows of thinking, and that showing has no influence on what is stored and sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest

import thinkback
from tests.cli.chat.talks import messages
from tests.cli.chat.terminal import LIGHT, Terminal
from tests.cli.command import PLACE, Command
from thinkback.model.blocks import ThinkingBlock
from thinkback_referee import Referee, Stall, Step

Open: TypeAlias = Callable[..., Terminal]
FULL = ("--set", "display.reasoning=full")


@pytest.fixture
def talk(command: Command, referee: Referee) -> Iterator[Open]:
    """Opens a chat in a terminal; its session is ``talk``."""
    with ExitStack() as stack:

        def start(*given: str, **looks: Any) -> Terminal:
            line = command.quick_line("chat", "--session", "talk", *given, *PLACE, referee.base_url("deepseek"))
            environment = {**command.environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
            terminal = stack.enter_context(Terminal(line, environment, **looks))
            ready(terminal)
            return terminal

        yield start


def ready(terminal: Terminal) -> None:
    """Wait for an empty prompt."""
    terminal.wait_until(lambda: terminal.lines[terminal.cursor[0]] == ">" and " · " in terminal.lines[-1], "a prompt")


def enter(terminal: Terminal, line: str, shown: str) -> None:
    """Type a line, wait for what comes of it and for the next prompt."""
    terminal.send(f"{line}\r")
    terminal.wait_for(shown)
    ready(terminal)


def brightness(colour: tuple[int, int, int]) -> float:
    """As the eye sees it."""
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


def test_modes_act_at_the_next_turn_and_change_nothing_else(talk: Open, command: Command, referee: Referee) -> None:
    """hidden by mode or by ``reasoning.includeInResponse``; stored and sent all the same."""
    thoughts = ("A full thought.", "A collapsed thought.", "A hidden thought.", "A silent thought.")
    answers = ("One.", "Two.", "Three.", "Four.")
    referee.push(*(Step(reasoning=thought, text=answer) for thought, answer in zip(thoughts, answers, strict=True)))
    terminal = talk(rows=40)
    enter(terminal, "/set reasoning.includeInContext true", "set by")
    enter(terminal, "/set display.reasoning full", "full (set")
    enter(terminal, "a", "One.")
    enter(terminal, "/set display.reasoning collapsed", "collapsed (set")
    enter(terminal, "b", "Two.")
    enter(terminal, "/set display.reasoning hidden", "hidden (set")
    enter(terminal, "c", "Three.")
    enter(terminal, "/set display.reasoning full", "full (set")
    enter(terminal, "/set reasoning.includeInResponse false", "false (set")
    enter(terminal, "d", "Four.")
    terminal.send("\x04")
    assert 0 == terminal.wait_for_end()

    assert [True, False, False, False] == [thought in terminal.everything for thought in thoughts]
    assert 2 == len(re.findall(r"for (?:less than a second|\d+ s), ", terminal.everything))
    with thinkback.open(command.db, rules={}, settings={}) as store:
        kept = [commit.value for commit in store.session("talk").log(kinds=("reasoning",))]
    assert list(thoughts) == [value.thought for value in kept if isinstance(value, ThinkingBlock)]
    sent = [one.get("reasoning_content") for one in messages(referee) if one["role"] == "assistant"]
    assert list(thoughts[:3]) == sent


def test_an_answer_of_the_terminal_that_comes_late_is_no_typing(talk: Open, referee: Referee) -> None:
    """A slow line: what is typed around the answer is kept, and the shade is as it says."""
    referee.push(Step(reasoning="A thought.", text="Yes."))
    terminal = talk(*FULL, background=None)

    red, green, blue = (f"{part:02x}" for part in LIGHT)
    terminal.send(f"hel\x1b]11;rgb:{red}/{green}/{blue}\x1b\\lo")
    terminal.wait_for("> hello")
    assert "rgb" not in terminal.text
    enter(terminal, "", "Yes.")

    assert 150 < brightness(terminal.cell("A thought").rgb) < brightness(LIGHT)


def test_a_session_that_is_opened_again_looks_as_it_did(talk: Open, referee: Referee) -> None:
    """Thinking on its shade, answers as Markdown."""
    referee.push(Step(reasoning="A thought.", text="A **bold** word.\n\n- item"))
    first = talk(*FULL)
    enter(first, "Hi", "• item")
    first.send("\x04")
    first.wait_for_end()
    before = first.text[first.text.index("> Hi") :].rstrip("> \n")

    again = talk()

    assert "A bold word.\n\n • item" in again.text
    assert again.cell("A thought").italic
    assert "default" != again.cell("A thought").background
    assert before.partition("\n")[0] in again.text


def test_time_goes_by_while_the_model_is_silent(talk: Open, referee: Referee) -> None:
    """The line that says what is waited for counts by itself."""
    referee.push(Step(reasoning="A thought.", text="Yes.", fault=Stall(60.0, after=0)))
    terminal = talk()

    terminal.send("Hi\r")
    counted = re.compile(r"Working: deepseek-v4-pro, [1-9]\d* s")
    terminal.wait_until(lambda: counted.search(terminal.text) is not None, "a count of seconds")
    terminal.send("\x03")
    terminal.wait_for("(partial: interrupted)")
    ready(terminal)
    assert "Working" not in terminal.text


def test_ctrl_o_unfolds_the_thinking_under_way(talk: Open, referee: Referee) -> None:
    """What came before is shown and the rest as it comes; at the prompt the last thought is, once while it is there."""
    thought = " ".join(f"word{at}" for at in range(120))
    referee.push(Step(reasoning=thought, text="Yes.", pace=0.02, fault=Stall(60.0, after=30)))
    terminal = talk(columns=100, rows=40)
    terminal.send("Hi\r")
    terminal.wait_for("Ctrl-C stops")
    assert "word0 " not in terminal.text
    terminal.send("\x0fwords for later")
    terminal.wait_for("word0 word1 ")
    terminal.send("\x03")
    terminal.wait_for("> words for later")
    shown = terminal.text.count("word0 ")
    terminal.send("\x0f!")
    terminal.wait_for("> words for later!")
    assert shown == terminal.text.count("word0 ")
    terminal.send("\x03\x03")
    terminal.wait_for("Ctrl-D leaves")
    enter(terminal, "/clear", "the conversation goes on")
    assert "word0 " not in terminal.text
    terminal.send("\x0f\x0f!")
    terminal.wait_for("> !")
    assert shown == terminal.text.count("word0 ")


def test_what_does_not_fit_is_paged_and_clear_empties_the_screen(talk: Open, command: Command) -> None:
    """/why by the person's pager, where it has more rows than the window; /clear takes what has left the screen too."""
    command.environment["PAGER"] = "sed s/^/paged:/"
    terminal = talk(columns=40, rows=9)
    enter(terminal, "Hi", "You said")
    enter(terminal, "/why", "paged:")
    terminal.resize(120, 60)
    enter(terminal, "/why", "\nsession talk, last request: ")
    enter(terminal, "/clear", "the conversation goes on")

    assert ["the conversation goes on; /new begins another", ">"] == terminal.everything.split("\n")[:2]


def test_leaving_says_how_to_go_on_and_an_answer_is_copied(talk: Open, referee: Referee) -> None:
    """exit without a slash leaves; the copy goes to the terminal's clipboard."""
    referee.push(Step(text="Yes."))
    terminal = talk()
    enter(terminal, "Hi", "Yes.")
    enter(terminal, "/copy", "4 characters")
    terminal.send("exit\r")
    assert 0 == terminal.wait_for_end()
    assert b"\x1b]52;c;WWVzLg==\x07" in terminal.received
    assert "--session talk` continues this session" in " ".join(terminal.text.split())
    assert 1 == len(referee.requests)
