"""How responses end: finish, usage, errors, cuts, and what of the envelope is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.feeding import HEAD, ORIGIN, body, chunk, content, cuts, feed, read, sse, stream, visible
from thinkback.model.commits import Failure, Usage
from thinkback.wire.openai_chat import chunks
from thinkback.wire.openai_chat.read import Reader
from thinkback.wire.result import ReadResult, stamped

TEXT = chunk({"content": "a"})


def failure(result: ReadResult) -> tuple[str, str, str]:
    """(type, code, message) of the error."""
    error = result.response.error
    assert error is not None
    return error.type, error.code, error.message


def test_a_stream_that_ends_as_it_should() -> None:
    """Ids, model and finish are as reported, the origin gets the served model, and there is no error."""
    response = read(sse(TEXT, chunk({}, "stop"), {**HEAD, "choices": [], "model": "later"})).response

    assert ("c1", "stop", True, None) == (response.id, response.finish, response.complete, response.error)
    assert ("model", "later") == (response.origin.requested_model, response.origin.served_model)


FINISHES = [
    ("none and no end", sse(TEXT, done=False), None, False),
    ("none", sse(TEXT), None, True),
    ("an empty one", sse(chunk({}, "")), "", True),
    ("an empty one and no end", sse(chunk({}, ""), done=False), "", False),
    ("an empty one in every chunk", sse(chunk({}, ""), chunk({}, "stop"), chunk({}, ""), done=False), "stop", True),
    ("without an end mark", sse(TEXT, chunk({}, "length"), done=False), "length", True),
    ("in an odd chunk", sse(chunk({}, "stop", odd=1), chunk({}, None, odd=1), done=False), "stop", True),
    ("a number", sse(chunk({}, odd=1) | {"choices": [{"finish_reason": 1}]}), "1", True),
    ("whole, none", body({"content": "a"}, None), None, True),
    ("whole, empty", body({"content": "a"}, ""), "", True),
    ("whole in an event", sse(json.loads(body({"content": "a"})), done=False), "stop", True),
    ("a spaced end mark", sse(TEXT, b" [DONE] ", done=False), None, True),
    ("stopped by a filter", sse(TEXT, chunk({}, "content_filter")), "content_filter", False),
    ("the error reason", sse(TEXT, chunk({}, "error")), "error", False),
]


@pytest.mark.parametrize(("name", "raw", "finish", "complete"), FINISHES, ids=[case[0] for case in FINISHES])
def test_finish_is_as_reported_and_says_whether_the_response_is_whole(
    name: str, raw: bytes, finish: str | None, complete: bool
) -> None:
    """Null and empty are kept apart; without a reason only an end mark, or a whole body, makes a response complete."""
    response = read(raw).response

    assert (finish, complete) == (response.finish, response.complete)


def test_a_response_that_a_filter_stopped_is_no_error() -> None:
    """Nothing broke: what arrived is kept, and it is not an answer to go on from."""
    response = read(sse(TEXT, chunk({}, "content_filter"))).response

    assert (None, False) == (response.error, response.complete)


def test_every_block_can_carry_the_origin_of_its_response() -> None:
    """The origin is held once, and put on each block for whoever wants it there."""
    result = stamped(read(stream({"reasoning": "a"}, {"content": "b"})))

    assert [result.response.origin] * 2 == [block.origin for block in result.blocks]


def test_the_finish_of_a_running_stream_can_be_asked() -> None:
    """None until a reason came; an empty one is none."""
    reader = Reader(ORIGIN)
    reader.feed(sse(chunk({}, ""), done=False))
    assert reader.finish is None
    reader.feed(sse(chunk({}, "stop"), done=False))
    assert "stop" == reader.finish


DETAILS = {
    "completion_tokens_details": {"reasoning_tokens": 3},
    "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5},
}
USAGES = [
    ("everything", {"prompt_tokens": 1, "completion_tokens": 2, **DETAILS}, Usage(1, 2, 3, 4, 5)),
    ("cache hits of Kimi", {"prompt_tokens": 9, "cached_tokens": 7}, Usage(9, None, None, 7)),
    ("no cache hits of Kimi", {"prompt_tokens": 9, "cached_tokens": 0}, Usage(9, None, None, 0)),
    ("cache hits of DeepSeek", {"prompt_tokens": 1, "prompt_cache_hit_tokens": 7}, Usage(1, None, None, 7)),
    ("zero is reported", {"prompt_tokens": 0, "completion_tokens_details": {"reasoning_tokens": 0}}, Usage(0, None, 0)),
    ("null is not", {"prompt_tokens": None, "completion_tokens_details": None, "prompt_tokens_details": None}, Usage()),
    ("odd values", {"prompt_tokens": True, "completion_tokens": "2", "completion_tokens_details": 5}, Usage()),
    (
        "more reasoning than output",
        {"completion_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 9}},
        Usage(None, 1, 9),
    ),
]


@pytest.mark.parametrize(("name", "wire", "expected"), USAGES, ids=[case[0] for case in USAGES])
def test_usage_counts_are_as_reported(name: str, wire: dict[str, Any], expected: Usage) -> None:
    """Nothing is added, clamped or made up, and the provider's own object stays beside the counts."""
    places = [
        sse(TEXT, chunk({}, "stop", usage=wire)),
        sse(TEXT, chunk({}, "stop"), {**HEAD, "choices": [], "usage": wire}),
        sse(TEXT, {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": wire}]}),
        sse(TEXT, {**HEAD, "choices": [{"index": 0, "delta": {}, "odd": 1, "finish_reason": "stop", "usage": wire}]}),
        sse(TEXT, chunk({}, "stop", x_groq={"usage": wire})),
        sse(TEXT, chunk({}, "stop", usage=wire), chunk({}, usage={}), chunk({}, usage=None), chunk({}, odd=1, usage=5)),
        body({"content": "a"}, usage=wire),
    ]
    for raw in places:
        usage = read(raw).usage
        assert usage is not None
        assert wire == json.loads(usage.wire)
        assert expected == Usage(usage.input, usage.output, usage.reasoning, usage.cached, usage.cache_write)


def test_the_last_usage_counts() -> None:
    """Hosts that report a running count in every chunk mean the last, also after the finish; none is none."""
    running = [chunk({"content": "a"}, usage={"completion_tokens": count}) for count in range(5)]
    usage = read(sse(*running, chunk({}, "stop"), chunk({}, usage={"completion_tokens": 9}))).usage

    assert usage is not None
    assert (9, '{"completion_tokens":9}') == (usage.output, usage.wire)
    assert read(stream({"content": "a"})).usage is None


PLAIN = {"message": "no", "type": "t", "code": "c"}
ERRORS = [
    ("alone", {"error": PLAIN}, ("t", "c", "no")),
    ("with choices", chunk({"content": "b"}, "error", error=PLAIN), ("t", "c", "no")),
    ("in the choice", {"choices": [{"index": 0, "delta": {"content": "b"}, "error": PLAIN}]}, ("t", "c", "no")),
    ("a text", {"error": "no", "code": "c"}, ("", "c", "no")),
    ("a number as code", {"error": {"message": "no", "code": 502}}, ("", "502", "no")),
    ("without a message", {"error": {"x": 1}}, ("", "", '{"x":1}')),
    ("a message that is no text", {"error": {"message": {"x": 1}}}, ("", "", '{"x":1}')),
    ("vLLM", {"object": "error", "message": "no", "type": "t", "code": 400}, ("t", "400", "no")),
    ("FastAPI", {"detail": "no"}, ("", "", "no")),
]


@pytest.mark.parametrize(("name", "event", "expected"), ERRORS, ids=[case[0] for case in ERRORS])
def test_an_error_inside_a_stream_ends_it(name: str, event: dict[str, Any], expected: tuple[str, str, str]) -> None:
    """What came before it, and with it, is kept; the response is incomplete and the error is the provider's."""
    result = read(sse(TEXT, event, chunk({"content": "never"}), chunk({}, "stop")))

    assert expected == failure(result)
    assert not result.response.complete
    assert "a" + ("b" if event.get("choices") else "") == visible(result.blocks)
    assert expected == failure(read(json.dumps(event).encode()))


@pytest.mark.parametrize("error", [None, {}, "", False])
def test_an_error_key_that_says_nothing_is_no_error(error: object) -> None:
    """Some hosts send the key in every chunk."""
    assert read(sse(chunk({"content": "a"}, error=error), chunk({}, "stop", error=error))).response.complete


def test_a_sentence_in_place_of_a_path_belongs_to_the_message() -> None:
    """A host that puts what is wrong into ``param`` is understood; a path there is no part of the words."""
    missing = "The reasoning_content in the thinking mode must be passed back to the API."
    told = {"error": {"code": "400", "message": "Param Incorrect", "param": missing, "type": ""}}
    assert f"Param Incorrect: {missing}" == chunks.read_failure(400, told).message
    assert "m" == chunks.read_failure(400, {"error": {"message": "m", "param": "messages[0].content"}}).message


def test_what_a_router_passes_on_is_kept_apart() -> None:
    """The text of the provider behind a router is ``upstream``; a status in the body stands in for HTTP's."""
    routed = chunks.read_failure(200, {"error": {"message": "m", "code": 400, "metadata": {"raw": '{"e":1}'}}})
    bare = chunks.read_failure(200, {"message": "m", "code": 429})
    assert "m" == chunks.read_failure(400, [{"error": {"message": "m"}}]).message

    assert Failure("m", 200, code="400", upstream='{"e":1}') == routed
    assert Failure("m", 429, code="429") == bare
    assert Failure("m", 500, code="429") == chunks.read_failure(500, {"message": "m", "code": 429})
    assert Failure("[1]", 500) == chunks.read_failure(500, [1])
    assert Failure("busy", 503) == chunks.read_failure(503, "busy")


def test_a_stream_cut_anywhere_gives_what_arrived() -> None:
    """At each place: a prefix of the text, no exception, and an error that says it was cut, until the finish came."""
    raw = sse(*(chunk({"content": text}) for text in ("Hel", "lo ", "wor", "ld")), chunk({}, "stop"))
    finished = raw.index(b'"stop"')
    for at in range(len(raw)):
        _, result = feed([raw[:at]])

        assert "Hello world".startswith(content(result.blocks))
        if at < finished:
            assert not result.response.complete
            assert "truncated" == failure(result)[0]
            assert failure(result)[2].startswith("the stream ended ")


def test_a_cut_after_the_finish_loses_nothing() -> None:
    """The rest of a response that had finished was only usage."""
    raw = sse(TEXT, chunk({}, "stop"), done=False) + b'data: {"id":"c1","usa'

    assert read(raw).response.complete


MALFORMED = [
    ("half an object", b'{"choices":[{"delta":{"content":"b'),
    ("no JSON", b"<html>"),
    ("no object", b"[1]"),
    ("bad UTF-8", b'{"x":"\xff"}'),
    ("no word", b'{"x":nan}'),
    ("too deep", b'{"x":' + b"[" * 200 + b"]" * 200 + b"}"),
    ("far too deep", b"[" * 100_000),
]


@pytest.mark.parametrize(("name", "event"), MALFORMED, ids=[case[0] for case in MALFORMED])
def test_a_malformed_event_ends_the_stream(name: str, event: bytes) -> None:
    """What came before stays, what comes after is not read, and the error says that it was malformed."""
    _, result = feed(cuts(sse(TEXT, event, chunk({"content": "c"}), chunk({}, "stop")), 1))

    assert "a" == visible(result.blocks)
    assert "malformed" == failure(result)[0]


@pytest.mark.parametrize(("name", "raw"), MALFORMED, ids=[case[0] for case in MALFORMED])
def test_a_malformed_body_is_an_error(name: str, raw: bytes) -> None:
    """A body that is not streamed fails as a whole."""
    _, result = feed([raw], "json")

    assert ((), "malformed") == (result.blocks, failure(result)[0])


def test_empty_bodies_are_truncated() -> None:
    """A body of nothing is an error in each framing."""
    assert ["truncated"] * 3 == [failure(feed([b""], framing)[1])[0] for framing in ("sse", "ndjson", "json")]


def test_a_body_without_choices_is_malformed_and_one_with_none_is_empty() -> None:
    """No list of choices is no completion; an empty list is one that says nothing."""
    assert "malformed" == failure(read(b'{"x":1}'))[0]
    assert read(b'{"choices":[]}').response.complete


def test_events_that_say_nothing_are_passed_over() -> None:
    """Keep-alives, blank data, null choices, null deltas and odd choices change nothing."""
    events: list[Any] = [
        b" ",
        {"choices": None},
        {"choices": []},
        {"choices": [{"delta": None}]},
        {"choices": [{"index": None, "delta": {"content": "b"}}]},
        {"choices": [None, 1, {"delta": 5, "index": 0, "odd": 1}]},
        {"id": 7, "model": ["x"], "choices": {}},
    ]
    result = read(b": ping\n\n" + sse(TEXT, *events, chunk({}, "stop")))

    assert ("ab", True, "c1") == (visible(result.blocks), result.response.complete, result.response.id)
    assert "7" == read(sse(events[-1])).response.id


def test_only_the_first_choice_is_read() -> None:
    """Further choices were not asked for."""
    both = [{"index": 1, "delta": {"content": "x"}, "finish_reason": "length"}, {"index": 0, "delta": {"content": "a"}}]

    for odd in ({}, {"odd": 1}):
        result = read(sse({**HEAD, **odd, "choices": both}, chunk({}, "stop")))
        assert ("a", "stop") == (visible(result.blocks), result.response.finish)


def test_lines_of_json_are_read_like_events() -> None:
    """The same chunks, one a line."""
    lines = b"\n".join(json.dumps(event).encode() for event in (TEXT, chunk({"content": "b"}), chunk({}, "stop")))

    assert "ab" == visible(feed([lines], "ndjson")[1].blocks)


def test_the_envelope_is_kept() -> None:
    """Fields that no block owns, of the first, the finishing and the last usage chunk, and of every odd one."""
    result = read(
        sse(
            chunk({"content": "a"}, system_fingerprint="fp", service_tier="x"),
            chunk({"content": "a"}, odd={"b": 1, "a": 2}),
            chunk({"content": "a"}, odd={"a": 3}, note=None),
            {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "native_finish_reason": "end"}]},
            {**HEAD, "choices": [], "service_tier": "y", "usage": {"prompt_tokens": 1}},
        )
    )
    envelope = json.loads(result.response.envelope)

    assert {
        **HEAD,
        "system_fingerprint": "fp",
        "service_tier": "y",
        "odd": {"a": 3},
        "note": None,
        "choice": {"native_finish_reason": "end"},
    } == envelope


