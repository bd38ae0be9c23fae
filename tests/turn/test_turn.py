"""The turn from its opening to each terminal state."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.turn.playbook import (
    ANSWER,
    CALLS,
    ENDPOINT,
    KEY,
    Playbook,
    answers,
    begins,
    breaks,
    brings,
    call,
    chunk,
    closes,
    commits_of,
    ends,
    gives,
    keeps,
    refuses,
    runs,
    said,
    sends,
    status,
    stored,
    stored_after,
    stores,
    target,
    thought,
    word,
)
from tests.turn.test_credentials import Signs
from thinkback.errors import NetworkError, PhaseTimeout, ProviderError, ReplayRefused, UnknownModelError
from thinkback.model.blocks import Text
from thinkback.model.commits import Draft, Message, Request, Response, Tool, TurnEnded
from thinkback.model.deltas import ReasoningDelta, TextDelta
from thinkback.model.target import Settings
from thinkback.turn import events
from thinkback.turn.plan import History, Plan


def test_answered_question_is_completed() -> None:
    """A question is stored, sent, answered and stored; deltas are shown on the way."""
    play = Playbook("Why?") >> begins << keeps("user") << sends
    play >> answers(thought("Hm."), word("42"), chunk("stop")) << keeps(ANSWER) << ends("completed")
    assert [("user", "Why?")] == play.texts
    assert [ReasoningDelta("Hm.", 0, play.waiting), TextDelta("42", 1, play.waiting)] == play.shown[1:]
    assert ["user", "request", "response", "reasoning", "assistant", "turn_ended"] == play.kinds


def test_append_is_answered_before_done() -> None:
    """While the response is not stored the turn is not over."""
    play = Playbook() >> begins << keeps("user") << sends >> answers(said("42", "Hm.")) << stores(ANSWER)
    play.nothing()
    play >> stored << ends("completed")


def test_append_is_answered_before_tools_run() -> None:
    """While the response with the calls is not stored, none of them runs."""
    play = Playbook(runnable=frozenset({"look"})) >> begins << keeps("user") << sends
    play >> answers(said("", "Hm.", "look-1")) << stores(CALLS)
    play.nothing()
    play >> stored << runs("look")


def test_question_is_stored_before_it_is_sent() -> None:
    """Nothing goes out for a message that is not in the log."""
    play = Playbook() >> begins << stores("user")
    play.nothing()
    play >> stored << sends


def test_usage_is_stored_with_its_response() -> None:
    """The provider's counts are part of the same step."""
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5}}\n\n'
    play = Playbook() >> begins << keeps("user") << sends >> answers(word("42"), chunk("stop"), usage)
    play << keeps("request response assistant provider_usage completed") << ends("completed")


def test_whole_body_is_read_like_a_stream() -> None:
    """Without streaming the body is one JSON document."""
    body = {
        "choices": [{"index": 0, "message": {"content": "42", "reasoning_content": "Hm."}, "finish_reason": "stop"}]
    }
    play = Playbook(params={}) >> begins << keeps("user") << sends
    play >> answers(json.dumps(body).encode(), kind="application/json") << keeps(ANSWER) << ends("completed")
    assert not play.plans[0].streams


def test_pieces_cut_anywhere_without_a_content_type_are_one_response() -> None:
    """The framing is guessed from enough of the body, wherever the first pieces end."""
    stream = said("42", "Hm.")
    for size in (1, 2, 3, 7):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        play = Playbook() >> begins << keeps("user") << sends >> answers(*pieces, kind="")
        play << keeps(ANSWER) << ends("completed")


def test_short_body_without_a_content_type_is_read_at_its_end() -> None:
    """A body too short to tell what it is ends as what its bytes say."""
    play = Playbook() >> begins << keeps("user") << sends >> answers(b"{", kind="")
    play << keeps("request response failed") << ends("failed", ProviderError)


