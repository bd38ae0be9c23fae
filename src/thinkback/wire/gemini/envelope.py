"""What a response says beside its parts: top-level fields, the fields of its candidate, other candidates."""

from __future__ import annotations

from typing import Any

from thinkback.wire.values import source_of

_READ = frozenset({"candidates", "usageMetadata", "error"})


class Envelope:
    """Give it the chunks of a response, or the whole; of a field that comes again the last one stays."""

    __slots__ = ("_candidate", "_content", "_others", "_top")

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._content: dict[str, Any] = {}
        self._others: list[Any] = []

    def add(self, body: dict[str, Any]) -> dict[str, Any]:
        """Keep what is not read of ``body``; returns the candidate that is."""
        self._top.update({key: value for key, value in body.items() if key not in _READ})
        candidates = body.get("candidates")
        read: dict[str, Any] = {}
        for candidate in candidates if isinstance(candidates, list) else ():
            if isinstance(candidate, dict) and candidate.get("index") in (0, None):
                read = candidate
            else:
                self._others.append(candidate)
        content = read.get("content")
        if isinstance(content, dict):
            self._content.update({key: value for key, value in content.items() if key != "parts"})
        self._candidate.update({key: value for key, value in read.items() if key not in ("content", "finishReason")})
        return read

    def says(self, name: str) -> str:
        """A text of the candidate, if it has it."""
        value = self._candidate.get(name)
        return value if isinstance(value, str) else ""

    def source(self) -> str:
        """All of it as JSON source text; the candidate's own fields are in ``candidate``, others in ``candidates``."""
        candidate = {**self._candidate, **({"content": self._content} if self._content else {})}
        found = {**self._top, **({"candidate": candidate} if candidate else {})}
        if self._others:
            found["candidates"] = self._others
        return source_of(found)
