"""Content parts of a prompt: in the target's own dialect they go as they are, else they are translated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thinkback.errors import UnsupportedContent
from thinkback.session.store import SessionStore

MARKED = {"type": "text", "text": "c", "cache_control": {"type": "ephemeral"}}
DOCUMENT = {"type": "document", "source": {"type": "file", "file_id": "f1"}, "citations": {"enabled": True}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
MODELS = {
    "anthropic": "claude-opus-4-6",
    "openai": "gpt-5.4",
    "gemini": "gemini-3.1-pro-preview",
    "openai-chat": "gpt-5.4",
}


def test_a_system_prompt_may_be_a_list_of_text_parts(store: SessionStore) -> None:
    """A paragraph each; what has no text is refused by its place."""
    session = store.session("s", endpoint="openai-chat", model=MODELS["openai-chat"], api_key="a key")
    plan = session.wire.plan("Hi", system=["Be brief.", {"type": "text", "text": "Be kind."}])
    assert "Be brief.\n\nBe kind." == json.loads(b"".join(plan.body))["messages"][0]["content"]
    with pytest.raises(UnsupportedContent, match="part 1 of system= has no text"):
        session.wire.plan("Hi", system=["Be brief.", PICTURE])


def said(store: SessionStore, endpoint: str, *parts: Any) -> Any:
    """The parts of the message that goes out."""
    session = store.session("s", endpoint=endpoint, model=MODELS[endpoint], api_key="a key")
    body = json.loads(b"".join(session.wire.plan(list(parts)).body))
    last = next(body[name] for name in ("messages", "input", "contents") if name in body)[-1]
    return last["parts"] if "parts" in last else last["content"]


@pytest.mark.parametrize(
    ("endpoint", "part"),
    [
        ("anthropic", MARKED),
        ("anthropic", DOCUMENT),
        ("openai", {"type": "input_file", "file_id": "f1"}),
        ("gemini", {"fileData": {"mimeType": "video/mp4", "fileUri": "u"}, "videoMetadata": {"fps": 1}}),
        ("openai-chat", MARKED),
        ("openai-chat", {"type": "odd", "of": 1}),
        ("gemini", {"odd": 1}),
    ],
)
def test_a_part_in_the_targets_own_dialect_goes_as_it_is(store: SessionStore, endpoint: str, part: Any) -> None:
    """Also one that is not known here."""
    assert [part] == said(store, endpoint, part)


def test_a_part_of_chat_completions_is_translated(store: SessionStore) -> None:
    """Beside parts of the dialect's own, too; what only chat completions have is left behind."""
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    picture = {"type": "image", "source": source}
    assert [MARKED, DOCUMENT, picture] == said(store, "anthropic", MARKED, DOCUMENT, PICTURE | {"x_mark": 1})
    text = {"type": "text", "text": "c"}
    inline = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    assert [{"text": "c"}, inline] == said(store, "gemini", text, PICTURE)


def test_parts_beside_each_other_of_two_dialects(store: SessionStore) -> None:
    """The message is of the target's dialect."""
    own = {"fileData": {"mimeType": "video/mp4", "fileUri": "u"}, "videoMetadata": {"fps": 1}}
    assert [own, {"text": "c"}, {"text": "d"}] == said(store, "gemini", own, MARKED, "d")


def test_a_result_is_no_part_of_a_prompt(store: SessionStore) -> None:
    """It answers a call, which ``generate(tool_results=...)`` does."""
    with pytest.raises(UnsupportedContent):
        said(store, "anthropic", {"type": "tool_result", "tool_use_id": "t", "content": "c"})
