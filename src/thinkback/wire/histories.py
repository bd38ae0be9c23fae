"""What the request readers of the dialects share: bodies with a list of messages, responses, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thinkback.errors import WireError
from thinkback.model import canonical
from thinkback.model.blocks import Block
from thinkback.model.commits import Draft, Response, Tool, Tools, block_draft
from thinkback.wire.result import ReadRequest

_READ = frozenset({"messages", "model", "tools"})


def read_body(
    body: Mapping[str, Any], read_messages: Callable[[Sequence[Any]], list[Draft]], read_tool: Callable[[Any], Tool]
) -> ReadRequest:
    """A body with ``model``, ``tools`` and ``messages``. Raises ``WireError`` where there is no list of messages."""
    tools, messages = body.get("tools"), body.get("messages")
    offered = tuple(map(read_tool, tools)) if isinstance(tools, list | tuple) else ()
    if not isinstance(messages, list | tuple):
        raise WireError("the request has no list of messages")
    drafts = [Draft("tools", Tools(offered))] if offered else []
    params = {key: value for key, value in body.items() if key not in _READ}
    return ReadRequest(str(body.get("model") or ""), (*drafts, *read_messages(messages)), params)


def response_drafts(header: Response, blocks: Sequence[Block], response: str) -> list[Draft]:
    """A response and its blocks."""
    return [
        Draft("response", header, response),
        *(block_draft(block, response, at) for at, block in enumerate(blocks)),
    ]


def bad_role(at: int, role: object, roles: str) -> WireError:
    """The message at ``at`` has a role that is none of ``roles``."""
    return WireError(
        f"messages[{at}] cannot be adopted: role {role!r}",
        details={"message": at},
        next_actions=(f"roles are {roles}",),
    )


def read_function(tool: Any, dialect: str, source: Callable[[object], str] = canonical.source) -> Tool:
    """A tool definition; one that is no function has nothing but what stands on the wire, and its type for a name.

    ``source`` is how its parameters become text.
    """
    wire = canonical.source(tool)
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping):
        kind = tool.get("type") if isinstance(tool, Mapping) else ""
        return Tool(str(kind or ""), wire=wire, dialect=dialect)
    name, description = str(function.get("name") or ""), str(function.get("description") or "")
    return Tool(name, description, source(function.get("parameters") or {}), wire, dialect)
