"""The benches measure what they say: right answers, the recipe's bytes, cases that take turns."""

from __future__ import annotations

import json
import random
from functools import partial

import pytest

from bench import __main__ as runner
from bench import conversation, ingest, search, tags
from bench.measure import Figure, Samples, interleaved, timed
from bench.plan import DROPS, KEEPS, encoded, first
from bench.start import spawned
from bench.streams import stream
from thinkback.log.protocol import Query
from thinkback.turn.plan import History


def test_stream_comes_out_as_the_recipe_made_it() -> None:
    """The timed reader gives back every word; the chunks are as large as those of the published figures."""
    given = stream(80)
    ingest.check(given)
    assert 80 + 20 + 22 + 2 == given.chunks
    assert 250 < len(given.body) / given.chunks < 350


@pytest.mark.parametrize(("place", "carried"), [(KEEPS, 10), (DROPS, 0)])
def test_plan_carries_the_reasoning_its_figure_counts(place: tuple[str, str], carried: int) -> None:
    """One target keeps all reasoning, the other none, and the limit joins to the same bytes."""
    at = conversation.place(*place)
    log = conversation.commits(at, 20)
    body = first(at, log)
    messages = json.loads(body)["messages"]
    assert 21 == len(messages)
    assert carried == sum("reasoning_content" in message for message in messages)
    assert body == b",".join(encoded(at.plan(History(log)).messages, body))
    assert body == first(at, conversation.light_commits(at, 20))


@pytest.mark.parametrize("cut", [1, 2, 7, 24])
def test_splitter_and_its_baseline_find_the_same_reasoning(cut: int) -> None:
    """At any cut, with false starts inside and outside."""
    text = tags.content(20_000)
    pieces = [text[at : at + cut] for at in range(0, len(text), cut)]
    assert tags.find([text]) == tags.split(pieces) == tags.find(pieces)


def test_cases_take_turns_and_ratios_are_per_round() -> None:
    """One sample of each case per round; a median of ratios, not a ratio of medians."""
    order: list[str] = []
    samples = interleaved({name: timed(partial(order.append, name)) for name in "ab"}, rounds=4)
    assert sorted("ab" * 5) == sorted(order)
    assert {"a": 4, "b": 4} == {name: len(seconds) for name, seconds in samples.seconds.items()}
    assert 2.0 == Samples({"a": [2, 20, 4], "b": [1, 10, 1]}).ratio("a", "b").value


def test_process_that_fails_is_no_figure() -> None:
    """A crash must not count as a fast start."""
    with pytest.raises(RuntimeError, match="status 1"):
        spawned(["/bin/sh", "-c", "exit 1"], {})()


def test_missed_aim_is_printed_as_short() -> None:
    """The row says so, and what was measured and what was not."""
    assert "short" in runner.row(Figure("a", 1.5, "ms", limit_ratio=4.0, aim="<= 3x", met=False))
    assert " - " in runner.row(Figure("b", None, "ms"))


def test_search_finds_the_phrases_it_measures() -> None:
    """Samples are of the log, so that a page of a phrase has at least the block that it is from."""
    log = search.built(200)
    chance = random.Random(1)
    queries = [search.KINDS["phrase"](log, chance) for _ in range(20)]
    assert all(log.store.search.find(query) for query in queries)
    assert 200 == len(log.store.search.find(Query(kinds=("reasoning",), limit=999)))
    assert log.log < log.whole
