"""The dialects that are built in: name to reader and writer. Each is imported when it is first asked for.

Some of them are fronts, too: clients speak them, and responses can be written in them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

import msgspec

from thinkback.errors import NotFoundError
from thinkback.model.blocks import Block, Origin
from thinkback.model.commits import Draft, Failure
from thinkback.model.deltas import Delta
from thinkback.model.plan import Writer
from thinkback.wire.framing import Framing
from thinkback.wire.result import ReadOptions, ReadRequest, ReadResult, Report, WantedOptions
from thinkback.wire.writing import Problem, ResponseWriter, Shown

PACKAGES: dict[str, str] = {
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "gemini": "gemini",
    "gemini-interactions": "gemini_interactions",
    "mistral": "mistral",
    "ollama": "ollama",
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
}
"""Name of each dialect to its package under ``thinkback.wire``."""

FRONTS = ("anthropic", "gemini", "openai-chat", "openai-responses")
"""The dialects that clients of a gateway speak."""


class ResponseReader(Protocol):
    """Bytes of one response to deltas, then to values."""

    def feed(self, data: bytes) -> list[Delta]: ...

    def close(self) -> list[Delta]: ...

    def fail(self, failure: Failure) -> None: ...

    def result(self) -> ReadResult: ...

    def block(self, index: int) -> Block | None: ...

    @property
    def finish(self) -> str | None: ...


class Package(Protocol):
    """What the package of a dialect offers."""

    @property
    def Reader(self) -> Callable[[Origin, Framing, ReadOptions | None, str], ResponseReader]: ...

    @property
    def write(self) -> Writer: ...

    @property
    def read_failure(self) -> Callable[[int, Any], Failure]: ...

    @property
    def options(self) -> Callable[[WantedOptions], dict[str, Any]]: ...

    @property
    def read_request(self) -> Callable[[Mapping[str, Any], Callable[[], str], Origin], ReadRequest]: ...

    @property
    def read_messages(self) -> Callable[..., list[Draft]]: ...

    @property
    def raw_response(self) -> Callable[[ReadResult], dict[str, Any]]: ...


class Dialect(msgspec.Struct, frozen=True):
    """The functions of one wire format.

    ``options`` are the native parameters for streaming and for a JSON schema of the answer; it raises
    ``UnsupportedContent`` where there is no way to ask for one. ``read_messages`` reads a history as programs of this
    dialect hold it, ``read_request`` a whole request body. ``report`` reads what the provider says it did with the
    reasoning it was sent.
    """

    reader: Callable[[Origin, Framing, ReadOptions | None, str], ResponseReader]
    writer: Writer
    failure: Callable[[int, Any], Failure]
    options: Callable[[WantedOptions], dict[str, Any]]
    read_request: Callable[[Mapping[str, Any], Callable[[], str], Origin], ReadRequest]
    read_messages: Callable[..., list[Draft]]
    raw_response: Callable[[ReadResult], dict[str, Any]]
    report: Callable[[str], Report]


def no_report(envelope: str) -> Report:
    """The report of a dialect that has none."""
    return Report()


@functools.cache
def dialect(name: str) -> Dialect:
    """The dialect ``name``. Raises ``NotFoundError`` with those that exist."""
    if name not in PACKAGES:
        raise NotFoundError(
            f"there is no dialect {name!r}", next_actions=(f"use one of: {', '.join(sorted(PACKAGES))}",)
        )
    module = import_module(f"thinkback.wire.{PACKAGES[name]}")
    package = cast(Package, module)
    return Dialect(
        reader=package.Reader,
        writer=package.write,
        failure=package.read_failure,
        options=package.options,
        read_request=package.read_request,
        read_messages=package.read_messages,
        raw_response=package.raw_response,
        report=getattr(module, "report", no_report),
    )


class Signing(Protocol):
    """Gives the reasoning of one response signatures where it has none: of a stream's whole events, or a document."""

    def events(self, data: bytes) -> bytes: ...

    def document(self, data: bytes) -> bytes: ...


class Front(msgspec.Struct, frozen=True):
    """What a gateway needs to answer in one dialect.

    ``write_response`` gives a whole document, ``write_error`` the body of an error. ``rewrite`` changes the opaque
    values in one JSON document (an event's payload or a whole response) and no other byte; ``marked`` finds something
    in whatever holds one. ``ends`` gives the offset in a piece of a stream at which the dialect's last event begins, -1
    where it does not. ``bare`` undoes the form that ``rewrite`` and the writers give an opaque value so that the
    clients of the dialect can keep it. ``without_counts`` takes events out that only count tokens, in a dialect where
    clients must ask for them. ``as_asked`` takes a client's request and the planned one, and gives the latter with what
    the log cannot tell apart in the place where the client has it. ``reports`` is a parameter whose report, a member of
    the same name, is for clients that sent it. ``signing`` takes what gives a signature, in a dialect whose clients
    send reasoning back by one.
    """

    writer: Callable[[Shown], ResponseWriter]
    write_response: Callable[[ReadResult, Shown], bytes]
    write_error: Callable[[Problem], bytes]
    rewrite: Callable[[bytes, Callable[[str], str]], bytes]
    ends: Callable[[bytes], int]
    marked: re.Pattern[bytes]
    bare: Callable[[str], str] = str
    without_counts: Callable[[bytes], bytes] | None = None
    as_asked: Callable[[bytes, bytes], bytes] | None = None
    reports: str = ""
    signing: Callable[[Callable[[], str]], Signing] | None = None
    closing: bytes = b""
    document_type: str = "application/json"


_COUNTS_ON_DEMAND = frozenset({"openai-chat"})
_REPORTS = {"anthropic": "context_management"}
_HAS_TWO_PLACES = frozenset({"openai-responses"})
_SIGNS = frozenset({"anthropic"})


@functools.cache
def front(name: str) -> Front:
    """The front of the dialect ``name``. Raises ``NotFoundError`` with those that exist."""
    if name not in FRONTS:
        raise NotFoundError(
            f"responses cannot be written in the dialect {name!r}",
            next_actions=(f"use one of: {', '.join(FRONTS)}",),
        )
    written = import_module(f"thinkback.wire.{PACKAGES[name]}.write_response")
    opaque = import_module(f"thinkback.wire.{PACKAGES[name]}.opaque")
    counts = import_module(f"thinkback.wire.{PACKAGES[name]}.unasked") if name in _COUNTS_ON_DEMAND else None
    places = import_module(f"thinkback.wire.{PACKAGES[name]}.as_asked") if name in _HAS_TWO_PLACES else None
    signing = import_module(f"thinkback.wire.{PACKAGES[name]}.unsigned") if name in _SIGNS else None
    return Front(
        writer=written.Writer,
        write_response=written.write_response,
        write_error=written.write_error,
        rewrite=opaque.rewrite,
        ends=opaque.ends,
        marked=opaque.MARKED,
        bare=getattr(opaque, "bare", str),
        closing=getattr(opaque, "CLOSING", b""),
        reports=_REPORTS.get(name, ""),
        without_counts=counts.without_counts if counts is not None else None,
        as_asked=places.as_asked if places is not None else None,
        signing=signing.Signing if signing is not None else None,
    )
