"""An Ollama request as the judge and the house model see it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..jsons import as_object, as_objects, as_text
from ..messages import Conversation, Message
from ..persona import View
from .profiles import Profile


def read_message(index: int, raw: Mapping[str, object]) -> Message:
    """Read one message. Its thought is known by its calls, which come back without their ids."""
    functions = tuple(as_object(call.get("function")) for call in as_objects(raw.get("tool_calls")))
    text = as_text(raw.get("content"))
    calls = [
        f"call:{as_text(function.get('name'))}:{json.dumps(function.get('arguments'), sort_keys=True)}"
        for function in functions
    ]
    key = "&".join(calls) if calls else f"text:{text}"
    return Message(index, as_text(raw.get("role")), text, as_text(raw.get("thinking")), functions, (key,), raw)


@dataclass(frozen=True)
class Request:
    """A request to one model."""

    profile: Profile
    body: Mapping[str, object]

    @cached_property
    def said(self) -> Conversation:
        """The conversation."""
        return Conversation.read(self.body.get("messages"), read_message)

    @property
    def thinks(self) -> bool:
        """Whether the model thinks: it does when nothing is said."""
        off = self.body.get("think") is False and self.profile.switch
        return self.profile.thinking and not off

    def view(self) -> View:
        """The messages for the house model."""
        turn = self.said.open_turn
        called = [as_text(function.get("name")) for message in turn for function in message.functions]
        named = [as_text(message.raw.get("tool_name")) for message in turn if message.role == "tool"]
        names = [name or call for name, call in zip(named, called, strict=True)]
        return self.said.view(self.body.get("tools"), thinks=self.thinks, names=names)
