"""What the gateway mends since it knows the place: a program of one host's dialect before another of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.servers.gateway.harness.running import Running, running
from thinkback.servers.gateway.running.server import Start
from thinkback_referee import Referee

MODEL = "deepseek-anthropic/deepseek-v4-pro"
HOSTS = {
    "deepseek-anthropic": "deepseek-anthropic",
    "azure-openai": "azure",
    "openai": "openai",
    "deepseek": "deepseek",
    "gemini": "gemini",
    "gemini-openai": "gemini-openai",
}
PASSTHROUGH = "internal_chat_message_metadata_passthrough"


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    """One for all."""
    with Referee() as made:
        yield made


@pytest.fixture(scope="module")
def house(referee: Referee, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway before it, with a place of each kind."""
    place = tmp_path_factory.mktemp("mended")
    (place / "key").write_text("sk-any")
    (place / "key").chmod(0o600)
    upstreams = {
        name: {"endpoint": name, "base_url": referee.base_url(host), "key_file": str(place / "key")}
        for name, host in HOSTS.items()
    }
    with running(
        Start().opens, server={"no_auth": True}, store={"path": str(place / "store")}, upstreams=upstreams
    ) as made:
        yield made


def asked(house: Running, referee: Referee, **body: Any) -> tuple[int, list[int], Any, str]:
    """The status, those of the provider, what it got last, and what was left out."""
    before = len(referee.requests)
    reply = house.ask("/v1/messages", {"model": MODEL, "max_tokens": 4000, **body}, key=None)
    got = referee.requests[before:]
    return reply.status, [each.status for each in got], got[-1].body, reply.headers.get("thinkback-left-out", "")


def test_a_system_message_among_others_becomes_the_users_where_the_host_has_no_such_role(
    house: Running, referee: Referee
) -> None:
    """Claude Code sends them; the first system stays on top, and nothing is refused on the way."""
    said = [{"type": "text", "text": "Now it is late."}]
    messages = [{"role": "user", "content": "Hello."}, {"role": "system", "content": said}]
    status, seen, body, _ = asked(house, referee, system="Be brief.", messages=messages)

    assert (200, [200], True) == (status, seen, "Be brief." in str(body["system"]))
    assert ["user", "user"] == [message["role"] for message in body["messages"]]
    assert "Now it is late." in str(body["messages"][1]["content"])


def test_adaptive_thinking_becomes_the_way_of_thinking_that_the_host_knows(house: Running, referee: Referee) -> None:
    """It thinks by itself; the effort stays, and what was left out is named."""
    thinking = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
    status, seen, body, left = asked(house, referee, messages=[{"role": "user", "content": "Hello."}], **thinking)

    assert (200, [200], {"effort": "high"}) == (status, seen, body["output_config"])
    assert "adaptive" not in str(body)
    assert "thinking.type" in left


def test_thinking_is_off_where_tools_make_an_answer_need_the_reasoning_that_it_lacks(
    house: Running, referee: Referee
) -> None:
    """Claude Code's own words stand in the assistant's place after a compaction: the host would refuse them."""
    words = [("user", "The summary."), ("assistant", "Understood."), ("user", "Hello.")]
    messages = [{"role": who, "content": text} for who, text in words]
    tools = [{"name": "look_up", "input_schema": {"type": "object"}}]
    status, seen, body, _ = asked(house, referee, messages=messages, tools=tools)

    assert (200, [200], {"type": "disabled"}) == (status, seen, body["thinking"])


def test_a_field_that_a_host_of_chat_completions_does_not_know_stays_behind(house: Running, referee: Referee) -> None:
    """pi says of every request that nothing is to be stored."""
    body = {"model": "gemini-openai/gemini-3-pro", "messages": [{"role": "user", "content": "Hello."}], "store": False}
    reply = house.ask("/v1/chat/completions", body, key=None)

    assert (200, True) == (reply.status, "store" in reply.headers["thinkback-left-out"])
    assert "store" not in referee.requests[-1].body


