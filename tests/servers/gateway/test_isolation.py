"""Nobody is ever given another's reasoning: not another tenant, key or end user, and no message that had none."""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.servers.gateway.harness.crowd import FRONTS, MODELS, Person, Said, Talk, Upstream, asks, reasoning_in
from tests.servers.gateway.harness.engines import KEY, Kept, Sealed, ask
from tests.stores.postgres_server import Server
from thinkback.log.protocol import Store
from thinkback.rules import load_rulebook
from thinkback.servers.gateway.config import schema
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.grant import Grant
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.servers.gateway.storing.tenants import TenantLogs
from thinkback.stores import open_store

BOOK = load_rulebook({})
SECRET = b"s" * 32
# Two tenants whose keys have the same ids and users the same names; one key keeps nothing of what is said.
GRANTS = (
    Grant("k1", "one"),
    Grant("k2", "one"),
    Grant("k1", "two"),
    Grant("k3", "two", recording="metadata"),
)
PEOPLE = [Person(grant, user) for grant in GRANTS for user in ("ann", "bob")]
WORDS = st.sampled_from(["hi", "why"])
PERSON, PLACE = st.sampled_from(PEOPLE), st.integers(0, 7)
ACTS = st.one_of(
    st.tuples(st.just("new"), PERSON, st.sampled_from(FRONTS), st.integers(0, 7)),
    st.tuples(st.sampled_from(["say", "leave", "fork"]), PLACE, WORDS),
    st.tuples(st.just("retry"), PLACE),
    st.tuples(st.sampled_from(["back", "forget"]), PLACE, PLACE, WORDS),
    st.tuples(st.just("paste"), PLACE, PERSON, WORDS),
)
ROUNDS = st.lists(st.lists(ACTS, min_size=1, max_size=4), min_size=3, max_size=8)


class Memories:
    """A log in memory for each tenant."""

    def __init__(self) -> None:
        self._logs: dict[str, Store] = {}

    def of(self, tenant: str) -> Store:
        return self._logs.setdefault(tenant, open_store(":memory:"))

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def engine_on(logs: Any, upstream: Upstream, carriers: Any) -> Engine:
    """An engine that gives back all that it may."""
    made = Config(settings={"reasoning.includeInContext": True})
    return Engine(made, logs, Sealer(SECRET), BOOK, lambda proxy: upstream, carriers)


class Crowd:
    """Conversations through one or more engines, each step of them judged."""

    def __init__(self, logs: Sequence[Any]) -> None:
        self.upstream = Upstream()
        carriers = Sealed()
        self.engines = [engine_on(each, self.upstream, carriers) for each in logs]
        self.talks: list[Talk] = []

    async def act(self, acts: Sequence[Any], turn: int) -> None:
        """Perform ``acts`` at once, each on a conversation of its own."""
        asking: dict[int, tuple[Talk, int]] = {}
        for act in acts:
            talk, leaves = self._prepared(*act)
            if talk is not None and talk.history and id(talk) not in asking:
                asking[id(talk)] = (talk, leaves)
        before = {id: list(talk.history) for id, (talk, _) in asking.items()}
        seen = len(self.upstream.sent)
        engines = self.engines
        tasks = [
            asyncio.create_task(talk.ask(engines[(turn + at) % len(engines)], leaves))
            for at, (talk, leaves) in enumerate(asking.values())
        ]
        answered = await asyncio.gather(*tasks)
        for (talk, _), kept in zip(asking.values(), answered, strict=True):
            self.judge_answer(talk, kept)
        for person, body in self.upstream.sent[seen:]:
            histories = [before[id] for id, (talk, _) in asking.items() if talk.person == person]
            self.judge_request(person, body, histories)

    def _prepared(self, name: str, *given: Any) -> tuple[Talk | None, int]:
        if name == "new":
            person, front, kind = given
            echoes, streams = bool(kind & 2), bool(kind & 4)
            talk = Talk(person, front, MODELS[kind & 1], echoes=echoes, streams=streams)
            talk.say("hi")
            self.talks.append(talk)
            return talk, -1
        if not self.talks:
            return None, -1
        talk = self.talks[given[0] % len(self.talks)]
        match name, given:
            case "fork", (_, text):
                talk = talk.fork()
                self.talks.append(talk)
                talk.say(text)
            case "paste", (_, person, text):
                talk = talk.fork(person)
                self.talks.append(talk)
                talk.say(text)
            case "retry", _:
                if isinstance(talk.history[-1], Said):
                    talk.history.pop()
            case "back", (_, at, text):
                talk.back(at, text)
            case "forget", (_, at, text):
                talk.say(text)
                talk.forget(at)
            case _, (_, text):
                talk.say(text)
        return talk, 120 if name == "leave" else -1

    def judge_answer(self, talk: Talk, kept: Kept) -> None:
        """An answer has the reasoning that was made for it alone."""
        told = reasoning_in({"body": kept.body.decode()})
        assert {str(talk.person)} >= {whose for _, whose in told}
        last = talk.history[-1]
        assert {last.number if isinstance(last, Said) else number for number, _ in told} == {n for n, _ in told}

    def judge_request(self, person: Person, body: Any, histories: Sequence[Sequence[Any]]) -> None:
        """Each thought stands at the message that it led to, in a conversation of whom it belongs to."""
        answers = [each for history in histories for each in history if isinstance(each, Said)]
        had = {each.number for each in answers}
        clear = {number for each in answers for number, _ in reasoning_in({"said": each.messages})}
        # An answer's words name the whole conversation before it: of several with the same one has no other's words.
        texts = {each.text for each in answers}
        for message in body["messages"]:
            source = json.dumps(message)
            for number, whose in reasoning_in(message):
                owner, text, call = self.upstream.made[number]
                assert text in source
                assert not call or call in source
                assert number in had or (owner == person and text in texts)
                # What a client wrote into its request itself is its own to say, but for what only a provider can sign.
                assert owner == person or (number in clear and f"signed <<{number} of {whose}>>" not in source)


