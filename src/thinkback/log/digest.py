"""What is said of a run of commits in fewer words: a digest from the log alone, and a transcript for a model to read.

Promises: neither holds what is marked SKIP, nor reasoning, except a transcript that is to have it; a digest has every
text that must be retained and names every commit marked IMPORTANT. Must not: ask anybody, or decide what is covered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.log.compaction import Cut, shortened
from thinkback.log.outline import Outline, OutlineItem
from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, is_shown
from thinkback.model.commits import BranchSummary, Commit, Content, Message, Priority, Response, surviving

Part: TypeAlias = Literal["asked", "thought", "answered", "called", "gave", "noted", "earlier"]

# Characters of a digest: a share of what it stands for, between bounds, and of single entries in it.
_SHARE, _LEAST, _MOST = 4, 800, 12_000
_LINE, _LONG = 200, 1_000
# Of one entry of a transcript, halved until the whole fits.
_ENTRY, _SHORTEST = 8_000, 200
_REF = 8
# Summaries that cannot be made again from the log.
_WRITTEN = frozenset({"model", "manual"})

_FILE_KEYS = frozenset({"path", "file", "file_path", "filepath", "filename", "notebook_path", "target_file"})
_COMMAND_KEYS = frozenset({"command", "cmd", "script"})
_TODO = re.compile(r"^\s*[-*] \[ \] (.+)$", re.MULTILINE)


class DigestEntry(NamedTuple):
    """One thing that was said or done. ``weight``: of notes, those with more stay longer."""

    hash: str
    part: Part
    text: str
    weight: int = 0


class Survivor(NamedTuple):
    """An IMPORTANT commit that a summary stands for: all of ``retain`` must be in it, or else its ``ref``."""

    hash: str
    text: str
    retain: tuple[str, ...]

    @property
    def ref(self) -> str:
        """How a summary names the commit."""
        return f"[{self.hash[:_REF]}]"


def entries(
    outline: Outline, found: Cut, standing: frozenset[str] | None = None, *, rationale: bool = False
) -> Iterator[DigestEntry]:
    """What the covered pieces say, oldest first. Summaries in force stand for theirs where their strategy is one of
    ``standing`` (by default, any). ``rationale``: readable reasoning too.
    """
    runs = [run for run in outline.runs if standing is None or run.checkpoint.strategy in standing]
    told: set[int] = set()
    for piece in found.covered:
        run = next((run for run in runs if run.first <= piece.at[0] <= run.last), None)
        if run is None or piece.hash in run.checkpoint.kept:
            yield from _entries(outline, piece, rationale=rationale)
        elif run.first not in told:
            told.add(run.first)
            yield DigestEntry(run.checkpoint.first, "earlier", run.checkpoint.summary)


def survivors(outline: Outline, found: Cut) -> list[Survivor]:
    """The IMPORTANT commits that the summary stands for."""
    marked: list[Survivor] = []
    for piece in found.covered:
        for at in piece.at:
            commit = outline.commits[at]
            if outline.curation.priority(commit) is Priority.IMPORTANT:
                text = "\n".join(entry.text for entry in _of(outline, commit))
                marked.append(Survivor(commit.hash, text, outline.curation.mark(commit.hash).retain))
    return marked


def missing(summary: str, wanted: Iterable[Survivor]) -> list[str]:
    """The texts and references that ``summary`` must have and has not, white space and case aside."""
    said = _plain(summary)
    texts = (text for survivor in wanted for text in (survivor.retain or (survivor.ref,)))
    return [text for text in dict.fromkeys(texts) if _plain(text) not in said]


def digest(outline: Outline, found: Cut) -> str:
    """A summary from the log alone: what it is about, what was asked, answered, done, and what is left to do."""
    told = list(entries(outline, found, _WRITTEN))
    room = min(max(sum(len(entry.text) for entry in told) // _SHARE, _LEAST), _MOST)
    parts = {
        part: [entry for entry in told if entry.part == part] for part in ("asked", "answered", "noted", "earlier")
    }
    asked = parts["asked"]
    first = next((piece.hash for piece in outline.pieces if piece.kind == "said"), "")
    objective = asked[:1] if asked and asked[0].hash == first else []
    calls = list(_calls(outline, found))
    files = list(dict.fromkeys(file for call in calls for file in _named(call, _FILE_KEYS)))
    sections = (
        ("Objective", [_cut(entry.text, min(_LONG, room)) for entry in objective]),
        ("Earlier summary", [entry.text for entry in parts["earlier"]]),
        ("Important", [_format_survivor(survivor) for survivor in survivors(outline, found)]),
        ("Notes", _heaviest(parts["noted"], room // 4)),
        ("The user asked", _fitting([_line(entry) for entry in asked[len(objective) :]], room // 4)),
        ("Answers", _fitting([_line(entry) for entry in parts["answered"]], room // 4)),
        ("Files", [_cut(", ".join(files), room // 8)] if files else []),
        ("Calls", _fitting([_call_line(call) for call in calls], room // 4)),
        ("Still open", _fitting(_open_tasks(parts["answered"], asked, outline, found), room // 8)),
    )
    head = f"{_note(found)} What follows is drawn from them; [{'x' * _REF}] names one of its commits."
    return "\n\n".join([head, *(_section(title, lines) for title, lines in sections if lines)])


def note(outline: Outline, found: Cut) -> str:
    """One line that says what is left out, and whatever must survive."""
    lines = [_format_survivor(survivor) for survivor in survivors(outline, found)]
    return "\n\n".join([_note(found), *([_section("Important", lines)] if lines else [])])


def transcript(outline: Outline, found: Cut, room: int, *, rationale: bool = False) -> str:
    """The covered pieces for a model that is to summarise them, at most about ``room`` characters.

    ``rationale``: with the readable reasoning, for reasons that stand nowhere else.

    Long entries are cut first, the longest most; if that is not enough, those in the middle are left out.
    """
    told = list(entries(outline, found, rationale=rationale))
    most = _ENTRY
    while most > _SHORTEST and sum(min(len(entry.text), most) for entry in told) > room:
        most //= 2
    lines = [_format_entry(entry, most) for entry in told]
    sizes = sum(map(len, lines))
    if sizes <= room:
        return "\n\n".join(lines)
    head = _count(lines, room // 2)
    tail = _count(lines[head:][::-1], room // 2)
    left_out = len(lines) - head - tail
    return "\n\n".join([*lines[:head], f"[... {left_out} entries left out ...]", *lines[len(lines) - tail :]])


def _entries(outline: Outline, piece: OutlineItem, *, rationale: bool) -> Iterator[DigestEntry]:
    """What a piece says; nothing of a response that never completed, because no model was sent it either."""
    header = outline.commits[piece.at[0]].value
    if isinstance(header, Response) and not header.complete:
        return
    for at in piece.at:
        commit = outline.commits[at]
        value = surviving(outline.curation.value(commit)) if rationale else None
        if isinstance(value, ThinkingBlock) and is_shown(value) and value.thought.strip():
            if outline.curation.priority(commit) is not Priority.SKIP:
                yield DigestEntry(commit.hash, "thought", value.thought)
            continue
        yield from _of(outline, commit)


def _of(outline: Outline, commit: Commit) -> Iterator[DigestEntry]:
    """What a commit says as it was last edited; nothing where it is reasoning, skipped, erased or hidden."""
    if outline.curation.priority(commit) is Priority.SKIP:
        return
    match surviving(outline.curation.value(commit)):
        case Message(text=text, parts=parts):
            shown = [text, *(f"[{part.media_type}]" for part in parts if isinstance(part, Media))]
            yield DigestEntry(commit.hash, "asked", "\n".join(piece for piece in shown if piece))
        case Text(text=text) if text.strip():
            yield DigestEntry(commit.hash, "answered", text)
        case ToolCall(name=name, arguments=arguments):
            yield DigestEntry(commit.hash, "called", f"{name}({arguments})")
        case ToolResult(content=content):
            yield DigestEntry(commit.hash, "gave", outline.trimmed.get(commit.hash, content))
        case Content(content_type=kind, text=text, compression_priority=weight):
            yield DigestEntry(commit.hash, "noted", f"{kind}: {text}", weight)
        case BranchSummary(text=text, purpose=purpose):
            yield DigestEntry(commit.hash, "noted", f"{purpose or 'another branch'}: {text}", 50)
        case _:
            return


def _calls(outline: Outline, found: Cut) -> Iterator[ToolCall]:
    for piece in found.covered:
        for at in piece.at:
            value = surviving(outline.curation.value(outline.commits[at]))
            if isinstance(value, ToolCall) and outline.curation.priority(outline.commits[at]) is not Priority.SKIP:
                yield value


def _open_tasks(
    answered: Sequence[DigestEntry], asked: Sequence[DigestEntry], outline: Outline, found: Cut
) -> list[str]:
    """What the last answer lists as not done, and what was asked last where no answer came."""
    tasks = _TODO.findall(answered[-1].text) if answered else []
    places = {commit.hash: at for at, commit in enumerate(outline.commits[: found.last + 1])}
    if asked and (not answered or places[asked[-1].hash] > places[answered[-1].hash]):
        tasks.append(f"unanswered: {asked[-1].text}")
    return [_cut(task, _LINE) for task in tasks]


def _named(call: ToolCall, keys: frozenset[str]) -> Iterator[str]:
    """The texts that a call's arguments hold under ``keys``."""
    try:
        arguments: Any = canonical.decode(call.arguments)
    except msgspec.DecodeError:
        return
    for key, value in arguments.items() if isinstance(arguments, dict) else ():
        if key in keys and isinstance(value, str) and value:
            yield value


