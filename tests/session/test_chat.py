"""Asking with and without tools, against the strict stand-in of each provider."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

import thinkback
from tests.session.chats import (
    DEFINITION,
    KEY,
    PERSONAS,
    get_time,
    get_weather,
    kinds,
    messages,
    open_session,
    refusals,
    roles,
    statuses,
)
from thinkback.errors import ProviderError, SettingError, ThinkbackError, ToolDefinitionError
from thinkback.model.blocks import ToolResult
from thinkback.session.store import SessionStore
from thinkback_referee import Call, HttpError, Referee, Step, code_word

STEP = ["request", "response", "reasoning", "tool_call", "provider_usage", "tool_result"]
LAST = ["request", "response", "reasoning", "assistant", "provider_usage", "completed"]


def test_reply_has_what_the_issue_promises(store: SessionStore, referee: Referee) -> None:
    """Text, reasoning, its commit, usage and decisions of a turn with a tool."""
    session = open_session(store, referee)
    reply = session.chat("What is the weather in Oslo?", tools=[get_weather])
    word = code_word("What is the weather in Oslo?")
    assert f"Here is what I found: get_weather: Oslo: 7 degrees, rain; code word {word} still known." == reply.text
    assert reply.reasoning is not None
    assert "Time to answer" in reply.reasoning
    assert reply.reasoning_commit in session.log()
    assert reply.commit_info in session.log()
    assert reply.usage is not None
    assert (reply.usage.input or 0) > (reply.usage.reasoning or 0) > 0
    assert ["field"] == [decision.action for decision in reply.decisions]
    assert ("completed", 2, "What is the weather in Oslo?", []) == (
        reply.state,
        len(reply.steps),
        reply.prompt,
        reply.tool_calls,
    )
    assert ["get_weather"] == [call.name for call in reply.steps[0].tool_calls]
    assert ("", True) == (reply.steps[0].text, bool(reply.steps[0].reasoning))
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    assert {"model": "deepseek-v4-pro", "thinking": {"type": "enabled"}, **streamed} == reply.generation_config
    assert reply.raw_response is not None
    assert reply.text == reply.raw_response["choices"][0]["message"]["content"]
    assert not reply.is_reasoning_only
    assert ["tools", "user", *STEP, *LAST] == kinds(session)


@pytest.mark.parametrize("host", PERSONAS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_conversation_is_accepted_by_every_persona(
    store: SessionStore, referee: Referee, host: str, stream: bool
) -> None:
    """Three turns with parallel and serial calls; not one request is refused, and the model knows its notes."""
    session = open_session(store, referee, host)
    for prompt in ("Weather in Oslo, then the time?", "And in both Bergen and Rome?", "Thank you."):
        reply = session.chat(prompt, tools=[get_weather, get_time], stream=stream)
        assert ("completed", []) == (reply.state, refusals(referee))
        assert code_word(prompt) in reply.text or host == "mistral" or not reply.text.count("code word")
    assert {200} == set(statuses(referee))
    assert [] == store.fsck()


def test_system_prompt_stands_first_and_is_sent_once(store: SessionStore, referee: Referee) -> None:
    """The same again is no change."""
    session = open_session(store, referee)
    session.chat("Hello.", system="Be brief.")
    session.chat("Hello again.", system="Be brief.")
    assert ["system", "user", "assistant", "user"] == roles(referee)


def test_prompt_may_be_parts(store: SessionStore, referee: Referee) -> None:
    """Content parts of the dialect go out as they are."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": "Hello "}, {"type": "text", "text": "there."}]
    reply = open_session(store, referee).chat(parts)
    assert parts == messages(referee)[0]["content"]
    assert "Hello there." == reply.prompt


def test_tools_hold_until_others_are_given(store: SessionStore, referee: Referee) -> None:
    """Without ``tools`` the offer stands, and its functions can still be run; an empty list ends it."""
    session = open_session(store, referee)
    session.chat("Weather in Oslo?", tools=[get_weather])
    reply = session.chat("And in Rome?")
    assert "Rome: 7 degrees" in reply.text
    session.chat("Thank you.", tools=[])
    assert "tools" not in referee.requests[-1].body


