"""Programs' own HTTP clients with the transport in them: what goes out, what comes back, what is recorded."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anthropic
import httpx2
import msgspec
import openai
import pytest

import thinkback
from tests.adapters.transport.provider import HEADERS, KEY, URL, WHOLE, Body, Provider, question, says, streams
from tests.cli.conftest import Inside
from tests.proxy.playbook import ANSWER, chunk
from thinkback.adapters.transport import transports
from thinkback.adapters.transport.refusals import added_names, lacking, named_in
from thinkback.errors import NotFoundError, SettingError, StoreError, ThinkbackError
from thinkback.model.rule import Switch
from thinkback.rules import load_rulebook
from thinkback.servers.viewer import looking_back
from thinkback.servers.viewer.lines import Lines
from thinkback.session import requests
from thinkback_referee import Referee

CHUNKS = b"".join(ANSWER)
REFUSED = json.dumps({"error": {"message": "no such thing", "type": "odd", "of its own": [1]}}, indent=3).encode()
ODD = b'{"error": {"message": "reasoning_content?"}}'
"""A refusal that names what was added, and says nothing of it that is known."""
MESSAGE = {
    "type": "message",
    "id": "m1",
    "role": "assistant",
    "model": "claude-opus-5-5",
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where it is recorded."""
    return tmp_path / "chats.db"


@pytest.fixture
def referee() -> Iterator[Referee]:
    """A strict provider."""
    with Referee() as found:
        yield found


def ask(client: httpx2.Client, *said: str, stream: bool = True, url: str = URL) -> bytes:
    """What the program reads."""
    return client.post(url, content=question(*said, stream=stream), headers=HEADERS).read()


def recorded(log: Path) -> list[list[str]]:
    """The kinds of commits of each session, oldest session first."""
    with thinkback.open(log) as store:
        return [[c.kind for c in store.commits(info.id)] for info in sorted(store.sessions(), key=lambda i: i.created)]


def test_what_the_program_forgets_goes_back_and_no_other_byte_changes(log: Path) -> None:
    """Both ways: the provider's bytes and headers reach the program, its own reach the provider."""
    provider = Provider(streams(), streams(), says(200, WHOLE))
    with thinkback.http_client(log, transport=provider) as client:
        first = client.post(URL, content=question(), headers=HEADERS)
        assert CHUNKS == first.read()
        assert "r1" == first.headers["x-request-id"]
        assert "Hm." not in str(thinkback.why())
        assert thinkback.why().recorded
        assert CHUNKS == ask(client, "Why?", "42.", "And?")
        assert WHOLE == ask(client, "Why?", "42.", "And?", "42.", "So?", stream=False)
        assert "complete" == thinkback.why().reattached
        assert [("field", "reasoning")] * 2 == [(made.action, made.what) for made in thinkback.why().decisions]

    first_sent, second, third = provider.bodies
    assert json.loads(question()) == {key: value for key, value in first_sent.items() if key != "stream_options"}
    assert "Hm." == second["messages"][1]["reasoning_content"]
    assert ["Hm.", "Hm."] == [m["reasoning_content"] for m in third["messages"] if m["role"] == "assistant"]
    assert {f"Bearer {KEY}"} == {request.headers["authorization"] for request in provider.asked}
    assert {"1"} == {request.headers["x-own"] for request in provider.asked}
    assert b'"unknown":1.0' in provider.asked[1].content
    assert {URL} == {str(request.url) for request in provider.asked}
    assert 1 == len(recorded(log))
    assert KEY.encode() not in log.read_bytes()


def test_what_another_program_erased_goes_back_no_more(log: Path) -> None:
    """The transport has the conversation in memory, of which a request is under way then."""

    def erases() -> httpx2.Response:
        with thinkback.open(log) as store:
            (info,) = store.sessions()
            (thought,) = [each for each in store.commits(info.id) if each.kind == "reasoning"]
            assert store.care.redact(thought.hash, "Hm").commits
        return streams()()

    provider = Provider(streams(), erases, streams())
    with thinkback.http_client(log, transport=provider) as client:
        ask(client)
        ask(client, "Why?", "42.", "And?")
        ask(client, "Why?", "42.", "And?", "42.", "So?")
    assert [0, 1] == [request.content.count(b"Hm.") for request in provider.asked[:2]]
    assert "Hm." != provider.bodies[2]["messages"][1].get("reasoning_content")


