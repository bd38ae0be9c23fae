"""The pages: sessions, search, conversations and blocks, of a log as it is now; read, and never written."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from threading import Event

import pytest
from starlette.testclient import TestClient

import thinkback
from tests.formats.samples import SAMPLES
from tests.servers.viewer.conversations import Page, answered, asked
from tests.stores.samples import put, put_on
from thinkback.errors import StoreError
from thinkback.log.protocol import About
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Draft, Erased, Message, Step
from thinkback.servers.viewer import app, sessions
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.conversation import Entry
from thinkback.servers.viewer.lines import Lines
from thinkback.servers.viewer.numbers import Figures
from thinkback.servers.viewer.sessions import Listing, Wanted, facets_of, narrowed, saying
from thinkback.servers.viewer.timeline import timeline_of
from thinkback.session.exchange.histories import Wanted as HistoriesWanted
from thinkback.session.exchange.histories import run
from thinkback.session.places import day_of
from thinkback.session.store import SessionStore
from thinkback.stores import sqlite_file


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """A log in memory."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        yield store


@pytest.fixture
def client(store: SessionStore) -> TestClient:
    """A browser that was let in."""
    return TestClient(application(store), base_url="http://127.0.0.1:8000")


def page(client: TestClient, path: str, status: int = 200) -> Page:
    """The page at ``path``, whose tags are all known."""
    answer = client.get(path)
    assert status == answer.status_code, answer.text
    assert len(answer.content) <= 100_000
    return Page(answer.text)


def test_the_list_has_what_is_known_of_each_session(store: SessionStore, client: TestClient) -> None:
    """Title, program, project, model, turns, tokens, the part of reasoning, state; each leads to its conversation."""
    info = asked(store, "sky", "Why is the sky blue?")
    answered(store, "sky", ThinkingBlock("Rayleigh."), Text("It scatters."))
    store.log.describe(info.id, About("claude-code", "weather", cost=2_500_000))
    asked(store, "sea")
    found = page(client, "/")

    for word in ("Why is the sky blue?", "claude-code", "weather", "reasoner", "$2.50", "completed", "open"):
        assert word in found.text
    assert f"/session/{info.id}" in found.links


def test_a_hundred_and_twenty_sessions_are_found_by_words_a_page_at_a_time(
    store: SessionStore, client: TestClient
) -> None:
    """Newest first; a page beyond the last is the last."""
    for number in range(120):
        store.log.create_session(f"s{number}", f"session-{number}", number)

    assert "Page 1 of 3" in page(client, "/").text
    assert "session-119" not in page(client, "/?page=3").text
    assert "session-0" in page(client, "/?page=99").text
    assert "1 of 120 sessions" in page(client, "/?q=SESSION-77").text


def test_sessions_are_found_by_what_was_said_and_thought_in_them(store: SessionStore, client: TestClient) -> None:
    """Beside those of that title, by the beginning of a word too; the words are marked, each place leads there; what is
    typed gets the list alone.
    """
    info = asked(store, "sky", "Why is the sky blue?")
    answered(store, "sky", ThinkingBlock("Rayleigh <b>scattering</b>."), Text("It scatters."))
    asked(store, "rayleigh", "Who was he?")
    asked(store, "sea")
    thought = next(commit for commit in store.commits("sky") if commit.kind == "reasoning")
    answer = client.get("/?q=raylei").text
    found, typed = Page(answer), client.get("/?q=raylei&part=1").text

    assert "2 of 3 sessions" in found.text
    assert "<mark>Raylei</mark>gh &lt;b&gt;" in answer
    assert f"/session/{info.id}/commit/{thought.hash}?q=raylei" in found.links
    assert (True, False) == ("Who was he?" in typed, "<html" in typed)
    assert typed.strip() in answer


