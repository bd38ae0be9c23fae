"""Compile without a target: what a conversation says now, or said at some time, to nobody in particular.

Promises: pure; the same passes as the fold select what goes. Reasoning is left out unless it is asked for or an
annotation names it; annotations win, either way. It is a message of its own and never stands in the text of an answer;
no opaque value and no verbatim object of a provider is in any of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, assert_never

import msgspec

from thinkback.compile import translate
from thinkback.compile.counts import Calibration, report_of, size_of, weigh
from thinkback.compile.select import grouped, selected, window
from thinkback.compile.units import NOBODY, MessageUnit, ResponseUnit, Turn
from thinkback.errors import NotFoundError
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, is_shown
from thinkback.model.commits import Commit, Content, Message, Priority, Response
from thinkback.model.curation import Curation, curate
from thinkback.model.plan import NOTHING, Carry, Writer
from thinkback.model.texts import text_of

Role: TypeAlias = Literal["system", "user", "reasoning", "assistant", "tool"]


class CompiledMessage(msgspec.Struct, frozen=True):
    """One message. Reasoning is a role of its own, and stands before the answer it led to.

    ``hash`` is the commit it is of (of an answer its ``response`` commit; empty for the result of a call that has
    none), ``commits`` all that it is made of. ``response`` is the id that reasoning, answer and results share.
    """

    role: Role
    text: str
    blocks: tuple[Block, ...]
    hash: str
    commits: tuple[str, ...] = ()
    priority: Priority = Priority.NORMAL
    response: str = ""


class Compiled(msgspec.Struct, frozen=True):
    """What a conversation says. ``token_count`` is estimated; ``token_source``: whether usage that providers reported
    set the characters per token. ``warnings`` are for people.
    """

    messages: tuple[CompiledMessage, ...]
    token_count: int
    token_source: Literal["estimated", "calibrated"] = "estimated"
    warnings: tuple[str, ...] = ()

    @property
    def commit_hashes(self) -> tuple[str, ...]:
        """The commits that the messages are made of, in their order."""
        return tuple(hash for message in self.messages for hash in message.commits)

    @property
    def commit_count(self) -> int:
        """How many those are."""
        return len(self.commit_hashes)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Role and content as chat completions have them; reasoning in ``reasoning`` of the answer it led to."""
        return [made for group in _groups(self.messages) for made in _dicts(group)]

    def to_text(self) -> str:
        """For people."""
        return "\n\n".join("\n".join(_lines(message)) for message in self.messages)

    def to_request(self, writer: Writer, model: str = "", field: str = "", *, native: bool = False) -> dict[str, Any]:
        """The body of a request as a dialect's ``writer`` writes it.

        Reasoning goes into the message field ``field``, or, ``native``, as the dialect's own blocks without a
        signature; with neither it stays away. Raises ``UnsupportedContent``.
        """
        written, before = [writer.start], ""
        system: list[bytes] = []
        for group in _groups(self.messages):
            last = group[-1]
            role = "assistant" if last.role == "reasoning" else last.role
            if role == "system" and writer.system_on_top:
                system.append(writer.top(_message(last)))
                continue
            for fragment in _fragments(group, writer, field, native=native):
                if writer.alternates:
                    written.append(writer.turn_over(before, role)[0])
                elif before:
                    written.append(writer.separator)
                written.append(fragment)
                before = role
        body: dict[str, Any] = canonical.decode(b"".join((*written, writer.end(model, (), system, {}))))
        return body


def _groups(messages: Sequence[CompiledMessage]) -> Iterator[list[CompiledMessage]]:
    """An answer with the reasoning before it, the results of a response together, any other message alone."""
    group: list[CompiledMessage] = []
    for message in messages:
        if group and not _belongs(group[-1], message):
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _belongs(last: CompiledMessage, message: CompiledMessage) -> bool:
    if not message.response or message.response != last.response:
        return False
    leads = last.role == "reasoning" and message.role in ("reasoning", "assistant")
    return leads or last.role == message.role == "tool"


