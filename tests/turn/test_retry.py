"""Sending again: when, after how long, and when not."""

from __future__ import annotations

import pytest

from tests.turn.playbook import (
    ANSWER,
    NOW,
    Playbook,
    answers,
    begins,
    breaks,
    brings,
    ends,
    fires,
    gives,
    keeps,
    refuses,
    runs,
    said,
    sends,
    status,
    waits,
)
from thinkback.errors import NetworkError, PhaseTimeout, ProviderError
from thinkback.turn.retry import RETRYABLE, asked_for, backoff, is_retryable


@pytest.mark.parametrize("code", sorted(RETRYABLE))
def test_status_that_may_pass_is_retried(code: int) -> None:
    """Busy and broken servers are asked again after a while."""
    play = Playbook() >> begins << keeps("user") << sends >> refuses(code, "busy") << waits(0.375) >> fires << sends
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    assert ["sending", "retrying", "sending"] == play.statuses


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 413, 418, 451, 501])
def test_other_status_is_not_retried(code: int) -> None:
    """What would fail again is told at once."""
    assert not is_retryable(code)
    play = Playbook() >> begins << keeps("user") << sends >> refuses(code)
    play << keeps("request failed") << ends("failed", ProviderError)


def test_pauses_double_and_end() -> None:
    """Three retries by default, each after twice the time; then the provider's own words."""
    play = Playbook() >> begins << keeps("user") << sends
    for seconds in (0.375, 0.75, 1.5):
        play >> refuses(503, "overloaded") << waits(seconds) >> fires << sends
    play >> refuses(503, "overloaded") << keeps("request failed") << ends("failed", ProviderError)
    assert play.outcome is not None
    assert "overloaded" in str(play.outcome.error)


def test_server_names_the_pause() -> None:
    """``retry-after`` is obeyed as it is said."""
    play = Playbook() >> begins << keeps("user") << sends >> refuses(429, retry_after="0") << waits(0) >> fires << sends
    play >> refuses(429, retry_after="7.5") << waits(7.5)


def test_server_that_asks_for_long_is_not_waited_for() -> None:
    """More than two minutes is better told to the caller."""
    play = Playbook() >> begins << keeps("user") << sends >> refuses(429, "later", retry_after="3600")
    play << keeps("request failed") << ends("failed", ProviderError)


def test_connection_that_failed_is_tried_again() -> None:
    """A lost connection or a time-out before the first byte is no reason to give up."""
    for phase in ("network", "connect", "first_byte", "idle"):
        play = Playbook(max_retries=1) >> begins << keeps("user") << sends
        (
            play
            >> breaks(phase)
            << waits(0.375)
            >> fires
            << sends
            >> breaks(phase)
            << keeps(f"request {'failed' if phase == 'network' else 'timed_out'}")
        )
        error = NetworkError if phase == "network" else PhaseTimeout
        play << ends("failed" if phase == "network" else "timed_out", error)


def test_head_alone_is_no_first_byte() -> None:
    """After the status, but before the body, the request may still be sent again."""
    play = Playbook() >> begins << keeps("user") << sends >> status(200) >> brings(b"") >> breaks() << waits(0.375)
    play >> fires << sends


def test_nothing_is_sent_again_after_the_first_byte() -> None:
    """One byte of a body is enough: what was paid for is not asked for twice."""
    play = Playbook() >> begins << keeps("user") << sends >> status(200) >> brings(b"d") >> breaks()
    play << keeps("request response failed") << ends("failed", NetworkError)


def test_time_for_the_whole_request_is_not_spent_twice() -> None:
    """The total time-out ends the turn also before the first byte."""
    play = Playbook() >> begins << keeps("user") << sends >> breaks("total") << keeps("request timed_out")
    play << ends("timed_out", PhaseTimeout)


def test_failure_that_would_come_again_is_not_retried() -> None:
    """A certificate that is not trusted today is not trusted in a second."""
    play = Playbook() >> begins << keeps("user") << sends >> breaks(permanent=True) << keeps("request failed")
    play << ends("failed", NetworkError)


def test_error_body_that_breaks_off_still_says_no() -> None:
    """The status was read: it counts, not the lost end of its text."""
    play = Playbook() >> begins << keeps("user") << sends >> status(401) >> brings(b'{"error":{"mess') >> breaks()
    play << keeps("request failed") << ends("failed", ProviderError)


def test_retries_count_anew_for_each_response() -> None:
    """A turn of many steps is not worn out by one bad minute."""
    play = Playbook(max_retries=1, runnable=frozenset({"look"})) >> begins << keeps("user") << sends
    play >> refuses(500) << waits(0.375) >> fires << sends >> answers(said("", "Hm.", "look-1"))
    play << keeps("request response reasoning tool_call")
    play << runs("look") >> gives("look-1") << keeps("result") << sends >> refuses(500) << waits(0.375)


def test_headers_of_one_attempt_do_not_reach_the_next() -> None:
    """A pause that was named for one refusal is not taken for a lost connection after it."""
    play = Playbook() >> begins << keeps("user") << sends >> refuses(429, retry_after="60") << waits(60) >> fires
    play << sends >> breaks() << waits(0.75)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "inf"}, float("inf")),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "Mon, 02 Feb 2026 02:40:10 GMT"}, 10.0),
        ({"retry-after": "Mon, 02 Feb 2026 02:39:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds or a date; what is none of these says nothing."""
    assert seconds == asked_for(headers, NOW)


def test_pause_has_a_limit() -> None:
    """Doubling ends at half a minute, and chance only shortens it."""
    assert 30.0 == backoff(20, {}, NOW, 1.0)
    assert 15.0 == backoff(20, {}, NOW, 0.0)
    assert backoff(1, {"retry-after": "121"}, NOW, 0.0) is None
