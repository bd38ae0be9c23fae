"""Profiles with several targets, end to end: who is asked, who takes over, and that nobody gets another's reasoning."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.session.chats import DEFINITION, KEY, get_time, get_weather, kinds, refusals, run
from thinkback.errors import (
    CredentialError,
    NetworkError,
    ProviderError,
    SettingError,
    ThinkbackError,
)
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Request
from thinkback.model.deltas import Status
from thinkback.session import retry_reasoning_only
from thinkback.session.profiles.rotation import COOLDOWN
from thinkback.session.reply import Reply
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.turn.plan import Plan
from thinkback_referee import HttpError, Referee, Step

MODELS = {
    "anthropic": "claude-opus-4-6",
    "deepseek": "deepseek-v4-pro",
    "kimi": "kimi-k2.6",
    "openai": "gpt-5",
    "gemini": "gemini-2.5-pro",
}
BUSY = Step(fault=HttpError(503, {"error": {"message": "overloaded"}}))
LIMITED = Step(fault=HttpError(429, {"error": {"message": "slow down"}}))
FIRST, SECOND, THIRD = "Weather in Oslo?", "And in Rome?", "And in Bergen?"


class Houses:
    """Two providers of two dialects, each with a referee of its own, and a profile for each."""

    def __init__(self, place: Path, one: Referee, two: Referee) -> None:
        self.place, self.one, self.two = place / "profiles", one, two
        self.place.mkdir(parents=True)
        self.write("one", "anthropic", one.base_url("anthropic"))
        self.write("two", "deepseek", two.base_url("deepseek"))

    def write(self, name: str, host: str, url: str, more: str = "") -> None:
        """The profile ``name``."""
        text = f'endpoint = "{host}"\nmodel = "{MODELS[host]}"\nbase_url = "{url}"\n{more}'
        (self.place / f"{name}.toml").write_text(text)

    def rotate(self, kind: str, *names: str, more: str = "") -> None:
        """The profile ``all``, of ``kind`` with the targets ``names``."""
        (self.place / "all.toml").write_text(f'kind = "{kind}"\ntargets = {list(names)}\n{more}')

    def served(self) -> tuple[list[int], list[int]]:
        """What each house answered."""
        return tuple([exchange.status for exchange in house.requests] for house in (self.one, self.two))  # type: ignore[return-value]

    def refused(self) -> list[str]:
        """Requests that a house refused for what was in them."""
        return refusals(self.one) + refusals(self.two)

    def sent(self, text: str) -> list[bool]:
        """Whether each request to the second house held ``text``."""
        return [text in exchange.raw.decode() for exchange in self.two.requests]


@pytest.fixture
def houses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Houses]:
    """Both are up; keys for them are in the environment."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    for name in ("ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY", "MOONSHOT_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with Referee() as one, Referee() as two:
        yield Houses(tmp_path, one, two)


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Any:
    """Ask in either way."""

    def chat(session: Session, prompt: str, **options: Any) -> Reply:
        if request.param == "sync":
            return session.chat(prompt, **options)
        return run(session.aio.chat(prompt, **options))

    return chat


def closed_port() -> str:
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def went(session: Session) -> list[str]:
    """The endpoints of the requests in the log."""
    return [commit.value.target["endpoint"] for commit in session.log() if isinstance(commit.value, Request)]


def cool(session: Session) -> None:
    """Let the cooldown pass."""
    clock = session.conversation.followed.rotation.clock
    session.conversation.followed.rotation.clock = lambda: clock() + COOLDOWN


@pytest.mark.parametrize("fault", [BUSY, LIMITED])
def test_the_next_target_takes_over_within_the_turn(store: SessionStore, houses: Houses, ask: Any, fault: Step) -> None:
    """A house that is busy is left at once, for a minute; then it is asked first again."""
    houses.rotate("failover", "one", "two")
    houses.one.push(fault)
    session = store.session("chat", profile="all")
    assert ask(session, FIRST, tools=[get_weather]).state == "completed"
    assert ["anthropic", "deepseek", "deepseek"] == went(session)
    assert ask(session, SECOND).state == "completed"
    assert "deepseek" == went(session)[-1]
    cool(session)
    assert ask(session, THIRD).state == "completed"
    assert "anthropic" == went(session)[-1]
    assert [] == houses.refused()
    assert [] == store.fsck()


