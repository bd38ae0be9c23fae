"""Names of commits as people write them."""

from __future__ import annotations

import pytest

from tests.log.build import Line
from thinkback.errors import BranchError, NotFoundError
from thinkback.log.names import Name, check_branch, parse, walk


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("HEAD", Name("HEAD")),
        ("@", Name("HEAD")),
        ("", Name("HEAD")),
        ("~2", Name("HEAD", 2)),
        ("HEAD~", Name("HEAD", 1)),
        ("HEAD^^", Name("HEAD", 2)),
        ("main~3^~", Name("main", 5)),
        ("-", Name("-")),
        ("-~1", Name("-", 1)),
        ("feature/a-b", Name("feature/a-b")),
        ("4f2a", Name("4f2a")),
        ("child:main~0", Name("child:main")),
        ("@{1970-01-01T00:00:02}", Name("HEAD", 0, 2_000_000)),
        ("main@{1970-01-02}~1", Name("main", 1, 86_400_000_000)),
        ("main@{1970-01-01T01:00:00+01:00}", Name("main", 0, 0)),
        ("a\nb", Name("a\nb")),
    ],
)
def test_parts(text: str, name: Name) -> None:
    """A base, a time, and steps back."""
    assert name == parse(text)


def test_a_time_that_is_none() -> None:
    """Is named."""
    with pytest.raises(NotFoundError, match="'yesterday' is no time"):
        parse("main@{yesterday}")


def test_back_and_as_of() -> None:
    """Steps along first parents; the last commit that was there at a time."""
    line = Line()
    for text in ("one", "two", "three"):
        line.user(text)
    assert line.commits[1:] == [walk(line.commits, Name("HEAD", back))[-1] for back in (1, 0)]
    assert line.commits[:2] == walk(line.commits, Name("HEAD", 0, 2))
    assert line.commits[:1] == walk(line.commits, Name("HEAD", 1, 2))
    with pytest.raises(NotFoundError, match="main has 3 of them"):
        walk(line.commits, Name("main", 3))
    with pytest.raises(NotFoundError, match="main has 0 of them by then"):
        walk(line.commits, Name("main", 0, 0))


@pytest.mark.parametrize("name", ["", "HEAD", "@", "-", "-x", "a b", "a~1", "a^", "a:b", "a..b", "a@{1}", "a\tb"])
def test_names_that_mean_something_else(name: str) -> None:
    """Are no names of branches."""
    with pytest.raises(BranchError, match="cannot be the name of a branch"):
        check_branch(name)


@pytest.mark.parametrize("name", ["main", "feature/x", "4f2a", "a-b", "v1.2", "größer", "user@host"])
def test_names_of_branches(name: str) -> None:
    """Most words are; one that could be a hash wins over it."""
    assert name == check_branch(name)
