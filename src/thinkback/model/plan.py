"""What passes between compile and the request writers: a plan's pieces and the writer's shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from thinkback.model.blocks import Block, ToolResult
from thinkback.model.commits import Message, Response, Tool


class Carry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reasoning one assistant message takes along, decided by compile, written by the dialect.

    ``text`` goes into ``fields`` (the same text under each name); ``details`` are verbatim entries as JSON source
    text (``None``: no such field, empty: an empty list); ``tagged`` puts reasoning back into ``content`` where it
    stood; ``prefix`` is foreign reasoning told as plain prose.
    """

    fields: tuple[str, ...] = ()
    text: str = ""
    details: tuple[str, ...] | None = None
    tagged: bool = False
    prefix: str = ""


NOTHING = Carry()


class Counts(msgspec.Struct, frozen=True):
    """Tokens, estimated: ``raw`` is everything stored, ``effective`` what the next request carries.

    ``calibrated``: the provider's own usage set the characters per token; ``limit`` 0 means unknown.
    """

    raw: int
    effective: int
    effective_reasoning: int
    limit: int = 0
    calibrated: bool = False


class Writer(Protocol):
    """The request writer of a dialect: neutral values to the bytes of messages, and what stands around them.

    The body is ``start``, then the messages joined by ``separator``, then ``end(...)``: the messages come first, so
    that the bytes of one request begin with those of the last.
    """

    start: bytes
    separator: bytes

    def message(self, role: Literal["system", "user"], message: Message) -> bytes:
        """A system or user message."""
        ...

    def assistant(self, response: Response, blocks: Sequence[Block], carry: Carry) -> bytes:
        """An assistant message with the reasoning of ``carry``."""
        ...

    def tool_result(self, result: ToolResult) -> bytes:
        """The answer to one call."""
        ...

    def end(self, model: str, tools: Sequence[Tool], params: dict[str, Any]) -> bytes:
        """What follows the messages: ``start``, the messages joined by ``separator``, and this make the body."""
        ...


class Digests(msgspec.Struct, frozen=True):
    """Hex SHA-256 of the parts of a request, for its record in the log."""

    system: str
    tools: str
    messages: str
    carriers: str
    sent: str


class Dropped(msgspec.Struct, frozen=True):
    """A control that was asked for and not sent, with the reason."""

    key: str
    value: str
    reason: str
