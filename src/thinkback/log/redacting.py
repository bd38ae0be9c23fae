"""Redacting: a pattern taken out of a commit, of its copies and versions, and of what was said about it.

Promises: what repeats the text verbatim goes with it, and the carriers of a response with any of its text. Must not:
store anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, assert_never

import msgspec

from thinkback.log.erasing import Rests, SessionHistory, about
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Commit,
    Compaction,
    Content,
    Erased,
    Merge,
    Message,
    Payload,
    Repair,
    Request,
    Response,
    Tool,
    Tools,
    TurnEnded,
    Usage,
    surviving,
)
from thinkback.model.curation import curate

REDACTED = "[redacted]"


class Pattern(Protocol):
    """What finds the texts that are to go."""

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Where it matches, in order and without overlap."""
        ...


class Expression(NamedTuple):
    """A regular expression, for as long as it takes."""

    compiled: re.Pattern[str]

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Where it matches."""
        return [match.span() for match in self.compiled.finditer(text)]


def redacted(told: Sequence[SessionHistory], target: Commit, pattern: Pattern) -> Rests:
    """What is left when ``pattern`` is taken out of ``target``, of its copies and versions and what was said about it.

    Responses that lose something lose their carriers.
    """
    commits = {commit.hash: commit for _, history in told for commit in history}
    same = {target.hash}
    while more := (set(about(told, same)) | set(_roots(told, same)) | _copies(commits, same)) - same:
        same |= more
    rests: Rests = {}
    for hash in sorted(same):
        whole = surviving(commits[hash].value)
        rest = without(whole, pattern)
        if rest != whole:
            rests[hash] = rest
    torn = {commits[hash].response for hash in rests if commits[hash].index >= 0}
    for commit in commits.values():
        if commit.response in torn and (commit.index >= 0 or commit.kind == "response"):
            left = rests.get(commit.hash, surviving(commit.value))
            rest = left if left is None else voided(left)
            if rest != left or commit.hash in rests:
                rests[commit.hash] = rest
    return rests


def voided(value: Payload) -> Payload | None:
    """A piece of a response without what is opaque or verbatim; ``None`` where nothing else is in it."""
    match value:
        case ThinkingBlock():
            return msgspec.structs.replace(value, signature="", carriers=(), wire="")
        case Text() | ToolCall() | Media():
            return msgspec.structs.replace(value, carriers=(), wire="")
        case Unknown():
            return None
        case Response():
            return msgspec.structs.replace(value, id="", message="", envelope="")
        case _:
            return value


def without(value: Payload, pattern: Pattern) -> Payload | None:
    """A payload with ``[redacted]`` for whatever ``pattern`` matches in what can be read of it.

    What repeats that verbatim goes with it. ``None``: nothing is left.
    """
    rest: Payload | None
    match value:
        case Text() | ThinkingBlock() | ToolCall() | ToolResult() | Media() | Unknown():
            rest = _block_without(value, pattern)
        case Message():
            parts = tuple(part for each in value.parts if (part := _block_without(each, pattern)) is not None)
            changed = msgspec.structs.replace(value, text=cut_text(value.text, pattern), parts=parts)
            rest = _unrepeated(value, changed, pattern, wire="")
        case Tools():
            rest = Tools(tuple(_tool_without(tool, pattern) for tool in value.tools))
        case Response():
            rest = _response_without(value, pattern)
        case Merge() | Usage() | Erased():
            rest = value
        case _:
            changes = {name: _FIELDS[name](getattr(value, name), pattern) for name in _READ[type(value)]}
            rest = msgspec.structs.replace(value, **changes)
    return rest


def _block_without(block: Block, pattern: Pattern) -> Any:
    gone: dict[str, Any] = {"carriers": (), "wire": ""}
    match block:
        case Text():
            changes = {"text": cut_text(block.text, pattern)}
        case ThinkingBlock():
            changes = {"thought": cut_text(block.thought, pattern)}
            gone |= {"signature": "", "inner": ()}
        case ToolCall():
            changes = {"arguments": _cut_source(block.arguments, pattern)}
        case ToolResult():
            changes = {"content": cut_text(block.content, pattern)}
        case Media():
            changes = {"url": cut_text(block.url, pattern), "name": cut_text(block.name, pattern)}
        case Unknown():
            return block if _cut_source(block.wire, pattern) == block.wire else None
        case _:
            assert_never(block)
    return _unrepeated(block, msgspec.structs.replace(block, **changes), pattern, **gone)


def _unrepeated(before: Any, after: Any, pattern: Pattern, **gone: Any) -> Any:
    """``after``, without what repeats the text of ``before`` verbatim, if the pattern is in any of it."""
    if after == before and _cut_source(before.wire, pattern) == before.wire:
        return before
    return msgspec.structs.replace(after, **gone)


def _tool_without(tool: Tool, pattern: Pattern) -> Tool:
    texts = {"description": cut_text(tool.description, pattern), "parameters": _cut_source(tool.parameters, pattern)}
    return msgspec.structs.replace(tool, **texts, wire=_cut_source(tool.wire, pattern))


def _response_without(response: Response, pattern: Pattern) -> Response:
    changes: dict[str, Any] = {name: _cut_source(getattr(response, name), pattern) for name in ("message", "envelope")}
    if response.error is not None:
        texts = {name: cut_text(getattr(response.error, name), pattern) for name in ("message", "upstream")}
        changes["error"] = msgspec.structs.replace(response.error, **texts)
    return msgspec.structs.replace(response, **changes)


def cut_text(text: str, pattern: Pattern) -> str:
    """``text`` with ``[redacted]`` for each match."""
    kept, at = [], 0
    for start, end in pattern.spans(text):
        if start < end:
            kept += [text[at:start], REDACTED]
            at = end
    return "".join((*kept, text[at:]))


def _cut_source(source: str, pattern: Pattern) -> str:
    """JSON source text without it, however it is spelled there; what spans values takes all of them."""
    try:
        value = canonical.decode(source)
    except ValueError:
        return cut_text(source, pattern)
    cut = _cut_value(value, pattern)
    kept = source if cut == value else canonical.source(cut)
    rest = kept.replace(REDACTED, "")
    return kept if cut_text(rest, pattern) == rest else "{}"


def _cut_value(value: Any, pattern: Pattern) -> Any:
    if isinstance(value, dict):
        return {cut_text(key, pattern): _cut_value(item, pattern) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut_value(item, pattern) for item in value]
    if isinstance(value, str):
        return cut_text(value, pattern)
    spelled = canonical.source(value)
    return value if cut_text(spelled, pattern) == spelled else REDACTED


def _cut_list(texts: tuple[str, ...], pattern: Pattern) -> tuple[str, ...]:
    return tuple(cut_text(text, pattern) for text in texts)


def _cut_trimmed(trimmed: tuple[tuple[str, str], ...], pattern: Pattern) -> tuple[tuple[str, str], ...]:
    return tuple((hash, cut_text(text, pattern)) for hash, text in trimmed)


# Which fields of a payload can be read, and how each kind of field is cut.
_READ: Mapping[type[object], tuple[str, ...]] = {
    Annotation: ("reason", "message", "metadata", "retain", "tags", "untag"),
    BranchSummary: ("text", "purpose"),
    Compaction: ("summary", "reason", "note", "trimmed"),
    Content: ("text", "data"),
    Repair: ("refusal",),
    Request: ("params",),
    TurnEnded: ("reason",),
}
_FIELDS: Mapping[str, Callable[[Any, Pattern], Any]] = {
    **dict.fromkeys(("message", "note", "purpose", "reason", "refusal", "summary", "text"), cut_text),
    **dict.fromkeys(("data", "metadata", "params"), _cut_source),
    **dict.fromkeys(("retain", "tags", "untag"), _cut_list),
    "trimmed": _cut_trimmed,
}


def _copies(commits: Mapping[str, Commit], hashes: set[str]) -> set[str]:
    """The commits that say the same, byte for byte."""
    digests = {commits[hash].digest for hash in hashes}
    return {commit.hash for commit in commits.values() if commit.digest in digests}


def _roots(told: Sequence[SessionHistory], picked: set[str]) -> Iterator[str]:
    """What ``picked`` edits are of."""
    for _, history in told:
        curation = curate(history)
        for commit in history:
            if commit.hash in picked and commit.edit:
                yield curation.root(commit.hash)
