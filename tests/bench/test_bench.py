"""The benches measure what they say: right answers, the recipe's bytes, cases that take turns."""

from __future__ import annotations

import json
import random
from functools import partial
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import __main__ as runner
from bench import branching, conversation, draw, growth, ingest, logs, search, size, tags
from bench.measure import Figure, Samples, interleaved, timed
from bench.plan import DROPS, KEEPS, encoded, first
from bench.start import spawned
from bench.streams import stream
from thinkback.log.protocol import Query
from thinkback.log.seal import head_of
from thinkback.stores import open_store
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


def test_branch_of_forks_of_forks_is_the_branch_in_one_segment() -> None:
    """What is read through all segments is what the limit scans, and every fork left the one before it a turn back."""
    log = branching.forked(600)
    store, plain = open_store(log.log), open_store(log.plain)
    commits = store.read(log.session)
    assert (20, len(commits)) == (log.segments, log.commits)
    assert commits == plain.read(branching.STRAIGHT)
    assert 20 == len(store.list_sessions())
    on_branch = {head_of(commits[:at]) for at in range(len(commits) + 1)}
    assert 1 == sum(session.head in on_branch for session in store.list_sessions())
    plain.close()
    store.close()


def test_turn_that_is_timed_is_stored() -> None:
    """The conversation goes on: what was stored is what the next request is planned from."""
    going = growth.Going(200)
    before = going._history.head.seq
    assert going.sample() > 0
    assert before + 7 == going._history.head.seq == going._store.read(going._session)[-1].seq
    going.close()


def test_size_is_against_the_messages_of_the_same_conversation() -> None:
    """The raw JSON has the reasoning, the index adds to the file, and a fork takes less than a commit."""
    weight = size.chat(600)
    turns = weight.commits // 7
    assert 1_000 * turns < weight.raw < 1_500 * turns
    assert weight.raw < weight.log < weight.whole
    assert weight.fork < weight.log / weight.commits


def test_peers_are_given_the_same_texts() -> None:
    """A turn's question, reasoning and answer, of the recipe's sizes."""
    given = [logs.exchange(turn) for turn in islice(conversation.turns(conversation.place(*KEEPS)), 3)]
    assert [(200, 600, 200)] * 3 == [tuple(map(len, texts)) for texts in given]


def test_peers_that_are_not_installed_are_skipped_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing to compare with is neither met nor short."""
    monkeypatch.setattr(logs, "PYTHON", tmp_path / "python")
    figure = logs._rate("own", True)
    assert (None, None) == (figure.value, figure.met)
    assert "make peers" in figure.note


def test_picture_shows_every_figure_with_its_unit() -> None:
    """Each curve has a mark for each size and a name; both axes say what they count, in light and dark."""
    names = ("append", "plan", "counts", "fork", "search", "read", "scan", "decoded", "raw", "log", "whole")
    points = [{"commits": commits, **dict.fromkeys(names, commits / 1_000)} for commits in (100, 1_000, 10_000)]
    points.append({"commits": 100_000, "plan": 0.1})
    text = draw.drawn(points)
    picture = ElementTree.fromstring(text)
    texts = ["".join(each.itertext()) for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    curves = [name for panel in draw.PANELS for name in panel.series.values()]
    assert set(curves) < set(texts)
    assert {"commits on the branch", "milliseconds", "megabytes", "1,000"} < set(texts)
    assert 3 * len(curves) + 1 == text.count("<circle")
    assert "prefers-color-scheme: dark" in text
