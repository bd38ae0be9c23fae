"""An interaction request as the judge and the house model see it: what the server kept, and what came now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..gemini.profiles import Profile
from ..jsons import as_list, as_object, as_text
from .ledger import Ledger, Stored
from .steps import RESULT, USER, Step, steps_of


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
        tools = [as_object(tool) for tool in as_list(self.body.get("tools"))]
        return [tool for tool in tools if tool.get("type") == "function"]
