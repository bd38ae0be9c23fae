"""What the next request says at endpoints and models whose providers changed what they take, as a program meets it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from thinkback.errors import ProviderError, SettingError
from thinkback.model.target import lookup
from thinkback.rules import load_rulebook
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.turn.plan import Plan

ADAPTIVE = {"type": "adaptive", "display": "summarized"}
UPDATES_BETA = "thinking-display-updates-2026-08-18"


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: sunny"


def begun(store: SessionStore, endpoint: str, model: str) -> Session:
    """A new session there; a place without an address of its own gets one."""
    address = "" if load_rulebook().endpoint(endpoint).base_url else "https://x.example/v1"
    name = f"session {len(store.sessions())}"
    return store.session(name, endpoint=endpoint, model=model, api_key="k", base_url=address)


def plan(store: SessionStore, endpoint: str, model: str, settings: dict[str, object], **options: Any) -> Plan:
    """The first request of a new session there."""
    return begun(store, endpoint, model).wire.plan("Hello?", settings=settings, **options)


def body(planned: Plan) -> dict[str, Any]:
    """The request as the provider reads it."""
    read: dict[str, Any] = json.loads(bytes(planned))
    return read


@pytest.mark.filterwarnings("ignore:reasoning.effort = none is not sent:UserWarning")
@pytest.mark.filterwarnings("ignore:reasoning.enabled = false is not sent:UserWarning")
@pytest.mark.parametrize(
    ("endpoint", "model", "settings", "expected"),
    [
        # chat completions of OpenAI refuse max on every model
        ("openai-chat", "gpt-6-sol", {"reasoning.effort": "max"}, {"reasoning_effort": "xhigh"}),
        ("openai", "gpt-6-sol", {"reasoning.effort": "max"}, {"reasoning.effort": "max"}),
        # models of which it is not known whether they take none
        ("openai", "gpt-6.2-astra", {"reasoning.effort": "none"}, {"reasoning.effort": None}),
        ("openai", "gpt-6-cyber", {"reasoning.enabled": False}, {"reasoning.effort": None}),
        ("openai", "gpt-6-sol", {"reasoning.enabled": False}, {"reasoning.effort": "none"}),
        ("xai", "grok-4.7", {"reasoning.effort": "xhigh"}, {"reasoning.effort": "xhigh"}),
        ("xai", "grok-4.6", {"reasoning.effort": "xhigh"}, {"reasoning.effort": "xhigh"}),
        ("xai", "grok-4.3", {"reasoning.effort": "xhigh"}, {"reasoning.effort": "xhigh"}),
        # names that lead to Grok 4.3
        ("xai", "grok-3", {"reasoning.effort": "low"}, {"reasoning.effort": "low"}),
        ("xai-chat", "grok-4-fast-reasoning", {"reasoning.enabled": False}, {"reasoning_effort": "none"}),
        ("xai", "grok-3-mini", {"reasoning.effort": "none"}, {"reasoning.effort": "none"}),
        ("anthropic", "claude-haiku-5-5", {"reasoning.effort": "none"}, {"thinking.type": "disabled"}),
        ("anthropic", "claude-sonnet-5-5", {"reasoning.effort": "none"}, {"thinking.type": "between_tools"}),
        (
            "bedrock",
            "us.anthropic.claude-haiku-5-5",
            {"reasoning.effort": "none"},
            {"additionalModelRequestFields.thinking": {"type": "disabled"}},
        ),
        (
            "bedrock",
            "us.anthropic.claude-sonnet-5-5",
            {"reasoning.effort": "none"},
            {"additionalModelRequestFields.thinking": {"type": "between_tools"}},
        ),
        ("kimi", "kimi-k2.6", {"reasoning.effort": "max"}, {"reasoning_effort": "max"}),
        ("kimi", "kimi-k2.6", {"reasoning.effort": "none"}, {"thinking.type": "disabled", "reasoning_effort": None}),
        ("kimi", "kimi-k2.7-code", {"reasoning.enabled": False}, {"thinking": None, "reasoning_effort": None}),
        ("kimi", "kimi-k3", {"reasoning.effort": "none"}, {"reasoning_effort": None}),
        (
            "vertex",
            "gemini-3.1-pro-preview",
            {"reasoning.enabled": False},
            {"generationConfig.thinkingConfig.thinkingBudget": 0},
        ),
        (
            "gemini",
            "gemini-3.1-pro-preview",
            {"reasoning.enabled": False},
            {"generationConfig.thinkingConfig.thinkingBudget": None},
        ),
        # the provider counts xhigh as high
        ("deepseek", "deepseek-v4-pro", {"reasoning.effort": "xhigh"}, {"reasoning_effort": "high"}),
        ("deepseek", "deepseek-v4-pro", {"reasoning.effort": "max"}, {"reasoning_effort": "max"}),
        ("meta", "muse-spark-1.3", {"reasoning.effort": "none"}, {"reasoning.effort": None}),
        ("meta", "muse-spark-1.3", {}, {"include": ["reasoning.encrypted_content"]}),
        ("copilot", "gpt-5.4", {}, {"include": None, "store": False}),
        ("mistral", "zai-glm-5-3", {"reasoning.effort": "max"}, {"reasoning_effort": "max"}),
        ("xiaomi-mimo", "mimo-v2.6-pro", {"reasoning.enabled": False}, {"thinking.type": "disabled"}),
        ("doubao", "doubao-seed-2-1-pro-260915", {"reasoning.effort": "low"}, {"reasoning_effort": "low"}),
        ("opencode-zen", "deepseek-v4-pro", {"reasoning.enabled": False}, {"thinking.type": "disabled"}),
        # hosts of open models take the words of the models' makers
        ("opencode-zen", "kimi-k3", {"reasoning.effort": "low"}, {"reasoning_effort": "low"}),
        ("opencode-zen-anthropic", "claude-opus-5-5", {"reasoning.effort": "xhigh"}, {"output_config.effort": "xhigh"}),
        ("opencode-zen-anthropic", "qwen3.8-flash", {"reasoning.effort": "xhigh"}, {"output_config.effort": "xhigh"}),
        ("opencode-zen-responses", "grok-4.7", {"reasoning.effort": "xhigh"}, {"reasoning.effort": "xhigh"}),
        (
            "opencode-zen-gemini",
            "gemini-4-argon",
            {"reasoning.effort": "low"},
            {"generationConfig.thinkingConfig.thinkingLevel": "LOW"},
        ),
        ("huggingface", "zai-org/GLM-5.3", {"reasoning.effort": "max"}, {"reasoning_effort": "max"}),
        ("qwen", "kimi-k3", {"reasoning.effort": "low"}, {"reasoning_effort": "low"}),
        ("nvidia-nim", "deepseek-ai/deepseek-v4.1-flash", {"reasoning.effort": "max"}, {"reasoning_effort": "max"}),
        ("minimax-anthropic", "MiniMax-M3.1-Flash", {"reasoning.effort": "max"}, {"output_config.effort": "max"}),
        ("fireworks", "accounts/fireworks/models/glm-5p3", {"reasoning.effort": "max"}, {"reasoning_effort": "max"}),
        (
            "fireworks-anthropic",
            "accounts/fireworks/models/muse-spark-open",
            {"reasoning.effort": "max"},
            {"thinking.type": "adaptive", "output_config.effort": "xhigh"},
        ),
        ("baseten", "moonshotai/Kimi-K3", {"reasoning.effort": "max"}, {"reasoning_effort": "max"}),
        ("mistral", "mistral-large-4", {"reasoning.effort": "medium"}, {"reasoning_effort": "medium"}),
        ("mistral", "mistral-large-4", {"reasoning.effort": "none"}, {"reasoning_effort": None}),
        ("openai", "gpt-daybreak-red-latest", {"reasoning.effort": "max"}, {"reasoning.effort": "max"}),
        ("openai", "gpt-5.6-cyber", {"reasoning.effort": "none"}, {"reasoning.effort": None}),
        ("zai", "glm-5.2", {"reasoning.effort": "low"}, {"reasoning_effort": "high"}),
        ("meta", "muse-spark-1.3-contributor", {"reasoning.effort": "max"}, {"reasoning.effort": "xhigh"}),
        ("meta-anthropic", "muse-spark-1.3", {}, {"thinking.type": "adaptive"}),
        ("kimi-responses", "kimi-k3", {"reasoning.effort": "max"}, {"reasoning.effort": "max", "store": False}),
        ("openrouter", "openai/gpt-5.6-sol-pro", {"reasoning.effort": "low"}, {"reasoning.effort": "low"}),
    ],
)
def test_what_is_sent(
    store: SessionStore, endpoint: str, model: str, settings: dict[str, object], expected: dict[str, object]
) -> None:
    """Each setting goes out in words that the provider is known to take now."""
    sent = body(plan(store, endpoint, model, settings))
    assert expected == {path: lookup(sent, path) for path in expected}


def test_what_is_sent_in_place_of_another_word_is_told(store: SessionStore) -> None:
    """An effort that the provider counts as another one is reported with the word that went out."""
    planned = plan(store, "deepseek", "deepseek-v4-pro", {"reasoning.effort": "xhigh"})
    assert [("represented", "said as reasoning_effort=high")] == [(it.state, it.reason) for it in planned.dropped]


ANSWERED: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "stop_reason": "end_turn",
    "content": [
        {"type": "thinking", "thinking": "A greeting.", "signature": "EqQBCkYI"},
        {"type": "text", "text": "Hi."},
    ],
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
CONVERSED: dict[str, Any] = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "A greeting.", "signature": "EqQBCkYI"}}},
                {"text": "Hi."},
            ],
        }
    },
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8},
}
HOSTS_OF_CLAUDE = {
    "anthropic": "{}",
    "vertex-claude": "{}",
    "bedrock-claude": "us.anthropic.{}-v1:0",
    "bedrock": "us.anthropic.{}-v1:0",
}


def as_converse(params: dict[str, Any], key: str) -> tuple[dict[str, Any], str]:
    """Parameters of Messages, and the name of one of them, as Converse has them."""
    if "tool_choice" in params:
        forced: dict[str, Any] = {"toolConfig": {"toolChoice": {"any": {}}}}
        rest = {name: value for name, value in params.items() if name != "tool_choice"}
        return forced | ({"additionalModelRequestFields": rest} if rest else {}), key and "toolConfig.toolChoice.any"
    return {"additionalModelRequestFields": params}, key and f"additionalModelRequestFields.{key}"


@pytest.mark.parametrize(
    ("model", "params", "refused"),
    [
        ("claude-fable-5", {"tool_choice": {"type": "any"}}, ""),
        ("claude-mythos-5", {"tool_choice": {"type": "any"}}, ""),
        ("claude-mythos-preview", {"tool_choice": {"type": "any"}}, ""),
        ("claude-opus-5", {"tool_choice": {"type": "any"}, "thinking": {"type": "adaptive"}}, ""),
        ("claude-opus-4-6", {"tool_choice": {"type": "any"}, "thinking": {"type": "adaptive"}}, ""),
        ("claude-haiku-5-5", {"tool_choice": {"type": "any"}}, ""),
        (
            "claude-opus-4-6",
            {"tool_choice": {"type": "any"}, "thinking": {"type": "enabled", "budget_tokens": 2000}},
            "tool_choice.type",
        ),
        ("claude-fable-5-1", {"tool_choice": {"type": "any"}}, "tool_choice.type"),
        ("claude-mythos-5-2", {"tool_choice": {"type": "any"}}, "tool_choice.type"),
        ("claude-opus-5-5", {"tool_choice": {"type": "any"}}, "tool_choice.type"),
        ("claude-sonnet-5-5", {"tool_choice": {"type": "any"}}, "tool_choice.type"),
        (
            "claude-sonnet-5-5",
            {"thinking": {"type": "between_tools"}, "output_config": {"effort": "xhigh"}},
            "output_config.effort",
        ),
        ("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}, "output_config": {"effort": "high"}}, ""),
        ("claude-sonnet-5-5", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}, ""),
        (
            "claude-haiku-5-5",
            {"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}},
            "output_config.effort",
        ),
        ("claude-haiku-5-5", {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}, ""),
        (
            "claude-opus-5",
            {"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}},
            "output_config.effort",
        ),
        ("claude-opus-5-5", {"thinking": {"type": "disabled"}}, "thinking.type"),
    ],
)
def test_what_claude_refuses_is_refused_before_the_network(
    store: SessionStore, model: str, params: dict[str, Any], refused: str
) -> None:
    """A parameter is refused here exactly where the model is known to refuse it, at whichever host it is asked."""
    for endpoint, name in HOSTS_OF_CLAUDE.items():
        said, key = (as_converse(params, refused)) if endpoint == "bedrock" else (params, refused)
        session = begun(store, endpoint, name.format(model))
        if not refused:
            sent = body(session.wire.plan("Hello?", params=said, tools=[get_weather]))
            assert said == {path: sent[path] for path in said} | {
                path: {word: sent[path][word] for word in value} for path, value in said.items()
            }
            continue
        with pytest.raises(SettingError, match="refuses") as caught:
            session.wire.plan("Hello?", params=said, tools=[get_weather])
        assert key == caught.value.details["key"]


@pytest.mark.parametrize(
    ("model", "kept"),
    [("claude-fable-5", True), ("claude-mythos-5", True), ("claude-mythos-5-1", True), ("claude-mythos-5-2", False)],
)
def test_a_changed_question_takes_a_thought_away_where_the_model_checks_it(
    store: SessionStore, model: str, kept: bool
) -> None:
    """Whether what stands before a block is checked is the model's, at whichever host it answered."""
    for endpoint, name in HOSTS_OF_CLAUDE.items():
        session = begun(store, endpoint, name.format(model))
        session.wire.plan("Hello?")
        session.wire.ingest(json.dumps(CONVERSED if endpoint == "bedrock" else ANSWERED))
        with contextlib.nullcontext() if kept else pytest.warns(UserWarning, match="this voids"):
            session.commit("Hello there?", edit=session.log(kinds=("user",))[0].hash)
        assert kept == (b"EqQBCkYI" in bytes(session.wire.plan("And?"))), endpoint


