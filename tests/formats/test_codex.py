"""Codex's rollouts: items to responses, roll-backs to branches."""

from __future__ import annotations

import json

from tests.formats.samples import CODEX, answered, asked, codex, drafts, item, jsonl, kinds, only, paths, read
from thinkback.formats.history import Left, Source
from thinkback.formats.registry import program
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Compaction, Content, Priority, Response, Usage


def test_items_up_to_a_report_of_usage_are_one_response() -> None:
    """Thoughts keep what is sealed; what the program said in the user's role is not the user's."""
    history = only("codex", jsonl(*CODEX))
    expected = ["content", "content", "user", "response", "reasoning", "tool_call", "provider_usage", "tool_result"]
    assert [*expected, "response", "reasoning", "assistant", "provider_usage", "turn_ended"] == kinds(history)
    first, second = (draft.value for draft in drafts(history, "reasoning"))
    assert isinstance(first, ThinkingBlock)
    assert isinstance(second, ThinkingBlock)
    assert ("", "gAAAA") == (first.thought, first.carriers[-1].value)
    assert ("It is there.", "summary") == (second.thought, second.kind)
    header = drafts(history, "response")[0].value
    assert isinstance(header, Response)
    assert ("resp_1", "gpt-5.6") == (header.id, header.origin.requested_model)
    assert [(9, 4, 7, 3)] * 2 == [
        (used.input, used.cached, used.output, used.reasoning)
        for draft in drafts(history, "provider_usage")
        if isinstance(used := draft.value, Usage)
    ]
    assert {Priority.SKIP} == {d.value.priority for d in drafts(history, "content") if isinstance(d.value, Content)}
    assert ("c1", "/home/person/dev/proj", 1795313517623000) == (history.id, history.directory, history.created)
    assert (Left("event task_complete", 1, 14),) == read("codex", jsonl(*CODEX)).left


def test_a_roll_back_begins_a_branch() -> None:
    """What follows stands where the turns that were taken back began; more turns than there are change nothing."""
    back = codex("event_msg", type="thread_rolled_back", num_turns=1)
    history = only("codex", jsonl(*CODEX, asked("Why?"), answered("So."), back, asked("How?"), answered("Thus.")))
    first, second = paths(history)
    assert (["15", "16"], ["18", "19"]) == (first[-2:], second[-2:])
    assert first[:-2] == second[:-2]
    assert "19" == history.tip
    too_many = codex("event_msg", type="thread_rolled_back", num_turns=7)
    assert 1 == len(paths(only("codex", jsonl(*CODEX, too_many, asked("How?")))))


def test_a_compaction_is_a_checkpoint_where_it_can_be_read() -> None:
    """A sealed one is kept beside the conversation, which stays whole."""
    history = only("codex", jsonl(*CODEX, codex("compacted", message="So far."), codex("compacted", message="", of=1)))
    assert ["compaction", "content"] == kinds(history)[-2:]
    assert Compaction("model", "So far.", reason="codex") == drafts(history, "compaction")[0].value


def test_older_rollouts_and_sub_agents() -> None:
    """The first versions had the items themselves as lines; a spawned thread names its parent."""
    head = {"id": "c0", "timestamp": "2025-05-01T10:00:00Z", "instructions": None}
    bare = ({"type": "message", "role": "user", "content": "Hi"}, {"type": "message", "role": "assistant"})
    history = only(
        "codex", jsonl(head, *bare, {"type": "function_call_output", "call_id": "c", "output": {"content": [1]}})
    )
    assert ["user", "response", "assistant", "turn_ended", "tool_result"] == kinds(history)
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "c1"}}}
    assert "c1" == only("codex", jsonl(codex("session_meta", id="c2", source=spawned), *CODEX[1:])).parent


def test_what_is_not_known_is_kept_beside_and_counted() -> None:
    """Items and lines of kinds that are not known; a file without a beginning is no session."""
    odd = (item("ghost_snapshot", of=1), item(""), codex("new_kind", of=1), codex("token_usage_record", usage=None))
    empty = codex("event_msg", type="token_count", info=None)
    found = read("codex", jsonl(*CODEX, *odd, empty))
    assert ["ghost_snapshot", "an item without a type", "new_kind"] == [left.what for left in found.left[1:]]
    assert "codex ghost_snapshot" == getattr(drafts(found.sessions[0])[-1].value, "content_type", "")
    assert () == read("codex", jsonl(*CODEX[1:])).sessions


def test_a_rollout_without_its_header_goes_by_the_name_of_its_file() -> None:
    """A header that is damaged costs neither the session nor its id; lines that stand there twice count once."""
    id = "01a20106-441f-7932-858d-2b9ab7210ac4"
    lines = [b'{"timestamp":\n', *jsonl(*CODEX[1:], *CODEX[5:7]).splitlines(keepends=True)]
    (history,) = program("codex").read(Source(f"sessions/rollout-2026-11-22T02-11-57-{id}.jsonl", lines)).sessions
    assert (id, len(only("codex", jsonl(*CODEX)).entries)) == (history.id, len(history.entries))
    assert () == program("codex").read(Source("rollout.jsonl", lines)).sessions


def test_the_very_first_version_had_one_object() -> None:
    """Of a session and its items."""
    items = [each["payload"] for each in CODEX if each["type"] == "response_item"]
    session = {"id": "c0", "timestamp": "2025-04-20T02:11:57.623Z", "instructions": ""}
    data = json.dumps({"session": session, "items": items}, indent=2).encode()
    history = only("codex", data)
    assert ("c0", 1745115117623000) == (history.id, history.created)
    assert {"user", "reasoning", "tool_call", "tool_result", "assistant"} <= {*kinds(history)}
    assert program("codex").is_own(data)
