"""pi: JSON lines, a tree by ``id`` and ``parentId``; blocks in a neutral form that names the API they are from.

A response is put back into the blocks of its dialect: the signature of a thought is the item itself (Responses), the
name of a field (chat completions) or a signature. The first versions had no ids: their lines follow one another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from thinkback.formats.history import Answer, Entry, Format, History, Notes, Read, Source, aside
from thinkback.formats.parts import (
    call,
    content_drafts,
    counts,
    first_records,
    id_in,
    items_of,
    microseconds,
    records,
    result,
    text_of,
    thought,
    value_of,
)
from thinkback.model import canonical
from thinkback.model.blocks import THOUGHT_FORMATS, Block, Carrier, Text, ThinkingBlock, Unknown
from thinkback.model.commits import BranchSummary, Compaction, Draft
from thinkback.wire.openai_responses.blocks import block_of
from thinkback.wire.values import members_of, plain

NAME = "pi"


class _Api(NamedTuple):
    """How an API's name begins, the dialect of its blocks, and how they are written."""

    start: str
    dialect: str
    field: str = "thought"
    """The member that a thought stands in."""
    items: bool = False
    """Whether a block is an item, as its signature says."""


_APIS = (
    _Api("anthropic", "anthropic", field="thinking"),
    _Api("openai-completions", "openai-chat"),
    _Api("openai", "openai-responses", items=True),
    _Api("azure-openai", "openai-responses", items=True),
    _Api("google", "gemini"),
)
_NO_API = _Api("", "")
_BROKEN = ("error", "aborted")


def read(source: Source) -> Read:
    """The session of a file."""
    notes = Notes()
    made = _Session(notes, id_in(source.name))
    for line, record in records(source.lines, notes, once=True):
        made.take(line, record)
    history = made.history()
    return Read((history,) if history.id and history.entries else (), notes.left())


class _Session:
    """A session as it is put together."""

    def __init__(self, notes: Notes, named: str) -> None:
        self._notes = notes
        # What the file is called by: its id, where its header cannot be read.
        self._named = named
        self._entries: list[Entry] = []
        self._parents: dict[str, str] = {}
        # Where each line of the file stands.
        self._places: dict[str, str] = {}
        self._id = self._tip = self._directory = self._title = ""
        self._created = 0
        self._cost = 0.0

    def history(self) -> History:
        """All of it."""
        cost = round(self._cost * 1_000_000) or None
        return History(
            self._id, tuple(self._entries), self._tip, self._title, self._directory, self._created, cost=cost
        )

    def take(self, line: int, record: dict[str, Any]) -> None:
        """A line."""
        kind, time = plain(record.get("type")), microseconds(record.get("timestamp"))
        if kind == "session":
            self._id = self._id or plain(record.get("id"))
            self._directory, self._created = plain(record.get("cwd")), time
            return
        if kind == "message" and "message" in record:
            self._id = self._id or self._named
        id = plain(record.get("id")) or str(line)
        if id in self._places:
            self._notes.add("a line that is there twice", line)
            return
        parent = self._above(record)
        drafts = self._drafts(line, kind, record, id)
        self._places[id] = id if drafts else parent
        if drafts:
            self._entries.append(Entry(id, parent, time, drafts))
            self._parents[id] = parent
        self._tip = self._places[id]

    def _above(self, record: dict[str, Any]) -> str:
        if "parentId" in record and record["parentId"] is None:
            return ""
        return self._places.get(plain(record.get("parentId")), self._tip)

    def _drafts(self, line: int, kind: str, record: dict[str, Any], id: str) -> tuple[Draft, ...]:
        summary = plain(record.get("summary"))
        match kind:
            case "message":
                return self._message(line, members_of(record.get("message")), id)
            case "compaction" if summary:
                kept = self._places.get(plain(record.get("firstKeptEntryId")), "")
                last = self._parents.get(kept, "")
                return (Draft("compaction", Compaction("model", summary, last=last, reason=NAME)),)
            case "branch_summary" if summary:
                return (Draft("branch_summary", BranchSummary(summary)),)
            case "custom_message":
                return (aside(f"{NAME} {kind}", text_of(record.get("content"))),)
            case "session_info":
                self._title = plain(record.get("name")) or self._title
                return ()
        self._notes.add(kind or "a line without a type", line)
        return ()

    def _message(self, line: int, message: dict[str, Any], id: str) -> tuple[Draft, ...]:
        role, content = plain(message.get("role")), message.get("content")
        match role:
            case "user":
                return content_drafts(content, NAME)
            case "assistant":
                return self._answer(message).drafts(NAME, self._id, id)
            case "toolResult":
                call_id = plain(message.get("toolCallId")).partition("|")[0]
                failed = message.get("isError") is True
                return (result(call_id, content, message.get("toolName"), is_error=failed),)
            case "bashExecution":
                text = f"$ {plain(message.get('command'))}\n{plain(message.get('output'))}"
                return (aside(f"{NAME} {role}", text, message),)
        self._notes.add(f"message of {role or 'nobody'}", line)
        return (aside(f"{NAME} message", text_of(content), message),)

    def _answer(self, message: dict[str, Any]) -> Answer:
        name, usage = plain(message.get("api")), members_of(message.get("usage"))
        api = next((api for api in _APIS if name.startswith(api.start)), _NO_API)
        stop = plain(message.get("stopReason"))
        cost = members_of(usage.get("cost")).get("total")
        if isinstance(cost, int | float) and 0 <= cost < 1e9:
            self._cost += cost
        names = {"input": "input", "output": "output", "cached": "cacheRead", "cache_write": "cacheWrite"}
        return Answer(
            [_block(members_of(part), api) for part in items_of(message.get("content"))],
            model=plain(message.get("model")),
            id=plain(message.get("responseId")),
            finish=stop,
            usage=counts(usage, ("cache_beside_input",), **names, reasoning="reasoning"),
            error=(plain(message.get("errorMessage")) or stop) if stop in _BROKEN else "",
            dialect=api.dialect,
        )


