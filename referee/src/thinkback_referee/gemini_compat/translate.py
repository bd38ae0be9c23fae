"""A chat request as the generateContent request that Google makes of it, and the members that this endpoint knows.

All others are refused by name, as Google's parser does. The judge of generateContent then has the last word on
signatures, controls and pairing, as it does at Google.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from ..gemini.errors import refuse, refuse_name
from ..gemini.profiles import BOTH_CONTROLS, Profile
from ..jsons import JsonObject, as_list, as_object, as_objects, as_text, names
from ..verdict import Verdict

_BODY = names(
    "model messages tools tool_choice parallel_tool_calls stream stream_options temperature top_p max_tokens "
    "max_completion_tokens n stop seed presence_penalty frequency_penalty logprobs top_logprobs reasoning_effort "
    "response_format modalities service_tier user extra_body"
)
_MESSAGE = names("role content name tool_calls tool_call_id refusal audio annotations extra_content thought_signature")
_CALL = names("id type function index extra_content")
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
        for place, call in enumerate(as_objects(message.get("tool_calls"))):
            inside = f"messages[{index}].tool_calls[{place}]"
            yield from (refuse_name(name, inside) for name in call if name not in _CALL)
            function = as_object(call.get("function"))
            if not as_text(function.get("name")) or not isinstance(function.get("arguments"), str):
                yield refuse(BAD_CALL.format(index=index), f"bad call at {inside}")


BAD_EFFORT = "Invalid reasoning_effort: {effort}."  # text unconfirmed
OWN = (BAD_ROLE, BAD_CALL, NO_MESSAGES, BAD_EFFORT)
# What the documentation equates efforts with, for models that know budgets only.
_BUDGETS: Mapping[str, int] = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
_LEVELS = ("minimal", "low", "medium", "high", "xhigh")
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def native_body(profile: Profile, body: Mapping[str, object]) -> JsonObject | Verdict:
    """The body for the native judge, or the refusal of controls that exclude each other."""
    config = _thinking(profile, body)
    if isinstance(config, Verdict):
        return config
    native: JsonObject = {"contents": _contents(as_list(body.get("messages")))}
    functions = [_declaration(as_object(as_object(tool).get("function"))) for tool in as_list(body.get("tools"))]
    if functions:
        native["tools"] = [{"functionDeclarations": functions}]
    if mode := _mode(body.get("tool_choice")):
        native["toolConfig"] = {"functionCallingConfig": mode}
    if config:
        native["generationConfig"] = {"thinkingConfig": config}
    return native


def signature_of(owner: Mapping[str, object]) -> str:
    """The signature on a message or a call, under either of its names."""
    google = as_object(as_object(owner.get("extra_content")).get("google"))
    return as_text(google.get("thought_signature")) or as_text(owner.get("thought_signature"))


def _thinking(profile: Profile, body: Mapping[str, object]) -> JsonObject | Verdict:
    google = as_object(as_object(body.get("extra_body")).get("google"))
    config = dict(as_object(google.get("thinking_config")))
    effort = body.get("reasoning_effort")
    if effort is None:
        return config
    if config.keys() & {"thinking_budget", "thinkingBudget", "thinking_level", "thinkingLevel"}:
        return refuse(BOTH_CONTROLS, "both thinking controls")  # text unconfirmed for this endpoint
    if profile.levels and effort in _LEVELS:
        return {**config, "thinkingLevel": as_text(effort).upper()}
    if not isinstance(effort, str) or effort not in _BUDGETS:
        return refuse(BAD_EFFORT.format(effort=effort), "bad reasoning_effort")
    return {**config, "thinkingBudget": _BUDGETS[effort]}


def _contents(messages: object) -> list[JsonObject]:
    contents: list[JsonObject] = []
    waiting: list[tuple[str, str]] = []
    for message in as_objects(messages):
        match as_text(message.get("role")):
            case "assistant":
                calls = as_objects(message.get("tool_calls"))
                waiting = [(as_text(call.get("id")), _name(call)) for call in calls]
                contents.append({"role": "model", "parts": _model_parts(message, calls)})
            case "tool":
                answer = {"functionResponse": _response(message, waiting)}
                if contents and contents[-1].get("role") == "function":
                    contents[-1] = {"role": "function", "parts": [*as_list(contents[-1]["parts"]), answer]}
                else:
                    contents.append({"role": "function", "parts": [answer]})
            case "user":
                contents.append({"role": "user", "parts": _parts(message.get("content"))})
    return contents


def _model_parts(message: Mapping[str, object], calls: list[Mapping[str, object]]) -> list[JsonObject]:
    parts = _parts(message.get("content")) if message.get("content") or not calls else []
    own = signature_of(message)
    signatures = [signature_of(call) for call in calls]
    if signatures and not signatures[0]:
        signatures[0] = own
    elif own and not calls:
        parts[-1]["thoughtSignature"] = own
    for call, signature in zip(calls, signatures, strict=True):
        arguments = _arguments(as_text(as_object(call.get("function")).get("arguments")))
        tied = {"id": call["id"]} if call.get("id") else {}
        made: JsonObject = {"functionCall": {"name": _name(call), "args": arguments, **tied}}
        parts.append({**made, "thoughtSignature": signature} if signature else made)
    return parts


def _parts(content: object) -> list[JsonObject]:
    if not isinstance(content, list):
        return [{"text": as_text(content)}]
    items = [as_object(item) for item in content]
    return [
        {"text": as_text(item.get("text"))} if item.get("type") == "text" else {"fileData": dict(item)}
        for item in items
    ]


def _response(message: Mapping[str, object], waiting: list[tuple[str, str]]) -> JsonObject:
    """The answer to the call of that id; where calls have no ids (2.5), to the first call still waiting."""
    identifier = as_text(message.get("tool_call_id"))
    at = next((index for index, (known, _) in enumerate(waiting) if known == identifier), None)
    name = waiting.pop(at)[1] if at is not None else as_text(message.get("name"))
    text = "".join(as_text(part.get("text")) for part in _parts(message.get("content")))
    return {"name": name, "response": {"result": text}, **({"id": identifier} if identifier else {})}


def _declaration(function: Mapping[str, object]) -> JsonObject:
    return {
        "name": as_text(function.get("name")),
        "description": as_text(function.get("description")),
        "parametersJsonSchema": dict(as_object(function.get("parameters"))),
    }


def _mode(choice: object) -> JsonObject | None:
    if isinstance(choice, str):
        return {"mode": _MODES.get(choice, "AUTO")}
    named = as_object(as_object(choice).get("function")).get("name")
    return {"mode": "ANY", "allowedFunctionNames": [named]} if named else None


def _name(call: Mapping[str, object]) -> str:
    return as_text(as_object(call.get("function")).get("name"))


def _arguments(text: str) -> object:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return {}
