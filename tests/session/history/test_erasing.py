"""What is erased is gone: from the log, from its files, from forks, from search; and the chain verifies."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import thinkback
from tests.acceptance.hosts import ask_and_call, talk
from tests.compile.build import HERE, Talk
from tests.conformance.moves import PLACES, TOOLS, Place
from tests.stores.postgres_server import Server
from thinkback import Priority
from thinkback.errors import BusyError, ErasedError, NotFoundError, PatternTimeout, StoreError, ThinkbackError
from thinkback.log.erasing import end_users
from thinkback.log.protocol import About, Origin, Query
from thinkback.log.seal import seal
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall
from thinkback.model.commits import (
    Compaction,
    Draft,
    Erased,
    Head,
    Merge,
    Message,
    Request,
    Response,
    Step,
    block_draft,
    surviving,
)
from thinkback.session.history.children import collapse, spawn
from thinkback.session.history.erasing import Erasure
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.stores.care import LogCare
from thinkback_referee import Referee
from thinkback_referee import Step as Scripted

BOUND = msgspec.structs.replace(HERE, end_user="user-xenia")
ANTHROPIC = next(place for place in PLACES if place.dialect == "anthropic")
RESPONSES = next(place for place in PLACES if place.dialect == "openai-responses")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionStore]:
    """A log of each kind."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        opened = thinkback.open(server.url(), tenant=secrets.token_hex(8))
    else:
        opened = thinkback.open(":memory:" if request.param == "memory" else tmp_path / "log.db")
    with opened:
        yield opened


def found(store: SessionStore, text: str) -> int:
    """How many commits search finds."""
    while store.log.search.fill():
        pass
    return len(store.log.search.find(Query(text)))


def on_disk(tmp_path: Path, text: str) -> bool:
    """Whether any file of the log has the text in it."""
    return any(text.encode() in file.read_bytes() for file in tmp_path.rglob("log.db*"))


def said(store: SessionStore, name: str = "talk") -> str:
    """All that a session says anywhere in its payloads."""
    return "\n".join(commit.payload.decode() for commit in store.commits(name))


def two_people(store: SessionStore, referee: Referee) -> Session:
    """A conversation with two end users, one after the other."""
    session = talk(store, referee, ANTHROPIC)
    for person in ("xenia", "yorick"):
        referee.push(Scripted(reasoning=f"{person}-thought", text=f"{person}-answer"))
        session.chat(f"{person}-question", params={"metadata": {"user_id": f"user-{person}"}})
    return session


RESPONSE = Response(BOUND, blocks=1)


def origin_of(model: str) -> Any:
    """An origin of another model."""
    return msgspec.structs.replace(HERE, served_model=model, requested_model=model)


DEEPSEEK = next(place for place in PLACES if place.dialect == "openai-chat")


@pytest.mark.parametrize(
    "named", [{"user": "xenia"}, {"safety_identifier": "xenia"}, {"metadata": {"user_id": "xenia"}}]
)
def test_a_person_is_found_where_no_rule_guards(kept: SessionStore, referee: Referee, named: dict[str, Any]) -> None:
    """By the parameters of the request alone, as in logs of old."""
    session = talk(kept, referee, DEEPSEEK)
    session.chat("xenia-question", params=named)
    session.chat("yorick-question", params={"prompt_cache_key": "xenia"})
    done = kept.care.purge(end_user="xenia")
    assert (True, False) == ("yorick-question" in said(kept), "xenia-question" in said(kept))
    assert {"user", "request", "reasoning", "assistant"} <= {gone.kind for gone in done.commits}
    assert () == kept.care.purge(end_user="xenia").commits


@pytest.mark.parametrize("params", ["", "[]", '{"user": 7}', '{"user": null}'])
def test_a_record_of_another_program_names_nobody(params: str) -> None:
    """Parameters may be anything in a file that was imported."""
    record = Request({}, {}, (), params, "", "", "", "", "", "", "")
    assert [""] == list(end_users(record))