def test_the_envelope_of_a_whole_body() -> None:
    """The same for a body that is not streamed, without usage and error."""
    raw = body({"content": "a"}, system_fingerprint="fp", usage={"prompt_tokens": 1}, error=None)

    assert {"id": "c1", "model": "served", "system_fingerprint": "fp"} == json.loads(read(raw).response.envelope)
    assert "" == feed([b""])[1].response.envelope


def test_logprobs_are_kept_whole() -> None:
    """They come in pieces, beside the text, in ordinary and in odd chunks."""
    pieces: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": [{"token": text}]}}]}
        for text in "aab"
    ]
    pieces[1]["choices"][0]["logprobs"]["refusal"] = None
    logprobs = {"content": [{"token": "a"}, {"token": "a"}, {"token": "b"}]}

    odd = {"choices": [{"index": 0, "delta": {}, "logprobs": None, "odd": 1}]}
    assert {"logprobs": logprobs, "odd": 1} == json.loads(read(sse(*pieces, odd)).response.envelope)["choice"]


def test_a_failure_of_the_connection_is_the_error_unless_the_provider_gave_one() -> None:
    """The first failure stays, and nothing that comes after it is read."""
    broken = Reader(ORIGIN)
    broken.feed(sse(TEXT, done=False))
    broken.fail(Failure("reset", type="network"))
    assert [] == broken.feed(sse(TEXT))
    broken.close()
    assert ("network", "a") == (failure(broken.result())[0], visible(broken.result().blocks))

    late = Reader(ORIGIN)
    late.feed(sse({"error": PLAIN}))
    late.close()
    late.fail(Failure("reset", type="network"))
    assert "t" == failure(late.result())[0]

    cut = Reader(ORIGIN)
    cut.feed(b'data: {"cho')
    cut.close()
    cut.fail(Failure("reset", type="network"))
    assert "network" == failure(cut.result())[0]
