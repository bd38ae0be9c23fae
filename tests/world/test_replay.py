"""Whose reasoning a request carries, where the visible words of conversations are equal and prompts change."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest

import thinkback
from tests.cli.conftest import Inside
from tests.world.clients import (
    CHAT_TOOL,
    KEY,
    QUESTION,
    async_chat_loop,
    chat_loop,
    claude_client,
    claude_turn,
    gemini_loop,
    openai_client,
)
from tests.world.gateway import gateway
from tests.world.histories import claude_code, write
from tests.world.mind import Json
from tests.world.server import PLACES, Exchange, World


def loops(exchanges: list[Exchange]) -> list[tuple[bool, ...]]:
    """For each tool loop, whether its second request carries the reasoning of one conversation, whole, and no other."""
    seconds = [each for each in exchanges if "4 degrees" in str(each.body)]
    assert {200} == {each.status for each in exchanges}
    return [(len(each.carried) == 1,) for each in seconds]


# -- twins -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["kimi", "deepseek"])
def test_twins_a_program_that_runs_three_times_loses_nothing(world: World, tmp_path: Path, provider: str) -> None:
    """The same script on the same log: its calls have the same ids each time."""
    for run in range(3):
        with thinkback.http_client(tmp_path / "log.db", endpoint=provider) as http:
            chat_loop(openai_client(world.url(provider), http), PLACES[provider].model, [])
            assert "missing" not in str(thinkback.why()), f"run {run}"
    seconds = world.of(provider)[1::2]

    assert [[1], [3], [5]] == [each.carried for each in seconds]


def test_twins_five_at_once_lose_nothing(world: World, tmp_path: Path) -> None:
    """``asyncio.gather`` of five samples of one question; each second request carries one thought."""

    async def gathered() -> None:
        http = thinkback.async_http_client(tmp_path / "log.db", endpoint="kimi")
        async with openai.AsyncOpenAI(
            base_url=world.url("kimi"), api_key=KEY, http_client=http, max_retries=0
        ) as client:
            await asyncio.gather(*(async_chat_loop(client, PLACES["kimi"].model) for _ in range(5)))

    asyncio.run(gathered())

    assert [(True,)] * 5 == loops(world.of("kimi"))


def test_twins_with_names_get_their_own(world: World, tmp_path: Path) -> None:
    """Ten conversations, equal but for their names, whose second steps come in another order than their first."""
    model = PLACES["kimi"].model
    with thinkback.http_client(tmp_path / "log.db", endpoint="kimi") as http:
        client = openai_client(world.url("kimi"), http)
        kept: dict[str, list[Json]] = {f"run-{number}": [] for number in range(10)}
        for name, messages in kept.items():
            with thinkback.conversation(name):
                messages.extend(chat_loop(client, model, [])[:3])
        firsts = {name: world.of("kimi")[2 * at].serial for at, name in enumerate(kept)}
        world.exchanges.clear()
        for name, messages in reversed(kept.items()):
            with thinkback.conversation(name):
                client.chat.completions.create(model=model, messages=messages, tools=[CHAT_TOOL])  # type: ignore[arg-type, list-item]
    carried = [each.carried for each in world.of("kimi")]

    assert [[firsts[name]] for name in reversed(kept)] == carried


def test_twins_of_gemini_send_the_signature_and_no_stand_in(world: World, tmp_path: Path) -> None:
    """Calls without ids: the second and third run find a signature that is in the log."""
    for _ in range(3):
        with thinkback.http_client(tmp_path / "log.db", endpoint="gemini") as http:
            gemini_loop(f"{world.origin}/gemini", http, PLACES["gemini"].model)
    seconds = world.of("gemini")[1::2]

    assert [False] * 3 == ["skip_thought_signature_validator" in str(each.body) for each in seconds]
    assert [(True,)] * 3 == loops(world.of("gemini"))


@pytest.mark.parametrize("provider", [name for name in PLACES if name != "openai-chat"])
def test_twins_at_the_gateway_lose_nothing(world: World, tmp_path: Path, provider: str) -> None:
    """Five equal conversations of a forgetful client, in each dialect; the header says so too."""
    with gateway(world, tmp_path) as house:
        client = openai_client(f"http://127.0.0.1:{house.port}/v1")
        for _ in range(5):
            chat_loop(client, f"{provider}/{PLACES[provider].model}", [])

    assert [(True,)] * 5 == loops(world.of(provider))


def test_twins_in_two_processes_lose_nothing(world: World, tmp_path: Path) -> None:
    """Two programs at once on one log."""
    program = """
import sys, thinkback
with thinkback.http_client(sys.argv[1], endpoint="kimi") as http:
    for _ in range(3):
        tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
        body = {"model": "kimi-k2.6", "tools": [tool]}
        messages = [{"role": "user", "content": "What is the weather in Oslo?"}]
        answer = http.post(sys.argv[2] + "/chat/completions", json={**body, "messages": messages}).json()
        message = answer["choices"][0]["message"]
        calls = [{k: v for k, v in call.items() if k != "index"} for call in message["tool_calls"]]
        messages.append({"role": "assistant", "content": message["content"], "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": calls[0]["id"], "content": "4 degrees, rain"})
        http.post(sys.argv[2] + "/chat/completions", json={**body, "messages": messages}).raise_for_status()
