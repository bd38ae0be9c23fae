"""Chat completions as JSON lines: a conversation a line (``messages``), or a message a line, as for fine-tuning.

Reasoning is read in every spelling: a field of the message, a part of its content, tags at its beginning.
"""

from __future__ import annotations

import re
from typing import Any

from thinkback.formats.history import Answer, Format, History, Line, Notes, Read, Source, aside, key_of
from thinkback.formats.parts import (
    call,
    content_drafts,
    counts,
    first_records,
    items_of,
    microseconds,
    records,
    result,
    text_of,
    thought,
)
from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ToolCall, Unknown
from thinkback.wire.values import members_of, plain

NAME = "chat-jsonl"
_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "thinking", "thoughts", "thought")
_PARTS = ("thinking", "reasoning", "reasoning_text")
_TAGS = re.compile(r"\s*<(think|thinking|thought|reasoning)>(.*?)</\1>\s*", re.DOTALL)
_LISTS = ("messages", "conversations", "conversation")
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
    for line, record in records(source.lines, notes):
        name = next((name for name in _LISTS if isinstance(record.get(name), list)), "")
        if name:
            messages = [members_of(each) for each in record[name]]
            id = next((own for key in _IDS if (own := plain(record.get(key)))), "") or _id(record)
            if id in found:
                notes.add("a conversation that is there twice", line)
            else:
                found[id] = _history(id, messages, record, notes)
        elif "role" in record or "from" in record:
            single.append(record)
        else:
            notes.add("a line that is no conversation", line)
    if single:
        id = _id(single[0])
        found[id] = _history(id, single, {}, notes)
    return Read(tuple(each for each in found.values() if each.entries), notes.left())


def _id(record: dict[str, Any]) -> str:
    return key_of(NAME, canonical.source(record))


def _history(id: str, messages: list[dict[str, Any]], record: dict[str, Any], notes: Notes) -> History:
    line = Line()
    model = plain(record.get("model"))
    waiting: list[str] = []
    for at, message in enumerate(messages):
        said_by = plain(message.get("role")) or plain(message.get("from"))
        role, content = _ROLES.get(said_by, said_by), message.get("content", message.get("value"))
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
    field = next((name for name in _FIELDS if _words(message.get(name))), "")
    blocks: list[Block] = [thought(_words(message[field]), field)] if field else []
    for part in items_of(content) if isinstance(content, list) else [content]:
        blocks += _blocks(part, len(blocks), at)
    calls = [members_of(each) for each in items_of(message.get("tool_calls"))]
    calls += [{"function": message["function_call"]}] if isinstance(message.get("function_call"), dict) else []
    for each in calls:
        function = members_of(each.get("function"))
        id = plain(each.get("id")) or f"call_{at}_{len(blocks)}"
        blocks.append(call(id, function.get("name"), function.get("arguments")))
    usage = counts(message.get("usage"), **_USAGE)
    return Answer(blocks, plain(message.get("model")) or model, usage=usage)


def _blocks(part: object, index: int, at: int) -> list[Block]:
    """The blocks of a text, which may begin with tags, or of a part."""
    fields = members_of(part)
    kind = plain(fields.get("type"))
    if kind in _PARTS:
        words = next((found for name in (*_PARTS, "text", "summary") if (found := _words(fields.get(name)))), "")
        return [thought(words, kind, fields.get("signature"))]
    if kind == "tool_use":
        return [call(plain(fields.get("id")) or f"call_{at}_{index}", fields.get("name"), fields.get("input"))]
    if fields and not isinstance(fields.get("text"), str):
        return [Unknown(canonical.source(fields))]
    text = text_of(part) if isinstance(part, str) else plain(fields.get("text"))
    tagged = _TAGS.match(text)
    if tagged is None:
        return [Text(text)] if text else []
    rest = text[tagged.end() :]
    return [thought(tagged[2].strip(), "content"), *([Text(rest)] if rest else [])]


def _words(value: object) -> str:
    """The text of reasoning: as it is, or that of its parts under any name."""
    if not isinstance(value, list):
        return plain(value)
    names = ("text", "summary", "content", "thinking", "reasoning")
    found = (
        each
        if isinstance(each, str)
        else next((word for name in names if (word := plain(members_of(each).get(name)))), "")
        for each in value
    )
    return "\n".join(word for word in found if word)


def _is_own(head: bytes) -> bool:
    first = (first_records(head) or [{}])[0]
    named = any(isinstance(first.get(name), list) for name in _LISTS)
    return (named and "sessionId" not in first) or ("role" in first and "content" in first) or "from" in first


FORMAT = Format(NAME, read, _is_own)
