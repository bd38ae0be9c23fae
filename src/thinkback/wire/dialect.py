"""What a dialect is: the type of ``DIALECT``, which each package below ``wire`` exports.

Promises: no field has a default, so that a dialect that leaves one out is a type error. Must not: know any dialect;
``registry`` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from thinkback.model.blocks import Block, Origin, ThinkingBlock
from thinkback.model.commits import Draft, Failure
from thinkback.model.deltas import Delta
from thinkback.model.plan import Writer
from thinkback.wire.framing import Framing
from thinkback.wire.front import Front
from thinkback.wire.parameters import Parameters
from thinkback.wire.result import ReadOptions, ReadRequest, ReadResult, Report, WantedOptions


class ResponseReader(Protocol):
    """Bytes of one response to deltas, then to values."""

    def feed(self, data: bytes) -> list[Delta]: ...

    def close(self) -> list[Delta]: ...

    def fail(self, failure: Failure) -> None: ...

    def result(self) -> ReadResult: ...

    def block(self, index: int) -> Block | None: ...

    @property
    def finish(self) -> str | None: ...


class Trace(msgspec.Struct, frozen=True):
    """What a decoded response shows that its blocks alone do not say.

    ``empty_text`` finds, in the body, an empty text that left no block; ``None`` where such a text leaves one.
    ``calls_without_id``: a call may have none. ``blank_texts``: blank texts stand between blocks without a meaning.
    ``readable`` is the text of a reasoning block as the wire has it.
    """

    empty_text: re.Pattern[bytes] | None
    calls_without_id: bool
    blank_texts: bool
    readable: Callable[[ThinkingBlock], str]


class Dialect(msgspec.Struct, frozen=True):
    """One wire format: its functions and its vocabulary.

    ``maker`` is the endpoint, in the catalogue, of who made the dialect. ``reasoning_by_host``: each host has its own
    field or form for reasoning, so that a probe must find out which.

    ``reader`` makes a reader of one response; ``writer`` writes requests. ``failure`` reads the body of an HTTP error.
    ``options`` are the native parameters for streaming and for a JSON schema of the answer; it raises
    ``UnsupportedContent`` where there is no way to request one. ``read_messages`` reads a history as programs of this
    dialect hold it, ``read_request`` a whole request body. ``raw_response`` joins a response from its blocks.
    ``item_name`` is how people call a message or an item of a request's history, by what the wire says it is.
    ``report`` reads what the provider says it did with the reasoning it was sent. ``front`` imports and returns what a
    gateway needs to answer clients of the dialect; ``None`` where responses cannot be written in it.
    """

    name: str
    maker: str
    reasoning_by_host: bool
    reader: Callable[[Origin, Framing, ReadOptions | None, str], ResponseReader]
    writer: Writer
    failure: Callable[[int, Any], Failure]
    options: Callable[[WantedOptions], dict[str, Any]]
    read_request: Callable[[Mapping[str, Any], Callable[[], str], Origin], ReadRequest]
    read_messages: Callable[..., list[Draft]]
    raw_response: Callable[[ReadResult], dict[str, Any]]
    item_name: Callable[[Mapping[str, Any]], str]
    report: Callable[[str], Report]
    parameters: Parameters
    trace: Trace
    front: Callable[[], Front] | None


def role_of(item: Mapping[str, Any]) -> str:
    """The name of a message as a request has it: who says it."""
    return str(item.get("role", ""))


def role_or_type_of(item: Mapping[str, Any]) -> str:
    """The same, where only messages have a role: other items have a type, and calls the name of what they call."""
    words = (item["role"],) if "role" in item else (item.get("type", ""), item.get("name", ""))
    return " ".join(str(word).replace("_", " ") if at == 0 else str(word) for at, word in enumerate(words) if word)


def no_report(envelope: str) -> Report:
    """The report of a dialect that has none."""
    return Report()


def thought(block: ThinkingBlock) -> str:
    """The text of a reasoning block, where the wire has it in one piece."""
    return block.thought


PLAIN_TRACE = Trace(empty_text=None, calls_without_id=False, blank_texts=False, readable=thought)
"""A dialect whose blocks say it all."""
