"""Answers that are nothing but thought."""

from __future__ import annotations

import pytest

from tests.cli.chat.talks import asked, messages, say
from tests.cli.command import KEY
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
    assert exits.NO_ANSWER == chat.code


def test_a_budget_that_thinking_used_up_is_told(
    chat: Chat, referee: Referee, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer never began, because the output ran out."""
    referee.push(*[Step(reasoning="I think and think.", finish="length")] * 4)
    say(chat, "One.")

    assert "all tokens that the answer may have were spent on it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("step", "code", "line"),
    [
        (Step(text="Half an", finish="length"), 0, "(the answer is cut off: the output limit was reached)"),
        (Step(reasoning="Hm.", refusal="I will not.", finish="stop"), exits.NO_ANSWER, "(the model refused to answer)"),
        (Step(text="Half an", finish="content_filter"), exits.NO_ANSWER, "(a safety filter stopped the answer)"),
        (Step(text=" \n"), exits.NO_ANSWER, "(the answer has no text)"),
    ],
    ids=["cut", "refused", "filtered", "white space"],
)
def test_an_answer_that_is_none_or_not_whole_is_told_then_and_later(
    chat: Chat, referee: Referee, capsys: pytest.CaptureFixture[str], step: Step, code: int, line: str
) -> None:
    """Behind it, once, also when the session is shown again; nobody asks the model to go on."""
    referee.push(step)
    say(chat, "One.")
    ended, live = chat.code, capsys.readouterr().out
    say(chat, "Two.", "/resume talk")
    again = capsys.readouterr().out.partition("> One.")[2]

    assert (code, 2) == (ended, len(referee.requests))
    assert [1, 1] == [shown.count(f"{line}\n") for shown in (live, again)]
    assert again.index(line) < again.index("> Two.")
    assert "reasoned and gave" not in live


def test_thought_alone_is_told_when_it_is_shown_again(
    chat: Chat, referee: Referee, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each time that the model was asked."""
    referee.push(THOUGHT, Step(text="At last."))
    say(chat, "One.", "/resume talk")

    shown = capsys.readouterr().out.partition("> One.")[2]
    assert 1 == shown.count("(the model reasoned and gave no answer)\n")
    assert shown.index("(the model reasoned") < shown.index("asked to go on") < shown.index("At last.")


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


def test_withheld_thinking_is_told_with_the_way_to_a_summary(
    chat: Chat, referee: Referee, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, where the endpoint has one and it was not asked for."""
    chat.session.use(endpoint="openai", model="gpt-5.4", base_url=referee.base_url("openai"), api_key=KEY)
    referee.push(*[Step(reasoning="A secret.", text="Yes.")] * 3)
    say(chat, "/set reasoning.display omitted", "One.", "Two.", "/set reasoning.display summarized", "Three.")

    shown = capsys.readouterr().out
    assert 2 == shown.count("(Reasoned, text withheld")
    assert 1 == shown.count("  - ask the provider for a summary of it: /set reasoning.display summarized\n")
