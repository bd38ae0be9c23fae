"""A program in the middle of a turn, to be killed: ``python -m tests.acceptance.doomed LOG DIALECT URL MODEL PLACE``.

PLACE says where it stops for good, after a line on standard output: in a ``tool``, or in a ``stream`` at its first
piece of reasoning or of the answer.
"""

from __future__ import annotations

import sys

from tests.acceptance.hosts import OF
from tests.conformance.moves import KEY
from thinkback.model.deltas import ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.session.store import open
from thinkback_referee.bedrock import API_KEY


def weather(city: str) -> str:
    """The weather of a city."""
    return stay(city)


def clock(city: str) -> str:
    """The time in a city."""
    return stay(city)


def stay(what: object) -> str:
    """Say that this is the place, and wait for the end."""
    print(what, flush=True)
    return sys.stdin.read()


def main() -> None:
    """Ask, and never come to the answer."""
    log, dialect, url, model, place = sys.argv[1:]
    key = API_KEY if dialect == "bedrock" else KEY
    with open(log) as store:
        session = store.session("long", endpoint=OF[dialect].endpoint, base_url=url, model=model, api_key=key)
        for delta in session.stream("What is the weather in Graz?", tools=[weather, clock]):
            if place == "stream" and isinstance(delta, ReasoningDelta | TextDelta | ToolCallDelta):
                stay(type(delta).__name__)


if __name__ == "__main__":
    main()
