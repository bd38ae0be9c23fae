"""The settings of one request: layers, the header, and what is worked out once."""

from __future__ import annotations

import pytest

from thinkback.errors import SettingError
from thinkback.servers.gateway.engine.settings import Effective

GATEWAY = {"reasoning.effort": "low", "reasoning.includeInContext": False}
ENDPOINT = {"reasoning": {"includeInContext": True}}


def test_what_is_nearer_wins() -> None:
    """Endpoint, gateway, alias, key, request."""
    of = Effective().of
    assert True is of({}, {}, {}, {}, ENDPOINT).include_in_context
    assert False is of(GATEWAY, {}, {}, {}, ENDPOINT).include_in_context
    said = [
        of(GATEWAY, {}, {}, {}, ENDPOINT).effort,
        of(GATEWAY, {"reasoning.effort": "medium"}, {}, {}, ENDPOINT).effort,
        of(GATEWAY, {"reasoning.effort": "medium"}, {"reasoning.effort": "high"}, {}, ENDPOINT).effort,
        of(GATEWAY, {}, {"reasoning.effort": "high"}, {"thinkback-set": "reasoning.effort=max"}, ENDPOINT).effort,
    ]
    assert ["low", "medium", "high", "max"] == said


def test_nothing_is_summarised_behind_a_clients_back() -> None:
    """Unless the operator says so."""
    of = Effective().of
    assert [False, True] == [of(said, {}, {}, {}, {}).compaction_auto for said in ({}, {"compaction.auto": True})]


def test_what_is_the_same_is_worked_out_once() -> None:
    """By what the mappings are, not by what they hold: another header, or another mapping, is another case."""
    effective = Effective()
    key: dict[str, object] = {}
    first = effective.of(GATEWAY, GATEWAY, key, {}, ENDPOINT)
    assert first is effective.of(GATEWAY, GATEWAY, key, {"accept": "x"}, ENDPOINT)
    assert "max" == effective.of(GATEWAY, GATEWAY, key, {"thinkback-set": "reasoning.effort = max,"}, ENDPOINT).effort
    assert first is effective.of(GATEWAY, GATEWAY, key, {}, ENDPOINT)


def test_cases_without_end_are_forgotten() -> None:
    """Clients say what they like in their headers."""
    effective = Effective()
    for tokens in range(1, 1000):
        assert tokens == effective.of({}, {}, {}, {"thinkback-set": f"reasoning.maxTokens={tokens}"}, {}).max_tokens
    assert 256 >= len(effective._known)


@pytest.mark.parametrize("said", ["permissions.mode=auto", "reasoning.effort", "reasoning.effort=9", "usage.log=true"])
def test_request_may_not_say_everything(said: str) -> None:
    """What is not of its own response, what is no setting, and what is no value."""
    with pytest.raises(SettingError):
        Effective().of({}, {}, {}, {"thinkback-set": said}, {})