def test_sessions_are_narrowed_by_what_they_are_of(store: SessionStore, client: TestClient) -> None:
    """Program, project, model and day, with how many there are; a fork is of its session's project."""
    info = asked(store, "sky")
    answered(store, "sky", Text("It scatters."))
    store.log.describe(info.id, About("codex", "weather"))
    fork = store.session("sky", endpoint="deepseek", model="m").branches.fork("fork-of-sky").name
    asked(store, "sea", time=200_000_000_000_000)
    everything = page(client, "/").text

    for word in ("codex (2)", "thinkback (1)", "weather (2)", "1976-05-03 (1)"):
        assert word in everything
    for query, names in (
        ("project=weather", {"sky", fork}),
        ("day=1976-05-03", {"sea"}),
        ("program=codex&q=why", {"sky"}),
    ):
        rows = page(client, f"/?{query}").links
        there = {name for name in ("sky", "sea", fork) if f"/session/{store.find(name).id}" in rows}
        assert names == there


def test_a_list_is_read_once_in_some_seconds(store: SessionStore) -> None:
    """However often a page is asked for; then anew."""
    now = [0.0]
    listing = Listing(store, lambda: now[0])
    assert 0 == len(listing.every())
    asked(store, "sky")
    assert 0 == len(listing.every())
    now[0] = 10.0
    assert 1 == len(listing.every())


def test_no_page_shows_what_another_program_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the list and the figures rest, and whatever was read of the conversation."""
    monkeypatch.setattr(sessions, "_LONG", 0.0)
    monkeypatch.setattr(sessions, "_REST", 1e9)
    with thinkback.open(tmp_path / "log.db") as store, thinkback.open(tmp_path / "log.db") as other:
        client = TestClient(application(store), base_url="http://127.0.0.1:8000")
        info = asked(store, "sky", "Why is the sky secretblue?")
        answered(store, "sky", Text("It scatters."))
        places = ("/", f"/session/{info.id}", "/numbers", "/search?q=scatters")
        assert ["/", f"/session/{info.id}"] == [each for each in places[:2] if "secretblue" in client.get(each).text]
        assert {200} == {client.get(each).status_code for each in places}
        other.care.redact(other.commits("sky")[0].hash, "secretblue")
        assert [] == [each for each in places if "secretblue" in client.get(each).text]
        other.care.delete_session("sky")
        assert info.id not in client.get("/").text


def test_the_first_page_of_a_large_log_reads_that_page_alone(
    store: SessionStore, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are those of the whole list; the facets come with what is looked for."""
    for number in range(60):
        store.log.create_session(f"s{number}", f"name-{number}", number)
        store.log.describe(f"s{number}", About("codex", "sky"))
    whole = page(client, "/")
    monkeypatch.setattr(sessions, "_MANY", 10)
    listing = TestClient(application(store), base_url="http://127.0.0.1:8000")
    first = page(listing, "/")

    def rows(found: Page) -> list[str]:
        return [link for link in found.links if link.startswith("/session/")]

    assert rows(whole) == rows(first) != []
    assert "60" in first.text
    assert rows(page(client, "/?page=2")) == rows(page(listing, "/?page=2"))
    assert rows(whole) == rows(page(listing, "/?project=sky"))


