"""A conversation whose page is open grows by what is stored, each piece once, wherever the page came back from."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from html import unescape
from typing import Any, cast

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp
from starlette.types import Message as Asgi

import thinkback
from tests.servers.gateway.harness.engines import DEEPSEEK, JSON, KEY, PLACES, Plays, ask, chat, engine
from tests.servers.viewer.conversations import Page, answered, asked
from tests.stores.samples import put
from thinkback.drive.leases import here
from thinkback.log.protocol import SessionInfo, Store
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Commit, Draft, Message, Step
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.lines import Line, Lines
from thinkback.servers.viewer.live import Event, Watch, place_of, since
from thinkback.session.store import SessionStore
from thinkback.stores import open_store


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """A log in memory."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        yield store


class Gone(Exception):
    """Whoever read the stream went away."""


def streamed(watch: Watch, *happens: Callable[[], object]) -> list[tuple[str, str]]:
    """The events of a stream while ``happens`` happens, one thing between two looks; names and data."""
    left, found = list(happens), list[bytes]()

    async def thread(work: Callable[[], Any]) -> Any:
        return work()

    async def pause(_: float) -> None:
        if not left:
            raise Gone
        left.pop(0)()

    async def read() -> None:
        async for event in watch.events(thread, pause, lambda: False):
            found.append(event)

    with suppress(Gone):
        asyncio.run(read())
    told = [event.decode().strip("\n").split("\n") for event in found if event.startswith(b"event: ")]
    return [(lines[0][7:], "\n".join(line[6:] for line in lines[1:] if line.startswith("data: "))) for lines in told]


def watching(store: SessionStore, info: SessionInfo, place: str = "", lines: Lines | None = None) -> Watch:
    """A page that shows what is there now, or stands at ``place``."""
    lines = lines or Lines(store.log)
    now = place or place_of(lines.read(info, "main"))
    return Watch(store, lines, info, "main", now, lambda _, piece: f"{piece.is_new} {piece.entry.parts[-1].text}")


def test_what_is_stored_is_added_to_the_page_once(store: SessionStore) -> None:
    """A message and a response as a whole; a result into the response that called, also when it comes late."""
    info = asked(store, "sky")
    told = streamed(
        watching(store, info),
        lambda: answered(store, "sky", ThinkingBlock("Light."), ToolCall("c1", "look", "{}")),
        lambda: None,
        lambda: put(store.log, info.id, Step("r", (Draft("tool_result", ToolResult("c1", "blue")),), 9_000_000)),
        lambda: put(store.log, info.id, Step("q", (Draft("user", Message("And\r\nnow?")),), 9_000_001)),
    )

    added = [each for each in told if each[0] not in ("here", "state")]
    assert [("entry", "True {}"), ("part", "False blue"), ("entry", "True And\nnow?")] == added
    assert ["state", "entry", "here", "part", "here", "entry", "here"] == [name for name, _ in told]


def test_a_page_that_is_open_has_only_what_is_new_read(store: SessionStore) -> None:
    """However long it is open; all is read again where words were taken out meanwhile, wherever that was."""
    info, numbers = asked(store, "sky"), iter(range(9))
    log = Reads(store.log)
    lines = Lines(cast("Store", log))

    def later() -> None:
        answered(store, "sky", Text(f"{next(numbers)}"))

    told = streamed(watching(store, info, lines=lines), later, later, later)
    assert 3 == sum(name == "entry" for name, _ in told)
    assert [False, True, True, True] == log.went_on
    lines.read(info, "main")
    assert [] == log.went_on[4:]
    store.care.redact(store.commits("sky")[0].hash, ".+")
    lines.read(info, "main")
    assert [False] == log.went_on[4:]


