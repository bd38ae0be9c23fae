"""The file tools: what the model is told, and what becomes of the files."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.drive.workspace.calls import failure, told
from thinkback.drive.workspace import files as module
from thinkback.drive.workspace.files import Files
from thinkback.drive.workspace.paths import workspace_at


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """The tools of an empty workspace."""
    return Files(workspace_at(tmp_path), 1000)


def done(function: Any, **arguments: Any) -> str:
    """What the model is told of a call that goes well."""
    text, is_error = told(function, **arguments)
    assert not is_error, text
    return text


def test_a_file_is_read_with_line_numbers(tmp_path: Path, files: Files) -> None:
    """A part of it says which, and where it goes on."""
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    assert "1\tone\n2\ttwo\n3\tthree" == done(files.read, path="a.txt")
    assert "2\ttwo\n[lines 2 to 2 of 3; go on with offset=3]" == done(files.read, path="a.txt", offset=2, limit=1)
    assert "3\tthree\n[lines 3 to 3 of 3]" == done(files.read, path="a.txt", offset=3)
    assert "a.txt has 3 lines: there is no line 4" == failure(files.read, path="a.txt", offset=4)
    assert "do not fit" in failure(files.read, path="a.txt", offset=0)


def test_what_does_not_fit_is_read_next_time(tmp_path: Path, files: Files) -> None:
    """Output is bounded by tokens; the note says with which offset to go on, and every line comes once."""
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 2001)))
    seen: list[str] = []
    offset = 1
    while offset:
        text = done(files.read, path="a.txt", offset=offset)
        assert len(text) < 4 * 1000 + 100
        *lines, note = text.split("\n")
        seen += [line.partition("\t")[2] for line in lines]
        offset = int(note.rpartition("=")[2].rstrip("]")) if "offset" in note else 0
    assert [f"line {number}" for number in range(1, 2001)] == seen


def test_a_very_long_line_is_cut_in_its_middle(tmp_path: Path, files: Files) -> None:
    """Its beginning and its end are shown, with how much is missing."""
    (tmp_path / "a.txt").write_text("a" + "x" * 1_000_000 + "z\nnext\n")
    first, second = done(files.read, path="a.txt").split("\n")
    assert first.startswith("1\taxxx")
    assert first.endswith("xxxz")
    assert "characters left out" in first
    assert "2\tnext" == second


def test_an_empty_file_says_so(tmp_path: Path, files: Files) -> None:
    """Nothing would look like a failure."""
    (tmp_path / "a.txt").write_bytes(b"")
    assert "[a.txt is empty]" == done(files.read, path="a.txt")


def test_a_file_that_is_not_there_is_told(files: Files) -> None:
    """With what to do."""
    assert "none.txt does not exist\nlist shows what a directory holds." == failure(files.read, path="none.txt")
    assert "a/b/c does not exist" in failure(files.edit, path="a/b/c", old_string="a", new_string="b")
    assert "none does not exist" in failure(files.list, path="none")


def test_a_file_in_the_place_of_a_directory_is_told(tmp_path: Path, files: Files) -> None:
    """Reading below it, and writing below it."""
    (tmp_path / "a").write_text("x")
    assert "is not a directory" in failure(files.read, path="a/b")
    assert "is not a directory" in failure(files.write, path="a/b", content="x")


@pytest.mark.parametrize("data", [b"\x7fELF\0\0\0", b"\xff\xfea\xd8"], ids=["NUL", "half a character"])
def test_what_is_no_text_is_named(tmp_path: Path, files: Files, data: bytes) -> None:
    """Its bytes would say nothing, and cost much."""
    (tmp_path / "a.bin").write_bytes(data)
    assert f"a.bin is not text: {len(data)} bytes of something else" == failure(files.read, path="a.bin")


def test_what_is_too_large_is_not_read(tmp_path: Path, files: Files) -> None:
    """Memory is bounded too."""
    with open(tmp_path / "a.log", "wb") as file:
        file.truncate(module.LARGEST + 1)
    assert "too much to read" in failure(files.read, path="a.log")


@pytest.mark.parametrize(
    ("encoding", "mark", "named"),
    [
        ("utf-8", b"", ""),
        ("utf-8", b"\xef\xbb\xbf", ""),
        ("utf-16-le", b"\xff\xfe", "utf-16-le"),
        ("utf-16-be", b"\xfe\xff", "utf-16-be"),
        ("latin-1", b"", "latin-1"),
    ],
)
def test_edit_keeps_the_encoding(tmp_path: Path, files: Files, encoding: str, mark: bytes, named: str) -> None:
    """And the mark at the file's beginning; everything else stays byte for byte."""
    (tmp_path / "a.txt").write_bytes(mark + "grün\nblau\n".encode(encoding))
    note = f"\n[read as {named}; edit keeps that]" if named else ""
    assert f"1\tgrün\n2\tblau{note}" == done(files.read, path="a.txt")
    assert "Changed a.txt at line 1." == done(files.edit, path="a.txt", old_string="grün", new_string="grüner")
    assert mark + "grüner\nblau\n".encode(encoding) == (tmp_path / "a.txt").read_bytes()