def test_a_person_is_forgotten(kept: SessionStore, referee: Referee, tmp_path: Path) -> None:
    """Question, reasoning, answer and who it was for; the other person's turn is as it was."""
    two_people(kept, referee)
    assert (1, 1, 1) == tuple(found(kept, f"xenia-{word}") for word in ("question", "thought", "answer"))
    before = [commit.hash for commit in kept.commits("talk")]
    listed = kept.care.purge(end_user="user-xenia", dry_run=True)
    assert [] == [commit for commit in kept.commits("talk") if isinstance(commit.value, Erased)]
    done = kept.care.purge(end_user="user-xenia")
    assert (listed.commits, listed.sessions, ("talk",)) == (done.commits, done.sessions, done.sessions)
    assert {"user", "request", "response", "reasoning", "assistant"} == {gone.kind for gone in done.commits}
    assert "xenia" not in said(kept)
    assert [True] * 4 == [f"yorick-{word}" in said(kept) for word in ("question", "thought", "answer")] + [
        "user-yorick" in said(kept)
    ]
    assert (before, []) == ([commit.hash for commit in kept.commits("talk")], kept.fsck())
    assert [0, 1] == [found(kept, f"{person}-thought") for person in ("xenia", "yorick")]
    assert not on_disk(tmp_path, "xenia-thought")
    assert () == kept.care.purge(end_user="user-xenia").commits


def test_what_was_said_about_it_goes_too(kept: SessionStore, referee: Referee) -> None:
    """Edits and notes, wherever they stand; a mark without words stays."""
    session = two_people(kept, referee)
    question = next(c for c in session.log() if isinstance(c.value, Message) and c.value.text == "xenia-question")
    with pytest.warns(UserWarning, match="voids"):
        session.commit("xenia-edited", edit=question.hash)
    session.annotate(question.hash, "important", reason="xenia-reason")
    session.annotate(question.hash, "pinned")
    done = kept.care.purge(end_user="user-xenia")
    assert "xenia" not in said(kept)
    assert 1 == sum(gone.kind == "annotation" for gone in done.commits)


def test_forks_lose_it_too(kept: SessionStore, referee: Referee) -> None:
    """What a fork stands on is the same row; both are named."""
    session = two_people(kept, referee)
    info = kept.find("talk")
    kept.log.create_session("fork", "fork", 9, Origin(session.id, at=info.head))
    done = kept.care.purge(end_user="user-xenia")
    assert {"talk", "fork"} == set(done.sessions)
    assert "xenia" not in said(kept, "fork")


def test_what_no_branch_reaches_is_forgotten_too(kept: SessionStore, referee: Referee, tmp_path: Path) -> None:
    """A reset does not hide anything from those who are asked to forget."""
    session = two_people(kept, referee)
    head = kept.find("talk").head
    kept.log.refs.move(session.id, "main", head, Head())
    done = kept.care.purge(end_user="user-xenia")
    assert 5 <= len(done.commits)
    assert "xenia" not in "\n".join(c.payload.decode() for c in kept.log.read_to(session.id, head.hash))


def test_old_things_are_forgotten(kept: SessionStore, referee: Referee) -> None:
    """Whole turns before a time; a time may be a number or a date, in UTC if it does not say where."""
    session = two_people(kept, referee)
    second = next(c for c in session.log() if isinstance(c.value, Message) and c.value.text == "yorick-question")
    moment = datetime.fromtimestamp(second.time / 1_000_000, UTC)
    listed = kept.care.purge(before=second.time, dry_run=True)
    assert listed == kept.care.purge(before=moment, dry_run=True)
    assert listed == kept.care.purge(before=moment.replace(tzinfo=None), dry_run=True)
    kept.care.purge(before=second.time)
    text = said(kept)
    assert [False, True] == ["xenia-" in text, "yorick-answer" in text]
    assert [] == kept.fsck()


