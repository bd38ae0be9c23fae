"""Sessions as JSON Lines and back (docs/format.md, "JSON Lines").

Owns the lines. Promises: every field that a hash covers, and the payload, come back byte for byte; a changed or missing
byte is an ``ExportFileError`` with the number of its line; one line is held at a time.
Must not: know stores, or decide what leaves (``leaving`` does).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple, TypeAlias, cast

import msgspec

from thinkback.errors import ExportFileError, FormatVersionError
from thinkback.log.protocol import MAIN
from thinkback.model import canonical
from thinkback.model.commits import Commit, Erased, Kind, commit_hash, decode_payload, fits

VERSION = 1
_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_HASH = re.compile("[0-9a-f]{64}")
_NOTHING = msgspec.Raw()


class Tip(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A branch and the commit it points at; ``seq`` -1 for none."""

    name: str
    head: str
    seq: _Number


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a file says of a session before its commits. It is session ``number`` ``of`` so many.

    ``family`` and ``parent`` are ids of sessions that stand before it in the file; a root is its own family.
    ``left_out`` names what was kept back of the payloads.
    """

    id: str
    name: str
    created: _Number
    family: str
    parent: str = ""
    purpose: str = ""
    branch: str = MAIN
    branches: tuple[Tip, ...]
    settings: dict[str, str] = {}
    left_out: tuple[str, ...] = ()
    number: int = 1
    of: int = 1


class Line(NamedTuple):
    """A commit, and the branch whose run of commits begins with it; empty where a run goes on."""

    commit: Commit
    branch: str


class _Opening(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    thinkback: int
    digest: str = ""
    session: msgspec.Raw = _NOTHING
    source: str = ""


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A line. ``tombstone`` is the digest of a payload that is not the one ``digest`` is of."""

    branch: str = ""
    seq: _Number
    hash: str
    parents: tuple[str, ...] = ()
    kind: str
    time: _Number
    response: str = ""
    index: _Number = -1
    edit: str = ""
    digest: str
    tombstone: str = ""
    payload: msgspec.Raw = _NOTHING
    source: str = ""


def header_line(header: Header) -> bytes:
    """The line that opens a session."""
    said = canonical.encode(header)
    raw, source = _embedded(said)
    return (
        canonical.encode(_Opening(thinkback=VERSION, digest=canonical.digest(said), session=raw, source=source)) + b"\n"
    )


def commit_line(commit: Commit, branch: str = "") -> bytes:
    """The line of a commit; ``branch`` where it begins that branch's run."""
    raw, source = _embedded(commit.payload)
    said = canonical.digest(commit.payload)
    row = _Row(
        branch=branch,
        seq=commit.seq,
        hash=commit.hash,
        parents=commit.parents,
        kind=commit.kind,
        time=commit.time,
        response=commit.response,
        index=commit.index,
        edit=commit.edit,
        digest=commit.digest,
        tombstone="" if said == commit.digest else said,
        payload=raw,
        source=source,
    )
    return canonical.encode(row) + b"\n"


def unwritten(history: Sequence[Commit], written: set[str]) -> Sequence[Commit]:
    """What of a history has no line yet: all that comes after what has one. ``written`` gets their hashes."""
    at = bisect_left(history, True, key=lambda commit: commit.hash not in written)
    written.update(commit.hash for commit in history[at:])
    return history[at:]


def read(lines: Iterable[bytes]) -> Iterator[tuple[int, Header | Line]]:
    """The headers and commits of ``lines`` with their numbers, from 1 on.

    Raises ``ExportFileError`` for a line that is not what was written, is missing, or does not belong where it stands,
    and ``FormatVersionError`` for a file of a newer format.
    """
    reader = _Reader()
    number = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, reader.take(line)
            except ValueError as error:
                raise broken(number, str(error)) from None
    try:
        reader.end()
    except ValueError as error:
        raise broken(number + 1, str(error)) from None


def is_export(head: bytes) -> bool:
    """Tell a header line by its beginning, and so a file by its first line."""
    return head.lstrip().startswith(b'{"thinkback":')


def broken(line: int, what: str) -> ExportFileError:
    """The error for a line that is not what was written."""
    return ExportFileError(
        f"line {line}: {what}",
        details={"line": line},
        next_actions=("export again and import that file: what is there already is not stored twice",),
    )


