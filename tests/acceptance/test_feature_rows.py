"""The features of capture, replay, settings and counting that the four seed systems have between them, row by row."""

from __future__ import annotations

import pytest

from tests.acceptance.pointers import Row, missing, named, row

CAPTURE = "acceptance/test_capture.py::test_"
REPLAY = "acceptance/test_replay.py::test_"
SETTINGS = "acceptance/test_settings.py::test_"
EDGES = "acceptance/test_edge_cases.py::test_"
CHAT, SEED = "wire/openai_chat/", "compile/test_seed.py::test_"

ROWS = (
    row(1, "reasoning_content, streamed", f"{CAPTURE}reasoning_is_found_wherever_chat_completions_put_it"),
    row(2, "reasoning_content, whole", f"{CAPTURE}reasoning_is_found_wherever_chat_completions_put_it"),
    row(
        3,
        "the field reasoning",
        f"{CAPTURE}reasoning_is_found_wherever_chat_completions_put_it",
        f"{CHAT}test_reasoning_fields.py::test_each_field_is_read_streamed_and_whole",
    ),
    row(
        4,
        "a configurable field name, without fallback",
        f"{CAPTURE}a_field_named_by_a_rule_is_the_only_one_read",
        f"{CHAT}test_reasoning_fields.py::test_an_explicit_field_name_is_the_only_one_read",
    ),
    row(
        5,
        "structured content parts",
        "wire/mistral/test_read.py::test_a_stream_is_read_into_blocks",
        "wire/cohere/test_read.py::test_a_stream_and_a_body_give_the_same_response",
    ),
    row(
        6,
        "<think> in the text",
        f"{CAPTURE}reasoning_is_found_wherever_chat_completions_put_it",
        "model/test_think_tags.py::test_content_is_split_by_the_rules_at_every_cut",
    ),
    row(7, "<thinking>, <analysis> and others", "model/test_think_tags.py::test_every_pair_of_tags_is_known"),
    row(8, "fragmented and many tags", "model/test_think_tags.py::test_content_is_split_by_the_rules_at_every_cut"),
    row(
        9,
        "an unclosed tag is not in the answer",
        "model/test_think_tags.py::test_content_is_split_by_the_rules_at_every_cut",
        f"{CHAT}test_content.py::test_tagged_reasoning_is_shown_before_its_closing_tag",
    ),
    row(
        10,
        "Anthropic thinking, streamed",
        "wire/anthropic/test_read.py::test_a_stream_gives_the_blocks_of_the_unstreamed_response",
    ),
    row(11, "Anthropic signatures", f"{REPLAY}opaque_values_go_back_byte_for_byte"),
    row(12, "Anthropic redacted thinking", f"{CAPTURE}redacted_reasoning_is_kept_unread_and_goes_back"),
    row(
        13,
        "Responses deltas of summary and text",
        "wire/openai_responses/test_output.py::test_summary_parts_are_paragraphs",
        "wire/openai_responses/test_output.py::test_raw_reasoning_is_shown_once",
    ),
    row(14, "Responses encrypted items", f"{CAPTURE}an_item_is_captured_opaquely_in_the_order_of_its_calls"),
    row(
        15,
        "items opaque and verbatim",
        f"{CAPTURE}an_item_is_captured_opaquely_in_the_order_of_its_calls",
        "wire/openai_responses/test_output.py::test_an_item_is_one_block_and_can_be_had_back",
    ),
    row(16, "Gemini thought parts", "wire/gemini/test_parts.py::test_a_part_is_a_block_and_comes_back_as_it_was"),
    row(
        17,
        "Gemini thought signatures",
        f"{REPLAY}opaque_values_go_back_byte_for_byte",
        "wire/gemini/test_parts.py::test_unsigned_neighbours_are_one_block_and_signed_parts_stand_alone",
    ),
    row(
        18,
        "native shapes of Grok, DeepSeek, Cohere, Ollama",
        "wire/ollama/test_read.py::test_a_stream_is_read_into_blocks",
        "wire/cohere/test_read.py::test_a_stream_and_a_body_give_the_same_response",
        f"{EDGES}ec_003_reasoning_first_and_then_content",
    ),
    row(
        19,
        "one ordered stream of reasoning, text and calls",
        f"{CAPTURE}interleaved_reasoning_and_calls_keep_the_order_of_the_provider",
        f"{CAPTURE}a_call_before_a_thought_stays_before_it",
    ),
    row(20, "reasoning and its calls stored together", f"{EDGES}ec_006_a_call_with_reasoning_and_no_text"),
    row(
        21,
        "calls inside the reasoning",
        f"{CAPTURE}calls_inside_the_reasoning_are_run_as_calls",
        f"{CHAT}test_calls.py::test_calls_inside_the_reasoning_become_calls",
    ),
    row(
        22,
        "live deltas of reasoning",
        f"{EDGES}ec_003_reasoning_first_and_then_content",
        "session/test_stream.py::test_deltas_tell_everything",
    ),
    row(23, "deltas coalesced, one record per block", f"{CAPTURE}many_small_deltas_are_one_block"),
    row(24, "placeholder texts filtered", f"{CHAT}test_reasoning_fields.py::test_placeholder_texts_are_markers"),
    row(
        25,
        "empty or absent reasoning is harmless",
        f"{EDGES}ec_001_a_model_that_does_not_reason",
        f"{EDGES}ec_002_reasoning_that_is_an_empty_string",
    ),
    row(
        26,
        "duplicates suppressed",
        "wire/openai_responses/test_output.py::test_what_done_says_counts_and_not_what_the_end_repeats",
        "wire/openai_responses/test_output.py::test_a_summary_that_was_shown_first_is_not_followed_by_the_raw_text",
        f"{CHAT}test_reasoning_fields.py::test_several_fields_say_one_thought",
    ),
    row(46, "replay across user turns", f"{REPLAY}three_turns_with_tools_are_accepted"),
    row(
        47,
        "replay inside the tool loop",
        f"{EDGES}ec_006_a_call_with_reasoning_and_no_text",
        f"{REPLAY}the_turn_under_way_is_never_stripped",
    ),
    row(48, "encrypted items verbatim", f"{REPLAY}opaque_values_go_back_byte_for_byte"),
    row(49, "include reasoning.encrypted_content", f"{REPLAY}output_only_fields_stay_away_and_empty_summaries_go"),
    row(50, "reasoning_content on assistant messages", f"{SEED}req_think_004_3_included"),
    row(
        51,
        "Anthropic thinking in position",
        f"{CAPTURE}interleaved_reasoning_and_calls_keep_the_order_of_the_provider",
    ),
    row(52, "the source field honoured on the way back", f"{REPLAY}reasoning_goes_back_under_the_name_it_came_in"),
    row(53, "include or not", f"{SEED}req_think_004_1_include_is_read"),
    row(54, "strip all, all but last, none", f"{SEED}br_005_strip_before_include"),
    row(55, "keep the last N", f"{REPLAY}only_the_last_n_responses_keep_their_reasoning"),
    row(56, "strip before include", f"{SEED}br_005_strip_before_include"),
    row(57, "the current response never stripped", f"{REPLAY}the_turn_under_way_is_never_stripped"),
    row(58, "guard of the model", f"{REPLAY}another_model_of_the_host_gets_none_of_it"),
    row(59, "guard of the dialect", f"{REPLAY}another_dialect_of_the_same_model_gets_none_of_it"),
    row(
        60,
        "guard of the endpoint, URLs normalised",
        f"{REPLAY}another_endpoint_gets_none_of_it",
        f"{REPLAY}spellings_of_one_address_are_one_endpoint",
    ),
    row(61, "guard of the account", f"{REPLAY}another_account_gets_none_of_it"),
    row(
        62,
        "what has no origin",
        "session/test_wire.py::test_opaque_values_need_someone_to_vouch_for_them",
        "compile/test_guard.py::test_unknown_origin",
    ),
    row(
        63,
        "a foreign turn of thinking alone dropped whole",
        f"{REPLAY}a_foreign_turn_of_reasoning_alone_is_left_out_whole",
    ),
    row(64, "the cap and its reasoning", f"{REPLAY}reasoning_of_a_capped_response_is_stored_and_not_replayed"),
    row(
        65,
        "a terminal tool error",
        f"{REPLAY}a_tool_that_ends_the_turn_keeps_the_rest_of_its_response",
        "session/agents/test_permissions.py::test_a_denial_ends_the_turn_and_the_next_one_is_taken",
        open="replay is withheld by response (ADR 0002, 3)",
    ),
    row(
        66,
        "dangling reasoning removed",
        f"{REPLAY}reasoning_that_nothing_follows_does_no_harm",
        f"{REPLAY}reasoning_of_a_failed_response_is_stored_and_not_replayed",
    ),
    row(67, "orphan calls repaired", f"{REPLAY}a_call_without_a_result_gets_one_recorded"),
    row(
        68,
        "retry without reasoning that is refused",
        f"{REPLAY}refused_reasoning_is_taken_out_and_the_turn_goes_on",
        f"{REPLAY}a_refusal_that_stays_is_told_in_the_words_of_the_host",
    ),
    row(69, "empty fields omitted", f"{EDGES}ec_007_nothing_is_left_after_stripping"),
    row(
        70,
        "a mode for strict gateways",
        f"{SETTINGS}a_host_without_reasoning_is_asked_for_none_and_given_none",
        f"{SETTINGS}an_unknown_host_is_told_nothing",
    ),
    row(
        71,
        "failure before the network",
        f"{SETTINGS}a_control_of_reasoning_fails_before_the_network_where_there_must_be_none",
        f"{SETTINGS}what_the_host_is_known_to_refuse_is_refused_before_the_network",
    ),
    row(
        72,
        "streamed reasoning refused where there must be none",
        f"{SETTINGS}streamed_reasoning_is_refused_where_there_must_be_none",
        open="the turn fails when the response is whole: its deltas were shown by then",
    ),
    row(73, "server-side state sends only what is new", f"{REPLAY}server_side_state_sends_only_what_is_new"),
    row(
        74,
        "clearing of thinking on the server",
        f"{REPLAY}clearing_on_the_server_is_passed_on_and_its_effect_reported",
        open="asked for in native parameters only: there is no setting for it",
    ),
    row(
        75,
        "cache marks avoid thinking",
        f"{REPLAY}no_cache_mark_ever_stands_on_reasoning",
        open="no mark is placed at all; one that a caller puts on a message goes along",
    ),
    row(
        76,
        "dry inspection of the next request",
        "session/history/test_why.py::test_next_request_is_told_without_storing_anything",
        "cli/test_run.py::test_a_dry_run_prints_the_bytes_that_the_run_then_sends",
    ),
    row(77, "a reason for every drop", f"{REPLAY}the_reason_for_every_drop_is_told"),
    row(78, "effort levels", f"{SETTINGS}every_effort_is_said_or_its_absence_reported"),
    row(79, "on and off", f"{SETTINGS}switched_off_it_is_not_asked_for_and_not_sent_back"),
    row(80, "a token budget", f"{SETTINGS}a_token_budget_is_said_or_its_absence_reported"),
    row(81, "adaptive thinking", f"{SETTINGS}adaptive_thinking_is_asked_for_where_the_model_has_it"),
    row(
        82,
        "a summary on request",
        f"{SETTINGS}a_summary_is_asked_for_with_reasoning_only",
        open="concise is a word of the native parameter only; the setting knows auto, summarized, omitted",
    ),
    row(83, "text verbosity", f"{SETTINGS}verbosity_is_said_where_there_is_a_word_for_it"),
    row(84, "effort in the words of each provider", f"{SETTINGS}an_effort_is_said_in_the_words_of_one_host_only"),
    row(85, "maps per model, null suppresses", f"{SETTINGS}words_can_be_mapped_and_suppressed_by_data"),
    row(
        86,
        "the host decides, an unknown one is told nothing",
        f"{SETTINGS}an_unknown_host_is_told_nothing",
        "rules/test_urls.py::test_endpoint_for_url",
    ),
    row(
        87,
        "native parameters win, never two dialects",
        f"{SETTINGS}native_parameters_win_and_suppress_the_settings",
        f"{SETTINGS}an_effort_is_said_in_the_words_of_one_host_only",
    ),
    row(88, "each control not sent is told", f"{SETTINGS}every_effort_is_said_or_its_absence_reported"),
    row(
        89,
        "a bad value is refused and the old one stays",
        f"{SETTINGS}an_effort_that_is_none_never_reaches_the_wire",
        "settings/test_layers.py::test_a_refused_setting_leaves_the_old_value",
    ),
    row(90, "clamp, floor, and off where nothing fits", f"{SETTINGS}a_budget_is_fitted_between_floor_and_limit"),
    row(91, "read at each request", f"{SETTINGS}settings_are_read_at_each_request"),
    row(
        92,
        "sticky for a session, once for a call",
        f"{SETTINGS}a_session_s_word_holds_and_a_call_s_word_counts_once",
        f"{SETTINGS}the_word_default_silences_weaker_layers",
    ),
    row(
        96,
        "facts about models as data",
        f"{SETTINGS}the_facts_about_a_model_are_data_that_a_user_may_replace",
        "rules/test_user_files.py::test_a_model_replaces_the_one_of_its_endpoint",
    ),
    row(99, "the provider's count of reasoning tokens", f"{SETTINGS}tokens_mean_the_same_for_every_provider"),
    row(
        100,
        "usage in one meaning",
        f"{SETTINGS}tokens_mean_the_same_for_every_provider",
        "session/test_reply.py::test_usage_is_summed_over_the_responses",
    ),
    row(115, "the provider is told to omit the display", f"{SETTINGS}the_provider_is_told_to_show_nothing"),
)
CHECK_LIST = {*range(1, 27), *range(46, 93), 96, 99, 100, 115}


@pytest.mark.parametrize("promised", ROWS, ids=named)
def test_a_feature_has_its_test(promised: Row) -> None:
    """Each row names at least one test, and the test is there."""
    assert promised.tests
    assert [] == missing(promised.tests)


def test_the_check_list_is_complete() -> None:
    """No row of the check list is left out, and none is there twice."""
    assert sorted(CHECK_LIST) == sorted(int(promised.id) for promised in ROWS)
