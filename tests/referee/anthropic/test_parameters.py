"""What each Claude takes beside the messages: types of thinking, budgets, efforts, forced calls, sampling."""

from __future__ import annotations

import pytest

from tests.referee.anthropic.talk import ADAPTIVE, MANUAL, OFF, TIME, WEATHER, Talk, call, results, said, user
from thinkback_referee.anthropic import ANTHROPIC, CLEARING_BETA, INTERLEAVED_BETA, UPDATES_BETA
from thinkback_referee.anthropic.profiles import MODELS, VERTEX, Host, models_of, profile_for
from thinkback_referee.jsons import JsonObject
from thinkback_referee.persona import Persona

OLD = ["claude-3-7-sonnet-20250219", "claude-sonnet-4-0", "claude-opus-4-5", "claude-haiku-4-5-20251001"]
MIXED = ["claude-opus-4-6", "claude-sonnet-4-6"]
NEW = ["claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5"]
ALWAYS = ["claude-opus-5-5", "claude-fable-5", "claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-2"]
USE_ADAPTIVE = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
FORCED = "Thinking may not be enabled when tool_choice forces tool use."
NEVER_FORCED = "tool_choice forces tool use is not compatible with this model"
PINNED = "`temperature` may only be set to 1 when thinking is enabled"


def verdict(model: str, *betas: str, **parameters: object) -> tuple[int, str]:
    talk = Talk(Persona(ANTHROPIC), {"model": model, "max_tokens": 4096}, messages=[user("hi")])
    talk.headers["anthropic-beta"] = ",".join(betas)
    return talk.verdict(**parameters)


@pytest.mark.parametrize("model", [*OLD, *MIXED])
def test_older_models_take_a_budget(model: str) -> None:
    """Manual thinking is accepted up to 4.6."""
    assert (200, "") == verdict(model, **MANUAL)
    assert (200, "") == verdict(model, **OFF)


@pytest.mark.parametrize("model", OLD)
def test_older_models_know_no_adaptive_thinking(model: str) -> None:
    """Adaptive thinking is refused before 4.6."""
    assert (400, "adaptive thinking is not supported on this model") == verdict(model, **ADAPTIVE)


@pytest.mark.parametrize("model", [*NEW, *ALWAYS])
def test_newer_models_refuse_a_budget(model: str) -> None:
    """Manual thinking is refused from 4.7 on, with the advice to be adaptive."""
    expected = (400, f'"thinking.type.enabled" is not supported for this model. {USE_ADAPTIVE}')
    assert expected == verdict(model, **MANUAL)
    assert (200, "") == verdict(model, **ADAPTIVE)


@pytest.mark.parametrize("model", ALWAYS)
def test_always_thinking_models_cannot_be_switched_off(model: str) -> None:
    """Models that always think refuse disabled, and take a request that says nothing."""
    expected = (400, f'"thinking.type.disabled" is not supported for this model. {USE_ADAPTIVE}')
    assert expected == verdict(model, **OFF)
    assert (200, "") == verdict(model)


def test_sonnet_55_is_told_of_its_own_switch() -> None:
    """Sonnet 5.5 refuses disabled, takes between_tools, and caps the effort with it."""
    status, text = verdict("claude-sonnet-5-5", **OFF)
    assert (400, True) == (status, text.endswith('send "thinking": {"type": "between_tools"}.'))
    between: JsonObject = {"thinking": {"type": "between_tools"}}
    assert (200, "") == verdict("claude-sonnet-5-5", **between, output_config={"effort": "high"})
    assert 400 == verdict("claude-sonnet-5-5", **between, output_config={"effort": "max"})[0]
    assert 400 == verdict("claude-opus-5", **between)[0]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"type": "enabled", "budget_tokens": 1023}, "Input should be greater than or equal to 1024"),
        ({"type": "enabled", "budget_tokens": 4096}, "`max_tokens` must be greater than `thinking.budget_tokens`"),
        ({"type": "enabled"}, "thinking.enabled.budget_tokens: Field required"),
        ({"type": "on"}, "thinking: Input tag 'on' found using 'type'"),
        (
            {"type": "disabled", "budget_tokens": 2000},
            "thinking.disabled.budget_tokens: Extra inputs are not permitted",
        ),
        ({"type": "enabled", "budget_tokens": 2000, "display": "loud"}, "thinking.enabled.display: Input should be"),
        ({"type": "enabled", "budget_tokens": 2000, "display": "updates"}, "thinking.enabled.display"),
        ({"type": "enabled", "budget_tokens": 2000, "block_binding": {}}, "block_binding: Extra inputs"),
    ],
)
def test_a_thinking_object_must_be_right(config: JsonObject, text: str) -> None:
    """Budgets, tags, displays and misplaced fields of the thinking object are refused with their place."""
    status, said = verdict("claude-sonnet-4-5", thinking=config)
    assert (400, True) == (status, text in said)


