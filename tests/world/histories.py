"""Files of other programs, written for these tests: whole, cut, and with their thoughts taken out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.world.mind import Json

MODEL = "claude-opus-4-5"


def _line(number: int, kind: str, **more: Any) -> Json:
    about: Json = {"sessionId": "5e551011-0000-4000-8000-000000000001", "cwd": "/home/person/dev/proj"}
    parent = f"u{number - 1}" if number else None
    stamp = f"2026-11-22T02:{number // 60:02d}:{number % 60:02d}.000Z"
    return {
        **about,
        "uuid": f"u{number}",
        "parentUuid": parent,
        "timestamp": stamp,
        "type": kind,
        "isSidechain": False,
        **more,
    }


def claude_code(turns: int = 4, *, thoughts: bool = True, typed: str = "") -> list[Json]:
    """A session of Claude Code: a thought, a call, its result, a thought and an answer a turn.

    ``typed``: what a person typed while the first tool ran.
    """
    lines: list[Json] = []

    def add(kind: str, **more: Any) -> None:
        lines.append(_line(len(lines), kind, **more))

    def say(id: str, block: Json, stop: str) -> None:
        usage = {"input_tokens": 100, "output_tokens": 20}
        message = {"id": id, "type": "message", "role": "assistant", "model": MODEL, "content": [block]}
        add("assistant", message={**message, "stop_reason": stop, "usage": usage})

    for turn in range(turns):
        add("user", message={"role": "user", "content": f"Question {turn}: which file?"})
        call = {"type": "tool_use", "id": f"toolu_{turn}", "name": "Bash", "input": {"command": f"ls {turn}"}}
        blocks: tuple[Json, Json] = (call, {"type": "text", "text": f"Answer {turn}: notes.txt"})
        for step, block in enumerate(blocks):
            thought = f"Claude thinks {turn}.{step}" if thoughts else ""
            stop = "end_turn" if step else "tool_use"
            id = f"msg_{turn}_{step}"
            say(id, {"type": "thinking", "thinking": thought, "signature": f"c2lnbmVk{turn}{step}AA"}, stop)
            say(id, block, stop)
            if not step:
                result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": "notes.txt"}
                add("user", message={"role": "user", "content": [result]})
                if typed and turn == 0:
                    queued = {"type": "queued_command", "prompt": typed, "commandMode": "prompt"}
                    add("attachment", attachment={**queued, "origin": {"kind": "human"}})
    return lines


def write(path: Path, lines: list[Json]) -> Path:
    """The lines as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
