"""A long working day in every dialect: thirty turns with tools, and all that may happen to a session in between.

The model is switched at the endpoint, then the endpoint too, and back; a turn is interrupted; the history is compacted;
the program is killed in a tool and in a stream, and another goes on with its log. The referee refuses nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.hosts import OF, every_dialect, readable, returned
from tests.conformance.moves import KEY, Place
from thinkback.model.blocks import Text
from thinkback.model.deltas import ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.session.reply import Reply
from thinkback.session.session import Session
from thinkback.session.store import open
from thinkback_referee import Referee, Stall, Step
from thinkback_referee.bedrock import API_KEY

TURNS = 30
CITIES = ("Oslo", "Rome", "Bern", "Bonn", "Graz", "Lyon", "Turku")
QUESTIONS = (
    "What is the weather in {}?",
    "What are both the weather and the time in {}?",
    "Look up the weather and then the time in {}.",
)
# Another model of the same host.
SIBLINGS = {
    "openai-chat": "deepseek-v4-flash",
    "openai-responses": "gpt-5.5",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-3.1-pro-preview",
    "gemini-interactions": "gemini-3.1-pro-preview",
    "bedrock": "us.anthropic.claude-opus-4-6-v1:0",
    "mistral": "mistral-small-latest",
    "ollama": "qwen3:4b",
    "cohere": "command-a-plus-05-2026",
}
# What the house model says of itself when reasoning that it should have had back was not there.
FORGOTTEN = "I have lost my notes"
KNOWN = "still known"
# Asked again beside the result of a call that was cut off, it looks for notes on the new question.
INTERRUPTED = "This call was interrupted"


def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: 7 degrees"


def clock(city: str) -> str:
    """The time in a city."""
    return f"{city}: noon"


class Day:
    """A session with one log, that programs come to and leave."""

    def __init__(self, log: Path, referee: Referee, place: Place) -> None:
        self.log, self.referee, self.place = log, referee, place
        self.away = OF["anthropic" if place.dialect != "anthropic" else "openai-responses"]
        self.turns = 0
        self.killed = 0
        self.checked = 0

    def where(self, place: Place, model: str = "") -> dict[str, Any]:
        """The options that lead to a host, and to another of its models."""
        key = API_KEY if place.dialect == "bedrock" else KEY
        url = self.referee.base_url(place.host)
        return {"endpoint": place.endpoint, "model": model or place.model, "base_url": url, "api_key": key}

    def program(self, *work: Callable[[Session], object]) -> None:
        """One program: it opens the log, does its work, and ends in good order."""
        with open(self.log) as store:
            session = store.session("long", **self.where(self.place))
            session.set("reasoning.effort", "high")
            for piece in work:
                piece(session)

    def talk(self, count: int) -> Callable[[Session], object]:
        """So many turns with tools, each answered."""
        return lambda session: [self.turn(session) for _ in range(count)]

    def turn(self, session: Session) -> Reply:
        """One turn: a question that takes a tool, two at once, or two in a row."""
        asked = QUESTIONS[self.turns % len(QUESTIONS)].format(CITIES[self.turns % len(CITIES)])
        self.turns += 1
        reply = session.chat(asked, tools=[weather, clock])
        assert "completed" == reply.state
        self.carried(session, reply)
        return reply

    def carried(self, session: Session, reply: Reply) -> None:
        """What was thought before each call goes back with its result, where the host wants it."""
        if session.target.rule.open_turn in ("must", "should"):
            place = OF[session.target.endpoint.dialect]
            sent = [exchange.body for exchange in self.referee.requests[-len(reply.steps) :]]
            for step, before, after in zip(reply.steps, sent, sent[1:], strict=False):
                if step.reasoning or not readable(place, "a thought"):
                    assert len(returned(place, before)) < len(returned(place, after))
                    self.checked += 1

    def answers(self) -> list[str]:
        """What the models said in the end, over the whole day."""
        with open(self.log) as store:
            commits = store.session("long", **self.where(self.place)).log()
        return [commit.value.text for commit in commits if isinstance(commit.value, Text)]

    def interrupt(self, session: Session) -> None:
        """A turn that its user ends in the middle."""
        self.turns += 1
        with session.stream("What is the weather in Bergen?", tools=[weather, clock]) as stream:
            next(delta for delta in stream if isinstance(delta, ReasoningDelta | TextDelta | ToolCallDelta))
        assert "interrupted" == stream.reply.state

    def compact(self, session: Session) -> None:
        """A checkpoint of all but the last two turns."""
        session.compaction.run("deterministic", 2)

    def kill(self, where: str) -> None:
        """A program that is killed by the system, in a tool or in a stream."""
        self.turns += 1
        self.killed += 1
        if where == "stream":
            thought = " ".join(f"thought-{number}" for number in range(40))
            self.referee.push(Step(reasoning=thought, text="Late.", fault=Stall(600, after=8)))
        arguments = [self.log, self.place.dialect, self.referee.base_url(self.place.host), self.place.model, where]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.doomed", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline()
            process.kill()
        assert -9 == process.returncode

    def switch(self, place: Place, model: str = "") -> Callable[[Session], object]:
        """Another model, from the next turn on."""
        return lambda session: session.use(**self.where(place, model))


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@every_dialect
def test_a_long_session_is_never_refused(place: Place, referee: Referee, tmp_path: Path) -> None:
    """Thirty turns, three switches, an interrupt, a checkpoint, two deaths: no request is refused.

    Reasoning goes back in every tool loop where the host wants it, and the model still knows what it noted.
    """
    day = Day(tmp_path / "log.db", referee, place)
    sibling = day.switch(place, SIBLINGS[place.dialect])
    day.program(day.talk(5), sibling, day.talk(3), day.interrupt, day.talk(2))
    day.kill("tool")
    day.program(day.talk(3), day.compact, day.talk(3), day.switch(day.away), day.talk(3))
    day.kill("stream")
    day.program(day.talk(8))
    assert (TURNS, 2) == (day.turns, day.killed)
    assert [] == [(at, found.verdict.reason) for at, found in enumerate(referee.requests) if not found.verdict.ok]
    assert {200} == {exchange.status for exchange in referee.requests}
    assert day.checked >= 24
    assert [] == [answer for answer in day.answers() if FORGOTTEN in answer and INTERRUPTED not in answer]
    assert sum(KNOWN in answer for answer in day.answers()) > 20


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@every_dialect
def test_a_turn_whose_program_died_is_finished_by_another(place: Place, referee: Referee, tmp_path: Path) -> None:
    """Killed in a tool: the next program runs the call that is open, and the model goes on where it was."""
    day = Day(tmp_path / "log.db", referee, place)
    day.program(day.talk(1))
    day.kill("tool")

    def finish(session: Session) -> None:
        reply = session.generate(tools=[weather, clock])
        assert ("completed", True) == (reply.state, "Graz: 7 degrees" in reply.text)

    day.program(finish, day.talk(1))
    assert {200} == {exchange.status for exchange in referee.requests}
    assert [] == [answer for answer in day.answers() if FORGOTTEN in answer]
