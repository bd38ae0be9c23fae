"""Conversations with equal words and ids of calls, by programs that forget reasoning: each gets one back, whole."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from typing import Any, NamedTuple

import httpx2
import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import thinkback
from tests.adapters.transport.provider import HEADERS, Body, Provider
from tests.twins import Counting, Recorded, body, expected
from thinkback.cli.app import group

GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro-preview:generateContent"
CLAUDE = "https://api.anthropic.com/v1/messages"
KIMI = "https://api.moonshot.ai/v1/chat/completions"


class Kimi(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """A host that counts its calls in each conversation, on no network."""

    def __init__(self, first: int = 0) -> None:
        self._host = Counting(first)
        self.sent = self._host.sent

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        stream = Body((self._host.answer(request.content),))
        return httpx2.Response(200, headers={"content-type": "application/json"}, stream=stream)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.handle_request(request)


class Twin(NamedTuple):
    """A conversation: its name (empty: none), its system prompt, and which client has it."""

    name: str
    system: str
    client: int


TWINS = st.builds(
    Twin, st.sampled_from(["", "a", "b"]), st.sampled_from(["", "Be brief.", "Be kind."]), st.integers(0, 1)
)


@settings(deadline=None, max_examples=25)
@given(st.lists(TWINS, min_size=2, max_size=4), st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=14))
def test_each_request_carries_the_reasoning_of_one_whole_conversation(
    new_log: Callable[[], str], twins: list[Twin], order: list[tuple[int, bool]]
) -> None:
    """Interleaved at will, with clients begun again in between: the one that is nearest, and none is lost."""
    log, provider = new_log(), Kimi()
    known: list[Recorded] = []
    steps = [0] * len(twins)
    with ExitStack() as stack:
        clients = [thinkback.http_client(log, transport=provider) for _ in range(2)]
        for which, begins_anew in order:
            at = which % len(twins)
            twin = twins[at]
            if begins_anew:
                clients[twin.client].close()
                clients[twin.client] = thinkback.http_client(log, transport=provider)
            client, marks = clients[twin.client], (twin.name, twin.system, clients[twin.client])
            with thinkback.conversation(twin.name) if twin.name else nullcontext():
                client.post(KIMI, content=body(steps[at], twin.system), headers=HEADERS).read()
            before = expected(known, steps[at], marks) if steps[at] else ()
            assert list(before) == provider.sent[-1]
            assert ("complete" if before else "not-needed") == thinkback.why().reattached
            steps[at] += 1
            known.append(Recorded(steps[at], marks, (*before, f"thought {len(known)}")))
        for client in clients:
            stack.callback(client.close)


def turn(client: httpx2.Client) -> None:
    """A question, a call, an answer."""
    for steps in (0, 1):
        client.post(KIMI, content=body(steps), headers=HEADERS).read()


def test_a_program_that_runs_again_loses_nothing(new_log: Callable[[], str]) -> None:
    """Each run is a conversation of its own with one turn; ``why`` says how many have its words."""
    log = new_log()
    provider = Kimi()
    for run in range(3):
        with thinkback.http_client(log, transport=provider) as client:
            turn(client)
            assert ("complete", [f"thought {2 * run}"]) == (thinkback.why().reattached, provider.sent[-1])
            said = (
                f"{run + 1} conversations have these words; the newest with equal system and tools, of the same client"
            )
            assert bool(run) == (said in str(thinkback.why()))
    with thinkback.open(log) as store:
        kinds = [[commit.kind for commit in store.commits(info.id)] for info in store.sessions()]
    assert [(1, 2)] * 3 == [(each.count("user"), each.count("response")) for each in kinds]


def test_a_name_denotes_the_newest_of_its_conversations(new_log: Callable[[], str]) -> None:
    """Each run under one name adds a turn to the session; ``log``, ``why`` and the library show the last one."""
    log = new_log()
    provider = Kimi()
    for _ in range(3):
        with thinkback.http_client(log, transport=provider) as client, thinkback.conversation("weather"):
            turn(client)
    with thinkback.open(log) as store:
        session = store.session("weather")
        shown = [
            commit.value.thought for commit in session.log(kinds=["reasoning"]) if hasattr(commit.value, "thought")
        ]
        sent = [made.block for made in session.why()]
    assert ["thought 4", "thought 5"] == shown
    runner = CliRunner()
    told = runner.invoke(group, ["log", "weather", "--db", log])
    assert ("thought 4" in told.stdout, "thought 0" in told.stdout) == (True, False)
    assert "2 other branches are not shown: `thinkback log --branch main-" in told.stderr.replace("\n", " ")
    why = runner.invoke(group, ["why", "weather", "--db", log])
    assert (1, True) == (len(sent), sent[0][:8] in why.stdout)
    earlier = runner.invoke(group, ["why", "weather", "--branch", "main", "--db", log])
    assert "last request of branch main: kimi" in earlier.stdout
    assert sent[0][:8] not in earlier.stdout


@pytest.mark.parametrize("named", [True, False])
def test_five_at_once_each_get_one_whole_conversation(new_log: Callable[[], str], named: bool) -> None:
    """Of one client; where each has a name, each its own."""
    log = new_log()
    provider = Kimi()

    async def one(client: httpx2.AsyncClient, at: int) -> tuple[list[str | None], str]:
        with thinkback.conversation(f"sample {at}") if named else nullcontext():
            first = await client.post(KIMI, content=body(0), headers=HEADERS)
            own = first.json()["choices"][0]["message"]["reasoning_content"]
            at = len(provider.sent)
            await client.post(KIMI, content=body(1), headers=HEADERS)
            return [own], thinkback.why().reattached

    async def all_of_them() -> list[tuple[list[str | None], str]]:
        async with thinkback.async_http_client(log, transport=provider) as client:
            return await asyncio.gather(*(one(client, at) for at in range(5)))

    found = asyncio.run(all_of_them())
    sent = [each for each in provider.sent if each]
    assert 5 == len(sent)
    known = [own for own, _ in found]
    assert all(each in known for each in sent)
    if named:
        assert sorted(map(str, known)) == sorted(map(str, sent))
        assert ["complete"] * 5 == [said for _, said in found]


def test_a_hundred_conversations_with_a_name_each_get_their_own(new_log: Callable[[], str]) -> None:
    """Whoever was the last."""
    log = new_log()
    provider = Kimi()
    names = [f"sample {at}" for at in range(100)]
    with thinkback.http_client(log, transport=provider) as client:
        for steps in (0, 1):
            for name in names:
                with thinkback.conversation(name):
                    client.post(KIMI, content=body(steps), headers=HEADERS).read()
    assert [[f"thought {at}"] for at in range(100)] == provider.sent[100:]


PROCESS = """
import sys
import thinkback
from tests.adapters.transport.test_twins import Kimi, turn
provider = Kimi(int(sys.argv[2]))
with thinkback.http_client(sys.argv[1], transport=provider) as client:
    for _ in range(5):
        turn(client)
        assert "complete" == thinkback.why().reattached, thinkback.why()
        (sent,) = provider.sent[-1]
        print(sent)
