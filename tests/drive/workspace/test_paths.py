"""Paths that a model names stay in the workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drive.workspace.calls import failure, told
from thinkback.drive.workspace import paths
from thinkback.drive.workspace.files import Files
from thinkback.drive.workspace.paths import WorkspacePath, opened, resolve, workspace_at
from thinkback.drive.workspace.shell import Commands
from thinkback.errors import NotFoundError, ToolFailed


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A workspace, with a secret beside it."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "work-else").mkdir()
    place = tmp_path / "work"
    (place / "src").mkdir(parents=True)
    (place / "src" / "a.txt").write_text("a")
    return place


@pytest.fixture
def files(inside: Path) -> Files:
    """Its file tools."""
    return Files(workspace_at(inside), 1000)


@pytest.mark.parametrize("path", ["src/a.txt", "./src/../src/a.txt", "{root}/src/a.txt", "src//a.txt"])
def test_a_path_within_may_be_written_in_any_way(inside: Path, path: str) -> None:
    """Relative, absolute, with dots."""
    place = resolve(workspace_at(inside), path.replace("{root}", str(inside)))
    assert WorkspacePath(("src", "a.txt"), "src/a.txt") == place


@pytest.mark.parametrize(
    "path", ["../secret.txt", "src/../../secret.txt", "/etc/passwd", "{root}/../secret.txt", "{root}-else", "/", ".."]
)
def test_a_path_that_leads_out_is_refused(inside: Path, files: Files, path: str) -> None:
    """Whatever tool it is given to; a directory whose name only begins alike is another one."""
    given = path.replace("{root}", str(inside))
    assert "leads out of the workspace" in failure(files.read, path=given)
    assert "leads out of the workspace" in failure(files.write, path=given, content="x")
    assert "leads out of the workspace" in failure(files.edit, path=given, old_string="s", new_string="t")
    assert "leads out of the workspace" in failure(files.list, path=given)
    assert "secret" == (inside.parent / "secret.txt").read_text()


def test_a_link_that_leads_out_is_refused(inside: Path, files: Files) -> None:
    """To a file, to a directory, and through another link; for reading and for writing."""
    (inside / "link").symlink_to(inside.parent / "secret.txt")
    (inside / "door").symlink_to(inside.parent)
    (inside / "again").symlink_to("door")
    (inside / "new").symlink_to(inside.parent / "made.txt")
    for path in ("link", "door/secret.txt", "again/secret.txt", "door"):
        assert "leads out of the workspace" in failure(files.read, path=path)
    assert "leads out of the workspace" in failure(files.write, path="new", content="x")
    assert not (inside.parent / "made.txt").exists()


def test_a_link_within_is_followed(inside: Path, files: Files) -> None:
    """What it leads to is read and changed, and the link stays one."""
    (inside / "link").symlink_to("src/a.txt")
    assert ("1\ta", False) == told(files.read, path="link")
    told(files.write, path="link", content="b")
    assert (True, "b") == ((inside / "link").is_symlink(), (inside / "src" / "a.txt").read_text())


@pytest.mark.parametrize("swapped", ["src", "src/a.txt"])
def test_a_link_put_there_after_the_check_is_not_followed(inside: Path, swapped: str) -> None:
    """Opening goes part by part and follows none: what the check saw is what is opened, or nothing."""
    workspace = workspace_at(inside)
    place = resolve(workspace, "src/a.txt")
    (inside.parent / "a.txt").write_text("secret")
    (inside / "src").rename(inside / "old")
    if swapped == "src":
        (inside / "src").symlink_to(inside.parent)
    else:
        (inside / "src").mkdir()
        (inside / "src" / "a.txt").symlink_to(inside.parent / "secret.txt")
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"), opened(workspace, place):
        pass


def test_links_in_a_circle_are_told(inside: Path, files: Files) -> None:
    """They lead nowhere."""
    (inside / "a").symlink_to("b")
    (inside / "b").symlink_to("a")
    assert failure(files.read, path="a")


@pytest.mark.parametrize("path", ["a\0b", "\0", "x" * 300, "y/" * 3000])
def test_what_is_no_path_is_told(files: Files, path: str) -> None:
    """Not a crash, and nothing of Python."""
    text = failure(files.read, path=path)
    assert "Error" not in text.partition(":")[0]


def test_half_a_character_is_no_path(inside: Path) -> None:
    """It cannot be the name of a file that a model means."""
    with pytest.raises(ToolFailed, match="is not a path"):
        resolve(workspace_at(inside), "\ud83d")


def test_what_is_closed_stays_closed(inside: Path) -> None:
    """The program's own files, where they happen to be in the workspace: read, written, found by no tool."""
    (inside / "conf").mkdir()
    (inside / "conf" / "keys").write_text("needle")
    (inside / "chats.db").write_text("needle")
    (inside / "way").symlink_to("conf")
    workspace = workspace_at(inside, [inside / "conf", inside / "chats.db"])
    files, commands = Files(workspace, 1000), Commands(workspace, 1000, {"PATH": os.environ["PATH"]})
    for path in ("conf/keys", "way/keys", "conf", "chats.db"):
        assert failure(files.read, path=path).endswith(" belongs to thinkback itself: tools do not touch it")
    assert "belongs to" in failure(files.write, path="chats.db", content="x")
    assert "belongs to" in failure(files.list, path="way")
    assert "belongs to" in failure(commands.search, pattern="needle", path="conf")
    assert ". holds thinkback's own files" in failure(commands.search, pattern="needle")
    assert "[nothing matches 'needle']" == told(commands.search, pattern="needle", path="src")[0]


def test_a_workspace_must_be_there(tmp_path: Path) -> None:
    """It is not made by chance."""
    with pytest.raises(NotFoundError, match="is not a directory"):
        workspace_at(tmp_path / "none")


def test_the_root_of_all_is_a_workspace(inside: Path) -> None:
    """Who wants everything may have it."""
    parts = resolve(workspace_at("/"), str(inside)).parts
    assert inside.resolve().parts[1:] == parts


@given(st.lists(st.sampled_from(["..", ".", "src", "door", "a.txt", "/", "work", "~", ""]), max_size=8))
def test_no_path_leads_out(inside: Path, pieces: list[str]) -> None:
    """Whatever a path is made of, what is resolved lies within or is refused."""
    door = inside / "door"
    if not door.is_symlink():
        door.symlink_to("..")
    try:
        place = resolve(workspace_at(inside), "/".join(pieces))
    except ToolFailed:
        return
    real = os.path.realpath(inside / place.shown)
    assert str(inside.resolve()) == os.path.commonpath([inside.resolve(), real])


def test_what_is_no_file_is_named(inside: Path, files: Files) -> None:
    """A pipe would hang whoever opened it."""
    os.mkfifo(inside / "pipe")
    assert "pipe is not a plain file" in failure(files.read, path="pipe")
    assert "pipe is not a plain file" in failure(files.write, path="pipe", content="x")
    assert "src is a directory" in failure(files.read, path="src")
    assert "src is a directory" in failure(files.write, path="src", content="x")
    assert paths.kind(os.stat(inside).st_mode) == "a directory"
