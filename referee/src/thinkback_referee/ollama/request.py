"""An Ollama request as the judge and the house model see it."""

from __future__ import annotations

import json
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
    def text(self) -> str:
        """The content."""
        return as_text(self.raw.get("content"))

    @property
    def thinking(self) -> str:
        """The thought; empty when there is none."""
        return as_text(self.raw.get("thinking"))

    @property
    def calls(self) -> list[Mapping[str, object]]:
        """The functions that it calls."""
        return [as_object(as_object(call).get("function")) for call in as_list(self.raw.get("tool_calls"))]

    @property
    def keys(self) -> list[str]:
        """By what its thought is known: its calls, which come back without their ids, else its text."""
        calls = [
            f"call:{as_text(call.get('name'))}:{json.dumps(call.get('arguments'), sort_keys=True)}"
            for call in self.calls
        ]
        return ["&".join(calls)] if calls else [f"text:{self.text}"]


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
        """Whether the model thinks: it does when nothing is said."""
        off = self.body.get("think") is False and self.profile.switch
        return self.profile.thinking and not off

    @property
    def tools(self) -> list[Mapping[str, object]]:
        """The functions on offer."""
        return [as_object(as_object(tool).get("function")) for tool in as_list(self.body.get("tools"))]