def test_empty_piece_is_no_first_byte() -> None:
    """A transport may give empty pieces; they mean nothing."""
    play = (
        Playbook() >> begins << keeps("user") << sends >> status(200) >> brings(b"", said("42", "Hm."), b"") >> closes
    )
    play << keeps(ANSWER) << ends("completed")


def test_empty_body_is_a_failure() -> None:
    """HTTP 200 without a body brings nothing that could be a response."""
    play = Playbook() >> begins << keeps("user") << sends >> answers()
    play << keeps("request response failed") << ends("failed", NetworkError)


def test_stream_without_its_end_is_partial() -> None:
    """A body that ends in good order before the response was finished keeps what arrived, marked incomplete."""
    play = Playbook() >> begins << keeps("user") << sends >> answers(thought("Hm."), word("4"))
    play << keeps("request response reasoning assistant partial_failed") << ends("partial_failed", NetworkError)
    assert not _response(play).complete


def test_stream_without_done_is_completed() -> None:
    """The finish reason is enough; some hosts leave the last marker out."""
    play = Playbook() >> begins << keeps("user") << sends >> answers(thought("Hm."), word("42"), chunk("stop"))
    play << keeps(ANSWER) << ends("completed")


def test_cut_connection_is_partial() -> None:
    """After the first byte a lost connection ends the turn; nothing is sent again."""
    play = Playbook() >> begins << keeps("user") << sends >> status(200) >> brings(thought("Hm."), word("4"))
    play >> breaks() << keeps("request response reasoning assistant partial_failed")
    play << ends("partial_failed", NetworkError)
    assert play.outcome is not None
    assert play.outcome.error is not None
    assert "network trouble" in str(play.outcome.error)


def test_connection_cut_after_the_finish_reason_is_no_loss() -> None:
    """What says why it finished is whole; only the trailer is missing."""
    play = Playbook() >> begins << keeps("user") << sends >> status(200)
    play >> brings(thought("Hm."), word("42"), chunk("stop")) >> breaks() << keeps(ANSWER) << ends("completed")
    assert _response(play).complete


def test_half_a_trailer_is_no_loss() -> None:
    """A connection cut within what follows the finish reason: the response is whole, the trailer is not missed."""
    play = Playbook() >> begins << keeps("user") << sends >> status(200)
    play >> brings(thought("Hm."), word("42"), chunk("stop"), b'data: {"choices":[],"usa') >> breaks()
    play << keeps(ANSWER) << ends("completed")


def test_error_behind_the_finish_reason_still_counts() -> None:
    """An error event is the provider's word, wherever it comes."""
    error = b'data: {"error":{"message":"moderated"}}\n\n'
    play = Playbook() >> begins << keeps("user") << sends >> status(200)
    play >> brings(word("42"), chunk("stop"), error) >> breaks()
    play << keeps("request response assistant partial_failed") << ends("partial_failed", ProviderError)


def test_silence_within_the_body_is_timed_out() -> None:
    """An idle or total time-out after the first byte keeps what arrived."""
    for phase in ("idle", "total"):
        play = Playbook() >> begins << keeps("user") << sends >> status(200) >> brings(thought("Hm."))
        play >> breaks("idle" if phase == "idle" else "total") << keeps("request response reasoning timed_out")
        play << ends("timed_out", PhaseTimeout)
        assert play.outcome is not None
        assert isinstance(play.outcome.error, PhaseTimeout)
        assert {"phase": phase, "partial": True} == play.outcome.error.details


def test_error_in_the_stream_is_partial() -> None:
    """An error event inside HTTP 200 ends the response with what came before it."""
    error = b'data: {"error":{"message":"overloaded","code":"busy"}}\n\n'
    play = Playbook() >> begins << keeps("user") << sends >> answers(thought("Hm."), error)
    play << keeps("request response reasoning partial_failed") << ends("partial_failed", ProviderError)
    assert play.outcome is not None
    assert isinstance(play.outcome.error, ProviderError)
    assert ("overloaded", True) == (play.outcome.error.message, play.outcome.error.details["partial"])


