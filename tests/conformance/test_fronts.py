"""Every front dialect to every upstream dialect: the referee that plays the upstream takes a client's tool loop."""

from __future__ import annotations

import itertools
import urllib.error
import urllib.request
from typing import Any

import msgspec
import pytest

from tests.conformance.fronts import ANSWER, FRONTS, PIXEL, RESULT, SYSTEM
from tests.conformance.moves import KEY, PLACES, Place
from thinkback.drive.auth import Keyring
from thinkback.log.seal import seal
from thinkback.model.blocks import Origin
from thinkback.model.commits import Head, Step
from thinkback.model.target import Settings, merge
from thinkback.rules import load_rulebook
from thinkback.turn.plan import History, Plan
from thinkback.turn.translation import plan_without_refused, translate
from thinkback.wire.registry import dialect
from thinkback.wire.result import WantedOptions
from thinkback_referee import Referee

BOOK = load_rulebook({})
MORE = (
    Place("openai-chat", "openrouter", "openrouter", "anthropic/claude-haiku-4.5"),
    Place("openai-chat", "kimi", "kimi", "kimi-k2-thinking"),
    Place("anthropic", "anthropic", "anthropic", "claude-sonnet-4-5"),
    Place("openai-responses", "openai", "openai", "gpt-5"),
    Place("gemini", "gemini", "gemini", "gemini-2.5-pro"),
)


def planned(front: str, body: dict[str, Any], place: Place, base_url: str) -> tuple[Plan, list[str]]:
    """The request for ``place``, and what stayed behind."""
    ids = (f"r{number}" for number in itertools.count())
    read = dialect(front).read_request(body, lambda: next(ids), Origin(front, "", ""))
    target = BOOK.target(place.endpoint, place.model, base_url=base_url, on="2026-11-20")
    done = translate(front, target, read.params, Settings())
    wanted = WantedOptions(target.endpoint.id == "codex", target.endpoint.stream_usage)
    params = merge(done.params, dialect(place.dialect).options(wanted)) if front != place.dialect else done.params
    history = History(seal(Step("s", tuple(read.drafts), 0), Head()))
    plan, refused = plan_without_refused(history, target, done.settings, params)
    headers = {**target.endpoint.headers, "content-type": "application/json", **plan.added_headers}
    authenticator = Keyring().authenticator(target.endpoint, KEY)
    plan = msgspec.structs.replace(plan, base_headers=headers, authenticator=authenticator)
    return plan, [*done.left, *refused]


def send(plan: Plan) -> tuple[int, str]:
    """Status and body of the upstream's answer."""
    body = bytes(plan)
    plan.authenticate(body)
    request = urllib.request.Request(plan.url, body, plan.headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


CASES = [
    pytest.param(front, place, id=f"{front}-{place.endpoint}-{place.model}")
    for front, place in itertools.product(FRONTS, (*PLACES, *MORE))
    # Google's own clients know which of its two words a model takes.
    if (front, place.model) != ("gemini", "gemini-2.5-pro")
]


@pytest.mark.parametrize(("front", "place"), CASES)
def test_a_clients_tool_loop_is_accepted_everywhere(referee: Referee, front: str, place: Place) -> None:
    """Messages, tools and parameters of each front are what each upstream takes, and all that was said arrives."""
    plan, left = planned(front, FRONTS[front], place, referee.base_url(place.host))

    status, answer = send(plan)

    assert (200, True) == (status, referee.requests[-1].verdict.ok), answer
    sent = bytes(plan).decode()
    assert all(text in sent for text in (SYSTEM, PIXEL, RESULT, ANSWER)), sent
    assert all(": " in sentence for sentence in left)
