"""Is the input well formed? Types and fields of items, ids, duplicates, and that every call has its output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from ..jsons import as_list, as_object, as_text
from ..verdict import Verdict
from .refusals import invalid_value, missing_parameter, refuse, refuse_upstream, unknown_parameter
from .request import Item, Request

_FIELDS: MappingProxyType[str, frozenset[str]] = MappingProxyType(
    {
        "message": frozenset({"type", "id", "role", "content", "status", "phase"}),
        "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
        "function_call": frozenset({"type", "id", "call_id", "name", "arguments", "status", "namespace", "caller"}),
        "function_call_output": frozenset({"type", "id", "call_id", "output", "status", "caller"}),
        "item_reference": frozenset({"type", "id"}),
        "configuration_update": frozenset({"type", "id", "reasoning", "text"}),
    }
)
# What Codex puts on any item, and OpenAI takes.
_ON_ANY_ITEM = frozenset({"internal_chat_message_metadata_passthrough"})
# Their insides are not looked at.
_OTHER_TYPES = frozenset(
    {
        "additional_tools", "apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "compaction",
        "computer_call", "computer_call_output", "custom_tool_call", "custom_tool_call_output", "file_search_call",
        "image_generation_call", "local_shell_call", "local_shell_call_output", "mcp_approval_request",
        "mcp_approval_response", "mcp_call", "mcp_list_tools", "program", "program_output", "shell_call",
        "shell_call_output", "tool_search_call", "tool_search_output", "web_search_call",
    }
)  # fmt: skip
_ROLES = ("user", "assistant", "system", "developer")
_PREFIXES = MappingProxyType({"message": "msg", "reasoning": "rs", "function_call": "fc"})
_LONGEST_ID = 64


def bad_items(request: Request) -> Verdict | None:
    """Refuse items that are no items, or have fields that the host does not know."""
    given = request.body.get("input")
    host = request.profile.host
    if given is None:
        return missing_parameter(host, "input")
    if not isinstance(given, str | list):
        return invalid_value(host, "input", "Invalid type for 'input': expected a string or an array of items.")
    raws = given if isinstance(given, list) else []
    if not all(isinstance(raw, dict) for raw in raws):
        return invalid_value(host, "input", "Invalid type for 'input': expected an array of objects.")
    return next((fault for item in request.input for fault in _faults(request, item)), None)


def bad_ids(request: Request) -> Verdict | None:
    """Refuse ids that cannot be those of their items."""
    host = request.profile.host
    for item in request.input if host.strict_ids else ():
        prefix, name = _PREFIXES.get(item.kind, ""), f"input[{item.index}].id"
        if item.id and not item.id.startswith(prefix):
            message = f"Invalid '{name}': '{item.id}'. Expected an ID that begins with '{prefix}'."
            return invalid_value(host, name, message)
        if len(item.id) > _LONGEST_ID:
            message = (
                f"Invalid '{name}': string too long. Expected a string with maximum length {_LONGEST_ID}, but got a "
                f"string with length {len(item.id)} instead."
            )
            return refuse(host, message, f"bad {name}", param=name, code="string_above_max_length")
    return None


def duplicates(request: Request) -> Verdict | None:
    """Refuse one item twice: the same id, unless both have encrypted content and it differs."""
    seen: dict[str, set[str]] = {}
    carriers: set[str] = set()
    for item in request.items:
        earlier = seen.setdefault(item.id, set()) if item.id else set[str]()
        # xAI gives two reasoning items of one response the same id, with different contents.
        if (earlier and not (item.carrier and earlier.isdisjoint({"", item.carrier}))) or item.carrier in carriers:
            host = request.profile.host
            named = f"Duplicate item found with id {item.id}" if item.id else "Duplicate item found"
            message = f"{named}. Remove duplicate items from your input and try again."
            return refuse_upstream(host, message, f"duplicate at input[{item.index}]", param="input")
        earlier.add(item.carrier)
        if item.carrier:
            carriers.add(item.carrier)
    return None


def unpaired_calls(request: Request) -> Verdict | None:
    """Refuse calls without an output, and outputs without a call before them."""
    host = request.profile.host
    called: dict[str, bool] = {}
    for item in request.items:
        if item.kind == "function_call":
            called.setdefault(item.call_id, False)
        elif item.kind == "function_call_output":
            if item.call_id not in called:
                message = f"No tool call found for function call output with call_id {item.call_id}."
                return refuse(host, message, f"output without a call at input[{item.index}]", param="input")
            called[item.call_id] = True
    unanswered = next((call for call, answered in called.items() if not answered), None)
    if unanswered is None:
        return None
    message = f"No tool output found for function call {unanswered}."
    return refuse(host, message, f"call without an output: {unanswered}", param="input")


def split_calls(request: Request) -> Verdict | None:
    """Refuse an assistant item between two calls, where calls are merged into one message (text unconfirmed)."""
    host = request.profile.host
    open_call = between = False
    for item in request.items if host.merges_calls else ():
        if item.kind == "function_call":
            if open_call and between:
                message = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
                return refuse(host, f"{message} 'tool_call_id'.", f"split calls at input[{item.index}]")
            open_call, between = True, False
        elif item.said:
            between = True
        else:
            open_call = between = False
    return None


def _faults(request: Request, item: Item) -> Iterator[Verdict]:
    host, place = request.profile.host, f"input[{item.index}]"
    if item.kind in host.refused_items:
        yield refuse(host, f'{place}.type "{item.kind}" is not a valid input item type', f"{item.kind} at {place}")
    fields = _FIELDS.get(item.kind)
    if fields is None:
        if item.kind not in _OTHER_TYPES:
            message = f"Invalid value: '{item.kind}'. Supported values are: {', '.join(map(repr, _FIELDS))}."
            yield invalid_value(host, f"{place}.type", message)
        return
    extra = host.extra_fields if item.kind == "reasoning" else frozenset[str]()
    extra |= _ON_ANY_ITEM if host.takes_passthrough else frozenset[str]()
    for name in item.raw:
        if name not in fields | extra:
            yield unknown_parameter(host, f"{place}.{name}")
    if host.status_refused and item.kind in ("reasoning", "message") and "status" in item.raw:
        yield unknown_parameter(host, f"{place}.status")
    check = _CHECKS.get(item.kind)
    if check is not None:
        yield from check(request, item, place)


def _message(request: Request, item: Item, place: str) -> Iterator[Verdict]:
    host = request.profile.host
    if item.raw.get("role") not in _ROLES:
        yield invalid_value(host, f"{place}.role", f"Invalid value: '{item.raw.get('role')}'.")
    if not isinstance(item.raw.get("content"), str | list):
        yield missing_parameter(host, f"{place}.content")
    allowed = ("output_text", "refusal") if item.raw.get("role") == "assistant" else ("input_text",)
    for number, part in enumerate(as_list(item.raw.get("content"))):
        kind = as_text(as_object(part).get("type"))
        if kind.endswith("_text") and kind not in allowed:
            message = f"Invalid value: '{kind}'. Supported values are: {' and '.join(map(repr, allowed))}."
            yield invalid_value(host, f"{place}.content[{number}]", message)
    if item.raw.get("phase") not in (None, "commentary", "final_answer"):
        yield invalid_value(host, f"{place}.phase", f"Invalid value: '{item.raw.get('phase')}'.")


def _reasoning(request: Request, item: Item, place: str) -> Iterator[Verdict]:
    host = request.profile.host
    if not isinstance(item.raw.get("summary"), list):
        yield missing_parameter(host, f"{place}.summary")
    content = as_list(item.raw.get("content"))
    if host.no_raw and content:
        message = (
            f"Invalid '{place}.content': array too long. Expected an array with maximum length 0, but got an array "
            f"with length {len(content)} instead."
        )
        yield refuse(
            host, message, f"raw reasoning at {place}", param=f"{place}.content", code="array_above_max_length"
        )


def _call(request: Request, item: Item, place: str) -> Iterator[Verdict]:
    for name in ("call_id", "name", "arguments"):
        if not isinstance(item.raw.get(name), str):
            yield missing_parameter(request.profile.host, f"{place}.{name}")


def _output(request: Request, item: Item, place: str) -> Iterator[Verdict]:
    if not item.call_id:
        yield missing_parameter(request.profile.host, f"{place}.call_id")
    if not isinstance(item.raw.get("output"), str | list):
        yield missing_parameter(request.profile.host, f"{place}.output")


def _update(request: Request, item: Item, place: str) -> Iterator[Verdict]:
    for name in as_object(item.raw.get("reasoning")):
        if name != "effort":
            yield unknown_parameter(request.profile.host, f"{place}.reasoning.{name}")
    for name in as_object(item.raw.get("text")):
        if name != "format":
            yield unknown_parameter(request.profile.host, f"{place}.text.{name}")


_CHECKS: Mapping[str, Callable[[Request, Item, str], Iterator[Verdict]]] = MappingProxyType(
    {
        "message": _message,
        "reasoning": _reasoning,
        "function_call": _call,
        "function_call_output": _output,
        "configuration_update": _update,
    }
)