def test_a_request_that_is_repaired_has_nothing_of_what_was_erased_meanwhile(log: Path) -> None:
    """The provider refuses the reasoning; by the time the request goes out again the thought was taken out."""

    def erases() -> httpx2.Response:
        with thinkback.open(log) as store:
            (info,) = store.sessions()
            (thought,) = [each for each in store.commits(info.id) if each.kind == "reasoning"]
            assert store.care.redact(thought.hash, "Hm").commits
        missing = "thinking is enabled but reasoning_content is missing in assistant message at index 1"
        return says(400, json.dumps({"error": {"message": missing}}).encode())()

    provider = Provider(streams(), erases, streams())
    with thinkback.http_client(log, transport=provider) as client:
        ask(client)
        ask(client, "Why?", "42.", "And?")
    assert 3 == len(provider.asked)
    assert [0, 1, 0] == [request.content.count(b"Hm.") for request in provider.asked]
    assert b"42." in provider.asked[2].content


def test_what_is_not_known_passes_as_it_is(log: Path) -> None:
    """Hosts, paths and methods; the very request, and ``why`` says so. An unknown host is warned of once; ``strict``
    refuses the host alone.
    """
    provider = Provider(says(200, b"[1 ]", etag="x"))
    with thinkback.http_client(log, transport=provider) as client:
        unknown = "https://models.invalid/v1/chat/completions"
        with pytest.warns(RuntimeWarning, match=r"not recorded: no endpoint is known at models\.invalid"):
            client.post(unknown, content=b"{not json", headers=HEADERS)
        for url in (unknown, "https://api.moonshot.ai/v1/embeddings"):
            response = client.post(url, content=b"{not json", headers=HEADERS)
            assert (b"[1 ]", "x") == (response.read(), response.headers["etag"])
        assert "no response" not in thinkback.why().reason
        assert b"[1 ]" == client.get(URL).read()
        assert "GET" in thinkback.why().reason
        twice = b'{"model": "kimi-k2-thinking", "messages": [{"role": "user", "content": "a", "content": "b"}]}'
        assert b"[1 ]" == client.post(URL, content=twice).read()
        assert "stands twice" in thinkback.why().reason
    assert [*[b"{not json"] * 3, b"", twice] == [request.content for request in provider.asked]
    assert not log.exists()
    with (
        thinkback.http_client(log, transport=provider, strict=True) as client,
        pytest.raises(NotFoundError, match=r"models\.invalid"),
    ):
        ask(client, url="https://models.invalid/v1/chat/completions")


def test_a_response_id_that_is_not_in_the_log_is_the_providers_business(log: Path) -> None:
    """The request goes as it is written."""
    provider = Provider(says(200, b"{}"))
    body = b'{"model": "gpt-5.6", "input": "And?", "previous_response_id": "resp_of_another_day"}'
    with thinkback.http_client(log, transport=provider) as client:
        assert b"{}" == client.post("https://api.openai.com/v1/responses", content=body).read()
    assert [body] == [request.content for request in provider.asked]
    assert "resp_of_another_day" in thinkback.why().reason


@pytest.mark.parametrize("status", [400, 404, 429, 503])
def test_a_refusal_is_the_providers_own_and_asked_for_once(log: Path, status: int) -> None:
    """Status, headers and bytes; the SDK decides whether to ask again."""
    provider = Provider(says(status, REFUSED, **{"retry-after": "7", "x-request-id": "r2"}))
    with thinkback.http_client(log, transport=provider) as client:
        response = client.post(URL, content=question(), headers=HEADERS)
    found = response.status_code, response.read(), response.headers["retry-after"], response.headers["x-request-id"]
    assert (status, REFUSED, "7", "r2") == found
    assert 1 == len(provider.asked)
    assert ["turn_ended"] == [kind for kinds in recorded(log) for kind in kinds if kind in ("turn_ended", "response")]