def sessions_of_places(kept: SessionStore) -> None:
    """Two sessions of codex, one of them in a project, and one of nobody else; each has the word zebra."""
    for name, about in (("a", About("codex", "alpha")), ("b", About("codex", "beta")), ("c", About())):
        kept.log.create_session(name, name, 1, about=about)
        drafts = (
            Draft("user", Message(f"zebra-{name}")),
            Draft("response", msgspec.structs.replace(RESPONSE, origin=origin_of(f"model-{name}")), f"r{name}"),
            block_draft(Text(f"answer-{name}"), f"r{name}", 0),
        )
        kept.log.append(name, name, seal(Step(name, drafts, 5), Head()), Head())
    kept.log.create_session("fork", "fork", 2, Origin("a", at=kept.find("a").head))


@pytest.mark.parametrize(
    ("wish", "erased", "left"),
    [
        ({"model": "model-a"}, {"a", "fork"}, {"a", "b", "c", "fork"}),
        ({"model": "model-a", "before": 1}, set(), {"a", "b", "c", "fork"}),
        ({"before": 9, "program": "codex"}, {"a", "b", "fork"}, {"a", "b", "c", "fork"}),
        ({"before": 9, "project": "beta"}, {"b"}, {"a", "b", "c", "fork"}),
        ({"model": "model-b", "program": "thinkback"}, set(), {"a", "b", "c", "fork"}),
        ({"program": "codex"}, {"a", "b", "fork"}, {"c"}),
        ({"project": "alpha"}, {"a", "fork"}, {"b", "c"}),
        ({"program": "codex", "project": "beta"}, {"b"}, {"a", "c", "fork"}),
        ({"project": "nowhere"}, set(), {"a", "b", "c", "fork"}),
    ],
)
def test_sessions_of_a_program_or_a_project_and_turns_of_a_model_are_purged(
    kept: SessionStore, wish: dict[str, Any], erased: set[str], left: set[str]
) -> None:
    """By the names that a search takes; what another session holds stays, and nothing is erased by looking."""
    sessions_of_places(kept)
    looked = kept.care.purge(dry_run=True, **wish)
    assert 1 == found(kept, "zebra-a")
    done = kept.care.purge(**wish)
    assert (looked.commits, erased) == (done.commits, set(done.sessions) | ({"fork"} & erased))
    assert left == {info.name for info in kept.sessions()}
    assert [name not in erased for name in "abc"] == [bool(found(kept, f"zebra-{name}")) for name in "abc"]
    assert [] == kept.fsck()


def test_both_conditions_must_hold(kept: SessionStore, referee: Referee) -> None:
    """Of one person, before a time."""
    session = two_people(kept, referee)
    first = session.log()[0]
    assert () == kept.care.purge(end_user="user-yorick", before=first.time).commits


def test_a_request_of_before_cannot_be_built_again(kept: SessionStore, referee: Referee) -> None:
    """It says so, whether it is the last one or named."""
    session = two_people(kept, referee)
    records = [commit.hash for commit in session.log() if commit.kind == "request"]
    kept.care.purge(end_user="user-xenia")
    again = kept.session("talk")
    with pytest.raises(ErasedError, match="erased since"):
        again.explain()
    for record in records:
        with pytest.raises(ErasedError, match="erased since"):
            again.why(record)


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.dialect)
def test_the_conversation_goes_on(store: SessionStore, referee: Referee, place: Place) -> None:
    """After some of it was erased or redacted, the host takes the next request, without a trace of what went."""
    session = talk(store, referee, place)
    for number in range(3):
        referee.push(Scripted(reasoning=f"thought-{number}", text=f"answer-{number}"))
        session.chat(f"question-{number}")
    log = session.log()
    second = next(c for c in log if isinstance(c.value, Message) and c.value.text == "question-1")
    store.care.purge(before=second.time)
    answer = next(c for c in log if isinstance(c.value, Text) and c.value.text == "answer-1")
    store.care.redact(answer.hash, "answer-1")
    again = talk(store, referee, place)
    referee.push(Scripted(text="done"))
    assert "done" == again.chat("And now?").text
    sent = referee.requests[-1].raw.decode()
    assert [False] * 4 == [word in sent for word in ("question-0", "thought-0", "answer-0", "answer-1")]
    assert [True] * 3 == [word in sent for word in ("question-1", "[redacted]", "answer-2")]
    again.why()
    assert [] == store.fsck()