def test_what_was_tried_at_one_host_alone_is_marked_at_the_others() -> None:
    """A forced call was answered by Claude's own host; AWS documents which models check what stands before a block."""
    book = load_rulebook()
    doubts = {
        (endpoint, model): sorted(
            book.rule_for(endpoint, name.format(model), "2026-11-22")[0].unconfirmed.keys() - {"guard.hosts"}
        )
        for endpoint, name in HOSTS_OF_CLAUDE.items()
        for model in ("claude-fable-5", "claude-mythos-5-1", "claude-haiku-5-5")
    }
    assert {
        ("vertex-claude", "claude-fable-5"): ["forbids"],
        ("bedrock-claude", "claude-fable-5"): ["forbids"],
        ("bedrock", "claude-fable-5"): ["forbids"],
        ("vertex-claude", "claude-mythos-5-1"): ["prefix_bound"],
    } == {at: keys for at, keys in doubts.items() if keys}


def test_thinking_as_updates(store: SessionStore) -> None:
    """The word goes with the beta it needs, and other words go without."""
    shown = plan(store, "anthropic", "claude-opus-5-5", {"reasoning.display": "updates"})
    assert {**ADAPTIVE, "display": "updates"} == body(shown)["thinking"]
    assert UPDATES_BETA in shown.headers["anthropic-beta"].split(",")
    usual = plan(store, "anthropic", "claude-opus-5-5", {"reasoning.display": "summarized"})
    assert (ADAPTIVE, False) == (body(usual)["thinking"], UPDATES_BETA in usual.headers["anthropic-beta"])


