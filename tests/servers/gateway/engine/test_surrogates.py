"""A letter that comes as two halves, in two pieces, is one letter wherever a response is written anew."""

from __future__ import annotations

import json

import pytest

from tests.servers.gateway.harness.answers import FRONTS, answer, request
from tests.servers.gateway.harness.engines import SSE, Kept, Plays, ask, engine

PLACES = {
    "deepseek": "http://deepseek.test/v1",
    "anthropic": "http://claude.test",
    "openai": "http://openai.test/v1",
    "gemini": "http://gemini.test/v1beta",
}


def said(kept: Kept, stream: bool) -> str:
    """All that the client was given, escapes read; it may hold lone halves."""
    documents = kept.events if stream else [kept.json]
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in documents)


@pytest.mark.parametrize("upstream", FRONTS)
@pytest.mark.parametrize("front", FRONTS)
def test_a_pair_that_came_in_two_pieces_is_one_letter(front: str, upstream: str) -> None:
    """Where the response is written anew, a client sees the letter, and never its halves."""
    if front == upstream:
        return
    body = answer(upstream, ["so \ud83d", "\ude00"], ["Hi \ud83d", "\ude00!"], True)
    made = engine(Plays(lambda _: (200, SSE, [body])), PLACES)
    asked, model, streams = request(front, upstream, True)
    kept = ask(made, front, asked, model=model, streams=streams)

    assert (200, "") == (kept.status, kept.notes.report.failure)
    assert [False, False] == [half in said(kept, True) for half in ("\ud83d", "\ude00")]
    assert "\U0001f600" in said(kept, True)
