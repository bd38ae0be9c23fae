"""Replay of recorded conversations: our next request beside the one the provider accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.exchanges import cases
from thinkback.cli.replay import COUNTED, carry, replay_case, replay_file
from thinkback.errors import NotFoundError, WireError
from thinkback.rules import load_rulebook

CASES = [case for _, case in cases() if any(e["dialect"] == "openai-chat" for e in case["exchanges"])]


@pytest.mark.corpus
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"][:60])
def test_every_difference_from_an_accepted_request_is_stated_by_a_rule_row(case: dict[str, Any]) -> None:
    """What we would send differs from what was accepted only where a rule row says so and why."""
    replayed = replay_case(case, load_rulebook({}))
    unexplained = [d for row in replayed["exchanges"] for d in row["differences"] if d["explained_by"] is None]

    assert [] == unexplained


@pytest.mark.corpus
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"][:60])
def test_the_carry_of_a_recorded_request_is_counted_as_the_corpus_counts_it(case: dict[str, Any]) -> None:
    """Our count of what a request carries equals the corpus' own."""
    for row in replay_case(case, load_rulebook({}))["exchanges"]:
        theirs = case["exchanges"][row["exchange"]].get("request_replay") or {}

        assert {key: theirs[key] for key in COUNTED if key in theirs} == {
            key: row["recorded"][key] for key in COUNTED if key in row["recorded"]
        }


@pytest.mark.corpus
@pytest.mark.skipif(not CASES, reason="THINKBACK_CORPUS is not set")
@pytest.mark.xfail(strict=True, reason="recorded clients that lose reasoning make one conversation in five differ")
def test_at_most_one_conversation_in_ten_differs_at_all() -> None:
    """The aim of 10 % of the conversations with any difference, stated ones included."""
    replayed = [replay_case(case, load_rulebook({})) for case in CASES]
    conversations = [replay for replay in replayed if replay["conversation"]]
    differing = [replay for replay in conversations if replay["differs"]]

    assert len(differing) <= len(conversations) / 10


def test_a_placeholder_is_no_reasoning() -> None:
    """A field of white space does not count as carried reasoning."""
    messages = [{"role": "assistant", "content": "", "reasoning_content": " "}]

    assert {"opaque_sha256": []} == carry(messages)


def test_opaque_values_are_listed_by_hash_in_order() -> None:
    """Signatures and encrypted data appear as sha256 prefixes, never themselves."""
    entries = [{"type": "reasoning.text", "signature": "a"}, {"type": "reasoning.encrypted", "data": "b"}]
    carried = carry([{"role": "assistant", "reasoning_details": entries}])

    assert ["ca978112ca1bbdca", "3e23e8160039594a"] == carried["opaque_sha256"]


@pytest.mark.parametrize(("text", "error"), [("{", WireError), ("[]", WireError), ('{"exchanges": 1}', WireError)])
def test_a_file_that_is_no_case_is_refused(tmp_path: Path, text: str, error: type[Exception]) -> None:
    """A file that is not a recorded case gives an error that says so."""
    file = tmp_path / "case.json"
    file.write_text(text)

    with pytest.raises(error):
        replay_file(str(file))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path that does not exist is named in the error."""
    with pytest.raises(NotFoundError, match="cannot read"):
        replay_file(str(tmp_path / "none.json"))


def test_a_lost_carrier_shows_as_an_unexplained_difference(tmp_path: Path) -> None:
    """A recorded request that carried more than our rule sends is reported, not passed over."""
    reply = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "4"}}]}
    sent = {"role": "assistant", "content": "4", "reasoning": "invented by the client"}
    exchanges = [
        {"dialect": "openai-chat", "provider": "nobody", "request": {"body": {"model": "m", "messages": messages}}}
        | {"response": {"status": 200, "content_type": "application/json", "body": reply}}
        for messages in ([{"role": "user", "content": "?"}], [{"role": "user", "content": "?"}, sent])
    ]
    file = tmp_path / "case.json"
    file.write_text(json.dumps({"case": "made", "exchanges": exchanges}))

    assert 1 == replay_file(str(file))["unexplained"]
