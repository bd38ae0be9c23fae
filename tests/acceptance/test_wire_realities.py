"""What public issues of other projects report of the wire, and a replay layer must survive."""

from __future__ import annotations

import pytest

from tests.acceptance.hosts import OF, answer, ask_and_call, at, body, next_body, returned, statuses, talk
from tests.acceptance.pointers import Row, missing, named, row
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, Step

CAPTURE = "acceptance/test_capture.py::test_"
REPLAY = "acceptance/test_replay.py::test_"
EDGES = "acceptance/test_edge_cases.py::test_"
HERE = "acceptance/test_wire_realities.py::test_"

ROWS = (
    row(
        "A1",
        "encrypted content is bound to issuer, endpoint and account",
        f"{REPLAY}another_account_gets_none_of_it",
        f"{REPLAY}another_endpoint_gets_none_of_it",
        f"{REPLAY}refused_reasoning_is_taken_out_and_the_turn_goes_on",
    ),
    row(
        "A2",
        "reasoning without its required following item",
        f"{HERE}a_reasoning_item_is_never_last_in_its_response",
        f"{REPLAY}reasoning_that_nothing_follows_does_no_harm",
    ),
    row("A3", "an item without its required reasoning", f"{HERE}an_item_whose_reasoning_stays_away_goes_without_id"),
    row("A4", "several unpaired items in a row", f"{HERE}runs_of_unpaired_reasoning_leave_nothing"),
    row("A5", "empty summaries must be sent", f"{REPLAY}output_only_fields_stay_away_and_empty_summaries_go"),
    row("A6", "output-only fields must not be sent", f"{REPLAY}output_only_fields_stay_away_and_empty_summaries_go"),
    row("A7", "ids of items that are not stored", f"{HERE}full_items_go_and_never_a_reference"),
    row(
        "A8",
        "reasoning before every call, at DeepSeek and Kimi",
        f"{HERE}each_call_has_its_reasoning_before_it",
        f"{HERE}each_step_of_a_loop_keeps_its_field",
    ),
    row("A9", "encrypted replay at xAI", f"{HERE}encrypted_replay_is_a_matter_of_the_dialect"),
    row(
        "A10",
        "strict gateways refuse empty or unknown fields",
        f"{EDGES}ec_007_nothing_is_left_after_stripping",
        "acceptance/test_settings.py::test_an_unknown_host_is_told_nothing",
    ),
    row(
        "A11",
        "Anthropic blocks in position, byte for byte, redacted ones too",
        f"{CAPTURE}redacted_reasoning_is_kept_unread_and_goes_back",
        f"{CAPTURE}interleaved_reasoning_and_calls_keep_the_order_of_the_provider",
        f"{REPLAY}opaque_values_go_back_byte_for_byte",
    ),
    row(
        "A12",
        "Gemini signatures on the call",
        f"{EDGES}ec_006_a_call_with_reasoning_and_no_text",
        "wire/gemini/test_parts.py::test_a_part_is_a_block_and_comes_back_as_it_was",
    ),
    row(
        "A13",
        "thousands of one-token parts",
        f"{CAPTURE}many_small_deltas_are_one_block",
        f"{EDGES}err_003_reasoning_of_any_length",
        "wire/openai_chat/test_reader_laws.py::test_memory_grows_with_the_text_and_not_with_the_number_of_chunks",
    ),
    row(
        "A14",
        "unclosed, fragmented, split and quoted tags",
        "model/test_think_tags.py::test_content_is_split_by_the_rules_at_every_cut",
        "wire/openai_chat/test_content.py::test_a_lone_closing_tag_reclassifies_what_was_shown",
    ),
    row(
        "A15",
        "display is independent of storage and replay",
        "acceptance/test_settings.py::test_display_never_changes_the_wire",
        "cli/chat/drawing/test_screen.py::test_collapsed_thinking_counts_and_then_is_one_line",
        "cli/chat/test_prompt.py::test_ctrl_t_changes_how_thinking_is_shown",
    ),
)


@pytest.mark.parametrize("reality", ROWS, ids=named)
def test_a_wire_reality_has_its_test(reality: Row) -> None:
    """Each row names at least one test, and the test is there."""
    assert reality.tests
    assert [] == missing(reality.tests)