def test_error_in_an_empty_stream_is_a_failure() -> None:
    """An error event before anything else leaves nothing that could be called partial."""
    play = Playbook() >> begins << keeps("user") << sends >> answers(b'data: {"error":{"message":"no"}}\n\n')
    play << keeps("request response failed") << ends("failed", ProviderError)


def test_malformed_stream_is_partial() -> None:
    """An event that is no JSON ends the response; what came before it stays."""
    play = Playbook() >> begins << keeps("user") << sends >> answers(thought("Hm."), b"data: {broken\n\n", word("4"))
    play << keeps("request response reasoning partial_failed") << ends("partial_failed", ProviderError)


def test_refusal_is_a_failure_with_the_providers_words() -> None:
    """A status that no retry can mend ends the turn; what was asked is on record for ``why``."""
    play = Playbook() >> begins << keeps("user") << sends >> refuses(404, "no such model")
    play << keeps("request failed") << ends("failed", UnknownModelError)
    assert play.outcome is not None
    assert isinstance(play.outcome.error, UnknownModelError)
    assert {
        "status": 404,
        "code": "no",
        "type": "refused",
        "provider_message": "no such model",
        "model": "thinker",
        "endpoint": "house",
    } == (play.outcome.error.details)
    assert "thinker" in play.outcome.error.next_actions[0]


@pytest.mark.parametrize(
    ("code", "advice"),
    [(401, "HOUSE_KEY"), (403, "HOUSE_KEY"), (302, "redirects are not followed"), (400, "session.why()")],
)
def test_refusal_says_what_to_do(code: int, advice: str) -> None:
    """Each kind of refusal has its own advice."""
    play = Playbook(max_retries=0) >> begins << keeps("user") << sends >> refuses(code)
    play << keeps("request failed") << ends("failed", ProviderError)
    assert play.outcome is not None
    assert advice in str(play.outcome.error)


def test_refusal_that_is_no_json_is_quoted() -> None:
    """A proxy's page is shown as text, nothing at all is said to be nothing."""
    for body, message in ((b"<h1>Bad gateway</h1>", "<h1>Bad gateway</h1>"), (b"", "no error text")):
        play = Playbook(max_retries=0) >> begins << keeps("user") << sends
        play >> answers(body, code=502, kind="text/html") << keeps("request failed") << ends("failed", ProviderError)
        assert play.outcome is not None
        assert f"house answered 502: {message}" in str(play.outcome.error)


def test_endless_error_body_is_cut() -> None:
    """An error text has an end, whatever the server sends."""
    play = Playbook() >> begins << keeps("user") << sends
    play >> answers(*[b"x" * 40_000] * 3, code=404, kind="text/plain") << keeps("request failed")
    play << ends("failed", ProviderError)
    assert play.outcome is not None
    assert f"house answered 404: {'x' * 4000}…" == str(play.outcome.error).partition("\n")[0]


def test_key_that_a_server_repeats_is_blotted_out() -> None:
    """Keys reach neither errors nor the log, also when the provider quotes them."""
    play = Playbook() >> begins << keeps("user") << sends >> refuses(401, f"Incorrect key: {KEY}")
    play << keeps("request failed") << ends("failed", ProviderError)
    error = f'data: {{"error":{{"message":"bad key {KEY}"}}}}\n\n'.encode()
    streamed = Playbook() >> begins << keeps("user") << sends >> answers(thought("Hm."), error)
    streamed << keeps("request response reasoning partial_failed") << ends("partial_failed", ProviderError)
    for told in (play, streamed):
        assert told.outcome is not None
        assert "***" in str(told.outcome.error)
        assert KEY not in str(told.outcome.error)
        assert KEY.encode() not in b"".join(commit.payload for commit in told.history.commits)