def test_a_field_that_a_provider_refuses_by_name_is_left_out_for_a_while(log: Path) -> None:
    """At once, in a request that is recorded as one with the first, and in later ones, which have all else that is to
    be added; the log says what was sent. A refusal of what was not added is the program's.
    """
    refused = b'{"error": {"message": "no such field", "param": "stream_options"}}'
    provider = Provider(says(400, refused), streams(), streams(), says(400, refused))
    with thinkback.http_client(log, transport=provider) as client:
        assert CHUNKS == ask(client)
        first, second = provider.asked
        assert b"stream_options" in first.content
        assert (question(), str(len(question()))) == (second.content, second.headers["content-length"])
        said = thinkback.why()
        assert (True, 2) == (said.recorded, said.sent)
        assert "sent 2 times: without stream_options, which the provider refused" in str(said)
        (kinds,) = recorded(log)
        assert [1] * 4 == [kinds.count(each) for each in ("user", "request", "response", "turn_ended")]
        assert CHUNKS == ask(client, "Why?", "42.", "And?")
        third = provider.bodies[2]
        assert ("Hm.", False) == (third["messages"][1]["reasoning_content"], "stream_options" in third)
        said = thinkback.why()
        assert (1, "without stream_options, which the provider refused") == (said.sent, said.reason)
        response = client.post(URL, content=question("Other?"), headers=HEADERS)
        assert (400, refused, 4) == (response.status_code, response.read(), len(provider.asked))
    with thinkback.open(log) as store:
        assert said.decisions == store.session(store.find(said.session).name).why() != []


