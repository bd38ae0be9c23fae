"""Settings as the four seed systems test them: what reaches the wire, what does not, and what is said about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import thinkback
from tests.acceptance.hosts import (
    LOOK,
    OF,
    at,
    body,
    every_dialect,
    next_body,
    returned,
    statuses,
    talk,
)
from tests.conformance.moves import KEY, Place
from thinkback.errors import ProviderError, SettingError
from thinkback.model.deltas import ReasoningDelta
from thinkback.model.target import lookup
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.settings import KEYS, Layers
from thinkback_referee import Referee, Step

EFFORTS = KEYS["reasoning.effort"].choices
STATES = {"emitted", "represented", "suppressed", "unrepresentable"}


def controls(session: Session) -> dict[str, tuple[str, str]]:
    """What became of each control of the next request, as state and reason."""
    return {control.key: (control.state, control.reason) for control in session.explain(next=True).controls}


def params(session: Session) -> dict[str, Any]:
    """The parameters of the next request."""
    return session.explain(next=True).params


@pytest.mark.filterwarnings("ignore:reasoning.effort = .* is not sent:UserWarning")
@every_dialect
@pytest.mark.parametrize("effort", EFFORTS)
def test_every_effort_is_said_or_its_absence_reported(
    store: SessionStore, referee: Referee, place: Place, effort: str
) -> None:
    """Each of the seven words goes out in the host's own terms, or a control says why not; the host accepts it."""
    session = talk(store, referee, place)
    session.set("reasoning.effort", effort)
    reply = session.chat("Hello?")
    assert reply.plan is not None
    found = {control.key: control for control in reply.plan.controls}["reasoning.effort"]
    assert (effort, True) == (found.value, found.state in STATES)
    assert (found.state == "emitted") or found.reason
    assert [200] == statuses(referee)


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@pytest.mark.filterwarnings("ignore:reasoning.enabled = false is not sent:UserWarning")
@every_dialect
def test_switched_off_it_is_not_asked_for_and_not_sent_back(
    store: SessionStore, referee: Referee, place: Place
) -> None:
    """Off is said where the host has a word for it; where the model cannot be switched off, that is reported.

    What a host demands of finished turns goes back all the same.
    """
    session = talk(store, referee, place)
    session.set("reasoning.effort", "high")
    session.chat("Hello?")
    session.set("reasoning.enabled", value=False)
    state, reason = controls(session)["reasoning.enabled"]
    assert "completed" == session.chat("And now?").state
    assert [200, 200] == statuses(referee)
    assert (session.target.rule.later == "must") == bool(returned(place, body(referee)))
    assert state == "emitted" or "cannot be told not to reason" in reason
    assert "suppressed" == controls(session)["reasoning.effort"][0]


@pytest.mark.filterwarnings("ignore:reasoning.maxTokens = 2000 is not sent:UserWarning")
@every_dialect
def test_a_token_budget_is_said_or_its_absence_reported(store: SessionStore, referee: Referee, place: Place) -> None:
    """The number goes where the host has a place for it, once, and the host accepts it."""
    session = talk(store, referee, place)
    session.unset("reasoning.effort")
    session.set("reasoning.maxTokens", 2000)
    state, reason = controls(session)["reasoning.maxTokens"]
    assert "completed" == session.chat("Hello?").state
    assert ("2000" in json.dumps(params(session))) == (state in ("emitted", "represented"))
    assert state == "emitted" or reason


@every_dialect
def test_without_a_setting_no_effort_is_sent(store: SessionStore, referee: Referee, place: Place) -> None:
    """Unset leaves it to the provider: no word of effort and no budget is in the request, where none has to ask."""
    session = talk(store, referee, place)
    session.unset("reasoning.effort")
    session.unset("session.defaults")
    assert "completed" == session.chat("Hello?").state
    sent = json.dumps({key: value for key, value in body(referee).items() if key not in ("messages", "input")})
    assert not any(word in sent for word in ("effort", "budget", "thinkingLevel", "thinking_level", '"think"'))


