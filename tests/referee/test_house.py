"""The house script: with any tools it plays whole turns, and its answers prove whether its notes came back."""

from __future__ import annotations

import json

import pytest

from tests.referee.talk import TIME, WEATHER, Body, Client, body, post, result, said, text_of, user
from thinkback_referee import KNOWN, LOST, Referee, code_word
from thinkback_referee.jsons import as_list, as_object

OSLO = "What is the weather in Oslo?"
BERGEN = "And what about Bergen?"
CALLERS = [
    ("deepseek", "deepseek-v3.2"),
    ("deepseek", "deepseek-v4-pro"),
    ("kimi", "kimi-k2-thinking"),
    ("kimi", "kimi-k3"),
    ("groq", "openai/gpt-oss-120b"),
    ("mistral", "magistral-medium-latest"),
]


def known(*texts: str) -> str:
    return "; ".join(KNOWN.format(word=code_word(text)) for text in texts)


def client(referee: Referee, host: str, model: str, **parameters: object) -> Client:
    return Client(referee, host, {"model": model, "tools": [WEATHER], **parameters}, [])


def calls_of(message: Body) -> list[tuple[str, object]]:
    functions = [as_object(as_object(call)["function"]) for call in as_list(message.get("tool_calls"))]
    return [(str(function["name"]), json.loads(str(function["arguments"]))) for function in functions]


@pytest.mark.parametrize(("host", "model"), CALLERS)
def test_a_faithful_client_hears_the_code_word(referee: Referee, host: str, model: str) -> None:
    """In a tool turn the answer quotes the tool's result and the code word of the reasoning that came back."""
    answer = client(referee, host, model).ask(OSLO)
    assert f"Here is what I found: get_weather: rain, 7 degrees; {known(OSLO)}." == answer
    assert [200, 200] == [exchange.status for exchange in referee.requests]


@pytest.mark.parametrize(
    ("host", "model", "parameters", "remembered"),
    [
        ("deepseek", "deepseek-v3.2", {}, [BERGEN]),
        ("deepseek", "deepseek-v4-pro", {}, [OSLO, BERGEN]),
        ("kimi", "kimi-k2.6", {}, [BERGEN]),
        ("kimi", "kimi-k2.6", {"thinking": {"type": "enabled", "keep": "all"}}, [OSLO, BERGEN]),
        ("groq", "qwen/qwen3-32b", {}, [BERGEN]),
        ("mistral", "mistral-small-latest", {"reasoning_effort": "high"}, [OSLO, BERGEN]),
    ],
)
def test_older_turns_are_remembered_where_the_provider_keeps_them(
    referee: Referee, host: str, model: str, parameters: Body, remembered: list[str]
) -> None:
    """The second turn's answer names the first turn's code word exactly where the persona shows it to the model."""
    talking = client(referee, host, model, **parameters)
    talking.ask(OSLO)
    assert talking.ask(BERGEN).endswith(f"{known(*remembered)}.")


class Forgetful(Client):
    """A client that keeps no reasoning."""

    def kept(self, message: Body) -> Body:
        return {name: value for name, value in message.items() if name != "reasoning"}


def test_a_forgetful_client_hears_that_the_notes_are_lost(referee: Referee) -> None:
    """Where the provider lets reasoning be dropped, the answer tells that it was."""
    talking = Forgetful(referee, "groq", {"model": "openai/gpt-oss-120b", "tools": [WEATHER]}, [])
    assert LOST in talking.ask(OSLO)


def test_without_tools_it_answers_at_once(referee: Referee) -> None:
    """A plain question gets an answer, with a note in its reasoning that a later turn may quote."""
    talking = Client(referee, "kimi", {"model": "kimi-k3"}, [])
    assert f'You said: "{OSLO}".' == talking.ask(OSLO)
    assert f"the code word is {code_word(OSLO)}" in str(talking.messages[1]["reasoning_content"])
    assert f'You said: "{BERGEN}"; {known(OSLO)}.' == talking.ask(BERGEN)


