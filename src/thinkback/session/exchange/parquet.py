"""Commits as a Parquet file, one row each, written by DuckDB (the extra ``parquet``)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from thinkback.errors import MissingPackageError, install_hint
from thinkback.log.protocol import SessionInfo
from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Commit, Erased, Response, Usage, surviving
from thinkback.model.curation import curate
from thinkback.model.texts import text_of

COLUMNS = {
    "session": "VARCHAR",
    "session_id": "VARCHAR",
    "branch": "VARCHAR",
    "seq": "BIGINT",
    "hash": "VARCHAR",
    "parent": "VARCHAR",
    "kind": "VARCHAR",
    "time": "BIGINT",
    "response": "VARCHAR",
    "block": "BIGINT",
    "edit": "VARCHAR",
    "model": "VARCHAR",
    "outcome": "VARCHAR",
    "text": "VARCHAR",
    "tool": "VARCHAR",
    "call": "VARCHAR",
    "arguments": "VARCHAR",
    "is_error": "BOOLEAN",
    "priority": "VARCHAR",
    "tags": "VARCHAR[]",
    "edited": "BOOLEAN",
    "before": "VARCHAR[]",
    "input_tokens": "BIGINT",
    "output_tokens": "BIGINT",
    "reasoning_tokens": "BIGINT",
    "cached_tokens": "BIGINT",
    "erased": "VARCHAR",
    "payload": "VARCHAR",
}
_GROUP_BYTES = 16 * 1024 * 1024
"""Bytes of rows as JSON that are put into one row group, about: DuckDB holds a group until it is written."""
_LEAST_GROUP, _MOST_GROUP = 2_048, 122_880
"""Rows of a group: those of a vector of DuckDB, and those that it takes by itself."""
_LEAST_BUFFER = 1024 * 1024


def rows(
    info: SessionInfo, branch: str, line: Sequence[Commit], new: Sequence[Commit], history: bool, whole: bool
) -> Iterator[dict[str, Any]]:
    """The rows of the ``new`` commits of a ``line``; with what was there before edits (``history``), and with payloads
    (``whole``).
    """
    curation = curate(line)
    headers = {commit.response: surviving(commit.value) for commit in line if commit.kind == "response"}
    for commit in new:
        value = surviving(curation.value(commit))
        header = headers.get(commit.response)
        priority = curation.priority(commit)
        changed = curation.is_changed(commit)
        earlier = [commit.value, *(edit.value for edit in curation.edits.get(commit.hash, ())[:-1])] if changed else []
        yield {
            "session": info.name,
            "session_id": info.id,
            "branch": branch,
            "seq": commit.seq,
            "hash": commit.hash,
            "parent": commit.parents[0] if commit.parents else None,
            "kind": commit.kind,
            "time": commit.time,
            "response": commit.response or None,
            "block": commit.index if commit.index >= 0 else None,
            "edit": commit.edit or None,
            **(_of_header(header) if isinstance(header, Response) else {}),
            "text": None if isinstance(value, ToolCall) else text_of(value) or None,
            **_of_tool(value),
            "priority": None if priority is None else priority.value,
            "tags": sorted(curation.mark(commit.hash).tags),
            "edited": changed,
            "before": [text_of(each) for each in earlier] if history else [],
            **_of_usage(value),
            "erased": commit.value.reason if isinstance(commit.value, Erased) else None,
            "payload": commit.payload.decode("utf-8", "replace") if whole else None,
        }


def _of_header(header: Response) -> dict[str, Any]:
    return {"model": header.origin.served_model or header.origin.requested_model, "outcome": header.outcome or None}


def _of_tool(value: object) -> dict[str, Any]:
    match value:
        case ToolCall():
            return {"tool": value.name, "call": value.id, "arguments": value.arguments}
        case ToolResult():
            return {"tool": value.name or None, "call": value.id, "is_error": value.is_error}
        case _:
            return {}


def _of_usage(value: object) -> dict[str, Any]:
    if not isinstance(value, Usage):
        return {}
    return {
        "input_tokens": value.input,
        "output_tokens": value.output,
        "reasoning_tokens": value.reasoning,
        "cached_tokens": value.cached,
    }


def write(path: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write ``rows`` to ``path``. Raises ``MissingPackageError`` without DuckDB."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingPackageError(
            "Parquet files are written with duckdb, which is not installed",
            details={"package": "duckdb", "extra": "parquet"},
            next_actions=(install_hint("parquet"), "or export to jsonl, which needs nothing"),
        ) from None
    with tempfile.TemporaryDirectory(dir=Path(path).parent, prefix=f".{Path(path).name}.") as place:
        lines, half = os.path.join(place, "rows.jsonl"), os.path.join(place, "rows.parquet")
        count, size, longest = _write_lines(lines, rows)
        group = min(max(_GROUP_BYTES * count // max(size, 1), _LEAST_GROUP), _MOST_GROUP)
        # A thread has a buffer for the longest row and a group of its own, and one alone keeps the order without more.
        with duckdb.connect(":memory:", config={"threads": 1}) as db:
            buffer = max(longest + 1, _LEAST_BUFFER)
            source = f"read_json(?, format='newline_delimited', columns={COLUMNS}, maximum_object_size={buffer})"
            named = (f"make_timestamp({name}) AS {name}" if name == "time" else f'"{name}"' for name in COLUMNS)
            columns = ", ".join(named)
            target = half.replace("'", "''")
            db.execute(
                f"COPY (SELECT {columns} FROM {source}) TO '{target}' (FORMAT parquet, ROW_GROUP_SIZE {group})", [lines]
            )
        os.chmod(half, 0o600)
        os.replace(half, path)


def _write_lines(path: str, rows: Iterable[dict[str, Any]]) -> tuple[int, int, int]:
    """Write rows as JSON lines; returns how many these are, their bytes, and those of the longest."""
    count = longest = 0
    with open(path, "wb") as file:
        for row in rows:
            line = _line(row)
            count, longest = count + 1, max(longest, len(line))
            file.write(line)
        return count, file.tell(), longest


def _line(row: dict[str, Any]) -> bytes:
    """A row as JSON; half a character, which Parquet cannot hold, becomes a question mark."""
    try:
        return msgspec.json.encode(row) + b"\n"
    except UnicodeEncodeError:
        return msgspec.json.encode({name: _fit(value) for name, value in row.items()}) + b"\n"


def _fit(value: Any) -> Any:
    if isinstance(value, list):
        return [_fit(item) for item in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
