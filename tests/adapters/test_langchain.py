"""Middleware for agents of LangChain: their calls go through the transport, whatever their messages have lost."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

import thinkback
from bench.gateway_clients.holding import hold
from bench.gateway_clients.job import ASYNC, STREAMED, SYNC, TOOLS, Job
from bench.gateway_clients.page import Judged
from bench.gateway_clients.places import DEMANDS, PLACES, front_of
from bench.peers.places import KEY, VERSION, Place
from tests.adapters.hosts import need
from thinkback.errors import StoreError
from thinkback_referee import KNOWN, Referee, RejectCarrier, Step, code_word

need("langchain")
need("langgraph")

from langchain.agents import create_agent  # noqa: E402
from langchain_anthropic import ChatAnthropic  # noqa: E402
from langchain_core.language_models import FakeListChatModel  # noqa: E402
from langchain_google_genai import ChatGoogleGenerativeAI  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402

from thinkback.adapters.langchain import ThinkbackMiddleware  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("DeprecationWarning", "ResourceWarning", "pytest.PytestUnraisableExceptionWarning")
]
PLACE = PLACES["DeepSeek chat"]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Connections that nobody closes end with the test that made them."""
    yield
    gc.collect()


def model_of(place: Place, referee: Referee, **more: Any) -> Any:
    """The chat model of LangChain for a place, as its documentation has it."""
    base = referee.base_url(place.host)
    given = {"model": place.model, "max_retries": 0, **more}
    match front_of(place):
        case "anthropic":
            thinks = {"thinking": {"type": "enabled", "budget_tokens": 10_000}} if place.effort else {}
            base = base.removesuffix("/v1")
            return ChatAnthropic(
                base_url=base, api_key=KEY, max_tokens=16_000, default_headers=VERSION, **thinks, **given
            )
        case "gemini":
            base = base.removesuffix("/v1beta")
            return ChatGoogleGenerativeAI(base_url=base, google_api_key=KEY, temperature=None, **given)
        case front:
            effort = {"reasoning_effort": place.effort} if place.effort else {}
            return ChatOpenAI(
                base_url=base, api_key=KEY, use_responses_api=front == "openai-responses", **effort, **given
            )


def ask(agent: Any, prompt: str, thread: str = "t") -> Any:
    """The last message."""
    config = {"configurable": {"thread_id": thread}}
    return agent.invoke({"messages": [{"role": "user", "content": prompt}]}, config)["messages"][-1]


def agent_of(model: Any, middleware: ThinkbackMiddleware) -> Any:
    return create_agent(model, list(TOOLS.values()), middleware=[middleware], checkpointer=InMemorySaver())


class _Agent:
    """Has a conversation by an agent."""

    def __init__(self, place: Place, referee: Referee, log: Path) -> None:
        self._agent = agent_of(model_of(place, referee), ThinkbackMiddleware(log, endpoint=place.endpoint))

    def hold(self, job: Job) -> tuple[list[str], str]:
        try:
            return [self._said(job, prompt) for prompt in job.prompts], ""
        except Exception as error:
            return [], f"{type(error).__name__}: {error}"

    def _said(self, job: Job, prompt: str) -> str:
        asked, config = {"messages": [{"role": "user", "content": prompt}]}, {"configurable": {"thread_id": "t"}}
        if job.mode == SYNC:
            return str(ask(self._agent, prompt).text)
        if job.mode == ASYNC:
            return str(asyncio.run(self._agent.ainvoke(asked, config))["messages"][-1].text)
        list(self._agent.stream(asked, config, stream_mode="messages"))
        return str(self._agent.get_state(config).values["messages"][-1].text)


@pytest.mark.parametrize("mode", [SYNC, ASYNC, STREAMED])
@pytest.mark.parametrize("name", sorted(name for name in DEMANDS if front_of(PLACES[name])))
def test_three_questions_at_every_provider_that_demands_reasoning(
    name: str, mode: str, referee: Referee, tmp_path: Path
) -> None:
    """Nothing is refused and nothing forgotten; the conversation is one session, called after the thread."""
    place, log = PLACES[name], tmp_path / "chats.db"
    job = Job("langchain", mode, "", "", place.model, place.effort, [], "", place.endpoint)
    held = hold(_Agent(place, referee, log), referee, job, place, True)

    assert "ok" == Judged([held]).word(held), held
    with thinkback.open(log) as store:
        (info,) = store.sessions()
        assert ("t", 3) == (info.name, [commit.kind for commit in store.commits("t")].count("user"))


def test_without_it_the_same_model_is_refused(referee: Referee) -> None:
    """What the test above proves something about."""
    referee.reset()
    agent = create_agent(model_of(PLACE, referee), list(TOOLS.values()), checkpointer=InMemorySaver())
    with pytest.raises(Exception, match="must be passed back"):
        ask(agent, "What is the weather in Oslo?")


