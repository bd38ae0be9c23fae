"""Files that real programs wrote: all that they say is in the log, by a count that is made without the readers.

Those below ``made`` are from ``make histories``; further ones are read where ``THINKBACK_HISTORIES`` names a directory
in which each program has a folder of its name.
"""

from __future__ import annotations

import os
import re
from contextlib import closing
from pathlib import Path

import pytest

from tests.formats.accounting import in_log, in_source
from tests.formats.samples import read, write_database, write_documents
from tests.formats.test_every import check
from thinkback.formats.registry import MODULES, program
from thinkback.session.exchange.histories import Wanted, run
from thinkback.stores import open_store

MADE = Path(__file__).parent / "made"


def others() -> list[tuple[str, Path]]:
    """Program and file of those that are not of this project."""
    place = os.environ.get("THINKBACK_HISTORIES", "")
    found = sorted(Path(place).rglob("*.jsonl")) if place else []
    return [(path.relative_to(place).parts[0], path) for path in found]


def made() -> list[tuple[str, Path]]:
    """Program and file of those that are."""
    return [(re.sub(r"-[0-9.]+$", "", path.stem), path) for path in sorted(MADE.iterdir())]


@pytest.mark.parametrize(
    ("name", "file"),
    [*made(), *(pytest.param(*each, marks=pytest.mark.corpus) for each in others())],
    ids=lambda each: getattr(each, "name", each),
)
def test_all_that_a_file_says_is_in_the_log(name: str, file: Path, tmp_path: Path) -> None:
    """Each thought, opaque value, call, result, answer, question and usage, word for word, once; a second import adds
    nothing.
    """
    data = file.read_text(encoding="utf-8")
    found = read(name, data.encode())
    check(found)
    assert not [left for left in found.left if "damaged" in left.what or "there twice" in left.what]
    if '"within"' in data:
        file = write_documents(tmp_path, data.encode())
    elif program(name).tables:
        file = write_database(tmp_path / "opencode.db", data.encode())
    with closing(open_store(":memory:")) as log:
        run(log, Wanted(name, str(file)))
        expected, stored = in_source(name, data), in_log(log)
        assert (expected - stored, stored - expected) == ({}, {})
        assert {"asked", "said", "call", "result", "usage"} <= {kind for kind, _ in stored}
        again, _ = run(log, Wanted(name, str(file)))
        assert [0] * len(again) == [took.commits for took in again]


def test_every_program_whose_files_are_here_is_counted() -> None:
    """A directory of another name in ``THINKBACK_HISTORIES`` would be passed over."""
    assert {name for name, _ in (*made(), *others())} <= {*MODULES}
