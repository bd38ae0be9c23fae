"""What requests used, read off the log: per step, turn and model, in one meaning for all dialects.

Promises: a function of commits, which may come in pieces; what was asked for once is counted once, on however many
lines it stands, and a copy of a response is not a second one. Must not: estimate what is still to come.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, ToolCall, carriers_of, opaque_values
from thinkback.model.commits import Commit, Compaction, Request, Response, TurnEnded, TurnState, Usage
from thinkback.model.target import Basis
from thinkback.turn.usage import TokenUse, summed, token_use


class StepUse(msgspec.Struct, frozen=True):
    """What one response used, or a model that wrote a checkpoint's summary; ``commit`` is the hash of either.

    ``turn`` counts from 1, 0 is before the first message. ``model`` is the served one where it is known, ``endpoint``
    a normalised URL and ``place`` the endpoint's id, or the program where it was imported (both empty for a summary).
    ``time`` is microseconds UTC; ``usage`` is what the provider reported. ``source_ids`` are what an imported response
    goes by in its source: its id, those of its calls, digests of its opaque values. A copy of it has some of them.
    """

    commit: str
    turn: int
    time: int
    model: str
    endpoint: str
    use: TokenUse
    kind: Literal["response", "summary"] = "response"
    place: str = ""
    usage: Usage | None = None
    source_ids: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The program from whose history it was imported; empty for what was asked for by way of thinkback."""
        return self.usage.program if self.usage is not None else ""


class TurnUse(msgspec.Struct, frozen=True):
    """What a turn used. ``prompt`` is the hash of its message; ``state`` is ``None`` while it is under way."""

    turn: int
    prompt: str
    state: TurnState | None
    use: TokenUse
    steps: tuple[StepUse, ...]


class Spending(msgspec.Struct, frozen=True):
    """A sum: all of it, and the part of each model."""

    use: TokenUse
    steps: int
    models: dict[str, TokenUse]


class _Answer:
    """A response while its blocks are gathered."""

    def __init__(self, commit: Commit, turn: int, asked: tuple[str, str] | None) -> None:
        self.commit, self.turn, self.asked = commit, turn, asked
        self.blocks: list[Block] = []
        self.usage: Usage | None = None

    def take(self, value: object) -> None:
        if isinstance(value, Usage):
            self.usage = value
        elif isinstance(value, Block):
            self.blocks.append(value)

    def step(self) -> StepUse | None:
        """Its use; ``None`` where neither a request nor an import says that it counts."""
        program = self.usage.program if self.usage is not None else ""
        if self.asked is None and not program:
            return None
        word, place = self.asked or ("unknown", program)
        value = self.commit.value
        model = endpoint = id = ""
        if isinstance(value, Response):
            model = value.origin.served_model or value.origin.requested_model
            endpoint, id = value.origin.endpoint, value.id
        use = token_use(self.usage, self.blocks, word)
        ids = tuple(filter(None, (id, *_ids(self.blocks)))) if program else ()
        return StepUse(
            self.commit.hash,
            self.turn,
            self.commit.time,
            model,
            endpoint,
            use,
            place=place,
            usage=self.usage,
            source_ids=ids,
        )


# An id made of places: calls that have none in their source are imported with it.
_PLACED = re.compile(r"call_\d+_\d+")


def _ids(blocks: Iterable[Block]) -> Iterator[str]:
    """What of a response no other one has."""
    for block in blocks:
        if isinstance(block, ToolCall) and not _PLACED.fullmatch(block.id):
            yield block.id
        yield from (canonical.digest(value.encode())[:32] for value in opaque_values(carriers_of(block)))


class Ledger:
    """The steps of the commits that were taken in, in order. Whole responses come in one piece.

    A response counts where the record of its request stands, or where it was imported; copies have neither.
    """

    def __init__(self) -> None:
        self.steps: list[StepUse] = []
        self._prompts: list[str] = []
        self._states: dict[int, TurnState] = {}
        self._seen: set[str] = set()
        # Where imported responses stand in the steps, by their ids.
        self._imported: dict[str, int] = {}
        # What the rule says of reasoning tokens: of responses to come, and by the digest of the data that held it.
        self._asked: dict[str, tuple[str, str]] = {}
        self._words: dict[str, str] = {}

    def take(self, commits: Iterable[Commit]) -> None:
        """More commits of a line, or those of another one from its beginning."""
        answer: _Answer | None = None
        for commit in commits:
            value, id = commit.value, commit.response
            if commit.edit:
                continue
            if commit.kind == "user":
                self._prompts.append(commit.hash)
            elif commit.kind == "request":
                self._asked[id] = (
                    self._word(value),
                    value.target.get("endpoint", "") if isinstance(value, Request) else "",
                )
            elif commit.kind == "response":
                self._settle(answer)
                answer = _Answer(commit, len(self._prompts), self._asked.pop(id, None))
            elif isinstance(value, TurnEnded):
                self._states[len(self._prompts)] = value.state
            elif isinstance(value, Compaction) and value.usage is not None:
                said = value.summary or f"{value.before} {value.after}"
                self._add(_summary(commit, value, value.usage, len(self._prompts)), f"{value.model} {said}")
            elif answer is not None and answer.commit.response == id:
                answer.take(value)
        self._settle(answer)

    def turns(self) -> tuple[TurnUse, ...]:
        """The turns of a line in which something was used."""
        steps: dict[int, list[StepUse]] = {}
        for step in self.steps:
            steps.setdefault(step.turn, []).append(step)
        return tuple(
            TurnUse(turn, self._prompts[turn - 1] if turn else "", self._states.get(turn), _sum(found), tuple(found))
            for turn, found in steps.items()
        )

    def _word(self, value: object) -> str:
        """What the rule of a request says of reasoning tokens."""
        if not isinstance(value, Request):
            return "unknown"
        if value.basis and value.basis_digest not in self._words:
            basis: Basis = canonical.decode(value.basis, Basis)
            self._words[value.basis_digest] = basis.rule.reasoning_tokens
        return self._words.get(value.basis_digest, "unknown")

    def _settle(self, answer: _Answer | None) -> None:
        if answer is None or (step := answer.step()) is None:
            return
        at = self._imported.get(answer.commit.response) if step.program else None
        if at is None:
            if step.program:
                self._imported[answer.commit.response] = len(self.steps)
            self._add(step, answer.commit.hash)
        elif (step.use.output or 0) > (self.steps[at].use.output or 0):  # it was imported before it was whole
            self.steps[at] = step

    def _add(self, step: StepUse, key: str) -> None:
        if key not in self._seen:
            self._seen.add(key)
            self.steps.append(step)


def spending(steps: Sequence[StepUse]) -> Spending:
    """Steps together, and by model."""
    models: dict[str, list[StepUse]] = {}
    for step in steps:
        models.setdefault(step.model, []).append(step)
    return Spending(_sum(steps), len(steps), {model: _sum(found) for model, found in sorted(models.items())})


def _summary(commit: Commit, value: Compaction, usage: Usage, turn: int) -> StepUse:
    use = token_use(usage, (), "unknown")
    return StepUse(commit.hash, turn, commit.time, value.model, "", use, "summary", usage=usage)


def _sum(steps: Iterable[StepUse]) -> TokenUse:
    return summed(step.use for step in steps) or TokenUse()