def test_words_are_taken_out(kept: SessionStore, referee: Referee, tmp_path: Path) -> None:
    """Of the text, of what repeats it verbatim, of arguments; the carriers of that response go, others stay."""
    session = talk(kept, referee, ANTHROPIC)
    referee.push(Scripted(reasoning="The code is s3cret-77, I must look.", text="Looking for s3cret-77."))
    session.chat("Look!")
    session.chat("And now?")
    first, second = (c for c in session.log() if isinstance(c.value, ThinkingBlock))
    assert 2 == found(kept, "77")
    done = kept.care.redact(first.hash[:16], r"s3cret-\d+")
    assert ("talk",) == done.sessions
    now = {commit.hash: commit.value for commit in kept.commits("talk")}
    thought = surviving(now[first.hash])
    assert isinstance(thought, ThinkingBlock)
    assert ("The code is [redacted], I must look.", "", ()) == (thought.thought, thought.signature, thought.carriers)
    assert second.value == now[second.hash]
    answer = next(v for v in map(surviving, now.values()) if isinstance(v, Text))
    assert "Looking for s3cret-77." == answer.text
    assert (1, []) == (found(kept, "77"), kept.fsck())
    text = next(c for c in kept.commits("talk") if isinstance(surviving(c.value), Text))
    kept.care.redact(text.hash, "s3cret-77")
    assert (0, False) == (found(kept, "77"), "s3cret" in said(kept))
    assert not on_disk(tmp_path, "s3cret")
    assert () == kept.care.redact(text.hash, "s3cret-77").commits


def test_where_a_session_was_goes_with_what_said_so(kept: SessionStore) -> None:
    """A list shows the directory no longer than a message names it; what a fork says of itself stays."""
    about = About("codex", "shop", "/home/me/shop")
    for name in ("a", "b"):
        kept.log.create_session(name, name, 1, about=about)
    text = "<environment_context><cwd>/home/me/shop</cwd></environment_context>Why?"
    (context,) = commits = seal(Step("1", (Draft("user", Message(text)),), 1), Head())
    kept.log.append("a", "1", commits, Head())

    kept.care.redact(context.hash, "Why")
    assert about == kept.log.summaries()["a"].about
    kept.care.redact(context.hash, "me")
    assert [About("codex"), about] == [kept.log.summaries()[name].about for name in "ab"]


def test_words_are_taken_out_of_arguments(kept: SessionStore, referee: Referee) -> None:
    """However they are spelled in there."""
    session = talk(kept, referee, RESPONSES)
    reply = ask_and_call(session, referee)
    session.generate({call.id: "Oslo is sunny" for call in reply.tool_calls}, tools=TOOLS)
    call = next(c for c in session.log() if isinstance(c.value, ToolCall))
    kept.care.redact(call.hash, "O[s]lo")
    left = next(v for v in map(surviving, (c.value for c in kept.commits("talk"))) if isinstance(v, ToolCall))
    assert ('{"city":"[redacted]"}', (), "") == (left.arguments, left.carriers, left.wire)
    assert [] == kept.fsck()


def test_copies_and_edits_lose_the_words_too(kept: SessionStore) -> None:
    """What was said about a message, what it says now, and what it said at first."""
    session = kept.session("notes")
    first = session.commit("My number is 5551234.")
    session.commit("My number is 555 1234, really.", edit=first.hash)
    session.annotate(first.hash, "pinned", reason="has 5551234", metadata={"number": 5551234})
    done = kept.care.redact(first.hash, r"555 ?1234", dry_run=True)
    assert (3, True) == (len(done.commits), "5551234" in said(kept, "notes"))
    kept.care.redact(first.hash, r"555 ?1234", session="notes", reason="a number")
    assert [False, False] == ["5551234" in said(kept, "notes"), "555 1234" in said(kept, "notes")]
    stones = [c.value for c in kept.commits("notes") if isinstance(c.value, Erased)]
    assert {"a number"} == {stone.reason for stone in stones}


