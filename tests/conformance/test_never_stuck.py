"""Never stuck: whatever happened to a conversation, its next question is answered, or refused here with the way out."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import thinkback
from tests.conformance.moves import PLACES, TOOLS, Place, answered, options
from tests.conformance.test_curated import other
from thinkback.errors import ContextRefused, ReplayRefused, ThinkbackError
from thinkback.model.commits import Annotation, Commit, Compaction, Draft, Erased, Priority, TurnEnded
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.turn.repair import MAX_REPAIRS
from thinkback_referee import Referee, RejectCarrier, Step

OF = {place.dialect: place for place in PLACES}
# What happens, and a number that says where.
Event: TypeAlias = tuple[str, int]
QUESTIONS = (
    "What are both the weather and the time in Rome?",
    "What is the weather in Bern and then the time?",
    "What is the weather in Oslo?",
    "Thank you.",
)
CHANGED = ("user", "assistant", "reasoning", "tool_call", "tool_result")
FOREIGN = ("drop", "summary", "text")
STRIPS = ("none", "all", "allButLast")
# Every event has its place in one of these, which are tried everywhere; what is drawn comes on top.
HISTORIES: tuple[list[Event], ...] = (
    [("unkept", 0), ("foreign", 2), ("refuse", 2)],
    [("edit", 1), ("skip", 4), ("strip", 1), ("leave", 0)],
    [("lift", 0), ("erase", 2), ("kill", 4), ("think", 1)],
)
EVENTS = sorted({"ask"} | {event for history in HISTORIES for event, _ in history})

events = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 40)), min_size=1, max_size=5)


class World:
    """A conversation with a strict provider, in a log that outlives the process that writes it."""

    def __init__(self, referee: Referee, place: Place, folder: Path) -> None:
        self.referee = referee
        self.place = place
        self.folder = folder
        self.lives = 0
        self.asked = 0
        self.store: SessionStore
        self.session: Session
        self.open(folder / "life-0.db")
        self.session.set("reasoning.effort", "high")

    def open(self, file: Path) -> None:
        self.store = thinkback.open(file, durability="normal")
        self.session = self.store.session("chat", **options(self.referee, self.place))

    def reopen(self) -> None:
        """Go on in another process with what the first one had written by now."""
        before = self.folder / f"life-{self.lives}.db"
        self.lives += 1
        after = self.folder / f"life-{self.lives}.db"
        for suffix in ("", "-wal"):
            if Path(f"{before}{suffix}").exists():
                shutil.copy(f"{before}{suffix}", f"{after}{suffix}")
        self.store.close()
        self.open(after)

    @property
    def is_answered(self) -> bool:
        """Whether the last turn was completed."""
        last = self.session.log(kinds=("turn_ended",))[-1].value
        return isinstance(last, TurnEnded) and last.state == "completed"

    def question(self) -> str:
        self.asked += 1
        return QUESTIONS[(self.asked - 1) % len(QUESTIONS)]

    def ask(self, *, answers: bool = True, **more: Any) -> None:
        """One question, with its results if it ``answers``; no step takes more than the bounded attempts."""
        before = len(self.referee.requests)
        refused: ThinkbackError | None = None
        try:
            self.session.chat(self.question(), tools=TOOLS, **more)
            if answers:
                answered(self.session)
        except (ReplayRefused, ContextRefused) as error:
            refused = error
        if refused is not None:
            assert refused.next_actions
            assert not refused.details.keys().isdisjoint({"block", "left_out", "rule"})
            assert [] == [seen for seen in self.referee.requests[before:] if not seen.verdict.ok]
        refused_in_a_row = [
            len(list(run))
            for good, run in itertools.groupby(self.referee.requests[before:], key=lambda seen: seen.status < 400)
            if not good
        ]
        assert all(count <= MAX_REPAIRS for count in refused_in_a_row)

    def choose(self, number: int, kinds: tuple[str, ...] = CHANGED) -> Commit | None:
        said = [c for c in self.session.log(kinds=kinds) if not c.edit and not isinstance(c.value, Erased)]
        return said[number % len(said)] if said else None

    def happen(self, event: str, number: int) -> None:
        """One of the things that happen between two questions."""
        match event:
            case "ask":
                self.ask()
            case "unkept":
                self.ask(reasoning=False)
            case "refuse":
                self.referee.push(Step(fault=RejectCarrier()))
                self.ask(reasoning=number % 2 == 0)
            case "edit" | "skip" | "lift" | "erase":
                kinds = ("reasoning",) if event == "lift" else CHANGED
                chosen = self.choose(number, kinds)
                if chosen is not None:
                    self.change(event, chosen)
            case "kill":
                with (
                    contextlib.suppress(ReplayRefused, ContextRefused),
                    self.session.stream(self.question(), tools=TOOLS, reasoning=number % 3 > 0) as stream,
                ):
                    for _ in itertools.islice(stream, number):
                        pass
                    self.reopen()
            case "leave":
                self.ask(answers=False)
            case "foreign":
                self.session.set("reasoning.foreign", FOREIGN[number % len(FOREIGN)])
            case "strip":
                self.session.set("reasoning.stripFromContext", STRIPS[number % len(STRIPS)])
            case _:
                self.session.set("reasoning.enabled", value=number % 2 == 0)

    def change(self, event: str, chosen: Commit) -> None:
        match event:
            case "edit":
                self.session.conversation.append((Draft(chosen.kind, other(chosen.value), edit=chosen.hash),))
            case "erase":
                self.store.care.redact(chosen.hash, "(?s).+")
                self.reopen()
            case _:
                priority = Priority.SKIP if event == "skip" else Priority.PINNED
                self.session.conversation.append((Draft("annotation", Annotation(chosen.hash, priority)),))


@contextlib.contextmanager
def world(place: Place) -> Iterator[World]:
    with Referee() as referee, tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = World(referee, place, Path(folder))
        yield found
        found.store.close()


def with_every_event(law: Callable[..., None]) -> Callable[..., None]:
    """Let ``law`` try the histories above first."""
    for history in HISTORIES:
        law = example(happened=history)(law)
    return law


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.dialect)
@with_every_event
@settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(happened=events)
def test_next_question_is_answered_whatever_happened(place: Place, happened: list[Event]) -> None:
    """Refusals, edits, skips, erasures, kills, thoughts that are not kept: within three attempts it goes on."""
    with world(place) as talk:
        talk.ask()
        for event, number in happened:
            talk.happen(event, number)
        talk.ask()
        talk.ask()


def test_claude_with_an_edited_thought_and_a_skipped_answer() -> None:
    """What is bound to its prefix goes with all that stands on what changed; the next question is answered."""
    with world(OF["anthropic"]) as talk:
        talk.ask()
        talk.ask()
        talk.change("edit", talk.session.log(kinds=("reasoning",))[0])
        talk.change("skip", talk.session.log(kinds=("assistant",))[-1])
        talk.ask()
        talk.ask()
        assert talk.is_answered


def test_claude_on_bedrock_behind_a_summary_with_answers_of_several_turns() -> None:
    """In manual mode, where what is left of several turns stands behind a checkpoint as one."""
    with world(OF["bedrock"]) as talk:
        for _ in range(3):
            talk.ask()
        log = talk.session.log()
        kept = tuple(commit.hash for commit in log if commit.kind == "response")[1::2]
        ends = [commit.hash for commit in log if commit.kind == "turn_ended"]
        first = next(commit.hash for commit in log if commit.kind == "user")
        talk.session.conversation.append(
            (Draft("compaction", Compaction("manual", "Weather.", first, ends[-1], kept)),)
        )
        talk.ask()
        talk.ask()
        assert talk.is_answered


@pytest.mark.parametrize("kind", ["assistant", "reasoning"])
def test_deepseek_with_edited_text(kind: str) -> None:
    """Reasoning that is demanded goes as it was made, and edited words beside it are taken."""
    with world(OF["openai-chat"]) as talk:
        talk.ask()
        talk.ask()
        for commit in talk.session.log(kinds=(kind,)):
            talk.change("edit", commit)
        talk.ask()
        talk.ask()
        assert talk.is_answered


def test_a_fork_recovers_from_a_rejected_signature_too() -> None:
    """One thought that is rejected is told as text where that happened, and on the branch that knows nothing of it."""
    for foreign in FOREIGN:
        with world(OF["gemini-interactions"]) as talk:
            talk.session.set("reasoning.foreign", foreign)
            talk.ask()
            talk.session.branches.branch("other", switch=False)
            for branch in ("main", "other"):
                talk.session.branches.switch(branch)
                talk.happen("refuse", 0)
                talk.ask()
                assert talk.is_answered
