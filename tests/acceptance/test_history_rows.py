"""The features of storage, history, context and compaction that the four seed systems have between them, row by row."""

from __future__ import annotations

import pytest

from tests.acceptance.pointers import Row, missing, named, row

CAPTURE = "acceptance/test_capture.py::test_"
REPLAY = "acceptance/test_replay.py::test_"
HAND = "session/history/test_curating.py::test_"
BRANCHES = "session/history/test_branches.py::test_"
CHILDREN = "session/history/test_children.py::test_"
COMPACTION = "session/history/test_compaction.py::test_"
PRESSURE = "turn/test_pressure.py::test_"
RUNS = "log/test_compaction.py::test_"
SHARING = "session/exchange/test_sharing.py::test_"
STORES = "stores/test_conformance.py::test_"

ROWS = (
    row(27, "reasoning by hand", f"{HAND}reasoning_by_hand", f"{HAND}reasoning_that_says_nothing_is_refused"),
    row(29, "a durable record of reasoning", f"{CAPTURE}reasoning_of_a_final_answer_is_stored_too"),
    row(
        30,
        "the opaque item apart from the readable text",
        f"{CAPTURE}an_item_is_captured_opaquely_in_the_order_of_its_calls",
    ),
    row(31, "readable text is durable", f"{CAPTURE}reasoning_is_recorded_before_its_call_and_stamped_with_its_origin"),
    row(32, "stored whatever the settings say", f"{CAPTURE}what_a_response_did_not_ask_for_is_kept_too"),
    row(33, "the model's stamp", f"{CAPTURE}reasoning_is_recorded_before_its_call_and_stamped_with_its_origin"),
    row(34, "the dialect's and field's stamp", f"{CAPTURE}reasoning_is_found_wherever_chat_completions_put_it"),
    row(35, "the endpoint's stamp", f"{REPLAY}another_endpoint_gets_none_of_it"),
    row(36, "append-only, deltas are not stored", f"{REPLAY}deltas_of_reasoning_are_shown_and_not_stored"),
    row(37, "monotonic sequence numbers", f"{STORES}appended_commits_are_read_in_order"),
    row(
        38,
        "content-addressed blobs, once",
        "stores/test_format.py::test_a_program_with_sqlite_and_hashlib_can_read_a_log",
        open="a payload has its digest but a row of its own: two events are never one commit",
    ),
    row(39, "old records fold unchanged", "stores/test_migrations.py::test_a_log_of_format_1_goes_on"),
    row(40, "a torn end is survived", "stores/test_power_cut.py::test_a_power_cut_leaves_a_whole_prefix"),
    row(41, "one writer at a time", "stores/test_processes.py::test_writers_and_readers_lose_nothing"),
    row(42, "metadata, message, tags of reasoning", f"{HAND}reasoning_by_hand", f"{HAND}the_log_by_kind_and_tag"),
    row(43, "reasoning of final answers", f"{CAPTURE}reasoning_of_a_final_answer_is_stored_too"),
    row(
        44,
        "reasoning of capped and failed turns is withheld",
        f"{REPLAY}reasoning_of_a_capped_response_is_stored_and_not_replayed",
        f"{REPLAY}reasoning_of_a_failed_response_is_stored_and_not_replayed",
    ),
    row(
        45,
        "export and import with reasoning",
        f"{SHARING}reasoning_goes_along_where_it_is_asked_for",
        "session/exchange/test_importing.py::test_any_log_takes_any_file",
    ),
    row(102, "effective and raw tokens", "session/test_usage.py::test_the_context_is_what_the_next_request_will_carry"),
    row(104, "compaction by effective tokens", f"{PRESSURE}at_the_third_threshold_the_history_is_summarised"),
    row(
        105,
        "calibrated by what the provider counted",
        "compile/test_counts.py::test_the_last_reported_input_is_the_anchor",
    ),
    row(106, "only the last turns", "compile/test_window.py::test_the_last_turns_go_whole"),
    row(
        107,
        "tiers of pressure, overflow recovered",
        f"{PRESSURE}at_the_second_threshold_old_results_are_trimmed",
        f"{PRESSURE}after_a_refusal_fewer_turns_stay_each_time",
    ),
    row(108, "a durable, visible record of compaction", "cli/history/test_compact.py::test_a_checkpoint_is_a_commit"),
    row(
        109,
        "reasoning is not in the summary's input",
        f"{COMPACTION}the_model_that_writes_gets_no_reasoning_and_nothing_skipped",
    ),
    row(
        110,
        "cuts that part nothing",
        f"{RUNS}no_cut_parts_what_belongs_together",
        f"{RUNS}inside_a_turn_whole_responses_go_with_their_results",
    ),
    row(111, "hidden reasoning counts in a budget", "session/test_usage.py::test_effort_goes_down_with_what_is_spent"),
    row(
        120,
        "branch, switch, merge, rebase",
        f"{BRANCHES}branches_part",
        f"{BRANCHES}merge",
        f"{BRANCHES}conflicts_are_data",
        f"{BRANCHES}rebase",
        "log/test_line_laws.py::test_lines_that_only_append",
    ),
    row(121, "a fork anywhere, the parent untouched", f"{CHILDREN}a_clone_shares_the_history"),
    row(122, "resume after a crash", "stores/test_processes.py::test_a_killed_writer_leaves_whole_changes"),
    row(123, "skip and pin, block by block", f"{HAND}the_last_annotation_wins_field_by_field"),
    row(124, "find reasoning", "session/history/test_search.py::test_the_reasoning_of_a_turn_is_found_when_it_is_over"),
    row(125, "a difference with reasoning", "cli/history/test_branching.py::test_a_difference_shows_reasoning_apart"),
    row(
        126,
        "compile as of then",
        "compile/test_neutral.py::test_the_state_as_of_a_commit",
        "session/history/test_why.py::test_every_earlier_request_is_rebuilt",
    ),
    row(127, "hooks on reasoning", f"{HAND}a_hook_may_refuse"),
    row(130, "a Python API", "docs/test_examples.py::test_a_guide_runs_as_it_stands"),
)
CHECK_LIST = {27, *range(29, 46), 102, *range(104, 112), *range(120, 128), 130}


@pytest.mark.parametrize("promised", ROWS, ids=named)
def test_a_feature_has_its_test(promised: Row) -> None:
    """Each row names a test that is there, or says where it belongs."""
    assert promised.tests or promised.open
    assert [] == missing(promised.tests)


def test_the_check_list_is_complete() -> None:
    """No row of the check list is left out, and none is there twice."""
    assert sorted(CHECK_LIST) == sorted(int(promised.id) for promised in ROWS)