def test_a_request_that_goes_as_its_program_wrote_it_is_told_as_that(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing less helps. The log has the digest of what was sent, and nobody shows decisions that had no effect;
    so with a record of a version that stored the digests of the refused request. For a while the conversation goes so
    at once, and no other does.
    """
    refused = b'{"error": {"message": "no such field", "param": "stream_options"}}'
    later = "Why?", "42.", "And?"
    provider = Provider(streams(), says(400, refused), says(400, ODD), streams())
    with thinkback.http_client(log, transport=provider) as client:
        ask(client)
        assert CHUNKS == ask(client, *later)
        said = thinkback.why()
        assert [True, True, False] == [b"reasoning_content" in request.content for request in provider.asked[1:]]
        assert question(*later) == provider.asked[3].content
        assert (True, 3) == (said.recorded, said.sent)
        assert ("", "", None, []) == (said.reattached, said.left_out, said.plan, said.decisions)
        assert "sent 3 times: the provider refused reasoning_content, which was added" in str(said)
        ask(client, *later, "42.", "So?")
        assert question(*later, "42.", "So?") == provider.asked[4].content
        assert "the provider refused reasoning_content in the last hour" in str(thinkback.why())
        ask(client, "Other?")
        ask(client, "Other?", "42.", "And?")
        assert (7, "Hm.") == (len(provider.asked), provider.bodies[6]["messages"][1]["reasoning_content"])

    with thinkback.open(log) as store:
        info = store.find(said.session)
        commits = list(store.commits(info.id))
        at, last = [number for number, commit in enumerate(commits) if commit.kind == "request"][1:]
        record: Any = commits[at].value
        assert (hashlib.sha256(question(*later)).hexdigest(), "") == (record.sent_digest, record.carriers_digest)
        with pytest.raises(NotFoundError, match="went as the program wrote it"):
            store.session(info.name).why()
        column = looking_back.sent(Lines(store.log).read(info, info.branch), commits[last].hash)
        assert (None, True) == (column.plan, "went as the program wrote it" in column.failed)
    refusal = requests.plan_of(record, commits).record()
    commits[at] = msgspec.structs.replace(
        commits[at], value=msgspec.structs.replace(refusal, target=record.target, basis=record.basis)
    )
    with pytest.raises(NotFoundError, match="reasoning_content, which was added"):
        requests.rebuild(commits, commits[at].hash)
    shown = Inside(log.parent, monkeypatch, capsys)("why", info.name, "--json", THINKBACK_DB=str(log))
    assert (True, False) == ("went as the program wrote it" in shown.out + shown.err, "decisions" in shown.out)


def test_what_only_the_settings_ask_for_is_not_asked_for_where_it_was_refused(log: Path) -> None:
    """For a while, in other conversations too."""
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "summaries: not for you"}}
    provider = Provider(says(400, json.dumps(refusal).encode()), says(200, json.dumps(MESSAGE).encode()))
    body = {"model": "claude-opus-5-5", "max_tokens": 2000, "thinking": {"type": "adaptive"}}
    with thinkback.http_client(log, transport=provider, settings={"reasoning.readable": True}) as client:
        for said in ("Why?", "Other?"):
            asked = {**body, "messages": [{"role": "user", "content": said}]}
            assert 200 == client.post("https://api.anthropic.com/v1/messages", json=asked).status_code
    assert ["summarized", None, None] == [sent["thinking"].get("display") for sent in provider.bodies]


def test_a_place_without_what_it_refused_is_like_it_in_all_else() -> None:
    """Fields on any level and values of headers, of the endpoint, the rule and its switches."""
    book = load_rulebook()
    claude = book.target("anthropic", "claude-opus-4-5", on="2026-11-01")
    rule = msgspec.structs.replace(
        claude.rule,
        params={"a": {"b": 1}, "c": {"b": 1, "d": {}}},
        headers={"x-beta": "one, two", "x-other": "one", "x-third": "two,three"},
        keep_switch=Switch({"b": 1}, {"x-beta": "one"}),
        drop_switch=None,
    )
    target = msgspec.structs.replace(claude, rule=rule)
    found = lacking(target, ["b", "one"])
    assert {"c": {"d": {}}} == found.rule.params
    assert {"x-beta": "two", "x-third": "two,three"} == found.rule.headers
    assert (Switch(), None) == (found.rule.keep_switch, found.rule.drop_switch)
    assert target == lacking(target, ["four"])
    chat = book.target("deepseek", "deepseek-v4-pro", on="2026-11-01")
    assert [False, True] == [lacking(chat, [name]).endpoint.stream_usage for name in ("stream_options", "b")]


def test_values_of_headers_and_members_of_messages_are_found_in_refusals() -> None:
    """In words, in quotation marks, as a path; a body that is no JSON has none."""
    given = b'{"messages": [{"content": "?"}]}'
    sent = b'{"messages": [{"content": "?", "thought": 1, "a_b": {"c": 1}}]}'
    mine = [(b"Content-Length", b"99"), (b"x-beta", b"one, two-2026")]
    names = added_names(given, sent, [(b"x-beta", b"one")], mine)
    assert {"thought", "a_b", "c", "two-2026"} == names
    said = {"a_b": b'"messages.0.a_b: not permitted"', "two-2026": b"Unexpected value(s) `two-2026`", "c": b'["c"]'}
    said |= {"thought": b'{"error": {"message": "\'thought\' is unknown"}}', "": b'{"a_b": "of thought, two-2026x"}'}
    assert list(said) == [named_in(names, refusal) for refusal in said.values()]
    assert set() == added_names(b"{", sent, mine, mine)
    assert "" == named_in(names, b"[" * 100_000)


def test_a_second_refusal_is_not_repaired(log: Path) -> None:
    """The program's own request goes once, whatever its provider makes of it; the refusal is the provider's own."""
    again = b'{"error": {"message": "reasoning_content is missing in assistant message at index 1", "n": 2}}'
    provider = Provider(streams(), says(400, ODD), says(400, again))
    with thinkback.http_client(log, transport=provider) as client:
        ask(client)
        answer = b"".join(ANSWER).decode()
        said = "".join(re.findall(r'"content": ?"([^"]*)"', answer))
        assert again == ask(client, "Why?", said, "Really?")
    assert 3 == len(provider.asked)
    assert question("Why?", said, "Really?") == provider.asked[-1].content


@pytest.mark.parametrize("said", ["the content is against the policy", "options and stream", ""])
def test_a_refusal_that_names_nothing_of_ours_is_the_programs(log: Path, said: str) -> None:
    """Words of everyday speech name no field."""
    refused = json.dumps({"error": {"message": said, "include_usage": None, "type": "role"}}).encode()
    provider = Provider(says(400, refused))
    with thinkback.http_client(log, transport=provider) as client:
        assert refused == ask(client)
    assert 1 == len(provider.asked)


def test_attempts_of_the_sdk_are_recorded_as_one(log: Path) -> None:
    """The package asks three times; the third succeeds. A network error reaches it as what it was."""
    gone = httpx2.ConnectError("gone")
    provider = Provider(says(503, REFUSED, **{"retry-after-ms": "1"}), gone, says(200, WHOLE))
    with thinkback.http_client(log, transport=provider) as http:
        client = openai.OpenAI(base_url=URL.removesuffix("/chat/completions"), api_key=KEY, http_client=http)
        client._calculate_retry_timeout = lambda *_: 0  # type: ignore[method-assign]
        ask: Any = client.chat.completions.create
        said = ask(model="kimi-k2-thinking", messages=[{"role": "user", "content": "Why?"}])
        assert "42." == said.choices[0].message.content
        provider = Provider(gone)
    (kinds,) = recorded(log)
    assert 1 == kinds.count("response") == kinds.count("request") == kinds.count("user")

    with (
        thinkback.http_client(log, transport=provider) as http,
        pytest.raises(httpx2.ConnectError) as raised,
    ):
        http.post(URL, content=question("Other?"), headers=HEADERS)
    assert raised.value is gone


def test_a_refusal_about_reasoning_is_repaired_before_the_program_sees_it(log: Path) -> None:
    """The restored reasoning is refused, and goes another way."""
    refusal = json.dumps({"error": {"message": "The reasoning_content in the thinking mode must be passed back"}})
    provider = Provider(says(400, refusal.encode()), streams())
    with thinkback.http_client(log, transport=provider) as client:
        assert CHUNKS == ask(client, "Why?", "An answer that nobody recorded.", "And?")
    assert thinkback.why().repaired
    assert 2 == len(provider.asked)


def test_a_stream_that_the_program_leaves_is_recorded_as_far_as_it_came(log: Path) -> None:
    """And one that breaks off, whose error is the network's own; what was whole is in the log by then."""
    broken = httpx2.ReadError("broken")
    provider = Provider(streams(), streams(ANSWER[0], broken))
    with thinkback.http_client(log, transport=provider) as client:
        with client.stream("POST", URL, content=question(), headers=HEADERS) as response:
            assert ANSWER[0] == next(response.iter_bytes())
        assert thinkback.why().recorded
        with client.stream("POST", URL, content=question("Other?"), headers=HEADERS) as response:
            pieces = response.iter_bytes()
            assert ANSWER[0] == next(pieces)
            with pytest.raises(httpx2.ReadError) as raised:
                next(pieces)
        assert raised.value is broken
    assert [["request", "response", "reasoning", "turn_ended"]] * 2 == [kinds[-4:] for kinds in recorded(log)]


def test_a_stream_that_is_left_before_a_word_or_behind_a_call_goes_on(log: Path) -> None:
    """The program asks again, with the call that it got or with nothing: nothing is missing, and it is one session."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    gives = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "7"},
    ]
    calls = streams(ANSWER[0], chunk(tool_calls=[{"index": 0, **call}]), *ANSWER[2:])
    provider = Provider(*[streams()] * 3, calls, streams())
    for number, kept in enumerate(([], gives)):
        body = json.loads(question(f"Why {number}?"))
        with thinkback.http_client(log, transport=provider) as client:
            with client.stream("POST", URL, json=body, headers=HEADERS) as response:
                pieces = response.iter_bytes()
                for _ in range(number + 1):
                    next(pieces)
            for more in (kept, [{"role": "assistant", "content": "42."}]):
                body["messages"] += [*more, {"role": "user", "content": "And?"}]
                client.post(URL, json=body, headers=HEADERS).read()
                assert "complete" == thinkback.why().reattached
    assert 2 == len(recorded(log))


@pytest.mark.parametrize("pieces", [ANSWER, (chunk(content="4"), *ANSWER)])
@pytest.mark.parametrize("stream", [True, False])
def test_reasoning_that_must_not_come_does_not_reach_the_program(
    log: Path, stream: bool, pieces: tuple[bytes, ...]
) -> None:
    """It reads a refusal in its dialect, which no SDK sends again; where something was shown, behind that."""
    provider = Provider(streams(*pieces) if stream else says(200, WHOLE))
    with thinkback.http_client(log, transport=provider, settings={"reasoning.strict": True}) as client:
        response = client.post(URL, content=question(stream=stream), headers=HEADERS)
        said = response.read()

    assert b"Hm." not in said
    assert b"reasoning.strict" in said
    assert 1 == len(provider.asked)
    assert (200 if stream and len(pieces) > len(ANSWER) else 400) == response.status_code


def test_a_document_that_breaks_off_is_the_networks_error(log: Path) -> None:
    """Whatever its status is."""
    broken = httpx2.ReadError("broken")
    kind = {"content-type": "application/json"}
    for status in (200, 400):
        provider = Provider(partial(httpx2.Response, status, headers=kind, stream=Body((WHOLE[:20], broken))))
        with thinkback.http_client(log, transport=provider) as client, pytest.raises(httpx2.ReadError) as raised:
            ask(client, stream=False)
        assert raised.value is broken


def test_threads_share_a_client(log: Path) -> None:
    """Each conversation is one session, whoever asks meanwhile."""
    with thinkback.http_client(log, transport=Provider(streams())) as client, ThreadPoolExecutor(8) as threads:
        for later in ([], ["42.", "And?"], ["42.", "And?", "42.", "So?"]):
            said = [threads.submit(ask, client, f"Why {number}?", *later) for number in range(8)]
            assert [CHUNKS] * 8 == [each.result() for each in said]
    assert [3] * 8 == [kinds.count("assistant") for kinds in recorded(log)]


def test_what_cannot_be_understood_goes_on_to_its_end(log: Path) -> None:
    """A document and a stream of another kind: the provider's bytes, whatever thinkback makes of them."""
    odd = b'{"object": "queued", "id": 7}'
    half = (chunk(content="4"), b'data: {"choices": "none of ours"}\n\n', b"data: tail\n\n")
    provider = Provider(says(200, odd), streams(*half))
    with thinkback.http_client(log, transport=provider) as client:
        assert odd == ask(client, stream=False)
        assert b"".join(half) == ask(client)


def comes_as(headers: dict[str, str], pieces: tuple[bytes, ...]) -> httpx2.Response:
    """A response of these pieces."""
    return httpx2.Response(200, headers=headers, stream=Body(pieces))


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "application/octet-stream", "text/event-stream"])
def test_what_comes_in_another_form_than_was_asked_for_stays_as_it_came(log: Path, kind: str) -> None:
    """A stream under another content type, or without its end; a document for a stream, a stream for a document."""
    headers = {"content-type": kind}
    for pieces in (ANSWER, ANSWER[:-1], (WHOLE,), (WHOLE[:9], WHOLE[9:])):
        provider = Provider(partial(comes_as, headers, pieces))
        with thinkback.http_client(log, transport=provider) as client:
            for number, streams in enumerate((True, False)):
                assert b"".join(pieces) == ask(client, f"Why {number}, {len(pieces)}?", stream=streams)
                assert thinkback.why().recorded