def test_an_effort_that_is_none_never_reaches_the_wire(store: SessionStore, referee: Referee) -> None:
    """It is refused with key, value and allowed words, and the old value stays."""
    session = at(store, referee, "openai", "gpt-5.4")
    session.set("reasoning.effort", "high")
    with pytest.raises(SettingError) as caught:
        session.set("reasoning.effort", "hihg")
    assert ("hihg" in str(caught.value), "xhigh" in str(caught.value)) == (True, True)
    with pytest.raises(SettingError):
        session.chat("Hello?", settings={"reasoning.effort": "hihg"})
    session.chat("Hello?")
    assert ("high", [200]) == (body(referee)["reasoning"]["effort"], statuses(referee))


def test_a_session_s_word_holds_and_a_call_s_word_counts_once(store: SessionStore, referee: Referee) -> None:
    """Call over session over the user's own, for one request; taken back, the default asks again."""
    session = at(store, referee, "openai", "gpt-5.4")
    session.set("reasoning.effort", "high")
    session.chat("One?", settings={"reasoning.effort": "medium"})
    session.chat("Two?")
    session.unset("reasoning.effort")
    session.chat("Three?")
    sent = [lookup(dict(exchange.body), "reasoning.effort") for exchange in referee.requests]
    assert ["medium", "high", "low"] == sent


@pytest.mark.parametrize(("key", "value"), [("effort", "high"), ("maxTokens", 2000), ("keepLast", 1)])
def test_the_word_default_silences_weaker_layers(key: str, value: object) -> None:
    """For one call, or for a session whose log is opened again, a configured value counts as unset."""
    name = f"reasoning.{key}"
    with thinkback.open(":memory:", settings={name: value}) as store:
        session = store.session("talk", endpoint="openai", model="gpt-5.4", api_key=KEY)
        bare = store.session("bare", endpoint="openai", model="gpt-5.4", api_key=KEY)
        once = session.explain(next=True, settings={name: "default"}).settings
        assert (str(value), None) == (session.explain(next=True).settings[name], once.get(name))
        bare.set(name, "default")
        again = store.session("bare", endpoint="openai", model="gpt-5.4", api_key=KEY)
        assert None is again.explain(next=True).settings.get(name)
        assert value == getattr(session.settings, KEYS[name].field)


def test_the_word_default_is_the_built_in_value_where_there_is_one() -> None:
    """Whatever weaker layers say; data of an endpoint may say the word too."""
    off = Layers().set("user", "reasoning.enabled", "false").set("session", "reasoning.enabled", "default")
    assert (True, "session") == off.origin("reasoning.enabled")
    layers = Layers().set("session", "reasoning.effort", "default")
    assert (None, "session") == layers.origin("reasoning.effort", {"reasoning": {"effort": "low"}})
    assert (None, "endpoint") == Layers().origin("reasoning.effort", {"reasoning": {"effort": "default"}})
    assert layers == Layers().replace("session", layers.texts("session"))


def test_settings_are_read_at_each_request(referee: Referee) -> None:
    """The user's layer is read anew, by every session that is open."""
    mine: dict[str, object] = {"reasoning.effort": "low"}
    with thinkback.open(":memory:", settings=mine) as store:
        session = at(store, referee, "openai", "gpt-5.4")
        session.chat("One?")
        mine["reasoning.effort"] = "xhigh"
        session.chat("Two?")
    assert ["low", "xhigh"] == [lookup(dict(exchange.body), "reasoning.effort") for exchange in referee.requests]


@pytest.mark.parametrize(
    ("endpoint", "model", "path", "word", "names"),
    [
        ("anthropic", "claude-opus-5-5", "output_config.effort", "high", {"output_config", "thinking"}),
        ("openai", "gpt-5.4", "reasoning.effort", "high", {"reasoning"}),
        ("gemini", "gemini-3-pro", "generationConfig.thinkingConfig.thinkingLevel", "HIGH", {"generationConfig"}),
        ("gemini", "gemini-2.5-flash", "generationConfig.thinkingConfig.thinkingBudget", 24576, {"generationConfig"}),
        ("deepseek", "deepseek-v4-pro", "reasoning_effort", "high", {"reasoning_effort"}),
        ("xai", "grok-4.3", "reasoning.effort", "high", {"reasoning"}),
        ("openrouter", "openai/gpt-5.4", "reasoning.effort", "high", {"reasoning"}),
        ("zai", "glm-5.2", "reasoning_effort", "high", {"reasoning_effort", "thinking"}),
    ],
)
def test_an_effort_is_said_in_the_words_of_one_host_only(
    store: SessionStore, endpoint: str, model: str, path: str, word: object, names: set[str]
) -> None:
    """The host's own parameters and nobody else's beside them."""
    session = store.session("talk", endpoint=endpoint, model=model, api_key=KEY)
    session.set("reasoning.effort", "high")
    sent = next_body(session)
    known = {"reasoning", "reasoning_effort", "thinking", "output_config", "generationConfig", "think"}
    assert (word, names) == (lookup(sent, path), known & set(sent))


