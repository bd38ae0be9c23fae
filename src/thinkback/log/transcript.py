"""A history as people read it: what holds now, and on request what was there before.

Edits stand in place of what they edit, a checkpoint's summary in place of its run. Must not: show a carrier or a
verbatim object, or know how a page looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from thinkback.log.outline import Outline, Run
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import (
    BranchSummary,
    Commit,
    Content,
    Erased,
    Merge,
    Message,
    Payload,
    PermissionDecision,
    Response,
    TurnEnded,
    surviving,
)
from thinkback.model.texts import text_of

Form: TypeAlias = Literal["text", "reasoning", "code", "media", "note"]
Role: TypeAlias = Literal["system", "user", "assistant", "tool", "summary", "note"]

_ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "tool_result": "tool",
    "branch_summary": "summary",
    "merge": "note",
    "permission_decision": "note",
    "turn_ended": "note",
}
_BLOCKS = frozenset({"assistant", "reasoning", "tool_call", "media", "other"})
_SHOWN = frozenset({"response", "content", *_BLOCKS, *_ROLES})


class TranscriptPart(NamedTuple):
    """One thing that is shown. ``label`` names it: a tool, a media type; of media, ``text`` is its data in base64, or
    where it can be fetched. ``before`` is what stood there, oldest first.
    """

    form: Form
    text: str
    label: str = ""
    before: tuple[str, ...] = ()


class TranscriptEntry(NamedTuple):
    """What somebody said at one time. ``title`` is a model's or a type's name, ``marks`` is what else is to be known.

    ``inside`` is what a summary stands for.
    """

    role: Role
    title: str
    time: int
    pieces: tuple[TranscriptPart, ...]
    marks: tuple[str, ...] = ()
    inside: tuple[TranscriptEntry, ...] = ()


def transcript(commits: Sequence[Commit], history: bool = False) -> Iterator[TranscriptEntry]:
    """The entries of a history. ``history``: with what was there before edits and summaries."""
    outline = Outline(commits)
    kept = {at for piece in outline.pieces for at in piece.at if not outline.is_inside(piece)}
    at = 0
    for run in outline.runs:
        yield from _entries(outline, range(at, run.first), history)
        yield _summary(outline, run, history)
        yield from _entries(outline, [place for place in _places(run) if place in kept], history)
        at = max(at, run.last + 1)
    yield from _entries(outline, range(at, len(commits)), history)


def _places(run: Run) -> range:
    return range(run.first, run.last + 1)


def _summary(outline: Outline, run: Run, history: bool) -> TranscriptEntry:
    time = outline.commits[run.first].time
    inside = tuple(_entries(outline, _places(run), history)) if history else ()
    return TranscriptEntry("summary", "", time, (TranscriptPart("text", run.checkpoint.summary),), inside=inside)


def _entries(outline: Outline, places: Sequence[int], history: bool) -> Iterator[TranscriptEntry]:
    """The commits at ``places``; the blocks of a response are one entry."""
    opened: list[Commit] = []
    for at in places:
        commit = outline.commits[at]
        if commit.edit or commit.kind not in _SHOWN:
            continue
        if opened and not (commit.kind in _BLOCKS and commit.response == opened[0].response):
            yield from _entry(outline, opened, history)
            opened = []
        if commit.kind == "response" or commit.kind in _BLOCKS:
            opened.append(commit)
        else:
            yield from _entry(outline, [commit], history)
    if opened:
        yield from _entry(outline, opened, history)


def _entry(outline: Outline, commits: list[Commit], history: bool) -> Iterator[TranscriptEntry]:
    first = commits[0]
    value = surviving(first.value)
    pieces = tuple(dict.fromkeys(piece for commit in commits for piece in _shown(outline, commit, history)))
    marks = tuple(dict.fromkeys(mark for commit in commits for mark in _marks(outline, commit)))
    role: Role = _ROLES.get(first.kind, "note" if first.kind == "content" else "assistant")
    title = ""
    if isinstance(value, Response):
        title = value.origin.served_model or value.origin.requested_model
    elif isinstance(value, Content):
        role, title = value.role, value.content_type
    if pieces or (marks and isinstance(value, Response)):
        yield TranscriptEntry(role, title, first.time, pieces, marks)


def _marks(outline: Outline, commit: Commit) -> Iterator[str]:
    curation = outline.curation
    priority = curation.priority(commit)
    if priority is not None:
        yield priority.value
    yield from sorted(curation.mark(commit.hash).tags)
    if curation.is_changed(commit):
        yield "edited"
    value = surviving(commit.value)
    if isinstance(value, Response) and not value.complete:
        yield f"not completed: {value.error.message if value.error else value.outcome}".rstrip(": ")


def _shown(outline: Outline, commit: Commit, history: bool) -> Iterator[TranscriptPart]:
    curation = outline.curation
    versions = [commit.value, *(edit.value for edit in curation.edits.get(commit.hash, ()))]
    now, before = versions[-1], versions[:-1] if curation.is_changed(commit) else []
    pieces = list(pieces_of(now))
    if commit.hash in outline.trimmed:
        pieces = [piece._replace(text=outline.trimmed[commit.hash]) for piece in pieces]
        before = versions
    if history and before and pieces:
        pieces[0] = pieces[0]._replace(before=tuple(filter(None, map(text_of, before))))
    yield from pieces


def pieces_of(value: Payload) -> Iterator[TranscriptPart]:
    """What of a payload is shown; of a piece of reasoning nothing where its text is not there, or is there twice."""
    match surviving(value):
        case Message() as message:
            yield from _parts(message)
        case Text(text=text) | Content(text=text) | BranchSummary(text=text) if text:
            yield TranscriptPart("text", text)
        case ThinkingBlock(thought=thought, is_hidden=False, marker=False) if thought:
            yield TranscriptPart("reasoning", thought)
        case ToolCall() as call:
            yield TranscriptPart("code", call.arguments, call.name)
        case ToolResult() as result:
            yield TranscriptPart("code", result.content, f"{result.name} {_status(result)}".strip())
        case Media() as media:
            yield _media(media)
        case Unknown():
            yield TranscriptPart("note", "a part that is not understood")
        case Merge() as merge:
            yield TranscriptPart("note", f"{merge.branch} was merged")
        case PermissionDecision(by="person", decision="allowed") as said:  # of a denial the end of the turn tells
            yield TranscriptPart("note", f"{said.tool} was allowed by a person: {said.note}".rstrip(": "))
        case TurnEnded() as end if end.state != "completed":
            yield TranscriptPart("note", f"the turn ended: {end.state.replace('_', ' ')}: {end.reason}".rstrip(": "))
        case Erased() as stone:
            yield TranscriptPart("note", stone.notice)
        case _:
            pass


def _parts(message: Message) -> Iterator[TranscriptPart]:
    if message.text and not message.parts:
        yield TranscriptPart("text", message.text)
    for part in message.parts:
        match part:
            case Text():
                yield TranscriptPart("text", part.text)
            case Media():
                yield _media(part)
            case _:
                yield TranscriptPart("note", "a part that is not understood")


def _media(media: Media) -> TranscriptPart:
    return TranscriptPart("media", media.data or media.url, f"{media.media_type} {media.name}".rstrip())


def _status(result: ToolResult) -> str:
    if result.status != "run":
        return f"({result.status.replace('_', ' ')})"
    return "(error)" if result.is_error else ""
