"""Each persona's own rules about reasoning and the parameters beside it, judged without a server."""

from __future__ import annotations

import pytest

from tests.referee.talk import WEATHER, Body, body, result, said, user
from thinkback_referee import Ledger, Profile, judge, profile_for

PASSED_BACK = "The `reasoning_content` in the thinking mode must be passed back to the API."
KIMI_MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {}"
V4 = ["deepseek-v4-pro", "deepseek-v4-flash", "deepseek-reasoner"]
KIMI = ["kimi-k2-thinking", "kimi-k2.6", "kimi-k3"]
GROQ_REASONING = ["openai/gpt-oss-120b", "qwen/qwen3-32b"]
OFF: Body = {"thinking": {"type": "disabled"}}
NO_FORCED_CALL = "Thinking mode does not support this tool_choice"
NAMED: Body = {"type": "function", "function": {"name": "get_weather"}}


def profile(host: str, model: str) -> Profile:
    found = profile_for(host, model)
    assert found is not None
    return found


def verdict(host: str, model: str, *messages: Body, **parameters: object) -> tuple[int, str]:
    judged = judge(profile(host, model), body(model, *messages, **parameters), Ledger())
    return judged.status, judged.message


def open_turn(**fields: object) -> list[Body]:
    return [user("hi"), said("", "c1", **fields), result("c1")]


def finished_turn(**fields: object) -> list[Body]:
    return [user("hi"), said("", "c1", reasoning_content="a"), result("c1"), said("done", **fields), user("next")]


@pytest.mark.parametrize("value", ["why", " ", ""])
def test_r1_refuses_any_returned_reasoning(value: str) -> None:
    """R1 answers 400 when an assistant message carries reasoning_content."""
    status, message = verdict("deepseek", "deepseek-r1", user("hi"), said("yo", reasoning_content=value), user("on"))
    assert (400, True) == (status, "reasoning_content" in message)


def test_r1_takes_plain_history_but_no_tools() -> None:
    """R1 accepts messages without reasoning, and refuses tools."""
    assert (200, "") == verdict("deepseek", "deepseek-r1", user("hi"), said("yo", reasoning_content=None), user("on"))
    refused = verdict("deepseek", "deepseek-r1", user("hi"), tools=[WEATHER])
    assert (400, "deepseek-r1 does not support Function Calling") == refused


@pytest.mark.parametrize("model", ["deepseek-v3.2", *V4])
@pytest.mark.parametrize("fields", [{}, {"reasoning_content": None}])
def test_deepseek_requires_reasoning_on_calls_of_the_open_turn(model: str, fields: Body) -> None:
    """A call of the open turn without its reasoning is refused with DeepSeek's text."""
    assert (400, PASSED_BACK) == verdict("deepseek", model, *open_turn(**fields))
    assert (200, "") == verdict("deepseek", model, *open_turn(reasoning_content="because"))


@pytest.mark.parametrize("placeholder", [" ", ""])
def test_deepseek_takes_a_placeholder_for_what_it_did_not_mint(placeholder: str) -> None:
    """A client-made call may carry a blank instead of reasoning."""
    assert (200, "") == verdict("deepseek", "deepseek-v4-pro", *open_turn(reasoning_content=placeholder))


def test_v32_lets_finished_turns_drop_their_reasoning() -> None:
    """After a new user message V3.2 does not ask for older reasoning, and does not mind it."""
    turn = [user("hi"), said("", "c1"), result("c1"), said("done"), user("next")]
    assert (200, "") == verdict("deepseek", "deepseek-v3.2", *turn, tools=[WEATHER])
    assert (200, "") == verdict("deepseek", "deepseek-v3.2", *finished_turn(reasoning_content="b"))


@pytest.mark.parametrize("model", V4)
def test_v4_requires_every_message_of_a_turn_with_calls(model: str) -> None:
    """In later turns V4 still wants the reasoning of a tool turn, its final answer included."""
    assert (400, PASSED_BACK) == verdict("deepseek", model, *finished_turn())
    assert (200, "") == verdict("deepseek", model, *finished_turn(reasoning_content="b"))
    older = [user("hi"), said("", "c1"), result("c1"), said("done", reasoning_content="b"), user("next")]
    assert (400, PASSED_BACK) == verdict("deepseek", model, *older)


