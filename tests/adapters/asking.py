"""The three questions of `make programs`, asked by a framework whose history is in a log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.gateway_clients.holding import Held, hold
from bench.gateway_clients.job import Job
from bench.gateway_clients.page import Judged
from bench.gateway_clients.places import DEMANDS, PLACES, front_of
from bench.peers.places import KEY, Place
from thinkback_referee import Referee

KNOWN = {"Kimi chat": 3, "Anthropic 4.5": 3}
"""How often the model can name its code words where that is fewer than elsewhere: these read the open turn alone."""


def places(*fronts: str) -> list[Place]:
    """The providers of these dialects that refuse a request whose reasoning is missing."""
    return [place for place in PLACES.values() if place.name in DEMANDS and front_of(place) in fronts]


class Here:
    """A client in this process."""

    def __init__(self, talk: Callable[[Job], list[str]]) -> None:
        self._talk = talk

    def hold(self, job: Job) -> tuple[list[str], str]:
        """What it said; what is raised is the test's."""
        return self._talk(job), ""


def asked(
    referee: Referee, place: Place, mode: str, directory: Path, talk: Callable[[Job], list[str]]
) -> tuple[str, int]:
    """The word for how the conversation went, and how often the model named what it had noted in its reasoning; with
    the transport below, whose log is another one.
    """
    base = referee.base_url(place.host).removesuffix("/v1beta")
    log = str(directory / "transport.db")
    job = Job("here", mode, base, KEY, place.model, place.effort, [], log, place.endpoint)
    held: Held = hold(Here(talk), referee, job, place, True)
    return Judged([held]).word(held), held.outcome.known
