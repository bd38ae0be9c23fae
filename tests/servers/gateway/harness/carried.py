"""What request bodies hold, whatever their dialect: what was said, and of which reasoning, in which place."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from thinkback.model.think_tags import untagged

Json = dict[str, Any]

MESSAGES = {"gemini": "contents", "openai-responses": "input"}
_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
_CHAT = (*_FIELDS, "reasoning_details", "reasoning_opaque", "thought_signature", "extra_content", "reasoning_items")
_OPAQUE = frozenset(
    {"signature", "thoughtSignature", "thought_signature", "encrypted_content", "redactedContent", "data"}
)
_HOLDERS = frozenset({"redacted_thinking", "reasoning.encrypted"})
_FOREIGN = frozenset({"arguments", "args", "input", "output", "response", "result", "toolResult", "inlineData"})
_TAGGED = re.compile(r"<(think|thinking|thought|reasoning)>(.*?)</\1>", re.DOTALL)
_STANDARD = str.maketrans("-_", "+/")
_CALLED = frozenset({"functionCall", "function_call", "toolUse"})


class Carried(NamedTuple):
    """A piece of reasoning in a request: ``place`` counts what was said before it (turns of people, calls, texts)."""

    place: tuple[int, int, int]
    kind: str
    value: str


def messages_of(dialect: str, body: Json) -> list[Json]:
    """The messages of a body; none where the input is a text."""
    found = body.get(MESSAGES.get(dialect, "messages"))
    return found if isinstance(found, list) else []


def is_peoples(message: Mapping[str, Any]) -> bool:
    """Whether a message or item was not made by a model."""
    kind = str(message.get("type") or "")
    return message.get("role") in ("user", "system", "developer", "tool", "function") or kind.endswith(
        ("_output", "_response", "_result")
    )


def standard(value: str) -> str:
    """Base64 in the one alphabet, any other text for what it is worth."""
    return value.translate(_STANDARD)


# -- what a client forgets ---------------------------------------------------------------------------------------------


def forgotten(dialect: str, body: Json) -> Json:
    """``body`` as a client sends it that keeps what is visible, and knows nothing of reasoning."""
    body = copy.deepcopy(body)
    key = MESSAGES.get(dialect, "messages")
    if isinstance(body.get(key), list):
        body[key] = list(_remembered(dialect, body[key]))
    return body


def _remembered(dialect: str, messages: list[Json]) -> Iterator[Json]:
    for message in messages:
        if is_peoples(message):
            yield message
        elif dialect == "openai-responses":
            if message.get("type") != "reasoning":
                yield _item(message)
        elif dialect == "openai-chat":
            yield _chat(message)
        else:
            key = "parts" if dialect == "gemini" else "content"
            if isinstance(message.get(key), list):
                kept = [part for part in map(_part, message[key]) if part is not None]
                if kept:
                    yield {**message, key: kept}
            else:
                yield message


def _item(item: Json) -> Json:
    return {key: value for key, value in item.items() if key not in ("id", "status", "phase", "encrypted_content")}


def _chat(message: Json) -> Json:
    kept = {key: value for key, value in message.items() if key not in _CHAT}
    if isinstance(kept.get("content"), str):
        kept["content"] = untagged(kept["content"])
    if isinstance(kept.get("tool_calls"), list):
        kept["tool_calls"] = [{k: v for k, v in call.items() if k not in _CHAT} for call in kept["tool_calls"]]
    return kept


def _part(part: Json) -> Json | None:
    if part.get("thought") is True or part.get("type") in ("thinking", "redacted_thinking"):
        return None
    kept = {key: value for key, value in part.items() if key not in ("thoughtSignature", "thought_signature")}
    return None if kept in ({}, {"text": ""}) or "reasoningContent" in kept else kept


# -- what is carried ---------------------------------------------------------------------------------------------------


def carried(dialect: str, body: Json) -> list[Carried]:
    """The reasoning in the messages of ``body``, in order."""
    found = _Found()
    for message in messages_of(dialect, body):
        if is_peoples(message):
            found.said_by_people()
        else:
            found.take(message)
    return found.carried


class _Found:
    def __init__(self) -> None:
        self.carried: list[Carried] = []
        self._turns = self._calls = self._said = 0
        self._people = False

    def said_by_people(self) -> None:
        if not self._people:
            self._turns += 1
        self._people = True

    def take(self, message: Json) -> None:
        """A message or item of a model."""
        self._people = False
        kind = message.get("type")
        if kind == "reasoning":
            self._reasoning_item(message)
        elif kind in ("function_call", "custom_tool_call"):
            self._call(message)
        elif "role" in message:
            self._message(message)

    def _add(self, kind: str, value: object) -> None:
        if isinstance(value, str) and value.strip():
            value = standard(value) if kind == "thoughtSignature" else value
            self.carried.append(Carried((self._turns, self._calls, self._said), kind, value))

    def _reasoning_item(self, item: Json) -> None:
        for part in (*(item.get("summary") or ()), *(item.get("content") or ())):
            self._add("text", part.get("text"))
        self._add("opaque", item.get("encrypted_content"))

    def _message(self, message: Json) -> None:
        texts = dict.fromkeys(str(message.get(key) or "") for key in _FIELDS if isinstance(message.get(key), str))
        for entry in message.get("reasoning_details") or ():
            texts.setdefault(str(entry.get("text") or entry.get("summary") or ""), None)
            self._add("opaque", entry.get("signature"))
            self._add("opaque", entry.get("data"))
        for text in texts:
            self._add("text", text)
        for key in ("thought_signature", "reasoning_opaque"):
            self._add("opaque", message.get(key))
        self._add("opaque", ((message.get("extra_content") or {}).get("google") or {}).get("thought_signature"))
        content = message.get("content", message.get("parts"))
        if isinstance(content, str):
            for tagged in _TAGGED.finditer(content):
                self._add("text", tagged[2])
            before, closed, _ = content.partition("</think>")
            if closed and "<think>" not in before:  # a template that opened the tag itself
                self._add("text", before)
            self._text(untagged(content))
        for part in content if isinstance(content, list) else ():
            self._part(part)
        for call in message.get("tool_calls") or ():
            google = (call.get("extra_content") or {}).get("google") or {}
            self._add("opaque", google.get("thought_signature"))
            self._call(call)

    def _part(self, part: Json) -> None:
        match part:
            case {"type": "thinking", "thinking": list() as pieces}:
                self._add("text", "".join(piece.get("text", "") for piece in pieces))
            case {"type": "thinking"}:
                self._add("text", part.get("thinking"))
                self._add("opaque", part.get("signature"))
            case {"type": "redacted_thinking"}:
                self._add("opaque", part.get("data"))
            case {"reasoningContent": dict() as reasoning}:
                self._add("text", (reasoning.get("reasoningText") or {}).get("text"))
                self._add("opaque", (reasoning.get("reasoningText") or {}).get("signature"))
                self._add("opaque", reasoning.get("redactedContent"))
            case {"thought": True}:
                self._add("text", part.get("text"))
                self._add("thoughtSignature", part.get("thoughtSignature"))
            case _:
                self._add("thoughtSignature", part.get("thoughtSignature", part.get("thought_signature")))
                if isinstance(part.get("text"), str):
                    self._text(part["text"])
                elif not _CALLED.isdisjoint(part) or part.get("type") == "tool_use":
                    self._call(part)

    def _call(self, call: Json) -> None:
        self._calls += 1

    def _text(self, text: str) -> None:
        self._said += len("".join(text.split()))


# -- what was recorded -------------------------------------------------------------------------------------------------


class Minted:
    """Opaque values and texts of the recorded responses, as far as they have come."""

    def __init__(self) -> None:
        self._same: dict[str, str] = {}
        self._digests: set[str] = set()
        self._texts: list[str] = []

    def take(self, exchange: Json) -> None:
        """A response that was recorded. A stream may give two values for one item: either is accepted."""
        for item, value in _opaque(_documents(exchange["response"])):
            value = standard(value)
            self._same[value] = self._same.get(item, value) if item else value
            if item:
                self._same.setdefault(item, value)
        expect = exchange["expect"]
        self._digests.update(expect.get("opaque_sha256") or ())
        for text in (expect.get("reasoning_text") or "", *(p["text"] for p in expect.get("reasoning_parts") or ())):
            self._texts.append(_bare(text or ""))

    def of(self, piece: Carried) -> Carried | None:
        """``piece`` if one of the responses had it, in the one form that equal ones have."""
        if piece.kind == "text":
            text = _bare(piece.value)
            return piece._replace(value=text) if any(text in told for told in self._texts) else None
        value = standard(piece.value)
        same = self._same.get(value)
        if same is None and hashlib.sha256(piece.value.encode()).hexdigest()[:16] in self._digests:
            same = value
        return piece._replace(kind="opaque", value=same) if same is not None else None


def _bare(text: str) -> str:
    return "".join(text.split())


def _documents(response: Json) -> list[Any]:
    if "frames" in response:
        return [frame["payload"] for frame in response["frames"]]
    if "raw" not in response:
        return [response["body"]]
    lines = response.get("sse") or response.get("ndjson") or ()
    return [json.loads(line) if isinstance(line, str) else line for line in lines if line != "[DONE]"]


def _opaque(node: Any, item: str = "") -> Iterator[tuple[str, str]]:
    """(id of the item, value) of every text in a place of opaque values."""
    if isinstance(node, list):
        for each in node:
            yield from _opaque(each, item)
    elif isinstance(node, dict):
        if node.get("type") == "reasoning":
            item = str(node.get("id") or "")
        for key, value in node.items():
            if isinstance(value, str):
                if key in _OPAQUE and value:
                    yield item if key == "encrypted_content" else "", value
            elif key not in _FOREIGN - {"output", "response"}:
                yield from _opaque(value, item)
