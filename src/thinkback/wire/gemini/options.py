"""Native parameters for what callers want of any dialect."""

from __future__ import annotations

from typing import Any

from thinkback.wire.result import WantedOptions


def options(wanted: WantedOptions) -> dict[str, Any]:
    """The schema of the answer. Whether the response streams is said by the URL; usage always comes."""
    if wanted.schema is None:
        return {}
    answer = {"responseMimeType": "application/json", "responseJsonSchema": dict(wanted.schema)}
    return {"generationConfig": answer}
