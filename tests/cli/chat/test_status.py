"""The line under the prompt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.chat.talks import say
from thinkback.cli.chat import status
from thinkback.cli.chat.chat import Chat
from thinkback.errors import RuleFileError
from thinkback.observe.cost import Cost
from thinkback_referee import Referee, Step


def test_it_says_what_is_known(chat: Chat, referee: Referee, capsys: pytest.CaptureFixture[str]) -> None:
    """Model, endpoint where there is room for it, effort, context, reasoning, cache hits."""
    meter = status.Meter()
    empty = status.line(chat.session, meter)
    referee.push(Step(reasoning="Well.", text="Yes."))
    say(chat, "One.", "Two.", "/set reasoning.effort high")

    full, narrow = status.line(chat.session, meter, 100), status.line(chat.session, meter, 60)

    assert "deepseek-v4-pro (deepseek) · effort default · context 0/1M" == empty
    assert full.startswith("deepseek-v4-pro (deepseek) · effort high · context ")
    assert narrow.startswith("deepseek-v4-pro · effort high · context ")
    assert re.search(r" · reasoning \d+ · cached \d+ %$", full)


def test_what_does_not_fit_is_left_out_whole(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    """The last parts first; the model stays."""
    assert "deepseek-v4-pro · effort default" == status.line(chat.session, status.Meter(), 40)
    assert "deepseek-v4-pro" == status.line(chat.session, status.Meter(), 5)


def test_it_says_that_thinking_is_not_shown_in_full(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    """A key that changes it would otherwise seem to do nothing."""
    say(chat, "/set display.reasoning hidden")

    assert " · effort default · thinking hidden · context " in status.line(chat.session, status.Meter())


def test_it_says_the_cost_where_prices_are_known(
    chat: Chat, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Followed from turn to turn; a price file that cannot be read is told in the line's place."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    file, meter = tmp_path / "prices.toml", status.Meter()
    file.write_text(
        '[[price]]\nendpoints = ["deepseek"]\nmodels = ["*"]\ninput = 1000\noutput = 10000\ncached = 0\n'
        'since = "2020-01-01"\nsource = "a test"\n'
    )
    say(chat, "One.")
    first = status.line(chat.session, meter)
    say(chat, "Two.")
    second = status.line(chat.session, meter)
    file.write_text("nonsense")

    assert re.search(r" · \$\d\.\d\d", first)
    assert second != first
    assert status.line(chat.session, meter) == second
    with pytest.raises(RuleFileError):
        status.line(chat.session, status.Meter())


def test_it_follows_where_the_session_stands(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    """Read once and then followed, it says the same as read anew, on every branch."""
    meter = status.Meter()
    for line in ("One.", "/branch side", "Two.", "/switch main", "Three.", "/fork other", "/edit Four."):
        say(chat, line)
        assert status.line(chat.session, status.Meter()) == status.line(chat.session, meter)


def test_it_says_what_to_do_without_a_model(chat: Chat) -> None:
    """A session that was opened without a place."""
    assert "no model yet: /endpoint ID, /model NAME · effort default" == status.line(
        chat.store.session("new"), status.Meter()
    )


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        (Cost(0.0, 0, 0), ""),
        (Cost(0.0, 0, 3), ""),
        (Cost(0.01234, 1, 0), "$0.0123"),
        (Cost(12.345, 9, 1), "$12.35+"),
    ],
)
def test_a_cost_is_told_as_far_as_it_is_known(cost: Cost, told: str) -> None:
    """A plus where a part of it is not."""
    assert told == status.dollars(cost)


@pytest.mark.parametrize(
    ("tokens", "told"),
    [(0, "0"), (999, "999"), (1_000, "1k"), (12_345, "12.3k"), (1_000_000, "1M"), (1_250_000, "1.2M")],
)
def test_numbers_are_short(tokens: int, told: str) -> None:
    """Thousands and millions by their letter."""
    assert told == status.short(tokens)
