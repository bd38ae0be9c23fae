"""Request reader of the ``gemini`` dialect: contents to drafts of the log.

Promises: what the writer would not rebuild is kept verbatim; contents of the model become responses of unknown
origin, neighbours one. A content that has results beside other parts becomes its results, then a message with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from thinkback.errors import WireError
from thinkback.model import canonical
from thinkback.model.blocks import Media, Origin, Text, ToolCall, ToolResult, Unknown, within
from thinkback.model.commits import Draft, Message, Response, Tools, block_draft
from thinkback.model.waiting import Waiting
from thinkback.wire.gemini import write
from thinkback.wire.gemini.blocks import read_part, wire_object
from thinkback.wire.gemini.tools import NAME, read_tools
from thinkback.wire.result import ReadRequest

UNKNOWN_ORIGIN = Origin(NAME, "", "")
_RESPONSES = ("functionResponse", "function_response")
_SYSTEM = ("systemInstruction", "system_instruction")
_READ = frozenset({"contents", "model", "tools", *_SYSTEM})


def read_request(body: Mapping[str, Any], ids: Callable[[], str], origin: Origin = UNKNOWN_ORIGIN) -> ReadRequest:
    """A whole request body. Raises ``WireError`` for contents that are none."""
    offered = read_tools(body.get("tools"))
    drafts = [Draft("tools", Tools(offered))] if offered else []
    for name in _SYSTEM:
        if isinstance(body.get(name), str):
            drafts.append(Draft("system", Message(body[name])))
        elif isinstance(body.get(name), Mapping):
            drafts.append(Draft("system", _message(body[name], name, write.top)))
    contents = body.get("contents")
    contents = [contents] if isinstance(contents, Mapping) else contents  # one may stand alone
    if not isinstance(contents, Sequence) or isinstance(contents, str):
        raise WireError("the request has no list of contents")
    drafts += read_messages(contents, ids, origin)
    params = {key: value for key, value in body.items() if key not in _READ}
    return ReadRequest(str(body.get("model") or ""), tuple(drafts), params)


def read_messages(
    entries: Sequence[Any],
    ids: Callable[[], str],
    origin: Origin = UNKNOWN_ORIGIN,
    *,
    after: Sequence[Draft] = (),
) -> list[Draft]:
    """The drafts of contents in order; ``ids`` gives response ids, ``after`` is what came before them.

    A result without an id answers the first open call of its name. Raises ``WireError`` naming the content.
    """
    drafts: list[Draft] = []
    calls = _open_calls(after)
    spoken: list[Mapping[str, Any]] = []
    for at, content in enumerate(entries):
        place = f"contents[{at}]"
        role = _role(content)
        if role == "model":
            spoken += _parts_of(content, place)
            if at + 1 < len(entries) and _role(entries[at + 1]) == "model":
                continue
            found, spoken = _response(spoken, ids(), origin), []
        elif role in ("user", "function", "tool", None) and isinstance(content, Mapping):
            found = _user_drafts(content, place, calls)
        else:
            raise WireError(
                f"{place} cannot be adopted: role {role!r}",
                details={"message": at},
                next_actions=("roles are user and model",),
            )
        for draft in found:
            if isinstance(draft.value, ToolCall):
                _open(calls, draft.value)
        drafts += found
    return drafts


def _role(content: Any) -> Any:
    role = content.get("role") if isinstance(content, Mapping) else None
    return role.lower() if isinstance(role, str) else role


def _response(parts: Sequence[Mapping[str, Any]], response: str, origin: Origin) -> list[Draft]:
    """What the model said, as a response and its blocks."""
    blocks = [read_part(part) for part in parts]
    drafts = [Draft("response", Response(origin=origin, blocks=len(blocks)), response)]
    for at, block in enumerate(blocks):
        if isinstance(block, Text) and not (block.text or block.carriers or block.wire):
            block = Text("", wire=canonical.source({"text": ""}))
        drafts.append(block_draft(block, response, at))
    return drafts


def _user_drafts(content: Mapping[str, Any], place: str, calls: Waiting[ToolCall]) -> list[Draft]:
    """A content of the user: results, a message, or both."""
    parts = _parts_of(content, place)
    answers = [part for part in parts if _answers(part)]
    drafts = [Draft("tool_result", _result(part, calls)) for part in answers]
    if not answers:
        drafts.append(Draft("user", _message(content, place, lambda message: write.message("user", message))))
    elif len(answers) < len(parts):
        rest = {**content, "parts": [part for part in parts if not _answers(part)]}
        drafts.append(Draft("user", _message(rest, place, lambda message: write.message("user", message))))
    return drafts


def _message(content: Mapping[str, Any], place: str, written: Callable[[Message], bytes]) -> Message:
    """A content as a message, verbatim where ``written`` would not give it back."""
    parts = tuple(_plain_part(part) for part in _parts_of(content, place))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    message = Message(text) if parts == (Text(text),) else Message(text, parts, dialect=NAME)
    if canonical.decode(written(message)) == content:
        return message
    return Message(text, message.parts, canonical.source(dict(content)), NAME)


def _plain_part(part: Mapping[str, Any]) -> Text | Media | Unknown:
    block = read_part(part)
    if isinstance(block, Text | Media | Unknown):
        return block
    return Unknown(canonical.source(dict(part)))


def _parts_of(content: Mapping[str, Any], place: str) -> list[Mapping[str, Any]]:
    """The parts of a content; one may stand alone. Raises ``WireError`` where they are none."""
    parts = content.get("parts")
    found = [parts] if isinstance(parts, Mapping) else list(parts) if isinstance(parts, Sequence) else []
    if isinstance(parts, str) or not all(isinstance(part, Mapping) for part in found):
        raise WireError(f"{place} cannot be adopted: its parts are not a list of objects")
    return found


def _answers(part: Mapping[str, Any]) -> bool:
    return any(isinstance(part.get(name), Mapping) for name in _RESPONSES)


def _result(part: Mapping[str, Any], calls: Waiting[ToolCall]) -> ToolResult:
    """What a tool gave back; the call that it answers is open no longer."""
    field = next(name for name in _RESPONSES if isinstance(part.get(name), Mapping))
    answer = part[field]
    id, name = str(answer.get("id") or ""), str(answer.get("name") or "")
    call = _answered(id, name, calls)
    if call is not None:
        if call.id and not id:  # the client forgot it, and the API wants it back
            part = {**part, field: {"id": call.id, **{key: answer[key] for key in answer if key != "id"}}}
        id, name = call.id, name or call.name
    content, is_error, field = _outcome(answer.get("response"))
    result = ToolResult(id, content, name, is_error, source_field=field)
    is_around = field and within(result) is not None  # another dialect is told what is inside
    if not is_around and canonical.decode(wire_object(result)) == part:
        return result
    return msgspec.structs.replace(result, wire=canonical.source(dict(part)), dialect=NAME)


def _open(calls: Waiting[ToolCall], call: ToolCall) -> None:
    calls.add(call, ("id", call.id), ("name", call.name), ())


def _answered(id: str, name: str, calls: Waiting[ToolCall]) -> ToolCall | None:
    """The open call with this id, open no longer; without one the first of this name, or the first."""
    return calls.take(("id", id)) if id else calls.take(("name", name), ())


def _outcome(response: Any) -> tuple[str, bool, str]:
    """(text, whether it is an error, the field it came in if that is not the one we write) of what a tool gave back.

    The text has the object around it where a conversation would not be known again without.
    """
    if isinstance(response, Mapping) and len(response) == 1:
        for name in ("result", "error"):
            if isinstance(response.get(name), str):
                return response[name], name == "error", ""
        if "output" in response:
            text = response["output"]
            is_known = isinstance(text, str) and not _holds_another(text)
            return (text if is_known else canonical.source(response)), False, "output"
    return canonical.source({} if response is None else response), False, ""


def _holds_another(text: str) -> bool:
    """Whether ``text`` is a list or an object of one member, which may stand around a text as well.

    A conversation is known again by what is in one of them: of two, by what is in the outer one.
    """
    try:
        value = canonical.decode(text)
    except msgspec.DecodeError:
        return False
    return isinstance(value, list) or (isinstance(value, dict) and len(value) == 1)


def _open_calls(drafts: Sequence[Draft]) -> Waiting[ToolCall]:
    """The calls that nothing has answered yet."""
    calls = Waiting[ToolCall]()
    for draft in drafts:
        if isinstance(draft.value, ToolCall):
            _open(calls, draft.value)
        elif isinstance(draft.value, ToolResult):
            _answered(draft.value.id, draft.value.name, calls)
    return calls
