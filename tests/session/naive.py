"""A naive model of a log: dicts and lists, and what a log says worked out the slow way.

Reads payloads as the JSON that docs/format.md describes. Must not: import anything of thinkback.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Body: TypeAlias = dict[str, Any]
Item: TypeAlias = tuple[str, str, str | None, tuple[str, ...]]
"""What is said, by which kind of commit, with which priority and tags."""

SAID = frozenset({"system", "user", "assistant", "reasoning", "tool_call", "tool_result", "content", "branch_summary"})
_ABOUT = frozenset({"annotation", "compaction", "merge", "turn_ended"})
_TOKEN = re.compile(r"\bt\d+\b")
_WORDS_IN = {
    "message": "text",
    "text": "text",
    "content": "text",
    "branch_summary": "text",
    "thinking": "thought",
    "tool_result": "content",
    "compaction": "summary",
}


@dataclass
class Record:
    """A commit in plain values. ``owner`` is the session that stored it."""

    hash: str
    parents: tuple[str, ...]
    kind: str
    body: Body
    response: str
    index: int
    edit: str
    time: int
    owner: str = ""


@dataclass
class Place:
    """A session: the family it is of, its branches (name to hash, empty for none) and the current one."""

    family: str
    tips: dict[str, str]
    branch: str = "main"
    before: str = ""


@dataclass
class Said:
    """A commit with what was said about it since."""

    record: Record
    at: int
    versions: list[Body]
    changed_at: int = -1
    priority: str | None = None
    tags: set[str] = field(default_factory=set)

    @property
    def body(self) -> Body:
        """What it says now."""
        return self.versions[-1]

    @property
    def is_skipped(self) -> bool:
        """Whether somebody, or its own type, wants it away."""
        own = left(self.record.body).get("priority") if self.record.kind == "content" else None
        return (self.priority or own) == "skip"


def left(body: Body) -> Body:
    """A payload, or what an erasure left of it."""
    if body.get("type") != "erased":
        return body
    found: Body = json.loads(body["remainder"]) if body.get("remainder") else {}
    return found


def readable(body: Body) -> str:
    """What people read of a payload."""
    body = left(body)
    if body.get("type") == "tool_call":
        arguments = json.loads(body["arguments"])
        return " ".join((body["name"], *(f"{name}: {value}" for name, value in arguments.items())))
    return str(body.get(_WORDS_IN.get(body.get("type", ""), ""), ""))


def holds(record: Record, word: str) -> bool:
    """Whether search finds the record by ``word``."""
    return word in re.findall(r"\w+", readable(record.body))


def fold(line: Iterable[Record]) -> dict[str, Said]:
    """What a line says, by the hash of each commit that is about no other."""
    said: dict[str, Said] = {}
    roots: dict[str, str] = {}
    last = ""
    for at, record in enumerate(line):
        body = left(record.body)
        if record.edit:
            root = roots[record.hash] = roots.get(record.edit, record.edit)
            said[root].versions.append(record.body)
            said[root].changed_at = at
            last = root
        elif record.kind == "annotation":
            target = body.get("target", "") or last
            _mark(said[roots.get(target, target)], body)
        if not record.edit:
            said[record.hash] = Said(record, at, [record.body])
            last = last if record.kind in _ABOUT else record.hash
    return said


def _mark(said: Said, body: Body) -> None:
    if body.get("priority") or body.get("default"):
        said.priority = body.get("priority")
    said.tags |= set(body.get("tags", ()))
    said.tags -= set(body.get("untag", ()))


def items(line: Iterable[Record]) -> list[Item]:
    """What a line says, one by one."""
    return [item(said) for said in fold(line).values() if said.record.kind in SAID]


def item(said: Said) -> Item:
    """One of them."""
    return said.record.kind, readable(said.body), said.priority, tuple(sorted(said.tags))


def tokens(text: str) -> list[str]:
    """The numbered words of a text."""
    return _TOKEN.findall(text)


def open_calls(line: Iterable[Record]) -> list[str]:
    """The ids of calls that wait for a result at the end of a line."""
    waiting: list[str] = []
    for record in line:
        body = left(record.body)
        if record.kind == "tool_call" and body and not record.edit:
            waiting.append(body["id"])
        elif record.kind == "tool_result" and not record.edit and body.get("id", "") in waiting:
            waiting.remove(body["id"])
        elif record.kind in ("turn_ended", "user") and not record.edit:
            waiting = []
    return waiting


def whole(line: list[Record], at: int) -> int:
    """Where a line may end that is to have the commit at ``at``: no response is torn."""
    response = line[at].response
    if not response or line[at].kind in ("request", "tool_result"):
        return at
    while at + 1 < len(line) and line[at + 1].response == response and line[at + 1].kind != "tool_result":
        at += 1
    return at + 1 if at + 1 < len(line) and line[at + 1].kind == "turn_ended" else at


@dataclass
class Run:
    """What a checkpoint stands for: positions in a line."""

    first: int
    last: int
    body: Body


def told(line: list[Record]) -> list[str]:
    """The numbered words that a model is told, in order; system prompts and reasoning aside."""
    said = fold(line)
    runs = _runs(line, said)
    trimmed: dict[str, tuple[int, str]] = {}
    for found in said.values():
        if found.record.kind == "compaction" and not found.is_skipped:
            trimmed |= {hash: (found.at, text) for hash, text in left(found.body).get("trimmed", ())}
    out: list[str] = []
    for at, record in enumerate(line):
        for run in (run for run in runs if run.first == at):
            out += tokens(readable(run.body))
        inside = next((run for run in runs if run.first <= at <= run.last), None)
        if inside is None or record.hash in inside.body.get("kept", ()):
            out += _piece(line, record, said, trimmed)
    return out


def _runs(line: list[Record], said: dict[str, Said]) -> list[Run]:
    places = {record.hash: at for at, record in enumerate(line)}
    runs: list[Run] = []
    for found in said.values():
        body = left(found.body)
        if found.record.kind != "compaction" or found.is_skipped or not body.get("first"):
            continue
        if body["first"] in places and body["last"] in places:
            run = Run(places[body["first"]], places[body["last"]], body)
            runs = [old for old in runs if not (run.first <= old.first and old.last <= run.last)]
            runs.append(run)
    return runs


def _piece(line: list[Record], record: Record, said: dict[str, Said], trimmed: dict[str, tuple[int, str]]) -> list[str]:
    """The words of the message or whole response that begins with ``record``, with the results of its calls."""
    found = said.get(record.hash)
    if found is None or found.is_skipped:
        return []
    if record.kind in ("user", "branch_summary") or (
        record.kind == "content" and left(record.body).get("role", "user") != "system"
    ):
        return tokens(readable(found.body))
    if record.kind != "response" or not left(record.body).get("complete", True):
        return []
    own = [said[part.hash] for part in line if part.response == record.response and not part.edit]
    texts = [part for part in own if part.record.kind == "assistant" and not part.is_skipped]
    calls = [part for part in own if part.record.kind == "tool_call" and not part.is_skipped]
    calls = [part for part in calls if left(part.body)]
    asked = [left(part.record.body).get("id", "") for part in calls]
    results = [found for found in own if found.record.kind == "tool_result" and not found.is_skipped]
    words = [word for part in (*texts, *calls) for word in tokens(readable(part.body))]
    for result in results:
        if left(result.record.body).get("id", "") in asked:
            since, text = trimmed.get(result.record.hash, (-1, ""))
            words += tokens(text if since > result.changed_at else readable(result.body))
    return words


class Merged:
    """What a merge of two lines comes to that have nothing of each other but their beginning.

    ``conflicts`` are the kinds by the hash of the commit; ``items`` is what the line says once they are settled.
    """

    def __init__(self, ours: list[Record], theirs: list[Record]) -> None:
        shared = sum(one == other for one, other in zip(ours, theirs, strict=False))
        self._shared = ours[:shared]
        self._more, self._theirs_more = ours[shared:], theirs[shared:]
        self._base, self._ours, self._theirs = fold(self._shared), fold(ours), fold(theirs)
        self._answers = self._answered()
        went_on, they_went_on = (any(map(_goes_on, more)) for more in (self._more, self._theirs_more))
        found = ((hash, self._conflict(hash, went_on, they_went_on)) for hash in self._base)
        self.conflicts = {hash: kind for hash, kind in found if kind}
        for hash, there in self._answers.items():
            if readable(self._ours[hash].body) != readable(self._theirs[there].body):
                self.conflicts[hash] = "both_edit"

    def _answered(self) -> dict[str, str]:
        """The results of calls that each side answered for itself: ours to theirs."""
        mine, yours = (
            {(r.response, left(r.body).get("id")): r.hash for r in more if r.kind == "tool_result" and not r.edit}
            for more in (self._more, self._theirs_more)
        )
        return {mine[call]: yours[call] for call in mine.keys() & yours.keys()}

    @property
    def is_simple(self) -> bool:
        """Whether the two parted once and nothing was merged, picked or erased since."""
        records = (*self._shared, *self._more, *self._theirs_more)
        return not any(r.kind == "merge" or r.body.get("type") == "erased" for r in records)

    def _conflict(self, hash: str, went_on: bool, they_went_on: bool) -> str:
        base, ours, theirs = (said[hash] for said in (self._base, self._ours, self._theirs))
        edited, they_edited = (readable(side.body) != readable(base.body) for side in (ours, theirs))
        skipped, they_skipped = (side.priority == "skip" and base.priority != "skip" for side in (ours, theirs))
        if edited and they_edited and readable(ours.body) != readable(theirs.body):
            return "both_edit"
        if (skipped and they_edited) or (they_skipped and edited):
            return "skip_vs_edit"
        if (edited and not they_edited and they_went_on) or (they_edited and not edited and went_on):
            return "edit_plus_append"
        return ""

    def items(self, choices: dict[str, str]) -> list[Item]:
        """What is said; ``choices`` settle the conflicts: ours, theirs, or a text."""
        marks: dict[str, list[Body]] = {}
        for record in self._theirs_more:
            target = left(record.body).get("target", "") if record.kind == "annotation" else ""
            marks.setdefault(target, []).append(left(record.body))
        both = {hash: hash for hash in self._base} | self._answers
        kept = [
            self._settled(hash, both[hash], choices.get(hash, ""), marks.get(both[hash], []))
            if hash in both
            else item(said)
            for hash, said in self._ours.items()
            if said.record.kind in SAID
        ]
        there = set(both.values())
        new = (said for hash, said in self._theirs.items() if hash not in there and said.record.kind in SAID)
        return [*kept, *map(item, new)]

    def _settled(self, hash: str, there: str, choice: str, marks: list[Body]) -> Item:
        ours, theirs = self._ours[hash], self._theirs[there]
        base = self._base.get(hash) or Said(ours.record, ours.at, ours.versions[:1])
        kind = self.conflicts.get(hash, "")
        text, priority = readable(ours.body), ours.priority
        they_edited = readable(theirs.body) != readable(base.body)
        if (they_edited and choice in ("", "theirs")) or (choice == "theirs" and kind != "skip_vs_edit"):
            text = readable(theirs.body)
        elif choice not in ("", "ours", "theirs"):
            text = choice
        if kind != "skip_vs_edit" or choice == "theirs":
            if theirs.priority != base.priority or kind == "skip_vs_edit":
                priority = theirs.priority
        elif choice != "ours" and ours.priority == "skip":
            priority = None
        tags = set(ours.tags)
        for mark in marks:
            tags = (tags | set(mark.get("tags", ()))) - set(mark.get("untag", ()))
        return ours.record.kind, text, priority, tuple(sorted(tags))


def _goes_on(record: Record) -> bool:
    return not record.edit and (record.kind in SAID or record.kind in ("response", "tools"))


class Log:
    """Every commit that is there, and the sessions by id."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.sessions: dict[str, Place] = {}
        self.gone: set[str] = set()

    def line(self, hash: str) -> list[Record]:
        """The history that ends with ``hash``."""
        found: list[Record] = []
        while hash:
            found.append(self.records[hash])
            hash = next(iter(found[-1].parents), "")
        return found[::-1]

    def began(self, record: Record) -> int:
        """The time of a commit, or of the response that it is a part or a result of."""
        line = self.line(record.hash)
        heads = [one.time for one in line if one.kind == "response" and one.response == record.response]
        return min(record.time, *heads) if record.response and heads else record.time

    def tips(self, but: tuple[str, str] = ("", "")) -> Iterator[tuple[str, str]]:
        """(session, hash) of every branch ``but`` one."""
        for id, place in self.sessions.items():
            for name, hash in place.tips.items():
                if hash and (id, name) != but:
                    yield id, hash

    def reached(self, tips: Iterable[str]) -> set[str]:
        """Every commit that those stand on, by any parent."""
        seen: set[str] = set()
        waiting = list(tips)
        while waiting:
            hash = waiting.pop()
            if hash not in seen and hash in self.records:
                seen.add(hash)
                waiting += self.records[hash].parents
        return seen

    def collectable(self, older_than: int) -> set[str]:
        """What no branch reaches and nothing younger stands on."""
        reached = self.reached(hash for _, hash in self.tips())
        young = [hash for hash in self.records.keys() - reached if self.records[hash].time >= older_than]
        return self._torn_from(self.records.keys() - reached - self.reached(young))

    def left_by(self, session: str) -> set[str]:
        """What goes with a session: what is not of another one and not stood on by another one."""
        others = [record.hash for record in self.records.values() if record.owner in self.sessions.keys() - {session}]
        others += [hash for id, hash in self.tips() if id != session]
        return self._torn_from(self.records.keys() - self.reached(others))

    def _torn_from(self, gone: set[str]) -> set[str]:
        """The same without the rest of a response of which something stays, down to its last block."""
        stays: set[str] = set()
        for hash in gone:
            block = self.records[hash]
            rest: list[str] = []
            while block.response and block.index >= 0 and hash in gone:
                rest.append(hash)
                hash = next(iter(self.records[hash].parents), "")
            above = self.records.get(hash)
            if rest and above is not None and above.response == block.response and above.owner == block.owner:
                stays |= set(rest)
        return gone - stays

    def remove(self, hashes: set[str]) -> None:
        """Forget commits."""
        self.gone |= hashes
        for hash in hashes:
            del self.records[hash]