def test_adaptive_thinking_is_asked_for_where_the_model_has_it(store: SessionStore) -> None:
    """Newer models of Anthropic get the adaptive word, older ones a budget that stands for the effort."""
    session = store.session("talk", endpoint="anthropic", model="claude-opus-4-6", api_key=KEY)
    session.set("reasoning.effort", "low")
    assert ("adaptive", {"effort": "low"}) == (params(session)["thinking"]["type"], params(session)["output_config"])
    session.use(model="claude-sonnet-4-5")
    assert ("enabled", 4096) == (params(session)["thinking"]["type"], params(session)["thinking"]["budget_tokens"])
    assert "output_config" not in params(session)


@pytest.mark.parametrize(
    ("wanted", "limit", "sent", "state"),
    [
        (1, None, 1024, "represented"),
        (5000, None, 5000, "emitted"),
        (9000, 4096, 4095, "represented"),
        (9000, 1000, None, "suppressed"),
        (9000, 1024, None, "suppressed"),
    ],
    ids=["below the floor", "fits", "not below the limit", "no room", "no room by one"],
)
def test_a_budget_is_fitted_between_floor_and_limit(
    store: SessionStore, wanted: int, limit: int | None, sent: int | None, state: str
) -> None:
    """At least 1,024 and below the output limit; where nothing fits, thinking is not asked for; each is reported."""
    session = store.session("talk", endpoint="anthropic", model="claude-sonnet-4-5", api_key=KEY)
    session.set("reasoning.maxTokens", wanted)
    plan = session.explain(next=True, params={"max_tokens": limit} if limit else {})
    assert sent == lookup(plan.params, "thinking.budget_tokens")
    assert (state, True) == (plan.controls[0].state, state == "emitted" or bool(plan.controls[0].reason))


def test_the_highest_words_are_the_deepest_budget(store: SessionStore) -> None:
    """Where efforts stand for budgets, xhigh and max are the most there is, and leave room for the answer."""
    session = store.session("talk", endpoint="anthropic", model="claude-sonnet-4-5", api_key=KEY)
    budgets = []
    for word in EFFORTS[1:]:
        session.set("reasoning.effort", word)
        budgets.append(params(session)["thinking"]["budget_tokens"])
        assert budgets[-1] < params(session)["max_tokens"]
    assert (budgets, budgets[-1]) == (sorted(budgets), budgets[-2])


def test_a_summary_is_asked_for_with_reasoning_only(store: SessionStore) -> None:
    """Responses: by default when the model reasons, in detail on request, natively as one likes."""
    session = store.session("talk", endpoint="openai", model="gpt-5.4", api_key=KEY)
    session.unset("session.defaults")
    assert "reasoning" not in params(session)
    session.set("reasoning.effort", "low")
    assert "auto" == params(session)["reasoning"]["summary"]
    session.set("reasoning.display", "summarized")
    assert "detailed" == params(session)["reasoning"]["summary"]
    native = session.explain(next=True, params={"reasoning": {"summary": "concise"}}).params
    assert {"summary": "concise", "effort": "low"}.items() <= native["reasoning"].items()


@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic", "gemini", "gemini-interactions"])
def test_the_provider_is_told_to_show_nothing(store: SessionStore, referee: Referee, dialect: str) -> None:
    """``reasoning.display = omitted``: nothing readable arrives, which the control says before."""
    session = talk(store, referee, OF[dialect])
    session.set("reasoning.display", "omitted")
    assert "a search will find nothing" in controls(session)["reasoning.display"][1]
    referee.push(Step(reasoning="not-for-your-eyes", text="Hi."))
    assert None is session.chat("Hello?").reasoning
    assert b"not-for-your-eyes" not in b"".join(commit.payload for commit in session.log())


