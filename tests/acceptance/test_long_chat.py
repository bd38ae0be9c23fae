"""A long working day in ``thinkback chat`` itself, in a terminal, with the strictest of the hosts."""

from __future__ import annotations

import os
import signal

import thinkback
from tests.cli.chat.terminal import Terminal
from tests.cli.command import KEY, Command
from tests.cli.conftest import command as command
from thinkback.model.commits import TurnEnded
from thinkback_referee import Referee, Stall, Step

TURNS = 30
ANTHROPIC, SIBLING, OPENAI = "claude-opus-5-5", "claude-sonnet-5", "gpt-5.4"
APP = 'name = "Looker"\nsystem_prompt = "Look it up."\ntools = ["read", "list"]\n'
QUESTIONS = ("What does the file notes.txt read?", "What do both the files notes.txt and more.txt read?")


class Day:
    """A chat that its user comes back to."""

    def __init__(self, command: Command, referee: Referee) -> None:
        self.command, self.referee = command, referee
        self.workspace = command.place / "work"
        self.workspace.mkdir()
        (self.workspace / "notes.txt").write_text("Turn left.\n", encoding="utf-8")
        (command.config / "apps").mkdir(parents=True)
        (command.config / "apps" / "looker.toml").write_text(APP, encoding="utf-8")
        self.turns = 0
        self.terminal = self.open("--session", "long", "--app", "looker")

    def open(self, *arguments: str) -> Terminal:
        """The chat in the workspace, with Anthropic."""
        url = self.referee.base_url("anthropic")
        place = ("--endpoint", "anthropic", "--model", ANTHROPIC, "--base-url", url)
        line = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(self.workspace)]
        keys = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
        environment = {**self.command.environment, **keys}
        terminal = Terminal([*line, *self.command.line("chat", *arguments, *place)], environment)
        terminal.wait_for(f" {ANTHROPIC} ")
        return terminal

    def talk(self, count: int) -> None:
        """So many turns, each with tools."""
        for _ in range(count):
            self.turns += 1
            self.enter(f"{self.turns}: {QUESTIONS[self.turns % len(QUESTIONS)]}")
            self.ready()

    def enter(self, line: str) -> None:
        """Type a line at the prompt, and see it there."""
        self.ready()
        self.terminal.send(line)
        self.terminal.wait_until(lambda: line[:40] in "".join(self.terminal.lines), f"{line!r} at the prompt")
        self.terminal.send("\r")

    def ready(self) -> None:
        """Wait until the prompt is back."""
        self.terminal.wait_until(lambda: self.typed() == ">", "an empty prompt")

    def typed(self) -> str:
        """The last line on the screen that a person typed, or may type in."""
        return next((line for line in reversed(self.terminal.lines) if line.startswith(">")), "")

    def stalled(self) -> None:
        """A question whose answer stops in the middle of its reasoning."""
        self.turns += 1
        self.referee.push(Step(reasoning="I begin to think about it.", text="Never.", fault=Stall(600, after=6)))
        requests = len(self.referee.requests)
        self.enter(f"{self.turns}: And what is this?")
        self.terminal.wait_until(lambda: len(self.referee.requests) > requests, "the request")
        self.terminal.wait_until(
            lambda: "I begin" in self.terminal.text.rpartition("And what is this?")[2], "a thought"
        )


def test_a_long_chat_is_never_refused(command: Command, referee: Referee) -> None:
    """Thirty turns with tools: another model, another endpoint, Ctrl-C, a checkpoint, kill -9 and a resume.

    The referee refuses nothing, and every turn is in the log with its end.
    """
    day = Day(command, referee)
    day.enter("/set reasoning.effort high")
    day.talk(6)
    day.enter(f"/model {SIBLING}")
    day.talk(3)
    day.stalled()
    day.terminal.send("\x03")
    day.talk(3)
    day.enter("/compact --tail 1")
    day.terminal.wait_for("checkpoint ")
    day.talk(4)
    day.enter(f"/endpoint openai {OPENAI} --base-url {referee.base_url('openai')}")
    day.talk(4)
    day.stalled()
    os.kill(day.terminal.process.pid, signal.SIGKILL)
    day.terminal.wait_for_end()
    day.terminal.close()
    day.terminal = day.open("--continue")
    day.talk(8)
    day.enter("/quit")
    assert 0 == day.terminal.wait_for_end()
    day.terminal.close()

    assert TURNS == day.turns
    assert [] == [found.verdict.reason for found in referee.requests if not found.verdict.ok]
    assert {200} == {exchange.status for exchange in referee.requests}
    assert "notes.txt (11 bytes)" in referee.requests[-1].raw.decode()
    assert {"anthropic", "openai"} == {exchange.host for exchange in referee.requests}
    with thinkback.open(command.db, rules={}, settings={}) as store:
        log = store.session("long").log()
    ends = [commit.value.state for commit in log if isinstance(commit.value, TurnEnded)]
    # The end of the killed turn was recorded by the program that went on.
    assert (TURNS - 2, 2) == (ends.count("completed"), ends.count("interrupted"))
    assert 1 == sum(commit.kind == "compaction" for commit in log)
