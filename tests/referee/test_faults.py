"""Scripted faults: what a client sees when a provider fails in each of the ways that providers do."""

from __future__ import annotations

import http.client
import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.referee.talk import Got, body, post, said, threads, user
from thinkback_referee import (
    Call,
    CutAfterBytes,
    Duplicate,
    ErrorInStream,
    Fault,
    HttpError,
    MalformedJson,
    NoDone,
    Referee,
    RejectCarrier,
    Stall,
    Step,
    Swapped,
)
from thinkback_referee.jsons import as_list, as_object
from thinkback_referee.persona import Rendered
from thinkback_referee.transmission import Wait, Write, transmit_stream

RENDERED = Rendered(b"{}", [b"a\n", b"b\n", b"c\n"], b"end\n")


def broken(message: str, code: str) -> bytes:
    return f"{code}: {message}\n".encode()


def sent(fault: Fault, rendered: Rendered = RENDERED) -> bytes:
    actions = transmit_stream(rendered, Step(fault=fault), 0.0, broken)
    return b"".join(action.data for action in actions if isinstance(action, Write))


def faulty(fault: Fault, *, stream: bool = True) -> Got:
    with Referee([Step(reasoning="one two", text="three four", fault=fault)]) as referee:
        return post(referee, "deepseek", body("deepseek-v4-pro", user("hi"), stream=stream))


@pytest.mark.parametrize("stream", [True, False])
def test_an_http_error_replaces_the_answer(stream: bool) -> None:
    """Status, body and headers are the script's."""
    error = {"error": {"message": "slow down"}}
    got = faulty(HttpError(429, error, {"Retry-After": "7"}), stream=stream)
    assert (429, error, "7") == (got.status, got.json, got.headers["retry-after"])
    plain = faulty(HttpError(503, "<html>", {"content-type": "text/html"}), stream=stream)
    assert (503, b"<html>", "text/html") == (plain.status, plain.data, plain.headers["content-type"])


def test_a_failed_request_teaches_the_ledger_nothing() -> None:
    """An HTTP error mints no reasoning, and its exchange has the scripted status."""
    with Referee([Step(reasoning="lost", fault=HttpError(500))]) as referee:
        post(referee, "deepseek", body("deepseek-v4-pro", user("hi")))
        assert (0, 500) == (referee.ledger.issued("lost"), referee.requests[0].status)
        assert referee.requests[0].verdict.ok


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("count", [0, 1, 100])
def test_a_cut_breaks_the_body_off(stream: bool, count: int) -> None:
    """The connection closes after so many bytes, and the client can tell that the body is not whole."""
    with pytest.raises(http.client.IncompleteRead) as caught:
        faulty(CutAfterBytes(count), stream=stream)
    assert count == len(caught.value.partial)


def test_a_cut_behind_the_last_byte_is_still_a_cut() -> None:
    """A count beyond the body sends all of it, and leaves it unfinished all the same."""
    with pytest.raises(http.client.IncompleteRead) as caught:
        faulty(CutAfterBytes(1_000_000))
    assert caught.value.partial.endswith(b"data: [DONE]\n\n")


def test_an_error_can_come_inside_a_stream() -> None:
    """After some chunks a top-level error arrives under HTTP 200, and nothing after it."""
    got = faulty(ErrorInStream("overloaded", "server_error", after=3, event="error"))
    assert (200, 4) == (got.status, len(got.events))
    error = {"message": "overloaded", "type": "server_error", "code": "server_error"}
    assert {"error": error} == json.loads(got.events[-1])
    assert b"event: error\ndata: " in got.data
    assert {"error": error} == faulty(ErrorInStream("overloaded"), stream=False).json


def test_a_chunk_can_be_broken_json() -> None:
    """One event cannot be parsed; the stream goes on behind it."""
    got = faulty(MalformedJson(after=2))
    with pytest.raises(json.JSONDecodeError):
        json.loads(got.events[2])
    assert "[DONE]" == got.events[-1]
    with pytest.raises(json.JSONDecodeError):
        json.loads(faulty(MalformedJson(), stream=False).data)


def test_a_stream_can_end_without_done() -> None:
    """The body is complete and the marker is missing."""
    got = faulty(NoDone())
    assert "stop" in got.events[-1]
    assert 200 == faulty(NoDone(), stream=False).status


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Duplicate(), b"a\nb\nb\nc\nend\n"),
        (Swapped(), b"a\nc\nb\nend\n"),
        (NoDone(), b"a\nb\nc\n"),
        (ErrorInStream("gone", "oops", after=1), b"a\noops: gone\n"),
    ],
)
def test_events_can_be_doubled_swapped_or_missing(fault: Fault, expected: bytes) -> None:
    """Faults act on whole events, whatever their framing."""
    assert expected == sent(fault)


def test_where_nothing_marks_the_end_the_last_event_is_left_out() -> None:
    """A stream whose last event is its end loses that event."""
    assert b"a\n" == sent(NoDone(), Rendered(b"{}", [b"a\n", b"b\n"]))


