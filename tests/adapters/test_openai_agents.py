"""Sessions of openai-agents in the log: what comes back, what the log has, who may write, and what models are asked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.hosts import need

need("agents")

from agents import Agent, RunConfig, Runner, set_tracing_disabled  # noqa: E402
from agents import memory as agents_memory  # noqa: E402
from agents.testing import ScriptedModel, assistant_message, function_call  # noqa: E402

import thinkback  # noqa: E402
from bench.gateway_clients import with_agents  # noqa: E402
from bench.gateway_clients.job import ASYNC, STREAMED, SYNC, Job, run  # noqa: E402
from bench.peers.places import Place  # noqa: E402
from tests.adapters import asking  # noqa: E402
from thinkback.adapters.openai_agents import Session  # noqa: E402
from thinkback.drive.clock import now  # noqa: E402
from thinkback.drive.leases import here  # noqa: E402
from thinkback.errors import BusyError, StoreError, ThinkbackError, WireError  # noqa: E402
from thinkback_referee import Referee  # noqa: E402

set_tracing_disabled(True)

SECRET = "gAAAAABencrypted" * 4
ASKED = {"role": "user", "content": "What is the weather in Oslo?"}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "I look it up,"}, {"type": "summary_text", "text": "in Oslo."}],
    "content": [],
    "encrypted_content": SECRET,
    "status": None,
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "weather",
    "arguments": '{"city": "Oslo", "exact": 1.0}',
    "status": "completed",
}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "sunny"}]}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "It is sunny.", "annotations": [], "logprobs": []}],
}
PICTURE = {
    "role": "user",
    "content": [
        {"type": "input_text", "text": "And this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"},
    ],
}
ABOUT = {"model": "deepseek-v4-pro", "response_id": "chat-1", "$": ["odd", {"$": 1}]}
CHAT = [
    {
        "id": "__fake_id__",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "A cat, I think."}],
        "provider_data": {**ABOUT, "thinking_blocks": [{"type": "thinking", "thinking": "A cat", "signature": SECRET}]},
    },
    {**SAID, "id": "__fake_id__", "phase": None, "provider_data": ABOUT},
]
COMPACTED = {"type": "compaction", "encrypted_content": "c"}
ITEMS: list[Any] = [ASKED, THOUGHT, CALL, RESULT, SAID, PICTURE, *CHAT, COMPACTED]


def texts(log: Path, *kinds: str) -> list[str]:
    """What commits of these kinds say in the session ``s``, on its current branch."""
    with thinkback.open(log) as store:
        return [
            getattr(commit.value, "thought", "") or getattr(commit.value, "text", "")
            for commit in store.commits("s")
            if commit.kind in kinds
        ]


def test_items_come_back_as_they_were_added_and_stand_in_the_log_once(log: Path) -> None:
    """In several steps, in another process's place; readable reasoning is found, what is encrypted is stored once."""

    async def store() -> list[Any]:
        session: Any = Session("s", log)
        assert isinstance(session, agents_memory.Session)
        for at in (0, 1, 3, 4, 6):
            await session.add_items(ITEMS[at : at + {0: 1, 1: 2, 3: 1, 4: 2, 6: 3}[at]])
        session.close()
        again = Session("s", log)
        found = await again.get_items()
        assert [ITEMS[-2:], ITEMS[-5:], []] == [await again.get_items(limit) for limit in (2, 5, 0)]
        again.session_settings = agents_memory.SessionSettings(limit=3)
        assert ITEMS[-3:] == await again.get_items()
        again.close()
        return found

    found = asyncio.run(store())

    assert ITEMS == found
    assert ["I look it up,\n\nin Oslo.", "A cat, I think."] == texts(log, "reasoning")
    assert ["It is sunny.", "It is sunny."] == texts(log, "assistant")
    with thinkback.open(log) as opened:
        notes = b"".join(commit.payload for commit in opened.commits("s") if commit.kind == "annotation")
        assert [] == [text for text in (SECRET, "It is sunny.", "in Oslo.", "A cat, I") if text.encode() in notes]
        (hit,) = opened.find_reasoning("cat")
        assert "A cat" in hit.hit.excerpt
        assert [] == opened.fsck()
        opened.export(log.with_suffix(".jsonl"), session="s", with_reasoning=True)
    exported = log.with_suffix(".jsonl").read_text()
    assert "A cat, I think." in exported
    assert SECRET not in exported


