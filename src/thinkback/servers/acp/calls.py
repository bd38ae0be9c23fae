"""Calls of tools as an editor shows them: title, kind, the files they are about, and the changes they make."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import acp
from acp import schema

from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.session.transcripts.call_text import lines, plain
from thinkback.session.transcripts.ink import clean
from thinkback.turn.permissions import PermissionRequest

Update = Any
"""One of the updates of ``session/update``."""

_KINDS = {
    **dict.fromkeys(("read", "list"), "read"),
    **dict.fromkeys(("write", "edit"), "edit"),
    "search": "search",
    "shell": "execute",
    "commit_reasoning": "think",
}
_SUBJECTS = ("command", "path", "pattern")
_LONGEST_TITLE = 100
_LARGEST_FILE = 1_000_000


def named(id: str, name: str) -> Update:
    """A call of which only the name is known yet."""
    return acp.start_tool_call(id, name, kind=kind_of(name), status="pending")


def announced(call: ToolCall, workspace: str, status: Any = "pending", *, live: bool = False) -> Update:
    """A call as it is announced. ``live``: it has not run yet, so that what it will change can be looked up."""
    return acp.start_tool_call(call.id, **described(call, workspace, live=live), kind=kind_of(call.name), status=status)


def described(call: ToolCall, workspace: str, *, live: bool = False) -> dict[str, Any]:
    """What of a call is shown, as fields of its updates."""
    path = _path(call, workspace)
    return {
        "title": _title(call),
        "content": list(_changes(call, workspace, live)) or None,
        "locations": [schema.ToolCallLocation(path=path)] if path else None,
        "raw_input": _arguments(call),
    }


def permission_fields(request: PermissionRequest, workspace: str) -> dict[str, Any]:
    """What a person is shown of a call that they are asked about, as fields of its update: all that it would do."""
    call = request.call
    fields, given = described(call, workspace, live=True), _arguments(call)
    if not fields["content"]:
        whole = "\n".join(plain(line) for line, _ in lines("", call.arguments))
        fence = "```"
        while fence in whole:
            fence += "`"
        told = f"{plain(request.reason)}\n\n{fence}\n{whole}\n{fence}"
        fields["content"] = [acp.tool_content(acp.text_block(told))]
    elif call.name == "edit" and given.get("replace_all"):
        fields["content"].append(acp.tool_content(acp.text_block("wherever it stands in the file")))
    return fields


def ended(result: ToolResult, call: ToolCall | None, workspace: str) -> Update:
    """What a call gave; of one that changed a file, the change stays in sight."""
    failed = result.is_error or result.status != "run"
    stays = not failed and call is not None and any(_changes(call, workspace, False))
    told = [] if stays or not result.content else [acp.tool_content(acp.text_block(result.content))]
    return acp.update_tool_call(result.id, status="failed" if failed else "completed", content=told or None)


def kind_of(name: str) -> Any:
    """The editor's word for what a tool is."""
    return _KINDS.get(name, "other")


def _title(call: ToolCall) -> str:
    arguments = _arguments(call)
    subject: object = ""
    if isinstance(arguments, dict):
        subject = next((arguments[key] for key in _SUBJECTS if arguments.get(key)), "")
    title = clean(" ".join(f"{call.name} {subject}".split()))
    return title if len(title) <= _LONGEST_TITLE else f"{title[:_LONGEST_TITLE]}..."


def _arguments(call: ToolCall) -> Any:
    """The arguments as a value, or their text where they are none."""
    try:
        return json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return call.arguments


def _path(call: ToolCall, workspace: str) -> str:
    """The file or directory that a tool of ours is about; empty for others, and outside the workspace."""
    arguments = _arguments(call)
    path = arguments.get("path") if isinstance(arguments, dict) and call.name in _KINDS else None
    if not isinstance(path, str) or not path or "\0" in path:
        return ""
    root, found = os.path.realpath(workspace), os.path.realpath(os.path.join(workspace, path))
    return found if found == root or found.startswith(root.rstrip(os.sep) + os.sep) else ""


def _changes(call: ToolCall, workspace: str, live: bool) -> Iterator[Any]:
    """The change of a file that the call asks for, if it does."""
    path, arguments = _path(call, workspace), _arguments(call)
    if not path or not isinstance(arguments, dict):
        return
    if call.name == "write" and isinstance(arguments.get("content"), str):
        yield acp.tool_diff_content(path, arguments["content"], _text_of(path) if live else None)
    elif call.name == "edit":
        old, new = arguments.get("old_string"), arguments.get("new_string")
        if isinstance(old, str) and isinstance(new, str):
            yield acp.tool_diff_content(path, new, old)


def _text_of(path: str) -> str | None:
    """What is in a file now; nothing where there is none, or none that could be shown."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST_FILE:
            return None
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None
