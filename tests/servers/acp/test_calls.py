"""Calls as an editor shows them: nothing outside the workspace is shown, whatever the arguments are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.servers.acp import calls
from thinkback.turn.permissions import PermissionRequest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


def written(path: str, content: object = "new") -> ToolCall:
    """A call of ``write``."""
    return ToolCall("c1", "write", json.dumps({"path": path, "content": content}))


def shown(call: ToolCall, workspace: Path) -> dict[str, Any]:
    """What of it is shown before it runs."""
    return calls.described(call, str(workspace), live=True)


def test_a_change_is_shown_with_what_was_there(tmp_path: Path) -> None:
    """A file that is written is shown with its text before; a new one has none."""
    (tmp_path / "a.txt").write_text("old\r\n", newline="")

    there, new = shown(written("a.txt"), tmp_path), shown(written("b/c.txt"), tmp_path)

    assert ("old\r\n", "new") == (there["content"][0].old_text, there["content"][0].new_text)
    assert (None, "new") == (new["content"][0].old_text, new["content"][0].new_text)
    assert [str(tmp_path / "a.txt")] == [place.path for place in there["locations"]]
    assert "write a.txt" == there["title"]


def question(call: ToolCall, workspace: Path) -> str:
    """What a person is shown of it beside a title and a diff."""
    request = PermissionRequest(call, "runs", "the reason", "")
    return str(calls.permission_fields(request, str(workspace))["content"][-1].content.text)


def test_a_person_is_shown_all_that_a_call_would_do(tmp_path: Path) -> None:
    """A title has room for its beginning alone, and what stands beside a command may be all that matters."""
    long = "ls" + " " * 200 + "; rm -rf \u200b.```"
    run = {"command": "ls", "script": "rm -rf ."}
    edit = {"path": "a.txt", "old_string": "a", "new_string": "b", "replace_all": True}
    (tmp_path / "secret.txt").write_text("secret")
    inside = tmp_path / "inside"
    inside.mkdir()

    told = question(ToolCall("c1", "shell", json.dumps({"command": long})), inside)
    assert f"the reason\n\n````\n  {long.replace(chr(0x200B), '<U+200B>')}\n````" == told
    assert "  ls\n  script: rm -rf ." in question(ToolCall("c1", "mcp__x", json.dumps(run)), inside)
    assert "wherever it stands" in question(ToolCall("c1", "edit", json.dumps(edit)), inside)
    assert "secret\n" not in question(written(str(tmp_path / "secret.txt")), inside)
    assert "\x1b" not in calls.described(ToolCall("c1", "shell\x1b]", "{}"), str(inside))["title"]


@pytest.mark.parametrize("path", ["../secret.txt", "link.txt", "/etc/hostname", "a\0b", "", "linked/secret.txt"])
def test_nothing_outside_the_workspace_is_shown(tmp_path: Path, path: str) -> None:
    """A path that leads out, also through a link, brings neither a diff nor a place: the tool refuses it anyway."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    (inside / "linked").symlink_to(tmp_path)

    found = shown(written(path), inside)

    assert (None, None) == (found["content"], found["locations"])


def test_what_cannot_be_shown_is_left_out(tmp_path: Path) -> None:
    """A directory, a pipe-like size or bytes that are no text are not taken for what was there."""
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large").write_text("x" * 2_000_000)
    (tmp_path / "directory").mkdir()

    assert [None] * 3 == [
        shown(written(name), tmp_path)["content"][0].old_text for name in ("bytes", "large", "directory")
    ]


@given(st.sampled_from(["write", "edit", "read", "shell", "other"]), JSON | st.text().map(lambda text: text))
def test_any_arguments_can_be_shown(name: str, arguments: object) -> None:
    """Whatever a model gives as arguments, a call has a title and is an update of the protocol."""
    call = ToolCall("c1", name, arguments if isinstance(arguments, str) else json.dumps(arguments))

    told = calls.announced(call, "/nowhere").model_dump(mode="json")

    assert told["title"].startswith(name)


def test_a_result_that_failed_takes_the_place_of_the_diff() -> None:
    """What a call gave is told, unless it made the change that is in sight."""
    call = written("a.txt")
    made = calls.ended(ToolResult("c1", "Wrote it."), call, "/nowhere")
    failed = calls.ended(ToolResult("c1", "No.", is_error=True), call, "/nowhere")
    denied = calls.ended(ToolResult("c1", "", status="not_run"), call, "/nowhere")

    assert ("completed", None) == (made.status, made.content)
    assert ("failed", "No.") == (failed.status, failed.content[0].content.text)
    assert ("failed", None) == (denied.status, denied.content)