"""


def test_two_processes_at_once_each_get_their_own(new_log: Callable[[], str]) -> None:
    """The client that has a conversation tells it from those of another."""
    log = new_log()
    command = [sys.executable, "-c", PROCESS, log]
    running = [subprocess.Popen([*command, first], stdout=subprocess.PIPE, text=True) for first in ("0", "1000")]
    sent = [process.communicate()[0].split("\n")[:-1] for process in running]
    assert [0, 0] == [process.returncode for process in running]
    assert [[f"thought {first + 2 * at}" for at in range(5)] for first in (0, 1000)] == sent


def test_a_call_without_an_id_gets_its_real_signature_in_each_run(new_log: Callable[[], str]) -> None:
    """Gemini's calls have none; a stand-in is for what the log has not."""
    log = new_log()
    signatures = (f"real{at}=" for at in itertools.count())

    def answers() -> Iterator[bytes]:
        while True:
            part: dict[str, Any] = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": next(signatures)}
            for each in (part, {"text": "20 degrees."}):
                content = {"role": "model", "parts": [each]}
                yield msgspec.json.encode({"candidates": [{"content": content, "finishReason": "STOP"}]})

    given = answers()

    def answer() -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "application/json"}, stream=Body((next(given),)))

    provider = Provider(answer)
    asked = {"role": "user", "parts": [{"text": "How warm is it?"}]}
    call = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "20"}}}]}
    for _ in range(3):
        with thinkback.http_client(log, transport=provider) as client:
            for contents in ([asked], [asked, call, result]):
                client.post(GEMINI, json={"contents": contents}, headers={"x-goog-api-key": "none"}).read()
    sent = [each["contents"][1]["parts"][0].get("thoughtSignature") for each in provider.bodies[1::2]]
    assert ["real0=", "real1=", "real2="] == sent


