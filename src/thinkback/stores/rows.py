"""Commits to rows of the table ``commits`` and back, whatever the database.

Hashes are stored as bytes. A payload is compressed with a dictionary that ships with the package, and stays so only
where that makes it smaller. A tombstone is marked: the digest beside it is not of its bytes.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Commit, Erased, Payload, Request, decode_payload
from thinkback.stores.database import Stored
from thinkback.stores.errors import damaged

PLAIN, ZLIB, ERASED, DICTIONARY = 0, 1, 2, 4  # ERASED is added to any of the others; ZLIB is not written any more
BASED = DICTIONARY | 8
"""Of a request: the digest of its basis, and the payload without this last member, as DICTIONARY."""
CODEC, STORED = 9, 10  # in a row of COLUMNS
_LEVEL = 6
_RAW = -zlib.MAX_WBITS  # a zlib stream would sum the dictionary up for each payload: three times the cost of reading it
_SUM = 4
_TINY = 64
# What is copied for each payload is smaller by this, and hardly a payload larger. A smaller hash table would be copied
# faster still, but takes longer for anything above a hundred bytes, half as long again from a thousand on.
_SHORT, _SHORT_WINDOW = 4096, -14  # holds the dictionary and so long a payload

COLUMNS = "position, hash, parents, kind, digest, time, response, block, edit, codec, payload"


_MEMBER = b',"basis":'


@cache
def _decoder() -> msgspec.json.Decoder[Payload]:
    """Made for the first payload that is read: it takes a millisecond."""
    return msgspec.json.Decoder(Payload)


def pack(payload: bytes, erased: bool = False) -> tuple[int, bytes]:
    """(codec, stored bytes) of a payload."""
    mark = ERASED if erased else 0
    small = _small(payload)
    return (DICTIONARY | mark, small) if len(small) < len(payload) else (PLAIN | mark, payload)


def _small(payload: bytes) -> bytes:
    return _again(payload) if len(payload) <= _TINY else _packed(payload)


@lru_cache(maxsize=256)
def _again(payload: bytes) -> bytes:
    """Of what is mostly said again and again: how a turn ended."""
    return _packed(payload)


def _packed(payload: bytes) -> bytes:
    packer = _packer(_SHORT_WINDOW if len(payload) <= _SHORT else _RAW).copy()
    return packer.compress(payload) + packer.flush() + zlib.crc32(payload).to_bytes(_SUM)


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
    return _Shared(bytes.fromhex(digest), f'"basis_digest":"{digest}"'.encode() + member, len(member), pack(text))


def _stored(commit: Commit) -> tuple[int, bytes]:
    shared = _shared(commit)
    if shared is None:
        return pack(commit.payload, type(commit.value) is Erased)
    return BASED, shared.digest + _small(commit.payload[: -shared.left_out] + b"}")


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


@cache
def dictionary() -> bytes:
    """Dictionary 1, which payloads are compressed with. It never changes: what is stored needs its bytes."""
    return Path(__file__).with_name("dictionary_1.bin").read_bytes()


@cache
def _packer(window: int) -> zlib._Compress:
    """Has read the dictionary: a copy of it is a tenth of the cost of another one."""
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, window, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY, dictionary())


def _with_dictionary(stored: bytes) -> bytes:
    unpacker = zlib.decompressobj(_RAW, dictionary())
    payload = unpacker.decompress(stored)
    if unpacker.unused_data != zlib.crc32(payload).to_bytes(_SUM):
        raise zlib.error("its checksum is another one")
    return payload


_UNPACKERS: dict[int, Callable[[bytes], bytes]] = {
    ZLIB: lambda stored: zlib.decompress(stored),
    ZLIB | ERASED: lambda stored: zlib.decompress(stored),
    DICTIONARY: _with_dictionary,
    DICTIONARY | ERASED: _with_dictionary,
    BASED: lambda stored: _with_dictionary(stored[32:]),
}


def to_rows(commits: Sequence[Commit]) -> list[tuple[Any, ...]]:
    """The rows of ``commits`` without their segment and position. Raises ``ValueError`` for a hash that is not hex."""
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
            *_stored(commit),
        )
        for commit in commits
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
