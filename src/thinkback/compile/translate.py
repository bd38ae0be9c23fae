"""What one dialect wrote, told to another: verbatim objects and opaque values stay behind, meaning goes along."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, assert_never, cast

import msgspec

from thinkback.compile.units import ResponseUnit
from thinkback.errors import UnsupportedContent
from thinkback.model import canonical, custom_tools
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, within
from thinkback.model.commits import Message, Tool
from thinkback.model.plan import Writer
from thinkback.model.rule import Endpoint, SystemPlace

AnyBlock = TypeVar("AnyBlock", bound=Block)

FAILED = "(The tool failed:)"
INTERRUPTED = "This call was interrupted; it has no result."
# What of a definition every dialect says, or is for its provider's cache alone.
_TOLD = frozenset({"cache_control", "description", "function", "inputSchema", "input_schema", "name", "parameters"}) | {
    "parametersJsonSchema",
    "toolSpec",
    "type",
}
# Some providers take no function without a schema of an object.
_NO_PARAMETERS = '{"type":"object","properties":{}}'


def on_top(wanted: SystemPlace, writer: Writer) -> Literal["top", "late", "inline", "lead"]:
    """Where system messages stand: as the rule says, else as the dialect has it."""
    return wanted or ("top" if writer.system_on_top else "inline")


def message(message: Message, dialect: str) -> Message:
    """A message for ``dialect``: verbatim if it was written in it. Raises ``UnsupportedContent``."""
    if message.dialect in ("", dialect):
        return message
    for part in message.parts:
        unsaid = isinstance(part, Unknown) and not part.text
        if unsaid or (isinstance(part, Media) and not (part.data or part.url)):
            kind = _kind_of(part)
            raise UnsupportedContent(
                f"a message has a part that only {message.dialect} can say{f' ({kind})' if kind else ''}",
                details={"dialect": dialect, "from": message.dialect},
                next_actions=("go on with an endpoint of that dialect", "or start a new session without it"),
            )
    return Message(message.text, tuple(_unmade(part) for part in message.parts))


def _kind_of(part: Text | Media | Unknown) -> str:
    """What its program calls a part."""
    written = canonical.decode_lenient(part.wire) if part.wire else None
    kind = written.get("type") if isinstance(written, dict) else None
    return kind if isinstance(kind, str) else ""


def _unmade(part: Text | Media | Unknown) -> Text | Media:
    """A part without what only its maker can read."""
    return Text(part.text) if isinstance(part, Unknown) else msgspec.structs.replace(part, wire="", carriers=())


BEGINS = frozenset({"partial", "prefix"})
"""By which a chat message says that it is the beginning of the answer."""
CONTINUED = '{"prefix":true}'
_SAID = frozenset({"cache_control", "content", "id", "parts", "role", "status", "type"})


def lost_members(message: Message, dialect: str) -> tuple[str, ...]:
    """Members of a message as its program wrote it that ``dialect`` does not get."""
    return () if message.dialect in ("", dialect) or is_setting(message) else lost_of(message.wire)


def lost_of(wire: str) -> tuple[str, ...]:
    """The names of the members of a message that say something besides its role and content."""
    found = canonical.decode_lenient(wire) if wire else {}
    members = found.items() if isinstance(found, dict) else ()
    return tuple(sorted(name for name, value in members if name not in _SAID and value not in _NOTHING))


_NOTHING: tuple[object, ...] = (None, False, [], {}, "")


def is_setting(message: Message) -> bool:
    """Whether a message says nothing to the model: it is what its dialect puts a parameter into."""
    return bool(message.wire) and not message.text and not message.parts


def as_system(message: Message) -> Message:
    """A verbatim message of the role ``developer`` under the role that every endpoint knows."""
    fields = canonical.decode(message.wire) if '"developer"' in message.wire else {}
    if not isinstance(fields, dict) or fields.get("role") != "developer":
        return message
    return msgspec.structs.replace(message, wire=canonical.source({**fields, "role": "system"}))


def without_parts(message: Message, gone: Collection[int]) -> Message:
    """``message`` with a note in place of the parts at the places ``gone``, the others as they are and where they are.

    A note is a paragraph of the text around it.
    """
    parts: list[Text | Media | Unknown] = []
    after_note = False
    for at, part in enumerate(message.parts):
        is_note = at in gone and not isinstance(part, Text)
        if is_note:
            assert not isinstance(part, Text)
            part = Text(_described(part))
        if parts and isinstance(part, Text) and isinstance(parts[-1], Text) and (is_note or after_note):
            parts[-1] = Text(f"{parts[-1].text}\n{part.text}")
        else:
            parts.append(part)
        after_note = is_note
    return msgspec.structs.replace(message, parts=tuple(parts), wire="")


def described(message: Message) -> Message:
    """A message in words alone: what each part that is no text was, in its place."""
    told = [part.text if isinstance(part, Text) else _described(part) for part in message.parts]
    return Message("\n".join(text for text in told if text))


def _described(part: Media | Unknown) -> str:
    if isinstance(part, Unknown):
        return part.text or "(a part that cannot be shown here)"
    named = f" {part.name}" if part.name else ""
    return f"({part.media_type}{named}, which cannot be shown here)"


def takes_custom(endpoint: Endpoint, writer: Writer) -> bool:
    """True if ``endpoint`` has tools that take any text."""
    return writer.custom_tools == "all" or (writer.custom_tools == "some" and endpoint.custom_tools)


class Offer(NamedTuple):
    """The tools that a dialect can offer, those that only another one has (the provider itself runs them), and custom
    tools that go as functions. ``lost`` are (tool, member) of definitions that there is no word for.
    """

    fits: list[Tool]
    foreign: list[Tool]
    as_functions: list[Tool]
    lost: list[tuple[str, str]]


def tools(offered: Sequence[Tool], dialect: str, writer: Writer, *, custom: bool | None = None) -> Offer:
    """``offered`` as ``dialect`` can offer them.

    ``custom``: the host has custom tools; ``None`` leaves them, and what else a definition says, as the first recipe
    had them.
    """
    offer = Offer([], [], [], [])
    word = writer.strict_tools if custom is not None else "none"
    for tool in offered:
        if custom is not None and custom_tools.definition_of(tool) is not None:
            if not custom:
                offer.fits.append(custom_tools.as_function(tool))
                offer.as_functions.append(tool)
            else:
                offer.fits.append(tool if tool.dialect in ("", dialect) else msgspec.structs.replace(tool, dialect=""))
        elif tool.dialect == dialect or (tool.dialect == "" and is_native(tool)):
            offer.fits.append(tool)
        elif is_native(tool):
            offer.foreign.append(tool)
        else:
            members = _members_of(tool) if custom is not None else {}
            if tool.dialect:
                schema = tool.parameters if tool.parameters != "{}" else _NO_PARAMETERS
                lost = sorted(
                    members.keys() - _TOLD - ({"strict"} if word != "none" or not members.get("strict") else set())
                )
                offer.lost.extend((tool.name, member) for member in lost)
                tool = msgspec.structs.replace(tool, parameters=schema, wire="", dialect="")
            strict = members.get("strict", tool.strict) is True
            said = strict if word == "held" or (strict and word == "said") else None
            offer.fits.append(tool if said is tool.strict else msgspec.structs.replace(tool, strict=said))
    return offer


def _members_of(tool: Tool) -> dict[str, Any]:
    """The members of a function's definition as its program wrote it; those with no value are none."""
    written = canonical.decode_lenient(tool.wire) if tool.wire else {}
    if not isinstance(written, dict):
        return {}
    named = (written.get(name) for name in ("function", "toolSpec"))
    inner: dict[str, Any] = next((each for each in named if isinstance(each, dict)), {})
    return {key: value for key, value in {**written, **inner}.items() if value not in _NOTHING}


