"""The layers: which one wins, what a refusal leaves behind, and what a request record keeps."""

from __future__ import annotations

import itertools
import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import SettingError
from thinkback.model.target import Settings
from thinkback.settings import KEYS, LAYERS, WRITABLE, Key, Layer, Layers, SettingEntry, restore, snapshot
from thinkback.settings.registry import LARGEST, Value

SAMPLES: dict[str, st.SearchStrategy[Value]] = {
    "boolean": st.booleans(),
    "integer": st.integers(1, LARGEST),
    "names": st.sampled_from(["JAVA_HOME", "HTTPS_PROXY,NO_PROXY"]),
    "percentages": st.sampled_from(["1/2/3", "70/80/90"]),
    "rules": st.sampled_from(["shell=ask", "write(docs/*)=allow,mcp*=deny"]),
    "text": st.just("openai/gpt-5.5"),
    "words": st.just("Two words"),
    "field": st.just("thought"),
}


@st.composite
def entries(draw: st.DrawFn) -> SettingEntry:
    """A valid value in a layer that may hold it."""
    key = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    layer = draw(st.sampled_from([layer for layer in WRITABLE if layer not in key.refused_in]))
    value: Value = draw(SAMPLES[key.type] if key.type in SAMPLES else st.sampled_from(key.choices))
    return SettingEntry(layer, key.name, value)


def built(rows: list[SettingEntry]) -> Layers:
    """Layers with ``rows`` set one after the other."""
    layers = Layers()
    for row in rows:
        layers = layers.set(row.layer, row.key, row.value)
    return layers


def test_the_order_of_the_layers_is_the_designed_one() -> None:
    """Built-in comes first and the single call last."""
    assert ("built-in", "endpoint", "user", "app", "profile", "session", "call") == LAYERS
    assert get_args(Layer) == LAYERS


def test_without_any_setting_the_built_in_defaults_are_in_force() -> None:
    """nothing set means the defaults, and nothing counts as explicit."""
    assert Settings() == Layers().effective({})


@pytest.mark.parametrize(("lower", "higher"), list(itertools.combinations(WRITABLE, 2)))
def test_the_higher_layer_wins_in_whatever_order_they_are_set(lower: Layer, higher: Layer) -> None:
    """Each layer beats all below it, and the order of setting does not matter."""
    upwards = Layers().set(lower, "reasoning.effort", "low").set(higher, "reasoning.effort", "high")
    downwards = Layers().set(higher, "reasoning.effort", "high").set(lower, "reasoning.effort", "low")
    assert upwards == downwards
    assert "high" == upwards.effective({}).effort
    assert ("high", higher) == upwards.origin("reasoning.effort")
    assert ("low", lower) == upwards.unset(higher, "reasoning.effort").origin("reasoning.effort")


@pytest.mark.parametrize("data", [{"reasoning": {"includeInContext": True}}, {"reasoning.includeInContext": True}])
def test_endpoint_data_beats_the_built_in_default_and_is_not_explicit(data: dict[str, object]) -> None:
    """An endpoint's own default applies where nobody spoke, and does not pass for a person's wish."""
    assert Settings(include_in_context=True) == Layers().effective(data)
    assert (True, "endpoint") == Layers().origin("reasoning.includeInContext", data)


def test_what_a_person_sets_beats_endpoint_data_and_is_explicit() -> None:
    """A value set above the endpoint's data wins, and ``explicit`` names its key."""
    layers = Layers().set("user", "reasoning.includeInContext", False)
    effective = layers.effective({"reasoning": {"includeInContext": True}})
    assert Settings(explicit=frozenset({"reasoning.includeInContext"})) == effective


def test_an_explicit_value_equal_to_the_default_is_explicit_all_the_same() -> None:
    """Saying the default aloud is a wish: it must not look as if nobody had spoken."""
    assert frozenset({"reasoning.enabled"}) == Layers().set("call", "reasoning.enabled", "on").effective({}).explicit