def test_format_of_the_output_had_another_name() -> None:
    """``output_format`` is known with its beta alone."""
    shape: JsonObject = {"output_format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert (200, "") == verdict("claude-sonnet-4-5", "structured-outputs-2025-11-13", **shape)
    assert (400, "output_format: Extra inputs are not permitted") == verdict("claude-sonnet-4-5", **shape)


@pytest.mark.parametrize("beta", ["mid-conversation-output-config-2026-07-01", "per-turn-control-2026-07-01"])
def test_a_message_has_an_effort_of_its_own_with_its_beta_alone(beta: str) -> None:
    """``output_config`` of a message, as Claude Code sends it on its system messages."""
    turn: JsonObject = {
        "messages": [user("hi"), {"role": "system", "content": "x", "output_config": {"effort": "low"}}]
    }
    assert (200, "") == verdict("claude-opus-5-5", beta, **turn)
    empty: JsonObject = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    assert (200, "") == verdict("claude-opus-5-5", beta, messages=[user("hi"), empty, user("and?")])
    assert (400, "messages.1.output_config: Extra inputs are not permitted") == verdict("claude-opus-5-5", **turn)


def test_betas_open_further_values() -> None:
    """The display `updates` needs its beta, an interleaved budget may exceed max_tokens."""
    assert (200, "") == verdict("claude-opus-5-5", UPDATES_BETA, thinking={"type": "adaptive", "display": "updates"})
    large: JsonObject = {"thinking": {"type": "enabled", "budget_tokens": 9000}, "tools": [WEATHER]}
    assert 400 == verdict("claude-sonnet-4-5", **large)[0]
    assert (200, "") == verdict("claude-sonnet-4-5", INTERLEAVED_BETA, **large)


@pytest.mark.parametrize(
    ("beta", "field"),
    [
        ("message-threads-2026-08-12", {"thread": {"type": "create"}}),
        ("message-threads-2026-08-12", {"thread": {"type": "continue", "previous_message_id": "msg_1"}}),
        ("compact-2026-09-04", {"compaction": {"type": "summarize"}}),
        ("server-side-fallback-2026-07-01", {"fallbacks": "default"}),
    ],
)
def test_state_at_the_service_needs_its_beta(beta: str, field: JsonObject) -> None:
    """Threads, compaction and fallbacks are fields with their beta alone."""
    (name,) = field
    assert (200, "") == verdict("claude-opus-5-5", beta, **field)
    assert (400, f"{name}: Extra inputs are not permitted") == verdict("claude-opus-5-5", **field)


def test_fields_of_newer_packages_are_known() -> None:
    """Diagnostics, a user profile and a billing policy change no answer; a thread is created or continued."""
    more: JsonObject = {
        "diagnostics": {"previous_message_id": None},
        "user_profile_id": "up_1",
        "billing_policy": {"type": "billing_policy", "bill_to": "self"},
    }
    assert (200, "") == verdict("claude-opus-5-5", **more)
    beta = "message-threads-2026-08-12"
    assert 400 == verdict("claude-opus-5-5", beta, thread={"type": "fork"})[0]
    nameless = verdict("claude-opus-5-5", beta, thread={"type": "continue"})
    assert (400, "thread.previous_message_id: Field required") == nameless
    both: JsonObject = {"compaction": {"type": "summarize"}, "context_management": {"edits": []}}
    betas = "compact-2026-09-04,context-management-2025-06-27"
    assert (400, "context_management: Extra inputs are not permitted") == verdict("claude-opus-5-5", betas, **both)


def test_an_unknown_binding_behaviour_is_refused() -> None:
    """Only error and drop_block are known."""
    config = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "ignore"}}
    status, text = verdict("claude-opus-5-5", "thinking-binding-controls-2026-08-01", thinking=config)
    assert (400, True) == (status, "prefix_mismatch_behavior: Input should be 'error' or 'drop_block'" in text)


