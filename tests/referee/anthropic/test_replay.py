"""What must come back, and as it was: the rules of signed thinking with their own texts."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.referee.anthropic.talk import (
    ADAPTIVE,
    MANUAL,
    OFF,
    WEATHER,
    Talk,
    altered,
    call,
    results,
    said,
    thought,
    user,
    with_block,
    without,
)
from thinkback_referee import Call, Step
from thinkback_referee.anthropic import ANTHROPIC, INTERLEAVED_BETA, REDACTED
from thinkback_referee.jsons import JsonObject, as_list, as_object
from thinkback_referee.persona import Persona

CALLING = Step(reasoning="I need the weather.", tool_calls=[Call("get_weather", {"city": "Oslo"})])
MODIFIED = (
    "messages.{}.content.{}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
    "modified. These blocks must remain as they were in the original response."
)
INVALID = "messages.{}.content.{}: Invalid `signature` in `thinking` block"


def expected_thinking(index: int, found: str) -> str:
    return (
        f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
        "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To "
        "avoid this requirement, disable `thinking`. Please consult our documentation at "
        "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
    )


def talk(model: str = "claude-sonnet-4-5", config: JsonObject = MANUAL, **parameters: object) -> Talk:
    base: JsonObject = {"model": model, "max_tokens": 4096, "tools": [WEATHER], **config, **parameters}
    return Talk(Persona(ANTHROPIC), base)


def test_a_faithful_client_is_taken() -> None:
    """What came is accepted when it goes back unchanged, in every mode."""
    for model, config in (("claude-sonnet-4-5", MANUAL), ("claude-opus-4-6", ADAPTIVE), ("claude-opus-4-7", ADAPTIVE)):
        one = talk(model, config)
        one.loop(CALLING)
        assert (200, "") == one.verdict()


@pytest.mark.parametrize("found", ["text", "tool_use"])
def test_manual_mode_wants_thinking_first(found: str) -> None:
    """In an open tool loop the turn's first message must start with thinking, whoever wrote it."""
    foreign = said(*(["Let me look."] if found == "text" else []), call())
    one = talk()
    one.messages = [user("hi"), foreign, results("toolu_1")]
    assert (400, expected_thinking(1, found)) == one.verdict()
    assert (200, "") == one.verdict(**OFF)


def test_manual_mode_notices_a_thought_that_is_gone() -> None:
    """Thinking taken out of the open turn is missed there, and not after the turn."""
    one = talk()
    one.messages[1:] = [without(one.loop(CALLING), "thinking")]
    one.messages.append(results("x"))
    called = as_object(as_list(one.messages[1]["content"])[0])["id"]
    one.messages[2:] = [results(str(called))]
    assert (400, expected_thinking(1, "tool_use")) == one.verdict()
    assert (200, "") == one.verdict(messages=[*one.messages, said("It rains."), user("thanks")])


def test_without_interleaving_the_model_thinks_once_per_turn() -> None:
    """A second step that was minted without a thought need not have one, and the view says so."""
    one = talk()
    one.loop(CALLING)
    assert not one.persona.view(one.ask()).thinks
    one.messages[3:] = [message := one.reply(Step(tool_calls=[Call("get_weather", {"city": "Rome"})]))]
    one.messages.append(results(str(as_object(as_list(message["content"])[0])["id"])))
    assert (200, "") == one.verdict()
    interleaved = deepcopy(one)
    interleaved.headers["anthropic-beta"] = INTERLEAVED_BETA
    assert interleaved.persona.view(interleaved.ask()).thinks


def test_a_foreign_second_step_needs_a_thought() -> None:
    """A call of someone else's as last step of an open turn is not excused."""
    one = talk()
    one.loop(CALLING)
    one.messages += [said(call("other")), results("other")]
    assert (400, expected_thinking(3, "tool_use")) == one.verdict()


def test_adaptive_mode_also_misses_what_it_minted() -> None:
    """Stricter than the provider: an open turn without the thought that was minted for it is refused."""
    one = talk("claude-opus-4-7", ADAPTIVE)
    message = one.loop(CALLING)
    one.messages[1] = without(message, "thinking")
    assert (400, MODIFIED.format(1, 0)) == one.verdict()
    assert (200, "") == one.verdict(**OFF)
    one.messages[1:] = [said(call()), results("toolu_1")]
    assert (200, "") == one.verdict()


def test_a_changed_signature_is_invalid() -> None:
    """One character of the signature is enough, in any turn."""
    one = talk("claude-sonnet-4-6", ADAPTIVE)
    message = one.loop(CALLING)
    signature = str(as_object(as_list(message["content"])[0])["signature"])
    one.messages[1] = with_block(message, 0, signature=altered(signature))
    assert (400, INVALID.format(1, 0)) == one.verdict()
    assert (400, INVALID.format(1, 0)) == one.verdict(messages=[*one.messages, said("It rains."), user("thanks")])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "messages.1.content.0.thinking: each thinking block must contain thinking"),
        (" \n", "messages.1.content.0.thinking: each thinking block must contain non-whitespace thinking"),
        ("because", INVALID.format(1, 0)),
    ],
)
def test_an_unsigned_thought_is_refused(text: str, sentence: str) -> None:
    """A thought that nobody signed is refused by its text, when that is empty, else by its signature."""
    one = talk()
    one.messages = [user("hi"), said(thought(text, ""), "yo"), user("on")]
    assert (400, sentence) == one.verdict()


