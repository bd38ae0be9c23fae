"""``convert``: a request of one dialect as a request of another, reasoning and parameters included."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.cli.command import Command
from tests.cli.conversations import (
    ANSWER,
    BODIES,
    INPUT,
    NAME,
    OPAQUE,
    QUESTION,
    RESULT,
    SCHEMA,
    SYSTEM,
    THANKS,
    THOUGHT,
)
from thinkback.cli.wire.conversion import Converted, Way, convert
from thinkback.errors import NotFoundError, SettingError
from thinkback.model.blocks import Origin
from thinkback.model.commits import Draft
from thinkback.model.target import Settings
from thinkback.rules import load_rulebook
from thinkback.turn.translation import parameters
from thinkback.wire.registry import PACKAGES, dialect

DAY = "2026-11-20"
BOOK = load_rulebook({})
# Chat completions of a server that takes reasoning back; their maker takes none.
PLACES = {**{name: dialect(name).maker for name in PACKAGES}, "openai-chat": "llamacpp"}


PAIRS = list(itertools.permutations(BODIES, 2))


def model_of(name: str) -> str:
    """The model that the hand-written body of a dialect is for."""
    return str(BODIES[name].get("model") or BODIES[name].get("modelId"))


def converted(source: str, target: str, body: dict[str, Any] | None = None, **way: Any) -> Converted:
    """The conversation of ``source`` in ``target``, or ``body``."""
    given = {"model": model_of(target), **way}
    return convert(body or BODIES[source], Way(source, target, **given), BOOK, DAY, Settings())


def body_of(done: Converted) -> dict[str, Any]:
    """The new body."""
    body: dict[str, Any] = json.loads(bytes(done.plan))
    return body


def told(name: str, body: dict[str, Any]) -> list[Draft]:
    """What a body says, without the headers of responses and without reasoning."""
    ids = (f"r{number}" for number in itertools.count())
    drafts = dialect(name).read_request(body, lambda: next(ids), Origin(name, "", "")).drafts
    return [draft for draft in drafts if draft.kind not in ("response", "reasoning")]


def test_there_is_a_conversation_in_every_dialect() -> None:
    """Nobody adds a dialect without a conversation, and parameters, of its own."""
    assert set(PACKAGES) == set(BODIES)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_conversation_goes_from_any_dialect_to_any_other(source: str, target: str) -> None:
    """System, tools, messages, calls and results arrive; opaque values of others do not."""
    body = body_of(converted(source, target))

    tools, system, asked, call, result, answer, thanks = (draft.value for draft in told(target, body))
    assert [(NAME, SCHEMA)] == [(tool.name, json.loads(tool.parameters)) for tool in tools.tools]  # type: ignore[union-attr]
    assert [SYSTEM, QUESTION, ANSWER, THANKS] == [m.text for m in (system, asked, answer, thanks)]  # type: ignore[union-attr]
    assert (NAME, INPUT) == (call.name, json.loads(call.arguments))  # type: ignore[union-attr]
    assert (RESULT, call.id) == (result.content, result.id)  # type: ignore[union-attr]
    assert OPAQUE not in json.dumps(body)


@pytest.mark.parametrize("name", BODIES)
def test_the_same_dialect_gets_the_same_messages(name: str) -> None:
    """Where it is said who made the reasoning, all messages come back as they were, opaque values included."""
    place = PLACES[name]
    body = body_of(converted(name, name, endpoint=place, minted_by=(place, model_of(name))))

    for member in ("messages", "contents", "input"):
        assert BODIES[name].get(member) == body.get(member)


@pytest.mark.parametrize("name", [name for name in BODIES if OPAQUE in json.dumps(BODIES[name])])
def test_opaque_values_of_nobody_stay_behind(name: str) -> None:
    """Without a word on who made them they are dropped, with a decision that says so."""
    done = converted(name, name)

    assert OPAQUE not in json.dumps(body_of(done))
    assert any("origin is not known" in decision.reason for decision in done.plan.decisions)


def test_readable_reasoning_goes_along_where_it_may() -> None:
    """Text without an origin becomes the target's own field; elsewhere the person may ask for it as text."""
    body = body_of(converted("anthropic", "openai-chat", endpoint="llamacpp", model="m"))

    assert [THOUGHT] == [m["reasoning_content"] for m in body["messages"] if "reasoning_content" in m]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_parameters_are_said_in_the_words_of_the_other_dialect(source: str, target: str) -> None:
    """What the target has a name for arrives with its value; all else is told."""
    done = converted(source, target, endpoint=PLACES[target])
    before = parameters.read(source, {k: v for k, v in BODIES[source].items() if k not in ("messages", "input")})
    after = parameters.read(target, done.plan.params)
    left = {line.partition(":")[0].partition(" ")[0].rpartition(".")[2] for line in done.left}
    assert ("stream" in left) == (bool(BODIES[source].get("stream")) and not done.plan.params.get("stream"))

    for key, value in before.common.items():
        assert value == after.common.get(key) or left & {key, "temperature"}
    if before.choice is not None and "tool_choice" not in left:
        assert before.choice == after.choice