@pytest.mark.parametrize("model", V4)
def test_v4_ignores_turns_without_calls_unless_tools_are_offered(model: str) -> None:
    """Plain turns may drop their reasoning; offering tools makes every assistant message need it."""
    history = [user("hi"), said("hello"), user("next")]
    assert (200, "") == verdict("deepseek", model, *history)
    assert (400, PASSED_BACK) == verdict("deepseek", model, *history, tools=[WEATHER])
    kept = [user("hi"), said("hello", reasoning_content=" "), user("next")]
    assert (200, "") == verdict("deepseek", model, *kept, tools=[WEATHER])


@pytest.mark.parametrize("model", ["deepseek-v3.2", *V4])
def test_deepseek_asks_for_nothing_with_thinking_disabled(model: str) -> None:
    """With thinking.type = disabled the same history without reasoning is accepted."""
    assert (200, "") == verdict("deepseek", model, *open_turn(), tools=[WEATHER], **OFF)


def test_the_chat_alias_asks_only_when_thinking_is_enabled() -> None:
    """deepseek-chat does not think by default, so it requires nothing until thinking is switched on."""
    assert (200, "") == verdict("deepseek", "deepseek-chat", *open_turn())
    assert (400, PASSED_BACK) == verdict("deepseek", "deepseek-chat", *open_turn(), thinking={"type": "enabled"})


@pytest.mark.parametrize("choice", ["required", NAMED])
def test_deepseek_refuses_a_forced_call_while_thinking(choice: object) -> None:
    """tool_choice required or named gets the recorded 400 in thinking mode, and passes without it."""
    forced: Body = {"tools": [WEATHER], "tool_choice": choice}
    assert (400, NO_FORCED_CALL) == verdict("deepseek", "deepseek-v4-flash", user("hi"), **forced)
    assert (200, "") == verdict("deepseek", "deepseek-v4-flash", user("hi"), **forced, **OFF)
    assert (200, "") == verdict("deepseek", "deepseek-v4-flash", user("hi"), tools=[WEATHER], tool_choice="auto")


def test_a_thinking_switch_needs_a_known_type() -> None:
    """A thinking object without a type the provider knows is refused."""
    status, _ = verdict("deepseek", "deepseek-v4-pro", user("hi"), thinking={"type": "yes"})
    assert 400 == status


def test_deepseek_errors_have_its_shape() -> None:
    """The body of a refusal is the one recorded from DeepSeek."""
    judged = judge(profile("deepseek", "deepseek-v4-pro"), body("deepseek-v4-pro", *open_turn()), Ledger())
    kind = "invalid_request_error"
    assert {"error": {"message": PASSED_BACK, "type": kind, "param": None, "code": kind}} == judged.body
    assert "missing at messages[1]" == judged.reason


@pytest.mark.parametrize("model", KIMI)
@pytest.mark.parametrize("fields", [{}, {"reasoning_content": None}, {"reasoning_content": ""}])
def test_kimi_requires_reasoning_on_every_call_with_its_index(model: str, fields: Body) -> None:
    """Any call without reasoning is refused, also in finished turns, and the text names the message."""
    assert (400, KIMI_MISSING.format(1)) == verdict("kimi", model, *open_turn(**fields))
    later = [*open_turn(reasoning_content="a"), said("done"), user("next"), said("", "c2", **fields), result("c2")]
    assert (400, KIMI_MISSING.format(5)) == verdict("kimi", model, *later)


@pytest.mark.parametrize("model", KIMI)
def test_kimi_takes_a_space_and_leaves_plain_answers_alone(model: str) -> None:
    """A space stands in for foreign reasoning, and messages without calls need none."""
    assert (200, "") == verdict("kimi", model, *open_turn(reasoning_content=" "), said("done"), user("next"))


def test_only_k26_can_switch_thinking_off() -> None:
    """thinking disabled lifts the rule for K2.6, not for the always-thinking model; K3 takes no such parameter."""
    assert (200, "") == verdict("kimi", "kimi-k2.6", *open_turn(), **OFF)
    assert (400, KIMI_MISSING.format(1)) == verdict("kimi", "kimi-k2-thinking", *open_turn(), **OFF)
    assert (400, "unknown parameter: thinking") == verdict("kimi", "kimi-k3", user("hi"), **OFF)


