"""Parquet files: rows in groups of bounded size, in their order, however long one is."""

from __future__ import annotations

from pathlib import Path

from thinkback.session.exchange import parquet


def row(at: int, text: str) -> dict[str, object]:
    """A row of a commit."""
    return {"session": "s", "branch": "main", "seq": at, "hash": f"{at:064x}", "kind": "user", "time": at, "text": text}


def test_a_long_file_has_many_groups_and_all_rows_in_their_order(tmp_path: Path) -> None:
    """A group has some 16 MB of rows, so that a file of any length is written in the same memory."""
    import duckdb  # not with the module: it complains at its end of what a collection froze

    file = tmp_path / "long.parquet"
    parquet.write(str(file), (row(at, f"word {at} " * 600) for at in range(9_000)))
    with duckdb.connect(":memory:") as db:
        ((groups,),) = db.execute(
            "SELECT count(DISTINCT row_group_id) FROM parquet_metadata(?)", [str(file)]
        ).fetchall()
        found = db.execute("SELECT seq, text FROM read_parquet(?)", [str(file)]).fetchall()
    assert groups > 2
    assert [(at, f"word {at} " * 600) for at in range(9_000)] == found


def test_a_row_of_any_length_is_written(tmp_path: Path) -> None:
    """Also one that is longer than what DuckDB reads at a time, and a file without rows."""
    import duckdb

    for name, texts in (("one", ["short", "x" * 5_000_000, "again"]), ("none", [])):
        file = tmp_path / f"{name}.parquet"
        parquet.write(str(file), (row(at, text) for at, text in enumerate(texts)))
        with duckdb.connect(":memory:") as db:
            found = db.execute("SELECT text FROM read_parquet(?)", [str(file)]).fetchall()
        assert [(text,) for text in texts] == found
