"""What the referee knows and a provider cannot: reasoning changed, foreign, repeated, or lost."""

from __future__ import annotations

import pytest

from tests.referee.talk import WEATHER, Body, body, result, said, user
from thinkback_referee import Ledger, Mint, Verdict, judge, profile_for

CASES = [
    ("deepseek", "deepseek-v4-pro", "reasoning_content", "must be passed back"),
    ("deepseek", "deepseek-v3.2", "reasoning_content", "must be passed back"),
    ("kimi", "kimi-k3", "reasoning_content", "reasoning_content is missing in assistant tool call message at index 1"),
    ("groq", "openai/gpt-oss-120b", "reasoning", "is not the text that was issued"),
]


def minted(host: str, model: str, reasoning: str, text: str = "", *calls: str) -> Mint:
    return Mint(host, model, reasoning, text, calls)


def judged(ledger: Ledger, host: str, model: str, *messages: Body, **parameters: object) -> Verdict:
    profile = profile_for(host, model)
    assert profile is not None
    return judge(profile, body(model, *messages, **parameters), ledger)


@pytest.mark.parametrize(("host", "model", "field", "text"), CASES)
@pytest.mark.parametrize("altered", ["Because.", "because. ", "becaus.", "because.\n"])
def test_changed_reasoning_is_refused(
    host: str, model: str, field: str, text: str, altered: str, ledger: Ledger
) -> None:
    """Reasoning of a minted message must come back byte for byte."""
    ledger.add(minted(host, model, "because.", "", "c1"))
    faithful = judged(ledger, host, model, user("hi"), said("", "c1", **{field: "because."}), result("c1"))
    verdict = judged(ledger, host, model, user("hi"), said("", "c1", **{field: altered}), result("c1"))
    assert (200, 400) == (faithful.status, verdict.status)
    assert ("changed at messages[1]", True) == (verdict.reason, text in verdict.message)


@pytest.mark.parametrize(
    ("host", "model", "blank", "reason"),
    [
        ("deepseek", "deepseek-v4-pro", " ", ""),
        ("deepseek", "deepseek-v4-pro", "", ""),
        ("deepseek", "deepseek-v3.2", " ", ""),
        ("deepseek", "deepseek-v4-pro", "  ", "missing at messages[1]"),
        ("kimi", "kimi-k2.6", " ", ""),
        ("kimi", "kimi-k2.6", "", "missing at messages[1]"),
    ],
)
def test_placeholders_are_taken_where_that_is_reported(
    host: str, model: str, blank: str, reason: str, ledger: Ledger
) -> None:
    """A provider cannot tell reasoning that was lost from reasoning that never was; no other blank is known to do."""
    ledger.add(minted(host, model, "because.", "", "c1"))
    verdict = judged(ledger, host, model, user("hi"), said("", "c1", reasoning_content=blank), result("c1"))
    assert reason == verdict.reason


def test_a_placeholder_does_where_the_field_is_wanted_and_not_read(ledger: Ledger) -> None:
    """With tools offered every message needs the field; of a turn without calls nobody reads it."""
    ledger.add(minted("deepseek", "deepseek-v4-pro", "because.", "42"))
    messages = [user("hi"), said("42", reasoning_content=" "), user("on")]
    assert judged(ledger, "deepseek", "deepseek-v4-pro", *messages, tools=[WEATHER]).ok


def test_optional_reasoning_may_be_blank_or_absent_but_not_changed(ledger: Ledger) -> None:
    """Where nothing is required, leaving out is fine and altering is not."""
    ledger.add(minted("deepseek", "deepseek-v4-pro", "because.", "42"))
    for fields, status in (({}, 200), ({"reasoning_content": ""}, 200), ({"reasoning_content": "other"}, 400)):
        verdict = judged(ledger, "deepseek", "deepseek-v4-pro", user("hi"), said("42", **fields), user("on"))
        assert status == verdict.status


def test_an_answer_without_thought_needs_no_field(ledger: Ledger) -> None:
    """A text answer minted without reasoning may come back without the field even when tools are offered."""
    ledger.add(minted("deepseek", "deepseek-v4-flash", "", "ready"))
    messages = [user("hi"), said("ready"), user("on")]
    assert judged(ledger, "deepseek", "deepseek-v4-flash", *messages, tools=[WEATHER]).ok


def test_a_call_without_thought_still_needs_the_field(ledger: Ledger) -> None:
    """A call minted without reasoning takes an empty value, but not a missing one."""
    ledger.add(minted("deepseek", "deepseek-v4-flash", "", "", "c1"))
    missing = judged(ledger, "deepseek", "deepseek-v4-flash", user("hi"), said("", "c1"), result("c1"))
    empty = judged(
        ledger, "deepseek", "deepseek-v4-flash", user("hi"), said("", "c1", reasoning_content=""), result("c1")
    )
    assert (400, 200) == (missing.status, empty.status)