def test_a_list_that_takes_long_rests_for_longer(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many times what reading it took; what is changed by way of the viewer is there at the next look."""
    monkeypatch.setattr(sessions, "_REST", 1e9)
    now = [0.0]
    listing = Listing(store, lambda: now[0])
    assert 0 == len(listing.every())
    asked(store, "sky")
    now[0] = 10.0
    assert 0 == len(listing.every())
    listing.forget()
    assert 1 == len(listing.every())


def test_sessions_are_narrowed_as_if_each_were_looked_at_alone(store: SessionStore) -> None:
    """By any values, words and sessions that said them: the same ones in the same order, with the same facets."""
    names = ("", "codex", "pi", "thinkback")
    for number in range(48):
        store.log.create_session(f"s{number}", f"name-{number}", number % 5 * 86_400_000_000)
        store.log.describe(f"s{number}", About(names[number % 4], ("", "sea", "sky")[number % 3]))
        if number % 2:
            asked(store, f"name-{number}", ("Why?", "Why is the sky blue?")[number % 3 == 0])
            answered(store, f"name-{number}", Text("So."))
    every = Listing(store).every()
    assert 48 == len(every)

    for program, model, project, day, text, said in product(
        ("", "codex", "thinkback", "none"),
        ("", "reasoner"),
        ("", "sky"),
        ("", "1970-01-03", "1970-1-3"),
        ("", "NAME-1", "why sky", "zebra"),
        ((), ("s1", "s7", "gone")),
    ):
        wanted = Wanted(text, program, model, project, day)
        alone = [
            one
            for one in every
            if program in ("", one.place.program)
            and project in ("", one.place.project)
            and (not model or (one.summary is not None and model in one.summary.tally.models))
            and day in ("", day_of(one.info.updated))
            and (one.info.id in said or all(word in one.words for word in text.lower().split()))
        ]
        found = saying(narrowed(every, wanted), text, said)
        facets = facets_of(found)
        assert alone == [*found]
        assert sorted(facets["day"], reverse=True) == facets["day"]
        assert Counter(day_of(one.info.updated) for one in alone) == dict(facets["day"])
        for name in ("program", "project"):
            of = Counter(value for one in alone if (value := getattr(one.place, name)))
            assert of.most_common() == facets[name]


def test_a_conversation_shows_thoughts_folded_and_results_behind_their_calls(
    store: SessionStore, client: TestClient
) -> None:
    """With tokens and seconds; JSON laid out, a change as a diff; what is withheld is said to be."""
    info = asked(store, "sky")
    hidden = ThinkingBlock("", kind="none", carriers=(Carrier("encrypted", "e" * 400),))
    calls = (
        ToolCall("c1", "edit", '{"path":"a.py","old_string":"one\\ntwo","new_string":"one\\nthree"}'),
        ToolCall("c2", "look", '{"at":"it"}'),
    )
    results = (ToolResult("c2", '{"blue":true}', "look"), ToolResult("c1", "no such file", "edit", is_error=True))
    answered(store, "sky", ThinkingBlock("Light is scattered."), hidden, *calls, results=results)
    answer = client.get(f"/session/{info.id}").text
    found = Page(answer)

    order = ["Light is scattered.", "Thought, text withheld", "encrypted, 400 characters", "path", "two", "three"]
    order += ["failed", "no such file", '"blue": true']
    places = [found.text.index(word) for word in order]
    assert sorted(places) == places
    assert "<del>-two</del>" in answer
    assert "e" * 40 not in answer
    for word in ("60 out", "40 reasoning", "2.0 s", "7 tokens, about 0.2 s"):
        assert word in found.text


def test_each_block_has_an_address_that_leads_to_its_page(store: SessionStore, client: TestClient) -> None:
    """Also in a long conversation; the page is the one that the block is on. Of other pages nothing is made."""
    info = asked(store, "long")
    for number in range(90):
        answered(store, "long", Text(f"answer {number}."))
    commits = [commit for commit in store.commits("long") if commit.kind == "assistant"]

    assert "answer 89." in page(client, f"/session/{info.id}").text
    made = {commit.hash for each in gc.get_objects() if type(each) is Entry for commit in each.commits}
    assert [commit for commit in commits if commit.hash in made] == commits[79:]
    for number in (0, 41, 89):
        answer = client.get(f"/session/{info.id}/commit/{commits[number].hash}")
        place = f"b-{commits[number].hash[:12]}"
        assert answer.url.fragment == place
        assert place in Page(answer.text).ids
    numbers = [page(client, f"/session/{info.id}?at={seq}").text.count("answer 7.") for seq in (0, 300)]
    assert [1, 0] == numbers


def test_the_time_of_a_turn_is_drawn_and_told(store: SessionStore, client: TestClient) -> None:
    """Thinking and answering by their tokens, then the tools; spans follow one another."""
    info = asked(store, "sky", time=1_000_000)
    answered(store, "sky", ThinkingBlock("Look."), ToolCall("c1", "look", "{}"), time=4_000_000)
    put(store.log, info.id, Step("late", (Draft("tool_result", ToolResult("c1", "x")),), 6_000_000))
    answer = client.get(f"/session/{info.id}").text
    drawn = re.findall(r'<rect class="t-(\w+)" x="([\d.]+)" y="0" width="([\d.]+)"', answer)
    line = Lines(store.log).read(info, "main")

    assert [("thinking", "0.0", "400.0"), ("answering", "400.0", "200.0"), ("tools", "600.0", "400.0")] == drawn
    said = "5.0 s thinking about 2.0 s answering about 1.0 s tools 2.0 s"
    assert said in " ".join(Page(answer).text.split())
    assert 5.0 == timeline_of(line.entries, 0).seconds


def test_a_block_is_there_as_markdown(store: SessionStore, client: TestClient) -> None:
    """Prose as it is, a call between fences that its text does not end."""
    info = asked(store, "sky")
    answered(store, "sky", Text("It *scatters*."), ToolCall("c1", "look", '{"at":"```"}'))
    told = [
        client.get(f"/session/{info.id}/block/{commit.hash}/markdown")
        for commit in store.commits("sky")
        if commit.kind in ("assistant", "tool_call")
    ]

    assert ["It *scatters*.", '`look` (call)\n\n````json\n{\n  "at": "```"\n}\n````\n'] == [each.text for each in told]
    assert {"text/plain; charset=utf-8"} == {each.headers["content-type"] for each in told}


def test_what_others_store_is_there_at_the_next_look(store: SessionStore, client: TestClient) -> None:
    """Behind what was read, and where the branch was set back."""
    info = asked(store, "live", "First?")
    assert "First?" in page(client, f"/session/{info.id}").text
    answered(store, "live", Text("Second."))
    assert "Second." in page(client, f"/session/{info.id}").text
    head = store.find("live").head
    first = store.commits("live")[0]
    store.log.refs.move(info.id, "main", head, type(head)(first.hash, 0))
    assert "Second." not in page(client, f"/session/{info.id}").text


def test_branches_are_listed_and_shown(store: SessionStore, client: TestClient) -> None:
    """Each has its own page; a link to a block that is on another branch leads there."""
    info = asked(store, "fork")
    session = store.session("fork", endpoint="deepseek", model="deepseek-v4-pro")
    session.branches.branch("a/b&ü", switch=True)
    commit = put_on(store.log, info.id, "a/b&ü", Step("there", (Draft("user", Message("On the side.")),), 5_000_000))[0]
    session.branches.switch("main")
    found = page(client, f"/session/{info.id}")

    assert "On the side." not in found.text
    assert (
        "On the side."
        in page(client, f"/session/{info.id}{next(x for x in found.links if 'a%2Fb' in x or 'a/b' in x)}").text
    )
    assert "On the side." in Page(client.get(f"/session/{info.id}/commit/{commit.hash}").text).text


def test_the_branches_are_one_picture_with_a_table_below(store: SessionStore, client: TestClient) -> None:
    """A lane for each, bending out of the one it left; the table says the same in words and leads there."""
    info = asked(store, "fork")
    answered(store, "fork", Text("One."))
    session = store.session("fork", endpoint="deepseek", model="deepseek-v4-pro")
    first = session.log()[0].hash
    session.branches.branch("aside", first)
    session.branches.fork("child", purpose="<b>elsewhere</b>")
    answer = client.get(f"/session/{info.id}/tree").text
    found = Page(answer)

    assert (3, 2) == (answer.count("<circle"), answer.count('class="bend"'))
    assert f"main after {first[:8]}" in " ".join(found.text.split())
    assert f"/session/{info.id}?branch=aside" in found.links
    assert "fork / main after" in " ".join(found.text.split())


def test_what_was_erased_edited_or_marked_shows_as_such(store: SessionStore, client: TestClient) -> None:
    """The words that are gone are on no page."""
    info = asked(store, "gone", "My card is 47-11-08.")
    answered(store, "gone", ThinkingBlock("A card."), Text("Noted."))
    session = store.session("gone", endpoint="deepseek", model="deepseek-v4-pro")
    thought, text = [commit for commit in session.log() if commit.kind in ("reasoning", "assistant")]
    session.annotate(thought.hash, thinkback.Priority.SKIP, reason="only a joke", tags=["fun"])
    session.commit("Noted well.", edit=text.hash)
    store.care.redact(session.log()[0].hash, "47-11-08", reason="a card")
    found = page(client, f"/session/{info.id}").text

    assert "47-11-08" not in found
    assert "47-11-08" not in page(client, "/").text
    for word in ("skip", "only a joke", "fun", "edited", "Noted well.", "Before it was edited"):
        assert word in found


def test_a_text_of_any_length_is_shown_in_part_and_whole_on_its_own_page(
    store: SessionStore, client: TestClient
) -> None:
    """A megabyte in one block: the page stays small, the rest is there by parts."""
    info = asked(store, "big")
    text = "".join(f"line {number}\n" for number in range(50_000))
    answered(store, "big", ToolCall("c1", "read", "{}"), results=(ToolResult("c1", text, "read"),))
    found = page(client, f"/session/{info.id}")
    (way,) = [link for link in found.links if "/block/" in link]

    assert "line 49999" not in found.text
    pieces = [Page(client.get(f"{way}?part={number}").text).text for number in range(6)]
    assert "line 0\n" in pieces[0]
    assert "line 49999\n" in pieces[-1]
    assert pieces[-1] == Page(client.get(f"{way}?part=99").text).text


def test_a_request_with_a_long_text_is_laid_out_in_part(store: SessionStore, client: TestClient) -> None:
    """What is left out of a message is counted."""
    info = asked(store, "long", "x" * 1_000_000)
    found = page(client, f"/session/{info.id}/next?to=deepseek/deepseek-v4-pro")

    assert "more characters" in found.text
    assert "message 0" in found.text


@pytest.mark.parametrize("depth", [200, 400, 700, 900, 2_500])
def test_arguments_of_any_depth_leave_pages_that_can_be_read(
    store: SessionStore, client: TestClient, depth: int
) -> None:
    """As they stand where they cannot be laid out; else the page says what is wrong with it."""
    info = asked(store, "deep")
    arguments = '{"a":' * depth + "1" + "}" * depth
    answered(store, "deep", ToolCall("c1", "look", arguments), results=(ToolResult("c1", "look", arguments),))
    assert "look" in page(client, f"/session/{info.id}").text
    for to in ("anthropic/claude-sonnet-4-5", "deepseek/deepseek-v4-pro"):
        answer = client.get(f"/session/{info.id}/next?to={to}")
        assert "look" in answer.text if answer.status_code == 200 else "cannot be shown" in answer.text


def test_nobody_waits_for_a_list_that_takes_long(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read last is shown while it is read anew."""
    monkeypatch.setattr(sessions, "_LONG", 0.0)
    now = [0.0]
    listing = Listing(store, lambda: now[0])
    assert 0 == len(listing.every())
    asked(store, "sky")
    now[0] = 10.0
    assert 0 == len(listing.every())
    assert listing.reading is not None
    listing.reading.join()
    assert 1 == len(listing.every())


def test_search_finds_thoughts_and_marks_the_words(store: SessionStore, client: TestClient) -> None:
    """Each place leads to its block."""
    info = asked(store, "sky", "Why is the sky blue?")
    answered(store, "sky", ThinkingBlock("Rayleigh <b>scattering</b>."), Text("It scatters."))
    thought = next(commit for commit in store.commits("sky") if commit.kind == "reasoning")
    answer = client.get("/search?q=rayl&in=reasoning").text

    assert "<mark>Rayl</mark>eigh" in answer
    assert f"/session/{info.id}/commit/{thought.hash}?q=rayl" in Page(answer).links
    assert "0 places" in page(client, "/search?q=rayleigh&in=tools").text


def test_what_is_not_there_is_said(client: TestClient) -> None:
    """No session, no commit, no page, no file."""
    for path in ("/session/none", "/nothing", "/static/app.py", "/static/..%2fapp.py"):
        assert "cannot be shown" in page(client, path, 404).text


def test_what_is_left_of_an_erased_commit_may_be_no_payload(store: SessionStore, client: TestClient) -> None:
    """Another program may have written it: the pages of that session say so, all others show what they have."""
    info, other = asked(store, "torn"), asked(store, "whole", "Why not?")
    stone = Erased("asked to", 1, "{")
    store.log.care.erase(info.id, {store.commits("torn")[0].hash: canonical.encode(stone)})
    answered(store, "whole", Text("Because."))

    assert "what is left of an erased commit cannot be read" in page(client, f"/session/{info.id}", 500).text
    assert f"/session/{other.id}" in page(client, "/?q=because").links
    assert 1 == Figures(store).report(0, patience=60).total.responses


def test_a_log_that_may_only_be_read_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On read-only media too: nothing is written."""
    path = tmp_path / "log.db"
    with thinkback.open(path) as store:
        asked(store, "sky", "Why is the sky blue?")
        answered(store, "sky", ThinkingBlock("Rayleigh."), Text("It scatters."))
    before = path.read_bytes()
    monkeypatch.setattr(sqlite_file, "is_read_only", lambda path: True)
    with thinkback.open(path) as store:
        client = TestClient(application(store), base_url="http://127.0.0.1:8000")
        found = [page(client, way).text for way in ("/", "/session/id-of-sky", "/search?q=blue")]
    assert ["Why is the sky blue?" in text for text in found] == [True, True, True]
    assert before == path.read_bytes()


def test_a_place_that_was_found_is_open_and_marked(store: SessionStore, client: TestClient) -> None:
    """Its thought is unfolded with the words marked, names of characters aside; the others stay folded."""
    asked(store, "sky", "Why is the sky blue?")
    answered(store, "sky", ThinkingBlock("Lord **Rayleigh** & <amp>: rayleigh."), Text("It scatters."))
    answered(store, "sky", ThinkingBlock("Nothing of it, Rayleigh."), Text("Yes."))
    (first, second) = [commit for commit in store.commits("sky") if commit.kind == "reasoning"]
    way = f"/session/{store.find('sky').id}/commit/{first.hash}"
    answer = client.get(f"{way}?q=rayleigh+amp").text
    (found, other) = [
        answer.partition(f'id="b-{each.hash[:12]}"')[2].partition("</details>")[0] for each in (first, second)
    ]

    assert "<details open>" in found
    assert "<strong><mark>Rayleigh</mark></strong> &amp; &lt;<mark>amp</mark>&gt;: <mark>rayleigh</mark>." in found
    assert "<details open>" not in other
    assert "<mark>" not in other
    assert "<details open>" in client.get(way).text


def test_older_places_are_on_a_page_of_their_own(store: SessionStore, client: TestClient) -> None:
    """Each place once, the newest first."""
    asked(store, "sky")
    for number in range(120):
        answered(store, "sky", Text(f"It scatters {number}."), time=3_000_000 + number)
    found: list[str] = []
    way = "/search?q=scatters"
    for expected in ("The newest 50 places", "50 older places", "20 older places"):
        shown = page(client, way)
        assert expected in shown.text
        found += re.findall(r"It scatters (\d+)\.", shown.text)
        way = next((link for link in shown.links if "before=" in link), "")

    assert [str(number) for number in reversed(range(120))] == found
    assert way == ""


def test_a_page_over_an_index_that_is_filled_asks_again(
    store: SessionStore, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is filled by a thread of the viewer, whoever waits; one that cannot be filled is said, and not asked again."""
    asked(store, "sky", "Why is the sky blue?")
    fill, may_go_on = store.log.search.fill, Event()

    def slow(limit: int = 5000) -> int:
        assert may_go_on.wait(60)
        return fill(limit)

    monkeypatch.setattr(app, "_PATIENCE", 0.0)
    monkeypatch.setattr(store.log.search, "fill", slow)
    early = [client.get(way).text for way in ("/search?q=blue", "/?q=blue")]
    may_go_on.set()
    monkeypatch.setattr(app, "_PATIENCE", 60.0)
    late = client.get("/search?q=blue").text

    def broken(limit: int = 5000) -> int:
        raise StoreError("nothing may be written here")

    monkeypatch.setattr(store.log.search, "fill", broken)
    stopped = client.get("/search?q=blue").text

    assert [True, True] == ["is being filled" in each and 'http-equiv="refresh"' in each for each in early]
    assert ("1 place", False, False) == (re.findall("1 place", late)[0], "filled" in late, "refresh" in late)
    assert ("cannot be filled here" in stopped, "refresh" in stopped) == (True, False)


def test_a_result_without_a_name_is_called_so_once(store: SessionStore, client: TestClient) -> None:
    """And a long one is folded, as thoughts are."""
    info = asked(store, "sky")
    answered(store, "sky", ToolCall("c1", "read", "{}"), results=(ToolResult("c1", "Blue."),))
    answered(store, "sky", ToolCall("c2", "read", "{}"), results=(ToolResult("c2", "Blue. " * 60),))
    answer = client.get(f"/session/{info.id}").text
    said = " ".join(Page(answer).text.split())

    assert re.search(r"Result ?[0-9a-f]{8} ?Blue\.", said)
    assert re.search("Result ?360 characters", said)
    assert not re.search("Result ?result", said)


def test_any_number_of_days_has_its_page(client: TestClient) -> None:
    """Also one that is longer than there have been calendars."""
    for days in ("99999999999", "999999999999999", "-1", "0"):
        assert 200 == client.get(f"/numbers?days={days}").status_code


def test_every_page_has_an_icon(client: TestClient) -> None:
    """Of the viewer's own: a browser asks for it."""
    assert "/static/icon.svg" in page(client, "/").links
    assert "image/svg+xml" == client.get("/static/icon.svg").headers["content-type"].partition(";")[0]


def test_hits_of_imported_histories_are_in_the_order_of_when_they_were_said(
    store: SessionStore, client: TestClient, tmp_path: Path
) -> None:
    """Newest first, page by page too, though the oldest was imported last: in the library and on the page."""
    days = [f"2026-11-{day:02}" for day in range(21, 1, -1)]
    for at, day in enumerate(days):
        told = SAMPLES["claude-code"].replace(b'"s1"', f'"s{at}"'.encode()).replace(b"2026-11-22", day.encode())
        (tmp_path / "h.jsonl").write_bytes(told)
        run(store.log, HistoriesWanted("claude-code", str(tmp_path / "h.jsonl")))
    hits = store.search("file", kinds=("user",), limit=100)
    expected = sorted((hit.hit.time for hit in hits), reverse=True)
    assert (True, expected) == (len(hits) >= len(days), [hit.hit.time for hit in hits])
    paged, before = [], None
    while found := store.search("file", kinds=("user",), limit=3, before=before):
        paged += [hit.hit.time for hit in found]
        before = found[-1]
    assert expected == paged
    shown = re.findall(r'href="/session/[^"/]+/commit/([0-9a-f]{64})', client.get("/search?q=file&in=person").text)
    times = [store.log.find_commit(hash)[1].time for hash in dict.fromkeys(shown)]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) > 3
