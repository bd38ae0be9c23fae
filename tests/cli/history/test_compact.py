"""``compact`` from the command line: said first, made, listed, and what it stands for is still there."""

from __future__ import annotations

import json

import pytest

import thinkback
from tests.cli.command import KEY, Command
from thinkback_referee import Referee, Step


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


@pytest.fixture
def thoughtful(command: Command, referee: Referee, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command with a log: session ``talk``, three turns whose thoughts are long and go back."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    with thinkback.open(command.db, rules={}, settings={}) as store:
        session = store.session(
            "talk",
            endpoint="deepseek",
            model="deepseek-v4-pro",
            base_url=referee.base_url("deepseek"),
            api_key=KEY,
        )
        session.set("reasoning.includeInContext", True)
        for turn in range(3):
            referee.push(Step(reasoning=f"{turn}: " + "I think so. " * 60, text="Yes."))
            session.chat(f"Question {turn}?")
    return command


def test_old_thoughts_are_shortened_and_restored(thoughtful: Command, referee: Referee) -> None:
    """The cost is said first; ``why`` names the edit and the compaction; ``restore`` brings a thought back."""
    told = thoughtful("compact", "talk", "--strategy", "thoughts", "--tail", "1", "--dry-run", "--json").json
    assert (2, None, []) == (len(told["shortened"]), told["hash"], told["void"])
    assert told["thought_tokens_after"] < told["thought_tokens_before"]
    notes = [{"number": 1, "text": "So."}, {"number": 2, "text": "So too."}]
    referee.push(Step(text=json.dumps({"notes": notes})))
    made = thoughtful("compact", "talk", "--strategy", "thoughts", "--tail", "1")
    assert (0, True) == (made.code, "2 thoughts shortened" in made.out), made.err
    assert made.out.startswith("2 thoughts of about")
    first = told["shortened"][0]
    compaction = next(c["hash"] for c in thoughtful("log", "--json").json if c["kind"] == "compaction")
    assert f"made by compaction {compaction[:12]}" in thoughtful("why", first).out
    assert compaction[:12] in thoughtful("why", first, "--json").json["edited"]
    assert "[2 thoughts shortened]" in thoughtful("log", "--style", "list").out
    assert 0 == thoughtful("restore", first).code
    assert "made by compaction" not in thoughtful("why", first).out


def test_thoughts_that_go_back_nowhere_are_refused(long: Command) -> None:
    """With the reason; nothing is stored."""
    before = long("log", "--json").json
    refused = long("compact", "--strategy", "thoughts", "--tail", "1")
    assert (2, True) == (refused.code, "thought" in refused.err)
    assert before == long("log", "--json").json