def test_a_deleted_session_is_gone(kept: SessionStore, referee: Referee, tmp_path: Path) -> None:
    """With all that nothing else stands on, and from the files; a fork keeps what it has."""
    session = two_people(kept, referee)
    kept.session("other").commit("something else")
    listed = kept.care.delete_session("talk", dry_run=True)
    assert len(session.log()) == len(listed.commits)
    assert "talk" in {info.name for info in kept.sessions()}
    kept.care.delete_session("talk")
    assert ["other"] == [info.name for info in kept.sessions()]
    assert ([], 0, False) == (kept.fsck(), found(kept, "xenia-answer"), on_disk(tmp_path, "xenia-answer"))


def test_a_fork_keeps_what_it_stands_on(kept: SessionStore, referee: Referee) -> None:
    """Only what came after the fork goes with the session it was made from."""
    session = two_people(kept, referee)
    log = session.log()
    middle = next(c for c in log if c.kind == "turn_ended")
    kept.log.create_session("fork", "fork", 9, Origin(session.id, at=Head(middle.hash, middle.seq)))
    gone = kept.care.delete_session("talk").commits
    assert [commit.hash for commit in log if commit.seq > middle.seq] == [each.hash for each in gone]
    assert ([], middle.seq + 1) == (kept.fsck(), len(kept.commits("fork")))


def test_conversations_of_a_key_are_forgotten(kept: SessionStore, tmp_path: Path) -> None:
    """Those that a gateway named after it, and of a family with others only those."""
    for name in ("key-1/a", "key-1/b", "key-11/c"):
        kept.session(name).commit(f"said by {name}")
    base = kept.sessions()[0]
    mixed = next(info for info in kept.sessions() if info.name == "key-1/b")
    at = kept.commits("key-1/b")[-1]
    kept.log.create_session("fork", "key-11/fork", 9, Origin(mixed.id, at=Head(at.hash, at.seq)))
    listed = kept.care.purge_key("key-1", dry_run=True)
    assert {"key-1/a", "key-1/b"} == set(listed.sessions)
    assert base.name in {info.name for info in kept.sessions()}
    done = kept.care.purge_key("key-1")

    assert {"key-1/a", "key-1/b"} == set(done.sessions)
    assert {"key-11/c", "key-11/fork"} == {info.name for info in kept.sessions()}
    assert ([], False) == (kept.fsck(), on_disk(tmp_path, "said by key-1/a"))
    for nobody in ("key-1", "", "key"):
        with pytest.raises(NotFoundError, match="no session of the key"):
            kept.care.purge_key(nobody)


def test_a_tenant_is_forgotten(kept: SessionStore, referee: Referee) -> None:
    """Every session; another tenant than the log's own is refused."""
    two_people(kept, referee)
    kept.session("other").commit("something else")
    with pytest.raises(ThinkbackError, match="not 'somebody'"):
        kept.care.purge(tenant="somebody")
    listed = kept.care.purge(tenant=kept.tenant, dry_run=True)
    assert listed.commits == kept.care.purge(tenant=kept.tenant).commits
    assert ([], []) == (kept.sessions(), kept.fsck())


def test_what_cannot_be_erased_is_told(kept: SessionStore) -> None:
    """Nothing named, nobody there, no pattern."""
    kept.session("talk").commit("hello")
    with pytest.raises(ThinkbackError, match="nothing to purge"):
        kept.care.purge()
    with pytest.raises(NotFoundError):
        kept.care.delete_session("nobody")
    with pytest.raises(NotFoundError):
        kept.care.redact("ffff", "x")
    with pytest.raises(NotFoundError):
        kept.care.redact("ffff", "x", session="nobody")
    with pytest.raises(ThinkbackError, match="not a regular expression"):
        kept.care.redact("ffff", "(")
    assert () == kept.care.purge(end_user="nobody").commits


