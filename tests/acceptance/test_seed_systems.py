"""What the tests of the four seed systems check about reasoning, each with the test that checks it here.

Rows without a test are about what ADR 0002 or the design decided otherwise; they say which.
"""

from __future__ import annotations

import pytest

from tests.acceptance.pointers import Row, missing, named, row

CAPTURE = "acceptance/test_capture.py::test_"
REPLAY = "acceptance/test_replay.py::test_"
SETTINGS = "acceptance/test_settings.py::test_"
EDGES = "acceptance/test_edge_cases.py::test_"
COMPLAINTS = "acceptance/test_complaints.py::test_"
SEED = "compile/test_seed.py::test_"
FIELDS = "wire/openai_chat/test_reasoning_fields.py::test_"
CALLS = "wire/openai_chat/test_calls.py::test_"
TAGS = "model/test_think_tags.py::test_"
ITEMS = "wire/openai_responses/test_output.py::test_"
BLOCKS = "wire/anthropic/test_read.py::test_"
GUARD = "compile/test_guard.py::test_"
PLAIN = "compile/test_reasoning.py::test_"
SCREEN = "cli/chat/drawing/test_screen.py::test_"
SUBAGENTS = "session/agents/test_subagents.py::test_"
HAND = "session/history/test_curating.py::test_"