class Reads:
    """A log that says of each look at a branch whether it went on from somewhere."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.went_on: list[bool] = []

    def read(self, session: str, since: int = -1, branch: str = "main") -> Sequence[Commit]:
        """As the log has it."""
        self.went_on.append(since >= 0)
        found: Sequence[Commit] = self._log.read(session, since=since, branch=branch)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def test_a_page_grows_by_what_a_gateway_stores_in_postgresql(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The viewer has connections of its own; each question and answer is added once, and the thought with it."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    upstream = Plays(lambda body: (200, JSON, [chat("It scatters.", "Light.")]))
    said = {"role": "assistant", "content": "It scatters."}

    def talk(*questions: str) -> None:
        first, *later = ({"role": "user", "content": question} for question in questions)
        messages = [first, *(message for question in later for message in (said, question))]
        assert (
            200
            == clients.submit(ask, gateway, "openai-chat", {"model": DEEPSEEK, "messages": messages}).result().status
        )

    with (
        closing(open_store(database)) as log,
        thinkback.open(database, rules={}, settings={}) as viewer,
        ThreadPoolExecutor(1) as clients,
    ):
        gateway = engine(upstream, PLACES, log)
        talk("Why?")
        (info,) = viewer.sessions()
        told = streamed(
            watching(viewer, info), lambda: talk("Why?", "Red?"), lambda: None, lambda: talk("Why?", "Red?", "Dusk?")
        )
        thoughts = [commit.value for commit in viewer.commits(info.name) if commit.kind == "reasoning"]

    added = [data for name, data in told if name == "entry"]
    assert ["True Red?", "True It scatters.", "True Dusk?", "True It scatters."] == added
    assert 3 == len(thoughts)


def test_a_page_that_comes_back_gets_what_it_lacks(store: SessionStore) -> None:
    """From the place that it names; one that is no place of this branch, or far behind, is read anew."""
    info = asked(store, "sky")
    lines = Lines(store.log)
    before = place_of(lines.read(info, "main"))
    answered(store, "sky", Text("It scatters."))
    line = lines.read(info, "main")

    def added(place: str) -> Sequence[str] | None:
        found = since(line, place)
        return None if found is None else [piece.entry.parts[0].text for piece in found]

    assert [] == added(place_of(line))
    assert ["It scatters."] == added(before)
    assert ["Why?", "It scatters."] == added("")
    for place in ("0-" + "0" * 16, "0-", "999-" + line.head.hash[:16]):
        assert added(place) is None
    for number in range(201):
        put(store.log, info.id, Step(f"s{number}", (Draft("user", Message(f"{number}?")),), 9_000_000 + number))
    line = lines.read(info, "main")
    assert added(before) is None


def test_a_page_is_read_anew_where_what_it_shows_changed(store: SessionStore) -> None:
    """An annotation, a branch that was set back, a session that is gone: the stream says so and ends."""
    changes: list[Callable[[str, SessionInfo], object]] = [
        lambda name, info: store.session(name, endpoint="deepseek", model="m").annotate(
            store.commits(name)[0].hash, thinkback.Priority.SKIP
        ),
        lambda name, info: store.log.refs.move(info.id, "main", store.find(name).head, type(info.head)()),
        lambda name, info: store.care.delete_session(name),
    ]
    for number, change in enumerate(changes):
        info = asked(store, f"s{number}")
        answered(store, f"s{number}", Text("It scatters."))
        happens = partial(change, f"s{number}", info)
        assert [("state", "quiet"), ("stale", "")] == streamed(watching(store, info), happens, lambda: None)


def test_a_turn_under_way_is_said(store: SessionStore) -> None:
    """By its lease, which others' turns hold as well."""
    info, me, leases = asked(store, "sky"), here(), store.log.leases
    told = streamed(
        watching(store, info),
        lambda: leases.take(info.id, "main", me, 60_000_000, time.time_ns() // 1000),
        lambda: leases.release(info.id, "main", me),
    )
    assert [("state", "quiet"), ("state", "running"), ("state", "quiet")] == told


def test_a_line_that_grows_is_what_one_read_at_once_is(store: SessionStore) -> None:
    """Entries, places and requests, whatever is added; what was read before stays, also where nobody looked at it."""
    asked(store, "sky")
    for number in range(3):
        answered(store, "sky", ThinkingBlock(f"{number}"), ToolCall(f"c{number}", "look", "{}"))
        put(
            store.log,
            store.find("sky").id,
            Step(f"r{number}", (Draft("tool_result", ToolResult(f"c{number}", "x")),), 9),
        )
    commits = store.commits("sky")
    store.session("sky", endpoint="deepseek", model="m").annotate(commits[2].hash, thinkback.Priority.PINNED)
    commits = store.commits("sky")
    lines = [Line(commits[:1], 0)]
    assert {commits[0].hash: 0} == lines[0].places
    for commit in commits[1:]:
        lines.append(lines[-1].grown([commit]))

    def told(line: Line) -> list[object]:
        return [(each.ended, each.commits, [(part.text, part.marks) for part in each.parts]) for each in line.entries]

    for number, line in enumerate(lines, 1):
        whole = Line(commits[:number], 0)
        assert (whole.places, whole.requests, told(whole)) == (line.places, line.requests, told(line))


def test_a_stream_is_made_of_the_pages_own_pieces(store: SessionStore) -> None:
    """The page says where it stands; what is added has the tags, ids and escapes of a page."""
    info = asked(store, "sky")
    app = application(store)
    client = TestClient(app, base_url="http://127.0.0.1:8000")
    before = client.get(f"/session/{info.id}").text
    way = unescape(before.partition('data-live="')[2].partition('"')[0])
    answered(store, "sky", ThinkingBlock("<b>Light</b>"), ToolCall("c1", "look", "{}"))
    streams = iter((stream_of(app, way), stream_of(app, "/session/none/live")))
    whole = client.get(f"/session/{info.id}").text
    added = [event for event in next(streams).split("\n\n") if event.startswith("event: entry")]

    pieces = ["\n".join(line[6:] for line in event.split("\n") if line.startswith("data: ")) for event in added]
    assert 1 == len(pieces)
    assert "&lt;b&gt;Light" in pieces[0]
    article, _, timeline = pieces[0].partition('<div class="timeline"')
    assert article.strip() in whole
    assert timeline.strip().replace(" data-again", "") in whole
    Page(whole)
    assert "" == next(streams)
    assert b"event: entry\ndata: a\ndata: b\ndata: c\nid: 1-x\n\n" == bytes(Event("entry", "a\r\nb\rc", "1-x"))


def stream_of(app: ASGIApp, way: str) -> str:
    """What a browser reads at ``way`` that goes when nothing is left to say."""
    path, _, query = way.partition("?")
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": []}
    told: list[str] = []

    async def read() -> None:
        over = asyncio.Event()

        async def receive() -> Asgi:
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Asgi) -> None:
            told.append(message.get("body", b"").decode())
            if "event: state" in told[-1]:
                over.set()

        await asyncio.wait_for(app(scope, receive, send), 20)

    asyncio.run(read())
    return "".join(told)
