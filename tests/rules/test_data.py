"""The shipped data: whole, sourced, consistent."""

from __future__ import annotations

import re
import tomllib

import msgspec
import pytest

from thinkback.compile.guard import check as check_origin
from thinkback.model.blocks import Origin
from thinkback.model.rule import Endpoint
from thinkback.rules import load_rulebook, normalise_url, packaged
from thinkback.rules.files import NEVER_TAKEN, RuleFile, check

BOOK = load_rulebook()
HOSTS = [name for name in packaged.texts() if name not in packaged.BESIDES]
KEYS = {
    "reasoning", "reasoning_content", "reasoning_details", "reasoning_items", "reasoning_blocks", "summaries",
    "thinking", "thinking_blocks", "thought_parts", "think_tags", "encrypted", "signatures", "redacted", "tool_calls",
    "previous_response_id", "previous_interaction_id",
}  # fmt: skip
LOCAL = {"gpustack", "llamacpp", "lmstudio", "mistralrs", "ollama", "ollama-native", "ollama-responses"}


def test_rows_of_each_kind_make_sense() -> None:
    """Shipped rows pass the checks that a person's rows must pass, the source of each among them."""
    check("endpoints", RuleFile(endpoint=packaged.endpoints()))
    check("rules", RuleFile(rule=BOOK.rules()))
    check("models.toml", RuleFile(model=packaged.models()))
    check("served", RuleFile(served=packaged.served()))


def test_tables_are_cut_where_they_begin() -> None:
    """What the tables of a file say one by one is what the whole file says."""
    whole = [tomllib.loads(text) for name, text in packaged.texts().items() if name in HOSTS]
    for kind, tables in packaged.tables().items():
        assert [row for file in whole for row in file.get(kind, [])] == [tomllib.loads(t)[kind][0] for t in tables]
        assert {"endpoint", "rule", "served"} >= {key for file in whole for key in file}


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_is_one_file(name: str) -> None:
    """All that is known of an endpoint, but facts about models, stands in the file that describes it."""
    file = tomllib.loads(packaged.texts()[name])
    ids = {row["id"] for row in file["endpoint"]} | ({"*"} if name == "unknown.toml" else set())
    rows = {row.id: row.endpoint for row in BOOK.rules()}
    assert {rows[row["id"]] for row in file.get("rule", [])} == ids
    assert all(ids.intersection(row["endpoint"]) for row in file.get("served", []))


def test_no_row_repeats_what_it_takes_over() -> None:
    """A shipped row that is like another one says only where it differs from it."""
    resolved = {row.id: msgspec.to_builtins(row) for row in BOOK.rules()}
    for row in (tomllib.loads(table)["rule"][0] for table in packaged.tables()["rule"]):
        if "like" in row:
            taken, own = resolved[row["like"]], resolved[row["id"]]
            assert [] == [key for key in row.keys() - NEVER_TAKEN - {"like"} if taken[key] == own[key]], row["id"]


def test_no_shipped_row_leaves_like_behind() -> None:
    """``like`` is gone once a row is read."""
    assert not any("like" in row.__struct_fields__ for row in BOOK.rules())


API = "https://api.anthropic.com/v1"
VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5"
INVOKE = "https://bedrock-runtime.us-east-1.amazonaws.com"


def minted(dialect: str, base_url: str, model: str) -> Origin:
    """Where a block of ``model`` is from: an account at each host."""
    return Origin(dialect, base_url, model, model, account="mine", account_known=True)


@pytest.mark.parametrize("sonnet", ["sonnet-4-5", "sonnet-4-6", "opus-4-7", "sonnet-5"])
def test_hosts_of_claude_read_each_other(sonnet: str) -> None:
    """Up to Claude 5 what one host minted goes to the same model at every other; a compatible endpoint is no host."""
    hosts = [
        ("anthropic", API, f"claude-{sonnet}"),
        ("vertex-claude", VERTEX, f"claude-{sonnet}@20260601"),
        ("vertex-claude", VERTEX.replace("us-east5", "europe-west1"), f"claude-{sonnet}"),
        ("bedrock-claude", INVOKE, f"us.anthropic.claude-{sonnet}-v1:0"),
        ("bedrock-claude", INVOKE.replace("runtime", "runtime-fips"), f"anthropic.claude-{sonnet}"),
    ]
    origins = [minted("anthropic", base_url, model) for _, base_url, model in hosts]
    tried = [
        minted("anthropic", "https://openrouter.ai/api/v1", f"anthropic/claude-{sonnet}"),
        minted("anthropic", "https://acme.services.ai.azure.com/anthropic/v1", f"claude-{sonnet}"),
    ]
    foreign = [
        minted("anthropic", "https://api.deepseek.com/anthropic/v1", f"claude-{sonnet}"),
        minted("bedrock", INVOKE, f"anthropic.claude-{sonnet}"),
        minted("anthropic", API, "claude-opus-5-5"),
        minted("anthropic", "https://openrouter.ai/api/v1", "anthropic/claude-opus-5.5"),
    ]
    for endpoint, base_url, model in hosts:
        target = BOOK.target(endpoint, model, on="2026-11-20", base_url=base_url, account="mine", account_known=True)
        assert not target.guessed
        assert "OpenRouter and Azure" in target.rule.unconfirmed["guard.hosts"]
        assert all(check_origin(origin, target).carriers for origin in (*origins, *tried))
        assert not any(check_origin(origin, target).carriers for origin in foreign)


