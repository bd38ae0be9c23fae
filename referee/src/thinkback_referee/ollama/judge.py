"""The judge of Ollama requests: shape, the ``think`` switch, then thoughts that come back.

Ollama itself checks little: unknown fields are ignored and any order of messages is rendered. The referee refuses what
would then be lost in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..jsons import as_objects, as_text, names
from ..messages import Message, Thoughts, unknown_members
from ..verdict import Verdict, first
from . import profiles as say
from .request import Request

_BODY = names("model messages tools format options stream keep_alive think truncate shift logprobs top_logprobs")
_MESSAGE = names("role content thinking images tool_calls tool_name tool_call_id")
_CALL = names("id type function")
_FUNCTION = names("index name description arguments")
_ROLES = ("system", "user", "assistant", "tool")


def refuse(message: str, reason: str, *, status: int = 400) -> Verdict:
    """A refusal in Ollama's shape."""
    return Verdict(status, {"error": message}, reason)


def judge(request: Request, thoughts: Thoughts) -> Verdict:
    """The verdict on a request; reads the thoughts and changes nothing."""
    return first(_faults(request, thoughts))


def _faults(request: Request, thoughts: Thoughts) -> Iterator[Verdict]:
    yield from _parameter_faults(request)
    yield from _unknown(request)
    for message in request.said.messages:
        index, place = message.index, f"messages[{message.index}]"
        if message.role not in _ROLES or (message.thinking and message.role != "assistant"):
            yield refuse(say.BAD_ROLE.format(role=message.role, index=index), f"bad role at {place}")
    yield from _unpaired(request)
    for message in request.said.assistants:
        index, place = message.index, f"messages[{message.index}]"
        if message.thinking and not request.profile.thinking:
            yield refuse(say.UNREADABLE.format(index=index), f"unexpected thinking at {place}")
    for what, index in request.said.thought_faults(thoughts):
        text = (say.CHANGED if what == "changed" else say.REPEATED).format(index=index)
        yield refuse(text, f"{what} at messages[{index}]")


def _parameter_faults(request: Request) -> Iterator[Verdict]:
    profile, think = request.profile, request.body.get("think")
    asked = think is not None and think is not False
    if asked and think is not True and think not in say.LEVELS:
        yield refuse(say.BAD_THINK.format(value=think), "bad think value")
    if asked and not profile.thinking:
        yield refuse(say.NO_THINKING.format(model=profile.model), "thinking is not supported")
    if as_objects(request.body.get("tools")) and not profile.tools:
        yield refuse(say.NO_TOOLS.format(model=profile.model), "tools are not supported")
    for message in request.said.messages:
        if any(isinstance(function.get("arguments"), str) for function in message.functions):
            yield refuse(say.BAD_ARGUMENTS, f"arguments are text at messages[{message.index}]")


def _unknown(request: Request) -> Iterator[Verdict]:
    holders: list[tuple[str, Mapping[str, object], frozenset[str]]] = [("the request", request.body, _BODY)]
    for message in request.said.messages:
        place = f"messages[{message.index}]"
        holders.append((place, message.raw, _MESSAGE))
        holders += [(place, call, _CALL) for call in as_objects(message.raw.get("tool_calls"))]
        holders += [(place, function, _FUNCTION) for function in message.functions]
    for place, name in unknown_members(holders):
        yield refuse(say.UNKNOWN_FIELD.format(name=name, place=place), f"unknown field {name} at {place}")


def _unpaired(request: Request) -> Iterator[Verdict]:
    """Answers name their tools, or their calls' ids, and follow directly."""
    waiting: list[str] = []
    owner = -1
    for message in request.said.messages:
        if message.role == "tool":
            if not waiting or not _takes(waiting, message):
                text = say.STRAY.format(index=message.index)
                yield refuse(text, f"answer without a call at messages[{message.index}]")
            continue
        if waiting:
            break
        owner, waiting = message.index, [as_text(function.get("name")) for function in message.functions]
    if waiting:
        yield refuse(say.UNANSWERED.format(index=owner), f"unanswered call at messages[{owner}]")
    if request.said.messages and request.said.messages[-1].role == "assistant":
        yield refuse(say.LAST, "the last message is the assistant's")


def _takes(waiting: list[str], message: Message) -> bool:
    """Take the answered call off the list; an answer by id alone answers the first."""
    name = as_text(message.raw.get("tool_name"))
    if not name and message.raw.get("tool_call_id"):
        name = waiting[0]
    if name not in waiting:
        return False
    waiting.remove(name)
    return True
