"""Converse: its own structure, Claude's rules in its wrapping, and the rules of the other models."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.referee.anthropic.talk import altered
from tests.referee.bedrock.talk import (
    ADAPTIVE,
    GPT,
    MANUAL,
    OPUS,
    SONNET,
    TOOLS,
    WEATHER,
    Talk,
    blocks_of,
    call,
    calls_of,
    read_frames,
    results,
    said,
    thought,
    user,
    without_reasoning,
)
from tests.referee.learning import converse_message, converse_message_of_events
from thinkback_referee import Call, Step
from thinkback_referee.anthropic import REDACTED
from thinkback_referee.bedrock import NO_REASONING, OTHER_KEY
from thinkback_referee.bedrock.render import CONTENT_TYPE
from thinkback_referee.jsons import JsonObject, as_list, as_object

CALLING = Step(reasoning="I need the weather.", tool_calls=[Call("get_weather", {"city": "Oslo"})])
# Tools of the service itself have no specification.
_SEARCH: JsonObject = {"systemTool": {"name": "nova_grounding"}}
WRAPPED = "The model returned the following errors: "
ALTERNATE = (
    "A conversation must alternate between user and assistant roles. "
    "Make sure the conversation alternates between user and assistant roles and try again."
)
PLAINS = [
    "us.amazon.nova-2-lite-v1:0",
    "us.deepseek.r1-v1:0",
    GPT,
    "qwen.qwen3-32b-v1:0",
    "moonshot.kimi-k2-thinking",
    "minimax.minimax-m2",
]


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([], "A conversation must start with a user message."),
        ([said("hi")], "A conversation must start with a user message."),
        ([user("hi"), user("again")], ALTERNATE),
        ([user("hi"), said("yo"), said("again")], ALTERNATE),
        ([{"role": "user", "content": []}], "The content field in the Message object at messages.0 is empty."),
        ([user(" ")], "The text field in the ContentBlock object at messages.0.content.0 is blank."),
        ([user({"text": "a", "cachePoint": {"type": "default"}})], "messages.0.content.0: exactly one"),
        ([user({"thinking": {}})], "messages.0.content.0: exactly one"),
        ([user("hi"), said({"reasoningContent": {}}, "yo")], "messages.1.content.0.reasoningContent: exactly one"),
        (
            [user("hi"), said(call())],
            "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1",
        ),
        ([user("hi"), said(call()), user("on")], "Expected toolResult blocks at messages.2.content"),
        ([user("hi"), said("yo"), results("a")], "The number of toolResult blocks at messages.2.content exceeds"),
        ([user("hi"), said(call()), results("tooluse_1")], "The toolConfig field must be defined when using toolUse"),
    ],
)
@pytest.mark.parametrize("model", [SONNET, GPT])
def test_a_conversation_must_be_well_formed(model: str, messages: list[JsonObject], text: str) -> None:
    """Roles, blocks, pairs and tools are checked by the service itself, for every model."""
    status, sentence = Talk(model, messages=messages).verdict()
    assert (400, True) == (status, sentence.startswith(text)), sentence


def test_unknown_fields_and_models_are_refused() -> None:
    """A stray key of the body and a model that is not served are validation errors."""
    one = Talk(messages=[user("hi")])
    assert "extraneous key [thinking]" in one.verdict(thinking={"type": "enabled"})[1]
    expected = (400, "The provided model identifier is invalid.")
    assert expected == Talk("meta.llama9", messages=[user("hi")]).verdict()
    assert expected == Talk("claude-opus-5-5", messages=[user("hi")]).verdict()
    assert expected == Talk(GPT, operation="invoke", messages=[user("hi")]).verdict()


def talk(model: str = SONNET, config: JsonObject = MANUAL, **parameters: object) -> Talk:
    return Talk(model, {**TOOLS, **config, **parameters})


@pytest.mark.parametrize(("model", "config"), [(SONNET, MANUAL), (OPUS, ADAPTIVE)])
def test_a_faithful_client_is_taken(model: str, config: JsonObject) -> None:
    """What came is accepted unchanged, and proves the replay over two turns."""
    one = talk(model, config)
    assert "still known" in one.turn("What is the weather in Oslo?")
    assert "still known" in one.turn("And in Rome?")


def test_claude_misses_and_notices_as_ever() -> None:
    """Missing, altered, misplaced and foreign reasoning has Claude's own texts, wrapped."""
    one = talk()
    message = one.loop(CALLING)
    assert (200, "") == one.verdict()
    block, tool = map(dict, blocks_of(message))
    reasoning = as_object(as_object(block["reasoningContent"])["reasoningText"])
    text, signature = str(reasoning["text"]), str(reasoning["signature"])
    wrong = [
        (without_reasoning(message), "messages.1.content.0.type: Expected `thinking`"),
        (said(thought("other", signature=signature), tool), "messages.1.content.0: `thinking` or `redacted_thinking`"),
        (said(thought(text, signature=altered(signature)), tool), "messages.1.content.0: Invalid `signature`"),
        (said(thought(text), tool), "messages.1.content.0.thinking.signature: Field required"),
    ]
    for changed, start in wrong:
        one.messages[1] = changed
        status, sentence = one.verdict()
        assert (400, True) == (status, sentence.startswith(WRAPPED + start)), sentence
    one.messages[1] = message
    one.credential = OTHER_KEY
    assert f"{WRAPPED}messages.1.content.0: Invalid `signature` in `thinking` block" == one.verdict()[1]