@pytest.mark.parametrize("data", [{"reasoning": {"effort": "huge"}}, {"temperature": 1}, {"reasoning": 5}])
def test_broken_endpoint_data_is_refused(data: dict[str, object]) -> None:
    """An endpoint file cannot smuggle in a value or a key that a person could not set."""
    with pytest.raises(SettingError):
        Layers().effective(data)


@pytest.mark.parametrize(("key", "value"), [("reasoning.format", "xml"), ("reasoning.colour", "red")])
def test_a_refused_setting_leaves_the_old_value(key: str, value: str) -> None:
    """ERR-001: an error is raised and the settings are as they were."""
    layers = Layers().set("session", "reasoning.format", "native")
    with pytest.raises(SettingError):
        layers.set("session", key, value)
    assert ("native", "session") == layers.origin("reasoning.format")


def test_one_bad_value_refuses_the_whole_layer() -> None:
    """A profile is loaded as a whole or not at all."""
    layers = Layers().set("profile", "reasoning.effort", "low")
    with pytest.raises(SettingError, match=r"reasoning\.format"):
        layers.replace("profile", {"reasoning.effort": "high", "reasoning.format": "xml"})
    assert {"reasoning.effort": "low"} == layers.texts("profile")


@pytest.mark.parametrize("layer", LAYERS[:2])
def test_defaults_and_endpoint_data_cannot_be_set(layer: Layer) -> None:
    """The two lowest layers are data; the error says which layers can be set."""
    with pytest.raises(SettingError, match="user, app, profile, session, call") as caught:
        Layers().set(layer, "reasoning.effort", "low")
    assert WRITABLE == caught.value.details["allowed"]


def test_keep_last_is_refused_in_an_app_and_taken_elsewhere() -> None:
    """An app's carry is fixed, so only people choose how many responses keep their reasoning."""
    with pytest.raises(SettingError, match=r"reasoning\.keepLast cannot be set in the layer app"):
        Layers().set("app", "reasoning.keepLast", 2)
    with pytest.raises(SettingError):
        Layers().replace("app", {"reasoning.keepLast": 2})
    assert 2 == Layers().set("profile", "reasoning.keepLast", 2).effective({}).keep_last


def test_how_long_a_log_keeps_what_was_said_is_nothing_of_a_sessions() -> None:
    """Only the user says so, for the whole log."""
    for layer in ("session", "app", "profile", "call"):
        with pytest.raises(SettingError, match=rf"log\.retention cannot be set in the layer {layer}"):
            Layers().replace(layer, {"log.retention": 2})
    assert 2 == Layers().set("user", "log.retention", 2).effective({}).log_retention


@pytest.mark.parametrize(
    "key", [key for key in KEYS.values() if "session" not in key.refused_in], ids=lambda key: key.name
)
def test_default_silences_the_weaker_layers_for_every_key(key: Key) -> None:
    """``/set KEY default``: the built-in value is in force, or none, whatever weaker layers say; it counts as said."""
    weaker = {
        "boolean": not key.default,
        "integer": 7,
        "percentages": "1/2/3",
        "rules": "shell=ask",
        "text": "other",
        "words": "other words",
        "names": "A",
        "field": "other",
    }
    value = weaker.get(key.type, (*key.choices, "")[0])
    layers = Layers() if "user" in key.refused_in else Layers().set("user", key.name, value)
    silenced = layers.set("session", key.name, "default")
    assert (key.default, "session") == silenced.origin(key.name)
    assert key.default == getattr(silenced.effective({}), key.field)
    assert frozenset({key.name}) == silenced.effective({}).explicit
    assert {key.name: "default"} == silenced.texts("session")
    assert layers == silenced.unset("session", key.name)


def test_default_silences_the_endpoint_too() -> None:
    """What an endpoint's data says is a weaker layer as well."""
    data = {"reasoning": {"includeInContext": True}}
    assert (False, "call") == Layers().set("call", "reasoning.includeInContext", "default").origin(
        "reasoning.includeInContext", data
    )


