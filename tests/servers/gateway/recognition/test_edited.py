"""What clients do besides forgetting: they change what was said, and ask for betas."""

from __future__ import annotations

from typing import Any

import pytest

from tests.servers.gateway.harness.engines import BOUND, DEEPSEEK, TOOL, Fresh, ask, engine, forgetful_chat
from thinkback_referee import Referee

FUNCTION: Any = TOOL["function"]


def asked(referee: Referee) -> Any:
    """The last request that went out."""
    return referee.requests[-1].body


def filled(message: dict[str, Any]) -> dict[str, Any]:
    """As some clients send a message without text."""
    return {**message, "content": "(no text)"} if message.get("tool_calls") else message


@pytest.mark.parametrize("model", [BOUND, "deepseek/deepseek-v4-pro"])
def test_words_that_a_client_puts_into_an_answer_cost_no_reasoning(referee: Referee, model: str) -> None:
    """It is recognised by its calls; bound reasoning is not copied to another line, where it would be void."""
    made = engine(Fresh(), referee)

    def answer(body: dict[str, Any]) -> Any:
        return ask(made, "openai-chat", {**body, "messages": [filled(each) for each in body["messages"]]})

    answers = forgetful_chat(answer, model)

    assert [200] * 4 == [kept.status for kept in answers]
    assert ["not-needed", *["complete"] * 3] == [kept.headers["thinkback-reattach"] for kept in answers]
    assert 1 == len({kept.headers["thinkback-session"] for kept in answers})


def test_an_answer_behind_one_that_is_known_is_found_where_the_words_before_them_were_changed(referee: Referee) -> None:
    """Qwen Code takes its reminders out of earlier questions whenever it resumes; a call is found by its id, and the
    answer behind it by what stood before it when it was made, however often the words were changed.
    """
    made = engine(Fresh(), referee)
    messages: list[dict[str, Any]] = []
    thoughts: list[str | None] = []
    told = []
    for city in ("Oslo", "Bergen", "Rome"):
        question = {"role": "user", "content": f"<reminder>Be brief.</reminder> What is the weather in {city}?"}
        messages.append(question)
        thoughts.append(None)
        for _ in "ab":
            answer = ask(made, "openai-chat", {"model": DEEPSEEK, "messages": messages, "tools": [TOOL]})
            told.append(answer.headers["thinkback-reattach"])
            assert thoughts == [message.get("reasoning_content") for message in asked(referee)["messages"]]
            said = answer.json["choices"][0]["message"]
            thoughts.append(said["reasoning_content"])
            messages.append({key: said[key] for key in ("role", "content", "tool_calls") if key in said})
            for call in said.get("tool_calls", ()):
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": "7 degrees"})
                thoughts.append(None)
        question["content"] = question["content"].removeprefix("<reminder>Be brief.</reminder> ")

    assert ["not-needed", *["complete"] * 5] == told


def test_a_setting_among_the_messages_costs_no_bound_reasoning(referee: Referee) -> None:
    """Claude Code and Codex put parameters there, which another dialect's request does not have there."""
    made = engine(Fresh(), referee)
    said: list[Any] = [{"type": "configuration_update", "reasoning": {"effort": "low"}}]
    said.append({"role": "user", "content": "What is the weather in Oslo?"})
    body = {"model": BOUND, "input": said, "tools": [{"type": "function", **FUNCTION}]}
    (call,) = (item for item in ask(made, "openai-responses", body).json["output"] if item["type"] == "function_call")
    said += [call, {"type": "function_call_output", "call_id": call["call_id"], "output": "7 degrees"}]
    ask(made, "openai-responses", body)

    assert [200, 200] == [seen.status for seen in referee.requests]
    assert ["thinking", "tool_use"] == [part["type"] for part in asked(referee)["messages"][1]["content"]]


@pytest.mark.parametrize("model", [DEEPSEEK, BOUND, "openai/gpt-5.6"])
def test_reasoning_that_no_answer_followed_is_not_gone_on_with(referee: Referee, model: str) -> None:
    """Codex keeps it of a response that broke off, and asks again with it as the last of what was said."""
    made = engine(Fresh(), referee)
    said: list[Any] = [{"role": "user", "content": "Hello."}]
    body = {"model": model, "input": said, "include": ["reasoning.encrypted_content"], "store": False}
    said += [item for item in ask(made, "openai-responses", body).json["output"] if item["type"] == "reasoning"]
    again = ask(made, "openai-responses", body)

    assert (2, 200, [200, 200]) == (len(said), again.status, [seen.status for seen in referee.requests])
    assert referee.requests[0].raw == referee.requests[1].raw