def test_an_effort_is_said_in_the_words_of_the_target() -> None:
    """A level of one dialect becomes the effort of another, and what has no counterpart is told."""
    body = {**BODIES["openai-responses"], "reasoning": {"effort": "low"}, "service_tier": "flex"}
    done = converted("openai-responses", "gemini", body)

    assert "LOW" == body_of(done)["generationConfig"]["thinkingConfig"]["thinkingLevel"]
    assert "service_tier: gemini has no name for it" in done.left
    assert [("reasoning.effort", "emitted")] == [(c.key, c.state) for c in done.plan.controls]


@pytest.mark.parametrize(("endpoint", "model"), [("deepseek", "deepseek-v4-pro"), ("openai-chat", "gpt-6-sol")])
def test_an_effort_above_all_others_is_the_highest_that_the_target_has(endpoint: str, model: str) -> None:
    """DeepSeek itself reads ultra as max."""
    body = {"model": "m", "input": "Hello.", "reasoning": {"effort": "ultra"}}
    done = converted("openai-responses", "openai-chat", body, endpoint=endpoint, model=model)

    assert {"deepseek": "max", "openai-chat": "xhigh"}[endpoint] == body_of(done)["reasoning_effort"]
    assert () == done.left


def test_settings_among_the_items_are_settings_of_the_request() -> None:
    """The last effort among them is that of the request, a trigger is named, and neither is a message."""
    body = {
        "model": "gpt-6-sol",
        "input": [
            {"role": "user", "content": "Hello?"},
            {"type": "configuration_update", "reasoning": {"effort": "low"}},
            {"type": "compaction_trigger"},
            {"role": "user", "content": "And?"},
        ],
    }
    done = convert(body, Way("openai-responses", "anthropic", model="claude-opus-5"), BOOK, DAY, Settings())
    sent = json.loads(bytes(done.plan))
    assert {"effort": "low"} == sent["output_config"]
    assert ["user", "user"] == [message["role"] for message in sent["messages"]]
    assert "system" not in sent
    assert ["compaction_trigger: anthropic has no name for it"] == [
        left for left in done.left if left.startswith("compaction_trigger")
    ]
    assert ["a setting of a request in openai-responses"] * 2 == [it.reason for it in done.plan.decisions]


@pytest.mark.parametrize("endpoint", ["azure-openai", "openai"])
def test_fields_for_one_provider_stay_behind_elsewhere(endpoint: str) -> None:
    """At the top and in an item; each is named."""
    field = "internal_chat_message_metadata_passthrough"
    body = {"model": "gpt-5.6", "client_metadata": {}, "input": [{"role": "user", "content": "Hello.", field: {}}]}
    done = converted("openai-responses", "openai-responses", body, endpoint=endpoint, model="gpt-5.6")
    names = [left.partition(":")[0] for left in done.left]

    assert ([] if endpoint == "openai" else ["client_metadata", f"input.{field}"]) == names
    assert (endpoint == "openai") == ("client_metadata" in body_of(done)) == (field in body_of(done)["input"][0])


