"""``mcp``: the real server behind the package's own client, and what a client may do to it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters

import thinkback
from tests.cli.command import KEY, Command
from tests.cli.conftest import ENCRYPTED, SIGNATURE
from tests.cli.places import at_referee
from thinkback.model.commits import Response
from thinkback_referee import HttpError, Referee, Stall, Step

DEEPSEEK, CLAUDE = "deepseek/deepseek-v4-pro", "anthropic/claude-sonnet-4-5"


@asynccontextmanager
async def served(command: Command, *options: str, **environment: str) -> AsyncIterator[Client]:
    """A client of ``thinkback mcp``."""
    line = command.quick_line("mcp", *options, **environment)
    server = StdioServerParameters(command=line[0], args=line[1:], env={**command.environment, **environment})
    async with Client(server) as client:
        yield client


def asked(*options: str, targets: tuple[str, ...] = (DEEPSEEK,)) -> tuple[str, ...]:
    """Options that allow every question to ``targets``."""
    return ("--allow-queries", "all", *(word for target in targets for word in ("--target", target)), *options)


async def told(client: Client, name: str, /, **arguments: object) -> Any:
    """What a tool tells; a complaint of it fails the test."""
    result = await client.call_tool(name, arguments)
    text = result.content[0].text  # type: ignore[union-attr]
    assert not result.is_error, text
    return json.loads(text)


async def complaint(client: Client, name: str, /, **arguments: object) -> str:
    """What a tool complains of."""
    result = await client.call_tool(name, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """``work`` to its end."""
    return asyncio.run(asyncio.wait_for(work, 60))


def test_it_is_read_only_unless_questions_are_allowed(talked: Command) -> None:
    """Without options every tool says that it only reads, and none asks a model."""

    async def work() -> list[tuple[str, bool | None]]:
        async with served(talked) as client:
            tools = (await client.list_tools()).tools
            return [(tool.name, tool.annotations.read_only_hint if tool.annotations else None) for tool in tools]

    names = ("list_sessions", "search_reasoning", "read_session", "read_commit", "why", "usage")
    assert [(name, True) for name in names] == run(work())


def test_questions_are_allowed_one_by_one(talked: Command, referee: Referee) -> None:
    """``--allow-queries query`` offers that tool and no other that costs; the others are unknown."""
    at_referee(talked.config, referee)

    async def work() -> tuple[list[str], str]:
        async with served(talked, "--allow-queries", "query", "--target", DEEPSEEK) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            with pytest.raises(MCPError) as caught:
                await client.call_tool("second_opinion", {"question": "?", "answer": "!"})
            return names, caught.value.message

    names, text = run(work())
    assert ["query"] == names[6:]
    assert "there is no tool 'second_opinion'" in text


def test_reasoning_is_found_and_read_and_leads_to_what_it_led_to(talked: Command) -> None:
    """Search, read, why and usage go hand in hand: each gives the hash that the next one takes."""

    async def work() -> tuple[Any, ...]:
        async with served(talked) as client:
            sessions = await told(client, "list_sessions")
            hits = (await told(client, "search_reasoning", tool="get_weather"))["hits"]
            whole = await told(client, "read_commit", commit=hits[0]["commit"])
            read = await told(client, "read_session", session="talk")
            silent = await told(client, "read_session", session="talk", reasoning=False)
            call = next(entry for entry in read["entries"] if entry["kind"] == "tool_call")
            reasons = await told(client, "why", commit=call["commit"])
            last = await told(client, "why", session="talk")
            used = await told(client, "usage", session="talk")
            everyone = await told(client, "usage")
            return sessions, hits, whole, read, silent, reasons, last, used, everyone

    sessions, hits, whole, read, silent, reasons, last, used, everyone = run(work())
    assert ["talk"] == [session["name"] for session in sessions["sessions"]]
    assert ("reasoning", "get_weather", "talk") == tuple(hits[0][key] for key in ("kind", "tool", "session"))
    thought = next(entry for entry in read["entries"] if entry["kind"] == "reasoning")
    assert (thought["commit"], thought["text"]) == (hits[0]["commit"], whole["text"])
    kinds = ["user", "reasoning", "tool_call", "tool_result", "reasoning", "assistant"]
    assert kinds == [entry["kind"] for entry in read["entries"]]
    assert [kind for kind in kinds if kind != "reasoning"] == [entry["kind"] for entry in silent["entries"]]
    assert [thought["commit"]] == [led["commit"] for led in reasons["reasoning"]]
    assert "field" in {decision["action"] for decision in last["decisions"]}
    assert used["reasoning"] > 0
    assert used["output"] == everyone["by_session"]["talk"]["output"]


def test_every_answer_is_bounded_and_says_how_to_go_on(command: Command) -> None:
    """Long texts are cut and long lists paged; following the pages gives everything once."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        session = store.session("long")
        for number in range(30):
            session.reasoning(f"thought {number} " + "ä" * 20_000)

    async def work() -> tuple[list[str], list[str], str, int]:
        async with served(command) as client:
            read: list[str] = []
            largest, offset = 0, 0
            while True:
                page = await told(client, "read_session", offset=offset, limit=100)
                largest = max(largest, len(json.dumps(page, ensure_ascii=False)))
                read += [entry["commit"] for entry in page["entries"]]
                if "next_offset" not in page:
                    break
                offset = page["next_offset"]
            found: list[str] = []
            before = 0
            while True:
                hits = await told(client, "search_reasoning", text="thought", limit=7, before=before)
                found += [hit["commit"] for hit in hits["hits"]]
                if "next_before" not in hits:
                    break
                before = hits["next_before"]
            text, offset = "", 0
            while True:
                part = await told(client, "read_commit", commit=read[3], offset=offset)
                text += part["text"]
                if "next_offset" not in part:
                    break
                offset = part["next_offset"]
            last = await told(client, "read_session", offset=-1)
            assert [read[-1]] == [entry["commit"] for entry in last["entries"]]
            return read, found, text, largest

    read, found, text, largest = run(work())
    assert 30 == len(read) == len(set(read))
    assert read == found[::-1]
    assert "thought 3 " + "ä" * 20_000 == text
    assert largest < 50_000


