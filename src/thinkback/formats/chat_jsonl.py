"""Chat completions as JSON lines or a list: a conversation a line (``messages``), or a message a line.

Reasoning is read in every spelling: a field of the message, a part of its content, tags in its text. What is opaque
beside it is kept.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import msgspec

from thinkback.formats.chat_shapes import FIELDS, messages_of, role_of
from thinkback.formats.history import Answer, Format, History, Line, Notes, Read, Source, aside, key_of
from thinkback.formats.parts import (
    call,
    content_drafts,
    counts,
    documents,
    first_records,
    items_of,
    microseconds,
    objects,
    result,
    text_of,
    thought,
)
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.commits import Draft
from thinkback.model.think_tags import TagSplitter
from thinkback.wire.values import members_of, plain

NAME = "chat-jsonl"
_WITHIN = ("additional_kwargs", "provider_specific_fields", "model_extra")
"""Members in which libraries put the fields that they do not know."""
_PARTS = ("thinking", "reasoning", "reasoning_text", "reasoning_content", "thought", "think", "redacted_thinking")
_NAMES = ("text", "summary", "content", "thinking", "think", "reasoning", "reasoning_text")
"""What the text of a thought is called in an object, the first that says something."""
_CALLS = ("tool_use", "functionCall", "toolUse", "tool-call", "function_call", "custom_tool_call")
_RESULTS = ("tool_result", "functionResponse", "toolResult", "tool-result")
"""What parts with a call or a result are called, or what it is called in a part."""
_IDS_OF_CALLS = ("tool_use_id", "toolUseId", "toolCallId", "call_id", "id")
_OPAQUE = {"signature": "signature", "data": "redacted", "encrypted_content": "encrypted"}
_FRAME = re.compile(r"<\|start\|>assistant|<\|channel\|>final<\|message\|>|<\|return\|>|<\|end\|>\s*\Z")
"""What stands around an answer in the text that OpenAI's open models write."""
_HEAD = 64 * 1024
_LONG = 16
"""Characters of an id that no other file has."""
_IDS = ("id", "conversation_id", "session_id", "custom_id")
_USAGE = (
    {"input": "prompt_tokens", "output": "completion_tokens"},
    {"input": "input_tokens", "output": "output_tokens"},
)


def read(source: Source) -> Read:
    """The conversations of a file."""
    notes = Notes()
    found: dict[str, History] = {}
    single: list[dict[str, Any]] = []
    for line, record in objects(source, notes):
        messages = messages_of(record, notes)
        if messages is not None:
            id = _id(record, messages)
            if id in found:
                notes.add("a conversation that is there twice", line)
            else:
                found[id] = _history(id, messages, record, notes)
        elif "role" in record or "from" in record:
            single.append(record)
        else:
            notes.add("a line that is no conversation", line)
    if single:
        # It grows: it is named by how it begins, and by its file.
        stem = source.name.replace("\\", "/").rpartition("/")[2]
        id = key_of(NAME, stem, canonical.source(_beginning(single)))
        found[id] = _history(id, single, {}, notes)
    return Read(tuple(each for each in found.values() if each.entries), notes.left())


