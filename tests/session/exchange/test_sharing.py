"""What is shared: nothing opaque, nobody's account, no reasoning, in any format, unless it is asked for."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.acceptance.hosts import ask_and_call, talk
from tests.conformance.moves import PLACES, TOOLS, Place
from thinkback.errors import ErasedError, ProviderError
from thinkback.model.blocks import Block, ThinkingBlock, carriers_of
from thinkback.model.commits import LEFT_OUT, Erased, Message, Request, Response, surviving
from thinkback.session.store import SessionStore
from thinkback_referee import HttpError, Referee
from thinkback_referee import Step as Scripted

ACCOUNT = "org-acct-77231"
SAID = "How is the weather?"
ANSWER = "It-is-sunny."
THOUGHT = "I-must-look-at-the-map."
FORMATS = ("jsonl", "markdown", "html", "parquet")


@pytest.fixture(params=PLACES, ids=lambda place: place.dialect)
def spoken(request: pytest.FixtureRequest, store: SessionStore, referee: Referee) -> SessionStore:
    """A log with a conversation of one dialect: a call, its result, an answer, a request that failed."""
    place: Place = request.param
    more = {} if place.dialect == "bedrock" else {"account": ACCOUNT}
    session = talk(store, referee, place, **more)
    reply = ask_and_call(session, referee, THOUGHT)
    referee.push(Scripted(reasoning=THOUGHT, text=ANSWER))
    session.generate({call.id: "sunny" for call in reply.tool_calls}, tools=TOOLS)
    referee.push(Scripted(fault=HttpError(404)))
    with pytest.raises(ProviderError):
        session.chat("And tomorrow?")
    return store


def secrets(store: SessionStore) -> Iterator[str]:
    """Every opaque value and account in the log."""
    for commit in store.commits("talk"):
        value: Any = commit.value
        if isinstance(value, Block):
            yield from (carrier.value for carrier in carriers_of(value) if carrier.kind != "phase")
        if isinstance(value, Response):
            yield from filter(None, [value.origin.account, value.origin.endpoint, value.id])
        if isinstance(value, Request):
            yield from (value.target["account"], value.target["base_url"])


def exported(store: SessionStore, place: Path, format: str, **asked: Any) -> str:
    """What a file of a format says."""
    file = place / f"talk.{format}"
    store.export(file, format=format, **asked)
    if format != "parquet":
        return file.read_text("utf-8")
    import duckdb  # not with the module: it complains at its end of what a collection froze

    with duckdb.connect(":memory:") as db:
        found = db.execute("SELECT * FROM read_parquet(?)", [str(file)]).fetchall()
    return file.read_bytes().decode("latin-1") + repr(found)


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_opaque_and_no_account_leaves(spoken: SessionStore, tmp_path: Path, format: str) -> None:
    """Not one carrier, account, address or thought is in the file; everything that was said is."""
    hidden = [*secrets(spoken), THOUGHT]
    assert 3 < len(hidden)
    text = exported(spoken, tmp_path, format)
    assert [] == [value for value in hidden if value and value in text]
    assert [True, True] == [SAID in text, ANSWER in text]


@pytest.mark.parametrize("format", FORMATS)
def test_reasoning_goes_along_where_it_is_asked_for(spoken: SessionStore, tmp_path: Path, format: str) -> None:
    """Its text, and still nothing opaque."""
    has_text = any(isinstance(c.value, ThinkingBlock) and THOUGHT in c.value.thought for c in spoken.commits("talk"))
    text = exported(spoken, tmp_path, format, with_reasoning=True)
    assert has_text == (THOUGHT in text)
    assert [] == [value for value in secrets(spoken) if value and value in text]


def test_everything_goes_along_where_everything_is_asked_for(spoken: SessionStore, tmp_path: Path) -> None:
    """A private copy has each of them, so that the other tests look for what can be found."""
    text = exported(spoken, tmp_path, "jsonl", complete=True)
    assert [] == [value for value in secrets(spoken) if value not in text]


def test_carriers_go_along_where_they_are_asked_for(spoken: SessionStore, tmp_path: Path) -> None:
    """Carriers and the address they are for, but neither the account nor what was thought."""
    text = exported(spoken, tmp_path, "jsonl", with_carriers=True)
    carriers = {
        carrier.value
        for commit in spoken.commits("talk")
        if isinstance(commit.value, Block)
        for carrier in carriers_of(commit.value)
    }
    assert [] == [value for value in carriers if value not in text]
    assert [] == [value for value in (ACCOUNT, THOUGHT) if value in text]


def test_what_was_left_out_stands_as_a_tombstone(spoken: SessionStore, tmp_path: Path) -> None:
    """The chain verifies in the log it comes to; what was said is whole, the rest says why it is not."""
    exported(spoken, tmp_path, "jsonl")
    with thinkback.open(tmp_path / "copy.db") as copy:
        copy.import_(tmp_path / "talk.jsonl")
        assert [] == copy.fsck()
        there, here = copy.commits("talk"), spoken.commits("talk")
        assert [commit.hash for commit in here] == [commit.hash for commit in there]
        assert {LEFT_OUT} == {commit.value.reason for commit in there if isinstance(commit.value, Erased)}
        assert SAID in {commit.value.text for commit in there if isinstance(commit.value, Message)}


def test_a_fuller_export_completes_a_lesser_one(spoken: SessionStore, tmp_path: Path) -> None:
    """In any order: reasoning and carriers come together from two files, and the rest from a whole one, once."""
    given: list[dict[str, Any]] = [{"with_reasoning": True}, {"with_carriers": True}, {}, {"complete": True}, {}]
    files = [tmp_path / f"{number}.jsonl" for number in range(len(given))]
    for file, asked in zip(files, given, strict=True):
        spoken.export(file, **asked)
    whole = spoken.commits("talk")
    with thinkback.open(tmp_path / "copy.db") as copy:
        for file in files[:3]:
            copy.import_(file)
        blocks = [(c.value, surviving(d.value)) for c, d in zip(whole, copy.commits("talk"), strict=True)]
        thoughts = [(one, two) for one, two in blocks if isinstance(one, ThinkingBlock)]
        assert [(one.thought, carriers_of(one)) for one, _ in thoughts] == [
            (two.thought, carriers_of(two)) for _, two in thoughts if isinstance(two, ThinkingBlock)
        ]
        completed = [sum(each.restored for each in copy.import_(file).sessions) for file in files[3:] * 2]
        assert completed[0] > 0
        assert [0, 0, 0] == completed[1:]
        assert whole == copy.commits("talk")
        assert [] == copy.fsck()


def test_what_was_erased_here_is_not_completed(spoken: SessionStore, tmp_path: Path) -> None:
    """Neither the thoughts that an export left out before they were erased, nor the words."""
    spoken.export(tmp_path / "less.jsonl")
    spoken.export(tmp_path / "whole.jsonl", complete=True)
    with thinkback.open(tmp_path / "copy.db") as copy:
        copy.import_(tmp_path / "less.jsonl")
        copy.care.purge(before=2**62)
        before = copy.commits("talk")
        assert [0] == [each.restored for each in copy.import_(tmp_path / "whole.jsonl").sessions]
        assert before == copy.commits("talk")


def test_a_stream_takes_the_lines(spoken: SessionStore, tmp_path: Path) -> None:
    """What goes to a stream is what goes to a file, and says how much that was."""
    stream = io.BytesIO()
    done = spoken.export(stream, session="talk", complete=True)
    assert (1, len(spoken.commits("talk")), 0) == (done.sessions, done.commits, done.left_out)
    assert exported(spoken, tmp_path, "jsonl", complete=True) == stream.getvalue().decode()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.dialect)
def test_a_whole_copy_goes_on_as_if_nothing_had_happened(
    store: SessionStore, referee: Referee, place: Place, tmp_path: Path
) -> None:
    """The last request is built again byte for byte, and the next one is the one that the original would send."""
    session = talk(store, referee, place)
    reply = ask_and_call(session, referee, THOUGHT)
    session.generate({call.id: "sunny" for call in reply.tool_calls}, tools=TOOLS)
    store.export(tmp_path / "all.jsonl", complete=True)
    with thinkback.open(tmp_path / "copy.db") as copy:
        copy.import_(tmp_path / "all.jsonl")
        again = talk(copy, referee, place)
        assert bytes(session.explain()) == bytes(again.explain())
        assert bytes(session.explain(next=True)) == bytes(again.explain(next=True))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.dialect)
def test_a_shared_conversation_can_be_gone_on_with(
    store: SessionStore, referee: Referee, place: Place, tmp_path: Path
) -> None:
    """By somebody else, without its reasoning; the requests of before cannot be built again, and say so."""
    session = talk(store, referee, place)
    reply = ask_and_call(session, referee, THOUGHT)
    referee.push(Scripted(text=ANSWER))
    session.generate({call.id: "sunny" for call in reply.tool_calls}, tools=TOOLS)
    store.export(tmp_path / "shared.jsonl")
    with thinkback.open(tmp_path / "copy.db") as copy, Referee() as host:
        copy.import_(tmp_path / "shared.jsonl")
        again = talk(copy, host, place)
        with pytest.raises(ErasedError):
            again.explain()
        host.push(Scripted(text="Yes."))
        assert "Yes." == again.chat("Sure?").text
        sent = host.requests[-1].raw.decode()
        assert [True, True, False] == [word in sent for word in (SAID, ANSWER, THOUGHT)]
        assert bytes(again.explain()) == host.requests[-1].raw
        assert [] == copy.fsck()


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_a_complete_copy_has_what_a_checkpoint_stands_for(store: SessionStore, tmp_path: Path, format: str) -> None:
    """The turns that were compacted, and the summary; a file for sharing has the summary alone."""
    session = store.session("talk", endpoint="openai", model="gpt-5.6", api_key="k")
    session.commit(f"A word from long ago. {'Much more was said. ' * 50}")
    session.commit("The last word.")
    session.compaction.run(text="So far.", tail=0)
    for asked, expected in (({"complete": True}, True), ({}, False)):
        text = exported(store, tmp_path, format, **asked)
        assert ("So far." in text, "A word from long ago." in text) == (True, expected)


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_a_file_says_which_reasoning_it_is_without(store: SessionStore, tmp_path: Path, format: str) -> None:
    """And the option that includes it; one that has it all says nothing."""
    store.session("talk").reasoning(THOUGHT)
    said = "1 block of reasoning is left out of this file: thinkback export --with-reasoning includes it."
    assert said in exported(store, tmp_path, format)
    store.session("talk").reasoning("Another one.")
    assert "2 blocks of reasoning are left out of this file" in exported(store, tmp_path, format)
    assert "left out" not in exported(store, tmp_path, format, with_reasoning=True)
