"""Sub-agents: what they begin with, what comes back, what they may, and how they end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.log.build import texts
from tests.session.agents.test_toolbox import results
from tests.session.chats import KEY, kinds, open_session, refusals, run, statuses
from thinkback.cli.options import chosen
from thinkback.drive.http import Httpx2Transport
from thinkback.errors import Veto
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Request
from thinkback.session.agents.subagents import BRIEF, names
from thinkback.session.agents.toolbox import toolbox
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.turn.permissions import PermissionAnswer, PermissionRequest
from thinkback_referee import Call, HttpError, Referee, Stall, Step

SILENT = Step(reasoning="one two three", fault=Stall(60.0))


def task(prompt: str = "Count.", **more: object) -> Call:
    return Call("task", {"prompt": prompt, **more})


@pytest.fixture
def chat(store: SessionStore, referee: Referee) -> Session:
    """A session with the referee."""
    return open_session(store, referee)


@pytest.fixture
def tools(chat: Session, tmp_path: Path) -> Iterator[list[Any]]:
    """Its tools, sub-agents among them."""
    with toolbox(chat, ["task", "read", "write"], workspace=tmp_path) as opened:
        yield opened


def child(store: SessionStore, parent: Session) -> Session:
    """The only sub-agent that ``parent`` had."""
    [name] = names(parent)
    return store.session(name)


@pytest.mark.parametrize("way", ["sync", "async"])
def test_the_answer_of_a_sub_agent_is_the_result(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any], tmp_path: Path, way: str
) -> None:
    """It works with the tools of its parent; its reasoning is kept in a session of its own."""
    (tmp_path / "a.txt").write_text("seven")
    referee.push(
        Step(reasoning="Let me ask.", tool_calls=[task("Read a.txt.", purpose="reading")]),
        Step(reasoning="I read.", tool_calls=[Call("read", {"path": "a.txt"})]),
        Step(reasoning="Seven it is.", text="The word is seven."),
        Step(text="done"),
    )
    options: dict[str, Any] = {"tools": tools, "system": "Be brief."}
    reply = chat.chat("Go", **options) if way == "sync" else run(chat.aio.chat("Go", **options))
    assert ("done", []) == (reply.text, refusals(referee))
    made = child(store, chat)
    [told] = results(chat)
    assert told.startswith(f"The word is seven.\n[sub-agent {made.name}: 2 responses")
    assert told.endswith("state completed]")
    assert ["I read.", "Seven it is."] == texts(made.log(kinds=["reasoning"]))
    assert ["1\tseven"] == results(made)
    assert [f"Be brief.\n\n{BRIEF}"] == texts(made.log(kinds=["system"]))
    assert ("task: reading", chat.id) == (store.find(made.name).purpose, store.find(made.name).parent)
    assert "Go" not in str(referee.requests[1].body)


def test_sub_agents_of_one_response_work_at_the_same_time(store: SessionStore, referee: Referee, chat: Session) -> None:
    """As many as the settings allow, the others after them."""
    chat.set("agents.parallel", 2)
    together = threading.Barrier(2, timeout=20)

    def meet() -> str:
        """Wait for the other one."""
        together.wait()
        return "met"

    referee.push(Step(tool_calls=[task(), task(), task(), task()]))
    with toolbox(chat, ["task"]) as tools:
        referee.push(*[Step(tool_calls=[Call("meet")])] * 2)
        reply = chat.chat("Go", tools=[*tools, meet], max_steps=2)
    assert reply.state in ("completed", "capped")
    assert 4 == len(names(chat)) == len(results(chat))
    met = [result for name in names(chat) for result in results(store.session(name))]
    assert {"met"} == set(met)


def test_a_sub_agent_has_an_effort_of_its_own(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any]
) -> None:
    """Lower as it likes; higher only as far as the person lets it."""
    chat.set("reasoning.effort", "high")
    referee.push(
        Step(tool_calls=[task(effort="low")]),
        Step(text="one"),
        Step(tool_calls=[task(effort="max")]),
        Step(text="done"),
    )
    chat.chat("Go", tools=tools)
    first, second = results(chat)
    assert first.startswith("one\n")
    assert second == (
        "effort max is more than the user allows a sub-agent\n"
        "Use one of none, minimal, low, medium, high, or leave effort out."
    )
    efforts = [commit.value.settings["reasoning.effort"] for commit in requests(child(store, chat))]
    assert ["low"] == efforts
    assert "high" == chat.settings.effort
    chat.set("agents.maxEffort", "max")
    referee.push(Step(tool_calls=[task(effort="max")]), Step(text="two"), Step(text="done"))
    chat.chat("Go", tools=tools)
    assert results(chat)[2].startswith("two\n")


def requests(session: Session) -> list[Any]:
    return [commit for commit in session.log(kinds=["request"]) if isinstance(commit.value, Request)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"prompt": "x", "model": "other"},
        {"prompt": "x", "endpoint": "https://elsewhere"},
        {"prompt": "x", "settings": {"permissions.mode": "auto"}},
        {"prompt": "x", "tools": ["shell"]},
        {"prompt": "x", "effort": "unheard-of"},
        {"prompt": " "},
        {},
    ],
)
def test_a_model_says_what_is_to_be_done_and_nothing_else(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any], arguments: dict[str, object]
) -> None:
    """Not where it goes, nor with which model or permissions; no session is made for such a call."""
    referee.push(Step(tool_calls=[Call("task", arguments)]), Step(text="done"))
    assert "done" == chat.chat("Go", tools=tools).text
    assert [] == names(chat)
    assert 2 == len(referee.requests)


def test_sub_agents_have_none_of_their_own(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any]
) -> None:
    """Unless another level is allowed; then it ends there."""
    referee.push(Step(tool_calls=[task()]), Step(text="one"), Step(text="done"))
    chat.chat("Go", tools=tools)
    assert {"read", "write"} == offered(referee.requests[1].body)
    chat.set("agents.depth", 2)
    with toolbox(chat, ["task"]) as deeper:
        referee.push(Step(tool_calls=[task()]), Step(tool_calls=[task()]), *[Step(text="in")] * 3)
        chat.chat("Go", tools=deeper)
    assert [{"task"}, set()] == [offered(exchange.body) for exchange in referee.requests[4:6]]
    assert [] == refusals(referee)


def offered(body: Any) -> set[str]:
    return {tool["function"]["name"] for tool in body.get("tools", [])}


def test_a_sub_agent_inherits_what_the_call_was_made_with(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any]
) -> None:
    """The session's settings, those of the call, its parameters, its limits."""
    chat.set("reasoning.stripFromContext", "all")
    referee.push(Step(tool_calls=[task()]), *[Step(tool_calls=[Call("read", {"path": "."})])] * 3, Step(text="done"))
    chat.chat("Go", tools=tools, settings={"reasoning.effort": "low"}, params={"temperature": 0.5}, max_steps=3)
    [first, *_] = requests(child(store, chat))
    assert ("low", "all") == (
        first.value.settings["reasoning.effort"],
        first.value.settings["reasoning.stripFromContext"],
    )
    assert 0.5 == referee.requests[1].body["temperature"]
    [told] = results(chat)
    assert told.startswith("[it said nothing]\n")
    assert "3 responses" in told
    assert told.endswith("state capped]")


