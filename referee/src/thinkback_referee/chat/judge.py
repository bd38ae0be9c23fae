"""The judge of chat completions: a request body, the model it is meant for and the ledger, to a verdict. Pure; no I/O.

The checks run in their order below and the first refusal is the verdict, as at the providers: shape before pairs,
parameters before reasoning. *Missing* reasoning is the provider's rule, and so is the placeholder that is taken
instead: providers cannot tell what was lost. *Changed*, *foreign* and *repeated* are stricter than they are; the ledger
can tell. A message that the ledger does not know was made by the client, or minted elsewhere, and may carry any text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..jsons import as_object, as_objects, as_text, names
from ..messages import Unpaired, unpaired_ids
from ..verdict import Verdict, first
from .ledger import Ledger, Mint
from .profiles import GROQ, MISTRAL, NO_INPUT_REASONING, OPENAI, Profile, Switch
from .refusals import refuse, refuse_field
from .request import Message, Request

UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: {ids}"
)
STRAY = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
NO_CONTENT = "Invalid assistant message: content or tool_calls must be set"
# Texts unconfirmed.
TWO_SWITCHES = "reasoning_format and include_reasoning are mutually exclusive"
NOT_RAW = "reasoning_format raw is not supported with tools or JSON mode"
FOREIGN = "The reasoning of messages[{index}] was issued by another provider"
REPEATED = "The reasoning of messages[{index}] repeats that of an earlier message"
# Providers cannot tell a stranger's text from their own.
OWN = (
    TWO_SWITCHES, NOT_RAW, FOREIGN, REPEATED, GROQ.changed, MISTRAL.changed, OPENAI.bad_effort, NO_INPUT_REASONING,
)  # fmt: skip

_CALL_KEYS = names("id type function index")
# What marks a place for a prompt cache: on a call where a host takes it on a message.
_MARKS = names("cache_control")
_READABLE = ("reasoning_content", "reasoning")
_FIELDS = (*_READABLE, "thinking")


def judge(profile: Profile, body: Mapping[str, object], ledger: Ledger) -> Verdict:
    """The verdict on a request to the profile's model; reads the ledger and changes nothing."""
    return first(_faults(profile, body, ledger))


def required_indices(profile: Profile, body: Mapping[str, object]) -> frozenset[int]:
    """Indices of the messages whose reasoning the provider requires back in this (well-formed) request."""
    return Request(profile, body).required


def _faults(profile: Profile, body: Mapping[str, object], ledger: Ledger) -> Iterator[Verdict]:
    yield from shape_faults(profile, body)
    request = Request(profile, body)
    yield from order_faults(request)
    yield from _tool_faults(request)
    yield from _parameter_faults(request)
    yield from _replay_faults(request, ledger)


# -- is the request well formed? -------------------------------------------------------------------------------------


def shape_faults(profile: Profile, body: Mapping[str, object]) -> Iterator[Verdict]:
    """Refusals of bodies whose messages or tools do not have the shape of a chat request.

    Nothing here looks at what reasoning says, only at where a field may stand.
    """
    host, messages, tools = profile.host, body.get("messages"), body.get("tools")
    if not isinstance(messages, list):
        yield refuse(host, "'messages' must be an array", "messages is not an array")
    if not messages:
        yield refuse(host, "Empty input messages", "empty messages")
    if not isinstance(body.get("stream", False), bool):
        yield refuse(host, "'stream' must be a boolean", "stream is not a boolean")
    if tools is not None and not isinstance(tools, list):
        yield refuse(host, "'tools' must be an array", "tools is not an array")
    for index, tool in enumerate(as_objects(tools)):
        kind = tool.get("type")
        if kind != "function":
            yield refuse(host, f"unknown variant `{kind}`, expected `function`", f"bad type of tools[{index}]")
        if not as_text(as_object(tool.get("function")).get("name")):
            yield refuse(host, f"tools[{index}].function: missing field `name`", f"unnamed tools[{index}]")
    for index, message in enumerate(as_objects(messages)):
        role = as_text(message.get("role"))
        if role not in host.roles:
            allowed = ", ".join(f"`{name}`" for name in host.roles)
            text = f"messages[{index}].role: unknown variant `{role}`, expected one of {allowed}"
            yield refuse(host, text, f"bad role at messages[{index}]")
        yield from _field_faults(profile, index, role, message)
        yield from _content_faults(profile, f"messages[{index}]", role, message)


