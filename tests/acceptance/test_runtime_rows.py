"""The features of profiles, apps, agents, the chat and the protocols of the four seed systems, row by row."""

from __future__ import annotations

import pytest

from tests.acceptance.pointers import Row, missing, named, row

SETTINGS = "acceptance/test_settings.py::test_"
DISPLAY = "acceptance/test_display.py::test_"
RUN = "cli/test_run.py::test_"
CHAT, SCREEN = "cli/chat/test_prompt.py::test_", "cli/chat/drawing/test_screen.py::test_"
USAGE = "session/test_usage.py::test_"
PROFILES, FAILOVER = "session/profiles/test_profiles.py::test_", "session/profiles/test_failover.py::test_"
APPS, APP_FILES = "session/test_apps.py::test_", "settings/test_apps.py::test_"
PERMISSIONS = "session/agents/test_permissions.py::test_"
MCP = "cli/test_mcp.py::test_"

ROWS = (
    row(
        28,
        "the model commits reasoning by a tool",
        "session/agents/test_noting.py::test_a_note_parts_no_call_from_its_result",
        "session/agents/test_noting.py::test_the_tool_is_there_only_where_it_is_named",
    ),
    row(78, "effort levels", f"{SETTINGS}every_effort_is_said_or_its_absence_reported"),
    row(91, "read at each request", f"{SETTINGS}settings_are_read_at_each_request"),
    row(
        92,
        "sticky for a session, once for a call, and the word default",
        f"{SETTINGS}a_session_s_word_holds_and_a_call_s_word_counts_once",
        f"{SETTINGS}the_word_default_silences_weaker_layers",
        "cli/chat/test_slash.py::test_default_hides_what_weaker_layers_say",
    ),
    row(
        93,
        "profiles: save, load, list, delete, default",
        f"{DISPLAY}req_think_006_6_every_setting_is_saved",
        "cli/chat/test_slash.py::test_profiles_are_saved_loaded_and_deleted",
        f"{PROFILES}the_default_profile_is_followed_by_who_has_none",
    ),
    row(
        94,
        "profiles that fail over and take turns",
        f"{FAILOVER}the_next_target_takes_over_within_the_turn",
        f"{FAILOVER}failing_over_in_the_middle_of_a_tool_loop",
        f"{FAILOVER}round_robin_takes_the_next_target_with_each_turn",
    ),
    row(
        95,
        "app files with a list of models",
        f"{APP_FILES}the_first_model_is_the_default_and_a_known_one_is_taken",
        f"{APP_FILES}an_unknown_model_falls_back_with_a_warning",
        f"{APPS}an_app_carries_the_reasoning_of_the_last_three_responses",
        f"{APPS}apps_do_not_share_a_conversation",
    ),
    row(96, "facts about models as data", f"{SETTINGS}the_facts_about_a_model_are_data_that_a_user_may_replace"),
    row(
        97,
        "a child has an effort of its own",
        "session/agents/test_subagents.py::test_a_sub_agent_has_an_effort_of_its_own",
    ),
    row(
        98,
        "constraints between features",
        f"{APP_FILES}a_constraint_that_the_file_itself_breaks_is_named_at_load",
        f"{APPS}what_the_model_refuses_is_said_before_the_network",
    ),
    row(
        101,
        "a log of usage",
        "session/test_usage_log.py::test_a_request_leaves_a_line",
        "session/test_usage_log.py::test_no_text_and_no_key_is_in_it",
    ),
    row(
        103,
        "effective of limit is shown",
        f"{USAGE}the_context_is_what_the_next_request_will_carry",
        f"{CHAT}a_turn_streams_and_the_status_follows",
    ),
    row(
        112,
        "answers of reasoning alone",
        f"{RUN}reasoning_without_an_answer_has_an_exit_code_of_its_own",
        "session/test_retry_reasoning_only.py::test_thought_alone_is_continued",
        "session/test_retry_reasoning_only.py::test_it_ends_after_three_times",
    ),
    row(
        113,
        "shown or hidden, whatever is sent",
        f"{SETTINGS}display_never_changes_the_wire",
        f"{DISPLAY}req_think_007_4_hidden_from_display",
        f"{DISPLAY}br_003_display_changes_at_once_and_nothing_else",
    ),
    row(
        114,
        "full, collapsed, hidden",
        f"{SCREEN}collapsed_thinking_counts_and_then_is_one_line",
        f"{SCREEN}hidden_thinking_leaves_a_sign_of_work_and_no_trace",
        f"{CHAT}ctrl_t_changes_how_thinking_is_shown",
    ),
    row(115, "the provider is told to omit the display", f"{SETTINGS}the_provider_is_told_to_show_nothing"),
    row(
        116,
        "a style of its own that follows the theme",
        f"{DISPLAY}req_think_007_1_inline_and_shaded",
        f"{DISPLAY}req_think_007_2_italic",
        f"{DISPLAY}req_think_007_3_the_shade_follows_the_theme",
    ),
    row(
        117,
        "labels in several languages, by vendor",
        "settings/test_labels.py::test_it_is_called_what_its_provider_calls_it",
        "settings/test_labels.py::test_seven_languages_say_how_long_and_how_much",
    ),
    row(
        118,
        "the answer on standard output, reasoning on standard error",
        f"{RUN}the_answer_goes_to_standard_output_and_the_reasoning_to_standard_error",
    ),
    row(
        119,
        "thought chunks for editors",
        "cli/test_acp.py::test_thoughts_arrive_before_the_answer",
        "cli/test_acp.py::test_effort_is_an_option_that_sticks_and_one_turn_may_differ",
    ),
    row(
        128,
        "permission modes and rules",
        "turn/test_permissions.py::test_the_mode_goes_by_the_effect",
        f"{PERMISSIONS}a_denial_ends_the_turn_and_the_next_one_is_taken",
        f"{PERMISSIONS}always_is_kept_with_the_session",
    ),
    row(
        129,
        "errors that say what to do next",
        "cli/test_app.py::test_an_error_is_a_message_with_advice",
    ),
    row(
        131,
        "MCP, as server and as client",
        f"{MCP}reasoning_is_found_and_read_and_leads_to_what_it_led_to",
        "drive/test_mcp.py::test_a_call_is_answered",
    ),
    row(
        132,
        "questions to several models, with effort",
        f"{MCP}several_models_answer_side_by_side",
        f"{MCP}a_question_is_a_session_of_its_own_and_is_charged",
    ),
)
CHECK_LIST = {28, 78, *range(91, 99), 101, 103, *range(112, 120), 128, 129, 131, 132}


@pytest.mark.parametrize("promised", ROWS, ids=named)
def test_a_feature_has_its_test(promised: Row) -> None:
    """Each row names a test that is there, and none waits for anything."""
    assert promised.tests
    assert "" == promised.open
    assert [] == missing(promised.tests)


def test_the_check_list_is_complete() -> None:
    """No row of the check list is left out, and none is there twice."""
    assert sorted(CHECK_LIST) == sorted(int(promised.id) for promised in ROWS)