def test_each_answer_says_what_became_of_its_call(referee: Referee, tmp_path: Path) -> None:
    """Also where calls of several threads run side by side, and outside of the agent."""
    referee.reset()
    agent = agent_of(model_of(PLACE, referee), ThinkbackMiddleware(tmp_path / "chats.db", endpoint="deepseek"))
    with ThreadPoolExecutor(4) as threads:
        asked = list(threads.map(lambda n: ask(agent, f"What is the weather in city {n}?", f"t{n}"), range(4)))
    with thinkback.open(tmp_path / "chats.db") as store:
        for number, message in enumerate(asked):
            said = message.response_metadata["thinkback"]
            assert store.find(f"t{number}").id == said["session"]
            assert "goes back in reasoning_content" in said["why"]
    with thinkback.conversation("mine"):
        last = ask(agent, "And now?", "another")
        assert last.response_metadata["thinkback"]["why"] == str(thinkback.why())
    with thinkback.open(tmp_path / "chats.db") as store:
        assert store.find("mine").id == last.response_metadata["thinkback"]["session"]


def test_a_refusal_over_reasoning_is_repaired(referee: Referee, tmp_path: Path) -> None:
    """The agent sees an answer, which says that it took two requests."""
    referee.reset()
    place = PLACES["Anthropic 5.5"]
    agent = agent_of(model_of(place, referee), ThinkbackMiddleware(tmp_path / "chats.db", endpoint="anthropic"))
    ask(agent, "First?")
    referee.push(Step(fault=RejectCarrier()))
    ask(agent, "Second?")
    messages = agent.get_state({"configurable": {"thread_id": "t"}}).values["messages"]
    told = [message.response_metadata["thinkback"]["why"] for message in messages if message.type == "ai"]

    assert 1 == sum("sent 2 times: the provider refused its reasoning first" in why for why in told)


def test_a_client_of_the_programs_own_goes_on_below(referee: Referee, tmp_path: Path) -> None:
    """With its hooks, sync and async; the model that was given is as it was."""
    seen: list[str] = []

    async def note(request: httpx2.Request) -> None:
        seen.append("async")

    own = httpx2.Client(event_hooks={"request": [lambda request: seen.append("sync")]})
    own_async = httpx2.AsyncClient(event_hooks={"request": [note]})
    model = model_of(PLACE, referee, http_client=own, http_async_client=own_async)
    before = model.root_client
    middleware = ThinkbackMiddleware(tmp_path / "chats.db", endpoint="deepseek")
    agent = agent_of(model, middleware)
    referee.push(Step(reasoning="Hm.", text="Hi."), Step(reasoning="Hm.", text="On."))
    ask(agent, "Hi")
    asyncio.run(agent.ainvoke({"messages": [("user", "On")]}, {"configurable": {"thread_id": "t"}}))

    assert ["sync", "async"] == seen
    assert model.root_client is before
    with thinkback.open(tmp_path / "chats.db") as store:
        assert 2 == [commit.kind for commit in store.commits("t")].count("user")


def test_wrong_use_is_said(referee: Referee, tmp_path: Path) -> None:
    """A model without an HTTP client, a closed log, an option that is none, a thread that cannot name a session."""
    agent = agent_of(FakeListChatModel(responses=["."]), ThinkbackMiddleware(tmp_path / "chats.db"))
    with pytest.raises(TypeError, match="FakeListChatModel has no HTTP client that can be replaced"):
        ThinkbackMiddleware(tmp_path / "chats.db").through(agent and FakeListChatModel(responses=["."]))
    store = thinkback.open(tmp_path / "chats.db")
    store.close()
    with pytest.raises(StoreError, match="closed"):
        ThinkbackMiddleware(store)
    with pytest.raises(TypeError, match="endpont"):
        ThinkbackMiddleware(tmp_path / "chats.db", endpont="deepseek")
    fine = agent_of(model_of(PLACE, referee), ThinkbackMiddleware(tmp_path / "chats.db", endpoint="deepseek"))
    with pytest.raises(thinkback.errors.ThinkbackError, match="cannot be the name of a session"):
        ask(fine, "Hi", "a\nb")


def test_a_log_in_trouble_fails_no_call(referee: Referee, tmp_path: Path) -> None:
    """It is warned of once, and the answer says that it is not recorded."""
    referee.reset()
    referee.push(Step(reasoning="Hm.", text="Fine."))
    (tmp_path / "chats.db").write_bytes(b"no log" * 100)
    agent = agent_of(model_of(PLACE, referee), ThinkbackMiddleware(tmp_path / "chats.db", endpoint="deepseek"))
    with pytest.warns(RuntimeWarning, match=r"chats\.db"):
        message = ask(agent, "Hi")

    assert "Fine." == message.text
    assert "not recorded" in message.response_metadata["thinkback"]["why"]


def test_what_one_agent_began_another_goes_on_with(referee: Referee, tmp_path: Path) -> None:
    """From the texts alone, at a provider that refuses calls without their reasoning."""
    referee.reset()
    first = agent_of(model_of(PLACE, referee), ThinkbackMiddleware(tmp_path / "chats.db", endpoint="deepseek"))
    ask(first, "What is the weather in Oslo?")
    middleware = ThinkbackMiddleware(tmp_path / "chats.db", endpoint="deepseek")
    agent = create_agent(model_of(PLACE, referee), list(TOOLS.values()), middleware=[middleware])
    history = first.get_state({"configurable": {"thread_id": "t"}}).values["messages"]
    answer = agent.invoke({"messages": [*history, ("user", "And in Rome?")]})["messages"][-1]

    assert KNOWN.format(word=code_word("What is the weather in Oslo?")) in answer.text
    with thinkback.open(tmp_path / "chats.db") as store:
        assert ["t"] == [info.name for info in store.sessions()]
