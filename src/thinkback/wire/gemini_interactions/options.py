"""Native parameters for what callers want of any dialect."""

from __future__ import annotations

from typing import Any

from thinkback.wire.result import WantedOptions


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, and the schema of the answer; usage always comes."""
    params: dict[str, Any] = {"stream": True} if wanted.stream else {}
    if wanted.schema is not None:
        params["response_format"] = {"type": "text", "mime_type": "application/json", "schema": dict(wanted.schema)}
    return params
