"""Conversations of pydantic-ai in the log: what comes back, what the log has, who may write, and what is repaired."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.hosts import need

need("pydantic_ai")

from pydantic_ai import Agent  # noqa: E402
from pydantic_ai.conversation import Conversation  # noqa: E402
from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore  # noqa: E402
from pydantic_ai.exceptions import ModelHTTPError, UserError  # noqa: E402
from pydantic_ai.messages import (  # noqa: E402
    BinaryImage,
    CompactionPart,
    FilePart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel  # noqa: E402
from pydantic_ai.usage import RequestUsage, RunUsage  # noqa: E402

import thinkback  # noqa: E402
from bench.gateway_clients import with_pydantic_ai  # noqa: E402
from bench.gateway_clients.job import ASYNC, ASYNC_STREAMED, SYNC, TOOLS, Job, run  # noqa: E402
from bench.gateway_clients.places import PLACES, front_of  # noqa: E402
from bench.peers.places import KEY, Place  # noqa: E402
from tests.adapters import asking  # noqa: E402
from thinkback.adapters.pydantic_ai import ConversationStore, Reasoning  # noqa: E402
from thinkback.drive.clock import now  # noqa: E402
from thinkback.drive.leases import here  # noqa: E402
from thinkback.errors import BusyError, NotFoundError, StoreError  # noqa: E402
from thinkback_referee import Referee  # noqa: E402

pytestmark = [  # what SDKs say of models that are old, and of clients without a time-out of their own
    pytest.mark.filterwarnings("ignore:The model:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The `http_client` passed:UserWarning"),
]
SECRET = "EqQBCgIYAhIkNsigned" * 4
PICTURE = BinaryImage(data=b"\xff\xfe\x00picture", media_type="image/png")
MAKERS = {
    "openai-chat": with_pydantic_ai._chat,
    "openai-responses": with_pydantic_ai._responses,
    "anthropic": with_pydantic_ai._messages,
    "gemini": with_pydantic_ai._gemini,
}
ENDPOINTS = {
    "deepseek": ("deepseek", ""),
    "openai": ("openai", 'dialect = "openai-responses"\npath = "/responses"'),
    "anthropic": (
        "anthropic",
        'dialect = "anthropic"\npath = "/messages"\nheaders = { anthropic-version = "2023-06-01" }\n'
        'auth = { scheme = "header", header = "x-api-key" }',
    ),
    "gemini": (
        "gemini",
        'dialect = "gemini"\npath = "/models/{model}:generateContent"\n'
        'stream_path = "/models/{model}:streamGenerateContent?alt=sse"\nmodel_in_body = false\n'
        'auth = { scheme = "header", header = "x-goog-api-key" }',
    ),
}
DETAILS = {"raw": [1, "x"]}
MESSAGES: list[Any] = [
    ModelRequest(
        [SystemPromptPart("Be brief."), UserPromptPart(["Look", PICTURE, ImageUrl("http://x.example/y.png")])],
        instructions="Only facts.",
        run_id="run-1",
        metadata={"$": ["odd", 1.5, None]},
    ),
    ModelResponse(
        [
            ThinkingPart(
                "It is a cat,", id="rs_1", signature=SECRET, provider_name="openai", provider_details={"a": [1]}
            ),
            ThinkingPart("I think.", id="rs_1", provider_name="openai"),
            TextPart("Let me look.", id="msg_1", provider_name="openai", provider_details={"phase": "commentary"}),
            ToolCallPart("weather", {"city": "Oslo"}, "call_1", id="fc_1", provider_name="openai"),
            ToolCallPart("clock", '{"city": "Oslo"}', "call_2"),
        ],
        usage=RequestUsage(input_tokens=10, output_tokens=5, details={"reasoning_tokens": 3}),
        model_name="gpt-6-sol",
        provider_name="openai",
        provider_url="https://api.openai.com/v1/",
        provider_response_id="resp_1",
        finish_reason="tool_call",
    ),
    ModelRequest(
        [ToolReturnPart("weather", {"degrees": 7, "wind": [1.0]}, "call_1"), ToolReturnPart("clock", "noon", "call_2")]
    ),
    ModelResponse(
        [
            ThinkingPart("", id="redacted_thinking", signature=SECRET[::-1], provider_name="anthropic"),
            ThinkingPart("Noon, says the clock.", signature=SECRET, provider_name="anthropic"),
            CompactionPart("What was said before.", provider_name="anthropic"),
            FilePart(PICTURE),
            TextPart("Seven degrees.\n\nAt noon."),
        ],
        model_name="claude-opus-5-5",
        provider_name="anthropic",
        provider_url="https://api.anthropic.com",
        state="interrupted",
    ),
]


def turn(text: str) -> list[Any]:
    """A question and its answer."""
    return [ModelRequest([UserPromptPart(text)]), ModelResponse([ThinkingPart(f"Hm, {text}"), TextPart(f"Re: {text}")])]


def test_messages_come_back_as_they_were_saved_and_stand_in_the_log_once(log: Path) -> None:
    """Every kind of part, what only its maker can read, records; the log has a conversation, and no text twice."""

    async def save() -> Any:
        store = ConversationStore(log)
        conversation = Conversation(messages=list(MESSAGES[:2]), conversation_id="c", usage=RunUsage(input_tokens=10))
        await store.save(conversation, scope="ada")
        conversation.messages += MESSAGES[2:]
        entries = await store.save(conversation)
        store.close()
        again = ConversationStore(log)
        assert MESSAGES[3] == (await again.read_entry(entries[-1].id)).message
        assert MESSAGES[-1:] == (await again.load("c", limit=1)).messages
        loaded, record = await again.load("c", scope="ada"), await again.read_record("c")
        assert await again.load("c", scope="bob") is None
        assert ("ada", conversation.revision) == (record.scope, record.revision)  # type: ignore[union-attr]
        again.close()
        return loaded

    loaded = asyncio.run(save())

    assert MESSAGES == loaded.messages
    assert RunUsage(input_tokens=10) == loaded.usage
    with thinkback.open(log) as store:
        commits = store.commits("c")
        notes = b"".join(commit.payload for commit in commits if commit.kind == "annotation")
        said = (
            SECRET,
            "It is a cat",
            "Noon, says",
            "Be brief",
            "Seven degrees",
            "At noon.",
            "degrees",
            "What was said",
        )
        assert ["degrees"] == [text for text in said if text.encode() in notes]  # the name of a member
        kinds = [commit.kind for commit in commits if commit.kind not in ("annotation", "response", "provider_usage")]
        opened = ["system", "system", "user", "reasoning", "assistant", "tool_call", "tool_call"]
        assert [*opened, "tool_result", "tool_result", *["reasoning"] * 2, "assistant", "media", "assistant"] == kinds[
            :14
        ]
        assert "Noon, says the clock." in store.find_reasoning("clock")[0].hit.excerpt
        assert 3 == store.usage().total.models["gpt-6-sol"].reasoning
        assert [] == store.fsck()
        store.export(log.with_suffix(".jsonl"), session="c", with_reasoning=True)
    exported = log.with_suffix(".jsonl").read_text()
    assert ("Noon, says the clock." in exported, SECRET in exported, SECRET[::-1] in exported) == (True, False, False)


@pytest.mark.parametrize("seed", range(6))
def test_it_does_what_the_framework_s_own_store_does(log: Path, seed: int) -> None:
    """Saves, rewritten histories, branches, forks, deletions and stale copies, in any order: the same is loaded, listed
    and refused.
    """

    async def play() -> None:
        chance = random.Random(seed)
        ours, theirs = ConversationStore(log, durability="normal"), InMemoryConversationStore()
        stale: dict[str, list[Conversation]] = {}
        for step in range(30):
            name = chance.choice("abc")
            act = chance.choice(["save", "save", "save", "rewrite", "branch", "back", "fork", "delete", "stale"])
            number = chance.randrange(4)
            told = []
            for store, copies in ((ours, stale), (theirs, stale)):
                at = 0 if store is ours else 1
                told.append(await _tried(store, act, name, number, step, copies.setdefault(f"{name}{at}", [])))
            assert told[1] == told[0], (step, act, name)
        assert await _seen(theirs) == await _seen(ours)
        ours.close()
        again = ConversationStore(log, durability="normal")
        assert await _seen(theirs) == await _seen(again)
        again.close()
        with thinkback.open(log) as opened:
            assert [] == opened.fsck()

    asyncio.run(play())


async def _tried(store: Any, act: str, name: str, number: int, step: int, copies: list[Conversation]) -> Any:
    try:
        return await _acted(store, act, name, number, step, copies)
    except UserError as error:
        return type(error).__name__


async def _acted(store: Any, act: str, name: str, number: int, step: int, copies: list[Conversation]) -> Any:
    found = await store.load(name)
    if act == "stale" and copies:
        old = copies[number % len(copies)]
        old.messages += turn(f"stale {step}")
        return len(await store.save(old))
    if act == "delete" and number:
        return None  # less often
    if act == "delete":
        return await store.delete(name)
    if act == "fork":
        forked = await store.fork(
            name, at=min(number, len(found.messages) if found else 0), new_conversation_id=f"f{step}"
        )
        forked.messages += turn(f"fork {step}")
        await store.save(forked, scope="forks")
        return len((await store.load(f"f{step}")).messages)
    if act == "branch" and found:
        branched = await store.branch(name, at=number, expected_revision=found.revision)
        branched.messages += turn(f"branch {step}")
        return len(await store.save(branched))
    if act == "back" and found:
        record = await store.read_record(name)
        tip = record.branches[number % len(record.branches)] if record.branches else "none"
        return len((await store.branch(name, from_entry=tip, expected_revision=found.revision)).messages)
    conversation = found or Conversation(conversation_id=name)
    copies.append(await store.load(name) or Conversation(conversation_id=name))
    if act == "rewrite":
        conversation = Conversation(
            messages=conversation.messages[:number], conversation_id=name, revision=conversation.revision
        )
    conversation.messages = [*conversation.messages, *turn(f"{act} {step}")]
    return len(await store.save(conversation, scope="all" if number else None))


async def _seen(store: Any) -> Any:
    """All that is stored, as far as it does not depend on ids."""
    records = await store.list_conversations()
    seen = {}
    for record in records:
        tips = [[entry.message for entry in await store.read_history(tip)] for tip in record.branches]
        loaded = await store.load(record.conversation_id)
        window = (await store.load(record.conversation_id, limit=3)).messages
        seen[record.conversation_id] = (
            [part.content for message in loaded.messages for part in message.parts],
            [len(tip) for tip in tips],
            window == loaded.messages[-3:],
            (record.scope, record.forked_from),
        )
    listed = [record.conversation_id for record in await store.list_conversations(scope="all", limit=2)]
    return seen, listed


def test_of_writers_at_once_each_is_told(log: Path) -> None:
    """Threads with logs opened apart: a save goes through or is a conflict; nothing is lost, nothing half stored."""

    def write(name: str) -> None:
        async def several() -> None:
            with thinkback.open(log) as opened:
                store = ConversationStore(opened)
                for number in range(6):
                    while True:
                        conversation = await store.load("c") or Conversation(conversation_id="c")
                        conversation.messages += turn(f"{name} {number}")
                        try:
                            await store.save(conversation)
                            break
                        except ConversationConflict:
                            conflicts.append(name)

        asyncio.run(several())

    async def both() -> Any:
        await asyncio.gather(*(asyncio.to_thread(write, name) for name in "ab"))
        store = ConversationStore(log)
        loaded = await store.load("c")
        store.close()
        return loaded

    conflicts: list[str] = []
    loaded = asyncio.run(both())

    asked = [message.parts[0].content for message in loaded.messages if isinstance(message, ModelRequest)]
    assert sorted(f"{name} {number}" for name in "ab" for number in range(6)) == sorted(asked)
    with thinkback.open(log) as opened:
        assert ["main"] == [branch.name for branch in opened.log.refs.list(opened.find("c").id)]


def test_wrong_use_says_what_is_wrong(log: Path) -> None:
    """And stores nothing."""

    async def misuse() -> None:
        store = ConversationStore(log)
        conversation = Conversation(messages=turn("one"), conversation_id="c")
        await store.save(conversation)
        conversation.messages += turn("two")
        with thinkback.open(log) as opened:
            opened.session("chat", endpoint="deepseek", model="deepseek-v4-pro").commit("Hello")
            info, owner = opened.find("c"), here()
            opened.log.leases.take(info.id, "main", owner, 600_000_000, now())
            with pytest.raises(BusyError, match="has a turn under way on branch main"):
                await store.save(conversation)
            opened.log.leases.release(info.id, "main", owner)
        with pytest.raises(StoreError, match="no conversation of pydantic-ai"):
            await store.save(Conversation(messages=turn("one"), conversation_id="chat"))
        with pytest.raises(LookupError):
            await store.read_entry("none")
        assert 2 == len((await store.load("c")).messages)
        await store.save(conversation)
        store.close()
        with pytest.raises(StoreError, match="the store of pydantic-ai is closed"):
            await store.load("c")

    asyncio.run(misuse())


@pytest.mark.parametrize("name", ["Anthropic 4.5", "OpenAI Responses", "DeepSeek chat", "Gemini"])
def test_a_chat_goes_on_where_an_agent_was(name: str, referee: Referee, log: Path) -> None:
    """At the same provider its reasoning goes back as it came, and the provider refuses nothing."""
    referee.reset()
    place = PLACES[name]
    base, server = referee.base_url(place.host), referee.url.partition("://")[2]
    rows = (
        f'[[endpoint]]\nid = "{id}"\nname = "{id}"\nbase_url = "{referee.base_url(host)}"\nsource = "a test"\n'
        f'hosts = ["{server}/{host}"]\n{more}\n'
        for id, (host, more) in ENDPOINTS.items()
    )
    job = Job("here", SYNC, base.removesuffix("/v1beta"), KEY, place.model, place.effort, [], "", place.endpoint)
    with thinkback.open(log, rules={"rules.toml": "\n".join(rows)}) as opened:

        async def ask() -> None:
            store = ConversationStore(opened)
            agent: Any = Agent(MAKERS[front_of(place)](job), tools=[TOOLS["weather"]])
            result = await agent.run("What is the weather in Oslo?", conversation=Conversation(conversation_id="c"))
            await store.save(result)

        asked: Any = ask()
        run(asked)
        chat = opened.session("c", endpoint=place.endpoint, model=place.model, api_key=KEY)
        chat.chat("And what did you note?")
        made = {(each.what, each.action) for each in chat.why()}

    assert {200} == {seen.status for seen in referee.requests}
    assert "drop" not in {action for what, action in made}, made


def test_a_known_refusal_is_repaired_and_explained() -> None:
    """First without earlier turns' reasoning, then without any; what was refused stays away, and in the history."""
    asked: list[list[int]] = []
    allowed, wants = 9, False

    def answer(messages: list[Any], _: object) -> ModelResponse:
        thoughts = [sum(isinstance(p, ThinkingPart) for p in m.parts) for m in messages if isinstance(m, ModelResponse)]
        asked.append(thoughts)
        if wants and not sum(thoughts):
            missing = "The `reasoning_content` in the thinking mode must be passed back to the API."
            raise ModelHTTPError(400, "model", {"error": {"message": missing}})
        if sum(thoughts) > allowed:
            body = {"error": {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}
            raise ModelHTTPError(400, "model", body)
        if any(thoughts):
            return ModelResponse(
                [ThinkingPart("And so", signature=SECRET, provider_name="function"), TextPart("Done.")]
            )
        return ModelResponse([TextPart("Done.")])

    history = [*turn("one"), *turn("two")]
    reasoning = Reasoning()
    agent = Agent(FunctionModel(answer), capabilities=[reasoning])
    with pytest.raises(NotFoundError, match="no request was answered"):
        reasoning.why()

    agent.run_sync("three", message_history=history, conversation_id="c")
    assert "2 of 2 pieces of reasoning went back" in str(reasoning.why())
    allowed = 0
    result = agent.run_sync("three", message_history=history, conversation_id="c")
    why = reasoning.why()
    assert (2, 0, 2, True) == (why.held, why.went, why.sent, why.repaired)
    assert "Invalid `signature`" in str(why)
    agent.run_sync("four", message_history=result.all_messages(), conversation_id="c")
    assert [[1, 1], [1, 1], [0, 0], [0, 0, 0]] == asked
    allowed, wants = 9, True
    agent.run_sync("five", message_history=history, conversation_id="c")
    assert [[0, 0], [1, 1]] == asked[4:]
    with pytest.raises(ModelHTTPError, match="must be passed back"):
        agent.run_sync("six", message_history=turn("six")[:1], conversation_id="d")
    assert 7 == len(asked)
    assert 2 == sum(isinstance(part, ThinkingPart) for message in result.all_messages() for part in message.parts)


@pytest.mark.parametrize("place", asking.places(*MAKERS), ids=lambda place: place.name)
@pytest.mark.parametrize("mode", [SYNC, ASYNC, ASYNC_STREAMED])
def test_the_three_questions_go_well_where_reasoning_is_demanded(
    place: Place, mode: str, referee: Referee, tmp_path: Path
) -> None:
    """Each question after the conversation was loaded anew, with the transport below and the capability."""

    def talk(job: Job) -> list[str]:
        settings: Any = {"thinking": job.effort} if job.effort else {}
        tools = list(TOOLS.values())
        agent: Any = Agent(
            MAKERS[front_of(place)](job), tools=tools, model_settings=settings, capabilities=[Reasoning()]
        )
        return run(_several(agent, job, mode, tmp_path / "conversations.db"))

    word, known = asking.asked(referee, place, mode, tmp_path, talk)

    assert ("ok", asking.KNOWN.get(place.name, 6)) == (word, known)


async def _several(agent: Any, job: Job, mode: str, log: Path) -> list[str]:
    said: list[str] = []
    for prompt in job.prompts:
        store = ConversationStore(log)
        conversation = await store.load("c") or Conversation(conversation_id="c")
        if mode == SYNC:
            result = await asyncio.to_thread(partial(agent.run_sync, prompt, conversation=conversation))
            said.append(result.output)
            await store.save(result)
        elif mode == ASYNC:
            result = await agent.run(prompt, conversation=conversation)
            said.append(result.output)
            await store.save(result)
        else:
            async with agent.run_stream(prompt, conversation=conversation) as streamed:
                said.append(await streamed.get_output())
            conversation.messages = streamed.all_messages()
            await store.save(conversation)
        store.close()
    return said
