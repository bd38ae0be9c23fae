"""Sizes, budgets and figures: what is sent is what is counted, and no number of a provider stops anything."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.cli.conftest import Inside
from tests.servers.gateway.harness.running import Reply
from tests.world.clients import KEY, QUESTION
from tests.world.gateway import gateway
from tests.world.mind import ABSURD, Mood
from tests.world.server import PLACES, World
from thinkback.compile.counts import estimate_thinking_tokens
from thinkback.errors import BudgetSpent
from thinkback.model.blocks import ThinkingBlock
from thinkback.servers.gateway.access.keys import Terms, new_key
from thinkback.servers.gateway.grant import Budget
from thinkback.servers.viewer.numbers import Figures
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.stores.gateway_state import open_gateway_state

ABSURDITIES = [*ABSURD]


def get_weather(city: str) -> str:
    """The weather in a city, in as many words as weather has."""
    return f"{city}: 4 degrees, rain. " * 20


def opened(store: SessionStore, world: World, provider: str, name: str = "talk") -> Session:
    """A session at a provider."""
    place = PLACES[provider]
    return store.session(name, endpoint=place.endpoint, model=place.model, base_url=world.url(provider), api_key=KEY)


# -- how large the next request is -------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai", "anthropic", "interactions", "bedrock", "kimi", "ollama"])
def test_the_size_of_the_next_request_is_what_the_provider_counts(world: World, provider: str) -> None:
    """With hidden thoughts behind short summaries, a system prompt and tools: within 10 % or 200 tokens."""
    world.mood.thinking = 0 if provider in ("kimi", "ollama") else 3_000
    pairs = []
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        session = opened(store, world, provider)
        session.commit("You are terse. " * 400, kind="system")
        for turn in range(5):
            expected = session.explain(next=True).counts.effective if turn else 0
            at = len(world.exchanges)
            session.chat(f"{turn}: {QUESTION}", tools=[get_weather])
            pairs.append((expected, world.exchanges[at].tokens))

    assert [] == [(said, true) for said, true in pairs[1:] if abs(said - true) > max(200, true / 10)]


def test_compaction_comes_before_the_context_is_full(world: World) -> None:
    """By what the provider reports: a model of 40,000 tokens whose thoughts are hidden never gets more."""
    world.mood.thinking = 3_000
    rules = {"small.toml": '[[model]]\nmodel = "gpt-5.4"\nendpoint = "openai"\ncontext = 40000\nsource = "us"\n'}
    with thinkback.open(":memory:", rules=rules, settings={}) as store:
        session = opened(store, world, "openai")
        for turn in range(20):
            session.chat(f"{turn}: {QUESTION}", settings={"reasoning.includeInContext": True})
        made = session.compaction.list()

    assert max(each.tokens for each in world.of("openai")) < 40_000
    assert made


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])
def test_the_context_of_a_known_model_is_known(world: World, provider: str) -> None:
    """Without a limit nothing is ever compacted."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        session = opened(store, world, provider)
        session.commit(QUESTION)

        assert session.explain(next=True).counts.limit > 100_000


# -- a budget of reasoning ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "openai"])
def test_a_budget_stops_hidden_thinking(world: World, provider: str) -> None:
    """Where usage has no count for it, thinking is the output less what is visible."""
    world.mood = Mood(thinking=5_000, counts_thinking=False)
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        session = opened(store, world, provider)
        session.set("reasoning.budget", 2_000)
        session.set("reasoning.budgetAction", "stop")
        session.chat("Why?")
        with pytest.raises(BudgetSpent):
            session.chat("And why that?")

    assert 1 == len(world.exchanges)


@pytest.mark.parametrize(
    "text", ["我们需要先查看文件。", "まずファイルを確認します。", "먼저 파일을 확인합니다."], ids=["zh", "ja", "ko"]
)
def test_hidden_thinking_in_scripts_without_spaces_is_more_than_a_quarter(text: str) -> None:
    """A character of Chinese, Japanese or Korean is about a token."""
    tokens = estimate_thinking_tokens([ThinkingBlock(text * 100)])

    assert len(text) * 100 / 2 <= tokens <= len(text) * 100 * 2


# -- absurd numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ABSURDITIES)
def test_no_absurd_number_stops_a_session(world: World, cli: Inside, kind: str) -> None:
    """In every dialect, twice in a row, whole and streamed; every figure that is shown afterwards can be."""
    world.mood = Mood(usage=kind)
    with thinkback.open(cli.db, rules={}, settings={}) as store:
        for provider in PLACES:
            session = opened(store, world, provider, provider)
            for question in ("Why?", "And why that?"):
                assert "degrees" in session.chat(question).text, provider
            with session.stream("And that?") as stream:
                assert list(stream), provider
            session.explain(next=True)
    shown = cli("usage", "--all", "--json")

    assert 0 == shown.code, shown.err
    assert [] == [number for number in _numbers(shown.json) if not 0 <= number < 10**9]


