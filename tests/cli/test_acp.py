"""``acp``: the real agent behind the library's own client, and what an editor may do to it."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import acp
import pytest

import thinkback
from tests.cli.command import KEY, PLACE, Command
from tests.cli.conftest import Inside
from tests.cli.editor import Editor, edited, run
from tests.cli.places import at_referee
from thinkback.model.commits import TurnEnded
from thinkback_referee import Call, HttpError, Referee, Stall, Step


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A directory to work in."""
    made = tmp_path / "work"
    made.mkdir()
    return made


def place(referee: Referee) -> tuple[str, ...]:
    """The options that lead to the referee's DeepSeek."""
    return (*PLACE, referee.base_url("deepseek"))


def test_what_the_agent_can_do_is_said_first(command: Command, referee: Referee) -> None:
    """``initialize`` names loading, images and embedded files, and who this is."""

    async def work() -> Any:
        async with edited(command, Editor(), *place(referee)) as editor:
            return await editor.agent.initialize(protocol_version=1)

    said = run(work())
    able = said.agent_capabilities
    assert (1, "thinkback", thinkback.__version__) == (
        said.protocol_version,
        said.agent_info.name,
        said.agent_info.version,
    )
    assert (True, True, True) == (
        able.load_session,
        able.prompt_capabilities.image,
        able.prompt_capabilities.embedded_context,
    )


@pytest.mark.parametrize(("option", "said"), [("--app", "no app 'nope'"), ("--endpoint", "nope")])
def test_what_does_not_exist_is_refused_at_the_start(inside: Inside, option: str, said: str) -> None:
    """Before an editor is answered, and without making a log."""
    done = inside("acp", option, "nope")
    assert (2, True, False) == (done.code, said in done.err, inside.db.exists())


def test_thoughts_arrive_before_the_answer(command: Command, referee: Referee, workspace: Path) -> None:
    """Reasoning streams as thoughts, then the answer; the turn ends with what it used."""
    referee.push(Step(reasoning="First I think.", text="Then I speak."))

    async def work() -> tuple[Editor, Any]:
        async with edited(command, Editor(), *place(referee)) as editor:
            return editor, await editor.say(await editor.begin(workspace), "Hi")

    editor, done = run(work())
    assert ["agent_thought_chunk", "agent_message_chunk", "usage_update"] == editor.kinds
    assert 0 < editor.updates[-1].used < editor.updates[-1].size == 1_000_000
    assert len(editor.updates) > 2
    assert ("First I think.", "Then I speak.") == (
        editor.text("agent_thought_chunk"),
        editor.text("agent_message_chunk"),
    )
    assert "end_turn" == done.stop_reason
    assert done.usage.thought_tokens > 0


def test_thoughts_that_are_not_to_be_shown_are_not(command: Command, referee: Referee, workspace: Path) -> None:
    """``reasoning.includeInResponse=false`` hides thoughts, live and when loaded; the log has them."""
    command("settings", "set", "reasoning.includeInResponse", "false")
    referee.push(Step(reasoning="First I think.", text="Then I speak."))

    async def work() -> Editor:
        async with edited(command, Editor(), *place(referee)) as editor:
            id = await editor.begin(workspace)
            await editor.say(id, "Hi")
            await editor.agent.load_session(session_id=id, cwd=str(workspace), mcp_servers=[])
            return editor

    editor = run(work())
    assert ["agent_message_chunk", "usage_update", "user_message_chunk", "agent_message_chunk"] == editor.kinds
    with thinkback.open(command.db) as store:
        assert "reasoning" in [commit.kind for commit in store.commits(store.sessions()[0].name)]


def test_a_setting_that_cannot_be_sent_is_reported_once(command: Command, referee: Referee, workspace: Path) -> None:
    """The editor shows it among the thoughts of the first turn, and not in the next one."""
    command("settings", "set", "reasoning.maxTokens", "500")

    async def work() -> Editor:
        async with edited(command, Editor(), *place(referee)) as editor:
            id = await editor.begin(workspace)
            await editor.say(id, "One?")
            await editor.say(id, "Two?")
            return editor

    said = "reasoning.maxTokens = 500 is not sent: deepseek has no way to say it"
    assert 1 == run(work()).text("agent_thought_chunk").count(said)


