"""Sessions as Markdown, HTML and Parquet: readable, self-contained, and no text is ever more than text."""

from __future__ import annotations

import io
import json
import re
import stat
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thinkback
from tests.compile.build import HERE, Talk, call, say, think
from tests.session.histories import Move, build, moves
from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.log.protocol import Store
from thinkback.log.seal import head_of
from thinkback.log.sharing import Sharing
from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Annotation, Compaction, Draft, Erased, Head, Message, Priority, Usage
from thinkback.session.exchange.exporting import Exported, Target, export
from thinkback.stores import open_store

WITH_REASONING = Sharing(reasoning=True)


def stored(talk: Talk, name: str = "chat") -> Store:
    """A log that has the conversation."""
    log = open_store(":memory:")
    log.create_session("s", name, 1)
    log.append("s", "1", talk.commits, Head())
    return log


def written(log: Store, format: str, **asked: Any) -> str:
    """What is exported."""
    stream = io.BytesIO()
    export(log, stream, 7, format=format, **asked)
    return stream.getvalue().decode()


def conversation() -> Talk:
    """A question with a picture, reasoning, a call, its result, an answer."""
    talk = Talk().user("Where is `Oslo`?")
    talk.note("user", Message("Here:", (Text("Here:"), Media("image/png", "iVBORw0KGgo=", name="map.png"))))
    talk.reply(think("I must look."), call(), usage=Usage(5, 7, 3, 2)).result(text="a ``` b\n# no heading")
    talk.reply(think("North."), say("In **Norway**.")).end()
    return talk


def test_markdown() -> None:
    """Roles as headings, calls and results fenced so that they cannot end the fence, text as it is."""
    text = written(stored(conversation()), "markdown")
    assert text.startswith("# chat\n\nSession `s`, branch `main`.\n")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert ["## User", "## User", "## Assistant · m1-served", "## Tool", "## Assistant · m1-served"] == headings
    assert "\n**look**\n\n```\n{}\n```\n" in text
    assert "\n````\na ``` b\n# no heading\n````\n" in text
    assert "\n**image/png map.png** (12 characters)\n" in text
    assert "\nIn **Norway**.\n" in text
    assert "must look" not in text


def test_markdown_quotes_reasoning_where_it_is_asked_for() -> None:
    """Line by line, so that none of it looks like the answer."""
    log = stored(Talk().user("a").reply(think("one\n# two"), say("b")))
    assert "\n> *Reasoning*\n>\n> one\n> # two\n" in written(log, "markdown", sharing=WITH_REASONING)


def edited() -> Talk:
    """A turn that was edited, and one that a summary stands for."""
    talk = Talk().turn("one").turn("two")
    users = talk.hashes("user")
    talk.add(Draft("user", Message("zwei"), edit=users[1]))
    talk.note("annotation", Annotation(users[1], Priority.PINNED, tags=("<b>",)))
    return talk.note("compaction", Compaction("manual", "in short", users[0], talk.commits[4].hash))


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_what_was_there_before_is_shown_on_request(format: str) -> None:
    """Edits and summaries stand in its place otherwise."""
    log = stored(edited())
    now, before = written(log, format), written(log, format, history=True)
    assert [True, True, False, False] == [word in now for word in ("zwei", "in short", "re one", "Before")]
    assert [True] * 5 == [word in before for word in ("zwei", "in short", "re one", "Before", "stands for")]
    assert "pinned" in now


class Structure(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fixed = [f"{name}={value}" if name in ("class", "dir") else name for name, value in attrs]
        self.found.append((tag, *fixed))

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"/{tag}",))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data))

    def unknown_decl(self, data: str) -> None:
        self.found.append(("declaration", data))


def test_html_needs_nothing_but_itself() -> None:
    """No address, no script; a policy forbids both; it follows the reader's theme; pictures are inside."""
    page = written(stored(conversation()), "html", sharing=WITH_REASONING)
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme" in page
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in page
    found = Structure(page).found
    assert {"script", "link", "iframe", "a", "form"}.isdisjoint(tag for tag, *_ in found)
    assert 2 == sum(tag == ("details", "class=reasoning") for tag in found)
    assert "must look" not in written(stored(conversation()), "html")


def page_of(texts: list[str]) -> Structure:
    """A page with each of ``texts`` wherever a text may stand."""
    one, two, three, four = texts
    talk = Talk().user(one).user(two)
    talk.add(Draft("user", Message(three), edit=talk.commits[0].hash))
    talk.note("annotation", Annotation(talk.commits[0].hash, tags=(four,)))
    talk.note("user", Message(one, (Text(one), Media(two, three, name=four), Unknown(one))))
    talk.reply(think(one), ToolCall("c", three, four), say(two), Media(one, url=two), origin=_named(HERE, four))
    talk.note("tool_result", ToolResult("c", one, two), "resp1")
    talk.end("failed")
    asked = {"sharing": WITH_REASONING, "history": True}
    name = one.encode("utf-8", "replace").decode()
    return Structure(written(stored(talk, name), "html", **asked))


