"""The experiments: variations of what is sent back in a fixed conversation of two turns with a tool.

``probe`` is a generator of requests: each is sent by whoever runs it, and what the host answered is sent back in. A
refusal is evidence; any other error ends the probe. Must not: draw conclusions (``row`` does).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from thinkback.errors import ProviderError, ThinkbackError
from thinkback.model.blocks import Block, ToolCall
from thinkback.model.commits import Draft, Message, TurnEnded
from thinkback.model.target import Target
from thinkback.turn.plan import Plan
from thinkback.turn.probing.conversation import (
    NEXT,
    PLAIN,
    PROMPT,
    STRANGER,
    TOOL,
    Answer,
    ProbeSetup,
    counted,
    drafts_of,
    limited,
    limits,
    plan_of,
    read,
    results_of,
    stopped,
)
from thinkback.turn.probing.edits import Edit, edited, opaque_of, texts_of
from thinkback.turn.probing.findings import Findings, Outcome, findings_of
from thinkback.turn.repair import STATUSES
from thinkback.wire.result import ReadResult

# Once a first request was accepted these are about what a later one carries.
REFUSING = STATUSES | {404}
# A model may want its tool more than once before it answers.
_ROUNDS = 3
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_ABSENT = MappingProxyType({"open_turn": "never", "later": "never"})
_CALLS_ONLY = MappingProxyType({"scope": "tool-calls"})


class Ask(NamedTuple):
    """A request to send: ``body`` goes where ``plan`` says; ``says`` tells people what it is about."""

    name: str
    says: str
    plan: Plan
    body: bytes


class Experiment(NamedTuple):
    """One variation. ``change`` is laid over the rule that sends everything as it came, ``edit`` over the request.

    ``when`` says whether it can tell anything after what is known so far.
    """

    name: str
    says: str
    change: Mapping[str, Any] = _NOTHING
    edit: Edit = ""
    when: Callable[[Findings, tuple[Block, ...]], bool] = lambda found, blocks: True


def _has_text(found: Findings, blocks: tuple[Block, ...]) -> bool:
    return texts_of(blocks) != ()


def _has_opaque(found: Findings, blocks: tuple[Block, ...]) -> bool:
    return opaque_of(blocks) != ()


def _field_demanded(found: Findings, blocks: tuple[Block, ...]) -> bool:
    return found.form == "field" and found.accepted("open.without") is False


def _must_later(found: Findings, blocks: tuple[Block, ...] = ()) -> bool:
    return found.called and found.accepted("later.without") is False and found.accepted("later.with") is True


OPENING = Experiment("opening", "a question that wants a tool")
OPEN = (
    Experiment("open.with", "the tool's result, with the reasoning as it came"),
    Experiment("open.without", "the tool's result, without reasoning", _ABSENT),
    Experiment("open.word", "with one word of the reasoning changed", edit="word", when=_has_text),
    Experiment("open.opaque", "with one character of the opaque value changed", edit="opaque", when=_has_opaque),
    Experiment("open.unsigned", "with the reasoning, without its opaque value", edit="unsigned", when=_has_opaque),
    Experiment("open.blank", "a blank in place of the reasoning", edit="blank", when=_field_demanded),
)
STRANGERS = Experiment("open.stranger", "a call of another model, with what may stand in for its reasoning")
FINISH = Experiment("finish", "the tool's result once more")
LATER = (
    Experiment("later.with", "the next question, with all earlier reasoning"),
    Experiment("later.without", "the next question, without any", _ABSENT),
    Experiment("later.word", "with one word of it changed", edit="word", when=_has_text),
    Experiment("later.opaque", "with one character of the opaque values changed", edit="opaque", when=_has_opaque),
    Experiment("later.calls", "with reasoning on messages with calls only", _CALLS_ONLY, when=_must_later),
)
PLAIN_OPENING = Experiment("plain", "a question without tools")
PLAIN_WITHOUT = Experiment("plain.without", "the next question after it, without reasoning", _ABSENT)


def most(dialect: str) -> int:
    """How many requests a probe sends at most, repeated ones aside."""
    return len(limits(dialect)) + 1 + len(OPEN) + 1 + _ROUNDS + len(LATER) + 2


def probe(target: Target, params: dict[str, Any], limit: int) -> Generator[Ask, Answer, Findings]:
    """The requests, one after the other; returns what they showed. ``params`` are a person's own native parameters.

    Raises ``ProviderError`` for an answer that is no evidence, ``ThinkbackError`` where the host leads nowhere.
    """
    return (yield from _Probe(target, params, limit).run())


class _Probe:
    """One probe: the conversation so far, and what is known."""

    def __init__(self, target: Target, params: dict[str, Any], limit: int) -> None:
        self._target = target
        self._own = params
        self._limit = limit
        self._asked = ProbeSetup(target, (TOOL,), params)
        self._drafts: list[Draft] = []
        self._blocks: tuple[Block, ...] = ()
        self._found = Findings("none")

    def run(self) -> Generator[Ask, Answer, Findings]:
        opening = yield from self._open()
        self._found = msgspec.structs.replace(
            findings_of(opening.blocks, self._target.endpoint.dialect), outcomes=self._found.outcomes
        )
        if self._found.form == "none":
            return self._found
        self._take(opening, "1")
        if self._found.called:
            finished = yield from self._inside_the_turn(opening)
            yield from self._finish(finished)
        yield from self._after_the_turn()
        if _must_later(self._found):
            yield from self._without_tools()
        return self._found

    def _open(self) -> Generator[Ask, Answer, ReadResult]:
        """The first answer. The limit goes under its next name where the host does not know the first; then no tool."""
        target = self._target
        names = limits(target.endpoint.dialect)
        prompt, result = PROMPT, None
        for path in (target.rule.limit_param or names[0], *names[1:]):
            self._asked = ProbeSetup(target, (TOOL,), limited(path, self._limit, self._own))
            result = yield from self._send(OPENING, [Draft("user", Message(prompt))])
            if result is not None or path.rpartition(".")[2] not in self._text(OPENING):
                break
        if result is None:
            refusal, prompt = self._text(OPENING), PLAIN
            self._asked = self._asked._replace(tools=())
            result = yield from self._send(OPENING, [Draft("user", Message(prompt))])
            if result is None:
                raise ProviderError(
                    f"{target.endpoint.id} refused the first request: {refusal}",
                    details={"status": self._found.outcomes[OPENING.name].status, "provider_message": refusal},
                    next_actions=("check model and address; --param KEY=VALUE sets a parameter",),
                )
        self._check_whole(result)
        self._drafts = [Draft("user", Message(prompt))]
        return result

    def _inside_the_turn(self, opening: ReadResult) -> Generator[Ask, Answer, ReadResult]:
        """Variations of the request that brings the tool's result; returns the answer that goes on."""
        asked = self._drafts[:1]
        self._drafts += results_of(opening, "1")
        finished: ReadResult | None = None
        for experiment in OPEN:
            if experiment.when(self._found, self._blocks):
                result = yield from self._send(experiment, self._drafts)
                finished = finished or (None if experiment.edit else result)
        if finished is None:
            raise ThinkbackError(
                f"{self._target.endpoint.id} refuses the tool's result with reasoning and without: "
                f"{self._text(OPEN[0])}",
                next_actions=("whatever it wants, this probe cannot find it out",),
            )
        if self._found.accepted("open.without") is False:
            yield from self._stranger(asked)
        return finished

    def _stranger(self, asked: list[Draft]) -> Generator[Ask, Answer, None]:
        """A call that another model made, and what stands in for its reasoning."""
        dummy = self._target.rule.dummy
        if dummy and self._found.signed_calls:
            change: dict[str, Any] = {"missing": ("dummy",), "dummy": dummy, "signed_calls": True}
        elif self._found.form == "field":
            change = {"missing": ("placeholder",), "placeholder": " "}
        else:
            return
        drafts = [*asked, *drafts_of(STRANGER, "0"), *results_of(STRANGER, "0")]
        yield from self._send(STRANGERS._replace(change=change), drafts)

    def _finish(self, result: ReadResult) -> Generator[Ask, Answer, None]:
        """Take the answer in; where the model calls its tool again, give it what it wants."""
        change = _NOTHING if self._found.accepted("open.with") else _ABSENT
        for at in range(2, 3 + _ROUNDS):
            self._check_whole(result)
            self._take(result, str(at))
            if not any(isinstance(block, ToolCall) for block in result.blocks):
                return
            self._drafts += results_of(result, str(at))
            answer = yield from self._send(FINISH._replace(change=change), self._drafts)
            if answer is None:
                break
            result = answer
        raise ThinkbackError(
            f"{self._target.model} calls its tool again and again and does not come to an end",
            next_actions=("probe again: models do not always answer alike",),
        )

    def _after_the_turn(self) -> Generator[Ask, Answer, None]:
        """Variations of the request that begins the next turn."""
        self._drafts += _next_turn()
        for experiment in LATER:
            if experiment.when(self._found, self._blocks):
                yield from self._send(experiment, self._drafts)

    def _without_tools(self) -> Generator[Ask, Answer, None]:
        """Whether reasoning of finished turns is demanded also where no tool was used."""
        self._asked = self._asked._replace(tools=())
        asked = [Draft("user", Message(PLAIN))]
        result = yield from self._send(PLAIN_OPENING, asked)
        if result is not None and (texts_of(result.blocks) or opaque_of(result.blocks)):
            yield from self._send(PLAIN_WITHOUT, [*asked, *drafts_of(result, "plain"), *_next_turn()])

    def _send(self, experiment: Experiment, drafts: list[Draft]) -> Generator[Ask, Answer, ReadResult | None]:
        """One experiment; ``None`` where it was refused, or where there was nothing to change."""
        plan = plan_of(self._asked, self._found, dict(experiment.change), drafts)
        body = edited(bytes(plan), experiment.edit, self._blocks) if experiment.edit else bytes(plan)
        if body is None:
            return None
        answer = yield Ask(experiment.name, experiment.says, plan, body)
        result, failure = read(plan, answer)
        if failure is None:
            outcome = Outcome(experiment.name, experiment.says, input=counted(result.usage) if result else None)
        elif failure.status in REFUSING:
            outcome = Outcome(experiment.name, experiment.says, False, failure.status, failure.message)
        else:
            raise stopped(failure, plan)
        outcomes = {**self._found.outcomes, experiment.name: outcome}
        self._found = msgspec.structs.replace(self._found, outcomes=outcomes)
        return result

    def _text(self, experiment: Experiment) -> str:
        return self._found.outcomes[experiment.name].text

    def _take(self, result: ReadResult, id: str) -> None:
        self._blocks += result.blocks
        self._drafts += drafts_of(result, id)

    def _check_whole(self, result: ReadResult) -> None:
        response = result.response
        if response.outcome in ("max_tokens", "max_tokens_in_reasoning") or not response.complete:
            raise ThinkbackError(
                f"the answer was cut off after {self._limit} tokens or less: {response.finish or 'no reason is given'}",
                next_actions=("give more with --max-tokens",),
            )


def _next_turn() -> list[Draft]:
    return [Draft("turn_ended", TurnEnded("completed")), Draft("user", Message(NEXT))]
