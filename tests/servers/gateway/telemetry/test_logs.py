"""Lines of the log: one for each event, for programs or for people, with nothing in them that was said."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.gateway.harness.running import Running, running
from tests.servers.gateway.harness.standin import KEY
from thinkback.servers.gateway.config.schema import Logs
from thinkback.servers.gateway.telemetry import logs as module
from thinkback.servers.gateway.telemetry.logs import Bridge, Log, Value

MESSAGES = [{"role": "user", "content": "Hello."}]


class Lines:
    """A log and what it wrote."""

    def __init__(self, logs: Logs) -> None:
        self.written: list[bytes] = []
        self.log = Log(logs, self.written.append, lambda: 1_790_000_000.0625)


def test_a_line_is_json_for_programs() -> None:
    """One object, with the time first; what has no value is left out."""
    lines = Lines(Logs(format="json"))
    lines.log.line("info", "request", {"id": "r", "status": 200, "stream": False, "failure": "", "attempts": None})

    assert {
        "time": "2026-09-21T14:13:20.062Z",
        "level": "info",
        "event": "request",
        "id": "r",
        "status": 200,
        "stream": False,
    } == json.loads(lines.written[0])


def test_a_line_is_words_for_people() -> None:
    """Names and values; what is more than a word is quoted."""
    lines = Lines(Logs(format="text"))
    lines.log.line("warning", "request", {"model": "a b", "seconds": 0.1234567, "ok": True})

    assert b'2026-09-21T14:13:20.062Z warning request model="a b" seconds=0.123457 ok=true\n' == lines.written[0]


def test_a_terminal_gets_what_a_person_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asked whom, what came of it, what it took, what went back; other places get every name."""
    monkeypatch.setattr(os, "isatty", lambda descriptor: descriptor == 2)
    lines = Lines(Logs())
    asked: dict[str, Value] = {
        "key": "laptop",
        "front": "openai-chat",
        "page": "respond",
        "method": "POST",
        "status": 200,
    }
    took: dict[str, Value] = {
        "seconds": 1.2345,
        "input_tokens": 1203,
        "cached_tokens": 0,
        "output_tokens": 88,
        "store_seconds": 0.01,
    }
    told: dict[str, Value] = {
        "upstream": "deepseek/deepseek-v4-pro",
        "reattach": "partial; missing=2",
        "session": "7e8c",
    }
    lines.log.line("info", "request", {**asked, **took, **told})
    lines.log.line("error", "request", {**asked, "status": 503, "seconds": 0.001, "failure": "upstream", "key": ""})
    lines.log.line("info", "request", {"page": "models", "method": "GET", "status": 200, "seconds": 0.5})
    lines.log.line("warning", "viewer_died", {"code": 2})

    assert [
        "14:13:20Z  200  laptop  deepseek/deepseek-v4-pro  1.23 s  1203 in, 0 cached, 88 out"
        '  reasoning "partial; missing=2"  session 7e8c',
        "14:13:20Z  503  POST respond  0.00 s  failed: upstream",
        "14:13:20Z  200  GET models  0.50 s",
        "14:13:20Z warning viewer_died code=2",
    ] == b"".join(lines.written).decode().splitlines()
    monkeypatch.undo()
    lines.log.configure(Logs(format="text"))
    lines.log.line("info", "reloaded", {})
    assert b"2026-09-21T14:13:20.062Z info reloaded\n" == lines.written[-1]


def test_what_is_not_weighty_is_not_written() -> None:
    """``level`` is the least."""
    lines = Lines(Logs(level="warning"))
    lines.log.line("info", "request", {})
    lines.log.configure(Logs(level="debug"))
    lines.log.line("debug", "request", {})

    assert 1 == len(lines.written)
    assert lines.log.wants("debug")


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    """A pipe that nobody reads any more."""

    def broken(line: bytes) -> None:
        raise BrokenPipeError

    Log(Logs(), broken).line("error", "failed", {})


@given(st.text(max_size=500), st.sampled_from(["json", "text"]))
def test_no_text_begins_a_line_of_its_own(text: str, format: str) -> None:
    """Whatever a client sends, it is one line, of bounded length."""
    lines = Lines(Logs(format="json" if format == "json" else "text"))
    lines.log.line("info", "request", {"model": text})

    assert 1 == lines.written[0].count(b"\n")
    assert len(lines.written[0]) < 6 * module.LONGEST + 300


