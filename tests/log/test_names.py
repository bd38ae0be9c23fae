"""Names of commits as people write them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.log.build import Line
from thinkback.errors import BranchError, NotFoundError
from thinkback.log.names import Name, Step, before_question, check_branch, parse, questions, walk
from thinkback.model.blocks import Text
from thinkback.model.commits import Commit, Draft, Message, Tools


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("HEAD", Name("HEAD")),
        ("@", Name("HEAD")),
        ("", Name("HEAD")),
        ("~2", Name("HEAD", (Step("~", 2),))),
        ("HEAD~", Name("HEAD", (Step("~", 1),))),
        ("HEAD^^", Name("HEAD", (Step("^", 1), Step("^", 1)))),
        ("main~3^5~", Name("main", (Step("~", 3), Step("^", 5), Step("~", 1)))),
        ("-", Name("-")),
        ("-~1", Name("-", (Step("~", 1),))),
        ("feature/a-b", Name("feature/a-b")),
        ("4f2a", Name("4f2a")),
        ("child:main~0", Name("child:main", (Step("~", 0),))),
        ("@{1970-01-01T00:00:02}", Name("HEAD", (), 2_000_000)),
        ("main@{1970-01-02}^1", Name("main", (Step("^", 1),), 86_400_000_000)),
        ("main@{1970-01-01T01:00:00+01:00}", Name("main", (), 0)),
        ("a\nb", Name("a\nb")),
    ],
)
def test_parts(text: str, name: Name) -> None:
    """A base, a time, and steps back."""
    assert name == parse(text)


def test_a_time_that_is_none() -> None:
    """Is named."""
    with pytest.raises(NotFoundError, match="'yesterday' is not a time"):
        parse("main@{yesterday}")


def back(text: str, commits: Sequence[Commit]) -> int:
    """How many of ``commits`` the name leaves."""
    return len(walk(commits, parse(text)))


def test_commits_back_and_as_of() -> None:
    """``^`` counts commits, along first parents; a time names the last commit that was there."""
    line = Line()
    for text in ("one", "two", "three"):
        line.user(text)
    assert [2, 3, 1] == [back(name, line.commits) for name in ("^", "^0", "^^")]
    assert line.commits[:2] == walk(line.commits, Name("HEAD", (), 2))
    assert line.commits[:1] == walk(line.commits, Name("HEAD", (Step("^", 1),), 2))
    with pytest.raises(NotFoundError, match="main has 3 commits, and 3 are to be left out"):
        walk(line.commits, parse("main^3"))
    with pytest.raises(NotFoundError, match="main has no commits by then"):
        walk(line.commits, Name("main", (), 0))


def test_questions_back() -> None:
    """``~`` goes to where the line ended before a question, whatever came of it; system and tools come with theirs."""
    line = Line()
    line.add(Draft("system", Message("Be short.")), Draft("tools", Tools(())), Draft("user", Message("one")))
    line.respond(Text("1"), ends="completed")
    first = len(line.commits)
    question = line.user("two")
    line.respond(Text("2"), ends="completed")
    line.add(Draft("user", Message("zwei"), edit=question.hash))
    second = len(line.commits)
    line.add(Draft("system", Message("Be long.")), Draft("user", Message("three")))

    names = ("~0", "~", "~2", "~1~1", "~3", "^2~1")
    assert [second + 2, second, first, first, 0, first] == [back(name, line.commits) for name in names]
    assert [second, first, 0, 0] == [before_question(line.commits, count) for count in (1, 2, 3, 9)]
    assert 3 == questions(line.commits)
    with pytest.raises(NotFoundError, match="main has 3 questions, and 4 are to be left out"):
        walk(line.commits, parse("main~4"))
    with pytest.raises(NotFoundError, match="main has 1 questions by then"):
        walk(line.commits, Name("main", (Step("~", 2),), 2))


@pytest.mark.parametrize("name", ["", "HEAD", "@", "-", "-x", "a b", "a~1", "a^", "a:b", "a..b", "a@{1}", "a\tb"])
def test_names_that_mean_something_else(name: str) -> None:
    """Are no names of branches."""
    with pytest.raises(BranchError, match="cannot be the name of a branch"):
        check_branch(name)


@pytest.mark.parametrize("name", ["main", "feature/x", "4f2a", "a-b", "v1.2", "größer", "user@host"])
def test_names_of_branches(name: str) -> None:
    """Most words are; one that could be a hash wins over it."""
    assert name == check_branch(name)
