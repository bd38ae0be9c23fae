"""The judge: a request to the verdict. Pure; no I/O. The first refusal in the order of ``_faults`` is the verdict.

First whether the input is well formed (types and fields of items, ids, duplicates, outputs of calls), then whether the
parameters are ones that host and model take; ``replay`` has the rules about reasoning that comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from ..jsons import as_list, as_object, as_text, names
from ..verdict import Verdict, first
from . import replay
from .profiles import Host
from .refusals import (
    invalid_value,
    missing_parameter,
    refuse,
    refuse_detail,
    refuse_upstream,
    unknown_parameter,
    unsupported_parameter,
    unsupported_value,
)
from .request import Item, Request

_FIELDS: MappingProxyType[str, frozenset[str]] = MappingProxyType(
    {
        "message": names("type id role content status phase"),
        "reasoning": names("type id summary content encrypted_content status"),
        "function_call": names("type id call_id name arguments status namespace caller"),
        "function_call_output": names("type id call_id output status caller"),
        "item_reference": names("type id"),
        "configuration_update": names("type id reasoning text"),
    }
)
# What Codex puts on any item, and OpenAI takes.
_ON_ANY_ITEM = names("internal_chat_message_metadata_passthrough")
# Their insides are not looked at.
_OTHER_TYPES = names(
    "additional_tools apply_patch_call apply_patch_call_output code_interpreter_call compaction computer_call "
    "computer_call_output custom_tool_call custom_tool_call_output file_search_call image_generation_call "
    "local_shell_call local_shell_call_output mcp_approval_request mcp_approval_response mcp_call mcp_list_tools "
    "program program_output shell_call shell_call_output tool_search_call tool_search_output web_search_call"
)
_ROLES = ("user", "assistant", "system", "developer")
_PREFIXES = MappingProxyType({"message": "msg", "reasoning": "rs", "function_call": "fc"})
_LONGEST_ID = 64
# Texts unconfirmed.
TWO_CONVERSATIONS = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'."
STATELESS = "previous_response_id is not supported"
OWN = (TWO_CONVERSATIONS, STATELESS)
_KNOWN = names(
    "access_programs background background_options client_metadata context_management conversation "
    "frequency_penalty include input instructions "
    "max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls presence_penalty "
    "previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning "
    "safety_identifier service_tier stop store stream stream_options temperature text tool_choice tools top_logprobs "
    "top_p truncation user"
)
_REASONING = names("effort summary generate_summary context mode")
_ROUTER_REASONING = _REASONING | {"max_tokens", "enabled", "exclude"}
_SUMMARIES = ("auto", "concise", "detailed")
_INCLUDES = (
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
)


def judge(request: Request) -> Verdict:
    """The verdict on a request; reads the ledger and changes nothing."""
    return first(_faults(request))


def _faults(request: Request) -> Iterator[Verdict]:
    yield from session_rules(request)
    yield from unknown(request)
    yield from bad_items(request)
    yield from bad_ids(request)
    yield from bad_tools(request)
    yield from bad_reasoning(request)
    yield from sampling(request)
    yield from bad_include(request)
    yield from bad_previous(request)
    yield from duplicates(request)
    yield from replay.unresolved(request)
    yield from unpaired_calls(request)
    yield from split_calls(request)
    yield from replay.unreadable(request)
    yield from replay.foreign_ids(request)
    yield from replay.without_follower(request)
    yield from replay.without_reasoning(request)
    yield from replay.altered_text(request)


def bad_items(request: Request) -> Iterator[Verdict]:
    """Refuse items that are no items, or have fields that the host does not know."""
    given = request.body.get("input")
    host = request.profile.host
    if given is None:
        yield missing_parameter(host, "input")
    if not isinstance(given, str | list):
        yield invalid_value(host, "input", "Invalid type for 'input': expected a string or an array of items.")
    raws = given if isinstance(given, list) else []
    if not all(isinstance(raw, dict) for raw in raws):
        yield invalid_value(host, "input", "Invalid type for 'input': expected an array of objects.")
    for item in request.input:
        yield from _item_faults(request, item)


def bad_ids(request: Request) -> Iterator[Verdict]:
    """Refuse ids that cannot be those of their items."""
    host = request.profile.host
    for item in request.input if host.strict_ids else ():
        prefix, name = _PREFIXES.get(item.kind, ""), f"input[{item.index}].id"
        if item.id and not item.id.startswith(prefix):
            message = f"Invalid '{name}': '{item.id}'. Expected an ID that begins with '{prefix}'."
            yield invalid_value(host, name, message)
        if len(item.id) > _LONGEST_ID:
            message = (
                f"Invalid '{name}': string too long. Expected a string with maximum length {_LONGEST_ID}, but got a "
                f"string with length {len(item.id)} instead."
            )
            yield refuse(host, message, f"bad {name}", param=name, code="string_above_max_length")


def duplicates(request: Request) -> Iterator[Verdict]:
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
            yield refuse_upstream(host, message, f"duplicate at input[{item.index}]", param="input")
        earlier.add(item.carrier)
        if item.carrier:
            carriers.add(item.carrier)


def unpaired_calls(request: Request) -> Iterator[Verdict]:
    """Refuse calls without an output, and outputs without a call before them."""
    host = request.profile.host
    called: dict[str, bool] = {}
    for item in request.items:
        if item.kind == "function_call":
            called.setdefault(item.call_id, False)
        elif item.kind == "function_call_output":
            if item.call_id not in called:
                message = f"No tool call found for function call output with call_id {item.call_id}."
                yield refuse(host, message, f"output without a call at input[{item.index}]", param="input")
            called[item.call_id] = True
    unanswered = next((call for call, answered in called.items() if not answered), None)
    if unanswered is None:
        return
    message = f"No tool output found for function call {unanswered}."
    yield refuse(host, message, f"call without an output: {unanswered}", param="input")


def split_calls(request: Request) -> Iterator[Verdict]:
    """Refuse an assistant item between two calls, where calls are merged into one message (text unconfirmed)."""
    host = request.profile.host
    open_call = between = False
    for item in request.items if host.merges_calls else ():
        if item.kind == "function_call":
            if open_call and between:
                message = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
                yield refuse(host, f"{message} 'tool_call_id'.", f"split calls at input[{item.index}]")
            open_call, between = True, False
        elif item.said:
            between = True
        else:
            open_call = between = False


def _item_faults(request: Request, item: Item) -> Iterator[Verdict]:
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
    match item.kind:
        case "message":
            yield from _message_faults(host, item, place)
        case "reasoning":
            yield from _reasoning_faults(host, item, place)
        case "function_call":
            for name in ("call_id", "name", "arguments"):
                if not isinstance(item.raw.get(name), str):
                    yield missing_parameter(host, f"{place}.{name}")
        case "function_call_output":
            if not item.call_id:
                yield missing_parameter(host, f"{place}.call_id")
            if not isinstance(item.raw.get("output"), str | list):
                yield missing_parameter(host, f"{place}.output")
        case "configuration_update":
            for parent, known in (("reasoning", "effort"), ("text", "format")):
                for name in as_object(item.raw.get(parent)):
                    if name != known:
                        yield unknown_parameter(host, f"{place}.{parent}.{name}")


def _message_faults(host: Host, item: Item, place: str) -> Iterator[Verdict]:
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


def _reasoning_faults(host: Host, item: Item, place: str) -> Iterator[Verdict]:
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


def session_rules(request: Request) -> Iterator[Verdict]:
    """ChatGPT's backend: what it asks for, in the order in which it asks, and what it does not take."""
    body = request.body
    if not request.profile.host.session_only:
        return
    if not as_text(body.get("instructions")):
        yield refuse_detail("Instructions are required", "no instructions")
    if body.get("store") is not False:
        yield refuse_detail("Store must be set to false", "store is not false")
    if body.get("stream") is not True:
        yield refuse_detail("Stream must be set to true", "stream is not true")
    if not isinstance(body.get("input"), list):
        yield refuse_detail("Input must be a list", "input is not a list")
    for name in sorted(request.profile.host.refused_parameters & body.keys()):
        yield refuse_detail(f"Unsupported parameter: {name}", f"unsupported {name}")


