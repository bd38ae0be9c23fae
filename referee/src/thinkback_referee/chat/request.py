"""A well-formed chat request as the judge and the scripted model see it: messages, turns, whether it thinks.

Built only from bodies that passed the shape check. Indices are positions in the request's ``messages``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from ..jsons import as_list, as_object, as_text
from .profiles import Keeps, Profile, Requires, Switch


@dataclass(frozen=True, slots=True)
class Message:
    """One message, read; ``raw`` is what arrived."""

    index: int
    role: str
    text: str
    calls: tuple[str, ...]
    call_id: str
    raw: Mapping[str, object]

    def reasoning(self, field: str) -> str | None:
        """The reasoning text under a field name, None when absent; ``thinking`` reads the chunks of ``content``."""
        if field != "thinking":
            value = self.raw.get(field)
            return value if isinstance(value, str) else None
        return thinking_text(self.raw.get("content"))


def thinking_text(content: object) -> str | None:
    """The joined text of the ``thinking`` chunks of a content list, None when it has none."""
    chunks = [as_object(part) for part in as_list(content)]
    inner = [as_list(chunk.get("thinking")) for chunk in chunks if chunk.get("type") == "thinking"]
    if not inner:
        return None
    return "".join(as_text(as_object(piece).get("text")) for pieces in inner for piece in pieces)


def visible_text(content: object) -> str:
    """The text of a content value: the string, or the joined ``text`` parts of a list."""
    if isinstance(content, str):
        return content
    parts = [as_object(part) for part in as_list(content)]
    return "".join(as_text(part.get("text")) for part in parts if part.get("type") == "text")


def read_message(index: int, value: object) -> Message:
    """Read one message; fields of the wrong type read as empty."""
    raw = as_object(value)
    calls = tuple(as_text(as_object(call).get("id")) for call in as_list(raw.get("tool_calls")))
    text = visible_text(raw.get("content"))
    return Message(index, as_text(raw.get("role")), text, calls, as_text(raw.get("tool_call_id")), raw)


@dataclass(frozen=True)
class Request:
    """A parsed request to one model."""

    profile: Profile
    body: Mapping[str, object]

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        return tuple(read_message(index, value) for index, value in enumerate(as_list(self.body.get("messages"))))

    @cached_property
    def assistants(self) -> tuple[Message, ...]:
        """The assistant messages."""
        return tuple(message for message in self.messages if message.role == "assistant")

    @cached_property
    def tools(self) -> tuple[Mapping[str, object], ...]:
        """The function objects of the offered tools."""
        return tuple(as_object(as_object(tool).get("function")) for tool in as_list(self.body.get("tools")))

    @cached_property
    def turns(self) -> tuple[tuple[Message, ...], ...]:
        """The messages after each user message, one tuple per turn; the last one is the open turn."""
        turns: list[list[Message]] = []
        for message in self.messages:
            if message.role == "user":
                turns.append([])
            elif turns:
                turns[-1].append(message)
        return tuple(tuple(turn) for turn in turns)

    @cached_property
    def thinks(self) -> bool:
        """Whether the model thinks on this request."""
        profile = self.profile
        match profile.switch:
            case Switch.THINKING:
                kind = as_object(self.body.get("thinking")).get("type")
                return profile.thinks if kind is None else kind != "disabled"
            case Switch.EFFORT:
                effort = self.body.get("reasoning_effort")
                return profile.thinks if effort is None else effort != "none"
            case Switch.FIXED:
                return profile.thinks

    @cached_property
    def required(self) -> frozenset[int]:
        """Indices of the assistant messages that must carry their reasoning."""
        return _REQUIRED[self.profile.requires](self) if self.thinks else frozenset()

    @cached_property
    def visible(self) -> frozenset[int]:
        """Indices of the assistant messages whose reasoning the model gets to read."""
        return _VISIBLE[self.profile.keeps](self) if self.thinks else frozenset()


def _indices(messages: Sequence[Message]) -> frozenset[int]:
    return frozenset(message.index for message in messages if message.role == "assistant")


def _calling(messages: Sequence[Message]) -> frozenset[int]:
    return frozenset(message.index for message in messages if message.calls)


def _nothing(request: Request) -> frozenset[int]:
    return frozenset()


def _everything(request: Request) -> frozenset[int]:
    return _indices(request.assistants)


def _open_turn(request: Request) -> frozenset[int]:
    return _indices(request.turns[-1]) if request.turns else frozenset()


def _open_turn_calls(request: Request) -> frozenset[int]:
    return _calling(request.turns[-1]) if request.turns else frozenset()


def _with_tool_turns(request: Request) -> frozenset[int]:
    return _open_turn(request).union(*(_indices(turn) for turn in request.turns if _calling(turn)))


def _tool_turns_or_tools(request: Request) -> frozenset[int]:
    # Offering tools makes the server check every assistant message, also those of turns without calls.
    return _everything(request) if request.tools else _in_tool_turns(request)


def _in_tool_turns(request: Request) -> frozenset[int]:
    return frozenset[int]().union(*(_indices(turn) for turn in request.turns if _calling(turn)))


def _on_request(request: Request) -> frozenset[int]:
    keep = as_object(request.body.get("thinking")).get("keep")
    return _everything(request) if keep == "all" else _open_turn(request)


_Pick = Callable[[Request], frozenset[int]]
_REQUIRED: MappingProxyType[Requires, _Pick] = MappingProxyType(
    {
        Requires.NOTHING: _nothing,
        Requires.OPEN_TURN_CALLS: _open_turn_calls,
        Requires.TOOL_TURNS: _tool_turns_or_tools,
        Requires.CALLS: lambda request: _calling(request.assistants),
    }
)
_VISIBLE: MappingProxyType[Keeps, _Pick] = MappingProxyType(
    {
        Keeps.NOTHING: _nothing,
        Keeps.OPEN_TURN: _open_turn,
        Keeps.TOOL_TURNS: _with_tool_turns,
        Keeps.ON_REQUEST: _on_request,
        Keeps.EVERYTHING: _everything,
    }
)