def test_a_named_conversation_is_found_where_its_first_message_was_changed(new_log: Callable[[], str]) -> None:
    """Some programs date it; a call that every conversation has is then known by the name as well."""
    log = new_log()
    provider = Kimi()
    with thinkback.http_client(log, transport=provider) as client:
        for steps, day in ((0, "Monday"), (1, "Tuesday")):
            for name in ("a", "b", "c"):
                dated = body(steps).replace(b"How warm is it?", f"{day}: how warm is it?".encode())
                with thinkback.conversation(name):
                    client.post(KIMI, content=dated, headers=HEADERS).read()
    assert [["thought 0"], ["thought 1"], ["thought 2"]] == provider.sent[3:]


class Claude(httpx2.BaseTransport):
    """Says the same each time, and never thinks the same twice. ``sent`` has the signatures in each request."""

    def __init__(self) -> None:
        self.sent: list[list[str]] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        said = [part for each in json.loads(request.content)["messages"] for part in each["content"]]
        self.sent.append([part["signature"] for part in said if isinstance(part, dict) and "signature" in part])
        thought = {"type": "thinking", "thinking": "Hm.", "signature": f"real{len(self.sent) - 1}="}
        content = [thought, {"type": "text", "text": "Well."}]
        document = {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}
        return httpx2.Response(200, headers={"content-type": "application/json"}, json=document)


def prompted(model: str, steps: int, prompt: str, late: str) -> dict[str, Any]:
    """A request behind so many answers, whose client keeps the words alone; ``late`` stands behind the first one."""
    messages: list[dict[str, Any]] = []
    for at in range(steps + 1):
        messages.append({"role": "user", "content": f"Question {at}"})
        messages += [{"role": "system", "content": f"Be {late}."}] if late and at == 1 else []
        messages += [{"role": "assistant", "content": "Well."}] if at < steps else []
    return {"model": model, "max_tokens": 9, "system": f"You are {prompt}.", "messages": messages}


BOUND, FREE = "claude-fable-5-2", "claude-opus-4-6"


@pytest.mark.parametrize(
    ("model", "older", "newer", "asks", "carried"),
    [
        (BOUND, ("AA", ""), ("CA", ""), "A", [0, 1]),
        (BOUND, ("AA", ""), ("AC", ""), "A", [0, 1]),
        (BOUND, ("AA", ""), ("AA", ""), "A", [2, 3]),
        (BOUND, ("CA", ""), ("AC", ""), "B", []),
        (BOUND, ("AA", "kind"), ("AA", "quick"), "A", [0, 1]),
        (FREE, ("AA", ""), ("CA", ""), "A", [2, 3]),
    ],
)
def test_where_reasoning_is_bound_a_twin_made_behind_the_same_prompts_is_preferred(
    new_log: Callable[[], str],
    model: str,
    older: tuple[str, str],
    newer: tuple[str, str],
    asks: str,
    carried: list[int],
) -> None:
    """To a newer one, less of whose reasoning is valid, also where only system messages in the middle differ; elsewhere
    the newest counts.
    """
    provider = Claude()
    with thinkback.http_client(new_log(), transport=provider) as client:
        for name, (prompts, late) in (("older", older), ("newer", newer)):
            for steps, prompt in enumerate(prompts):
                with thinkback.conversation(name):
                    body = prompted(model, steps, prompt, late)
                    client.post(CLAUDE, json=body, headers={"x-api-key": "none"}).read()
        client.post(CLAUDE, json=prompted(model, 2, asks, older[1]), headers={"x-api-key": "none"}).read()
        told = str(thinkback.why())
    assert [f"real{at}=" for at in carried] == provider.sent[-1]
    assert "2 conversations have these words" in told
    preferred = carried == [0, 1] and newer[0] != "AC"
    assert preferred == ("with the most reasoning that is valid behind what this request begins with" in told)