"""
    line = [sys.executable, "-c", program, str(tmp_path / "log.db"), world.url("kimi")]
    for process in [subprocess.Popen(line) for _ in range(2)]:
        assert 0 == process.wait(60)

    assert [(True,)] * 6 == loops(world.of("kimi"))


# -- prompts that change -----------------------------------------------------------------------------------------------


def test_a_prompt_that_changes_back_keeps_its_thinking(world: World, tmp_path: Path) -> None:
    """Under A, C, A, A: what was thought under A is valid again, what was thought under C is not."""
    model, messages = PLACES["anthropic"].model, list[Json]()
    with thinkback.http_client(tmp_path / "log.db", endpoint="anthropic") as http:
        client = claude_client(f"{world.origin}/anthropic", http)
        for number, system in enumerate("ACAA"):
            claude_turn(client, model, messages, f"Question {number}", system=f"You are {system}.")
    sent = world.of("anthropic")

    assert [200] * 4 == [each.status for each in sent]
    assert [[], [], [1], [1, 3]] == [each.carried for each in sent]


def test_a_prompt_that_changes_back_at_the_gateway(world: World, tmp_path: Path) -> None:
    """As Claude Code does it: ``-p``, ``-c -p --append-system-prompt``, ``-c -p``; it keeps the blocks it was given."""
    model, messages = PLACES["anthropic"].model, list[Json]()
    with gateway(world, tmp_path) as house:
        client = claude_client(f"http://127.0.0.1:{house.port}")
        for number, parts in enumerate((["A"], ["A", "X"], ["A"], ["A"])):
            system = [{"type": "text", "text": f"You are {part}."} for part in parts]
            name = f"anthropic/{model}"
            claude_turn(client, name, messages, f"Question {number}", system=system, forgets=False)
    sent = world.of("anthropic")

    assert [200] * 4 == [each.status for each in sent]
    assert [[], [], [1], [1, 3]] == [each.carried for each in sent]


PROMPTS = (("A", "AB"), ("A", "", "A"), ("ABC", "AC", "ABC"), ("AB", "BA"))


@pytest.mark.parametrize("prompts", PROMPTS, ids="-".join)
@pytest.mark.parametrize("provider", ["deepseek", "kimi", "anthropic"])
def test_the_parts_of_a_clients_prompt_stay_where_it_put_them(
    world: World, tmp_path: Path, provider: str, prompts: tuple[str, ...]
) -> None:
    """By the gateway: what stands in front of the messages is what the client put there, in its order."""
    model = f"{provider}/{PLACES[provider].model}"
    messages: list[Json] = []
    with gateway(world, tmp_path) as house:
        for number, parts in enumerate(prompts):
            words = [f"You are {part}." for part in parts]
            if provider == "anthropic":
                system = [{"type": "text", "text": text} for text in words]
                client = claude_client(f"http://127.0.0.1:{house.port}")
                more: Any = {"system": system} if system else {}
                claude_turn(client, model, messages, f"Question {number}", **more)
            else:
                messages = [*({"role": "system", "content": text} for text in words), *_without_system(messages)]
                messages.append({"role": "user", "content": f"Question {number}"})
                answer = openai_client(f"http://127.0.0.1:{house.port}/v1").chat.completions.create(
                    model=model,
                    messages=messages,  # type: ignore[arg-type]
                )
                messages.append({"role": "assistant", "content": answer.choices[0].message.content})

    assert [[f"You are {part}." for part in parts] for parts in prompts] == [_leading(e) for e in world.of(provider)]
    assert not [message for each in world.of(provider) for message in _behind(each) if "You are" in str(message)]


def _without_system(messages: list[Json]) -> list[Json]:
    return [message for message in messages if message["role"] != "system"]


def _leading(exchange: Exchange) -> list[str]:
    """The parts of the system prompt in front."""
    if exchange.provider == "anthropic":
        return [part["text"] for part in exchange.body.get("system", ())]
    return [m["content"] for m in exchange.body["messages"][: -len(_behind(exchange))]]


def _behind(exchange: Exchange) -> list[Json]:
    messages: list[Json] = exchange.body["messages"]
    first = next(at for at, message in enumerate(messages) if message["role"] != "system")
    return messages[first:]


# -- whose thoughts they are -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["kimi", "deepseek", "vllm", "ollama", "mistral", "cohere"])
def test_imported_thoughts_of_another_model_stay_here(world: World, tmp_path: Path, cli: Inside, provider: str) -> None:
    """Claude's thoughts, imported from Claude Code, never go out in another model's field."""
    place = PLACES[provider]
    imported = cli("import", "--program", "claude-code", str(write(tmp_path / "claude.jsonl", claude_code())))
    assert 0 == imported.code, imported.err
    with thinkback.open(cli.db, rules={}, settings={}) as store:
        name = store.sessions()[0].name
        session = store.session(
            name, endpoint=place.endpoint, model=place.model, base_url=world.url(provider), api_key=KEY
        )
        session.chat(QUESTION)

    assert 200 == world.of(provider)[-1].status
    assert "Answer 3" in str(world.of(provider)[-1].body)
    assert "Claude thinks" not in str(world.of(provider)[-1].body)


def test_thoughts_of_another_model_stay_here_after_an_export(world: World, tmp_path: Path, cli: Inside) -> None:
    """The same by way of our own ``export --with-reasoning``, which has no endpoint of the thoughts either."""
    cli("import", "--program", "claude-code", str(write(tmp_path / "claude.jsonl", claude_code())))
    assert 0 == cli("export", str(tmp_path / "export.jsonl"), "--with-reasoning").code
    place = PLACES["deepseek"]
    with thinkback.open(tmp_path / "other.db", rules={}, settings={}) as store:
        store.import_(tmp_path / "export.jsonl")
        name = store.sessions()[0].name
        session = store.session(
            name, endpoint="deepseek", model=place.model, base_url=world.url("deepseek"), api_key=KEY
        )
        session.chat(QUESTION)

    assert "Claude thinks" not in str(world.of("deepseek")[-1].body)