def test_a_result_that_is_sent_twice_is_one(referee: Referee) -> None:
    """Gemini CLI does that when it resumes: the conversation is recognised, and the host gets each result once."""
    made = engine(Fresh(), referee)
    tools = [{"functionDeclarations": [FUNCTION]}]
    contents: list[Any] = [{"role": "user", "parts": [{"text": "What is the weather in Oslo?"}]}]

    def answer() -> Any:
        kept = ask(made, "gemini", {"contents": contents, "tools": tools}, model="gemini/gemini-3-pro", streams=False)
        parts = [part for part in kept.json["candidates"][0]["content"]["parts"] if not part.get("thought")]
        for part in parts:
            part.pop("thoughtSignature", None)
        contents.append({"role": "model", "parts": parts})
        return kept

    answer()
    call = contents[-1]["parts"][0]["functionCall"]
    result = {"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "sunny"}}}
    contents.append({"role": "user", "parts": [result]})
    answer()
    contents[2]["parts"].append(result)
    contents.append({"role": "user", "parts": [{"text": "And in Rome?"}]})
    resumed = answer()

    assert ("complete", [200] * 3) == (
        resumed.headers["thinkback-reattach"],
        [seen.status for seen in referee.requests],
    )
    assert [result] == asked(referee)["contents"][2]["parts"]


@pytest.mark.parametrize("stream", [False, True])
def test_report_is_for_the_client_that_asked_for_it(referee: Referee, stream: bool) -> None:
    """What a rule sets to keep earlier thinking is the gateway's own business; some clients choke on the answer."""
    made = engine(Fresh(), referee)
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    body = {
        "model": "anthropic/claude-sonnet-4-5",
        "max_tokens": 16_000,
        "stream": stream,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "messages": [{"role": "user", "content": "Hello."}],
    }
    headers = {"thinkback-set": "reasoning.includeInContext=true"}
    silent = ask(made, "anthropic", body, headers=headers)
    beta = {"anthropic-beta": "context-management-2025-06-27"}
    told = ask(made, "anthropic", {**body, "context_management": edits}, headers=beta)

    assert [200, 200] == [silent.status, told.status]
    assert ["context_management"] * 2 == [name for seen in referee.requests for name in seen.body if "context" in name]
    assert (False, True) == tuple(b'"context_management"' in kept.body for kept in (silent, told))


def test_betas_of_a_client_go_along_where_its_dialect_is_spoken(referee: Referee) -> None:
    """They stand beside those that a rule asks for; a place of another dialect is not told."""
    made, shape = engine(Fresh(), referee), "structured-outputs-2025-11-13"
    headers = {"anthropic-beta": shape, "x-client": "mine"}
    for model in (BOUND, "deepseek/deepseek-v4-pro"):
        body = {"model": model, "max_tokens": 2000, "messages": [{"role": "user", "content": "Hello."}]}
        assert 200 == ask(made, "anthropic", body, headers=headers).status
    same, other = (seen.headers for seen in referee.requests)

    assert ["thinking-binding-controls-2026-08-01", shape] == same["anthropic-beta"].split(",")
    assert not {"anthropic-beta", "x-client"} & other.keys()
    assert "x-client" not in same


def test_betas_that_an_upstream_does_not_know_stay_behind(referee: Referee) -> None:
    """Claude on Vertex refuses a name that it does not know; what such a beta allows in a message stays behind too."""
    places = {name: referee.base_url(name) for name in ("anthropic", "vertex-claude")}
    made, known, unknown = engine(Fresh(), places), "context-management-2025-06-27", "per-turn-control-2026-07-01"
    words = [
        {"role": "user", "content": "Hello."},
        {"role": "system", "content": "Be brief.", "output_config": {"effort": "low"}},
    ]
    body = {"max_tokens": 2000, "messages": words}
    for model in ("vertex-claude/claude-opus-5-5", BOUND):
        headers = {"anthropic-beta": f"{unknown}, {known},claude-code-20250219"}
        assert 200 == ask(made, "anthropic", {**body, "model": model}, headers=headers).status
    there, at_home = referee.requests

    assert (True, False) == (known in there.headers["anthropic-beta"], unknown in there.headers["anthropic-beta"])
    assert unknown in at_home.headers["anthropic-beta"]
    assert (False, True) == tuple(b'"output_config"' in seen.raw for seen in (there, at_home))


def test_what_needs_thinking_stays_behind_where_it_is_off(referee: Referee) -> None:
    """A tool loop without its reasoning, of a client that asks to clear earlier thinking."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    body = {
        "model": "anthropic/claude-sonnet-4-5",
        "max_tokens": 16_000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]},
        ],
    }
    headers = {"anthropic-beta": "context-management-2025-06-27"}

    assert 200 == ask(engine(Fresh(), referee), "anthropic", body, headers=headers).status
    assert [200] == [seen.status for seen in referee.requests]
    assert {"type": "disabled"} == referee.requests[0].body["thinking"]
