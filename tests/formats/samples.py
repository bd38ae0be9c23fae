"""Small histories as the programs write them: two questions, a call, a thought whose text was withheld."""

from __future__ import annotations

import json
from typing import Any

from thinkback.formats.history import History, Read, Source
from thinkback.formats.registry import program
from thinkback.model.commits import Draft

HERE = "/home/person/dev/proj"


def jsonl(*records: Any) -> bytes:
    """JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def read(name: str, data: bytes, **rest: Any) -> Read:
    """What the reader of a program makes of a file."""
    return program(name).read(Source("file", data.splitlines(keepends=True), **rest))


def only(name: str, data: bytes) -> History:
    """The one session of a file."""
    (history,) = read(name, data).sessions
    return history


def kinds(history: History) -> list[str]:
    """The kinds of all commits, in the order of the source."""
    return [draft.kind for draft in drafts(history)]


def drafts(history: History, kind: str = "") -> list[Draft]:
    """All drafts, or those of a kind."""
    return [draft for entry in history.entries for draft in entry.drafts if kind in ("", draft.kind)]


def paths(history: History) -> list[list[str]]:
    """The ids of the entries of each line, from its beginning to an end that nothing follows."""
    above = {entry.id: entry.parent for entry in history.entries}
    found = []
    for leaf in [id for id in above if id not in above.values()]:
        line = [leaf]
        while above[line[0]]:
            line.insert(0, above[line[0]])
        found.append(line)
    return found


def claude(id: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """A line of Claude Code."""
    message = {"role": kind, "content": content, **more.pop("message", {})}
    about = {"sessionId": "s1", "cwd": HERE, "timestamp": "2026-11-22T02:40:05.000Z", "isSidechain": False}
    return {**about, "uuid": id, "parentUuid": parent, "type": kind, "message": message, **more}


def minted(id: str, stop: str = "tool_use") -> dict[str, Any]:
    """What a line of a response has besides its block."""
    usage = {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 7}
    return {"message": {"id": id, "model": "claude-opus-5-5", "stop_reason": stop, "usage": usage}}


def used(id: str) -> dict[str, Any]:
    """A call as a block."""
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}


def gave(id: str) -> dict[str, Any]:
    """Its result."""
    return {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": f"of {id}"}]}


WITHHELD = {"type": "thinking", "thinking": "", "signature": "c2lnbmF0dXJl"}
CLAUDE = (
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "s1"},
    claude("u1", None, "user", "Which file?", permissionMode="bypassPermissions"),
    claude("x1", "u1", "attachment", "", attachment={"type": "skill_listing"}),
    claude("a1", "x1", "assistant", [WITHHELD], **minted("m1")),
    claude("a2", "a1", "assistant", [used("t1")], **minted("m1")),
    claude("a3", "a2", "assistant", [used("t2")], **minted("m1")),
    claude("r1", "a2", "user", [gave("t1")]),
    claude("r2", "a3", "user", [gave("t2")]),
    claude("a4", "r2", "assistant", [{"type": "text", "text": "notes.txt"}], **minted("m2", "end_turn")),
    {"type": "summary", "summary": "Find the file", "leafUuid": "a4"},
)


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    """A line of Codex."""
    return {"timestamp": "2026-11-22T02:11:57.741Z", "type": kind, "payload": payload}


def item(kind: str, **more: Any) -> dict[str, Any]:
    """An item of the Responses API as a line."""
    return codex("response_item", type=kind, **more)


def asked(text: str, *kinds: str) -> dict[str, Any]:
    """A message in the user's role."""
    about = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": list(kinds)}} if kinds else {}
    return item("message", role="user", content=[{"type": "input_text", "text": text}], **about)


def answered(text: str) -> dict[str, Any]:
    """A message of the model."""
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}])


