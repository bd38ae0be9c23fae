"""Small histories as the programs write them: two questions, a call, a thought whose text was withheld."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from thinkback.formats.history import History, Read, Source
from thinkback.formats.parts import object_of
from thinkback.formats.registry import program
from thinkback.model.commits import Draft

HERE = "/home/person/dev/proj"


def jsonl(*records: Any) -> bytes:
    """JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def read(name: str, data: bytes) -> Read:
    """What the reader of a program makes of a file; of a database ``data`` are the rows, with their ``table``."""
    lines = data.splitlines(keepends=True)
    return program(name).read(Source("file", (), tables_of(lines)) if program(name).tables else Source("file", lines))


def tables_of(lines: Iterable[bytes]) -> dict[str, list[dict[str, Any]]]:
    """The tables of a database that is written as JSON lines; damaged ones are no rows."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        row = object_of(line.decode("utf-8", "replace"))
        found.setdefault(str(row.get("table")), []).append(row)
    return found


def write_documents(folder: Path, rows: bytes) -> Path:
    """A folder of the documents that are written as JSON lines."""
    for row in map(json.loads, rows.splitlines()):
        path = folder / "storage" / row["table"] / row["within"] / f"{row['id']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(row["data"]), encoding="utf-8")
    return folder


def write_database(path: Path, rows: bytes) -> Path:
    """A database of rows that are written as JSON lines."""
    with closing(sqlite3.connect(path)) as database:
        for table, found in tables_of(rows.splitlines()).items():
            columns = [*dict.fromkeys(column for row in found for column in row if column != "table")]
            database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            for row in found:
                values = [json.dumps(v) if isinstance(v := row.get(column), dict | list) else v for column in columns]
                database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", values)
        database.commit()
    return path


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
    {**codex("event_msg", type="token_count", info={"last_token_usage": SPENT}), "timestamp": "2026-11-22T02:11:58.1Z"},
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
    "thoughts": [{"subject": "Files", "description": "I list"}, {"subject": "", "description": "them."}],
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


def row(table: str, id: str, session: str = "", message: str = "", **data: Any) -> dict[str, Any]:
    """A row of opencode's database; what it holds as JSON is an object here."""
    keys = {"session_id": session, "message_id": message} if session else {}
    return {"table": table, "id": id, **keys, "time_created": 1795313517741, "data": data}


STATE = {"status": "completed", "input": {"command": "ls"}, "output": "notes.txt"}
TOKENS = {"input": 9, "output": 7, "reasoning": 3, "cache": {"read": 4, "write": 0}}
META = {"anthropic": {"signature": "c2lnbmF0dXJl"}, "openai": {"itemId": "rs_1", "reasoningEncryptedContent": "gAAAA"}}
OPENCODE = (
    {"table": "session", "id": "o1", "title": "Find it", "directory": HERE, "time_created": 1795313517000},
    row("message", "m1", "o1", role="user", time={"created": 1795313517741}),
    row("message", "m2", "o1", role="assistant", modelID="gpt-5.6", cost=0.25, time={"created": 1795313517742}),
    row("part", "p1", "o1", "m1", type="text", text="Which file?"),
    row("part", "p2", "o1", "m2", type="step-start"),
    row("part", "p3", "o1", "m2", type="reasoning", text="", metadata=META),
    row("part", "p4", "o1", "m2", type="tool", callID="t1", tool="bash", state=STATE),
    row("part", "p5", "o1", "m2", type="step-finish", reason="tool-calls", tokens=TOKENS),
    row("part", "p6", "o1", "m2", type="text", text="notes.txt"),
    row("part", "p7", "o1", "m2", type="step-finish", reason="stop", tokens=TOKENS),
)


def part(message: str, position: int, type: str, text: str | None = None, **payload: Any) -> dict[str, Any]:
    """A part of a message in llm's database."""
    about = {"table": "parts", "message_hash": message, "position": position, "type": type, "text": text}
    return {**about, "tool_name": payload.pop("name", None), "payload": payload}


def message(hash: str, parent: str | None, role: str) -> dict[str, Any]:
    """A message in llm's database."""
    return {"table": "messages", "hash": hash, "parent_hash": parent, "role": role}


