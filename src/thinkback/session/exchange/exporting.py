"""Export: sessions as JSON Lines, Markdown, HTML or Parquet.

Promises: what is meant for sharing has no reasoning, no carrier and no account in it unless it is asked for; a file is
whole or not there; one branch is held at a time. JSON Lines and Parquet hold every branch, Markdown and HTML one of
each session, and name the others.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import msgspec

from thinkback.errors import ExportFileError, NotFoundError, ThinkbackError
from thinkback.log import exchange
from thinkback.log.exchange import Header, Tip
from thinkback.log.lines import common, holds
from thinkback.log.names import questions
from thinkback.log.progress import Meter, Progress
from thinkback.log.protocol import MAIN, SessionInfo, Store
from thinkback.log.sharing import Leaving, Sharing
from thinkback.log.transcript import TranscriptEntry, transcript
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Commit, Head, surviving
from thinkback.settings.registry import IMPORTED

Target: TypeAlias = str | os.PathLike[str] | IO[bytes]
FORMATS = ("jsonl", "markdown", "html", "parquet")
ENDINGS = {".jsonl": "jsonl", ".md": "markdown", ".html": "html", ".parquet": "parquet"}
SHARED = Sharing()


class Exported(msgspec.Struct):
    """How much was written; of ``left_out`` commits a part was kept back, of ``reasoning`` of them what was thought.
    ``turns`` are the questions among them. ``branches`` were left out, which hold more than what was written.
    """

    sessions: int = 0
    commits: int = 0
    left_out: int = 0
    reasoning: int = 0
    turns: int = 0
    branches: int = 0

    def count(self, commit: Commit, left: Commit) -> None:
        """A commit went, as ``left``."""
        self.commits += 1
        self.turns += questions((commit,))
        self.left_out += left is not commit
        self.reasoning += _thought(commit) and not _thought(left)


def _thought(commit: Commit) -> bool:
    """Whether it has reasoning that can be read."""
    value = surviving(commit.value)
    return isinstance(value, ThinkingBlock) and bool(value.thought)


class Chosen(NamedTuple):
    """A session that goes into a file; ``parent`` and ``family`` are ids of others in the file.

    ``fork``: of a session that another was made from, only what the other one stands on goes along, up to there.
    """

    info: SessionInfo
    parent: str
    family: str
    fork: Head | None = None


def choose(log: Store, session: str = "", family: bool = False) -> list[Chosen]:
    """The sessions to be written, parents before children: all of the log, or one by its name or id, with what it was
    forked from or with its whole ``family``. Raises ``NotFoundError``.
    """
    infos = {info.id: info for info in log.list_sessions()}
    if not session:
        return _in_order(infos, infos)
    found = log.find_session(session)
    if found is None:
        raise NotFoundError(f"there is no session {session!r}", next_actions=("`thinkback sessions` lists them",))
    if family:
        return _in_order(infos, {id: info for id, info in infos.items() if info.family == found.family})
    return _with_ancestors(log, infos, found)


def _in_order(infos: dict[str, SessionInfo], wanted: dict[str, SessionInfo]) -> list[Chosen]:
    """Roots by age, each followed by those that descend from it."""
    below: dict[str, list[SessionInfo]] = {}
    for info in sorted(wanted.values(), key=lambda info: (info.created, info.id)):
        below.setdefault(info.parent if info.parent in infos else "", []).append(info)
    chosen: list[Chosen] = []
    waiting = [(info, "", info.id) for info in reversed(below.get("", ()))]
    while waiting:
        info, parent, root = waiting.pop()
        chosen.append(Chosen(info, parent, root))
        waiting += [(child, info.id, root) for child in reversed(below.get(info.id, ()))]
    return chosen


def _with_ancestors(log: Store, infos: dict[str, SessionInfo], info: SessionInfo) -> list[Chosen]:
    """A session, and of those it was forked from what it stands on."""
    above: list[tuple[SessionInfo, Head | None]] = [(info, None)]
    histories = [list(read_branch(log, info.id, tip)) for tip in _tips(log, info)]
    while (parent := infos.get(above[-1][0].parent)) is not None:
        shared: Sequence[Commit] = ()
        for tip in _tips(log, parent):
            theirs = read_branch(log, parent.id, tip)
            shared = max(shared, *(ours[: common(ours, theirs)] for ours in histories), key=len)
        above.append((parent, Head(shared[-1].hash, shared[-1].seq) if shared else Head()))
        histories = [list(shared)]
    root = above[-1][0].id
    parents = [below.id for below, _ in reversed(above)]
    return [
        Chosen(each, parent, root, fork) for (each, fork), parent in zip(reversed(above), ["", *parents], strict=False)
    ]


def json_lines(
    log: Store, chosen: Sequence[Chosen], sharing: Sharing, time: int, done: Exported, meter: Meter
) -> Iterator[bytes]:
    """The lines of the sessions; ``done`` counts along. ``time`` (microseconds UTC) is when what is left out went."""
    leaving = Leaving(sharing, time)
    written: set[str] = set()
    for number, each in enumerate(chosen, 1):
        if not each.parent:
            written = set()
        header = _header(log, each, sharing, number, len(chosen))
        yield exchange.header_line(header)
        for tip in header.branches:
            branch = tip.name
            for commit in meter.over(exchange.unwritten(read_branch(log, each.info.id, tip), written)):
                left = leaving.commit(commit)
                yield exchange.commit_line(left, branch)
                branch = ""
                done.count(commit, left)
        done.sessions += 1


def _header(log: Store, chosen: Chosen, sharing: Sharing, number: int, of: int) -> Header:
    info, fork = chosen.info, chosen.fork
    return Header(
        id=info.id,
        name=info.name,
        created=info.created,
        family=chosen.family,
        parent=chosen.parent,
        purpose=info.purpose if chosen.parent else "",
        branch=info.branch if fork is None else MAIN,
        branches=tuple(_tips(log, info)) if fork is None else (Tip(MAIN, fork.hash, fork.seq),),
        settings={key: value for key, value in info.settings.items() if key != IMPORTED} if fork is None else {},
        left_out=sharing.left_out,
        number=number,
        of=of,
    )


def _tips(log: Store, info: SessionInfo) -> list[Tip]:
    """The branches of a session, the longest first: one that ends inside another has no commits of its own then."""
    branches = sorted(log.refs.list(info.id), key=lambda branch: (-branch.head.seq, branch.name))
    return [Tip(branch.name, branch.head.hash, branch.head.seq) for branch in branches]


def read_branch(log: Store, session: str, tip: Tip) -> Sequence[Commit]:
    """The history that ends at ``tip``, wherever the branch is by now."""
    return log.read_to(session, tip.head) if tip.head else ()


def export(
    log: Store,
    to: Target,
    time: int,
    *,
    session: str = "",
    branch: str = "",
    family: bool = False,
    format: str = "",
    sharing: Sharing = SHARED,
    history: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write sessions in a format, that of the file's ending if none is named. ``history``: with what edits and
    checkpoints replaced, which is in what is ``complete``, too. Markdown and HTML have the ``branch`` of the one
    ``session``, else the current one of each. ``time`` is now, microseconds UTC.
    """
    history = history or sharing.complete
    wanted = format or format_of(to)
    if wanted not in FORMATS:
        raise NotFoundError(f"there is no format {wanted!r}", next_actions=(f"formats are {', '.join(FORMATS)}",))
    chosen = choose(log, session, family)
    done = Exported()
    meter = Meter(progress, sum(each.info.commits for each in chosen), "commits")
    if wanted == "jsonl":
        write(to, json_lines(log, chosen, sharing, time, done, meter))
        meter.end()
        return done
    whole = [each for each in chosen if each.fork is None]
    leaving = Leaving(sharing, time)
    if wanted == "parquet":
        from thinkback.session.exchange import parquet

        with _named(_path(to)):
            parquet.write(_path(to), _rows(log, whole, leaving, history, sharing.complete, done, meter))
    else:
        pages = {"markdown": _markdown, "html": _page}[wanted]
        title = whole[0].info.name if len(whole) == 1 else "thinkback"
        text = pages(title, _transcripts(log, whole, branch, leaving, history, done, meter))
        write(to, (piece.encode("utf-8", "replace") for piece in text))
    meter.end()
    return done