def test_with_thinking_disabled_it_neither_thinks_nor_remembers(referee: Referee) -> None:
    """Without thinking there is no reasoning field and no word about notes."""
    talking = client(referee, "deepseek", "deepseek-v4-pro", thinking={"type": "disabled"})
    assert "Here is what I found: get_weather: rain, 7 degrees." == talking.ask(OSLO)
    assert all("reasoning_content" not in message for message in talking.messages)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Weather in both Oslo and New York?", [("get_weather", "Oslo"), ("get_weather", "New York")]),
        ("In parallel, the weather of Oslo", [("get_weather", "Oslo"), ("get_time", "Oslo")]),
        ("What is the time in Oslo?", [("get_time", "Oslo")]),
    ],
)
def test_it_chooses_tools_by_the_words_of_the_user(
    referee: Referee, text: str, expected: list[tuple[str, str]]
) -> None:
    """One call to the tool that fits best, two when the user says both or parallel."""
    got = post(referee, "deepseek", body("deepseek-v4-pro", user(text), tools=[WEATHER, TIME]))
    assert [(name, {"city": city}) for name, city in expected] == calls_of(got.message)


def test_then_asks_for_a_second_round(referee: Referee) -> None:
    """With "then" and two tools the turn has two rounds of calls, each with its own reasoning."""
    talking = Client(referee, "deepseek", {"model": "deepseek-v4-pro", "tools": [WEATHER, TIME]}, [])
    answer = talking.ask("The weather of Oslo, then the time there")
    assert "get_weather: rain, 7 degrees; get_time: rain, 7 degrees; code word" in answer
    thoughts = [message["reasoning_content"] for message in talking.messages if "reasoning_content" in message]
    assert 3 == len(set(thoughts))


def test_tool_choice_is_heeded(referee: Referee) -> None:
    """A named tool is called whatever the words say, and none means none."""
    named: Body = {"type": "function", "function": {"name": "get_time"}}
    for choice, expected in ((named, ["get_time"]), ("none", [])):
        got = post(referee, "groq", body("qwen/qwen3-32b", user(OSLO), tools=[WEATHER, TIME], tool_choice=choice))
        assert expected == [name for name, _ in calls_of(got.message)]


def test_the_same_request_gets_the_same_bytes() -> None:
    """Answers depend on the request and the seed alone; another seed gives another code word and other ids."""
    answers = []
    for seed in (0, 0, 1):
        with Referee(seed=seed) as referee:
            answers.append(post(referee, "kimi", body("kimi-k3", user(OSLO), tools=[WEATHER])).data)
    assert (True, False) == (answers[0] == answers[1], answers[0] == answers[2])


def test_a_long_conversation_never_repeats_a_thought(referee: Referee) -> None:
    """The same question asked again gets its own reasoning, so that no two messages carry the same."""
    talking = client(referee, "kimi", "kimi-k3")
    for _ in range(3):
        talking.ask(OSLO)
    thoughts = [message["reasoning_content"] for message in talking.messages if "reasoning_content" in message]
    assert 6 == len(thoughts) == len(set(thoughts))


def test_reasoning_in_content_tags_is_read_back(referee: Referee) -> None:
    """With reasoning_format raw the thought is in the text, and comes back there."""
    talking = Client(referee, "groq", {"model": "qwen/qwen3-32b", "reasoning_format": "raw"}, [])
    assert talking.ask(OSLO).startswith("<think>\nTurn 1, step 1.")


def test_parts_of_a_user_message_are_read(referee: Referee) -> None:
    """A user message of text parts is understood like a string."""
    parts: Body = {"role": "user", "content": [{"type": "text", "text": OSLO}]}
    got = post(referee, "kimi", body("kimi-k3", parts, tools=[WEATHER]))
    assert [("get_weather", {"city": "Oslo"})] == calls_of(got.message)


def test_a_turn_begun_elsewhere_is_continued(referee: Referee) -> None:
    """Calls of another model with placeholders are answered, and the missing notes are admitted."""
    messages = [user(OSLO), said("", "x1", reasoning_content=" "), result("x1")]
    got = post(referee, "deepseek", body("deepseek-v4-pro", *messages, tools=[WEATHER]))
    assert f"Here is what I found: get_weather: rain; {LOST}." == text_of(got.message["content"])