def _fragments(group: Sequence[CompiledMessage], writer: Writer, field: str, *, native: bool) -> Sequence[bytes]:
    last = group[-1]
    blocks = [block for message in group for block in message.blocks]
    if last.role == "system" or last.role == "user":
        return (writer.message(last.role, _message(last)),)
    if last.role == "tool":
        return writer.results([block for block in blocks if isinstance(block, ToolResult)])
    shown = blocks if native else [block for block in blocks if not isinstance(block, ThinkingBlock)]
    text = _reasoning(group) if field else ""
    carry = Carry(fields=(field,), text=text) if text else NOTHING
    return writer.assistant(Response(NOBODY, content="text"), shown, carry) if shown or text else ()


def _message(message: CompiledMessage) -> Message:
    """The message as it is written; its parts, where it has more than text."""
    parts: Any = message.blocks
    return Message(message.text, () if all(isinstance(part, Text) for part in parts) else parts)


def _dicts(group: Sequence[CompiledMessage]) -> Iterator[dict[str, Any]]:
    """A dict per message; an answer takes the reasoning before it along."""
    if group[-1].role not in ("reasoning", "assistant"):
        yield from map(_dict, group)
        return
    said = [message for message in group if message.role == "assistant"]
    made: dict[str, Any] = {"role": "assistant", "content": "".join(message.text for message in said)}
    reasoning = _reasoning(group)
    calls = [block for message in said for block in message.blocks if isinstance(block, ToolCall)]
    if reasoning:
        made["reasoning"] = reasoning
    if calls:
        function = [{"name": call.name, "arguments": call.arguments} for call in calls]
        made["tool_calls"] = [
            {"id": call.id, "type": "function", "function": each} for call, each in zip(calls, function, strict=True)
        ]
    yield made


def _dict(message: CompiledMessage) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": message.text}
    for block in message.blocks:
        if isinstance(block, ToolResult):
            made["tool_call_id"] = block.id
    return made


def _reasoning(group: Sequence[CompiledMessage]) -> str:
    return "\n".join(message.text for message in group if message.role == "reasoning")


def _lines(message: CompiledMessage) -> Iterator[str]:
    yield f"{message.role}: {message.text}".rstrip()
    for block in message.blocks:
        if isinstance(block, ToolCall):
            yield f"[{block.name}({block.arguments})]"


_STAYS = frozenset({Priority.IMPORTANT, Priority.PINNED})


class Options(msgspec.Struct, frozen=True):
    """What is wanted.

    ``include_reasoning``: as if all reasoning were NORMAL. ``at`` is the hash of the last commit that counts,
    ``at_time`` the time (microseconds) after which none does. ``strategy``: ``full``; ``last``: the last ``turns``;
    ``adaptive``: recent turns whole, as many as fit into ``tokens``, and of older ones what the user said, answers
    without their tool traffic, and what is PINNED or IMPORTANT. ``order`` are hashes that say in which order messages
    stand; the others follow.
    """

    include_reasoning: bool = False
    at: str = ""
    at_time: int | None = None
    strategy: Literal["full", "last", "adaptive"] = "full"
    turns: int = 5
    tokens: int = 8_000
    order: tuple[str, ...] = ()


DEFAULTS = Options()


class _Rendered(NamedTuple):
    """A message with the priority it has by an annotation or by its type; ``None`` for neither."""

    message: CompiledMessage
    said: Priority | None
    in_loop: bool = False


def compile_neutral(commits: Sequence[Commit], options: Options = DEFAULTS) -> Compiled:
    """What ``commits`` say. Raises ``NotFoundError`` for an ``at`` that is not among them."""
    commits = _until(commits, options)
    grouper, selection = grouped(commits)
    turns = selected(grouper.turns, selection)
    telling = _Telling(curate(commits), _contents(commits), options)
    told = [[piece for unit in turn.units for piece in telling.unit(unit)] for turn in turns]
    tally = _calibrated(turns)
    first = 0
    if options.strategy == "last":
        first = window(turns, options.turns)
    elif options.strategy == "adaptive":
        first = _fitting(told, options.tokens, tally)
    pieces = [piece for at, turn in enumerate(told) for piece in turn if at >= first or _lasts(piece, options.strategy)]
    messages, warnings = _ordered([piece.message for piece in pieces], options.order)
    return Compiled(
        messages=tuple(messages),
        token_count=round(sum(_tokens(message, tally) for message in messages)),
        token_source="calibrated" if tally.is_calibrated else "estimated",
        warnings=(*telling.warnings, *warnings),
    )