def is_native(tool: Tool) -> bool:
    """Whether a tool is nothing but what its provider wrote: no function that anybody else could offer."""
    if not tool.wire or tool.parameters != "{}" or tool.description:
        return False
    written = canonical.decode(tool.wire)
    inner = written.get("function", written) if isinstance(written, dict) else None
    is_named = isinstance(inner, dict) and bool(inner.get("name"))
    # A function may have neither parameters nor a description.
    return not (is_named and written.get("type") in (None, "function", "custom"))


def block(block: Block, same: bool) -> Block:
    """A block without what only its maker can read; with ``same`` dialect a call of special kind stays as it is."""
    match block:
        case Text():
            field = block.source_field if same else "content"
            return Text(block.text, field) if block.wire or block.carriers or field != block.source_field else block
        case ToolCall():
            return ToolCall(block.id, block.name, block.arguments, block.source_field)
        case _:
            return block


def flattened(unit: ResponseUnit) -> str:
    """What a response said and did, with the results of its calls, in plain words; empty where that is nothing."""
    results = iter(answers_of(unit))
    told = [_in_words(block, results) for block in unit.blocks]
    said = "\n\n".join(text for text in told if text.strip())
    return f"(What the assistant said and did here, as text.)\n\n{said}" if said else ""


def _in_words(block: Block, results: Iterator[ToolResult]) -> str:
    match block:
        case Text():
            return block.text
        case ToolCall():
            called = f"(It called {block.name} with {block.arguments or '{}'}, and the result was:)"
            return f"{called}\n{_result_text(next(results))}"
        case Media() | Unknown():
            return _described(block)
        case ThinkingBlock() | ToolResult():  # results are told with their calls
            return ""
        case _:
            assert_never(block)


