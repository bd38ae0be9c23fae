"""A synthetic conversation as commits of the log.

Half user messages of 200 B, half responses of 600 B reasoning and 200 B text. Each turn is what the turn machine
stores: the question; then in one step the request's record, the response, its reasoning, its text, its usage and the
end of the turn. Everything is deterministic.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import msgspec

from bench.streams import words
from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Origin, Text, ThinkingBlock
from thinkback.model.commits import Commit, Draft, Head, Message, Request, Response, Step, TurnEnded, Usage, block_draft
from thinkback.model.target import Settings, Target
from thinkback.rules import load_rulebook
from thinkback.settings import Layers, snapshot
from thinkback.turn.plan import History, Plan

DAY = "2026-07-01"
PARAMS: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
_BEGAN = 1_767_225_600_000_000


class Place(NamedTuple):
    """Where the conversation is held: the target with the rulebook's own rule row, and its settings."""

    target: Target
    settings: Settings

    def plan(self, history: History) -> Plan:
        """The next request of ``history``."""
        plan = history.plan(self.target, self.settings, None, PARAMS)
        return msgspec.structs.replace(plan, settings=snapshot(self.settings))

    @property
    def origin(self) -> Origin:
        """The origin of responses minted here."""
        target = self.target
        return Origin(
            target.endpoint.dialect, target.base_url, target.model, target.model, target.account, target.account_known
        )


def place(endpoint: str, model: str) -> Place:
    """``model`` at ``endpoint`` with nothing set by the user."""
    target = load_rulebook({}).target(endpoint, model, on=DAY, account="bench", account_known=True)
    return Place(target, Layers().effective(target.endpoint.settings))


class Turn(NamedTuple):
    """The drafts of one turn: the question, and all that one response brings."""

    question: Draft
    answer: tuple[Draft, ...]


def synthetic(chance: random.Random, size: int) -> str:
    """``size`` characters of a small vocabulary."""
    return words(chance, size // 5)[1 : size + 1].ljust(size, ".")


def turns(place: Place, text: Callable[[random.Random, int], str] = synthetic) -> Iterator[Turn]:
    """Turns without end, no two alike; ``text`` gives so many characters."""
    chance = random.Random(7)
    origin, whole = place.origin, place.plan(History()).record()
    for number in count():
        record = told_before(whole) if number else whole
        id = f"{number:024x}"
        thought, said = text(chance, 600), text(chance, 200)
        usage = Usage(input=70 + number, output=200, reasoning=150, wire='{"prompt_tokens":70,"completion_tokens":200}')
        envelope = '{"created":1767225600,"id":"8f3c2a54","model":"m","object":"chat.completion.chunk"}'
        header = Response(origin, id=id, finish="stop", content="text", envelope=envelope, blocks=2)
        yield Turn(
            Draft("user", Message(text(chance, 200))),
            (
                Draft("request", record, id),
                Draft("response", header, id),
                block_draft(ThinkingBlock(thought, source_field="reasoning_content"), id, 0),
                block_draft(Text(said), id, 1),
                Draft("provider_usage", usage, id),
                Draft("turn_ended", TurnEnded("completed")),
            ),
        )


def told_before(record: Request) -> Request:
    """The record of a later request: what it was built by stands in the first one."""
    return msgspec.structs.replace(record, basis="")


def question(number: int) -> Draft:
    """A new question, so that a turn is open."""
    return Draft("user", Message(f"And what of number {number}?".ljust(200, ".")))


def sealed(drafts: list[Draft], head: Head, number: int) -> list[Commit]:
    """Commits as a store has them; a request's record names the commit it was built on."""
    fitted = [_at(draft, head) for draft in drafts]
    return seal(Step(f"step-{number}", tuple(fitted), _BEGAN + number), head)


def _at(draft: Draft, head: Head) -> Draft:
    value = draft.value
    if not isinstance(value, Request):
        return draft
    return msgspec.structs.replace(draft, value=msgspec.structs.replace(value, head=head.hash))


def commits(place: Place, messages: int) -> list[Commit]:
    """A log of ``messages`` messages, sealed, and one more question."""
    log: list[Commit] = []
    for number, turn in zip(range(messages // 2), turns(place), strict=False):
        log += sealed([turn.question], head_of(log), 2 * number)
        log += sealed(list(turn.answer), head_of(log), 2 * number + 1)
    log += sealed([question(0)], head_of(log), messages)
    return log


def light(drafts: list[Draft], head: Head) -> list[Commit]:
    """Commits without payload and with counted hashes: enough for a fold, and a hundredth of the set-up."""
    made: list[Commit] = []
    for draft in drafts:
        parents = (head.hash,) if head.hash else ()
        head = Head(f"{head.seq + 1:064x}", head.seq + 1)
        made.append(
            Commit(head.hash, parents, head.seq, draft.kind, draft.value, b"", "", 0, draft.response, draft.index)
        )
    return made


def light_commits(place: Place, messages: int) -> list[Commit]:
    """As ``commits``, of light ones."""
    log: list[Commit] = []
    for _, turn in zip(range(messages // 2), turns(place), strict=False):
        log += light([turn.question, *turn.answer], head_of(log))
    return log + light([question(0)], head_of(log))


def as_dicts(messages: list[bytes]) -> list[dict[str, Any]]:
    """Messages of a plan as a program that uses a provider's SDK holds them."""
    return [msgspec.json.decode(message) for message in messages]