def test_loading_shows_what_was_said_and_thought(command: Command, referee: Referee, workspace: Path) -> None:
    """Another process tells the whole conversation: messages, thoughts, calls with their results; and goes on."""
    (workspace / "a.txt").write_text("one\n")
    referee.push(
        Step(reasoning="I look.", tool_calls=[Call("read", {"path": "a.txt"})]),
        Step(reasoning="I saw.", text="It says one."),
        Step(text="Again."),
    )

    async def first() -> str:
        async with edited(command, Editor(), *place(referee)) as editor:
            id = await editor.begin(workspace)
            await editor.say(id, "What does it say?")
            return id

    async def again(id: str) -> tuple[Editor, Any]:
        async with edited(command, Editor(), *place(referee)) as editor:
            listed = await editor.agent.list_sessions(cwd=str(workspace))
            loaded = await editor.agent.load_session(session_id=id, cwd=str(workspace), mcp_servers=[])
            shown = list(editor.updates)
            await editor.say(id, "And again?")
            editor.updates = shown
            assert [id] == [info.session_id for info in listed.sessions]
            return editor, loaded

    editor, loaded = run(again(run(first())))
    assert [
        "user_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "agent_thought_chunk",
        "agent_message_chunk",
    ] == editor.kinds
    assert ("I look.I saw.", "It says one.") == (
        editor.text("agent_thought_chunk"),
        editor.text("agent_message_chunk"),
    )
    assert "completed" == editor.updates[3].status
    assert "one" in editor.updates[3].content[0].content.text
    assert {"ask", "auto", "read_only"} == {mode.id for mode in loaded.modes.available_modes}
    assert "It says one." in json.dumps(referee.requests[-1].body)


def test_an_answer_without_text_and_a_refusal_are_told(command: Command, referee: Referee, workspace: Path) -> None:
    """Among the thoughts, also where the reason to stop says it."""
    referee.push(Step(text=" "), Step(reasoning="Hm.", refusal="No.", finish="stop"))

    async def work() -> tuple[list[str], str]:
        async with edited(command, Editor(), *place(referee)) as editor:
            id = await editor.begin(workspace)
            stops = [(await editor.say(id, "Is it?")).stop_reason for _ in "ab"]
            return stops, editor.text("agent_thought_chunk")

    stops, thought = run(work())
    assert ["end_turn", "refusal"] == stops
    assert "(the answer has no text)" in thought
    assert "(the model refused to answer)" in thought
    assert "reasoned and gave" not in thought


def test_a_turn_that_is_nothing_but_thought_is_continued(command: Command, referee: Referee, workspace: Path) -> None:
    """The model is asked to go on, at most three times; then the editor is told that there was no answer."""
    silent = [Step(reasoning=f"Hm, {number}.") for number in range(5)]
    referee.push(silent[0], Step(reasoning="Well.", text="Yes."), *silent[1:])

    async def work() -> tuple[Any, str, Any, Editor]:
        async with edited(command, Editor(), *place(referee)) as editor:
            id = await editor.begin(workspace)
            first = await editor.say(id, "Is it?")
            said = editor.text("agent_message_chunk")
            return first, said, await editor.say(id, "And that?"), editor

    first, said, second, editor = run(work())
    assert ("end_turn", "Yes.", "end_turn") == (first.stop_reason, said, second.stop_reason)
    assert 6 == len(referee.requests)
    assert "the model reasoned and gave no answer" in editor.text("agent_thought_chunk")
    assert "Yes." == editor.text("agent_message_chunk")


def test_a_turn_cancelled_while_it_thinks_leaves_a_valid_session(
    command: Command, referee: Referee, workspace: Path
) -> None:
    """Cancelling mid-thought ends the turn as interrupted with what had arrived; the next prompt is accepted."""
    referee.push(
        Step(reasoning="I think and think and think.", text="Never said.", fault=Stall(30, after=3)), Step(text="Yes.")
    )

    async def work() -> tuple[Any, Any, Editor]:
        async with edited(command, Editor(), *place(referee)) as editor:
            id = await editor.begin(workspace)
            turn = asyncio.ensure_future(editor.say(id, "Think"))
            await editor.until(lambda: bool(editor.updates))
            with pytest.raises(acp.RequestError, match="under way"):
                await editor.say(id, "Now")
            await editor.agent.cancel(session_id=id)
            ended = await turn
            return ended, await editor.say(id, "Are you there?"), editor

    ended, after, editor = run(work())
    assert ("cancelled", "end_turn") == (ended.stop_reason, after.stop_reason)
    assert editor.text("agent_message_chunk").endswith("Yes.")
    assert {200} == {exchange.status for exchange in referee.requests}
    with thinkback.open(command.db) as store:
        commits = store.commits(store.sessions()[0].name)
        assert ["interrupted", "completed"] == [c.value.state for c in commits if isinstance(c.value, TurnEnded)]
        assert [] == store.fsck()