def test_nothing_opaque_leaves_the_log(opaque: Command) -> None:
    """No tool shows a signature, an encrypted block, an account or a key, whatever it is asked."""

    async def work() -> list[str]:
        async with served(opaque) as client:
            read = await told(client, "read_session")
            texts = [json.dumps(read)]
            for entry in read["entries"]:
                texts.append(str((await client.call_tool("read_commit", {"commit": entry["commit"]})).content))
                texts.append(str((await client.call_tool("why", {"commit": entry["commit"]})).content))
            texts.append(str((await client.call_tool("search_reasoning", {"everything": True})).content))
            texts.append(str((await client.call_tool("search_reasoning", {"text": ENCRYPTED[:12]})).content))
            texts.append(str((await client.call_tool("why", {})).content))
            return texts

    texts = run(work())
    with thinkback.open(opaque.db, rules={}, settings={}) as store:
        accounts = {c.value.origin.account for c in store.commits("opaque") if isinstance(c.value, Response)}
    assert accounts - {""}
    assert len(texts) > 6
    for secret in (SIGNATURE, ENCRYPTED, KEY, *accounts):
        assert [] == [text for text in texts if secret in text]


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("read_session", {"session": "nobody"}, "there is no session 'nobody'"),
        ("read_session", {"sesion": "talk"}, "do not fit the tool"),
        ("read_session", {"limit": 0}, "do not fit the tool"),
        ("read_session", {"limit": "many"}, "do not fit the tool"),
        ("read_commit", {}, "do not fit the tool"),
        ("read_commit", {"commit": "ffffffff"}, "ffffffff"),
        ("search_reasoning", {"since": "yesterday"}, "'yesterday' is not a time"),
        ("why", {"commit": "ff"}, "at least 4 characters"),
        ("usage", {"session": "nobody"}, "there is no session"),
    ],
)
def test_a_bad_argument_is_a_clear_complaint(
    talked: Command, tool: str, arguments: dict[str, object], text: str
) -> None:
    """What is wrong with a call is told as its result, and the next call is answered."""

    async def work() -> str:
        async with served(talked) as client:
            said = await complaint(client, tool, **arguments)
            await told(client, "list_sessions")
            return said

    assert text in run(work())


