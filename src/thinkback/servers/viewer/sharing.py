"""Sessions as one file for people who have no log: each conversation, and what went back of it, and why.

Promises: what an export keeps back (``log.sharing``) is not in the file, and an opaque value never is; it loads
nothing, leads nowhere and runs nothing. Of several sessions one is held at a time; what two share is written once.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from markupsafe import Markup

from thinkback.drive.clock import now
from thinkback.log.outline import Outline
from thinkback.log.progress import Meter, Progress
from thinkback.log.protocol import SessionInfo
from thinkback.log.sharing import Leaving, Sharing
from thinkback.log.tally import title_of
from thinkback.model.blocks import Unknown
from thinkback.model.commits import Commit, Compaction, Erased, surviving
from thinkback.servers.viewer import looking_back
from thinkback.servers.viewer.app import Shown, shown_of
from thinkback.servers.viewer.conversation import Entry, Part, entries_of
from thinkback.servers.viewer.lines import Line, Lines
from thinkback.servers.viewer.looking_back import Mending
from thinkback.servers.viewer.pages import STATIC, pieces
from thinkback.servers.viewer.replay import Cell, Column, Row, Tally, rows_of, tally
from thinkback.session.exchange.exporting import Exported, Target, as_shared, choose, other_branches, write
from thinkback.session.observing import readable_prices, usd_of
from thinkback.session.store import SessionStore
from thinkback.settings.registry import TITLE
from thinkback.turn.usage import TokenUse, summed


class Why(NamedTuple):
    """The last request of a session beside its log; ``thoughts`` are those of the ``rows`` that are some."""

    column: Column
    tally: Tally
    rows: Sequence[Row]
    thoughts: Sequence[Row]
    mendings: Sequence[Mending]


class Chapter(NamedTuple):
    """A session in a file; it is number ``number``. ``repeated`` entries are those of sessions before it.
    ``other_branches`` says which of its branches are not in the file.
    """

    number: int
    info: SessionInfo
    title: str
    models: Sequence[str]
    turns: int
    use: TokenUse
    usd: float | None
    shown: Sequence[Shown]
    repeated: int
    other_branches: str
    why: Why | None


def export(
    store: SessionStore,
    to: Target,
    *,
    session: str = "",
    branch: str = "",
    family: bool = False,
    with_reasoning: bool = False,
    with_carriers: bool = False,
    with_history: bool = False,
    complete: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write the log, one ``session`` or its whole ``family`` to one page, as ``SessionStore.export`` does.

    Raises ``NotFoundError``.
    """
    chosen = [each.info for each in choose(store.log, session, family) if each.fork is None]
    sharing, time = Sharing(with_reasoning, with_carriers, complete), now()
    left_out = [word for word in sharing.left_out if word != "carriers"]
    binding = _Binding(store, sharing, Leaving(sharing, time), with_history or complete, branch)
    meter = Meter(progress, sum(info.commits for info in chosen), "commits")
    style = (STATIC / "viewer.css").read_text("utf-8")
    written = pieces(
        "file.html",
        title=_title(chosen[0]) if len(chosen) == 1 else "Sessions",
        chapters=binding.chapters(chosen, meter),
        several=len(chosen) > 1,
        left_out=[*left_out, "opaque values"],
        style=Markup(style),
        digest=b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        time=time,
    )
    write(to, written)
    meter.end()
    return binding.done