def test_a_persona_may_bring_its_own_malformed_event() -> None:
    """Binary events cannot be damaged by cutting their text."""
    assert b"abadb" == sent(MalformedJson(after=1), Rendered(b"{}", [b"a", b"b"], malformed=b"bad"))


@pytest.mark.parametrize("fault", [Duplicate(), Swapped()])
def test_faults_of_order_leave_a_whole_body_alone(fault: Fault) -> None:
    """What only a stream can have does nothing to a response that is not one."""
    assert "three four" == faulty(fault, stream=False).message["content"]


def test_genuine_reasoning_can_be_rejected(referee: Referee) -> None:
    """The provider's own refusal comes once, and the same request is accepted afterwards."""
    messages = [user("hi"), said("yes", reasoning_content="x"), user("on")]
    referee.push(Step(fault=RejectCarrier()))
    first, second = (post(referee, "deepseek", body("deepseek-v4-pro", *messages)) for _ in range(2))
    assert (400, "rejected as scripted", 200) == (first.status, first.headers["x-referee"], second.status)
    assert None is first.headers.get("x-referee-wording")
    assert "must be passed back" in str(first.json["error"])


def test_a_stall_of_no_length_changes_nothing() -> None:
    """After its pause a stalled stream goes on."""
    assert faulty(Stall(0.0)).events == faulty(Stall(0.0, after=4)).events
    assert 200 == faulty(Stall(0.0), stream=False).status


def test_closing_interrupts_a_stall() -> None:
    """A stall of an hour ends when the referee closes, without a proper end of the body."""
    before = threads()
    with Referee([Step(text="never", fault=Stall(3600.0, after=1))]) as referee:
        host, port = referee.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            data = json.dumps(body("deepseek-v4-pro", user("hi"), stream=True)).encode()
            lines = [
                "POST /deepseek/chat/completions HTTP/1.1",
                "Host: x",
                "Authorization: Bearer k",
                f"Content-Length: {len(data)}",
            ]
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + data)
            received = connection.recv(65536)
            while b"data: " not in received:
                received += connection.recv(65536)
            referee.close()
            rest = b"".join(iter(lambda: connection.recv(65536), b""))
    assert (False, False) == (b"[DONE]" in rest, rest.endswith(b"0\r\n\r\n"))
    assert before == threads()


def test_pace_pauses_between_events() -> None:
    """The referee's pace stands between any two events, and a step's own pace wins."""
    with Referee(pace=0.001) as referee:
        assert 200 == post(referee, "kimi", body("kimi-k3", user("hi"), stream=True)).status


def test_pauses_stand_between_the_events_and_not_at_the_ends() -> None:
    """n events have n - 1 pauses."""
    actions = transmit_stream(RENDERED, Step(pace=0.5), 0.0, broken)
    assert [Write, Wait] * 3 + [Write] == [type(action) for action in actions]
    assert [Wait(0.5)] * 3 == [action for action in actions if isinstance(action, Wait)]


def test_pieces_of_any_size_arrive_whole() -> None:
    """Writing three bytes at a time changes nothing but where reads end."""
    step = Step(reasoning="ä 思考 of it", text="ö", split_every=3)
    with Referee([step, Step(reasoning=step.reasoning, text="ö")]) as referee:
        content = body("deepseek-v4-pro", user("hi"), stream=True)
        first, second = (post(referee, "deepseek", content) for _ in range(2))
    assert [chunk["choices"] for chunk in first.chunks] == [chunk["choices"] for chunk in second.chunks]


@given(st.integers(1, 200))
def test_splitting_changes_no_byte(size: int) -> None:
    """split_every cuts the body into pieces of that size and nothing else."""
    rendered = Rendered(b"", ["data: ä 思考\n\n".encode()] * 9, b"data: [DONE]\n\n")
    bodies = []
    for split in (0, size):
        actions = transmit_stream(rendered, Step(split_every=split), 0.0, broken)
        writes = [action.data for action in actions if isinstance(action, Write)]
        bodies.append(b"".join(writes))
        assert not split or {size} >= {len(data) for data in writes[:-1]}
    assert bodies[0] == bodies[1]


def test_pieces_end_where_a_pause_stands() -> None:
    """A pause is kept in its place when the writes around it are split."""
    actions = transmit_stream(RENDERED, Step(split_every=1_000_000, fault=Stall(9.0, after=1)), 0.0, broken)
    assert [Write, Wait, Write] == [type(action) for action in actions]


def test_scripted_arguments_may_be_any_text() -> None:
    """Arguments given as text are sent verbatim, valid JSON or not."""
    with Referee([Step(tool_calls=[Call("get_weather", '{"city": "Os')])]) as referee:
        got = post(referee, "kimi", body("kimi-k3", user("hi"), stream=True))
    calls = [as_object(as_list(delta["tool_calls"])[0]) for delta in got.deltas if "tool_calls" in delta]
    assert '{"city": "Os' == "".join(str(as_object(call["function"])["arguments"]) for call in calls)
