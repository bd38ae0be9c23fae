"""The page on histories says of each program what its reader gives and leaves out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from tests.formats.samples import SAMPLES, drafts, read
from thinkback.formats.history import History
from thinkback.formats.registry import MODULES
from thinkback.model.blocks import Block, carriers_of

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "docs" / "histories.md").read_text().splitlines()
ROWS = {row[0].strip("`"): row[1:] for line in LINES if line.startswith("| `") for row in [line[2:-2].split(" | ")]}


def has_opaque(history: History) -> bool:
    """Whether a thought or another block has a value that nobody can read."""
    return any(carriers_of(draft.value) for draft in drafts(history) if isinstance(draft.value, get_args(Block)))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_the_row_of_a_program_is_what_its_reader_gives(name: str) -> None:
    """The columns with yes and no, and that what the sample leaves out is named."""
    found = read(name, SAMPLES[name])
    opaque, titles, directories, cost, left_out, _ = ROWS[name]
    expected = {
        "opaque": any(map(has_opaque, found.sessions)),
        "titles": any(history.title for history in found.sessions if not history.parent),
        "directories": any(history.directory for history in found.sessions),
        "cost": any(history.cost for history in found.sessions),
    }
    said = {"opaque": opaque, "titles": titles, "directories": directories, "cost": cost}
    assert expected == {column: word == "yes" for column, word in said.items()}
    assert {left.what for left in found.left} <= {*re.findall("`([^`]+)`", left_out)}


def test_every_program_has_a_row_and_versions_are_those_of_the_page_on_imports() -> None:
    """No more, no fewer."""
    assert {*MODULES} == {*ROWS}
    for file in (ROOT / "tests" / "formats" / "made").iterdir():
        name, _, version = file.stem.rpartition("-")
        assert re.search(rf"\b{re.escape(version)}\b", ROWS[name][-1])
    imports = " ".join((ROOT / "docs" / "import.md").read_text().split())
    for *_, checked in ROWS.values():
        program, versions = re.match(r"\D+", checked), re.findall(r"(\d+\.\d+)\.\d+", checked)
        assert program
        assert versions or checked == "the published format"
        of_page = re.search(rf"\b{program[0].replace('Codex CLI', 'Codex')}[\d. and]+", imports)
        assert not versions or (of_page and {*versions} == {*re.findall(r"\d+\.\d+", of_page[0])})
