"""A refusal says whether its words are the provider's or the stand-in's own."""

from __future__ import annotations

import pytest

import thinkback
from tests.conformance.moves import PLACES, TOOLS, Place, answered, options
from tests.referee.talk import Body, body, post, user
from thinkback.model.commits import Repair
from thinkback_referee import BAD_KEY, Referee, RejectCarrier, Step
from thinkback_referee.jsons import as_object
from thinkback_referee.verdict import Verdict
from thinkback_referee.wording import is_own, wording

OWN = {"gemini-interactions", "mistral", "ollama", "cohere"}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.dialect)
def test_refusals_in_words_of_its_own_are_known(referee: Referee, place: Place) -> None:
    """Where no text is documented or reported, the wording is its own; elsewhere it is the provider's."""
    with thinkback.open(":memory:") as store:
        session = store.session("chat", **options(referee, place))
        if place.takes_effort:
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


@pytest.mark.parametrize("host", ["deepseek", "mistral", "groq", "kimi"])
def test_refusals_of_form_and_of_keys_say_so(referee: Referee, host: str) -> None:
    """Nobody has compared each of them with a provider's: no client is to take them for the provider's words."""
    asked: list[tuple[Body, str]] = [({}, "any"), ({"model": "m"}, BAD_KEY)]
    for content, key in asked:
        got = post(referee, host, content, key=key)
        assert (True, "form") == (got.status >= 400, got.headers.get("x-referee-wording"))


@pytest.mark.parametrize(
    ("reason", "whose"),
    [
        ("unauthorized", "form"),
        ("invalid JSON", "form"),
        ("body is not an object", "form"),
        ("tools is not an array", "form"),
        ("no model", "form"),
        ("missing messages.0.content", "form"),
        ("bad max_tokens", "form"),
        ("unknown field tone at messages[0]", "form"),
        ("unexpected messages.0.tone", "form"),
        ("missing at messages.1", ""),
        ("bad reasoning_effort", ""),
        ("unexpected reasoning_content at messages[1]", ""),
        ("unknown model x", ""),
        ("unknown response", ""),
        ("changed at messages[3]", ""),
        ("", ""),
    ],
)
def test_a_refusal_over_reasoning_is_none_of_form(reason: str, whose: str) -> None:
    """Its words have a source, or are listed as the referee's own."""
    assert whose == wording(Verdict(400, {"error": {"message": "No."}}, reason))
    assert "own" == wording(Verdict(400, {"error": {"message": "A thought step is missing at step 4."}}, reason))
    assert "" == wording(Verdict(200, {}, reason))
