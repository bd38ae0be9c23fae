"""An interaction request as the judge and the house model see it: what the server kept, and what came now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..gemini.profiles import Profile
from ..jsons import as_object, as_objects, as_text, compact
from ..persona import View, offered
from .ledger import CALL, RESULT, THOUGHT, USER, Ledger, Step, Stored, is_model, runs_of, steps_of, text_of


@dataclass(frozen=True)
class Request:
    """A request to one model for one account."""

    profile: Profile
    body: Mapping[str, object]
    account: str
    ledger: Ledger

    @property
    def previous_id(self) -> str:
        """The interaction that this one continues; empty when none."""
        return as_text(self.body.get("previous_interaction_id"))

    @cached_property
    def previous(self) -> Stored | None:
        """The stored interaction behind that id, if this account has it."""
        found = self.ledger.stored.get(self.previous_id)
        return found if found is not None and found.account == self.account else None

    @cached_property
    def kept(self) -> tuple[Step, ...]:
        """The steps that the server remembers."""
        return self.previous.steps if self.previous is not None else ()

    @cached_property
    def given(self) -> list[Step]:
        """The steps that the request brings."""
        return steps_of(self.body.get("input"))

    @cached_property
    def steps(self) -> list[Step]:
        """The whole conversation."""
        return [*self.kept, *self.given]

    @cached_property
    def opening(self) -> int:
        """The index of the step that opened the current turn; -1 when there is none."""
        return max((index for index, step in enumerate(self.steps) if step.get("type") == USER), default=-1)

    @property
    def open_turn(self) -> list[Step]:
        """What came after the opening of the current turn."""
        return self.steps[self.opening + 1 :]

    @property
    def results(self) -> list[Step]:
        """The function results of the current turn."""
        return [step for step in self.open_turn if step.get("type") == RESULT]

    @property
    def stored(self) -> bool:
        """Whether the server is to remember this interaction."""
        return self.body.get("store") is not False

    @cached_property
    def config(self) -> Mapping[str, object]:
        """``generation_config``; empty when the request has none."""
        return as_object(self.body.get("generation_config"))

    @cached_property
    def functions(self) -> list[Mapping[str, object]]:
        """The functions that the model may call."""
        tools = as_objects(self.body.get("tools"))
        return [tool for tool in tools if tool.get("type") == "function"]


def view_of(request: Request) -> View:
    """The steps, with the thoughts behind their signatures."""
    runs = runs_of(request.open_turn)
    return View(
        asked=text_of(request.steps[request.opening]) if request.opening >= 0 else "",
        turn=max(1, sum(step.get("type") == USER for step in request.steps)),
        steps=len(runs),
        rounds=sum(any(step.get("type") == CALL for _, step in run) for run in runs),
        tools=tuple(map(offered, request.functions)),
        choice=_choice(request.config.get("tool_choice")),
        thinks=request.profile.thinks,
        results=tuple(_result(step) for step in request.results),
        notes=tuple(note for step in request.steps if step.get("type") == THOUGHT for note in _notes(request, step)),
        readable=any(is_model(step) for step in request.steps),
        began=bool(runs),
    )


def words_of(request: Request) -> list[str]:
    """The prompt as words."""
    head = [request.body.get("system_instruction"), request.body.get("tools")]
    words = [word for value in head if value for word in compact(value).split()]
    for step in request.steps:
        shown = text_of(step) if step.get("type") in (USER, "model_output") else ""
        told = "" if shown or step.get("type") == THOUGHT else compact(step)
        words += [f"<{step.get('type')}>", *shown.split(), *told.split()]
    return words


def _notes(request: Request, step: Step) -> list[str]:
    mints = request.ledger.issued(as_text(step.get("signature")))
    return [mint.thought for mint in mints if mint.thought]


def _choice(choice: object) -> str:
    if isinstance(choice, str):
        return "none" if choice == "none" else ""
    allowed = as_object(as_object(choice).get("allowed_tools")).get("tools")
    return as_text(allowed[0]) if isinstance(allowed, list) and allowed else ""


def _result(step: Step) -> tuple[str, str]:
    held = step.get("result")
    return as_text(step.get("name")), held if isinstance(held, str) else compact(held)