def test_conversations_run_side_by_side(command: Command, referee: Referee, workspace: Path) -> None:
    """While one conversation thinks, another is answered; each is told its own."""
    referee.push(Step(reasoning="Slow, slow.", text="Late.", fault=Stall(30, after=3)), Step(text="Quick."))

    async def work() -> Editor:
        async with edited(command, Editor(), *place(referee)) as editor:
            slow, quick = await editor.begin(workspace), await editor.begin(workspace)
            turn = asyncio.ensure_future(editor.say(slow, "Think"))
            await editor.until(lambda: bool(editor.updates))
            assert "end_turn" == (await editor.say(quick, "Hi")).stop_reason
            assert not turn.done()
            await editor.agent.cancel(session_id=slow)
            assert "cancelled" == (await turn).stop_reason
            return editor

    assert "Quick." == run(work()).text("agent_message_chunk")


def test_meta_that_says_too_much_is_an_error_and_no_harm(command: Command, referee: Referee, workspace: Path) -> None:
    """What ``_meta`` holds beyond its keys ends neither the agent nor the conversation."""
    referee.push(Step(text="Fine."))

    async def work() -> Any:
        async with edited(command, Editor(), *place(referee)) as editor:
            id = await editor.begin(workspace)
            for meta in ({"prompt": 5}, {"reasoning_effort": 5}, {"self": 1}, {"session_id": "nobody"}):
                params = {"sessionId": id, "prompt": [{"type": "text", "text": "Hi"}], "_meta": meta}
                with pytest.raises(acp.RequestError):
                    await editor.agent._conn.send_request("session/prompt", params)
            return await editor.say(id, "Hi", unknown={"of": "no interest"})

    assert "end_turn" == run(work()).stop_reason
    assert 1 == len(referee.requests)


@pytest.mark.parametrize("how", ["standard input ends", "SIGTERM"])
def test_an_editor_that_goes_away_ends_the_turn(command: Command, referee: Referee, workspace: Path, how: str) -> None:
    """In the middle of a thought the agent is left or told to go: the turn is stored as interrupted, and it leaves."""
    referee.push(Step(reasoning="I think and think.", fault=Stall(30, after=3)))

    async def work() -> int:
        async with edited(Command(command.place), Editor(), *place(referee)) as editor:
            turn = asyncio.ensure_future(editor.say(await editor.begin(workspace), "Think"))
            await editor.until(lambda: bool(editor.updates))
            if how == "SIGTERM":
                editor.process.send_signal(signal.SIGTERM)
            else:
                editor.process.stdin.close()
            code = await editor.process.wait()
            turn.cancel()
            return int(code)

    assert 0 == run(work())
    with thinkback.open(command.db) as store:
        ends = [c.value for c in store.commits(store.sessions()[0].name) if isinstance(c.value, TurnEnded)]
        assert ["interrupted"] == [end.state for end in ends]


def test_an_agent_that_was_killed_is_gone_on_with(command: Command, referee: Referee, workspace: Path) -> None:
    """After kill -9 in the middle of a call another process loads the session, and its next request is accepted."""
    call = Call("shell", {"command": "touch begun; sleep 5"})
    referee.push(Step(reasoning="I run it.", tool_calls=[call]), Step(text="Well."))

    async def first() -> str:
        async with edited(Command(command.place), Editor(), *place(referee)) as editor:
            id = await editor.begin(workspace)
            turn = asyncio.ensure_future(editor.say(id, "Run it"))
            await editor.until((workspace / "begun").exists)
            editor.process.kill()
            await editor.process.wait()
            turn.cancel()
            return id

    async def again(id: str) -> tuple[Editor, Any]:
        async with edited(command, Editor(), *place(referee)) as editor:
            await editor.agent.load_session(session_id=id, cwd=str(workspace), mcp_servers=[])
            return editor, await editor.say(id, "Go on")

    editor, after = run(again(run(first())))
    assert "end_turn" == after.stop_reason
    assert "failed" == next(u.status for u in editor.updates if u.session_update == "tool_call")
    assert {200} == {exchange.status for exchange in referee.requests}


