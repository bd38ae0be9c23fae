"""What was minted: every thinking block with the thought behind it, for whom, and under which conversation.

The provider keeps nothing: all of this is inside its opaque values. Here they are keys to look it up. The ledger learns
from recorded responses as well, whole or streamed.

What comes before a block is a digest: two requests have the same ones up to a block iff they agree up to it. Cache
marks, thinking blocks and how a text is wrapped do not count; neither does where one message of a role ends and the
next of that role begins.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from ..jsons import as_list, as_object, as_text
from .request import THINKING, Block, Message, Request, blocks_of

_MARKS = frozenset({"cache_control", "caller"})


class Trail:
    """The blocks read so far."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._role = ""

    def feed(self, role: str, block: Block) -> None:
        """Read one block; thoughts leave no trace."""
        if block.kind in THINKING:
            return
        if role != self._role:
            self._role = role
            self._hash.update(role.encode())
        self._hash.update(_canonical(block.raw))

    def read(self, messages: Sequence[Message]) -> None:
        """Read whole messages."""
        for message in messages:
            for block in message.blocks:
                self.feed(message.role, block)

    @property
    def digest(self) -> str:
        """The digest of all that was read."""
        return self._hash.hexdigest()


def digest_of(value: object) -> str:
    """The digest of the system prompt or the list of tools."""
    return hashlib.sha256(_canonical(value)).hexdigest()


def _canonical(value: object) -> bytes:
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, dict):
        kept = {name: _plain(inner) for name, inner in as_object(value).items() if _counts(name, inner)}
        return {**kept, "content": _wrapped(value["content"])} if "content" in kept else kept
    return [_plain(inner) for inner in as_list(value)] if isinstance(value, list) else value


def _counts(name: str, value: object) -> bool:
    return name not in _MARKS and value is not None


def _wrapped(content: object) -> object:
    return [{"text": as_text(content), "type": "text"}] if isinstance(content, str) else _plain(content)


def system_digest(body: Mapping[str, object]) -> str:
    """The digest of the system prompt; a string is one text block."""
    system = body.get("system")
    return digest_of(_wrapped(system) if system else [])


def tools_digest(body: Mapping[str, object]) -> str:
    """The digest of the offered tools."""
    return digest_of(as_list(body.get("tools")))


@dataclass(frozen=True, slots=True)
class Seal:
    """One thinking or redacted block as it was minted."""

    answer: str
    """The id of the response it belongs to."""
    kind: str
    opaque: str = field(repr=False)
    text: str = field(repr=False)
    thought: str = field(repr=False)
    """What the provider reads out of the opaque value."""
    host: str
    model: str
    account: str
    user: str
    system: str
    tools: str
    trail: str
    """The digest of all messages and blocks before it."""
    chain: tuple[str, ...] = field(repr=False, default=())
    """The opaque values that counted before it, oldest first."""


@dataclass(frozen=True, slots=True)
class Minted:
    """One response: its seals, its calls, its text, and how seals and calls alternate."""

    id: str
    seals: tuple[Seal, ...]
    calls: tuple[str, ...]
    text: str
    order: tuple[str, ...] = field(repr=False)
    """Opaque values and ids of calls, in their order."""
    paused: bool = False
    """It stopped with ``pause_turn``: the client sends it back to have it continued."""
    thought_late: bool = False
    """Thinking was on, and yet it did not begin with a thought."""


class Ledger:
    """Seals by opaque value, and responses by the ids of their calls, their seals, or their text."""

    def __init__(self) -> None:
        self._seals: dict[str, Seal] = {}
        self._answers: defaultdict[str, dict[str, Minted]] = defaultdict(dict)

    def seal(self, opaque: str) -> Seal | None:
        """The seal behind an opaque value."""
        return self._seals.get(opaque)

    def answers(self, message: Message) -> list[Minted]:
        """The responses that an assistant message consists of, or may.

        Many say the same words: of those known by their words alone, the ones without thoughts win.
        """
        found: dict[str, Minted] = {}
        for key in _keys([block.opaque for block in message.thinking], message.calls, message.text):
            found.update(self._answers.get(key, {}))
        plain = [minted for minted in found.values() if not minted.seals]
        alone = not message.thinking and not message.calls
        return plain if alone and plain else list(found.values())

    def learn(
        self,
        request: Request,
        response: Mapping[str, object],
        kept: Sequence[str] = (),
        thoughts: Mapping[str, str] | None = None,
    ) -> Minted:
        """Note what a response to a request minted.

        ``kept``: the opaque values of the request that counted. ``thoughts``: what is behind each new opaque value,
        where the text does not show it.
        """
        blocks = blocks_of(len(request.messages), response.get("content"))
        name = as_text(response.get("id")) or sha256(repr(blocks).encode()).hexdigest()
        trail, chain = Trail(), list(kept)
        trail.read(request.messages)
        seals = []
        for block in blocks:
            if block.opaque or block.kind == "thinking":
                seals.append(_seal(name, request, block, trail.digest, tuple(chain), thoughts or {}))
                chain.append(block.opaque)
            trail.feed("assistant", block)
        read = Message(len(request.messages), "assistant", 0, blocks)
        paused = response.get("stop_reason") == "pause_turn"
        late = request.thinking_on and blocks[:1] != read.thinking[:1]
        minted = Minted(name, tuple(seals), read.calls, read.text, order_of(blocks), paused, late)
        self._note(minted)
        return minted

    def _note(self, minted: Minted) -> None:
        opaques = [seal.opaque for seal in minted.seals if seal.opaque]
        self._seals.update({seal.opaque: seal for seal in minted.seals if seal.opaque})
        for key in {*_keys(opaques, minted.calls, ""), f"text:{minted.text}"}:
            self._answers[key][minted.id] = minted


def order_of(blocks: Sequence[Block]) -> tuple[str, ...]:
    """Opaque values and ids of calls, in their order."""
    found = [block.opaque or as_text(block.raw.get("id")) for block in blocks if block.kind in _ORDERED]
    return tuple(name for name in found if name)


_ORDERED = frozenset({"thinking", "redacted_thinking", "tool_use"})


def _seal(
    answer: str, request: Request, block: Block, trail: str, chain: tuple[str, ...], thoughts: Mapping[str, str]
) -> Seal:
    return Seal(
        answer=answer,
        kind=block.kind,
        opaque=block.opaque,
        text=block.text,
        thought=thoughts.get(block.opaque, block.text),
        host=request.caller.host.name,
        model=request.profile.model,
        account=request.caller.account,
        user=request.user,
        system=system_digest(request.body),
        tools=tools_digest(request.body),
        trail=trail,
        chain=chain,
    )


def _keys(opaques: Sequence[str], calls: Sequence[str], text: str) -> list[str]:
    keys = [f"seal:{opaque}" for opaque in opaques if opaque] + [f"call:{call}" for call in calls]
    # Two responses may say the same: a text is asked for only where nothing better is.
    return keys or ([f"text:{text}"] if text else [])