@pytest.mark.parametrize(
    ("model", "effort", "text"),
    [
        ("claude-opus-4-6", "max", ""),
        ("claude-opus-4-6", "xhigh", "Supported levels: high, low, max, medium."),
        ("claude-opus-4-7", "xhigh", ""),
        ("claude-opus-4-5", "high", ""),
        ("claude-sonnet-4-5", "high", "This model does not support the effort parameter."),
        ("claude-opus-5", "huge", "output_config.effort: Input should be 'low'"),
    ],
)
def test_efforts_are_checked_by_model(model: str, effort: str, text: str) -> None:
    """Each model takes its own levels, and names them."""
    status, said = verdict(model, output_config={"effort": effort})
    assert (400 if text else 200, True) == (status, text in said)


def test_opus_5_caps_the_effort_without_thinking() -> None:
    """With thinking disabled the two highest levels are refused."""
    assert 400 == verdict("claude-opus-5", **OFF, output_config={"effort": "xhigh"})[0]
    assert (200, "") == verdict("claude-opus-5", **ADAPTIVE, output_config={"effort": "xhigh"})


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "get_weather"}])
def test_forced_calls_and_thinking_exclude_each_other(choice: JsonObject) -> None:
    """A forced call is refused beside a budget, and by the models of preserved thinking in their own words."""
    forced: JsonObject = {"tools": [WEATHER], "tool_choice": choice}
    assert (400, FORCED) == verdict("claude-sonnet-4-5", **forced, **MANUAL)
    for model in ("claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-haiku-5-5"):
        assert (200, "") == verdict(model, **forced, **ADAPTIVE)
    assert (200, "") == verdict("claude-fable-5", **forced)
    assert (200, "") == verdict("claude-sonnet-4-5", **forced)
    for model in {*ALWAYS, "claude-sonnet-5-5"} - {"claude-fable-5"}:
        assert (400, NEVER_FORCED) == verdict(model, **forced)
    assert (200, "") == verdict("claude-haiku-5-5", **forced, **OFF)


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"type": "must"}, "tool_choice: Input tag 'must'"),
        ({"type": "tool", "name": "get_time"}, "Tool 'get_time' not found in provided tools"),
    ],
)
def test_a_choice_must_name_something(choice: JsonObject, text: str) -> None:
    """Unknown kinds of choice and unknown tools are refused."""
    status, said = verdict("claude-sonnet-4-5", tools=[WEATHER], tool_choice=choice)
    assert (400, True) == (status, text in said)


def test_a_choice_needs_tools() -> None:
    """A choice without tools is refused."""
    expected = (400, "tool_choice may only be specified while providing tools")
    assert expected == verdict("claude-sonnet-4-5", tool_choice={"type": "auto"})


def test_temperature_is_pinned_while_thinking() -> None:
    """Older models want 1 while thinking; newer ones word it otherwise, and take no sampling without thinking."""
    assert (400, PINNED) == verdict("claude-sonnet-4-5", temperature=0.5, **MANUAL)
    assert (200, "") == verdict("claude-sonnet-4-5", temperature=1.0, **MANUAL)
    assert (200, "") == verdict("claude-sonnet-4-5", temperature=0.5)
    assert (400, f"{PINNED} or in adaptive mode") == verdict("claude-opus-4-8", temperature=0, **ADAPTIVE)
    assert (400, "`temperature` is deprecated for this model") == verdict("claude-opus-4-8", temperature=1)
    assert (400, "`top_p` is deprecated for this model") == verdict("claude-opus-5-5", top_p=1)


@pytest.mark.parametrize(("sampling", "status"), [({"top_p": 0.9}, 400), ({"top_p": 0.95}, 200), ({"top_k": 5}, 400)])
def test_other_sampling_is_limited_while_thinking(sampling: JsonObject, status: int) -> None:
    """top_p must be near 1 and top_k absent."""
    assert status == verdict("claude-sonnet-4-5", **sampling, **MANUAL)[0]


