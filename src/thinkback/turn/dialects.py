"""The dialects that are built in: name to reader and writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from thinkback.errors import NotFoundError
from thinkback.model.blocks import Origin
from thinkback.model.commits import Draft, Failure
from thinkback.model.deltas import Delta
from thinkback.model.plan import Writer
from thinkback.wire.framing import Framing
from thinkback.wire.openai_chat import chunks, write
from thinkback.wire.openai_chat.read import Reader
from thinkback.wire.openai_chat.read_request import read_messages
from thinkback.wire.result import ReadOptions, ReadResult


class ResponseReader(Protocol):
    """Bytes of one response to deltas, then to values."""

    def feed(self, data: bytes) -> list[Delta]: ...

    def close(self) -> list[Delta]: ...

    def fail(self, failure: Failure) -> None: ...

    def result(self) -> ReadResult: ...

    @property
    def finish(self) -> str | None: ...


class Dialect(msgspec.Struct, frozen=True):
    """The functions of one wire format."""

    reader: Callable[[Origin, Framing, ReadOptions | None, str], ResponseReader]
    writer: Writer
    failure: Callable[[int, Any], Failure]
    read_messages: Callable[..., list[Draft]]


DIALECTS: dict[str, Dialect] = {
    "openai-chat": Dialect(reader=Reader, writer=write, failure=chunks.read_failure, read_messages=read_messages),
}


def dialect(name: str) -> Dialect:
    """The dialect ``name``. Raises ``NotFoundError`` with those that exist."""
    found = DIALECTS.get(name)
    if found is None:
        raise NotFoundError(
            f"there is no dialect {name!r}", next_actions=(f"use one of: {', '.join(sorted(DIALECTS))}",)
        )
    return found
