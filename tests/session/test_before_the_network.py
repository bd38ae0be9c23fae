"""What is wrong with a call is told before anything is stored or sent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import thinkback
from tests.session.chats import DEFINITION, KEY, get_weather, messages, open_session
from thinkback.errors import ReplayRefused, SettingError, ToolDefinitionError, UnsupportedContent
from thinkback.model.blocks import Media, ToolResult
from thinkback.model.commits import Message
from thinkback.session import requests
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, Step

MODELS = {
    "anthropic": "claude-opus-5-5",
    "bedrock": "us.anthropic.claude-sonnet-4-5-v1:0",
    "cohere": "command-a-reasoning-08-2025",
    "deepseek": "deepseek-v4-pro",
    "deepseek-anthropic": "deepseek-v4-pro",
    "gemini": "gemini-3-pro",
    "gemini-interactions": "gemini-3-pro",
    "mistral": "magistral-medium-latest",
    "ollama-native": "gpt-oss:20b",
    "openai": "gpt-5.4",
}
CLIP = Media("video/mp4", data="AAAA", name="clip.mp4")


def talk(store: SessionStore, referee: Referee, endpoint: str, **more: Any) -> Session:
    """A session with an endpoint that the referee plays."""
    place = {"model": MODELS[endpoint], "base_url": referee.base_url(endpoint.removesuffix("-native")), "api_key": KEY}
    return store.session("talk", endpoint=endpoint, **{**place, **more})


def untouched(session: Session, referee: Referee) -> bool:
    """Whether nothing was stored and nothing sent."""
    return ([], 0) == (session.log(), len(referee.requests))


@pytest.mark.parametrize("prompt", ["", " ", "\n\t ", [], ()])
def test_a_message_that_says_nothing_is_refused(store: SessionStore, referee: Referee, prompt: Any) -> None:
    """An endpoint would refuse it, and every later request with it."""
    session = open_session(store, referee)
    for ask in (session.chat, session.stream, session.wire.plan):
        with pytest.raises(UnsupportedContent, match="the message is empty"):
            ask(prompt)
    with pytest.raises(UnsupportedContent, match="the message is empty"):
        asyncio.run(session.aio.chat(prompt))
    assert untouched(session, referee)


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        (None, "text or a list of parts, not NoneType"),
        (7, "text or a list of parts, not int"),
        ([{"role": "user", "content": "Hello?"}], "session.wire.adopt takes a history"),
        (b"Hello?", "text or a list of parts, not bytes"),
        ({"type": "text", "text": "Hello?"}, "text or a list of parts, not dict"),
        (CLIP, "text or a list of parts, not Media"),
        ([7], "a part of a message is text, Media or a content part, not int"),
        (["See", None], "not NoneType"),
        ([b"Hello?"], "not bytes"),
        ([["Hello?"]], "not list"),
    ],
)
def test_what_is_no_message_is_a_type_error(store: SessionStore, referee: Referee, prompt: Any, told: str) -> None:
    """The error names the type that was given."""
    session = open_session(store, referee)
    with pytest.raises(TypeError, match=told):
        session.chat(prompt)
    assert untouched(session, referee)


def test_parts_may_be_of_every_kind() -> None:
    """Texts, media and content parts, in a list or a tuple."""
    parts = ("Hello ", {"type": "text", "text": "there."}, CLIP)
    assert "Hello there." == requests.message(parts).text
    assert requests.message(list(parts)) == requests.message(parts)
    assert Message("Hello?") == requests.message("Hello?")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("system", 7),
        ("system", b"Be brief."),
        ("params", [("seed", 7)]),
        ("params", "seed"),
        ("settings", [("reasoning.effort", "high")]),
        ("tools", get_weather),
        ("tools", DEFINITION),
        ("tools", 7),
        ("reasoning", "yes"),
        ("reasoning", 1),
        ("stream", 0),
        ("stream", "false"),
        ("timeouts", 30),
        ("timeouts", {"connect": 3}),
        ("max_steps", 0),
        ("max_steps", -1),
        ("max_steps", True),
        ("max_steps", 2.5),
        ("max_steps", "3"),
        ("max_retries", -1),
        ("max_retries", False),
        ("max_retries", 1.0),
    ],
)
def test_an_option_of_a_wrong_type_is_refused(store: SessionStore, referee: Referee, option: str, value: Any) -> None:
    """The error names the option and what it must be."""
    session = open_session(store, referee)
    given: Any = {option: value}
    with pytest.raises(TypeError, match=f"^{option} must be "):
        session.chat("Hello?", **given)
    with pytest.raises(TypeError, match=f"^{option} must be "):
        session.explain(next=True, **given)
    assert untouched(session, referee)


def test_a_bare_function_is_told_to_stand_in_a_list(store: SessionStore, referee: Referee) -> None:
    """What is meant is ``tools=[get_weather]``."""
    given: Any = {"tools": get_weather}
    with pytest.raises(TypeError, match="tools must be a list of functions and definitions, not <function get_weather"):
        open_session(store, referee).chat("Hello?", **given)
    with pytest.raises(ToolDefinitionError):
        requests.read_options({"tools": "get_weather"})


def test_the_least_values_and_none_are_allowed() -> None:
    """An option that is ``None`` was not given."""
    least = requests.read_options({"max_steps": 1, "max_retries": 0, "stream": False, "timeouts": thinkback.Timeouts()})
    assert (1, 0, False) == (least.max_steps, least.max_retries, least.stream)
    assert requests.Options() == requests.read_options(dict.fromkeys(requests.CallOptions.__annotations__))


@pytest.mark.parametrize(
    ("endpoint", "key", "said"),
    [
        ("deepseek", "model", "model="),
        ("deepseek", "tools", "tools="),
        ("deepseek", "messages", "the conversation itself"),
        ("openai", "input", "the conversation itself"),
        ("openai", "model", "model="),
        ("anthropic", "messages", "the conversation itself"),
        ("gemini", "contents", "the conversation itself"),
        ("gemini-interactions", "input", "the conversation itself"),
        ("bedrock", "messages", "the conversation itself"),
        ("mistral", "messages", "the conversation itself"),
        ("ollama-native", "messages", "the conversation itself"),
        ("cohere", "messages", "the conversation itself"),
    ],
)
def test_params_cannot_say_what_is_said_otherwise(
    store: SessionStore, referee: Referee, endpoint: str, key: str, said: str
) -> None:
    """A second ``model``, ``tools`` or message array is refused, and the error names what says it."""
    session = talk(store, referee, endpoint)
    with pytest.raises(SettingError) as caught:
        session.chat("Hello?", params={key: []})
    assert f"params cannot set {key}: that is said by {said}" == caught.value.message
    assert ({"key": key}, (f"use {said}",)) == (caught.value.details, caught.value.next_actions)
    assert untouched(session, referee)


def test_the_array_of_another_dialect_is_a_field_like_any_other(store: SessionStore, referee: Referee) -> None:
    """Only the endpoint's own array is the conversation."""
    plan = open_session(store, referee).explain(next=True, params={"contents": [], "input": 1})
    assert {"contents": [], "input": 1}.items() <= json.loads(bytes(plan)).items()