def test_edits_need_their_beta_order_and_thinking() -> None:
    """Clearing thoughts needs the beta, comes first among the edits, and is for requests that think."""
    clear: JsonObject = {"type": "clear_thinking_20251015"}
    edits: JsonObject = {"context_management": {"edits": [clear, {"type": "clear_tool_uses_20250919"}]}}
    assert (400, "context_management: Extra inputs are not permitted") == verdict("claude-opus-5", **edits)
    assert (200, "") == verdict("claude-opus-5", CLEARING_BETA, **edits)
    assert 400 == verdict("claude-opus-5", CLEARING_BETA, **edits, **OFF)[0]
    swapped: JsonObject = {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}, clear]}}
    status, text = verdict("claude-opus-5", CLEARING_BETA, **swapped)
    assert (400, True) == (status, "clear_thinking_20251015 must be listed first" in text)


def test_only_some_models_take_late_system_messages() -> None:
    """A message with the role system is accepted after the user by the newest models, and refused by others."""
    late = [user("hi"), {"role": "system", "content": "Be brief."}]
    assert (200, "") == verdict("claude-opus-5-5", messages=late)
    assert (200, "") == verdict("claude-opus-4-8", messages=late)
    status, text = verdict("claude-sonnet-4-6", messages=late)
    assert (400, True) == (status, 'Unexpected role "system"' in text)


def test_only_older_models_take_a_prefill() -> None:
    """A last message by the assistant is continued by older models without thinking, and refused by newer ones."""
    prefilled = [user("hi"), said("Hello")]
    assert (200, "") == verdict("claude-sonnet-4-5", messages=prefilled)
    status, text = verdict("claude-opus-5-5", messages=prefilled)
    assert (400, True) == (status, "must end with a user message" in text)
    assert "Expected `thinking`" in verdict("claude-sonnet-4-5", messages=prefilled, **MANUAL)[1]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("claude-opus-4-0", "claude-opus-4"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
    ],
)
def test_names_with_dates_regions_and_versions_find_their_row(name: str, row: str) -> None:
    """The decorations of a model name do not matter."""
    found = profile_for(VERTEX, name)
    assert found is MODELS[row]


def test_an_unknown_model_has_no_row() -> None:
    """Only listed models are played."""
    assert profile_for(VERTEX, "claude-2-1") is None
    assert set(MODELS) == set(models_of(Host("any")))
    assert (404, "model: claude-2-1") == verdict("claude-2-1")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"max_tokens": 0}, "max_tokens: Input should be greater"),
        ({"max_tokens": True}, "max_tokens: Input should be greater"),
        ({"messages": None}, "messages: Field required"),
        ({"messages": "hi"}, "messages: Input should be a valid list"),
        ({"messages": []}, "messages: at least one message is required"),
        ({"stream": "yes"}, "stream: Input should be a valid boolean"),
        ({"reasoning_effort": "low"}, "reasoning_effort: Extra inputs are not permitted"),
        ({"system": 1}, "system: Input should be a valid string or list"),
        ({"system": [{"type": "text", "text": ""}]}, "system: text content blocks must be non-empty"),
        ({"tools": [{"name": "x"}]}, "tools.0.custom.input_schema: Field required"),
        ({"tools": [{"input_schema": {}}]}, "tools.0.custom.name: Field required"),
        ({"tools": [WEATHER, TIME, WEATHER]}, "tools: Tool names must be unique."),
        ({"messages": [said("hi")]}, 'messages: first message must use the "user" role'),
        ({"messages": [{"role": "bot", "content": "x"}]}, "messages.0.role: Input should be 'user' or 'assistant'"),
        ({"messages": [{**user("hi"), "name": "x"}]}, "messages.0.name: Extra inputs are not permitted"),
        ({"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages.0.content: Input should be a valid list"),
        ({"messages": [user("")]}, "messages.0: all messages must have non-empty content"),
        ({"messages": [user("hi"), said(call()), results("toolu_1")]}, "must define tools"),
    ],
)
def test_a_body_must_be_well_formed(changes: JsonObject, text: str) -> None:
    """Missing, wrong and unknown fields of the body are refused with their place."""
    body = {"model": "claude-sonnet-4-5", "max_tokens": 4096, "messages": [user("hi")], **changes}
    talk = Talk(Persona(ANTHROPIC), {})
    asked = talk.asked({name: value for name, value in body.items() if value is not None})
    judged = talk.persona.judge(asked)
    assert (400, True) == (judged.status, text in judged.message), judged.message
