"""What is said at the end of a turn: reasoning that nobody saw, a limit that was hit, a turn that broke off."""

from __future__ import annotations

import io
import socket
from pathlib import Path
from typing import cast

import pytest

from tests.cli.chat.talks import say
from thinkback.cli.chat.chat import Chat
from thinkback.cli.chat.drawing.look import Look, look_of
from thinkback.cli.chat.drawing.screen import Screen
from thinkback.cli.chat.lines import LineReader
from thinkback.errors import ThinkbackError
from thinkback.model.blocks import Block, Carrier, Origin, Text, ThinkingBlock
from thinkback.model.commits import Outcome, Response, TurnState, Usage
from thinkback.model.deltas import ReasoningDelta, TextDelta
from thinkback.model.target import Settings
from thinkback.session.config import keys
from thinkback.session.reply import Reply
from thinkback.turn import events
from thinkback.wire.result import ReadResult
from thinkback_referee import Referee

ENCRYPTED = ThinkingBlock("", carriers=(Carrier("encrypted", "b3BhcXVl"),))


def reply(
    *blocks: Block, state: TurnState | None = "completed", reasoning: int | None = None, outcome: str = "answered"
) -> Reply:
    """A reply of one response."""
    response = Response(Origin("openai-responses", "", "gpt-5.6"), outcome=cast(Outcome, outcome))
    usage = Usage(output=900, reasoning=reasoning) if reasoning is not None else None
    return Reply(events.Outcome(state, ((ReadResult(response, blocks, usage), ()),), None), None)


def finished(given: Reply | None, error: Exception | None = None, look: Look | None = None) -> str:
    """What the end of a turn with a word of answer says behind that word."""
    stream = io.StringIO()
    screen = Screen(stream, look or Look(endpoint="openai", language="en"))
    screen.begin()
    screen.show(TextDelta("Yes", 0))
    screen.finish(given, error)
    return stream.getvalue().removeprefix("Yes\n")


@pytest.mark.parametrize(
    ("blocks", "reasoning", "expected"),
    [
        ((ENCRYPTED, Text("Yes")), 812, "\n(Reasoned, text withheld (812 tokens))\n"),
        ((ENCRYPTED, Text("Yes")), None, "\n(Reasoned, text withheld)\n"),
        ((Text("Yes"),), 812, "\n(Reasoned, text withheld (812 tokens))\n"),
        ((ThinkingBlock("Hm."), Text("Yes")), 812, ""),
        ((Text("Yes"),), 0, ""),
        ((Text("Yes"),), None, ""),
    ],
    ids=["encrypted", "uncounted", "only counted", "readable", "none", "nothing said"],
)
def test_hidden_reasoning_is_said_to_have_been(blocks: tuple[Block, ...], reasoning: int | None, expected: str) -> None:
    """An encrypted block or a count of tokens is told; what was shown, or did not happen, is not."""
    assert expected == finished(reply(*blocks, reasoning=reasoning))


def test_hidden_reasoning_is_not_told_where_reasoning_is_not_to_be_shown() -> None:
    """``reasoning.includeInResponse=false`` beats the mode, whatever was stored."""
    for mode in ("full", "collapsed", "hidden"):
        look = look_of(Settings(include_in_response=False, display_reasoning=mode))
        assert "hidden" == look.mode
        assert "" == finished(reply(ENCRYPTED, Text("Yes"), reasoning=812), look=look)


@pytest.mark.parametrize("mode", ["full", "collapsed", "hidden"])
def test_the_mode_is_what_is_set_where_reasoning_may_be_shown(mode: str) -> None:
    """it is shown by default, in the mode of ``display.reasoning``."""
    assert mode == look_of(Settings(display_reasoning=mode)).mode  # type: ignore[arg-type]
    assert "collapsed" == look_of(Settings()).mode


@pytest.mark.parametrize("state", ["interrupted", "timed_out", "partial_failed"])
def test_a_turn_that_did_not_end_by_itself_is_marked_as_partial(state: TurnState) -> None:
    """What stands there is not all that there would have been."""
    assert f"\n(partial: {state.removeprefix('partial_').replace('_', ' ')})\n" == finished(
        reply(Text("Yes"), state=state)
    )


