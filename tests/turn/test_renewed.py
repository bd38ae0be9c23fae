"""A history that is read again, as something was erased from its log."""

from __future__ import annotations

from tests.compile.build import Talk, say, think
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Erased
from thinkback.turn.plan import History


def test_what_is_held_stays_unless_its_commit_was_erased() -> None:
    """And is let go of as before, once the turn is over."""
    talk = Talk().user("a").reply(think("one"), say("x")).user("b").reply(think("two"), say("y"))
    first, second = [commit for commit in talk.commits if commit.kind == "reasoning"]
    history = History((), 1)
    for commit in (first, second):
        history.hold(commit.response, commit.index, ThinkingBlock(f"held {commit.response}"))
    history.take(talk.commits)
    talk.erase(first.hash)
    history.renew(talk.commits, 2)
    assert 2 == history.epoch
    one, two = [commit.value for commit in history.commits if commit.hash in (first.hash, second.hash)]
    assert isinstance(one, Erased)
    assert ThinkingBlock(f"held {second.response}") == two
    history.release()
    assert talk.commits == history.commits