def _until(commits: Sequence[Commit], options: Options) -> Sequence[Commit]:
    """The commits as of then."""
    end = len(commits)
    if options.at:
        found = (at for at, commit in enumerate(commits) if commit.hash == options.at)
        last = next(found, None)
        if last is None:
            raise NotFoundError(
                f"commit {options.at[:12]} is not in this history",
                details={"commit": options.at},
                next_actions=("name a commit of this branch, or switch to the one it is on",),
            )
        end = last + 1
    if options.at_time is not None:
        times = (at for at in range(end - 1, -1, -1) if commits[at].time <= options.at_time)
        end = next(times, -1) + 1
    return commits[:end]


def _contents(commits: Sequence[Commit]) -> Mapping[str, Priority]:
    return {c.hash: c.value.priority for c in commits if isinstance(c.value, Content) and not c.edit}


def _calibrated(turns: Sequence[Turn]) -> Calibration:
    """What providers reported of all responses, whoever they are."""
    tally = Calibration()
    for unit in (unit for turn in turns for unit in turn.responses if unit.usage is not None):
        stored = unit.changes.source if unit.changes is not None else unit
        beside = unit.usage is not None and "reasoning_beside_output" in unit.usage.counted
        size = size_of(stored)
        tally.add(size, report_of(stored, size, "added" if beside else "unknown"))
    return tally


class _Telling:
    """Units to messages; ``warnings`` are about what had to stay away."""

    def __init__(self, curation: Curation, types: Mapping[str, Priority], options: Options) -> None:
        self._curation = curation
        self._types = types
        self._included = options.include_reasoning
        self.warnings: list[str] = []

    def unit(self, unit: MessageUnit | ResponseUnit) -> Iterator[_Rendered]:
        """The messages of a unit."""
        if isinstance(unit, MessageUnit):
            if not unit.is_gone:
                yield self._message_piece(unit)
            return
        bare = unit.changes is not None and unit.changes.bare
        if not bare and unit.is_gone:
            return
        if not bare and unit.withheld:
            self.warnings.append(f"response {unit.hash[:12]} is left out: {unit.withheld}")
            return
        yield from self._thoughts(unit)
        if not bare:
            yield from self._answer(unit)

    def _priority(self, hash: str) -> Priority | None:
        said = self._curation.mark(hash).priority
        return self._types.get(hash) if said is None else said

    def _message_piece(self, unit: MessageUnit) -> _Rendered:
        said, message = self._priority(unit.hash), unit.message
        parts = tuple(_plain(part) for part in message.parts if isinstance(part, Text | Media))
        if len(parts) < len(message.parts):
            self._warn_unknown(unit.hash)
        text, blocks = text_of(message), parts or (Text(message.text),)
        priority = said or Priority.NORMAL
        return _Rendered(CompiledMessage(unit.role, text, blocks, unit.hash, (unit.hash,), priority), said)

    def _thoughts(self, unit: ResponseUnit) -> Iterator[_Rendered]:
        for hash, block in unit.thoughts:
            said = self._priority(hash) or self._priority(unit.hash)
            wanted = self._included if said is None else said is not Priority.SKIP
            if not wanted or not is_shown(block) or not block.thought.strip():
                continue
            made = ThinkingBlock(block.thought, kind=block.kind)
            priority = said or Priority.NORMAL
            message = CompiledMessage("reasoning", block.thought, (made,), hash, (hash,), priority, unit.response)
            yield _Rendered(message, said)

    def _answer(self, unit: ResponseUnit) -> Iterator[_Rendered]:
        kept = [
            (hash, _plain(block))
            for hash, block in zip(unit.hashes, unit.blocks, strict=True)
            if isinstance(block, Text | Media | ToolCall)
        ]
        if len(kept) + len(unit.thoughts) < len(unit.blocks):
            self._warn_unknown(unit.hash)
        parts = tuple(block for _, block in kept if not isinstance(block, ToolCall))
        hashes = tuple(dict.fromkeys((unit.hash, *(hash for hash, _ in kept))))
        given = dict(zip(translate.call_of_result(unit), unit.answers, strict=True))
        marks = [mark for hash in (*hashes, *given.values()) if (mark := self._priority(hash)) is not None]
        said = max(marks, key=list(Priority).index, default=None)
        own = self._priority(unit.hash) or Priority.NORMAL
        if parts or unit.calls:
            text, blocks = "".join(map(text_of, parts)), tuple(block for _, block in kept)
            message = CompiledMessage("assistant", text, blocks, unit.hash, hashes, own, unit.response)
            yield _Rendered(message, said, in_loop=bool(unit.calls))
        for at, (call, result) in enumerate(zip(unit.calls, translate.answers_of(unit), strict=True)):
            hash = given.get(at, "")
            block = ToolResult(call.id, result.content, result.name or call.name, result.is_error, result.status)
            priority = self._priority(hash) or Priority.NORMAL
            commits = (hash,) if hash else ()
            message = CompiledMessage("tool", result.content, (block,), hash, commits, priority, unit.response)
            yield _Rendered(message, said, in_loop=True)

    def _warn_unknown(self, hash: str) -> None:
        self.warnings.append(f"{hash[:12]} has items that only their provider can read; they are left out")


