"""A session as one file: the page of the viewer without a server, and no more in it than is to be shared."""

from __future__ import annotations

import hashlib
import io
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

import thinkback
from scripts.hostile import HOSTILE
from tests.servers.viewer.conversations import TAGS, Page, answered, asked
from tests.servers.viewer.test_hostile import UNSEEN
from tests.stores.samples import put
from thinkback.log.protocol import About
from thinkback.model.blocks import Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Compaction, Draft, Message, Step
from thinkback.servers.viewer.sharing import export
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee
from thinkback_referee import Step as Answer

SECRET = "c2VjcmV0IG9wYXF1ZSB2YWx1ZQ" * 4


class File(Page):
    """A page that may have its style and its pictures in it, and leads nowhere but to itself."""

    tags = TAGS | {"style", "img"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Links stay on the page, pictures are in it."""
        said = dict(attrs)
        assert (said.get("href") or "#").startswith("#"), said
        assert (said.pop("src", "") or "data:image/").startswith("data:image/")
        said.pop("alt", None)
        if tag == "meta":
            said.pop("http-equiv", None)
        if tag in ("style", "img"):
            assert {"class"} >= set(said)
            self._open += [tag] if tag == "style" else []
            return
        super().handle_starttag(tag, list(said.items()))


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """A log in memory."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        yield store


def written(store: SessionStore, session: str = "", **asked: Any) -> str:
    """The file."""
    stream = io.BytesIO()
    export(store, stream, session=session, **asked)
    return stream.getvalue().decode()


def test_a_file_has_the_conversation_and_what_went_back_and_why(store: SessionStore) -> None:
    """Turns, folded thoughts, calls, and the last request beside them, as the viewer shows both; no script."""
    with Referee() as referee:
        session = store.session(
            "sky", endpoint="deepseek", model="deepseek-v4-pro", base_url=referee.base_url("deepseek"), api_key="k-4711"
        )
        referee.push(Answer(reasoning="I look it up.", tool_calls=[Call("look", {"at": "it"})]), Answer(text="Blue."))
        session.chat("Which colour?", tools=[look])
        referee.push(Answer(reasoning="By day.", text="At night it is black."))
        session.chat("Always?")
    text = written(store, "sky", with_reasoning=True)
    found = File(text)

    for word in ("Which colour?", "I look it up.", "it is blue", "What went back, and why", "Request 3 of 3"):
        assert word in found.text
    assert "Of " in found.text or "earlier thought" in found.text
    assert "it has the digest that was stored with it" in found.text
    assert "k-4711" not in text
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}';" in text.replace("&#39;", "'")
    assert len(found.ids) == len(set(found.ids))
    assert {link.removeprefix("#") for link in found.links} <= {*found.ids}


def look(at: str) -> str:
    """Look at something."""
    return "it is blue"


def test_reasoning_goes_along_by_choice_and_opaque_values_never(store: SessionStore) -> None:
    """Nor objects of a provider that nobody understood, nor folders, nor accounts in what providers said."""
    info = asked(store, "sky")
    thought = ThinkingBlock("Rayleigh.", signature=SECRET, carriers=(Carrier("signature", SECRET),), wire=SECRET)
    answered(store, "sky", thought, Text("It scatters.", wire=SECRET), Unknown(SECRET))
    store.log.describe(info.id, About("claude-code", "secret-project", "/home/me"))
    plain, thinking = written(store), written(store, with_reasoning=True)
    whole = written(store, complete=True, with_carriers=True)

    assert [False, True, True] == ["Rayleigh." in each for each in (plain, thinking, whole)]
    assert "left out of the export" in plain
    assert "without reasoning, accounts, opaque values" in plain
    assert "signature, 104 characters" in whole
    for text in (plain, thinking, whole):
        assert "It scatters." in text
        assert not any(word in text for word in (SECRET, "secret-project", "/home/me"))


def test_what_was_replaced_or_erased_is_not_in_it(store: SessionStore) -> None:
    """An edit stands for what it edits, a checkpoint for its run, unless history is asked for; erased is erased."""
    info = asked(store, "sky", "My name is Ada.")
    answered(store, "sky", Text("One."))
    first = store.commits("sky")
    put(store.log, info.id, Step("s2", (Draft("user", Message("My card is 47-11-08.")),), 5_000_000))
    answered(store, "sky", Text("Two."), time=6_000_000)
    session = store.session("sky", endpoint="deepseek", model="deepseek-v4-pro")
    card = next(commit for commit in session.log() if "47-11-08" in str(commit.value))
    store.care.redact(card.hash, "47-11-08", reason="a card")
    session = store.session("sky", endpoint="deepseek", model="deepseek-v4-pro")
    session.commit("I have no name.", edit=first[0].hash)
    now, before = written(store), written(store, with_history=True)
    assert [False, True] == ["Ada" in each for each in (now, before)]
    assert ["47-11-08" in each for each in (now, before)] == [False, False]
    compaction = Compaction("manual", "In short.", first[0].hash, store.commits("sky")[4].hash)
    put(store.log, info.id, Step("s9", (Draft("compaction", compaction),), 9_000_000))
    now, before = written(store), written(store, with_history=True)
    assert [("One." in each, "In short." in each) for each in (now, before)] == [(False, True), (True, True)]
    assert now.index("In short.") < now.index("Two.")
    assert "One." in written(store, complete=True)


def test_what_sessions_share_is_written_once(store: SessionStore) -> None:
    """A fork says how much it has of the session before it; a picture is in the file."""
    info = asked(store, "sky", "Why?")
    picture = Message("Here:", (Text("Here:"), Media("image/png", "iVBORw0KGgo=", name="map.png")))
    put(store.log, info.id, Step("s2", (Draft("user", picture),), 2_000_000))
    answered(store, "sky", Text("It scatters."))
    store.session("sky", endpoint="deepseek", model="deepseek-v4-pro").branches.fork("other")
    text = written(store)
    found = File(text)

    assert 1 == text.count('src="data:image/png;base64,iVBORw0KGgo="')
    assert 1 == found.text.count("It scatters.")
    assert "3 messages and responses it shares with a session above stand there." in found.text
    assert "It scatters." in written(store, "other")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_characters_in_a_file(name: str) -> None:
    """Wherever it stands: the page has no tag, address or script of it."""
    evil = HOSTILE[name]
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        asked(store, "evil", evil)
        calls = (
            ToolCall("c1", evil, evil),
            ToolCall("c2", "edit", json.dumps({"old_string": "a", "new_string": evil})),
        )
        others = (Media("image/svg+xml", evil, evil, evil), Media("image/png", evil), Unknown(evil))
        results = (ToolResult("c1", evil, evil, is_error=True),)
        answered(store, "evil", ThinkingBlock(evil), Text(evil), *calls, *others, results=results)
        session = store.session("evil", endpoint="deepseek", model="deepseek-v4-pro")
        answer = next(commit for commit in session.log() if commit.kind == "assistant")
        session.annotate(answer.hash, thinkback.Priority.PINNED, reason=evil, message=evil, tags=(evil,))
        text = written(store, with_reasoning=True, with_history=True)
    File(text)
    assert not UNSEEN.search(text)
