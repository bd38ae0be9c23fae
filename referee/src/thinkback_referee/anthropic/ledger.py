"""What was minted: every thinking block with the thought behind it, for whom, and under which conversation.

The provider keeps nothing: all of this is inside its opaque values. Here they are keys to look it up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from ..jsons import as_text
from .request import Block, Message, Request, blocks_of
from .trail import Trail, system_digest, tools_digest


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