def _numbers(value: Any) -> list[float]:
    match value:
        case bool():
            return []
        case int() | float():
            return [] if value > 1e15 and value < 1e17 else [value]  # a time in microseconds
        case dict():
            return [number for inner in value.values() for number in _numbers(inner)]
        case list():
            return [number for inner in value for number in _numbers(inner)]
        case _:
            return []


@pytest.mark.parametrize("kind", ["1e18", "below-int64", "past-int64", "negative", "not-finite"])
def test_one_absurd_number_costs_no_other_key_its_budget(world: World, tmp_path: Path, kind: str) -> None:
    """What another key spent is counted, and still is after a restart: a budget that was spent stays so."""
    state = open_gateway_state(tmp_path)
    secrets = {}
    for name in ("unlucky", "limited"):
        terms = Terms(budget=Budget("total", tokens=60)) if name == "limited" else Terms()
        secrets[name], row = new_key(terms, 1, name=name)
        state.keys.create(row)
    state.close()
    body = {"model": "kimi/kimi-k2.6", "messages": [{"role": "user", "content": "Why?"}]}

    def ask(house: Any, key: str) -> Reply:
        reply: Reply = house.ask("/v1/chat/completions", body, key=secrets[key])
        return reply

    with gateway(world, tmp_path, server={"no_auth": False}) as house:
        world.mood = Mood(usage=kind)
        assert [200] * 3 == [ask(house, "unlucky").status for _ in range(3)]
        world.mood = Mood()
        assert 200 == ask(house, "limited").status
        while (status := ask(house, "limited").status) == 200:
            assert len(world.exchanges) < 20
        assert status == 403
    with gateway(world, tmp_path, server={"no_auth": False}) as house:
        assert [403] * 2 == [ask(house, "limited").status for _ in range(2)]
        assert 200 == ask(house, "unlucky").status


@pytest.mark.parametrize("kind", ABSURDITIES)
def test_an_absurd_number_behind_a_gateway_stops_nothing(world: World, tmp_path: Path, kind: str) -> None:
    """In every dialect, whole and streamed: it is ready, and its list and its Numbers have no absurd figure."""
    world.mood = Mood(usage=kind)
    with gateway(world, tmp_path) as house:
        for provider, place in PLACES.items():
            body = {"model": f"{provider}/{place.model}", "messages": [{"role": "user", "content": f"{provider}?"}]}
            assert 200 == house.ask("/v1/chat/completions", body, key=None).status, provider
            assert 200 == house.ask("/v1/chat/completions", {**body, "stream": True}, key=None).status, provider
        ready = house.ask("/readyz", key=None)
    with thinkback.open(tmp_path / "default.db", rules={}, settings={}) as store:
        listed = [summary.tally for summary in store.log.summaries().values()]
        page = Figures(store).report(0)

    assert (200, True) == (ready.status, ready.json["ready"])
    assert "fail" not in ready.body.decode()
    assert len(PLACES) <= len(listed)
    assert [] == [tally for tally in listed if not 0 <= tally.tokens < 10**6 or not 0 <= tally.reasoning < 10**6]
    assert 2 * len(PLACES) == page.total.responses
    assert all(0 <= number < 10**6 for number in page.total)


def test_agents_with_ordinary_budgets_work_side_by_side(world: World, tmp_path: Path) -> None:
    """Several at once, each with a key of its own or all with one: none is refused while there is enough for all."""
    state = open_gateway_state(tmp_path)
    secrets = []
    for name in ("first", "second", "shared"):
        secret, row = new_key(Terms(budget=Budget("day", tokens=500_000)), 1, name=name)
        state.keys.create(row)
        secrets.append(secret)
    state.close()
    agents = [secrets[0], secrets[1], *[secrets[2]] * 4]
    told = "You are an agent with many tools. " * 400
    together = threading.Barrier(len(agents))

    def work(at: int) -> list[int]:
        messages: list[Any] = [{"role": "system", "content": told}]
        statuses = []
        for step in range(6):
            messages.append({"role": "user", "content": f"{at}.{step}: {QUESTION}"})
            together.wait(30)
            body = {"model": "kimi/kimi-k2.6", "max_tokens": 16_000, "messages": messages}
            reply = house.ask("/v1/chat/completions", body, key=agents[at])
            statuses.append(reply.status)
            messages.append(reply.json["choices"][0]["message"])
        return statuses

    with (
        gateway(world, tmp_path, server={"no_auth": False}) as house,
        ThreadPoolExecutor(len(agents)) as pool,
    ):
        found = list(pool.map(work, range(len(agents))))

    assert [[200] * 6] * len(agents) == found
