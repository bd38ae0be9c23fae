"""What people add by hand and say about commits: stored as commits, refused where it would break the turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import thinkback
from tests.session.chats import get_weather, kinds, open_session
from thinkback import Priority
from thinkback.errors import NotFoundError, ThinkbackError, UnsupportedContent, Veto
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.commits import Annotation, Commit, Content, Draft, Message
from thinkback.model.curation import curate
from thinkback.model.texts import text_of
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Referee


@pytest.fixture
def session() -> Iterator[Session]:
    """A session without an endpoint, in memory."""
    with thinkback.open(":memory:") as store:
        yield store.session("notes")


def test_messages_by_hand(session: Session) -> None:
    """System, user and assistant messages are commits like any other."""
    said = [
        session.commit(text, kind=kind) for kind, text in [("system", "Be brief."), ("user", "Hi"), ("assistant", "Ho")]
    ]
    assert [Message("Be brief."), Message("Hi"), Text("Ho")] == [commit.value for commit in said]
    assert ["system", "user", "response", "assistant", "completed"] == kinds(session)


class Counted(list[Commit]):
    """Counts the commits that are read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.reads += len(found) if isinstance(at, slice) else 1
        return found

    def __iter__(self) -> Iterator[Commit]:
        self.reads += len(self)
        return super().__iter__()


def test_a_message_by_hand_reads_no_earlier_one(session: Session) -> None:
    """However many of them stand in a turn that has no end."""
    session.commit("first")
    counted = session.conversation.history.commits = Counted(session.conversation.history.commits)
    for number in range(100):
        session.commit(f"q {number}")
    assert 101 == len(counted) == len(session.log())
    assert counted.reads < 1_000


@pytest.mark.parametrize(
    ("format", "expected"),
    [("parsed", "parsed"), ("anthropic", "anthropic"), ("reasoning_content", "reasoning_content"), ("thought",) * 2],
)
def test_reasoning_by_hand(session: Session, format: str, expected: str) -> None:
    """Its text and where it is from, with a note, metadata and tags."""
    made = session.reasoning("Because.", format=format, message="why", metadata={"step": 1}, tags=["plan"])
    assert ThinkingBlock("Because.", source_field=format) == made.value
    mark = curate(session.log()).mark(made.hash)
    assert ("why", {"step": 1}, ["plan"]) == (mark.message, json.loads(mark.metadata), sorted(mark.tags))


@pytest.mark.parametrize(("text", "format"), [("", "parsed"), (" \n", "parsed"), ("a", ""), ("a", "bogus!!")])
def test_reasoning_that_says_nothing_is_refused(session: Session, text: str, format: str) -> None:
    """Nothing is stored."""
    with pytest.raises(ThinkbackError):
        session.reasoning(text, format=format)
    assert [] == session.log()


def test_the_log_by_kind_and_tag(session: Session) -> None:
    """All tags must be there; a tag that was taken away is not."""
    one = session.commit("one", tags=["a", "b"])
    two = session.reasoning("two", tags=["a"])
    session.annotate(one.hash, untag=["b"])
    assert [one, two] == session.log(tags=["a"])
    assert ([], [two]) == (session.log(tags=["a", "b"]), session.log(kinds=["reasoning"], tags=["a"]))


def test_only_what_can_be_edited_is_restored(session: Session) -> None:
    """A response's header, a mark or what was erased is refused; what a redaction left is restored and edited."""
    answer = session.commit("The code is 77.", kind="assistant")
    header, mark = session.log()[0], session.annotate(answer.hash, tags=["a"])
    for refused in (header, mark):
        with pytest.raises(UnsupportedContent, match="cannot be edited"):
            session.restore(refused.hash)
    store = session.conversation.store
    store.care.redact(answer.hash, "77")
    again = store.session(session.name)
    assert "The code is [redacted]." == text_of(again.restore(answer.hash).value)
    assert "The code is gone." == text_of(again.commit("The code is gone.", edit=answer.hash).value)
    store.care.purge(before=answer.time + 1)
    with pytest.raises(UnsupportedContent, match="was erased"):
        store.session(session.name).restore(answer.hash)
    assert [] == store.fsck()


def test_what_is_said_of_an_answer_by_hand_is_of_its_words(session: Session) -> None:
    """Not of the end of its turn, which is stored in the same step."""
    made = session.commit("Yes.", kind="assistant", tags=["a"], message="sure")
    assert [made] == session.log(tags=["a"])
    assert "sure" == curate(session.log()).mark(made.hash).message


def test_an_edit_keeps_what_was_there(session: Session) -> None:
    """The history has both; versions are listed, and the first can be brought back."""
    first = session.commit("Helo")
    second = session.commit("Hello", edit=first.hash[:10])
    third = session.commit("Hello!", edit=second.hash)
    assert (first.hash, second.hash) == (second.edit, third.edit and second.hash)
    assert [Message("Helo"), Message("Hello"), Message("Hello!")] == session.versions(first.hash)
    restored = session.restore(first.hash)
    assert (first.digest, first.value) == (restored.digest, restored.value)
    assert not curate(session.log()).is_changed(first)
    with pytest.raises(NotFoundError, match="no version 9"):
        session.restore(first.hash, 9)