def order_faults(request: Request) -> Iterator[Verdict]:
    """Refusals of calls without exactly one answer directly after their message, of answers without a call, and of a
    conversation whose last word is the assistant's, unless it is marked as a prefix to continue."""
    host, last = request.profile.host, request.messages[-1]
    found = unpaired_ids(
        (message.index, message.role == "tool", message.call_id, message.calls) for message in request.messages
    )
    match found:
        case Unpaired("stray", index):
            yield refuse(host, STRAY, f"answer without a call at messages[{index}]")
        case Unpaired("duplicate", index):
            yield refuse(host, "Duplicate tool call id", f"repeated call id at messages[{index}]")
        case Unpaired("unanswered", index, ids):
            yield refuse(host, UNANSWERED.format(ids=", ".join(ids)), f"unanswered call at messages[{index}]")
    if last.role == "assistant" and last.raw.get("prefix") is not True and last.raw.get("partial") is not True:
        yield refuse(host, host.last_role, "last message is an assistant message")


def _field_faults(profile: Profile, index: int, role: str, message: Mapping[str, object]) -> Iterator[Verdict]:
    host = profile.host
    for name, value in message.items():
        if name in profile.forbids and profile.forbidden_text:
            if value is not None:
                text = profile.forbidden_text.format(model=profile.model)
                yield refuse(host, text, f"unexpected {name} at messages[{index}]")
        elif name not in host.fields - profile.forbids:
            yield refuse_field(host, index, role, name, value)
        elif name in _READABLE and role != "assistant":
            yield refuse(host, f"{name} is for assistant messages only", f"misplaced {name} at messages[{index}]")
        elif name in _READABLE and not isinstance(value, str | None):
            yield refuse(host, f"messages[{index}].{name}: expected a string", f"bad {name} at messages[{index}]")


def _content_faults(profile: Profile, place: str, role: str, message: Mapping[str, object]) -> Iterator[Verdict]:
    host, content, calls = profile.host, message.get("content"), message.get("tool_calls")
    if content is None and role == "assistant":
        if not calls:
            yield refuse(host, NO_CONTENT, f"no content at {place}")
    elif not isinstance(content, str | list):
        yield refuse(host, f"{place}: missing field `content`", f"no content at {place}")
    kinds = [as_text(part.get("type")) for part in as_objects(content)]
    if not all(kinds):
        yield refuse(host, f"{place}.content: missing field `type`", f"bad content at {place}")
    if kinds and not calls and set(kinds) == {"thinking"}:
        yield refuse(host, NO_CONTENT, f"thinking alone at {place}")
    if calls is not None and (role != "assistant" or not isinstance(calls, list)):
        yield refuse(host, f"{place}.tool_calls: unexpected value", f"bad tool_calls at {place}")
    if not all(_is_call(call, host.fields & _MARKS) for call in as_objects(calls)):
        yield refuse(host, f"{place}.tool_calls: invalid tool call", f"bad tool_calls at {place}")
    if role == "tool" and not as_text(message.get("tool_call_id")):
        yield refuse(host, f"{place}: missing field `tool_call_id`", f"answer without a call at {place}")


def _is_call(call: Mapping[str, object], marks: frozenset[str]) -> bool:
    function = as_object(call.get("function"))
    return (
        call.keys() <= _CALL_KEYS | marks
        and call.get("type", "function") == "function"
        and bool(as_text(call.get("id")))
        and bool(as_text(function.get("name")))
        and isinstance(function.get("arguments"), str)
    )


# -- are the parameters ones that the model takes while it thinks? ---------------------------------------------------


def _tool_faults(request: Request) -> Iterator[Verdict]:
    """Refusals of tools at a model that has none, and of a forced call where thinking does not go with it."""
    profile, choice = request.profile, request.body.get("tool_choice")
    if request.tools and profile.tools_refused:
        yield refuse(profile.host, profile.tools_refused.format(model=profile.model), "tools are not supported")
    if request.tools and request.thinks and profile.tools_refused_while_thinking:
        text = profile.tools_refused_while_thinking.format(model=profile.model)
        yield refuse(profile.host, text, "tools while thinking")
    kind = "specified" if isinstance(choice, dict) else choice
    refused = profile.choices_refused.get(kind) if request.thinks and isinstance(kind, str) else None
    if refused:
        yield refuse(profile.host, refused, f"tool_choice {kind} while thinking")