def test_a_change_is_asked_about_with_its_diff_and_made(command: Command, referee: Referee, workspace: Path) -> None:
    """The call is announced, asked about with old and new text, then runs to its end; the diff stays in sight."""
    (workspace / "a.txt").write_text("one\ntwo\n")
    call = Call("edit", {"path": "a.txt", "old_string": "two", "new_string": "three"})
    referee.push(Step(reasoning="I change it.", tool_calls=[call]), Step(text="Done."))

    async def work() -> tuple[Editor, Any]:
        async with edited(command, Editor("once"), *place(referee)) as editor:
            return editor, await editor.say(await editor.begin(workspace), "Change it")

    editor, done = run(work())
    assert ("end_turn", "one\nthree\n") == (done.stop_reason, (workspace / "a.txt").read_text())
    asked, options = editor.asked[0]
    diff = asked.content[0]
    assert (str(workspace / "a.txt"), "two", "three") == (diff.path, diff.old_text, diff.new_text)
    assert ["allow_once", "allow_always", "reject_once"] == [option.kind for option in options]
    states = [u.status for u in editor.updates if u.session_update.startswith("tool_call") and u.status]
    assert ["pending", "in_progress", "completed"] == states
    started = next(update for update in editor.updates if update.session_update == "tool_call")
    assert ("edit", asked.tool_call_id) == (started.kind, started.tool_call_id)


def test_files_are_read_and_changed_as_they_are_in_the_editor(
    command: Command, referee: Referee, workspace: Path
) -> None:
    """What is not saved yet is read, and changed there; a file that is not open is one of the disk."""
    for name in ("open.txt", "closed.txt"):
        (workspace / name).write_text("saved\n")
    calls = [
        Call("read", {"path": "open.txt"}),
        Call("edit", {"path": "open.txt", "old_string": "unsaved", "new_string": "changed"}),
        Call("edit", {"path": "closed.txt", "old_string": "saved", "new_string": "changed"}),
        Call("write", {"path": "new.txt", "content": "new\n"}),
    ]
    referee.push(*(Step(tool_calls=[call]) for call in calls), Step(text="Done."))
    path = str(workspace / "open.txt")

    async def work() -> Editor:
        async with edited(command, Editor("once", {path: "unsaved\n"}), *place(referee)) as editor:
            await editor.say(await editor.begin(workspace), "Change them")
            return editor

    editor = run(work())
    assert {path: "changed\n"} == editor.files
    assert ["changed\n", "new\n", "saved\n"] == [file.read_text() for file in sorted(workspace.iterdir())]
    results = [u for u in editor.updates if u.session_update == "tool_call_update" and u.status == "completed"]
    assert "unsaved" in results[0].content[0].content.text
    assert 4 == len(results)


def test_a_denied_call_does_not_run_and_ends_the_turn(command: Command, referee: Referee, workspace: Path) -> None:
    """Rejecting leaves the file as it is, the call failed, and the decision in the log; nothing more is sent."""
    (workspace / "a.txt").write_text("one\n")
    referee.push(
        Step(reasoning="I change it.", tool_calls=[Call("write", {"path": "a.txt", "content": "new\n"})]),
        Step(text="Then not."),
    )

    async def work() -> tuple[Editor, Any]:
        async with edited(command, Editor("no"), *place(referee)) as editor:
            id = await editor.begin(workspace)
            await editor.say(id, "Change it")
            before = len(referee.requests)
            assert 1 == before
            return editor, await editor.say(id, "Leave it, then")

    editor, after = run(work())
    assert ("one\n", "end_turn") == ((workspace / "a.txt").read_text(), after.stop_reason)
    assert ("one\n", "new\n") == (editor.asked[0][0].content[0].old_text, editor.asked[0][0].content[0].new_text)
    assert "failed" in [u.status for u in editor.updates if u.session_update == "tool_call_update"]
    with thinkback.open(command.db) as store:
        assert "permission_decision" in [c.kind for c in store.commits(store.sessions()[0].name)]


