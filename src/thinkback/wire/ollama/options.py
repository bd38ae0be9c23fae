"""Native parameters for what callers want of any dialect."""

from __future__ import annotations

from typing import Any

from thinkback.wire.result import WantedOptions


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, which Ollama does unless told not to, and the schema of the answer."""
    params: dict[str, Any] = {"stream": wanted.stream}
    if wanted.schema is not None:
        params["format"] = dict(wanted.schema)
    return params