def test_all_realities_are_here() -> None:
    """All fifteen, in their order."""
    assert [f"A{number}" for number in range(1, 16)] == [reality.id for reality in ROWS]


def test_a_reasoning_item_is_never_last_in_its_response(store: SessionStore, referee: Referee) -> None:
    """A response that was cut behind its thought leaves no item before the next question."""
    session = talk(store, referee, OF["openai-responses"])
    referee.push(Step(reasoning="only-a-thought"))
    session.chat("Hello?")
    session.chat("And?")
    kinds = [item.get("type", "message") for item in body(referee)["input"]]
    assert (["message", "message"], [200, 200]) == (kinds, statuses(referee))


def test_an_item_whose_reasoning_stays_away_goes_without_id(store: SessionStore, referee: Referee) -> None:
    """Stripped of its reasoning, the message is text of the assistant that no id ties to anything."""
    session = talk(store, referee, OF["openai-responses"])
    referee.push(Step(reasoning="a-thought", text="One."))
    session.chat("Hello?")
    assert "id" in next_body(session)["input"][2]
    session.set("reasoning.stripFromContext", "all")
    said = next_body(session)["input"][1]
    assert ("assistant", False) == (said["role"], "id" in said)
    session.chat("And?")
    assert [200, 200] == statuses(referee)


def test_runs_of_unpaired_reasoning_leave_nothing(store: SessionStore, referee: Referee) -> None:
    """Three responses of nothing but thought: no item of them goes out, and the host has nothing to refuse."""
    session = talk(store, referee, OF["openai-responses"])
    referee.push(*(Step(reasoning=f"thought-{number}") for number in range(3)))
    for number in range(3):
        session.chat(f"Question {number}?")
    session.chat("And?")
    assert ([], {200}) == (returned(OF["openai-responses"], body(referee)), set(statuses(referee)))


def test_full_items_go_and_never_a_reference(store: SessionStore, referee: Referee) -> None:
    """With ``store: false`` each item goes whole, encrypted content included."""
    session = talk(store, referee, OF["openai-responses"])
    answer(session, ask_and_call(session, referee))
    sent = body(referee)
    assert (False, False) == (sent["store"], any(item.get("type") == "item_reference" for item in sent["input"]))
    assert all(item["encrypted_content"] for item in returned(OF["openai-responses"], sent))


def test_each_call_has_its_reasoning_before_it(store: SessionStore, referee: Referee) -> None:
    """DeepSeek's Responses: readable items go back, each before the call that it led to."""
    session = at(store, referee, "deepseek-responses", "deepseek-v4-pro", "deepseek")
    for thought in ("first-look", "second-look"):
        reply = ask_and_call(session, referee, thought)
        answer(session, reply)
    kinds = [item.get("type") for item in body(referee)["input"]]
    places = [at for at, kind in enumerate(kinds) if kind == "function_call"]
    assert 2 == len(places)
    assert ["reasoning"] * 2 == [kinds[place - 1] for place in places]
    assert {200} == set(statuses(referee))


@pytest.mark.parametrize(("endpoint", "model"), [("deepseek", "deepseek-v4-pro"), ("kimi", "kimi-k2.6")])
def test_each_step_of_a_loop_keeps_its_field(store: SessionStore, referee: Referee, endpoint: str, model: str) -> None:
    """Two calls, one after the other: both messages have their own ``reasoning_content``."""
    session = at(store, referee, endpoint, model)
    first = ask_and_call(session, referee, "first-look")
    referee.push(Step(reasoning="second-look", tool_calls=[Call("clock", {"city": "Oslo"})]))
    second = answer(session, first)
    answer(session, second)
    sent = [message.get("reasoning_content") for message in body(referee)["messages"] if "tool_calls" in message]
    assert (["first-look", "second-look"], {200}) == (sent, set(statuses(referee)))


def test_encrypted_replay_is_a_matter_of_the_dialect(store: SessionStore, referee: Referee) -> None:
    """xAI gets its encrypted items back as OpenAI does."""
    session = at(store, referee, "xai", "grok-4.3")
    session.set("reasoning.effort", "high")
    assert "completed" == answer(session, ask_and_call(session, referee)).state
    item = returned(OF["openai-responses"], body(referee))[0]
    assert (True, [200, 200]) == (bool(item["encrypted_content"]), statuses(referee))
