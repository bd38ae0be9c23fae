"""Requests read and written again, as a dialect's writer is used: groups of drafts to fragments, then the body."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from thinkback.model import canonical
from thinkback.model.blocks import Block, ToolResult
from thinkback.model.commits import Draft, Message, Response, Tools
from thinkback.model.plan import NOTHING, Writer
from thinkback.wire.result import ReadRequest


class ReadsRequest(Protocol):
    """The request reader of a dialect."""

    def __call__(self, body: Mapping[str, Any], ids: Callable[[], str]) -> ReadRequest: ...


def adopt(read_request: ReadsRequest, request: Mapping[str, Any]) -> ReadRequest:
    """A request body as values."""
    count = itertools.count(1)
    return read_request(request, lambda: f"r{next(count)}")


def rewrite(write: Writer, request: ReadRequest, *, only_first_on_top: bool = False) -> dict[str, Any]:
    """The request that the writer makes of what was read.

    ``only_first_on_top``: behind other messages a system message stays where it stood.
    """
    tools = [tool for draft in request.drafts if isinstance(draft.value, Tools) for tool in draft.value.tools]
    system: list[bytes] = []
    messages: list[bytes] = []
    before = ""
    for role, group in _grouped(draft for draft in request.drafts if draft.kind != "tools"):
        first = group[0].value
        if role == "system" and write.system_on_top and not (only_first_on_top and messages):
            assert isinstance(first, Message)
            system.append(write.top(first))
            continue
        for fragment in _fragments(write, group):
            messages.append(write.turn_over(before, role)[0] + fragment)
            before = role
    end = write.end(request.model, tools, system, request.params)
    written: dict[str, Any] = canonical.decode(write.start + write.separator.join(messages) + end)
    return written


def _grouped(drafts: Iterable[Draft]) -> Iterable[tuple[str, list[Draft]]]:
    """A message, a response with its blocks, or all results that stand together, and whose words they are."""
    roles = {"response": "assistant", "tool_result": "tool"}
    group: list[Draft] = []
    for draft in drafts:
        if group and not (draft.index >= 0 or draft.kind == group[0].kind == "tool_result"):
            yield roles.get(group[0].kind, group[0].kind), group
            group = []
        group.append(draft)
    if group:
        yield roles.get(group[0].kind, group[0].kind), group


def _fragments(write: Writer, group: list[Draft]) -> tuple[bytes, ...]:
    first = group[0].value
    if isinstance(first, Response):
        blocks: list[Block] = [draft.value for draft in group[1:]]  # type: ignore[misc]
        return write.assistant(first, blocks, NOTHING)
    if isinstance(first, Message):
        return (write.message("system" if group[0].kind == "system" else "user", first),)
    return write.results([draft.value for draft in group if isinstance(draft.value, ToolResult)])