def _plain(block: Text | Media | ToolCall) -> Text | Media | ToolCall:
    """A block without what only its maker can read."""
    match block:
        case Text():
            return Text(block.text)
        case ToolCall():
            return ToolCall(block.id, block.name, block.arguments)
        case Media():
            return msgspec.structs.replace(block, carriers=(), wire="", origin=None)
        case _:
            assert_never(block)


def _lasts(piece: _Rendered, strategy: str) -> bool:
    """Whether a message of an older turn goes all the same."""
    role = piece.message.role
    if role == "system" or strategy != "adaptive":
        return role == "system"
    if piece.said in _STAYS:
        return True
    return role == "user" or (role == "assistant" and not piece.in_loop)


def _fitting(told: Sequence[Sequence[_Rendered]], tokens: int, tally: Calibration) -> int:
    """Where the turns begin that fit; the last one always goes whole."""
    left = float(tokens)
    first = max(len(told) - 1, 0)
    for at in range(len(told) - 1, -1, -1):
        left -= sum(_tokens(piece.message, tally) for piece in told[at])
        if left < 0:
            break
        first = at
    return first


def _tokens(message: CompiledMessage, tally: Calibration) -> float:
    if message.role == "reasoning":
        return tally.reasoning(weigh(message.text))
    calls = (block for block in message.blocks if isinstance(block, ToolCall))
    return tally.other(weigh(message.text) + sum(weigh(call.name) + weigh(call.arguments) for call in calls))


def _ordered(messages: Sequence[CompiledMessage], order: Sequence[str]) -> tuple[Sequence[CompiledMessage], list[str]]:
    """``messages`` as ``order`` names them, the others behind; and what is wrong with that."""
    if not order:
        return messages, []
    places = {hash: at for at, message in enumerate(messages) for hash in (*message.commits, message.hash)}
    named = dict.fromkeys(places[hash] for hash in order if hash in places)
    warnings = [f"{hash[:12]} is not a message of this context" for hash in order if hash not in places]
    arranged = [*named, *(at for at in range(len(messages)) if at not in named)]
    return [messages[at] for at in arranged], [*warnings, *_misplaced(messages, arranged)]


def _misplaced(messages: Sequence[CompiledMessage], arranged: Sequence[int]) -> Iterator[str]:
    """What now stands before that which it follows from: a result before its call, an answer before its question."""
    place = {at: number for number, at in enumerate(arranged)}
    question = -1
    calls: dict[str, int] = {}
    for at, message in enumerate(messages):
        if message.role == "user":
            question = at
        elif message.role == "assistant":
            calls[message.response] = at
            if question >= 0 and place[at] < place[question]:
                yield f"answer {message.hash[:12]} stands before its question {messages[question].hash[:12]}"
        elif message.role == "tool" and place[at] < place[calls[message.response]]:
            yield f"result {message.hash[:12]} stands before its call in {messages[calls[message.response]].hash[:12]}"