def test_failing_tool_is_told_to_the_model(store: SessionStore, referee: Referee) -> None:
    """The turn goes on."""

    def get_weather(city: str) -> str:
        raise LookupError(f"no such city: {city}")

    reply = open_session(store, referee).chat("Weather in Oslo?", tools=[get_weather])
    assert "LookupError: no such city: Oslo" in reply.text


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("get_weather", '{"town":"Oslo"}'), "do not fit the tool"),
        (Call("get_weather", '{"city":'), "not valid JSON"),
        (Call("peek", {"city": "Oslo"}), "There is no tool named 'peek'."),
    ],
)
def test_wrong_call_is_told_to_the_model(store: SessionStore, referee: Referee, call: Call, told: str) -> None:
    """Wrong arguments, broken arguments, a name that was made up."""
    referee.push(Step(reasoning="Let me see.", tool_calls=[call]))
    session = open_session(store, referee)
    assert "completed" == session.chat("Weather in Oslo?", tools=[get_weather]).state
    result = next(commit.value for commit in session.log() if isinstance(commit.value, ToolResult))
    assert (True, True) == (result.is_error, told in result.content)


def test_parallel_tools_run_at_the_same_time(store: SessionStore, referee: Referee) -> None:
    """Two calls of one response meet in the middle."""
    import threading

    together = threading.Barrier(2, timeout=10)

    def get_weather(city: str) -> str:
        together.wait()
        return city

    reply = open_session(store, referee).chat("Weather in both Bergen and Rome?", tools=[get_weather])
    assert "get_weather: Bergen; get_weather: Rome" in reply.text


def test_definitions_wait_for_the_caller(store: SessionStore, referee: Referee) -> None:
    """Without a function the calls come back, and their results continue the turn."""
    session = open_session(store, referee)
    reply = session.chat("Weather in Oslo?", tools=[DEFINITION])
    assert (None, ["get_weather"]) == (reply.state, [call.name for call in reply.tool_calls])
    reply = session.generate({reply.tool_calls[0].id: "Oslo: sun"})
    assert ("completed", None) == (reply.state, reply.prompt)
    assert "Oslo: sun" in reply.text
    assert [200, 200] == statuses(referee)


def test_call_without_a_result_is_named(store: SessionStore, referee: Referee) -> None:
    """Going on without it is refused before anything is stored; so is a result nobody asked for."""
    session = open_session(store, referee)
    reply = session.chat("Weather in both Bergen and Rome?", tools=[DEFINITION])
    first, second = reply.tool_calls
    before = kinds(session)
    with pytest.raises(ThinkbackError, match="has no result yet") as caught:
        session.generate({first.id: "sun"})
    assert {"call": second.id, "tool": "get_weather"} == caught.value.details
    with pytest.raises(ThinkbackError, match="no open call has the id 'nobody'"):
        session.generate({"nobody": "sun"})
    assert before == kinds(session)
    assert "completed" == session.generate({first.id: "sun", second.id: "rain"}).state


def test_open_calls_are_run_by_functions_given_later(store: SessionStore, referee: Referee) -> None:
    """A log that ends behind calls goes on where their functions are."""
    session = open_session(store, referee)
    session.chat("Weather in Oslo?", tools=[DEFINITION])
    reply = session.generate(tools=[get_weather])
    assert "Oslo: 7 degrees, rain" in reply.text


def test_new_question_closes_open_calls(store: SessionStore, referee: Referee) -> None:
    """They are recorded as interrupted, and the request is accepted."""
    session = open_session(store, referee)
    session.chat("Weather in Oslo?", tools=[DEFINITION])
    assert "completed" == session.chat("Never mind.", tools=[]).state
    assert "This call was interrupted; it has no result." == messages(referee)[2]["content"]
    assert [200, 200] == statuses(referee)


