"""A well-formed Cohere request as the judge and the house model see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..jsons import as_list, as_object, as_text
from .profiles import Profile


@dataclass(frozen=True, slots=True)
class Message:
    """One message, read; ``raw`` is what arrived."""

    index: int
    role: str
    raw: Mapping[str, object]

    @property
    def items(self) -> list[Mapping[str, object]]:
        """The content as items; a string is one text."""
        content = self.raw.get("content")
        return (
            [{"type": "text", "text": content}] if isinstance(content, str) else list(map(as_object, as_list(content)))
        )

    @property
    def text(self) -> str:
        """The visible text; a tool's documents count."""
        texts = [
            as_text(item.get("text")) or as_text(as_object(item.get("document")).get("data")) for item in self.items
        ]
        return "".join(texts)

    @property
    def thinking(self) -> str | None:
        """The joined thoughts, None when there is no thinking item."""
        thoughts = [as_text(item.get("thinking")) for item in self.items if item.get("type") == "thinking"]
        return "".join(thoughts) if thoughts else None

    @property
    def calls(self) -> list[Mapping[str, object]]:
        """The tool calls."""
        return [as_object(call) for call in as_list(self.raw.get("tool_calls"))]

    @property
    def keys(self) -> list[str]:
        """By what its thought is known: the ids of its calls, else its text."""
        return [f"call:{as_text(call.get('id'))}" for call in self.calls] or [f"text:{self.text}"]


@dataclass(frozen=True)
class Request:
    """A request to one model."""

    profile: Profile
    body: Mapping[str, object]

    @cached_property
    def messages(self) -> list[Message]:
        """The conversation."""
        raws = [as_object(raw) for raw in as_list(self.body.get("messages"))]
        return [Message(index, as_text(raw.get("role")), raw) for index, raw in enumerate(raws)]

    @cached_property
    def opening(self) -> int:
        """The index of the last user message; -1 when there is none."""
        return max((message.index for message in self.messages if message.role == "user"), default=-1)

    @property
    def open_turn(self) -> Sequence[Message]:
        """What came after the last user message."""
        return self.messages[self.opening + 1 :]

    @property
    def assistants(self) -> list[Message]:
        """The assistant messages."""
        return [message for message in self.messages if message.role == "assistant"]

    @property
    def thinks(self) -> bool:
        """Whether the model thinks: reasoning models do unless told not to."""
        return self.profile.reasons and as_object(self.body.get("thinking")).get("type") != "disabled"

    @property
    def tools(self) -> list[Mapping[str, object]]:
        """The functions on offer."""
        return [as_object(as_object(tool).get("function")) for tool in as_list(self.body.get("tools"))]
