"""A refusal says whether its words are the provider's or the stand-in's own."""

from __future__ import annotations

import pytest

import thinkback
from tests.conformance.moves import PLACES, TOOLS, Place, answered, options
from tests.referee.talk import Body, body, post, user
from thinkback.model.commits import Repair
from thinkback_referee import Referee, RejectCarrier, Step
from thinkback_referee.jsons import as_object
from thinkback_referee.verdict import Verdict
from thinkback_referee.wording import is_own

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
    assert [place.dialect in OWN] == [is_own(said(text)) for text in refusals]


def said(text: str) -> Verdict:
    """A refusal in these words."""
    return Verdict(400, {"error": {"message": text}})


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("messages.1.content.0: Invalid `signature` in `thinking` block", False),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", False),
        ("A thought step is missing at step 4.", True),
        ("The model returned the following errors: `top_k` must be unset when thinking is enabled", True),
        ("Thinking level medium is not supported for this model.", True),
        (
            "Thinking level MEDIUM is not supported for this model. Please retry with other thinking level.",
            False,
        ),
    ],
)
def test_words_are_told_apart_by_their_whole(text: str, own: bool) -> None:
    """Providers' may begin alike, and a platform may say something before its own."""
    assert own == is_own(said(text))


def test_the_header_stands_on_a_refusal_inside_that_of_a_router(referee: Referee) -> None:
    """Grok's text for a stranger's thought is not known: what OpenRouter passes on is the referee's."""
    details = [{"type": "reasoning.encrypted", "data": "x", "format": "google-gemini-v1"}]
    history: list[Body] = [user("hi"), {"role": "assistant", "content": "ho", "reasoning_details": details}, user("on")]
    found = {}
    for model in ("x-ai/grok-4.1-fast", "openai/gpt-5.2"):
        got = post(referee, "openrouter", body(model, *history), prefix="/api/v1")
        assert (400, "Provider returned error") == (got.status, as_object(got.json["error"])["message"])
        found[model] = got.headers.get("x-referee-wording")
    assert {"x-ai/grok-4.1-fast": "own", "openai/gpt-5.2": None} == found
