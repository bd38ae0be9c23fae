"""docs/format.md is true: names, recipes and numbers are held against a real log, read without thinkback."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from tests.stores.samples import asked_step, fill, put, put_on, response_step, user_step
from thinkback.log.protocol import MAIN, Origin
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.blocks import Text
from thinkback.model.commits import KIND_OF, Commit, Draft, Erased, Head, Merge, Message, Payload, Step
from thinkback.stores import open_store
from thinkback.stores.migrations import NEWEST
from thinkback.stores.packing import dictionary
from thinkback.stores.rows import pack, to_rows, unpack

DOCUMENT = (Path(__file__).parents[2] / "docs" / "format.md").read_text("utf-8")


@pytest.fixture
def commits(log: Path) -> list[Commit]:
    """A closed log of one session with compressed, plain and surrogate payloads."""
    store = open_store(log)
    made = fill(
        store, "s", [user_step("1", "é \x7f\n\ud83d"), response_step("2"), user_step("3", "naïve ☃ 𝄞 \x7f\x01")]
    )
    store.close()
    return made


@pytest.fixture
def db(log: Path, commits: list[Commit]) -> Iterator[sqlite3.Connection]:
    """The file of ``commits``, opened by SQLite alone."""
    with closing(sqlite3.connect(log)) as opened:
        yield opened


def test_every_table_and_column_is_described(db: sqlite3.Connection) -> None:
    """The document names the tables of the schema, with their columns, types and order."""
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    assert all(f"`{table}`" in DOCUMENT for table in tables)
    # What FTS5 makes of its table is its own.
    tables = [table for table in tables if not table.startswith("search_words")]
    schema = {table: [row[1:3] for row in db.execute(f"PRAGMA table_info({table})")] for table in tables}
    described = {
        heading: re.findall(r"^\| `(\w+)` \| ([A-Z]+) \|", section, re.M)
        for heading, section in re.findall(r"^### `(\w+)`\n(.*?)(?=^##)", DOCUMENT, re.M | re.S)
    }
    assert schema == described


def test_every_index_is_described(db: sqlite3.Connection) -> None:
    """An index that has a name is in the document."""
    for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"):
        assert f"`{name}`" in DOCUMENT


def test_the_header_is_as_described(db: sqlite3.Connection) -> None:
    """``application_id``, ``user_version`` and the newest format are those of the file."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    assert f"{application} (`{application.to_bytes(4, 'big').decode()}`)" in " ".join(DOCUMENT.split())
    formats = [int(number) for number in re.findall(r"^\| (\d+) \| \d+\.\d+ \|", DOCUMENT, re.M)]
    assert [*range(1, len(NEWEST.names) + 1)] == formats
    assert (formats[-1],) == db.execute("PRAGMA user_version").fetchone()
    assert hashlib.sha256(dictionary()).hexdigest() in DOCUMENT


def test_every_payload_is_described() -> None:
    """Types and members of payloads are those of the code, in its order."""
    section = DOCUMENT[DOCUMENT.index("## Payloads") : DOCUMENT.index("## Hashes")]
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \| (.*) \|$", section, re.M)
    types = get_args(Payload)
    tags: dict[type[object], str] = {type: type.__struct_config__.tag for type in types}
    assert {tags[type]: list(type.__struct_fields__) for type in types} == {
        type: re.findall(r"\w+", names) for type, _, names in rows
    }
    described = {type: kinds for type, kinds, _ in rows}
    for block, kind in KIND_OF.items():
        assert kind == described[tags[block]]


def test_a_program_with_sqlite_and_hashlib_can_read_a_log(log: Path, commits: list[Commit]) -> None:
    """A reader written from the document alone finds a fork's commits, hashes, texts and sequence numbers.

    The fork is of a branch, has merged another, stands on its second one, and two of its payloads were erased.
    """
    with closing(open_store(log)) as store:
        store.create_session("f", "fork", 9, Origin("s", at=head_of(commits[:4])))
        store.refs.create("f", "other", head_of(commits[:4]), MAIN)
        theirs = put_on(store, "f", "other", user_step("4", "taken in"))
        merge = Draft("merge", Merge("other", theirs[0].hash, commits[3].hash), parents=(theirs[0].hash,))
        put(store, "f", Step("merge", (Draft(theirs[0].kind, theirs[0].value), merge), 5))
        store.refs.create("f", "second", store.refs.list("f")[0].head, MAIN)
        store.refs.switch("f", "second")
        put_on(store, "f", "second", user_step("5", "on the second branch"))
        tombs = [canonical.encode(Erased("asked to", 7, text)) for text in ("", "left " * 200)]
        store.care.erase("f", {commits[0].hash: tombs[0], commits[2].hash: tombs[1]})
        expected = store.read("f", branch="second")
    code = re.search(r"^## Reading a session$.*?^```sql\n(.*?)^```", DOCUMENT, re.M | re.S)
    assert code is not None
    with closing(sqlite3.connect(log)) as db:
        found = []
        for seq, stored, codec, payload in db.execute(code[1], {"name": "fork"}):
            if codec in (4, 6):
                stream = zlib.decompressobj(-15, zdict=dictionary())
                payload = stream.decompress(payload)
                assert zlib.crc32(payload).to_bytes(4) == stream.unused_data
            parents, kind, digest, time, response, block, edit = db.execute(
                "SELECT parents, kind, digest, time, response, block, edit FROM commits WHERE hash = ?", (stored,)
            ).fetchone()
            assert (hashlib.sha256(payload).digest() == digest) == (codec in (0, 4))
            joined = ",".join(parents[n : n + 32].hex() for n in range(0, len(parents), 32))
            lines = ["1", joined, kind, digest.hex(), edit.hex(), response, str(block), str(time)]
            assert hashlib.sha256("\n".join(lines).encode()).digest() == stored
            value = json.loads(payload)
            found.append((seq, stored.hex(), value["type"], value.get("text")))
    assert [
        (commit.seq, commit.hash, commit.value.__struct_config__.tag, getattr(commit.value, "text", None))
        for commit in expected
    ] == found
    assert ["erased", "response", "erased"] == [type for _, _, type, _ in found[:3]]


