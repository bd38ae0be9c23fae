"""What every response writer must do with the responses of every dialect, told by reading back what it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tests.wire.feeding import reasoning, visible
from thinkback.model.blocks import Block, Origin, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Outcome
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified
from thinkback.turn.dialects import ResponseReader, dialect, front
from thinkback.wire.arguments import as_object
from thinkback.wire.framing import Framing
from thinkback.wire.result import ReadResult, Stop, outcome_of
from thinkback.wire.writing import Counts, Shown, call_id, counts, problem_in

ORIGIN = Origin("openai-chat", "https://api.example.org/v1", "model")


class Told(NamedTuple):
    """What a client understands of a response. ``ends`` is its outcome, or the message of the error that it ends in."""

    text: str
    reasoning: str
    calls: tuple[tuple[str, str, str], ...]
    ends: str
    counts: Counts | None


class Written(NamedTuple):
    """A response as a stream of events and as a whole document, and what it was written from."""

    stream: bytes
    document: bytes
    deltas: tuple[Delta, ...]
    result: ReadResult


def reader_of(name: str, framing: Framing) -> ResponseReader:
    """A reader of the dialect ``name``."""
    return dialect(name).reader(ORIGIN, framing, None, "r1")


def written(name: str, reader: ResponseReader, pieces: Iterable[bytes], **fields: Any) -> Written:
    """The response that ``reader`` gets in ``pieces``, in the front dialect ``name``; ``fields`` are of ``Shown``."""
    shown = Shown(**{"id": "resp-1", "model": "asked-for", "created": 7, "block": reader.block, **fields})
    writer, stream, deltas = front(name).writer(shown), [], []
    stream.append(writer.begin())
    for piece in pieces:
        found = reader.feed(piece)
        stream.append(writer.show(found))
        deltas += found
    found = reader.close()
    stream.append(writer.show(found))
    deltas += found
    result = reader.result()
    stream.append(writer.end(result))
    return Written(b"".join(stream), front(name).write_response(result, shown), tuple(deltas), result)


def read_back(name: str, data: bytes, framing: Framing) -> ReadResult:
    """What was written, as the dialect's own reader reads it."""
    reader = reader_of(name, framing)
    reader.feed(data)
    reader.close()
    return reader.result()


def told(result: ReadResult) -> Told:
    """What a response says, whatever its dialect."""
    calls = tuple((block.id, block.name, block.arguments) for block in result.blocks if isinstance(block, ToolCall))
    return Told(
        visible(result.blocks),
        reasoning(result.blocks),
        calls,
        result.response.error.message if result.response.error else result.response.outcome,
        None if result.usage is None else counts(result.usage),
    )


def is_kept(deltas: Sequence[Delta], blocks: Sequence[Block]) -> bool:
    """Whether nothing that was shown turned out to be something else, or to repeat other reasoning."""
    hidden = {at for at, block in enumerate(blocks) if isinstance(block, ThinkingBlock) and block.is_hidden}
    return not any(
        isinstance(delta, Reclassified) or (isinstance(delta, ReasoningDelta) and delta.index in hidden)
        for delta in deltas
    )


_STOPS: dict[str, dict[Outcome, Stop]] = {
    "openai-chat": {"paused": "length", "refused": "safety"},
    "gemini": {"refused": "safety"},
}
_COMMON: dict[Outcome, Stop] = {
    "max_tokens": "length",
    "max_tokens_in_reasoning": "length",
    "paused": "paused",
    "safety": "safety",
}


def expected(name: str, result: ReadResult, *, streamed: bool) -> Told:
    """What a client of the dialect ``name`` understands of a response, as far as that dialect has words for it."""
    response, said = result.response, told(result)
    calls = tuple(
        (call_id(block.id, "resp-1", at), block.name, block.arguments or "{}")
        for at, block in enumerate(result.blocks)
        if isinstance(block, ToolCall)
    )
    counted = said.counts
    if name == "gemini":
        calls = tuple((id, call, _on_one_line(as_object(given).decode())) for id, call, given in said.calls)
        counted = counted and counted._replace(cache_write=0)
    said = said._replace(calls=calls, counts=counted)
    if problem_in(result) is not None:
        given = [block.arguments for block in result.blocks if isinstance(block, ToolCall)]
        count = 0 if name == "gemini" else max((at + 1 for at, source in enumerate(given) if source), default=0)
        begun = tuple((*call[:2], source) for call, source in zip(said.calls[:count], given, strict=False))
        return said._replace(calls=begun, counts=None) if streamed else Told("", "", (), said.ends, None)
    readable = [
        block
        for block in result.blocks
        if not isinstance(block, ThinkingBlock) or (block.thought and not block.is_hidden)
    ]
    refuses = (
        response.outcome == "refused"
        and name != "gemini"
        and any(isinstance(b, Text) and b.source_field == "refusal" and b.text for b in readable)
    )
    stop = _STOPS[name].get(response.outcome) or _COMMON.get(response.outcome, "stop")
    return said._replace(ends=outcome_of("stop" if refuses else stop, readable, None))


def _on_one_line(source: str) -> str:
    return source.replace("\r", " ").replace("\n", " ")
