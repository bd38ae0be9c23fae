"""What the persona writes: whole bodies and streams that say the same, in the shapes of the provider."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest

from tests.referee.anthropic.talk import (
    ADAPTIVE,
    MANUAL,
    OFF,
    TIME,
    WEATHER,
    Talk,
    calls_of,
    read_events,
    results,
    said,
    text_of,
    user,
    without,
)
from tests.referee.learning import messages_message
from thinkback_referee import LOST, Call, Step, code_word
from thinkback_referee.anthropic import ANTHROPIC, CLEARING_BETA, COUNTING_BETA, INTERLEAVED_BETA, REDACTED
from thinkback_referee.anthropic.render import signature
from thinkback_referee.house import house_step
from thinkback_referee.jsons import JsonObject, as_list, as_object, as_text
from thinkback_referee.persona import Persona

FULL = Step(
    earlier=[Step(reasoning="first"), Step(reasoning=f"{REDACTED} second", text="Let me look.")],
    reasoning="third thought",
    tool_calls=[Call("get_weather", {"city": "Oslo"}), Call("get_weather", '{"city":"Rome"}', "toolu_mine")],
)


def talk(model: str = "claude-sonnet-4-5", config: JsonObject = MANUAL, **parameters: object) -> Talk:
    base: JsonObject = {"model": model, "max_tokens": 4096, "tools": [WEATHER], **config, **parameters}
    return Talk(Persona(ANTHROPIC), base, messages=[user("hi")])


def blocks_of(response: JsonObject) -> list[JsonObject]:
    return [dict(as_object(block)) for block in as_list(response["content"])]


def test_a_stream_adds_up_to_the_whole_body() -> None:
    """Text, thoughts, redacted ones and parallel calls are the same both ways, usage included."""
    rendered = talk().rendered(FULL)
    streamed = messages_message(b"".join(rendered.events).decode())
    whole = json.loads(rendered.whole)
    assert streamed is not None
    assert {**whole, "usage": None} == {**streamed, "usage": None}
    kinds = ["thinking", "redacted_thinking", "text", "thinking", "tool_use", "tool_use"]
    assert kinds == [block["type"] for block in whole["content"]]
    assert ("tool_use", "claude-sonnet-4-5-20250929") == (whole["stop_reason"], whole["model"])


def test_events_come_in_the_order_of_the_provider() -> None:
    """Start, ping after the first block opens, one signature at the end of a thought, usage before the stop."""
    rendered = talk().rendered(Step(reasoning="one two", text="Hi."))
    events = read_events(rendered.events)
    expected = [
        "message_start",
        "content_block_start",
        "ping",
        "thinking_delta",
        "thinking_delta",
        "signature_delta",
        "content_block_stop",
        "content_block_start",
        "text_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert expected == [as_text(as_object(event.get("delta")).get("type") or event["type"]) for event in events]
    assert b"event: message_start\n" == rendered.events[0].splitlines(keepends=True)[0]
    assert {"type": "thinking", "thinking": "", "signature": ""} == events[1]["content_block"]


def test_redacted_data_comes_at_once() -> None:
    """A redacted block has no deltas."""
    events = read_events(talk().rendered(Step(reasoning=REDACTED, text="OK")).events)
    assert ["content_block_start", "ping", "content_block_stop"] == [event["type"] for event in events[1:4]]
    block = as_object(events[1]["content_block"])
    assert ("redacted_thinking", True) == (block["type"], len(as_text(block["data"])) > 100)


@pytest.mark.parametrize(
    ("model", "display", "shown"),
    [
        ("claude-opus-4-6", None, "a thought"),
        ("claude-opus-4-6", "omitted", ""),
        ("claude-opus-4-7", None, ""),
        ("claude-opus-5-5", "summarized", "a thought"),
    ],
)
def test_the_display_decides_what_is_shown(model: str, display: str | None, shown: str) -> None:
    """Omitted thoughts are empty and signed; the default depends on the model."""
    config: JsonObject = {"thinking": {"type": "adaptive", **({"display": display} if display else {})}}
    rendered = talk(model, config).rendered(Step(reasoning="a thought", text="Hi."))
    block = next(block for block in blocks_of(json.loads(rendered.whole)) if block["type"] == "thinking")
    assert (shown, True) == (block["thinking"], len(as_text(block["signature"])) > 100)
    deltas = [as_object(event["delta"]) for event in read_events(rendered.events) if "delta" in event]
    thought = [as_text(delta["thinking"]) for delta in deltas if delta.get("type") == "thinking_delta"]
    assert (shown, True) == ("".join(thought), bool(thought))


def test_a_beta_counts_tokens_of_hidden_thoughts() -> None:
    """Deltas of omitted thoughts carry estimates when the beta asks for them."""
    one = talk("claude-opus-4-7", ADAPTIVE)
    one.headers["anthropic-beta"] = COUNTING_BETA
    events = read_events(one.rendered(Step(reasoning="a thought", text="Hi.")).events)
    assert {"type": "thinking_delta", "thinking": "", "estimated_tokens": 1} == events[3]["delta"]


def test_opus_46_leads_with_a_blank_text() -> None:
    """In adaptive mode its thoughts are not first, and that is accepted back."""
    one = talk("claude-opus-4-6", ADAPTIVE)
    message = one.reply(FULL)
    assert {"type": "text", "text": "\n\n"} == as_list(message["content"])[0]
    one.messages.append(results(*calls_of(message)))
    assert (200, "") == one.verdict()


def test_signatures_look_real_and_grow() -> None:
    """A signature is base64 of a record, begins as real ones do, and follows from digest and thought."""
    short, long = signature("d", "a"), signature("d", "a" * 300)
    assert ("E", True) == (short[0], len(long) > len(short) + 300)
    assert base64.b64decode(long, validate=True)
    assert (short, False) == (signature("d", "a"), short == signature("e", "a"))


def test_the_same_words_for_two_accounts_are_signed_differently() -> None:
    """A signature is for one organisation, also where two of them ask and hear the same."""
    one = talk()
    first = one.answer(Step(reasoning="a", text="b"))
    one.headers["x-api-key"] = "other.key"
    second = one.answer(Step(reasoning="a", text="b"))
    assert blocks_of(first)[0]["signature"] != blocks_of(second)[0]["signature"]


def test_usage_counts_as_the_provider_does() -> None:
    """Output includes thinking; its share is told by newer models only; a step's own numbers win."""
    step = Step(reasoning="one two three", text="four five")
    old = as_object(talk().answer(step)["usage"])
    assert (5, False) == (old["output_tokens"], "output_tokens_details" in old)
    new = as_object(talk("claude-opus-4-8", ADAPTIVE).answer(step)["usage"])
    assert (5, {"thinking_tokens": 3}) == (new["output_tokens"], new["output_tokens_details"])
    told = as_object(talk().answer(Step(text="x", usage={"output_tokens": 99}))["usage"])
    assert 99 == told["output_tokens"]