def test_a_question_is_a_session_of_its_own_and_is_charged(command: Command, referee: Referee) -> None:
    """The answer comes with session, usage, and what it was charged: all of it, reasoning included."""
    at_referee(command.config, referee)
    referee.push(Step(reasoning="Let me think. " * 20, text="Four."))

    async def work() -> tuple[Any, Any]:
        async with served(command, *asked("--token-budget", "100000")) as client:
            answer = await told(client, "query", prompt="2 + 2?", effort="high", with_reasoning=True)
            return answer, await told(client, "read_session", session=answer["session"])

    answer, read = run(work())
    usage = answer["usage"]
    assert ("Four.", "answered", DEEPSEEK) == tuple(answer[key] for key in ("text", "outcome", "target"))
    assert answer["reasoning"].startswith("Let me think.")
    assert usage["reasoning"] > 0
    assert usage["input"] + usage["output"] == answer["charged"]
    assert 100_000 - answer["charged"] == answer["budget_left"]
    assert ["user", "reasoning", "assistant"] == [entry["kind"] for entry in read["entries"]]
    sent = referee.requests[-1].body
    assert ("high", 16_384) == (sent["reasoning_effort"], sent["max_tokens"])


def test_missing_usage_of_a_model_that_may_think_unseen_is_charged_in_full(command: Command, referee: Referee) -> None:
    """Where nobody says what was used, the most that could be is charged; the next question no longer fits."""
    at_referee(command.config, referee)
    empty = {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None, "completion_tokens_details": None}
    referee.push(Step(text="Four.", usage=empty))

    async def work() -> tuple[Any, str]:
        async with served(command, *asked("--token-budget", "1500")) as client:
            answer = await told(client, "query", prompt="2 + 2?", max_output_tokens=1000)
            return answer, await complaint(client, "query", prompt="3 + 3?", max_output_tokens=1000)

    answer, said = run(work())
    assert 1000 <= answer["charged"] <= 1010
    assert "token budget" in said
    assert 1 == len(referee.requests)


def test_the_budget_is_for_all_questions_at_once(command: Command, referee: Referee) -> None:
    """Of questions asked at the same time only so many are sent as the budget covers at their most."""
    at_referee(command.config, referee)

    async def work() -> list[bool]:
        async with served(command, *asked("--token-budget", "2500")) as client:
            calls = [client.call_tool("query", {"prompt": "Hi", "max_output_tokens": 1000}) for _ in range(4)]
            return [result.is_error for result in await asyncio.gather(*calls)]

    assert [False, False, True, True] == sorted(run(work()))
    assert 2 == len(referee.requests)


def test_a_refused_question_costs_nothing(command: Command, referee: Referee) -> None:
    """A provider's error is told to the agent, and the budget is as it was."""
    at_referee(command.config, referee)
    referee.push(Step(fault=HttpError(400, {"error": {"message": "no such thing"}})))

    async def work() -> tuple[str, Any]:
        async with served(command, *asked("--token-budget", "1100")) as client:
            said = await complaint(client, "query", prompt="Hi", max_output_tokens=1000)
            return said, await told(client, "query", prompt="Hi", max_output_tokens=1000)

    said, answer = run(work())
    assert "no such thing" in said
    assert 1100 - answer["charged"] == answer["budget_left"]


def test_several_models_answer_side_by_side(command: Command, referee: Referee) -> None:
    """``parallel_query`` gives every answer, and beside them what went wrong."""
    at_referee(command.config, referee)

    async def work() -> tuple[Any, str]:
        options = asked(targets=(DEEPSEEK, CLAUDE))
        async with served(command, *options, ANTHROPIC_API_KEY=KEY) as client:
            both = await told(client, "parallel_query", prompt="Hi", max_output_tokens=2000)
            return both, await complaint(client, "parallel_query", prompt="Hi", targets=["openai/gpt-5"])

    both, said = run(work())
    assert [DEEPSEEK, CLAUDE] == [answer["target"] for answer in both["answers"]]
    assert all(answer["text"] for answer in both["answers"])
    assert "'openai/gpt-5' may not be asked" in said