def test_what_is_popped_or_cleared_stays_in_the_log(log: Path) -> None:
    """A part of a response, then the next items; one branch holds what was left, another what was cleared."""

    async def pop() -> None:
        session = Session("s", log)
        await session.add_items([ASKED])
        await session.add_items([THOUGHT, CALL, RESULT])
        assert [RESULT, CALL] == [await session.pop_item(), await session.pop_item()]
        assert [ASKED, THOUGHT] == await session.get_items()
        assert [THOUGHT, ASKED, None] == [await session.pop_item() for _ in range(3)]
        await session.add_items([PICTURE])
        await session.clear_session()
        assert [] == await session.get_items()
        await session.add_items([ASKED])
        assert [ASKED] == await session.get_items()
        session.close()

    asyncio.run(pop())

    with thinkback.open(log) as store:
        info = store.find("s")
        lines = [store.log.read(info.id, branch=branch.name) for branch in store.log.refs.list(info.id)]
        kinds = [[commit.kind for commit in line if commit.kind not in ("annotation", "turn_ended")] for line in lines]
        assert ["user", "response", "reasoning", "tool_call", "tool_result"] in kinds
        assert any("And this?" in getattr(line[0].value, "text", "") for line in lines)
        assert "main" == info.branch
        assert [] == store.fsck()


def test_writers_at_once_lose_nothing(log: Path) -> None:
    """Two logs that are opened apart, threads and event loops of their own, one that pops what another adds."""

    def write(name: str, *, pops: bool = False) -> None:
        async def several() -> None:
            with thinkback.open(log) as store:
                session = Session("s", store)
                for number in range(8):
                    await session.add_items([{"role": "user", "content": f"{name} {number}"}])
                    if pops and number % 4 == 3:
                        last: Any = await session.pop_item()
                        popped.append(last["content"])

        asyncio.run(several())

    async def both() -> list[Any]:
        await asyncio.gather(asyncio.to_thread(write, "a"), asyncio.to_thread(write, "b", pops=True))
        session = Session("s", log)
        found = await session.get_items()
        session.close()
        return found

    popped: list[str] = []
    said = [item["content"] for item in asyncio.run(both())]

    every = [f"{name} {number}" for name in "ab" for number in range(8)]
    assert sorted(every) == sorted(said + popped)
    assert [each for each in every if each.startswith("a") and each in said] == [e for e in said if e.startswith("a")]


def test_wrong_use_says_what_is_wrong(log: Path) -> None:
    """And stores nothing."""

    async def misuse() -> None:
        session = Session("s", log)
        with pytest.raises(WireError, match="cannot be adopted"):
            await session.add_items([{"content": "?"}])
        with pytest.raises(ThinkbackError, match="str is no item"):
            await session.add_items(["Hello"])
        await session.add_items([ASKED])
        with thinkback.open(log) as store:
            info, owner = store.find("s"), here()
            store.log.leases.take(info.id, "main", owner, 600_000_000, now())
            other = Session("s", store)
            for change in (other.add_items([ASKED]), other.pop_item(), other.clear_session()):
                with pytest.raises(BusyError, match="has a turn under way on branch main"):
                    await change
            store.log.leases.release(info.id, "main", owner)
        assert [ASKED] == await session.get_items()
        session.close()
        with pytest.raises(StoreError, match="the store of openai-agents is closed"):
            await session.get_items()

    asyncio.run(misuse())
    with pytest.raises(ThinkbackError, match="no id"):
        Session("", log)