def test_a_sub_agent_that_fails_is_told(store: SessionStore, referee: Referee, chat: Session, tools: list[Any]) -> None:
    """The parent goes on."""
    refused = HttpError(403, {"error": {"message": "not today"}})
    referee.push(Step(tool_calls=[task()]), Step(fault=refused), Step(text="done"))
    assert "done" == chat.chat("Go", tools=tools).text
    [told] = results(chat)
    assert told.startswith(f"The sub-agent {child(store, chat).name} failed: ")
    assert "not today" in told
    assert KEY not in told


def test_what_is_left_of_the_budget_is_the_sub_agents(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any]
) -> None:
    """It cannot be got round by having others think."""
    chat.set("reasoning.budget", 100_000)
    referee.push(Step(reasoning="Let me think of it.", tool_calls=[task()]), Step(text="one"), Step(text="done"))
    chat.chat("Go", tools=tools)
    assert 1 == len(results(chat))
    chat.set("reasoning.budget", 1)
    chat.set("reasoning.budgetAction", "stop")
    made = names(chat)
    tool = next(tool for tool in tools if tool.tool.name == "task")
    with pytest.raises(Exception, match="the budget of reasoning is spent"):
        tool.function(prompt="x")
    assert made == names(chat)


def wait_for_requests(referee: Referee, count: int) -> None:
    """Wait until so many have come."""
    while len(referee.requests) < count:
        threading.Event().wait(0.01)