def test_always_is_remembered(command: Command, referee: Referee, workspace: Path) -> None:
    """ "Always" allows such calls on that file for the rest of the conversation; another file is asked about."""
    calls = [Call("write", {"path": f"{name}.txt", "content": content}) for name, content in ("ax", "ay", "bx")]
    referee.push(*(Step(tool_calls=[call]) for call in calls), Step(text="Both."))

    async def work() -> Editor:
        async with edited(command, Editor("always"), *place(referee)) as editor:
            await editor.say(await editor.begin(workspace), "Write")
            return editor

    assert 2 == len(run(work()).asked)
    assert ["a.txt", "b.txt"] == sorted(file.name for file in workspace.iterdir())


def test_cancelling_while_a_person_is_asked_ends_the_turn(command: Command, referee: Referee, workspace: Path) -> None:
    """A cancel in place of an answer: nothing runs, the turn is cancelled, and the next one goes on."""
    referee.push(Step(tool_calls=[Call("shell", {"command": "touch made"})]), Step(text="Well."))

    async def work() -> tuple[Any, Any]:
        editor = Editor("")
        editor.patience = asyncio.Event()
        async with edited(command, editor, *place(referee)):
            id = await editor.begin(workspace)
            turn = asyncio.ensure_future(editor.say(id, "Run it"))
            await editor.until(lambda: bool(editor.asked))
            await editor.agent.cancel(session_id=id)
            editor.patience.set()
            return await turn, await editor.say(id, "Go on")

    ended, after = run(work())
    assert ("cancelled", "end_turn") == (ended.stop_reason, after.stop_reason)
    assert [] == list(workspace.iterdir())


def test_cancelling_while_a_command_runs_ends_both(command: Command, referee: Referee, workspace: Path) -> None:
    """The command is ended with its turn, the call is told to have failed, and the next prompt is accepted."""
    line = "touch begun; sleep 60; touch ended"
    referee.push(Step(reasoning="I run it.", tool_calls=[Call("shell", {"command": line})]), Step(text="Well."))

    async def work() -> tuple[Any, Any, Editor]:
        async with edited(command, Editor("once"), *place(referee)) as editor:
            id = await editor.begin(workspace)
            turn = asyncio.ensure_future(editor.say(id, "Run it"))
            await editor.until((workspace / "begun").exists)
            await editor.agent.cancel(session_id=id)
            return await turn, await editor.say(id, "Go on"), editor

    ended, after, editor = run(work())
    assert ("cancelled", "end_turn") == (ended.stop_reason, after.stop_reason)
    assert "failed" == [u.status for u in editor.updates if u.session_update == "tool_call_update"][-1]
    assert {200} == {exchange.status for exchange in referee.requests}


def test_modes_say_what_is_asked_about(command: Command, referee: Referee, workspace: Path) -> None:
    """A new conversation asks; ``auto`` runs without a question, and ``read_only`` refuses without one."""
    write = [Call("write", {"path": "a.txt", "content": "x"})]
    referee.push(Step(tool_calls=write), Step(text="Made."), Step(tool_calls=write), Step(text="Not made."))

    async def work() -> Editor:
        async with edited(command, Editor(), *place(referee)) as editor:
            made = await editor.agent.new_session(cwd=str(workspace), mcp_servers=[])
            assert "ask" == made.modes.current_mode_id
            await editor.agent.set_session_mode(session_id=made.session_id, mode_id="auto")
            await editor.say(made.session_id, "Write")
            assert "x" == (workspace / "a.txt").read_text()
            (workspace / "a.txt").unlink()
            await editor.agent.set_config_option(
                session_id=made.session_id, config_id="permissions.mode", value="read_only"
            )
            await editor.say(made.session_id, "Write")
            for mode in ("yolo", "default"):
                with pytest.raises(acp.RequestError, match="modes are ask, auto, read_only"):
                    await editor.agent.set_session_mode(session_id=made.session_id, mode_id=mode)
            return editor

    editor = run(work())
    assert [] == editor.asked
    assert [] == list(workspace.iterdir())
    assert "read_only" in [u.current_mode_id for u in editor.updates if u.session_update == "current_mode_update"]