@pytest.mark.parametrize(
    ("key", "value"), [("stop", {1, object()}), ("seed", object()), ("top_p", {"a": [lambda: 1]}), (7, object())]
)
def test_params_that_json_cannot_hold_are_named(store: SessionStore, referee: Referee, key: Any, value: Any) -> None:
    """The error says which one."""
    session = open_session(store, referee)
    with pytest.raises(SettingError) as caught:
        session.chat("Hello?", params={"user": "me", key: value})
    assert caught.value.message.startswith(f"params: {key!r} cannot be written as JSON: ")
    assert {"key": str(key)} == caught.value.details
    assert untouched(session, referee)


@pytest.mark.parametrize(
    ("value", "text"),
    [("sun", "sun"), ({"sky": "blue"}, '{"sky":"blue"}'), ([1, None], "[1,null]"), (7, "7"), (True, "true")],
)
def test_results_that_are_no_text_become_json(store: SessionStore, referee: Referee, value: Any, text: str) -> None:
    """As what a function returns does."""
    session = open_session(store, referee)
    call = session.chat("Weather in Oslo?", tools=[DEFINITION]).tool_calls[0]
    assert "completed" == session.generate({call.id: value}).state
    assert [text] == [message["content"] for message in messages(referee) if message["role"] == "tool"]
    assert [text] == [commit.value.content for commit in session.log() if isinstance(commit.value, ToolResult)]