def play(rounds: Sequence[Sequence[Any]], logs: Sequence[Any]) -> Crowd:
    """A crowd that did all of ``rounds``."""
    crowd = Crowd(logs)

    async def run() -> None:
        for turn, acts in enumerate(rounds):
            await crowd.act(acts, turn)

    asyncio.run(run())
    return crowd


@given(ROUNDS)
def test_reasoning_stays_with_whom_it_belongs_to(rounds: Sequence[Sequence[Any]]) -> None:
    """Identical conversations, forks, edits, retries, pasted and dropped messages, all at once."""
    play(rounds, [Memories()])


@settings(max_examples=10)
@given(ROUNDS)
def test_two_engines_on_one_log_keep_people_apart(rounds: Sequence[Sequence[Any]]) -> None:
    """Each request goes to the other one; the logs are files, one for each tenant."""
    with tempfile.TemporaryDirectory() as place:
        logs = [TenantLogs(place, schema.Store(durability="normal")) for _ in "ab"]
        try:
            play(rounds, logs)
        finally:
            for each in logs:
                each.close()


@settings(max_examples=5)
@given(rounds=ROUNDS)
def test_tenants_in_one_database_are_kept_apart(postgres: Server, rounds: Sequence[Sequence[Any]]) -> None:
    """Two engines, all tenants in the same tables."""
    url = postgres.make_database(f"crowd {secrets.token_hex(4)}")
    logs = [TenantLogs(url, schema.Store(connections=2)) for _ in "ab"]
    try:
        play(rounds, logs)
    finally:
        for each in logs:
            each.close()


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("kind", range(8))
def test_everybody_gets_their_own_back(front: str, kind: int) -> None:
    """People with identical conversations, who all ask at once: each goes on with the reasoning made for them."""
    crowd = play(
        [[("new", person, front, kind) for person in PEOPLE], *[[("say", at, "hi") for at in range(8)]] * 3],
        [memories := Memories(), memories],
    )

    assert 8 * 4 == len(crowd.upstream.sent)
    given_back = [
        [whose for message in body["messages"] for _, whose in reasoning_in(message)]
        for _, body in crowd.upstream.sent[8:]
    ]
    assert all(whose for whose in given_back)


@pytest.mark.parametrize("front", FRONTS)
def test_what_was_sealed_for_another_is_taken_away(front: str) -> None:
    """Another tenant, key or end user that was shown a conversation with its tokens, and no gateway's log knows it."""
    first = play([[("new", PEOPLE[0], front, 3)]], [Memories()])
    (shown,) = first.talks
    for person in PEOPLE[1:]:
        crowd = Crowd([Memories()])
        crowd.upstream.made = dict(first.upstream.made)
        talk = shown.fork(person)
        talk.say("hi")
        asyncio.run(talk.ask(crowd.engines[0]))
        assert "signed" not in json.dumps(crowd.upstream.sent[-1][1])
    talk = shown.fork()
    talk.say("hi")
    crowd = Crowd([Memories()])
    asyncio.run(talk.ask(crowd.engines[0]))
    assert "signed <<1 of one/k1/ann>>" in json.dumps(crowd.upstream.sent[-1][1])


@pytest.mark.parametrize("model", [MODELS[0], "openai/gpt-5.5"])
@pytest.mark.parametrize("person", PEOPLE[1:], ids=str)
def test_nobody_goes_on_from_another_s_response(person: Person, model: str) -> None:
    """Not from its id, whatever the provider would make of it, nor from those of its items; whose it is does."""
    transport = Upstream()
    made = engine_on(Memories(), transport, Sealed())
    first = responses(made, PEOPLE[0], MODELS[0], "hi")
    message = {"type": "item_reference", "id": first.json["output"][-1]["id"]}
    question = {"role": "user", "content": "And?"}

    by_items = [{"input": [message, question]}] if model == MODELS[0] else []
    for more in ({"input": [question], "previous_response_id": first.json["id"]}, *by_items):
        sent = len(transport.sent)
        refused = responses(made, person, model, **more)
        assert "not found" in refused.json["error"]["message"]
        assert (400, sent) == (refused.status, len(transport.sent))
        assert 200 == responses(made, PEOPLE[0], MODELS[0], **more).status
    assert str(PEOPLE[0]) in json.dumps(transport.sent[1][1])


def responses(made: Engine, person: Person, model: str, input: Any, **more: Any) -> Kept:
    """A request of a client of Responses, answered."""
    asks(person)
    body = {"model": model, "input": input, "user": person.user, **more}
    return ask(made, "openai-responses", body, grant=person.grant)