class _Binding:
    """Makes the chapters of a file, one after the other; ``done`` counts along."""

    def __init__(
        self, store: SessionStore, sharing: Sharing, leaving: Leaving, history: bool, branch: str = ""
    ) -> None:
        self.done = Exported()
        self._store, self._sharing, self._leaving, self._history = store, sharing, leaving, history
        self._branch = branch
        self._seen: set[int] = set()
        self._prices = readable_prices()

    def chapters(self, infos: Sequence[SessionInfo], meter: Meter) -> Iterator[Chapter]:
        """A chapter for each session: the branch that was named, else its current one."""
        for number, info in enumerate(infos, 1):
            yield self._chapter(number, info, meter)
            self.done.sessions += 1

    def _chapter(self, number: int, info: SessionInfo, meter: Meter) -> Chapter:
        line = Lines(self._store.log).read(info, self._branch or info.branch)
        left = as_shared(line.commits, self._leaving, self.done, meter)
        read = [_as_read(one, other) for one, other in zip(line.commits, left, strict=True)]
        entries = self._entries(line, read)
        uses = [entry.use for entry in entries if entry.use is not None]
        new = [entry for entry in entries if not self._is_seen(entry)]
        return Chapter(
            number,
            info,
            _title(info, entries),
            tuple(dict.fromkeys(entry.model for entry in entries if entry.model)),
            max((entry.turn for entry in entries), default=0),
            summed(use.use for use in uses) or TokenUse(),
            usd_of(uses, self._prices),
            [shown_of(new, at, self._prices) for at in range(len(new))],
            len(entries) - len(new),
            other_branches(self._store.log, info, line.commits, self.done),
            self._why(line, read, entries),
        )

    def _entries(self, line: Line, read: Sequence[Commit]) -> list[Entry]:
        """What is shown, of ``read``; what was used is read off the log itself."""
        own = {entry.first.hash: entry for entry in line.entries}
        parts = {part.commit.hash: part for entry in line.entries for part in entry.parts}
        outline = Outline(read)
        hidden = set() if self._history else _replaced(outline)
        trimmed = {} if self._history else outline.trimmed
        found = []
        for entry in entries_of(read):
            if entry.first.hash not in hidden:
                known = own[entry.first.hash]
                shown = tuple(self._part(part, parts[part.commit.hash], trimmed) for part in entry.parts)
                found.append(entry._replace(parts=shown, use=known.use, seconds=known.seconds))
        # a summary stands where what it stands for stood
        places = [(run.checkpoint, line.commits[run.first].seq) for run in outline.runs if not self._history]
        return sorted(
            found, key=lambda entry: next((at for what, at in places if _is_of(entry, what)), entry.first.seq)
        )

    def _part(self, part: Part, own: Part, trimmed: dict[str, str]) -> Part:
        """``part`` as it goes into the file; ``own`` is the log's."""
        if isinstance(part.value, Unknown):
            part = part._replace(text="")  # a provider's own object may hold what is opaque
        elif part.kind == "erased" and own.kind != "erased":
            part = part._replace(title=own.title)
        return part._replace(text=trimmed.get(part.commit.hash, part.text), before=part.before if self._history else "")

    def _is_seen(self, entry: Entry) -> bool:
        """Whether it is in the file already, as it is here."""
        key = hash((*(commit.hash for commit in entry.commits), *((part.text, part.marks) for part in entry.parts)))
        is_seen = key in self._seen
        self._seen.add(key)
        return is_seen

    def _why(self, line: Line, read: Sequence[Commit], entries: Sequence[Entry]) -> Why | None:
        """The last request as it was decided on the log itself, beside what of the log is in the file."""
        if not line.requests:
            return None
        column = looking_back.sent(line, line.requests[-1].hash)
        shown = {part.commit.hash: part for entry in entries for part in entry.parts}
        decided = rows_of(line.entries, [column])
        rows = [
            Row(row.turn, shown[row.part.commit.hash], tuple(self._cell(cell) for cell in row.cells))
            for row in decided
            if row.part.commit.hash in shown
        ]
        thoughts = {row.part.commit.hash for row in decided if row.part.kind == "thought"}
        mendings = looking_back.mendings(read, column.hash)
        return Why(
            column._replace(failed=self._leaving.blotted(column.failed)),
            tally(decided, 0),
            rows,
            [row for row in rows if row.part.commit.hash in thoughts],
            mendings,
        )

    def _cell(self, cell: Cell) -> Cell:
        blotted = self._leaving.blotted
        grounds = (each._replace(reason=blotted(each.reason), reported=blotted(each.reported)) for each in cell.grounds)
        return cell._replace(grounds=tuple(grounds))


def _as_read(own: Commit, left: Commit) -> Commit:
    """``left`` with what is left of its payload as its value: what stayed here was not erased."""
    if left is own or isinstance(own.value, Erased):
        return left
    return msgspec.structs.replace(left, value=surviving(left.value))


def _replaced(outline: Outline) -> set[str]:
    """The commits that a summary in force stands for."""
    kept = {at for piece in outline.pieces if not outline.is_inside(piece) for at in piece.at}
    places = {at for run in outline.runs for at in range(run.first, run.last + 1)}
    return {outline.commits[at].hash for at in places - kept}


def _is_of(entry: Entry, checkpoint: Compaction) -> bool:
    return entry.first.kind == "compaction" and entry.parts[0].value == checkpoint


def _title(info: SessionInfo, entries: Sequence[Entry] = ()) -> str:
    """What its list calls it, unless that is a question which is not shown so."""
    asked = (part.text for entry in entries if entry.first.kind == "user" for part in entry.parts)
    return info.settings.get(TITLE) or title_of(next(asked, "")) or info.name