def call_ids(unit: ResponseUnit, dialect: str, *, anew: bool = False) -> tuple[str, ...]:
    """The ids of a response's calls; another dialect may give none, or one twice, and then they get some.

    ``anew``: they all do, because theirs tie them to what the provider knows of the response.
    """
    ids = tuple(call.id for call in unit.calls)
    given = [id for id in ids if id]
    is_own = unit.header.origin.dialect == dialect
    if not anew and len(set(given)) == len(given) and (is_own or len(given) == len(ids)):
        return ids
    return tuple(
        "call_" + hashlib.sha256(f"{unit.hash}:{unit.response}:{at}".encode()).hexdigest()[:24]
        for at, _ in enumerate(ids)
    )


def renamed(call: ToolCall, id: str, in_object: bool) -> ToolCall:
    """A call under another id. ``in_object``: what it carries has its only place in its verbatim object."""
    wire = canonical.source({**canonical.decode(call.wire), "id": id}) if in_object and call.wire else ""
    return msgspec.structs.replace(call, id=id, wire=wire)


def answers(
    unit: ResponseUnit, ids: Sequence[str], dialect: str, *, custom: bool | None = None, says_errors: bool = False
) -> list[ToolResult]:
    """One result per call under the ids the calls go out with, written for ``dialect``; ``custom`` as in ``tools``.

    ``says_errors``: the text of a failed one says so, because the dialect has no other word for it.
    """
    calls = fitted_calls(unit.calls, custom)
    given = zip(answers_of(unit), calls, ids, strict=True)
    return [_answer(result, call, id, dialect, says_errors) for result, call, id in given]


def fitted_calls(blocks: Sequence[AnyBlock], custom: bool | None) -> tuple[AnyBlock, ...]:
    """``blocks`` with each call of a custom tool in the form that the host has for it; ``custom`` as in ``tools``."""
    if custom is None:
        return tuple(blocks)
    return tuple(
        cast("AnyBlock", custom_tools.call_for(block, takes_custom=custom))
        if isinstance(block, ToolCall) and custom_tools.is_custom(block)
        else block
        for block in blocks
    )


def uncalled(result: ToolResult) -> Message:
    """A result without its call in words, for a dialect that has results for calls only."""
    return Message(
        f"(The result of the tool call {result.id}, which is not part of this conversation:)\n{_result_text(result)}"
    )


