"""``session.compile``: what the conversation says, now or then, with reasoning only where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import thinkback
from thinkback import Priority
from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.session.session import Session


@pytest.fixture
def session() -> Iterator[Session]:
    """Two questions with answers, a thought before the first answer, and an edit."""
    with thinkback.open(":memory:") as store:
        made = store.session("talk")
        asked = made.commit("What is 6 x 7?")
        made.reasoning("Six sevens: 42.")
        made.commit("42", kind="assistant")
        made.commit("And 6 x 8?")
        made.commit("48", kind="assistant")
        made.commit("What is six times seven?", edit=asked.hash)
        yield made


def said(session: Session, **options: object) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in session.compile(**options).messages]  # type: ignore[arg-type]


NOW = [("user", "What is six times seven?"), ("assistant", "42"), ("user", "And 6 x 8?"), ("assistant", "48")]


def test_reasoning_stays_out_unless_it_is_asked_for(session: Session) -> None:
    """And never stands as the answer; what was annotated wins either way."""
    thought = session.log(kinds=["reasoning"])[0]
    assert NOW == said(session)
    assert ("reasoning", "Six sevens: 42.") in said(session, include_reasoning=True)
    session.annotate(thought.hash, Priority.SKIP)
    assert NOW == said(session, include_reasoning=True)
    session.annotate(thought.hash, Priority.PINNED)
    assert ("reasoning", "Six sevens: 42.") in said(session)


def test_as_of_then(session: Session) -> None:
    """At a commit by any name, or at a time: the edit came later."""
    before = session.log()[-2]
    assert [("user", "What is 6 x 7?"), *NOW[1:]] == said(session, at="HEAD^1") == said(session, at=before.hash[:10])
    assert [("user", "What is 6 x 7?"), *NOW[1:]] == said(session, at_time=before.time)
    assert [] == said(session, at_time="2001-01-01")
    assert ("user", "What is 6 x 7?") == said(session, at="main^9")[0]
    with pytest.raises(NotFoundError):
        session.compile("ffffffff")
    with pytest.raises(ThinkbackError, match="not a time"):
        session.compile(at_time="soon")


def test_strategies_and_order(session: Session) -> None:
    """The last turns alone; messages in another order, with a word of what that parts."""
    assert NOW[2:] == said(session, strategy="last", turns=1)
    assert NOW == said(session, strategy="adaptive")
    question, answer = session.log(kinds=["user"])[1], session.log(kinds=["response"])[1]
    asked = session.compile(order=[question.hash[:12]])
    assert (["And 6 x 8?", "What is six times seven?"], ()) == ([m.text for m in asked.messages[:2]], asked.warnings)
    answered = session.compile(order=[answer.hash])
    assert ("48", 1) == (answered.messages[0].text, len(answered.warnings))


def test_a_hook_may_refuse(session: Session) -> None:
    """Before anything is made."""

    def refuse(commits: object) -> None:
        raise thinkback.errors.Veto("not now")

    session.on("pre_compile", refuse)
    with pytest.raises(thinkback.errors.Veto, match="not now"):
        session.compile()
