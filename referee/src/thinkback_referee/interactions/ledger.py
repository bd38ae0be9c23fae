"""What the referee keeps of interactions: the stored ones, and every response with the steps it must come back as."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..gemini.ledger import octets
from ..jsons import JsonObject, as_list, as_object, as_text
from .steps import CALL, OUTPUT, THOUGHT, Step, text_of

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Stored:
    """An interaction that can be continued by its id: all steps up to its end, and whose it is."""

    steps: tuple[Step, ...]
    model: str
    account: str
    body: JsonObject
    """The interaction as it was answered."""


@dataclass(frozen=True, slots=True)
class Mint:
    """One response: the model's steps, and the thought behind its signature."""

    model: str
    steps: tuple[Step, ...]
    thought: str = ""


class Ledger:
    """All responses so far, and the interactions that are stored."""

    def __init__(self) -> None:
        self.stored: dict[str, Stored] = {}
        self._by_signature: dict[bytes, list[Mint]] = {}
        self._by_key: dict[str, list[Mint]] = {}

    def add(self, mint: Mint) -> None:
        """Note a response."""
        for step in mint.steps:
            signature = as_text(step.get("signature"))
            if signature:
                self._by_signature.setdefault(octets(signature), []).append(mint)
        for key in _keys(mint.steps):
            self._by_key.setdefault(key, []).append(mint)

    def issued(self, signature: str) -> Sequence[Mint]:
        """The responses that carried a signature."""
        return self._by_signature.get(octets(signature), ())

    def matching(self, model: str, run: Iterable[Step]) -> list[Mint]:
        """The responses of the model that these steps can be a replay of: by their calls' ids, else by their text."""
        found = [mint for key in _keys(run) for mint in self._by_key.get(key, ())]
        return [mint for mint in found if mint.model == model]

    def learn(self, model: str, response: object, before: Sequence[Step] = (), account: str = "") -> None:
        """Note a recorded response, whole or as the text of an event stream, and store it under its id."""
        body = _merged(response) if isinstance(response, str) else dict(as_object(response))
        steps = tuple(as_object(step) for step in as_list(body.get("steps")))
        self.add(Mint(model, steps))
        self.stored[as_text(body.get("id"))] = Stored((*before, *steps), model, account, body)


def _keys(steps: Iterable[Step]) -> list[str]:
    listed = list(steps)
    calls = [f"call:{as_text(step.get('id'))}" for step in listed if step.get("type") == CALL]
    return calls or [f"text:{text_of(step)}" for step in listed if step.get("type") == OUTPUT]


def _merged(stream: str) -> JsonObject:
    """The interaction that a stream tells, with its steps."""
    steps: dict[object, JsonObject] = {}
    whole: JsonObject = {}
    for line in _LINE_END.split(stream):
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        event = as_object(json.loads(data))
        whole |= as_object(event.get("interaction"))
        if event.get("event_type") == "step.start":
            steps[event.get("index")] = dict(as_object(event.get("step")))
        elif event.get("event_type") == "step.delta":
            _extend(steps[event.get("index")], as_object(event.get("delta")))
    return {**whole, "steps": list(steps.values())}


def _extend(step: JsonObject, delta: Mapping[str, object]) -> None:
    if "signature" in delta:
        step["signature"] = delta["signature"]
    elif "arguments" in delta:
        step["arguments"] = json.loads(as_text(delta["arguments"]))
    elif "text" in delta or "content" in delta:
        name = "summary" if step.get("type") == THOUGHT else "content"
        text = as_text(delta.get("text")) or as_text(as_object(delta.get("content")).get("text"))
        step[name] = [*as_list(step.get(name)), {"type": "text", "text": text}]
