"""The refusals of each dialect in the providers' own words: which repair answers them, and what it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    INTERACTIONS,
    MISTRAL,
    RESPONSES,
    Talk,
    call,
    native,
    origin,
    say,
    target,
    thought,
    tied,
)
from thinkback.model.blocks import Carrier, ToolCall
from thinkback.model.commits import Failure, Repair
from thinkback.model.rule import Switch
from thinkback.model.target import Target, merge
from thinkback.rules import load_rulebook
from thinkback.turn.repair import next_repair

ROWS = {row.id: row for row in load_rulebook().rules()}
THINKS: dict[str, dict[str, Any]] = {
    "claude-manual": {"thinking": {"type": "enabled"}},
    "claude-4-6": {"thinking": {"type": "adaptive"}},
    "converse-claude-manual": {"additionalModelRequestFields": {"thinking": {"type": "enabled"}}},
}


def called(speech: str, id: str, value: str) -> ToolCall:
    """A call as it comes in a dialect."""
    if speech == GEMINI:
        return call(id, carriers=(Carrier("thought_signature", value),))
    made: ToolCall = tied(call(id), f"fc_{value}-a") if speech == RESPONSES else call(id)
    return made


def history(speech: str) -> Talk:
    """Two finished turns, and a loop under way."""
    talk = Talk(origin(speech))
    for number in range(2):
        said = say(f"a{number}")
        if speech == RESPONSES:
            said = tied(said, f"msg_{number}-a")
        talk.user(f"q{number}").reply(thought(speech, "t", f"V{number}", f"rs_{number}-a"), said).end()
    return talk.user("next").reply(thought(speech, "t", "V2", "rs_2-a"), called(speech, "c1", "V3")).result()


def repairs(talk: Talk, place: Target, status: int, *texts: str, params: dict[str, Any]) -> list[tuple[str, set[str]]]:
    """(stage, what it leaves out) of the repairs of refusals that come one after the other; empty for none."""
    found: list[tuple[str, set[str]]] = []
    for text in texts:
        plan = talk.plan(place, **params)
        repair = next_repair(plan, Failure(text, status), talk.commits)
        if repair is None:
            return [*found, ("", set())]
        before = bytes(plan)
        talk.note("repair", repair)
        after = bytes(talk.plan(place, **params))
        found.append(
            (repair.stage, {v for v in ("V0", "V1", "V2", "V3") if v.encode() in before and v.encode() not in after})
        )
    return found


ALL = {"V0", "V1", "V2"}
E5 = (
    "messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` "
    "and `tool_result` blocks). We recommend you include thinking blocks from previous turns."
)
E6 = (
    "messages.5.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
    "modified. These blocks must remain as they were in the original response."
)
E8 = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". The `system` prompt '
    "differs from the one this block was created with."
)
CASES = [
    (
        "openai-gpt-5",
        400,
        "Item 'rs_1-a' of type 'reasoning' was provided without its required following item.",
        "block",
        {"V1"},
    ),
    (
        "openai-gpt-5",
        400,
        "Item 'fc_V3-a' of type 'function_call' was provided without its required 'reasoning' item: 'rs_2-a'.",
        "block",
        {"V2", "V3"},
    ),
    (
        "openai-gpt-5",
        404,
        "Item with id 'rs_0-a' not found. Items are not persisted when `store` is set to false. Try again with `store` "
        "set to true, or remove this item from your input.",
        "block",
        {"V0"},
    ),
    (
        "openai-gpt-5",
        400,
        "Item 'msg_gone' of type 'message' was provided without its required 'reasoning' item: 'rs_1-a'.",
        "block",
        {"V1"},
    ),
    ("openai-gpt-5", 400, "The encrypted content gAAA...Rg== could not be verified.", "older_turns", {"V0", "V1"}),
    (
        "openai-gpt-5",
        400,
        "The encrypted content for item rs_1-a could not be verified. Reason: Encrypted content could not be decrypted "
        "or parsed.",
        "block",
        {"V1"},
    ),
    (
        "xai",
        422,
        "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a "
        "previous response.",
        "older_turns",
        {"V0", "V1"},
    ),
    ("claude-manual", 400, E5, "restore", set()),
    ("claude-manual", 400, E6, "block", {"V2"}),
    ("claude-4-6", 400, "messages.3: The final block in an assistant message cannot be `thinking`.", "block", {"V1"}),
    ("claude-bound", 400, E8, "server_drop", set()),
    ("claude-bound", 400, "messages.3.content.0: Invalid `signature` in `thinking` block", "block", {"V0", "V1"}),
    ("claude-4-6", 400, "messages.1.content.0.thinking.signature: Field required", "block", {"V0"}),
    (
        "claude-4-6",
        400,
        "messages.3.content.0.thinking: each thinking block must contain thinking",
        "block",
        {"V1"},
    ),
    (
        "gemini",
        400,
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
        "call `default_api:Task` , position 2.",
        "restore",
        set(),
    ),
    (
        "gemini",
        400,
        "Unable to submit request because Thought signature is not valid.. Learn more: https://cloud.google.com/vertex-ai/",
        "older_turns",
        {"V0", "V1"},
    ),
    ("gemini", 400, "Corrupted thought signature.", "older_turns", {"V0", "V1"}),
    ("gemini-interactions", 400, "The signature of a step is not valid.", "older_turns", {"V0", "V1"}),
    (
        "converse-claude-manual",
        400,
        "The model returned the following errors: messages.1.content.0: Invalid `signature` in `thinking` block",
        "block",
        {"V0"},
    ),
    (
        "converse-claude-manual",
        400,
        "User messages cannot contain reasoning content. Please remove the reasoning content and try again.",
        "older_turns",
        {"V0", "V1"},
    ),
    ("converse-claude-bound", 400, f"The model returned the following errors: {E8}", "block", ALL),
    (
        "mistral",
        422,
        '{"detail":[{"type":"extra_forbidden","loc":["body","messages",3,"assistant","content",0],'
        '"msg":"Extra inputs are not permitted"}]}',
        "block",
        {"V1"},
    ),
    (
        "compatible",
        400,
        "The `content[].thinking` in the thinking mode must be passed back to the API.",
        "restore",
        set(),
    ),
]
OF_ROW = {
    "openai-gpt-5": RESPONSES,
    "xai": RESPONSES,
    "claude-manual": ANTHROPIC,
    "claude-4-6": ANTHROPIC,
    "claude-bound": ANTHROPIC,
    "compatible": ANTHROPIC,
    "gemini": GEMINI,
    "gemini-interactions": INTERACTIONS,
    "converse-claude-manual": BEDROCK,
    "converse-claude-bound": BEDROCK,
    "mistral": MISTRAL,
}


@pytest.mark.parametrize(("row", "status", "text", "stage", "gone"), CASES, ids=[f"{c[0]}-{c[2][:30]}" for c in CASES])
def test_a_refusal_is_answered(row: str, status: int, text: str, stage: str, gone: set[str]) -> None:
    """The first repair touches as little as the words allow."""
    speech = OF_ROW[row]
    found = repairs(history(speech), target(ROWS[row], speech), status, text, params=THINKS.get(row, {}))
    assert [(stage, gone)] == found


@pytest.mark.parametrize(("row", "status", "text", "stage", "gone"), CASES, ids=[f"{c[0]}-{c[2][:30]}" for c in CASES])
def test_the_same_refusal_again_goes_further_down_and_ends(
    row: str, status: int, text: str, stage: str, gone: set[str]
) -> None:
    """Three repairs at most, none of them twice; what is left in the end is told."""
    speech = OF_ROW[row]
    found = repairs(history(speech), target(ROWS[row], speech), status, *[text] * 5, params=THINKS.get(row, {}))
    stages = [name for name, _ in found]
    assert "" == stages[-1]
    assert len(set(stages)) == len(stages) <= 4
    assert stages[0] == stage


def test_thinking_goes_off_where_there_is_nothing_to_restore() -> None:
    """Claude demands a thought of a step that had none: thinking is off for the rest of the turn, then on again."""
    place, params = target(ROWS["claude-4-6"], ANTHROPIC), THINKS["claude-4-6"]
    talk = Talk(origin(ANTHROPIC)).turn("a", say("no thought")).user("b").reply(call()).result()
    assert "restore" == repairs(talk, place, 400, E5, params=params)[0][0]
    assert {"type": "disabled"} == talk.plan(place, **params).params["thinking"]
    talk.reply(say("x")).end().user("c")
    assert {"type": "adaptive"} == talk.plan(place, **params).params["thinking"]


def test_nothing_is_made_up_where_a_dialect_has_no_place_for_it() -> None:
    """A refusal that asks for reasoning does not lead to a placeholder that nobody writes."""
    place = target(native(), RESPONSES)
    talk = (
        Talk(origin(RESPONSES, requested_model="m9"))
        .user("a")
        .reply(thought(RESPONSES, "s", "V0", "rs_0"), call())
        .result()
    )
    assert "restore" == repairs(talk, place, 400, "is missing a thought_signature", params={})[0][0]
    assert {"drop"} == {decision.action for decision in talk.plan(place).decisions}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "`max_tokens` must be greater than `thinking.budget_tokens`"),
        (400, "Thinking may not be enabled when tool_choice forces tool use."),
        (400, "`temperature` may only be set to 1 when thinking is enabled"),
        (400, "Invalid schema for response_format: the response is invalid"),
        (404, "The model `claude-next` does not exist, and no response was found"),
        (429, "Corrupted thought signature."),
    ],
)
def test_other_refusals_are_told_as_they_are(status: int, text: str) -> None:
    """Parameters, schemas and model names have nothing to do with what is given back."""
    assert [("", set())] == repairs(
        history(ANTHROPIC), target(ROWS["claude-bound"], ANTHROPIC), status, text, params={}
    )


def test_a_switch_on_the_server_is_for_what_it_can_switch() -> None:
    """A row that is not bound has it for any refusal; a bound one only for blocks that are bound elsewhere."""
    row = native(server_drop=Switch({"drop": True}))
    talk = history(ANTHROPIC)
    found = repairs(talk, target(row, ANTHROPIC), 400, "Invalid `signature` in `thinking` block", params={})
    assert [("server_drop", set())] == found
    assert True is talk.plan(target(row, ANTHROPIC)).params["drop"]
    assert isinstance(talk.commits[-1].value, Repair)
    assert {"drop": True} == merge({}, {"drop": True})