@pytest.mark.filterwarnings("ignore:reasoning.display = updates is not sent:UserWarning")
def test_updates_where_there_are_none_are_reported(store: SessionStore) -> None:
    """An endpoint without that word sends nothing in its place."""
    planned = plan(store, "openai", "gpt-6-sol", {"reasoning.display": "updates"})
    assert [("reasoning.display", "unrepresentable")] == [(it.key, it.state) for it in planned.dropped]


@pytest.mark.parametrize(
    ("settings", "told"),
    [({}, []), ({"reasoning.display": "summarized"}, [("reasoning.display", "represented")])],
)
def test_interactions_asks_for_no_summaries_beside_tools(
    store: SessionStore, settings: dict[str, object], told: list[tuple[str, str]]
) -> None:
    """Thought steps came without a signature there; without tools summaries are asked for."""
    with_tools = plan(store, "gemini-interactions", "gemini-3.5-flash", settings, tools=[get_weather])
    assert "none" == lookup(body(with_tools), "generation_config.thinking_summaries")
    assert told == [(it.key, it.state) for it in with_tools.dropped]
    without = plan(store, "gemini-interactions", "gemini-3.5-flash", settings)
    assert "auto" == lookup(body(without), "generation_config.thinking_summaries")


CALLED: list[dict[str, Any]] = [
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]},
    {"role": "system", "content": "Answer in French from now on."},
]