def test_regions_of_converse_read_each_other() -> None:
    """A block of one region goes to another; Nova is no Claude."""
    target = BOOK.target("bedrock", "eu.anthropic.claude-sonnet-4-5-v1:0", on="2026-11-20", base_url=INVOKE)
    there = INVOKE.replace("us-east-1", "eu-central-1")
    assert check_origin(minted("bedrock", there, "us.anthropic.claude-sonnet-4-6"), target).carriers
    assert not check_origin(minted("bedrock", there, "amazon.nova-2-lite"), target).carriers


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1"])
def test_hosts_of_bound_claude_do_not_read_each_other(model: str) -> None:
    """From 5.1 and 5.5 on a block is bound to an organisation, and each host has its own."""
    for endpoint, base_url, name in (
        ("anthropic", API, model),
        ("vertex-claude", VERTEX, model),
        ("bedrock-claude", INVOKE, f"anthropic.{model}"),
        ("bedrock", INVOKE, f"anthropic.{model}"),
    ):
        target = BOOK.target(endpoint, name, on="2026-11-20", base_url=base_url)
        origin = minted(target.endpoint.dialect, INVOKE.replace("us-east-1", "eu-central-1"), name)
        assert not check_origin(origin, target).carriers


def test_every_endpoint_has_rows() -> None:
    """No endpoint is left to guessing."""
    assert {row.endpoint for row in BOOK.rules()} == {"*", *(row.id for row in BOOK.endpoints())}


def test_an_unknown_endpoint_has_no_shipped_rows() -> None:
    """Rows of an endpoint that the package does not know are none."""
    assert () == packaged.rules("nowhere")


def test_ids_are_unique() -> None:
    """No two rules share an id, and no two models an endpoint, pattern and day."""
    ids = [row.id for row in BOOK.rules()]
    models = [(row.endpoint, row.model, row.since) for row in BOOK.models()]
    assert len(ids) == len(set(ids))
    assert len(models) == len(set(models))


def test_names_are_unique() -> None:
    """No id or alias names two endpoints."""
    names = [name for row in BOOK.endpoints() for name in (row.id, *row.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("endpoint", BOOK.endpoints(), ids=lambda row: row.id)
def test_every_endpoint_resolves(endpoint: Endpoint) -> None:
    """Each endpoint is found by id and aliases in any case, with a normalised URL and a complete target."""
    for name in (endpoint.id, *endpoint.aliases):
        assert endpoint == BOOK.endpoint(name.upper())
    if endpoint.base_url:
        assert endpoint.base_url == normalise_url(endpoint.base_url)
    target = BOOK.target(endpoint.id, "some-model", on="2026-11-20", base_url=endpoint.base_url or "https://x.example")
    assert endpoint == target.endpoint
    assert target.rule.endpoint == endpoint.id


def test_keys_are_asked_for_or_optional() -> None:
    """Every endpoint names the variables its key may stand in; only local and unknown ones do without a key, and the
    referee, which takes any."""
    optional = {row.id for row in BOOK.endpoints() if row.auth.optional}
    assert {*LOCAL, "open-responses", "sglang", "unknown", "vllm"} == optional
    assert {"referee", "unknown"} == {row.id for row in BOOK.endpoints() if not row.auth.env}


def test_differences_name_known_keys() -> None:
    """Declared differences from recorded requests are about the keys that are compared."""
    assert {row.key for rule in BOOK.rules() for row in (*rule.omits, *rule.adds)} <= KEYS


def test_sources_are_names_that_a_reader_can_look_up() -> None:
    """Not places in a document that only its writer has."""
    rows = BOOK.rules()
    said = [row.source for row in rows] + [each.source for row in rows for each in (*row.omits, *row.adds)]

    assert [] == [source for source in said if re.match(r"\d+(\.\d+)?([ ,;:]|$)", source)]


def test_a_row_that_sends_nothing_adds_nothing() -> None:
    """Rows without a form declare no additions and keep nothing."""
    for rule in BOOK.rules():
        if rule.form == "none":
            assert ((), None, ()) == (rule.adds, rule.keep_switch, rule.missing)


def test_native_rows_name_wire_types() -> None:
    """A stand-in for signatures belongs to signed calls, and what binds reasoning to a chain to native reasoning."""
    for rule in BOOK.rules():
        assert rule.signed_calls == bool(rule.dummy), rule.id
        assert rule.form == "native" or not (rule.prefix_bound or rule.tied or rule.follower or rule.calls_last), (
            rule.id
        )


def test_a_demand_always_has_a_way_out() -> None:
    """Where reasoning must go back, the row says what happens when there is none."""
    for rule in BOOK.rules():
        if "must" in (rule.open_turn, rule.later):
            assert rule.missing, rule.id


def test_switches_and_controls_do_not_contradict() -> None:
    """What turns thinking off for a turn is what the row itself recognises as off."""
    for rule in BOOK.rules():
        if rule.thinking_off:
            assert rule.thinks_unless or rule.thinks_when, rule.id


def test_names_for_telemetry_are_of_providers() -> None:
    """Places of one provider share its name; an endpoint without one goes by its own id."""
    providers = packaged.providers()
    assert providers["azure-openai"] == providers["azure-openai-chat"] != providers["openai"]
    assert "vllm" not in providers


def test_rows_name_endpoints_that_exist() -> None:
    """Model rows are about endpoints of the package, or about any."""
    ids = {row.id for row in BOOK.endpoints()} | {"*"}
    assert {row.endpoint for row in BOOK.models()} <= ids


def test_models_that_are_listed_have_rules() -> None:
    """Each name chooses a row that is not guessed, on the day on which it was known; no list has a name twice."""
    for row in packaged.served():
        for id in row.endpoint:
            assert id == BOOK.endpoint(id).id
            assert [] == [model for model in row.models if BOOK.rule_for(id, model, row.since)[1]], id
    listed = [(id, model) for row in packaged.served() for id in row.endpoint for model in row.models]
    assert len(listed) == len(set(listed))