def test_a_house_that_refuses_connections_is_left(store: SessionStore, houses: Houses, ask: Any) -> None:
    """Nothing listens at the first: the second answers, and the turn says what it does."""
    houses.write("one", "anthropic", closed_port())
    houses.rotate("failover", "one", "two")
    session = store.session("chat", profile="all")
    assert ask(session, FIRST, tools=[get_weather]).state == "completed"
    assert ["anthropic", "deepseek", "deepseek"] == went(session)


@pytest.mark.parametrize(
    ("first", "second"),
    [("anthropic", "openai"), ("openai", "gemini"), ("gemini", "deepseek"), ("deepseek", "anthropic")],
)
def test_every_dialect_hands_over_within_a_tool_loop(
    store: SessionStore, houses: Houses, first: str, second: str
) -> None:
    """Reasoning of one is never sent to the other, each takes its own back, and no request is refused."""
    houses.write("one", first, houses.one.base_url(first))
    houses.write("two", second, houses.two.base_url(second))
    houses.rotate("failover", "one", "two", more="[reasoning]\neffort = 'high'\nincludeInContext = true\n")
    session = store.session("chat", profile="all")
    left: list[Referee] = []

    def get_weather(city: str) -> str:
        """The weather of a city."""
        if left:
            left.pop().push(BUSY)
        return f"{city}: rain"

    for at, house in enumerate((houses.one, houses.two)):
        left.append(house)
        assert session.chat((FIRST, SECOND)[at], tools=[get_weather]).state == "completed"
        assert 503 == house.requests[-1].status
    cool(session)
    assert session.chat(THIRD, tools=[get_weather]).state == "completed"
    assert [first, first, second] == went(session)[:3]
    assert {first} == set(went(session)[-2:])
    assert [] == houses.refused()
    assert [] == store.fsck()


def test_failing_over_in_the_middle_of_a_tool_loop(store: SessionStore, houses: Houses, ask: Any) -> None:
    """The first thinks and calls, then falls silent: the second goes on without the first's reasoning.

    Back at the first, what it minted is taken by its strict judge, and the second's stays away.
    """
    houses.rotate("failover", "one", "two", more='[reasoning]\neffort = "high"\nincludeInContext = true\n')
    session = store.session("chat", profile="all")
    broken = {"done": False}

    def get_weather(city: str) -> str:
        """The weather of a city."""
        if not broken["done"]:
            broken["done"] = True
            houses.one.push(BUSY)
        return f"{city}: rain"

    assert ask(session, FIRST, tools=[get_weather, get_time]).state == "completed"
    assert ["anthropic", "anthropic"] == went(session)[:2]
    assert {"deepseek"} == set(went(session)[2:])
    thought = session.log(kinds=["reasoning"])[0].value
    assert isinstance(thought, ThinkingBlock)
    assert thought.signature
    assert [False] == sorted({*houses.sent(thought.signature), *houses.sent(thought.thought)})
    cool(session)
    assert ask(session, SECOND, tools=[get_weather, get_time]).state == "completed"
    assert "anthropic" == went(session)[-1]
    assert [] == houses.refused()
    assert [] == store.fsck()


def test_when_no_target_answers_each_is_named(store: SessionStore, houses: Houses, ask: Any) -> None:
    """The error says of every target what became of it; the session goes on when one is up again."""
    houses.rotate("failover", "one", "two")
    houses.one.push(BUSY)
    houses.two.push(LIMITED)
    session = store.session("chat", profile="all")
    with pytest.raises(ProviderError) as caught:
        ask(session, FIRST, tools=[get_weather], max_retries=0)
    assert "one: HTTP 503: overloaded" in caught.value.message
    assert "two: " in caught.value.message
    assert "slow down" in caught.value.message
    assert ["one", "two"] == list(caught.value.details["targets"])  # type: ignore[call-overload]
    assert KEY not in str(caught.value)
    assert ask(session, SECOND).state == "completed"
    assert [] == houses.refused()


def test_what_the_last_target_refuses_is_told_with_the_failures_before(
    store: SessionStore, houses: Houses, ask: Any
) -> None:
    """A request that is refused for what it says is not carried further, and the error tells the whole way."""
    houses.rotate("failover", "one", "two")
    houses.one.push(BUSY)
    houses.two.push(Step(fault=HttpError(401, {"error": {"message": "no such key"}})))
    with pytest.raises(ProviderError, match=r"one: HTTP 503.*two: deepseek answered 401: no such key"):
        ask(store.session("chat", profile="all"), FIRST)


