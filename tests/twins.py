"""Conversations with equal words and ids of calls, of a host that counts its calls (Kimi), and the reasoning that each
of their requests is to carry.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec


class Counting:
    """The host, which never thinks the same twice: a call, then an answer, then the next call. ``sent`` has the
    reasoning in each request.
    """

    def __init__(self, first: int = 0) -> None:
        self.sent: list[list[str | None]] = []
        self._thoughts = itertools.count(first)

    def answer(self, request: bytes) -> bytes:
        """The response to ``request``."""
        said = [each for each in json.loads(request)["messages"] if each["role"] == "assistant"]
        self.sent.append([each.get("reasoning_content") for each in said])
        message: dict[str, Any] = {"role": "assistant", "reasoning_content": f"thought {next(self._thoughts)}"}
        finish = "stop"
        if len(said) % 2:
            message["content"] = "It is 20 degrees."
        else:
            call = {"name": "look", "arguments": "{}"}
            message |= {
                "content": None,
                "tool_calls": [{"id": "functions.look:0", "type": "function", "function": call}],
            }
            finish = "tool_calls"
        return msgspec.json.encode({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": finish}]})


def messages(steps: int, system: str = "") -> list[dict[str, Any]]:
    """What a program has said and read once it got ``steps`` answers, without their reasoning."""
    said: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for at in range(steps + 1):
        if at % 2:
            call = {"id": "functions.look:0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            said.append({"role": "assistant", "content": None, "tool_calls": [call]})
            said.append({"role": "tool", "tool_call_id": "functions.look:0", "content": "20"})
        else:
            said += [{"role": "assistant", "content": "It is 20 degrees."}] if at else []
            said.append({"role": "user", "content": "How warm is it?"})
    return said


def body(steps: int, system: str = "", model: str = "kimi-k2-thinking") -> bytes:
    """The request behind them."""
    return json.dumps({"model": model, "messages": messages(steps, system), "stream": False}).encode()


class Recorded(NamedTuple):
    """A response: what of it decides which twin it is, and the reasoning of its conversation up to it."""

    steps: int
    marks: tuple[str, str, object]
    thoughts: tuple[str, ...]


def expected(known: Sequence[Recorded], steps: int, marks: tuple[str, str, object]) -> tuple[str, ...]:
    """The reasoning that goes back behind ``steps`` answers: the name decides, then the system, then the client."""

    def weight(at: int) -> tuple[bool, bool, bool, int]:
        name, system, client = known[at].marks
        return (name == marks[0] != "", system == marks[1], client == marks[2], at)

    fitting = [at for at, each in enumerate(known) if each.steps == steps]
    return known[max(fitting, key=weight)].thoughts
