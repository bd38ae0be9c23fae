"""Where an office may be, and what is told where it cannot be there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from thinkback.errors import FormatVersionError, StoreError
from thinkback.stores import migrations, open_store
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state import sqlite as on_file
from thinkback.stores.gateway_state.sqlite import open_sqlite
from thinkback.stores.migrations import Schema
from thinkback.stores.sqlite_open import connect


def test_the_file_and_its_directory_are_private(tmp_path: Path) -> None:
    """Nobody else may look into either."""
    open_gateway_state(tmp_path / "new" / "store").close()
    assert 0o700 == (tmp_path / "new" / "store").stat().st_mode & 0o777
    assert 0o600 == (tmp_path / "new" / "store" / "gateway.db").stat().st_mode & 0o777


def test_a_log_is_no_office_and_an_office_is_no_log(tmp_path: Path) -> None:
    """Each refuses the other's file, and says so."""
    open_store(tmp_path / "gateway.db").close()
    with pytest.raises(StoreError, match="not a file of a gateway"):
        open_gateway_state(tmp_path)
    open_gateway_state(tmp_path / "store").close()
    with pytest.raises(StoreError, match="not a log of thinkback"):
        open_store(tmp_path / "store" / "gateway.db")


def test_an_office_of_a_later_format_is_refused(tmp_path: Path) -> None:
    """An older program does not touch it."""
    path = str(tmp_path / "gateway.db")
    open_sqlite(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 9")
        db.commit()
    with pytest.raises(FormatVersionError):
        open_sqlite(path)


def test_the_migrations_keep_what_they_promise(tmp_path: Path) -> None:
    """The recorded migrations are those of this program, and their checks find nothing."""
    path = str(tmp_path / "gateway.db")
    open_sqlite(path).close()
    with closing(connect(path)) as db:
        assert [] == list(migrations.check(db, on_file.NEWEST))
        assert ["migration 1 is recorded but not known", "user_version is 1, expected 0"] == list(
            migrations.check(db, Schema(on_file.NEWEST.directory, ()))
        )


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file stands where the directory was to be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made"):
        open_gateway_state(tmp_path / "file")
