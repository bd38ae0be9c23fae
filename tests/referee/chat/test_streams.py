"""The shapes of answers: streamed and whole, per family, with usage where each host puts it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.referee.learning import learn_chat
from tests.referee.talk import WEATHER, Body, Got, body, post, result, said, user
from thinkback_referee import Call, Ledger, Referee, Step, profile_for
from thinkback_referee.chat.ledger import Mint
from thinkback_referee.chat.render import Answer, completion, events
from thinkback_referee.chat.request import Request
from thinkback_referee.jsons import as_list, as_object, compact

THOUGHT = Step(reasoning="Need the date first.", text="The answer.")
CALLING = Step(reasoning="Look.", tool_calls=[Call("get_weather", {"city": "Oslo"}, "c1")])


def stream(step: Step, host: str, model: str, **parameters: object) -> Got:
    with Referee([step]) as referee:
        return post(referee, host, body(model, user("hi"), stream=True, **parameters))


def whole(step: Step, host: str, model: str, **parameters: object) -> Got:
    with Referee([step]) as referee:
        return post(referee, host, body(model, user("hi"), **parameters))


def joined(got: Got, name: str) -> str:
    return "".join(str(delta[name]) for delta in got.deltas if delta.get(name) is not None)


def test_family_a_starts_with_an_empty_reasoning_and_nulls_the_other_key() -> None:
    """DeepSeek's first chunk has the role and an empty reasoning_content; then one of the two keys is null."""
    got = stream(Step(reasoning="We can", text="The end"), "deepseek", "deepseek-v4-pro")
    expected: list[Body] = [
        {"role": "assistant", "content": None, "reasoning_content": ""},
        {"content": None, "reasoning_content": "We"},
        {"content": None, "reasoning_content": " can"},
        {"content": "The", "reasoning_content": None},
        {"content": " end", "reasoning_content": None},
        {"content": "", "reasoning_content": None},
    ]
    assert expected == got.deltas
    assert ("text/event-stream; charset=utf-8", "[DONE]") == (got.headers["content-type"], got.events[-1])