def test_a_mode_that_is_chosen_in_the_middle_of_a_turn_counts_at_once(
    command: Command, referee: Referee, workspace: Path
) -> None:
    """Whoever sees a turn go wrong stops it from writing."""
    looks = Call("list", {"path": "."})
    write = Call("write", {"path": "a.txt", "content": "x"})
    referee.push(Step(tool_calls=[looks]), Step(reasoning="Hm. " * 30, tool_calls=[write], pace=0.02))

    async def work() -> Editor:
        async with edited(command, Editor(), *place(referee)) as editor:
            id = await editor.begin(workspace)
            await editor.agent.set_session_mode(session_id=id, mode_id="auto")
            turn = asyncio.ensure_future(editor.say(id, "Write"))
            await editor.until(lambda: "agent_thought_chunk" in editor.kinds)
            await editor.agent.set_session_mode(session_id=id, mode_id="read_only")
            await turn
            return editor

    run(work())
    assert [] == list(workspace.iterdir())


def test_a_session_of_another_program_asks_too(command: Command, referee: Referee, workspace: Path) -> None:
    """Where nobody said how calls are permitted, a loaded session is asked about as a new one is, and keeps that to
    the editor."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        base_url = referee.base_url("deepseek")
        session = store.session("talk", endpoint="deepseek", model="deepseek-v4-pro", base_url=base_url, api_key=KEY)
        referee.push(Step(text="Hello."))
        session.chat("Hi")
    referee.push(Step(tool_calls=[Call("shell", {"command": "touch made"})]), Step(text="Well."))

    async def work() -> tuple[Editor, Any]:
        async with edited(command, Editor("no")) as editor:
            loaded = await editor.agent.load_session(session_id="talk", cwd=str(workspace), mcp_servers=[])
            await editor.say("talk", "Run it")
            return editor, loaded

    editor, loaded = run(work())
    assert ("ask", 1) == (loaded.modes.current_mode_id, len(editor.asked))
    assert [] == list(workspace.iterdir())
    with thinkback.open(command.db) as store:
        assert {"session.defaults": "1"} == store.find("talk").settings


def test_effort_is_an_option_that_sticks_and_one_turn_may_differ(
    command: Command, referee: Referee, workspace: Path
) -> None:
    """The option holds for the session until ``default`` takes it back; ``_meta`` speaks for one turn."""
    referee.push(*[Step(text="Yes.")] * 4)

    async def work() -> tuple[Any, Any]:
        async with edited(command, Editor(), *place(referee)) as editor:
            made = await editor.agent.new_session(cwd=str(workspace), mcp_servers=[])
            id = made.session_id

            async def choose(value: str) -> Any:
                return await editor.agent.set_config_option(session_id=id, config_id="reasoning.effort", value=value)

            await choose("max")
            await editor.say(id, "One")
            await editor.say(id, "Two", reasoning_effort="low")
            await editor.say(id, "Three")
            with pytest.raises(acp.RequestError, match=r"reasoning\.effort cannot be 'enormous'"):
                await choose("enormous")
            with pytest.raises(acp.RequestError, match=r"reasoning\.effort cannot be 'tiny'"):
                await editor.say(id, "Four", reasoning_effort="tiny")
            back = await choose("default")
            await editor.say(id, "Five")
            return made, back

    made, back = run(work())
    bodies: list[Any] = [exchange.body for exchange in referee.requests]
    assert ["max", "low", "max", None] == [body.get("reasoning_effort") for body in bodies]
    effort = next(option for option in made.config_options if option.id == "reasoning.effort")
    assert ("thought_level", "default") == (effort.category, effort.current_value)
    words = ["default", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
    assert words == [option.value for option in effort.options]
    assert "default" == next(option.current_value for option in back.config_options if option.id == "reasoning.effort")


def test_the_model_can_be_switched_and_switched_back(command: Command, referee: Referee, workspace: Path) -> None:
    """An offered model is an option; the next request goes there. Back means to the address of the command line. A
    name that is none is refused."""
    at_referee(command.config, referee, "anthropic")
    referee.push(*[Step(text=f"{number}.") for number in range(3)])
    first, offer = "deepseek/deepseek-v4-pro", "anthropic/claude-sonnet-4-5"

    async def work() -> Any:
        async with edited(command, Editor(), *place(referee), "--offer", offer, ANTHROPIC_API_KEY=KEY) as editor:
            made = await editor.agent.new_session(cwd=str(workspace), mcp_servers=[])
            id = made.session_id
            await editor.say(id, "One")
            for name in (offer, first):
                await editor.agent.set_config_option(session_id=id, config_id="model", value=name)
                await editor.say(id, "And")
            for name in ("gpt", "nowhere/gpt"):
                with pytest.raises(acp.RequestError, match=r"names no endpoint and model|nowhere"):
                    await editor.agent.set_config_option(session_id=id, config_id="model", value=name)
            return made

    model = next(option for option in run(work()).config_options if option.id == "model")
    assert [first, offer] == [option.value for option in model.options]
    assert ["deepseek", "anthropic", "deepseek"] == [exchange.host for exchange in referee.requests]


def test_images_and_files_reach_the_model(command: Command, referee: Referee, workspace: Path) -> None:
    """An image goes as media, an embedded file as text with its name, a link by its address."""
    at_referee(command.config, referee)
    data = base64.b64encode(b"\x89PNG not really").decode()

    async def work() -> Editor:
        options = ("--endpoint", "anthropic", "--model", "claude-sonnet-4-5")
        async with edited(command, Editor(), *options, ANTHROPIC_API_KEY=KEY) as editor:
            id = await editor.begin(workspace)
            blocks = [
                acp.text_block("What is this?"),
                acp.image_block(data, "image/png"),
                acp.resource_block(acp.embedded_text_resource("file:///a.py", "print()")),
                acp.resource_link_block("b.py", "file:///b.py"),
            ]
            await editor.agent.prompt(session_id=id, prompt=blocks)
            editor.updates.clear()
            await editor.agent.load_session(session_id=id, cwd=str(workspace), mcp_servers=[])
            return editor

    editor = run(work())
    sent = json.dumps(referee.requests[-1].body)
    for piece in (data, "image/png", "What is this?", "file:///a.py", "print()", "file:///b.py"):
        assert piece in sent
    assert "image" in [u.content.type for u in editor.updates if u.session_update == "user_message_chunk"]


def test_servers_of_the_editor_are_tools(command: Command, referee: Referee, workspace: Path) -> None:
    """An MCP server that the editor names is started for the conversation, and its tools run (this one says that they
    only read); one that cannot be used is told and missed by nobody else."""
    referee.push(
        Step(reasoning="I look it up.", tool_calls=[Call("mcp__notes__list_sessions", {})]), Step(text="One session.")
    )
    name, *arguments = command.line("mcp")
    variables = [acp.schema.EnvVariable(name=key, value=value) for key, value in command.environment.items()]
    server = acp.schema.McpServerStdio(name="notes", command=name, args=arguments, env=variables)
    broken = acp.schema.McpServerStdio(name="broken", command="/no/such/program", args=[], env=[])

    async def work() -> Editor:
        async with edited(command, Editor(), *place(referee)) as editor:
            made = await editor.agent.new_session(cwd=str(workspace), mcp_servers=[broken, server])
            await editor.say(made.session_id, "What was said?")
            return editor

    editor = run(work())
    assert ["mcp__notes__list_sessions"] == [u.title for u in editor.updates if u.session_update == "tool_call"]
    assert [] == editor.asked
    result = next(u for u in editor.updates if u.session_update == "tool_call_update" and u.status == "completed")
    assert "acp-" in result.content[0].content.text
    assert editor.text("agent_thought_chunk").startswith("(the MCP server broken could not be started")


def test_a_missing_key_is_an_error_that_says_what_to_do(command: Command, referee: Referee, workspace: Path) -> None:
    """``session/new`` without a key asks for sign-in and names the variable; nothing is stored for it."""

    async def work() -> list[acp.RequestError]:
        async with edited(command, Editor(), *place(referee), DEEPSEEK_API_KEY="") as editor:
            caught = []
            with pytest.raises(acp.RequestError) as error:
                await editor.begin(workspace)
            caught.append(error.value)
            with pytest.raises(acp.RequestError) as error:
                await editor.agent.authenticate(method_id="environment")
            return [*caught, error.value]

    errors = run(work())
    assert [-32000, -32000] == [error.code for error in errors]
    assert all("DEEPSEEK_API_KEY" in str(error) for error in errors)
    with thinkback.open(command.db) as store:
        assert [] == store.sessions()


def test_a_failure_of_the_provider_is_told_and_the_conversation_goes_on(
    command: Command, referee: Referee, workspace: Path
) -> None:
    """An error of the provider answers the prompt in its words, without the key; the next prompt works."""
    referee.push(Step(fault=HttpError(400, {"error": {"message": f"the key {KEY} is odd"}})), Step(text="Fine."))

    async def work() -> tuple[str, Any]:
        async with edited(command, Editor(), *place(referee)) as editor:
            id = await editor.begin(workspace)
            with pytest.raises(acp.RequestError) as error:
                await editor.say(id, "Hi")
            return str(error.value), await editor.say(id, "Again")

    text, after = run(work())
    assert "is odd" in text
    assert KEY not in text
    assert "end_turn" == after.stop_reason


def test_a_conversation_in_which_nothing_was_said_leaves_nothing(
    command: Command, referee: Referee, workspace: Path
) -> None:
    """Closing an empty conversation forgets it; so does the end of the agent."""

    async def work() -> None:
        async with edited(command, Editor(), *place(referee)) as editor:
            await editor.agent.close_session(session_id=await editor.begin(workspace))
            await editor.begin(workspace)
            editor.process.stdin.close()
            await editor.process.wait()

    run(work())
    with thinkback.open(command.db) as store:
        assert [] == store.sessions()


def test_whatever_comes_in_is_answered_and_only_the_protocol_goes_out(
    command: Command, referee: Referee, workspace: Path
) -> None:
    """Lines that are no message, unknown methods and sessions, and bad parameters are answered with errors; every line
    out is JSON-RPC, also while warnings are issued and a tool prints."""
    referee.push(Step(tool_calls=[Call("shell", {"command": "echo loud; echo louder >&2; cat"})]), Step(text="Done."))
    new = {"cwd": str(workspace), "mcpServers": []}
    with Lines(command, *place(referee), "--app", "", PYTHONWARNINGS="always") as lines:
        for line in (b"{not json", b"\xff\xfe", b"[1, 2]", b'"text"', b"{}", b'{"id": {}, "result": 1}', b""):
            lines.send(line)
        codes = [lines.read()["error"]["code"] for _ in range(6)]
        assert [-32700, -32700, -32600, -32600, -32600, -32600] == codes
        assert 1 == lines.ask("initialize", {"protocolVersion": 1})["result"]["protocolVersion"]
        assert -32601 == lines.ask("no/such/method", {})["error"]["code"]
        assert -32602 == lines.ask("session/new", {"cwd": 5})["error"]["code"]
        assert -32602 == lines.ask("session/prompt", [1])["error"]["code"]
        assert -32002 == lines.ask("session/load", {**new, "sessionId": "nobody"})["error"]["code"]
        unknown = lines.ask("session/prompt", {"sessionId": "nobody", "prompt": [{"type": "text", "text": "Hi"}]})
        assert -32002 == unknown["error"]["code"]
        lines.send(b'{"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "nobody"}}')
        lines.send(b'{"jsonrpc": "2.0", "id": 99999, "result": {}}')
        missing = lines.ask("session/new", {**new, "cwd": str(workspace / "nowhere")})
        assert "not a directory" in missing["error"]["message"]
        id = lines.ask("session/new", new)["result"]["sessionId"]
        lines.ask("session/set_mode", {"sessionId": id, "modeId": "auto"})
        empty = lines.ask("session/prompt", {"sessionId": id, "prompt": []})
        assert "empty" in empty["error"]["message"]
        done = lines.ask("session/prompt", {"sessionId": id, "prompt": [{"type": "text", "text": "Hi"}]})
        assert "end_turn" == done["result"]["stopReason"]
    assert 0 == lines.code


class Lines:
    """The agent, talked to line by line."""

    def __init__(self, command: Command, *options: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            command.line("acp", *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**command.environment, **environment},
        )
        self._id = 0
        self.code = -1

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        rest, _none = self._process.communicate(timeout=30)
        assert b"" == rest
        self.code = self._process.returncode

    def send(self, line: bytes) -> None:
        """A line as it is."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def read(self) -> Any:
        """The next message."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, method: str, params: object) -> Any:
        """The answer to a request; what is told in between is a message too."""
        self._id += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}).encode())
        while (message := self.read()).get("id") != self._id:
            assert "2.0" == message["jsonrpc"]
        return message


def test_a_missing_package_is_said(command: Command) -> None:
    """Without the extra the error names it."""
    hidden = "import sys; sys.modules['acp'] = None; from thinkback.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "acp"], capture_output=True, env=command.environment, timeout=60
    )

    assert 2 == done.returncode
    assert b"'.[acp]'" in done.stderr