PIXIR = (
    row(
        "turn-1",
        "a reasoning item is recorded before its call, stamped with the model",
        f"{CAPTURE}reasoning_is_recorded_before_its_call_and_stamped_with_its_origin",
    ),
    row(
        "turn-2",
        "interleaved reasoning and calls keep the provider's order",
        f"{CAPTURE}interleaved_reasoning_and_calls_keep_the_order_of_the_provider",
    ),
    row(
        "turn-3",
        "without an ordered list, reasoning comes before the calls",
        f"{CAPTURE}where_the_wire_has_no_order_reasoning_comes_before_the_calls",
    ),
    row(
        "turn-4",
        "a tool error that ends the turn: later reasoning is stored",
        f"{REPLAY}a_tool_that_ends_the_turn_keeps_the_rest_of_its_response",
    ),
    row(
        "turn-5",
        "reasoning of a capped turn is stored and not replayed",
        f"{REPLAY}reasoning_of_a_capped_response_is_stored_and_not_replayed",
    ),
    row(
        "turn-6",
        "reasoning of a failed response is stored and not replayed",
        f"{REPLAY}reasoning_of_a_failed_response_is_stored_and_not_replayed",
    ),
    row("provider-1", "deltas of reasoning are emitted", f"{REPLAY}deltas_of_reasoning_are_shown_and_not_stored"),
    row("provider-2", "an effort is set", f"{SETTINGS}an_effort_is_said_in_the_words_of_one_host_only"),
    row(
        "provider-3",
        "an invalid effort is not sent",
        f"{SETTINGS}an_effort_that_is_none_never_reaches_the_wire",
    ),
    row("provider-4", "without an effort there is none", f"{SETTINGS}without_a_setting_no_effort_is_sent"),
    row(
        "provider-5",
        "an item is captured opaquely, in order with its calls",
        f"{CAPTURE}an_item_is_captured_opaquely_in_the_order_of_its_calls",
    ),
    row("provider-6", "replayed verbatim to the same model", f"{REPLAY}opaque_values_go_back_byte_for_byte"),
    row("provider-7", "dropped for another model", f"{REPLAY}another_model_of_the_host_gets_none_of_it"),
    row(
        "provider-8",
        "a preview applies what is in force, the caller's words first",
        f"{SETTINGS}a_summary_is_asked_for_with_reasoning_only",
        "session/history/test_why.py::test_next_request_is_told_without_storing_anything",
    ),
    row("provider-9", "a partial answer is not replayed", f"{REPLAY}a_partial_answer_is_stored_and_not_replayed"),
    row("provider-10", "an orphan call gets an output", f"{REPLAY}a_call_without_a_result_gets_one_recorded"),
    row(
        "event-1",
        "fields that are added later are left out where they say nothing",
        "model/test_canonical.py::test_defaults_are_left_out_of_stored_values",
    ),
    row("anthropic-1", "byte-identical replay", f"{REPLAY}opaque_values_go_back_byte_for_byte"),
    row(
        "anthropic-2",
        "dropped for another model or dialect",
        f"{REPLAY}another_model_of_the_host_gets_none_of_it",
        f"{REPLAY}another_dialect_of_the_same_model_gets_none_of_it",
    ),
    row(
        "anthropic-3",
        "positions are kept",
        f"{CAPTURE}interleaved_reasoning_and_calls_keep_the_order_of_the_provider",
        f"{CAPTURE}a_call_before_a_thought_stays_before_it",
    ),
    row(
        "anthropic-4",
        "another dialect drops it even for the same model",
        f"{REPLAY}another_dialect_of_the_same_model_gets_none_of_it",
    ),
    row("anthropic-5", "lines of an old log without a dialect", open="the format is our own: its logs cannot be read"),
    row("anthropic-6", "replay over three turns", f"{REPLAY}three_turns_with_tools_are_accepted"),
    row(
        "anthropic-7",
        "an effort is output_config.effort, and nothing of OpenAI's is sent",
        f"{SETTINGS}an_effort_is_said_in_the_words_of_one_host_only",
    ),
    row("prompt-1", "cache breakpoints stay off thinking", f"{REPLAY}no_cache_mark_ever_stands_on_reasoning"),
    row(
        "strict-1",
        "a strict projection drops reasoning",
        f"{SETTINGS}a_host_without_reasoning_is_asked_for_none_and_given_none",
    ),
    row(
        "strict-2",
        "requested reasoning fails before the network",
        f"{SETTINGS}a_control_of_reasoning_fails_before_the_network_where_there_must_be_none",
    ),
    row(
        "strict-3",
        "streamed reasoning fails before any tool",
        f"{SETTINGS}streamed_reasoning_is_refused_where_there_must_be_none",
    ),
    row(
        "option-1",
        "a sticky option, and one for a turn",
        f"{SETTINGS}a_session_s_word_holds_and_a_call_s_word_counts_once",
    ),
    row("option-3", "default suppresses what is configured", f"{SETTINGS}the_word_default_silences_weaker_layers"),
    row("option-2", "an unknown value is refused", f"{SETTINGS}an_effort_that_is_none_never_reaches_the_wire"),
    row(
        "editor-1",
        "thought chunks, also of what was thought before a load (Pixir has none there)",
        "cli/test_acp.py::test_thoughts_arrive_before_the_answer",
        "cli/test_acp.py::test_loading_shows_what_was_said_and_thought",
    ),
    row(
        "shell-1",
        "a reasoning-only answer has an exit code",
        "cli/test_run.py::test_reasoning_without_an_answer_has_an_exit_code_of_its_own",
    ),
    row(
        "shell-2",
        "reasoning goes to standard error",
        "cli/test_run.py::test_the_answer_goes_to_standard_output_and_the_reasoning_to_standard_error",
    ),
    row("config-1", "warnings never echo values", open="a refusal names the value; settings hold no keys"),
    row(
        "subagent-1",
        "efforts of subagents, which the model cannot choose",
        f"{SUBAGENTS}a_sub_agent_has_an_effort_of_its_own",
        f"{SUBAGENTS}a_model_says_what_is_to_be_done_and_nothing_else",
    ),
)
LLXPRT = (
    row("utils-1", "extract from mixed, none, only", f"{PLAIN}extract", f"{SEED}req_think_002_1_extract"),
    row("utils-2", "filter, empty and single lists, no mutation", f"{PLAIN}filter", f"{PLAIN}filter_edges"),
    row("utils-3", "joined by newlines, none when empty", f"{PLAIN}field", f"{SEED}req_think_002_3_field"),
    row("utils-4", "an estimate of tokens", f"{SEED}req_think_002_4_estimate", "compile/test_counts.py::test_estimate"),
    row("utils-5", "Kimi's ids of calls", f"{CALLS}ids_without_a_number_name_their_function"),
    row(
        "chat-1",
        "delta present, absent, empty, null",
        f"{EDGES}ec_001_a_model_that_does_not_reason",
        f"{EDGES}ec_002_reasoning_that_is_an_empty_string",
        f"{FIELDS}each_field_is_read_streamed_and_whole",
    ),
    row("chat-2", "included", f"{SEED}req_think_004_3_included"),
    row("chat-3", "not included", f"{SEED}req_think_004_4_not_included"),
    row("chat-4", "strip all beats include", f"{SEED}req_think_004_5_strip_before_building"),
    row("chat-5", "all but last with one message keeps it", f"{PLAIN}filter_edges"),
    row("chat-6", "empty thinking omitted", f"{EDGES}ec_007_nothing_is_left_after_stripping"),
    row("chat-7", "unset settings are the defaults", f"{SEED}br_001_default_is_conservative"),
    row(
        "chat-8",
        "Kimi's calls: only calls, several, malformed, white space",
        f"{CALLS}calls_inside_the_reasoning_become_calls",
        f"{CALLS}a_malformed_section_stays_text",
        f"{CALLS}markers_beside_an_answer_are_a_quotation",
    ),
    row("chat-9", "reasoning and calls in one message", f"{EDGES}ec_006_a_call_with_reasoning_and_no_text"),
    row("field-1", "an explicit name has no fallback", f"{FIELDS}an_explicit_field_name_is_the_only_one_read"),
    row("field-2", "fallback order, both present", f"{FIELDS}several_fields_say_one_thought"),
    row(
        "tags-1",
        "kinds of tags, several, fragmented",
        f"{TAGS}every_pair_of_tags_is_known",
        f"{TAGS}content_is_split_by_the_rules_at_every_cut",
    ),
    row("controls-1", "unknown hosts are sent nothing", f"{SETTINGS}an_unknown_host_is_told_nothing"),
    row("controls-2", "one dialect only", f"{SETTINGS}an_effort_is_said_in_the_words_of_one_host_only"),
    row("controls-3", "explicit parameters win", f"{SETTINGS}native_parameters_win_and_suppress_the_settings"),
    row("controls-4", "off never requests", f"{SETTINGS}switched_off_it_is_not_asked_for_and_not_sent_back"),
    row("controls-5", "behaviour keys never leak", f"{SETTINGS}behaviour_settings_never_leak_into_the_body"),
    row("cross-1", "same model unchanged, byte for byte", f"{REPLAY}opaque_values_go_back_byte_for_byte"),
    row("cross-2", "another model drops it and keeps text", f"{REPLAY}another_model_of_the_host_gets_none_of_it"),
    row("cross-3", "calls and results stay together", "compile/test_turns.py::test_results_stand_next_to_their_calls"),
    row("cross-4", "an open tool loop", f"{COMPLAINTS}a_loop_that_another_model_began_is_accepted"),
    row("cross-5", "thoughts without a stamp", f"{GUARD}unknown_origin"),
    row("cross-6", "a foreign turn of thinking alone", f"{REPLAY}a_foreign_turn_of_reasoning_alone_is_left_out_whole"),
    row("cross-7", "no leak through redacted blocks", f"{EDGES}ec_007_nothing_is_left_after_stripping"),
    row("cross-8", "another endpoint", f"{REPLAY}another_endpoint_gets_none_of_it"),
    row("cross-9", "spellings of a URL", f"{REPLAY}spellings_of_one_address_are_one_endpoint"),
    row("cross-10", "another sign-in", f"{REPLAY}another_account_gets_none_of_it"),
    row("cross-11", "text of other sources kept as text", f"{GUARD}foreign_text_is_told_and_its_carriers_are_not"),
    row("budget-1", "budgets and adaptive models", f"{SETTINGS}adaptive_thinking_is_asked_for_where_the_model_has_it"),
    row("budget-2", "mapping of efforts", f"{SETTINGS}every_effort_is_said_or_its_absence_reported"),
    row("display-1", "display omitted", f"{SETTINGS}the_provider_is_told_to_show_nothing"),
    row(
        "stream-1",
        "growing thoughts, signature attached",
        f"{BLOCKS}a_stream_gives_the_blocks_of_the_unstreamed_response",
    ),
    row("stream-2", "a block without deltas", f"{CAPTURE}an_opaque_value_without_readable_text_is_a_complete_block"),
    row("stream-3", "redacted blocks are hidden", f"{CAPTURE}redacted_reasoning_is_kept_unread_and_goes_back"),
    row("stream-4", "distinct ids per block", f"{BLOCKS}deltas_are_tagged_with_response_and_block"),
    row("stream-5", "orphan thinking moved forward, a placeholder user", open="a response goes whole or not at all"),
    row(
        "responses-1",
        "include, and encrypted content back",
        f"{REPLAY}output_only_fields_stay_away_and_empty_summaries_go",
    ),
    row("responses-2", "stripped when not included", f"{EDGES}ec_004_settings_changed_in_the_middle"),
    row("responses-3", "words of summary", f"{SETTINGS}a_summary_is_asked_for_with_reasoning_only"),
    row("responses-4", "efforts as they are or the nearest", f"{SETTINGS}every_effort_is_said_or_its_absence_reported"),
    row("responses-5", "interleaving", f"{CAPTURE}interleaved_reasoning_and_calls_keep_the_order_of_the_provider"),
    row(
        "responses-6",
        "no duplicate when done follows deltas",
        f"{ITEMS}what_done_says_counts_and_not_what_the_end_repeats",
    ),
    row(
        "responses-7",
        "text or summary, the first wins",
        f"{ITEMS}a_summary_that_was_shown_first_is_not_followed_by_the_raw_text",
    ),
    row("responses-8", "closed on completion", f"{ITEMS}the_end_brings_items_that_did_not_come_whole_or_not_at_all"),
    row("coalesce-1", "deltas coalesced", f"{CAPTURE}many_small_deltas_are_one_block"),
    row("history-1", "history keeps thoughts whatever the settings", f"{EDGES}ec_004_settings_changed_in_the_middle"),
    row("gemini-1", "thinking levels", f"{SETTINGS}an_effort_is_said_in_the_words_of_one_host_only"),
    row(
        "loop-1",
        "going on after a thinking-only turn, three times at most, not after text or calls",
        "session/test_retry_reasoning_only.py::test_thought_alone_is_continued",
        "session/test_retry_reasoning_only.py::test_it_ends_after_three_times",
        "session/test_retry_reasoning_only.py::test_what_says_something_is_not_continued",
    ),
    row(
        "subagent-1",
        "settings of subagents",
        f"{SUBAGENTS}a_sub_agent_has_an_effort_of_its_own",
        f"{SUBAGENTS}a_sub_agent_inherits_what_the_call_was_made_with",
    ),
    row(
        "screen-1",
        "thoughts on the screen: shown by default, hidden on request, of many lines, with any letters",
        "acceptance/test_display.py::test_req_think_007_1_inline_and_shaded",
        "acceptance/test_display.py::test_req_think_007_4_hidden_from_display",
        f"{SCREEN}thinking_is_italic_on_a_shade_that_follows_the_terminal",
        f"{SCREEN}letters_of_all_kinds_keep_their_places",
    ),
    row(
        "screen-2",
        "thoughts that arrive in pieces are one",
        f"{SCREEN}thinking_is_on_the_screen_from_its_first_letter_on",
    ),
    row(
        "slash-1",
        "settings by slash commands, refused with what is allowed",
        "cli/chat/test_slash.py::test_a_setting_acts_from_the_next_request_on",
        "acceptance/test_display.py::test_err_001_in_the_chat",
    ),
    row(
        "profile-1",
        "profiles keep what was set",
        "acceptance/test_display.py::test_req_think_006_6_every_setting_is_saved",
    ),
    row(
        "profile-2",
        "a loaded profile acts at once",
        "acceptance/test_display.py::test_ec_005_a_loaded_profile_shows_at_once",
    ),
)
MONADIC = (
    row("openai-1", "extract, empty, missing, joined", f"{FIELDS}each_field_is_read_streamed_and_whole"),
    row("openai-2", "included or omitted on the message", f"{SEED}req_think_004_1_include_is_read"),
    row("summary-1", "summaries as lists, empty, odd entries", f"{ITEMS}an_item_is_one_block_and_can_be_had_back"),
    row("summary-2", "a summary only with an effort", f"{SETTINGS}a_summary_is_asked_for_with_reasoning_only"),
    row("claude-1", "kinds of blocks, several, empty", f"{BLOCKS}a_body_gives_blocks_that_can_be_put_together_again"),
    row("claude-2", "adaptive and legacy", f"{SETTINGS}adaptive_thinking_is_asked_for_where_the_model_has_it"),
    row("deepseek-1", "reasoning_content", f"{EDGES}ec_003_reasoning_first_and_then_content"),
    row(
        "gemini-1",
        "thought parts and text parts",
        "wire/gemini/test_parts.py::test_a_part_is_a_block_and_comes_back_as_it_was",
    ),
    row("grok-1", "the placeholder is filtered", f"{FIELDS}placeholder_texts_are_markers"),
    row("mistral-1", "structured chunks", "wire/mistral/test_read.py::test_a_stream_is_read_into_blocks"),
    row("mistral-2", "tags taken out of content", f"{CAPTURE}reasoning_is_found_wherever_chat_completions_put_it"),
    row("cohere-1", "both at once, fragments joined plainly", f"{EDGES}ec_003_reasoning_first_and_then_content"),
    row("cohere-2", "thoughts over several turns", f"{REPLAY}only_the_last_n_responses_keep_their_reasoning"),
    row("budget-1", "floor, and off where it cannot fit", f"{SETTINGS}a_budget_is_fitted_between_floor_and_limit"),
    row("budget-2", "the highest efforts are the deepest", f"{SETTINGS}the_highest_words_are_the_deepest_budget"),
    row("effort-1", "none means no thinking", f"{SETTINGS}every_effort_is_said_or_its_absence_reported"),
    row(
        "effort-2",
        "temperature beside thinking",
        f"{SETTINGS}what_the_host_is_known_to_refuse_is_refused_before_the_network",
    ),
    row("effort-3", "omitted where it is not supported", f"{SETTINGS}every_effort_is_said_or_its_absence_reported"),
    row(
        "mapper-1",
        "options, default, mapping by model",
        f"{SETTINGS}the_facts_about_a_model_are_data_that_a_user_may_replace",
    ),
    row(
        "labels-1",
        "titles by kind and vendor",
        "settings/test_labels.py::test_it_is_called_what_its_provider_calls_it",
        "settings/test_labels.py::test_a_kind_that_a_language_lacks_is_its_thinking",
    ),
    row(
        "screen-1",
        "one card for a thought, appended to, put away when it is over",
        f"{SCREEN}collapsed_thinking_counts_and_then_is_one_line",
        f"{SCREEN}hidden_thinking_leaves_a_sign_of_work_and_no_trace",
    ),
)
TRACT = (
    row("model-1", "defaults, formats, round trip", f"{HAND}reasoning_by_hand"),
    row(
        "model-2", "priority SKIP", "session/history/test_compiling.py::test_reasoning_stays_out_unless_it_is_asked_for"
    ),
    row("reply-1", "reasoning and its commit on the reply", f"{CAPTURE}reasoning_of_a_final_answer_is_stored_too"),
    row("extract-1", "reasoning, then reasoning_content", f"{FIELDS}several_fields_say_one_thought"),
    row(
        "extract-2", "Anthropic blocks, one and several", f"{BLOCKS}a_body_gives_blocks_that_can_be_put_together_again"
    ),
    row("extract-3", "tags", f"{CAPTURE}reasoning_is_found_wherever_chat_completions_put_it"),
    row(
        "extract-4",
        "empty and malformed responses",
        "wire/openai_chat/test_endings.py::test_a_malformed_body_is_an_error",
    ),
    row("shorthand-1", "session.reasoning", f"{HAND}reasoning_by_hand"),
    row(
        "include-1",
        "include_reasoning in compile",
        "session/history/test_compiling.py::test_reasoning_stays_out_unless_it_is_asked_for",
    ),
    row("generate-1", "committed before the answer", f"{CAPTURE}reasoning_of_a_final_answer_is_stored_too"),
    row("generate-2", "none", f"{EDGES}ec_001_a_model_that_does_not_reason"),
    row("generate-3", "reasoning=False", f"{CAPTURE}readable_reasoning_may_be_kept_out_of_the_log"),
    row("generate-4", "tags stripped from the answer", f"{CAPTURE}reasoning_is_found_wherever_chat_completions_put_it"),
    row(
        "generate-5",
        "clients with extractors of their own",
        "drive/test_client.py::test_extract_reasoning",
    ),
    row("commit-1", "commit_reasoning off, default on", f"{CAPTURE}readable_reasoning_may_be_kept_out_of_the_log"),
    row(
        "style-1",
        "styles of printing",
        "session/transcripts/test_printing.py::test_reasoning_is_dim_cyan_on_a_terminal",
    ),
)
SYSTEMS = {"pixir": PIXIR, "llxprt": LLXPRT, "monadic": MONADIC, "tract": TRACT}
ALL = [(name, behaviour) for name, rows in SYSTEMS.items() for behaviour in rows]


@pytest.mark.parametrize(("system", "behaviour"), ALL, ids=[f"{name} {named(found)}" for name, found in ALL])
def test_a_behaviour_of_the_seeds_has_its_test(system: str, behaviour: Row) -> None:
    """Each names tests that are there, or says where it went; never both, never neither."""
    assert system in SYSTEMS
    assert bool(behaviour.tests) != bool(behaviour.open)
    assert [] == missing(behaviour.tests)


def test_no_behaviour_is_listed_twice() -> None:
    """The names of the rows are unique in each system."""
    assert len(ALL) == len({(name, behaviour.id) for name, behaviour in ALL})