def test_cap_ends_a_turn_whose_calls_are_not_run() -> None:
    """At the cap the calls are left alone, and the next request leaves their response out."""
    play = Playbook(runnable=frozenset({"look"}), max_steps=2) >> begins << keeps("user") << sends
    play >> answers(said("", "Hm.", "look-1")) << keeps(CALLS) << runs("look")
    play >> gives("look-1") << keeps("result") << sends
    play >> answers(said("", "More.", "look-2")) << keeps("request response reasoning tool_call capped")
    play << ends("capped")
    following = Playbook("Go on.", history=play.history) >> begins << keeps("user") << sends
    assert ["user", "assistant", "tool", "user"] == [role for role, _ in following.texts]


def test_plan_that_is_refused_fails_the_turn() -> None:
    """What the endpoint demands and may not get is refused before the network."""

    def refuse() -> Plan:
        raise ReplayRefused("block x may not go")

    play = Playbook(plan=refuse) >> begins << keeps("user") << keeps("failed") << ends("failed", ReplayRefused)
    assert "block x may not go" == _ended(play).reason


def test_plan_that_crashes_fails_the_turn_without_its_words_in_the_log() -> None:
    """A foreign exception ends the turn; its text may hold anything and stays out of the log."""

    def crash() -> Plan:
        raise ValueError(KEY)

    play = Playbook(plan=crash) >> begins << keeps("user") << keeps("failed") << ends("failed", ValueError)
    assert "ValueError" == _ended(play).reason


def test_system_and_tools_are_appended_when_they_change() -> None:
    """A change is a commit; the same again is none."""
    tools = (Tool("look"),)
    play = Playbook(system="Be brief.", tools=tools) >> begins << keeps("system tools user") << sends
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    again = Playbook("And?", history=play.history, system="Be brief.", tools=tools) >> begins << keeps("user") << sends
    again >> answers(said("43", "Hm.")) << keeps(ANSWER) << ends("completed")
    other = Playbook("And?", history=play.history, system="Be long.", tools=()) >> begins << keeps("system tools user")
    other << sends
    assert ["system", "user", "assistant", "user", "assistant", "system", "user"] == [role for role, _ in other.texts]
    assert () == other.plans[0].tools


def test_going_on_without_a_message_sends_what_is_in_the_log() -> None:
    """Nothing is stored before the request."""
    play = Playbook(None, log=[Draft("user", Message("Why?"))]) >> begins << sends
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    assert [("user", "Why?")] == play.texts


def test_another_writer_in_between_is_taken_in() -> None:
    """Commits that were stored first stand before ours in the next request."""
    play = Playbook("Ours?") >> begins << stores("user") >> stored_after(Draft("user", Message("Theirs?"))) << sends
    assert [("user", "Theirs?"), ("user", "Ours?")] == play.texts


def test_events_of_other_requests_are_ignored() -> None:
    """A late piece, close, error, timer or answer of something that is over changes nothing."""
    play = Playbook() >> begins << keeps("user") << sends
    old = play.waiting
    play >> refuses(429)
    play._queue.clear()
    for event in (
        events.Head(old, 200, {}, 0),
        events.Bytes(old, said("late"), 0),
        events.Closed(old, 0),
        events.NetError(old, "late", "network", 0),
        events.Fired("never", 0),
        events.Appended("never", (), 0),
        events.ToolDone("never", "late", False, 0),
    ):
        play.tell(event)
        play.nothing()
    assert [] == play.turn.feed(events.Bytes(old, said("late"), 0))


def test_events_after_the_end_are_ignored() -> None:
    """A turn that is over stays over."""
    play = Playbook() >> begins << keeps("user") << sends >> answers(said("42", "Hm.")) << keeps(ANSWER)
    play << ends("completed") >> closes >> breaks()
    play.nothing()


def test_request_record_holds_what_was_asked_for_and_no_key() -> None:
    """Target, parameters as the caller gave them, and digests; never a header."""
    play = Playbook(params={"stream": True, "seed": 7}) >> begins << keeps("user") << sends
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    record = next(commit for commit in play.history.commits if isinstance(commit.value, Request))
    assert isinstance(record.value, Request)
    assert {"stream": True, "seed": 7} == json.loads(record.value.params)
    assert KEY.encode() not in record.payload
    assert record.value.head == play.history.commits[0].hash


