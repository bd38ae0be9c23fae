"""What ``fsck`` checks in every database: places, hashes, digests, whole responses, steps that join up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from thinkback.log.protocol import Problem
from thinkback.model import canonical
from thinkback.model.commits import Erased, Response, commit_hash, decode_payload, surviving
from thinkback.stores.database import Rows, Stored
from thinkback.stores.rows import ERASED, hashes, unpack
from thinkback.stores.summaries import counted, disagreement, has_claims, titles


class Row(NamedTuple):
    """A commit as stored; ``payload`` is ``None`` where the stored bytes do not unpack.

    ``erased``: it is marked as a tombstone, and the digest is of what was there before.
    """

    position: int
    hash: str
    parents: tuple[str, ...]
    kind: str
    digest: str
    time: int
    response: str
    block: int
    edit: str
    payload: bytes | None
    erased: bool = False


def basis_problems(kept: Iterable[tuple[bytes, int, bytes, int]], used: Mapping[bytes, int]) -> Iterator[Problem]:
    """Shared data of requests that is not what its digest says, or not used as often as it says."""
    left = dict(used)
    for digest, codec, text, uses in kept:
        where = f"basis {digest.hex()}"
        try:
            data = canonical.raw(canonical.decode(unpack(codec, text), str))
        except ValueError as error:
            yield Problem(where, f"cannot be read: {error}")
        else:
            if canonical.digest(data) != digest.hex():
                yield Problem(where, f"has the digest {canonical.digest(data)}")
        if uses != left.pop(digest, 0):
            yield Problem(where, f"says that {uses} requests use it, there are {used.get(digest, 0)}")
    for digest in left:
        yield Problem(f"basis {digest.hex()}", "is used and not there")


def summary_problems(rows: Rows) -> Iterator[Problem]:
    """Sessions of which something else is kept than their commits give."""
    for of, kept, _ in rows.summaries():
        found = None if kept is None else counted(rows, of)
        if kept is None or found is None or kept == found:
            continue
        wrong = disagreement(kept, found, titles(rows, of), claims=has_claims(rows, of))
        if wrong:
            yield Problem(f"summary of session {of.id}", wrong)


def row_of(stored: Stored, kind: str, response: str) -> Row:
    """A commit as stored, with its text as the log's: ``kind`` and ``response``."""
    position, hash, parents, _, digest, time, _, block, edit, codec, data = stored
    try:
        payload = unpack(codec, data)
    except ValueError:
        payload = None
    erased = bool(codec & ERASED)
    above = hashes(parents)
    return Row(position, hash.hex(), above, kind, digest.hex(), time, response, block, edit.hex(), payload, erased)


def audit_steps(
    steps: Iterable[tuple[str, int, int, int]], ends: Mapping[int, int], whose: str = ""
) -> Iterator[Problem]:
    """Every commit came with exactly one step: the runs of a segment's steps join up from 0 to its end.

    ``steps`` are ids, segments, positions and numbers of commits, in order; ``ends`` how many commits a segment has;
    ``whose`` is said of segments behind their numbers.
    """
    reached: dict[int, int] = {}
    for id, segment, position, commits in steps:
        if position != reached.get(segment, 0):
            what = f"begins at {position}, the one before it ends at {reached.get(segment, 0)}"
            yield Problem(f"step {id}", what)
        reached[segment] = position + commits
    for segment in ends.keys() | reached.keys():
        if ends.get(segment, 0) != reached.get(segment, 0):
            what = f"it ends at position {ends.get(segment, 0)}, its steps at {reached.get(segment, 0)}"
            yield Problem(f"segment {segment}{whose}", what)


class _Open(NamedTuple):
    """A response whose blocks are being counted; ``None``: it was erased, with how many it had."""

    where: str
    blocks: int | None
    seen: list[int]


def audit(name: str, parent: str, rows: Iterable[Row]) -> Iterator[Problem]:
    """The problems of the segment ``name``, whose first commit follows ``parent`` (empty: follows nothing)."""
    opened: dict[str, _Open] = {}
    expected = 0
    for row in rows:
        where = f"{name}, position {row.position}, commit {row.hash}"
        if row.position != expected:
            yield Problem(where, f"position {expected} is missing")
        elif row.parents[:1] != ((parent,) if parent else ()):
            yield Problem(where, f"its parents are {list(row.parents)}, before it comes {parent or 'nothing'}")
        yield from (Problem(where, what) for what in _hash_problems(row))
        yield from (Problem(where, what) for what in _payload_problems(row))
        yield from (Problem(where, what) for what in _count_block(row, where, opened))
        parent, expected = row.hash, row.position + 1
    for response, (where, blocks, seen) in opened.items():
        if blocks is not None and sorted(seen) != list(range(blocks)):
            yield Problem(where, f"response {response} has {blocks} blocks, stored are the indexes {sorted(seen)}")


def _hash_problems(row: Row) -> Iterator[str]:
    try:
        hash = commit_hash(row.parents, row.kind, row.digest, row.edit, row.response, row.block, row.time)
    except UnicodeEncodeError:
        yield "its fields are not valid Unicode"
    else:
        if hash != row.hash:
            yield f"its fields hash to {hash}"


def _payload_problems(row: Row) -> Iterator[str]:
    if row.payload is None:
        yield "its payload does not unpack"
        return
    digest = canonical.digest(row.payload)
    if digest != row.digest and not row.erased:
        yield f"its payload has the digest {digest}, stored is {row.digest}"
        return
    try:
        value = decode_payload(row.payload)
        surviving(value)
    except ValueError as error:
        yield f"its payload is not understood: {error}"
    else:
        if row.erased and not isinstance(value, Erased):
            yield "it is marked as erased and has a payload"


def _count_block(row: Row, where: str, opened: dict[str, _Open]) -> Iterator[str]:
    if row.kind == "response" and row.block < 0:
        try:
            value = decode_payload(row.payload or b"")
        except ValueError:
            return  # reported as a payload that is not understood
        if isinstance(value, Response | Erased):
            blocks = value.blocks if isinstance(value, Response) else None
            opened[row.response] = _Open(where, blocks, [])
    elif row.block >= 0:
        if row.response in opened:
            opened[row.response].seen.append(row.block)
        else:
            yield f"it is block {row.block} of response {row.response}, which does not come before it"
