"""Replay of recorded conversations: our next request beside the one the provider accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.exchanges import DIRECTORIES, cases
from thinkback.cli.dialect_endpoints import of_dialect, sibling
from thinkback.cli.wire.carried import COUNTED, carry
from thinkback.cli.wire.replay import replay_case, replay_file
from thinkback.errors import NotFoundError, WireError
from thinkback.rules import load_rulebook
from thinkback.wire.registry import PACKAGES, dialect

CASES = cases()
# Recorded clients of these lose or reshape reasoning so often that the aim is out of reach.
_OVER = {"cohere", "bedrock", "gemini", "mistral", "openai-chat", "openai-responses", "think-tags"}
# The recording does not look for tags here.
_NO_TAGS = {"bedrock", "openai-responses"}


def replayed(case: dict[str, Any]) -> dict[str, Any]:
    """The comparison under the package's own rules."""
    return replay_case(case, load_rulebook({}))


@pytest.mark.corpus
@pytest.mark.parametrize("case", [case for _, case in CASES], ids=lambda case: case["case"][:60])
def test_every_difference_from_an_accepted_request_is_stated_by_a_rule_row(case: dict[str, Any]) -> None:
    """What we would send differs from what was accepted only where a rule row says so and why."""
    rows = replayed(case)["exchanges"]

    assert [] == [d for row in rows for d in row["differences"] if d["explained_by"] is None]
    for row in rows:
        if row["accepted"] and not row["differences"]:
            assert row["recorded"]["opaque_sha256"] == row["compiled"]["opaque_sha256"]


@pytest.mark.corpus
@pytest.mark.parametrize("case", [case for _, case in CASES], ids=lambda case: case["case"][:60])
def test_the_carry_of_a_recorded_request_is_counted_as_the_corpus_counts_it(case: dict[str, Any]) -> None:
    """Our count of what a request carries equals the corpus' own."""
    for row in replayed(case)["exchanges"]:
        theirs = case["exchanges"][row["exchange"]].get("request_replay") or {}
        counted = [key for key in COUNTED if key != "think_tags" or row["dialect"] not in _NO_TAGS]

        assert {key: theirs[key] for key in counted if key in theirs} == {
            key: row["recorded"][key] for key in counted if key in row["recorded"]
        }


@pytest.mark.corpus
@pytest.mark.skipif(not CASES, reason="THINKBACK_CORPUS is not set")
@pytest.mark.parametrize(
    "directory",
    [
        pytest.param(
            name,
            marks=pytest.mark.xfail(strict=True, reason="recorded clients that lose reasoning make more of them differ")
            if name in _OVER
            else (),
        )
        for name in DIRECTORIES
    ],
)
def test_at_most_one_conversation_in_ten_differs_at_all(directory: str) -> None:
    """The aim of 10 % of the conversations with any difference, stated ones included."""
    found = [replayed(case) for file, case in CASES if Path(file).parent.name == directory]
    conversations = [replay for replay in found if replay["conversation"]]
    differing = [replay for replay in conversations if replay["differs"]]
    print(f"{directory}: {len(differing)} of {len(conversations)} conversations differ")

    assert len(differing) <= len(conversations) / 10