TURN = {"table": "turns", "thread_id": "th1", "model": "gpt-5.6", "datetime_utc": "2026-11-22T02:11:57"}
COUNTED = {"input_tokens": 9, "output_tokens": 7, "token_details": {"output_tokens_details": {"reasoning_tokens": 3}}}
LLM = (
    {
        "table": "threads",
        "id": "th1",
        "name": "Find it",
        "tip_message_hash": "h4",
        "datetime_utc": "2026-11-22T02:11:50",
    },
    {**TURN, **COUNTED, "id": "tn1", "parent_message_hash": None, "tip_message_hash": "h2"},
    {**TURN, **COUNTED, "id": "tn2", "parent_message_hash": "h2", "tip_message_hash": "h4"},
    *(message("h1", None, "user"), message("h2", "h1", "assistant")),
    *(message("h3", "h2", "tool"), message("h4", "h3", "assistant")),
    part("h1", 0, "text", text_ref=[{"literal": "Which "}, {"fragment": 1}]),
    part("h2", 0, "reasoning", "", redacted=True, provider_metadata={"openai": {"encrypted_content": "gAAAA"}}),
    part("h2", 1, "tool_call", name="ls", arguments={"path": "."}, tool_call_id="c1"),
    part("h3", 0, "tool_result", name="ls", output="notes.txt", tool_call_id="c1"),
    part("h4", 0, "text", "notes.txt"),
    {"table": "fragments", "id": 1, "content": "file?"},
    {"table": "conversations", "id": "cv1", "name": "Older"},
    {"table": "responses", "id": "tn1", "conversation_id": "cv1", "prompt": "Twice", "response": "no"},
    {
        **{"table": "responses", "id": "rs1", "conversation_id": "cv1", "model": "m", "datetime_utc": "2025-01-01"},
        **{"prompt": "Hi", "system": "Be kind", "response": "Hello", "input_tokens": 1, "output_tokens": 2},
    },
    {"table": "responses", "id": "rs2", "conversation_id": None, "model": "m", "prompt": "Alone", "response": "Yes"},
    {"table": "tool_calls", "response_id": "rs1", "name": "ls", "arguments": "{}", "tool_call_id": "c9"},
    {"table": "tool_results", "response_id": "rs1", "name": "ls", "output": "x", "tool_call_id": "c8"},
)

ATIF = {
    **{"schema_version": "ATIF-v1.7", "session_id": "as", "trajectory_id": "at"},
    "agent": {"name": "agent", "version": "1", "model_name": "gpt-5.6"},
    "steps": [
        {"step_id": 1, "timestamp": "2026-11-22T02:11:57Z", "source": "user", "message": "Which file?"},
        {
            **{"step_id": 2, "source": "agent", "message": "Let me look.", "reasoning_content": "I list them."},
            "tool_calls": [{"tool_call_id": "c1", "function_name": "ls", "arguments": {"path": "."}}],
            "observation": {"results": [{"source_call_id": "c1", "content": "notes.txt"}, {"content": "$"}]},
            "metrics": {"prompt_tokens": 9, "completion_tokens": 7, "cached_tokens": 4, "cost_usd": 0.25},
        },
        {"step_id": 3, "source": "agent", "message": "notes.txt", "model_name": "other"},
        {"step_id": 4, "source": "system", "message": "Note"},
    ],
    "subagent_trajectories": [{"session_id": "sub", "steps": [{"source": "user", "message": "Look it up"}]}],
}


def node(id: str, parent: str | None, role: str, kind: str = "text", **more: Any) -> dict[str, Any]:
    """A node of a conversation of ChatGPT."""
    about = {
        "create_time": 1795313517.5,
        "metadata": more.pop("metadata", {}),
        "recipient": more.pop("recipient", "all"),
    }
    message = {"id": id, "author": {"role": role}, "content": {"content_type": kind, **more}, **about}
    return {"id": id, "parent": parent, "message": message, "children": []}


NODES = (
    {"id": "root", "parent": None, "message": None},
    node("s", "root", "system", parts=["Be kind"]),
    node("q", "s", "user", parts=["Which file?", {"content_type": "image_asset_pointer", "asset_pointer": "x"}]),
    node("t", "q", "assistant", "thoughts", thoughts=[{"summary": "Files", "content": "I list them."}, {}]),
    node("k", "t", "assistant", "code", text="ls()", recipient="python"),
    node("o", "k", "tool", "execution_output", text="notes.txt"),
    node("a", "o", "assistant", parts=["notes.txt"], metadata={"model_slug": "gpt-5.6"}),
)
CHATGPT = {
    **{"conversation_id": "cg1", "title": "Find it", "create_time": 1795313517.5, "current_node": "a"},
    "mapping": {each["id"]: each for each in NODES},
}


