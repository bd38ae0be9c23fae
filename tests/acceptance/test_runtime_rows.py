"""The features of profiles, apps, agents, the chat and the protocols of the four seed systems, row by row."""

from __future__ import annotations

import pytest

from tests.acceptance.pointers import Row, missing, named, row

SETTINGS = "acceptance/test_settings.py::test_"
RUN = "cli/test_run.py::test_"
USAGE = "session/test_usage.py::test_"
AGENTS = "cli/test_mcp.py::test_"
EDITORS = "cli/test_acp.py::test_"

ROWS = (
    row(28, "the model commits reasoning by a tool", open="waits for the tool commit_reasoning"),
    row(78, "effort levels", f"{SETTINGS}every_effort_is_said_or_its_absence_reported"),
    row(91, "read at each request", f"{SETTINGS}settings_are_read_at_each_request"),
    row(
        92,
        "sticky for a session, once for a call, and the word default",
        f"{SETTINGS}a_session_s_word_holds_and_a_call_s_word_counts_once",
        f"{SETTINGS}the_word_default_silences_weaker_layers",
    ),
    row(93, "profiles: save, load, list, delete, default", open="waits for profiles"),
    row(94, "profiles that fail over and take turns", open="waits for profiles"),
    row(
        95,
        "app files with a list of models",
        "settings/test_apps.py::test_an_app_file_says_everything_that_belongs_together",
        "settings/test_apps.py::test_an_unknown_model_falls_back_with_a_warning",
        "session/test_apps.py::test_an_app_carries_the_reasoning_of_the_last_three_responses",
        "session/test_apps.py::test_apps_do_not_share_a_conversation",
    ),
    row(96, "facts about models as data", f"{SETTINGS}the_facts_about_a_model_are_data_that_a_user_may_replace"),
    row(97, "a child has an effort of its own", open="waits for sub-agents"),
    row(
        98,
        "constraints between features",
        "settings/test_apps.py::test_a_constraint_that_the_file_itself_breaks_is_named_at_load",
        "session/test_apps.py::test_what_the_model_refuses_is_said_before_the_network",
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
        open="the status line waits for the chat",
    ),
    row(
        112,
        "answers of reasoning alone",
        f"{RUN}reasoning_without_an_answer_has_an_exit_code_of_its_own",
        open="going on by itself waits for the chat",
    ),
    row(
        113,
        "shown or hidden, whatever is sent",
        f"{SETTINGS}display_never_changes_the_wire",
        open="the screen waits for the chat",
    ),
    row(114, "full, collapsed, hidden", open="waits for the screen"),
    row(115, "the provider is told to omit the display", f"{SETTINGS}the_provider_is_told_to_show_nothing"),
    row(116, "a style of its own that follows the theme", open="waits for the screen"),
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
        f"{EDITORS}thoughts_arrive_before_the_answer",
        f"{EDITORS}loading_shows_what_was_said_and_thought",
        f"{EDITORS}thoughts_that_are_not_to_be_shown_are_not",
    ),
    row(128, "permission modes and rules", open="waits for permissions"),
    row(
        129,
        "errors that say what to do next",
        "cli/test_app.py::test_an_error_is_a_message_with_advice",
    ),
    row(
        131,
        "MCP, as server and as client",
        f"{AGENTS}reasoning_is_found_and_read_and_leads_to_what_it_led_to",
        f"{EDITORS}servers_of_the_editor_are_tools",
    ),
    row(
        132,
        "questions to several models, with effort",
        f"{AGENTS}several_models_answer_side_by_side",
        f"{AGENTS}a_question_is_a_session_of_its_own_and_is_charged",
        f"{AGENTS}missing_usage_of_a_model_that_may_think_unseen_is_charged_in_full",
    ),
)
CHECK_LIST = {28, 78, *range(91, 99), 101, 103, *range(112, 120), 128, 129, 131, 132}


@pytest.mark.parametrize("promised", ROWS, ids=named)
def test_a_feature_has_its_test(promised: Row) -> None:
    """Each row names a test that is there, or says what it waits for."""
    assert promised.tests or promised.open
    assert [] == missing(promised.tests)


def test_the_check_list_is_complete() -> None:
    """No row of the check list is left out, and none is there twice."""
    assert sorted(CHECK_LIST) == sorted(int(promised.id) for promised in ROWS)