@pytest.mark.parametrize(
    ("provider", "dialect", "endpoint"),
    [
        ("openai", "openai-chat", "openai-chat"),
        ("openai", "openai-responses", "openai"),
        ("google-ai-studio", "gemini", "gemini"),
        ("google-ai-studio", "gemini-interactions", "gemini-interactions"),
        ("google-ai-studio", "openai-chat", "gemini-openai"),
        ("google-vertex", "gemini", "vertex"),
        ("aws-bedrock", "bedrock", "bedrock"),
        ("aws-bedrock", "anthropic", "bedrock-claude"),
        ("ollama", "openai-chat", "ollama"),
        ("ollama", "ollama", "ollama-native"),
        ("azure", "openai-chat", "azure-openai-chat"),
        ("azure", "openai-responses", "azure-openai"),
        ("xai", "openai-chat", "xai-chat"),
        ("deepseek", "openai-responses", "deepseek-responses"),
        ("deepseek", "anthropic", "deepseek-anthropic"),
        ("openrouter", "openai-responses", "openrouter-responses"),
        ("bedrock-mantle", "openai-responses", "bedrock-mantle-responses"),
        ("github-copilot", "openai-responses", "copilot"),
        ("chatgpt-codex", "openai-responses", "codex"),
        ("lmstudio", "openai-responses", "open-responses"),
        ("nobody", "openai-chat", "unknown"),
        ("nobody", "gemini", "gemini"),
    ],
)
def test_an_endpoint_is_found_by_provider_and_dialect(provider: str, dialect: str, endpoint: str) -> None:
    """A provider's name means the endpoint of it that speaks the dialect; an unknown one the maker of the dialect."""
    assert endpoint == of_dialect(load_rulebook({}), provider, dialect).id


def test_every_dialect_has_a_maker() -> None:
    """The endpoint that stands for a dialect speaks it."""
    book = load_rulebook({})

    assert list(PACKAGES) == [book.endpoint(dialect(name).maker).dialect for name in PACKAGES]
    assert None is sibling(book, "cohere", "gemini")


def test_a_placeholder_is_no_reasoning() -> None:
    """A field of white space does not count as carried reasoning."""
    messages = [{"role": "assistant", "content": "", "reasoning_content": " "}]

    assert {"opaque_sha256": []} == carry({"messages": messages})


def test_opaque_values_are_listed_by_hash_in_order() -> None:
    """Signatures and encrypted data appear as sha256 prefixes, never themselves."""
    entries = [{"type": "reasoning.text", "signature": "a"}, {"type": "reasoning.encrypted", "data": "b"}]
    carried = carry({"messages": [{"role": "assistant", "reasoning_details": entries}]})

    assert ["ca978112ca1bbdca", "3e23e8160039594a"] == carried["opaque_sha256"]


def test_what_tools_and_people_say_is_not_counted() -> None:
    """Whatever stands in arguments, results and messages of people was not made to be given back."""
    looks = {"signature": "s", "type": "thinking"}
    call = {"type": "tool_use", "id": "t", "name": "f", "input": looks}
    messages = [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "content": [looks]}, looks]},
    ]

    assert {"tool_calls": 1, "opaque_sha256": []} == carry({"messages": messages})


def test_a_signature_of_bytes_is_the_same_in_either_alphabet() -> None:
    """Gemini's SDKs write base64 in two alphabets; and its documented stand-ins are no values of their own."""

    def carried(value: str) -> list[str]:
        part = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": value}
        found: list[str] = carry({"contents": [{"role": "model", "parts": [part]}]})["opaque_sha256"]
        return found

    assert carried("a+/b") == carried("a-_b") != carried("a++b")
    assert carried("\ud83d") != carried("\ude00")
    assert ["stand-in"] == carried("skip_thought_signature_validator")
    assert ["stand-in"] == carried("Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv")


