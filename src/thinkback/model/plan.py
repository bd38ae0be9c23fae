"""What passes between compile and the request writers: a plan's pieces and the writer's shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from thinkback.model.blocks import Block, ToolResult
from thinkback.model.commits import Message, Response, Tool


class Carry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reasoning one assistant message takes along outside its blocks, decided by compile, written by the dialect.

    ``text`` goes into ``fields`` (the same text under each name); ``details`` are verbatim entries as JSON source
    text (``None``: no such field, empty: an empty list); ``tagged`` puts reasoning back into ``content`` where it
    stood; ``dummy`` is the documented stand-in for a signature that the first call must have and does not.
    """

    fields: tuple[str, ...] = ()
    text: str = ""
    details: tuple[str, ...] | None = None
    tagged: bool = False
    dummy: str = ""


NOTHING = Carry()


class Counts(msgspec.Struct, frozen=True):
    """Tokens, estimated: ``raw`` is everything stored, ``effective`` what the next request carries.

    ``calibrated``: the provider's own usage set the characters per token; ``limit`` 0 means unknown.
    ``limit_asked`` is the day on which the server told it.
    """

    raw: int
    effective: int
    effective_reasoning: int
    limit: int = 0
    calibrated: bool = False
    limit_asked: str = ""


class Writer(Protocol):
    """The request writer of a dialect: neutral values to the bytes of a request.

    The body is ``start``, then the fragments with ``separator`` between them, then ``end(...)``: the messages come
    first, so that the bytes of one request begin with those of the last.

    Verbatim source text (``wire``) and carriers that a block still has are to be written; compile took away what must
    not go, and what another dialect wrote.
    """

    start: bytes
    separator: bytes
    system_on_top: bool
    """Whether system messages stand outside the message array (``top``); else ``message`` writes them."""
    alternates: bool
    """Whether neighbouring user messages must be one. Fragments then are the parts of a message, and ``turn_over``
    writes what stands between two of them."""

    results_by_user: bool
    """Whether results are a message of the user's, so that another behind them goes on with the turn they belong to."""

    user_first: Literal["always", "calls", "never"]
    """Whether the first message must be the user's: in any case, where the first answer called tools, or not."""

    custom_tools: Literal["all", "some", "none"]
    """The hosts of the dialect that have tools that take any text: of some their data says so."""

    strict_tools: Literal["said", "held", "none"]
    """Whether calls can be held to the schema of a function: where that is said, unless that is denied, or not."""

    tells_errors: bool
    """Whether a result has a member that says that its tool failed."""

    prefill: Literal["last", "member", ""]
    """How an answer is begun for the model: by the assistant's message that stands last, if it has a member that says
    so, or not at all."""

    def message(self, role: Literal["system", "user"], message: Message) -> bytes:
        """A system or user message. Raises ``UnsupportedContent`` for media that the dialect has no place for."""
        ...

    def top(self, message: Message) -> bytes:
        """A system message as it stands outside the message array."""
        ...

    def assistant(self, response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
        """The message or items of a response, with the reasoning that ``blocks`` and ``carry`` have; maybe none."""
        ...

    def results(self, results: Sequence[ToolResult]) -> tuple[bytes, ...]:
        """The answers to all calls of one response."""
        ...

    def end(self, model: str, tools: Sequence[Tool], system: Sequence[bytes], params: dict[str, Any]) -> bytes:
        """What follows the messages. ``system`` is what ``top`` wrote; ``model`` is empty where the URL has it."""
        ...

    def turn_over(self, before: str, role: str) -> tuple[bytes, int]:
        """What stands before a fragment of ``role`` that follows one of ``before``, and how many messages it begins.

        Roles are system, user, assistant and tool (results); ``before`` is empty for the first fragment.
        """
        ...


class Digests(msgspec.Struct, frozen=True):
    """Hex SHA-256 of the parts of a request, for its record in the log."""

    system: str
    tools: str
    messages: str
    carriers: str
    sent: str


class Beginnings(NamedTuple):
    """Hex SHA-256 of every beginning of a request's messages, and of those among them that have reasoning."""

    messages: frozenset[str]
    carriers: frozenset[str]


ControlState: TypeAlias = Literal["emitted", "represented", "absent", "suppressed", "unrepresentable"]


class Control(msgspec.Struct, frozen=True):
    """What became of a control that was asked for.

    ``emitted``: sent in the endpoint's own words; ``represented``: sent as the nearest it has; ``absent``: the endpoint
    is not known, so nothing is sent; ``suppressed``: something that wins is in its place; ``unrepresentable``: it
    has no way to say it.
    """

    key: str
    value: str
    state: ControlState
    reason: str = ""
