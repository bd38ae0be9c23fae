"""The recorded exchanges in the directory that ``THINKBACK_CORPUS`` names."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.wire.event_stream import frame

DIRECTORIES = (
    "openai-chat",
    "openai-responses",
    "anthropic",
    "gemini",
    "gemini-interactions",
    "bedrock",
    "mistral",
    "ollama",
    "cohere",
    "think-tags",
)


class Exchange(NamedTuple):
    """One recorded exchange: ``data`` as the corpus has it, ``case`` the whole file it is from."""

    file: str
    at: int
    data: dict[str, Any]
    case: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{Path(self.file).stem[:60]}-{self.at}"

    @property
    def body(self) -> bytes:
        """The response body as bytes."""
        response = self.data["response"]
        if "frames" in response:
            return b"".join(map(frame, response["frames"]))
        return response["raw"].encode() if "raw" in response else json.dumps(response["body"]).encode()

    @property
    def expect(self) -> dict[str, Any]:
        """What an independent reading of the response says."""
        found: dict[str, Any] = self.data["expect"]
        return found


def corpus() -> Path | None:
    """The corpus directory, or ``None``."""
    place = os.environ.get("THINKBACK_CORPUS")
    return Path(place) if place and Path(place).is_dir() else None


@functools.cache
def cases() -> tuple[tuple[str, dict[str, Any]], ...]:
    """(file, case) of every case."""
    place = corpus()
    files = sorted(place.glob("*/*.json")) if place is not None else []
    return tuple((str(file), json.loads(file.read_text(encoding="utf-8"))) for file in files)


def exchanges() -> Iterator[Exchange]:
    """Every exchange."""
    for file, case in cases():
        for index, data in enumerate(case["exchanges"]):
            yield Exchange(file, index, data, case)
