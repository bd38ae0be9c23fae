"""What structured answers look like, and the tools as those want them who also want structured answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from bench.peers.places import ABOUT, SCHEMA


class Weather(BaseModel):
    """The weather of a city."""

    model_config = ConfigDict(extra="forbid")

    city: str
    degrees: int


_CLOSED: dict[str, Any] = {**SCHEMA, "additionalProperties": False}
STRICT_TOOLS = [
    {"type": "function", "function": {"name": name, "description": about, "parameters": _CLOSED, "strict": True}}
    for name, about in ABOUT.items()
]
