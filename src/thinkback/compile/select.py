"""Select: the first pass. What goes of a history about which people said something, and with what content.

Edits, priorities, checkpoints and tombstones become ``Change`` and ``Changes`` of messages and responses; what that
means for reasoning in its place is for ``decide``. Promises: pure, nothing that it is given is changed; a history
about which nobody said anything never comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from thinkback.compile.counts import weigh_message
from thinkback.compile.grouping import ALONE, Grouper, summarised
from thinkback.compile.overrides import Now, arrange, checkpoints, contents, placed, priorities, stand_in
from thinkback.compile.translate import call_of_result
from thinkback.compile.units import Away, Change, Changes, MessageUnit, ResponseUnit, Turn, says
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, carriers_of
from thinkback.model.commits import (
    BranchSummary,
    Commit,
    Compaction,
    Content,
    Message,
    Payload,
    Priority,
)
from thinkback.model.curation import curate

LEFT_OUT = "(left out)"
ERASED = "(erased)"


def grouped(commits: Sequence[Commit], *, appends: bool = False) -> tuple[Grouper, Selection | None]:
    """The turns of a history, and what people said about it, if anybody did.

    ``appends``: system messages stay where they came, also those that a program put among what there was.
    """
    grouper = Grouper()
    grouper.take(commits)
    if not grouper.curated:
        return grouper, None
    selection, reported, grouper = Selection(commits, appends=appends), grouper.reported, Grouper()
    grouper.take(selection.commits)
    grouper.reported = reported  # also of what a checkpoint stands for
    return grouper, selection


def selected(turns: Sequence[Turn], selection: Selection | None) -> list[Turn]:
    """What goes of ``turns`` after what people said about them."""
    return list(turns) if selection is None else list(map(selection.turn, turns))


def window(turns: Sequence[Turn], size: int | None) -> int:
    """How many leading turns a window leaves out: all but the last ``size`` in which anything is said."""
    if size is None:
        return 0
    said = (at for at in range(len(turns) - 1, -1, -1) if turns[at].is_said)
    return next(islice(said, size - 1, None), 0)


class Selection:
    """What goes of a history. ``commits`` are those of it in the order they are grouped in.

    Built once for a history; ``turn`` says what goes of each turn, also of turns that came after it.
    """

    def __init__(self, commits: Sequence[Commit], *, appends: bool = False) -> None:
        curation = curate(commits)
        commits = commits if appends else placed(commits, curation)
        self.now = contents(commits, curation)
        self.said = priorities(commits, curation)
        made = list(checkpoints(curation, self.said))
        self.commits, self.covered = arrange([stand_in(commit) for commit in commits], made)
        self._summaries = {commit.hash: commit.seq for commit, _ in made}
        self._trimmed = {
            curation.root(hash): (text, commit.seq) for commit, value in made for hash, text in value.trimmed
        }
        self._touched = frozenset().union(self.now, self.said, self.covered, self._summaries, self._trimmed)
        self._made: dict[str, tuple[ResponseUnit, ResponseUnit]] = {}
        self._messages: dict[str, MessageUnit] = {}

    def turn(self, turn: Turn) -> Turn:
        """What goes of a turn; itself where nobody said anything about it."""
        units = [self._message(unit) if isinstance(unit, MessageUnit) else self._response(unit) for unit in turn.units]
        if all(made is unit for made, unit in zip(units, turn.units, strict=True)):
            return turn
        twin = turn.copy(turn.owner)
        twin.units = units
        return twin

    def _message(self, unit: MessageUnit) -> MessageUnit:
        if unit.hash not in self._touched:
            return unit
        made = self._messages.get(unit.hash)
        if made is None:
            made = self._messages[unit.hash] = self._changed_message(unit)
        return made

    def _changed_message(self, unit: MessageUnit) -> MessageUnit:
        stored, message = weigh_message(unit.message), unit.message
        said, now, covered = self.said.get(unit.hash), self.now.get(unit.hash), self.covered.get(unit.hash)
        gone, at = "", self._summaries.get(unit.hash, -1)
        if now is not None:
            gone, at = ("" if now.value is not None else now.why), now.at
            message = _as_message(now.value) or message
        if said is not None and said.priority is Priority.SKIP:
            gone, at = said.why, max(said.at, at)
        if covered is not None:
            gone = _summarised_by(covered)
        pinned = said is not None and said.priority is Priority.PINNED
        result = unit.result if message is unit.message else None
        return MessageUnit(unit.role, message, unit.hash, Change(gone, stored, at, pinned=pinned), result)

    def _response(self, unit: ResponseUnit) -> ResponseUnit:
        touched = self._touched
        if unit.hash not in touched and touched.isdisjoint(unit.hashes) and touched.isdisjoint(unit.answers):
            return unit
        made = self._made.get(unit.hash)
        if made is None or made[0] is not unit:
            made = self._made[unit.hash] = unit, self._changed_response(unit)
        return made[1]

    def _changed_response(self, unit: ResponseUnit) -> ResponseUnit:
        said, covered = self.said.get(unit.hash), self.covered.get(unit.hash)
        twin = unit.copy(unit.owner)
        if covered is not None:
            twin.changes = Changes(unit, gone=_summarised_by(covered))
        elif said is not None and said.priority is Priority.SKIP:
            twin.changes = Changes(unit, gone=said.why, at=said.at)
        else:
            _Rewriting(self, unit, twin).run()
        return twin

    def answer(self, hash: str, result: ToolResult) -> tuple[ToolResult, int]:
        """The result as it goes out, and the ``seq`` of the commit that made it so."""
        said, now = self.said.get(hash), self.now.get(hash)
        text, at = self._trimmed.get(hash, ("", -1))
        if now is not None and now.value is None:
            return _replace_text(result, ERASED), now.at
        if said is not None and said.priority is Priority.SKIP:
            return _replace_text(result, LEFT_OUT), said.at
        if now is not None and (hash not in self._trimmed or now.at > at):
            return _as_result(now.value, result), now.at
        return (_replace_text(result, text), at) if hash in self._trimmed else (result, -1)


class _Rewriting:
    """One response in the making: ``twin`` becomes what goes of ``unit``."""

    def __init__(self, selection: Selection, unit: ResponseUnit, twin: ResponseUnit) -> None:
        self._selection = selection
        self._unit = unit
        self._twin = twin
        self._header = selection.said.get(unit.hash)
        said = (selection.said.get(hash) for hash in (unit.hash, *unit.hashes, *unit.answers))
        self._pinned = any(each is not None and each.priority is Priority.PINNED for each in said)
        self._void = ""
        self._thinned = False
        self._skipped: dict[str, str] = {}
        self._lifted: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self._edited: dict[str, Away] = {}
        self._away: list[Away] = []
        self._at = self._thought_at = -1

    def run(self) -> None:
        """Rewrite it."""
        twin, unit = self._twin, self._unit
        twin.blocks, twin.thoughts, twin.calls, twin.hashes, twin.plain = (), (), (), (), True
        header = self._selection.now.get(unit.hash)
        if header is not None and unit.hash not in unit.hashes:
            self._change(header.why, header.at)
        places: list[ToolCall | None] = []
        hashes: list[str] = []
        blocks: list[Block] = []
        for hash, block in zip(unit.hashes, unit.blocks, strict=True):
            left = self._thought(hash, block) if isinstance(block, ThinkingBlock) else self._other(hash, block)
            if left is not None:
                hashes.append(hash)
                blocks.append(left)
            if isinstance(block, ToolCall):
                places.append(left if isinstance(left, ToolCall) else None)
        twin.put(hashes, blocks)
        self._answer(places)
        bare = unit.alone or (self._thinned and not any(map(says, twin.blocks)))
        why = ALONE if unit.alone else f"nothing else is left of its response: {self._void}"
        twin.changes = Changes(
            unit,
            gone=why if bare else "",
            void=self._void,
            skipped=self._skipped,
            lifted=self._lifted,
            lost=self._lost,
            edited=self._edited,
            away=tuple(self._away),
            at=self._at,
            thought_at=self._thought_at,
            bare=bare,
            pinned=self._pinned,
        )

    def _change(self, why: str, at: int) -> None:
        """Something of the response is not as it was minted."""
        self._void = self._void or why
        self._at = max(self._at, at)

    def _thought(self, hash: str, block: ThinkingBlock) -> Block:
        """A piece of reasoning stays, with what was said of it: what is required goes whatever that is."""
        said, now = self._selection.said.get(hash, self._header), self._selection.now.get(hash)
        left: Block = block
        if now is not None and now.value is None:
            self._change(now.why, now.at)
            self._lost[hash] = now.why
        elif now is not None:
            left = _bare(_as_block(now.value) or block)
            if isinstance(left, ThinkingBlock) and not now.erased:
                self._edited[hash] = Away(hash, block, now.why, edited=True)
                self._thought_at = max(self._thought_at, now.at)
            else:
                self._change(now.why, now.at)
                self._away.append(Away(hash, block, now.why, edited=now.erased))
        if said is None or not isinstance(left, ThinkingBlock):
            return left
        if said.priority is Priority.SKIP:
            self._skipped[hash] = said.why
            self._thought_at = max(self._thought_at, said.at)
        else:
            self._lifted[hash] = said.why
        return left

    def _other(self, hash: str, block: Block) -> Block | None:
        said, now = self._selection.said.get(hash), self._selection.now.get(hash)
        if said is not None and said.priority is Priority.SKIP:
            now = Now(None, said.why, said.at)
        if now is None:
            return block
        self._change(now.why, now.at)
        self._thinned = True
        self._away.append(Away(hash, block, now.why, edited=now.value is not None))
        return _bare(_as_block(now.value) or block) if now.value is not None else None

    def _answer(self, places: Sequence[ToolCall | None]) -> None:
        """The results of the calls that are left; an erased one belongs to the first call that has none."""
        unit, twin = self._unit, self._twin
        of = call_of_result(unit)
        results: list[tuple[str, ToolResult]] = []
        open_places = [at for at in range(len(places)) if at not in of and unit.calls[at].id]
        for hash, result, at in zip(unit.answers, unit.results, of, strict=True):
            left, since = self._selection.answer(hash, result)
            self._at = max(self._at, since)
            place = open_places.pop(0) if at < 0 and not result.id and open_places else at
            call = places[place] if place >= 0 else None
            if call is not None:
                left = left if left.id == call.id else msgspec.structs.replace(left, id=call.id, wire="")
                results.append((hash, left))
        twin.answers, twin.results = tuple(hash for hash, _ in results), tuple(result for _, result in results)


def _bare(block: Block) -> Block:
    """A block as an edit has it; what it carries was minted for nothing."""
    if not carriers_of(block):
        return block
    bare = msgspec.structs.replace(block, carriers=(), wire="")
    return msgspec.structs.replace(bare, signature="") if isinstance(bare, ThinkingBlock) else bare


def _summarised_by(checkpoint: Commit) -> str:
    return f"summarised by checkpoint {checkpoint.hash[:12]}"


def _replace_text(result: ToolResult, text: str) -> ToolResult:
    return msgspec.structs.replace(result, content=text, carriers=(), wire="")


def _as_result(value: Payload | None, result: ToolResult) -> ToolResult:
    match value:
        case ToolResult():
            return value
        case Content() | Message() | Text():
            return _replace_text(result, value.text)
        case _:
            return result


def _as_message(value: Payload | None) -> Message | None:
    match value:
        case Message():
            return value
        case Content() | Text():
            return Message(value.text)
        case BranchSummary() | Compaction():
            return summarised(value)
        case _:
            return None


def _as_block(value: Payload | None) -> Block | None:
    match value:
        case Text() | ThinkingBlock() | ToolCall() | Media() | Unknown():
            return value
        case Content() | Message():
            return Text(value.text)
        case _:
            return None
