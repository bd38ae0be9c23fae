"""Permissions of a session: who is asked, what is kept, and that the provider takes what becomes of a denial."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.session.chats import get_time, get_weather, kinds, open_session, refusals, roles, run
from thinkback.errors import SettingError
from thinkback.model.blocks import ToolResult
from thinkback.model.commits import PermissionDecision
from thinkback.session.agents.toolbox import toolbox
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.turn.permissions import PermissionAnswer, PermissionRequest
from thinkback_referee import Call, Referee, Step

OSLO = Step(reasoning="Let me see.", tool_calls=[Call("get_weather", {"city": "Oslo"})])
BOTH = Step(reasoning="Both.", tool_calls=[Call("get_weather", {"city": "Oslo"}), Call("get_time", {"city": "Oslo"})])
DENIED = ["request", "response", "reasoning", "tool_call", "provider_usage", "permission_decision", "tool_result"]
ASK = {"permissions.mode": "ask"}


def decisions(session: Session) -> list[PermissionDecision]:
    """What the log says of permissions."""
    return [commit.value for commit in session.log() if isinstance(commit.value, PermissionDecision)]


def results(session: Session) -> list[str]:
    """What the model was told of its calls."""
    return [commit.value.content for commit in session.log() if isinstance(commit.value, ToolResult)]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_person_who_agrees_lets_the_call_run(store: SessionStore, referee: Referee, asynchronous: bool) -> None:
    """The question names call, effect and reason; nothing of it reaches the provider."""
    referee.push(OSLO)
    asked: list[PermissionRequest] = []

    def approve(request: PermissionRequest) -> bool:
        asked.append(request)
        return True

    session = open_session(store, referee)
    given: Any = {"tools": [get_weather], "settings": ASK, "approve": approve}
    reply = run(session.aio.chat("Weather?", **given)) if asynchronous else session.chat("Weather?", **given)
    assert ("completed", "", []) == (reply.state, reply.reason, refusals(referee))
    assert [("get_weather", "runs", "permissions.mode is ask, and get_weather runs")] == [
        (request.call.name, request.effect, request.reason) for request in asked
    ]
    assert ["Oslo: 7 degrees, rain"] == results(session)
    assert "permission" not in json.dumps([dict(exchange.body) for exchange in referee.requests], default=str)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_denial_ends_the_turn_and_the_next_one_is_taken(
    store: SessionStore, referee: Referee, asynchronous: bool
) -> None:
    """Everything is stored, both calls are answered, and the reasoning goes back where the endpoint demands it."""
    referee.push(BOTH)
    session = open_session(store, referee)
    asked: list[str] = []

    def approve(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.call.name)
        return PermissionAnswer(False, note="not today")

    given: Any = {"tools": [get_weather, get_time], "settings": ASK, "approve": approve}
    reply = run(session.aio.chat("Weather?", **given)) if asynchronous else session.chat("Weather?", **given)
    assert ("denied", "get_weather was denied by a person: not today") == (reply.state, reply.reason)
    assert ["get_weather"] == asked
    assert ["get_weather", "get_time"] == [call.name for call in reply.tool_calls]
    first, second = results(session)
    assert "This call was not run: it was denied by a person: not today." == first
    assert "another call" in second
    assert [("denied", "person", "not today")] == [(d.decision, d.by, d.note) for d in decisions(session)]
    assert "completed" == session.chat("Then tell me something else.").state
    assert [] == refusals(referee)
    assert ["user", "assistant", "tool", "tool", "user"] == roles(referee)[:5]
    assert [] == store.fsck()


def test_without_approve_a_question_is_a_denial_that_says_so(store: SessionStore, referee: Referee) -> None:
    """A script that nobody watches is not left hanging."""
    referee.push(OSLO)
    session = open_session(store, referee)
    reply = session.chat("Weather?", tools=[get_weather], settings=ASK)
    assert "denied" == reply.state
    assert "approve=" in reply.reason
    assert ["tools", "user", *DENIED, "denied"] == kinds(session)


def test_read_only_lets_no_function_of_a_program_run(store: SessionStore, referee: Referee) -> None:
    """What it does is not known."""
    referee.push(OSLO)
    session = open_session(store, referee)
    session.set("permissions.mode", "read_only")
    assert "denied" == session.chat("Weather?", tools=[get_weather], approve=lambda request: True).state


def test_rules_are_read_when_a_call_comes(store: SessionStore, referee: Referee) -> None:
    """A rule that a session gets while the model thinks counts for what the model calls."""
    referee.push(OSLO)
    session = open_session(store, referee)
    for _ in session.stream("Weather?", tools=[get_weather]):
        session.set("permissions.rules", "get_*=deny")
    assert ["denied"] == [decision.decision for decision in decisions(session)]
    assert "get_weather was denied: the rule get_*=deny" == session.log()[-1].value.reason  # type: ignore[union-attr]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_always_is_kept_with_the_session(tmp_path: Path, referee: Referee, asynchronous: bool) -> None:
    """The second call is not asked about, nor is one after the log was opened again; other tools are."""
    path = tmp_path / "log.db"
    asked: list[str] = []

    def approve(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.call.name)
        return PermissionAnswer(True, always=request.call.name == "get_weather")

    for _ in range(2):
        referee.push(BOTH)
        referee.push(OSLO)
        with thinkback.open(path) as store:
            session = open_session(store, referee)
            given: Any = {"tools": [get_weather, get_time], "settings": ASK, "approve": approve}
            reply = run(session.aio.chat("Hm?", **given)) if asynchronous else session.chat("Hm?", **given)
            assert "completed" == reply.state
            assert "get_weather=allow" == session.settings.permissions_rules
    assert ["get_weather", "get_time", "get_time"] == asked


def test_always_stands_behind_the_rule_that_asked(store: SessionStore, referee: Referee) -> None:
    """What the settings say of other calls stays as it was; rules of one call do not last beyond it."""
    referee.push(OSLO)
    session = open_session(store, referee)
    session.set("permissions.rules", "get_*=ask,get_time=deny")
    always = PermissionAnswer(True, always=True)
    assert "completed" == session.chat("Hm?", tools=[get_weather], approve=lambda request: always).state
    assert "get_*=ask,get_weather=allow,get_time=deny" == session.settings.permissions_rules
    session.unset("permissions.rules")
    referee.push(OSLO)
    referee.push(OSLO)
    rules = {"permissions.rules": "get_*=ask"}
    assert "completed" == session.chat("Hm?", settings=rules, approve=lambda request: always).state
    assert "get_weather=allow" == session.settings.permissions_rules
    assert ["person", "person", "rule"] == [decision.by for decision in decisions(session)]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("said", "note"), [(None, "approve returned NoneType"), (1, "approve returned int")])
def test_what_is_no_yes_is_a_no(
    store: SessionStore, referee: Referee, asynchronous: bool, said: object, note: str
) -> None:
    """Whatever the function returns, or raises."""
    session = open_session(store, referee)
    for answer in (said, ValueError("secret")):

        def approve(request: PermissionRequest, answer: object = answer) -> object:
            if isinstance(answer, Exception):
                raise answer
            return answer

        referee.push(OSLO)
        given: Any = {"tools": [get_weather], "settings": ASK, "approve": approve}
        reply = run(session.aio.chat("Hm?", **given)) if asynchronous else session.chat("Hm?", **given)
        assert "denied" == reply.state
    assert [True, True] == [
        decision.note.startswith(wanted)
        for decision, wanted in zip(decisions(session), (note, "approve failed: ValueError"), strict=True)
    ]
    assert "secret" not in str(session.log())


def test_asyncio_awaits_a_person(store: SessionStore, referee: Referee) -> None:
    """A coroutine function is awaited in the loop, a plain one runs in a thread beside it."""
    session = open_session(store, referee)
    threads: list[threading.Thread] = []

    async def patient(request: PermissionRequest) -> bool:
        threads.append(threading.current_thread())
        await asyncio.sleep(0)
        return True

    def plain(request: PermissionRequest) -> bool:
        threads.append(threading.current_thread())
        return True

    for approve in (patient, plain):
        referee.push(OSLO)
        assert "completed" == run(session.aio.chat("Hm?", tools=[get_weather], settings=ASK, approve=approve)).state
    assert [True, False] == [thread is threading.main_thread() for thread in threads]
    with pytest.raises(TypeError, match=r"approve is a coroutine function: use session\.aio"):
        session.chat("Hm?", tools=[get_weather], approve=patient)


def test_without_asyncio_a_person_is_asked_in_the_callers_thread(store: SessionStore, referee: Referee) -> None:
    """A prompt at the terminal belongs there."""
    referee.push(OSLO)
    threads: list[threading.Thread] = []

    def approve(request: PermissionRequest) -> bool:
        threads.append(threading.current_thread())
        return True

    open_session(store, referee).chat("Hm?", tools=[get_weather], settings=ASK, approve=approve)
    assert [threading.current_thread()] == threads


def test_cancelled_while_a_person_is_asked(store: SessionStore, referee: Referee) -> None:
    """The turn ends as interrupted, the call is told so, and the next turn is taken."""
    referee.push(OSLO)
    session = open_session(store, referee)

    async def leave() -> None:
        asking = asyncio.Event()

        async def approve(request: PermissionRequest) -> bool:
            asking.set()
            await asyncio.Event().wait()
            return True

        task = asyncio.create_task(session.aio.chat("Hm?", tools=[get_weather], settings=ASK, approve=approve))
        await asking.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(leave())
    assert ["tool_result", "interrupted"] == kinds(session)[-2:]
    assert "completed" == session.chat("And now?").state
    assert [] == refusals(referee)


def test_ctrl_c_while_a_person_is_asked(store: SessionStore, referee: Referee) -> None:
    """It is no answer: the turn is interrupted."""
    referee.push(OSLO)
    session = open_session(store, referee)

    def approve(request: PermissionRequest) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.chat("Hm?", tools=[get_weather], settings=ASK, approve=approve)
    assert ([], "interrupted") == (decisions(session), kinds(session)[-1])
    assert "completed" == session.chat("And now?").state
    assert [] == refusals(referee)


def test_a_crash_while_a_person_is_asked(tmp_path: Path, referee: Referee) -> None:
    """The next program goes on and asks again, or repairs the call and says something new."""

    def crash(request: PermissionRequest) -> bool:
        with closing(sqlite3.connect(tmp_path / "log.db")) as log:
            for name in ("again.db", "anew.db"):
                with closing(sqlite3.connect(tmp_path / name)) as copy:
                    log.backup(copy)
                    copy.execute("DELETE FROM leases")  # of a process that would be dead
                    copy.commit()
        return True

    referee.push(OSLO)
    with thinkback.open(tmp_path / "log.db") as store:
        open_session(store, referee).chat("Hm?", tools=[get_weather], settings=ASK, approve=crash)
    with thinkback.open(tmp_path / "again.db") as store:
        session = open_session(store, referee)
        reply = session.generate(tools=[get_weather], settings=ASK, approve=lambda request: True)
        assert ("completed", ["person"]) == (reply.state, [decision.by for decision in decisions(session)])
    referee.push(Step(reasoning="Well.", text="So be it."))
    with thinkback.open(tmp_path / "anew.db") as store:
        session = open_session(store, referee)
        assert ("completed", []) == (session.chat("Never mind.").state, decisions(session))
    assert [] == refusals(referee)


def test_decisions_go_along_wherever_the_log_goes(store: SessionStore, referee: Referee, tmp_path: Path) -> None:
    """Into a file and out of it as they were, into pages for people, into what is printed; never to a model."""
    referee.push(OSLO)
    session = open_session(store, referee)
    denies = PermissionAnswer(False, note="not today")
    session.chat("Weather?", tools=[get_weather], settings=ASK, approve=lambda request: denies)
    for format in ("jsonl", "markdown", "html"):
        store.export(tmp_path / f"log.{format}", format=format)
        assert "get_weather was denied by a person: not today" in (tmp_path / f"log.{format}").read_text()
    with thinkback.open(":memory:") as other:
        other.import_(tmp_path / "log.jsonl")
        commits = other.commits(other.sessions()[0].id)
        assert decisions(session) == [c.value for c in commits if c.kind == "permission_decision"]
        assert [] == other.fsck()
    printed = io.StringIO()
    session.pprint("table", printed)
    assert "permission_decision" in printed.getvalue()
    assert "permission" not in str(session.compile(include_reasoning=True))


@pytest.mark.parametrize(
    ("key", "value"),
    [("permissions.mode", "plan"), ("permissions.rules", "shell"), ("turn.maxSteps", 0)],
)
def test_a_bad_value_is_refused_with_what_is_allowed(
    store: SessionStore, referee: Referee, key: str, value: object
) -> None:
    """And changes nothing."""
    session = open_session(store, referee)
    before = session.settings
    with pytest.raises(SettingError, match=key.replace(".", r"\.")) as caught:
        session.set(key, value)
    assert caught.value.details["allowed"]
    assert before == session.settings


def test_the_cap_is_a_setting_and_the_call_beats_it(store: SessionStore, referee: Referee) -> None:
    """Two steps by the session's word, one by the call's."""
    session = open_session(store, referee)
    session.set("turn.maxSteps", 2)
    for wanted, given in ((2, {}), (1, {"max_steps": 1})):
        for _ in range(wanted):
            referee.push(OSLO)
        reply = session.chat("Hm?", tools=[get_weather], **given)  # type: ignore[arg-type]
        assert ("capped", wanted, f"{wanted} steps") == (reply.state, len(reply.steps), reply.reason)


def test_a_call_that_fails_the_same_way_ends_the_turn(store: SessionStore, referee: Referee) -> None:
    """After three times; the provider takes the next turn."""

    def broken(city: str) -> str:
        raise ValueError(f"no {city}")

    for _ in range(3):
        referee.push(Step(reasoning="Again.", tool_calls=[Call("broken", {"city": "Oslo"})]))
    session = open_session(store, referee)
    reply = session.chat("Hm?", tools=[broken])
    assert ("stalled", "broken failed 3 times in the same way with the same arguments") == (reply.state, reply.reason)
    assert "completed" == session.chat("Stop that.").state
    assert [] == refusals(referee)


def test_an_approve_that_cannot_be_called_is_refused(store: SessionStore, referee: Referee) -> None:
    """Before anything is stored."""
    session = open_session(store, referee)
    with pytest.raises(TypeError, match="approve must be a function"):
        session.chat("Hm?", approve=True)  # type: ignore[arg-type]
    assert [] == session.log()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_call_that_cannot_run_is_answered_and_not_asked_about(
    store: SessionStore, referee: Referee, asynchronous: bool, tmp_path: Path
) -> None:
    """Unknown tools, wrong arguments, paths outside: the model hears what is wrong. Words with a no are heard once."""
    calls = [
        Call("peek", {}),
        Call("get_weather", {"town": "Oslo"}),
        Call("write", {"path": "../outside", "content": "x"}),
        Call("write", {"path": "inside", "content": "x"}),
    ]
    referee.push(Step(tool_calls=calls[:3]), Step(tool_calls=calls[3:]), Step(text="As you wish."))
    asked: list[str] = []

    def approve(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.call.arguments)
        return PermissionAnswer(False, note="use another file", goes_on=True)

    session = open_session(store, referee)
    with toolbox(session, ["write"], workspace=tmp_path) as tools:
        given: Any = {"tools": [get_weather, *tools], "settings": ASK, "approve": approve}
        reply = run(session.aio.chat("Go", **given)) if asynchronous else session.chat("Go", **given)
    assert ("completed", "As you wish.", []) == (reply.state, reply.text, refusals(referee))
    assert 1 == len(asked)
    assert "inside" in asked[0]
    heard = "\n".join(sorted(results(session)))  # as they were done
    assert "There is no tool named 'peek'." in heard
    assert "The arguments do not fit the tool" in heard
    assert "../outside leads out of the workspace" in heard
    assert "The user refused this call: use another file" == results(session)[-1]
    assert [] == [path for path in tmp_path.rglob("*side") if path.is_file()]
