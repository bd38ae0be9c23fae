"""Every surface answers for every dialect: played live, imported, by gateway; and no figure contradicts another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import thinkback
from tests.cli.conftest import Inside
from tests.formats.samples import write_database, write_documents
from tests.formats.test_made import made, others
from tests.world import talks, walk
from tests.world.server import PLACES, World
from tests.world.walk import OTHERS, Faults
from thinkback.formats.registry import program
from thinkback.session.exchange.histories import Wanted, run
from thinkback.wire.registry import PACKAGES


def walked(cli: Inside, db: Path, place: Path, others: Sequence[str] = OTHERS) -> tuple[Faults, int]:
    """What was no good answer, and how many pages there were."""
    faults = Faults()
    cli.environment["THINKBACK_DB"] = str(db)
    with thinkback.open(db, rules={}, settings={}) as store:
        names = [info.name for info in store.sessions()]
        pages = walk.shown_by_pages(store, faults, others)
        walk.shown_to_agents(store, faults)
    walk.shown_by_commands(cli, names, faults, place)
    walk.shown_by_the_chat(cli, names[0], faults)
    return faults, pages


def test_every_surface_of_a_log_that_was_played(world: World, tmp_path: Path, cli: Inside) -> None:
    """By the library, at each of the nine dialects."""
    talks.play(world, tmp_path / "played.db")
    faults, pages = walked(cli, tmp_path / "played.db", tmp_path)

    assert not faults, "\n".join(faults)
    assert pages > 20 * len(PLACES)


def import_played(world: World, place: Path) -> Path:
    """The same in another log, by its export."""
    talks.play(world, place / "played.db")
    with thinkback.open(place / "played.db", rules={}, settings={}) as store:
        store.export(place / "all.jsonl", complete=True)
    with thinkback.open(place / "imported.db", rules={}, settings={}) as store:
        store.import_(place / "all.jsonl")
    return place / "imported.db"


def test_every_command_and_tool_of_a_log_that_was_imported(world: World, tmp_path: Path, cli: Inside) -> None:
    """From the export of another."""
    db, faults = import_played(world, tmp_path), Faults()
    cli.environment["THINKBACK_DB"] = str(db)
    with thinkback.open(db, rules={}, settings={}) as store:
        names = [info.name for info in store.sessions()]
        walk.shown_to_agents(store, faults)
    walk.shown_by_commands(cli, names, faults, tmp_path)

    assert not faults, "\n".join(faults)
    assert len(PLACES) == len(names)


@pytest.mark.soak
def test_every_surface_of_a_log_that_was_imported(world: World, tmp_path: Path, cli: Inside) -> None:
    """Its pages too."""
    faults, pages = walked(cli, import_played(world, tmp_path), tmp_path)

    assert not faults, "\n".join(faults)
    assert pages > 20 * len(PLACES)


def test_every_surface_of_a_log_of_the_gateway(world: World, tmp_path: Path, cli: Inside) -> None:
    """Recorded for another program."""
    talks.play_by_gateway(world, tmp_path / "gateway")
    faults, pages = walked(cli, tmp_path / "gateway" / "default.db", tmp_path, OTHERS[:1])

    assert not faults, "\n".join(faults)
    assert pages > 10 * len(PLACES)


@pytest.mark.parametrize(
    ("name", "file"),
    [*made(), *(pytest.param(*each, marks=pytest.mark.corpus) for each in others())],
    ids=lambda each: getattr(each, "name", each),
)
def test_every_page_of_a_history_of_another_program(name: str, file: Path, tmp_path: Path) -> None:
    """Files that real programs wrote, with the next request to a model of each dialect."""
    faults = Faults()
    data = file.read_bytes()
    if b'"within"' in data:
        file = write_documents(tmp_path, data)
    elif program(name).tables:
        file = write_database(tmp_path / "opencode.db", data)
    with thinkback.open(tmp_path / "log.db", rules={}, settings={}) as store:
        run(store.log, Wanted(name, str(file)))
        sessions = len(store.sessions())
        pages = walk.shown_by_pages(store, faults)
        dialects = {store.rulebook.endpoint(other.partition("/")[0]).dialect for other in walk.OTHERS}

    assert not faults, "\n".join(faults)
    assert pages > sessions * len(walk.OTHERS)
    assert dialects == {*PACKAGES}


def test_no_figure_contradicts_another(world: World, tmp_path: Path, cli: Inside) -> None:
    """Tokens, cost and the part of reasoning of each session: in lists, usage, pages and tools."""
    talks.play(world, tmp_path / "played.db")
    cli.environment["THINKBACK_DB"] = str(tmp_path / "played.db")
    with thinkback.open(tmp_path / "played.db", rules={}, settings={}) as store:
        faults = walk.contradictions(cli, store)

    assert not faults, "\n".join(faults)
