"""What a provider shows in place of reasoning reaches no client of another dialect; one of its own has what came."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.servers.gateway.engine.test_surrogates import PLACES, said
from tests.servers.gateway.harness.answers import FRONTS, answer, request
from tests.servers.gateway.harness.engines import JSON, SSE, Plays, ask, engine

PIECES = ["Think", "ing... Thinking", "...", " "]


def told(front: str, upstream: str, thought: Sequence[str], stream: bool) -> str:
    """All that a client is given of a response with these pieces of reasoning."""
    body = answer(upstream, list(thought), ["Hi"], stream)
    made = engine(Plays(lambda _: (200, SSE if stream else JSON, [body])), PLACES)
    asked, model, streams = request(front, upstream, stream)
    kept = ask(made, front, asked, model=model, streams=streams)
    assert (200, "") == (kept.status, kept.notes.report.failure)
    return said(kept, stream)


def _is_kept(given: str) -> bool:
    """Whether there is state of the gateway's in it, as a text or in base64."""
    return "tb1." in given or "dGIx" in given


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("upstream", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("front", FRONTS)
def test_placeholders_stay_behind(front: str, upstream: str, stream: bool) -> None:
    """With a thought behind them, and alone."""
    for thought in (["I weigh", " it."], []):
        given = told(front, upstream, [*PIECES, *thought], stream)

        assert bool(thought) == ("weigh" in given)
        # Reasoning that cannot be read is kept by clients; a placeholder alone is none.
        assert (front == upstream) or (bool(thought) or upstream == "openai-responses") == _is_kept(given)
        assert (front == upstream) == (PIECES[1] in given) == ("Think" in given)
