"""Grouping: commits of the log into turns, and each turn into messages and responses.

Promises: what a state holds is never changed, a turn or response that gets something new is copied first. Any commit
costs the same, wherever in a long history its response stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from thinkback.model.blocks import (
    Block,
    Media,
    ThinkingBlock,
    ToolCall,
    ToolResult,
    Unknown,
    carriers_of,
    opaque_values,
)
from thinkback.model.commits import Commit, Message, Repair, Response, Tools, TurnState, Usage

if TYPE_CHECKING:
    from thinkback.compile.render import Rendition

Thought: TypeAlias = tuple[str, ThinkingBlock]
SERVER_STATE = "session.serverState"


class Minted(NamedTuple):
    """What a response was minted under: hex digests of its request, and whether the provider was to keep it."""

    system: str
    tools: str
    messages: str
    stored: bool


class MessageUnit:
    """A system or user message; ``fragment`` is what it was rendered to, ``left_out`` why a part of it was not."""

    __slots__ = ("fragment", "hash", "left_out", "message", "role")

    def __init__(self, role: Literal["system", "user"], message: Message, hash: str) -> None:
        self.role = role
        self.message = message
        self.hash = hash
        self.fragment: bytes | None = None
        self.left_out = ""


class ResponseUnit:
    """A response with its blocks and the results of its calls.

    ``thoughts`` are (commit hash, block) of each piece of reasoning, ``others`` of other blocks that carry something or
    are unknown, ``opaque`` the values of them all that must not go out twice.
    ``capped``: the turn reached its cap before the calls were run. ``minted`` is from the record of its request.
    ``memo`` is what it was rendered to last.
    """

    # Defaults of the class: a history is thousands of these, and most need few of them.
    blocks: tuple[Block, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    opaque: tuple[str, ...] = ()
    others: tuple[tuple[str, Block], ...] = ()
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    usage: Usage | None = None
    minted: Minted | None = None
    capped = False
    memo: Rendition | None = None

    def __init__(self, owner: object, hash: str, response: str, header: Response) -> None:
        self.owner = owner
        self.hash = hash
        self.response = response
        self.header = header

    def copy(self, owner: object) -> ResponseUnit:
        """A twin that ``owner`` may change."""
        twin = ResponseUnit(owner, self.hash, self.response, self.header)
        twin.blocks, twin.thoughts, twin.others = self.blocks, self.thoughts, self.others
        twin.opaque, twin.calls, twin.results = self.opaque, self.calls, self.results
        twin.usage, twin.minted, twin.capped = self.usage, self.minted, self.capped
        return twin

    @property
    def withheld(self) -> str:
        """Why the response is not replayed at all (DESIGN 3.7), or nothing."""
        if not self.header.complete:
            return "the response did not complete"
        if self.capped and not self.results:
            return "its calls were never run: the turn reached its cap"
        return ""

    @property
    def reasons(self) -> bool:
        """Whether ``keepLast`` counts it: it is replayed and brought reasoning, be it a carrier alone."""
        return not self.withheld and any(
            not block.marker and (block.thought.strip() or block.signature or block.carriers)
            for _, block in self.thoughts
        )


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
        return [unit for unit in self.units if type(unit) is ResponseUnit]

    @property
    def used_tools(self) -> bool:
        """Whether a response that is replayed called tools."""
        calling = [unit for unit in self.units if type(unit) is ResponseUnit and unit.calls]
        return calling != [] and not all(unit.withheld for unit in calling)


def count_finished(turns: list[Turn]) -> int:
    """How many leading turns are finished: those that another follows, and the last one once it completed.

    A turn that failed or was interrupted can still go on, and the endpoint takes it for the one under way.
    """
    return len(turns) if turns and turns[-1].state == "completed" else max(len(turns) - 1, 0)


class Grouper:
    """Puts commits into turns. ``turns`` may be shared with a state: each is copied before it changes.

    ``missed`` says that a commit belongs to a response that is not here. ``repairs`` are those that came along,
    ``minted`` is the last request's record, for the response of that id.
    """

    def __init__(
        self, turns: Iterable[Turn] = (), tools: Tools | None = None, minted: tuple[str, Minted] | None = None
    ) -> None:
        self.turns: list[Turn] = list(turns)
        self.tools = tools
        self.minted = minted
        self.missed = False
        self.repairs: list[Repair] = []
        self._owner = object()
        self._turn: Turn | None = None
        self._unit: ResponseUnit | None = None
        self._responses: dict[str, tuple[int, int]] | None = None
        self._callers: dict[str, tuple[int, int]] = {}

    def take(self, commits: Iterable[Commit]) -> None:
        """Take commits in; kinds that never reach a request are passed over."""
        takers = _TAKERS
        for commit in commits:
            taker = takers.get(commit.kind)
            if taker is not None:
                taker(self, commit)

    def add_block(self, commit: Commit) -> None:
        """A block of a response."""
        unit = self._find(commit.response)
        if unit is None:
            return
        block: Any = commit.value
        unit.blocks += (block,)
        kind = type(block)
        if kind is ThinkingBlock:
            unit.thoughts += ((commit.hash, block),)
            if block.signature or block.carriers:
                unit.opaque += tuple(opaque_values(carriers_of(block)))
            return
        if kind is ToolCall:
            unit.calls += (block,)
            if self._responses is not None:
                self._callers[block.id] = self._responses[commit.response]
        if block.carriers or kind is Unknown or kind is Media:
            unit.others += ((commit.hash, block),)
            unit.opaque += tuple(opaque_values(block.carriers))

    def add_response(self, commit: Commit) -> None:
        """A response goes on with the last turn, whatever became of it, unless that one completed."""
        turn = self._last_turn()
        if turn is None or turn.state == "completed":
            turn = self._open_turn()
        turn.has_response = True
        header: Any = commit.value
        self._unit = unit = ResponseUnit(self._owner, commit.hash, commit.response, header)
        if self.minted is not None and self.minted[0] == commit.response:
            unit.minted = self.minted[1]
        turn.units.append(unit)
        if self._responses is not None:
            self._responses[commit.response] = len(self.turns) - 1, len(turn.units) - 1

    def add_request(self, commit: Commit) -> None:
        """The record of a request; its response, if it brought one, comes next."""
        record: Any = commit.value
        stored = record.settings.get(SERVER_STATE) == "true"
        minted = Minted(record.system_digest, record.tools_digest, record.messages_digest, stored)
        self.minted = commit.response, minted

    def add_user(self, commit: Commit) -> None:
        """A user message begins a turn; one right behind another belongs to the same."""
        turn = self._last_turn()
        if turn is None or turn.has_response or turn.state is not None:
            turn = self._open_turn()
        message: Any = commit.value
        turn.units.append(MessageUnit("user", message, commit.hash))

    def add_system(self, commit: Commit) -> None:
        """A system message stands where it came."""
        turn = self._last_turn()
        if turn is None or turn.state == "completed":
            turn = self._open_turn()
        message: Any = commit.value
        turn.units.append(MessageUnit("system", message, commit.hash))

    def add_result(self, commit: Commit) -> None:
        """A result goes to its call, wherever other commits came in between."""
        result: Any = commit.value
        unit = self._find(commit.response) if commit.response else None
        unit = unit or self._find_caller(result.id)
        if unit is not None:
            unit.results += (result,)

    def add_usage(self, commit: Commit) -> None:
        """What the provider counted for a response."""
        unit = self._find(commit.response)
        if unit is not None:
            usage: Any = commit.value
            unit.usage = usage

    def end_turn(self, commit: Commit) -> None:
        """The end of the last turn; a further end of a completed one is the end of an attempt that left nothing."""
        turn = self._last_turn()
        if turn is None or turn.state == "completed":
            return
        end: Any = commit.value
        turn.state = end.state
        if turn.state == "capped":
            responses = turn.responses
            unit = self._find(responses[-1].response) if responses else None
            if unit is not None:
                unit.capped = bool(unit.calls)

    def set_tools(self, commit: Commit) -> None:
        """The tools from here on."""
        tools: Any = commit.value
        self.tools = tools

    def add_repair(self, commit: Commit) -> None:
        """A repair; whether it holds is for the target to say."""
        repair: Any = commit.value
        self.repairs.append(repair)

    def _open_turn(self) -> Turn:
        turn = self._turn = Turn(self._owner)
        self.turns.append(turn)
        return turn

    def _last_turn(self) -> Turn | None:
        """The last turn, to be changed."""
        if self._turn is None and self.turns:
            self._turn = self._own_turn(len(self.turns) - 1)
        return self._turn

    def _own_turn(self, at: int) -> Turn:
        turn = self.turns[at]
        if turn.owner is not self._owner:
            turn = self.turns[at] = turn.copy(self._owner)
        return turn

    def _find(self, response: str) -> ResponseUnit | None:
        """The last response of that id, to be changed."""
        unit = self._unit
        if unit is None or unit.response != response:
            self._unit = unit = self._own_unit(self._index().get(response))
        return unit

    def _find_caller(self, id: str) -> ResponseUnit | None:
        self._index()
        return self._own_unit(self._callers.get(id))

    def _own_unit(self, place: tuple[int, int] | None) -> ResponseUnit | None:
        if place is None:
            self.missed = True
            return None
        units = self._own_turn(place[0]).units
        found: Any = units[place[1]]
        unit: ResponseUnit = found
        if unit.owner is not self._owner:
            unit = units[place[1]] = unit.copy(self._owner)
        return unit

    def _index(self) -> dict[str, tuple[int, int]]:
        """Where each response stands; most histories never ask."""
        if self._responses is None:
            self._responses = {}
            for turn_at, turn in enumerate(self.turns):
                for at, unit in enumerate(turn.units):
                    if type(unit) is ResponseUnit:
                        self._responses[unit.response] = turn_at, at
                        self._callers.update((call.id, (turn_at, at)) for call in unit.calls)
        return self._responses


_TAKERS: dict[str, Callable[[Grouper, Commit], None]] = {
    "reasoning": Grouper.add_block,
    "assistant": Grouper.add_block,
    "tool_call": Grouper.add_block,
    "other": Grouper.add_block,
    "media": Grouper.add_block,
    "request": Grouper.add_request,
    "response": Grouper.add_response,
    "user": Grouper.add_user,
    "system": Grouper.add_system,
    "tool_result": Grouper.add_result,
    "provider_usage": Grouper.add_usage,
    "turn_ended": Grouper.end_turn,
    "tools": Grouper.set_tools,
    "repair": Grouper.add_repair,
}
