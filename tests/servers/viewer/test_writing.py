"""Changing a log by way of the viewer: told first, done once, by forms of its own pages, and only where allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from starlette.testclient import TestClient

import thinkback
from scripts.hostile import HOSTILE
from tests.servers.viewer.conversations import TAGS, Page, answered, asked
from tests.servers.viewer.test_hostile import UNSEEN
from tests.stores.samples import put
from thinkback.drive.leases import Holder
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Draft, Message, Step
from thinkback.model.curation import curate
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.door import Door
from thinkback.servers.viewer.writing import Writing
from thinkback.session.store import SessionStore
from thinkback_referee import Referee

PLACE = "http://127.0.0.1:8000"
FORM = {"origin": PLACE, "sec-fetch-site": "same-origin"}


class Forms(Page):
    """A page that may have fields to fill in."""

    tags = TAGS | {"textarea"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Forms go by POST to this place."""
        known = [(name, value) for name, value in attrs if name not in ("method", "rows")]
        super().handle_starttag(tag, known)


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """A log in memory with a conversation."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        asked(store, "sky", "Why is the sky blue, Ada?")
        thought = ThinkingBlock("Rayleigh.", signature="s" * 40)
        answered(store, "sky", thought, Text("It scatters."))
        yield store


def let_in(store: SessionStore) -> TestClient:
    """A browser that was let in to a viewer that may write."""
    door = Door(application(store, writing=Writing(store)), ["127.0.0.1:8000"], "token", writes=True)
    client = TestClient(door, base_url=PLACE)
    client.get("/?token=token")
    return client


@pytest.fixture
def client(store: SessionStore) -> TestClient:
    """The same, of that log."""
    return let_in(store)


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of the last form of a page that changes something."""
    form = page[page.rindex('<form class="change') :] if '<form class="change' in page else ""
    form = form.partition("</form>")[0]
    return {name: unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)}


def told(client: TestClient, way: str, **given: str) -> str:
    """What a page says of a change before it is made."""
    page = client.get(way).text
    assert "token" in hidden(page), page
    token = hidden(page)["token"]
    answer = client.post(way, data={"token": token, **given}, headers=FORM)
    assert 200 == answer.status_code, answer.text
    Forms(answer.text)
    return answer.text


def done(client: TestClient, way: str, **given: str) -> None:
    """A change made: told, and confirmed."""
    answer = client.post(way, data=hidden(told(client, way, **given)), headers=FORM, follow_redirects=False)
    assert 303 == answer.status_code, answer.text


def way_to(store: SessionStore, kind: str) -> str:
    """The page of changes of the first commit of a kind."""
    hash = next(commit.hash for commit in store.commits("sky") if commit.kind == kind)
    return f"/session/{store.find('sky').id}/curate/{hash}"


def test_each_change_is_told_and_then_a_commit(store: SessionStore, client: TestClient) -> None:
    """Annotate, edit, branch, redact, title; what is voided or erased is said before anything is stored."""
    answer, question = way_to(store, "assistant"), way_to(store, "user")
    before = store.commits("sky")
    page = told(client, answer, act="edit", text="It bends.")
    assert "1 opaque value is voided and goes back in no later request" in page
    assert "Ada" in told(client, question, act="redact", pattern="Ada")
    assert before == store.commits("sky")

    done(client, answer, act="annotate", priority="pinned", tags="blue, sky", reason="for later", message="see it")
    mark = curate(store.commits("sky")).mark(before[3 + 1].hash)
    assert (thinkback.Priority.PINNED, frozenset({"blue", "sky"}), "for later", "see it") == (
        mark.priority,
        mark.tags,
        mark.reason,
        mark.message,
    )
    done(client, answer, act="edit", text="It bends.\r\nA little.")
    assert "It bends.\nA little." == getattr(store.commits("sky")[-1].value, "text", "")
    done(client, question, act="redact", pattern="Ada", reason="a name")
    assert "Ada" not in client.get(f"/session/{store.find('sky').id}").text
    done(client, answer, act="branch", name="aside")
    assert {"main", "aside"} == {branch.name for branch in store.log.refs.list(store.find("sky").id)}
    done(client, f"/session/{store.find('sky').id}/curate", act="title", text="The blue")
    assert "The blue" in client.get("/").text
    assert [] == store.fsck()


def test_what_a_mark_does_to_the_next_request_is_told(store: SessionStore, client: TestClient) -> None:
    """By the plans before and after: what is held back then and what goes then, with the reason; nothing is stored."""
    unknown = told(client, way_to(store, "assistant"), act="annotate", priority="pinned")
    assert "It is not known where the next request goes" in unknown
    with Referee() as referee, thinkback.open(":memory:", rules={}, settings={}) as own:
        at, key = referee.base_url("deepseek"), "sk-test-0123456789abcdef"
        session = own.session("sky", endpoint="deepseek", model="deepseek-v4-pro", base_url=at, api_key=key)
        session.set("reasoning.includeInContext", True)
        for question in ("Why is the sky blue?", "And the sea?"):
            session.chat(question)
        before, browser, way = own.commits("sky"), let_in(own), way_to(own, "reasoning")
        pages = [told(browser, way, act="annotate", priority=priority) for priority in ("pinned", "skip")]
        assert before == own.commits("sky")
        done(browser, way, act="annotate", priority="skip", reason="only a joke")
        pages.append(told(browser, way, act="annotate", priority="default"))

    assert "The next request stays as it is, byte for byte." in pages[0]
    assert "The next request would hold back what it sends now: 1 part of reasoning." in pages[1]
    assert "The next request would send what it holds back now: 1 part of reasoning." in pages[2]
    assert "only a joke" in pages[2]


