"""Instructions of a client stay where it has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thinkback.wire.openai_responses.front import as_asked

TOLD = {"role": "system", "content": "Be \u00e9xact."}
ASKS = {"role": "user", "content": "Why?"}


def planned(**body: Any) -> Any:
    """What becomes of a planned body behind a request with instructions."""
    asked = json.dumps({"instructions": TOLD["content"], "input": "Why?"}).encode()
    return json.loads(as_asked(asked, json.dumps(body).encode()))


def test_the_message_that_instructions_became_is_instructions_again() -> None:
    """All else of the plan stays."""
    assert {"model": "m", "input": [ASKS], "instructions": TOLD["content"]} == planned(model="m", input=[TOLD, ASKS])


@pytest.mark.parametrize(
    "body",
    [
        {"input": [ASKS]},
        {"input": []},
        {"model": "m"},
        {"input": [{**TOLD, "content": "Another."}, ASKS]},
        {"input": [ASKS], "instructions": "Another."},
    ],
)
def test_a_plan_that_says_them_otherwise_stays(body: Any) -> None:
    """The host wants them elsewhere, or there are others now."""
    assert body == planned(**body)


@pytest.mark.parametrize("asked", [b'{"input":"Why?"}', b'{"instructions":null}', b'{"instructions":"\\ud83d"}', b"["])
def test_a_request_without_instructions_changes_nothing(asked: bytes) -> None:
    """Nor one whose instructions are no text."""
    body = json.dumps({"input": [TOLD, ASKS]}).encode()
    assert body is as_asked(asked, body)
