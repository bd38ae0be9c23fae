"""What came into the session from elsewhere is shown before the chat acts on it; a turn of others is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.chat.talks import asked, open_chat, say
from thinkback.cli import exits
from thinkback.cli.chat import resume
from thinkback.cli.chat.chat import Chat
from thinkback.model.commits import TurnEnded
from thinkback.session.session import Session
from thinkback_referee import Call, Referee, Step

Caught = pytest.CaptureFixture[str]


def elsewhere(chat: Chat, referee: Referee) -> Session:
    """The same session, open in another program."""
    return open_chat(chat.store, referee).session


@contextmanager
def busy(session: Session) -> Iterator[None]:
    """A turn of ``session`` is under way, and ends by itself."""
    deltas = iter(session.stream("Theirs."))
    next(deltas)
    yield
    list(deltas)


@pytest.mark.parametrize("command", ["/retry", "/edit Mine."])
def test_what_another_said_is_shown_before_it_is_asked_again(
    chat: Chat, referee: Referee, capsys: Caught, command: str
) -> None:
    """Nothing is asked the first time; the second time it is what was shown."""
    referee.push(*[Step(text=text) for text in ("One.", "Their answer.", "Again.")])
    say(chat, "First.")
    elsewhere(chat, referee).chat("Theirs.")
    capsys.readouterr()
    say(chat, command)
    shown = capsys.readouterr()
    assert "Their answer." in shown.out
    assert "from elsewhere" in shown.err
    assert "nothing was sent" in shown.err
    assert (exits.BUSY, ["First.", "Theirs."]) == (chat.code, asked(referee))
    assert ["main"] == [branch.name for branch in chat.session.branches.list()]
    say(chat, command)
    assert ["First.", "Theirs.", "Theirs." if command == "/retry" else "Mine."] == asked(referee)


def test_a_message_is_asked_behind_what_it_shows(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """What is the chat's own, by hand too, is no news."""
    referee.push(*[Step(text=text) for text in ("One.", "Their answer.", "Two.", "Three.")])
    say(chat, "First.", "/reasoning of my own", "/branch other", "/switch main")
    elsewhere(chat, referee).chat("Theirs.")
    capsys.readouterr()
    say(chat, "Second.")
    shown = capsys.readouterr()
    assert shown.out.index("Their answer.") < shown.out.index("Two.")
    assert "of my own" not in shown.out
    say(chat, "Third.", "/retry")
    assert "from elsewhere" not in capsys.readouterr().err
    assert ["First.", "Theirs.", "Second.", "Third.", "Third."] == asked(referee)


def test_a_branch_that_was_moved_elsewhere_is_shown(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """It ends otherwise than the person has seen."""
    say(chat, "First.", "Second.")
    elsewhere(chat, referee).branches.reset("main~1")
    capsys.readouterr()
    say(chat, "/retry")
    assert "another process moved the branch" in capsys.readouterr().err
    assert ["First.", "Second."] == asked(referee)


def test_a_turn_of_another_is_left_alone(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """Without a person it is told who is at work, and how to go on."""
    say(chat, "First.")
    other = elsewhere(chat, referee)
    with busy(other):
        say(chat, "Second.")
        told = capsys.readouterr().err
        assert ("busy: process" in told, "--take-over" in told, exits.BUSY) == (True, True, chat.code)
    assert ["completed"] * 2 == [commit.value.state for commit in other.log() if isinstance(commit.value, TurnEnded)]
    assert ["First.", "Theirs."] == asked(referee)


@pytest.mark.parametrize(
    ("answer", "branch", "ended"),
    [("b", "main-", ["completed"] * 2), ("t", "main", ["completed", "interrupted", "completed"]), ("", "main", [])],
)
def test_a_person_says_what_becomes_of_it(
    chat: Chat, referee: Referee, monkeypatch: pytest.MonkeyPatch, answer: str, branch: str, ended: list[str]
) -> None:
    """A branch of its own begins before that turn; taking over ends it; nothing is asked without an answer."""
    say(chat, "First.")
    monkeypatch.setattr(chat.reader, "is_live", True)
    monkeypatch.setattr(chat.reader, "ask", lambda question, default="": answer)
    with busy(elsewhere(chat, referee)):
        say(chat, "Second.")
        assert chat.session.branches.current.startswith(branch)
        assert bool(answer) == ("Second." in asked(referee))
        states = [commit.value.state for commit in chat.session.log() if isinstance(commit.value, TurnEnded)]
        assert (ended or ["completed"]) == states


def test_a_session_that_waits_for_consent_elsewhere_has_not_stopped(
    chat: Chat, referee: Referee, capsys: Caught
) -> None:
    """A second window names the process that waits, says nothing of a stopped program, and ends nothing."""

    def look() -> str:
        """Look."""
        return "seen"

    told = []

    def consent(request: object) -> bool:
        resume.go_on(chat, "talk")
        say(chat, "Second.")
        told.append(capsys.readouterr().err)
        return True

    say(chat, "First.")
    other = elsewhere(chat, referee)
    referee.push(Step(tool_calls=[Call("look", {})]), Step(text="Seen."))
    reply = other.chat("Look.", tools=[look], approve=consent, settings={"permissions.mode": "ask"})
    assert ("Seen.", "main") == (reply.text, other.branches.current)
    assert (2, False) == (told[0].count("busy: process"), "stopped" in told[0])
    assert ["completed"] * 2 == [commit.value.state for commit in other.log() if isinstance(commit.value, TurnEnded)]
