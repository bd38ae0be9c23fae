"""The steps of interactions, and what the referee keeps of them: the stored ones, and the responses with their steps.

A string, a content, a list of contents and a list of steps all mean steps, in a flat list. Function results may stand
inside a user's content, as recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..gemini.ledger import octets
from ..jsons import JsonObject, as_list, as_object, as_objects, as_text

Step = Mapping[str, object]

THOUGHT = "thought"
CALL = "function_call"
RESULT = "function_result"
USER = "user_input"
OUTPUT = "model_output"
_STEPS = frozenset({THOUGHT, CALL, RESULT, USER, OUTPUT})
_CONTENTS = frozenset({"text", "image", "audio", "video", "document"})


def steps_of(given: object) -> list[Step]:
    """The input as steps."""
    if isinstance(given, str):
        return [{"type": USER, "content": [{"type": "text", "text": given}]}]
    listed = given if isinstance(given, list) else [given]
    items = [as_object(item) for item in listed]
    if items and all(item.get("type") in _CONTENTS for item in items):
        return [{"type": USER, "content": listed}]
    return [step for item in items for step in _opened(item)]


def is_known(kind: str) -> bool:
    """Whether a step may have this type; those of the server's own tools end in ``_call`` and ``_result``."""
    return kind in _STEPS or kind.endswith(("_call", "_result"))


def is_model(step: Step) -> bool:
    """Whether the model made the step."""
    return step.get("type") not in (USER, RESULT)


def runs_of(steps: Sequence[Step]) -> list[list[tuple[int, Step]]]:
    """The model's steps, response by response, with their places."""
    runs: list[list[tuple[int, Step]]] = []
    fresh = True
    for index, step in enumerate(steps):
        if not is_model(step):
            fresh = True
            continue
        if fresh:
            runs.append([])
        runs[-1].append((index, step))
        fresh = False
    return runs


def text_of(step: Step) -> str:
    """The visible text of a step, or the summary of a thought."""
    held = step.get("summary") if step.get("type") == THOUGHT else step.get("content")
    return "".join(as_text(as_object(item).get("text")) for item in as_list(held))


def _opened(step: Step) -> Iterator[Step]:
    if step.get("type") != USER:
        yield step
        return
    contents = as_objects(step.get("content"))
    yield from (item for item in contents if item.get("type") == RESULT)
    rest = [item for item in contents if item.get("type") != RESULT]
    if rest:
        yield {**step, "content": rest}
    elif not contents:
        yield step


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


def _keys(steps: Iterable[Step]) -> list[str]:
    listed = list(steps)
    calls = [f"call:{as_text(step.get('id'))}" for step in listed if step.get("type") == CALL]
    return calls or [f"text:{text_of(step)}" for step in listed if step.get("type") == OUTPUT]
