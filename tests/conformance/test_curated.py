"""Conversations that people changed between turns, in every dialect: the referee accepts each next request."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conformance.moves import PLACES, TOOLS, Place, answered, options
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Annotation, Commit, Compaction, Draft, Message, Payload, Priority
from thinkback.session.session import Session
from thinkback.session.store import open
from thinkback_referee import Referee

CITIES = ("Oslo", "Rome", "Bern", "Bonn")
SKIPPED = ("reasoning", "tool_call", "tool_result", "user", "assistant")


def change(commits: Sequence[Commit], chance: random.Random) -> Draft:
    """Something that people may say about a conversation."""
    said = [commit for commit in commits if not commit.edit]
    match chance.choice(["skip", "lift", "edit", "edit", "compact", "trim"]):
        case "skip":
            # Without the question that a conversation begins with, nothing would be sent at all.
            begun = next(at for at, commit in enumerate(said) if commit.kind == "user") + 1
            skipped = chance.choice([commit for commit in said[begun:] if commit.kind in SKIPPED])
            return Draft("annotation", Annotation(skipped.hash, Priority.SKIP))
        case "lift":
            lifted = chance.choice([commit for commit in said if commit.kind == "reasoning"])
            return Draft("annotation", Annotation(lifted.hash, Priority.PINNED))
        case "edit":
            edited = chance.choice([commit for commit in said if commit.kind in (*SKIPPED, "user", "assistant")])
            return Draft(edited.kind, other(edited.value), edit=edited.hash)
        case "compact":
            ends = [commit.hash for commit in said if commit.kind == "turn_ended"]
            first = next(commit.hash for commit in said if commit.kind == "user")
            kept = tuple(commit.hash for commit in said if commit.kind == "response" and chance.random() < 0.3)
            return Draft("compaction", Compaction("manual", "It was about weather.", first, chance.choice(ends), kept))
        case _:
            trimmed = chance.choice([commit.hash for commit in said if commit.kind == "tool_result"])
            return Draft("compaction", Compaction("tool_results", trimmed=((trimmed, "short"),)))


def other(value: Any) -> Payload:
    """Another content."""
    match value:
        case Message():
            return Message("What is the weather in Paris?")
        case ThinkingBlock():
            return ThinkingBlock("Let me think.", source_field=value.source_field)
        case ToolCall() | ToolResult():
            changed = {"arguments": '{"city":"Paris"}'} if isinstance(value, ToolCall) else {"content": "20 degrees"}
            made: ToolCall | ToolResult = msgspec.structs.replace(value, wire="", carriers=(), **changed)
            return made
        case _:
            return Text("It is warm.")


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.dialect)
def test_what_people_changed_is_accepted(place: Place, seed: int, referee: Referee, tmp_path: Path) -> None:
    """Edits, priorities, checkpoints, windows and strips of any kind, and turns that were broken off anywhere."""
    chance = random.Random(seed)
    with open(tmp_path / "log.db") as store:
        session = store.session("curated", **options(referee, place))
        session.set("reasoning.effort", "high")
        if not seed % 4:
            session.set("context.size", 2)
        if seed % 3 == 1:
            session.set("reasoning.stripFromContext", chance.choice(["all", "allButLast"]))
        for city in CITIES:
            for _ in range(chance.randrange(3) if session.log() else 0):
                session.conversation.append((change(session.log(), chance),))
            if chance.random() < 0.25:
                break_off(session, chance.randrange(1, 40))
            turn(session, f"What are both the weather and the time in {city}?")
    assert [] == [exchange.verdict.reason for exchange in referee.requests if not exchange.verdict.ok]


def break_off(session: Session, deltas: int) -> None:
    """A question whose answer is not waited for."""
    with session.stream("What is the weather in Bergen?", tools=TOOLS) as stream:
        for _ in itertools.islice(stream, deltas):
            pass


def turn(session: Session, text: str) -> None:
    """A question, and results until it is answered."""
    session.chat(text, tools=TOOLS)
    answered(session)
