"""A process with a turn under way: it tells how far it is, and goes on when it is told to.

Usage: python -m tests.session.holder PLACE PERIOD. Its model prints ``asked`` and answers with the line it reads then.
"""

from __future__ import annotations

import sys
from typing import Any

import thinkback
from thinkback.model.commits import TurnEnded


class Model:
    """Answers when a line comes."""

    def chat(self, **request: Any) -> dict[str, Any]:
        """One response."""
        print("asked", flush=True)
        text = sys.stdin.readline().strip()
        message = {"role": "assistant", "content": text, "reasoning_content": "thought"}
        return {"id": "r", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


def main(place: str, period: str) -> None:
    """One turn; says at the end how it ended and where."""
    with thinkback.open(place) as store:
        store.lease_period = float(period)
        session = store.session("chat", client=Model(), model="m")
        try:
            reply = session.chat("from the other process")
        except thinkback.errors.ThinkbackError as error:
            print(f"{error.kind}: {error.message}", flush=True)
            return
        ended = [commit.value for commit in session.log() if isinstance(commit.value, TurnEnded)]
        print(reply.state, session.branches.current, len(ended), flush=True)


main(*sys.argv[1:])