def of_codex(house: Running, referee: Referee, model: str, **more: Any) -> tuple[int, list[int], Any, list[str]]:
    """What Codex asks for, with its own fields in body and items: as ``asked``, what was left out as names alone."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}
    ours = {"client_metadata": {"x-codex-installation-id": "1"}, "input": [{**item, PASSTHROUGH: {"turn_id": "t"}}]}
    before = len(referee.requests)
    reply = house.ask("/v1/responses", {"model": model, **ours, **more}, key=None)
    got = referee.requests[before:]
    left = [each.partition(":")[0] for each in reply.headers.get("thinkback-left-out", "").split("; ")]
    return reply.status, [each.status for each in got], got[-1].body, left


def test_fields_for_one_provider_go_to_that_one_alone(house: Running, referee: Referee) -> None:
    """OpenAI gets what Codex puts into its requests; Azure, which refuses it, and another dialect do not, by name."""
    status, seen, body, left = of_codex(house, referee, "openai/gpt-5.6")
    assert (200, [200], [""]) == (status, seen, left)
    assert {"x-codex-installation-id": "1"} == body["client_metadata"]
    assert {"turn_id": "t"} == body["input"][0][PASSTHROUGH]

    for model in ("azure-openai/gpt-5.6", "deepseek/deepseek-v4-pro"):
        status, seen, body, left = of_codex(house, referee, model)
        assert (200, [200]) == (status, seen)
        assert ["client_metadata", f"input.{PASSTHROUGH}"] == left
        assert "client_metadata" not in body
        assert PASSTHROUGH not in str(body)
        assert "Hello." in str(body)


def test_what_the_log_has_of_such_fields_stays_behind_too(house: Running, referee: Referee) -> None:
    """A conversation goes on from its id elsewhere: the item with the field is in the log alone."""
    first = house.ask(
        "/v1/responses",
        {"model": "openai/gpt-5.6", "input": [{"role": "user", "content": "First.", PASSTHROUGH: {}}]},
        key=None,
    )
    asked = {"model": "azure-openai/gpt-5.6", "input": "Second.", "previous_response_id": first.json["id"]}
    reply = house.ask("/v1/responses", asked, key=None)

    assert 200 == reply.status
    assert "First." in str(referee.requests[-1].body)
    assert PASSTHROUGH not in str(referee.requests[-1].body)


def test_a_field_of_claude_codes_own_stays_behind(house: Running, referee: Referee) -> None:
    """Only Anthropic is known to take it."""
    messages = [{"role": "user", "content": "Hello."}]
    status, seen, body, left = asked(house, referee, messages=messages, diagnostics={"previous_message_id": None})

    assert (200, [200], False) == (status, seen, "diagnostics" in body)
    assert left.startswith("diagnostics: ")


@pytest.mark.parametrize(
    ("output", "told"),
    [("It rains.", "It rains."), ({"rain": 1.5}, '{"rain":1.5}'), ("[1, 2]", "[1, 2]"), ([1], "[1]")],
)
def test_the_output_of_a_tool_is_its_text_in_another_dialect(
    house: Running, referee: Referee, output: object, told: str
) -> None:
    """Gemini's clients put it into an object, which says nothing elsewhere; in their own dialect it stays."""
    result = {"name": "f", "response": {"output": output}}
    contents = [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": result}]},
    ]
    tools = [{"functionDeclarations": [{"name": "f", "description": "Looks."}]}]
    got: dict[str, Any] = {}
    for model in ("deepseek/deepseek-v4-pro", "openai/gpt-5.6", MODEL, "gemini/gemini-2.5-pro"):
        path = f"/v1beta/models/{model}:generateContent"
        assert 200 == house.ask(path, {"contents": contents, "tools": tools}, key=None).status
        got[model.partition("/")[0]] = referee.requests[-1].body

    assert told == got["deepseek"]["messages"][-1]["content"]
    assert told == got["openai"]["input"][-1]["output"]
    assert told == got["deepseek-anthropic"]["messages"][-1]["content"][0]["content"]
    assert contents == got["gemini"]["contents"]