def test_a_character_that_the_encoding_has_not_is_told(tmp_path: Path, files: Files) -> None:
    """Nothing is written then."""
    (tmp_path / "a.txt").write_bytes(b"gr\xfcn")
    assert "which has no '€'" in failure(files.edit, path="a.txt", old_string="grün", new_string="€")
    assert b"gr\xfcn" == (tmp_path / "a.txt").read_bytes()


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
        (b"a\nb\n", "a\nb", "x\ny", b"x\ny\n"),
        (b"a\r\nb\nc\n", "b\nc", "x\ny", b"a\r\nx\ny\n"),
        (b"a\r\nb\nc\n", "a\nb", "x\ny", b"x\r\ny\nc\n"),
        (b"a\rb\r", "a", "x", b"x\rb\r"),
    ],
)
def test_edit_keeps_the_line_ends(
    tmp_path: Path, files: Files, before: bytes, old: str, new: str, after: bytes
) -> None:
    """The model is shown lines without their ends, so what it gives is taken in the file's own."""
    (tmp_path / "a.txt").write_bytes(before)
    done(files.edit, path="a.txt", old_string=old, new_string=new)
    assert after == (tmp_path / "a.txt").read_bytes()


def test_text_that_does_not_stand_there_is_told(tmp_path: Path, files: Files) -> None:
    """With the line that is meant, where only white space differs."""
    (tmp_path / "a.py").write_text("def f():\n    return 1\n")
    told_of = failure(files.edit, path="a.py", old_string="\treturn  1", new_string="x")
    assert "old_string does not stand in a.py\nLine 2 is like its first line, with other white space. " in told_of
    assert failure(files.edit, path="a.py", old_string="zebra", new_string="x").startswith(
        "old_string does not stand in a.py\nRead the file again"
    )


def test_text_that_stands_there_twice_is_told(tmp_path: Path, files: Files) -> None:
    """With the lines; all are changed only where that is asked for."""
    (tmp_path / "a.txt").write_text("x\ny\nx\n" + "x\n" * 5)
    text = failure(files.edit, path="a.txt", old_string="x", new_string="z")
    assert text.startswith("old_string stands in a.txt 7 times, at lines 1, 3, 4, 5, 6, ...\n")
    assert "Changed a.txt at 7 places, the first at line 1." == done(
        files.edit, path="a.txt", old_string="x", new_string="z", replace_all=True
    )
    assert "z\ny\nz\n" + "z\n" * 5 == (tmp_path / "a.txt").read_text()


def test_an_edit_that_changes_nothing_is_told(tmp_path: Path, files: Files) -> None:
    """It is a mistake of the model."""
    (tmp_path / "a.txt").write_text("x")
    assert "nothing to change" in failure(files.edit, path="a.txt", old_string="x", new_string="x")
    assert "old_string is empty" in failure(files.edit, path="a.txt", old_string="", new_string="x")


def test_write_makes_directories(tmp_path: Path, files: Files) -> None:
    """And says whether something was there."""
    assert "Created a/b/c.txt: 2 lines, 4 bytes." == done(files.write, path="a/b/c.txt", content="x\ny\n")
    assert "Replaced a/b/c.txt: 1 lines, 2 bytes." == done(files.write, path="a/b/c.txt", content="ü")
    assert "ü".encode() == (tmp_path / "a" / "b" / "c.txt").read_bytes()
    assert ["c.txt"] == os.listdir(tmp_path / "a" / "b")
    assert "is the workspace itself" in failure(files.write, path="", content="x")


