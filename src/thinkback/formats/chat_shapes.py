"""The messages of a record of JSON, whichever API or library wrote it, as messages of chat completions have them.

Must not: know what a message says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from thinkback.formats.history import Notes
from thinkback.formats.parts import items_of, text_of, value_of
from thinkback.wire.values import members_of, plain

FIELDS = (
    *("reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "reasoningContent"),
    *("thinking", "thinking_blocks", "thinking_content", "thoughts", "thought", "think"),
    *("reasoning_trace", "reasoning_summary", "chain_of_thought", "cot", "rationale"),
)
"""What reasoning is called beside a text."""
_LISTS = ("messages", "conversations", "conversation", "contents", "dialogue", "chat", "history", "input")
_PAIRS = (
    *(("prompt", "completion"), ("prompt", "response"), ("prompt", "chosen"), ("instruction", "output")),
    *(("question", "answer"), ("query", "response"), ("problem", "solution"), ("input", "output")),
)
_ANSWERS = ("response", "completion", "output", "answer", "chosen")
_ROLES = {
    "human": "user",
    **dict.fromkeys(("gpt", "bot", "model", "ai", "chatgpt", "function_call", "tool_call"), "assistant"),
    **dict.fromkeys(("function", "observation", "ipython", "tool_response"), "tool"),
    "developer": "system",
}
_KNOWN = frozenset({*_ROLES, *_ROLES.values()})
_MADE = frozenset({"reasoning", "message", "function_call", "custom_tool_call"})
_OUTPUT = "_output"


def messages_of(record: dict[str, Any], notes: Notes) -> list[dict[str, Any]] | None:
    """The messages of a conversation: a list, a request with what came of it, or a question with its answer; ``None``
    for anything else.
    """
    asked = _first(record, "body", "request", "inputs") or record
    response = _first(record, "response", "result", "outputs")
    given = members_of(response.get("body")) or response
    answers = _answers(given or record, notes, is_own=bool(given))
    held = next((asked[name] for name in _LISTS if isinstance(asked.get(name), list)), None)
    if held is not None:
        said = next((record[name] for name in _ANSWERS if isinstance(record.get(name), str | list)), None)
        rest = [] if answers or said is None else _said(said, "assistant", record)
        return [*_instructions(asked), *_items(held), *answers, *rest]
    if answers:
        return [*_instructions(asked), *(_said(asked["input"], "user") if "input" in asked else ()), *answers]
    for question, answer in _PAIRS:
        if question in record and answer in record:
            return [*_said(record[question], "user"), *_said(record[answer], "assistant", record)]
    return None


def role_of(message: dict[str, Any]) -> str:
    """Who says it, by the names of chat completions; any other name as it is."""
    names = (plain(message.get(name)) for name in ("role", "from", "sender", "author"))
    kind = plain(message.get("type")).lower()
    said_by = next(filter(None, names), "") or (kind if kind in _KNOWN else "")
    return _ROLES.get(said_by.lower(), said_by.lower() if said_by.lower() in _KNOWN else said_by)


def _first(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return next((found for name in names if (found := members_of(record.get(name)))), {})


def _instructions(asked: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """What a request has as instructions beside its messages."""
    said = asked.get("system") or asked.get("instructions") or _first(asked, "systemInstruction").get("parts")
    return [{"role": "system", "content": said}] if text_of(said) else []


def _answers(given: dict[str, Any], notes: Notes, *, is_own: bool) -> list[dict[str, Any]]:
    """What a model answered; a message alone is an answer only where it ``is_own``: no line of a conversation."""
    about: dict[str, Any] = {name: given[name] for name in ("usage", "model") if name in given}
    choices = [members_of(each) for name in ("choices", "candidates") for each in items_of(given.get(name))]
    for _ in choices[1:]:
        notes.add("a further choice")
    for choice in choices[:1]:
        text = {"content": choice["text"]} if isinstance(choice.get("text"), str) else {}
        said = _first(choice, "message", "content") or text
        return [{**about, "role": "assistant", **said}] if said else []
    if any(plain(members_of(item).get("type")) in _MADE for item in items_of(given.get("output"))):
        return [{**about, **message} for message in _items(given["output"])]
    said = members_of(given.get("message")) or (given if is_own and "content" in given else {})
    return [{**about, "role": "assistant", **said}] if said else []


def _said(value: object, role: str, record: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Messages as they are, or a text as one, with the fields of reasoning that stand beside it."""
    if isinstance(value, list):
        return _items(value)
    beside = {name: record[name] for name in FIELDS if record is not None and name in record}
    return [{**beside, "role": role, "content": value}]


def _items(values: Sequence[object]) -> list[dict[str, Any]]:
    """Messages as they are, those of libraries without what they are wrapped in; items of the Responses API that
    follow one another as one message.
    """
    found: list[dict[str, Any]] = []
    parts: list[Any] | None = None
    for value in values:
        item = _bare(members_of(value))
        kind = plain(item.get("type"))
        if kind in _MADE and "from" not in item and item.get("role", "assistant") == "assistant":
            if parts is None:
                parts = []
                found.append({"role": "assistant", "content": parts})
            content = item.get("content")
            parts += (items_of(content) or [content]) if kind == "message" else [item]
            continue
        parts = None
        if kind.endswith(_OUTPUT):
            item = {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
        found.append({**item, **_call(item)})
    return found


def _call(message: dict[str, Any]) -> dict[str, Any]:
    """A call that a message of its own makes: of ShareGPT, or to a recipient of OpenAI's open models."""
    named = plain(message.get("recipient"))
    if plain(message.get("from")) in ("function_call", "tool_call"):
        function = members_of(value_of(plain(message.get("value"))))
    elif named.startswith("functions."):
        function = {"name": named.removeprefix("functions."), "arguments": message.get("content")}
    else:
        return {}
    return {"tool_calls": [{"function": function}], "value": None, "content": None} if function else {}


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    """A message as LangChain has it, without its wrapping."""
    inner = members_of(message.get("data")) or members_of(message.get("kwargs"))
    if not inner or message.keys() & {"role", "from"}:
        return message
    path = items_of(message.get("id"))
    kind = plain(path[-1]).lower().partition("message")[0] if path else plain(message.get("type"))
    return {**inner, "type": kind}
