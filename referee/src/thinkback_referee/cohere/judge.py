"""The judge of Cohere requests: shape, parameters, then thinking that comes back.

Cohere asks for no thinking and cannot tell whose it is. That thinking which was altered, repeated, or stands alone is
refused is the referee's strictness; so is the refusal of thinking at a model that has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..jsons import as_object, as_objects, as_text, names
from ..messages import Message, Thoughts, Unpaired, unknown_members, unpaired_ids
from ..verdict import Verdict, first
from . import profiles as say
from .request import Request, items_of

_BODY = names(
    "model messages tools strict_tools tool_choice documents citation_options response_format safety_mode max_tokens "
    "stop_sequences temperature seed frequency_penalty presence_penalty k p logprobs stream thinking priority"
)
_MESSAGES: Mapping[str, frozenset[str]] = {
    "system": names("role content"),
    "user": names("role content"),
    "assistant": names("role content tool_calls tool_plan citations"),
    "tool": names("role content tool_call_id"),
}
_ITEMS: Mapping[str, frozenset[str]] = {
    "text": names("type text"),
    "thinking": names("type thinking"),
    "image_url": names("type image_url"),
    "document": names("type document"),
}
_ALLOWED = {"assistant": names("text thinking"), "user": names("text image_url"), "tool": names("text document")}
_CALL = names("id type function")
_THINKING = names("type token_budget")


def refuse(message: str, reason: str, *, status: int = 400) -> Verdict:
    """A refusal in Cohere's shape; all requests have the same id here."""
    return Verdict(status, {"id": "00000000-0000-4000-8000-000000000000", "message": message}, reason)


def judge(request: Request, thoughts: Thoughts) -> Verdict:
    """The verdict on a request; reads the thoughts and changes nothing."""
    return first(_faults(request, thoughts))


def _faults(request: Request, thoughts: Thoughts) -> Iterator[Verdict]:
    yield from _unknown(request)
    yield from _malformed(request)
    yield from _parameter_faults(request)
    yield from _order_faults(request)
    for message in request.said.assistants:
        if message.thinking is not None and not request.profile.reasons:
            text = say.NO_THINKING.format(model=request.profile.model)
            yield refuse(text, f"unexpected thinking at messages[{message.index}]")
    for what, index in request.said.thought_faults(thoughts):
        text = (say.CHANGED if what == "changed" else say.REPEATED).format(index=index)
        yield refuse(text, f"{what} at messages[{index}]")


def _unknown(request: Request) -> Iterator[Verdict]:
    holders = [("", request.body, _BODY), ("thinking", as_object(request.body.get("thinking")), _THINKING)]
    for message in request.said.messages:
        place = f"messages[{message.index}]"
        holders.append((place, message.raw, _MESSAGES.get(message.role, frozenset(message.raw))))
        holders += [
            (place, item, _ITEMS.get(as_text(item.get("type")), frozenset(item))) for item in items_of(message.raw)
        ]
        holders += [(place, call, _CALL) for call in as_objects(message.raw.get("tool_calls"))]
    for place, name in unknown_members(holders):
        yield refuse(say.UNKNOWN_FIELD.format(name=name), f"unknown field {name} {place}".strip(), status=422)


def _malformed(request: Request) -> Iterator[Verdict]:
    if not request.said.messages:
        yield refuse(say.NO_MESSAGES, "no messages")
    earlier = "system"
    for message in request.said.messages:
        index, place = message.index, f"messages[{message.index}]"
        if message.role not in _MESSAGES:
            yield refuse(say.BAD_ROLE.format(role=message.role, index=index), f"bad role at {place}")
        if message.role == "system" and earlier != "system":
            yield refuse(say.SYSTEM_FIRST, f"system message at {place}")
        earlier = message.role
        allowed = _ALLOWED.get(message.role, frozenset({"text"}))
        if any(item.get("type") not in allowed for item in items_of(message.raw)):
            yield refuse(say.BAD_CONTENT.format(index=index), f"bad content at {place}")
        yield from _empty(message, place)
        if any(call.get("type") != "function" for call in as_objects(message.raw.get("tool_calls"))):
            yield refuse(say.NOT_A_FUNCTION, f"bad call at {place}")


def _empty(message: Message, place: str) -> Iterator[Verdict]:
    if message.functions or message.text or message.role == "tool":
        return
    if message.thinking:
        yield refuse(say.ALONE.format(index=message.index), f"thinking alone at {place}")
    if not items_of(message.raw):
        yield refuse(say.EMPTY_TURN, f"empty message at {place}")


def _parameter_faults(request: Request) -> Iterator[Verdict]:
    thinking = as_object(request.body.get("thinking"))
    if "thinking" in request.body and thinking.get("type") not in ("enabled", "disabled"):
        yield refuse(say.BAD_THINKING, "bad thinking type")
    if thinking.get("type") == "enabled" and not request.profile.reasons:
        yield refuse(say.NO_THINKING.format(model=request.profile.model), "thinking is not supported")
    budget = thinking.get("token_budget", 1)
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
        yield refuse(say.BAD_BUDGET, "bad token_budget")


def _order_faults(request: Request) -> Iterator[Verdict]:
    messages = request.said.messages
    found = unpaired_ids(
        (
            message.index,
            message.role == "tool",
            as_text(message.raw.get("tool_call_id")) or None,
            [as_text(call.get("id")) for call in as_objects(message.raw.get("tool_calls"))],
        )
        for message in messages
    )
    match found:
        case Unpaired("stray", index) if not as_text(messages[index].raw.get("tool_call_id")):
            yield refuse(say.NO_CALL_ID, f"answer without an id at messages[{index}]")
        case Unpaired("stray", index):
            yield refuse(say.STRAY, f"answer without a call at messages[{index}]")
        case Unpaired("duplicate", index):
            yield refuse(say.DUPLICATE_ID, f"repeated call id at messages[{index}]")
        case Unpaired("unanswered", index):
            yield refuse(say.UNANSWERED.format(index=index), f"unanswered call at messages[{index}]")
    if messages[-1].role not in ("user", "tool"):
        yield refuse(say.LAST, "the last message is not the user's")