def test_cap_ends_the_turn(store: SessionStore, referee: Referee) -> None:
    """At the cap the reply says so; the next turn is valid."""
    session = open_session(store, referee)
    reply = session.chat("Weather in Oslo?", tools=[get_weather], max_steps=1)
    assert ("capped", 1, ["get_weather"]) == (reply.state, len(reply.steps), [call.name for call in reply.tool_calls])
    assert "completed" == session.chat("And in Rome?").state
    assert {200} == set(statuses(referee))


def test_reasoning_without_an_answer(store: SessionStore, referee: Referee) -> None:
    """The model thought and said nothing: the reply tells."""
    referee.push(Step(reasoning="Nothing to say."))
    reply = open_session(store, referee).chat("Hello?")
    assert (True, "", None) == (reply.is_reasoning_only, reply.text, reply.commit_info)


@pytest.mark.filterwarnings("ignore:reasoning.enabled = true is not sent:UserWarning")
def test_params_reach_the_wire_and_win(store: SessionStore, referee: Referee) -> None:
    """Native fields as they are given, nested ones laid over ours, and recorded."""
    session = open_session(store, referee)
    reply = session.chat("Hello.", params={"max_tokens": 9, "stream_options": {"include_usage": False}, "stop": ["x"]})
    body = referee.requests[-1].body
    assert (9, {"include_usage": False}, ["x"], True) == (
        body["max_tokens"],
        body["stream_options"],
        body["stop"],
        body["stream"],
    )
    assert 9 == reply.generation_config["max_tokens"]


class Answer(msgspec.Struct):
    city: str
    degrees: int


def test_response_format_is_a_field_or_a_type(store: SessionStore, referee: Referee) -> None:
    """A mapping goes out as it is, a type as its schema."""
    session = open_session(store, referee)
    session.chat("Hello.", response_format={"type": "json_object"})
    assert {"type": "json_object"} == referee.requests[-1].body["response_format"]
    session.chat("Hello.", response_format=Answer)
    sent: Any = referee.requests[-1].body["response_format"]
    assert ("json_schema", "Answer", "object") == (
        sent["type"],
        sent["json_schema"]["name"],
        sent["json_schema"]["schema"]["type"],
    )
    session.chat("Hello.", response_format=list[int])
    sent = referee.requests[-1].body["response_format"]
    assert {"type": "array", "items": {"type": "integer"}} == sent["json_schema"]["schema"]
    with pytest.raises(SettingError, match="response_format"):
        session.chat("Hello.", response_format=object)


def test_settings_are_layered(referee: Referee) -> None:
    """Call over session over the user's file; each reaches the wire as the endpoint says it."""
    with thinkback.open(":memory:", settings={"reasoning.effort": "low"}) as store:
        session = open_session(store, referee)
        session.chat("Hello.")
        session.set("reasoning.effort", "max")
        session.chat("Hello.")
        session.chat("Hello.", settings={"reasoning.effort": "high"})
        session.unset("reasoning.effort")
        session.chat("Hello.")
        assert ["low", "max", "high", "low"] == [exchange.body["reasoning_effort"] for exchange in referee.requests]
        assert "low" == session.settings.effort
        assert ("low", "user") == session.layers.origin("reasoning.effort")


