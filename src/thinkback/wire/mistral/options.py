"""Native parameters for what callers want of any dialect."""

from __future__ import annotations

from typing import Any

from thinkback.wire.result import WantedOptions


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, whose usage comes unasked and cannot be asked for, and the schema of the answer."""
    params: dict[str, Any] = {}
    if wanted.stream:
        params["stream"] = True
    if wanted.schema is not None:
        schema = {"name": wanted.schema_name, "schema": dict(wanted.schema)}
        params["response_format"] = {"type": "json_schema", "json_schema": schema}
    return params