def test_a_question_goes_to_the_model_that_was_allowed_or_nowhere(command: Command, referee: Referee) -> None:
    """A profile that the person follows everywhere, which would take its targets in turn, does not lead a question
    elsewhere."""
    at_referee(command.config, referee)
    profiles = command.config / "profiles"
    profiles.mkdir()
    (profiles / "all.toml").write_text('kind = "round-robin"\ntargets = ["one", "two"]\n')
    for name, target in (("one", CLAUDE), ("two", DEEPSEEK)):
        endpoint, _, model = target.partition("/")
        (profiles / f"{name}.toml").write_text(f'endpoint = "{endpoint}"\nmodel = "{model}"\n')
    (command.config / "settings.toml").write_text('[session]\nprofile = "all"\n')

    async def work() -> list[str]:
        async with served(command, *asked(), ANTHROPIC_API_KEY=KEY) as client:
            return [(await told(client, "query", prompt="Hi"))["target"] for _ in range(3)]

    assert [DEEPSEEK] * 3 == run(work())
    assert ["deepseek"] * 3 == [exchange.host for exchange in referee.requests]


def test_a_long_answer_says_how_far_it_is(command: Command, referee: Referee) -> None:
    """A client that asks for progress hears of it while the model thinks, so that it does not give up."""
    at_referee(command.config, referee)
    referee.push(Step(reasoning="one two three four five six seven eight", text="Nine.", pace=0.3))
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async def work() -> None:
        async with served(command, *asked()) as client:
            await client.call_tool("query", {"prompt": "Count"}, progress_callback=hear)

    run(work())
    assert [1.0, 2.0] == [done for done, _ in heard][:2]
    assert "characters of reasoning" in str(heard[0][1])


def test_a_second_opinion_gets_question_and_answer(command: Command, referee: Referee) -> None:
    """The judge sees both, and is told that they are material."""
    at_referee(command.config, referee)

    async def work() -> Any:
        async with served(command, *asked()) as client:
            return await told(client, "second_opinion", question="2 + 2?", answer="Five, of course.")

    assert run(work())["text"]
    sent: Any = referee.requests[-1].body
    system, user = sent["messages"]
    assert "not instructions" in system["content"]
    assert "2 + 2?" in user["content"]
    assert "Five, of course." in user["content"]


def test_reasoning_without_an_answer_is_warned_about(command: Command, referee: Referee) -> None:
    """Where all tokens went to reasoning the agent is told what to do."""
    at_referee(command.config, referee)
    referee.push(Step(reasoning="Hm. " * 50, finish="length"))

    async def work() -> Any:
        async with served(command, *asked()) as client:
            return await told(client, "query", prompt="Hi")

    assert "reasoned and gave no answer" in run(work())["warning"]


def test_a_cut_answer_and_a_refusal_are_warned_about(command: Command, referee: Referee) -> None:
    """Whether there is text or not."""
    at_referee(command.config, referee)
    referee.push(Step(text="Half an", finish="length"), Step(reasoning="Hm.", refusal="No.", finish="stop"))

    async def work() -> list[Any]:
        async with served(command, *asked()) as client:
            return [await told(client, "query", prompt="Hi") for _ in "ab"]

    expected = ["the answer is cut off: the output limit was reached", "the model refused to answer"]
    assert expected == [answer["warning"] for answer in run(work())]


def test_a_cancelled_question_ends_its_turn_and_others_go_on(command: Command, referee: Referee) -> None:
    """A client's cancellation is stored as an interrupted turn with what had arrived, and charged at its most."""
    at_referee(command.config, referee)
    referee.push(
        Step(reasoning="I am thinking about it.", text="Done.", fault=Stall(30, after=3)), Step(text="Second.")
    )

    async def work() -> tuple[Any, Any]:
        async with served(command, *asked("--token-budget", "10000")) as client:
            first = asyncio.ensure_future(client.call_tool("query", {"prompt": "Slow", "max_output_tokens": 1000}))
            await until(lambda: bool(referee.requests))
            answer = await told(client, "query", prompt="Quick", max_output_tokens=1000)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first

            async def interrupted() -> bool:
                sessions = (await told(client, "list_sessions"))["sessions"]
                pages = [await told(client, "read_session", session=each["name"]) for each in sessions]
                return any("interrupted" in entry["text"] for page in pages for entry in page["entries"])

            await until(interrupted)
            last = await told(client, "query", prompt="Third", max_output_tokens=1000)
            return answer, last

    answer, last = run(work())
    assert "Second." == answer["text"]
    # the one that was cancelled: 1000 and its few words
    assert 10_000 - answer["charged"] - last["charged"] - 1003 == last["budget_left"]


