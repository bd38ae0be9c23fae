"""The plan of a request: complete, repeatable, and silent about its key."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.turn.playbook import ENDPOINT, KEY, commits_of, rule, target
from tests.turn.test_repair import HOME, turn
from thinkback.errors import NotFoundError
from thinkback.model import canonical
from thinkback.model.commits import Commit, Draft, Message, Tool, Tools
from thinkback.model.rule import Controls
from thinkback.model.target import Basis, Settings, Target
from thinkback.turn.plan import History, Plan
from thinkback.wire.registry import dialect

ASKED = [Draft("user", Message("Why?"))]


def plan(at: Target | None = None, **params: object) -> Plan:
    """The plan for one question."""
    made = History(commits_of(ASKED)).plan(at or target(), Settings(), None, params)
    return msgspec.structs.replace(made, base_headers={"Authorization": f"Bearer {KEY}"})


def test_body_may_be_read_again_and_again() -> None:
    """Pieces and whole are the same bytes each time."""
    made = plan(stream=True, seed=7)
    assert bytes(made) == b"".join(made.body) == b"".join(made.body)
    assert {"messages": [{"role": "user", "content": "Why?"}], "model": "thinker", "stream": True, "seed": 7} == (
        json.loads(bytes(made))
    )
    assert made.streams


def test_url_is_base_and_path() -> None:
    """A query of the base URL stays behind the path."""
    assert "https://house.example/v1/chat/completions" == plan().url
    azure = msgspec.structs.replace(ENDPOINT, base_url="https://house.example/v1?api-version=2")
    assert "https://house.example/v1/chat/completions?api-version=2" == plan(target(endpoint=azure)).url


def test_url_names_the_model_where_the_path_has_a_place_for_it() -> None:
    """Spelled so that no name of a model leads elsewhere."""
    own = msgspec.structs.replace(ENDPOINT, path="/models/{model}:ask")
    here = target(endpoint=own)
    assert "https://house.example/v1/models/a%3Fb:ask" == plan(msgspec.structs.replace(here, model="a?b")).url


def test_another_name_for_thinking_does_not_contradict_that_it_is_off() -> None:
    """Where tools are offered it must be off, whatever a caller's own parameter asks for."""
    controls = Controls(aliases=("reasoning_effort",))
    here = target(rule=rule(off_with_tools=True, thinking_off={"thinking": "off"}, controls=controls))
    tools = Draft("tools", Tools((Tool("look", '{"type":"object"}'),)))
    sent = json.loads(
        bytes(History(commits_of([tools, *ASKED])).plan(here, Settings(), None, {"reasoning_effort": "high"}))
    )
    assert ("off", False) == (sent["thinking"], "reasoning_effort" in sent)


def test_repr_tells_where_and_no_key() -> None:
    """What a debugger or a log shows."""
    assert "<Plan house thinker: 1 messages>" == repr(plan())
    assert KEY not in repr(plan())


def test_key_is_blotted_out_of_texts() -> None:
    """Also where the endpoint has a header of its own; other headers and short values are left alone."""
    assert "key ***" == plan().without_key(f"key {KEY}")
    own = msgspec.structs.replace(ENDPOINT, auth=msgspec.structs.replace(ENDPOINT.auth, header="X-House-Key"))
    headers = {"X-House-Key": KEY, "X-Team": "builders-of-houses", "Authorization": "Bearer k"}
    made = msgspec.structs.replace(plan(target(endpoint=own)), base_headers=headers)
    assert "*** builders-of-houses k" == made.without_key(f"{KEY} builders-of-houses k")


def test_tools_of_the_log_are_offered_unless_others_are_given() -> None:
    """The newest list in the log holds; an empty one offers none."""
    history = History(commits_of([Draft("tools", Tools((Tool("look"),))), *ASKED]))
    assert (Tool("look"),) == history.plan(target(), Settings(), None, {}).tools
    assert () == history.plan(target(), Settings(), (), {}).tools
    assert b'"tools"' not in bytes(history.plan(target(), Settings(), (), {}))


def test_counts_and_decisions_come_with_it() -> None:
    """What is stored and what is sent, in tokens."""
    made = plan()
    assert [] == made.decisions
    assert made.counts.raw == made.counts.effective > 0


def test_history_follows_the_log() -> None:
    """New commits appear in the next plan; its head is the last of them."""
    history = History()
    assert (-1, "") == (history.head.seq, history.head.hash)
    commits = commits_of([*ASKED, Draft("system", Message("Be brief."))])
    history.take(commits[:1])
    assert 1 == len(history.plan(target(), Settings(), None, {}).messages)
    history.take(commits[1:])
    assert 2 == len(history.plan(target(), Settings(), None, {}).messages)
    assert (1, commits[1].hash) == (history.head.seq, history.head.hash)


