"""``models`` and what else names models: those of the endpoint that is meant, and of no other."""

from __future__ import annotations

import pytest

import thinkback
from tests.cli.chat.talks import open_chat, say
from tests.cli.conftest import Inside
from thinkback.cli.chat import table
from thinkback.rules import load_rulebook
from thinkback_referee import Referee

BOOK = load_rulebook()


def test_the_models_of_an_endpoint_are_listed(line: Inside) -> None:
    """By any of its names; without one those of every endpoint of which some are known."""
    found = line("models", "anthropic", "--json").json
    every = line("models", "--json").json

    assert {"anthropic": BOOK.served("anthropic")} == found
    assert {row.id: BOOK.served(row.id) for row in BOOK.endpoints() if BOOK.served(row.id)} == every
    assert BOOK.served("anthropic")[0] in line("models", "anthropic").out
    assert 2 == line("models", "nosuch").code
    assert "no model is known" in line("models", "unknown").out


def test_a_model_that_is_not_said_is_one_of_the_endpoint(line: Inside) -> None:
    """The error names some, and the command that lists all of them."""
    err = line("run", "Hi", "--endpoint", "anthropic").err

    assert f"give --model: {', '.join(BOOK.served('anthropic')[:5])}" in err
    assert "`thinkback models anthropic` lists" in err


def test_a_chat_offers_the_models_of_its_endpoint(referee: Referee, capsys: pytest.CaptureFixture[str]) -> None:
    """Where they are listed and where a name is completed."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        chat = open_chat(store, referee)
        chat.session = store.session("other", endpoint="anthropic", model="claude-opus-5-5", api_key="sk-1")
        say(chat, "/model")
        offered = [word for word, _ in table.completions(chat, "/model ")]

    assert BOOK.served("anthropic") == offered
    assert f"known here: {', '.join(offered)}" in " ".join(capsys.readouterr().err.split())
