"""Chat completions as JSON lines or a list: a conversation a line (``messages``), or a message a line.

Reasoning is read in every spelling: a field of the message, a part of its content, tags in its text. What is opaque
beside it is kept.
"""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

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
from thinkback.model.think_tags import TagSplitter
from thinkback.wire.values import members_of, plain

NAME = "chat-jsonl"
_FIELDS = (
    *("reasoning_content", "reasoning", "reasoning_text", "reasoning_details"),
    *("thinking", "thinking_blocks", "thoughts", "thought"),
)
_WITHIN = ("additional_kwargs", "provider_specific_fields", "model_extra")
"""Members in which libraries put the fields that they do not know."""
_PARTS = ("thinking", "reasoning", "reasoning_text", "reasoning_content", "thought", "redacted_thinking")
_NAMES = ("text", "summary", "content", "thinking", "reasoning", "reasoning_text")
"""What the text of a thought is called in an object, the first that says something."""
_OPAQUE = {"signature": "signature", "data": "redacted", "encrypted_content": "encrypted"}
_LISTS = ("messages", "conversations", "conversation", "contents", "dialogue", "chat")
_PAIRS = (("prompt", "completion"), ("prompt", "response"), ("instruction", "output"), ("question", "answer"))
_HEAD = 64 * 1024
_LONG = 16
"""Characters of an id that no other file has."""
_IDS = ("id", "conversation_id", "session_id", "custom_id")
_ROLES = {
    "human": "user",
    "gpt": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
}
_USAGE = {"input": "prompt_tokens", "output": "completion_tokens"}


def read(source: Source) -> Read:
    """The conversations of a file."""
    notes = Notes()
    found: dict[str, History] = {}
    single: list[dict[str, Any]] = []
    for line, record in objects(source, notes):
        messages = _messages(record)
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


def _messages(record: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The messages of a conversation: a list, a request with what came of it, or a question with its answer."""
    asked = members_of(record.get("body")) or members_of(record.get("request")) or record
    held = next((asked[name] for name in _LISTS if isinstance(asked.get(name), list)), None)
    response = members_of(record.get("response"))
    given = members_of(response.get("body")) or response or record
    choice = members_of(next(iter(items_of(given.get("choices"))), None))
    if held is not None or choice:
        last = members_of(choice.get("message"))
        usage = {"usage": given.get("usage"), "model": given.get("model"), **last} if last else {}
        return [*map(members_of, held or ()), *([usage] if last else [])]
    for question, answer in _PAIRS:
        if question in record and answer in record:
            return [*_said(record[question], "user"), *_said(record[answer], "assistant", record)]
    return None


def _said(value: object, role: str, record: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Messages as they are, or a text as one, with the fields of reasoning that stand beside it."""
    if isinstance(value, list):
        return [members_of(each) for each in value]
    beside = {name: record[name] for name in _FIELDS if record is not None and name in record}
    return [{**beside, "role": role, "content": value}]


def _id(record: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    """Its own id, where no other file can have it; with how it begins, where one can; else what it says."""
    own = next((found for key in _IDS if (found := plain(record.get(key)))), "")
    if len(own) >= _LONG:
        return own
    return key_of(NAME, own, canonical.source(_beginning(messages))) if own else key_of(NAME, canonical.source(record))


def _beginning(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages up to the first of the user."""
    asked = (at for at, message in enumerate(messages) if _role(message) == "user")
    return messages[: next(asked, 0) + 1]


def _role(message: dict[str, Any]) -> str:
    said_by = plain(message.get("role")) or plain(message.get("from"))
    return _ROLES.get(said_by, said_by)


def _history(id: str, messages: list[dict[str, Any]], record: dict[str, Any], notes: Notes) -> History:
    line = Line()
    model = plain(record.get("model"))
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role = _role(message)
        content = next((message[name] for name in ("content", "value", "parts", "text") if name in message), None)
        time = microseconds(message.get("timestamp") or message.get("created_at"))
        match role:
            case "user":
                parts = items_of(content)
                given = [members_of(part) for part in parts if members_of(part).get("type") == "tool_result"]
                rest = [part for part in parts if members_of(part) not in given] if given else content
                line.put(
                    f"{at} results", time, [result(each.get("tool_use_id"), each.get("content")) for each in given]
                )
                line.put(str(at), time, content_drafts(rest, NAME) if rest else ())
            case "assistant":
                answer = _answer(message, content, model, at)
                waiting = [block.id for block in answer.blocks if isinstance(block, ToolCall)]
                line.put(str(at), time, answer.drafts(NAME, id, str(at)))
            case "tool":
                named = plain(message.get("tool_call_id")) or (waiting[0] if waiting else "")
                waiting = [each for each in waiting if each != named]
                line.put(str(at), time, [result(named, content, message.get("name"))])
            case _:
                if role != "system":
                    notes.add(f"message of {role or 'nobody'}")
                line.put(str(at), time, [aside(f"{NAME} {role or 'message'}", text_of(content))])
    created = microseconds(record.get("created") or record.get("created_at") or record.get("timestamp"))
    return History(id, tuple(line.entries), line.tip, plain(record.get("title")), "", created)


def _answer(message: dict[str, Any], content: object, model: str, at: int) -> Answer:
    places = (message, *(members_of(message.get(name)) for name in _WITHIN))
    told = [(place[name], name) for place in places for name in _FIELDS if _says(place.get(name))]
    blocks: list[Block] = _told(told)
    for part in items_of(content) if isinstance(content, list) else [content]:
        blocks += _blocks(part, len(blocks), at)
    calls = [members_of(each) for each in items_of(message.get("tool_calls"))]
    calls += [{"function": message["function_call"]}] if isinstance(message.get("function_call"), dict) else []
    for each in calls:
        function = members_of(each.get("function")) or each
        id = plain(each.get("id")) or f"call_{at}_{len(blocks)}"
        arguments = function.get("arguments", function.get("args"))
        blocks.append(call(id, function.get("name"), arguments))
    usage = counts(message.get("usage"), **_USAGE)
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
    if kind == "tool_use":
        return [call(plain(fields.get("id")) or f"call_{at}_{index}", fields.get("name"), fields.get("input"))]
    if fields and not isinstance(fields.get("text"), str):
        return [Unknown(canonical.source(fields))]
    return _spoken(text_of(part) if isinstance(part, str) else plain(fields.get("text")))


def _spoken(text: str) -> list[Block]:
    """A text, and what of it stands between tags."""
    tags = TagSplitter()
    found: list[tuple[bool, str]] = []
    for kind, piece in ((each.kind, each.text) for each in (*tags.feed(text), *tags.close())):
        if kind == "lone_close":
            found = [(True, "".join(said for _, said in found))]
        elif kind not in ("open", "close"):
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
    return bool(_messages(first)) or ("role" in first and "content" in first) or "from" in first


FORMAT = Format(NAME, read, _is_own, endings=(".jsonl", ".json"))
