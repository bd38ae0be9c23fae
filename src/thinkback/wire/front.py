"""What a front is: a dialect that clients of a gateway speak. The types of ``FRONT``, and words that fronts share.

Promises: no field has a default, so that a front that leaves one out is a type error. Must not: know any dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, ResponseWriter, Shown

Kind: TypeAlias = Literal["text", "boolean", "object", "list"]


class Signing(Protocol):
    """Gives the reasoning of one response signatures where it has none: of a stream's whole events, or a document."""

    def events(self, data: bytes) -> bytes: ...

    def document(self, data: bytes) -> bytes: ...


class Hiding(Protocol):
    """Takes readable reasoning out of one response: of a stream's whole events, or a document."""

    def events(self, data: bytes) -> bytes: ...

    def document(self, data: bytes) -> bytes: ...


class Listed(NamedTuple):
    """A model that may be asked for. ``owner`` is where its requests go; sizes are tokens, 0 where unknown."""

    id: str
    owner: str = "thinkback"
    created: int = 0
    context: int = 0
    max_output: int = 0
    display: str = ""


class Address(msgspec.Struct, frozen=True):
    """How a request line says that a client speaks the dialect.

    ``paths`` behind the version, each with whether tokens are only counted there. ``calls`` are methods of a model
    (``/models/NAME:METHOD``), each with whether it streams, and ``counting`` one that only counts. ``marks`` finds
    something in the path, and ``header`` is a header, of a client of this dialect that asks for a page which all have;
    ``header`` and ``counting`` are ``""`` where there is none.
    """

    paths: Mapping[str, bool]
    calls: Mapping[str, bool]
    marks: re.Pattern[str]
    header: str
    counting: str = ""


class Field(NamedTuple):
    """A field of a body: ``key`` of the body itself where ``under`` is empty, else anywhere below that key of it.

    ``key`` may be a path of keys with dots; an empty one below another is each object there. ``names`` tells whether a
    value that is not empty names something.
    """

    key: str
    under: str = ""
    names: Callable[[Any], bool] = bool


class Unserved(msgspec.Struct, frozen=True):
    """A request for state that only a provider holds: a value at the dotted ``path`` that the gateway refuses.

    Clients of the dialect fall back on ``code`` and ``message``: they then send the whole conversation.
    """

    path: str
    value: Any
    code: str
    message: str


class Body(msgspec.Struct, frozen=True):
    """What a gateway reads of a request before anything else. Paths are dotted; ``""`` is none.

    ``messages`` is the key of the conversation; a value of the type ``one_message`` there is one message, and it may be
    absent where a key of ``continues`` refers to one that a service keeps. ``previous`` is the key, among those, of the
    response to go on from. ``end_user``: paths, of which the first with a value names the end user. ``kinds``: keys
    that could not be understood as anything else. ``usage`` is the path that requests token counts in a stream, where
    clients must; ``thinking`` that of the type of reasoning, without which a program reads the first block as the
    answer. ``models`` are fields that may lead to other models, ``stored`` those that name, or leave, something in the
    account of the upstream. ``unserved`` requests are refused before anything is sent; ``served_whole`` are parameters
    that change nothing where the whole conversation is sent, so that they stay behind.
    """

    messages: str
    one_message: type[str] | type[dict[str, Any]] | None
    continues: tuple[str, ...]
    previous: str
    end_user: tuple[str, ...]
    kinds: Mapping[str, Kind]
    usage: str
    thinking: str
    models: tuple[Field, ...]
    stored: tuple[Field, ...]
    unserved: tuple[Unserved, ...] = ()
    served_whole: tuple[str, ...] = ()


class Front(msgspec.Struct, frozen=True):
    """What a gateway needs to answer in one dialect.

    ``write_response`` gives a whole document, ``write_error`` the body of an error. ``rewrite`` changes the opaque
    values in one JSON document (an event's payload or a whole response) and no other byte; ``marked`` finds something
    in whatever holds one. ``ends`` gives the offset in a piece of a stream at which the dialect's last event begins, -1
    where it does not; ``closing`` is that event where it is always the same. ``bare`` undoes the form that ``rewrite``
    and the writers give an opaque value so that the clients of the dialect can keep it. ``without_counts`` takes events
    out that only count tokens, in a dialect where clients must request them. ``as_asked`` takes a client's request and
    the planned one, and gives the latter with what the log cannot tell apart in the place where the client has it.
    ``reports`` is a parameter whose report, a member of the same name, is for clients that sent it. ``signing`` takes
    what gives a signature, in a dialect whose clients send reasoning back by one. ``hiding`` makes what takes out the
    reasoning that is readable, in a dialect where clients must ask for it; ``unhidden`` is how values of ``headers``
    begin that ask for something that would go with it. ``blocks_in_order``: a stream has one block after another, so
    that what becomes known behind the last one has no place.

    ``id_prefix`` stands before the ids of responses. ``headers`` are those of a client that are part of its request;
    ``request_id`` is the one that names a request to the client, ``""`` where that is ``x-request-id`` alone.
    ``operation`` is the OpenTelemetry name of what the dialect calls a response. ``list_models`` and ``show_model``
    give the documents about models. ``counted`` is the key of a count of tokens, and ``counts_in`` the key of a body
    under which the request that is counted may stand.
    """

    address: Address
    body: Body
    writer: Callable[[Shown], ResponseWriter]
    write_response: Callable[[ReadResult, Shown], bytes]
    write_error: Callable[[Problem], bytes]
    rewrite: Callable[[bytes, Callable[[str], str]], bytes]
    ends: Callable[[bytes], int]
    marked: re.Pattern[bytes]
    bare: Callable[[str], str]
    without_counts: Callable[[bytes], bytes] | None
    as_asked: Callable[[bytes, bytes], bytes] | None
    reports: str
    signing: Callable[[Callable[[], str]], Signing] | None
    hiding: Callable[[], Hiding] | None
    closing: bytes
    blocks_in_order: bool
    id_prefix: str
    headers: tuple[str, ...]
    request_id: str
    operation: str
    list_models: Callable[[Sequence[Listed]], dict[str, Any]]
    show_model: Callable[[Listed], dict[str, Any]]
    unhidden: tuple[str, ...] = ()
    counted: str = "input_tokens"
    counts_in: str = ""


ROUTERS = tuple(Field(key) for key in ("models", "fallbacks", "fallback_model", "route", "preset", "plugins"))
"""Fields by which routers lead a request of any dialect to another model."""
_CAPITAL = re.compile("[A-Z]")


def is_object(value: Any) -> bool:
    """A name, or an object with one; ``{"type": "auto"}`` names nothing."""
    return isinstance(value, str) or (isinstance(value, dict) and "id" in value)


def both_spellings(*keys: str, under: Sequence[str] = ("",), names: Callable[[Any], bool] = bool) -> tuple[Field, ...]:
    """Google's fields in both spellings that its servers read."""
    spelt = dict.fromkeys(each for key in keys for each in (key, _CAPITAL.sub(r"_\g<0>", key).lower()))
    return tuple(Field(key, place, names) for key in spelt for place in under)