@pytest.mark.parametrize(("model", "parts"), [("claude-haiku-5-5", 1), ("claude-opus-5-5", 0)])
def test_results_end_before_a_system_message_where_a_model_mixes_them_up(
    store: SessionStore, model: str, parts: int
) -> None:
    """A user's text says so at the model that may read it as a result, and at no other."""
    session = store.session("s", endpoint="anthropic", model=model, api_key="k")
    session.wire.adopt(CALLED, dialect="anthropic")
    roles = [message["role"] for message in body(session.wire.plan("Go on."))["messages"]]
    assert ["user", "assistant", "user", *["user"] * parts, "system", "user"] == roles


@pytest.mark.parametrize("endpoint", ["vllm", "sglang", "llamacpp"])
def test_servers_of_ones_own_keep_finished_turns(store: SessionStore, endpoint: str) -> None:
    """Earlier reasoning goes along with the switch that keeps it, so that the prefix stays what it was."""
    session = store.session("s", endpoint=endpoint, model="qwen3-8b")
    session.wire.adopt([
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Hi.", "reasoning_content": "A greeting."},
    ])  # fmt: skip
    sent = body(session.wire.plan("And?"))
    assert {"preserve_thinking": True} == sent["chat_template_kwargs"]
    assert "A greeting." in sent["messages"][1].values()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, (True, None)), ({"reasoning.effort": "high"}, (False, "high")), ({"reasoning.effort": "none"}, (True, None))],
)
def test_kimi_gets_one_of_two_words(
    store: SessionStore, settings: dict[str, object], expected: tuple[bool, str | None]
) -> None:
    """Its refusal says that thinking and reasoning_effort exclude each other: an effort wins over keeping turns."""
    session = store.session("s", endpoint="kimi", model="kimi-k2.6", api_key="k")
    session.wire.adopt([
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Hi.", "reasoning_content": "A greeting."},
    ])  # fmt: skip
    session.set("reasoning.includeInContext", value=True)
    sent = body(session.wire.plan("And?", settings=settings))
    assert expected == ("thinking" in sent, sent.get("reasoning_effort"))