@pytest.mark.parametrize(
    ("endpoint", "params", "path"),
    [
        ("openai", {"temperature": 0.5}, "temperature"),
        ("openai", {"top_p": 0.5}, "top_p"),
        ("anthropic", {"top_k": 5}, "top_k"),
        ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 2000}}, "thinking.type"),
    ],
)
def test_forbidden_parameters_are_refused_before_the_message_is_stored(
    store: SessionStore, referee: Referee, endpoint: str, params: dict[str, Any], path: str
) -> None:
    """The session can be asked again without them."""
    session = talk(store, referee, endpoint)
    model = {"openai": "gpt-5.4", "anthropic": "claude-opus-4-8"}[endpoint]
    session.use(model=model)
    if endpoint == "openai":
        session.set("reasoning.effort", "high")
    with pytest.raises(SettingError, match=path):
        session.chat("Hello?", params=params)
    assert untouched(session, referee)


def test_strict_mode_refuses_its_controls_before_the_message_is_stored(store: SessionStore, referee: Referee) -> None:
    """An effort in a mode without reasoning is a mistake of the caller."""
    session = open_session(store, referee)
    with pytest.raises(SettingError, match=r"reasoning\.strict is on"):
        session.chat("Hello?", settings={"reasoning.strict": True, "reasoning.effort": "high"})
    assert untouched(session, referee)


@pytest.mark.parametrize("endpoint", ["gemini", "deepseek"])
def test_strict_mode_ends_where_reasoning_is_demanded(store: SessionStore, referee: Referee, endpoint: str) -> None:
    """Nothing may be sent and something must be: that is told instead of being tried."""
    session = talk(store, referee, endpoint)
    call = session.chat("Weather in Oslo?", tools=[DEFINITION]).tool_calls[0]
    sent = len(referee.requests)
    with pytest.raises(ReplayRefused, match=f"{endpoint} demands reasoning back") as caught:
        session.generate({call.id: "sun"}, settings={"reasoning.strict": True})
    assert MODELS[endpoint] == caught.value.details["model"]
    assert sent == len(referee.requests)
    assert "completed" == session.generate().state