def _call_line(call: ToolCall) -> str:
    command = next(_named(call, _COMMAND_KEYS), None)
    return _cut(f"{call.name}({command if command is not None else call.arguments})", _LINE)


def _note(found: Cut) -> str:
    """What the summary stands for, in numbers."""
    turns = len({piece.turn for piece in found.covered})
    return f"{len(found.covered)} messages of {turns} turns are left out here; the log has them."


def _format_survivor(survivor: Survivor) -> str:
    """An important commit in full, or its beginning and all that must be retained of it."""
    text = _cut(survivor.text, _LONG)
    lost = [wanted for wanted in survivor.retain if _plain(wanted) not in _plain(text)]
    return " ".join([survivor.ref, *([text] if text else []), *lost])


def _line(entry: DigestEntry) -> str:
    return f"[{entry.hash[:_REF]}] {_cut(entry.text, _LINE)}"


def _format_entry(entry: DigestEntry, most: int) -> str:
    text = entry.text if len(entry.text) <= most else shortened(entry.text, most, entry.hash)
    return f"[{entry.hash[:_REF]}] {_SPEAKERS[entry.part]}:\n{text}"


_SPEAKERS: dict[Part, str] = {
    "asked": "user",
    "thought": "assistant thinks",
    "answered": "assistant",
    "called": "assistant calls",
    "gave": "result",
    "noted": "note",
    "earlier": "earlier summary",
}


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"- {line}" for line in lines)])


def _heaviest(notes: Sequence[DigestEntry], room: int) -> list[str]:
    """The notes with the highest compression priority that fit, in order; of equals the newest."""
    ranked = sorted(range(len(notes)), key=lambda at: (notes[at].weight, at), reverse=True)
    lines = [_line(note) for note in notes]
    chosen = set(ranked[: _count([lines[at] for at in ranked], room)])
    shown = [line for at, line in enumerate(lines) if at in chosen]
    return _with_rest(shown, len(lines) - len(shown))


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """The newest of ``lines`` that fit, in order."""
    count = _count(lines[::-1], room)
    return _with_rest(list(lines[len(lines) - count :]), len(lines) - count)


def _with_rest(lines: list[str], left_out: int) -> list[str]:
    return [*([f"({left_out} more in the log)"] if left_out else []), *lines]


def _count(lines: Sequence[str], room: int) -> int:
    """How many of ``lines``, from the first on, fit into ``room`` characters."""
    for at, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return at
    return len(lines)


def _cut(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
