"""Histories of other programs: how fast they are imported at default durability, and lines that are far too long.

``python -m bench.histories 1024`` measures a gigabyte of sources, ``python -m bench.histories --line 2048`` a file with
a line of two.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time

from bench.measure import Figure, Group
from bench.search import vocabulary
from thinkback.session.exchange.histories import Wanted, run
from thinkback.stores import open_store

AIM = 20.0
MEGABYTE = 1_000_000
PER_SESSION = 4 * MEGABYTE


def sources(place: Path, size: int) -> int:
    """Sessions of Claude Code with ``size`` bytes in all below ``place``; returns how many messages are in them.

    A turn is a question, three calls with their results and an answer, each response with a signed thought.
    """
    chance, written, messages, number = random.Random(7), 0, 0, 0
    texts = [vocabulary().text(chance, count) for count in (60, 100, 150, 400, 900) for _ in range(40)]
    while written < size:
        path = place / f"session-{number}.jsonl"
        with path.open("wb") as file:
            while file.tell() < PER_SESSION and written + file.tell() < size:
                for line in _turn(f"s{number}", file.tell(), texts, chance):
                    file.write(json.dumps(line).encode() + b"\n")
                    messages += 1
        written += path.stat().st_size
        number += 1
    return messages


def _turn(session: str, at: int, texts: Sequence[str], chance: random.Random) -> Iterator[dict[str, object]]:
    above: list[str | None] = [f"{at}-end" if at else None]

    def line(uuid: str, kind: str, content: object, **more: object) -> dict[str, object]:
        place = {"sessionId": session, "cwd": "/home/person/proj", "timestamp": "2026-11-22T02:40:05.000Z"}
        message = {"role": kind, "content": content, **more}
        made: dict[str, object] = {**place, "uuid": uuid, "parentUuid": above[-1], "type": kind, "message": message}
        above.append(uuid)
        return made

    usage = {"input_tokens": 900, "cache_read_input_tokens": 40_000, "output_tokens": 700}
    yield line(f"{at}-u", "user", chance.choice(texts))
    for step in range(4):
        own = {"id": f"{session}-{at}-{step}", "model": "claude-opus-5-5", "usage": usage}
        signature = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789+/", k=400))
        thought = {"type": "thinking", "thinking": chance.choice(texts), "signature": signature}
        yield line(f"{at}-{step}-t", "assistant", [thought], **own)
        if step == 3:
            yield line(f"{at}-end", "assistant", [{"type": "text", "text": chance.choice(texts)}], **own)
            return
        call = {"type": "tool_use", "id": f"c{at}{step}", "name": "Read", "input": {"file_path": "/src/main.py"}}
        yield line(f"{at}-{step}-c", "assistant", [call], **own)
        result = {"type": "tool_result", "tool_use_id": f"c{at}{step}", "content": chance.choice(texts)}
        yield line(f"{at}-{step}-r", "user", [result])


def imported(megabytes: int) -> Figure:
    """Megabytes of source a second, the search index aside."""
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as folder:
        place = Path(folder, "projects")
        place.mkdir()
        messages = sources(place, megabytes * MEGABYTE)
        size = sum(file.stat().st_size for file in place.iterdir())
        before = _peak()
        with closing(open_store(Path(folder, "log.db"))) as log:
            start, began = perf_counter(), process_time()
            done, gaps = run(log, Wanted("claude-code", str(place)))
            taken, worked = perf_counter() - start, process_time() - began
        assert not gaps
        rate = size / MEGABYTE / taken
        return Figure(
            f"histories.import.{megabytes}M",
            rate,
            "MB/s",
            aim=f">= {AIM:.0f} MB/s at default durability",
            met=rate >= AIM,
            note=f"{messages / taken:,.0f} messages/s in {len(done)} sessions of {PER_SESSION // MEGABYTE} MB; "
            f"processor of this process {size / MEGABYTE / worked:.1f} MB/s; peak memory {_peak() - before:+.0f} MB",
        )


def long_line(megabytes: int) -> Figure:
    """A line that is read past without being held, between two that are read."""
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as folder:
        path, lines = Path(folder, "s.jsonl"), Path(folder, "t")
        lines.mkdir()
        sources(lines, MEGABYTE)
        first = next(lines.iterdir()).read_bytes()
        with path.open("wb") as file:
            file.write(first)
            file.truncate(len(first) + megabytes * MEGABYTE)
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
        before, start = _peak(), perf_counter()
        with closing(open_store(":memory:")) as log:
            done, gaps = run(log, Wanted("claude-code", str(path)))
        assert len(done) == 1
        assert gaps[0].left.what == "a line that is too long"
        taken, more = perf_counter() - start, _peak() - before
        return Figure(
            f"histories.line.{megabytes}M", more, "MB", aim="<= 300 MB", met=more <= 300, note=f"peak; {taken:.1f} s"
        )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


GROUP = Group(
    "histories", (lambda quick: imported(10 if quick else 100), lambda quick: long_line(200 if quick else 2_000))
)


def main(given: Sequence[str]) -> None:
    """Print a figure."""
    from bench.__main__ import row

    measure = long_line if "--line" in given else imported
    print(row(measure(int(next((size for size in given if size.isdigit()), "1024")))))


if __name__ == "__main__":
    main(sys.argv[1:])
