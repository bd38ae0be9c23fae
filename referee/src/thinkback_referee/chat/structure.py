"""Is the request well formed? Shapes of messages and tools, and that every call is answered once, directly after.

Nothing here looks at what reasoning says, only at where a field may stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..jsons import as_list, as_object, as_text
from ..verdict import Verdict
from .profiles import Profile
from .refusals import refuse, refuse_field
from .request import Request

UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: {ids}"
)
STRAY = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
NO_CONTENT = "Invalid assistant message: content or tool_calls must be set"

_CALL_KEYS = frozenset({"id", "type", "function", "index"})
_REASONING_FIELDS = ("reasoning_content", "reasoning")


def malformed(profile: Profile, body: Mapping[str, object]) -> Verdict | None:
    """Refuse bodies whose messages or tools do not have the shape of a chat request."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return refuse(profile.host, "'messages' must be an array", "messages is not an array")
    if not messages:
        return refuse(profile.host, "Empty input messages", "empty messages")
    if not isinstance(body.get("stream", False), bool):
        return refuse(profile.host, "'stream' must be a boolean", "stream is not a boolean")
    return _first(_tool_faults(profile, body)) or _first(_message_faults(profile, messages))


def unpaired(request: Request) -> Verdict | None:
    """Refuse calls without exactly one answer directly after their message, and answers without a call."""
    host = request.profile.host
    open_calls: list[str] = []
    owner = 0
    for message in request.messages:
        if message.role == "tool":
            if message.call_id not in open_calls:
                return refuse(host, STRAY, f"answer without a call at messages[{message.index}]")
            open_calls.remove(message.call_id)
            continue
        if open_calls:
            break
        owner, open_calls = message.index, list(message.calls)
        if len(set(open_calls)) < len(open_calls):
            return refuse(host, "Duplicate tool call id", f"repeated call id at messages[{owner}]")
    if open_calls:
        return refuse(host, UNANSWERED.format(ids=", ".join(open_calls)), f"unanswered call at messages[{owner}]")
    return None


def ends_wrong(request: Request) -> Verdict | None:
    """Refuse a conversation whose last word is the assistant's, unless it is marked as a prefix to continue."""
    last = request.messages[-1]
    if last.role == "assistant" and last.raw.get("prefix") is not True and last.raw.get("partial") is not True:
        return refuse(request.profile.host, request.profile.host.last_role, "last message is an assistant message")
    return None


def _first(faults: Iterator[Verdict]) -> Verdict | None:
    return next(faults, None)


def _tool_faults(profile: Profile, body: Mapping[str, object]) -> Iterator[Verdict]:
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        yield refuse(profile.host, "'tools' must be an array", "tools is not an array")
    for index, tool in enumerate(as_list(tools)):
        kind = as_object(tool).get("type")
        if kind != "function":
            yield refuse(profile.host, f"unknown variant `{kind}`, expected `function`", f"bad type of tools[{index}]")
        if not as_text(as_object(as_object(tool).get("function")).get("name")):
            yield refuse(profile.host, f"tools[{index}].function: missing field `name`", f"unnamed tools[{index}]")


def _message_faults(profile: Profile, messages: list[object]) -> Iterator[Verdict]:
    for index, value in enumerate(messages):
        message = as_object(value)
        role = as_text(message.get("role"))
        if role not in profile.host.roles:
            allowed = ", ".join(f"`{name}`" for name in profile.host.roles)
            text = f"messages[{index}].role: unknown variant `{role}`, expected one of {allowed}"
            yield refuse(profile.host, text, f"bad role at messages[{index}]")
        yield from _field_faults(profile, index, role, message)
        yield from _content_faults(profile, index, role, message)
        yield from _call_faults(profile, index, role, message)


def _field_faults(profile: Profile, index: int, role: str, message: Mapping[str, object]) -> Iterator[Verdict]:
    host = profile.host
    for name, value in message.items():
        if name in profile.forbids and profile.forbidden_text:
            if value is not None:
                text = profile.forbidden_text.format(model=profile.model)
                yield refuse(host, text, f"unexpected {name} at messages[{index}]")
        elif name not in host.fields - profile.forbids:
            yield refuse_field(host, index, role, name, value)
        elif name in _REASONING_FIELDS and role != "assistant":
            yield refuse(host, f"{name} is for assistant messages only", f"misplaced {name} at messages[{index}]")
        elif name in _REASONING_FIELDS and not isinstance(value, str | None):
            yield refuse(host, f"messages[{index}].{name}: expected a string", f"bad {name} at messages[{index}]")


def _content_faults(profile: Profile, index: int, role: str, message: Mapping[str, object]) -> Iterator[Verdict]:
    content = message.get("content")
    place = f"messages[{index}]"
    if content is None and role == "assistant":
        if not message.get("tool_calls"):
            yield refuse(profile.host, NO_CONTENT, f"no content at {place}")
    elif not isinstance(content, str | list):
        yield refuse(profile.host, f"{place}: missing field `content`", f"no content at {place}")
    parts = [as_object(part) for part in as_list(content)]
    if not all(as_text(part.get("type")) for part in parts):
        yield refuse(profile.host, f"{place}.content: missing field `type`", f"bad content at {place}")
    if parts and not message.get("tool_calls") and all(part.get("type") == "thinking" for part in parts):
        yield refuse(profile.host, NO_CONTENT, f"thinking alone at {place}")


def _call_faults(profile: Profile, index: int, role: str, message: Mapping[str, object]) -> Iterator[Verdict]:
    place = f"messages[{index}]"
    calls = message.get("tool_calls")
    if calls is not None and (role != "assistant" or not isinstance(calls, list)):
        yield refuse(profile.host, f"{place}.tool_calls: unexpected value", f"bad tool_calls at {place}")
    for call in as_list(calls):
        if not _is_call(as_object(call)):
            yield refuse(profile.host, f"{place}.tool_calls: invalid tool call", f"bad tool_calls at {place}")
    if role == "tool" and not as_text(message.get("tool_call_id")):
        yield refuse(profile.host, f"{place}: missing field `tool_call_id`", f"answer without a call at {place}")


def _is_call(call: Mapping[str, object]) -> bool:
    function = as_object(call.get("function"))
    return (
        call.keys() <= _CALL_KEYS
        and call.get("type", "function") == "function"
        and bool(as_text(call.get("id")))
        and bool(as_text(function.get("name")))
        and isinstance(function.get("arguments"), str)
    )