def test_a_copy_is_made_of_the_log(tmp_path: Path, referee: Referee) -> None:
    """As it is now; a name that is taken is refused."""
    with thinkback.open(tmp_path / "log.db") as store:
        two_people(store, referee)
        store.backup(tmp_path / "copy.db")
        with thinkback.open(tmp_path / "copy.db") as copy:
            assert (store.commits("talk"), []) == (copy.commits("talk"), copy.fsck())
        with pytest.raises(StoreError, match="exists"):
            store.backup(tmp_path / "copy.db")


def test_the_other_side_of_a_merge_is_forgotten_too(kept: SessionStore) -> None:
    """Also where its session was deleted, and where it is not in the log at all."""
    root = kept.session("root")
    start = root.commit("start")
    kept.log.create_session("b", "b", 9, Origin(root.id, at=Head(start.hash, start.seq)))
    turn = Talk().user("xenia-question").reply(Text("xenia-answer"), origin=BOUND).end()
    drafts = tuple(Draft(c.kind, c.value, c.response, c.index) for c in turn.commits)
    said_there = seal(Step("x", drafts, 7), Head(start.hash, start.seq))
    kept.log.append("b", "x", said_there, Head(start.hash, start.seq))
    there = said_there[-1].hash
    merges = tuple(Draft("merge", Merge("b", hash), parents=(hash,)) for hash in (there, "0" * 64))
    kept.log.append(root.id, "m", seal(Step("m", merges, 8), kept.find("root").head), kept.find("root").head)
    kept.care.delete_session("b")
    assert "xenia-answer" in _words(kept, root.id, there)
    done = kept.care.redact(said_there[0].hash, "question")
    assert (1, ("root",)) == (len(done.commits), done.sessions)
    assert "question" not in _words(kept, root.id, there)
    done = kept.care.purge(end_user="user-xenia")
    assert (4, ("root",)) == (len(done.commits), done.sessions)
    assert "xenia" not in _words(kept, root.id, there)


def _words(store: SessionStore, session: str, hash: str) -> str:
    return "\n".join(commit.payload.decode() for commit in store.log.read_to(session, hash))


@pytest.mark.parametrize("threads", [0, 1])
def test_a_pattern_that_would_match_for_years_is_stopped(kept: SessionStore, threads: int) -> None:
    """In any thread: with an error of its own, and nothing erased; a pattern that is done in time is not."""
    said = kept.session("notes").commit("a" * 40 + "!")

    def redact(pattern: str, seconds: float) -> Erasure:
        if not threads:
            return kept.care.redact(said.hash, pattern, seconds=seconds)
        with ThreadPoolExecutor(threads) as elsewhere:
            return elsewhere.submit(kept.care.redact, said.hash, pattern, seconds=seconds).result()

    with pytest.raises(PatternTimeout, match=r"took longer than 0\.05 seconds") as caught:
        redact("(a+)+$", 0.05)
    assert "(a+)+$" == caught.value.details["pattern"]
    assert ["a" * 40 + "!"] == [message.text for message in kept.session("notes").compile().messages]
    assert 1 == len(redact("a+", 5).commits)
    assert ["[redacted]!"] == [message.text for message in kept.session("notes").compile().messages]