def test_what_libraries_log_has_no_values_in_it() -> None:
    """Their own words, and the kind of an exception."""
    lines = Lines(Logs(format="json"))
    try:
        raise ValueError("sk-secret")
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "failed %s", ("sk-secret",), (ValueError, error, None))
    Bridge(lines.log).emit(record)

    assert b"sk-secret" not in lines.written[0]
    assert "ValueError" == json.loads(lines.written[0])["error"]


@pytest.fixture
def house() -> Iterator[Running]:
    """A gateway that logs all it can."""
    with running(logs={"level": "debug", "format": "json"}) as made:
        yield made


def test_a_request_is_one_line_without_content_keys_or_headers(
    house: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ids, key id, upstream, status, durations, tokens; nothing else."""
    house.ask(
        "/v1/chat/completions?key=tb-in-the-address",
        {"do": "echo", "messages": "what was said"},
        headers={"x-request-id": "abc", "x-own": "a header"},
    )
    house.ask("/v1/chat/completions", {}, key="tb-wrong-secret")
    house.ask("/v1/chat/completions", {"do": "break"})
    told = capfd.readouterr().err
    first = next(row for row in map(json.loads, told.splitlines()) if row.get("id") == "abc")

    assert {
        "id": "abc",
        "key": "key-1",
        "status": 200,
        "upstream": "deepseek/deepseek-v4-pro",
        "reasoning_tokens": 7,
        "reattach": "not-needed",
    }.items() <= first.items()
    assert first["seconds"] > first["body_seconds"] > 0
    assert [] == [
        secret
        for secret in ("what was said", KEY, "tb-in-the-address", "tb-wrong-secret", "a header", "sk-secret")
        if secret in told
    ]
    assert '"error":"KeyError"' in told


def test_what_is_wrong_with_an_upstream_is_for_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The log says which key is missing and which host does not answer; the client reads no address.

    Without keys of its own the gateway is one person's, who is told the variable.
    """
    monkeypatch.delenv("KEY_OF_THE_HOUSE", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    house = {"base_url": "http://127.0.0.1:1/v1", "key_env": "KEY_OF_THE_HOUSE"}
    with running(
        "thinkback.servers.gateway.running.wiring:open_behind",
        server={"no_auth": True},
        store={"path": str(tmp_path)},
        upstreams={"house": house, "far": {"base_url": "http://127.0.0.1:1/v1"}},
    ) as gateway:
        answers = [
            gateway.ask("/v1/chat/completions", {"model": f"{name}/m", "messages": MESSAGES}, key=None)
            for name in ("house", "far")
        ]

    assert [400, 502] == [answer.status for answer in answers]  # no client repeats what a person must mend first
    assert [True, False] == [b"KEY_OF_THE_HOUSE" in answer.body for answer in answers]
    assert [] == [answer for answer in answers if b"127.0.0.1" in answer.body]
    logged = capfd.readouterr().err
    assert 'reason="there is no key KEY_OF_THE_HOUSE"' in logged
    assert "at http://127.0.0.1:1: no connection to 127.0.0.1" in logged


@pytest.mark.parametrize("format", ["json", "text"])
def test_half_a_character_is_written_as_its_number(format: str) -> None:
    """A client may name its model with one; nothing that is said stops the log."""
    lines = Lines(msgspec.convert({"format": format}, Logs))
    lines.log.line("info", "request", {"model": "a\ud800"})

    assert b"a\\\\ud800" in lines.written[0]


@pytest.mark.parametrize("form", ["json", "text", "short"])
@given(name=st.text(st.characters(codec=None, categories=("Cc", "Cf", "Cs", "Zl", "Zp", "Lu", "Co")), max_size=20))
def test_nothing_that_steers_a_terminal_reaches_a_line(form: str, name: str) -> None:
    """Controls, also of eight bits, letters that turn a line round, separators of lines, halves of characters."""
    lines = Lines(Logs(format=form))  # type: ignore[arg-type]
    fields: dict[str, Value] = {"id": "r", "status": 200, "seconds": 0.1, "method": "POST", "page": "respond"}
    lines.log.line("info", "request", {**fields, "model": f"\x9b\u202e\u2028{name}"})
    (line,) = lines.written
    text = line.decode()

    assert text.removesuffix("\n").isprintable()
    assert "202e" in text
