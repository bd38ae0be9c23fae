"""Responses whole and streamed: the same content, in the event shapes of each host."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.referee.learning import copies_of, learn_responses
from tests.referee.responses.desk import ENCRYPTED, STATELESS, WEATHER, Body, Desk, output, user
from thinkback_referee import Call, Step
from thinkback_referee.credentials import account_of
from thinkback_referee.jsons import as_list, as_object

HI = user("hi")
ALL_TURNS: Body = {"reasoning": {"context": "all_turns"}}
SUMMARY: Body = {"reasoning": {"summary": "auto"}}
THOUGHT = Step(reasoning="**First**\n\nThen this.", text="The end")
CALLING = Step(reasoning="Look.", tool_calls=[Call("get_weather", {"city": "Oslo"}, "c1")])
EVERYBODY = [
    ("openai", "gpt-5"),
    ("azure", "gpt-5-mini"),
    ("xai", "grok-4.3"),
    ("copilot", "gpt-5.3-codex"),
    ("openrouter", "openai/gpt-oss-20b"),
    ("deepseek", "deepseek-v4-pro"),
    ("lmstudio", "openai/gpt-oss-20b"),
]


def kinds(events: list[Body]) -> list[str]:
    """The types of the events, equal neighbours once."""
    found: list[str] = []
    for event in events:
        kind = str(event["type"]).removeprefix("response.")
        found += [kind] if found[-1:] != [kind] else []
    return found


def test_a_summary_is_streamed_part_by_part() -> None:
    """The order of events is the recorded one, numbered from 0."""
    events = Desk("openai", "gpt-5", SUMMARY).events(THOUGHT, HI)
    part = [f"reasoning_summary_{name}" for name in ("part.added", "text.delta", "text.done", "part.done")]
    text = ["content_part.added", "output_text.delta", "output_text.done", "content_part.done"]
    item = "output_item.added", "output_item.done"
    expected = ["created", "in_progress", item[0], *part, *part, item[1], item[0], *text, item[1], "completed"]
    assert expected == kinds(events)
    assert list(range(len(events))) == [event["sequence_number"] for event in events]
    parts = [event["text"] for event in events if event["type"] == "response.reasoning_summary_text.done"]
    assert ["**First**", "Then this."] == parts


def test_raw_reasoning_is_streamed_as_content() -> None:
    """Hosts of open models send reasoning_text, and end with [DONE] where they do."""
    client = Desk("openrouter", "openai/gpt-oss-20b")
    events = client.events(THOUGHT, HI)
    expected = ["content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"]
    assert expected == kinds(events)[3:7]
    rendered = client.rendered(THOUGHT, HI)
    assert (b": OPENROUTER PROCESSING\n\n", b"data: [DONE]\n\n") == (rendered.events[0], rendered.end)
    assert b"event:" not in rendered.events[1]
    assert Desk("lmstudio", "openai/gpt-oss-20b").rendered(THOUGHT, HI).events[0].startswith(b"event: response.created")


def test_calls_are_streamed_as_arguments() -> None:
    """A call is added empty, its arguments come in pieces, and it ends whole."""
    events = Desk("openai", "gpt-5").events(CALLING, HI)
    deltas = [str(event["delta"]) for event in events if event["type"] == "response.function_call_arguments.delta"]
    assert '{"city":"Oslo"}' == "".join(deltas)
    added, done = (as_object(event["item"]) for event in events if event.get("output_index") == 1 and "item" in event)
    assert ("", "in_progress", '{"city":"Oslo"}', "completed") == (
        added["arguments"],
        added["status"],
        done["arguments"],
        done["status"],
    )


def test_tools_that_an_item_offers_are_called_in_their_own_form() -> None:
    """As Codex offers them to GPT-6: in a namespace, one of them taking any text; the round counts as one of calls."""
    custom = {"type": "custom", "name": "exec", "description": "Run a script."}
    space = {"type": "namespace", "name": "functions", "tools": [custom, WEATHER]}
    given = {"type": "additional_tools", "role": "developer", "tools": [space]}
    desk = Desk("openai", "gpt-6-sol", STATELESS)
    calls = [Call("exec", {"input": "1 + 1"}, "c1"), Call("get_weather", {"city": "Oslo"}, "c2")]
    step = Step(reasoning="Look.", tool_calls=calls)
    items = desk.items(step, given, HI)
    assert "custom_tool_call_input.done" in kinds(desk.events(step, given, HI))
    assert [("custom_tool_call", "functions", "1 + 1"), ("function_call", "functions", None)] == [
        (item["type"], item["namespace"], item.get("input")) for item in items[1:]
    ]
    results = {"type": "custom_tool_call_output", "call_id": "c1", "output": "2"}, output("c2")
    assert desk.verdict(given, HI, *items, *results).ok
    view = desk.view(given, HI, *items, *results)
    assert (["exec", "get_weather"], 1, (("exec", "2"), ("get_weather", "rain"))) == (
        [tool.name for tool in view.tools],
        view.rounds,
        view.results,
    )


def test_without_a_summary_reasoning_is_hidden() -> None:
    """The item comes with an empty summary, and no event in between."""
    client = Desk("openai", "gpt-5", dict(STATELESS))
    reasoning, _ = client.items(THOUGHT, HI)
    assert [] == reasoning["summary"]
    assert str(reasoning["encrypted_content"]).startswith("gAAAAA")
    assert ["output_item.added", "output_item.done"] == kinds(client.events(THOUGHT, HI))[2:4]
    assert "encrypted_content" not in Desk("openai", "gpt-5").items(THOUGHT, HI)[0]


def test_codex_ends_with_an_empty_output_and_copilot_renames_its_items() -> None:
    """Recorded: the one sends no items at the end, the other gives every event its own id."""
    form: Body = {**STATELESS, "instructions": "Be brief.", "stream": True}
    assert [] == as_object(Desk("codex", "gpt-5.4", form).events(THOUGHT, HI)[-1]["response"])["output"]
    events = Desk("copilot", "gpt-5.3-codex", STATELESS).events(THOUGHT, HI)
    ids = [event["item_id"] if "item_id" in event else as_object(event["item"])["id"] for event in events[2:-1]]
    assert len(ids) == len(set(ids))


def test_phases_are_told_by_models_that_have_them() -> None:
    """Text before calls is commentary, the last one is the answer; older models say neither."""
    both = Step(text="Let me see.", tool_calls=CALLING.tool_calls)
    client = Desk("openai", "gpt-5.3-codex")
    assert "commentary" == client.items(both, HI)[0]["phase"]
    assert "final_answer" == client.items(Step(text="42"), HI)[0]["phase"]
    assert "phase" not in Desk("openai", "gpt-5").items(Step(text="42"), HI)[0]


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
        ("failed", "failed", None),
        ("", "completed", None),
    ],
)
def test_how_a_response_ends(finish: str, status: str, reason: object) -> None:
    """The last event has the name of the status, and the response says why it is not complete."""
    client = Desk("openai", "gpt-5")
    step = Step(reasoning="Long", text="The", finish=finish)
    answer = client.answer(step, HI)
    assert (status, reason) == (answer["status"], answer["incomplete_details"])
    assert (finish == "failed") == (answer["error"] is not None)
    assert f"response.{status}" == client.events(step, HI)[-1]["type"]


def test_refusals_are_parts_of_a_message() -> None:
    """A refusal is streamed under its own name."""
    client = Desk("openai", "gpt-5")
    [message] = client.items(Step(refusal="I will not."), HI)
    assert [{"type": "refusal", "refusal": "I will not."}] == message["content"]
    assert "refusal.delta" in kinds(client.events(Step(refusal="I will not."), HI))


def test_the_effective_reasoning_is_echoed() -> None:
    """The response says what was in force, with the context that auto stood for."""
    asked: Body = {"reasoning": {"effort": "low", "summary": "auto"}}
    late = Desk("openai", "gpt-5.6-sol", asked).answer(THOUGHT, HI)
    assert {"effort": "low", "summary": "detailed", "context": "all_turns"} == late["reasoning"]
    assert {"effort": None, "summary": None} == Desk("openai", "gpt-4o").answer(Step(text="42"), HI)["reasoning"]
    assert "grok-4.3" == Desk("xai", "grok-3-mini").answer(THOUGHT, HI)["model"]
    assert "openai-responses-v1" == Desk("openrouter", "openai/gpt-6-sol").items(THOUGHT, HI)[0]["format"]


def test_usage_counts_reasoning_within_the_output_and_finds_prefixes() -> None:
    """A longer history hits for what it repeats; a step's own numbers win."""
    client = Desk("openai", "gpt-5.6-sol", dict(STATELESS))
    first = as_object(client.answer(THOUGHT, HI)["usage"])
    assert (5, {"reasoning_tokens": 3}) == (first["output_tokens"], first["output_tokens_details"])
    items = client.items(THOUGHT, HI)
    later = as_object(client.answer(Step(text="x", usage={"output_tokens": 9}), HI, *items, user("on"))["usage"])
    assert ({"cached_tokens": 2, "cache_write_tokens": 0}, 9) == (later["input_tokens_details"], later["output_tokens"])


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(st.sampled_from(EVERYBODY), TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=2), st.booleans())
def test_stream_and_whole_say_the_same(
    place: tuple[str, str], reasoning: str, text: str, arguments: dict[str, str], calling: bool
) -> None:
    """The items of a stream's end are those of the whole response, and equal to those that ended one by one."""
    client = Desk(*place, parameters=dict(SUMMARY))
    step = Step(reasoning, text, [Call("get_weather", arguments, "c1")] if calling else ())
    rendered = client.rendered(step, HI)
    whole = as_object(json.loads(rendered.whole))
    final, (done, last) = copies_of(b"".join(rendered.events).decode())
    assert (whole, as_list(whole["output"])) == (final, last)
    assert [hidden(item) for item in done] == [hidden(item) for item in last]