def _id(record: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    """Its own id, where no other file can have it; with how it begins, where one can; else what it says."""
    own = next((found for key in _IDS if (found := plain(record.get(key)))), "")
    if len(own) >= _LONG:
        return own
    return key_of(NAME, own, canonical.source(_beginning(messages))) if own else key_of(NAME, canonical.source(record))


def _beginning(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages up to the first of the user."""
    asked = (at for at, message in enumerate(messages) if role_of(message) == "user")
    return messages[: next(asked, 0) + 1]


def _history(id: str, messages: list[dict[str, Any]], record: dict[str, Any], notes: Notes) -> History:
    line = Line()
    model = plain(record.get("model"))
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role = role_of(message)
        content = next((message[name] for name in ("content", "value", "parts", "text") if name in message), None)
        time = microseconds(message.get("timestamp") or message.get("created_at"))
        match role:
            case "user" | "tool":
                results, rest = _heard(message, content, waiting, is_tool=role == "tool")
                line.put(f"{at} results" if role == "user" else str(at), time, results)
                line.put(str(at), time, content_drafts(rest, NAME) if rest else ())
            case "assistant":
                answer = _answer(message, content, model, at)
                waiting = [block.id for block in answer.blocks if isinstance(block, ToolCall)]
                line.put(str(at), time, answer.drafts(NAME, id, str(at)))
            case _:
                if role != "system":
                    notes.add(f"message of {role or 'nobody'}")
                words = text_of(content)
                line.put(str(at), time, [aside(f"{NAME} {role or 'message'}", words, None if words else message)])
    created = microseconds(record.get("created") or record.get("created_at") or record.get("timestamp"))
    return History(id, tuple(line.entries), line.tip, plain(record.get("title")), "", created)


def _answer(message: dict[str, Any], content: object, model: str, at: int) -> Answer:
    places = (message, *(members_of(message.get(name)) for name in _WITHIN))
    told = [(place[name], name) for place in places for name in FIELDS if _says(place.get(name))]
    if message.get("channel") == "analysis":
        told, content = [*told, (content, "channel")], None
    blocks: list[Block] = _told(told)
    for part in items_of(content) if isinstance(content, list) else [content or message.get("refusal")]:
        blocks += _blocks(part, len(blocks), at)
    calls = [members_of(each) for each in items_of(message.get("tool_calls"))]
    calls += [{"function": message["function_call"]}] if isinstance(message.get("function_call"), dict) else []
    for each in calls:
        function = members_of(each.get("function")) or each
        id = plain(each.get("id")) or f"call_{at}_{len(blocks)}"
        arguments = function.get("arguments", function.get("args"))
        blocks.append(call(id, function.get("name"), arguments))
    usage = next((found for names in _USAGE if (found := counts(message.get("usage"), **names)) is not None), None)
    return Answer(blocks, plain(message.get("model")) or model, usage=usage)


def _blocks(part: object, index: int, at: int) -> list[Block]:
    """The blocks of a text, which may have tags in it, or of a part."""
    fields = members_of(part)
    kind = plain(fields.get("type"))
    inner = members_of(fields.get("reasoningContent"))
    if inner:
        return [_thought(members_of(inner.get("reasoningText")) or inner, "reasoningContent")]
    if kind in _PARTS or fields.get("thought") is True:
        return [_thought(fields, kind or "thought")]
    made = _of(fields, _CALLS)
    if made:
        id = next((found for name in _IDS_OF_CALLS if (found := plain(made.get(name)))), f"call_{at}_{index}")
        arguments = next((made[name] for name in ("input", "args", "arguments") if name in made), None)
        return [call(id, made.get("name", made.get("toolName")), arguments)]
    if fields and not isinstance(fields.get("text"), str):
        return [Unknown(canonical.source(fields))]
    return _spoken(text_of(part) if isinstance(part, str) else plain(fields.get("text")))


def _of(fields: dict[str, Any], kinds: tuple[str, ...]) -> dict[str, Any]:
    """A call or a result, which is a part or stands in one; empty for any other part."""
    if plain(fields.get("type")) in kinds:
        return fields
    return next((inner for name in kinds if (inner := members_of(fields.get(name)))), {})


def _given(part: object) -> tuple[str, object, object] | None:
    """The id of a call, what came of it and its name, where a part has that."""
    made = _of(members_of(part), _RESULTS)
    if not made:
        return None
    id = next((found for name in _IDS_OF_CALLS if (found := plain(made.get(name)))), "")
    said = next((made[name] for name in ("content", "output", "response", "result") if name in made), None)
    return id, said, made.get("name", made.get("toolName"))


def _heard(
    message: dict[str, Any], content: object, waiting: list[str], *, is_tool: bool
) -> tuple[list[Draft], object]:
    """The results in a message, and what a person says in it."""
    parts = items_of(content)
    given = [found for part in parts if (found := _given(part)) is not None]
    rest = [part for part in parts if _given(part) is None] if given else content
    results = [_result(*each, waiting) for each in given]
    if is_tool and (rest or not given):
        results.append(_result(message.get("tool_call_id"), rest, message.get("name"), waiting))
    return results, None if is_tool else rest


def _result(named: object, content: object, name: object, waiting: list[str]) -> Draft:
    """A result; without the id of its call it is of the first that waits."""
    id = plain(named) or (waiting[0] if waiting else "")
    if id in waiting:
        waiting.remove(id)
    return result(id, content, name)


def _spoken(text: str) -> list[Block]:
    """A text, and what of it stands between tags."""
    tags = TagSplitter()
    text = _FRAME.sub("", text) if "<|channel|>" in text else text
    found: list[tuple[bool, str]] = []
    for kind, piece in ((each.kind, each.text) for each in (*tags.feed(text), *tags.close())):
        if kind == "lone_close":
            found = [(True, "".join(said for _, said in found))]
        elif kind not in ("open", "inner", "close"):
            found.append((kind == "reasoning", piece))
    blocks: list[Block] = []
    for thinks, run in itertools.groupby(found, lambda each: each[0]):
        words = "".join(said for _, said in run)
        if words.strip():
            blocks.append(thought(words.strip(), "content") if thinks else Text(words.lstrip() if blocks else words))
    return blocks


def _says(value: object) -> bool:
    return bool(_words(value) or _carriers(value))


def _told(given: list[tuple[object, str]]) -> list[Block]:
    """A thought that several fields tell: the text of the first that has one, with what is opaque in any."""
    if not given:
        return []
    first = _thought(*next((each for each in given if _words(each[0])), given[0]))
    carriers = dict.fromkeys(carrier for value, _ in given for carrier in _carriers(value))
    return [msgspec.structs.replace(first, carriers=tuple(carriers))]


def _thought(value: object, field: str) -> ThinkingBlock:
    words = _words(value)
    return ThinkingBlock(words, source_field=field, kind="raw" if words else "none", carriers=tuple(_carriers(value)))


def _carriers(value: object) -> list[Carrier]:
    """What is opaque in reasoning, and in its parts."""
    inside = [each for part in items_of(value) for each in _carriers(members_of(part))]
    fields = members_of(value)
    return inside + [Carrier(kind, plain(fields[name])) for name, kind in _OPAQUE.items() if plain(fields.get(name))]  # type: ignore[arg-type]


def _words(value: object) -> str:
    """The text of reasoning: as it is, or that of its parts under any name."""
    if isinstance(value, dict):
        return next((words for name in _NAMES if (words := _words(value.get(name)))), "")
    if not isinstance(value, list):
        return plain(value)
    found = (plain(each) or _words(members_of(each)) for each in value)
    return "\n".join(word for word in found if word)


def _is_own(head: bytes) -> bool:
    first = next(documents([head.lstrip()[:_HEAD]], Notes()), {}) or (first_records(head) or [{}])[0]
    if first.keys() & {"sessionId", "uuid", "mapping", "payload"}:
        return False
    return (
        bool(messages_of(first, Notes()))
        or ("role" in first and bool(first.keys() & {"content", "parts"}))
        or "from" in first
    )


FORMAT = Format(NAME, read, _is_own, endings=(".jsonl", ".json"), has_ids=False)