def test_preserved_blocks_are_bound_here_too() -> None:
    """A changed system prompt unbinds a block; the setting to drop it travels in the additional fields."""
    one = talk(OPUS, ADAPTIVE)
    one.loop(CALLING)
    one.parameters["system"] = [{"text": "Be brief."}]
    assert "The block is bound to a different conversation." in one.verdict()[1]
    config = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    beta = {"thinking": config, "anthropic_beta": ["thinking-binding-controls-2026-08-01"]}
    assert (200, "") == one.verdict(additionalModelRequestFields=beta)


def test_fable_reads_less_here() -> None:
    """Fable 5.1 reads Opus 5.5 on Claude's own host only: here the block is dropped without a word."""
    one = talk(OPUS, ADAPTIVE)
    one.messages = [user("hi")]
    one.reply(Step(reasoning="a", text="Hello."))
    one.messages.append(user("on"))
    assert ("a",) == one.persona.view(one.ask()).notes
    one.model = "us.anthropic.claude-fable-5-1-v1:0"
    assert ((200, ""), ()) == (one.verdict(), one.persona.view(one.ask()).notes)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 5}}}, "1024"),
        ({"additionalModelRequestFields": {"reasoning": "high"}}, "reasoning: Extra inputs are not permitted"),
        ({"additionalModelRequestFields": {"anthropic_beta": ["effort-2025-11-24"]}}, "Unexpected value(s)"),
        ({"outputConfig": {"effort": "high"}}, "This model does not support the effort parameter."),
        ({"inferenceConfig": {"temperature": 0.5}}, "`temperature` may only be set to 1"),
        ({"toolConfig": {"tools": [WEATHER, _SEARCH], "toolChoice": {"any": {}}}}, "tool_choice forces tool use"),
        ({"inferenceConfig": {"maxTokens": 1024}}, "`max_tokens` must be greater"),
    ],
)
def test_claudes_parameters_are_checked_in_their_wrapping(changes: JsonObject, text: str) -> None:
    """Budgets, betas, efforts, sampling and forced calls have the same rules as on Claude's own host."""
    one = talk()
    one.messages = [user("hi")]
    status, sentence = one.verdict(**changes)
    assert (400, True, True) == (status, sentence.startswith(WRAPPED), text in sentence), sentence


def test_the_other_name_of_the_thinking_object_works() -> None:
    """reasoning_config in the additional fields means thinking, as recorded."""
    fields = {"reasoning_config": {"type": "enabled", "budget_tokens": 1024}}
    one = Talk(SONNET, {"additionalModelRequestFields": fields}, messages=[user("hi")])
    assert one.persona.view(one.ask()).thinks