def test_kept_thoughts_are_input_and_others_are_not() -> None:
    """Thoughts that the model gets to see again are billed as input."""
    one = talk("claude-opus-4-8", ADAPTIVE)
    one.reply(Step(reasoning="one two three four five", text="Hello."))
    one.messages.append(user("on"))
    kept, off = (as_object(one.answer(Step(text="x"), **config)["usage"])["input_tokens"] for config in (ADAPTIVE, OFF))
    assert 5 == int(str(kept)) - int(str(off))


def test_cache_marks_show_what_a_client_changed() -> None:
    """With marks a repeated prefix is read from the cache; a changed one is not."""
    mark: JsonObject = {"cache_control": {"type": "ephemeral"}}
    one = talk(system=[{"type": "text", "text": "You are a helper.", **mark}])
    one.reply(Step(text="Hello."))
    one.messages.append(user("on"))
    hit = as_object(one.answer(Step(text="x"))["usage"])["cache_read_input_tokens"]
    assert int(str(hit)) > 4
    changed = [{"type": "text", "text": "Another helper.", **mark}]
    missed = as_object(one.answer(Step(text="x"), system=changed, tools=[])["usage"])
    assert 0 == missed["cache_read_input_tokens"]


def test_refusals_and_finishes_are_scripted() -> None:
    """A refusal has its stop reason and explanation; any other reason is passed on."""
    refused = talk().answer(Step(refusal="I will not."))
    assert ("refusal", "I will not.") == (refused["stop_reason"], as_object(refused["stop_details"])["explanation"])
    assert "max_tokens" == talk().answer(Step(text="and then", finish="max_tokens"))["stop_reason"]
    assert "end_turn" == talk().answer(Step(text="done"))["stop_reason"]


def cleared(one: Talk, keep: object) -> tuple[tuple[str, ...], object]:
    edit: JsonObject = {"type": "clear_thinking_20251015", **({"keep": keep} if keep else {})}
    one.headers["anthropic-beta"] = CLEARING_BETA
    changes = {"context_management": {"edits": [edit]}}
    notes = one.persona.view(one.ask(**changes)).notes
    return notes, as_object(one.answer(Step(text="x"), **changes)["context_management"])["applied_edits"]


@pytest.mark.parametrize(
    ("keep", "notes", "turns"),
    [
        ({"type": "thinking_turns", "value": 1}, ("c",), 2),
        ({"type": "thinking_turns", "value": 2}, ("b", "c"), 1),
        (None, ("c",), 2),
        ("all", ("a", "b", "c"), 0),
        ({"type": "all"}, ("a", "b", "c"), 0),
    ],
)
def test_clearing_is_done_and_reported(keep: object, notes: tuple[str, ...], turns: int) -> None:
    """The edit hides thoughts of older turns from the model and says how many turns it cleared."""
    one = talk("claude-opus-4-8", {"thinking": {"type": "adaptive", "display": "summarized"}})
    for text in ("a", "b", "c"):
        one.reply(Step(reasoning=text, text=f"So much for {text}."))
        one.messages.append(user("on"))
    applied: JsonObject = {"type": "clear_thinking_20251015", "cleared_thinking_turns": turns}
    expected = [{**applied, "cleared_input_tokens": turns}] if turns else []
    assert (notes, expected) == cleared(one, keep)


