"""What a refusal advises where the status alone does not say what is wrong."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.turn.playbook import Playbook, answers, begins, breaks, ends, keeps, refuses, sends, target
from thinkback.errors import OTHER_MODEL, WHY, NetworkError, ProviderError, UnknownModelError

KEYS = "check the key: HOUSE_KEY"
MODELS = "house knows no model 'thinker'"
CREDIT = "the account has no credit left: add some at the provider, or use another endpoint"
SHORTER = "`thinkback compact` shortens the conversation"
PLACE = "check the model name 'thinker' and the base URL https://house.example/v1"


def advice(code: int, message: str, expected: str) -> str:
    """The first thing to do after a refusal in these words; an unknown model has an error of its own."""
    kind = UnknownModelError if expected == MODELS else ProviderError
    play = Playbook(max_retries=0) >> begins << keeps("user") << sends >> refuses(code, message)
    play << keeps("request failed") << ends("failed", kind)
    assert play.outcome is not None
    assert isinstance(play.outcome.error, kind)
    assert (kind is UnknownModelError) == (OTHER_MODEL in play.outcome.error.next_actions)
    return play.outcome.error.next_actions[0]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("API key not valid. Please pass a valid API key.", KEYS),
        ("Incorrect API key provided: sk-***.", KEYS),
        ("missing api_key", KEYS),
        ("Invalid credentials", KEYS),
        ("Unauthenticated", KEYS),
        ("the request is unauthorized", KEYS),
        ("Invalid API key for this model: not found", KEYS),
        ("The provided model identifier is invalid.", MODELS),
        ("The model `thinker` does not exist", MODELS),
        ("Model thinker was not found", MODELS),
        ("Model not valid", MODELS),
        ("thinker is not a valid model ID", MODELS),
        ("Invalid model: thinker", MODELS),
        ("messages.1: tool_use ids must be unique", WHY),
        ("prompt is too long: 210000 tokens > 200000 maximum", SHORTER),
        ("this model takes no temperature", WHY),
        ("invalid request: the field modelling is not known", WHY),
        ("a long key is no api", WHY),
    ],
)
def test_a_400_about_keys_or_models_is_known_by_its_words(message: str, expected: str) -> None:
    """Some hosts answer a bad key or an unknown model with 400, and only the text tells."""
    assert expected == advice(400, message, expected)


PAGE = "<!DOCTYPE html><html><head><title>Just a\n moment</title></head><body>" + "no " * 2_000 + "</body></html>"


@pytest.mark.parametrize(
    ("page", "said"), [(PAGE, 'a web page (HTML), "Just a moment"'), ("<!-- x --> <html>", "a web page (HTML)")]
)
def test_a_page_for_browsers_is_called_so_whatever_its_status(page: str, said: str) -> None:
    """With its title, not as a whole; who answers is not the endpoint, so that no key is blamed."""
    play = (
        Playbook(max_retries=0)
        >> begins
        << keeps("user")
        << sends
        >> answers(page.encode(), code=403, kind="text/html")
    )
    play << keeps("request failed") << ends("failed", ProviderError)
    refused = play.outcome.error if play.outcome is not None else None
    assert isinstance(refused, ProviderError)
    assert ("house answered 403: " + said, "html") == (refused.message, refused.details["code"])
    assert "a proxy, firewall or sign-in page answers" in refused.next_actions[0]

    play = Playbook() >> begins << keeps("user") << sends >> answers(page.encode(), kind="text/html")
    play << keeps("request response failed") << ends("failed", ProviderError)
    assert play.outcome is not None
    assert f"the response is {said}, not JSON" == getattr(play.outcome.error, "message", "")
    assert "a proxy, firewall or sign-in page answers" in getattr(play.outcome.error, "next_actions", ("",))[0]
    assert "the base URL is https://house.example/v1" in getattr(play.outcome.error, "next_actions", ())


@pytest.mark.parametrize(
    ("code", "expected"),
    [(401, KEYS), (402, CREDIT), (404, MODELS), (413, SHORTER), (422, WHY), (429, "wait, or use another endpoint")],
)
def test_another_status_speaks_for_itself(code: int, expected: str) -> None:
    """What its text says of keys and models changes nothing."""
    said = "the api key may not use this model: not found" if code != 422 else "api key?"
    assert expected == advice(code, said, expected)


def test_a_404_is_about_the_model_where_it_says_so() -> None:
    """By its name or in words; else the address may be wrong as well."""
    assert MODELS == advice(404, "model: thinker", MODELS)
    assert MODELS == advice(404, "models/thinker is not found for API version v1beta", MODELS)
    assert PLACE == advice(404, "Not Found", PLACE)


LOCAL, HOUSE = "http://127.0.0.1:8077/v1", "https://house.example/v1"


@pytest.mark.parametrize(
    ("endpoint", "home", "url", "remedy"),
    [
        ("referee", LOCAL, LOCAL, "start it: `thinkback referee`"),
        ("house", HOUSE, HOUSE, "check the address and network"),
        ("house", LOCAL, LOCAL, "start House there, or correct the base URL"),
        ("house", HOUSE, LOCAL, "start the server there, or correct the base URL"),
    ],
)
def test_a_server_that_is_not_there_is_started_where_it_is_near(
    endpoint: str, home: str, url: str, remedy: str
) -> None:
    """On this machine whoever reads this can; of any other the address and the network may be wrong."""
    there = target()
    place = replace(there.endpoint, id=endpoint, name="House", base_url=home)
    there = replace(there, endpoint=place, base_url=url)
    play = Playbook(at=there, max_retries=0) >> begins << keeps("user") << sends >> breaks(permanent=True)
    play << keeps("request failed") << ends("failed", NetworkError)
    assert play.outcome is not None
    assert isinstance(play.outcome.error, NetworkError)
    assert remedy == play.outcome.error.next_actions[0]