def _answer(result: ToolResult, call: ToolCall, id: str, dialect: str, says_errors: bool) -> ToolResult:
    if says_errors and result.is_error:
        told = f"{FAILED}\n{_result_text(result)}"
        result = msgspec.structs.replace(result, content=told, wire="", dialect="", is_error=False)
    name, field, own = result.name or call.name, call.source_field, result.dialect in ("", dialect)
    if (result.id, result.name, result.call_field) == (id, name, field) and own:
        return result
    verbatim = result.wire if own and result.id == id else ""
    content = result.content if own else _result_text(result)
    return msgspec.structs.replace(result, id=id, name=name, call_field=field, content=content, wire=verbatim)


def _result_text(result: ToolResult) -> str:
    """The content of a result in words: without an object around it, and of a list of parts the texts, and what each
    other part was.
    """
    notes = _notes_beside(result.wire)
    return "\n".join(filter(None, (_content_told(result), *notes))) if notes else _content_told(result)


def _notes_beside(wire: str) -> list[str]:
    """What each media part was that a result has beside its content."""
    answer = _answer_object(wire)
    parts = answer.get("parts")
    media = [value for part in parts if isinstance(part, dict) for value in part.values()] if parts else []
    kinds = [value.get("mimeType") for value in media if isinstance(value, dict)]
    return [f"({kind}, which cannot be shown here)" for kind in kinds if isinstance(kind, str)]


def lost_of_result(result: ToolResult, dialect: str) -> tuple[str, ...]:
    """The members of a result, as its program wrote it, that ``dialect`` has no name for."""
    answer = _answer_object(result.wire) if result.dialect not in ("", dialect) else {}
    return tuple(sorted(key for key, value in answer.items() if key not in _ANSWERED and value not in _NOTHING))


_ANSWERED = frozenset({"id", "name", "response"})


def _answer_object(wire: str) -> dict[str, Any]:
    """The object with the ``response`` of a function, which some dialects put into a part; empty for any other."""
    written = canonical.decode_lenient(wire) if '"response"' in wire else None
    inner = written.values() if isinstance(written, dict) else ()
    return next((value for value in inner if isinstance(value, dict) and "response" in value), {})


def _content_told(result: ToolResult) -> str:
    inner = within(result)
    if inner is not None:
        return inner
    if not (result.wire and result.content.startswith("[")):
        return result.content
    try:
        parts, written = canonical.decode(result.content), canonical.decode(result.wire)
    except msgspec.DecodeError:
        return result.content
    # A text that happens to look like a list is told as it is.
    if not isinstance(written, dict) or parts not in written.values():
        return result.content
    return "\n".join(map(_part_told, parts))


def _part_told(part: Any) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type") if isinstance(part, dict) else None
    inner = part.get("content") if isinstance(part, dict) else None
    if isinstance(inner, list) and inner and all(isinstance(each, dict) and "text" in each for each in inner):
        heading = [part[name] for name in ("title", "source") if isinstance(part.get(name), str)]
        return "\n".join((*heading, *(str(each["text"]) for each in inner)))
    return f"({kind}, which cannot be shown here)" if isinstance(kind, str) else canonical.source(part)


def answers_of(unit: ResponseUnit) -> list[ToolResult]:
    """One result per call, in the order of the calls, the last that was given; a call without one is told so."""
    given = dict(zip(call_of_result(unit), unit.results, strict=True))
    return [
        given[at] if at in given else ToolResult(call.id, INTERRUPTED, call.name, status="interrupted")
        for at, call in enumerate(unit.calls)
    ]


def call_of_result(unit: ResponseUnit) -> list[int]:
    """The position of the call that each result answers, -1 for none.

    Where several calls share an id (hosts that give none), their results are taken in order.
    """
    places: dict[str, list[int]] = {}
    for at, call in enumerate(unit.calls):
        places.setdefault(call.id, []).append(at)
    shared = {id for id, calls in places.items() if len(calls) > 1}
    found: list[int] = []
    for result in unit.results:
        waiting = places.get(result.id)
        if not waiting:
            found.append(-1)
        else:
            found.append(waiting.pop(0) if result.id in shared else waiting[0])
    return found
