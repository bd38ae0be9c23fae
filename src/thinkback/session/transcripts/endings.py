"""How responses came out that are no answer, or not a whole one, in a sentence each, for people.

What broke off is told by its failure, and nothing here. Must not: decide what goes back, or is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from thinkback.model.blocks import Block, Media
from thinkback.model.commits import Commit, Outcome, Payload, Response, surviving

_SAID: dict[Outcome, str] = {
    "max_tokens": "the answer is cut off: the output limit was reached",
    "max_tokens_in_reasoning": "the output limit was reached: the model reasoned and gave no answer",
    "reasoning_only": "the model reasoned and gave no answer",
    "empty": "the answer has no text",
    "refused": "the model refused to answer",
    "safety": "a safety filter stopped the answer",
}
_WITHOUT_TEXT = ("empty", "reasoning_only")


def ending(outcome: Outcome, values: Iterable[Block | Payload] = ()) -> str:
    """What there is to tell of a response with these ``values``; nothing of an answer, which may be a picture."""
    if outcome in _WITHOUT_TEXT and any(isinstance(value, Media) for value in values):
        return ""
    return _SAID.get(outcome, "")


def endings(commits: Sequence[Commit], shown: Iterable[Commit]) -> dict[str, str]:
    """What there is to tell of responses in ``commits``, by the hash of the last commit of each that is ``shown``."""
    headers = {commit.response: surviving(commit.value) for commit in commits if commit.kind == "response"}
    values: dict[str, list[Payload]] = {}
    for commit in commits:
        values.setdefault(commit.response, []).append(commit.value)
    last = {commit.response: commit.hash for commit in shown if not commit.edit}
    return {
        last[response]: told
        for response, header in headers.items()
        if response in last and isinstance(header, Response) and header.error is None
        if (told := ending(header.outcome, values[response]))
    }
