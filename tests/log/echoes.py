"""What clients make of a conversation before they send it back, for each dialect that they speak."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.wire.rewriting import rewrite
from thinkback.log.echo_digests import EchoedMessage, echoed_messages
from thinkback.model.blocks import Origin
from thinkback.model.commits import Draft
from thinkback.wire.registry import dialect
from thinkback.wire.result import ReadRequest

FRONTS = ("openai-chat", "openai-responses", "anthropic", "gemini")


def written(drafts: Sequence[Draft], front: str) -> dict[str, Any]:
    """A request of ``front`` that holds the history."""
    return rewrite(dialect(front).writer, ReadRequest("m", tuple(drafts), {}))


def echoed(body: dict[str, Any], front: str) -> list[EchoedMessage]:
    """What is visible of a request."""
    count = itertools.count()
    return echoed_messages(
        dialect(front).read_request(body, lambda: f"echo-{next(count)}", Origin(front, "", "")).drafts
    )


def entries_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The list that the conversation stands in."""
    found: list[dict[str, Any]] = next(body[key] for key in ("messages", "input", "contents") if key in body)
    return found


def parts_of(body: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Each entry whose content is a list, with that list."""
    for entry in entries_of(body):
        for key in ("content", "parts"):
            if isinstance(entry.get(key), list):
                yield entry, entry[key]


def marks(body: dict[str, Any]) -> None:
    """A cache mark on each part that may have one, and a key that nobody knows."""
    for _, parts in parts_of(body):
        for part in parts:
            if part.get("type") in ("text", "image", "tool_use", "tool_result", "input_text", "image_url"):
                part["cache_control"] = {"type": "ephemeral"}
    for entry in entries_of(body):
        if "role" in entry and "parts" not in entry:
            entry["x_database_id"] = 7


def anew(body: dict[str, Any]) -> None:
    """Arguments written by another program: other order, other spaces, whole numbers without a point."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            return int(value)
        return [turned(each) for each in value] if isinstance(value, list) else value

    def text(source: str) -> str:
        try:
            value = json.loads(source)
        except ValueError:
            return source + " "
        return json.dumps(turned(value), indent=1) if isinstance(value, dict) else source

    for entry in entries_of(body):
        for call in entry.get("tool_calls", ()):
            call["function"]["arguments"] = text(call["function"]["arguments"])
        if entry.get("type") == "function_call":
            entry["arguments"] = text(entry["arguments"])
        for part in entry.get("content") or entry.get("parts") or ():
            if isinstance(part, dict) and part.get("type") == "tool_use":
                part["input"] = turned(part["input"])
            if isinstance(part, dict) and "functionCall" in part:
                part["functionCall"]["args"] = turned(part["functionCall"]["args"])


def space(body: dict[str, Any]) -> None:
    """White space around what the model said, and other ends of lines."""

    def padded(text: str) -> str:
        return "\n " + text.replace("\n", "\r\n") + " \n"

    for entry in entries_of(body):
        if entry.get("role") not in ("assistant", "model"):
            continue
        if isinstance(entry.get("content"), str) and entry["content"]:
            entry["content"] = padded(entry["content"])
        for part in entry.get("content") or entry.get("parts") or ():
            if isinstance(part, dict) and part.get("text"):
                part["text"] = padded(part["text"])


def split(body: dict[str, Any]) -> None:
    """The model's text in two parts."""
    for entry in entries_of(body):
        role, content = entry.get("role"), entry.get("content")
        if role == "assistant" and isinstance(content, str) and len(content) > 1:
            kind = "output_text" if "input" in body else "text"
            texts = (content[: len(content) // 2], content[len(content) // 2 :])
            entry["content"] = [{"type": kind, "text": text} for text in texts]
        for part in list(entry.get("parts") or ()) if role == "model" else ():
            if part.keys() == {"text"} and len(part["text"]) > 1:
                at, half = entry["parts"].index(part), len(part["text"]) // 2
                entry["parts"][at : at + 1] = [{"text": part["text"][:half]}, {"text": part["text"][half:]}]


def ids(body: dict[str, Any]) -> None:
    """Ids of calls by the client's own count, or none where the dialect can do without."""
    names: dict[str, str] = {}

    def other(id: str) -> str:
        return names.setdefault(id, f"mine_{len(names)}")

    for entry in entries_of(body):
        for holder in (entry, *entry.get("tool_calls", ()), *(entry.get("content") or entry.get("parts") or ())):
            if not isinstance(holder, dict):
                continue
            for key in ("tool_call_id", "call_id", "tool_use_id"):
                if key in holder:
                    holder[key] = other(holder[key])
            if holder.get("type") in ("function", "tool_use"):
                holder["id"] = other(holder["id"])
            for key in ("functionCall", "functionResponse"):
                holder.get(key, {}).pop("id", None)


def system(body: dict[str, Any]) -> None:
    """Another system prompt, in another place."""
    if "contents" in body:
        body["systemInstruction"] = {"parts": [{"text": "Be kind."}]}
    elif "input" in body:
        body["instructions"] = "Be kind."
    elif front_is_chat(body):
        body["messages"].append({"role": "system", "content": "Be kind."})
    else:
        body["system"] = [{"type": "text", "text": "Be kind."}]


def front_is_chat(body: dict[str, Any]) -> bool:
    """Anthropic has results inside content, and calls too."""
    return not any(
        isinstance(part, dict) and part.get("type") in ("tool_use", "tool_result", "image")
        for _, parts in parts_of(body)
        for part in parts
    )


def results(body: dict[str, Any]) -> None:
    """Results as lists of text parts, or in the order in which they came."""
    for entry in entries_of(body):
        if entry.get("role") == "tool" and isinstance(entry["content"], str):
            entry["content"] = [{"type": "text", "text": entry["content"]}]
        if entry.get("type") == "function_call_output" and isinstance(entry["output"], str):
            entry["output"] = [{"type": "input_text", "text": entry["output"]}]
        for part in entry.get("content") or ():
            if isinstance(part, dict) and part.get("type") == "tool_result" and isinstance(part["content"], str):
                part["content"] = [{"type": "text", "text": part["content"]}]


def reversed_results(body: dict[str, Any]) -> None:
    """Parallel results in another order; their ids say what they answer."""
    entries = entries_of(body)
    at = 0
    while at < len(entries):
        end = at
        while end < len(entries) and (
            entries[end].get("role") == "tool" or entries[end].get("type") == "function_call_output"
        ):
            end += 1
        entries[at:end] = entries[at:end][::-1]
        at = end + 1
    for _, parts in parts_of(body):
        if parts and all("tool_use_id" in part or "functionResponse" in part for part in parts):
            parts.reverse()


def thoughts(body: dict[str, Any]) -> None:
    """Reasoning that the client was shown and gives back, in the form of its dialect."""
    for at, entry in enumerate(list(entries_of(body))):
        if entry.get("role") == "model":
            entry.setdefault("parts", []).insert(0, {"text": "Let me think.", "thought": True})
        elif entry.get("role") == "assistant" and "messages" in body and isinstance(entry.get("content"), list):
            entry["content"].insert(0, {"type": "thinking", "thinking": "Let me think.", "signature": "s"})
        elif entry.get("role") == "assistant" and "messages" in body:
            entry["reasoning_content"] = "Let me think."
        elif entry.get("role") == "assistant":
            thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Let me think."}]}
            entries_of(body).insert(at + sum(each.get("type") == "reasoning" for each in entries_of(body)), thought)


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "cache marks": marks,
    "arguments anew": anew,
    "white space": space,
    "text in two parts": split,
    "system prompt": system,
    "results as parts": results,
    "results in another order": reversed_results,
    "reasoning": thoughts,
    "ids": ids,
}
