"""What two histories say differently, message by message, reasoning on lines of its own.

Promises: commits that only have other hashes (copies) are no difference. Must not: know colours; a line names a style.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

import msgspec

from thinkback.log.copy_commits import is_said
from thinkback.log.lines import common
from thinkback.log.merge_base import meet
from thinkback.log.seal import head_of
from thinkback.model.commits import Commit, Compaction, Head
from thinkback.model.curation import Curation, curate
from thinkback.model.tables import html_table, markdown_table
from thinkback.model.texts import text_of

Style: TypeAlias = Literal["heading", "added", "removed", "changed", "muted"]


class Change(msgspec.Struct, frozen=True):
    """One difference. ``old`` and ``new`` are texts (priorities for ``priority``), of which an added or removed commit
    has one; ``hash`` is the commit's in the second history, in the first for a removed one.
    """

    what: Literal["added", "removed", "changed", "priority"]
    kind: str
    hash: str
    old: str = ""
    new: str = ""


class Diff(msgspec.Struct, frozen=True):
    """The changes from one history to another in reading order. ``base`` is the last commit they share; ``renamed``
    are (hash in the first, hash in the second) of what both say under other hashes.
    """

    base: Head
    changes: tuple[Change, ...]
    renamed: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return f"<Diff: {len(self.changes)} changes since {self.base.hash[:8] or 'the beginning'}>"

    def _repr_html_(self) -> str:
        """For notebooks: what went and what came."""
        return html_table(_HEADINGS, self._rows())

    def _repr_markdown_(self) -> str:
        """The same as Markdown."""
        return markdown_table(_HEADINGS, self._rows())

    def _rows(self) -> list[tuple[str, ...]]:
        return [(one.what, one.kind, one.hash[:8], one.old, one.new) for one in self.changes]


_HEADINGS = ("change", "kind", "commit", "before", "after")


class Compared(msgspec.Struct, frozen=True):
    """Two branches: how many commits each has that the other lacks, copies not counted, and the difference."""

    ahead: int
    behind: int
    base: Head
    diff: Diff


class Line(msgspec.Struct, frozen=True):
    """A line of text, without its end, and the name of its style. Reasoning is ``muted``, whatever became of it."""

    text: str
    style: Style


def diff(old: Sequence[Commit], new: Sequence[Commit]) -> Diff:
    """What ``new`` says differently from ``old``."""
    shared = common(old, new)
    before, after = curate(old), curate(new)
    changes: list[Change] = []
    renamed: list[tuple[str, str]] = []
    if before.edits or before.marks or after.edits or after.marks:
        for commit in filter(_is_shown, old[:shared]):
            changes += _changed(commit, before, commit, after)
    gone, come = [list(filter(_is_shown, line[shared:])) for line in (old, new)]
    matcher = SequenceMatcher(None, list(map(_key, gone)), list(map(_key, come)), autojunk=False)
    for tag, low, high, start, stop in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(gone[low:high], come[start:stop], strict=True):
                renamed.append((one.hash, other.hash))
                changes += _changed(one, before, other, after)
            continue
        changes += [Change("removed", c.kind, c.hash, old=text_of(before.value(c))) for c in gone[low:high]]
        changes += [Change("added", c.kind, c.hash, new=text_of(after.value(c))) for c in come[start:stop]]
    return Diff(head_of(old[:shared]), tuple(changes), tuple(renamed))


def _is_shown(commit: Commit) -> bool:
    """What a reader of the conversation would miss: everything said but the headers of responses, and checkpoints."""
    return commit.kind == "compaction" or (is_said(commit) and commit.kind != "response")


def _key(commit: Commit) -> tuple[str, str]:
    """What makes two commits the same in all but their place; a checkpoint names commits, which a copy names anew."""
    value = commit.value
    return commit.kind, text_of(value) if isinstance(value, Compaction) else commit.digest


def _changed(one: Commit, before: Curation, other: Commit, after: Curation) -> Iterator[Change]:
    """What is said of the same commit, then and now."""
    old, new = before.value(one), after.value(other)
    if old != new and not isinstance(new, Compaction):
        yield Change("changed", other.kind, other.hash, text_of(old), text_of(new))
    was, now = before.priority(one), after.priority(other)
    if was != now:
        yield Change("priority", other.kind, other.hash, was or "default", now or "default")


def compare(ours: Sequence[Commit], theirs: Sequence[Commit]) -> Compared:
    """How far two branches are apart: ``ahead`` is what ours has more, ``behind`` what it lacks."""
    met = meet(ours, theirs)
    return Compared(len(meet(theirs, ours).fresh), len(met.fresh), head_of(met.base), diff(ours, theirs))


def render(found: Diff) -> list[Line]:
    """A difference as lines: ``-`` and ``+`` before what went and came, ``!`` before a priority."""
    lines: list[Line] = []
    for change in found.changes:
        muted = change.kind == "reasoning"
        name = f"[{change.kind}]" if muted else change.kind
        heading: Style = "muted" if muted else "heading"
        if change.what == "priority":
            said = f"! {name} {change.hash[:8]}: {change.old} -> {change.new}"
            lines.append(Line(said, "muted" if muted else "changed"))
            continue
        lines.append(Line(f"{_SIGNS[change.what]} {name} {change.hash[:8]}", heading))
        if change.what != "added":
            lines += [Line(f"- {text}", "muted" if muted else "removed") for text in change.old.split("\n")]
        if change.what != "removed":
            lines += [Line(f"+ {text}", "muted" if muted else "added") for text in change.new.split("\n")]
    return lines


_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
