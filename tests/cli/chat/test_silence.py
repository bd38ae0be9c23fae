"""Answers that are nothing but thought."""

from __future__ import annotations

import pytest

from tests.cli.chat.talks import asked, messages, say
from thinkback.cli import exits
from thinkback.cli.chat.chat import Chat
from thinkback_referee import Referee, Step

THOUGHT = Step(reasoning="I think and think.")


def test_a_model_that_only_thought_is_asked_to_go_on(
    chat: Chat, referee: Referee, capsys: pytest.CaptureFixture[str]
) -> None:
    """By itself, and told; what came in the end is the answer."""
    referee.push(THOUGHT, THOUGHT, Step(text="At last."))
    say(chat, "One.")

    shown = capsys.readouterr().out
    assert 3 == len(referee.requests)
    assert "At last." in shown
    assert "continuing" in shown
    assert 0 == chat.code


def test_after_three_times_it_is_told(chat: Chat, referee: Referee, capsys: pytest.CaptureFixture[str]) -> None:
    """With what to do next, and as the exit code of a script."""
    referee.push(*[THOUGHT] * 4)
    say(chat, "One.")

    shown = capsys.readouterr().out
    assert 4 == len(referee.requests)
    assert "the model reasoned and gave no answer, asked 4 times" in shown
    assert "/set reasoning.effort low" in shown
    assert exits.REASONING_ONLY == chat.code


def test_a_budget_that_thinking_used_up_is_told(
    chat: Chat, referee: Referee, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer never began, because the output ran out."""
    referee.push(*[Step(reasoning="I think and think.", finish="length")] * 4)
    say(chat, "One.")

    assert "all tokens that the answer may have were spent on it" in capsys.readouterr().out


def test_the_last_message_is_the_persons(chat: Chat, referee: Referee, capsys: pytest.CaptureFixture[str]) -> None:
    """Retry and edit are about what a person said; a session that is shown again tells the rest apart."""
    referee.push(THOUGHT, Step(text="At last."), Step(text="Again."), Step(text="Other."))
    say(chat, "One.", "/retry", "/edit Two.", "/switch main")

    assert "One." == str(messages(referee, 2)[-1]["content"])
    assert "Two." == asked(referee)[-1]
    assert 1 == len(messages(referee, 2))
    assert "asked to go on" in capsys.readouterr().out


def test_an_edited_message_is_shown_once_and_asked_again_as_it_is_now(
    chat: Chat, referee: Referee, capsys: pytest.CaptureFixture[str]
) -> None:
    """Edits made by `thinkback edit` count."""
    say(chat, "One.")
    first = chat.session.log(kinds=("user",))[0].hash
    chat.session.commit("Uno.", edit=first)
    capsys.readouterr()
    say(chat, "/resume talk", "/retry")

    shown = capsys.readouterr().out
    assert 1 == shown.count("> Uno.") + shown.count("user: Uno.")
    assert ["One.", "Uno."] == asked(referee)