def format_of(to: Target) -> str:
    """The format that a file's ending names; a stream gets JSON Lines."""
    ending = Path(to).suffix.lower() if isinstance(to, str | os.PathLike) else ".jsonl"
    if ending not in ENDINGS:
        raise NotFoundError(
            f"no format is known by the ending {ending!r}",
            next_actions=(f"use one of {', '.join(ENDINGS)}", f"or name a format: {', '.join(FORMATS)}"),
        )
    return ENDINGS[ending]


def _path(to: Target) -> str:
    if not isinstance(to, str | os.PathLike):
        raise ThinkbackError("Parquet is written to a file, not to a stream", next_actions=("name a file",))
    return os.fspath(to)


class _Told(NamedTuple):
    """A session as people read it: one branch of it, and what of the session is not in the file."""

    info: SessionInfo
    branch: str
    left_out: str
    entries: Iterator[TranscriptEntry]


def _transcripts(
    log: Store, chosen: Sequence[Chosen], branch: str, leaving: Leaving, history: bool, done: Exported, meter: Meter
) -> Iterator[_Told]:
    for info in (each.info for each in chosen):
        line = log.read(info.id, branch=branch or info.branch)
        before, others = done.reasoning, other_branches(log, info, line, done)
        shared = as_shared(line, leaving, done, meter)
        done.sessions += 1
        left_out = " ".join(filter(None, (without_reasoning(done.reasoning - before), others)))
        yield _Told(info, branch or info.branch, left_out, transcript(shared, history))