def test_a_parameter_that_the_target_refuses_stays_behind() -> None:
    """A refusal that is known before the network costs the parameter, not the request."""
    done = converted("anthropic", "openai-responses")

    assert "temperature" not in body_of(done)
    assert any(line.startswith("temperature: openai refuses") for line in done.left)


def test_what_cannot_be_left_out_is_an_error() -> None:
    """A refusal that no parameter of the request is to blame for is passed on."""
    with pytest.raises(SettingError):
        convert(
            BODIES["openai-chat"],
            Way("openai-chat", "openai-chat", "deepseek", "deepseek-v4-pro"),
            BOOK,
            DAY,
            Settings(strict=True, effort="high"),
        )


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (Way("nonsense", "gemini"), "no dialect 'nonsense'"),
        (Way("openai-chat", "nonsense"), "no dialect 'nonsense'"),
        (Way("openai-chat", "gemini", "nowhere"), "no endpoint is called 'nowhere'"),
        (Way("openai-chat", "gemini", "cohere"), "cohere does not speak gemini"),
        (Way("anthropic", "gemini", minted_by=("nowhere", "m")), "no endpoint is called 'nowhere'"),
    ],
)
def test_a_way_that_is_none_is_told(way: Way, said: str) -> None:
    """Unknown dialects and endpoints, and endpoints of another dialect, are errors with a next step."""
    with pytest.raises(NotFoundError, match=said):
        convert(BODIES["openai-chat" if way.source == "nonsense" else way.source], way, BOOK, DAY, Settings())


def test_a_body_without_a_model_needs_one() -> None:
    """The address of some dialects names the model, so the body does not."""
    body = {key: value for key, value in BODIES["bedrock"].items() if key != "modelId"}

    with pytest.raises(NotFoundError, match="no model is set"):
        convert(body, Way("bedrock", "cohere"), BOOK, DAY, Settings())


def test_the_command_prints_the_body_alone_on_standard_output(command: Command) -> None:
    """The body can be piped on; decisions and what stayed behind are on standard error."""
    body = json.dumps(BODIES["anthropic"]).encode()
    way = ("--from", "anthropic", "--to", "openai-responses", "--model", "gpt-5")

    done = command("convert", *way, stdin=body)

    assert 0 == done.code
    assert body_of(converted("anthropic", "openai-responses")) == done.json
    assert "for openai gpt-5, rule openai-gpt-5" in done.err
    assert "not carried over: stop" in done.err
    assert OPAQUE not in done.out + done.err


def test_the_command_as_json_has_body_and_reasons(command: Command) -> None:
    """``--json`` is one object with the body, the decisions, the controls and what was not carried over."""
    file = command.place / "request.json"
    file.write_text(json.dumps(BODIES["openai-responses"]))
    way = ("--from", "openai-responses", "--to", "openai-responses", "--minted-by", "openai", "gpt-5")

    found = command("convert", *way, str(file), "--json").json

    assert BODIES["openai-responses"]["input"] == found["body"]["input"]
    assert {"native"} == {decision["action"] for decision in found["decisions"]}
    assert ("openai", "gpt-5", []) == (found["endpoint"], found["model"], found["not_carried"])


@pytest.mark.parametrize(("body", "said"), [(b"{", "is not JSON"), (b"[]", "is not a JSON object"), (b"", "is empty")])
def test_what_is_no_request_is_refused(command: Command, body: bytes, said: str) -> None:
    """Bad input ends with a message and no output."""
    done = command("convert", "--from", "anthropic", "--to", "gemini", stdin=body)

    assert (done.code, done.out) in ((2, ""), (3, ""))
    assert said in done.err
