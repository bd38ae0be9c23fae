"""What notebooks show: no text is markup, no opaque value is shown, and what is printed is one line."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import thinkback
from tests.cli.conftest import ENCRYPTED, SIGNATURE
from tests.session.chats import open_session
from thinkback.model.blocks import Carrier, ThinkingBlock
from thinkback.model.commits import Draft
from thinkback.session.store import SessionStore
from thinkback_referee import Referee

HOSTILE = "<script>alert(1)</script> ![x](http://e.example/x.png)"


def test_nothing_that_is_shown_is_markup(store: SessionStore, referee: Referee) -> None:
    """A script in a question, an answer, a thought, a name and a reason; carriers stay in the log."""
    session = open_session(store, referee, name=HOSTILE)
    session.commit(HOSTILE)
    session.commit(HOSTILE, kind="assistant")
    sealed = ThinkingBlock(HOSTILE, signature=SIGNATURE, carriers=(Carrier("encrypted", ENCRYPTED),))
    session.conversation.append([Draft("reasoning", sealed)])
    session.branches.branch("before")
    reply = session.chat(HOSTILE)
    session.chat("again")
    shown: list[Any] = [reply, session, store, session.why(), session.diff("before"), *session.log()]
    assert type(session.why()) is type(reply.decisions)
    for each in shown:
        page, text = each._repr_html_(), each._repr_markdown_()
        assert "<script" not in page, type(each)
        assert "<img" not in page, type(each)
        assert all(word not in page + text for word in (SIGNATURE, ENCRYPTED)), type(each)
        fenced = text.split("```")[1::2]
        assert "<script" not in text.replace("\\<", "") or any("<script" in inside for inside in fenced), type(each)
    assert "alert(1)" in session._repr_html_()
    assert reply.text[:9] in reply._repr_html_()
    for each in (reply, session, store, session.diff("before"), *session.log(), *reply.steps):
        assert (1, True) == (len(repr(each).splitlines()), len(repr(each)) < 160), repr(each)


def test_stream_shows_itself_outside_a_notebook(store: SessionStore, referee: Referee) -> None:
    """As text; the reply is there afterwards."""
    stream = open_session(store, referee).stream("hello")
    with redirect_stdout(io.StringIO()) as printed:
        stream.display()
    assert "completed" == stream.reply.state
    assert stream.reply.reasoning
    assert [stream.reply.reasoning.strip(), stream.reply.text.strip()] == [
        part.strip() for part in printed.getvalue().split("\n\n", 1)
    ]


def test_address_of_a_server_is_not_printed() -> None:
    """It may hold a password."""
    with thinkback.open(":memory:") as store:
        store.place = "postgresql://me:secret@host/db"
        assert "<SessionStore default>" == repr(store)