def test_unset_of_what_is_not_set_changes_nothing() -> None:
    """Unsetting twice is harmless."""
    layers = Layers().set("user", "reasoning.effort", "low")
    assert layers == layers.unset("session", "reasoning.effort")


def test_unset_and_origin_know_their_keys() -> None:
    """A slip in a key's name is an error, not a silent nothing."""
    with pytest.raises(SettingError, match=r"reasoning\.effort"):
        Layers().unset("session", "reasoning.efort")
    with pytest.raises(SettingError, match=r"reasoning\.effort"):
        Layers().origin("reasoning.efort")


def test_replace_swaps_one_layer_and_no_other() -> None:
    """Loading a profile forgets the profile before it and keeps what the session set."""
    layers = Layers().replace("profile", {"reasoning.effort": "low"}).set("session", "reasoning.foreign", "text")
    loaded = layers.replace("profile", {"reasoning.enabled": "off"})
    assert {"reasoning.enabled": "false"} == loaded.texts("profile")
    assert {"reasoning.foreign": "text"} == loaded.texts("session")


def test_settings_are_read_afresh_at_each_request() -> None:
    """the next look sees the change, the look before keeps what it saw."""
    layers = Layers()
    before = layers.effective({})
    after = layers.set("session", "reasoning.effort", "max").effective({})
    assert (None, "max") == (before.effort, after.effort)


def test_every_key_can_be_saved_and_loaded_with_a_profile() -> None:
    """a profile holds all reasoning settings as text and gives them back."""
    values = {
        "reasoning.enabled": "false",
        "reasoning.includeInContext": "true",
        "reasoning.includeInResponse": "false",
        "reasoning.effort": "xhigh",
        "reasoning.maxTokens": "2048",
        "reasoning.format": "native",
        "reasoning.stripFromContext": "allButLast",
        "reasoning.foreign": "summary",
        "reasoning.keepLast": "0",
        "reasoning.display": "summarized",
        "reasoning.summary": "detailed",
        "reasoning.readable": "true",
        "reasoning.strict": "true",
        "reasoning.tags": "anywhere",
        "reasoning.fieldName": "thought",
        "reasoning.budget": "90000",
        "reasoning.budgetAction": "step_down",
        "text.verbosity": "low",
        "context.size": "5",
        "context.systemChanges": "append",
        "session.serverState": "true",
        "compaction.auto": "false",
        "compaction.thresholds": "50/60/70",
        "compaction.strategy": "middle_out",
        "compaction.model": "openai/gpt-5.5",
        "compaction.keepTurns": "2",
        "compaction.rationale": "true",
        "context.limit": "40000",
        "display.reasoning": "collapsed",
        "display.theme": "light",
        "display.language": "de",
        "permissions.mode": "read_only",
        "permissions.rules": "shell=ask,write(docs/*)=allow",
        "shell.environment": "JAVA_HOME,CI",
        "turn.maxSteps": "7",
        "usage.log": "false",
        "usage.logContent": "true",
        "telemetry.spans": "true",
        "telemetry.content": "true",
        "agents.depth": "2",
        "agents.parallel": "3",
        "agents.maxEffort": "high",
    }
    layers = Layers().replace("profile", values)
    assert {name for name, key in KEYS.items() if "profile" not in key.refused_in} == set(values)
    assert values == layers.texts("profile")
    assert Settings(
        enabled=False,
        include_in_context=True,
        include_in_response=False,
        effort="xhigh",
        max_tokens=2048,
        format="native",
        strip_from_context="allButLast",
        foreign="summary",
        tags="anywhere",
        field_name="thought",
        keep_last=0,
        display="summarized",
        summary="detailed",
        readable=True,
        strict=True,
        budget=90000,
        budget_action="step_down",
        verbosity="low",
        server_state=True,
        compaction_auto=False,
        compaction_thresholds="50/60/70",
        compaction_strategy="middle_out",
        compaction_model="openai/gpt-5.5",
        compaction_keep_turns=2,
        compaction_rationale=True,
        context_size=5,
        system_changes="append",
        context_limit=40000,
        display_reasoning="collapsed",
        display_theme="light",
        display_language="de",
        permissions_mode="read_only",
        permissions_rules="shell=ask,write(docs/*)=allow",
        shell_environment="JAVA_HOME,CI",
        max_steps=7,
        usage_log=False,
        usage_log_content=True,
        telemetry_spans=True,
        telemetry_content=True,
        agents_depth=2,
        agents_parallel=3,
        agents_max_effort="high",
        explicit=frozenset(values),
    ) == layers.effective({})