def test_cache_points_pass_but_not_after_reasoning() -> None:
    """A mark after a text is fine; one after reasoning marks the reasoning, which is refused."""
    point: JsonObject = {"cachePoint": {"type": "default"}}
    one = talk()
    one.messages = [user("hi", point)]
    message = one.reply(Step(reasoning="a", text="Hello."))
    one.messages.append(user("on"))
    assert (200, "") == one.verdict()
    first, second = blocks_of(message)
    one.messages[1] = said(dict(first), point, dict(second))
    assert "thinking.cache_control: Extra inputs are not permitted" in one.verdict()[1]


def test_an_empty_text_may_stand_beside_reasoning() -> None:
    """A blank text that came with reasoning goes back with it."""
    one = talk()
    one.messages = [user("hi")]
    message = one.reply(Step(reasoning="a", text="Hello."))
    first, second = blocks_of(message)
    one.messages[1] = said(dict(first), "", dict(second))
    one.messages.append(user("on"))
    assert (200, "") == one.verdict()


def test_redacted_reasoning_is_base64_and_comes_back() -> None:
    """Redacted content travels encoded once more, is accepted back, and refused once damaged."""
    one = talk()
    message = one.loop(Step(reasoning=REDACTED, tool_calls=[Call("get_weather", {"city": "Oslo"})]))
    data = str(as_object(blocks_of(message)[0]["reasoningContent"])["redactedContent"])
    assert (200, "") == one.verdict()
    for damaged in (altered(data), "%"):
        changed: JsonObject = {"reasoningContent": {"redactedContent": damaged}}
        one.messages[1] = said(changed, dict(blocks_of(message)[1]))
        assert "Invalid `data` in `redacted_thinking` block" in one.verdict()[1]


def test_results_may_be_objects_and_errors() -> None:
    """JSON results, failures and documents reach the model."""
    one = talk()
    one.messages = [user("hi", {"document": {"name": "x"}})]
    message = one.reply(CALLING)
    name = as_object(blocks_of(message)[1]["toolUse"])["toolUseId"]
    failed = {"toolUseId": name, "status": "error", "content": [{"json": {"code": 7}}, {"image": {}}]}
    one.messages.append(user({"toolResult": failed}))
    assert (200, "") == one.verdict()
    assert (("get_weather", '{"code":7}'),) == one.persona.view(one.ask()).results


@pytest.mark.parametrize("model", PLAINS)
def test_other_models_refuse_reasoning(model: str) -> None:
    """No model but Claude takes reasoning back, and none of them claims to have lost it."""
    one = Talk(model, TOOLS, returns=False)
    answer = one.turn("What is the weather in Oslo?")
    assert "lost" not in answer
    one.messages = [user("hi"), said(thought(), "yo"), user("on")]
    assert (400, NO_REASONING) == one.verdict()


@pytest.mark.parametrize(
    ("model", "fields", "status"),
    [
        (GPT, {"reasoning_effort": "high"}, 200),
        (GPT, {"reasoning_effort": "none"}, 400),
        (GPT, {"thinking": {"type": "enabled"}}, 400),
        ("qwen.qwen3-32b-v1:0", {"reasoning_config": "high"}, 200),
        ("qwen.qwen3-32b-v1:0", {"reasoning_config": "medium"}, 400),
        ("amazon.nova-2-lite-v1:0", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}, 200),
        ("amazon.nova-2-lite-v1:0", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}, 400),
        ("deepseek.r1-v1:0", {"reasoning_effort": "low"}, 400),
    ],
)
def test_other_models_have_their_own_controls(model: str, fields: JsonObject, status: int) -> None:
    """Each takes its own field and words; Nova's high effort goes without maxTokens."""
    one = Talk(model, {"inferenceConfig": {"maxTokens": 100}}, messages=[user("hi")])
    assert status == one.verdict(additionalModelRequestFields=fields)[0]


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        (GPT, ["reasoningContent", "text"]),
        ("us.deepseek.r1-v1:0", ["text", "reasoningContent"]),
        ("amazon.nova-2-lite-v1:0", ["reasoningContent", "text"]),
    ],
)
def test_other_models_answer_in_their_own_order(model: str, kinds: list[str]) -> None:
    """R1 puts its answer first; Nova hides its reasoning; nobody signs."""
    one = Talk(model, messages=[user("hi")])
    message = one.reply(Step(reasoning="why", text="Hello."))
    assert kinds == [next(iter(block)) for block in blocks_of(message)]
    shown = "[REDACTED]" if "nova" in model else "why"
    assert thought(shown) in [dict(block) for block in blocks_of(message)]


