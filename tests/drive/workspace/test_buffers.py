"""Files that are open elsewhere, as in an editor: they are read and changed there, within the same bounds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.drive.workspace.calls import failure, told
from thinkback.drive.workspace.files import Files
from thinkback.drive.workspace.paths import workspace_at


class Open:
    """An editor that has ``texts`` open; ``asked`` are the paths that it was asked about."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.asked: list[str] = []

    def read(self, path: str) -> str | None:
        """As ``Buffers`` wants it."""
        self.asked.append(path)
        return self.texts.get(os.path.basename(path))

    def write(self, path: str, text: str) -> bool:
        """As ``Buffers`` wants it."""
        self.asked.append(path)
        name = os.path.basename(path)
        if name in self.texts:
            self.texts[name] = text
        return name in self.texts


def test_what_is_open_is_read_and_changed_where_it_is_open(tmp_path: Path) -> None:
    """The disk keeps what it has; a file that is not open is read and changed on the disk."""
    (tmp_path / "a").write_text("saved\n")
    (tmp_path / "b").write_text("saved\n")
    editor = Open(a="unsaved\n")
    files = Files(workspace_at(tmp_path), 1000, editor)

    assert ("1\tunsaved", False) == told(files.read, path="a")
    assert ("Changed a at line 1.", False) == told(files.edit, path="a", old_string="unsaved", new_string="new")
    assert "old_string does not stand in a" in failure(files.edit, path="a", old_string="saved", new_string="x")
    told(files.edit, path="b", old_string="saved", new_string="new")
    told(files.write, path="c", content="made\n")

    assert {"a": "new\n"} == editor.texts
    assert ["saved\n", "new\n", "made\n"] == [(tmp_path / name).read_text() for name in "abc"]
    told(files.write, path="a", content="whole\n")
    assert {"a": "whole\n"} == editor.texts


def test_line_ends_alone_are_no_change(tmp_path: Path) -> None:
    """An editor that shows CRLF as LF does not hide how the file is."""
    (tmp_path / "a").write_bytes(b"one\r\ntwo\r\n")
    editor = Open(a="one\ntwo\n")
    files = Files(workspace_at(tmp_path), 1000, editor)

    assert "CRLF" in told(files.read, path="a")[0]
    told(files.edit, path="a", old_string="one\ntwo", new_string="1\n2")

    assert "1\r\n2\r\n" == editor.texts["a"]


@pytest.mark.parametrize("path", ["../outside", "/etc/hostname", "link"])
def test_nothing_outside_is_asked_for(tmp_path: Path, path: str) -> None:
    """Bounds hold before anybody is asked: what leads out of the workspace is neither read nor changed there."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside").write_text("secret")
    (inside / "link").symlink_to(tmp_path / "outside")
    editor = Open(outside="secret", hostname="secret", link="secret")
    files = Files(workspace_at(inside), 1000, editor)

    assert "leads out of the workspace" in failure(files.read, path=path)
    assert "leads out of the workspace" in failure(files.write, path=path, content="x")
    assert [] == editor.asked


def test_a_file_that_may_not_be_changed_is_not(tmp_path: Path) -> None:
    """Read-only holds where it is open, too."""
    (tmp_path / "a").write_text("saved\n")
    (tmp_path / "a").chmod(0o444)
    editor = Open(a="unsaved\n")
    files = Files(workspace_at(tmp_path), 1000, editor)

    assert "a is read-only" in failure(files.write, path="a", content="x")
    assert "a is read-only" in failure(files.edit, path="a", old_string="unsaved", new_string="x")
    assert {"a": "unsaved\n"} == editor.texts
