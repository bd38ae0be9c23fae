"""What users of other projects complain about, in public issues, and what proves that it does not happen here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.hosts import (
    LOOK,
    OF,
    answer,
    ask_and_call,
    at,
    body,
    next_body,
    returned,
    statuses,
    talk,
    thoughts,
)
from tests.acceptance.pointers import Row, missing, named, row
from tests.conformance.moves import KEY, TOOLS
from thinkback.session.store import SessionStore
from thinkback_referee import Referee, Step

CAPTURE = "acceptance/test_capture.py::test_"
REPLAY = "acceptance/test_replay.py::test_"
SETTINGS = "acceptance/test_settings.py::test_"
REALITIES = "acceptance/test_wire_realities.py::test_"
EDGES = "acceptance/test_edge_cases.py::test_"
HERE = "acceptance/test_complaints.py::test_"

ROWS = (
    row(1, "DeepSeek's field must be passed back", f"{REALITIES}each_step_of_a_loop_keeps_its_field"),
    row(2, "DeepSeek's Messages have their own wording", f"{HERE}unsigned_thinking_goes_back_where_it_is_from"),
    row(3, "captured and never sent", f"{EDGES}ec_006_a_call_with_reasoning_and_no_text"),
    row(4, "the same in another language", f"{EDGES}ec_006_a_call_with_reasoning_and_no_text"),
    row(5, "Kimi's field on calls", f"{REALITIES}each_step_of_a_loop_keeps_its_field"),
    row(6, "an empty signature is a signature all the same", f"{HERE}unsigned_thinking_goes_back_where_it_is_from"),
    row(7, "a model that always thinks and a history without", f"{HERE}a_history_without_reasoning_gets_a_placeholder"),
    row(8, "Mistral refuses unknown fields", f"{HERE}no_foreign_field_reaches_a_strict_host"),
    row(9, "Mistral again", f"{HERE}no_foreign_field_reaches_a_strict_host"),
    row(10, "Cerebras refuses reasoning_content", f"{HERE}a_host_gets_the_field_it_knows"),
    row(11, "Groq refuses reasoning_content", f"{HERE}no_foreign_field_reaches_a_strict_host"),
    row(12, "two hosts in one conversation", f"{HERE}no_foreign_field_reaches_a_strict_host"),
    row(13, "thinking and reasoning_effort at once", f"{HERE}moonshot_never_gets_both_words"),
    row(14, "expected thinking, found tool_use", f"{HERE}a_loop_that_another_model_began_is_accepted"),
    row(15, "thinking disabled and a thinking block", f"{HERE}thinking_may_be_switched_off_between_turns"),
    row(16, "blocks of the latest message must not be modified", f"{REPLAY}opaque_values_go_back_byte_for_byte"),
    row(17, "each block must contain thinking", f"{EDGES}ec_002_reasoning_that_is_an_empty_string"),
    row(18, "reasoning only, taken for a prefill", f"{REPLAY}reasoning_that_nothing_follows_does_no_harm"),
    row(
        19,
        "model there and back",
        f"{REPLAY}another_model_of_the_host_gets_none_of_it",
        "conformance/test_all_pairs.py::test_a_conversation_moves_there_and_back",
    ),
    row(20, "a router changes the model", "conformance/test_all_pairs.py::test_a_conversation_moves_there_and_back"),
    row(21, "a retry that strips one of two copies", f"{REPLAY}refused_reasoning_is_taken_out_and_the_turn_goes_on"),
    row(22, "a session dead for good", f"{REPLAY}refused_reasoning_is_taken_out_and_the_turn_goes_on"),
    row(23, "bound to another conversation", f"{HERE}a_changed_system_prompt_takes_bound_reasoning_with_it"),
    row(24, "a setting without its beta header", f"{HERE}a_setting_goes_with_its_beta_header"),
    row(25, "stopped in the middle of a thought", f"{HERE}stopped_within_a_thought_the_next_turn_is_valid"),
    row(26, "a signature dropped at the end", f"{REPLAY}opaque_values_go_back_byte_for_byte"),
    row(27, "signatures of one host on another", f"{HERE}bedrock_and_anthropic_do_not_mix_their_blocks"),
    row(
        28,
        "compaction replays what it must not",
        "session/history/test_compaction.py::test_every_dialect_takes_what_is_left",
    ),
    row(
        29,
        "signatures cached by call id alone",
        "conformance/test_all_pairs.py::test_a_conversation_moves_there_and_back",
    ),
    row(30, "reasoning without its following item", f"{REALITIES}a_reasoning_item_is_never_last_in_its_response"),
    row(31, "an item without its reasoning", f"{REALITIES}an_item_whose_reasoning_stays_away_goes_without_id"),
    row(32, "items that are not stored", f"{REALITIES}full_items_go_and_never_a_reference"),
    row(33, "organisations that store nothing", f"{REALITIES}full_items_go_and_never_a_reference"),
    row(34, "encrypted content not verified", f"{REPLAY}refused_reasoning_is_taken_out_and_the_turn_goes_on"),
    row(35, "encrypted content of another caller", f"{REPLAY}another_account_gets_none_of_it"),
    row(36, "Bedrock models that take no reasoning", f"{HERE}models_that_take_no_reasoning_get_none"),
    row(37, "a call without its thought signature", f"{EDGES}ec_006_a_call_with_reasoning_and_no_text"),
    row(38, "a signature on an empty part", f"{HERE}a_signature_on_an_empty_part_survives"),
    row(39, "lost by the way through the database", f"{HERE}a_reopened_log_replays_the_same_bytes"),
    row(40, "persistence given up because of resume", f"{HERE}a_reopened_log_replays_the_same_bytes"),
    row(41, "each delta a block of its own", f"{CAPTURE}many_small_deltas_are_one_block"),
    row(
        42,
        "fragments by index not merged",
        "wire/openai_chat/test_reasoning_fields.py::test_details_are_merged_by_type_index_and_id",
    ),
    row(
        43,
        "a signature after the text",
        "wire/openai_chat/test_reasoning_fields.py"
        "::test_a_signature_that_comes_after_the_answer_has_begun_belongs_to_its_entry",
    ),
    row(
        44,
        "tags split across chunks",
        "model/test_think_tags.py::test_pieces_join_to_the_input_and_cuts_do_not_matter",
    ),
    row(45, "silently worse without reasoning", "conformance/test_rows.py::test_without_its_row_a_model_is_not"),
    row(
        46,
        "resent and discarded",
        "compile/test_cache.py::test_retention_is_switched_on_where_it_is_used",
        "rules/test_choice.py::test_coding_plan_needs_no_switch",
    ),
    row(47, "reasoning billed twice", f"{SETTINGS}tokens_mean_the_same_for_every_provider"),
    row(
        48,
        "refusals of foreign reasoning, caches broken by stripping",
        "compile/test_guard.py::test_a_rule_may_forbid_foreign_text",
        "compile/test_cache.py::test_the_next_request_begins_with_the_last",
        "compile/test_cache.py::test_settings_that_break_the_cache_are_allowed",
    ),
    row("privacy", "deltas of two conversations merged", f"{CAPTURE}texts_of_two_streams_at_once_do_not_mix"),
)


@pytest.mark.parametrize("complaint", ROWS, ids=named)
def test_a_complaint_has_its_test(complaint: Row) -> None:
    """Each row names tests that are there, or says which later layer it belongs to."""
    assert bool(complaint.tests) != bool(complaint.open)
    assert [] == missing(complaint.tests)


def test_all_complaints_are_here() -> None:
    """All forty-eight, and the near miss beside them."""
    assert [*(str(number) for number in range(1, 49)), "privacy"] == [complaint.id for complaint in ROWS]


def test_unsigned_thinking_goes_back_where_it_is_from(store: SessionStore, referee: Referee) -> None:
    """A Messages endpoint that signs with the empty string gets its thinking back, as it came."""
    session = at(store, referee, "deepseek-anthropic", "deepseek-v4-pro")
    assert "completed" == answer(session, ask_and_call(session, referee)).state
    assert [{"type": "thinking", "thinking": "I-must-look.", "signature": ""}] == (
        returned(OF["anthropic"], body(referee))
    )
    assert [200, 200] == statuses(referee)


def test_a_history_without_reasoning_gets_a_placeholder(store: SessionStore, referee: Referee) -> None:
    """Calls that another model made without any thought are accepted by one that demands it on every call."""
    session = at(store, referee, "openai", "gpt-4o")
    answer(session, ask_and_call(session, referee, ""))
    session.use(endpoint="kimi", model="kimi-k2.6", base_url=referee.base_url("kimi"), api_key=KEY)
    referee.push(Step(reasoning="a-thought", text="Sunny too."))
    assert "completed" == session.chat("And in Rome?").state
    assert {200} == set(statuses(referee))
    assert " " == next(m["reasoning_content"] for m in body(referee)["messages"] if "tool_calls" in m)


@pytest.mark.parametrize(
    ("endpoint", "model"),
    [
        ("mistral", "magistral-medium-latest"),
        ("groq", "openai/gpt-oss-120b"),
        ("cohere", "command-a-reasoning-08-2025"),
    ],
)
def test_no_foreign_field_reaches_a_strict_host(
    store: SessionStore, referee: Referee, endpoint: str, model: str
) -> None:
    """After a turn at DeepSeek, a host that refuses ``reasoning_content`` is not sent it, and nothing is refused."""
    session = at(store, referee, "deepseek", "deepseek-v4-pro")
    answer(session, ask_and_call(session, referee))
    session.use(endpoint=endpoint, model=model, base_url=referee.base_url(endpoint), api_key=KEY)
    session.chat("And in Rome?", tools=TOOLS)
    assert ("reasoning_content" in json.dumps(body(referee)), {200}) == (False, set(statuses(referee)))


def test_a_host_gets_the_field_it_knows(store: SessionStore) -> None:
    """Cerebras takes ``reasoning``, whatever another host called it."""
    session = store.session("talk", endpoint="cerebras", model="gpt-oss-120b", api_key=KEY)
    session.set("reasoning.includeInContext", value=True)
    session.wire.plan("Hello?", stream=False)
    session.wire.ingest(
        '{"model":"gpt-oss-120b","choices":[{"index":0,"finish_reason":"stop","message":'
        '{"role":"assistant","content":"Hi.","reasoning":"a-thought"}}]}'
    )
    sent = next_body(session)["messages"][1]
    assert ("a-thought", False) == (sent["reasoning"], "reasoning_content" in sent)


@pytest.mark.parametrize("model", ["kimi-k2-thinking", "kimi-k2.5", "kimi-k2.6", "kimi-k3"])
@pytest.mark.parametrize("effort", ["low", "high", "none"])
def test_moonshot_never_gets_both_words(store: SessionStore, model: str, effort: str) -> None:
    """``thinking`` and ``reasoning_effort`` exclude each other: no setting makes a request with both."""
    session = store.session("talk", endpoint="kimi", model=model, api_key=KEY)
    for key, value in (("enabled", True), ("effort", effort), ("includeInContext", True)):
        session.set(f"reasoning.{key}", value)
    assert not {"thinking", "reasoning_effort"} <= set(next_body(session))


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5-5"])
def test_a_loop_that_another_model_began_is_accepted(store: SessionStore, referee: Referee, model: str) -> None:
    """Calls without any thinking block before them, and thinking asked for: Anthropic takes the request."""
    session = at(store, referee, "deepseek", "deepseek-v4-pro")
    session.set("reasoning.effort", "high")
    reply = ask_and_call(session, referee)
    session.use(endpoint="anthropic", model=model, base_url=referee.base_url("anthropic"), api_key=KEY)
    assert "completed" == answer(session, reply).state
    assert [200, 200] == statuses(referee)


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-6"])
def test_thinking_may_be_switched_off_between_turns(store: SessionStore, referee: Referee, model: str) -> None:
    """Off, on, off: with blocks of thinking in the history the host accepts each of them."""
    session = at(store, referee, "anthropic", model)
    session.set("reasoning.effort", "high")
    answer(session, ask_and_call(session, referee))
    for enabled in (False, True, False):
        session.set("reasoning.enabled", value=enabled)
        reply = session.chat("And now?")
        if reply.tool_calls:
            answer(session, reply)
    assert {200} == set(statuses(referee))


def test_a_changed_system_prompt_takes_bound_reasoning_with_it(store: SessionStore, referee: Referee) -> None:
    """The change is made where the dialect has a place for it, or the blocks stay away with that as the reason."""
    session = talk(store, referee, OF["anthropic"])
    referee.push(Step(reasoning="bound-thought", text="One."))
    session.chat("Hello?", system="Be brief.")
    assert "completed" == session.chat("And now?", system="Be long.").state
    assert {200} == set(statuses(referee))
    assert "Be long." in json.dumps(body(referee))


def test_a_setting_goes_with_its_beta_header(store: SessionStore, referee: Referee) -> None:
    """Thinking that was stripped meanwhile is left out at once, so that nothing is refused and no header is needed."""
    session = talk(store, referee, OF["anthropic"])
    session.chat("One?")
    session.set("reasoning.stripFromContext", "all")
    session.chat("Two?")
    session.unset("reasoning.stripFromContext")
    assert "completed" == session.chat("Three?").state
    assert "block_binding" not in body(referee)["thinking"]
    assert [200, 200, 200] == statuses(referee)
    assert 1 == referee.requests[-1].raw.count(b'"type":"thinking"')


@pytest.mark.parametrize("dialect", sorted(OF))
def test_stopped_within_a_thought_the_next_turn_is_valid(store: SessionStore, referee: Referee, dialect: str) -> None:
    """Half a thought is stored as such and never sent."""
    referee.push(Step(reasoning="a half thought of several words", text="never"))
    session = talk(store, referee, OF[dialect])
    with session.stream("Hello?") as stream:
        for delta in stream:
            if "half" in getattr(delta, "text", ""):
                break
    assert ["interrupted"] == [stream.reply.state]
    assert "completed" == session.chat("Again?").state
    assert ([200, 200], False) == (statuses(referee), "half" in referee.requests[-1].raw.decode())


def test_bedrock_and_anthropic_do_not_mix_their_blocks(store: SessionStore, referee: Referee) -> None:
    """What Bedrock minted is not sent to Anthropic's own endpoint, and that host has nothing to refuse."""
    session = talk(store, referee, OF["bedrock"])
    referee.push(Step(reasoning="a-thought", text="One."))
    session.chat("Hello?")
    session.use(endpoint="anthropic", model="claude-sonnet-4-5", base_url=referee.base_url("anthropic"), api_key=KEY)
    session.chat("And now?")
    assert ([], [200, 200]) == (returned(OF["anthropic"], body(referee)), statuses(referee))