def test_calls_and_their_response_are_tied() -> None:
    """Every block of a response names it, its request too."""
    play = Playbook() >> begins << keeps("user") << sends >> answers(thought("Hm."), call("a", "look"), chunk("stop"))
    play << keeps(CALLS) << ends(None)
    assert {play.waiting} == {commit.response for commit in play.history.commits[1:]}
    assert [-1, -1, 0, 1] == [commit.index for commit in play.history.commits[1:]]


def _response(play: Playbook) -> Response:
    found = [commit.value for commit in play.history.commits if isinstance(commit.value, Response)]
    return found[-1]


def _ended(play: Playbook) -> TurnEnded:
    value = play.history.commits[-1].value
    assert isinstance(value, TurnEnded)
    return value


PAUSED = (
    b'{"type":"message","id":"m1","role":"assistant","model":"thinker","stop_reason":"pause_turn",'
    b'"content":[{"type":"text","text":"Searching."}],"usage":{"input_tokens":1,"output_tokens":2}}'
)


@pytest.mark.parametrize(("most", "state"), [(2, None), (1, "capped")])
def test_a_response_that_only_pauses_is_sent_back(most: int, state: str | None) -> None:
    """The model goes on where it stopped, as often as the cap lets it."""
    at = target(endpoint=msgspec.structs.replace(ENDPOINT, dialect="anthropic"))
    play = Playbook(at=at, max_steps=most) >> begins << keeps("user") << sends
    play >> answers(PAUSED, kind="application/json")
    if state is None:
        play << keeps("request response assistant provider_usage") << sends
        assert 2 == len(play.plans[-1].messages)
    else:
        play << keeps("request response assistant provider_usage capped") << ends("capped")


def test_reasoning_that_comes_in_strict_mode_fails_the_turn() -> None:
    """It is stored as it came, and the outcome says what to change."""
    at = target(endpoint=msgspec.structs.replace(ENDPOINT, strict=True))
    play = Playbook(at=at) >> begins << keeps("user") << sends >> answers(said("42", "Hm."))
    play << keeps("request response reasoning assistant partial_failed") << ends("partial_failed", ProviderError)
    assert play.outcome is not None
    assert "reasoning.strict refuses it" in str(play.outcome.error)


def test_a_refused_sign_in_is_told_of() -> None:
    """Where a token is fetched no key can be wrong: what signs in is to be checked."""

    def signed() -> Plan:
        made = History(commits_of([Draft("user", Message("Why?"))])).plan(target(), Settings(), None, {})
        return msgspec.structs.replace(made, authenticator=Signs())

    play = Playbook(plan=signed) >> begins << keeps("user") << sends >> refuses(401, "who are you?")
    play << keeps("request failed") << ends("failed", ProviderError)
    assert play.outcome is not None
    assert isinstance(play.outcome.error, ProviderError)
    assert ("check what bearer signs in as, and what that may use",) == play.outcome.error.next_actions


def test_what_came_so_far_can_be_looked_at() -> None:
    """While a response arrives its blocks are there as far as they have come, whatever tells how it is framed."""
    play = Playbook() >> begins << keeps("user") << sends
    exchange = play.turn.exchange
    assert exchange is not None
    before = exchange.block(0)
    request = exchange.response
    play.turn.on(events.Head(request, 200, {}, 0))
    play.turn.on(events.Bytes(request, b"dat", 0))
    undecided = exchange.block(0)
    shown = play.turn.feed(events.Bytes(request, b'a: {"choices":[{"index":0,"delta":{"content":"4"}}]}\n\n', 0))

    assert (None, None, Text("4")) == (before, undecided, exchange.block(0))
    assert [TextDelta("4", 0, request)] == shown
