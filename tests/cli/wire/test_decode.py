"""``decode``: recorded response bodies to neutral blocks, beside what an independent reading says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command
from tests.cli.conftest import ENCRYPTED, SIGNATURE
from tests.exchanges import Exchange, exchanges
from tests.wire.event_stream import event
from thinkback.cli.wire.decode import decode_body
from thinkback.cli.wire.decoded import normalised
from thinkback.model.commits import Usage

CHAT = "openai-chat"
BODY = {
    "id": "c1",
    "model": "served",
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "Let me look.",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "A thought.", "signature": SIGNATURE},
                    {"type": "reasoning.encrypted", "data": ENCRYPTED, "index": 1},
                ],
                "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "find", "arguments": '{"n": 1}'}}],
            },
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14},
}


def hashes(values: list[str]) -> list[str]:
    """The first digits of the hash of each value, as the corpus has them."""
    return [hashlib.sha256(value.encode()).hexdigest()[:16] for value in values]


def compare(decoded: dict[str, Any], expect: dict[str, Any]) -> None:
    """Assert that every field the corpus knows is the same in ``decoded``."""
    calls = [{key: call[key] for key in ("id", "name", "arguments")} for call in decoded["tool_calls"]]
    raw = [call.get("arguments_raw", json.dumps(call["arguments"])) for call in expect["tool_calls"]]
    known = ("type", "code", "message")

    assert expect["reasoning_text"] == decoded["reasoning_text"]
    assert expect["answer_text"] == decoded["answer_text"]
    assert [{key: call[key] for key in ("id", "name", "arguments")} for call in expect["tool_calls"]] == calls
    assert [json.loads(text) if text else "" for text in raw] == [
        json.loads(call["arguments_raw"]) if call["arguments_raw"] else "" for call in decoded["tool_calls"]
    ]
    assert expect["order"] == decoded["order"]
    assert expect["opaque_sha256"] == {name: hashes(decoded[name]) for name in ("signatures", "encrypted")}
    assert expect["usage"] == {key: decoded["usage"][key] for key in ("input", "output", "reasoning")}
    assert expect["finish"] == decoded["finish"]
    assert expect["model"] == decoded["model"]
    if expect.get("error"):
        assert {key: expect["error"][key] for key in known} == {key: decoded["error"][key] for key in known}
        assert not decoded["complete"]
    else:
        assert decoded["error"] is None
        assert decoded["complete"] is (expect["finish"] != "UNEXPECTED_TOOL_CALL")


@pytest.mark.corpus
def test_recorded_exchanges_decode_as_an_independent_reading_says(
    recorded_exchange: Exchange, ran: Callable[[Exchange], None]
) -> None:
    """Every recorded response of a known dialect decodes to the reasoning, text, calls and usage that are in it."""
    ran(recorded_exchange)
    if recorded_exchange.expect.get("ambiguous"):
        pytest.skip(recorded_exchange.expect["ambiguous"])
    status = recorded_exchange.data["response"]["status"]

    decoded = decode_body(recorded_exchange.data["dialect"], recorded_exchange.body, status if status >= 400 else None)

    compare(decoded, recorded_exchange.expect)
    json.dumps(decoded, allow_nan=False)


@pytest.mark.corpus
def test_the_command_prints_what_the_function_returns(command: Command) -> None:
    """A few recorded bodies of each framing come out of the real command as out of the function."""
    chosen: dict[tuple[object, ...], Exchange] = {}
    for exchange in exchanges():
        response, dialect = exchange.data["response"], exchange.data["dialect"]
        framing = next(name for name in ("sse", "ndjson", "frames", "body") if name in response)
        chosen.setdefault((dialect, framing, response["status"] >= 400), exchange)
    for (dialect, *_), exchange in chosen.items():
        (command.place / "body").write_bytes(exchange.body)

        done = command("decode", str(dialect), str(command.place / "body"), "--json")

        assert 0 == done.code
        assert decode_body(str(dialect), exchange.body) == done.json
        assert 0 == command("decode", str(dialect), "-", stdin=exchange.body).code


def test_a_body_becomes_one_object() -> None:
    """Reasoning, answer, calls, opaque values and usage each have their place."""
    decoded = decode_body(CHAT, json.dumps(BODY).encode())

    assert ("A thought.", "Let me look.") == (decoded["reasoning_text"], decoded["answer_text"])
    assert ["reasoning", "text", "tool_call"] == decoded["order"]
    assert [{"id": "t1", "name": "find", "arguments": {"n": 1}, "arguments_raw": '{"n": 1}'}] == decoded["tool_calls"]
    assert ([SIGNATURE], [ENCRYPTED]) == (decoded["signatures"], decoded["encrypted"])
    assert {"input": 5, "output": 9, "reasoning": None, "cached": None, "total": 14} == decoded["usage_normalised"]
    assert ("tool_calls", "served", True, None) == tuple(
        decoded[key] for key in ("finish", "model", "complete", "error")
    )
    assert ["thinking", "thinking", "text", "tool_call"] == [block["type"] for block in decoded["blocks"]]


def test_opaque_values_are_printed_for_programs_only(command: Command) -> None:
    """The readable view tells kind and length of an opaque value; only ``--json`` has the value."""
    body = json.dumps(BODY).encode()

    shown, told = (command("decode", CHAT, "-", *more, stdin=body).out for more in ((), ("--json",)))

    assert f"signature, {len(SIGNATURE)} characters" in shown
    assert f"encrypted, {len(ENCRYPTED)} characters" in shown
    assert not any(value in shown for value in (SIGNATURE, ENCRYPTED))
    assert all(value in told for value in (SIGNATURE, ENCRYPTED))


def test_reasoning_is_dim_on_a_terminal(command: Command) -> None:
    """The readable view sets reasoning apart where a terminal allows it."""
    file = command.place / "body"
    file.write_text(json.dumps(BODY))

    assert "\x1b[2;3mA thought.\x1b[0m" in command.on_terminal("decode", CHAT, str(file)).out
    assert "\x1b" not in command.on_terminal("decode", CHAT, str(file), NO_COLOR="1").out


def test_an_error_body_decodes_to_its_error(command: Command) -> None:
    """A provider's error body is decoded, with its code as it stood there; that is no failure of the command."""
    body = b'{"error": {"message": "Slow down", "type": "rate_limit", "code": 429}}'

    done = command("decode", CHAT, "-", "--json", "--status", "429", stdin=body)

    assert 0 == done.code
    assert {"status": 429, "type": "rate_limit", "code": 429, "message": "Slow down"} == done.json["error"]
    assert (None, None, False) == tuple(done.json[key] for key in ("reasoning_text", "answer_text", "complete"))
    assert "error: Slow down" in command("decode", CHAT, "-", stdin=body).out


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"Bad gateway\n", 502, "Bad gateway"),
        (b'{"object": "error", "message": "No such model", "code": 404}', None, "No such model"),
        (b'{"detail": "Not authenticated"}', 401, "Not authenticated"),
    ],
)
def test_errors_come_in_many_shapes(body: bytes, status: int | None, message: str) -> None:
    """Plain text, vLLM's flat object and FastAPI's detail are errors too."""
    assert message == decode_body(CHAT, body, status)["error"]["message"]