def test_a_snapshot_holds_what_was_in_force_as_text() -> None:
    """A request record has one text per key that has a value, and the names a person set."""
    layers = Layers().set("session", "reasoning.maxTokens", 8).set("user", "reasoning.effort", "low")
    record = {
        "reasoning.enabled": "true",
        "reasoning.includeInContext": "false",
        "reasoning.includeInResponse": "true",
        "reasoning.effort": "low",
        "reasoning.maxTokens": "8",
        "reasoning.format": "field",
        "reasoning.stripFromContext": "none",
        "reasoning.foreign": "drop",
        "reasoning.display": "auto",
        "reasoning.strict": "false",
        "context.systemChanges": "in-place",
        "session.serverState": "false",
        "explicit": "reasoning.effort reasoning.maxTokens",
    }
    assert record == snapshot(layers.effective({}))


@given(st.lists(entries()))
def test_what_is_set_is_in_force_unless_a_higher_layer_speaks(rows: list[SettingEntry]) -> None:
    """The value in force is the last one of the highest layer that has any."""
    layers = built(rows)
    effective = layers.effective({})
    for name, key in KEYS.items():
        said = sorted((row for row in rows if row.key == name), key=lambda row: LAYERS.index(row.layer))
        expected = said[-1].value if said else key.default
        assert (expected, expected) == (getattr(effective, key.field), layers.origin(name).value)
    assert {row.key for row in rows} == effective.explicit


@given(st.lists(entries()), entries())
def test_unset_restores_what_was_there_before(rows: list[SettingEntry], row: SettingEntry) -> None:
    """Setting and unsetting gives the layers without that key, whatever else is set."""
    layers = built(rows)
    without = layers.unset(row.layer, row.key)
    assert without == layers.set(row.layer, row.key, row.value).unset(row.layer, row.key)
    assert without == without.unset(row.layer, row.key)


@given(st.lists(entries()))
def test_every_layer_survives_the_way_through_text(rows: list[SettingEntry]) -> None:
    """Saving each layer as text and loading it gives the same layers."""
    layers = built(rows)
    loaded = Layers()
    for layer in reversed(WRITABLE):
        loaded = loaded.replace(layer, layers.texts(layer))
    assert layers == loaded


@given(st.lists(entries()))
def test_a_snapshot_gives_its_settings_back(rows: list[SettingEntry]) -> None:
    """``restore(snapshot(settings)) == settings``, so that decisions can be recomputed from a request record."""
    rows = [row for row in rows if KEYS[row.key].recorded]
    effective = built(rows).effective({"reasoning": {"includeInContext": True}})
    assert effective == restore(snapshot(effective))


def test_a_snapshot_leaves_out_what_does_not_bear_on_requests() -> None:
    """When a history is summarised is no matter of the request that is sent, so its record does not repeat it."""
    layers = Layers().set("session", "compaction.keepTurns", 2).set("session", "reasoning.effort", "low")
    assert "reasoning.effort" == snapshot(layers.effective({}))["explicit"]
    assert [] == [name for name in snapshot(layers.effective({})) if name.startswith("compaction.")]


def test_an_app_carries_and_includes() -> None:
    """Every app keeps the last three responses' reasoning and sends it, without saying so."""
    found = Layers().carrying(3).effective({})
    assert (3, True, True) == (found.keep_last, found.carry, found.include_in_context)
    assert {"reasoning.keepLast", "reasoning.includeInContext"} == found.explicit
    assert found == restore(snapshot(found))


