"""A well-formed chat request as the judge and the scripted model see it: messages, turns, whether it thinks.

Built only from bodies that passed the shape check. Indices are positions in the request's ``messages``. Tokens are
counted by counting words; reasoning that the model does not get to see is not in the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..jsons import JsonObject, as_list, as_object, as_objects, as_text, compact
from ..persona import View, offered
from ..script import Step
from ..streams import arguments_text, count_words
from .profiles import Keeps, Profile, Requires, Switch


@dataclass(frozen=True, slots=True)
class Message:
    """One message, read; ``raw`` is what arrived."""

    index: int
    role: str
    text: str
    calls: tuple[str, ...]
    call_id: str
    raw: Mapping[str, object]

    def reasoning(self, field: str) -> str | None:
        """The reasoning text under a field name, None when absent; ``thinking`` reads the chunks of ``content``."""
        if field != "thinking":
            value = self.raw.get(field)
            return value if isinstance(value, str) else None
        return thinking_text(self.raw.get("content"))


def thinking_text(content: object) -> str | None:
    """The joined text of the ``thinking`` chunks of a content list, None when it has none."""
    chunks = as_objects(content)
    inner = [as_list(chunk.get("thinking")) for chunk in chunks if chunk.get("type") == "thinking"]
    if not inner:
        return None
    return "".join(as_text(as_object(piece).get("text")) for pieces in inner for piece in pieces)


def visible_text(content: object) -> str:
    """The text of a content value: the string, or the joined ``text`` parts of a list."""
    if isinstance(content, str):
        return content
    parts = as_objects(content)
    return "".join(as_text(part.get("text")) for part in parts if part.get("type") == "text")


def read_message(index: int, value: object) -> Message:
    """Read one message; fields of the wrong type read as empty."""
    raw = as_object(value)
    calls = tuple(as_text(as_object(call).get("id")) for call in as_list(raw.get("tool_calls")))
    text = visible_text(raw.get("content"))
    return Message(index, as_text(raw.get("role")), text, calls, as_text(raw.get("tool_call_id")), raw)


@dataclass(frozen=True)
class Request:
    """A parsed request to one model."""

    profile: Profile
    body: Mapping[str, object]

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        return tuple(read_message(index, value) for index, value in enumerate(as_list(self.body.get("messages"))))

    @cached_property
    def assistants(self) -> tuple[Message, ...]:
        """The assistant messages."""
        return tuple(message for message in self.messages if message.role == "assistant")

    @cached_property
    def tools(self) -> tuple[Mapping[str, object], ...]:
        """The function objects of the offered tools."""
        return tuple(as_object(as_object(tool).get("function")) for tool in as_list(self.body.get("tools")))

    @cached_property
    def turns(self) -> tuple[tuple[Message, ...], ...]:
        """The messages after each user message, one tuple per turn; the last one is the open turn."""
        turns: list[list[Message]] = []
        for message in self.messages:
            if message.role == "user":
                turns.append([])
            elif turns:
                turns[-1].append(message)
        return tuple(tuple(turn) for turn in turns)

    @cached_property
    def thinks(self) -> bool:
        """Whether the model thinks on this request."""
        profile = self.profile
        match profile.switch:
            case Switch.THINKING:
                kind = as_object(self.body.get("thinking")).get("type")
                return profile.thinks if kind is None else kind != "disabled"
            case Switch.EFFORT:
                effort = self.body.get("reasoning_effort")
                return profile.thinks if effort is None else effort != "none"
            case Switch.FIXED:
                return profile.thinks

    @cached_property
    def required(self) -> frozenset[int]:
        """Indices of the assistant messages that must carry their reasoning."""
        return _required(self) if self.thinks else frozenset()

    @cached_property
    def visible(self) -> frozenset[int]:
        """Indices of the assistant messages whose reasoning the model gets to read."""
        return _visible(self) if self.thinks else frozenset()


def _indices(messages: Sequence[Message]) -> frozenset[int]:
    return frozenset(message.index for message in messages if message.role == "assistant")


def _calling(messages: Sequence[Message]) -> frozenset[int]:
    return frozenset(message.index for message in messages if message.calls)


def _required(request: Request) -> frozenset[int]:
    open_turn = request.turns[-1] if request.turns else ()
    match request.profile.requires:
        case Requires.NOTHING:
            return frozenset()
        case Requires.OPEN_TURN_CALLS:
            return _calling(open_turn)
        case Requires.TOOL_TURNS:
            # Offering tools makes the server check every assistant message, also those of turns without calls.
            return _indices(request.assistants) if request.tools else _in_tool_turns(request)
        case Requires.CALLS:
            return _calling(request.assistants)


def _visible(request: Request) -> frozenset[int]:
    open_turn = _indices(request.turns[-1]) if request.turns else frozenset[int]()
    match request.profile.keeps:
        case Keeps.NOTHING:
            return frozenset()
        case Keeps.OPEN_TURN:
            return open_turn
        case Keeps.TOOL_TURNS:
            return open_turn | _in_tool_turns(request)
        case Keeps.ON_REQUEST:
            keep = as_object(request.body.get("thinking")).get("keep")
            return _indices(request.assistants) if keep == "all" else open_turn
        case Keeps.EVERYTHING:
            return _indices(request.assistants)


def _in_tool_turns(request: Request) -> frozenset[int]:
    return frozenset[int]().union(*(_indices(turn) for turn in request.turns if _calling(turn)))


def view_of(request: Request) -> View:
    """The conversation, with the reasoning that this provider would render into the prompt."""
    turn = request.turns[-1] if request.turns else ()
    visible = [message for message in request.assistants if message.index in request.visible]
    return View(
        asked=next((message.text for message in reversed(request.messages) if message.role == "user"), ""),
        turn=max(1, len(request.turns)),
        steps=sum(message.role == "assistant" for message in turn),
        rounds=sum(bool(message.calls) for message in turn),
        tools=tuple(map(offered, request.tools)),
        choice=_choice(request.body.get("tool_choice")),
        thinks=request.thinks,
        results=_results(turn),
        notes=tuple(message.reasoning(request.profile.field) or message.text for message in visible),
        readable=bool(visible),
        began=any(message.index in request.visible for message in turn),
    )


def _choice(choice: object) -> str:
    return as_text(choice) if choice == "none" else as_text(as_object(as_object(choice).get("function")).get("name"))


def _results(turn: tuple[Message, ...]) -> tuple[tuple[str, str], ...]:
    calls = [as_object(call) for message in turn for call in as_list(message.raw.get("tool_calls"))]
    names = {as_text(call.get("id")): as_text(as_object(call.get("function")).get("name")) for call in calls}
    return tuple((names.get(answer.call_id, ""), answer.text) for answer in turn if answer.role == "tool")


def prompt_words(request: Request) -> list[str]:
    """The prompt as words: tools first, then each message as the model sees it."""
    words = compact(as_list(request.body.get("tools"))).split() if request.tools else []
    for message in request.messages:
        words.append(f"<{message.role}>")
        if message.index in request.visible:
            words += (message.reasoning(request.profile.field) or "").split()
        words += message.text.split()
        words += _call_words(message)
    return words


def count_usage(request: Request, step: Step, prompt: int, hit: int) -> JsonObject:
    """The usage object of a response in the host's own shape; the step's own numbers win."""
    reasoning = count_words(step.reasoning)
    calls = [f"{call.name} {arguments_text(call)}" for call in step.tool_calls]
    completion = reasoning + count_words(step.text, step.refusal, *calls)
    counted: JsonObject = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if step.reasoning:
        counted["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return {**counted, **_host_usage(request.profile.host.name, prompt, hit), **step.usage}


def _call_words(message: Message) -> list[str]:
    functions = [as_object(as_object(call).get("function")) for call in as_list(message.raw.get("tool_calls"))]
    return [
        word
        for function in functions
        for word in f"{as_text(function.get('name'))} {as_text(function.get('arguments'))}".split()
    ]


def _host_usage(host: str, prompt: int, hit: int) -> JsonObject:
    """The members that a host adds."""
    match host:
        case "deepseek":
            cache: JsonObject = {"prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": prompt - hit}
            return {"prompt_tokens_details": {"cached_tokens": hit}, **cache}
        case "kimi":
            return {"cached_tokens": hit}
        case "groq":
            return {"queue_time": 0.0, "prompt_time": 0.0, "completion_time": 0.0, "total_time": 0.0}
        case "mistral" | "openai":
            return {"prompt_tokens_details": {"cached_tokens": hit}}
        case _:
            return {}
