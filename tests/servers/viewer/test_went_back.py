"""What went back, and why: each block beside what requests made of it, before a refusal and after, and elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import thinkback
from scripts.viewer_log import SYSTEM, make
from tests.servers.viewer.conversations import Page, answered, asked
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.commits import Commit, Request
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.lines import Lines
from thinkback.servers.viewer.looking_back import coming
from thinkback.session.store import SessionStore
from thinkback_referee import Referee, Step


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionStore]:
    """The log that the pictures are of."""
    path = tmp_path_factory.mktemp("viewer") / "log.db"
    with Referee() as referee:
        make(str(path), referee)
    with thinkback.open(path, rules={}, settings={}) as store:
        yield store


@pytest.fixture
def client(store: SessionStore) -> TestClient:
    """A browser that was let in."""
    return TestClient(application(store), base_url="http://127.0.0.1:8000")


def shown(client: TestClient, path: str) -> Page:
    """The page at ``path``."""
    answer = client.get(path)
    assert 200 == answer.status_code, answer.text
    return Page(answer.text)


def words(page: Page) -> str:
    """What it says, on one line."""
    return " ".join(page.text.split())


def requests_of(store: SessionStore, name: str) -> list[Commit]:
    """The records of the requests of a session."""
    return [commit for commit in store.commits(name) if commit.kind == "request"]


def test_why_a_block_was_held_back_is_two_clicks_from_the_list(store: SessionStore, client: TestClient) -> None:
    """The session, then what went back: each thought with its verdict, the reason and the rule beside it."""
    (session,) = [link for link in shown(client, "/").links if link == f"/session/{store.find('primes').id}"]
    (way, *_) = [link for link in shown(client, session).links if "/request/" in link and "?" not in link]
    page = shown(client, way)
    said = words(page)

    assert "All 4 earlier thoughts were held back. 4 stand-ins went instead." in said
    assert 4 == said.count("Held back, a stand-in went")
    for decision in store.session("primes", endpoint="deepseek", model="deepseek-v4-pro").why():
        assert decision.reason in said
    thoughts = [commit for commit in store.commits("primes") if commit.kind == "reasoning"]
    assert {f"b-{thought.hash[:12]}" for thought in thoughts[:4]} <= set(page.ids)
    assert "Built again from the log" in said
    assert SYSTEM in said


def test_what_goes_back_says_as_what_and_in_which_message(store: SessionStore, client: TestClient) -> None:
    """In the tool loop everything goes back as it was; calls and results stand in their messages."""
    request = requests_of(store, "primes")[2]
    said = words(shown(client, f"/session/{store.find('primes').id}/request/{request.hash}"))

    assert "Both earlier thoughts went back." in said
    assert 2 == said.count("Went back as it was")
    found = re.findall(r"(read|edit|measure) (call|result) [0-9a-f]{8} .*? Went message (\d)", said)
    assert [("read", "call", "1"), ("read", "result", "2"), ("edit", "call", "3"), ("edit", "result", "4")] == found[:4]
    assert [("measure", "call", "3"), ("measure", "result", "4")] == found[4:]


def test_the_bytes_are_those_that_were_sent(store: SessionStore, client: TestClient) -> None:
    """The file has the digest of the record; the page shows no opaque value."""
    for name in ("primes", "cipher"):
        for request in requests_of(store, name):
            way = f"/session/{store.find(name).id}/request/{request.hash[:16]}"
            body = client.get(f"{way}/body")
            assert isinstance(request.value, Request)
            assert request.value.sent_digest == hashlib.sha256(body.content).hexdigest()
            assert body.headers["content-disposition"].startswith("attachment")
            page = client.get(way).text
            signatures = re.findall(rb'"signature":"([^"]+)"', body.content)
            assert [] == [value for value in signatures if value.decode()[:24] in page]


def test_a_request_is_there_as_a_command(store: SessionStore, client: TestClient) -> None:
    """With the name of the key's variable; the body is the file that was sent."""
    request = requests_of(store, "primes")[0]
    page = shown(client, f"/session/{store.find('primes').id}/request/{request.hash}")

    assert "/anthropic/messages \\" in page.text
    assert '-H "x-api-key: $ANTHROPIC_API_KEY"' in page.text
    assert f"--data-binary @request-{request.hash[:12]}.json" in page.text