@pytest.mark.parametrize(("text", "error"), [("{", WireError), ("[]", WireError), ('{"exchanges": 1}', WireError)])
def test_a_file_that_is_no_case_is_refused(tmp_path: Path, text: str, error: type[Exception]) -> None:
    """A file that is not a recorded case gives an error that says so."""
    file = tmp_path / "case.json"
    file.write_text(text)

    with pytest.raises(error):
        replay_file(str(file))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path that does not exist is named in the error."""
    with pytest.raises(NotFoundError, match="cannot read"):
        replay_file(str(tmp_path / "none.json"))


def exchange(dialect: str, provider: str, path: str, sent: dict[str, Any], **response: Any) -> dict[str, Any]:
    """A made exchange."""
    return {
        "dialect": dialect,
        "provider": provider,
        "request": {"path": path, "body": sent},
        "response": {"status": 200, **response},
    }


def test_a_call_that_a_client_gave_an_id_is_the_one_that_was_recorded() -> None:
    """Gemini gives no ids and names the model in the address; results find their call all the same."""
    part = {"functionCall": {"name": "f", "args": {"n": 1}}, "thoughtSignature": "a+b"}
    named = {"functionCall": {"name": "f", "args": {"n": 1}, "id": "mine"}, "thoughtSignature": "a-b"}
    said = {"role": "user", "parts": [{"text": "?"}]}
    answer = {"functionResponse": {"id": "mine", "name": "f", "response": {"result": "7"}}}
    contents = [said, {"role": "model", "parts": [named]}, {"role": "user", "parts": [answer]}]
    reply = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
    path = "/v1beta/models/gemini-3-flash:generateContent"

    found = replayed(
        {
            "exchanges": [
                exchange("gemini", "google-ai-studio", path, {"contents": [said]}, body=reply),
                exchange("gemini", "google-ai-studio", path, {"contents": contents}, body=reply),
            ]
        }
    )

    row = found["exchanges"][1]
    assert ("gemini-3-flash", 1, []) == (row["model"], row["earlier_responses"], row["differences"])
    assert row["compiled"] == row["recorded"]
    assert 1 == row["compiled"]["tool_calls"]


def test_frames_of_an_event_stream_are_read_again() -> None:
    """A recording that has decoded a binary stream is compared like any other."""
    block = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig"}}}
    payloads = [
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Hm."}}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "sig"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "Yes."}}),
        ("messageStop", {"stopReason": "end_turn"}),
    ]
    frames = [{"type": name, "message_type": "event", "payload": payload} for name, payload in payloads]
    said = {"role": "user", "content": [{"text": "?"}]}
    thinks = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
    limit = {"inferenceConfig": {"maxTokens": 4096}}
    messages = [said, {"role": "assistant", "content": [block, {"text": "Yes."}]}, said]
    path = "/model/us.anthropic.claude-sonnet-4-5-v1%3A0/converse-stream"

    found = replayed(
        {
            "exchanges": [
                exchange("bedrock", "aws-bedrock", path, {**thinks, **limit, "messages": [said]}, frames=frames),
                exchange("bedrock", "aws-bedrock", path, {**thinks, **limit, "messages": messages}, frames=frames),
            ]
        }
    )

    row = found["exchanges"][1]
    assert ("us.anthropic.claude-sonnet-4-5-v1:0", 1) == (row["model"], row["earlier_responses"])
    assert {"reasoning_blocks": 1, "signatures": 1} == {
        k: v for k, v in row["compiled"].items() if k != "opaque_sha256"
    }
    assert not found["differs"]


def test_what_was_refused_proves_nothing() -> None:
    """A request that the provider did not accept is shown and not compared."""
    sent = {"role": "assistant", "content": "4", "reasoning": "invented by the client"}
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}, sent]}
    refused = exchange("openai-chat", "nobody", "/chat/completions", body, body={"error": {"message": "no"}})
    refused["response"]["status"] = 400

    found = replayed({"exchanges": [refused, {"dialect": "telepathy"}]})

    assert ([False], False) == ([row["accepted"] for row in found["exchanges"]], found["differs"])


def test_a_lost_carrier_shows_as_an_unexplained_difference(tmp_path: Path) -> None:
    """A recorded request that carried more than our rule sends is reported, not passed over."""
    reply = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "4"}}]}
    sent = {"role": "assistant", "content": "4", "reasoning": "invented by the client"}
    exchanges = [
        {"dialect": "openai-chat", "provider": "nobody", "request": {"body": {"model": "m", "messages": messages}}}
        | {"response": {"status": 200, "content_type": "application/json", "body": reply}}
        for messages in ([{"role": "user", "content": "?"}], [{"role": "user", "content": "?"}, sent])
    ]
    file = tmp_path / "case.json"
    file.write_text(json.dumps({"case": "made", "exchanges": exchanges}))

    assert 1 == replay_file(str(file))["unexplained"]
