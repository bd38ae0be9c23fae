"""The playbook itself: it fails where a turn does something else."""

from __future__ import annotations

import pytest

from tests.turn.playbook import Playbook, begins, closes, ends, keeps, sends


def test_unexpected_command_fails_where_it_comes_up() -> None:
    """An append that nobody expected stops the script at the next event."""
    play = Playbook() >> begins
    with pytest.raises(AssertionError):
        play >> closes


def test_wrong_command_fails() -> None:
    """Another command, another kind, or none at all."""
    with pytest.raises(AssertionError):
        Playbook() >> begins << sends
    with pytest.raises(AssertionError):
        Playbook() >> begins << keeps("system")
    with pytest.raises(AssertionError):
        Playbook() >> begins << keeps("user") << sends << ends("completed")
