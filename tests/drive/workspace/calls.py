"""How the tests of the workspace's tools call them: as a model does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from thinkback.drive.hooks import NO_HOOKS
from thinkback.drive.stopping import NEVER, Stop
from thinkback.drive.tools import python_tool, run_tool
from thinkback.model.blocks import ToolCall


def told(function: Callable[..., Any], stop: Stop = NEVER, **arguments: Any) -> tuple[str, bool]:
    """What the model is told of one call, and whether it failed."""
    tool = python_tool(function, name="tool")
    call = ToolCall("c1", "tool", json.dumps(arguments))
    return run_tool({"tool": tool}, call, NO_HOOKS, stop)[:2]


def failure(function: Callable[..., Any], **arguments: Any) -> str:
    """What the model is told of a call that fails."""
    text, is_error = told(function, **arguments)
    assert is_error, text
    return text