def _named(origin: Any, model: str) -> Any:
    return msgspec.structs.replace(origin, served_model=model)


odd = st.sampled_from(
    [
        "<script>alert(1)</script>",
        "</pre></article>",
        '" onload="x',
        "<!--",
        "-->",
        "]]>",
        "&lt;",
        "&#60;b&#62;",
        "$body",
    ]
)
hostile = st.lists(odd | st.text(st.characters(), min_size=1, max_size=8), min_size=1, max_size=4).map("".join)


@given(st.lists(hostile, min_size=4, max_size=4))
def test_no_text_breaks_out_of_the_page(texts: list[str]) -> None:
    """Whatever is said, named or called: the page has the elements and attributes that it has for plain words."""
    plain, inside = outside(page_of([f"word{texts.index(text)}" for text in texts]).found)
    assert (plain, True) == (outside(page_of(texts).found)[0], _is_markdown(inside))
    assert _is_markdown(outside(page_of(texts).found)[1])


def outside(found: list[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """What stands outside of what models say, which is Markdown, and what stands inside."""
    out: list[tuple[str, ...]] = []
    inside: list[tuple[str, ...]] = []
    is_inside = False
    for each in found:
        is_inside = is_inside and each != ("/div",)
        (inside if is_inside else out).append(each)
        is_inside = is_inside or (each[0] == "div" and "class=said" in each)
    return out, inside


def _is_markdown(found: list[tuple[str, ...]]) -> bool:
    """Whether all of it is what Markdown makes: nothing that fetches, leads elsewhere or runs."""
    plain = [
        "p",
        "br",
        "hr",
        "em",
        "strong",
        "s",
        "blockquote",
        "ul",
        "ol",
        "li",
        "pre",
        "code",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ]
    attributes = {"style", "start"}
    return all(
        tag.removeprefix("/") in plain
        and all(each in attributes or each.startswith("class=language-") for each in rest)
        for tag, *rest in found
    )


def test_what_models_say_is_read_as_markdown() -> None:
    """What people say is shown as they typed it; no address and no tag of a text becomes one of the page."""
    said = "# On *it*\n\n<b>[x](https://e.example) ![y](https://e.example/p.png)</b>"
    page = written(stored(Talk().user("# No *title*").reply(say(said))), "html")
    assert "<h1>On <em>it</em></h1>" in page
    assert "&lt;b&gt;[x](https://e.example) ![y](https://e.example/p.png)&lt;/b&gt;" in page
    assert '<div dir="auto"># No *title*</div>' in page
    assert re.search(r'<time datetime="[0-9T:.-]+Z">[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} UTC</time>', page)


def test_text_is_shown_as_it_is() -> None:
    """Markup as markup; half characters and what a terminal obeys as marks of their own."""
    shown = "".join(Structure(written(stored(Talk().user("<b>&amp;</b>\r\n\x1b[2J \ud83d \u202e")), "html")).text)
    assert "<b>&amp;</b>\n\ufffd[2J ? \ufffd" in shown


@settings(max_examples=40)
@given(moves)
def test_any_log_can_be_read(sequence: list[Move]) -> None:
    """In every format, with and without what was there before."""
    log = open_store(":memory:")
    build(log, sequence)
    for format in ("markdown", "html"):
        for history in (False, True):
            assert written(log, format, history=history)


def rows(place: Path, columns: str) -> list[tuple[Any, ...]]:
    """Columns of a Parquet file, in order."""
    import duckdb  # not with the module: it complains at its end of what a collection froze

    with duckdb.connect(":memory:") as db:
        return db.execute(
            f"SELECT {columns} FROM read_parquet(?) ORDER BY session_id, seq, branch", [str(place)]
        ).fetchall()


def test_parquet(tmp_path: Path) -> None:
    """A row for each commit, with columns that say what it says."""
    log = stored(conversation())
    done = export(log, tmp_path / "log.parquet", 7, sharing=WITH_REASONING)
    found = rows(tmp_path / "log.parquet", "kind, text, tool, arguments, model, output_tokens, payload")
    assert (1, len(found)) == (done.sessions, done.commits)
    assert ("user", "Where is `Oslo`?", None, None, None, None, None) == found[0]
    assert ("reasoning", "I must look.", None, None, "m1-served", None, None) == found[3]
    assert ("tool_call", None, "look", "{}", "m1-served", None, None) == found[4]
    assert [7] == [tokens for *_, tokens, _ in found if tokens is not None]


def test_parquet_of_a_whole_copy_has_payloads(tmp_path: Path) -> None:
    """So that nothing is missing from it."""
    log = stored(conversation())
    export(log, tmp_path / "log.parquet", 7, sharing=Sharing(complete=True))
    found = rows(tmp_path / "log.parquet", "payload, hash, erased")
    assert [(c.payload.decode(), c.hash, None) for c in conversation().commits] == found


def test_parquet_says_what_holds_now(tmp_path: Path) -> None:
    """Edits, marks, what was left out, and what was there before on request; odd characters are replaced."""
    talk = edited().user("half \ud83d")
    export(stored(talk), tmp_path / "now.parquet", 7)
    export(stored(talk), tmp_path / "all.parquet", 7, history=True)
    now = rows(tmp_path / "now.parquet", "text, priority, tags, edited, before")
    assert ("zwei", "pinned", ["<b>"], True, []) == now[5]
    assert ["two"] == rows(tmp_path / "all.parquet", "before")[5][0]
    assert "half ?" == now[-1][0]
    assert "left out of this export" == rows(tmp_path / "now.parquet", "erased")[2][0]


@settings(max_examples=10)
@given(moves)
def test_parquet_has_each_commit_once(sequence: list[Move]) -> None:
    """Of every branch of every session of a family."""
    log = open_store(":memory:")
    build(log, sequence)
    lines = io.BytesIO()
    export(log, lines, 7, sharing=Sharing(complete=True))
    with tempfile.TemporaryDirectory() as place:
        done = export(log, Path(place) / "log.parquet", 7)
        hashes = {json.loads(line).get("hash") for line in lines.getvalue().splitlines()} - {None}
        found = [hash for (hash,) in rows(Path(place) / "log.parquet", "hash")]
        assert (done.commits, sorted(hashes)) == (len(found), sorted(set(found)))


def test_without_duckdb_the_extra_is_named() -> None:
    """And everything else works."""
    program = """
import sys
sys.modules["duckdb"] = None
import thinkback
with thinkback.open(":memory:") as store:
    store.session("a").commit("hello")
    store.export(sys.argv[1] + "/a.md")
    try:
        store.export(sys.argv[1] + "/a.parquet")
    except thinkback.errors.MissingPackageError as error:
        print(error.details["extra"], "pip install" in str(error))
"""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-c", program, place]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ("parquet True\n", "") == (done.stdout, done.stderr)
        assert ["a.md"] == [file.name for file in Path(place).iterdir()]


def test_the_ending_names_the_format(tmp_path: Path) -> None:
    """Unless a format is named; what is neither is told, and so is a stream that cannot take it."""
    log = stored(conversation())
    for name, start in (("a.md", b"# chat"), ("a.html", b"<!doctype html>"), ("a.jsonl", b'{"thinkback"')):
        export(log, tmp_path / name, 7)
        assert (tmp_path / name).read_bytes().startswith(start)
    faults: list[tuple[Target, str, str]] = [
        (tmp_path / "a.txt", "", "ending '.txt'"),
        (tmp_path / "a.md", "pdf", "no format 'pdf'"),
    ]
    for to, format, what in faults:
        with pytest.raises(NotFoundError, match=what):
            export(log, to, 7, format=format)
    with pytest.raises(ThinkbackError, match="not to a stream"):
        export(log, io.BytesIO(), 7, format="parquet")
    with pytest.raises(NotFoundError, match="no session 'nobody'"):
        export(log, tmp_path / "a.md", 7, session="nobody")


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """What was there before stays when an export fails; files are as private as the log."""
    log = stored(conversation())
    place = tmp_path / "a.jsonl"
    export(log, place, 7)
    assert 0o600 == stat.S_IMODE(place.stat().st_mode)
    before = place.read_bytes()
    head = head_of(conversation().commits)
    broken = Talk().user("a").commits[0]
    log.append("s", "2", [_torn(broken, head)], head)
    with pytest.raises(ValueError, match="malformed"):
        export(log, place, 7)
    assert (before, [place]) == (place.read_bytes(), list(tmp_path.iterdir()))
    export(stored(conversation()), tmp_path / "a.parquet", 7)
    assert 0o600 == stat.S_IMODE((tmp_path / "a.parquet").stat().st_mode)


def _torn(commit: Any, head: Head) -> Any:
    """A commit whose tombstone's remainder is none."""
    value = Erased("asked", 1, "{")
    return msgspec.structs.replace(
        commit, seq=head.seq + 1, parents=(head.hash,), value=value, payload=canonical.encode(value)
    )


def test_sessions_of_a_family_are_one_file() -> None:
    """Of the whole log, of one family, of one session."""
    with thinkback.open(":memory:") as store:
        for name in ("one", "two"):
            store.session(name).commit(f"in {name}")
        stream = io.BytesIO()
        assert Exported(2, 2, turns=2) == store.export(stream, format="markdown")
        assert ["# one", "# two"] == [line for line in stream.getvalue().decode().splitlines() if line[:2] == "# "]
        assert Exported(1, 1, turns=1) == store.export(io.BytesIO(), format="html", session="two")
        assert Exported(1, 1, turns=1) == store.export(io.BytesIO(), session="two", family=True)