def test_clearing_is_reported_at_the_end_of_a_stream() -> None:
    """A stream reports edits beside its usage."""
    one = talk("claude-opus-4-8", ADAPTIVE, context_management={"edits": []})
    one.headers["anthropic-beta"] = CLEARING_BETA
    events = read_events(one.rendered(Step(text="x")).events)
    assert {"applied_edits": []} == events[-2]["context_management"]


@pytest.mark.parametrize(
    ("model", "notes"), [("claude-sonnet-4-5", ("b",)), ("claude-opus-4-5", ("a", "b")), ("claude-opus-4-1", ("b",))]
)
def test_older_models_keep_the_last_turn_only(model: str, notes: tuple[str, ...]) -> None:
    """Up to Opus 4.1 and Sonnet 4.5 only the last turn's thoughts reach the model."""
    one = talk(model)
    for text in ("a", "b"):
        one.reply(Step(reasoning=text, text=f"So much for {text}."))
        one.messages.append(user("on"))
    assert notes == one.persona.view(one.ask()).notes


def test_between_tools_thinks_between_tools() -> None:
    """Sonnet 5.5 with between_tools has no thought up front, and one after results."""
    one = talk("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}})
    assert not one.persona.view(one.ask()).thinks
    message = one.reply(Step(tool_calls=[Call("get_weather", {"city": "Oslo"})]))
    one.messages.append(results(*calls_of(message)))
    assert one.persona.view(one.ask()).thinks


def test_between_tools_loses_nothing() -> None:
    """Thoughts between tools hold no note of the house model, so it does not claim to have lost one."""
    one = talk("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}})
    one.parameters["tools"] = [WEATHER, TIME]
    one.messages.clear()
    answer = one.turn("What is the weather in Oslo, and then the time?")
    assert (True, False) == ("get_time" in answer, LOST in answer)


def test_the_house_model_sees_the_conversation() -> None:
    """Question (two messages in a row are one), results by name, tools and choice are read from the request."""
    one = talk("claude-opus-4-8", ADAPTIVE, tool_choice={"type": "none"})
    one.loop(FULL, "And the weather?")
    view = one.persona.view(one.ask())
    assert ("hi\nAnd the weather?", 2, 1, 1) == (view.asked, view.turn, view.steps, view.rounds)
    assert ("none", ["get_weather"]) == (view.choice, [tool.name for tool in view.tools])
    assert (("get_weather", "rain, 7 degrees"),) * 2 == view.results
    assert (True, True) == (view.readable, view.began)
    assert ("first", f"{REDACTED} second", "third thought") == view.notes


def test_words_beside_results_lose_nothing() -> None:
    """They open no turn, so the model notes nothing for them: it looks for the note of the words that opened it."""
    one = talk("claude-opus-4-8", ADAPTIVE)
    one.messages.clear()
    one.messages.append(user("What is the weather in Oslo?"))
    message = one.reply()
    answers = as_list(results(*calls_of(message))["content"])
    one.messages.append({"role": "user", "content": [*answers, {"type": "text", "text": "Stop. And in Rome?"}]})
    assert ("Stop. And in Rome?", 1) == ((view := one.persona.view(one.ask())).asked, view.rounds)
    answer = text_of(one.reply())
    assert (True, False) == (code_word("What is the weather in Oslo?") in answer, LOST in answer)


def test_foreign_messages_are_no_place_for_notes() -> None:
    """What others wrote never had thoughts of this model."""
    one = talk("claude-opus-4-8", ADAPTIVE)
    one.messages += [said("hello"), user("on")]
    view = one.persona.view(one.ask())
    assert ((), False) == (view.notes, view.readable)


@pytest.mark.parametrize("model", ["claude-3-7-sonnet", "claude-opus-4-6", "claude-opus-4-8", "claude-fable-5-2"])
def test_the_house_model_proves_the_replay(model: str) -> None:
    """Over two turns with calls the code words come back; a client without thoughts hears of lost notes."""
    config = MANUAL if model == "claude-3-7-sonnet" else ADAPTIVE
    one = talk(model, config)
    one.headers["anthropic-beta"] = INTERLEAVED_BETA
    one.messages.clear()
    answers = [one.turn("What is the weather in Oslo?"), one.turn("And in Rome?")]
    assert [True, True] == ["still known" in answer and "lost" not in answer for answer in answers]
    words = 1 if model == "claude-3-7-sonnet" else 2
    assert words == answers[1].count("still known")
    one.messages = [without(message, "thinking") for message in one.messages]
    one.messages.append(user("Which words?"))
    assert LOST in text_of(one.reply(house_step(replace(one.persona.view(one.ask()), tools=()))))