def test_write_keeps_the_permissions_of_the_file(tmp_path: Path, files: Files) -> None:
    """A script stays executable; what is read-only stays as it is."""
    script = tmp_path / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    done(files.write, path="run.sh", content="new")
    assert (0o750, "new") == (stat.S_IMODE(script.stat().st_mode), script.read_text())
    script.chmod(0o440)
    assert "run.sh is read-only" in failure(files.write, path="run.sh", content="newer")
    assert "run.sh is read-only" in failure(files.edit, path="run.sh", old_string="new", new_string="newer")
    assert "new" == script.read_text()


def test_nobody_becomes_another_by_what_was_written(tmp_path: Path, files: Files) -> None:
    """A program that ran as its owner has become a file with another content."""
    (tmp_path / "run").write_text("old")
    (tmp_path / "run").chmod(0o6755)
    done(files.write, path="run", content="new")
    assert 0o755 == stat.S_IMODE((tmp_path / "run").stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_stays_its_owners(tmp_path: Path, files: Files) -> None:
    """Whoever changes it."""
    (tmp_path / "a.txt").write_text("old")
    os.chown(tmp_path / "a.txt", 1234, 1235)
    done(files.edit, path="a.txt", old_string="old", new_string="new")
    found = (tmp_path / "a.txt").stat()
    assert (1234, 1235) == (found.st_uid, found.st_gid)


@pytest.mark.parametrize("path", [".git/config", ".git/hooks/pre-commit", "sub/.GIT", "sub/.git/config"])
def test_what_git_goes_by_is_not_written(tmp_path: Path, files: Files, path: str) -> None:
    """It names programs, which git runs by itself; it may be read."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[core]")
    assert "git's own" in failure(files.write, path=path, content="x")
    assert "git's own" in failure(files.edit, path=".git/config", old_string="core", new_string="x")
    assert "1\t[core]" == done(files.read, path=".git/config")


def test_an_edit_makes_no_file_that_could_not_be_read(tmp_path: Path, files: Files) -> None:
    """However short its words are."""
    (tmp_path / "a.txt").write_text("a" * 100_000)
    text = failure(files.edit, path="a.txt", old_string="a", new_string="b" * 1000, replace_all=True)
    assert "would grow" in text


def test_directories_that_are_read_in_vain_stay_not_open(tmp_path: Path, files: Files) -> None:
    """A model may try as often as it likes."""
    (tmp_path / "sub").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        assert "is a directory" in failure(files.read, path="sub")
    assert before == len(os.listdir("/proc/self/fd"))


def test_a_write_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing beside it."""
    (tmp_path / "a.txt").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "a.txt: No space left on device" == failure(files.write, path="a.txt", content="new")
    assert (["a.txt"], "old") == (os.listdir(tmp_path), (tmp_path / "a.txt").read_text())


def test_edits_at_the_same_time_all_count(tmp_path: Path, files: Files) -> None:
    """Calls of one response run in parallel threads."""
    (tmp_path / "a.txt").write_text("".join(f"<{number}>\n" for number in range(16)))
    threads = [
        threading.Thread(
            target=lambda number=number: done(
                files.edit, path="a.txt", old_string=f"<{number}>", new_string=f"({number})"
            )
        )
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert "".join(f"({number})\n" for number in range(16)) == (tmp_path / "a.txt").read_text()


def test_a_directory_is_listed(tmp_path: Path, files: Files) -> None:
    """Directories, files with their size, links."""
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("abc")
    (tmp_path / "link").symlink_to("a.txt")
    assert "a.txt (3 bytes)\nb/\nlink (a link)" == done(files.list)
    assert "[b is empty]" == done(files.list, path="b")
    assert "a.txt is a file\nUse read." == failure(files.list, path="a.txt")


def test_a_large_directory_is_cut(tmp_path: Path) -> None:
    """With how many more there are."""
    for number in range(1002):
        (tmp_path / f"{number:04}").touch()
    assert done(Files(workspace_at(tmp_path), 8000).list).endswith("0999 (0 bytes)\n[2 more entries]")


def test_a_name_that_is_not_unicode_is_shown(tmp_path: Path, files: Files) -> None:
    """What no request could hold is replaced."""
    try:
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff"))).touch()
    except OSError:
        pytest.skip("this file system takes Unicode alone")
    assert "a\ufffd (0 bytes)" == done(files.list)
