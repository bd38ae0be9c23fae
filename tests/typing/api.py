"""The public surface as a program uses it, for mypy --strict: run by nobody, checked by ``mypy``.

``assert_type`` holds what a caller may rely on; a line marked ``# type: ignore[...]`` is a mistake that the types must
catch, and an ignore that is not needed is an error.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, assert_type

import httpx2
import msgspec

import thinkback
from thinkback import (
    Decision,
    PermissionAnswer,
    Priority,
    ReasoningDelta,
    Reclassified,
    Reply,
    Session,
    SessionStore,
    Status,
    TextDelta,
    ThinkingBlock,
    Timeouts,
    ToolCall,
    ToolCallDelta,
    errors,
)
from thinkback.log.diff import Diff
from thinkback.log.drafting import Void
from thinkback.log.merge import MergeResult
from thinkback.log.protocol import Problem, SessionInfo
from thinkback.model.commits import Commit, Usage
from thinkback.model.plan import Counts
from thinkback.model.target import Decisions, Settings, Target
from thinkback.session.exchange.exporting import Exported
from thinkback.session.exchange.importing import ImportedSession
from thinkback.session.history.erasing import Erasure, Gone
from thinkback.session.history.explaining import Explanation
from thinkback.session.history.search import SearchHit
from thinkback.turn.plan import Plan
from thinkback.turn.spending import Spending, TurnUse
from thinkback.turn.usage import TokenUse


class Answer(msgspec.Struct):
    """A shape to answer in."""

    city: str


def run_tests(path: str, verbose: bool = False) -> str:
    """Run the tests."""
    return f"{path} {verbose}"


async def fetch(url: str) -> bytes:
    """Get a page."""
    return url.encode()


def stores(path: str) -> None:
    """Opening, listing, checking."""
    with thinkback.open(
        path, commit_reasoning=False, durability="normal", settings={"reasoning.effort": "low"}
    ) as store:
        assert_type(store, SessionStore)
        assert_type(store.sessions(), list[SessionInfo])
        assert_type(store.find("chat"), SessionInfo)
        assert_type(store.commits("chat"), list[Commit])
        assert_type(store.fsck(), list[Problem])
        assert_type(store.export("chat.jsonl", session="chat", with_reasoning=True), Exported)
        assert_type(store.import_([b""]).sessions, tuple[ImportedSession, ...])
        assert_type(store.care.purge(end_user="somebody", before=datetime(2026, 1, 1), dry_run=True), Erasure)
        assert_type(store.care.redact("abc", r"\d+").commits, tuple[Gone, ...])
    thinkback.open(path, durability="sometimes")  # type: ignore[arg-type]


def sessions(store: SessionStore) -> Session:
    """Every way to say where requests go."""
    store.session("local", base_url="http://127.0.0.1:1234/v1", model="m")
    store.session("own", endpoint="deepseek", model="m", headers={"X-Team": "a"}, proxy="http://proxy", account="mine")
    store.session(
        "tls", endpoint="deepseek", model="m", verify=ssl.create_default_context(), timeouts=Timeouts(idle=5.0)
    )
    store.session("tls", endpoint="deepseek", model="m", verify="ca.pem")
    store.session("tls", endpoint="deepseek", model="m", verify=False)
    store.session("typo", endpont="deepseek")  # type: ignore[call-arg]
    session = store.session("chat", endpoint="deepseek", model="deepseek-v4-pro", api_key="key")
    assert_type(session, Session)
    assert_type(session.target, Target)
    assert_type(session.settings, Settings)
    assert_type(session.log(), list[Commit])
    session.use(model="other", headers={"X": "y"})
    session.set("reasoning.keepLast", 3)
    assert_type(session.profiles.save("work"), Path)
    session.profiles.load("work", "deep")
    assert_type(session.profiles.list(), list[str])
    session.profiles.default("work")
    session.profiles.delete("deep")
    session.unset("reasoning.keepLast")
    return session


def searches(store: SessionStore, session: Session) -> None:
    """Search in what was said and thought, and what was used for it."""
    found = session.search(
        '"the build fails"', kinds=("reasoning", "user"), tool="bash", since="2026-07-01", min_tokens=9, everywhere=True
    )
    assert_type(found, list[SearchHit])
    assert_type([(one.hit.excerpt, one.commit) for one in found], list[tuple[str, Commit]])
    assert_type(session.search.reasoning(priority=Priority.PINNED, before=found[-1]), list[SearchHit])
    assert_type(store.find_reasoning("build", session="chat", until=datetime(2026, 7, 1), limit=9), list[SearchHit])
    session.search("build", kind="reasoning")  # type: ignore[call-arg]
    assert_type(session.usage.turns(), tuple[TurnUse, ...])
    assert_type(session.usage.total().models, dict[str, TokenUse])
    assert_type(session.usage.context(params={"max_tokens": 9}).effective, int)
    assert_type(store.usage().sessions, dict[str, Spending])


def asks(session: Session) -> None:
    """Turns, sync."""
    reply = session.chat(
        "Why does the build fail?",
        tools=[run_tests, {"type": "function", "function": {"name": "ask"}}],
        system="Be brief.",
        params={"max_tokens": 2000, "stop": ["x"]},
        response_format=Answer,
        settings={"reasoning.effort": "low"},
        reasoning=False,
        max_steps=3,
        approve=lambda request: PermissionAnswer(request.effect == "reads", always=True, note=request.reason),
        max_retries=0,
        stream=False,
        timeouts=Timeouts(total=60.0),
    )
    assert_type(reply, Reply)
    assert_type(reply.text, str)
    assert_type(reply.ending, str)
    assert_type(reply.reasoning, str | None)
    assert_type(reply.reasoning_commit, Commit | None)
    assert_type(reply.usage, Usage | None)
    assert_type(reply.decisions, list[Decision])
    assert_type(reply.tool_calls, list[ToolCall])
    assert_type([step.text for step in reply.steps], list[str])
    session.chat([{"type": "text", "text": "parts"}])
    with thinkback.toolbox(session, ["read", "mcp:here"], workspace=".", servers={"here": {"url": "u"}}) as tools:
        session.chat("Look.", tools=[*tools, run_tests])
    session.chat("typo", temprature=1)  # type: ignore[call-arg]
    session.chat("kind", max_steps="three")  # type: ignore[arg-type]
    assert_type(session.generate({call.id: "done" for call in reply.tool_calls}, tools=None), Reply)


def streams(session: Session) -> str:
    """Deltas by their kind."""
    shown = ""
    with session.stream("And?", tools=[run_tests]) as stream:
        for delta in stream:
            match delta:
                case TextDelta() | ReasoningDelta() | Reclassified():
                    shown += delta.text
                case ToolCallDelta():
                    shown += delta.arguments
                case Status():
                    shown += delta.state
    assert_type(stream.reply, Reply)
    return shown


async def asynchronous(session: Session) -> AsyncIterator[str]:
    """Turns in an event loop."""
    assert_type(await session.aio.chat("Why?", tools=[fetch]), Reply)
    assert_type(await session.aio.generate(), Reply)
    async with session.aio.stream("Why?") as stream:
        async for delta in stream:
            if isinstance(delta, TextDelta):
                yield delta.text
    assert_type(stream.reply, Reply)
    await session.aio.chat("typo", tool=[fetch])  # type: ignore[call-arg]


def by_hand(session: Session, body: bytes, headers: Mapping[str, str]) -> None:
    """Without our HTTP."""
    plan = session.wire.plan("Why?", tools=[run_tests])
    assert_type(plan, Plan)
    assert_type(plan.url, str)
    assert_type(plan.headers, dict[str, str])
    assert_type(bytes(plan), bytes)
    assert_type(b"".join(plan.body), bytes)
    assert_type(plan.counts, Counts)
    assert_type(session.wire.ingest(body, 200, headers), Reply)
    assert_type(session.wire.ingest([body], plan=plan), Reply)
    adopted = session.wire.adopt([{"role": "user", "content": "2+2?"}], minted_by=("openrouter", "openai/gpt-5.2"))
    assert_type(adopted, tuple[Commit, ...])


def explains(session: Session) -> None:
    """Why."""
    assert_type(session.why(), list[Decision])
    assert_type(session.why(next=True), list[Decision])
    assert_type(session.explain(next=True, params={"max_tokens": 9}), Plan)


def functions(blocks: list[ThinkingBlock]) -> None:
    """What needs no session."""
    assert_type(thinkback.estimate_thinking_tokens(blocks), int)
    assert_type(thinkback.thinking_to_reasoning_field(blocks), str | None)
    assert_type(thinkback.extract_thinking_blocks(blocks), list[ThinkingBlock])


def failures(session: Session) -> tuple[str, ...]:
    """Errors have facts for programs and sentences for people."""
    try:
        session.chat("Why?")
    except errors.ProviderError as error:
        assert_type(error.details, dict[str, object])
        return error.next_actions
    except errors.ThinkbackError as error:
        return (error.message,)
    return ()


def history(session: Session, store: SessionStore) -> None:
    """What people say about a conversation, and what they ask of it."""
    said = session.commit("Hi", kind="user", tags=["greeting"], metadata={"by": "hand"})
    assert_type(session.log(metadata={"by": "hand"}), list[Commit])
    assert_type(session.facts(said.hash).metadata, Mapping[str, Any])
    assert_type(said, Commit)
    assert_type(session.reasoning("Hm.", format="anthropic", message="note"), Commit)
    assert_type(session.annotate(said.hash, Priority.PINNED, reason="first", retain=["Hi"]), Commit)
    assert_type(session.commit("Hello", edit=said.hash), Commit)
    assert_type(session.restore(said.hash), Commit)
    assert_type(session.voids(said.hash), list[Void])
    with session.batch() as batch:
        batch.commit("one")
        batch.annotate(said.hash, tags=["x"])
    assert_type(batch.commits, tuple[Commit, ...])
    store.register_type("decision", role="system", priority=Priority.IMPORTANT)
    session.commit("Use it.", kind="decision", data={"adr": 1})
    assert_type(session.why(), list[Decision])
    assert_type(session.why(said.hash), Explanation)
    assert_type(session.why(said.hash).reasoning, tuple[Commit, ...])
    assert_type(session.diff("HEAD^1"), Diff)
    session.pprint("table")
    session.pprint("loud")  # type: ignore[arg-type]
    session.on("reasoning", lambda commit: None)


def lines(session: Session) -> None:
    """Branches, merges, checkpoints and searches."""
    branches = session.branches
    branches.branch("try", at="main^1", switch=True)
    result = branches.merge("main", "ours")
    assert_type(result, MergeResult)
    result.resolutions["hash"] = "theirs"
    assert_type(branches.commit_merge(result), MergeResult)
    assert_type(branches.cherry_pick("a", "b"), tuple[Commit, ...])
    assert_type(branches.fork("child", purpose="try"), Session)
    assert_type(session.compaction.run("deterministic", tail=2), Commit)
    assert_type(session.compaction.plan().after, Counts)
    assert_type(session.search("words", kinds=["user"], limit=3), list[SearchHit])
    assert_type(session.search.reasoning(model="m")[0].commit, Commit)
    branches.merge("main", "mine")  # type: ignore[arg-type]


def transports(store: SessionStore, inner: httpx2.BaseTransport, several: httpx2.AsyncBaseTransport) -> None:
    """What an SDK is given, and what it is asked of its requests."""
    assert_type(thinkback.http_client("chats.db", endpoint="deepseek", timeout=5.0), httpx2.Client)
    assert_type(thinkback.async_http_client(store, transport=several), httpx2.AsyncClient)
    httpx2.Client(transport=thinkback.Transport(Path("chats.db"), inner, on_log_error="raise"))
    thinkback.Transport("chats.db", several)  # type: ignore[arg-type]
    thinkback.AsyncTransport("chats.db", on_log_error="ignore")  # type: ignore[arg-type]
    with thinkback.conversation("bug-hunt"):
        assert_type(thinkback.why().recorded, bool)
        assert_type(thinkback.why().decisions, Decisions)
