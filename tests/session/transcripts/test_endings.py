"""How responses came out that are no answer, or not a whole one."""

from __future__ import annotations

from typing import get_args

from thinkback.log.seal import seal
from thinkback.model.blocks import Block, Media, Origin, Text, ThinkingBlock
from thinkback.model.commits import Commit, Draft, Failure, Head, Message, Outcome, Response, Step, block_draft
from thinkback.session.transcripts.endings import ending, endings

ORIGIN = Origin("openai-chat", "https://house.example/v1", "thinker")
PICTURE = Media("image/png", data="aGVsbG8=")


def said(outcome: Outcome, *blocks: Block, error: Failure | None = None) -> list[Commit]:
    """A question and the response to it."""
    header = Response(ORIGIN, outcome=outcome, error=error, blocks=len(blocks))
    made = [block_draft(block, "r1", at) for at, block in enumerate(blocks)]
    return seal(Step("s", (Draft("user", Message("Why?")), Draft("response", header, "r1"), *made), 1), Head())


def test_every_outcome_that_is_no_whole_answer_is_told() -> None:
    """What broke off is told by its failure, and what pauses goes on."""
    quiet = {outcome for outcome in get_args(Outcome) if not ending(outcome)}

    assert {"", "answered", "tool_calls", "paused", "failed", "cut"} == quiet


def test_a_picture_is_an_answer() -> None:
    """With a thought or without; what was refused or cut off is told with one, too."""
    told = [bool(ending(outcome, [PICTURE])) for outcome in ("empty", "reasoning_only", "max_tokens", "refused")]

    assert [False, False, True, True] == told


def test_it_is_told_behind_the_last_commit_that_is_shown() -> None:
    """Of a response of which nothing is shown nothing is told, nor of one that failed."""
    commits = said("refused", ThinkingBlock("Hm."), Text("I will not."))
    line = "the model refused to answer"

    assert {commits[3].hash: line} == endings(commits, commits)
    assert {commits[2].hash: line} == endings(commits, commits[:3])
    assert {} == endings(commits, commits[:1])
    assert {} == endings((failed := said("safety", error=Failure("blocked"))), failed)
    assert {} == endings((drawn := said("empty", PICTURE)), drawn)
