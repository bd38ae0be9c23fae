"""The judge of Cohere requests: shape, parameters, then thinking that comes back.

Cohere asks for no thinking and cannot tell whose it is. That thinking which was altered, repeated, or stands alone is
refused is the referee's strictness; so is the refusal of thinking at a model that has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from ..jsons import as_object, as_text
from ..thoughts import Thoughts
from ..verdict import ACCEPTED, Verdict
from . import profiles as say
from .request import Message, Request


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BODY = _names(
    "model messages tools strict_tools tool_choice documents citation_options response_format safety_mode max_tokens "
    "stop_sequences temperature seed frequency_penalty presence_penalty k p logprobs stream thinking priority"
)
_MESSAGES: Mapping[str, frozenset[str]] = {
    "system": _names("role content"),
    "user": _names("role content"),
    "assistant": _names("role content tool_calls tool_plan citations"),
    "tool": _names("role content tool_call_id"),
}
_ITEMS: Mapping[str, frozenset[str]] = {
    "text": _names("type text"),
    "thinking": _names("type thinking"),
    "image_url": _names("type image_url"),
    "document": _names("type document"),
}
_CALL = _names("id type function")
_THINKING = _names("type token_budget")


def refuse(message: str, reason: str, *, status: int = 400) -> Verdict:
    """A refusal in Cohere's shape; all requests have the same id here."""
    return Verdict(status, {"id": "00000000-0000-4000-8000-000000000000", "message": message}, reason)


def judge(request: Request, thoughts: Thoughts) -> Verdict:
    """The verdict on a request; reads the thoughts and changes nothing."""
    for check in (_unknown, _malformed, _parameters, _unpaired):
        if (verdict := check(request)) is not None:
            return verdict
    for rule in _REPLAY:
        if (verdict := rule(request, thoughts)) is not None:
            return verdict
    return ACCEPTED


def _unknown(request: Request) -> Verdict | None:
    holders: list[tuple[str, Mapping[str, object], frozenset[str]]] = [
        ("", request.body, _BODY),
        ("thinking", as_object(request.body.get("thinking")), _THINKING),
    ]
    for message in request.messages:
        place = f"messages[{message.index}]"
        holders.append((place, message.raw, _MESSAGES.get(message.role, frozenset(message.raw))))
        holders += [(place, item, _ITEMS.get(as_text(item.get("type")), frozenset(item))) for item in message.items]
        holders += [(place, call, _CALL) for call in message.calls]
    for place, held, known in holders:
        for name in held:
            if name not in known:
                text = say.UNKNOWN_FIELD.format(name=name)
                return refuse(text, f"unknown field {name} {place}".strip(), status=422)
    return None


def _malformed(request: Request) -> Verdict | None:
    if not request.messages:
        return refuse(say.NO_MESSAGES, "no messages")
    for message in request.messages:
        place = f"messages[{message.index}]"
        if message.role not in _MESSAGES:
            text = say.BAD_ROLE.format(role=message.role, index=message.index)
            return refuse(text, f"bad role at {place}")
        if message.role == "system" and message.index and request.messages[message.index - 1].role != "system":
            return refuse(say.SYSTEM_FIRST, f"system message at {place}")
        if any(item.get("type") not in _allowed(message) for item in message.items):
            return refuse(say.BAD_CONTENT.format(index=message.index), f"bad content at {place}")
        if (fault := _empty(message)) is not None:
            return fault
        if any(call.get("type") != "function" for call in message.calls):
            return refuse(say.NOT_A_FUNCTION, f"bad call at {place}")
    return None


def _empty(message: Message) -> Verdict | None:
    if message.calls or message.text or message.role == "tool":
        return None
    place = f"messages[{message.index}]"
    if message.thinking:
        return refuse(say.ALONE.format(index=message.index), f"thinking alone at {place}")
    return None if message.items else refuse(say.EMPTY_TURN, f"empty message at {place}")


def _allowed(message: Message) -> tuple[str, ...]:
    own = {"assistant": ("thinking",), "user": ("image_url",), "tool": ("document",)}
    return ("text", *own.get(message.role, ()))


def _parameters(request: Request) -> Verdict | None:
    thinking = as_object(request.body.get("thinking"))
    if "thinking" in request.body and thinking.get("type") not in ("enabled", "disabled"):
        return refuse(say.BAD_THINKING, "bad thinking type")
    if thinking.get("type") == "enabled" and not request.profile.reasons:
        return refuse(say.NO_THINKING.format(model=request.profile.model), "thinking is not supported")
    budget = thinking.get("token_budget", 1)
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
        return refuse(say.BAD_BUDGET, "bad token_budget")
    return None


def _unpaired(request: Request) -> Verdict | None:
    waiting: list[str] = []
    owner = 0
    for message in request.messages:
        place = f"messages[{message.index}]"
        if message.role == "tool":
            identifier = as_text(message.raw.get("tool_call_id"))
            if not identifier:
                return refuse(say.NO_CALL_ID, f"answer without an id at {place}")
            if identifier not in waiting:
                return refuse(say.STRAY, f"answer without a call at {place}")
            waiting.remove(identifier)
            continue
        if waiting:
            break
        owner, waiting = message.index, [as_text(call.get("id")) for call in message.calls]
        if len(set(waiting)) < len(waiting):
            return refuse(say.DUPLICATE_ID, f"repeated call id at {place}")
    if waiting:
        return refuse(say.UNANSWERED.format(index=owner), f"unanswered call at messages[{owner}]")
    if request.messages[-1].role not in ("user", "tool"):
        return refuse(say.LAST, "the last message is not the user's")
    return None


def _unsupported(request: Request, thoughts: Thoughts) -> Verdict | None:
    for message in request.assistants:
        if message.thinking is not None and not request.profile.reasons:
            text = say.NO_THINKING.format(model=request.profile.model)
            return refuse(text, f"unexpected thinking at messages[{message.index}]")
    return None


def _changed(request: Request, thoughts: Thoughts) -> Verdict | None:
    for message in request.assistants:
        minted = thoughts.of(message.keys)
        if message.thinking and minted and message.thinking not in minted:
            return refuse(say.CHANGED.format(index=message.index), f"changed at messages[{message.index}]")
    return None


def _repeated(request: Request, thoughts: Thoughts) -> Verdict | None:
    seen: Counter[str] = Counter()
    for message in request.assistants:
        thinking = message.thinking or ""
        seen[thinking] += 1
        if thinking and seen[thinking] > max(1, thoughts.issued(thinking)):
            return refuse(say.REPEATED.format(index=message.index), f"repeated at messages[{message.index}]")
    return None


_REPLAY: tuple[Callable[[Request, Thoughts], Verdict | None], ...] = (_unsupported, _changed, _repeated)
