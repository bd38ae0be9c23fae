"""Preserved thinking: blocks bound to a conversation, its organisation and end user, and read by some models only."""

from __future__ import annotations

import pytest

from tests.referee.anthropic.talk import (
    BINDING,
    DROPPING,
    TIME,
    WEATHER,
    Talk,
    calls_of,
    results,
    user,
    with_block,
    without,
)
from thinkback_referee import Call, Step
from thinkback_referee.anthropic import ANTHROPIC
from thinkback_referee.jsons import JsonObject, as_list, as_object
from thinkback_referee.persona import Persona

PRESERVED = ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1", "claude-fable-5-2"]
CALLING = Step(reasoning="I need the weather.", tool_calls=[Call("get_weather", {"city": "Oslo"})])
BOUND = (
    "messages.{}.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
NEEDS_BETA = " That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
DIFFERS = " The `{}` {} differs from the one this block was created with."
TOOLS: JsonObject = {"tools": [WEATHER]}


def talk(model: str = "claude-opus-5-5", **parameters: object) -> Talk:
    base: JsonObject = {"model": model, "max_tokens": 4096, "system": "Be brief.", **TOOLS, **parameters}
    return Talk(Persona(ANTHROPIC), base)


def two_turns(one: Talk, *thoughts: str) -> Talk:
    """Turns without calls, one for each thought, and a last question."""
    for text in thoughts:
        one.messages.append(user(f"About {text}?"))
        one.reply(Step(reasoning=text, text=f"So much for {text}."))
    one.messages.append(user("And now?"))
    return one


def report(one: Talk, **changes: object) -> list[tuple[object, object]]:
    """Path and reason of what the response reports as dropped."""
    found = [as_object(entry) for entry in as_list(one.answer(Step(text="Well."), **changes)["input_transformations"])]
    assert ["thinking_dropped"] * len(found) == [entry["type"] for entry in found]
    return [(entry["path"], entry["reason"]) for entry in found]


@pytest.mark.parametrize("model", PRESERVED)
def test_an_append_only_history_is_taken(model: str) -> None:
    """Turns with and without calls go on as long as nothing before them changes."""
    one = talk(model)
    one.loop(CALLING)
    one.reply(Step(reasoning="It rains.", text="Rain."))
    two_turns(one, "a", "b")
    assert (200, "") == one.verdict()


@pytest.mark.parametrize("model", PRESERVED)
@pytest.mark.parametrize(
    ("change", "tail"),
    [
        ({"tools": [WEATHER, TIME]}, DIFFERS.format("tools", "list")),
        ({"system": "Be long."}, DIFFERS.format("system", "prompt")),
        ({"system": None}, DIFFERS.format("system", "prompt")),
    ],
)
def test_changed_instructions_unbind_blocks(model: str, change: JsonObject, tail: str) -> None:
    """Another system prompt or list of tools is refused, with a hint at the beta unless it is used."""
    one = talk(model)
    one.loop(CALLING)
    one.parameters = {name: value for name, value in {**one.parameters, **change}.items() if value is not None}
    assert (400, BOUND.format(1) + NEEDS_BETA + tail) == one.verdict()
    one.headers |= BINDING
    assert (400, BOUND.format(1) + tail) == one.verdict()


def test_changed_messages_unbind_blocks() -> None:
    """An edited question before a block is a change of its conversation; one after it is not."""
    one = two_turns(talk(), "a")
    one.messages[-1] = user("Something else?")
    assert (200, "") == one.verdict()
    one.messages[0] = user("About b?")
    status, text = one.verdict()
    assert (400, True) == (status, text.startswith(BOUND.format(1)))


def test_marks_and_wrapping_are_no_change() -> None:
    """Cache marks, a string in place of one text block, and what the server adds to calls do not count."""
    one = talk()
    message = one.loop(CALLING)
    mark = {"cache_control": {"type": "ephemeral"}}
    one.messages[0] = {"role": "user", "content": [{"type": "text", "text": str(one.messages[0]["content"]), **mark}]}
    one.messages[1] = with_block(message, 1, caller=None)
    one.parameters["system"] = [{"type": "text", "text": "Be brief.", **mark}]
    one.parameters["tools"] = [{**WEATHER, **mark}]
    assert (200, "") == one.verdict()


def test_a_late_system_message_is_the_way_to_change_instructions() -> None:
    """A trailing message with the role system leaves all blocks valid."""
    one = two_turns(talk(), "a")
    one.messages.append({"role": "system", "content": "From now on, in French."})
    assert (200, "") == one.verdict()


def test_thinking_may_go_from_the_start_only() -> None:
    """Without its first thought a history is valid; without a middle one everything after it is not."""
    one = two_turns(talk(), "a", "b", "c")
    whole = list(one.messages)
    one.messages = [without(message, "thinking") if index == 1 else message for index, message in enumerate(whole)]
    assert (200, "") == one.verdict()
    one.messages = [without(message, "thinking") if index == 3 else message for index, message in enumerate(whole)]
    status, text = one.verdict()
    assert (400, True) == (status, text.startswith(BOUND.format(5)))


def test_drop_block_drops_and_reports() -> None:
    """With the setting and its beta mismatching blocks are dropped and listed, and new ones are valid."""
    one = talk(thinking=DROPPING)
    one.headers |= BINDING
    one.loop(CALLING)
    assert [] == report(one)
    one.parameters["tools"] = [WEATHER, TIME]
    expected = ("messages.1.content.0", "prefix_binding_mismatch")
    assert [expected] == report(one)
    one.reply(Step(reasoning="Rain, then.", text="Rain."))
    one.messages.append(user("And now?"))
    assert [expected] == report(one)


def test_the_rest_of_a_turn_goes_with_its_first_block() -> None:
    """A dropped block takes the later thoughts of its turn with it."""
    one = talk(thinking=DROPPING)
    one.headers |= BINDING
    one.loop(CALLING)
    second = one.reply(CALLING)
    one.messages.append(results(*calls_of(second)))
    one.parameters["system"] = "Be long."
    assert ["messages.1.content.0", "messages.3.content.0"] == [path for path, _ in report(one)]


def test_the_setting_without_its_beta_is_refused() -> None:
    """block_binding is an unknown field unless the header asks for it."""
    one = talk(thinking=DROPPING)
    one.messages = [user("hi")]
    assert (400, "thinking.adaptive.block_binding: Extra inputs are not permitted") == one.verdict()


def test_removing_the_named_block_helps() -> None:
    """The refusal asks to remove the block; without it the request is accepted, in the middle of a turn too."""
    one = talk()
    message = one.loop(CALLING)
    one.parameters["tools"] = [WEATHER, TIME]
    one.messages[1] = without(message, "thinking")
    assert (200, "") == one.verdict()


@pytest.mark.parametrize(
    ("writer", "reader", "read"),
    [
        ("claude-opus-5", "claude-fable-5-1", True),
        ("claude-opus-5-5", "claude-fable-5-1", True),
        ("claude-fable-5-1", "claude-opus-5-5", False),
        ("claude-fable-5-1", "claude-opus-5", False),
        ("claude-opus-5-5", "claude-fable-5-2", False),
        ("claude-fable-5-2", "claude-mythos-5-2", True),
        ("claude-haiku-5-5", "claude-opus-5-5", True),
        ("claude-haiku-5-5", "claude-fable-5-2", True),
        ("claude-opus-5-5", "claude-haiku-5-5", False),
        ("claude-sonnet-4-5", "claude-opus-4-6", True),
    ],
)
def test_models_read_some_of_each_others_blocks(writer: str, reader: str, read: bool) -> None:
    """What a model cannot read is dropped without an error, and reported to who asks."""
    thinking: JsonObject = {"thinking": {"type": "adaptive"}}
    config = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if writer == "claude-sonnet-4-5" else thinking
    one = two_turns(talk(writer, **config), "a")
    one.parameters |= {"model": reader, **thinking}
    assert (200, "") == one.verdict()
    assert (("a",) if read else ()) == one.persona.view(one.ask()).notes
    one.headers |= BINDING
    assert ([] if read else [("messages.1.content.0", "model_binding_mismatch")]) == report(one)


def test_other_organisations_and_end_users_are_told_apart() -> None:
    """Blocks of another organisation or another end user are dropped and reported, never refused."""
    one = two_turns(talk(metadata={"user_id": "ann"}), "a")
    one.headers |= BINDING
    assert [] == report(one)
    path = "messages.1.content.0"
    assert [(path, "end_user_binding_mismatch")] == report(one, metadata={"user_id": "bob"})
    one.headers["x-api-key"] = "other.key"
    assert [(path, "organization_binding_mismatch")] == report(one)


def test_of_several_reasons_the_first_is_reported() -> None:
    """Organisation, end user, model, prefix, in this order."""
    one = two_turns(talk("claude-fable-5-1", metadata={"user_id": "ann"}), "a")
    one.headers |= BINDING
    one.parameters |= {"thinking": DROPPING, "system": "Be long."}
    assert ["prefix_binding_mismatch"] == [reason for _, reason in report(one)]
    one.parameters["model"] = "claude-opus-5-5"
    assert ["model_binding_mismatch"] == [reason for _, reason in report(one)]
    one.parameters["metadata"] = {"user_id": "bob"}
    assert ["end_user_binding_mismatch"] == [reason for _, reason in report(one)]
    one.headers["x-api-key"] = "other.key"
    assert ["organization_binding_mismatch"] == [reason for _, reason in report(one)]


def test_an_early_account_is_told_what_would_fail_the_check_and_is_shown_all_the_same() -> None:
    """Where the check is not enforced a block of another prefix is read, each for itself, and only reported."""
    one = talk("claude-fable-5-1")
    one.headers |= {"x-api-key": "early-org.key", **BINDING}
    two_turns(one, "a", "b")
    one.parameters["system"] = "Be long."
    found = [
        {"type": "thinking_mismatch_allowed", "path": f"messages.{at}.content.0", "reason": "prefix_binding_mismatch"}
        for at in (1, 3)
    ]
    assert found == one.answer(Step(text="Well."))["input_transformations"]
    assert ("a", "b") == one.persona.view(one.ask()).notes
    asked = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}
    assert (400, True) == ((verdict := one.verdict(thinking=asked))[0], verdict[1].startswith(BOUND.format(1)))
    assert ["thinking_dropped"] * 2 == [
        as_object(entry)["type"] for entry in as_list(one.answer(thinking=DROPPING)["input_transformations"])
    ]


def test_the_latest_models_check_what_stands_before_a_block_for_every_account() -> None:
    """Fable 5.2 and Mythos 5.2 were never without the check."""
    for model in ("claude-fable-5-2", "claude-mythos-5-2"):
        one = talk(model)
        one.headers["x-api-key"] = "early-org.key"
        two_turns(one, "a")
        assert 400 == one.verdict(system="Be long.")[0]


def test_what_is_dropped_need_not_come_back() -> None:
    """A client that leaves unreadable blocks out of an open turn is not asked for them."""
    one = talk("claude-opus-5-5")
    message = one.loop(CALLING)
    one.messages[1] = without(message, "thinking")
    assert 400 == one.verdict()[0]
    one.parameters["model"] = "claude-fable-5-2"
    assert (200, "") == one.verdict()


def test_without_the_beta_nothing_is_reported() -> None:
    """The report is part of the beta."""
    one = two_turns(talk(), "a")
    assert "input_transformations" not in one.answer(Step(text="Well."))
