"""Grouping: commits of the log into turns, and each turn into messages and responses."""

from __future__ import annotations

from collections.abc import Iterable

from thinkback.model.blocks import Block, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Commit, Message, Response, Tools, TurnEnded, TurnState, Usage


class MessageUnit:
    """A system or user message."""

    __slots__ = ("commit", "message", "role")

    def __init__(self, commit: Commit, message: Message) -> None:
        self.commit = commit
        self.message = message
        self.role = commit.kind

    def copy(self) -> MessageUnit:
        return self


class ResponseUnit:
    """A response with its blocks (``hashes`` beside them) and the results of its calls."""

    __slots__ = ("blocks", "commit", "hashes", "header", "results", "usage")

    def __init__(self, commit: Commit, header: Response) -> None:
        self.commit = commit
        self.header = header
        self.blocks: list[Block] = []
        self.hashes: list[str] = []
        self.results: list[ToolResult] = []
        self.usage: Usage | None = None

    def copy(self) -> ResponseUnit:
        twin = ResponseUnit(self.commit, self.header)
        twin.blocks, twin.hashes = list(self.blocks), list(self.hashes)
        twin.results, twin.usage = list(self.results), self.usage
        return twin

    @property
    def calls(self) -> list[ToolCall]:
        return [block for block in self.blocks if type(block) is ToolCall]

    @property
    def thoughts(self) -> list[tuple[str, ThinkingBlock]]:
        """(commit hash, block) of each piece of reasoning."""
        return [(h, b) for h, b in zip(self.hashes, self.blocks, strict=True) if type(b) is ThinkingBlock]


class Turn:
    """From a user message to a terminal state. ``state`` is ``None`` while it is under way."""

    __slots__ = ("has_response", "state", "units", "used_tools")

    def __init__(self) -> None:
        self.units: list[MessageUnit | ResponseUnit] = []
        self.state: TurnState | None = None
        self.has_response = False
        self.used_tools = False

    def copy(self) -> Turn:
        twin = Turn()
        twin.units = [unit.copy() for unit in self.units]
        twin.state, twin.has_response, twin.used_tools = self.state, self.has_response, self.used_tools
        return twin

    @property
    def responses(self) -> list[ResponseUnit]:
        return [unit for unit in self.units if type(unit) is ResponseUnit]


class Grouper:
    """Puts commits into turns. ``turns`` holds those not yet taken; the last one may be under way."""

    def __init__(self, turns: Iterable[Turn] = (), tools: Tools | None = None) -> None:
        self.turns: list[Turn] = list(turns)
        self.tools = tools
        self._unit: ResponseUnit | None = None

    def add(self, commit: Commit) -> None:
        """Take one commit; kinds that never reach a request are passed over."""
        kind = commit.kind
        if kind in ("reasoning", "assistant", "tool_call", "other", "media"):
            self._add_block(commit)
        elif kind == "response":
            assert isinstance(commit.value, Response)
            turn = self._open_turn()
            turn.has_response = True
            self._unit = ResponseUnit(commit, commit.value)
            turn.units.append(self._unit)
        elif kind in ("user", "system"):
            self._add_message(commit)
        elif kind == "tool_result":
            assert isinstance(commit.value, ToolResult)
            unit = self._caller(commit, commit.value)
            if unit is not None:
                unit.results.append(commit.value)
        elif kind == "turn_ended":
            assert isinstance(commit.value, TurnEnded)
            if self.turns:
                self.turns[-1].state = commit.value.state
        elif kind == "tools":
            assert isinstance(commit.value, Tools)
            self.tools = commit.value
        elif kind == "provider_usage":
            assert isinstance(commit.value, Usage)
            found = self._find(commit.response)
            if found is not None:
                found.usage = commit.value

    def _add_block(self, commit: Commit) -> None:
        unit = self._unit
        if unit is None or unit.commit.response != commit.response:
            unit = self._find(commit.response)
            if unit is None:
                return
        unit.blocks.append(commit.value)  # type: ignore[arg-type]
        unit.hashes.append(commit.hash)
        if commit.kind == "tool_call":
            self.turns[-1].used_tools = True

    def _add_message(self, commit: Commit) -> None:
        assert isinstance(commit.value, Message)
        turns = self.turns
        if not turns or turns[-1].state is not None or (commit.kind == "user" and turns[-1].has_response):
            turns.append(Turn())
        turns[-1].units.append(MessageUnit(commit, commit.value))

    def _open_turn(self) -> Turn:
        if not self.turns or self.turns[-1].state is not None:
            self.turns.append(Turn())
        return self.turns[-1]

    def _find(self, response: str) -> ResponseUnit | None:
        for turn in reversed(self.turns):
            for unit in reversed(turn.units):
                if type(unit) is ResponseUnit and unit.commit.response == response:
                    return unit
        return None

    def _caller(self, commit: Commit, result: ToolResult) -> ResponseUnit | None:
        """The response whose call ``result`` answers, wherever other commits came in between."""
        unit = self._find(commit.response) if commit.response else None
        if unit is not None:
            return unit
        for turn in reversed(self.turns):
            for candidate in reversed(turn.units):
                if type(candidate) is ResponseUnit and any(call.id == result.id for call in candidate.calls):
                    return candidate
        return None