@pytest.mark.parametrize("stream", [True, False])
def test_a_recorded_response_is_learned(stream: bool) -> None:
    """What one referee rendered another can learn, streamed or not: items, carriers, and what is stored."""
    teacher, pupil = Desk("openai", "gpt-5", {**ENCRYPTED, **SUMMARY}), Desk("openai", "gpt-5", dict(ENCRYPTED))
    rendered = teacher.rendered(THOUGHT, HI)
    answer = as_object(json.loads(rendered.whole))
    account = account_of(pupil.key)
    body: Body = {"model": "gpt-5", "input": [HI], **ENCRYPTED}
    learn_responses(
        pupil.persona.ledger, "openai", account, body, b"".join(rendered.events).decode() if stream else answer
    )
    items = [dict(as_object(item)) for item in as_list(answer["output"])]
    assert pupil.verdict(HI, *items, user("on")).ok
    assert ("**First**Then this.",) == pupil.view(user("on"), previous_response_id=answer["id"], **ALL_TURNS).notes
    with pytest.raises(LookupError, match="no row for openai gpt-none"):
        learn_responses(pupil.persona.ledger, "openai", account, {"model": "gpt-none"}, answer)


def hidden(item: object) -> Body:
    """The item without what may differ between its copies."""
    return {name: value for name, value in as_object(item).items() if name not in ("id", "encrypted_content")}
