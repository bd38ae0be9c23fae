"""What providers say of reasoning that they do not take is known to the shipped rows; other refusals are left alone."""

from __future__ import annotations

import pytest

from tests.turn.playbook import commits_of
from thinkback.model.blocks import Origin, Text
from thinkback.model.commits import Draft, Failure, Message, Repair, Response, TurnEnded
from thinkback.model.target import Settings
from thinkback.rules import load_rulebook
from thinkback.turn.plan import History
from thinkback.turn.repair import next_repair

BOOK = load_rulebook()
DAY = "2026-11-22"
CLAUDE, OPENAI, META = ("anthropic", "claude-opus-5-5"), ("openai", "gpt-6-sol"), ("meta", "muse-spark-1.3")
COPILOT, CONVERSE = ("copilot", "gpt-5.5"), ("bedrock", "us.anthropic.claude-opus-5-5-v1:0")
MISTRAL, OLLAMA, COHERE = (
    ("mistral", "mistral-small-latest"),
    ("ollama-native", "gpt-oss:20b"),
    ("cohere", "command-a-reasoning-08-2025"),
)
INTERACTIONS, DEEPSEEK, KIMI = (
    ("gemini-interactions", "gemini-3-pro"),
    ("deepseek", "deepseek-v4-pro"),
    ("kimi", "kimi-k2.6"),
)
GROQ, XAI, GEMINI = ("groq", "openai/gpt-oss-120b"), ("xai", "grok-4.6"), ("gemini", "gemini-3-pro")
MISSED = "The `thinking` block that preceded this one when it was created is missing from this request."
BOUND = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."

KNOWN = [
    (CLAUDE, 400, f"{BOUND} {MISSED}"),
    (CLAUDE, 400, MISSED),
    (CLAUDE, 400, "messages.1.content.0.thinking.signature: Field required"),
    (CLAUDE, 400, "messages.1: The final block in an assistant message cannot be `thinking`."),
    (CONVERSE, 400, f"The model returned the following errors: {MISSED}"),
    (OPENAI, 400, "The encrypted content gAAA...Rg== could not be verified."),
    (OPENAI, 400, "The encrypted content for item cmp_0 could not be verified."),
    (OPENAI, 400, "invalid_encrypted_content"),
    (OPENAI, 404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
    (META, 400, "reasoning `encrypted_content` was not issued to this caller"),
    (META, 404, "Referenced reasoning item was not found or was deleted"),
    (META, 400, "Referenced reasoning item 'rs_221n7fgv8xprc' was not found or has expired."),
    (COPILOT, 400, 'input[1].type "reasoning" is not a valid input item type'),
    (XAI, 422, "Could not decrypt the provided encrypted_content."),
    (GEMINI, 400, "Corrupted thought signature."),
    (GEMINI, 400, "Unable to submit request because Thought signature is not valid.."),
    (INTERACTIONS, 400, "A thought step is missing at step 1."),
    (DEEPSEEK, 400, "The `reasoning_content` in the thinking mode must be passed back to the API."),
    (KIMI, 400, "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"),
    (GROQ, 400, "'messages.1' : property 'reasoning_content' is unsupported"),
    (
        MISTRAL,
        422,
        '{"loc":["body","messages",1,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted"}',
    ),
    (MISTRAL, 400, "Thinking chunk of messages[1] is not the one that was issued"),
    (OLLAMA, 400, "messages[1].thinking is not the one that was generated"),
    (COHERE, 400, "invalid request: the thinking of messages[1] is not the one that was generated"),
]
OTHERS = [
    (MISTRAL, 422, '{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted"}'),
    (MISTRAL, 400, "reasoning_effort low is not supported for this model, supported values: [high, none]"),
    (OLLAMA, 400, '"gemma3:4b" does not support thinking'),
    (OLLAMA, 400, 'invalid think value: "x" (must be "high", "medium", "low", "max", true, or false)'),
    (COHERE, 400, "invalid request: thinking.token_budget must be positive"),
    (OPENAI, 400, "Unknown parameter: 'reasoning.effort'."),
    (DEEPSEEK, 400, "Unrecognized request argument supplied: reasoning_effort"),
    (DEEPSEEK, 400, "Unrecognized request argument supplied: reasoning"),
    (META, 404, "The model does not exist"),
]


def repaired(place: tuple[str, str], status: int, text: str) -> Repair | None:
    """What is done about a refusal of a request that has an answer of this very place in it."""
    to = BOOK.target(*place, on=DAY, base_url="https://host.example/v1")
    commits = commits_of(
        [
            Draft("user", Message("Hello?")),
            Draft("response", Response(Origin(to.endpoint.dialect, to.base_url, to.model), content="text"), "r1"),
            Draft("assistant", Text("Yes."), "r1", 0),
            Draft("turn_ended", TurnEnded("completed")),
            Draft("user", Message("Go on.")),
        ]
    )
    plan = History(commits).plan(to, Settings(), None, {"reasoning": {"effort": "high"}})
    return next_repair(plan, Failure(text, status=status), commits)


@pytest.mark.parametrize(("place", "status", "text"), KNOWN)
def test_known_refusals_are_repaired(place: tuple[str, str], status: int, text: str) -> None:
    """In the provider's own words where they are documented or reported, else in the words of the stand-in."""
    assert repaired(place, status, text) is not None


@pytest.mark.parametrize(("place", "status", "text"), OTHERS)
def test_other_refusals_are_told(place: tuple[str, str], status: int, text: str) -> None:
    """A parameter that is refused is no matter of the history, however its name begins."""
    assert repaired(place, status, text) is None


@pytest.mark.parametrize("place", [MISTRAL, (OLLAMA[0], "qwen3:8b"), COHERE, INTERACTIONS])
def test_a_row_says_where_no_text_is_documented(place: tuple[str, str]) -> None:
    """What the row goes by then is its own."""
    assert "refusals" in BOOK.rule_for(*place, DAY)[0].unconfirmed
