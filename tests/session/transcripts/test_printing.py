"""``pprint``: the conversation in three looks, with reasoning apart from what was said."""

from __future__ import annotations

import io
from collections.abc import Iterator

import msgspec
import pytest

import thinkback
from thinkback import Media, Priority
from thinkback.model.blocks import Text
from thinkback.model.commits import Message, TurnEnded
from thinkback.session.session import Session
from thinkback.session.transcripts.printing import pprint
from thinkback.session.transcripts.wording import first_words


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def session() -> Iterator[Session]:
    """A conversation with a thought, a mark and an edit."""
    with thinkback.open(":memory:") as store:
        made = store.session("talk")
        asked = made.commit("What is six times seven?", tags=["maths"])
        made.reasoning("Six sevens:\x1b[31m forty-two.")
        made.commit("42", kind="assistant")
        made.annotate(asked.hash, Priority.PINNED)
        made.commit("What is 6 x 7?", edit=asked.hash)
        yield made


def printed(session: Session, style: str, stream: io.StringIO) -> str:
    session.pprint(style, stream)  # type: ignore[arg-type]
    return stream.getvalue()


def test_chat_shows_what_holds_now(session: Session) -> None:
    """Roles, texts as last edited, what was said about them; no bookkeeping."""
    expected = [
        "user (pinned, maths, edited)",
        "  What is 6 x 7?",
        "",
        "[reasoning]",
        "  Six sevens:\ufffd[31m forty-two.",
        "",
        "assistant",
        "  42",
        "",
    ]
    assert expected == printed(session, "chat", io.StringIO()).split("\n")[:-1]


def test_what_goes_with_a_message_is_named() -> None:
    """Images and files by type and name, in every look, also where they are all of it; a model's own too."""
    cat, dog = Media("image/png", data="AAAA", name="cat.png"), Media("image/*", url="https://example.com/dog")
    message = Message("Look.", (Text("Look."), cat, dog))

    assert "Look.\n[image/png cat.png]\n[image/* https://example.com/dog]" == first_words(message)
    assert "[image/png cat.png]" == first_words(Message("", (cat,)))
    assert "[audio/wav]" == first_words(Media("audio/wav", url="data:audio/wav;base64,AAAA"))


def test_reasoning_is_dim_cyan_on_a_terminal(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every look; nothing else is."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for style in ("chat", "table", "compact"):
        lines = printed(session, style, Terminal()).splitlines()
        assert all("\x1b[2;36" in line for line in lines if "easoning]" in line or "forty-two" in line)
        assert not any("\x1b[2;36" in line for line in lines if "six times seven" in line or "6 x 7" in line)


@pytest.mark.parametrize("style", ["table", "compact"])
def test_lists_have_a_line_per_commit(session: Session, style: str) -> None:
    """With the beginning of its hash."""
    lines = printed(session, style, io.StringIO()).splitlines()
    for commit in session.log():
        assert 1 == sum(line.startswith(commit.hash[:8]) for line in lines)


def test_an_unknown_style_is_refused(session: Session) -> None:
    """With those that there are."""
    with pytest.raises(ValueError, match="styles are chat, table, compact"):
        printed(session, "loud", io.StringIO())


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (TurnEnded("interrupted"), "(interrupted)"),
        (TurnEnded("timed_out", "first_byte"), "(timed out: first_byte)"),
        (TurnEnded("completed"), ""),
    ],
)
def test_a_turn_that_was_cut_short_is_marked_where_it_ends(session: Session, end: TurnEnded, said: str) -> None:
    """Else a thought in pieces would look like a damaged log."""
    last = session.log()[-1]
    ended = msgspec.structs.replace(last, kind="turn_ended", value=end, hash="0" * 64)
    plain, shown = io.StringIO(), io.StringIO()
    pprint([last], "chat", plain)
    pprint([last, ended], "chat", shown)

    assert said == shown.getvalue().removeprefix(plain.getvalue()).strip()