def test_a_pattern_is_matched_where_no_other_process_can_be_started(
    kept: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a program that has Python built in."""
    said = kept.session("notes").commit("Oslo \ud83d, twice Oslo")
    for executable in ("", str(Path(__file__)), shutil.which("true") or ""):
        monkeypatch.setattr(sys, "executable", executable)
        assert 1 == len(kept.care.redact(said.hash, "Oslo|x*", dry_run=True).commits)
    monkeypatch.undo()
    assert 1 == len(kept.care.redact(said.hash, re.compile("OSLO|x*", re.I)).commits)
    assert "[redacted] \ud83d, twice [redacted]" == kept.session("notes").compile().messages[0].text


def test_what_is_left_of_words_is_still_said(kept: SessionStore) -> None:
    """Summaries, content and checkpoints lose the words and nothing else; so do marks."""
    kept.register_type("note")
    session = kept.session("notes")
    first = session.commit("My number is 5551234 and that is all there is to say about it.")
    session.commit("My number is 5551234, noted.", kind="note")
    skipped = session.commit("Never mind.")
    session.annotate(skipped.hash, Priority.SKIP, reason="not 5551234")
    for told in ("Call 5551234.", "Thank you."):
        session.commit(told)
    collapse(spawn(session, "child", inheritance="head_snapshot"), session, "It is 5551234.")
    checkpoint = Compaction("manual", "Begins with 5551234.", first.hash, first.hash)
    session.conversation.append([Draft("compaction", checkpoint)])
    for commit in session.log():
        kept.care.redact(commit.hash, "5551234")
    spoken = [message.text.rpartition("\n")[2] for message in kept.session("notes").compile().messages]
    assert [
        "Begins with [redacted].",
        "My number is [redacted], noted.",
        "Call [redacted].",
        "Thank you.",
        "It is [redacted].",
    ] == spoken
    assert ("5551234" in said(kept, "notes"), []) == (False, kept.fsck())


@pytest.mark.parametrize("way", ["question", "answer", "session"])
def test_the_usage_log_keeps_numbers_alone(tmp_path: Path, referee: Referee, way: str) -> None:
    """Of the turn that loses something; the lines of others stay as they are, also one that is being written."""
    usage = tmp_path / "usage.jsonl"
    with thinkback.open(tmp_path / "a.db", usage_log=usage, settings={"usage.logContent": True}) as store:
        options: dict[str, Any] = {"endpoint": "deepseek", "model": "deepseek-v4-pro", "api_key": "sk-any"}
        for name in ("one", "other"):
            referee.push(Scripted(text=f"Said to {name}."))
            store.session(name, base_url=referee.base_url("deepseek"), **options).chat(f"Asked by {name}?")
        begun = '{"request": "x", "prompt": "Asked by one?"'
        usage.write_text(usage.read_text() + begun)
        before = usage.read_text().splitlines()
        said = {commit.kind: commit.hash for commit in store.session("one").log()}
        match way:
            case "session":
                store.care.delete_session("one")
            case _:
                hash, pattern = (said["user"], "Asked") if way == "question" else (said["assistant"], "Said")
                store.care.redact(hash, pattern)
    first, *others = usage.read_text().splitlines()

    assert {**json.loads(before[0]), "prompt": None, "answer": None} == json.loads(first)
    assert (len(before[0]), before[1:]) == (len(first), others)


def test_a_purge_of_many_sessions_overwrites_files_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sessions lose something, and also where one of them stops it: no word is left in any file."""
    with thinkback.open(tmp_path / "log.db") as store:
        for number in range(4):
            store.session(f"talk-{number}", model="m").commit(f"secretword{number} of the sea")
        assert 4 == found(store, "sea")
        swept: list[int] = []
        sweep = LogCare.sweep

        def counted(care: LogCare) -> None:
            swept.append(1)
            sweep(care)

        monkeypatch.setattr(LogCare, "sweep", counted)
        assert 4 == len(store.care.purge(before="2100-01-01").sessions)
        assert [1] == swept
        assert not on_disk(tmp_path, "secretword")
        assert 0 == found(store, "sea")

        for number in range(4):
            store.session(f"more-{number}", model="m").commit(f"otherword{number} of the sea")
        assert 4 == found(store, "sea")
        holder = store.session("more-3", model="m").conversation.holder
        holder.take("main")
        with pytest.raises(BusyError):
            store.care.purge(before="2100-01-01")
        assert [1, 1] == swept
        assert not any(on_disk(tmp_path, f"otherword{number}") for number in range(3))
        assert on_disk(tmp_path, "otherword3")
        holder.release()
        assert [] == list(store.fsck())
