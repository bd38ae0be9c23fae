"""What clients are told of earlier answers: known, missing for as long as they are there, or the client's own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.servers.gateway.harness.running import Reply, Running, running
from thinkback.servers.gateway.running.server import Start
from thinkback_referee import Referee

MODEL = "deepseek/deepseek-v4-pro"
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": f"/v1beta/models/{MODEL}:generateContent",
}
EXAMPLES = [("user", "Say it in one word: cold?"), ("assistant", "Brr."), ("user", "Hot?"), ("assistant", "Phew.")]
FUNCTION = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway before a host of chat completions."""
    place = tmp_path_factory.mktemp("losses")
    (place / "key").write_text("sk-any")
    (place / "key").chmod(0o600)
    with Referee() as referee:
        upstream = {"endpoint": "deepseek", "base_url": referee.base_url("deepseek"), "key_file": str(place / "key")}
        with running(
            Start().opens,
            server={"no_auth": True},
            store={"path": str(place / "store")},
            upstreams={"deepseek": upstream},
        ) as made:
            yield made


def body(front: str, said: list[tuple[str, str]]) -> dict[str, Any]:
    """What was ``said`` as a request; the texts of one speaker are a message each."""
    if front == "gemini":
        roles = {"user": "user", "assistant": "model"}
        return {"contents": [{"role": roles[who], "parts": [{"text": text}]} for who, text in said]}
    messages = [{"role": who, "content": text} for who, text in said]
    more: dict[str, Any] = {"max_tokens": 2000} if front == "anthropic" else {}
    return {"model": MODEL, "input" if front == "openai-responses" else "messages": messages, **more}


def text(front: str, reply: Reply) -> str:
    """What the model said."""
    answer = reply.json
    if front == "openai-chat":
        return str(answer["choices"][0]["message"]["content"])
    if front == "anthropic":
        parts = answer["content"]
    elif front == "gemini":
        parts = [part for part in answer["candidates"][0]["content"]["parts"] if not part.get("thought")]
    else:
        parts = [part for item in answer["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(part.get("text", "") for part in parts)


class Talk:
    """A client that keeps texts alone."""

    def __init__(self, house: Running, front: str, *said: tuple[str, str]) -> None:
        self.house, self.front, self.said = house, front, list(said)
        self.told: list[str] = []

    def ask(self, question: str) -> Talk:
        """One more question; what the gateway said of the earlier answers is ``told``."""
        self.said.append(("user", question))
        reply = self.house.ask(PATHS[self.front], body(self.front, self.said), key=None)
        assert 200 == reply.status, reply.body
        self.told.append(reply.headers["thinkback-reattach"])
        self.said.append(("assistant", text(self.front, reply)))
        return self


@pytest.mark.parametrize("front", PATHS)
def test_what_a_client_brings_itself_is_named_apart(house: Running, front: str) -> None:
    """Examples in front of the first question are no answers, in this request and in later ones."""
    talk = Talk(house, front, *EXAMPLES).ask(f"Warm, {front}?").ask("And now?").ask("And then?")

    assert ["unknown; brought=2", *["complete; brought=2"] * 2] == talk.told


@pytest.mark.parametrize("front", PATHS)
def test_a_loss_is_told_as_long_as_the_conversation_has_it(house: Running, front: str) -> None:
    """Behind an answer that is known, one that is not is missing; without it nothing is."""
    talk = Talk(house, front).ask(f"Who are you, {front}?")
    begun = list(talk.said)
    talk.said += [("user", "And I?"), ("assistant", "An answer from elsewhere.")]
    talk.ask("And they?").ask("And we?")
    assert ["not-needed", *["partial; missing=1"] * 2] == talk.told

    talk.said = begun
    assert "complete" == talk.ask("And now?").told[-1]


def test_a_loss_is_told_to_a_client_that_names_the_response_before_it(house: Running) -> None:
    """With ``previous_response_id`` the conversation is the gateway's, and so is what is missing in it."""
    talk = Talk(house, "openai-responses", *EXAMPLES[:2]).ask("Lukewarm?")
    talk.said += [("user", "Cool?"), ("assistant", "An answer from elsewhere.")]
    lost = house.ask("/v1/responses", body("openai-responses", [*talk.said, ("user", "Why?")]), key=None)
    more = {**body("openai-responses", [("user", "Really?")]), "previous_response_id": lost.json["id"]}
    later = house.ask("/v1/responses", more, key=None)

    assert ["partial; missing=1; brought=1"] * 2 == [each.headers["thinkback-reattach"] for each in (lost, later)]


def test_one_of_several_answers_stays_missing(house: Running) -> None:
    """Two conversations that were the same, of which a client keeps the end: that one was meant is known, and which is
    not. Of their beginning one is as good as the other.
    """
    one, other = (Talk(house, "openai-chat").ask("Am I one of two?").ask("Which?").ask("Sure?") for _ in "ab")
    assert one.said == other.said
    assert "complete" == one.ask("And now?").told[-1]

    other.said = other.said[2:]
    assert ["none; missing=1; brought=1", "partial; missing=1; brought=1"] == other.ask("Still?").ask("Now?").told[-2:]


def test_an_answer_with_the_id_of_a_call_is_a_models(house: Running) -> None:
    """Of another end user nothing is known: the id shows that a model gave it, and an example has none of that kind."""
    question = {"role": "user", "content": "What is the weather in Oslo?"}
    tools = [{"type": "function", "function": FUNCTION}]

    def told(messages: list[Any], user: str) -> tuple[str, Any]:
        asked = {"model": MODEL, "messages": messages, "tools": tools, "user": user}
        reply = house.ask(PATHS["openai-chat"], asked, key=None)
        assert 200 == reply.status, reply.body
        return reply.headers["thinkback-reattach"], reply.json["choices"][0]["message"]

    def loop(call: dict[str, Any]) -> list[Any]:
        made = {"role": "assistant", "content": None, "tool_calls": [call]}
        return [question, made, {"role": "tool", "tool_call_id": call["id"], "content": "7 degrees"}]

    (call,) = told([question], "Ada")[1]["tool_calls"]
    lost = loop(call)
    first, answer = told(lost, "Grace")
    again = [*lost, {"role": "assistant", "content": answer["content"]}, {"role": "user", "content": "Thanks."}]
    assert ["none; missing=1", "partial; missing=1"] == [first, told(again, "Grace")[0]]

    example = loop({**call, "id": "call_1"})
    mine = [*example, {"role": "assistant", "content": "Cool."}, question]
    assert "unknown; brought=2" == told(mine, "Edsger")[0]


def test_the_beginning_of_an_answer_is_the_clients(house: Running) -> None:
    """The model goes on with it, and both are one answer."""
    talk = Talk(house, "anthropic").ask("Count.")
    asked = [*talk.said, ("user", "Go on."), ("assistant", "One,")]
    reply = house.ask(PATHS["anthropic"], body("anthropic", asked), key=None)

    assert "complete; brought=1" == reply.headers["thinkback-reattach"]
