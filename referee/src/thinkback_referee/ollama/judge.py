"""The judge of Ollama requests: shape, the ``think`` switch, then thoughts that come back.

Ollama itself checks little: unknown fields are ignored and any order of messages is rendered. The referee refuses what
would then be lost in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from ..jsons import as_list, as_object, as_text
from ..thoughts import Thoughts
from ..verdict import ACCEPTED, Verdict
from . import profiles as say
from .request import Message, Request


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BODY = _names("model messages tools format options stream keep_alive think truncate shift logprobs top_logprobs")
_MESSAGE = _names("role content thinking images tool_calls tool_name tool_call_id")
_CALL = _names("id type function")
_FUNCTION = _names("index name description arguments")
_ROLES = ("system", "user", "assistant", "tool")


def refuse(message: str, reason: str, *, status: int = 400) -> Verdict:
    """A refusal in Ollama's shape."""
    return Verdict(status, {"error": message}, reason)


def judge(request: Request, thoughts: Thoughts) -> Verdict:
    """The verdict on a request; reads the thoughts and changes nothing."""
    for check in (_think, _tools, _arguments, _unknown, _roles, _unpaired):
        if (verdict := check(request)) is not None:
            return verdict
    for rule in _REPLAY:
        if (verdict := rule(request, thoughts)) is not None:
            return verdict
    return ACCEPTED


def _think(request: Request) -> Verdict | None:
    value = request.body.get("think")
    if value is None or value is False:
        return None
    if value is not True and value not in say.LEVELS:
        return refuse(say.BAD_THINK.format(value=value), "bad think value")
    if not request.profile.thinking:
        return refuse(say.NO_THINKING.format(model=request.profile.model), "thinking is not supported")
    return None


def _tools(request: Request) -> Verdict | None:
    if request.tools and not request.profile.tools:
        return refuse(say.NO_TOOLS.format(model=request.profile.model), "tools are not supported")
    return None


def _arguments(request: Request) -> Verdict | None:
    for message in request.messages:
        if any(isinstance(call.get("arguments"), str) for call in message.calls):
            return refuse(say.BAD_ARGUMENTS, f"arguments are text at messages[{message.index}]")
    return None


def _unknown(request: Request) -> Verdict | None:
    holders: list[tuple[str, Mapping[str, object], frozenset[str]]] = [("the request", request.body, _BODY)]
    for message in request.messages:
        place = f"messages[{message.index}]"
        holders.append((place, message.raw, _MESSAGE))
        holders += [(place, as_object(call), _CALL) for call in as_list(message.raw.get("tool_calls"))]
        holders += [(place, call, _FUNCTION) for call in message.calls]
    for place, held, known in holders:
        for name in held:
            if name not in known:
                return refuse(say.UNKNOWN_FIELD.format(name=name, place=place), f"unknown field {name} at {place}")
    return None


def _roles(request: Request) -> Verdict | None:
    for message in request.messages:
        if message.role not in _ROLES or (message.thinking and message.role != "assistant"):
            text = say.BAD_ROLE.format(role=message.role, index=message.index)
            return refuse(text, f"bad role at messages[{message.index}]")
    return None


def _unpaired(request: Request) -> Verdict | None:
    """Answers name their tools, or their calls' ids, and follow directly."""
    waiting: list[str] = []
    owner = -1
    for message in request.messages:
        if message.role == "tool":
            if not waiting or not _takes(waiting, message):
                text = say.STRAY.format(index=message.index)
                return refuse(text, f"answer without a call at messages[{message.index}]")
            continue
        if waiting:
            break
        owner, waiting = message.index, [as_text(call.get("name")) for call in message.calls]
    if waiting:
        return refuse(say.UNANSWERED.format(index=owner), f"unanswered call at messages[{owner}]")
    if request.messages and request.messages[-1].role == "assistant":
        return refuse(say.LAST, "the last message is the assistant's")
    return None


def _takes(waiting: list[str], message: Message) -> bool:
    """Take the answered call off the list; an answer by id alone answers the first."""
    name = as_text(message.raw.get("tool_name"))
    if not name and message.raw.get("tool_call_id"):
        name = waiting[0]
    if name not in waiting:
        return False
    waiting.remove(name)
    return True


def _unreadable(request: Request, thoughts: Thoughts) -> Verdict | None:
    for message in request.assistants:
        if message.thinking and not request.profile.thinking:
            text = say.UNREADABLE.format(index=message.index)
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
        seen[message.thinking] += 1
        if message.thinking and seen[message.thinking] > max(1, thoughts.issued(message.thinking)):
            return refuse(say.REPEATED.format(index=message.index), f"repeated at messages[{message.index}]")
    return None


_REPLAY: tuple[Callable[[Request, Thoughts], Verdict | None], ...] = (_unreadable, _changed, _repeated)