def test_what_changed_meanwhile_is_not_written_over(store: SessionStore, client: TestClient) -> None:
    """A confirmation holds for what was shown, on the branch as it was: not twice, and not beside another's turn."""
    way = way_to(store, "assistant")
    fields = hidden(told(client, way, act="annotate", tags="one"))
    other = hidden(told(client, way, act="annotate", tags="two"))
    assert 303 == client.post(way, data=fields, headers=FORM, follow_redirects=False).status_code
    assert 409 == client.post(way, data=fields, headers=FORM).status_code
    mixed = client.post(way, data={**other, "change": fields["change"]}, headers=FORM)
    assert (400, True) == (mixed.status_code, "not what was shown" in mixed.text)
    holder = Holder(store.log, store.find("sky").id)
    holder.take("main")
    fields = hidden(told(client, way, act="annotate", tags="three"))
    busy = client.post(way, data=fields, headers=FORM)
    assert (409, True) == (busy.status_code, "under way" in busy.text or "busy" in busy.text)
    holder.release()
    assert ["one"] == sorted(curate(store.commits("sky")).mark(way.rpartition("/")[2]).tags)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"origin": "http://evil.test"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9000"}, 403),
        ({"origin": PLACE, "sec-fetch-site": "cross-site"}, 403),
        ({"origin": PLACE, "cookie": "thinkback=1"}, 403),
        (FORM, 400),
    ],
)
def test_a_form_of_anybody_else_changes_nothing(
    store: SessionStore, client: TestClient, headers: dict[str, str], status: int
) -> None:
    """Without our page's origin, our cookie and our token, whatever a confirmation says."""
    way = way_to(store, "assistant")
    fields = hidden(told(client, way, act="annotate", tags="one"))
    fields["token"] = "0" * 64
    before = store.commits("sky")
    assert status == client.post(way, data=fields, headers=headers).status_code
    for body in (b"\xff", b"act=edit", b"x" * 5_000_000):
        assert 400 == client.post(way, content=body, headers=FORM).status_code
    assert before == store.commits("sky")


def test_a_viewer_that_only_looks_has_no_such_pages(store: SessionStore) -> None:
    """And refuses whatever is sent; with writing allowed, other methods are refused still."""
    door = Door(application(store), ["127.0.0.1:8000"], "token")
    client = TestClient(door, base_url=PLACE)
    client.get("/?token=token")
    assert "read-only" in client.get("/").text
    way = way_to(store, "user")
    assert 404 == client.get(way).status_code
    assert 405 == client.post(way, headers=FORM).status_code
    assert "/curate" not in client.get(f"/session/{store.find('sky').id}").text


def test_what_cannot_be_done_is_said(store: SessionStore, client: TestClient) -> None:
    """An empty form, an unknown act, a pattern that is none, a commit of another branch."""
    way = way_to(store, "assistant")
    page = client.get(way).text
    assert "token" in hidden(page), page
    token = hidden(page)["token"]
    for given, status in (
        ({"act": "annotate"}, 400),
        ({"act": "edit", "text": " "}, 400),
        ({"act": "title", "text": "x"}, 404),
        ({"act": "destroy"}, 404),
        ({"act": "annotate", "priority": "loud"}, 400),
        ({"act": "redact", "pattern": "("}, 400),
        ({"act": "redact", "pattern": "nowhere"}, 404),
    ):
        answer = client.post(way, data={"token": token, **given}, headers=FORM)
        assert (given, status) == (given, answer.status_code)
        Forms(answer.text)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_in_forms(store: SessionStore, client: TestClient, name: str) -> None:
    """In what is edited, in tags, notes, reasons, names and titles, and in what is said of a change."""
    evil = HOSTILE[name].encode("utf-8", "replace").decode()
    info = store.find("sky")
    put(store.log, info.id, Step("evil", (Draft("user", Message(HOSTILE[name])),), 9_000_000))
    way = f"/session/{info.id}/curate/{store.commits('sky')[-1].hash}"
    pages = [client.get(way).text]
    pages.append(told(client, way, act="annotate", reason=evil, tags=evil, message=evil))
    pages.append(told(client, way, act="edit", text=evil))
    done(client, way, act="edit", text=evil)
    assert evil.replace("\r\n", "\n") == getattr(store.commits("sky")[-1].value, "text", None)
    pages.append(client.get(way).text)
    for page in pages:
        Forms(page)
        assert not UNSEEN.search(page)


def test_a_text_that_no_form_can_hold_is_not_in_one(store: SessionStore, client: TestClient) -> None:
    """A result of 5 MB: its page says what does edit it, and stays small."""
    asked(store, "long")
    answered(store, "long", ToolCall("c", "read", "{}"), results=(ToolResult("c", "Blue. " * 900_000, name="read"),))
    info, result = store.find("long"), next(c for c in store.commits("long") if c.kind == "tool_result")
    answer = client.get(f"/session/{info.id}/curate/{result.hash}")

    assert "thinkback edit" in answer.text
    assert "<textarea" not in answer.text
    assert len(answer.text) < 20_000
