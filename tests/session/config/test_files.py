"""Configuration files are opened again only where they may be others than before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.privileges import unprivileged
from tests.session.opens import opens, settled
from thinkback.errors import RuleFileError
from thinkback.session import config


def test_a_file_that_stays_is_opened_once(tmp_path: Path) -> None:
    """However often it is asked for."""
    file = tmp_path / "a.toml"
    file.write_text("x = 1\r\n")
    settled(file)
    with opens(tmp_path) as opened:
        assert ["x = 1\n"] * 3 == [config.text_of(file) for _ in range(3)]
    assert ["a.toml"] == [name for name, _ in opened]


@pytest.mark.parametrize("way", ["in place", "replaced", "with the old times"])
def test_a_change_is_seen_at_once(tmp_path: Path, way: str) -> None:
    """Also one of the same length, and one whose times were put back."""
    file = tmp_path / "a.toml"
    file.write_text("x = 1")
    settled(file)
    assert "x = 1" == config.text_of(file)
    before = file.stat()
    if way == "replaced":
        (tmp_path / "b").write_text("x = 2")
        (tmp_path / "b").replace(file)
    else:
        file.write_text("x = 2")
    if way == "with the old times":
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "x = 2" == config.text_of(file)


def test_a_file_that_was_just_written_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second change within one tick of the file system's clock would leave the same times."""
    file = tmp_path / "a.toml"
    file.write_text("x = 1")
    written = file.stat().st_ctime_ns
    monkeypatch.setattr("thinkback.session.config.time.time_ns", lambda: written + 10_000_000)
    with opens(tmp_path) as opened:
        config.text_of(file)
        config.text_of(file)
    assert 2 == len(opened)


def test_whole_seconds_are_trusted_later(tmp_path: Path) -> None:
    """A file system whose clock ticks in seconds."""
    file = tmp_path / "a.toml"
    file.write_text("x = 1")
    settled(file)
    second = file.stat().st_mtime_ns // 1_000_000_000 * 1_000_000_000
    os.utime(file, ns=(second, second))
    settled(file)
    with opens(tmp_path) as opened:
        config.text_of(file)
        config.text_of(file)
    assert 2 == len(opened)


def test_rights_that_change_are_seen(tmp_path: Path) -> None:
    """They decide whether a key file is used."""
    file = tmp_path / "keys.toml"
    file.write_text("")
    file.chmod(0o600)
    settled(file)
    found = config.file_at(file)
    assert found is not None
    assert 0o600 == found.mode
    file.chmod(0o644)
    found = config.file_at(file)
    assert found is not None
    assert 0o644 == found.mode


def test_what_is_no_file_is_none(tmp_path: Path) -> None:
    """A directory, nothing, something below a file; and a file that went."""
    (tmp_path / "a.toml").write_text("")
    assert [None] * 3 == [config.text_of(tmp_path / name) for name in (".", "b.toml", "a.toml/c")]
    assert "" == config.text_of(tmp_path / "a.toml")
    (tmp_path / "a.toml").unlink()
    assert config.text_of(tmp_path / "a.toml") is None


def test_many_files_do_not_pile_up(tmp_path: Path) -> None:
    """Memory holds as many as a person has, not all that ever were."""
    paths = [tmp_path / f"{number}.toml" for number in range(300)]
    for path in paths:
        path.write_text("x = 1")
    settled(*paths)
    assert ["x = 1"] * 300 == [config.text_of(path) for path in paths]
    assert len(config._read) <= 256


def test_a_directory_that_may_not_be_entered_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration that this user cannot look into is an error with a way out, not taken for none."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "prices.toml").write_text("")
    closed.chmod(0)
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(closed))
    with unprivileged(), pytest.raises(RuleFileError, match=r"prices\.toml cannot be read: Permission denied"):
        config.price_file()