def test_a_chat_goes_on_in_a_run_and_a_run_in_a_chat(log: Path, referee: Referee) -> None:
    """Both ways through one log; the chat at a provider that demands reasoning is refused nothing."""
    referee.reset()
    model = ScriptedModel()
    model.enqueue([assistant_message("Rome it is.")])
    with thinkback.open(log) as store:
        chat = store.session(
            "s", base_url=referee.base_url("deepseek"), endpoint="deepseek", model="deepseek-v4-pro", api_key="k"
        )
        first = chat.chat("What is the weather in Oslo?")
        session = Session("s", store)
        agent = Agent("Helper", model=model)
        runner: Any = Runner
        runner.run_sync(agent, "And in Rome?", session=session)
        given = model.calls[-1].input
        chat.conversation.reload()
        last = chat.chat("And in Bergen?")
        items = asyncio.run(session.get_items())

    assert ["What is the weather in Oslo?", first.text, "And in Rome?"] == [item["content"] for item in given]
    assert [200, 200] == [seen.status for seen in referee.requests]
    asked: Any = referee.requests[-1].body
    asked = asked["messages"]
    assert "Rome it is." in [message["content"] for message in asked]
    assert [last.text] == [item["content"] for item in items][-1:]


def test_reasoning_of_another_model_stays_away(log: Path) -> None:
    """Agents of two models share a session: the filter gives each its own reasoning, and no id tied to another."""
    first, second = ScriptedModel(), ScriptedModel()
    first.model, second.model = "gpt-6-sol", "gpt-6-luna"
    thought, said = dict(THOUGHT, status="completed"), dict(SAID, phase=None)

    async def talk() -> None:
        session: Any = Session("s", log, endpoint="openai")
        config = RunConfig(call_model_input_filter=session.input_filter)
        runner: Any = Runner
        for model, number in ((first, 1), (second, 2), (first, 3)):
            model.enqueue([{**thought, "id": f"rs_{number}", "encrypted_content": f"{SECRET}{number}"}, said])
            await runner.run(Agent("A", model=model), f"Question {number}", session=session, run_config=config)
        second.enqueue([{**thought, "id": "rs_5", "encrypted_content": f"{SECRET}5"}, said])
        first.enqueue(
            [
                {**thought, "id": "rs_4", "encrypted_content": f"{SECRET}4"},
                function_call("transfer_to_b", {}, call_id="call_4"),
            ]
        )
        handing = Agent("A", model=first, handoffs=[Agent("B", model=second)])
        await runner.run(handing, "Question 4", session=session, run_config=config)
        session.close()

    asyncio.run(talk())

    assert ["rs_2"] == [item["id"] for item in second.calls[1].input if item.get("type") == "reasoning"]
    assert [[], [], ["rs_1"]] == [
        [item["id"] for item in call.input if item.get("type") == "reasoning"]
        for call in (first.calls[0], second.calls[0], first.calls[1])
    ]
    assert ["msg_1", None] == [item.get("id") for item in first.calls[1].input if item.get("role") == "assistant"]
    with thinkback.open(log) as store:
        models = [c.value.origin.requested_model for c in store.commits("s") if c.kind == "response"]  # type: ignore[union-attr]
    assert ["gpt-6-sol", "gpt-6-luna", "gpt-6-sol", "gpt-6-sol", "gpt-6-luna"] == models


@pytest.mark.parametrize("place", asking.places("openai-chat", "openai-responses"), ids=lambda place: place.name)
@pytest.mark.parametrize("mode", [SYNC, ASYNC, STREAMED])
def test_the_three_questions_go_well_where_reasoning_is_demanded(
    place: Place, mode: str, referee: Referee, tmp_path: Path
) -> None:
    """Each question through a session that is opened anew, with the transport below."""

    def talk(job: Job) -> list[str]:
        agent = with_agents._agent("Responses" in place.name, job)
        runner: Any = Runner
        said = []
        for prompt in job.prompts:
            session: Any = Session("s", tmp_path / "sessions.db")
            if mode == SYNC:
                said.append(runner.run_sync(agent, prompt, session=session).final_output)
            else:
                said.append(run(_awaited(runner, agent, prompt, session, mode)))
            session.close()
        return said

    word, known = asking.asked(referee, place, mode, tmp_path, talk)

    assert ("ok", asking.KNOWN.get(place.name, 6)) == (word, known)


async def _awaited(runner: Any, agent: Any, prompt: str, session: Any, mode: str) -> Any:
    if mode == ASYNC:
        return (await runner.run(agent, prompt, session=session)).final_output
    result = runner.run_streamed(agent, prompt, session=session)
    async for _ in result.stream_events():
        pass
    return result.final_output
