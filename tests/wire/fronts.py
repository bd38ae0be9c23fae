"""What every response writer must do with the responses of every dialect, told by reading back what it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tests.wire.feeding import reasoning, visible
from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin, Text, ThinkingBlock, ToolCall, carriers_of
from thinkback.model.commits import Outcome
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified
from thinkback.wire.arguments import as_object, is_cut
from thinkback.wire.dialect import ResponseReader
from thinkback.wire.framing import Framing
from thinkback.wire.registry import dialect, front
from thinkback.wire.result import ReadResult, Stop, outcome_of
from thinkback.wire.writing import Counts, Shown, call_id, counts, problem_in

IN_A_ROW = ("anthropic", "openai-responses")
NOTHING = Counts(0, 0, 0, 0, 0)
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


def state(blocks: Sequence[Block]) -> str:
    """A state that tells what it is of; none where nothing of it is opaque."""
    kinds = "+".join(str(type(block).__struct_config__.tag) for block in blocks)
    return f"tb1.{kinds}" if any(carriers_of(block) for block in blocks) else ""


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
    "anthropic": {"refused": "refusal", "safety": "refusal"},
    "openai-responses": {"paused": "length", "refused": "safety"},
}
# Those that say in which words a model refused.
_REFUSE = ("openai-chat", "openai-responses")
_COMMON: dict[Outcome, Stop] = {
    "max_tokens": "length",
    "max_tokens_in_reasoning": "length",
    "paused": "paused",
    "safety": "safety",
}


def expected(name: str, result: ReadResult, *, streamed: bool) -> Told:
    """What a client of the dialect ``name`` understands of a response, as far as that dialect has words for it."""
    response, said = result.response, told(result)
    cut = [block for block in result.blocks if isinstance(block, ToolCall) and is_cut(block.arguments)]
    cut = cut if name == "anthropic" else []
    calls = tuple(
        (call_id(block.id, "resp-1", at), block.name, block.arguments or "{}")
        for at, block in enumerate(result.blocks)
        if isinstance(block, ToolCall)
    )
    counted = said.counts
    if name == "gemini":
        calls = tuple((id, call, _on_one_line(as_object(given).decode())) for id, call, given in said.calls)
        counted = counted and counted._replace(cache_write=0)
    elif name == "anthropic":
        calls = tuple(
            (id, call, as_object(given).decode()) for id, call, given in calls if streamed or not is_cut(given)
        )
        counted = _beside(counted or NOTHING)
    said = said._replace(calls=calls, counts=counted)
    if problem_in(result) is not None:
        if not streamed:
            return Told("", "", (), said.ends, None)
        if name in IN_A_ROW:
            return _in_a_row(name, result, calls)._replace(ends=said.ends)
        return said._replace(calls=_begun(result, calls, name), counts=None)
    readable = [
        block
        for block in result.blocks
        if (not isinstance(block, ThinkingBlock) or (block.thought and not block.is_hidden))
        and (streamed or block not in cut)
    ]
    refuses = (
        response.outcome == "refused"
        and name in _REFUSE
        and any(isinstance(b, Text) and b.source_field == "refusal" and b.text for b in readable)
    )
    stop = _STOPS[name].get(response.outcome) or _COMMON.get(response.outcome, "stop")
    stop = "length" if cut and response.outcome == "tool_calls" else stop
    return said._replace(ends=outcome_of("stop" if refuses else stop, readable, None))


def _beside(found: Counts) -> Counts:
    """The counts where input is told without what was cached: it cannot be less than that."""
    return found._replace(input=max(found.input, found.cached + found.cache_write))


def _begun(result: ReadResult, calls: Sequence[tuple[str, str, str]], name: str) -> tuple[tuple[str, str, str], ...]:
    """The calls that had begun when a stream broke off, with their arguments as they came."""
    given = [block.arguments for block in result.blocks if isinstance(block, ToolCall)]
    count = 0 if name == "gemini" else max((at + 1 for at, source in enumerate(given) if source), default=0)
    return tuple((*call[:2], source) for call, source in zip(calls[:count], given, strict=False))


def _in_a_row(name: str, result: ReadResult, calls: Sequence[tuple[str, str, str]]) -> Told:
    """What was shown of a response that broke off where a block begins when the call before it is whole."""
    blocks = result.blocks
    open_call = (
        at for at, block in enumerate(blocks) if isinstance(block, ToolCall) and not is_object(block.arguments)
    )
    seen = blocks[: next(open_call, len(blocks)) + 1]
    given = [block.arguments for block in seen if isinstance(block, ToolCall)]
    begun = [(*call[:2], source) for call, source in zip(calls, given, strict=False) if source]
    if name == "openai-responses":
        return Told(visible(seen), reasoning(seen), tuple(begun), "", None)
    # Only an object is shown while it comes.
    begun = [(id, called, source if source.startswith("{") else "") for id, called, source in begun]
    return Told(visible(seen), reasoning(seen), tuple(begun), "", NOTHING)


def is_object(source: str) -> bool:
    """Whether arguments are one JSON object."""
    return bool(source.strip()) and as_object(source) == canonical.raw(source)


def _on_one_line(source: str) -> str:
    return source.replace("\r", " ").replace("\n", " ")