def test_unknown_dialect_is_named() -> None:
    """An endpoint whose dialect is not built in cannot be planned for."""
    with pytest.raises(NotFoundError, match="no dialect 'morse'"):
        dialect("morse")


SAYS = rule(
    controls=Controls(
        effort={"high": {"effort": "deep"}, "none": {"effort": "zero"}},
        on={"thinking": {"type": "on"}},
        max_tokens="thinking.budget",
    )
)


def test_dropped_settings_come_with_the_plan() -> None:
    """Where a caller sees them."""
    made = History(commits_of(ASKED)).plan(target(), Settings(effort="high"), None, {})
    assert ["reasoning.effort"] == [found.key for found in made.dropped]


def test_thinking_off_for_the_turn_wins_over_the_caller() -> None:
    """Where the endpoint demands reasoning that may not go and can be told not to think, it is told so."""

    stranger = msgspec.structs.replace(HOME, endpoint="https://elsewhere.example/v1")
    off = rule(missing=("thinking-off-for-this-turn",), thinking_off={"thinking": {"type": "off"}})
    history = History(commits_of([*turn("a", stranger), *ASKED]))
    made = history.plan(target(off), Settings(), None, {"thinking": {"type": "on"}})
    assert {"thinking": {"type": "off"}} == made.params


def test_thinking_is_off_beside_tools_where_both_are_refused() -> None:
    """The tools go, and the plan says what was taken back for them."""
    row = rule(off_with_tools=True, thinking_off={"thinking": {"type": "off"}}, open_turn="may", later="may")
    history = History(commits_of([Draft("tools", Tools((Tool("look"),))), *ASKED]))
    made = history.plan(target(row), Settings(), None, {"thinking": {"type": "on"}})
    assert {"type": "off"} == made.params["thinking"]
    assert ["reasoning.enabled"] == [control.key for control in made.dropped]
    assert {"type": "on"} == history.plan(target(row), Settings(), (), {"thinking": {"type": "on"}}).params["thinking"]


def test_of_a_plan_that_did_not_go_nothing_is_told_as_sent() -> None:
    """Its record has the digest of what went in its place; it decided nothing, and carried nothing."""
    made = History(commits_of([*turn("a"), *ASKED])).plan(target(), Settings(), None, {})
    instead = msgspec.structs.replace(made, sent_instead="0" * 64)
    planned, record = made.record(), instead.record()
    assert ("0" * 64, "", planned.messages_digest) == (
        record.sent_digest,
        record.carriers_digest,
        record.messages_digest,
    )
    assert ([], False) == (instead.decisions, made.decisions == [])
    assert made.beginnings().messages == instead.beginnings().messages
    assert planned.carriers_digest in made.beginnings().carriers - instead.beginnings().carriers


def test_edited_tools_are_offered_as_they_are_now() -> None:
    """An edit of tools that others took the place of changes nothing."""
    old, new = (Draft("tools", Tools((Tool(name),))) for name in ("old", "new"))
    commits = commits_of([old, new, *ASKED])

    def edited(name: str, hash: str) -> Commit:
        return commits_of([Draft("tools", Tools((Tool(name),)), edit=hash)])[0]

    first = edited("changed", commits[1].hash)
    assert ["changed"] == [tool.name for tool in History([*commits, first]).tools]
    assert ["again"] == [tool.name for tool in History([*commits, first, edited("again", first.hash)]).tools]
    assert ["new"] == [tool.name for tool in History([*commits, edited("changed", commits[0].hash)]).tools]


def test_record_names_the_data_of_its_own_target() -> None:
    """However many targets there are; data that is the same gives the same digest."""
    at = target()
    infos = [msgspec.structs.replace(at.info, context=size) for size in range(1, 200)]
    records = [plan(msgspec.structs.replace(at, info=info)).record() for info in infos]
    wanted = [canonical.encode(Basis(at.endpoint, at.rule, info)) for info in infos]
    assert [basis.decode() for basis in wanted] == [record.basis for record in records]
    assert [canonical.digest(basis) for basis in wanted] == [record.basis_digest for record in records]
    again = plan(msgspec.structs.replace(at, info=infos[0])).record()
    assert (records[0].basis, records[0].basis_digest) == (again.basis, again.basis_digest)


def test_a_plan_does_not_change() -> None:
    """Another one is made of it, and no form in which programs print it shows a key."""
    made = plan()
    with pytest.raises(AttributeError):
        made.settings = {}  # type: ignore[misc]
    other = msgspec.structs.replace(made, settings={"reasoning.effort": "low"})
    assert ({}, {"reasoning.effort": "low"}) == (made.settings, other.settings)
    assert bytes(made) == bytes(other)
    assert made != other
    assert KEY not in f"{made!r} {made.__rich_repr__()}"
