"""A refusal says whether its words are the provider's or the stand-in's own."""

from __future__ import annotations

import pytest

import thinkback
from tests.conformance.moves import PLACES, TOOLS, Place, answered, options
from thinkback.model.commits import Repair
from thinkback.referee import Referee, RejectCarrier, Step
from thinkback.referee.wording import is_own

OWN = {"gemini-interactions", "mistral", "ollama", "cohere"}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.dialect)
def test_refusals_in_words_of_its_own_are_known(referee: Referee, place: Place) -> None:
    """Where no text is documented or reported, the wording is its own; elsewhere it is the provider's."""
    with thinkback.open(":memory:") as store:
        session = store.session("chat", **options(referee, place))
        session.set("reasoning.effort", "high")
        session.chat("What is the weather in Oslo?", tools=TOOLS)
        answered(session)
        referee.push(Step(fault=RejectCarrier()))
        session.chat("Thank you.", tools=TOOLS)
        refusals = [commit.value.refusal for commit in session.log() if isinstance(commit.value, Repair)]
    assert [place.dialect in OWN] == [is_own(text) for text in refusals]


def test_words_of_providers_are_not_its_own() -> None:
    """Also where they only begin alike."""
    assert not is_own("messages.1.content.0: Invalid `signature` in `thinking` block")
    assert not is_own("The `reasoning_content` in the thinking mode must be passed back to the API.")
    assert is_own("A thought step is missing at step 4.")
