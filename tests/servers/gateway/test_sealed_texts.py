"""Clients that hold sealed values and echo texts in their own dialect, where nothing was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.old_logs import sets
from tests.old_logs.clients import Client
from tests.old_logs.providers import PLACES, Providers, behind


@pytest.mark.parametrize("front", ["openai-responses", "anthropic", "gemini"])
def test_an_echoed_text_goes_on_in_the_dialect_of_the_provider(front: str, tmp_path: Path) -> None:
    """The item that the client has of it is not the provider's, although the reasoning beside it is."""
    statuses = {}
    with Providers() as providers, behind(providers):
        house = sets.gateway(tmp_path / "house", providers, str(tmp_path / "store"), tmp_path / "spool")
        with sets.running(house):
            key = house.keys("create", "off", "--recording", "off").split()[-1]
            for place in PLACES:
                providers.begin()
                client = Client(front, place.dialect, key, "", False, [])
                replies = [client.ask(house, text) for text in ("What is 7 times 8?", "And 3?", "And 4?")]
                statuses[place.dialect] = {reply.status for reply in replies}
    assert {place.dialect: {200} for place in PLACES} == statuses