def interrupt_after(referee: Referee, requests: int) -> None:
    """Ctrl-C, once so many requests have come."""
    wait_for_requests(referee, requests)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_interrupting_the_parent_interrupts_its_sub_agents(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any]
) -> None:
    """What each had by then is in its log when the parent's turn is over; both can go on."""
    referee.push(Step(tool_calls=[task(), task()]), SILENT, SILENT)
    waiting = threading.Thread(target=interrupt_after, args=(referee, 3))
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        chat.chat("Go", tools=tools)
    waiting.join(10)
    assert "interrupted" == kinds(chat)[-1]
    for name in names(chat):
        made = store.session(name)
        assert "interrupted" == kinds(made)[-1]
    referee.push(*[Step(text="again")] * 3)
    assert "again" == chat.chat("And now?").text
    assert ["again", "again"] == [open_session(store, referee, name=name).chat("And now?").text for name in names(chat)]
    assert [] == refusals(referee)


def test_cancelling_the_parent_interrupts_its_sub_agents(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any]
) -> None:
    """In an event loop, by cancelling the task."""
    referee.push(Step(tool_calls=[task(), task()]), SILENT, SILENT)

    async def cancelled() -> None:
        asking = asyncio.create_task(chat.aio.chat("Go", tools=tools))
        while len(referee.requests) < 3:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    run(cancelled())
    assert ["interrupted"] * 3 == [kinds(session)[-1] for session in (chat, *map(store.session, names(chat)))]
    assert "completed" == run(chat.aio.chat("And now?")).state
    assert {200} == set(statuses(referee))


WRITE = Call("write", {"path": "a.txt", "content": "x"})


@pytest.mark.parametrize("way", ["sync", "async", "a coroutine"])
def test_a_person_is_asked_for_the_calls_of_sub_agents(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any], tmp_path: Path, way: str
) -> None:
    """By the same function, one question at a time, and told who asks."""
    chat.set("permissions.mode", "ask")
    referee.push(Step(tool_calls=[task(), task()]), *[Step(tool_calls=[WRITE])] * 2, *[Step(text="done")] * 3)
    asked: list[str] = []
    at_once: list[int] = []

    def approve(request: PermissionRequest) -> bool:
        at_once.append(1)
        asked.append(request.reason)
        wait_for_requests(referee, 3)  # else one of the two may take both steps that write
        threading.Event().wait(0.05)
        assert [1] == at_once
        at_once.clear()
        return True

    async def approve_async(request: PermissionRequest) -> bool:
        at_once.append(1)
        asked.append(request.reason)
        await asyncio.to_thread(wait_for_requests, referee, 3)
        await asyncio.sleep(0.05)
        assert [1] == at_once
        at_once.clear()
        return True

    if way == "sync":
        chat.chat("Go", tools=tools, approve=approve)
    else:
        run(chat.aio.chat("Go", tools=tools, approve=approve if way == "async" else approve_async))
    made = names(chat)
    expected = {f"sub-agent {name}: permissions.mode is ask, and write writes" for name in made}
    assert (2, expected) == (len(asked), set(asked))
    assert "x" == (tmp_path / "a.txt").read_text()
    assert "Created a.txt: 1 lines, 1 bytes." in [text for name in made for text in results(store.session(name))]


def test_always_is_for_the_next_sub_agent_too(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any]
) -> None:
    """The rule is the parent's as well."""
    chat.set("permissions.rules", "write=ask")
    once = [Step(tool_calls=[task()]), Step(tool_calls=[WRITE]), Step(text="done")]
    referee.push(*once, *once, Step(text="all"))
    asked: list[str] = []

    def approve(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.call.name)
        return PermissionAnswer(True, always=True)

    chat.chat("Go", tools=tools, approve=approve)
    assert (["write"], 2) == (asked, len(names(chat)))


@pytest.mark.parametrize("way", ["sync", "async"])
def test_always_reaches_sub_agents_that_are_running(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any], way: str
) -> None:
    """One that waits to ask the same is answered by it, also where the call's own settings say what is asked about."""
    referee.push(Step(tool_calls=[task(), task()]), *[Step(tool_calls=[WRITE])] * 2, *[Step(text="done")] * 3)
    asked: list[str] = []

    def approve(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.call.name)
        wait_for_requests(referee, 3)
        return PermissionAnswer(True, always=True)

    async def approve_async(request: PermissionRequest) -> PermissionAnswer:
        return await asyncio.to_thread(approve, request)

    settings = {"permissions.rules": "write=ask"}
    if way == "sync":
        chat.chat("Go", tools=tools, approve=approve, settings=settings)
    else:
        run(chat.aio.chat("Go", tools=tools, approve=approve_async, settings=settings))
    assert (["write"], 2) == (asked, len(names(chat)))
    assert ["completed"] * 2 == [kinds(store.session(name))[-1] for name in names(chat)]