def test_copilot_gets_no_reasoning_items(store: SessionStore) -> None:
    """It refuses input items of that type, so that messages go alone and without the ids that tied them."""
    session = store.session("s", endpoint="copilot", model="gpt-5.4", api_key="k")
    session.wire.adopt([
        {"role": "user", "content": "Hello?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
        },
    ], minted_by=("copilot", "gpt-5.4"))  # fmt: skip
    planned = session.wire.plan("And?")
    assert "reasoning" not in {item.get("type") for item in body(planned)["input"]}
    assert b"msg_1" not in bytes(planned)


def test_copilots_chat_gets_its_own_field_back(store: SessionStore) -> None:
    """What came in reasoning_text goes back there inside a tool loop."""
    session = store.session("s", endpoint="copilot-chat", model="claude-sonnet-5", api_key="k")
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    session.wire.adopt([
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "reasoning_text": "I ask.", "tool_calls": [call]},
    ])  # fmt: skip
    sent = body(session.wire.plan(tool_results={"call_1": "sunny"}))
    assert "I ask." == sent["messages"][1]["reasoning_text"]


def test_a_refusal_of_xiaomi_is_repaired(store: SessionStore) -> None:
    """Its text stands beside the message; what it misses goes back with a blank at the next plan."""
    session = store.session("s", endpoint="xiaomi-mimo", model="mimo-v2.6-pro", api_key="k")
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    session.wire.adopt([
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        {"role": "assistant", "content": "Sunny."},
    ])  # fmt: skip
    planned = session.wire.plan("And tomorrow?")
    assert " " == body(planned)["messages"][1]["reasoning_content"]
    missing = "The reasoning_content in the thinking mode must be passed back to the API."
    error = {"error": {"code": "400", "message": "Param Incorrect", "param": missing, "type": ""}}
    with pytest.raises(ProviderError, match="must be passed back") as caught:
        session.wire.ingest(json.dumps(error).encode(), 400, {})
    assert caught.value.details["repaired"]


def test_a_host_that_demands_the_id_of_a_conversation_gets_one(store: SessionStore) -> None:
    """Every request of a session has the same id, another session has another, and a caller's own header stays."""
    zen = begun(store, "opencode-zen", "kimi-k3")
    ids = [zen.wire.plan("Hello?").headers["x-opencode-session"] for _ in range(2)]
    other = begun(store, "opencode-zen-responses", "gpt-5.6-sol").wire.plan("Hello?").headers["x-opencode-session"]
    own = store.session(
        "own", endpoint="opencode-go", model="kimi-k3", api_key="k", headers={"X-OpenCode-Session": "m"}
    )

    assert ids[0] == ids[1] != other
    sent = own.wire.plan("Hello?").headers
    assert ["m"] == [value for name, value in sent.items() if name.lower() == "x-opencode-session"]
    assert "x-opencode-session" not in plan(store, "deepseek", "deepseek-v4-pro", {}).headers