def test_a_refusal_stands_with_the_request_before_and_the_one_after(store: SessionStore, client: TestClient) -> None:
    """In the provider's words; side by side, the block went first and was held back then."""
    before, after = requests_of(store, "primes")[3:5]
    way = f"/session/{store.find('primes').id}/request"
    assert "The provider refused this request" in words(shown(client, f"{way}/{before.hash}"))
    page = shown(client, f"{way}/{after.hash}")
    said = words(page)
    (beside,) = [link for link in page.links if "beside=" in link]
    both = words(shown(client, beside))

    assert "The provider had refused the request before" in said
    assert "Invalid `signature`" in said
    assert "Of 3 earlier thoughts, 2 went back, 1 was held back." in said
    assert "Request 5 of 6" in both
    assert "Request 4 of 6" in both
    assert both.count("Went back as it was") > said.count("Went back as it was")


def test_what_would_go_to_another_model_stands_beside(store: SessionStore, client: TestClient) -> None:
    """The next plan for any endpoint, without a word being stored; one that is not known is said to be."""
    info = store.find("primes")
    way = f"/session/{info.id}"
    request = requests_of(store, "primes")[-1]
    said = words(shown(client, f"{way}/request/{request.hash}?to=anthropic/claude-sonnet-4-5"))
    assert "All 5 earlier thoughts would be held back" in said
    assert "minted by http://127.0.0.1" in said
    assert "Would be held back" in words(shown(client, f"{way}/next?to=openai/gpt-5.6"))
    assert "no endpoint is called" in words(shown(client, f"{way}/next?to=nowhere/x"))
    assert info == store.find("primes")


def test_a_look_never_makes_a_session() -> None:
    """Not where it was deleted meanwhile either."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        info = asked(store, "gone")
        line = Lines(store.log).read(info, "main")
        store.care.delete_session("gone")
        coming(store, info, line, "deepseek/deepseek-v4-pro")

        assert [] == store.sessions()


def test_what_people_said_is_why(store: SessionStore, client: TestClient) -> None:
    """A thought that is skipped stands as held back, with the reason; ``only`` shows what is held back alone."""
    way = f"/session/{store.find('card').id}/request/{requests_of(store, 'card')[-1].hash}"
    said, held = words(shown(client, way)), words(shown(client, f"{way}?only=held"))

    assert "Of 3 earlier thoughts" in said
    assert "it was only a joke" in held
    assert "The card is 4711." in said
    assert "The card is 4711." not in held.partition("In the log")[2].partition("As it was sent")[0]


def test_a_history_that_was_taken_in_shows_what_would_go(client: TestClient) -> None:
    """Another program's requests cannot be built again: its page offers the next one alone."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        info = asked(store, "other")
        answered(store, "other", ThinkingBlock("Elsewhere."), Text("So."))
        client = TestClient(application(store), base_url="http://127.0.0.1:8000")
        links = shown(client, f"/session/{info.id}").links
        said = words(shown(client, f"/session/{info.id}/next?to=deepseek/deepseek-v4-pro"))

    assert [] == [link for link in links if "/request/" in link]
    assert f"/session/{info.id}/next" in links
    assert "Would be held back" in said


def test_what_was_erased_is_said() -> None:
    """A request that was built from it is not shown as something else; the body neither."""
    with Referee() as referee, thinkback.open(":memory:", rules={}, settings={}) as store:
        session = store.session("gone", endpoint="deepseek", model="deepseek-v4-pro", api_key="a key")
        session.use(base_url=referee.base_url("deepseek"), api_key="a key")
        referee.push(Step(reasoning="A card.", text="Noted."))
        session.chat("My card is 47-11-08.")
        session.chat("And?")
        store.care.redact(session.log()[0].hash, "47-11-08")
        client = TestClient(application(store), base_url="http://127.0.0.1:8000")
        way = f"/session/{store.find('gone').id}/request/{requests_of(store, 'gone')[-1].hash}"
        page, body = client.get(way), client.get(f"{way}/body")

    assert "commits it was built from were erased since" in words(Page(page.text))
    assert (404, False) == (body.status_code, "47-11-08" in page.text + body.text)