def unknown(request: Request) -> Iterator[Verdict]:
    """Refuse parameters that the API does not have."""
    known = _ROUTER_REASONING if request.profile.host.shape == "openrouter" else _REASONING
    for name in request.body:
        if name not in _KNOWN:
            yield unknown_parameter(request.profile.host, name)
    for name in request.reasoning:
        if name not in known:
            yield unknown_parameter(request.profile.host, f"reasoning.{name}")


def bad_tools(request: Request) -> Iterator[Verdict]:
    """Refuse functions without a name at the top level, as chat completions have them."""
    for index, tool in enumerate(as_list(request.body.get("tools"))):
        if as_object(tool).get("type") == "function" and not as_text(as_object(tool).get("name")):
            yield missing_parameter(request.profile.host, f"tools[{index}].name")


def bad_reasoning(request: Request) -> Iterator[Verdict]:
    """Refuse an effort, summary, context or mode that the model does not take."""
    profile = request.profile
    effort = request.reasoning.get("effort")
    if effort is not None and not profile.efforts:
        yield unsupported_parameter(profile.host, "reasoning.effort")
    choices = {
        "effort": profile.efforts,
        "summary": _SUMMARIES,
        "generate_summary": _SUMMARIES,
        "context": profile.contexts,
        "mode": profile.modes,
    }
    for name, allowed in choices.items():
        value = request.reasoning.get(name)
        if value is not None and not allowed:
            yield unsupported_parameter(profile.host, f"reasoning.{name}")
        if value is not None and value not in allowed:
            yield unsupported_value(profile.host, f"reasoning.{name}", value, profile.model, allowed)


def sampling(request: Request) -> Iterator[Verdict]:
    """Refuse sampling parameters while the model reasons."""
    host = request.profile.host
    for name in sorted(host.sampling & request.body.keys()) if request.thinks else ():
        if request.body[name] is not None:
            yield unsupported_parameter(host, name)


def bad_include(request: Request) -> Iterator[Verdict]:
    """Refuse to include what there is not."""
    for index, name in enumerate(as_list(request.body.get("include"))):
        if name not in _INCLUDES:
            allowed = ", ".join(f"'{word}'" for word in _INCLUDES)
            message = f"Invalid value: '{name}'. Supported values are: {allowed}."
            yield invalid_value(request.profile.host, f"include[{index}]", message)


def bad_previous(request: Request) -> Iterator[Verdict]:
    """Refuse to continue a response that is not stored, or two conversations at once."""
    host, previous = request.profile.host, request.body.get("previous_response_id")
    if previous is None:
        return
    if request.body.get("conversation") is not None:
        yield refuse(host, TWO_CONVERSATIONS, "two conversations", code="mutually_exclusive_parameters")
    if not host.keeps_state:
        yield refuse(host, STATELESS, "stateless host", param="previous_response_id")
    if request.ledger.kept(as_text(previous), host.name, request.account) is None:
        message = f"Previous response with id '{previous}' not found."
        yield refuse(
            host, message, "unknown response", param="previous_response_id", code="previous_response_not_found"
        )
