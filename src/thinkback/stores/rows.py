"""Commits to rows of the table ``commits`` and back, whatever the database.

Hashes are stored as bytes. A payload over 512 bytes is compressed, and stays so only where that makes it smaller. A
tombstone is marked: the digest beside it is not of its bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from thinkback.model.commits import Commit, Erased, Payload, decode_payload
from thinkback.stores.errors import damaged

PLAIN, ZLIB, ERASED = 0, 1, 2  # ERASED is added to either of the others
COMPRESS_OVER = 512
MEMORY_LEVEL = 5  # the default of 8 clears 256 KB for each payload: twice the time for the same size below 100 KB

COLUMNS = "position, hash, parents, kind, digest, time, response, block, edit, codec, payload"


@cache
def _decoder() -> msgspec.json.Decoder[Payload]:
    """Made for the first payload that is read: it takes a millisecond."""
    return msgspec.json.Decoder(Payload)


def pack(payload: bytes, erased: bool = False) -> tuple[int, bytes]:
    """(codec, stored bytes) of a payload."""
    mark = ERASED if erased else 0
    if len(payload) > COMPRESS_OVER:
        packer = zlib.compressobj(1, zlib.DEFLATED, 15, MEMORY_LEVEL)
        small = packer.compress(payload) + packer.flush()
        if len(small) < len(payload):
            return ZLIB | mark, small
    return PLAIN | mark, payload


def unpack(codec: int, stored: bytes) -> bytes:
    """The payload of stored bytes. Raises ``ValueError`` when they are none."""
    if codec in (PLAIN, ERASED):
        return stored
    if codec not in (ZLIB, ZLIB | ERASED):
        raise ValueError(f"codec {codec} is not known")
    try:
        return zlib.decompress(stored)
    except zlib.error as error:
        raise ValueError(f"the payload does not unpack: {error}") from error


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
            *pack(commit.payload, type(commit.value) is Erased),
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
