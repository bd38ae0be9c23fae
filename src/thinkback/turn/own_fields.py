"""Fields that a program adds to its requests for one provider alone, and that other places may refuse.

Promises: they stay behind where an endpoint's ``takes`` does not name them, and everything else stays as it is written;
what a plan's digest covers is without them. Must not: look at what a field says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, ToolResult
from thinkback.model.commits import Message, Response
from thinkback.model.plan import Carry, Writer
from thinkback.model.rule import Endpoint
from thinkback.wire.registry import dialect
from thinkback.wire.sources import joined, members


def own_fields(front: str, body: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of such fields in the ``body`` of a request of dialect ``front``."""
    return tuple(path for path in dialect(front).parameters.own if _says(body, path))


def _says(body: Mapping[str, Any], path: str) -> bool:
    key, _, name = path.partition(".")
    if not name:
        return key in body
    held = body.get(key)
    return isinstance(held, list) and any(isinstance(each, dict) and name in each for each in held)


def not_for(endpoint: Endpoint, own: Sequence[str]) -> dict[str, str]:
    """Those of the paths ``own`` that ``endpoint`` may not know, each with a sentence that says so."""
    reason = f"it is for one provider, and {endpoint.id} may not know it"
    return {path: f"{path}: {reason}" for path in own if path not in endpoint.takes}


def taking_all(endpoint: Endpoint) -> Endpoint:
    """``endpoint`` as one that knows all of them."""
    return msgspec.structs.replace(endpoint, takes=dialect(endpoint.dialect).parameters.own)


def withheld_members(endpoint: Endpoint) -> tuple[str, ...]:
    """The names of such fields inside messages."""
    paths = dialect(endpoint.dialect).parameters.own
    return tuple(filter(None, (path.partition(".")[2] for path in paths if path not in endpoint.takes)))


def writer_for(endpoint: Endpoint) -> Writer:
    """The request writer of the endpoint's dialect; what it writes has no such field that the endpoint may not know."""
    spoken, inner = dialect(endpoint.dialect), withheld_members(endpoint)
    return _Bare(spoken.writer, inner) if inner else spoken.writer


class _Bare:
    """A writer whose messages have none of the members ``names``. What stands on top and at the end is the writer's."""

    def __init__(self, writer: Writer, names: Sequence[str]) -> None:
        self._writer, self._names = writer, names
        self.start, self.separator = writer.start, writer.separator
        self.system_on_top, self.alternates = writer.system_on_top, writer.alternates
        self.results_by_user, self.user_first = writer.results_by_user, writer.user_first
        self.custom_tools, self.strict_tools = writer.custom_tools, writer.strict_tools
        self.prefill, self.tells_errors = writer.prefill, writer.tells_errors
        self.top, self.end, self.turn_over = writer.top, writer.end, writer.turn_over

    def message(self, role: Literal["system", "user"], message: Message) -> bytes:
        return self._bare(self._writer.message(role, message))

    def assistant(self, response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
        return tuple(map(self._bare, self._writer.assistant(response, blocks, carry)))

    def results(self, results: Sequence[ToolResult]) -> tuple[bytes, ...]:
        return tuple(map(self._bare, self._writer.results(results)))

    def _bare(self, item: bytes) -> bytes:
        for name in self._names:
            if b'"%b"' % name.encode() in item:
                item = canonical.raw(joined({key: source for key, source in members(item).items() if key != name}))
        return item
