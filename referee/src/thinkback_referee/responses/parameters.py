"""Are the parameters beside the input ones that the host and the model take?"""

from __future__ import annotations

from ..jsons import as_list, as_object, as_text
from ..verdict import Verdict
from .refusals import (
    invalid_value,
    missing_parameter,
    refuse,
    refuse_detail,
    unknown_parameter,
    unsupported_parameter,
    unsupported_value,
)
from .request import Request

# Texts unconfirmed.
TWO_CONVERSATIONS = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'."
STATELESS = "previous_response_id is not supported"
OWN = (TWO_CONVERSATIONS, STATELESS)
_KNOWN = frozenset(
    {
        "background", "client_metadata", "context_management", "conversation", "frequency_penalty", "include", "input",
        "instructions",
        "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation", "parallel_tool_calls",
        "presence_penalty", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options",
        "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "stop", "store", "stream",
        "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
    }
)  # fmt: skip
_REASONING = frozenset({"effort", "summary", "generate_summary", "context", "mode"})
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


def session_rules(request: Request) -> Verdict | None:
    """ChatGPT's backend: what it asks for, in the order in which it asks, and what it does not take."""
    body = request.body
    if not request.profile.host.session_only:
        return None
    if not as_text(body.get("instructions")):
        return refuse_detail("Instructions are required", "no instructions")
    if body.get("store") is not False:
        return refuse_detail("Store must be set to false", "store is not false")
    if body.get("stream") is not True:
        return refuse_detail("Stream must be set to true", "stream is not true")
    if not isinstance(body.get("input"), list):
        return refuse_detail("Input must be a list", "input is not a list")
    for name in sorted(request.profile.host.refused_parameters & body.keys()):
        return refuse_detail(f"Unsupported parameter: {name}", f"unsupported {name}")
    return None


def unknown(request: Request) -> Verdict | None:
    """Refuse parameters that the API does not have."""
    known = _ROUTER_REASONING if request.profile.host.shape == "openrouter" else _REASONING
    for name in request.body:
        if name not in _KNOWN:
            return unknown_parameter(request.profile.host, name)
    for name in request.reasoning:
        if name not in known:
            return unknown_parameter(request.profile.host, f"reasoning.{name}")
    return None


def bad_tools(request: Request) -> Verdict | None:
    """Refuse functions without a name at the top level, as chat completions have them."""
    for index, tool in enumerate(as_list(request.body.get("tools"))):
        if as_object(tool).get("type") == "function" and not as_text(as_object(tool).get("name")):
            return missing_parameter(request.profile.host, f"tools[{index}].name")
    return None


def bad_reasoning(request: Request) -> Verdict | None:
    """Refuse an effort, summary, context or mode that the model does not take."""
    profile = request.profile
    effort = request.reasoning.get("effort")
    if effort is not None and not profile.efforts:
        return unsupported_parameter(profile.host, "reasoning.effort")
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
            return unsupported_parameter(profile.host, f"reasoning.{name}")
        if value is not None and value not in allowed:
            return unsupported_value(profile.host, f"reasoning.{name}", value, profile.model, allowed)
    return None


def sampling(request: Request) -> Verdict | None:
    """Refuse sampling parameters while the model reasons."""
    host = request.profile.host
    for name in sorted(host.sampling & request.body.keys()) if request.thinks else ():
        if request.body[name] is not None:
            return unsupported_parameter(host, name)
    return None


def bad_include(request: Request) -> Verdict | None:
    """Refuse to include what there is not."""
    for index, name in enumerate(as_list(request.body.get("include"))):
        if name not in _INCLUDES:
            allowed = ", ".join(f"'{word}'" for word in _INCLUDES)
            message = f"Invalid value: '{name}'. Supported values are: {allowed}."
            return invalid_value(request.profile.host, f"include[{index}]", message)
    return None


def bad_previous(request: Request) -> Verdict | None:
    """Refuse to continue a response that is not stored, or two conversations at once."""
    host, previous = request.profile.host, request.body.get("previous_response_id")
    if previous is None:
        return None
    if request.body.get("conversation") is not None:
        return refuse(host, TWO_CONVERSATIONS, "two conversations", code="mutually_exclusive_parameters")
    if not host.keeps_state:
        return refuse(host, STATELESS, "stateless host", param="previous_response_id")
    if request.ledger.kept(as_text(previous), host.name, request.account) is None:
        message = f"Previous response with id '{previous}' not found."
        return refuse(
            host, message, "unknown response", param="previous_response_id", code="previous_response_not_found"
        )
    return None