def test_what_an_app_carries_gives_way_to_stronger_layers() -> None:
    """A person who says how much is kept or stripped is heard; the user's file is weaker than an app."""
    kept = Layers().set("session", "reasoning.keepLast", 1).carrying(3).effective({})
    assert (1, False) == (kept.keep_last, kept.carry)
    stripped = Layers().set("profile", "reasoning.stripFromContext", "all").carrying(3).effective({})
    assert (None, False, "all") == (stripped.keep_last, stripped.carry, stripped.strip_from_context)
    weaker = Layers().set("user", "reasoning.stripFromContext", "all").carrying(3).effective({})
    assert (3, True) == (weaker.keep_last, weaker.carry)


def test_an_app_may_ask_for_no_earlier_reasoning() -> None:
    """What its file says of sending it counts."""
    layers = Layers().set("app", "reasoning.includeInContext", False).carrying(3)
    assert not layers.effective({}).include_in_context


def test_request_fields_of_the_layers_become_one_table() -> None:
    """A stronger layer wins field by field, ``default`` takes a field out, and texts survive a store."""
    layers = Layers().replace("app", {"params.temperature": 0.3, "params.stop": ["a", "b"], "params.seed": "7"})
    layers = layers.replace("profile", {"params.thinking": {"type": "enabled"}, "params.seed": "default"})
    layers = layers.set("session", "params.thinking.budget_tokens", "2048").set("session", "params.user", '"7"')

    expected = {
        "stop": ["a", "b"],
        "temperature": 0.3,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "user": "7",
    }
    assert expected == layers.params() == json.loads(layers.effective({}).params)
    assert layers == Layers(tuple(e for e in layers.entries if e.layer != "session")).replace(
        "session", layers.texts("session")
    )
    assert (*KEYS, "params.seed", "params.stop") == layers.keys[: len(KEYS) + 2]
    assert (0.3, "app") == layers.origin("params.temperature")
    assert (None, "built-in") == layers.origin("params.top_p")
    assert (None, "profile") == layers.origin("params.seed")
    assert frozenset() == layers.effective({}).explicit
    assert snapshot(Settings()) == snapshot(Layers().set("call", "params.top_p", 1).effective({}))


@pytest.mark.parametrize("raw", [None, float("nan"), {"a": {1, 2}}, "null"])
def test_a_request_field_is_json(raw: object) -> None:
    """What JSON cannot hold is refused, and so is ``null``: a field is left out by unsetting it."""
    with pytest.raises(SettingError, match=r"params\.x cannot be .*any JSON value but null"):
        Layers().set("session", "params.x", raw)


@pytest.mark.parametrize("name", ["params", "params.", "params..x", "params.a b"])
def test_a_request_field_has_a_name(name: str) -> None:
    """The group alone, and parts that are empty or have spaces, name nothing."""
    with pytest.raises(SettingError, match="there is no setting"):
        Layers().set("session", name, 1)


@pytest.mark.parametrize("raw", ["auto", "NaN", "two words", "[" * 20_000, "9" * 5000])
def test_a_request_field_may_be_any_text(raw: str) -> None:
    """What is no JSON is a text."""
    assert raw == Layers().set("session", "params.x", raw).params()["x"]


def test_layers_say_of_other_data_what_they_said_of_none_before() -> None:
    """What they said of an endpoint is kept for that endpoint alone."""
    layers = Layers().set("session", "reasoning.effort", "high")
    one, other = {"reasoning.maxTokens": 100}, {"reasoning.maxTokens": 200}
    first = layers.effective(one)
    assert first is layers.effective(one)
    assert (100, 200, 100) == tuple(layers.effective(data).max_tokens for data in (one, other, one))


def test_a_record_says_whose_request_it_was() -> None:
    """A program's dialect, and that its request brings reasoning, are no settings with a name."""
    told = Settings(client="openai-chat", client_reasons=True)
    assert {"client": "openai-chat", "client_reasons": "true"}.items() <= snapshot(told).items()
    assert told == restore(snapshot(told))
    assert not {"client", "client_reasons"} & snapshot(Settings()).keys()