@pytest.mark.parametrize("large", [0, transports.LARGE])
def test_cancelled_tasks_and_many_tasks_are_recorded(log: Path, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asyncio: a task that is cancelled while its provider is silent, beside one that is answered. Large requests are
    worked on beside the event loop, but for the pieces of their responses.
    """
    provider = Provider(streams(ANSWER[0], None), streams())
    step = transports._stepped
    on_loop: list[Any] = []
    beside: list[Any] = []

    def stepped(go_on: Any, given: Any) -> Any:
        here = threading.current_thread() is threading.main_thread()
        (on_loop if here else beside).append(given)
        return step(go_on, given)

    monkeypatch.setattr(transports, "_stepped", stepped)
    monkeypatch.setattr(transports, "LARGE", large)

    async def run() -> bytes:
        async with thinkback.async_http_client(log, transport=provider) as client:
            begun = asyncio.Event()

            async def read() -> None:
                async with client.stream("POST", URL, content=question(), headers=HEADERS) as response:
                    async for _ in response.aiter_bytes():
                        begun.set()

            task = asyncio.create_task(read())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await client.post(URL, content=question("Other?"), headers=HEADERS)).read()

    assert CHUNKS == asyncio.run(run())
    assert (large == 0) is all(given is None or (given and isinstance(given, bytes)) for given in on_loop)
    turns = 3 if large == 0 else 0  # two begin, and one comes to its end
    assert (turns, True) == (sum(given is None for given in beside), None in on_loop)
    cut, whole = recorded(log)
    assert ["request", "response", "reasoning", "turn_ended"] == cut[-4:]
    assert "assistant" in whole


def test_a_task_that_is_cancelled_while_its_large_request_is_worked_on_asks_nobody(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the work, and the next request goes as any other."""
    provider, began, go_on, step = Provider(streams()), threading.Event(), threading.Event(), transports._stepped

    def stepped(go: Any, given: Any) -> Any:
        began.set()
        go_on.wait(10)
        return step(go, given)

    monkeypatch.setattr(transports, "_stepped", stepped)
    monkeypatch.setattr(transports, "LARGE", 0)

    async def run() -> bytes:
        async with thinkback.async_http_client(log, transport=provider) as client:
            task = asyncio.create_task(client.post(URL, content=question(), headers=HEADERS))
            await asyncio.to_thread(began.wait, 10)
            task.cancel()
            asyncio.get_running_loop().call_soon(go_on.set)
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [] == provider.asked
            return (await client.post(URL, content=question("Other?"), headers=HEADERS)).read()

    assert CHUNKS == asyncio.run(run())
    assert 1 == len(provider.asked)


def test_a_log_that_cannot_be_used_costs_no_call(log: Path) -> None:
    """One warning; with ``on_log_error="raise"`` it is an error."""
    log.write_bytes(b"this is no database, and it is long enough to be sure of that" * 20)
    with thinkback.http_client(log, transport=Provider(streams())) as client:
        with pytest.warns(RuntimeWarning, match=r"chats\.db") as warned:
            assert CHUNKS == ask(client)
        assert CHUNKS == ask(client, "Other?")
        assert 1 == len(warned)
        assert not thinkback.why().recorded
    with (
        thinkback.http_client(log, transport=Provider(streams()), on_log_error="raise") as client,
        pytest.raises(StoreError),
    ):
        ask(client)


def test_a_log_that_is_lost_on_the_way_costs_no_call(log: Path) -> None:
    """Its tables go while the program runs."""
    with thinkback.http_client(log, transport=Provider(streams())) as client:
        assert CHUNKS == ask(client)
        with closing(sqlite3.connect(log)) as other:
            other.executescript("DROP TABLE sessions")
        with pytest.warns(RuntimeWarning, match="not recorded meanwhile"):
            assert CHUNKS == ask(client, "Other?")


def test_a_conversation_has_the_name_that_the_program_gives(log: Path) -> None:
    """What begins inside goes into that session, a second beginning on a branch; ``why`` is about what is inside."""
    with thinkback.http_client(log, transport=Provider(streams())) as client:
        ask(client)
        with thinkback.conversation("bug-hunt"):
            with pytest.raises(NotFoundError):
                thinkback.why()
            ask(client, "First?")
            ask(client, "First?", "42.", "And?")
            ask(client, "Second?")
            inside = thinkback.why().session
    with thinkback.open(log) as store:
        names = {info.name: info for info in store.sessions()}
        assert inside == names["bug-hunt"].id
        assert 2 == len(names)
        assert 2 == len(store.log.refs.list(inside))


def test_route_sends_elsewhere_without_the_programs_key(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Translated there and back; the other place's key is that of the environment."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-other-place")
    provider = Provider(says(200, json.dumps(MESSAGE).encode()))
    with thinkback.http_client(log, transport=provider, route="anthropic/claude-opus-5-5") as client:
        said = json.loads(ask(client, stream=False, url=f"{URL}?key={KEY}"))
    (sent,) = provider.asked
    assert "Hello." == said["choices"][0]["message"]["content"]
    assert ("https://api.anthropic.com/v1/messages", "sk-of-the-other-place") == (
        str(sent.url),
        sent.headers["x-api-key"],
    )
    assert KEY not in str(sent.headers.raw) + str(sent.content)
    assert b"sk-of-the-other-place" not in log.read_bytes()


def test_wrong_use_is_said(log: Path, tmp_path: Path) -> None:
    """Each with what to do instead."""
    provider = Provider(streams())
    wrong: Any = object()
    with pytest.raises(TypeError, match="httpx2"):
        thinkback.Transport(log, wrong)
    for wrong in ({"endpoint": 3}, {"route": ("anthropic", "claude-opus-5-5")}, {"settings": "high"}):
        with pytest.raises(TypeError, match=f"^{next(iter(wrong))} is "):
            thinkback.Transport(log, **wrong)
    older = SimpleNamespace(method="POST", url=URL, headers={}, stream=None)
    with thinkback.Transport(log, Provider(streams())) as made, pytest.raises(TypeError, match="requests of httpx2"):
        made.handle_request(older)  # type: ignore[arg-type]
    with pytest.raises(ThinkbackError, match="name of a session"), thinkback.conversation(3):  # type: ignore[arg-type]
        pass
    with pytest.raises(TypeError, match="recorded twice"):
        thinkback.Transport(log, thinkback.Transport(log, provider))
    other: Any = httpx2.AsyncHTTPTransport()
    with pytest.raises(TypeError, match="AsyncTransport"):
        thinkback.Transport(log, other)
    with pytest.raises(TypeError, match="verify: a client with transport= ignores it"):
        thinkback.http_client(log, transport=provider, verify=False)
    thinkback.http_client(log, verify=False, proxy="http://127.0.0.1:9").close()
    with pytest.raises(SettingError, match="route"):
        thinkback.http_client(log, route="claude-opus-5-5")
    with pytest.raises(NotFoundError):
        thinkback.http_client(log, endpoint="nobody")
    store = thinkback.open(log)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        thinkback.http_client(store)
    transport = thinkback.Transport(log, provider)
    transport.close()
    with pytest.raises(StoreError, match="closed"), httpx2.Client(transport=transport) as client:
        ask(client)
    with thinkback.http_client(log, transport=provider) as client:
        ask(client)
        with pytest.raises(SettingError, match="durability"):
            thinkback.http_client(log, durability="normal")
    odd: Any = "no"
    with pytest.raises(SettingError, match="durability is 'no'"):
        thinkback.http_client(log, durability=odd)
    with pytest.raises(SettingError, match="on_log_error is 'no'"):
        thinkback.http_client(log, on_log_error=odd)


def test_of_two_durabilities_of_one_log_the_second_to_come_records_nothing(log: Path) -> None:
    """Where neither had opened it when they were made, the first to ask has it, and the other one says so."""
    provider = Provider(*[streams()] * 3)
    with (
        thinkback.http_client(log, transport=provider) as client,
        thinkback.http_client(log, transport=provider, durability="normal") as other,
        thinkback.http_client(log, transport=provider, durability="normal", on_log_error="raise") as strict,
    ):
        ask(client)
        with pytest.warns(RuntimeWarning, match="durability='full' already"):
            ask(other)
        with pytest.raises(StoreError, match="durability='full' already"):
            ask(strict)
        ask(client, "And again?")
    assert 2 == len(recorded(log))


def test_a_store_of_the_program_is_shared_and_left_open(log: Path) -> None:
    """What a program has open is used as it is."""
    with thinkback.open(log) as store:
        with thinkback.http_client(store, transport=Provider(streams())) as client:
            ask(client)
        assert 1 == len(store.sessions())


KILLED = """
import os, sys, threading
sys.path[:0] = [{root!r}]
import httpx2, thinkback
from tests.adapters.transport.provider import HEADERS, URL, Provider, question, streams
from tests.proxy.playbook import ANSWER
client = thinkback.http_client({log!r}, transport=Provider(streams()))
client.post(URL, content=question(), headers=HEADERS)
child = os.fork()
if child == 0:
    client.post(URL, content=question("Child?"), headers=HEADERS)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
with client.stream("POST", URL, content=question("Stream?"), headers=HEADERS) as response:
    read = b""
    for piece in response.iter_bytes():
        read += piece
        if b"[DONE]" in read:
            print("whole", flush=True)
            threading.Event().wait()
"""


def test_a_forked_process_records_for_itself_and_a_kill_takes_nothing_that_was_whole(log: Path) -> None:
    """The last event reaches the program behind the commit: what it had whole is there after kill -9."""
    root = str(Path(__file__).parents[3])
    script = KILLED.format(root=root, log=str(log))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=root)
    assert process.stdout is not None
    with process.stdout:
        assert b"whole\n" == process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert [1, 1, 1] == [kinds.count("assistant") for kinds in recorded(log)]


def test_a_signature_that_the_provider_does_not_give_is_no_obstacle(log: Path, referee: Referee) -> None:
    """Programs drop reasoning without one; DeepSeek's Messages API gives none, and demands the reasoning."""
    base = referee.base_url("deepseek-anthropic").removesuffix("/v1")
    with thinkback.http_client(log, endpoint="deepseek-anthropic") as http:
        client = anthropic.Anthropic(base_url=base, api_key=KEY, http_client=http)
        ask: Any = client.messages.create
        message = ask(model="deepseek-v4-pro", max_tokens=4000, messages=[{"role": "user", "content": "Hello."}])
        thoughts = [block.signature for block in message.content if block.type == "thinking"]
    assert [True] == [bool(signature) for signature in thoughts]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_event_loops_in_turn_have_connections_of_their_own(log: Path, referee: Referee) -> None:
    """A program that runs one after the other has one client; what it kept open for the first is of no use then."""

    def run() -> None:
        client = thinkback.async_http_client(log, endpoint="deepseek")
        place = referee.base_url("deepseek")
        sdk = openai.AsyncOpenAI(base_url=place, api_key=KEY, http_client=client, max_retries=0)

        async def answer() -> str | None:
            asked: Any = [{"role": "user", "content": "And?"}]
            said = await sdk.chat.completions.create(model="deepseek-v4-pro", messages=asked)
            return said.choices[0].message.content

        assert all(asyncio.run(answer()) for _ in range(3))
        asyncio.run(client.aclose())

    run()
    gc.collect()  # sockets of loops that are over warn here, not in another test
    assert 3 == len(recorded(log))
