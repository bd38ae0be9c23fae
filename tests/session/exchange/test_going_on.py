"""Imported sessions go on at any endpoint: what can be read goes along, and nothing opaque that nobody vouched for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import thinkback
from tests.conformance.moves import KEY, PLACES
from tests.formats.samples import SAMPLES, write_database
from thinkback.formats.registry import MODULES, program
from thinkback.session.exchange.histories import Wanted, run, vouched
from thinkback.session.store import SessionStore
from thinkback_referee import Referee

OPAQUE = (b"c2lnbmF0dXJl", b"gAAAA", b"rs_1", b"msg_1", b"fc_1")
REFUSES = {"anthropic", "bedrock"}
"""Dialects at whose place readable reasoning of others is refused as text."""


@pytest.fixture
def imported(tmp_path: Path) -> Iterator[tuple[SessionStore, dict[str, str]]]:
    """A session of each program, by its name there."""
    with thinkback.open(":memory:", rules={}, settings={"reasoning.foreign": "text"}) as store:
        names = {}
        for name in MODULES:
            path = tmp_path / name
            if program(name).tables:
                write_database(path, SAMPLES[name])
            else:
                path.write_bytes(SAMPLES[name])
            names[name] = run(store.log, Wanted(name, str(path)))[0][0].name
        yield store, names


def test_every_program_goes_on_in_every_dialect(
    imported: tuple[SessionStore, dict[str, str]], referee: Referee
) -> None:
    """The strict provider answers the first request; what was asked and answered before is in it, and readable
    thoughts are.
    """
    store, names = imported
    thoughts = 0
    for place in PLACES:
        for name, session in names.items():
            fork = store.session(session).branches.fork(f"{place.dialect}-{name}")
            fork.use(endpoint=place.endpoint, model=place.model, base_url=referee.base_url(place.host), api_key=KEY)
            before = len(referee.requests)
            assert fork.chat("Go on.").text, (place, name)
            assert before + 1 == len(referee.requests), (place, name)
            sent = referee.requests[-1]
            assert (200, True, True) == (sent.status, b"Which" in sent.raw, b"notes.txt" in sent.raw), (place, name)
            assert [] == [value for value in OPAQUE if value in sent.raw], (place, name)
            thoughts += b"I list them." in sent.raw
    readable = sum(b"I list them." in SAMPLES[name] for name in names)
    assert readable * (len(PLACES) - len(REFUSES)) <= thoughts


@pytest.mark.parametrize(
    ("name", "endpoint", "model", "carrier"),
    [("codex", "openai", "gpt-5.6", b"gAAAA"), ("pi", "openai", "gpt-5.6", b"gAAAA")],
)
def test_what_a_person_vouched_for_goes_back(
    tmp_path: Path, name: str, endpoint: str, model: str, carrier: bytes
) -> None:
    """To the endpoint that was named, in the program's own dialect; at another one it stays away."""
    (tmp_path / name).write_bytes(SAMPLES[name])
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        (took,), _ = run(store.log, Wanted(name, str(tmp_path / name), vouched=vouched(store, endpoint)))
        here = store.session(took.name, endpoint=endpoint, model=model, api_key=KEY)
        assert carrier in b"".join(here.wire.plan("Go on.").body)
        there = store.session(took.name, endpoint="xai", model="grok-4.5", api_key=KEY)
        assert carrier not in b"".join(there.wire.plan("Go on.").body)
