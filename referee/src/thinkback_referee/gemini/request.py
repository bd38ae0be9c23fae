"""A well-formed generateContent request as the judge and the house model see it: contents, steps, turns.

Built only from bodies that passed the schema. Indices are positions in the request's ``contents``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..jsons import as_list, as_object, as_text
from .profiles import Host, Profile


@dataclass(frozen=True, slots=True)
class Part:
    """One part, read; ``raw`` is what arrived, with camelCase names."""

    index: int
    raw: Mapping[str, object]

    @property
    def signature(self) -> str:
        """The thought signature; empty when there is none."""
        return as_text(self.raw.get("thoughtSignature"))

    @property
    def call(self) -> Mapping[str, object] | None:
        """The function call, None when the part is something else."""
        return as_object(self.raw["functionCall"]) if "functionCall" in self.raw else None

    @property
    def answer(self) -> Mapping[str, object] | None:
        """The function response, None when the part is something else."""
        return as_object(self.raw["functionResponse"]) if "functionResponse" in self.raw else None

    @property
    def text(self) -> str:
        """Visible text; thoughts are not."""
        return "" if self.raw.get("thought") else as_text(self.raw.get("text"))


@dataclass(frozen=True, slots=True)
class Content:
    """One message; ``role`` is empty where the request leaves it out."""

    index: int
    role: str
    parts: tuple[Part, ...]

    @property
    def calls(self) -> list[tuple[Part, Mapping[str, object]]]:
        """The parts that are function calls, with the call."""
        return [(part, part.call) for part in self.parts if part.call is not None]

    @property
    def answers(self) -> list[Mapping[str, object]]:
        """The function responses."""
        return [part.answer for part in self.parts if part.answer is not None]

    @property
    def is_user(self) -> bool:
        """Whether it opens a turn: not the model's, and more than function responses."""
        return self.role != "model" and any(part.answer is None for part in self.parts)

    @property
    def text(self) -> str:
        """The visible text of all parts."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True)
class Request:
    """A request to one model at one host; ``body`` has camelCase names and no nulls."""

    host: Host
    profile: Profile
    body: Mapping[str, object]

    @cached_property
    def contents(self) -> list[Content]:
        """The conversation."""
        return [
            Content(index, as_text(raw.get("role")), _parts(raw))
            for index, raw in enumerate(map(as_object, as_list(self.body.get("contents"))))
        ]

    @cached_property
    def opening(self) -> int:
        """The index of the content that opened the current turn; -1 when there is none."""
        return max((content.index for content in self.contents if content.is_user), default=-1)

    @property
    def open_turn(self) -> Sequence[Content]:
        """What came after the opening of the current turn."""
        return self.contents[self.opening + 1 :]

    @property
    def model_contents(self) -> Iterator[Content]:
        """The model's messages."""
        return (content for content in self.contents if content.role == "model")

    @cached_property
    def thinking(self) -> Mapping[str, object]:
        """``thinkingConfig``; empty when the request has none."""
        return as_object(as_object(self.body.get("generationConfig")).get("thinkingConfig"))

    @property
    def thinks(self) -> bool:
        """Whether the model thinks."""
        budget = self.thinking.get("thinkingBudget")
        if isinstance(budget, int):
            return budget != 0
        return self.profile.thinks or "thinkingLevel" in self.thinking

    @property
    def shows_thoughts(self) -> bool:
        """Whether summaries of thoughts were asked for."""
        return self.thinking.get("includeThoughts") is True

    @cached_property
    def declarations(self) -> list[Mapping[str, object]]:
        """The functions that the model may call."""
        tools = [as_object(tool) for tool in as_list(self.body.get("tools"))]
        return [as_object(item) for tool in tools for item in as_list(tool.get("functionDeclarations"))]


def _parts(raw: Mapping[str, object]) -> tuple[Part, ...]:
    return tuple(Part(index, as_object(part)) for index, part in enumerate(as_list(raw.get("parts"))))
