"""One conversation of one client at one place, and what the referee made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from bench.gateway_clients.job import STRUCTURED, Job
from bench.peers.places import Place
from bench.peers.play import Outcome, refusal
from thinkback_referee import KNOWN, LOST, Call, Referee, Step, code_word

PROMPTS = (
    "What is the weather in Oslo and then the time?",
    "And what is the weather in Rome?",
    "What are both the weather and the time in Bergen?",
)
_SHAPED = (("What is the weather in Oslo?", "Oslo", 7), ("And in Rome?", "Rome", 19))


class Holds(Protocol):
    """Whoever has a conversation when told."""

    def hold(self, job: Job) -> tuple[list[str], str]:
        """What the client said at the end of each turn, and what went wrong; empty: nothing."""
        ...


class Held(NamedTuple):
    """A conversation and its outcome; ``through``: it went through the gateway. ``requests`` the referee saw."""

    client: str
    mode: str
    place: str
    through: bool
    outcome: Outcome
    requests: int


def hold(worker: Holds, referee: Referee, job: Job, place: Place, through: bool) -> Held:
    """Have the conversation; the first thing that goes wrong ends it."""
    referee.reset()  # what others said before must not be taken for this conversation's
    if job.mode == STRUCTURED:
        referee.push(*_script())
        prompts = [prompt for prompt, _, _ in _SHAPED]
    else:
        prompts = list(PROMPTS)
    said, failed = worker.hold(job._replace(prompts=prompts))
    failed = failed.partition("Traceback")[0]  # what follows is of this machine
    outcome = refusal(referee.requests)
    if outcome is None:
        outcome = _outcome(referee, job.mode, said, failed)
    elif failed:
        outcome = outcome._replace(failed=failed)
    return Held(job.client, job.mode, place.name, through, outcome, len(referee.requests))


def _outcome(referee: Referee, mode: str, said: list[str], failed: str) -> Outcome:
    answers = [seen.step.text for seen in referee.requests if seen.step and seen.step.text]
    if not failed and mode == STRUCTURED:
        wanted = [{"city": city, "degrees": degrees} for _, city, degrees in _SHAPED]
        failed = "" if wanted == [json.loads(text) for text in said] else f"the client read {said}"
        return Outcome(failed=failed)
    if not failed and [text.strip() for text in said] != [text.strip() for text in answers]:
        failed = f"the model answered {answers}, the client read {said}"
    words = [KNOWN.format(word=code_word(prompt)) for prompt in PROMPTS]
    known = sum(word in text for word in words for text in answers)
    return Outcome("", failed, any(LOST in text for text in answers), known)


def _script() -> Iterator[Step]:
    """What the model says where an answer is data: a call, and that."""
    for _, city, degrees in _SHAPED:
        yield Step(reasoning=f"I look up {city}.", tool_calls=[Call("weather", {"city": city})])
        yield Step(reasoning="I write it down.", text=json.dumps({"city": city, "degrees": degrees}))
