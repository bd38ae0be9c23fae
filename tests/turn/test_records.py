"""A request is built again from its record: the same bytes in every dialect, whatever came in between."""

from __future__ import annotations

import msgspec
import pytest

from tests.compile.build import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    INTERACTIONS,
    MISTRAL,
    RESPONSES,
    Talk,
    call,
    origin,
    say,
    settings,
    target,
    thought,
)
from thinkback.model.commits import Draft, Request, Tool, Tools
from thinkback.model.target import Settings, Target
from thinkback.rules import load_rulebook
from thinkback.session.requests import plan_of
from thinkback.settings import snapshot

ROWS = {row.id: row for row in load_rulebook().rules()}
PLACES = {
    "openai-chat": "deepseek-v4",
    ANTHROPIC: "claude-bound",
    BEDROCK: "converse-claude-bound",
    GEMINI: "gemini",
    INTERACTIONS: "gemini-interactions",
    MISTRAL: "mistral",
    RESPONSES: "openai-gpt-5",
    "cohere": "cohere",
    "ollama": "unknown-ollama",
}
WISHES = [
    Settings(),
    settings(include_in_context=True, effort="high"),
    settings(strip_from_context="allButLast"),
    settings(keep_last=1),
    settings(enabled=False),
    settings(include_in_context=False),
    settings(foreign="text"),
    settings(server_state=True),
]


def sent(talk: Talk, place: Target, wanted: Settings, **params: object) -> tuple[Request, bytes]:
    """Send the next request: its record is in the log, its bytes are returned."""
    plan = msgspec.structs.replace(talk.plan(place, wanted, **params), settings=snapshot(wanted))
    record = plan.record()
    talk.add(Draft("request", record, f"resp{talk.responses + 1}"))
    return record, bytes(plan)


@pytest.mark.parametrize("speech", sorted(PLACES))
def test_every_request_is_built_again_from_its_record(speech: str) -> None:
    """After settings, system, tools, rules and models changed, and with repairs in between."""
    row = next(row for id, row in ROWS.items() if id.startswith(PLACES[speech]))
    places = [
        target(row, speech),
        target(
            msgspec.structs.replace(row, later="may", id="other"), speech, model="m2", guessed=True, on="2026-11-21"
        ),
    ]
    talk, made = Talk(origin(speech)).system(), []
    for number, wanted in enumerate(WISHES):
        place = places[number % 3 == 2]
        talk.user(f"q{number}")
        made.append(sent(talk, place, wanted, extra=number))
        minted = origin(speech, requested_model=place.model)
        talk.reply(
            thought(speech, "t", f"V{number}", f"rs_{number}"), call(f"c{number}"), origin=minted, id=f"id{number}"
        )
        talk.result(f"c{number}")
        made.append(sent(talk, place, wanted))
        if number == 3:
            talk.repair("block", talk.hashes()[0])
        if number == 4:
            talk.note("tools", Tools((Tool("look", "Look.", '{"type":"object"}'),)))
        if number == 5:
            talk.system("In verse.").repair("server_state").repair("restore", model="m2")
        talk.reply(
            thought(speech, "u", f"W{number}", f"rs_b{number}"), say("x"), origin=minted, id=f"idb{number}"
        ).end()
    for record, body in made:
        again = plan_of(record, talk.commits)
        assert body == bytes(again)
        assert record.sent_digest == again.record().sent_digest
        assert record.messages_digest == again.record().messages_digest
        assert record.settings == again.settings
