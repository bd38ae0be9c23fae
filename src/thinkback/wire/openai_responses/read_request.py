"""Request reader of the ``openai-responses`` dialect: input items to drafts of the log.

Promises: what the writer would not write the same again is kept verbatim beside what was understood; the items a
model made that stand together become one response of unknown origin; ids and opaque values are those of the items.
``instructions`` become a system message in front of the others: written again, it stands in the input. Items that
point to what a server keeps (``item_reference``) stay where they stood, ``previous_response_id`` is a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from thinkback.errors import WireError
from thinkback.model import canonical, custom_tools
from thinkback.model.blocks import Block, Media, Origin, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools
from thinkback.wire import histories
from thinkback.wire.openai_responses.blocks import block_of
from thinkback.wire.openai_responses.content import NAME, read_part
from thinkback.wire.openai_responses.write import write_item
from thinkback.wire.result import ReadRequest

UNKNOWN_ORIGIN = Origin(NAME, "", "")
_READ = frozenset({"input", "model", "tools", "instructions"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
# What a program, not a model, puts between the messages.
_SETTINGS = frozenset({"configuration_update", "compaction_trigger"})
_UPDATED = ("reasoning", "text")
# What a program answers to calls of tools that the provider defines; what the provider itself ran has an id of its own.
_OF_HOSTED = frozenset({"apply_patch_call_output", "shell_call_output", "tool_search_output"})
_OF_HOSTED_BY_PROGRAM = frozenset({"computer_call_output", "local_shell_call_output", "mcp_approval_response"})


def read_request(body: Mapping[str, Any], ids: Callable[[], str], origin: Origin = UNKNOWN_ORIGIN) -> ReadRequest:
    """A whole request body. Raises ``WireError`` for input that is none."""
    tools, entries, instructions = body.get("tools"), body.get("input"), body.get("instructions")
    offered = tuple(map(read_tool, tools)) if isinstance(tools, list | tuple) else ()
    drafts = [Draft("tools", Tools(offered))] if offered else []
    told = isinstance(instructions, str)
    if told:
        drafts.append(Draft("system", Message(str(instructions))))
    if isinstance(entries, str):
        drafts.append(Draft("user", Message(entries)))
    elif isinstance(entries, Sequence):
        drafts += read_messages(entries, ids, origin)
    elif entries is not None:
        raise WireError("the request has no list of input items")
    read = _READ if told else _READ - {"instructions"}
    params = {key: value for key, value in body.items() if key not in read}
    amid = _settings(entries) if isinstance(entries, list | tuple) else {}
    return ReadRequest(str(body.get("model") or ""), tuple(drafts), params, amid)


def _settings(entries: Sequence[Any]) -> dict[str, Any]:
    """What items between the messages say of the responses that follow, as parameters; each stays until the next."""
    said: dict[str, Any] = {}
    for entry in entries:
        kind = entry.get("type") if isinstance(entry, Mapping) else None
        if kind == "configuration_update":
            for key in _UPDATED:
                if isinstance(entry.get(key), Mapping):
                    said[key] = {**said.get(key, {}), **entry[key]}
        elif kind == "compaction_trigger":
            said[kind] = True
    return said


def read_messages(
    entries: Sequence[Any],
    ids: Callable[[], str],
    origin: Origin = UNKNOWN_ORIGIN,
    *,
    after: Sequence[Draft] = (),
) -> list[Draft]:
    """The drafts of input items in order; ``ids`` gives response ids, ``after`` is what came before them.

    Raises ``WireError`` naming the item.
    """
    names = {draft.value.id: draft.value.name for draft in after if isinstance(draft.value, ToolCall)}
    drafts: list[Draft] = []
    run: list[Block] = []
    for at, entry in enumerate(entries):
        draft = _said_by_program(entry, at, names)
        if draft is None:
            block = _made_by_model(entry)
            if isinstance(block, ToolCall):
                names[block.id] = block.name
            if isinstance(block, Unknown) and _answers_hosted(entry):
                # no part of the response before it; an id in it is that of the call, which goes as well
                drafts += _response(run, ids, origin) + _response([Unknown(block.wire)], ids, origin)
                run = []
            else:
                run.append(block)
            continue
        drafts += _response(run, ids, origin)
        run = []
        drafts.append(draft)
    return drafts + _response(run, ids, origin)


def _said_by_program(entry: Any, at: int, names: Mapping[str, str]) -> Draft | None:
    """A message, a setting or a result; ``None`` for what a model made."""
    kind, role = _kind_and_role(entry, at)
    if kind in _RESULTS:
        id = entry.get("call_id")
        if not isinstance(id, str):
            raise _bad(at, f"{kind} without call_id")
        return Draft("tool_result", _result(entry, id, names.get(id, "")))
    if kind in _SETTINGS:  # no part of it can be told to anybody else
        return Draft("system", Message("", (), canonical.source(dict(entry)), NAME))
    if kind != "message" and role in ("system", "developer"):
        wire = canonical.source(dict(entry))
        return Draft("system", Message("", (Unknown(wire),), wire, NAME))
    if kind != "message" or role == "assistant":
        return None
    return Draft("user" if role == "user" else "system", _message(entry))


def _answers_hosted(entry: Mapping[str, Any]) -> bool:
    """Whether a program says in it what came of a call of a tool that the provider defines."""
    kind = str(entry.get("type"))
    return kind in _OF_HOSTED_BY_PROGRAM or (kind in _OF_HOSTED and not entry.get("id"))


def _kind_and_role(entry: Any, at: int) -> tuple[str, str]:
    if not isinstance(entry, Mapping):
        raise _bad(at, "no object")
    kind, role = str(entry.get("type") or ("message" if "role" in entry else "")), str(entry.get("role") or "")
    if not kind and "id" in entry:
        kind = "item_reference"
    if not kind or (kind == "message" and role not in ("system", "developer", "user", "assistant")):
        raise _bad(at, f"type {kind!r}, role {role!r}")
    return kind, role


def _bad(at: int, what: str) -> WireError:
    return WireError(
        f"input[{at}] cannot be adopted: {what}",
        details={"message": at},
        next_actions=("an input item has a type, or a role: system, developer, user or assistant",),
    )


def _message(entry: Mapping[str, Any]) -> Message:
    said = entry.get("content")
    if isinstance(said, str) and set(entry) == {"role", "content"} and entry["role"] != "developer":
        return Message(said)
    wire = canonical.source(dict(entry))
    if isinstance(said, str):
        return Message(said, wire=wire, dialect=NAME)
    parts = tuple(map(read_part, said if isinstance(said, list | tuple) else ()))
    return Message(_text(parts), parts, wire, NAME)


def _text(parts: Sequence[Text | Media | Unknown]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def _result(entry: Mapping[str, Any], id: str, name: str) -> ToolResult:
    output = entry.get("output")
    if (
        isinstance(output, str)
        and set(entry) == {"type", "call_id", "output"}
        and entry["type"] == "function_call_output"
    ):
        return ToolResult(id, output, name=name)
    wire = canonical.source(dict(entry))
    if isinstance(output, list | tuple):
        parts = tuple(map(read_part, output))
        output = _text(parts) if all(isinstance(part, Text) for part in parts) else canonical.source(output)
    return ToolResult(
        id, output if isinstance(output, str) else canonical.source(output), name, wire=wire, dialect=NAME
    )


def _made_by_model(entry: Mapping[str, Any]) -> Block:
    """The block of an item, with its wire object only where the writer needs it."""
    wire = canonical.source(dict(entry))
    block = block_of({"type": "message", **entry} if "role" in entry else dict(entry), wire)
    if isinstance(block, Unknown):
        return block
    bare = msgspec.structs.replace(block, wire="")
    verbatim = msgspec.structs.replace(block, wire=wire)
    written = write_item(bare)
    same = bool(written) and canonical.decode(written) == canonical.decode(write_item(verbatim))
    return bare if same else verbatim


def _response(blocks: Sequence[Block], ids: Callable[[], str], origin: Origin) -> list[Draft]:
    """Items that stand together as one response."""
    if not blocks:
        return []
    response = ids()
    return histories.response_drafts(Response(origin, blocks=len(blocks)), blocks, response)


def read_tool(tool: Any) -> Tool:
    """A tool definition; one that is no function has nothing but what stands on the wire, and its type for a name.

    The API also takes functions in the shape of chat completions.
    """
    custom = custom_tools.read_custom(tool, NAME)
    if custom is not None:
        return custom
    wire = canonical.source(tool)
    kind = str(tool.get("type") or "") if isinstance(tool, Mapping) else ""
    if kind != "function":
        return Tool(kind, wire=wire, dialect=NAME)
    inner = tool.get("function")
    function = {**inner, **tool} if isinstance(inner, Mapping) else tool
    parameters = canonical.source(function.get("parameters") or {})
    name, description = str(function.get("name") or ""), str(function.get("description") or "")
    return Tool(name, description, parameters, wire, NAME)