def test_verbosity_is_said_where_there_is_a_word_for_it(store: SessionStore) -> None:
    """Elsewhere it is reported as not sent."""
    session = store.session("talk", endpoint="openai", model="gpt-5.4", api_key=KEY)
    session.set("text.verbosity", "low")
    assert {"verbosity": "low"} == params(session)["text"]
    session.use(endpoint="anthropic", model="claude-opus-5-5", api_key=KEY)
    assert "unrepresentable" == controls(session)["text.verbosity"][0]


def test_words_can_be_mapped_and_suppressed_by_data(referee: Referee) -> None:
    """A user's row gives each effort its own words; an empty table keeps one from being sent."""
    row = '[[rule]]\nid = "mine"\nlike = "deepseek-v4"\nendpoint = "deepseek"\nmodel = ["deepseek-v4-pro"]\n'
    row += 'since = "2026-01-01"\nsource = "my own"\n[rule.controls.effort]\nlow.reasoning_effort = "max"\nhigh = {}\n'
    with thinkback.open(":memory:", rules={"mine.toml": row}) as store:
        session = at(store, referee, "deepseek", "deepseek-v4-pro")
        session.set("reasoning.effort", "low")
        assert "max" == params(session)["reasoning_effort"]
        session.set("reasoning.effort", "high")
        assert ("suppressed", False) == (
            controls(session)["reasoning.effort"][0],
            "reasoning_effort" in params(session),
        )


def test_an_unknown_host_is_told_nothing(store: SessionStore, referee: Referee) -> None:
    """Every control that was asked for is reported as absent, and no parameter goes out."""
    session = store.session("talk", model="some-model", base_url="https://llm.house.example/v1", api_key=KEY)
    for key, value in (("reasoning.effort", "high"), ("reasoning.maxTokens", 2000), ("text.verbosity", "low")):
        session.set(key, value)
    assert {"messages", "model", "stream", "stream_options"} == set(next_body(session))
    assert {"absent"} == {state for state, _ in controls(session).values()}
    assert 3 == len(session.explain(next=True).dropped)


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@pytest.mark.parametrize(
    ("endpoint", "model", "native"),
    [
        ("openai", "gpt-5.4", {"reasoning": {"effort": "low"}}),
        ("anthropic", "claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("deepseek", "deepseek-v4-pro", {"thinking": {"type": "disabled"}}),
        ("gemini", "gemini-3-pro", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}),
    ],
)
def test_native_parameters_win_and_suppress_the_settings(
    store: SessionStore, referee: Referee, endpoint: str, model: str, native: dict[str, Any]
) -> None:
    """What the caller says in the host's own words is sent alone; the setting is reported as suppressed."""
    session = at(store, referee, endpoint, model)
    session.set("reasoning.effort", "high")
    reply = session.chat("Hello?", params=native)
    assert reply.plan is not None
    assert ["suppressed"] == [control.state for control in reply.plan.controls if control.key == "reasoning.effort"]
    assert all(
        value.items() <= body(referee)[key].items() or key == "generationConfig" for key, value in native.items()
    )
    assert "HIGH" not in json.dumps(body(referee)).upper()
    assert [200] == statuses(referee)


@pytest.mark.parametrize(("endpoint", "model"), [("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-5.4")])
def test_what_the_host_is_known_to_refuse_is_refused_before_the_network(
    store: SessionStore, referee: Referee, endpoint: str, model: str
) -> None:
    """With the parameter and the reason, and nothing is sent."""
    session = at(store, referee, endpoint, model)
    session.set("reasoning.effort", "high")
    with pytest.raises(SettingError, match="temperature"):
        session.chat("Hello?", params={"temperature": 0.5})
    assert [] == statuses(referee)


def test_a_host_without_reasoning_is_asked_for_none_and_given_none(store: SessionStore, referee: Referee) -> None:
    """``reasoning.strict``: what is stored stays away, no parameter about it goes out."""
    session = talk(store, referee, OF["openai-responses"])
    referee.push(Step(reasoning="stored-thought", text="One."))
    session.chat("Hello?")
    session.unset("reasoning.effort")
    session.set("reasoning.strict", value=True)
    sent = next_body(session)
    assert ([], False, False) == (
        returned(OF["openai-responses"], sent),
        "include" in sent,
        "reasoning" in sent,
    )
    assert any("reasoning.strict" in decision.reason for decision in session.why(next=True))