def other_branches(log: Store, info: SessionInfo, line: Sequence[Commit], done: Exported) -> str:
    """Tell which branches a file lacks that has the ``line`` of one, and count them; empty for none."""
    names = [branch.name for branch in log.refs.list(info.id) if not holds(line, branch.head)]
    if not names:
        return ""
    done.branches += len(names)
    what = f"The branch {names[0]} is" if len(names) == 1 else f"The branches {', '.join(names)} are"
    return f"{what} not in this file: thinkback export --branch NAME writes another branch, a .jsonl file has all."


def without_reasoning(blocks: int) -> str:
    """Tell how much reasoning a file is without, and which option includes it; empty for none."""
    if not blocks:
        return ""
    what = "1 block of reasoning is" if blocks == 1 else f"{blocks} blocks of reasoning are"
    return (
        f"{what} left out of this file: thinkback export --with-reasoning includes {'it' if blocks == 1 else 'them'}."
    )


def _markdown(title: str, told: Iterable[_Told]) -> Iterator[str]:
    from thinkback.session.transcripts import markdown

    for each in told:
        yield from markdown.opening(each.info, each.branch, each.left_out)
        for said in each.entries:
            yield from markdown.entry(said)


def _page(title: str, told: Iterable[_Told]) -> Iterator[str]:
    from thinkback.session.transcripts import page

    start, end = page.ends(title)
    yield start
    for each in told:
        yield from page.opening(each.info, each.branch, each.left_out)
        for said in each.entries:
            yield from page.entry(said)
    yield end


def _rows(
    log: Store, chosen: Sequence[Chosen], leaving: Leaving, history: bool, whole: bool, done: Exported, meter: Meter
) -> Iterator[dict[str, Any]]:
    """Each commit once, on the first branch that has it."""
    from thinkback.session.exchange.parquet import rows

    written: set[str] = set()
    for each in chosen:
        if not each.parent:
            written = set()
        for tip in _tips(log, each.info):
            line = read_branch(log, each.info.id, tip)
            new = len(exchange.unwritten(line, written))
            shared = len(line) - new
            told = [*map(leaving.commit, line[:shared]), *as_shared(line[shared:], leaving, done, meter)]
            yield from rows(each.info, tip.name, told, told[shared:], history, whole)
        done.sessions += 1


def as_shared(line: Sequence[Commit], leaving: Leaving, done: Exported, meter: Meter) -> list[Commit]:
    """The commits of ``line`` as they leave, counted."""
    left = [leaving.commit(commit) for commit in meter.over(line)]
    for one, other in zip(line, left, strict=True):
        done.count(one, other)
    return left


def write(to: Target, pieces: Iterable[bytes]) -> None:
    """Write ``pieces`` to a stream, or to a file that is whole or not there, and is private as the log is."""
    if not isinstance(to, str | os.PathLike):
        for piece in pieces:
            to.write(piece)
        return
    place = Path(to)
    with _named(place):
        handle, half = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        try:
            with open(handle, "wb") as file:
                file.writelines(pieces)
            os.replace(half, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(half)
            raise


@contextlib.contextmanager
def _named(place: str | os.PathLike[str]) -> Iterator[None]:
    """Raise what the system says as an ``ExportFileError`` of ``place``, whatever the file was called meanwhile."""
    try:
        yield
    except OSError as error:
        raise ExportFileError(
            f"{place} cannot be written: {error.strerror}",
            details={"file": str(place)},
            next_actions=("check that its directory is there and has room, and that this user may write there",),
        ) from error
