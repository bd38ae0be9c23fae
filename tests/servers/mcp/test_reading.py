"""What other agents read of a log: every kind of commit, as it holds now, and nothing that must not leave."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

import thinkback
from tests.cli.conftest import ENCRYPTED
from thinkback.errors import ThinkbackError
from thinkback.log.protocol import About
from thinkback.model.blocks import Carrier, Media, Origin, Text, ThinkingBlock, Unknown
from thinkback.model.commits import Draft, Failure, Response
from thinkback.servers.mcp import reading
from thinkback.servers.mcp.reading import ReadCommit, ReadSession, SearchReasoning
from thinkback.session.session import Session
from thinkback.session.store import SessionStore

ACCOUNT = "org-0123456789"


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """A log in memory."""
    with thinkback.open(":memory:", rules={}, settings={}) as opened:
        yield opened


def entries(store: SessionStore, *, reasoning: bool = True) -> list[dict[str, object]]:
    """What is told of the session, without what differs from run to run."""
    found = reading.read_session(store, ReadSession(reasoning=reasoning, limit=100))["entries"]
    return [{key: value for key, value in entry.items() if key not in ("commit", "time")} for entry in found]


def store_response(session: Session, *blocks: object, error: str = "") -> None:
    """A response with ``blocks``, as if a provider had given it."""
    origin = Origin("openai-chat", "https://host.example/v1", "asked", "served", ACCOUNT, True)
    failure = Failure(error) if error else None
    response = Response(origin, complete=not error, error=failure)
    kinds = {Text: "assistant", ThinkingBlock: "reasoning", Media: "media", Unknown: "other"}
    drafts = [Draft("response", response, "r1")]
    drafts += [Draft(kinds[type(block)], block, "r1", at) for at, block in enumerate(blocks)]  # type: ignore[arg-type, index]
    session.conversation.append(drafts)


def test_each_kind_of_commit_is_told_in_its_way(store: SessionStore) -> None:
    """Text, thoughts with and without words, images by their kind, parts that nobody understands, and failures."""
    session = store.session("s")
    session.commit("Be kind.", kind="system")
    session.commit("What is this?")
    hidden = ThinkingBlock("", kind="none", carriers=(Carrier("encrypted", ENCRYPTED),))
    twice = ThinkingBlock("A thought.", is_hidden=True)
    image = Media("image/png", data="aGVsbG8=")
    store_response(
        session,
        ThinkingBlock("A thought."),
        twice,
        hidden,
        Text("A cat."),
        image,
        Unknown(f'{{"x": "{ENCRYPTED}"}}'),
        error=f"{ACCOUNT} has no money",
    )

    told = [(entry["kind"], entry["text"], entry.get("note", "")) for entry in entries(store)]

    assert [
        ("system", "Be kind.", ""),
        ("user", "What is this?", ""),
        ("failure", "*** has no money", ""),
        ("reasoning", "A thought.", ""),
        ("reasoning", "", "it reasoned, and the provider gave no readable text"),
        ("assistant", "A cat.", ""),
        ("media", "(image/png)", ""),
        ("other", "a part that is not understood", ""),
    ] == told
    assert {"served"} == {entry["model"] for entry in entries(store) if entry["kind"] == "reasoning"}
    assert "reasoning" not in [entry["kind"] for entry in entries(store, reasoning=False)]


def test_what_holds_now_is_told(store: SessionStore) -> None:
    """An edit stands in place of what it edits, and what is left of a redacted message in its place."""
    session = store.session("s")
    first = session.commit("The key is 12345678.")
    session.commit("Good morning.")
    session.commit("Good evening.", edit=session.log()[-1].hash)
    store.care.redact(first.hash, r"\d+", reason="a key")

    found = entries(store)

    assert {"kind": "user", "text": "Good evening.", "edited": True} in found
    assert "12345678" not in str(found)
    assert "The key is" in str(found)
    assert 2 == len(found)


def test_pages_join_to_the_whole(store: SessionStore) -> None:
    """Pages of any size, from either end, are the same entries."""
    session = store.session("s")
    for number in range(7):
        session.commit(f"message {number}")
    every = reading.read_session(store, ReadSession(limit=100))["entries"]

    for limit in (1, 2, 3, 7, 8):
        offset, joined = 0, []
        while True:
            page = reading.read_session(store, ReadSession(limit=limit, offset=offset))
            joined += page["entries"]
            if "next_offset" not in page:
                break
            offset = page["next_offset"]
        assert every == joined
    assert every[-2:] == reading.read_session(store, ReadSession(offset=-2))["entries"]
    assert every == reading.read_session(store, ReadSession(offset=-99))["entries"]
    assert [] == reading.read_session(store, ReadSession(offset=99))["entries"]


def test_a_branch_is_read_by_its_name(store: SessionStore) -> None:
    """Another branch than the current one has its own history; one that is not there is an error."""
    session = store.session("s")
    session.commit("shared")
    session.branches.branch("other", switch=True)
    session.commit("only there")
    session.branches.switch("main")

    here = reading.read_session(store, ReadSession())
    there = reading.read_session(store, ReadSession(branch="other"))

    assert (["shared"], ["shared", "only there"]) == tuple(
        [entry["text"] for entry in page["entries"]] for page in (here, there)
    )
    with pytest.raises(ThinkbackError, match="nowhere"):
        reading.read_session(store, ReadSession(branch="nowhere"))


def test_a_phrase_a_model_a_tool_and_a_time_narrow_a_search(store: SessionStore) -> None:
    """What is asked for must all hold; what was said is found only where everything is asked for."""
    session = store.session("s")
    session.commit("a red cat")
    store_response(session, ThinkingBlock("the cat is red"), Text("Yes."))

    def found(**asked: object) -> int:
        arguments = msgspec.convert(asked, SearchReasoning)
        return len(reading.search_reasoning(store, arguments)["hits"])

    assert 1 == found(text="red cat")
    assert 0 == found(text='"red cat"')
    assert 1 == found(text='"red cat"', everything=True)
    assert (1, 0) == (found(model="served"), found(model="other"))
    assert (0, 1) == (found(since="2100-01-01"), found(until="2100-01-01"))
    assert (1, 0) == (found(session="s"), found(tool="none"))
    assert (1, 0, 0) == (found(since="30d"), found(program="codex"), found(project="p"))
    store.log.describe(store.find("s").id, About("codex", "p"))
    (hit,) = reading.search_reasoning(store, SearchReasoning("cat", program="codex", project="p"))["hits"]
    assert ("s", "a red cat", "codex", "p") == tuple(hit[name] for name in ("session", "title", "program", "project"))
    counted = reading.search_reasoning(store, SearchReasoning("cat", everything=True, facets=True))
    assert (2, False, {"codex": 2}, {"p": 2}) == tuple(
        counted[name] for name in ("counted", "newest_only", "program", "project")
    )


def test_a_commit_is_read_in_pieces(store: SessionStore) -> None:
    """Pieces of a commit's text join to the whole; an image is told by its kind."""
    commit = store.session("s").commit("0123456789" * 5)
    first = reading.read_commit(store, ReadCommit(commit.hash[:12], limit=30))
    rest = reading.read_commit(store, ReadCommit(commit.hash, offset=first["next_offset"]))

    assert "0123456789" * 5 == first["text"] + rest["text"]
    assert (commit.hash, "s", 50) == (first["commit"], first["session"], first["total"])
