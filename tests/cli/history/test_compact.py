"""``compact`` from the command line: said first, made, listed, and what it stands for is still there."""

from __future__ import annotations

import pytest

import thinkback
from tests.cli.command import KEY, Command
from thinkback_referee import Referee


@pytest.fixture
def long(command: Command, referee: Referee) -> Command:
    """The command with a log: session ``talk``, six turns of some length."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        session = store.session(
            "talk",
            endpoint="deepseek",
            model="deepseek-v4-pro",
            base_url=referee.base_url("deepseek"),
            api_key=KEY,
        )
        for turn in range(6):
            session.chat(f"Question {turn}: " + "why is that so? " * 60)
    return command


def test_a_dry_run_stores_nothing(long: Command) -> None:
    """It says how many tokens it saves and what stands in the summary."""
    before = long("log", "--json").json
    shown = long("compact", "--strategy", "deterministic", "--tail", "1", "--dry-run")
    assert (0, True) == (shown.code, "nothing was stored: --dry-run" in shown.out)
    told = long("compact", "--strategy", "deterministic", "--tail", "1", "--dry-run", "--json").json
    assert told["effective_after"] < told["effective_before"]
    assert (None, before) == (told["hash"], long("log", "--json").json)


def test_a_checkpoint_is_a_commit(long: Command) -> None:
    """The next request says the summary; the commits are there, and the list has it."""
    said = [commit for commit in long("log", "--json").json if commit["kind"] == "user"]
    assert 0 == long("annotate", said[0]["hash"], "pinned").code
    made = long("compact", "talk", "--text", "Six questions about why.", "--tail", "1", "--json").json
    assert ("manual", [said[0]["hash"]]) == (made["strategy"], made["kept"])
    listed = long("compact", "--list", "--json").json
    assert [made["hash"]] == [checkpoint["hash"] for checkpoint in listed]
    assert "Six questions about why." in long("compact", "--list").out
    body = long("run", "And now?", "--session", "talk", "--dry-run").out
    assert "Six questions about why." in body
    assert ("Question 0" in body, "Question 3" in body, "Question 5" in body) == (True, False, True)
    assert {commit["hash"] for commit in said} <= {commit["hash"] for commit in long("log", "--json").json}


def test_what_makes_nothing_smaller_is_refused(talked: Command) -> None:
    """With the figures; nothing is stored. A strategy that does not exist, and no session, are wrong use."""
    before = talked("log", "--json").json
    assert 2 == talked("compact", "--text", "long " * 500, "--tail", "0").code
    assert 2 == talked("compact", "--strategy", "wishful").code
    assert 2 == talked("compact", "gone").code
    assert before == talked("log", "--json").json