def test_a_changed_text_is_a_modification_in_the_latest_message() -> None:
    """An edited thought under a genuine signature is told apart by where it stands."""
    one = talk()
    message = one.loop(CALLING)
    one.messages[1] = with_block(message, 0, thinking="I need the weather!")
    assert (400, MODIFIED.format(1, 0)) == one.verdict()
    assert (400, INVALID.format(1, 0)) == one.verdict(messages=[*one.messages, said("It rains."), user("thanks")])


def test_omitted_thoughts_come_back_empty() -> None:
    """With the display omitted the text is empty, and must stay so."""
    one = talk("claude-opus-4-7", ADAPTIVE)
    message = one.loop(CALLING)
    assert "" == as_object(as_list(message["content"])[0])["thinking"]
    one.messages[1] = with_block(message, 0, thinking="I need the weather.")
    assert (400, MODIFIED.format(1, 0)) == one.verdict()


def interleaved() -> Talk:
    one = talk("claude-opus-4-7", ADAPTIVE)
    one.messages = [user("hi")]
    first = Step(reasoning="one", text="Look:")
    one.reply(Step(earlier=[first], reasoning="two", tool_calls=[Call("get_weather", {"city": "Oslo"}, "t1")]))
    one.messages.append(results("t1"))
    return one


def test_thoughts_stay_where_they_were() -> None:
    """Two thoughts around a text: neither may go, move behind the call's place, or come twice."""
    one = interleaved()
    blocks = as_list(one.messages[1]["content"])
    assert ["thinking", "text", "thinking", "tool_use"] == [as_object(block)["type"] for block in blocks]
    assert (200, "") == one.verdict()
    wrong = ([0, 1, 3], [1, 2, 3], [2, 1, 0, 3], [0, 2, 1, 2, 3])
    for order in wrong:
        one.messages[1] = {"role": "assistant", "content": [blocks[place] for place in order]}
        status, text = one.verdict()
        assert (400, True) == (status, "in the latest assistant message cannot be modified" in text), order


def test_a_thought_does_not_move_to_another_message() -> None:
    """A genuine thought in front of a call that it did not lead to is refused."""
    one = talk("claude-opus-4-6", ADAPTIVE)
    first = one.loop(CALLING)
    block = as_object(as_list(first["content"])[1])
    one.messages.append(said("It rains."))
    one.messages += [user("And in Rome?"), said(dict(block), call("mine")), results("mine")]
    one.messages[1] = without(first, "thinking")
    assert (400, MODIFIED.format(5, 0)) == one.verdict()


def test_a_thought_is_not_sent_twice() -> None:
    """The same signature in two messages is refused at the second."""
    one = talk("claude-sonnet-4-5")
    one.messages = [user("hi")]
    message = one.reply(Step(reasoning="Greet.", text="Hello."))
    one.messages += [user("again"), message, user("more")]
    assert (400, MODIFIED.format(3, 0)) == one.verdict()


def test_redacted_thoughts_follow_the_same_rules() -> None:
    """Redacted data comes back unchanged; altered or dropped it is refused."""
    one = talk()
    message = one.loop(Step(reasoning=f"{REDACTED}: secret", tool_calls=[Call("get_weather", {"city": "Oslo"})]))
    assert "redacted_thinking" == as_object(as_list(message["content"])[0])["type"]
    assert (200, "") == one.verdict()
    data = str(as_object(as_list(message["content"])[0])["data"])
    one.messages[1] = with_block(message, 0, data=altered(data))
    assert (400, "messages.1.content.0: Invalid `data` in `redacted_thinking` block") == one.verdict()


def test_another_account_did_not_mint_it() -> None:
    """Before preserved thinking a block of another organisation has an invalid signature."""
    one = talk()
    one.loop(CALLING)
    one.headers["x-api-key"] = "org.second-key"
    assert (200, "") == one.verdict()
    one.headers["x-api-key"] = "other.key"
    assert (400, INVALID.format(1, 0)) == one.verdict()


def test_thinking_off_still_wants_genuine_blocks() -> None:
    """With thinking disabled blocks are ignored, but an invented one is refused all the same."""
    one = talk()
    message = one.loop(CALLING)
    assert (200, "") == one.verdict(**OFF)
    one.messages[1] = with_block(message, 0, signature="EqQB")
    assert (400, INVALID.format(1, 0)) == one.verdict(**OFF)


def test_a_paused_message_is_continued() -> None:
    """A response that paused goes back as the last message, also where prefill is refused."""
    one = talk("claude-opus-4-7", ADAPTIVE)
    one.messages = [user("hi")]
    one.reply(Step(reasoning="Search.", text="Searching.", finish="pause_turn"))
    assert (200, "") == one.verdict()
    one.messages = [*one.messages[:1], said("Searching on my own.")]
    assert 400 == one.verdict()[0]


def test_a_scripted_refusal_of_a_carrier_is_in_the_words_of_the_provider() -> None:
    """A refusal on demand names the last thinking block, by its signature or by its empty text."""
    one = talk()
    one.loop(CALLING)
    assert INVALID.format(1, 0) == one.persona.reject(one.ask()).message
    two = talk("claude-opus-4-7", ADAPTIVE)
    two.loop(CALLING)
    expected = "messages.1.content.0.thinking: each thinking block must contain thinking"
    assert expected == two.persona.reject(two.ask()).message
    two.messages = [user("hi")]
    assert INVALID.format(0, 0) == two.persona.reject(two.ask()).message