@pytest.mark.parametrize("model", KIMI)
def test_kimi_pins_the_temperature(model: str) -> None:
    """Any temperature but 1 is refused with Kimi's text."""
    assert (200, "") == verdict("kimi", model, user("hi"), temperature=1)
    pinned = (400, "invalid temperature: only 1 is allowed for this model")
    assert pinned == verdict("kimi", model, user("hi"), temperature=0.6)


@pytest.mark.parametrize(
    ("model", "choice", "kind"),
    [("kimi-k3", NAMED, "specified"), ("kimi-k2.6", NAMED, "specified"), ("kimi-k2.6", "required", "required")],
)
def test_kimi_refuses_a_forced_call_while_thinking(model: str, choice: object, kind: str) -> None:
    """A forced call is refused with the kind of choice named."""
    expected = (400, f"tool_choice '{kind}' is incompatible with thinking enabled")
    assert expected == verdict("kimi", model, user("hi"), tools=[WEATHER], tool_choice=choice)


def test_an_effort_must_be_a_bare_string() -> None:
    """An object as reasoning_effort is refused."""
    status, _ = verdict("kimi", "kimi-k3", user("hi"), reasoning_effort={"level": "high"})
    assert 400 == status


def unsupported(name: str) -> str:
    return (
        "'messages.1' : for 'role:assistant' the following must be satisfied"
        f"[('messages.1' : property '{name}' is unsupported)]"
    )


@pytest.mark.parametrize("model", GROQ_REASONING)
def test_groq_takes_reasoning_and_refuses_the_other_name(model: str) -> None:
    """Reasoning models accept `reasoning`, need none, and refuse `reasoning_content` with Groq's text."""
    assert (200, "") == verdict("groq", model, *open_turn(reasoning="why"))
    assert (200, "") == verdict("groq", model, *open_turn())
    assert (400, unsupported("reasoning_content")) == verdict("groq", model, *open_turn(reasoning_content="why"))


def test_a_plain_groq_model_refuses_both_names() -> None:
    """A model that does not reason refuses `reasoning` in the same words."""
    for name in ("reasoning", "reasoning_content"):
        refused = verdict("groq", "llama-3.3-70b", user("hi"), said("yo", **{name: "why"}), user("on"))
        assert (400, unsupported(name)) == refused


def test_groq_keeps_raw_reasoning_and_tools_apart() -> None:
    """reasoning_format raw goes neither with tools nor with include_reasoning."""
    raw: Body = {"reasoning_format": "raw"}
    assert (200, "") == verdict("groq", "qwen/qwen3-32b", user("hi"), **raw)
    assert 400 == verdict("groq", "qwen/qwen3-32b", user("hi"), tools=[WEATHER], **raw)[0]
    assert 400 == verdict("groq", "qwen/qwen3-32b", user("hi"), include_reasoning=True, **raw)[0]


def test_mistral_refuses_fields_it_does_not_know() -> None:
    """reasoning_content gets Mistral's 422 with the place of the field."""
    model = "mistral-small-latest"
    judged = judge(
        profile("mistral", model), body(model, user("hi"), said("yo", reasoning_content="why"), user("on")), Ledger()
    )
    detail = {
        "type": "extra_forbidden",
        "loc": ["body", "messages", 1, "assistant", "reasoning_content"],
        "msg": "Extra inputs are not permitted",
        "input": "why",
    }
    assert (422, {"detail": [detail]}) == (judged.status, judged.body)
    assert "Extra inputs are not permitted" == judged.message


def test_mistral_takes_thinking_chunks_beside_something_else() -> None:
    """Thinking chunks are accepted with a text beside them, alone they are refused."""
    chunk = {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}
    both: Body = {"role": "assistant", "content": [chunk, {"type": "text", "text": "yo"}]}
    alone: Body = {"role": "assistant", "content": [chunk]}
    assert (200, "") == verdict("mistral", "magistral-medium-latest", user("hi"), both, user("on"))
    assert 400 == verdict("mistral", "magistral-medium-latest", user("hi"), alone, user("on"))[0]


def test_mistral_lists_the_efforts_it_takes() -> None:
    """Another effort than high or none is refused with the list."""
    expected = "reasoning_effort low is not supported for this model, supported values: [high, none]"
    assert (400, expected) == verdict("mistral", "mistral-small-latest", user("hi"), reasoning_effort="low")
