"""Commits to rows of the table ``commits`` and back, whatever the database.

Hashes are stored as bytes. A payload is compressed with a dictionary that ships with the package, and stays so only
where that makes it smaller. A tombstone is marked: the digest beside it is not of its bytes.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Commit, Erased, Payload, Request, decode_payload
from thinkback.stores.database import Stored
from thinkback.stores.errors import damaged
from thinkback.stores.packers import Packers
from thinkback.stores.packing import RAW, SUM, dictionary, packed

PLAIN, ZLIB, ERASED, DICTIONARY = 0, 1, 2, 4  # ERASED is added to any of the others; ZLIB is not written any more
BASED = DICTIONARY | 8
"""Of a request: the digest of its basis, and the payload without this last member, as DICTIONARY."""
CODEC, STORED = 9, 10  # in a row of COLUMNS

COLUMNS = "position, hash, parents, kind, digest, time, response, block, edit, codec, payload"


_MEMBER = b',"basis":'


@cache
def _decoder() -> msgspec.json.Decoder[Payload]:
    """Made for the first payload that is read: it takes a millisecond."""
    return msgspec.json.Decoder(Payload)


def pack(payload: bytes, erased: bool = False) -> tuple[int, bytes]:
    """(codec, stored bytes) of a payload."""
    return _chosen(payload, packed(payload), erased)


def _chosen(payload: bytes, small: bytes, erased: bool) -> tuple[int, bytes]:
    mark = ERASED if erased else 0
    return (DICTIONARY | mark, small) if len(small) < len(payload) else (PLAIN | mark, payload)


class Basis(NamedTuple):
    """What requests share: its digest, and how it stands in their payloads, packed. ``uses`` counts them."""

    digest: bytes
    codec: int
    text: bytes
    uses: int


def bases_of(commits: Iterable[Commit]) -> list[Basis]:
    """The bases of the requests that are stored without theirs, in the order of their digests."""
    shared = [basis for commit in commits if (basis := _shared(commit)) is not None]
    if not shared:  # most appends, and a counter of nothing costs as much as a row
        return []
    return sorted(Basis(one.digest, *one.packed, uses) for one, uses in Counter(shared).items())


class _Shared(NamedTuple):
    """A basis: its digest, how payloads with it end, how much of that they are stored without, and itself, packed."""

    digest: bytes
    end: bytes
    left_out: int
    packed: tuple[int, bytes]


def _shared(commit: Commit) -> _Shared | None:
    """The basis that ends the payload; ``None`` for any other payload."""
    value = commit.value
    if not isinstance(value, Request) or not value.basis:
        return None
    shared = _basis(value.basis_digest, value.basis)
    return shared if shared is not None and commit.payload.endswith(shared.end) else None


@lru_cache(maxsize=64)
def _basis(digest: str, source: str) -> _Shared | None:
    """``None`` where the digest is another one. All requests to a place have the same, and packing it takes longest."""
    if canonical.digest(canonical.raw(source)) != digest:
        return None
    text = canonical.encode(source)
    member = _MEMBER + text + b"}"
    return _Shared(bytes.fromhex(digest), member, len(member), pack(text))


def _stored(commits: Sequence[Commit], packers: Packers | None) -> Iterator[tuple[int, bytes]]:
    """(codec, stored bytes) of each payload."""
    shared = list(map(_shared, commits))
    payloads = [
        commit.payload if basis is None else commit.payload[: -basis.left_out] + b"}"
        for commit, basis in zip(commits, shared, strict=True)
    ]
    smalls = map(packed, payloads) if packers is None else packers.pack(payloads)
    for commit, basis, small in zip(commits, shared, smalls, strict=True):
        if basis is None:
            yield _chosen(commit.payload, small, type(commit.value) is Erased)
        else:
            yield BASED, basis.digest + small


class Bases:
    """What the requests share that are read in one go: each basis is looked up and unpacked once.

    ``find`` gives digest, codec and text of those of the digests that are there.
    """

    def __init__(self, find: Callable[[Sequence[bytes]], Iterable[tuple[bytes, int, bytes]]]) -> None:
        self._find = find
        self._texts: dict[bytes, bytes | None] = {}

    def whole(self, rows: Sequence[Stored]) -> list[Stored]:
        """``rows`` (``COLUMNS``) with whole payloads, after at most one look-up.

        A request whose basis is not there is left without it: its digest tells.
        """
        wanted = [bytes(row[STORED][:32]) for row in rows if row[CODEC] == BASED]
        missing = [digest for digest in dict.fromkeys(wanted) if digest not in self._texts]
        if missing:
            self._texts.update(dict.fromkeys(missing))
            self._texts.update((digest, unpack(codec, text)) for digest, codec, text in self._find(missing))
        return [self._with_basis(row) if row[CODEC] == BASED else row for row in rows]

    def _with_basis(self, row: Stored) -> Stored:
        text = self._texts[bytes(row[STORED][:32])]
        if text is None:
            return row
        return (*row[:CODEC], PLAIN, unpack(BASED, row[STORED])[:-1] + _MEMBER + text + b"}")


def unpack(codec: int, stored: bytes) -> bytes:
    """The payload of stored bytes, of ``BASED`` without its basis. Raises ``ValueError`` when they are none."""
    if codec in (PLAIN, ERASED):
        return stored
    unpacker = _UNPACKERS.get(codec)
    if unpacker is None:
        raise ValueError(f"codec {codec} is not known")
    try:
        return unpacker(stored)
    except zlib.error as error:
        raise ValueError(f"the payload does not unpack: {error}") from error


def _with_dictionary(stored: bytes) -> bytes:
    unpacker = zlib.decompressobj(RAW, dictionary())
    payload = unpacker.decompress(stored)
    if unpacker.unused_data != zlib.crc32(payload).to_bytes(SUM):
        raise zlib.error("its checksum is another one")
    return payload


_UNPACKERS: dict[int, Callable[[bytes], bytes]] = {
    ZLIB: lambda stored: zlib.decompress(stored),
    ZLIB | ERASED: lambda stored: zlib.decompress(stored),
    DICTIONARY: _with_dictionary,
    DICTIONARY | ERASED: _with_dictionary,
    BASED: lambda stored: _with_dictionary(stored[32:]),
}


def to_rows(commits: Sequence[Commit], packers: Packers | None = None) -> list[tuple[Any, ...]]:
    """The rows of ``commits`` without their segment and position; ``packers`` help where there are many.

    Raises ``ValueError`` for a hash that is not hex.
    """
    raw = bytes.fromhex
    return [
        (
            raw(commit.hash),
            raw("".join(commit.parents)),
            commit.kind,
            raw(commit.digest),
            commit.time,
            commit.response,
            commit.index,
            raw(commit.edit),
            *stored,
        )
        for commit, stored in zip(commits, _stored(commits, packers), strict=True)
    ]


def from_rows(rows: Iterable[tuple[Any, ...]], base: int) -> list[Commit]:
    """The commits of ``rows`` (``COLUMNS``, in order) of a segment whose position 0 has ``seq`` ``base``."""
    commits: list[Commit] = []
    last, last_raw = "", b""
    for position, hash, parents, kind, digest, time, response, block, edit, codec, stored in rows:
        # Nearly every commit follows the one before it: then its parent needs no second string.
        above = (last,) if parents == last_raw and last else hashes(parents)
        last, last_raw = hash.hex(), hash
        try:
            payload = stored if codec == PLAIN else unpack(codec, stored)
            value = _value(payload)
        except ValueError as error:
            raise damaged(f"the payload of commit {last} cannot be read: {error}", commit=last) from error
        commits.append(
            Commit(last, above, base + position, kind, value, payload, digest.hex(), time, response, block, edit.hex())
        )
    return commits


def hashes(joined: bytes) -> tuple[str, ...]:
    """The hex hashes of 32-byte hashes that stand side by side."""
    text = joined.hex()
    return tuple(text[at : at + 64] for at in range(0, len(text), 64))


def _value(payload: bytes) -> Payload:
    """``msgspec.DecodeError`` is a ``ValueError``. Payloads with lone surrogates take the slow way."""
    try:
        return _decoder().decode(payload)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode_payload(payload)