@pytest.mark.parametrize(("key", "value"), [("reasoning.effort", "low"), ("reasoning.maxTokens", 2000)])
def test_a_control_of_reasoning_fails_before_the_network_where_there_must_be_none(
    store: SessionStore, referee: Referee, key: str, value: object
) -> None:
    """Asking for what the mode excludes is a mistake, told before anything is stored or sent."""
    session = talk(store, referee, OF["openai-responses"])
    session.unset("reasoning.effort")
    session.set("reasoning.strict", value=True)
    session.set(key, value)
    with pytest.raises(SettingError, match=r"reasoning\.strict is on"):
        session.chat("Hello?")
    assert [] == statuses(referee)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_streamed_reasoning_is_refused_where_there_must_be_none(
    store: SessionStore, referee: Referee, stream: bool
) -> None:
    """The turn fails before any tool runs, and what came is not replayed."""
    ran: list[str] = []

    def weather(city: str) -> str:
        """The weather of a city."""
        ran.append(city)
        return "sunny"

    session = at(store, referee, "deepseek", "deepseek-v4-pro")
    session.set("reasoning.strict", value=True)
    referee.push(Step(reasoning="unwanted-thought", tool_calls=[LOOK]))
    with pytest.raises(ProviderError, match=r"reasoning\.strict"):
        session.chat("Hello?", tools=[weather], stream=stream)
    assert [] == ran
    assert b"unwanted-thought" not in bytes(session.explain(next=True))


def test_display_never_changes_the_wire(store: SessionStore, referee: Referee) -> None:
    """``includeInResponse`` is for who looks; the next request and what is stored are the same."""
    session = talk(store, referee, OF["anthropic"])
    session.chat("Hello?")
    shown = bytes(session.explain(next=True))
    session.set("reasoning.includeInResponse", value=False)
    assert shown == bytes(session.explain(next=True))
    assert any(isinstance(delta, ReasoningDelta) for delta in session.stream("And?"))


# Keys that are called as providers call their parameter.
_WORDS = ("reasoning.effort", "reasoning.summary")


def test_behaviour_settings_never_leak_into_the_body(store: SessionStore) -> None:
    """None of the keys, nor a name derived from one, is in a request."""
    session = store.session("talk", endpoint="openai", model="gpt-5.4", api_key=KEY)
    for key, value in (("reasoning.keepLast", 2), ("reasoning.foreign", "text"), ("reasoning.includeInContext", True)):
        session.set(key, value)
    sent = json.dumps(next_body(session))
    names = [key.partition(".")[2] for key in KEYS if key.startswith("reasoning.") and key not in _WORDS]
    assert not any(name in sent for name in (*KEYS, *names))


def test_the_facts_about_a_model_are_data_that_a_user_may_replace(referee: Referee) -> None:
    """Efforts and limits of a model from the user's own file decide what is sent."""
    row = '[[model]]\nmodel = "gpt-5.4"\nendpoint = "openai"\nefforts = ["low", "medium"]\ncontext = 1000\n'
    row += 'since = "2026-01-01"\nsource = "my own"\n'
    with thinkback.open(":memory:", rules={"mine.toml": row}) as store:
        session = at(store, referee, "openai", "gpt-5.4")
        session.set("reasoning.effort", "xhigh")
        assert ("medium", 1000) == (params(session)["reasoning"]["effort"], session.target.info.context)


@every_dialect
def test_tokens_mean_the_same_for_every_provider(store: SessionStore, referee: Referee, place: Place) -> None:
    """Three words of thought and two of answer: output includes the thought, and the thought is told apart."""
    referee.push(Step(reasoning="one two three", text="four five"))
    session = talk(store, referee, place)
    reply = session.chat("Hello?")
    assert reply.tokens is not None
    assert (5, 3) == (reply.tokens.output, reply.tokens.reasoning)
    # Two providers count thoughts nowhere, so that number is an estimate and says so.
    assert (place.dialect in ("bedrock", "ollama")) == reply.tokens.estimated
    assert any(commit.kind == "provider_usage" for commit in session.log())
    assert (reply.tokens.input or 0) > 0
