"""The members that the compatible endpoint knows; all others are refused by name, as Google's parser does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..gemini.errors import refuse, refuse_name
from ..jsons import as_list, as_object, as_text
from ..verdict import Verdict


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BODY = _names(
    "model messages tools tool_choice parallel_tool_calls stream stream_options temperature top_p max_tokens "
    "max_completion_tokens n stop seed presence_penalty frequency_penalty logprobs top_logprobs reasoning_effort "
    "response_format modalities service_tier user extra_body"
)
_MESSAGE = _names("role content name tool_calls tool_call_id refusal audio annotations extra_content thought_signature")
_CALL = _names("id type function index extra_content")
ROLES = ("system", "developer", "user", "assistant", "tool")
BAD_ROLE = "Invalid role '{role}' at messages[{index}]."  # text unconfirmed
BAD_CALL = "Invalid tool call at messages[{index}]."  # text unconfirmed
NO_MESSAGES = "messages must not be empty."  # text unconfirmed


def malformed(body: Mapping[str, object]) -> Verdict | None:
    """Refuse unknown members, roles that do not exist, and calls that are none."""
    return next(_faults(body), None)


def _faults(body: Mapping[str, object]) -> Iterator[Verdict]:
    yield from (refuse_name(name, "") for name in body if name not in _BODY)
    messages = as_list(body.get("messages"))
    if not messages:
        yield refuse(NO_MESSAGES, "no messages")
    for index, message in enumerate(map(as_object, messages)):
        yield from (refuse_name(name, f"messages[{index}]") for name in message if name not in _MESSAGE)
        role = as_text(message.get("role"))
        if role not in ROLES:
            yield refuse(BAD_ROLE.format(role=role, index=index), f"bad role at messages[{index}]")
        for place, call in enumerate(map(as_object, as_list(message.get("tool_calls")))):
            inside = f"messages[{index}].tool_calls[{place}]"
            yield from (refuse_name(name, inside) for name in call if name not in _CALL)
            function = as_object(call.get("function"))
            if not as_text(function.get("name")) or not isinstance(function.get("arguments"), str):
                yield refuse(BAD_CALL.format(index=index), f"bad call at {inside}")
