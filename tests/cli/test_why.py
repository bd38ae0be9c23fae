"""``why``: the decisions of the last request and of the next one."""

from __future__ import annotations

import thinkback
from tests.cli.command import Command


def test_the_last_request_is_explained_block_by_block(talked: Command) -> None:
    """Each earlier block of reasoning stands with action, message, rule and reason; the counts follow."""
    with thinkback.open(talked.db) as store:
        (decision,) = store.session("talk").why()

    done = talked("why")

    assert 0 == done.code
    assert [decision.block[:8], "reasoning", "field", "1"] == done.out.splitlines()[3].split()[:4]
    assert decision.reason in " ".join(done.out.split())
    assert " (stored), effective " in done.out


def test_the_explanation_as_json_says_which_request_it_is_about(talked: Command) -> None:
    """``--json`` has target, decisions, counts and controls left out; ``--next`` is about the next request."""
    last, following = talked("why", "talk", "--json").json, talked("why", "--next", "--json").json

    assert ("last", "next") == (last["request"], following["request"])
    assert ("deepseek", "deepseek-v4-pro", "deepseek-v4") == (last["endpoint"], last["model"], last["rule"])
    assert (1, 2) == (len(last["decisions"]), len(following["decisions"]))
    assert {"raw", "effective", "effective_reasoning", "limit", "calibrated"} == last["counts"].keys()
    assert [] == last["dropped"]


def test_the_next_request_may_go_elsewhere(talked: Command) -> None:
    """With another endpoint and model the decisions are theirs, and no key is needed to ask."""
    place = ("--endpoint", "groq", "--model", "qwen/qwen3-32b")

    done = talked("why", "--next", *place, "--json")

    assert "groq" == done.json["endpoint"]
    assert {"drop"} == {decision["action"] for decision in done.json["decisions"]}
    assert "drop" in talked("why", "--next", *place).out


def test_a_control_that_cannot_be_sent_is_told(talked: Command) -> None:
    """A setting that the endpoint has no words for is listed with the reason."""
    with thinkback.open(talked.db) as store:
        store.session("talk").set("reasoning.maxTokens", 100)

    assert "not sent: reasoning.maxTokens = 100: " in talked("why", "--next").out
    assert "reasoning.maxTokens" == talked("why", "--next", "--json").json["dropped"][0]["key"]


def test_a_session_without_a_request_has_nothing_to_explain(command: Command) -> None:
    """Nothing was sent, and nobody said where the next request goes: both are exit code 2 with advice."""
    with thinkback.open(command.db) as store:
        store.session("empty")

    assert 2 == command("why").code
    assert "give --endpoint" in command("why", "--next").err
