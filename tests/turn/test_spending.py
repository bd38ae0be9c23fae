"""What requests used, read off the log."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import (
    Commit,
    Compaction,
    Draft,
    Erased,
    Head,
    Message,
    Request,
    Response,
    Step,
    TurnEnded,
    Usage,
    block_draft,
)
from thinkback.model.rule import Endpoint, ModelInfo, Rule
from thinkback.model.target import Basis
from thinkback.turn.spending import Ledger, Spending, StepUse, TurnUse, spending
from thinkback.turn.usage import TokenUse

URL = "https://api.example.com/v1"


def basis(word: str) -> str:
    """The data of a rule that counts reasoning in this way."""
    rule = Rule("r", "house", "s", "2026-01-01", reasoning_tokens=word)  # type: ignore[arg-type]
    return canonical.encode(Basis(Endpoint("house", "House", URL), rule, ModelInfo("m"))).decode()


def request(id: str, basis: str = "", digest: str = "d") -> Draft:
    """The record of a request."""
    record = Request({"endpoint": "house"}, {}, (), "{}", "", "", "", "", "", "", digest, basis=basis)
    return Draft("request", record, id)


def answer(id: str, usage: Usage | None, thought: str = "", served: str = "m-1", **asked: Any) -> list[Draft]:
    """A request with its response."""
    drafts = [request(id, **asked), Draft("response", Response(Origin("openai-chat", URL, "m", served)), id)]
    if thought:
        drafts.append(block_draft(ThinkingBlock(thought), id, 0))
    drafts.append(block_draft(Text("so"), id, 1))
    return [*drafts, Draft("provider_usage", usage, id)] if usage else drafts


def log(*drafts: Draft) -> list[Commit]:
    """The drafts as a history."""
    commits: list[Commit] = []
    for at, draft in enumerate(drafts):
        commits += seal(Step("s", (draft,), at), head_of(commits) if commits else Head())
    return commits


def taken(*pieces: list[Commit]) -> Ledger:
    """A ledger of these pieces."""
    ledger = Ledger()
    for piece in pieces:
        ledger.take(piece)
    return ledger


def uses(*drafts: Draft) -> list[TokenUse]:
    """What the steps of a history used."""
    return [step.use for step in taken(log(*drafts)).steps]


def test_a_step_says_who_used_what_when() -> None:
    """Model and endpoint are those of the response; its turn is counted from 1."""
    commits = log(Draft("user", Message("why")), *answer("r", Usage(10, 20, 5), basis=basis("inside")))
    use = TokenUse(10, None, 20, 5, True)
    expected = StepUse(commits[2].hash, 1, 2, "m-1", URL, use, place="house", usage=Usage(10, 20, 5))
    assert [expected] == taken(commits).steps


def test_a_model_that_was_not_served_by_name_is_the_requested_one() -> None:
    """There is always a name."""
    assert ["m"] == [step.model for step in taken(log(*answer("r", Usage(1, 1), served=""))).steps]


@pytest.mark.parametrize(("word", "output"), [("inside", 20), ("added", 25), ("unknown", 20)])
def test_the_rule_of_the_request_says_what_is_counted_where(word: str, output: int) -> None:
    """A later request that was built by the same data does not repeat it."""
    drafts = [*answer("r", Usage(10, 20, 5), basis=basis(word)), *answer("r2", Usage(10, 20, 5))]
    assert [output, output] == [use.output for use in uses(*drafts)]


def test_reasoning_that_was_not_counted_is_estimated() -> None:
    """And it is said so; nobody reported an output."""
    assert [TokenUse(None, None, None, 10, None, True)] == uses(*answer("r", None, "x" * 40))


def test_two_compactions_without_a_summary_count_twice() -> None:
    """Of thoughts, by one model; a copy of one counts once."""
    made = [
        Draft(
            "compaction",
            Compaction("thoughts", model="e/m", usage=Usage(1, out), before=9, after=out, shortened=("h",)),
        )
        for out in (5, 4, 4)
    ]
    assert [5, 4] == [use.output for use in uses(*made)]


def test_an_estimate_is_no_more_than_all_that_was_counted() -> None:
    """Reasoning is inside output unless the rule says otherwise."""
    assert [TokenUse(1, None, 2, 2, None, True)] == uses(*answer("r", Usage(1, 2), "x" * 40))


def test_only_what_was_asked_for_counts() -> None:
    """A copy of a response, one made by hand, and an edit have no request of their own."""
    by_hand = [Draft("response", Response(Origin("", "", "")), "h"), block_draft(Text("so"), "h", 0)]
    copied = answer("c", Usage(10, 20), "copied")[1:]
    edit = Draft("reasoning", ThinkingBlock("y" * 400), "r", 0, edit="0" * 64)
    refused = request("again")
    assert [TokenUse(1, None, 20, 10, None, True)] == uses(
        *by_hand, refused, *answer("r", Usage(1, 20), "x" * 40), edit, *copied
    )


def test_a_request_that_was_erased_still_counts() -> None:
    """What it was built by is not known any more; nor is the model of an erased response."""
    drafts = answer("r", Usage(10, 20, 5))
    drafts[0] = Draft("request", Erased("asked", 1), "r")
    drafts[1] = Draft("response", Erased("asked", 1), "r")
    commits = log(*drafts)
    step = StepUse(commits[1].hash, 0, 1, "", "", TokenUse(10, None, 20, 5), usage=Usage(10, 20, 5))
    assert [step] == taken(commits).steps


def test_a_summary_counts_once() -> None:
    """The model that wrote a checkpoint used something too; a copy of the checkpoint did not."""
    checkpoint = Draft("compaction", Compaction("model", "it was so", model="m-2", usage=Usage(100, 10, 4)))
    silent = Draft("compaction", Compaction("deterministic", "it was so"))
    commits = log(checkpoint, silent, checkpoint)
    step = StepUse(commits[0].hash, 0, 0, "m-2", "", TokenUse(100, None, 10, 4), "summary", usage=Usage(100, 10, 4))
    assert [step] == taken(commits).steps


def test_turns_hold_their_steps() -> None:
    """With their message and their end; a turn in which nothing was used is none."""
    commits = log(
        Draft("user", Message("why")),
        *answer("r", Usage(10, 20, 5), thought="x"),
        Draft("tool_result", ToolResult("1", "done"), "r"),
        *answer("r2", Usage(30, 2)),
        Draft("turn_ended", TurnEnded("completed")),
        Draft("user", Message("lost")),
        Draft("turn_ended", TurnEnded("failed")),
        Draft("user", Message("and now")),
        *answer("r3", Usage(1, 1)),
    )
    ledger = taken(commits)
    first, second, third = ledger.steps
    prompts = [commit.hash for commit in commits if commit.kind == "user"]
    assert (
        TurnUse(1, prompts[0], "completed", TokenUse(40, None, 22, 5), (first, second)),
        TurnUse(3, prompts[2], None, third.use, (third,)),
    ) == ledger.turns()
    (begun,) = taken(log(*answer("r", Usage(1, 1)))).turns()
    assert (0, "") == (begun.turn, begun.prompt)


def test_pieces_and_other_lines_add_what_is_new() -> None:
    """A history may come turn by turn, and again with another end."""
    shared = [Draft("user", Message("why")), *answer("r", Usage(10, 20))]
    ours, theirs = log(*shared, *answer("r2", Usage(1, 1))), log(*shared, *answer("r3", Usage(2, 2)))
    whole = taken(ours).steps
    assert whole == taken(ours[:5], ours[5:]).steps
    assert [10, 1, 2] == [step.use.input for step in taken(ours, theirs, ours).steps]


def test_a_sum_has_the_part_of_each_model() -> None:
    """Nothing at all is a sum too."""
    steps = taken(log(*answer("r", Usage(10, 20)), *answer("r2", Usage(1, 1), served="a"))).steps
    first, second = steps[0].use, steps[1].use
    assert Spending(TokenUse(11, None, 21), 2, {"a": second, "m-1": first}) == spending(steps)
    assert Spending(TokenUse(), 0, {}) == spending([])


def test_an_imported_response_counts_once_and_by_its_last_numbers() -> None:
    """It has no request; imported again when it had become longer, the longer one is what was used."""

    def imported(usage: Usage) -> list[Commit]:
        return log(Draft("response", Response(Origin("codex", "", "m", "m")), "r"), Draft("provider_usage", usage, "r"))

    early, late = imported(Usage(10, 5, program="codex")), imported(Usage(10, 20, program="codex"))
    assert [] == taken(imported(Usage(10, 5))).steps
    for order in ((early, late), (late, early), (early, late, early)):
        (step,) = taken(*order).steps
        assert ("codex", "codex", 20) == (step.program, step.place, step.use.output)


def test_an_answer_counts_when_a_part_of_it_was_erased() -> None:
    """What was erased is no longer there to be counted; the provider's numbers are."""
    whole = log(*answer("r", Usage(10, 20, 5), "secret"))
    erased = [
        msgspec.structs.replace(commit, value=Erased("asked", 1)) if commit.kind == "reasoning" else commit
        for commit in whole
    ]
    assert whole != erased
    assert taken(whole).steps == taken(erased).steps


def test_an_imported_response_says_what_a_copy_of_it_goes_by() -> None:
    """The id that its source has for it, those of its calls, digests of its opaque values; others need none. An id that
    only says at which place a call stands is that of many.
    """
    calls = ToolCall("call_1", "ls", "{}"), ToolCall("call_3_2", "ls", "{}")
    blocks: tuple[Block, ...] = (ThinkingBlock("", signature="sealed"), *calls, Text("so"))

    def ids(program: str, id: str = "") -> tuple[str, ...]:
        drafts = [
            request("r"),
            Draft("response", Response(Origin("codex", "", "m", "m"), id=id), "r"),
            *(block_draft(block, "r", at) for at, block in enumerate(blocks)),
            Draft("provider_usage", Usage(10, 5, program=program), "r"),
        ]
        (step,) = taken(log(*drafts)).steps
        return step.source_ids

    assert () == ids("", "resp_1")
    sealed, call = ids("codex")
    assert ("call_1", False) == (call, "sealed" in sealed)
    assert ("resp_1", sealed, call) == ids("codex", "resp_1")
