"""A response without the readable reasoning that nobody asked for, in the shapes that providers give it then."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.wire.front import Hiding
from thinkback.wire.registry import front

NAMES = ("anthropic", "openai-responses", "gemini")


def hiding(name: str) -> Hiding:
    """What takes it out in a dialect."""
    made = front(name).hiding
    assert made is not None
    return made()


def stream(*payloads: Any, named: bool = True) -> list[bytes]:
    """Events as a provider writes them."""
    return [
        b"%bdata: %b\n\n" % (f"event: {each['type']}\n".encode() if named else b"", json.dumps(each).encode())
        for each in payloads
    ]


SIGNED = {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}}
MESSAGES = stream(
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
    SIGNED,
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": '"type":"thinking_delta"'}},
)
ITEM = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "e"}
CALL = {"type": "function_call", "arguments": '{"summary": 1}'}
RESPONSES = stream(
    {"type": "response.created", "sequence_number": 0, "response": {"reasoning": {"summary": "detailed"}}},
    {"type": "response.reasoning_summary_part.added", "sequence_number": 1},
    {"type": "response.reasoning_summary_text.delta", "sequence_number": 2, "delta": "Hm."},
    {"type": "response.output_item.done", "sequence_number": 3, "item": ITEM},
    {"type": "response.output_item.done", "sequence_number": 4, "item": CALL},
    {"type": "response.completed", "sequence_number": 5, "response": {"output": [ITEM], "reasoning": {}}},
)


def thought(*parts: Any, **more: Any) -> dict[str, Any]:
    """A chunk of Gemini's."""
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **more}], "usageMetadata": {"a": 1}}


THOUGHT, SAID = {"text": "Hm.", "thought": True}, {"text": "So.", "thoughtSignature": "s"}
GEMINI = stream(
    thought(THOUGHT), thought(THOUGHT, SAID), thought(THOUGHT, finishReason="STOP"), thought(SAID), named=False
)


def test_thinking_of_claude_is_empty_and_signed() -> None:
    """What is added to a text is gone; the rest, an answer that looks like it included, is there byte for byte."""
    assert [MESSAGES[0], b"", *MESSAGES[2:]] == [hiding("anthropic").events(event) for event in MESSAGES]
    document = b'{"content": [{"thinking":"Hm.", "type":"thinking","signature":"s"},{"type":"text","text":"thinking"}]}'
    assert document.replace(b"Hm.", b"") == hiding("anthropic").document(document)
    assert b"{}" == hiding("anthropic").document(b"{}") == hiding("anthropic").events(b"{}")


def test_items_of_the_responses_api_have_no_summary() -> None:
    """Nor has the parameter that the response repeats; what is left is numbered one after another."""
    found = [json.loads(line[6:]) for line in hiding("openai-responses").events(b"".join(RESPONSES)).splitlines()[1::3]]
    assert [0, 1, 2, 3] == [event["sequence_number"] for event in found]
    assert ({"summary": None}, {**ITEM, "summary": []}) == (found[0]["response"]["reasoning"], found[1]["item"])
    assert (CALL, [{**ITEM, "summary": []}], {}) == (found[2]["item"], *found[3]["response"].values())
    other = {"type": "message", "summary": 1}
    whole = json.dumps({"output": [ITEM, CALL, other]}).encode()
    assert {"output": [{**ITEM, "summary": []}, CALL, other]} == json.loads(hiding("openai-responses").document(whole))
    assert b"{}" == hiding("openai-responses").document(b"{}")


def test_thoughts_of_gemini_are_gone() -> None:
    """With the events that bring nothing else."""
    left = [hiding("gemini").events(event) for event in GEMINI]
    assert b"" == left[0]
    assert [thought(SAID), {"role": "model"}, thought(SAID)] == [
        found if at != 1 else found["candidates"][0]["content"]
        for at, found in enumerate(json.loads(event[6:]) for event in left[1:])
    ]
    assert GEMINI[3] == left[3]
    assert thought(SAID) == json.loads(hiding("gemini").document(json.dumps(thought(THOUGHT, SAID)).encode()))
    mixed = {"candidates": [{"index": 0}, thought(SAID)["candidates"][0], thought(THOUGHT)["candidates"][0]]}
    assert (
        mixed["candidates"][:2] == json.loads(hiding("gemini").document(json.dumps(mixed).encode()))["candidates"][:2]
    )
    comment = b': "thought": true\n\n'
    assert comment == hiding("gemini").events(comment)


@pytest.mark.covers(True)
@pytest.mark.parametrize("name", NAMES)
@given(st.text(st.sampled_from('{}[]":,tru \n'), max_size=40), st.integers(0, 60))
def test_what_is_no_json_stays(name: str, noise: str, at: int) -> None:
    """Whatever an upstream sends."""
    words = b'data: {"type":"thinking_delta","thought":true,"summary":[{"type": "reasoning"}]}\n\n'
    broken = words[:at] + noise.encode() + words[at:]
    hiding(name).events(broken)
    hiding(name).document(broken)
    assert b"x" == hiding(name).document(b"x")
