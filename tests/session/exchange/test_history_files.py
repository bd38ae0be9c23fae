"""Files of other programs in every encoding and state: read as far as they can be, and refused by name where not."""

from __future__ import annotations

import codecs
import gzip
import json
import os
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import thinkback
from tests.formats.samples import CODEX, SAMPLES, jsonl, write_database
from thinkback.errors import NotFoundError
from thinkback.formats import registry
from thinkback.formats.registry import MODULES
from thinkback.session.exchange.histories import Wanted, run
from thinkback.session.exchange.program_detection import detect
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


def qwen(id: str, role: str, words: str) -> dict[str, object]:
    """A line of Qwen Code, which names its sessions as Claude Code does."""
    message = {"role": role, "parts": [{"text": words}]}
    return {"uuid": id, "parentUuid": None, "sessionId": "q1", "type": role, "message": message}


QWEN = (qwen("1", "user", "Which file?"), qwen("2", "assistant", "notes.txt"))
CONTINUE = {
    "sessionId": "c-1",
    "title": "Files",
    "workspaceDirectory": "/x",
    "history": [{"message": {"role": "user", "content": "Which file?"}, "contextItems": []}],
}


@pytest.mark.parametrize(
    ("program", "name", "data", "said"),
    [
        ("claude-code", "q.jsonl", jsonl(*QWEN), "uuid, parentUuid, sessionId"),
        ("chat-jsonl", "c.json", json.dumps(CONTINUE, indent=1).encode(), "sessionId, title, workspaceDirectory"),
        ("chat-jsonl", "n.txt", b"Dear diary", "text that begins with 'Dear diary'"),
    ],
)
def test_a_file_of_an_unknown_program_is_refused_with_what_is_in_it(
    store: SessionStore, tmp_path: Path, program: str, name: str, data: bytes, said: str
) -> None:
    """Also under the name of a program that it resembles: no session without words is stored and called imported."""
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(NotFoundError, match=f"is no history of {program}") as refused:
        run(store.log, Wanted(program, str(file)))
    assert said in refused.value.next_actions[0]
    with pytest.raises(NotFoundError, match="is of no program") as unknown:
        detect(file)
    assert said in unknown.value.message
    assert "chat-jsonl" in unknown.value.next_actions[1]
    assert [] == store.sessions()


@pytest.mark.parametrize("program", sorted(MODULES))
def test_the_program_of_each_file_is_detected(tmp_path: Path, program: str) -> None:
    """By its beginning; of a database by its tables, of an archive by the conversations in it."""
    file = tmp_path / "x"
    if registry.program(program).tables:
        write_database(file, SAMPLES[program])
    else:
        file.write_bytes(SAMPLES[program])
    assert program == detect(file)
    if ".zip" in registry.program(program).endings:
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            archive.writestr("user.json", "{}")
            archive.writestr("conversations.json", SAMPLES[program])
        assert program == detect(tmp_path / "x.zip")


def test_what_cannot_be_detected_is_described(tmp_path: Path) -> None:
    """Databases by their tables, archives by their files; a damaged file is none of them, and one of two is both."""
    with closing(sqlite3.connect(tmp_path / "own.db")) as database:
        database.execute("CREATE TABLE recipes (id)")
    with zipfile.ZipFile(tmp_path / "own.zip", "w") as archive:
        archive.writestr("recipes.csv", "")
    (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04")
    (tmp_path / "cut.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    (tmp_path / "empty").write_bytes(b"\n")
    (tmp_path / "binary").write_bytes(b"MZ\0")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"{}")[:12])
    for name, said in {
        "own.db": "a database with the tables recipes",
        "own.zip": "an archive with recipes.csv",
        "cut.zip": "may be a history of chatgpt or claude-ai",
        "cut.db": "may be a history of llm or opencode",
        "empty": "it is empty",
        "binary": "a binary file",
        "cut.gz": "cannot be read",
    }.items():
        with pytest.raises(NotFoundError, match=said):
            detect(tmp_path / name)


def test_a_compressed_file_that_unpacks_to_far_more_is_refused_with_the_limit(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In all, however short its lines are; as much of a file that is not compressed is read."""
    monkeypatch.setattr("thinkback.session.exchange.history_files.ANY_RATIO", 100_000)
    lines = SAMPLES["chat-jsonl"] + b"\n" * 5_000_000
    packed, plain = tmp_path / "packed.jsonl.gz", tmp_path / "plain.jsonl"
    packed.write_bytes(gzip.compress(lines))
    plain.write_bytes(lines)
    with pytest.raises(NotFoundError, match="the limit is at most 4 GB, and 100 times its packed size"):
        run(store.log, Wanted("chat-jsonl", str(packed)))
    assert [] == store.sessions()
    assert run(store.log, Wanted("chat-jsonl", str(plain)))[0]


def test_a_folder_of_another_program_is_no_success(store: SessionStore, tmp_path: Path) -> None:
    """The error names the program that it is of; a folder with nothing in it has nothing to import."""
    assert ([], []) == run(store.log, Wanted("claude-code", str(tmp_path)))
    (tmp_path / "rollout.jsonl").write_bytes(SAMPLES["codex"])
    with pytest.raises(NotFoundError, match=r"no file in .* is a history of claude-code") as raised:
        run(store.log, Wanted("claude-code", str(tmp_path)))
    assert ("name the program with --program: codex",) == raised.value.next_actions
    (tmp_path / "rollout.jsonl").write_bytes(b"{}\n")
    with pytest.raises(NotFoundError) as raised:
        run(store.log, Wanted("claude-code", str(tmp_path)))
    assert ("name another folder with --dir",) == raised.value.next_actions
    (tmp_path / "own.jsonl").write_bytes(SAMPLES["claude-code"])
    assert run(store.log, Wanted("claude-code", str(tmp_path)))[0]


def test_an_archive_that_unpacks_to_far_more_is_refused_with_the_limit(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything of it is unpacked; one that is merely packed well is read."""
    monkeypatch.setattr("thinkback.session.exchange.history_files.ANY_RATIO", 100_000)
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", SAMPLES["chatgpt"] + b" " * 5_000_000)
    with pytest.raises(NotFoundError, match="the limit is at most 4 GB, and 100 times its packed size"):
        run(store.log, Wanted("chatgpt", str(file)))
    assert [] == store.sessions()
    monkeypatch.undo()
    assert 1 == len(run(store.log, Wanted("chatgpt", str(file)))[0])
