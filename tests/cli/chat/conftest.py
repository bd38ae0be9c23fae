"""What the tests of the chat share: a chat in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.chat.talks import memory, open_chat
from thinkback.cli.chat.chat import Chat
from thinkback_referee import Referee


@pytest.fixture
def chat(referee: Referee, capsys: pytest.CaptureFixture[str]) -> Iterator[Chat]:
    """A chat that nothing was said in; what it prints is caught from its beginning."""
    with memory() as store:
        yield open_chat(store, referee)