def test_the_last_annotation_wins_field_by_field(session: Session) -> None:
    """A later note leaves the priority alone, and a later priority leaves the tags."""
    said = session.commit("Remember the key is under the mat.")
    session.annotate(said.hash, Priority.IMPORTANT, reason="needed", retain=["mat"], tags=["home"])
    session.annotate(said.hash, message="a note")
    session.annotate(said.hash, "pinned", untag=["home"])
    mark = curate(session.log()).mark(said.hash)
    assert (Priority.PINNED, "", frozenset(), "a note") == (mark.priority, mark.reason, mark.tags, mark.message)
    session.annotate(said.hash, default=True)
    mark = curate(session.log()).mark(said.hash)
    assert (None, 4) == (mark.priority, len(mark.history))


def test_an_annotation_of_an_edit_is_one_of_what_was_edited(session: Session) -> None:
    """Whichever hash is named."""
    first = session.commit("Helo")
    second = session.commit("Hello", edit=first.hash)
    said = session.annotate(second.hash, Priority.SKIP)
    assert isinstance(said.value, Annotation)
    assert first.hash == said.value.target


@pytest.mark.parametrize(
    "call", [lambda s, h: s.annotate(h, "loud"), lambda s, h: s.annotate(h), lambda s, h: s.annotate("zz", "skip")]
)
def test_annotations_that_say_nothing_are_refused(session: Session, call: object) -> None:
    """An unknown priority, nothing at all, no such commit."""
    said = session.commit("Hi")
    with pytest.raises(ThinkbackError):
        call(session, said.hash)  # type: ignore[operator]
    assert 1 == len(session.log())


def test_a_content_type_of_ones_own() -> None:
    """Its commits keep the defaults they were made with."""
    with thinkback.open(":memory:") as store:
        session = store.session("notes")
        store.register_type("decision", role="system", priority=Priority.PINNED, compression_priority=90)
        made = session.commit("Use SQLite.", kind="decision", data={"adr": 1})
        assert Content("decision", "Use SQLite.", "system", Priority.PINNED, 90, '{"adr":1}') == made.value
        with pytest.raises(NotFoundError, match="no content type 'idea'"):
            session.commit("?", kind="idea")
        for name in ("user", "two words"):
            with pytest.raises(ThinkbackError, match="cannot be a content type"):
                store.register_type(name)


def test_a_batch_is_one_step(session: Session) -> None:
    """All of it is stored when the block ends."""
    with session.batch() as batch:
        batch.commit("one")
        batch.reasoning("two", tags=["x"])
        assert [] == session.log()
    assert ["user", "reasoning", "annotation"] == kinds(session) == [c.kind for c in batch.commits]
    assert 1 == len({commit.time for commit in batch.commits})


def test_a_batch_that_fails_stores_nothing(session: Session) -> None:
    """An exception inside leaves the log as it was."""

    def write() -> None:
        with session.batch() as batch:
            batch.commit("one")
            batch.commit(" ")

    with pytest.raises(UnsupportedContent):
        write()
    assert [] == session.log()


def test_what_cannot_be_edited_says_so(session: Session, store: SessionStore, referee: Referee) -> None:
    """A call, or the end of a turn, has no text to change."""
    chat = open_session(store, referee)
    chat.chat("Weather in Oslo?", tools=[get_weather])
    call = next(commit for commit in chat.log() if commit.kind == "tool_call")
    with pytest.raises(UnsupportedContent, match="cannot be edited"):
        chat.commit("other", edit=call.hash)


def test_the_turn_under_way_is_not_changed(store: SessionStore, referee: Referee) -> None:
    """While calls have no results, its commits cannot be edited or skipped, and no message comes in between."""
    session = open_session(store, referee)
    definition = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    session.chat("Weather in Oslo?", tools=[definition])
    thought = next(commit for commit in session.log() if commit.kind == "reasoning")
    before = session.log()
    changes: list[Callable[[], object]] = [
        lambda: session.annotate(thought.hash, Priority.SKIP),
        lambda: session.commit("else", edit=thought.hash),
        lambda: session.commit("And Rome?"),
    ]
    for change in changes:
        with pytest.raises(ThinkbackError, match="under way"):
            change()
    assert before == session.log()
    session.annotate(thought.hash, Priority.PINNED)


def test_a_hook_may_refuse(session: Session) -> None:
    """Nothing is stored; what is stored is told of."""
    told: list[str] = []

    def no_secrets(drafts: tuple[Draft, ...]) -> None:
        if any("secret" in str(draft.value) for draft in drafts):
            raise Veto("it holds a secret")

    session.on("pre_commit", no_secrets)
    session.on("reasoning", lambda commit: told.append(commit.value.thought))
    with pytest.raises(Veto, match="it holds a secret"):
        session.commit("the secret is 42")
    session.reasoning("no harm")
    assert (["no harm"], ["reasoning"]) == (told, kinds(session))
    with pytest.raises(ValueError, match="no event 'pre_thought'"):
        session.on("pre_thought", print)


def test_a_hook_that_fails_afterwards_stops_nothing(session: Session) -> None:
    """It is warned about."""
    session.on("post_commit", lambda commits: 1 / 0)
    with pytest.warns(UserWarning, match="a hook on post_commit failed: ZeroDivisionError"):
        session.commit("Hi")
    assert ["user"] == kinds(session)
