"""What a history of a program says, counted without its reader: plain JSON, the names of types and members alone.

A fact is a kind and a text without white space; what two sides say of one thing may be cut or joined differently.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from thinkback.log.protocol import Store
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult, Unknown, carriers_of, opaque_values
from thinkback.model.commits import Commit, Message, Usage

Facts = Counter[tuple[str, str]]
_Fact = tuple[str, str]


def fact(kind: str, *words: object) -> _Fact:
    """One of them. Of a text that is JSON only the value counts."""
    return kind, " ".join("".join(_text(word).split()) for word in words)


def _text(word: object) -> str:
    if isinstance(word, str):
        try:
            value = json.loads(word)
        except ValueError:
            return word
        return json.dumps(value, sort_keys=True) if isinstance(value, dict) else word
    return "" if word is None else json.dumps(word, sort_keys=True)


def _texts(content: Any) -> str:
    """All texts below a value: what a person reads of a result."""
    if isinstance(content, list):
        return "".join(map(_texts, content))
    return _texts(content.get("text")) if isinstance(content, dict) else content if isinstance(content, str) else ""


def _claude_code(lines: list[Any]) -> Iterator[_Fact]:
    """A response stands in a line for each block, and says its usage in all of them."""
    used: dict[str, Any] = {}
    for line in {line["uuid"]: line for line in lines if "uuid" in line}.values():
        message = line.get("message", {})
        content = message.get("content", [])
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if line["type"] == "assistant":
            used[message["id"]] = message["usage"]
        for part in parts:
            match part["type"]:
                case "thinking":
                    yield fact("thought", part["thinking"])
                    yield from _opaque(part["signature"])
                case "redacted_thinking":
                    yield fact("thought", "")
                    yield from _opaque(part["data"])
                case "tool_use":
                    yield fact("call", part["id"], part["name"], part["input"])
                case "tool_result":
                    yield fact("result", part["tool_use_id"], _texts(part["content"]))
                case "text" if line["type"] == "assistant":
                    yield fact("said", part["text"])
                case "text" if not line.get("isMeta"):
                    yield fact("asked", part["text"])
    for usage in used.values():
        yield fact("usage", usage["input_tokens"], usage["output_tokens"])


def _codex(lines: list[Any]) -> Iterator[_Fact]:
    """Items stand in the payloads; usage of a response is told twice."""
    records = [line["payload"]["usage"] for line in lines if line["type"] == "token_usage_record"]
    told = [line["payload"].get("info") for line in lines if line["type"] == "event_msg"]
    # older versions tell it in events, which come again with the same sum
    events = {json.dumps(each["total_token_usage"]): each["last_token_usage"] for each in told if each}
    for usage in records or events.values():
        yield fact("usage", usage["input_tokens"], usage["output_tokens"])
    for item in (line["payload"] for line in lines if line["type"] == "response_item"):
        match item["type"]:
            case "reasoning":
                yield fact("thought", _texts(item.get("summary")) + _texts(item.get("content")))
                yield from _opaque(item.get("encrypted_content"))
            case "function_call":
                yield fact("call", item["call_id"], item["name"], item["arguments"])
            case "custom_tool_call":
                yield fact("call", item["call_id"], item["name"], item["input"])
            case "function_call_output" | "custom_tool_call_output":
                yield fact("result", item["call_id"], _texts(item["output"]))
            case "message" if item["role"] == "assistant":
                yield fact("said", _texts(item["content"]))
            case "message" if not _is_context(item):
                yield fact("asked", _texts(item["content"]))


def _is_context(item: Any) -> bool:
    """Newer versions say what a message is made of."""
    about = item.get("internal_chat_message_metadata_passthrough", {}).get("content_item_kinds")
    own = "user.text" in about if about else not _texts(item["content"]).startswith(("<", "# AGENTS.md"))
    return item["role"] != "user" or not own


def _pi(lines: list[Any]) -> Iterator[_Fact]:
    """Blocks in a neutral form, signed each in its own way."""
    for message in (line["message"] for line in lines if line["type"] == "message"):
        if message["role"] == "toolResult":
            yield fact("result", message["toolCallId"].split("|")[0], _texts(message["content"]))
            continue
        if "usage" in message:
            yield fact("usage", message["usage"]["input"], message["usage"]["output"])
        for part in message["content"]:
            names = (
                "thinkingSignature",
                "thoughtSignature",
                "textSignature" if "google" in message.get("api", "") else "",
            )
            signature = next((part[name] for name in names if name in part), None)
            if signature and signature.startswith("{"):  # an item of the Responses API
                signature = json.loads(signature).get("encrypted_content")
            yield from _opaque(signature)
            match part["type"]:
                case "thinking":
                    yield fact("thought", part["thinking"])
                case "toolCall":
                    yield fact("call", part["id"].split("|")[0], part["name"], part["arguments"])
                case "text":
                    yield fact("said" if message["role"] == "assistant" else "asked", part["text"])


def _gemini_cli(lines: list[Any]) -> Iterator[_Fact]:
    """The last line with an id has all of the message; results stand beside the calls, and once more by themselves.

    A thought that came in pieces is stored in pieces, of which only the first can have a subject. When the program
    opens a chat again it writes its messages once more, without what stands beside their contents.
    """
    told = [each for line in lines for each in (*line.get("$set", {}).get("messages", ()), line) if "id" in each]
    first = {each["id"]: each["type"] for each in reversed(told)}
    told = [each for each in told if each["type"] != "gemini" or isinstance(each["content"], str)]
    own = [each for each in told if each["type"] == first[each["id"]]]
    for message in {each["id"]: each for each in own}.values():
        if message["type"] == "user":
            text = "".join(_texts(part) for part in message["content"])
            yield from [fact("asked", text)] if text and not text.startswith("<session_context>") else []
        if message["type"] != "gemini":
            continue
        yield from [fact("said", message["content"])] if message["content"] else []
        yield fact("usage", message["tokens"]["input"], message["tokens"]["output"])
        thoughts = [[each["subject"], each["description"]] for each in message.get("thoughts", [])]
        if thoughts:
            whole = "".join(f"\0**{one}**{two}" if one or not at else two for at, (one, two) in enumerate(thoughts))
            yield from (fact("thought", each.replace("****", "")) for each in whole.split("\0")[1:])
        for call in message.get("toolCalls", []):
            yield fact("call", call["id"], call["name"], call["args"])
            given = {part["functionResponse"]["id"]: part["functionResponse"] for part in call.get("result", [])}
            if call["id"] in given:
                yield fact("result", call["id"], given[call["id"]]["response"].get("output", ""))


def _opencode(rows: list[Any]) -> Iterator[_Fact]:
    """Parts of messages; a step tells its usage at its end."""
    roles = {row["id"]: row["data"]["role"] for row in rows if row["table"] == "message"}
    for row in rows:
        part = row["data"] if row["table"] == "part" else {}
        match part.get("type"):
            case "reasoning":
                yield fact("thought", part["text"])
                for about in part.get("metadata", {}).values():
                    yield from _opaque(about.get("signature"))
                    yield from _opaque(about.get("reasoningEncryptedContent"))
            case "tool":
                yield fact("call", part["callID"], part["tool"], part["state"]["input"])
                if part["state"]["status"] in ("completed", "error"):
                    yield fact("result", part["callID"], part["state"].get("output", part["state"].get("error")))
            case "step-finish":
                yield fact("usage", part["tokens"]["input"], part["tokens"]["output"])
            case "text" if not part.get("synthetic"):
                yield fact(
                    "said" if roles[row.get("message_id") or row["within"]] == "assistant" else "asked", part["text"]
                )


def _opaque(value: str | None) -> list[_Fact]:
    return [fact("opaque", value)] if value else []


COUNTS: dict[str, Callable[[list[Any]], Iterable[_Fact]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "opencode": _opencode,
    "pi": _pi,
}


def in_source(name: str, data: str) -> Facts:
    """The facts of a file."""
    return Counter(COUNTS[name]([json.loads(line) for line in data.splitlines() if line.strip()]))


def in_log(log: Store) -> Facts:
    """The facts of all sessions, each commit once."""
    found = {
        commit.hash: commit
        for info in log.list_sessions()
        for branch in log.refs.list(info.id)
        for commit in log.read(info.id, branch=branch.name)
    }
    return Counter(each for commit in found.values() for each in _facts(commit))


def _facts(commit: Commit) -> Iterator[_Fact]:
    match value := commit.value:
        case ThinkingBlock():
            yield fact("thought", value.thought)
        case ToolCall():
            yield fact("call", value.id, value.name, value.arguments)
        case ToolResult():
            yield fact("result", value.id, value.content)
        case Text():
            yield fact("said", value.text)
        case Message():
            yield fact("asked", value.text)
        case Usage():
            yield fact("usage", value.input, value.output)
    if isinstance(value, ThinkingBlock | ToolCall | Text | Unknown):
        own = [carrier for carrier in carriers_of(value) if carrier.kind != "item_id"]
        yield from (fact("opaque", each) for each in opaque_values(own))
