"""What was minted: the reasoning of every response, found again by its tool-call ids or by its answer text.

The ledger is how the referee can be stricter than the providers: they cannot tell altered reasoning from their own,
it can. It only grows; ``Referee.reset`` starts a new one. It learns from recorded responses as well, whole or streamed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..jsons import JsonObject, as_list, as_object, as_text
from ..streams import json_events
from .profiles import Profile
from .request import Message, read_message, thinking_text

_TEXT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal")


def message_of(response: Mapping[str, object] | str | bytes) -> Mapping[str, object] | None:
    """The assistant message of a completion, a bare message, or a body of server-sent events; None for errors."""
    if isinstance(response, bytes):
        response = response.decode("utf-8")
    if isinstance(response, str):
        return _merge(json_events(response))
    if "error" in response:
        return None
    choices = as_list(response.get("choices"))
    return as_object(as_object(choices[0]).get("message")) if choices else response if "role" in response else None


def _merge(events: Iterable[Mapping[str, object]]) -> JsonObject | None:
    message: JsonObject = {"role": "assistant"}
    calls: dict[object, dict[str, str]] = {}
    for event in events:
        if "error" in event:
            return None
        for choice in as_list(event.get("choices")):
            delta = as_object(as_object(choice).get("delta"))
            _append_text(message, delta)
            for call in as_list(delta.get("tool_calls")):
                _append_call(calls, as_object(call))
    if calls:
        message["tool_calls"] = [_whole_call(call) for call in calls.values()]
    return message


def _append_text(message: JsonObject, delta: Mapping[str, object]) -> None:
    for name in _TEXT_FIELDS:
        piece = delta.get(name)
        if isinstance(piece, str):
            _extend(message, name, piece)
        elif isinstance(piece, list):
            # Content chunks: keep them as chunks, for thinking and text alternate.
            earlier = message.get(name)
            chunks = list(as_list(earlier)) or ([{"type": "text", "text": earlier}] if earlier else [])
            message[name] = [*chunks, *piece]


def _extend(message: JsonObject, name: str, piece: str) -> None:
    earlier = message.get(name)
    if isinstance(earlier, list):
        message[name] = [*earlier, {"type": "text", "text": piece}] if piece else earlier
    else:
        message[name] = as_text(earlier) + piece


def _append_call(calls: dict[object, dict[str, str]], delta: Mapping[str, object]) -> None:
    call = calls.setdefault(delta.get("index", 0), {"id": "", "name": "", "arguments": ""})
    function = as_object(delta.get("function"))
    call["id"] = call["id"] or as_text(delta.get("id"))
    call["name"] += as_text(function.get("name"))
    call["arguments"] += as_text(function.get("arguments"))


def _whole_call(call: Mapping[str, str]) -> JsonObject:
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}


_FIELDS = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class Mint:
    """One response: who made it, what it thought, and by what it is recognised."""

    host: str
    model: str
    reasoning: str
    text: str
    calls: tuple[str, ...] = ()
    tagged: bool = False
    """The thought came as tags inside the text, so a client may carry it in any field, or none."""


class Ledger:
    """Mints by tool-call id, by text, and by reasoning."""

    def __init__(self) -> None:
        self._by_key: defaultdict[str, dict[Mint, None]] = defaultdict(dict)
        self._by_reasoning: defaultdict[str, set[Mint]] = defaultdict(set)

    def add(self, mint: Mint) -> None:
        """Note a mint; the same mint twice is noted once."""
        for key in _keys(mint.calls, mint.text):
            self._by_key[key][mint] = None
        self._by_reasoning[mint.reasoning].add(mint)

    def learn(self, profile: Profile, response: Mapping[str, object] | str | bytes) -> Mint | None:
        """Note what a response minted: a completion object, a bare message, or the text of an event stream.

        Returns the mint, or None for a response that reports an error.
        """
        raw = message_of(response)
        if raw is None:
            return None
        message = read_message(0, raw)
        reasoning = next((value for name in _FIELDS if (value := message.reasoning(name))), None)
        tagged = reasoning is None and "</think>" in message.text
        thought = reasoning or thinking_text(raw.get("content")) or ""
        mint = Mint(profile.host.name, profile.model, thought, message.text, message.calls, tagged)
        self.add(mint)
        return mint

    def mints(self, host: str, message: Message) -> list[Mint]:
        """The mints of this host that the message can be a replay of."""
        return [mint for mint in self._matching(message) if mint.host == host]

    def foreign(self, host: str, message: Message) -> list[Mint]:
        """The mints of other hosts that the message can be a replay of."""
        return [mint for mint in self._matching(message) if mint.host != host]

    def issued(self, reasoning: str) -> int:
        """How many different responses were minted with exactly this reasoning."""
        return len(self._by_reasoning.get(reasoning, ()))

    def _matching(self, message: Message) -> list[Mint]:
        found: dict[Mint, None] = {}
        for key in _keys(message.calls, message.text):
            found.update(self._by_key.get(key, {}))
        return list(found)


def _keys(calls: tuple[str, ...], text: str) -> list[str]:
    return [f"call:{call}" for call in calls] if calls else [f"text:{text}"]