FULL = Step(
    earlier=[Step(reasoning="one two"), Step(reasoning=REDACTED, text="Let me look.")],
    reasoning="three",
    tool_calls=[Call("get_weather", {"city": "Oslo"}), Call("get_weather", {"city": "Rome"}, "tooluse_mine")],
)


@pytest.mark.parametrize(("model", "config"), [(SONNET, MANUAL), (OPUS, ADAPTIVE), (GPT, {})])
def test_a_stream_adds_up_to_the_whole_body(model: str, config: JsonObject) -> None:
    """Reasoning, redacted content, texts and calls are the same both ways; checksums are right."""
    one = talk(model, config)
    one.messages = [user("hi")]
    step = FULL if config else Step(reasoning="why", text="Let me look.", tool_calls=FULL.tool_calls)
    rendered = one.rendered(step)
    frames = read_frames(b"".join(rendered.events))
    whole = as_object(json.loads(rendered.whole))
    assert CONTENT_TYPE == rendered.content_type
    assert converse_message(whole) == converse_message_of_events(frames)
    assert ["messageStart", "messageStop", "metadata"] == [frames[0][0], frames[-2][0], frames[-1][0]]
    assert ("tool_use", whole["usage"]) == (frames[-2][1]["stopReason"], frames[-1][1]["usage"])
    assert None is converse_message_of_events(frames[:-3])


def test_streams_open_blocks_for_calls_only() -> None:
    """Reasoning and text begin with their first delta; gpt-oss begins with an empty text."""
    one = talk(GPT, {})
    one.messages = [user("hi")]
    rendered = one.rendered(Step(reasoning="why", text="Hi.", tool_calls=[Call("get_weather", {})]))
    names = [name for name, _ in read_frames(b"".join(rendered.events))]
    block = ["contentBlockDelta", "contentBlockStop"]
    expected = ["messageStart", *block * 3, "contentBlockStart", *block, "messageStop", "metadata"]
    assert expected == names


def test_refusals_are_filtered_content() -> None:
    """Converse has a word of its own for a model that refused."""
    one = Talk(messages=[user("hi")])
    assert "content_filtered" == json.loads(one.rendered(Step(refusal="No.")).whole)["stopReason"]
    assert converse_message({"message": "oops"}) is None


def test_a_scripted_refusal_of_a_carrier_is_wrapped() -> None:
    """A refusal on demand has the words of the model at hand."""
    one = talk()
    one.loop(CALLING)
    expected = f"{WRAPPED}messages.1.content.0: Invalid `signature` in `thinking` block"
    assert expected == one.persona.reject(one.ask()).message
    assert (
        NO_REASONING == Talk(GPT, messages=[user("hi")]).persona.reject(Talk(GPT, messages=[user("hi")]).ask()).message
    )
    assert list(as_list(one.messages[1]["content"]))


@given(
    chosen=st.sampled_from([(SONNET, MANUAL), (OPUS, ADAPTIVE), (GPT, {}), ("us.deepseek.r1-v1:0", {})]),
    thoughts=st.lists(st.sampled_from(["", "one", f"{REDACTED} two"]), min_size=1, max_size=4),
    called=st.booleans(),
)
def test_a_faithful_client_is_never_refused(chosen: tuple[str, JsonObject], thoughts: list[str], called: bool) -> None:
    """Whatever a model says, the same thing is accepted when it goes back; from other models without reasoning."""
    one = talk(*chosen)
    one.returns = bool(chosen[1])
    one.messages = [user("hi")]
    for reasoning in thoughts:
        made = calls_of(one.reply(Step(reasoning, "Done.", CALLING.tool_calls if called else ())))
        one.messages.append(results(*made) if made else user("on"))
    assert (200, "") == one.verdict()
