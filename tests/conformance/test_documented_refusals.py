"""What providers are documented or reported to refuse: the referee does so in their words, and a session goes on."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

import thinkback
from tests.conformance.moves import PLACES, Place, options
from thinkback.turn.repair import MAX_REPAIRS
from thinkback_referee import Referee

CLAUDE = next(place for place in PLACES if place.dialect == "anthropic")
ASKED = {"role": "user", "content": "Hello?"}
SAID = {"role": "assistant", "content": "Hi."}
ALTERED = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABfromElsewhere=="}
UNVERIFIED = "could not be verified. Reason: Encrypted content could not be decrypted or parsed."


class Case(NamedTuple):
    """A history that is sent as it is, where ``row`` says so (a rule row of one's own), and what it is answered by."""

    endpoint: str
    model: str
    item: dict[str, Any]
    refusal: str
    row: str = ""


CASES = {
    "an item of reasoning at Copilot": Case(
        "copilot", "gpt-5.4", ALTERED, 'input[1].type "reasoning" is not a valid input item type', 'like = "copilot"'
    ),
    "content of another caller at Meta": Case(
        "meta", "muse-spark-1.3", ALTERED, "reasoning `encrypted_content` was not issued to this caller"
    ),
    "an item that Meta does not have": Case(
        "meta",
        "muse-spark-1.3",
        {"type": "reasoning", "id": "rs_1", "summary": []},
        "Referenced reasoning item was not found or was deleted",
        'like = "meta"\nneed_signature = []',
    ),
    "an item of OpenAI without the field": Case(
        "openai",
        "gpt-5.4",
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "A greeting."}]},
        f"The encrypted content ... {UNVERIFIED}",
        'like = "openai-gpt-5.4"\nneed_signature = []',
    ),
    "a compaction of another account at OpenAI": Case(
        "openai",
        "gpt-5.6-sol",
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABfromElsewhere=="},
        f"The encrypted content for item cmp_1 {UNVERIFIED}",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_documented_refusal_is_repaired(case: Case, referee: Referee) -> None:
    """In the provider's words, within the bounded attempts, and the next question is not refused again."""
    row = (
        f'[[rule]]\nid = "mine"\nendpoint = "{case.endpoint}"\nmodel = ["{case.model}"]\nsince = "2026-11-01"\n'
        f'source = "the tests"\n{case.row}'
    )
    place = options(referee, Place("", case.endpoint, case.endpoint, case.model))
    with thinkback.open(":memory:", rules={"mine.toml": row} if case.row else None) as store:
        session = store.session("chat", **place)
        session.wire.adopt([ASKED, case.item, SAID], minted_by=(case.endpoint, case.model))
        first, second = session.chat("And now?"), session.chat("Thank you.")
    refused = [seen.verdict.message for seen in referee.requests if seen.status >= 400]
    assert {case.refusal} == set(refused)
    assert len(refused) <= MAX_REPAIRS
    assert ["completed", "completed"] == [first.state, second.state]
    assert 200 == referee.requests[-2].status


def test_a_thought_that_is_missing_before_another_is_repaired(referee: Referee) -> None:
    """Claude's third sentence of a bound block: what another program left out costs what is bound to it, no more."""
    place = options(referee, CLAUDE)
    with thinkback.open(":memory:") as store:
        whole = store.session("whole", **place)
        whole.set("reasoning.effort", "high")
        for prompt in ("One?", "Two?", "Three?", "Four?"):
            whole.chat(prompt)
        *history, _ = json.loads(referee.requests[-1].raw)["messages"]
        history[3]["content"] = [block for block in history[3]["content"] if block["type"] != "thinking"]
        session = store.session("gap", **place)
        session.wire.adopt(history, minted_by=("anthropic", CLAUDE.model))
        before = len(referee.requests)
        replies = [session.chat("Four?", params={"thinking": {"type": "adaptive"}}), session.chat("Thank you.")]
    statuses = [seen.status for seen in referee.requests[before:]]
    missed = "The `thinking` block that preceded this one when it was created is missing from this request."
    assert [400, 200, 200] == statuses
    assert referee.requests[before].verdict.message.endswith(missed)
    assert ["completed", "completed"] == [reply.state for reply in replies]
    assert "signature" in str(referee.requests[-1].body["messages"])
