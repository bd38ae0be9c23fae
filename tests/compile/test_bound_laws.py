"""Bound reasoning as a law: of any sequence of prompts, tools, models and edits, what goes is what the provider takes.

The judge reads nothing but the bodies that were sent: a thought is valid if system, tools and messages before it are
those of the body it was an answer to, and if the thoughts before it are the end of those that were before it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.compile.build import ANTHROPIC, Talk, call, native, origin, say, settings, target, think, thought
from thinkback.model import canonical
from thinkback.model.commits import Message, Priority
from thinkback.model.target import Settings, Target

BOUND = target(native(prefix_bound=True, system="top", need_signature=("thinking",), follower=True), ANTHROPIC)
LATE = target(native(prefix_bound=True, system="late", need_signature=("thinking",), follower=True), ANTHROPIC)
FREE = target(native(need_signature=("thinking",), later="should"), ANTHROPIC, model="m2")
PROMPTS = ("Be brief.", "In verse.", "In prose.")
TOOLS: tuple[tuple[str, ...], ...] = ((), ("look",), ("look", "write"))


class Sent(NamedTuple):
    """A body as the judge sees it: what is no thought, message by message, and each thought with its place."""

    frame: Any
    messages: list[Any]
    thoughts: list[tuple[str, int]]

    def chain(self) -> list[str]:
        """The thoughts in order."""
        return [value for value, _ in self.thoughts]


def seen(body: bytes) -> Sent:
    """What a provider sees in a body."""
    value = canonical.decode(body)
    messages: list[Any] = []
    thoughts: list[tuple[str, int]] = []
    for at, message in enumerate(value["messages"]):
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        thoughts += [(part["signature"], at) for part in parts if "signature" in part]
        messages.append((message["role"], [part for part in parts if "signature" not in part]))
    return Sent((value.get("system"), value.get("tools")), messages, thoughts)


def is_valid(value: str, at: int, now: Sent, made: Sent, before: list[str]) -> bool:
    """Whether a thought that stands in message ``at`` may go behind the thoughts ``before``."""
    same = now.frame == made.frame and now.messages[:at] == made.messages
    return same and (before == [] or made.chain()[-len(before) :] == before)


def expected(now: Sent, made: dict[str, Sent], places: dict[str, int]) -> list[str]:
    """The thoughts that go: the last that is valid, and before it whatever was there when all behind it were made."""
    chosen: list[str] = []
    for value in reversed(made):
        trial = [value, *chosen]
        if value in places and all(
            is_valid(each, places[each], now, made[each], trial[:number]) for number, each in enumerate(trial)
        ):
            chosen = trial
    return chosen


class Conversation:
    """One conversation whose requests are all sent, and judged."""

    def __init__(self, place: Target) -> None:
        self.place = place
        self.talk = Talk(origin(ANTHROPIC)).system(PROMPTS[0])
        self.made: dict[str, dict[str, Sent]] = {"m1": {}, "m2": {}}
        self.texts: dict[str, str] = {}
        self.skipped: set[str] = set()
        self.reworded: set[str] = set()

    def mark(self, thoughts: Sequence[str], *, skip: bool) -> None:
        """Take thoughts (commit hashes) away, or bring them back."""
        for hash in thoughts:
            self.talk.annotate(hash, Priority.SKIP if skip else None, default=not skip)
        (self.skipped.update if skip else self.skipped.difference_update)(thoughts)

    def reword(self, thoughts: Sequence[str]) -> None:
        """Thoughts in other words, which no signature is for."""
        for hash in thoughts:
            self.talk.edit(hash, think("reworded"))
        self.reworded.update(thoughts)

    def ask(self, to: Target, wanted: Settings, *, calls: bool) -> None:
        """One turn: its request is judged, and answered with a thought."""
        number = len(self.texts)
        self.talk.user(f"q{number}")
        now = self.judge(to, wanted)
        value = f"SIG{number}"
        self.made[to.model][value], self.texts[value] = now, f"a{number}"
        self.talk.answer(to, thought(ANTHROPIC, f"t{number}", value), say(f"a{number}"), wanted=wanted)
        if calls:
            self.talk.user("look").answer(to, call(f"c{number}"), wanted=wanted).result(f"c{number}")
        self.talk.end()

    def judge(self, to: Target, wanted: Settings) -> Sent:
        """The next request, if it is valid, and has all that may be in it."""
        now = seen(bytes(self.talk.plan(to, wanted)))
        made = self.made[to.model]
        gone = {f"SIG{at}" for at, hash in enumerate(self.talk.hashes()) if hash in self.skipped | self.reworded}
        if not to.rule.prefix_bound:
            assert now.chain() == [value for value in made if value not in gone]
            return now
        for number, (value, at) in enumerate(now.thoughts):
            assert is_valid(value, at, now, made[value], now.chain()[:number])
        if wanted == Settings():
            said = {part["text"]: at for at, (_, parts) in enumerate(now.messages) for part in parts if "text" in part}
            away = gone.difference(now.chain())  # what is required goes as it was made
            places = {value: said[text] for value, text in self.texts.items() if text in said and value not in away}
            assert now.chain() == expected(now, made, places)
        return now


STEPS = st.one_of(
    st.tuples(st.just("ask"), st.booleans()),
    st.tuples(st.just("ask"), st.booleans()),
    st.tuples(st.just("other model"), st.just(0)),
    st.tuples(st.just("prompt"), st.sampled_from(PROMPTS)),
    st.tuples(st.just("tools"), st.sampled_from(TOOLS)),
    st.tuples(st.just("late"), st.sampled_from(PROMPTS)),
    st.tuples(st.just("keep"), st.integers(0, 3)),
    st.tuples(st.just("skip"), st.integers(0, 3)),
    st.tuples(st.just("back"), st.integers(0, 3)),
    st.tuples(st.just("reword"), st.integers(0, 3)),
)


@given(st.sampled_from([BOUND, LATE]), st.lists(STEPS, min_size=3, max_size=14))
def test_what_goes_is_what_the_provider_takes(place: Target, steps: list[tuple[str, Any]]) -> None:
    """Judged by the bodies alone; and of what may go nothing is left out. Where nothing is bound, all goes."""
    conversation = Conversation(place)
    talk = conversation.talk
    conversation.ask(place, Settings(), calls=False)
    for step, value in [*steps, ("ask", False), ("ask", False)]:
        match step:
            case "ask":
                conversation.ask(place, Settings(), calls=value)
            case "keep":
                conversation.ask(place, settings(keep_last=value), calls=False)
            case "other model" if not conversation.made["m2"]:
                conversation.ask(FREE, Settings(), calls=False)
            case "prompt":
                talk.edit(talk.hashes("system")[0], Message(value))
            case "tools":
                talk.tools(*value)
            case "late":
                talk.system(value)
            case "skip" | "back":
                asked = talk.hashes("user")[1:][-1:]
                conversation.mark(asked if value == 3 else talk.hashes()[value : value + 1], skip=step == "skip")
            case "reword":
                conversation.reword(talk.hashes()[value : value + 1])
    conversation.judge(FREE, settings(keep_last=9))