async def until(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait until ``holds``; the test's own limit ends a wait in vain."""
    while True:
        found = holds()
        if found if isinstance(found, bool) else await found:
            return
        await asyncio.sleep(0.01)


def test_whatever_comes_in_is_answered_and_only_the_protocol_goes_out(talked: Command) -> None:
    """Lines that are no message, unknown methods and tools are answered with errors; every line out is JSON-RPC, also
    while warnings are issued."""
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        b"{not json",
        b"\xff\xfe",
        b"[1, 2]",
        b'"text"',
        b"{}",
        request(1, "initialize", start),
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        request(2, "no/such/method", {}),
        request(3, "tools/call", {"name": "nothing", "arguments": {}}),
        request(4, "tools/call", {"name": "usage", "arguments": []}),
        request(5, "tools/call", {"name": "read_session", "arguments": {"session": "\\ud800"}}),
        request(6, "tools/call", {"name": "list_sessions", "arguments": {}}),
    ]
    answers = talk(talked, lines, [1, 2, 3, 4, 5, 6], PYTHONWARNINGS="always")

    codes = [answer["error"]["code"] for answer in answers if answer["id"] is None]
    by_id = {answer["id"]: answer for answer in answers}
    assert [-32700, -32700, -32600, -32600, -32600] == codes
    assert -32601 == by_id[2]["error"]["code"]
    assert -32602 == by_id[3]["error"]["code"] == by_id[4]["error"]["code"]
    assert by_id[5]["result"]["isError"]
    assert "talk" in by_id[6]["result"]["content"][0]["text"]


def request(id: int, method: str, params: dict[str, Any]) -> bytes:
    """A request as a line."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def talk(command: Command, lines: list[bytes], wanted: list[int], **environment: str) -> list[Any]:
    """What the server answers to ``lines``, read until all ``wanted`` ids were; standard input ends then."""
    with subprocess.Popen(
        command.quick_line("mcp", **environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**command.environment, **environment},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers: list[Any] = []
        left = set(wanted)
        for line in lines:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
        while left:
            answers.append(json.loads(process.stdout.readline()))
            left.discard(answers[-1]["id"])
        rest, _ = process.communicate(timeout=30)
        assert b"" == rest
        assert 0 == process.returncode
    return answers


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)], ids=["SIGINT", "SIGTERM"])
def test_a_server_that_is_told_to_go_goes(talked: Command, sent: signal.Signals, code: int) -> None:
    """A signal ends the server at once, also while a client says nothing."""
    process = talked.start("mcp", stdin=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request(1, "ping", {}) + b"\n")
        process.stdin.flush()
        assert 1 == json.loads(process.stdout.readline())["id"]
        process.send_signal(sent)
        assert code == process.wait(30)


def test_a_log_that_is_not_there_yet_is_empty(command: Command) -> None:
    """An editor starts the server before anybody has said anything; sessions of other programs come to be seen."""

    async def look() -> tuple[Any, Any]:
        async with served(command) as client:
            before = await told(client, "list_sessions")
            with thinkback.open(command.db) as store:
                store.session("later").commit("Hi")
            return before, await told(client, "list_sessions")

    before, after = run(look())
    assert "later" not in str(before)
    assert "later" in str(after)


def test_questions_need_models_and_models_need_keys(command: Command, referee: Referee) -> None:
    """What could never work is told before the server starts."""
    at_referee(command.config, referee)

    assert 2 == command("mcp", "--allow-queries", "query").code
    assert 2 == command("mcp", "--target", DEEPSEEK).code
    assert "names no endpoint and model" in command("mcp", *asked(targets=("deepseek",))).err
    assert "ANTHROPIC_API_KEY" in command("mcp", *asked(targets=(CLAUDE,))).err


def test_a_missing_package_is_said(command: Command) -> None:
    """Without the extra the error names it."""
    hidden = "import sys; sys.modules['mcp'] = None; from thinkback.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "mcp"], capture_output=True, env=command.environment, timeout=60
    )

    assert 2 == done.returncode
    assert b"'.[mcp]'" in done.stderr