@pytest.mark.parametrize("state", ["capped", "denied", "stalled"])
def test_a_turn_that_was_ended_says_by_what(state: TurnState) -> None:
    """What the model said is whole; that it might have gone on is told."""
    assert f"\n({state})\n" == finished(reply(Text("Yes"), state=state))


def test_tokens_that_were_all_spent_on_reasoning_are_told() -> None:
    """Otherwise nobody could know why there is no answer."""
    given = reply(ThinkingBlock("Hm."), outcome="max_tokens_in_reasoning")
    assert "\n(Reasoning was cut off: all tokens that the answer may have were spent on it)\n" == finished(given)


def test_what_went_wrong_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error stands behind what arrived, without a key in it; where nothing did, nothing is called partial."""
    monkeypatch.setenv("SOME_API_KEY", "sk-secret-secret")
    error = ThinkbackError("no sk-secret-secret", next_actions=("try again",))

    assert "\n(failed)\nno <SOME_API_KEY>\n  - try again\n" == finished(reply(state="failed"), error)
    assert "\nno <SOME_API_KEY>\n  - try again\n" == finished(None, error)


def test_thinking_and_answers_may_take_turns() -> None:
    """White space between two thoughts is no answer; another part of a thought is a paragraph."""
    stream = io.StringIO()
    screen = Screen(stream, Look(endpoint="anthropic", language="en"), lambda: 0.0)
    screen.begin()
    for delta in (
        ReasoningDelta("\n", 0),
        ReasoningDelta("One", 0),
        TextDelta("\n\n", 1),
        ReasoningDelta(" and\r\n", 0),
        ReasoningDelta("two", 2),
        TextDelta(" \n\n  Yes", 3),
        TextDelta(".", 3),
        ReasoningDelta("Three", 4),
    ):
        screen.show(delta)
    screen.finish(None, None)

    assert (
        "Thinking:\nOne and\n\n\ntwo\n(Thought for less than a second, ~3 tokens)\n\n  Yes.\n\n"
        "Thinking:\nThree\n(Thought for less than a second, ~1 token)\n"
    ) == stream.getvalue()


def test_a_network_failure_names_endpoint_and_host_in_the_words_of_a_chat(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that only a program can do is proposed."""
    with socket.socket() as taken:  # bound and not listening: refuses
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        chat.session.use(base_url=f"http://127.0.0.1:{port}", api_key="sk-test-0123456789abcdef")
        say(chat, "Hi")

    shown = capsys.readouterr().out
    assert 1 == shown.count(f"deepseek at http://127.0.0.1:{port}: ") == shown.count(f"127.0.0.1:{port}")
    assert "session." not in shown
    assert "program" not in shown
    assert "/retry asks again" in shown


class Person(LineReader):
    """Somebody who gives these answers."""

    is_live = True

    def __init__(self, *answers: str) -> None:
        super().__init__([])
        self._answers = iter(answers)

    def ask(self, question: str, default: str = "", *, secret: bool = False) -> str:
        assert secret == ("KEY" in question)
        return next(self._answers)


def test_a_missing_key_is_asked_for_and_kept(
    chat: Chat, referee: Referee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message is asked with it then; an empty answer leaves it at the error."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    chat.session = chat.store.session(
        "keyless", endpoint="deepseek", model="deepseek-v4-pro", base_url=referee.base_url("deepseek")
    )
    chat.reader = Person("", "sk-test-0123456789abcdef")
    say(chat, "One.")
    assert 0 == len(referee.requests)
    say(chat, "Two.")

    assert 1 == len(referee.requests)
    assert "sk-test-0123456789abcdef" == keys.find(("DEEPSEEK_API_KEY",))
    shown = capsys.readouterr()
    assert "deepseek needs a key" in shown.out
    assert "sk-test" not in shown.out + shown.err


def test_an_endpoint_that_does_not_know_the_model_asks_a_person(chat: Chat) -> None:
    """What is named is asked from then on."""
    chat.reader = Person("claude-sonnet-5")
    say(chat, "/endpoint anthropic")
    assert ("anthropic", "claude-sonnet-5") == (chat.session.target.endpoint.id, chat.session.target.model)