class _Reader:
    """What must come next. Its ``ValueError``s say what is wrong with the line."""

    def __init__(self) -> None:
        self._header: Header | None = None
        self._heads: dict[str, str] = {}
        self._begun: set[str] = set()
        self._branch = ""
        self._last: Commit | None = None

    def take(self, line: bytes) -> Header | Line:
        if is_export(line):
            return self._open(_header(line))
        if self._header is None:
            raise ValueError("this is not a line of a thinkback export")
        read = _line(line)
        if read.branch:
            self._begin(read.branch)
        else:
            self._follow(read.commit)
        self._last = read.commit
        return read

    def end(self) -> None:
        """The end of the file."""
        self._end_run()
        if self._header is not None and self._header.number != self._header.of:
            raise ValueError(f"the file ends after session {self._header.number} of {self._header.of}")

    def _open(self, header: Header) -> Header:
        self._end_run()
        before = self._header
        expected = 1 if before is None or before.number == before.of else before.number + 1
        if header.number != expected:
            raise ValueError(f"this is session {header.number} of the file, session {expected} is missing")
        self._header, self._last, self._branch = header, None, ""
        self._heads = {tip.name: tip.head for tip in header.branches}
        self._begun = set()
        return header

    def _begin(self, branch: str) -> None:
        self._end_run()
        if branch not in self._heads or branch in self._begun:
            raise ValueError(f"no commits of a branch {branch!r} belong here")
        self._begun.add(branch)
        self._branch = branch

    def _follow(self, commit: Commit) -> None:
        last = self._last
        if last is None or last.hash == self._heads[self._branch]:
            raise ValueError("a commit of a branch that is not named")
        if commit.parents[:1] != (last.hash,) or commit.seq != last.seq + 1:
            raise ValueError("it does not follow the commit before it: lines are missing or out of order")

    def _end_run(self) -> None:
        if self._last is not None and self._last.hash != self._heads[self._branch]:
            raise ValueError(f"commits of branch {self._branch!r} are missing before this line")


def _header(line: bytes) -> Header:
    opening = canonical.decode(line, _Opening)
    if opening.thinkback != VERSION:
        raise FormatVersionError(
            f"the file has format {opening.thinkback}, this program reads format {VERSION}",
            details={"format": opening.thinkback},
            next_actions=("import it with the program that wrote it, or a newer one",),
        )
    said = _source_bytes(opening.session, opening.source)
    if canonical.digest(said) != opening.digest:
        raise ValueError("what it says of the session was changed since it was written")
    return canonical.decode(said, Header)


def _line(line: bytes) -> Line:
    row = canonical.decode(line, _Row)
    for hash in (*row.parents, row.digest, *([row.edit] if row.edit else [])):
        if not _HASH.fullmatch(hash):
            raise ValueError(f"{hash[:80]!r} is not a hash")
    payload = _source_bytes(row.payload, row.source)
    if canonical.digest(payload) != (row.tombstone or row.digest):
        raise ValueError("the payload was changed since it was written")
    value = decode_payload(payload)
    if row.tombstone and not isinstance(value, Erased):
        raise ValueError("another payload stands in place of the one that was hashed")
    if not fits(row.kind, value):
        raise ValueError(f"a commit of kind {row.kind[:80]!r} does not say such things")
    if row.hash != commit_hash(row.parents, row.kind, row.digest, row.edit, row.response, row.index, row.time):
        raise ValueError("the fields of the commit were changed since it was written")
    if (row.seq == 0) != (not row.parents) or row.seq < 0:
        raise ValueError(f"a commit with {len(row.parents)} parents cannot have seq {row.seq}")
    commit = Commit(
        row.hash,
        row.parents,
        row.seq,
        cast(Kind, row.kind),
        value,
        payload,
        row.digest,
        row.time,
        row.response,
        row.index,
        row.edit,
    )
    return Line(commit, row.branch)


def _embedded(said: bytes) -> tuple[msgspec.Raw, str]:
    """JSON as it is, or as a string of its source where it could not be taken out of a line byte for byte."""
    if said[:1] == b"{" and said[-1:] == b"}" and b"\n" not in said and b"\\ud" not in said.lower() and _is_text(said):
        return msgspec.Raw(said), ""
    return _NOTHING, said.decode("utf-8", "surrogatepass")


def _is_text(said: bytes) -> bool:
    try:
        said.decode()
    except UnicodeDecodeError:
        return False
    return True


def _source_bytes(raw: msgspec.Raw, source: str) -> bytes:
    return source.encode("utf-8", "surrogatepass") if source else bytes(raw)