def test_a_body_that_breaks_off_is_not_complete() -> None:
    """What arrived is decoded, and the error says that it is not all."""
    chunk = {"choices": [{"index": 0, "delta": {"content": "Half"}}]}

    decoded = decode_body(CHAT, f"data: {json.dumps(chunk)}\n\n".encode())

    assert ("Half", False, "truncated") == (decoded["answer_text"], decoded["complete"], decoded["error"]["type"])


def test_a_binary_event_stream_is_known_by_its_prelude() -> None:
    """No content type is needed: the first bytes have a checksum of their own."""
    events = (
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Hm."}}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "Yes."}}),
        ("messageStop", {"stopReason": "end_turn"}),
        ("metadata", {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}),
    )

    decoded = decode_body("bedrock", b"".join(event(name, payload) for name, payload in events))

    assert ("Hm.", "Yes.", "end_turn") == tuple(decoded[key] for key in ("reasoning_text", "answer_text", "finish"))


def test_what_only_its_provider_understands_is_named_as_the_provider_names_it() -> None:
    """Server tools and redacted reasoning have their own place in the order; empty reasoning is no missing one."""
    content = [
        {"type": "thinking", "thinking": "", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": ENCRYPTED},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "text", "text": "So."},
    ]
    body = {"type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "content": content}

    decoded = decode_body("anthropic", json.dumps(body).encode())

    assert ["reasoning", "redacted", "server_tool_use", "text"] == decoded["order"]
    assert ("", [SIGNATURE], [ENCRYPTED]) == tuple(
        decoded[key] for key in ("reasoning_text", "signatures", "encrypted")
    )


def test_parts_of_a_summary_are_joined_without_anything_between_them() -> None:
    """The text is that of the wire; what the log keeps for people has paragraphs."""
    parts = [{"type": "summary_text", "text": text} for text in ("**One** a", "**Two** b")]
    item = {"type": "reasoning", "id": "rs_1", "summary": parts, "encrypted_content": ENCRYPTED}
    body = {"object": "response", "status": "completed", "model": "m", "output": [item], "error": None}

    assert "**One** a**Two** b" == decode_body("openai-responses", json.dumps(body).encode())["reasoning_text"]


def test_a_call_without_an_id_has_none() -> None:
    """Where a dialect may leave ids out, that is null and not an empty text; an ending that is a word is no error."""
    parts = [{"functionCall": {"name": "f", "args": {}}}]
    body = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "UNEXPECTED_TOOL_CALL"}]}

    decoded = decode_body("gemini", json.dumps(body).encode())

    assert (None, None, False) == (decoded["tool_calls"][0]["id"], decoded["error"], decoded["complete"])


