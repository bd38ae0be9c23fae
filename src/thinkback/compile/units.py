"""Turns, and the messages and responses they are made of, as the passes of compile hand them on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.model.blocks import (
    Block,
    Origin,
    Text,
    ThinkingBlock,
    ToolCall,
    ToolResult,
    Unknown,
    carriers_of,
    opaque_values,
)
from thinkback.model.commits import Message, Response, TurnState, Usage

Thought: TypeAlias = tuple[str, ThinkingBlock]
NOBODY = Origin("", "", "")
"""Who minted what a person wrote."""


class Chain(NamedTuple):
    """The reasoning that went in a request: of how many responses, and the digest of that of the last."""

    length: int = 0
    last: str = ""


class Minted(msgspec.Struct, frozen=True, gc=False):
    """What a response was minted under: hex digests of its request, whether the provider was to keep it, the estimate
    of its tokens, 0 where the record has none, and the chain of reasoning in it (``None``: the record does not say).
    """

    system: str
    tools: str
    messages: str
    stored: bool
    size: int = 0
    chain: Chain | None = None


class Change(NamedTuple):
    """What people made of a message. ``gone``: why it stays away; ``stored``: characters as they are in the log.

    ``at`` is the ``seq`` of the commit that said so, -1 where it is so from the start. ``pinned``: it goes also where
    its turn is left out.
    """

    gone: str
    stored: int
    at: int
    pinned: bool = False


class Away(NamedTuple):
    """A block that is in the log and does not go as it is there, with the reason.

    ``edited``: what it says goes in other words, and only what it carried is lost.
    """

    hash: str
    block: Block
    reason: str
    edited: bool = False


class Changes(NamedTuple):
    """What people made of a response. ``source`` is what the log has.

    ``gone``: why nothing of it goes, ``bare`` that this is because it is nothing but reasoning; ``void``: why nothing
    that it carries does. Of its reasoning, by commit hash and with the reason: ``skipped`` stays away and ``edited``
    goes in other words (here is what it was), unless it is required; ``lifted`` goes whatever the settings say;
    ``lost`` cannot go. ``at`` is the ``seq`` of the last commit that said so, ``thought_at`` that of the last that
    skipped or edited reasoning; -1 where it is so from the start. ``pinned``: it goes also where its turn is left out.
    """

    source: ResponseUnit
    gone: str = ""
    bare: bool = False
    void: str = ""
    skipped: Mapping[str, str] = {}
    edited: Mapping[str, Away] = {}
    lifted: Mapping[str, str] = {}
    lost: Mapping[str, str] = {}
    away: tuple[Away, ...] = ()
    at: int = -1
    thought_at: int = -1
    pinned: bool = False

    def voided(self, *, required: bool) -> str:
        """Why no carrier of it goes; reasoning that is ``required`` goes as it was made, whatever was said of it."""
        thoughts = () if required else (*self.skipped.values(), *(away.reason for away in self.edited.values()))
        return self.void or next(iter(thoughts), "")

    def since(self, *, required: bool) -> int:
        """The ``seq`` of the commit since which what goes of it is as it is."""
        return self.at if required else max(self.at, self.thought_at)


class MessageUnit:
    """A system or user message. ``result`` is a tool result without its call, which ``message`` has in words."""

    __slots__ = ("change", "hash", "message", "result", "role")

    def __init__(
        self,
        role: Literal["system", "user"],
        message: Message,
        hash: str,
        change: Change | None = None,
        result: ToolResult | None = None,
    ) -> None:
        self.role = role
        self.message = message
        self.hash = hash
        self.change = change
        self.result = result

    @property
    def is_gone(self) -> bool:
        """Whether people took it away."""
        return self.change is not None and self.change.gone != ""


class ResponseUnit:
    """A response with its blocks and the results of its calls.

    ``hashes`` and ``answers`` are the commits of its ``blocks`` and ``results``, place by place. Of the blocks,
    ``thoughts`` are (commit hash, block) of each piece of reasoning, ``calls`` those that call tools, and ``opaque``
    the values that must not go out twice. ``plain``: all that is no reasoning is text that carries nothing.
    ``capped``: the turn reached its cap before the calls were run. ``minted`` is from the record of its request.
    ``alone``: reasoning that a person wrote down, of no response. ``changes`` is what people made of it.
    """

    # Defaults of the class: a history is thousands of these, and most need few of them.
    blocks: tuple[Block, ...] = ()
    hashes: tuple[str, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    opaque: tuple[str, ...] = ()
    plain = True
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    answers: tuple[str, ...] = ()
    usage: Usage | None = None
    minted: Minted | None = None
    capped = False
    alone = False
    changes: Changes | None = None

    def __init__(self, owner: object, hash: str, response: str, header: Response, seq: int) -> None:
        self.owner = owner
        self.hash = hash
        self.response = response
        self.header = header
        self.seq = seq

    def copy(self, owner: object) -> ResponseUnit:
        """A twin that ``owner`` may change."""
        twin = ResponseUnit(owner, self.hash, self.response, self.header, self.seq)
        vars(twin).update(vars(self), owner=owner)
        return twin

    def put(self, hashes: Sequence[str], blocks: Sequence[Block]) -> None:
        """More blocks, together, from the commits ``hashes``: one by one, ten thousand would be copied as often."""
        self.hashes = (*self.hashes, *hashes)
        self.blocks = (*self.blocks, *blocks)
        thoughts: list[Thought] = []
        calls: list[ToolCall] = []
        opaque: list[str] = []
        for hash, block in zip(hashes, blocks, strict=True):
            if type(block) is ThinkingBlock:
                thoughts.append((hash, block))
                if block.signature or block.carriers:
                    opaque += opaque_values(carriers_of(block))
            elif block.carriers or type(block) is not Text:
                self.plain = False
                opaque += opaque_values(block.carriers)
                if type(block) is ToolCall:
                    calls.append(block)
        if thoughts:
            self.thoughts = (*self.thoughts, *thoughts)
        if calls:
            self.calls = (*self.calls, *calls)
        if opaque:
            self.opaque = (*self.opaque, *opaque)

    @property
    def is_gone(self) -> bool:
        """Whether people took it away."""
        return self.changes is not None and self.changes.gone != ""

    @property
    def withheld(self) -> str:
        """Why the response is not replayed at all, or nothing."""
        changes = self.changes
        if changes is not None and changes.gone:
            return changes.gone
        if not self.header.complete:
            return "the response did not complete"
        if self.capped and not self.results:
            return "its calls were never run: the turn reached its cap"
        return ""

    @property
    def reasons(self) -> bool:
        """Whether ``keepLast`` counts it: it is replayed and brought reasoning, be it a carrier alone."""
        staying = self.changes.skipped if self.changes is not None else ()
        return not self.withheld and any(is_told(block) for hash, block in self.thoughts if hash not in staying)


class Turn:
    """From a user message to the next. ``state`` is how it ended, ``None`` where it never did."""

    __slots__ = ("has_response", "owner", "state", "units")

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.units: list[MessageUnit | ResponseUnit] = []
        self.state: TurnState | None = None
        self.has_response = False

    def copy(self, owner: object) -> Turn:
        """A twin that ``owner`` may change; its units are still shared."""
        twin = Turn(owner)
        twin.units = list(self.units)
        twin.state, twin.has_response = self.state, self.has_response
        return twin

    @property
    def responses(self) -> list[ResponseUnit]:
        """Its responses in order."""
        return [unit for unit in self.units if type(unit) is ResponseUnit and not unit.alone]

    @property
    def is_said(self) -> bool:
        """Whether anything in it is left of a conversation; system messages are none."""
        return any(not unit.is_gone and getattr(unit, "role", "") != "system" for unit in self.units)

    @property
    def pinned(self) -> frozenset[str]:
        """The hashes of what goes also where the turn is left out: what is pinned; of a pinned response also what it
        answers, and what answers the results of its calls, so that endpoints take it.
        """
        found: list[str] = []
        asked: list[str] = []
        goes_on = False
        for unit in self.units:
            if isinstance(unit, MessageUnit):
                asked += [unit.hash] if unit.role == "user" else []
                found += [unit.hash] if unit.change is not None and unit.change.pinned else []
            elif not unit.withheld and (goes_on or (unit.changes is not None and unit.changes.pinned)):
                found += [*asked, unit.hash]
                goes_on = unit.calls != ()
        return frozenset(found)

    @property
    def used_tools(self) -> bool:
        """Whether a response that is replayed called tools."""
        calling = [unit for unit in self.units if type(unit) is ResponseUnit and unit.calls]
        return calling != [] and not all(unit.withheld for unit in calling)


def is_told(block: ThinkingBlock) -> bool:
    """Whether it brought reasoning, be it a carrier alone, and not only a sign that there was some."""
    return not block.marker and bool(block.thought.strip() or block.signature or block.carriers)


def says(block: Block) -> bool:
    """Whether a block tells another model anything."""
    match block:
        case Text():
            return bool(block.text.strip())
        case ThinkingBlock():
            return False
        case Unknown():
            return bool(block.text)
        case _:
            return True


def count_finished(turns: Sequence[Turn], *, by_user: bool) -> int:
    """How many leading turns are finished: those that another follows, and the last one once it completed.

    A turn that failed or was interrupted can still go on, and the endpoint takes it for the one under way. With it go
    the turns that it goes on with: ``by_user`` as in ``before_break``.
    """
    finished = len(turns) if turns and turns[-1].state == "completed" else max(len(turns) - 1, 0)
    return before_break(turns, finished, by_user=by_user)


def before_break(turns: Sequence[Turn], count: int, *, by_user: bool) -> int:
    """The most leading turns, up to ``count``, behind which the endpoint sees another turn begin.

    It sees none where what the user said there was taken away. Where results are messages ``by_user``, neither where
    the answer to them is missing: what the user says next stands beside them.
    """
    while 0 < count < len(turns) and not _is_break(turns, count, by_user=by_user):
        count -= 1
    return count


def _is_break(turns: Sequence[Turn], at: int, *, by_user: bool) -> bool:
    """Whether the endpoint sees a turn begin with ``turns[at]``, or with what is left behind it."""
    before = (unit for turn in reversed(turns[:at]) for unit in reversed(turn.responses) if not unit.withheld)
    sent, following = next(before, None), next((turn for turn in turns[at:] if turn.is_said), None)
    if sent is None or following is None:
        return True
    asked = [unit for unit in following.units if type(unit) is MessageUnit and unit.role == "user"]
    if asked and all(unit.is_gone for unit in asked):
        return False
    return not (by_user and sent.calls)
