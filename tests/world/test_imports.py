"""Import only adds: whatever copy of a history comes in whatever order, nothing that is there is lost."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest

import thinkback
from tests.cli.conftest import Inside
from tests.formats.samples import CODEX
from tests.world.histories import claude_code, write
from tests.world.mind import Json
from thinkback.model.blocks import Text, ThinkingBlock

TYPED = "and check the tests too, please"


def copies() -> dict[str, list[Json]]:
    """One session whole, cut, without the words of its thoughts, and with one answer edited."""
    whole = claude_code()
    edited = copy.deepcopy(whole)
    edited[-1]["message"]["content"] = [{"type": "text", "text": "Answer 3: other.txt"}]
    return {"whole": whole, "cut": whole[: len(whole) // 2], "stripped": claude_code(thoughts=False), "edited": edited}


def import_copy(cli: Inside, lines: Sequence[Json], program: str = "claude-code") -> None:
    """As the program's file, which each copy is in its turn."""
    done = cli("import", "--program", program, str(write(cli.place / "history.jsonl", list(lines))))
    assert 0 == done.code, done.err


def thoughts(cli: Inside) -> set[str]:
    """The words of the thoughts on ``main`` of every session."""
    with thinkback.open(cli.db, rules={}, settings={}) as store:
        commits = [each for info in store.sessions() for each in store.log.read(info.id, branch="main")]
    return {each.value.thought for each in commits if isinstance(each.value, ThinkingBlock)} - {""}


def answers(cli: Inside) -> set[str]:
    """The answers on any branch."""
    with thinkback.open(cli.db, rules={}, settings={}) as store:
        branches = [(info.id, ref.name) for info in store.sessions() for ref in store.log.refs.list(info.id)]
        commits = [each for id, branch in branches for each in store.log.read(id, branch=branch)]
    return {
        each.value.text for each in commits if isinstance(each.value, Text) and each.value.text.startswith("Answer")
    }


def size(cli: Inside) -> int:
    """How many commits there are."""
    with thinkback.open(cli.db, rules={}, settings={}) as store:
        return sum(info.commits for info in store.sessions())


ORDERS = [*permutations(("whole", "cut", "stripped")), ("edited", "whole"), ("whole", "edited")]


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_copies_in_any_order_leave_every_thought(cli: Inside, order: tuple[str, ...]) -> None:
    """``main`` shows the fuller; an edited copy is a branch; a second round adds nothing."""
    given = copies()
    for name in order:
        import_copy(cli, given[name])
    first = size(cli)
    for name in order:
        import_copy(cli, given[name])
    expected = {f"Claude thinks {turn}.{step}" for turn in range(4) for step in range(2)}
    said = {f"Answer {turn}: notes.txt" for turn in range(4)} | (
        {"Answer 3: other.txt"} if "edited" in order else set()
    )

    assert expected == thoughts(cli)
    assert said == answers(cli)
    assert first == size(cli)


def test_a_backup_of_codex_without_summaries_takes_no_thought(cli: Inside) -> None:
    """The same of another program."""
    stripped = [copy.deepcopy(each) for each in CODEX]
    for line in stripped:
        if line["payload"].get("type") == "reasoning":
            line["payload"]["summary"] = []
    import_copy(cli, CODEX, "codex")
    import_copy(cli, stripped, "codex")

    assert {"It is there."} == thoughts(cli)


def test_an_export_without_reasoning_takes_none(cli: Inside, tmp_path: Path) -> None:
    """Our own exports, the lesser after the whole one."""
    import_copy(cli, copies()["whole"])
    cli("export", str(tmp_path / "less.jsonl"))
    cli("export", str(tmp_path / "whole.jsonl"), "--complete")
    before = thoughts(cli)
    cli.environment["THINKBACK_DB"] = str(tmp_path / "second.db")
    cli.db = tmp_path / "second.db"
    for name in ("less", "whole", "less"):
        assert 0 == cli("import", str(tmp_path / f"{name}.jsonl")).code

    assert before == thoughts(cli)


def test_what_a_person_typed_while_a_tool_ran_is_there(cli: Inside) -> None:
    """Claude Code keeps it as an attachment; the model saw it, between the result and the next thought."""
    import_copy(cli, claude_code(typed=TYPED))
    shown = cli("log", "--json")

    assert 1 == shown.out.count(TYPED)


def test_what_the_program_queued_itself_is_no_persons(cli: Inside) -> None:
    """A notification that a task ended has the same form."""
    lines = claude_code(typed="<task-notification>done</task-notification>")
    for line in lines:
        if "attachment" in line:
            line["attachment"] |= {"commandMode": "task-notification", "origin": {"kind": "task-notification"}}
    import_copy(cli, lines)
    with thinkback.open(cli.db, rules={}, settings={}) as store:
        commits = store.commits(store.sessions()[0].name)

    assert [] == [each for each in commits if each.kind == "user" and "task-notification" in str(each.value)]
