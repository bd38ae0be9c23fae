"""A host that answers a probe from memory: whole JSON bodies, and refusals by the name of the experiment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tests.turn.playbook import ENDPOINT, RULE, target
from thinkback.model.rule import Rule
from thinkback.model.target import Target
from thinkback.turn.probing.conversation import Answer
from thinkback.turn.probing.experiments import Ask, probe
from thinkback.turn.probing.findings import Findings

THOUGHT = "The weather in Oslo is wanted, so the tool must be called first."
REFUSAL = "the reasoning of messages[3] in req_0123456789abcdef is missing"
UNKNOWN = Rule("unknown", "unknown", "nothing is known", "2025-01-01", form="field", field="", open_turn="may")


def place(dialect: str = "openai-chat", rule: Rule = UNKNOWN) -> Target:
    """Somewhere that speaks ``dialect``."""
    return target(msgspec.structs.replace(rule), endpoint=msgspec.structs.replace(ENDPOINT, dialect=dialect))


class Host:
    """``refuses``: names of experiments, with the text or the whole answer. ``said`` are the requests as they came.

    ``reasoning`` are fields of each message of openai-chat; ``counts``: reasoning counts as input.
    """

    def __init__(
        self,
        refuses: Mapping[str, str | Answer] | None = None,
        *,
        at: Target | None = None,
        reasoning: Mapping[str, Any] | None = None,
        body: Callable[[Ask], dict[str, Any]] | None = None,
        counts: Sequence[str] = (),
    ) -> None:
        self.refuses = dict(refuses or {})
        self.reasoning = {"reasoning_content": THOUGHT} if reasoning is None else reasoning
        self.counts = counts
        self.at = at or place()
        self.asks: list[Ask] = []
        self._body = body or self._chat

    def probe(self, **params: Any) -> Findings:
        """A whole probe of this host."""
        asking = probe(self.at, params, 1000)
        try:
            ask = next(asking)
            while True:
                self.asks.append(ask)
                ask = asking.send(self.answer(ask))
        except StopIteration as done:
            findings: Findings = done.value
            return findings

    def answer(self, ask: Ask) -> Answer:
        """The answer to one request."""
        refusal = self.refuses.get(ask.name)
        if isinstance(refusal, Answer):
            return refusal
        if refusal is not None:
            return error(400, refusal)
        return Answer(200, "application/json", json.dumps(self._body(ask)).encode())

    def sent(self, name: str) -> Any:
        """The body of an experiment's last request."""
        return json.loads(next(ask.body for ask in reversed(self.asks) if ask.name == name))

    @property
    def names(self) -> list[str]:
        """The experiments in the order they were made."""
        return [ask.name for ask in self.asks]

    def _chat(self, ask: Ask) -> dict[str, Any]:
        asked = json.loads(ask.body)
        message = {"role": "assistant", "content": "Rain.", **self.reasoning}
        if wants_tool(ask):
            function = {"name": "get_weather", "arguments": '{"city":"Oslo"}'}
            call = {"id": "call_1", "type": "function", "function": function}
            message |= {"content": None, "tool_calls": [call], **extra_of(self.reasoning)}
        finish = "tool_calls" if "tool_calls" in message else "stop"
        usage = {"prompt_tokens": 100 if ask.name in self.counts else 40, "completion_tokens": 9}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {"id": "x", "object": "chat.completion", "model": asked["model"], "choices": [choice], "usage": usage}


def extra_of(reasoning: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that only messages with calls have."""
    return dict(reasoning.get("with_calls", {}))


def wants_tool(ask: Ask) -> bool:
    """Whether the model would call its tool: it has one and did not use it yet."""
    body = json.loads(ask.body)
    return bool(body.get("tools")) and ask.name == "opening"


def error(status: int, text: str) -> Answer:
    """An error in the shape that most hosts have."""
    body = {"error": {"message": text, "type": "invalid_request_error", "code": None}}
    return Answer(status, "application/json", json.dumps(body).encode())


def strict(**changed: Any) -> Rule:
    """A known row that demands everything."""
    return msgspec.structs.replace(RULE, **changed)
