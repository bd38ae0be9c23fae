"""A program's own client in the place of HTTP: what it returns and extracts is captured like any other response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import thinkback
from thinkback.errors import NetworkError, ThinkbackError, UnsupportedContent
from thinkback.session.session import Session
from thinkback.session.store import SessionStore


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """A store in memory."""
    with thinkback.open(":memory:") as opened:
        yield opened


def answer(content: str = "42", **message: Any) -> dict[str, Any]:
    body = {"role": "assistant", "content": content, **message}
    return {"id": "x", "choices": [{"index": 0, "message": body, "finish_reason": "stop"}]}


class Plain:
    """A client that knows nothing of reasoning."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self.requests: list[dict[str, Any]] = []

    def chat(self, **request: Any) -> Any:
        self.requests.append(request)
        if isinstance(self.response, Exception):
            raise self.response
        return self.response


class Extracting(Plain):
    """A client that says itself where its reasoning is."""

    def __init__(self, response: Any, found: Any) -> None:
        super().__init__(response)
        self.found = found

    def extract_reasoning(self, response: Any) -> Any:
        assert response is self.response
        return self.found


class Dumping:
    """A response object as SDKs have them."""

    def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
        assert exclude_none
        return answer("from a model", reasoning="thought")


def ask(store: SessionStore, client: object) -> Any:
    return store.session("s", client=client, model="mine").chat("What is it?")


def test_a_client_gets_the_request_as_keywords(store: SessionStore) -> None:
    """Messages, model, whatever the settings add; nothing of HTTP."""
    client = Plain("42")
    assert "42" == ask(store, client).text
    (request,) = client.requests
    assert ([{"role": "user", "content": "What is it?"}], "mine") == (request["messages"], request["model"])


@pytest.mark.parametrize(
    ("found", "reasoning", "field"),
    [
        (None, None, None),
        ("", None, None),
        ("because", "because", "reasoning"),
        (("because", "parsed"), "because", "reasoning"),
        (("because", "reasoning_content"), "because", "reasoning_content"),
        (("because", "anthropic"), "because", "reasoning_content"),
        (("because", "think_tags"), "because", "content"),
        (("because", None), "because", "reasoning"),
        ((None, "parsed"), None, None),
    ],
)
def test_extract_reasoning(store: SessionStore, found: Any, reasoning: str | None, field: str | None) -> None:
    """Absent, text, or text and format; it is committed before the answer, and the answer stays clean."""
    reply = ask(store, Extracting(answer(), found))
    assert (reasoning, "42") == (reply.reasoning, reply.text)
    commit = reply.reasoning_commit
    assert field == (commit.value.source_field if commit else None)
    if commit:
        assert commit.seq < reply.commit_info.seq


def test_a_format_that_nobody_knows_is_refused(store: SessionStore) -> None:
    """With those that there are."""
    with pytest.raises(UnsupportedContent, match="cannot have the format 'bogus'") as refused:
        ask(store, Extracting(answer(), ("because", "bogus")))
    assert "think_tags" in refused.value.next_actions[0]


def test_reasoning_that_the_response_has_is_not_doubled(store: SessionStore) -> None:
    """A field, or tags in the text, that the client only points at."""
    for response, found in [
        (answer(reasoning="because"), "because"),
        (answer(reasoning_content="because"), ("because", "parsed")),
        (answer("<think>because</think>42"), ("because", "think_tags")),
    ]:
        reply = ask(store, Extracting(response, found))
        assert ("because", "42", 1) == (
            reply.reasoning,
            reply.text,
            [c.kind for c in reply.steps[0].commits].count("reasoning"),
        )


def test_a_response_object_is_read(store: SessionStore) -> None:
    """What an SDK returns dumps itself."""
    reply = ask(store, Plain(Dumping()))
    assert ("from a model", "thought") == (reply.text, reply.reasoning)


@pytest.mark.parametrize("response", [{"choices": []}, {"text": "42"}, 42, {"choices": ["x"]}])
def test_what_is_no_response_says_so(store: SessionStore, response: Any) -> None:
    """The turn fails with the type that came, and what was wanted."""
    with pytest.raises(NetworkError, match="not a chat completions response"):
        ask(store, Plain(response))


def test_what_the_client_raises_is_told(store: SessionStore) -> None:
    """As the failure of the request; the session goes on."""
    with pytest.raises(NetworkError, match="RuntimeError: no tokens left"):
        ask(store, Plain(RuntimeError("no tokens left")))
    with pytest.raises(ThinkbackError, match="mine"):
        ask(store, Plain(ThinkbackError("mine")))
    assert "42" == ask(store, Plain("42")).text


def test_what_has_no_chat_is_no_client(store: SessionStore) -> None:
    """Refused at once."""
    with pytest.raises(TypeError, match="a client needs a method chat"):
        store.session("s", client=object())
    assert [] == store.sessions()


def test_reasoning_is_kept_out_where_asked(store: SessionStore) -> None:
    """``reasoning=False``: on the reply, not in the log."""
    session: Session = store.session("s", client=Extracting(answer(), "because"), model="mine")
    reply = session.chat("Why?", reasoning=False)
    assert ("because", []) == (reply.reasoning, [c for c in session.log() if c.kind == "reasoning" and c.value.thought])  # type: ignore[union-attr]