def told(id: str, sender: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A message of Claude.ai."""
    return {"uuid": id, "sender": sender, "content": [*content], "created_at": "2026-11-22T02:11:57Z", **more}


CLAUDE_AI = {
    **{"uuid": "ca1", "name": "Find it", "created_at": "2026-11-22T02:11:57Z", "model": "claude-opus-5-5"},
    "chat_messages": [
        told(
            "q", "human", {"type": "text", "text": "Which?"}, attachments=[{"file_name": "a", "extracted_content": "b"}]
        ),
        told(
            "a",
            "assistant",
            {"type": "thinking", "thinking": "I list them."},
            {"type": "tool_use", "id": None, "name": "ls", "input": {}},
            {
                "type": "tool_result",
                "tool_use_id": None,
                "name": "ls",
                "content": [{"type": "text", "text": "notes.txt"}],
            },
            {"type": "text", "text": "notes.txt"},
        ),
    ],
}

CHAT = (
    {
        "messages": [
            {"role": "system", "content": "Be kind"},
            {"role": "user", "content": "Which file?"},
            {
                **{"role": "assistant", "content": None, "reasoning_content": "I list them."},
                "reasoning_details": [{"type": "reasoning.text", "text": "I list them.", "signature": "c2lnbmF0dXJl"}],
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "notes.txt"},
            {"role": "assistant", "content": "<think>It is there.</think>notes.txt"},
        ],
        "model": "m",
    },
)


def span(at: int, attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A span as OTLP has it in JSON; ``at`` is its place in the trace."""
    start = 1795313517741000000 + at * 1_000_000_000
    pairs = [{"key": key, "value": any_value(value)} for key, value in attributes.items()]
    times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 500_000_000)}
    return {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": f"{at:016x}", **times, "attributes": pairs, **more}


def any_value(value: Any) -> dict[str, Any]:
    """A value with its type."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case list():
            return {"arrayValue": {"values": [any_value(each) for each in value]}}
        case dict():
            return {"kvlistValue": {"values": [{"key": key, "value": any_value(each)} for key, each in value.items()]}}
    return {"stringValue": value}


def spans(*given: dict[str, Any]) -> dict[str, Any]:
    """A line of OTLP."""
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [*given]}]}]}


def say(role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A message by OpenTelemetry's conventions."""
    return {"role": role, "parts": [*parts], **more}


def words(text: str) -> dict[str, Any]:
    """A part of text."""
    return {"type": "text", "content": text}


SPAN = {
    "gen_ai.provider.name": "anthropic",
    "gen_ai.request.model": "claude-opus-5-5",
    "gen_ai.conversation.id": "conv",
    "server.address": "api.example",
}
QUESTION = say("user", words("Which file?"))
CALLED = say(
    "assistant",
    {"type": "reasoning", "content": "I list them.", "signature": "c2lnbmF0dXJl"},
    {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"path": "."}},
)
GAVE = say("tool", {"type": "tool_call_response", "id": "c1", "response": "notes.txt"})
OTLP = (
    spans(
        span(
            1,
            {
                **SPAN,
                "gen_ai.usage.input_tokens": 9,
                "gen_ai.system_instructions": json.dumps([words("Be kind")]),
                "gen_ai.input.messages": json.dumps([QUESTION]),
                "gen_ai.output.messages": json.dumps([CALLED]),
            },
        ),
        span(2, {"gen_ai.operation.name": "execute_tool"}),
    ),
    spans(
        span(
            3,
            {
                **SPAN,
                "gen_ai.input.messages": [QUESTION, CALLED, GAVE],
                "gen_ai.output.messages": [say("assistant", words("notes.txt"), finish_reason="stop")],
            },
        )
    ),
)

SAMPLES: dict[str, bytes] = {
    "atif": jsonl(ATIF),
    "chat-jsonl": jsonl(*CHAT),
    "chatgpt": jsonl([CHATGPT]),
    "claude-ai": jsonl([CLAUDE_AI]),
    "claude-code": jsonl(*CLAUDE),
    "codex": jsonl(*CODEX),
    "gemini-cli": jsonl(*GEMINI),
    "llm": jsonl(*LLM),
    "opencode": jsonl(*OPENCODE),
    "otlp": jsonl(*OTLP),
    "pi": jsonl(*PI),
}
"""A history of each program."""
