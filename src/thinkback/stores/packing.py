"""Payloads compressed with the dictionary.

Promises: the same bytes in any process. Imports nothing but a little of the standard library: as a program of its own,
which ``packers`` starts, it packs what it reads.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from functools import cache, lru_cache

RAW = -zlib.MAX_WBITS  # a zlib stream would sum the dictionary up for each payload: three times the cost of reading it
SUM = 4
LENGTH = 8
"""Bytes before each list of payloads that goes to or comes from a process."""
_LEVEL = 6
_TINY = 64
# What is copied for each payload is smaller by this, and hardly a payload larger. A smaller hash table would be copied
# faster still, but takes longer for anything above a hundred bytes, half as long again from a thousand on.
_SHORT, _SHORT_WINDOW = 4096, -14  # holds the dictionary and so long a payload


def packed(payload: bytes) -> bytes:
    """A payload, compressed, with a checksum."""
    return _again(payload) if len(payload) <= _TINY else _packed(payload)


@cache
def dictionary() -> bytes:
    """Dictionary 1, which payloads are compressed with. It never changes: what is stored needs its bytes."""
    with open(os.path.join(os.path.dirname(__file__), "dictionary_1.bin"), "rb") as file:
        return file.read()


@lru_cache(maxsize=256)
def _again(payload: bytes) -> bytes:
    """Of what is mostly said again and again: how a turn ended."""
    return _packed(payload)


def _packed(payload: bytes) -> bytes:
    packer = _packer(_SHORT_WINDOW if len(payload) <= _SHORT else RAW).copy()
    return packer.compress(payload) + packer.flush() + zlib.crc32(payload).to_bytes(SUM)


@cache
def _packer(window: int) -> zlib._Compress:
    """Has read the dictionary: a copy of it is a tenth of the cost of another one."""
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, window, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY, dictionary())


def framed(payloads: list[bytes]) -> bytes:
    """A list of payloads as it goes to a process and comes back."""
    data = marshal.dumps(payloads)
    return len(data).to_bytes(LENGTH) + data


def _answer() -> None:
    """Pack list after list, until there is no more."""
    while length := sys.stdin.buffer.read(LENGTH):
        # Read at once: memory of this size that is let go is what copies of a packer are made in from then on.
        payloads = marshal.loads(sys.stdin.buffer.read(int.from_bytes(length)))
        sys.stdout.buffer.write(framed(list(map(packed, payloads))))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _answer()