def test_reasoning_of_another_host_is_refused(ledger: Ledger) -> None:
    """What Kimi thought is not sent to DeepSeek; a placeholder in its place is."""
    ledger.add(minted("kimi", "kimi-k3", "because.", "", "c1"))
    sent, held = (
        judged(ledger, "deepseek", "deepseek-v4-pro", user("hi"), said("", "c1", reasoning_content=value), result("c1"))
        for value in ("because.", " ")
    )
    assert (400, "foreign at messages[1]", 200) == (sent.status, sent.reason, held.status)


def test_another_model_of_the_same_host_reads_the_same_reasoning(ledger: Ledger) -> None:
    """Reasoning minted by one DeepSeek model may be sent to the next."""
    ledger.add(minted("deepseek", "deepseek-v4-pro", "because.", "", "c1"))
    messages = [user("hi"), said("", "c1", reasoning_content="because."), result("c1")]
    assert judged(ledger, "deepseek", "deepseek-v4-flash", *messages).ok


def test_two_hosts_that_gave_the_same_answer_are_told_apart_in_favour_of_the_client(ledger: Ledger) -> None:
    """A placeholder passes for a text that another host minted too."""
    ledger.add(minted("deepseek", "deepseek-v4-pro", "because.", "ok"))
    ledger.add(minted("groq", "qwen/qwen3-32b", "well.", "ok"))
    messages = [user("hi"), said("ok", reasoning_content=" "), user("on")]
    assert judged(ledger, "deepseek", "deepseek-v4-pro", *messages, tools=[WEATHER]).ok


def test_the_same_reasoning_on_two_messages_is_refused(ledger: Ledger) -> None:
    """One thought goes to one message; blanks are not thoughts."""
    twice = [user("hi"), said("", "c1", reasoning_content="x"), result("c1"), said("", "c2", reasoning_content="x")]
    verdict = judged(ledger, "deepseek", "deepseek-v4-pro", *twice, result("c2"))
    assert (400, "repeated at messages[3]") == (verdict.status, verdict.reason)
    blank = [user("hi"), said("", "c1", reasoning_content=" "), result("c1"), said("", "c2", reasoning_content=" ")]
    assert judged(ledger, "deepseek", "deepseek-v4-pro", *blank, result("c2")).ok


def test_a_thought_minted_twice_may_come_back_twice(ledger: Ledger) -> None:
    """When the model really repeated itself, so may the history."""
    ledger.add(minted("deepseek", "deepseek-v4-pro", "x", "", "c1"))
    ledger.add(minted("deepseek", "deepseek-v4-pro", "x", "", "c2"))
    twice = [user("hi"), said("", "c1", reasoning_content="x"), result("c1"), said("", "c2", reasoning_content="x")]
    assert judged(ledger, "deepseek", "deepseek-v4-pro", *twice, result("c2")).ok


def test_one_thought_under_two_names_of_one_message_is_one(ledger: Ledger) -> None:
    """A message may carry its reasoning under both names that DeepSeek takes, if both are right."""
    ledger.add(minted("deepseek", "deepseek-v4-pro", "x", "ok"))
    for other, status in (("x", 200), ("y", 400)):
        message = said("ok", reasoning_content="x", reasoning=other)
        assert status == judged(ledger, "deepseek", "deepseek-v4-pro", user("hi"), message, user("on")).status


@pytest.mark.parametrize(
    ("other", "reason"), [("x", "repeated at messages[3]"), (None, "missing at messages[3]"), (" ", "")]
)
def test_parallel_calls_split_over_two_messages_share_their_reasoning(
    other: str | None, reason: str, ledger: Ledger
) -> None:
    """Calls minted together have one thought: the second message may repeat nothing and must have something."""
    ledger.add(minted("deepseek", "deepseek-v4-pro", "x", "", "c1", "c2"))
    first, second = said("", "c1", reasoning_content="x"), said("", "c2", reasoning_content=other)
    verdict = judged(ledger, "deepseek", "deepseek-v4-pro", user("hi"), first, result("c1"), second, result("c2"))
    assert reason == verdict.reason


def test_mistral_thinking_chunks_must_come_back_unaltered(ledger: Ledger) -> None:
    """The text of returned thinking chunks is compared with what was minted."""
    ledger.add(minted("mistral", "magistral-medium-latest", "x", "ok"))
    for thought, status in (("x", 200), ("y", 400)):
        chunk = {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
        message: Body = {"role": "assistant", "content": [chunk, {"type": "text", "text": "ok"}]}
        verdict = judged(ledger, "mistral", "magistral-medium-latest", user("hi"), message, user("on"))
        assert status == verdict.status


def test_judging_does_not_write_to_the_ledger(ledger: Ledger) -> None:
    """A request teaches the ledger nothing, so a client cannot make its own alterations true."""
    messages = [user("hi"), said("", "c1", reasoning_content="x"), result("c1")]
    assert judged(ledger, "deepseek", "deepseek-v4-pro", *messages).ok
    assert 0 == ledger.issued("x")