def _parameter_faults(request: Request) -> Iterator[Verdict]:
    profile, body = request.profile, request.body
    host, temperature, effort = profile.host, body.get("temperature"), body.get("reasoning_effort")
    if request.thinks and profile.temperature is not None and temperature not in (None, profile.temperature):
        text = host.bad_temperature.format(pinned=profile.temperature, value=temperature)
        yield refuse(host, text, "temperature is pinned")
    for name in sorted(profile.unknown_parameters & body.keys()):
        yield refuse(host, host.unknown_parameter.format(name=name), f"unknown parameter {name}")
    listed = f", supported values: [{', '.join(profile.efforts)}]" if profile.efforts else ""
    if effort is not None and not (isinstance(effort, str) and (not profile.efforts or effort in profile.efforts)):
        yield refuse(host, host.bad_effort.format(effort=effort, listed=listed), "bad reasoning_effort")
    switch = as_object(body.get("thinking")).get("type") if body.get("thinking") is not None else "enabled"
    if profile.switch is Switch.THINKING and switch not in ("enabled", "disabled", "adaptive"):
        yield refuse(host, "thinking.type: unknown variant", "bad thinking.type")
    if profile.formats and body.get("reasoning_format") is not None:
        if body.get("include_reasoning") is not None:
            yield refuse(host, TWO_SWITCHES, "two reasoning switches")
        if body["reasoning_format"] == "raw" and (request.tools or body.get("response_format") is not None):
            yield refuse(host, NOT_RAW, "raw reasoning with tools")


# -- is the reasoning that comes back required, unaltered, its own, and there once? ----------------------------------


@dataclass(frozen=True, slots=True)
class Returned:
    """An assistant message that came back, and what the ledger knows of it."""

    message: Message
    values: tuple[str, ...]
    """All reasoning texts it carries; blank ones are placeholders and left out."""
    mints: tuple[Mint, ...]
    foreign: tuple[Mint, ...]


def _replay_faults(request: Request, ledger: Ledger) -> Iterator[Verdict]:
    host, profile = request.profile.host, request.profile
    returned = [
        Returned(
            message,
            tuple(value for name in _FIELDS if (value := message.reasoning(name)) and value.strip()),
            tuple(ledger.mints(host.name, message)),
            tuple(ledger.foreign(host.name, message)),
        )
        for message in request.assistants
    ]
    for back in returned:
        value = back.message.reasoning(profile.field)
        absent = value is None or not (value.strip() or value in profile.placeholders)
        if back.message.index in request.required and absent and not _had_none_to_return(back):
            yield _must_be_passed_back(request, back.message.index, "missing")
    for back in returned:
        issued = {mint.reasoning for mint in back.mints}
        tagged = any(mint.tagged for mint in back.mints)
        if issued and not tagged and not issued.issuperset(back.values):
            yield _must_be_passed_back(request, back.message.index, "changed")
    for back in returned:
        index, theirs = back.message.index, {mint.reasoning for mint in back.foreign}
        if not back.mints and not theirs.isdisjoint(back.values):
            yield refuse(host, FOREIGN.format(index=index), f"foreign at messages[{index}]")
    seen: Counter[str] = Counter()
    for back in returned:
        index = back.message.index
        for value in set(back.values):
            seen[value] += 1
            if seen[value] > max(1, ledger.issued(value)):
                yield refuse(host, REPEATED.format(index=index), f"repeated at messages[{index}]")


def _had_none_to_return(back: Returned) -> bool:
    # Recorded and accepted: an answer for which the model had not thought came back without the field although the
    # request offered tools. Nothing of the kind is recorded for messages with calls.
    return not back.message.calls and any(not mint.reasoning for mint in back.mints)


def _must_be_passed_back(request: Request, index: int, what: str) -> Verdict:
    host = request.profile.host
    return refuse(host, host.changed.format(index=index), f"{what} at messages[{index}]")
