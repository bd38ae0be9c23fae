"""Files of other programs in every encoding and state: read as far as they can be, and refused by name where not."""

from __future__ import annotations

import codecs
import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import thinkback
from tests.formats.samples import CODEX, SAMPLES, jsonl
from thinkback.errors import NotFoundError
from thinkback.session.exchange.histories import Wanted, run
from thinkback.session.store import SessionStore

WHOLE = SAMPLES["codex"]


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """An empty log."""
    with thinkback.open(":memory:") as opened:
        yield opened


def wide(encoding: str, mark: bytes) -> Callable[[bytes], bytes]:
    """Into an encoding of two bytes a character."""
    return lambda data: mark + data.decode().encode(encoding)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("mark.jsonl", lambda data: codecs.BOM_UTF8 + data),
        ("little.jsonl", wide("utf-16-le", codecs.BOM_UTF16_LE)),
        ("big.jsonl", wide("utf-16-be", codecs.BOM_UTF16_BE)),
        ("windows.jsonl", lambda data: data.replace(b"\n", b"\r\n")),
        ("packed.jsonl.gz", gzip.compress),
        ("packed.jsonl", gzip.compress),
        ("both.jsonl.gz", lambda data: gzip.compress(wide("utf-16-le", codecs.BOM_UTF16_LE)(data))),
    ],
)
def test_every_encoding_is_the_same_history(
    store: SessionStore, tmp_path: Path, name: str, written: Callable[[bytes], bytes]
) -> None:
    """With a mark, wide characters, other ends of lines, compressed; nothing of it is left out."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "c.jsonl").write_bytes(WHOLE)
    ((plain,), gaps) = run(store.log, Wanted("codex", str(tmp_path / "plain")))
    (tmp_path / name).write_bytes(written(WHOLE))
    (again,), others = run(store.log, Wanted("codex", str(tmp_path / name)))
    assert (plain.name, 0) == (again.name, again.commits)
    assert [gap.left.what for gap in gaps] == [gap.left.what for gap in others]


def test_what_can_be_read_of_a_file_that_breaks_off_is(store: SessionStore, tmp_path: Path) -> None:
    """A compressed one, and a line that is being written; when it is whole, the rest is added."""
    file = tmp_path / "c.jsonl"
    file.write_bytes(WHOLE[:-300])
    (cut,), gaps = run(store.log, Wanted("codex", str(file)))
    assert "a damaged line" in [gap.left.what for gap in gaps]
    file.write_bytes(WHOLE)
    (whole,), _ = run(store.log, Wanted("codex", str(file)))
    assert (13, cut.name, False) == (len(store.commits(whole.name)), whole.name, whole.made)
    packed = tmp_path / "d.jsonl.gz"
    packed.write_bytes(gzip.compress(WHOLE.replace(b'"c1"', b'"c2"') + os.urandom(5000).hex().encode())[:-900])
    (part,), gaps = run(store.log, Wanted("codex", str(packed)))
    assert (13, "a compressed file that breaks off") == (part.commits, gaps[0].left.what)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (SAMPLES["claude-code"], "it looks like claude-code"),
        (SAMPLES["pi"], "it looks like pi"),
        (b"SQLite format 3\0", "it looks like llm or opencode"),
        (b"MZ\0\0", "check the file"),
    ],
)
def test_a_file_of_another_program_is_refused(store: SessionStore, tmp_path: Path, data: bytes, said: str) -> None:
    """By name, with the program that it looks like; nothing is stored."""
    file = tmp_path / "x.jsonl"
    file.write_bytes(data)
    with pytest.raises(NotFoundError, match=r"x\.jsonl is no history of codex") as refused:
        run(store.log, Wanted("codex", str(file)))
    assert said in refused.value.next_actions[0]
    assert [] == store.sessions()


def test_a_named_file_that_begins_oddly_is_read(store: SessionStore, tmp_path: Path) -> None:
    """As far as there is anything in it."""
    (tmp_path / "x.jsonl").write_bytes(b'{"odd": 1}\n' + SAMPLES["chat-jsonl"])
    (took,), gaps = run(store.log, Wanted("chat-jsonl", str(tmp_path / "x.jsonl")))
    assert (True, ["a line that is no conversation"]) == (took.made, [gap.left.what for gap in gaps])


def test_an_empty_file_holds_no_session(store: SessionStore, tmp_path: Path) -> None:
    """Nor does one with nothing but a header; that is told, and no error."""
    for data in (b"", b"\n\n", jsonl(CODEX[0])):
        (tmp_path / "c.jsonl").write_bytes(data)
        done, gaps = run(store.log, Wanted("codex", str(tmp_path / "c.jsonl")))
        assert ([], "it holds no session") == (done, gaps[-1].left.what)


def test_what_is_neither_file_nor_folder_is_refused(store: SessionStore, tmp_path: Path) -> None:
    """A pipe would be waited for; below a folder it is passed by."""
    os.mkfifo(tmp_path / "p.jsonl")
    with pytest.raises(NotFoundError, match="is no file, and no folder"):
        run(store.log, Wanted("codex", str(tmp_path / "p.jsonl")))
    assert ([], []) == run(store.log, Wanted("codex", str(tmp_path)))
