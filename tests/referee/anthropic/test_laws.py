"""Laws: a faithful client is never refused, and one that alters a single carrier of an open turn always is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.referee.anthropic.talk import (
    ADAPTIVE,
    MANUAL,
    OFF,
    WEATHER,
    Talk,
    altered,
    calls_of,
    results,
    user,
    with_block,
)
from thinkback_referee import Call, Step
from thinkback_referee.anthropic import ANTHROPIC, REDACTED
from thinkback_referee.anthropic.profiles import MODELS
from thinkback_referee.jsons import JsonObject, as_list, as_object
from thinkback_referee.persona import Persona

_CONFIGS: list[JsonObject] = [MANUAL, ADAPTIVE, OFF, {}]
_THOUGHTS = st.sampled_from(["", "one", "one two", f"{REDACTED} three"])
_CALLS = st.lists(st.just(Call("get_weather", {"city": "Oslo"})), max_size=2)
_UNITS = st.builds(Step, reasoning=_THOUGHTS, text=st.sampled_from(["", "Look."]), tool_calls=_CALLS)


def _step(earlier: list[Step], last: Step) -> Step:
    """A response that does not end in a thought."""
    text = last.text if last.tool_calls else last.text or "Done."
    return Step(last.reasoning, text, last.tool_calls, earlier=earlier)


_STEPS = st.lists(st.builds(_step, st.lists(_UNITS, max_size=2), _UNITS), min_size=1, max_size=5)


def conversation(model: str, config: JsonObject, steps: list[Step]) -> Talk | None:
    """The steps as a faithful client has them; None where the model does not take the type of thinking."""
    one = Talk(
        Persona(ANTHROPIC), {"model": model, "max_tokens": 4096, "tools": [WEATHER], **config}, messages=[user("hi")]
    )
    if one.verdict()[0] != 200:
        return None
    for step in steps:
        calls = calls_of(one.reply(step))
        one.messages.append(results(*calls) if calls else user("And now?"))
    return one


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=25)
@given(config=st.sampled_from(_CONFIGS), steps=_STEPS)
def test_a_faithful_client_is_never_refused(model: str, config: JsonObject, steps: list[Step]) -> None:
    """Whatever a model says, the same thing is accepted when it goes back."""
    one = conversation(model, config, steps)
    assert one is None or (200, "") == one.verdict()


@given(model=st.sampled_from(list(MODELS)), config=st.sampled_from(_CONFIGS), steps=_STEPS, data=st.data())
def test_an_altered_carrier_is_always_refused(
    model: str, config: JsonObject, steps: list[Step], data: st.DataObject
) -> None:
    """One character of any signature or redacted data, in any turn."""
    one = conversation(model, config, steps)
    if one is None:
        return
    places = [
        (number, place, name)
        for number, message in enumerate(one.messages)
        for place, block in enumerate(as_list(message["content"]))
        for name in ("signature", "data")
        if name in as_object(block)
    ]
    if places:
        number, place, name = data.draw(st.sampled_from(places))
        value = str(as_object(as_list(one.messages[number]["content"])[place])[name])
        one.messages[number] = with_block(one.messages[number], place, **{name: altered(value)})
        status, text = one.verdict()
        assert (400, True) == (status, f"messages.{number}.content.{place}" in text)


@given(model=st.sampled_from(list(MODELS)), config=st.sampled_from(_CONFIGS[:2]), steps=_STEPS, data=st.data())
def test_a_thought_taken_out_of_an_open_turn_is_always_missed(
    model: str, config: JsonObject, steps: list[Step], data: st.DataObject
) -> None:
    """While the last message brings results, no thought of the turn under way may be left out."""
    one = conversation(model, config, [*steps, Step("because", tool_calls=[Call("get_weather", {"city": "Rome"})])])
    if one is None:
        return
    asked = max(number for number, message in enumerate(one.messages) if isinstance(message["content"], str))
    places = [
        (number, place)
        for number, message in enumerate(one.messages)
        for place, block in enumerate(as_list(message["content"]))
        if number > asked and "thinking" in str(as_object(block).get("type"))
    ]
    number, place = data.draw(st.sampled_from(places))
    blocks = list(as_list(one.messages[number]["content"]))
    one.messages[number] = {"role": "assistant", "content": blocks[:place] + blocks[place + 1 :]}
    assert 400 == one.verdict()[0]