def test_settings_file_of_the_user_is_read_live(
    store: SessionStore, referee: Referee, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file, then one, without opening anything again."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    session = open_session(store, referee)
    session.chat("Hello.")
    (tmp_path / "settings.toml").write_text('[reasoning]\neffort = "low"\n')
    session.chat("Hello.")
    assert [None, "low"] == [exchange.body.get("reasoning_effort") for exchange in referee.requests]


def test_settings_of_a_session_are_shared_and_kept(store: SessionStore, referee: Referee) -> None:
    """Another object of the same session sees them at its next request, and adds its own without loss."""
    one, other = open_session(store, referee), open_session(store, referee)
    one.set("reasoning.effort", "low")
    other.set("reasoning.keepLast", 2)
    other.chat("Hello.")
    assert "low" == referee.requests[-1].body["reasoning_effort"]
    assert ("low", 2) == (one.settings.effort, one.settings.keep_last)


def test_refused_setting_leaves_the_old_one(store: SessionStore, referee: Referee) -> None:
    """For the session, and for a call before anything is stored."""
    session = open_session(store, referee)
    session.set("reasoning.effort", "low")
    with pytest.raises(SettingError):
        session.set("reasoning.effort", "enormous")
    with pytest.raises(SettingError):
        session.chat("Hello.", settings={"reasoning.effort": "enormous"})
    assert ("low", []) == (session.settings.effort, session.log())


def test_misspelt_option_is_refused_before_anything_is_stored(store: SessionStore, referee: Referee) -> None:
    """Everywhere where options are taken."""
    session = open_session(store, referee)
    wrong: dict[str, Any] = {"temprature": 1}
    with pytest.raises(TypeError, match="options are tools"):
        session.chat("Hello.", **wrong)
    close: dict[str, Any] = {"tool": []}
    for ask in (session.stream, session.aio.stream, session.wire.plan):
        with pytest.raises(TypeError, match="unknown option 'tool': did you mean tools"):
            ask("Hello.", **close)
    with pytest.raises(TypeError):
        session.generate(None, **close)
    with pytest.raises(TypeError):
        session.explain(**close)
    with pytest.raises(TypeError):
        store.session("chat", endpont="deepseek")  # type: ignore[call-arg]
    assert [] == session.log()


def test_bad_tool_is_refused_before_anything_is_stored(store: SessionStore, referee: Referee) -> None:
    """A lambda has no name; a coroutine function needs the asyncio side."""

    async def get_weather(city: str) -> str:
        return city

    session = open_session(store, referee)
    for tool in (lambda city: city, get_weather):
        with pytest.raises(ToolDefinitionError):
            session.chat("Hello.", tools=[tool])
    assert [] == session.log()


def test_failed_question_is_sent_again_by_going_on(store: SessionStore, referee: Referee) -> None:
    """``generate`` repeats the request; asking again adds a second message, which is accepted, too."""
    session = open_session(store, referee)
    referee.push(Step(fault=HttpError(500)), Step(fault=HttpError(500)))
    with pytest.raises(ProviderError, match="asks again, with what is in the log"):
        session.chat("Hello?", max_retries=0)
    assert ["user", "request", "failed"] == kinds(session)
    with pytest.raises(ProviderError):
        session.generate(max_retries=0)
    assert "completed" == session.generate().state
    assert ["user"] == roles(referee)
    referee.push(Step(fault=HttpError(500)))
    with pytest.raises(ProviderError):
        session.chat("And?", max_retries=0)
    assert "completed" == session.chat("And now?").state
    assert ["user", "assistant", "user", "user"] == roles(referee)


def test_failure_in_a_tool_loop_goes_on_with_its_reasoning(store: SessionStore, referee: Referee) -> None:
    """The tool is not run again, and the endpoint gets the thought it demands."""
    ran: list[str] = []

    def look(city: str) -> str:
        """The weather of a city."""
        ran.append(city)
        return city

    referee.push(Step(reasoning="Look.", tool_calls=[Call("look", {"city": "Oslo"})]), Step(fault=HttpError(500)))
    session = open_session(store, referee)
    with pytest.raises(ProviderError):
        session.chat("Weather?", tools=[look], max_retries=0)
    assert "completed" == session.generate().state
    assert (["Oslo"], []) == (ran, refusals(referee))


def test_repr_tells_what_and_where(store: SessionStore, referee: Referee) -> None:
    """Session and reply, for people."""
    session = open_session(store, referee)
    assert "<Session 'chat': 0 commits, deepseek deepseek-v4-pro>" == repr(session)
    assert "chat" == session.name
    reply = session.chat("Hello.")
    assert f"<Reply completed: {len(reply.text)} characters, 1 steps>" == repr(reply)
    assert KEY not in json.dumps(
        [repr(session), repr(reply), repr(session.conversation.configure().place), repr(reply.plan)]
    )
    assert [session.id] == [info.id for info in store.sessions()]
    assert session.log() == store.commits("chat")