def test_strict_mode_goes_on_where_none_is_demanded(store: SessionStore, referee: Referee) -> None:
    """The same conversation is accepted without its reasoning."""
    session = talk(store, referee, "openai")
    call = session.chat("Weather in Oslo?", tools=[DEFINITION]).tool_calls[0]
    referee.push(Step(text="Sun."))
    assert "Sun." == session.generate({call.id: "sun"}, settings={"reasoning.strict": True}).text
    assert not any(item.get("type") == "reasoning" for item in referee.requests[-1].body["input"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("endpoint", ["anthropic", "deepseek-anthropic", "bedrock"])
def test_no_tools_after_calls_are_accepted_by_messages(store: SessionStore, referee: Referee, endpoint: str) -> None:
    """Those that were called stay offered, because the service refuses calls without definitions."""
    from thinkback_referee.bedrock import API_KEY

    session = talk(store, referee, endpoint, **({"api_key": API_KEY} if endpoint == "bedrock" else {}))
    session.chat("Weather in Oslo?", tools=[get_weather])
    referee.push(Step(text="You are welcome."))
    assert "You are welcome." == session.chat("Thank you.", tools=[]).text
    assert {200} == {exchange.status for exchange in referee.requests}
    body: Any = referee.requests[-1].body
    if endpoint != "bedrock":
        assert (["get_weather"], {"type": "none"}) == ([tool["name"] for tool in body["tools"]], body["tool_choice"])
        assert "The weather of a city." == body["tools"][0]["description"]
    else:
        assert ["get_weather"] == [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]]
    assert session.why() == session.why()  # it is built again from its record


def test_a_changed_system_prompt_is_told_to_cohere_as_the_users(store: SessionStore, referee: Referee) -> None:
    """It takes one system message, and that first."""
    session = talk(store, referee, "cohere")
    session.chat("Hello.", system="Be brief.")
    session.chat("Hello again.", system="Be long.")
    assert ["system", "user", "assistant", "user", "user"] == [message["role"] for message in messages(referee)]
    assert "Be long." == messages(referee)[3]["content"]
    assert {200} == {exchange.status for exchange in referee.requests}


def test_codex_gets_instructions_where_nobody_gave_any(store: SessionStore, referee: Referee) -> None:
    """It refuses a request without; a system prompt or the parameter itself comes first."""
    given: dict[str, Any] = {"model": "gpt-5.4", "api_key": KEY, "headers": {"ChatGPT-Account-ID": "account-1"}}
    session = store.session("talk", endpoint="codex", base_url=referee.base_url("codex"), **given)
    assert "You are a helpful assistant." == json.loads(bytes(session.explain(next=True)))["instructions"]
    own = session.explain(next=True, params={"instructions": "Mine."})
    assert ("Mine.", 1) == (json.loads(bytes(own))["instructions"], bytes(own).count(b'"instructions"'))
    session.chat("Hello?", system="Be brief.")
    body: Any = referee.requests[-1].body
    assert (200, "Be brief.") == (referee.requests[-1].status, body["instructions"])


def test_older_media_are_described_and_new_ones_are_refused(store: SessionStore, referee: Referee) -> None:
    """What was said elsewhere must not end a session; what is said now can be said otherwise."""
    session = talk(store, referee, "gemini")
    session.chat(["See", CLIP])
    session.use(endpoint="ollama-native", model=MODELS["ollama-native"], base_url=referee.base_url("ollama"))
    reply = session.chat("Hello?")
    assert "See\n(video/mp4 clip.mp4, which cannot be shown here)" == messages(referee)[0]["content"]
    told = next(decision for decision in reply.decisions if decision.what == "text")
    assert ("drop", session.log()[0].hash) == (told.action, told.block)
    assert "Ollama takes images as data, not video/mp4" in told.reason
    assert told in session.why()
    before = session.log()
    with pytest.raises(UnsupportedContent, match="video/mp4"):
        session.chat(["See", CLIP])
    assert before == session.log()


def test_calls_of_one_id_are_told_apart_on_the_way_back(store: SessionStore, referee: Referee) -> None:
    """A host that gave an id twice would refuse its own answer."""
    session = open_session(store, referee)
    calls = tuple(Call("get_weather", {"city": city}, "same") for city in ("Oslo", "Rome"))
    referee.push(Step(reasoning="Both.", tool_calls=calls), Step(text="Rain."))
    assert "Rain." == session.chat("Weather?", tools=[get_weather]).text
    sent = messages(referee)
    ids = [call["id"] for call in sent[1]["tool_calls"]]
    assert (2, ids) == (len(set(ids)), [message["tool_call_id"] for message in sent if message["role"] == "tool"])
    assert [True, True] == [
        city in message["content"] for city, message in zip(("Oslo", "Rome"), sent[2:], strict=True)
    ]
    assert {200} == {exchange.status for exchange in referee.requests}
