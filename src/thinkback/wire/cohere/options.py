"""Native parameters for what callers want of any dialect."""

from __future__ import annotations

from typing import Any

from thinkback.wire.result import WantedOptions


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, which always brings its usage, and the schema of the answer, which has no name here."""
    params: dict[str, Any] = {"stream": True} if wanted.stream else {}
    if wanted.schema is not None:
        params["response_format"] = {"type": "json_object", "json_schema": dict(wanted.schema)}
    return params
