"""What a refusal advises where the status alone does not say what is wrong."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.turn.playbook import Playbook, answers, begins, breaks, ends, keeps, refuses, sends, target
from thinkback.errors import WHY, NetworkError, ProviderError

KEYS = "check the key: HOUSE_KEY"
MODELS = "check the model name 'thinker' and the base URL https://house.example/v1"


def advice(code: int, message: str) -> str:
    """The first thing to do after a refusal in these words."""
    play = Playbook(max_retries=0) >> begins << keeps("user") << sends >> refuses(code, message)
    play << keeps("request failed") << ends("failed", ProviderError)
    assert play.outcome is not None
    assert isinstance(play.outcome.error, ProviderError)
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
        ("this model takes no temperature", WHY),
        ("invalid request: the field modelling is not known", WHY),
        ("a long key is no api", WHY),
    ],
)
def test_a_400_about_keys_or_models_is_known_by_its_words(message: str, expected: str) -> None:
    """Some hosts answer a bad key or an unknown model with 400, and only the text tells."""
    assert expected == advice(400, message)


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


@pytest.mark.parametrize(
    ("code", "expected"), [(401, KEYS), (404, MODELS), (422, WHY), (429, "wait, or use another endpoint")]
)
def test_another_status_speaks_for_itself(code: int, expected: str) -> None:
    """What its text says of keys and models changes nothing."""
    assert expected == advice(code, "the api key may not use this model: not found" if code != 422 else "api key?")


@pytest.mark.parametrize(
    ("endpoint", "remedy"), [("referee", "start it: `thinkback referee`"), ("house", "check the address and network")]
)
def test_a_server_that_is_not_there_is_started_where_it_is_ours(endpoint: str, remedy: str) -> None:
    """Of any other the address and the network may be wrong."""
    there = target()
    there = replace(there, endpoint=replace(there.endpoint, id=endpoint))
    play = Playbook(at=there, max_retries=0) >> begins << keeps("user") << sends >> breaks(permanent=True)
    play << keeps("request failed") << ends("failed", NetworkError)
    assert play.outcome is not None
    assert isinstance(play.outcome.error, NetworkError)
    assert remedy == play.outcome.error.next_actions[0]
