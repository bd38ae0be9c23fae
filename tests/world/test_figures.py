"""One session has one set of figures: wherever it is shown, input, output, reasoning and turns are the same."""

from __future__ import annotations

from typing import Any

import pytest

import thinkback
from tests.cli.conftest import Inside
from tests.world.clients import KEY
from tests.world.mind import Mood
from tests.world.server import PLACES, Place, World
from thinkback.servers.mcp import reading
from thinkback.servers.viewer.numbers import Figures

XAI = Place("kimi", "xai-chat", "grok-3-mini")
"""A host whose output count leaves reasoning out: only its rule says so."""
QUESTIONS = ("Why?", "And why that?", "And that?")


@pytest.mark.parametrize("place", [*PLACES.values(), XAI], ids=lambda place: place.endpoint)
def test_every_surface_shows_the_same_figures(world: World, cli: Inside, place: Place) -> None:
    """List, usage, Numbers, MCP and export, of a session that was played."""
    world.mood = Mood(thinking=300)
    with thinkback.open(cli.db, rules={}, settings={}) as store:
        url = world.url(place.provider)
        session = store.session("talk", endpoint=place.endpoint, model=place.model, base_url=url, api_key=KEY)
        for question in QUESTIONS:
            session.chat(question)
        use = session.usage.total().use
        figures = (use.input or 0, use.cached or 0, use.output or 0, use.reasoning or 0)
        turns = len(session.usage.turns())
        (summary,) = store.log.summaries().values()
        page = Figures(store).report(0)
        told = reading.usage(store, reading.Usage(session="talk"))
    (row,) = cli("sessions", "--json").json
    used: dict[str, Any] = cli("usage", "talk", "--json").json["total"]
    exported = cli("export", str(cli.place / "talk.jsonl"), "--session", "talk")

    assert len(QUESTIONS) == turns == summary.tally.turns == row["turns"] == page.ended.turns
    assert f"{len(QUESTIONS)} turns" in exported.out + exported.err
    assert figures[0] + figures[2] == summary.tally.tokens == row["tokens"]
    assert figures == tuple(used[key] or 0 for key in ("input", "cached", "output", "reasoning"))
    assert figures == tuple(told[key] or 0 for key in ("input", "cached", "output", "reasoning"))
    assert figures == (page.total.input, page.total.cached, page.total.output, page.total.reasoning)
    assert figures[2] > 0 < figures[0]


def test_a_cost_that_the_table_shows_stands_in_json_too(world: World, cli: Inside) -> None:
    """For each session."""
    place = PLACES["kimi"]
    with thinkback.open(cli.db, rules={}, settings={}) as store:
        for number in range(3):
            url = world.url("kimi")
            session = store.session(f"talk-{number}", endpoint="kimi", model=place.model, base_url=url, api_key=KEY)
            session.chat("Why?")
    table = cli("sessions").out.splitlines()[1:]
    rows = {row["name"]: row["cost_usd"] for row in cli("sessions", "--json").json}

    for line in filter(None, table):
        assert ("$" in line) == (rows[line.split()[0]] is not None)
