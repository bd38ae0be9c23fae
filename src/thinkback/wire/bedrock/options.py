"""Native parameters for what callers want of any dialect."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.wire.result import WantedOptions


def options(wanted: WantedOptions) -> dict[str, Any]:
    """The schema of the answer, as source text. Whether to stream is said by the address, and usage always comes."""
    if wanted.schema is None:
        return {}
    schema = {"name": wanted.schema_name, "schema": canonical.source(dict(wanted.schema))}
    return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}}