def _block(part: dict[str, Any], api: _Api) -> Block:
    kind = plain(part.get("type"))
    signed = tuple(
        Carrier("thought_signature", value)
        for name in ("thoughtSignature", "textSignature")
        if (value := plain(part.get(name)))
    )
    match kind:
        case "text":
            text = plain(part.get("text"))
            return _text_item(text, part) if api.items else Text(text, carriers=signed)
        case "thinking":
            return _thought(part, api)
        case "toolCall" if api.items:
            id, _, item = plain(part.get("id")).partition("|")
            made = call(id, part.get("name"), part.get("arguments"))
            fields = {
                "type": "function_call",
                "id": item,
                "call_id": id,
                "name": made.name,
                "arguments": made.arguments,
            }
            return _item(fields)
        case "toolCall":
            made = call(part.get("id"), part.get("name"), part.get("arguments"))
            return type(made)(made.id, made.name, made.arguments, carriers=signed)
    return Unknown(canonical.source(part))


def _text_item(text: str, part: dict[str, Any]) -> Block:
    """A message as an item; its signature is its id, or an object that has it."""
    signature = plain(part.get("textSignature"))
    about = members_of(value_of(signature)) or {"id": signature}
    content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]
    phase = {"phase": about["phase"]} if plain(about.get("phase")) else {}
    named = {"id": about["id"]} if plain(about.get("id")) else {}
    return _item({"type": "message", **named, "status": "completed", "role": "assistant", **phase, "content": content})


def _thought(part: dict[str, Any], api: _Api) -> Block:
    text, signature = plain(part.get("thinking")), plain(part.get("thinkingSignature"))
    if api.items and isinstance(item := value_of(signature), dict):
        return _item(item)
    if part.get("redacted") is True:
        return ThinkingBlock(
            "", source_field="redacted_thinking", kind="none", carriers=(Carrier("redacted", signature),)
        )
    if signature in THOUGHT_FORMATS:
        return thought(text, signature)
    return thought(text, api.field, signature)


def _item(fields: dict[str, Any]) -> Block:
    return block_of(fields, canonical.source(fields))


def _is_own(head: bytes) -> bool:
    found = first_records(head)
    headers = (each.get("type") == "session" and each.keys() >= {"id", "cwd"} for each in found[:1])
    return any(headers) or any({"type", "id", "parentId", "message"} <= each.keys() for each in found)


FORMAT = Format(NAME, read, _is_own, home=".pi/agent", variable="PI_CODING_AGENT_DIR", folders=("sessions",))
