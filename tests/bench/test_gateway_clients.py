"""Clients and the gateway: the page says what the referee said, and a client's process cannot hold up the others."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.gateway_clients import with_openai
from bench.gateway_clients.gateway import configuration
from bench.gateway_clients.holding import PROMPTS, Held, hold
from bench.gateway_clients.job import REBUILT, STRUCTURED, SYNC, Job, Script
from bench.gateway_clients.page import Judged, lines, page
from bench.gateway_clients.places import ALIASES, PLACES
from bench.gateway_clients.process import Worker
from bench.gateway_clients.scripts import NODE, PYTHON
from bench.peers.places import KEY
from bench.peers.play import Outcome
from thinkback_referee import Referee

DEEPSEEK, BEDROCK = "DeepSeek chat", "Bedrock"
OTHER = Script("other", "openai-chat", ("other-package",), (SYNC, REBUILT), None, "use(it)", {BEDROCK: "it forgets"})


class Here:
    """A client in this process."""

    def __init__(self, said: Sequence[str] | None = None) -> None:
        self.said = said

    def hold(self, job: Job) -> tuple[list[str], str]:
        if self.said is not None:
            return list(self.said), ""
        script = with_openai.CHAT.hold
        assert script is not None
        try:
            return script(job), ""
        except Exception as error:
            return [], str(error)


def job(referee: Referee, mode: str) -> Job:
    """A conversation with DeepSeek itself."""
    place = PLACES[DEEPSEEK]
    return Job("openai chat", mode, referee.base_url(place.host), KEY, place.model, "", list(PROMPTS))


def held(mode: str, outcome: Outcome, place: str = DEEPSEEK, through: bool = False) -> Held:
    """A conversation of ``other``."""
    return Held("other", mode, place, through, outcome, 7)


def test_client_that_keeps_reasoning_is_ok_and_one_that_does_not_is_refused(referee: Referee) -> None:
    """The script of the openai package: messages appended as they came, and rebuilt from text and calls."""
    found = [hold(Here(), referee, job(referee, mode), PLACES[DEEPSEEK], False) for mode in (SYNC, REBUILT)]
    assert ["ok", "refused"] == [Judged(found).word(each) for each in found]


def test_structured_answers_are_read(referee: Referee) -> None:
    """A model that keeps quiet about its reasoning answers by the schema."""
    place = PLACES["OpenAI chat"]
    asked = job(referee, STRUCTURED)._replace(base_url=referee.base_url(place.host), model=place.model)
    assert Outcome() == hold(Here(), referee, asked, place, False).outcome


def test_client_that_reads_something_else_has_failed(referee: Referee) -> None:
    """What the model said is compared with what the client says it read."""
    found = hold(Here(said=["It rains."]), referee, job(referee, SYNC), PLACES[DEEPSEEK], False)
    assert "failed" == Judged([found]).word(found)


@pytest.mark.parametrize(
    ("program", "failed"),
    [("import time; time.sleep(60)", "no end after 0.5 s"), ("input()", "its process ended")],
)
def test_process_that_hangs_or_dies_is_a_failure(program: str, failed: str) -> None:
    """It is ended, and the next conversation gets a fresh process."""
    worker = Worker([sys.executable, "-c", program], 0.5)
    assert ([], failed) == worker.hold(Job("other", SYNC, "", "", "", "", []))
    assert ([], failed) == worker.hold(Job("other", SYNC, "", "", "", "", []))
    worker.close()


def test_worker_answers_line_by_line() -> None:
    """An error of a client is told, and the process goes on."""
    worker = Worker([sys.executable, "-m", "bench.gateway_clients.worker"], 60)
    nowhere = Job("openai chat", SYNC, "http://127.0.0.1:1", KEY, "m", "", ["Hello."])
    found = [worker.hold(nowhere) for _ in range(2)]
    worker.close()
    assert [([], "APIConnectionError: Connection error.")] * 2 == found


def test_page_shows_both_ways_and_numbered_texts() -> None:
    """Before the arrow without the gateway, after it with; one word where all modes went alike."""
    cells = [
        held(SYNC, Outcome(known=2)),
        held(REBUILT, Outcome(refused="bad messages[3].x")),
        held(SYNC, Outcome(known=2), through=True),
        held(REBUILT, Outcome(known=2), through=True),
        held(SYNC, Outcome(known=2), BEDROCK, through=True),
        held(REBUILT, Outcome(known=1), BEDROCK, through=True),
    ]
    text = page(cells, [OTHER], {"other-package": "7.1"}, ["Left out."]).splitlines()
    assert f"| {DEEPSEEK} | yes | ok 1, refused 1 [1] → ok |" in text
    assert f"| {BEDROCK} | yes | ok 1, forgot 1 |" in text
    assert "| with it | 4 | 28 | 3 | 1 | 0 | 0 | 0 |" in text
    assert "**other** (other-package 7.1; modes: sync, rebuilt)" in text
    assert "1. bad messages[N].x" in text
    assert {"Left out.", "- other at Bedrock: it forgets."} <= set(text)


def test_line_for_each_conversation() -> None:
    """What somebody at work on a client reads."""
    broken = held(SYNC, Outcome(failed="broken"), through=True)
    assert [f"with | other | {DEEPSEEK} | failed | sync | broken"] == lines([broken])


def test_every_provider_has_an_upstream_and_an_alias_of_its_own(referee: Referee) -> None:
    """The configuration that the gateway is given."""
    found = tomllib.loads(configuration(Path("/nowhere"), 1, referee))
    assert {place.endpoint for place in PLACES.values()} == set(found["upstreams"])
    assert len(PLACES) == len(set(ALIASES.values())) == len(found["models"])


def test_names_of_clients_are_their_own() -> None:
    """Results are found by them."""
    names = [script.name for script in (*PYTHON, *NODE)]
    assert sorted(set(names)) == sorted(names)
