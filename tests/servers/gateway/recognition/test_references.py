"""Clients of the Responses API that name items by their ids instead of repeating them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.servers.gateway.harness.engines import CLAUDE, DEEPSEEK, Fresh, Kept, ask, engine
from thinkback.servers.gateway.grant import Grant
from thinkback_referee import Referee

OPENAI = "openai/gpt-5.6"
TOOL = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ASKED = ("What is the weather in Oslo?", "And in Rome?", "Thank you. And in Bergen?")


def named(item: dict[str, Any]) -> dict[str, Any]:
    """As the Vercel AI SDK sends an output item back: a call without its id, everything else as an id."""
    if item["type"] == "function_call":
        return {key: item[key] for key in ("type", "call_id", "name", "arguments")}
    return {"type": "item_reference", "id": item["id"]}


def talk(made: Any, models: tuple[str, str, str]) -> list[Kept]:
    """Three turns with a call each, each with its model."""
    items: list[dict[str, Any]] = []
    answers: list[Kept] = []
    for asked, model in zip(ASKED, models, strict=True):
        items.append({"role": "user", "content": asked})
        calls: list[Any] = [None]
        while calls:
            kept = ask(made, "openai-responses", {"model": model, "input": items, "tools": [TOOL]})
            answers.append(kept)
            if kept.status != 200:
                return answers
            output = kept.json["output"]
            items += [named(item) for item in output]
            calls = [item for item in output if item["type"] == "function_call"]
            items += [{"type": "function_call_output", "call_id": c["call_id"], "output": "7 degrees"} for c in calls]
    return answers


@pytest.mark.parametrize(
    "models",
    [(CLAUDE,) * 3, (DEEPSEEK,) * 3, (OPENAI,) * 3, (OPENAI, CLAUDE, CLAUDE), (CLAUDE, DEEPSEEK, DEEPSEEK)],
)
def test_what_is_named_by_its_id_is_said(referee: Referee, models: tuple[str, str, str]) -> None:
    """Whoever made the id, and wherever the conversation goes on: the provider reads every earlier answer."""
    answers = talk(engine(Fresh(), referee), models)
    said = [seen.step.text for seen in referee.requests if seen.step and seen.step.text]
    last = json.dumps(referee.requests[-1].body)

    assert [200] * 6 == [kept.status for kept in answers]
    assert 3 == len(said)
    assert models[-1] == OPENAI or all(text in last for text in said[:-1])
    assert ["not-needed", *["complete"] * 5] == [kept.headers["thinkback-reattach"] for kept in answers]


@pytest.mark.parametrize("id", ["msg_resp_ffffffffffffffffffffffff_1", "msg_0123456789abcdef"])
def test_name_that_nobody_knows_is_refused_where_it_would_be_lost(referee: Referee, id: str) -> None:
    """A provider of another dialect can make nothing of it."""
    items = [{"role": "user", "content": "Hi."}, {"type": "item_reference", "id": id}, {"role": "user", "content": "?"}]
    kept = ask(engine(Fresh(), referee), "openai-responses", {"model": DEEPSEEK, "input": items})

    assert (400, f"Item with id '{id}' not found.") == (kept.status, kept.json["error"]["message"])
    assert [] == referee.requests


def test_name_of_another_keys_response_is_not_known(referee: Referee) -> None:
    """Ids are looked up in the scope alone."""
    made = engine(Fresh(), referee)
    first = ask(made, "openai-responses", {"model": DEEPSEEK, "input": "Hello."})
    message = next(item for item in first.json["output"] if item["type"] == "message")
    items = [{"role": "user", "content": "Hello."}, named(message), {"role": "user", "content": "What did you say?"}]
    body = {"model": DEEPSEEK, "input": items}

    assert 400 == ask(made, "openai-responses", body, grant=Grant("k2")).status
    assert 200 == ask(made, "openai-responses", body).status


CALLED = (
    {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "7 degrees"},
)
ANSWERED = ({"role": "assistant", "content": "Hm."}, {"role": "user", "content": "And what did you think?"})


@pytest.mark.parametrize("recording", ["full", "off"])
@pytest.mark.parametrize("behind", [(), CALLED, ANSWERED])
def test_name_of_another_keys_reasoning_stays_away_from_the_shared_account(
    referee: Referee, behind: tuple[dict[str, Any], ...], recording: Any
) -> None:
    """The account holds what all keys asked there, so the upstream would know it: no place of it goes on."""
    made = engine(Fresh(), referee)
    first = ask(made, "openai-responses", {"model": OPENAI, "input": "Why is the sky blue?"})
    thought = next(item for item in first.json["output"] if item["type"] == "reasoning")
    items = [{"role": "user", "content": "Hm."}, named(thought), *behind]
    before = len(referee.requests)
    body = {"model": OPENAI, "input": items, "tools": [TOOL]}
    kept = ask(made, "openai-responses", body, grant=Grant("k2", recording=recording))
    sent = json.dumps([seen.body for seen in referee.requests[before:]])

    assert 200 == kept.status
    assert thought["id"] not in sent