def test_a_failure_that_was_survived_is_not_told_later(store: SessionStore, houses: Houses, ask: Any) -> None:
    """What failed before the last response has nothing to do with what fails after it."""
    houses.rotate("failover", "one", "two")
    houses.one.push(BUSY)

    def get_weather(city: str) -> str:
        """The weather of a city."""
        houses.two.push(Step(fault=HttpError(401, {"error": {"message": "no such key"}})))
        return f"{city}: rain"

    with pytest.raises(ProviderError) as caught:
        ask(store.session("chat", profile="all"), FIRST, tools=[get_weather])
    assert caught.value.message.startswith("deepseek answered 401")


def test_a_turn_says_when_it_moves(store: SessionStore, houses: Houses) -> None:
    """Whoever watches sees where the request goes instead, and why."""
    houses.rotate("failover", "one", "two")
    houses.one.push(BUSY)
    shown = list(store.session("chat", profile="all").stream(FIRST))
    assert Status("failing_over", "two; HTTP 503: overloaded") in shown


def test_round_robin_takes_the_next_target_with_each_turn(store: SessionStore, houses: Houses, ask: Any) -> None:
    """One after the other, and the same one for all steps of a turn."""
    houses.rotate("round-robin", "one", "two")
    session = store.session("chat", profile="all")
    served = []
    for prompt in (FIRST, SECOND, THIRD):
        before = len(went(session))
        served.append(session.target.endpoint.id)
        assert ask(session, prompt, tools=[get_weather]).state == "completed"
        assert {served[-1]} == set(went(session)[before:])
        assert len(went(session)) > before + 1
    assert ["anthropic", "deepseek", "anthropic"] == served
    assert [] == houses.refused()


def test_round_robin_waits_for_the_results_of_a_turn(store: SessionStore, houses: Houses) -> None:
    """Calls that the caller answers are answered to who made them, also in another program."""
    houses.rotate("round-robin", "one", "two")
    session = store.session("chat", profile="all")
    for again in (session, store.session("chat")):
        reply = again.chat(SECOND, tools=[DEFINITION])
        asked = went(again)[-1]
        assert asked == again.target.endpoint.id
        again = store.session("chat") if again is session else again
        assert asked == again.target.endpoint.id
        assert again.generate({call.id: "sun" for call in reply.tool_calls}).state == "completed"
        assert [asked, asked] == went(again)[-2:]
    assert ["anthropic", "deepseek"] == list(dict.fromkeys(went(session)))
    assert [] == houses.refused()


def test_round_robin_goes_on_in_the_next_program(tmp_path: Path, houses: Houses) -> None:
    """Who was asked last is in the log."""
    houses.rotate("round-robin", "one", "two")
    asked = []
    for _ in range(3):
        with thinkback.open(tmp_path / "log.db") as store:
            session = store.session("chat", profile="all")
            session.chat(FIRST)
            asked.append(went(session)[-1])
    assert ["anthropic", "deepseek", "anthropic"] == asked


def test_round_robin_leaves_a_target_that_failed(store: SessionStore, houses: Houses) -> None:
    """For a minute its turns go to the others."""
    houses.write("three", "kimi", houses.two.base_url("kimi"))
    houses.rotate("round-robin", "one", "two", "three")
    houses.one.push(BUSY)
    session = store.session("chat", profile="all")
    for _ in range(4):
        session.chat(FIRST)
    assert ["anthropic", "deepseek", "kimi", "deepseek", "kimi"] == went(session)
    cool(session)
    session.chat(FIRST)
    assert "anthropic" == went(session)[-1]