def test_models_that_take_no_reasoning_get_none(store: SessionStore, referee: Referee) -> None:
    """Bedrock's other models refuse reasoning, so theirs is stored and stays away."""
    place = OF["bedrock"]
    session = talk(store, referee, place, model="openai.gpt-oss-120b-1:0")
    answer(session, ask_and_call(session, referee))
    assert ([], {200}) == (returned(place, body(referee)), set(statuses(referee)))
    assert 2 == len(thoughts(session))


def test_a_signature_on_an_empty_part_survives(store: SessionStore, referee: Referee) -> None:
    """Gemini's last, empty text part with the signature is stored and goes back."""
    place = OF["gemini"]
    session = talk(store, referee, place)
    referee.push(Step(reasoning="a-thought", text="One."))
    session.chat("Hello?")
    session.chat("And now?")
    found: list[Any] = returned(place, body(referee))
    assert [("", True)] == [(part["text"], bool(part["thoughtSignature"])) for part in found]


@pytest.mark.parametrize("dialect", sorted(OF))
def test_a_reopened_log_replays_the_same_bytes(tmp_path: Any, referee: Referee, dialect: str) -> None:
    """Closed in an open tool loop and opened again, the next request is the same to the byte, and is accepted."""
    import thinkback

    place = OF[dialect]
    with thinkback.open(tmp_path / "log.db") as store:
        session = talk(store, referee, place)
        reply = ask_and_call(session, referee)
        before = bytes(session.explain(next=True))
    with thinkback.open(tmp_path / "log.db") as store:
        session = talk(store, referee, place)
        assert before == bytes(session.explain(next=True))
        assert "completed" == answer(session, reply).state
    assert [200, 200] == statuses(referee)
    assert LOOK.name in referee.requests[-1].raw.decode()