def test_a_denial_ends_the_sub_agent_and_is_told(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any], tmp_path: Path
) -> None:
    """With nobody there it is a denial too; a sub-agent has no way around it."""
    chat.set("permissions.mode", "ask")
    referee.push(Step(tool_calls=[task()]), Step(tool_calls=[WRITE]), Step(text="done"))
    assert "done" == chat.chat("Go", tools=tools, settings={"permissions.mode": "read_only"}).text
    [told] = results(chat)
    assert told.endswith("state denied]")
    assert not (tmp_path / "a.txt").exists()
    assert "denied" == kinds(child(store, chat))[-1]


def test_hooks_of_the_parent_hold_for_sub_agents(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any], tmp_path: Path
) -> None:
    """What a program refuses it refuses there too, and it sees what happens there."""
    referee.push(Step(tool_calls=[task()]), Step(reasoning="Hm.", tool_calls=[WRITE]), *[Step(text="done")] * 2)

    def refuse(call: ToolCall) -> None:
        if call.name == "write":
            raise Veto("nothing is written here")

    seen: list[str] = []
    chat.on("pre_tool", refuse)
    chat.on("reasoning", lambda commit: seen.extend(texts([commit])))
    chat.chat("Go", tools=tools)
    assert ["The call was not run: nothing is written here"] == results(child(store, chat))
    assert not (tmp_path / "a.txt").exists()
    assert ["Hm."] == seen


def test_the_session_used_last_is_never_a_sub_agent_s(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any]
) -> None:
    """Who goes on in the last conversation goes on in their own."""
    referee.push(Step(tool_calls=[task()]), Step(text="one"), Step(text="done"))
    chat.chat("Go", tools=tools)
    child(store, chat).commit("later")
    assert "chat" != store.sessions()[0].name
    assert "chat" == chosen(store, None).name


def test_a_sub_agent_that_only_thought_goes_on(
    store: SessionStore, referee: Referee, chat: Session, tools: list[Any]
) -> None:
    """The parent gets an answer; without one it is told that there is none."""
    thought = Step(reasoning="Hm.")
    referee.push(Step(tool_calls=[task()]), thought, Step(text="one"), Step(tool_calls=[task()]), Step(text="done"))
    chat.chat("Go", tools=tools, max_steps=2)
    assert results(chat)[0].startswith("one\n[sub-agent ")


def test_a_transport_of_the_program_s_own_is_used(store: SessionStore, referee: Referee, tmp_path: Path) -> None:
    """Sub-agents go where their parent goes."""
    transport = Httpx2Transport()
    chat = open_session(store, referee, transport=transport)
    (tmp_path / "a.txt").write_text("seven")
    referee.push(
        Step(tool_calls=[task()]),
        Step(tool_calls=[Call("read", {"path": "a.txt"})]),
        Step(text="one"),
        Step(text="two"),
    )
    with toolbox(chat, ["task", "read"], workspace=tmp_path) as tools:
        assert "two" == chat.chat("Go", tools=tools).text
    assert results(chat)[0].startswith("one\n")
    transport.close()


DOOMED = """
import sys, thinkback
from thinkback.session.agents.toolbox import toolbox

with thinkback.open(sys.argv[1]) as store:
    chat = store.session("chat", endpoint="deepseek", base_url=sys.argv[2], model="deepseek-v4-pro", api_key="a-key")
    with toolbox(chat, ["task"]) as tools:
        chat.chat("Go", tools=tools)
"""


def test_parent_and_sub_agents_go_on_after_a_crash(referee: Referee, tmp_path: Path) -> None:
    """A killed program leaves two open turns: each is repaired when its session goes on."""
    referee.push(Step(reasoning="Let me ask.", tool_calls=[task(), task()]), SILENT, SILENT)
    log = str(tmp_path / "chats.db")
    environment = {**os.environ, "PYTHONPATH": str(Path(thinkback.__file__).parents[1])}
    command = [sys.executable, "-c", DOOMED, log, referee.base_url("deepseek")]
    with subprocess.Popen(command, env=environment) as doomed:
        while len(referee.requests) < 3:
            threading.Event().wait(0.02)
        doomed.kill()
    referee.push(*[Step(text="again")] * 3)
    with thinkback.open(log) as store:
        chat = open_session(store, referee)
        made = names(chat)
        assert 2 == len(made)
        for session in (chat, *(open_session(store, referee, name=name) for name in made)):
            assert "again" == session.chat("And now?").text
    assert [] == refusals(referee)
