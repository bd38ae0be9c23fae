"""Grouping: commits of the log into turns, and each turn into messages and responses.

Promises: what a state holds is never changed, a turn or response that gets something new is copied first. Any commit
costs the same, wherever in a long history its response stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from thinkback.compile import translate
from thinkback.compile.units import NOBODY, Chain, Changes, MessageUnit, Minted, ResponseUnit, Turn
from thinkback.model.blocks import NO_CALL, Block, Text, ThinkingBlock
from thinkback.model.commits import (
    BranchSummary,
    Commit,
    Compaction,
    Erased,
    Message,
    Priority,
    Repair,
    Response,
    Tools,
)

SERVER_STATE = "session.serverState"
ALONE = "it was written down by a person and belongs to no response"


class Grouper:
    """Puts commits into turns. ``turns`` may be shared with a state: each is copied before it changes.

    ``missed`` says that a commit belongs to a response that is not here, ``curated`` that one speaks about others,
    stands elsewhere or was erased, which ``select`` sees to. ``repairs`` are those that came along, ``reported`` the
    responses whose usage did, ``minted`` is the last request's record, for the response of that id.
    """

    def __init__(
        self,
        turns: Iterable[Turn] = (),
        tools: Tools | None = None,
        minted: tuple[str, Minted] | None = None,
    ) -> None:
        self.turns: list[Turn] = list(turns)
        self.tools = tools
        self.minted = minted
        self.missed = False
        self.curated = False
        self.repairs: list[Repair] = []
        self.reported: list[ResponseUnit] = []
        self._owner = object()
        self._turn: Turn | None = None
        self._unit: ResponseUnit | None = None
        self._responses: dict[str, tuple[int, int]] | None = None
        self._callers: dict[str, tuple[int, int]] = {}

    def take(self, commits: Iterable[Commit]) -> None:
        """Take commits in; kinds that never reach a request are passed over."""
        run: list[Commit] = []
        for commit in commits:
            if commit.edit or type(commit.value) is Erased:
                self.curated = True
                continue
            if run and (commit.response != run[0].response or commit.kind not in _BLOCKS):
                self.add_blocks(run)
                run = []
            if commit.kind in _BLOCKS:
                run.append(commit)
            elif (taker := _TAKERS.get(commit.kind)) is not None:
                taker(self, commit)
        if run:
            self.add_blocks(run)

    def add_blocks(self, commits: Sequence[Commit]) -> None:
        """Blocks of one response, together."""
        response = commits[0].response
        unit = self._unit
        if unit is None or unit.response != response:  # mostly it is the last one
            unit = self._find(response)
        if unit is None:
            for commit in commits if not response else ():
                self._add_alone(commit)
            return
        blocks: list[Any] = [commit.value for commit in commits]
        known = len(unit.calls)
        unit.put([commit.hash for commit in commits], blocks)
        if self._responses is not None:
            self._callers.update((call.id, self._responses[response]) for call in unit.calls[known:])

    def add_response(self, commit: Commit, written: ResponseUnit | None = None) -> None:
        """A response goes on with the last turn, whatever became of it, unless that one completed.

        ``written`` is one that no model gave.
        """
        turn = self._last_turn()
        if turn is None or turn.state == "completed":
            turn = self._open_turn()
        turn.has_response = True
        unit = written
        if unit is None:
            header: Any = commit.value
            self._unit = unit = ResponseUnit(self._owner, commit.hash, commit.response, header, commit.seq)
            if self.minted is not None and self.minted[0] == commit.response:
                unit.minted = self.minted[1]
        turn.units.append(unit)
        if self._responses is not None:
            self._responses[unit.response] = len(self.turns) - 1, len(turn.units) - 1

    def add_request(self, commit: Commit) -> None:
        """The record of a request; its response, if it brought one, comes next."""
        record: Any = commit.value
        stored = record.settings.get(SERVER_STATE) == "true"
        chain = Chain(*record.chain) if record.chain is not None else None
        minted = Minted(record.system_digest, record.tools_digest, record.messages_digest, stored, record.size, chain)
        self.minted = commit.response, minted

    def add_message(
        self, commit: Commit, role: Literal["", "system", "user"] = "", message: Message | None = None
    ) -> None:
        """A user message begins a turn, one right behind another belongs to the same; a system message stands where it
        came. ``message`` in its ``role`` is what the commit comes to where it is of another kind.
        """
        said: Any = commit.value if message is None else message
        self.curated = self.curated or said.before != ""
        who = role or ("user" if commit.kind == "user" else "system")
        turn = self._last_turn()
        if turn is None or turn.state == "completed" or (who == "user" and (turn.has_response or turn.state)):
            turn = self._open_turn()
        turn.units.append(MessageUnit(who, said, commit.hash))

    def add_content(self, commit: Commit) -> None:
        """What a content type of a program says, in its role."""
        content: Any = commit.value
        self.curated = self.curated or content.priority is Priority.SKIP
        if content.role == "assistant":
            self.add_response(commit, self._written(commit, Text(content.text)))
        else:
            self.add_message(commit, content.role, Message(content.text))

    def add_summary(self, commit: Commit) -> None:
        """What came out of another line of work, or what a checkpoint says instead of a run of commits."""
        summary: Any = commit.value
        self.curated = self.curated or type(summary) is Compaction
        self.add_message(commit, "user", summarised(summary))

    def add_annotation(self, commit: Commit) -> None:
        """A priority decides what goes; everything else is for people."""
        said: Any = commit.value
        self.curated = self.curated or said.default or said.priority is not None

    def add_result(self, commit: Commit) -> None:
        """A result goes to its call, wherever other commits came in between; one that a program sent without its call
        stands where it came.
        """
        result: Any = commit.value
        if result.call_field == NO_CALL:
            turn = self._last_turn()
            if turn is None or turn.state == "completed":
                turn = self._open_turn()
            turn.units.append(MessageUnit("user", translate.uncalled(result), commit.hash, result=result))
            return
        unit = self._find(commit.response) if commit.response else None
        unit = unit or self._find_caller(result.id)
        if unit is not None:
            unit.results += (result,)
            unit.answers += (commit.hash,)

    def add_usage(self, commit: Commit) -> None:
        """What the provider counted for a response."""
        unit = self._unit
        if unit is None or unit.response != commit.response:
            unit = self._find(commit.response)
        if unit is not None:
            usage: Any = commit.value
            unit.usage = usage
            self.reported.append(unit)

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

    def _add_alone(self, commit: Commit) -> None:
        """A text or a piece of reasoning that a person put into the assistant's mouth."""
        block: Any = commit.value
        if not isinstance(block, ThinkingBlock):
            self.add_response(commit, self._written(commit, block))
            return
        unit = self._written(commit, block)
        unit.alone = True
        unit.changes = Changes(unit, gone=ALONE, bare=True)
        turn = self._last_turn() or self._open_turn()
        turn.units.append(unit)

    def _written(self, commit: Commit, block: Block) -> ResponseUnit:
        """A response that no model gave, of one block."""
        unit = ResponseUnit(self._owner, commit.hash, commit.hash, Response(NOBODY, content="text"), commit.seq)
        unit.put((commit.hash,), (block,))
        return unit

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
            self._unit = unit = self._own_unit(self._index().get(response)) if response else None
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
    "request": Grouper.add_request,
    "response": Grouper.add_response,
    "user": Grouper.add_message,
    "system": Grouper.add_message,
    "tool_result": Grouper.add_result,
    "provider_usage": Grouper.add_usage,
    "turn_ended": Grouper.end_turn,
    "tools": Grouper.set_tools,
    "repair": Grouper.add_repair,
    "annotation": Grouper.add_annotation,
    "content": Grouper.add_content,
    "compaction": Grouper.add_summary,
    "branch_summary": Grouper.add_summary,
}
_BLOCKS = frozenset({"reasoning", "assistant", "tool_call", "other", "media"})


def summarised(value: BranchSummary | Compaction) -> Message:
    """What a summary says to the model: one plain sentence of what it is, and its text."""
    if isinstance(value, Compaction):
        return Message(f"This is a summary of the part of the conversation that stood here.\n\n{value.summary}")
    about = f" ({value.purpose})" if value.purpose else ""
    return Message(f"This is what came out of work done elsewhere{about}.\n\n{value.text}")