@pytest.mark.parametrize(
    ("dialect", "body", "message"),
    [
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
        ("gemini", {"error": {"code": 400, "message": "Bad", "status": "INVALID_ARGUMENT"}}, "Bad"),
        ("bedrock", {"message": "Too many requests"}, "Too many requests"),
        ("ollama", {"error": "model not found"}, "model not found"),
        ("cohere", {"message": "invalid request"}, "invalid request"),
    ],
)
def test_errors_of_every_dialect_are_known_without_a_status(dialect: str, body: object, message: str) -> None:
    """A body with an error and no answer is one."""
    assert message == decode_body(dialect, json.dumps(body).encode())["error"]["message"]


def test_lines_of_json_are_read_as_such() -> None:
    """Several JSON objects, one per line, are one streamed response."""
    deltas = [{"reasoning_content": "Hm."}, {"content": "Yes"}, {"content": "."}]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})

    decoded = decode_body(CHAT, "\n".join(map(json.dumps, chunks)).encode())

    assert ("Hm.", "Yes.", "stop") == tuple(decoded[key] for key in ("reasoning_text", "answer_text", "finish"))


@pytest.mark.parametrize("arguments", ["", "not json", "17", '{"x": NaN}', '{"x": 1e999}', "[" * 100_000])
def test_arguments_that_are_no_object_stay_text(arguments: str) -> None:
    """Arguments are parsed only where that gives an object or array which JSON can hold."""
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": arguments}}
    body = {"choices": [{"finish_reason": "stop", "message": {"tool_calls": [call]}}]}

    decoded = decode_body(CHAT, json.dumps(body).encode())

    assert arguments == decoded["tool_calls"][0]["arguments"] == decoded["tool_calls"][0]["arguments_raw"]


@pytest.mark.parametrize(
    ("usage", "output", "total"),
    [
        (Usage(10, 30, 20, wire='{"total_tokens": 40}'), 30, 40),
        (Usage(10, 30, 20, wire='{"total_tokens": 60}'), 50, 60),
        (Usage(10, 30, 20), 30, 40),
        (Usage(10, 30, 40), 70, 80),
        (Usage(10, 30, 40, wire='{"total_tokens": 99}'), 70, 99),
        (Usage(10, 30), 30, 40),
        (Usage(None, 30, 40), 70, None),
        (Usage(10, 30, 20, counted=("reasoning_beside_output",)), 50, 60),
        (Usage(10, 30, cached=5, cache_write=2, counted=("cache_beside_input",)), 30, 47),
        (Usage(10, None, 40), None, None),
        (None, None, None),
    ],
)
def test_normalised_output_includes_the_reasoning(usage: Usage | None, output: int | None, total: int | None) -> None:
    """The reported total says whether reasoning is inside the output; without one, its size does."""
    found = normalised(usage)

    assert (output, total) == (found["output"], found["total"])


@pytest.mark.parametrize(
    ("dialect", "file", "said"),
    [
        ("nonsense", "body", "there is no dialect 'nonsense'"),
        (CHAT, "missing", "cannot be read"),
        (CHAT, ".", "cannot be read"),
        (CHAT, "empty", "is empty"),
        (CHAT, "-", "standard input is empty"),
    ],
)
def test_what_cannot_be_decoded_is_wrong_use(
    command: Command, monkeypatch: pytest.MonkeyPatch, dialect: str, file: str, said: str
) -> None:
    """An unknown dialect, an unreadable file and an empty input each end with exit code 2 and a clear message."""
    (command.place / "body").write_text(json.dumps(BODY))
    (command.place / "empty").write_text(" \n")
    monkeypatch.chdir(command.place)

    done = command("decode", dialect, file)

    assert (2, "") == (done.code, done.out)
    assert said in done.err


def test_a_stream_of_any_origin_needs_no_network(tmp_path: Path) -> None:
    """Decoding makes neither a log nor a configuration."""
    Command(tmp_path)("decode", CHAT, "-", stdin=json.dumps(BODY).encode())

    assert [] == list(tmp_path.iterdir())


def test_a_signature_on_the_message_and_on_its_call_is_named_once() -> None:
    """Gemini's signature on a call is a carrier; on the message it is listed unless a call has it already."""
    extra = {"google": {"thought_signature": "sig"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}
    message = {"role": "assistant", "content": None, "thought_signature": "sig", "extra_content": extra}
    for calls, kinds in (([call], ["thought_signature"]), ([], ["thought_signature"])):
        body = {"choices": [{"message": {**message, "tool_calls": calls}, "finish_reason": "stop"}]}
        decoded = decode_body(CHAT, json.dumps(body).encode())

        assert ["sig"] == decoded["signatures"]
        assert kinds == [c["kind"] for block in decoded["blocks"] for c in block.get("carriers", [])]


def test_placeholders_are_no_reasoning() -> None:
    """What stands behind one is, in either dialect of OpenAI's."""
    for thought in ("", "I weigh it."):
        said = f"Thinking... {thought}"
        chat = {"choices": [{"message": {"content": "Hi", "reasoning_content": said}, "finish_reason": "stop"}]}
        item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": said}]}
        for dialect, body in ((CHAT, chat), ("openai-responses", {"output": [item], "status": "completed"})):
            assert thought == (decode_body(dialect, json.dumps(body).encode())["reasoning_text"] or "")
