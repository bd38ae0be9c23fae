"""Native parameters for what callers want of any dialect."""

from __future__ import annotations

from typing import Any

from thinkback.wire.result import WantedOptions


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, which always brings its usage, and the schema of the answer."""
    params: dict[str, Any] = {}
    if wanted.stream:
        params["stream"] = True
    if wanted.schema is not None:
        params["output_config"] = {"format": {"type": "json_schema", "schema": dict(wanted.schema)}}
    return params