def test_every_codec_is_described() -> None:
    """The document's table has the codecs that are written, and no others."""
    section = DOCUMENT[DOCUMENT.index("## Payloads") : DOCUMENT.index("## Hashes")]
    described = [int(codec) for codec in re.findall(r"^\| (\d+) \|", section, re.M)]
    written = {pack(payload, erased)[0] for payload in (b"x", b"long" * 500) for erased in (False, True)}
    written |= {row[8] for row in to_rows(seal(asked_step("1", "hm", "So.", 1), Head()))}
    # 1 and 3 are in logs of formats before 5.
    assert sorted({*written, 1, 3}) == described
    assert b"long" == unpack(1, zlib.compress(b"long")) == unpack(3, zlib.compress(b"long"))


@pytest.mark.parametrize("length", [4_000, 4_096, 4_097, 40_000])
def test_payloads_of_any_length_unpack_as_described(length: int) -> None:
    """Whatever window they were packed with; they reach back as far as the dictionary is long."""
    payload = dictionary()[:length] + bytes(at * at * 31 % 251 for at in range(length - len(dictionary()[:length])))
    codec, stored = pack(payload)
    assert 4 == codec
    assert payload == unpack(codec, stored) == zlib.decompressobj(-15, zdict=dictionary()).decompress(stored[:-4])
    if length <= len(dictionary()):
        assert len(stored) < 100


def test_a_request_is_whole_with_its_basis(log: Path) -> None:
    """As the document says it is put together, its bytes are those of the digest."""
    with closing(open_store(log)) as store:
        commits = fill(store, "s", [asked_step("1", "hm", "So.", 1), asked_step("2", "hm", "And so.", 2)])
    with closing(sqlite3.connect(log)) as db:
        rows = db.execute("SELECT payload, digest FROM commits WHERE codec = 12 ORDER BY arrival").fetchall()
        bases = {digest: (codec, text) for digest, codec, text in db.execute("SELECT digest, codec, text FROM bases")}
    assert 2 == len(rows)
    for (stored, digest), commit in zip(rows, (each for each in commits if each.kind == "request"), strict=True):
        short = zlib.decompressobj(-15, zdict=dictionary()).decompress(stored[32:])
        payload = short[:-1] + b',"basis":' + unpack(*bases[stored[:32]]) + b"}"
        assert (commit.payload, digest) == (payload, hashlib.sha256(payload).digest())
        assert json.loads(payload)["basis_digest"] == stored[:32].hex()


def test_the_recipe_in_the_document_is_the_one_that_is_used(commits: list[Commit]) -> None:
    """The code block under "Hashes" runs, and gives the hash of a commit."""
    code = re.search(r"^## Hashes$.*?^```python\n(.*?)^```", DOCUMENT, re.M | re.S)
    assert code is not None
    for commit in commits:
        scope: dict[str, object] = {"hashlib": hashlib, "parents": commit.parents, "kind": commit.kind}
        scope |= {"digest": commit.digest, "edit": commit.edit, "response": commit.response}
        scope |= {"block": commit.index, "time": commit.time}
        exec(code[1], scope)
        assert commit.hash == scope["hash"]


@pytest.mark.parametrize("text", ["", 'plain "quoted" \\ / text', "\x00\x08\t\n\x0c\r\x1f\x7f", "naïve ☃ 𝄞", "\u2028"])
def test_canonical_bytes_are_as_described(text: str) -> None:
    """Payload bytes follow the rules of the document; those with a lone surrogate are ASCII."""
    escapes = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    plain = "".join(escapes.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text)
    assert f'{{"type":"message","text":"{plain}"}}'.encode() == canonical.encode(Message(text))
    units = [f"\\u{unit:04x}" for unit in memoryview((text + "\ud83d").encode("utf-16-le", "surrogatepass")).cast("H")]
    short = [
        escapes.get(chr(int(u[2:], 16))) or (chr(int(u[2:], 16)) if 0x20 <= int(u[2:], 16) < 0x7F else u) for u in units
    ]
    assert f'{{"type":"text","text":"{"".join(short)}"}}'.encode() == canonical.encode(Text(text + "\ud83d"))
