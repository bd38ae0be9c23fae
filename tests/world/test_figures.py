"""One session has one set of figures: wherever it is shown, input, output, reasoning and turns are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.cli.conftest import Inside
from tests.world.clients import KEY
from tests.world.gateway import gateway
from tests.world.mind import Mood
from tests.world.server import PLACES, Place, World
from thinkback.servers.mcp import reading
from thinkback.servers.viewer.numbers import Figures
from thinkback.session.exchange.histories import Wanted, run

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


def test_every_surface_shows_the_same_figures_of_a_gateway_s_sessions(world: World, cli: Inside) -> None:
    """One of each provider, asked for in chat completions: list, usage, Numbers and MCP."""
    world.mood = Mood(thinking=300)
    with gateway(world, cli.place) as house:
        for provider, place in PLACES.items():
            messages: list[Any] = [{"role": "user", "content": f"{provider}?"}]
            for question in QUESTIONS:
                body = {"model": f"{provider}/{place.model}", "messages": messages}
                answer = house.ask("/v1/chat/completions", body, key=None).json["choices"][0]["message"]
                messages += [answer, {"role": "user", "content": question}]
    with thinkback.open(cli.place / "default.db", rules={}, settings={}) as store:
        summaries = store.log.summaries()
        uses = {info.id: store.session(info.name).usage.total() for info in store.sessions()}
        told = [reading.usage(store, reading.Usage(session=info.name)) for info in store.sessions()]
        page = Figures(store).report(0)

    assert len(PLACES) == len(uses)
    assert {id: (each.use.input or 0) + (each.use.output or 0) for id, each in uses.items()} == {
        id: summary.tally.tokens for id, summary in summaries.items()
    }
    assert len(QUESTIONS) * len(PLACES) == page.ended.turns == sum(each.tally.turns for each in summaries.values())
    for name in ("input", "cached", "output", "reasoning"):
        total = sum(getattr(each.use, name) or 0 for each in uses.values())
        assert total == getattr(page.total, name) == sum(each[name] or 0 for each in told), name


MADE = sorted((Path(__file__).parents[1] / "formats" / "made").glob("*.jsonl"))
PROGRAMS = [file for file in MADE if not file.name.startswith("opencode")]  # which is a database


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_every_surface_shows_the_same_figures_of_an_import(file: Path) -> None:
    """List, usage, Numbers and MCP; the list has the reasoning that was reported, the others estimate the rest."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        run(store.log, Wanted(file.name.rpartition("-")[0], str(file)))
        (info,) = store.sessions()
        (summary,) = store.log.summaries().values()
        session = store.session(info.name)
        use, turns = session.usage.total().use, len(session.usage.turns())
        told = reading.usage(store, reading.Usage(session=info.name))
        page = Figures(store).report(0)

    assert turns == summary.tally.turns == page.ended.turns > 0
    assert (use.input or 0) + (use.output or 0) == summary.tally.tokens > 0
    assert summary.tally.reasoning == use.reasoning or use.estimated
    for name in ("input", "cached", "output", "reasoning"):
        assert (getattr(use, name) or 0) == getattr(page.total, name) == (told[name] or 0), name


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
