"""A Cohere request as the judge and the house model see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..jsons import as_object, as_objects, as_text
from ..messages import Conversation, Message
from ..persona import View
from .profiles import Profile


def items_of(raw: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The content of a message as items; a string is one text."""
    content = raw.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else as_objects(content)


def read_message(index: int, raw: Mapping[str, object]) -> Message:
    """Read one message; a tool's documents are text."""
    items, calls = items_of(raw), as_objects(raw.get("tool_calls"))
    texts = [as_text(item.get("text")) or as_text(as_object(item.get("document")).get("data")) for item in items]
    thoughts = [as_text(item.get("thinking")) for item in items if item.get("type") == "thinking"]
    text = "".join(texts)
    return Message(
        index,
        as_text(raw.get("role")),
        text,
        "".join(thoughts) if thoughts else None,
        tuple(as_object(call.get("function")) for call in calls),
        tuple(f"call:{as_text(call.get('id'))}" for call in calls) or (f"text:{text}",),
        raw,
    )


@dataclass(frozen=True)
class Request:
    """A request of one account to one model."""

    profile: Profile
    body: Mapping[str, object]
    account: str = ""

    @cached_property
    def said(self) -> Conversation:
        """The conversation."""
        return Conversation.read(self.body.get("messages"), read_message)

    @property
    def thinks(self) -> bool:
        """Whether the model thinks: reasoning models do unless told not to."""
        return self.profile.reasons and as_object(self.body.get("thinking")).get("type") != "disabled"

    def view(self) -> View:
        """The messages for the house model."""
        turn = self.said.open_turn
        calls = [call for message in turn for call in as_objects(message.raw.get("tool_calls"))]
        named = {as_text(call.get("id")): as_text(as_object(call.get("function")).get("name")) for call in calls}
        names = [named.get(as_text(message.raw.get("tool_call_id")), "") for message in turn if message.role == "tool"]
        choice = "none" if self.body.get("tool_choice") == "NONE" else ""
        return self.said.view(self.body.get("tools"), thinks=self.thinks, names=names, choice=choice)