def test_family_a_streams_calls_as_a_head_and_pieces_of_arguments() -> None:
    """A call comes first with id and name and empty arguments, then its arguments in pieces by index."""
    got = stream(CALLING, "deepseek", "deepseek-v4-pro", tools=[WEATHER])
    calls = [as_object(as_list(delta["tool_calls"])[0]) for delta in got.deltas if "tool_calls" in delta]
    head = {"index": 0, "id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
    assert head == calls[0]
    assert '{"city":"Oslo"}' == "".join(str(as_object(call["function"])["arguments"]) for call in calls)
    assert "tool_calls" == as_object(as_list(got.chunks[-1]["choices"])[0])["finish_reason"]


def test_family_b_streams_reasoning_under_its_own_name() -> None:
    """Groq starts with an empty content, then sends one key per delta and ends with an empty delta."""
    got = stream(Step(reasoning="Okay so", text="The end"), "groq", "openai/gpt-oss-120b")
    expected: list[Body] = [
        {"role": "assistant", "content": ""},
        {"reasoning": "Okay"},
        {"reasoning": " so"},
        {"content": "The"},
        {"content": " end"},
        {},
    ]
    assert expected == got.deltas
    first, last = as_object(got.chunks[0]["x_groq"]), as_object(got.chunks[-1]["x_groq"])
    assert (first["id"], last["usage"]) == (last["id"], got.chunks[-1]["usage"])


def test_mistral_streams_thinking_chunks_and_then_strings() -> None:
    """While Mistral thinks, content is a list with one thinking chunk; afterwards it is a string."""
    got = stream(Step(reasoning="We", text="The end"), "mistral", "magistral-medium-latest")
    chunk = {"type": "thinking", "thinking": [{"type": "text", "text": "We"}], "closed": True}
    expected: list[Body] = [
        {"role": "assistant", "content": ""},
        {"content": [chunk]},
        {"content": "The"},
        {"content": " end"},
        {"content": ""},
    ]
    assert expected == got.deltas


def test_a_model_that_does_not_think_has_no_reasoning_field() -> None:
    """With thinking off the field is absent, streamed or not."""
    off: Body = {"thinking": {"type": "disabled"}}
    got = stream(Step(text="yo"), "deepseek", "deepseek-v4-pro", **off)
    assert [{"role": "assistant", "content": ""}, {"content": "yo"}, {"content": ""}] == got.deltas
    got = whole(Step(text="yo"), "deepseek", "deepseek-v4-pro", **off)
    assert {"role": "assistant", "content": "yo"} == got.message


@pytest.mark.parametrize(
    ("host", "model", "with_flag", "without"),
    [
        ("deepseek", "deepseek-v4-pro", [1], [1]),
        ("kimi", "kimi-k3", [1, 0], [1]),
        ("groq", "qwen/qwen3-32b", [1, 0], [1]),
        ("mistral", "magistral-medium-latest", [1], [1]),
    ],
)
def test_usage_comes_where_the_host_puts_it(host: str, model: str, with_flag: list[int], without: list[int]) -> None:
    """All hosts put usage into the last chunk; some repeat it in an extra chunk when include_usage asks for it."""
    for parameters, expected in (({"stream_options": {"include_usage": True}}, with_flag), ({}, without)):
        got = stream(THOUGHT, host, model, **parameters)
        choices = [len(as_list(chunk["choices"])) for chunk in got.chunks if chunk.get("usage")]
        assert expected == choices


def test_deepseek_sends_a_null_usage_until_the_end() -> None:
    """Every DeepSeek chunk before the last has usage null, as recorded."""
    got = stream(THOUGHT, "deepseek", "deepseek-v4-pro")
    assert [None] * (len(got.chunks) - 1) == [chunk["usage"] for chunk in got.chunks[:-1]]
    assert got.chunks[-1]["usage"]


def test_usage_can_be_repeated_in_a_chunk_without_choices() -> None:
    """A step may ask for the extra usage chunk whatever the host does."""
    got = stream(Step(text="yo", repeat_usage=True), "deepseek", "deepseek-v4-pro")
    assert ([], got.chunks[-2]["usage"]) == (got.chunks[-1]["choices"], got.chunks[-1]["usage"])


def test_whole_answers_have_the_fields_of_their_host() -> None:
    """A completion carries reasoning under the host's name beside content and calls."""
    message = whole(CALLING, "deepseek", "deepseek-v4-pro", tools=[WEATHER]).message
    function = {"name": "get_weather", "arguments": '{"city":"Oslo"}'}
    expected: Body = {
        "role": "assistant",
        "content": "",
        "reasoning_content": "Look.",
        "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}],
    }
    assert expected == message
    assert "Need the date first." == whole(THOUGHT, "groq", "qwen/qwen3-32b").message["reasoning"]
    assert 2 == len(as_list(whole(THOUGHT, "mistral", "magistral-medium-latest").message["content"]))


def test_old_names_report_the_model_that_serves_them() -> None:
    """deepseek-reasoner answers as deepseek-v4-flash."""
    assert "deepseek-v4-flash" == whole(THOUGHT, "deepseek", "deepseek-reasoner").json["model"]


def test_tags_put_the_reasoning_into_the_text() -> None:
    """With field tags the thought is in content between think tags and in no field."""
    got = whole(Step(reasoning="hm", text="yo", field="tags"), "deepseek", "deepseek-v4-pro")
    assert {"role": "assistant", "content": "<think>\nhm\n</think>\n\nyo"} == got.message
    streamed = stream(Step(reasoning="hm", text="yo", field="tags"), "deepseek", "deepseek-v4-pro")
    assert "<think>\nhm\n</think>\n\nyo" == joined(streamed, "content")


@pytest.mark.parametrize(
    ("parameters", "shown"),
    [
        ({"reasoning_format": "parsed"}, True),
        ({"reasoning_format": "hidden"}, False),
        ({"include_reasoning": False}, False),
    ],
)
def test_groq_shows_reasoning_as_asked(parameters: Body, shown: bool) -> None:
    """parsed gives the field, hidden and include_reasoning false give none."""
    message = whole(THOUGHT, "groq", "qwen/qwen3-32b", **parameters).message
    assert ("The answer.", shown) == (message["content"], "reasoning" in message)


def test_a_field_can_be_forced() -> None:
    """A step may answer under another field than its host's."""
    assert "hm" == whole(Step(reasoning="hm", field="reasoning"), "deepseek", "deepseek-v4-pro").message["reasoning"]


def test_refusals_have_their_own_field() -> None:
    """A refusal is streamed as such and ends with content_filter."""
    got = stream(Step(refusal="I will not."), "kimi", "kimi-k3")
    assert "I will not." == joined(got, "refusal")
    assert "content_filter" == as_object(as_list(got.chunks[-1]["choices"])[0])["finish_reason"]
    assert "I will not." == whole(Step(refusal="I will not."), "kimi", "kimi-k3").message["refusal"]


def test_usage_counts_words_and_reasoning_within_completion() -> None:
    """Completion tokens include the reasoning, and a step's own numbers win."""
    usage = as_object(whole(THOUGHT, "deepseek", "deepseek-v4-pro").json["usage"])
    assert (6, {"reasoning_tokens": 4}) == (usage["completion_tokens"], usage["completion_tokens_details"])
    own = whole(Step(text="yo", usage={"completion_tokens": 99}), "kimi", "kimi-k3")
    assert 99 == as_object(own.json["usage"])["completion_tokens"]


def test_the_cache_hit_is_the_common_prefix_with_earlier_prompts(referee: Referee) -> None:
    """A longer history hits for all that it repeats; a changed first message hits nothing but its role."""
    history = [user("one two"), said("three", reasoning_content="hidden"), user("four")]
    usages: list[Mapping[str, object]] = []
    for messages in (history[:1], history, [user("changed"), *history[1:]]):
        got = post(referee, "deepseek", body("deepseek-v4-pro", *messages))
        usages.append(as_object(got.json["usage"]))
    hits = [(usage["prompt_cache_hit_tokens"], usage["prompt_cache_miss_tokens"]) for usage in usages]
    assert [(0, 3), (3, 4), (1, 5)] == hits


def test_returned_reasoning_counts_only_where_the_model_sees_it(referee: Referee) -> None:
    """Reasoning that the provider ignores is not in the prompt."""
    sizes = []
    for reasoning in (" ", "one two three"):
        turn = [user("hi"), said("", "c1", reasoning_content=reasoning), result("c1")]
        for model in ("deepseek-v4-pro", "deepseek-v3.2"):
            got = post(referee, "deepseek", body(model, *turn, said("done", reasoning_content=" "), user("on")))
            sizes.append(as_object(got.json["usage"])["prompt_tokens"])
    v4, v32, v4_longer, v32_longer = sizes
    assert (3, 0) == (int(str(v4_longer)) - int(str(v4)), int(str(v32_longer)) - int(str(v32)))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
THINKERS = [
    ("deepseek", "deepseek-v4-pro"),
    ("kimi", "kimi-k3"),
    ("groq", "qwen/qwen3-32b"),
    ("mistral", "magistral-medium-latest"),
]


@given(st.sampled_from(THINKERS), TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=2), st.booleans())
def test_stream_and_whole_say_the_same(
    persona: tuple[str, str], reasoning: str, text: str, arguments: dict[str, str], calling: bool
) -> None:
    """What the ledger learns from a stream equals what it learns from the completion of the same step."""
    profile = profile_for(*persona)
    assert profile is not None
    calls = (("c1", "get_weather", compact(arguments)),) if calling else ()
    request = Request(profile, body(profile.model, user("hi")))
    answer = Answer(request, Step(reasoning, text), "1", profile.field, calls, {})
    streamed = learn_chat(Ledger(), profile, b"".join(events(answer)))
    expected = Mint(profile.host.name, profile.model, reasoning, text, ("c1",) if calling else ())
    assert expected == streamed == learn_chat(Ledger(), profile, completion(answer))