SPENT = {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 7, "reasoning_output_tokens": 3}
CODEX = (
    codex("session_meta", id="c1", timestamp="2026-11-22T02:11:57.623Z", cwd=HERE, model_provider="openai"),
    codex("turn_context", model="gpt-5.6", cwd=HERE, approval_policy="never"),
    item("message", role="developer", content=[{"type": "input_text", "text": "<permissions instructions>"}]),
    asked("<environment_context>\n</environment_context>"),
    asked("Which file?", "user.text"),
    item("reasoning", id="rs_1", summary=[], content=None, encrypted_content="gAAAA"),
    item("function_call", id="fc_1", name="exec", arguments='{"cmd":"ls"}', call_id="call_1"),
    codex("token_usage_record", response_id="resp_1", usage=SPENT),
    item("function_call_output", call_id="call_1", output="notes.txt"),
    codex("event_msg", type="token_count", info={"last_token_usage": SPENT}),
    item("reasoning", id="rs_2", summary=[{"type": "summary_text", "text": "It is there."}], encrypted_content="gAAAB"),
    answered("notes.txt"),
    codex("event_msg", type="token_count", info={"last_token_usage": SPENT}),
    codex("event_msg", type="task_complete"),
)


def pi(id: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    """A message of pi."""
    message = {"role": role, "content": content, **more}
    return {"type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-22T02:22:07Z", "message": message}


ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [], "encrypted_content": "gAAAA"}
PI_USAGE = {"input": 9, "output": 7, "cacheRead": 4, "cacheWrite": 0, "cost": {"total": 0.25}}
PI_MADE = {"api": "openai-responses", "model": "gpt-5.6", "usage": PI_USAGE, "stopReason": "toolUse", "responseId": "r"}
PI = (
    {"type": "session", "version": 3, "id": "p1", "timestamp": "2026-11-22T02:22:07.181Z", "cwd": HERE},
    {"type": "model_change", "id": "0b", "parentId": None, "modelId": "gpt-5.6"},
    pi("u1", "0b", "user", [{"type": "text", "text": "Which file?"}]),
    pi(
        "a1",
        "u1",
        "assistant",
        [
            {"type": "thinking", "thinking": "", "thinkingSignature": json.dumps(ITEM)},
            {"type": "text", "text": "Let me look.", "textSignature": "msg_1"},
            {"type": "toolCall", "id": "call_1|fc_1", "name": "bash", "arguments": {"command": "ls"}},
        ],
        **PI_MADE,
    ),
    pi("t1", "a1", "toolResult", [{"type": "text", "text": "notes.txt"}], toolCallId="call_1|fc_1", toolName="bash"),
    pi("a2", "t1", "assistant", [{"type": "text", "text": "notes.txt"}], **{**PI_MADE, "stopReason": "stop"}),
    {"type": "session_info", "id": "i1", "parentId": "a2", "name": "Find the file"},
)

GEMINI_CALL = {"id": "g1", "name": "ls", "args": {"path": "."}}
GEMINI_GAVE = {"functionResponse": {"id": "g1", "name": "ls", "response": {"output": "notes.txt"}}}
GEMINI_MADE = {
    **{"id": "m1", "type": "gemini", "timestamp": "2026-11-22T02:25:21.229Z", "content": "", "model": "gemini-3-pro"},
    "thoughts": [{"subject": "Files", "description": "I list them."}, {"subject": "", "description": ""}],
    "tokens": {"input": 9, "output": 7, "cached": 4, "thoughts": 3, "total": 19},
}
GEMINI = (
    {"sessionId": "g1", "projectHash": "d1", "startTime": "2026-11-22T02:25:21.000Z", "kind": "main"},
    {"$set": {"messages": [{"id": "c1", "type": "user", "content": [{"text": "<session_context>\nLinux"}]}]}},
    {"id": "u1", "timestamp": "2026-11-22T02:25:21.016Z", "type": "user", "content": [{"text": "Which file?"}]},
    {"$set": {"lastUpdated": "2026-11-22T02:25:21.017Z"}},
    GEMINI_MADE,
    {**GEMINI_MADE, "toolCalls": [{**GEMINI_CALL, "result": [GEMINI_GAVE], "status": "success"}]},
    {"id": "r1", "type": "user", "content": [GEMINI_GAVE]},
    {"id": "m2", "type": "gemini", "content": "notes.txt", "model": "gemini-3-pro"},
)

SAMPLES: dict[str, bytes] = {
    "claude-code": jsonl(*CLAUDE),
    "codex": jsonl(*CODEX),
    "gemini-cli": jsonl(*GEMINI),
    "pi": jsonl(*PI),
}
"""A history of each program."""