def test_two_keys_of_one_place_take_turns(store: SessionStore, houses: Houses, monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets may differ in nothing but the name of their key."""
    url = houses.two.base_url("deepseek")
    for name in ("a", "b"):
        monkeypatch.setenv(f"KEY_{name.upper()}", f"{KEY}-{name}")
        houses.write(name, "deepseek", url, f'key_env = "KEY_{name.upper()}"\n')
    houses.rotate("round-robin", "a", "b")
    session = store.session("chat", profile="all")
    keys: list[str] = []
    session.on("pre_send", lambda plan: keys.append(plan.authenticator(plan.url, {}, b"").headers["Authorization"][-1]))
    for _ in range(4):
        session.chat(FIRST)
    assert ["a", "b", "a", "b"] == keys
    assert [] == houses.refused()


def test_a_target_without_a_key_is_passed_over(
    store: SessionStore, houses: Houses, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said once, and the others serve."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    houses.rotate("failover", "one", "two")
    session = store.session("chat", profile="all")
    with pytest.warns(UserWarning, match="the target one is passed over: anthropic needs a key"):
        assert ask(session, FIRST).state == "completed"
    assert ask(session, SECOND).state == "completed"
    assert {"deepseek"} == set(went(session))


def test_a_target_without_a_key_does_not_take_over(
    store: SessionStore, houses: Houses, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is the only one left, the first is asked again."""
    monkeypatch.delenv("DEEPSEEK_API_KEY")
    houses.rotate("failover", "one", "two")
    houses.one.push(Step(fault=HttpError(503, "", {"retry-after": "0"})))
    with pytest.warns(UserWarning, match="the target two is passed over"):
        assert ask(store.session("chat", profile="all"), FIRST).state == "completed"
    assert [503, 200] == houses.served()[0]


def test_a_target_that_was_passed_over_is_told_too(
    store: SessionStore, houses: Houses, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the only one with a key does not answer, the error says why the others were not asked."""
    monkeypatch.delenv("DEEPSEEK_API_KEY")
    houses.rotate("failover", "one", "two")
    houses.one.push(BUSY)
    session = store.session("chat", profile="all")
    told = pytest.raises(ProviderError, match=r"one: .*overloaded; two: deepseek needs a key")
    with pytest.warns(UserWarning, match="two is passed over"), told:
        ask(session, FIRST, max_retries=0)


def test_one_target_alone_fails_as_without_a_profile(store: SessionStore, houses: Houses, ask: Any) -> None:
    """There is nothing to tell of others."""
    houses.rotate("failover", "one")
    houses.one.push(BUSY)
    with pytest.raises(ProviderError, match=r"^anthropic answered 503: overloaded\n"):
        ask(store.session("chat", profile="all"), FIRST, max_retries=0)


def test_a_thought_without_an_answer_is_continued_where_it_was_thought(store: SessionStore, houses: Houses) -> None:
    """Asking again for an answer is no turn of its own to round-robin."""
    houses.rotate("round-robin", "one", "two")
    for step in (Step(reasoning="I keep it to myself."), Step(reasoning="Well then.", text="Forty-two.")):
        houses.one.push(step)
    session = store.session("chat", profile="all")
    assert "Forty-two." == retry_reasoning_only.chat(session, FIRST).text.strip()
    assert ["anthropic", "anthropic"] == went(session)
    assert "deepseek" == session.target.endpoint.id


def test_round_robin_without_our_http(store: SessionStore, houses: Houses) -> None:
    """Who plans and ingests gets a plan for the next target with each turn, and for the same one within it."""
    houses.rotate("round-robin", "one", "two")
    session = store.session("chat", profile="all")

    def ask(plan: Plan) -> Reply:
        plan.authenticate(bytes(plan))
        request = urllib.request.Request(plan.url, bytes(plan), plan.headers)
        with urllib.request.urlopen(request) as response:
            return session.wire.ingest(response.read())

    for _ in range(2):
        reply = ask(session.wire.plan(SECOND, tools=[DEFINITION], stream=False))
        assert reply.tool_calls
        results = {call.id: "sun" for call in reply.tool_calls}
        assert ask(session.wire.plan(tool_results=results, stream=False)).state == "completed"
    assert ["anthropic", "anthropic", "deepseek", "deepseek"] == went(session)
    assert [] == houses.refused()


def test_without_any_key_nothing_is_stored(
    store: SessionStore, houses: Houses, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn is refused as without profiles."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.delenv("DEEPSEEK_API_KEY")
    houses.rotate("failover", "one", "two")
    session = store.session("chat", profile="all")
    with pytest.raises(CredentialError, match="anthropic needs a key"):
        ask(session, FIRST)
    assert [] == session.log()


def test_settings_of_a_target_hold_while_it_serves(store: SessionStore, houses: Houses) -> None:
    """What the profile itself sets beats what its targets set."""
    houses.write("one", "anthropic", houses.one.base_url("anthropic"), "[reasoning]\nkeepLast = 1\neffort = 'low'\n")
    houses.write("two", "deepseek", houses.two.base_url("deepseek"), "[reasoning]\nkeepLast = 2\n")
    houses.rotate("round-robin", "one", "two", more="[reasoning]\neffort = 'high'\n")
    session = store.session("chat", profile="all")
    found = []
    for _ in range(2):
        found.append((session.settings.keep_last, session.settings.effort))
        session.chat(FIRST)
    assert [(1, "high"), (2, "high")] == found


def test_a_profile_of_targets_is_saved_as_one(store: SessionStore, houses: Houses) -> None:
    """Its targets and its own settings, and not those of the target that happens to serve."""
    houses.write("one", "anthropic", houses.one.base_url("anthropic"), "[reasoning]\nkeepLast = 1\n")
    houses.rotate("failover", "one", "two", more="[reasoning]\neffort = 'high'\n")
    session = store.session("chat", profile="all")
    session.set("text.verbosity", "low")
    session.profiles.save("mine")
    assert (houses.place / "mine.toml").read_text().split() == [
        *["kind", "=", '"failover"', "targets", "=", '["one",', '"two"]'],
        *["[reasoning]", "effort", "=", '"high"', "[text]", "verbosity", "=", '"low"'],
    ]


@pytest.mark.parametrize("text", ["model = 'm'", "endpoint = 'kimi'", "kind = 'failover'\ntargets = ['one']"])
def test_a_target_says_where_requests_go(store: SessionStore, houses: Houses, text: str) -> None:
    """One that does not, or that has targets of its own, is refused when the profile is loaded."""
    (houses.place / "bad.toml").write_text(text)
    houses.rotate("failover", "one", "bad")
    with pytest.raises(SettingError, match="bad cannot be a target"):
        store.session("chat", profile="all")


def test_a_profile_that_comes_in_the_middle_of_a_turn_rotates(store: SessionStore, houses: Houses, ask: Any) -> None:
    """Loaded by a tool: the loop goes on at its first target, and moves when that one fails."""
    houses.write("three", "kimi", houses.two.base_url("kimi"))
    houses.rotate("failover", "two", "one")
    session = store.session("chat", profile="three")

    def get_weather(city: str) -> str:
        """The weather of a city."""
        if not houses.one.requests:
            session.profiles.load("all")
            houses.two.push(BUSY)
        return f"{city}: rain"

    assert ask(session, FIRST, tools=[get_weather]).state == "completed"
    assert ["kimi", "deepseek", "anthropic"] == went(session)[:3]
    assert [] == houses.refused()


def test_a_fork_rotates_by_itself(store: SessionStore, houses: Houses) -> None:
    """A child has the profile of its parent, and failures of its own."""
    houses.rotate("failover", "one", "two")
    houses.one.push(BUSY)
    session = store.session("chat", profile="all")
    session.chat(FIRST)
    child = session.branches.fork("child")
    assert ("deepseek", "anthropic") == (session.target.endpoint.id, child.target.endpoint.id)
    assert child.chat(SECOND).state == "completed"
    assert [] == houses.refused()


def test_a_target_that_cannot_take_the_request_is_passed_on(store: SessionStore, houses: Houses, ask: Any) -> None:
    """On its way from target to target, what one cannot be sent at all is one failure more."""
    houses.write("strict", "openai", closed_port())
    houses.rotate("failover", "two", "strict", "three")
    houses.write("three", "kimi", houses.one.base_url("kimi"))
    houses.two.push(BUSY)
    session = store.session("chat", profile="all")
    assert ask(session, FIRST, params={"temperature": 1.0}).state == "completed"
    assert ["deepseek", "kimi"] == went(session)
    cool(session)
    houses.rotate("failover", "two", "strict")
    houses.two.push(BUSY)
    with pytest.raises(SettingError, match=r"no target answered: two: HTTP 503: overloaded; strict: .*temperature"):
        ask(session, SECOND, params={"temperature": 1.0})


def test_network_failures_of_all_targets_are_told(store: SessionStore, houses: Houses, ask: Any) -> None:
    """Nobody listens anywhere."""
    for name, host in (("one", "anthropic"), ("two", "deepseek")):
        houses.write(name, host, closed_port())
    houses.rotate("failover", "one", "two")
    session = store.session("chat", profile="all")
    with pytest.raises(NetworkError, match=r"no target answered: one: .*; two: ") as caught:
        ask(session, FIRST, max_retries=0)
    assert isinstance(caught.value, ThinkbackError)
    assert "failed" == kinds(session)[-1]
