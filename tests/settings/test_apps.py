"""App files: what they may say, and what their errors say."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import RuleFileError, SettingError
from thinkback.rules import packaged as rules
from thinkback.settings.apps import App, Server, check_constraints, choose_model, parse_app
from thinkback.settings.features import packaged

WHOLE = """
name = "Coder"
description = "Writes code."
system_prompt = "You write code."
endpoint = "openai"
model = ["gpt-5.6", "gpt-5*"]
fallback = "gpt-5-mini"
reasoning_effort = "low"
context_size = 20
tools = ["read", "mcp:files"]

[mcp.files]
command = "files"
args = ["--all"]
env = { HOME = "/x" }

[features]
web_search = true
structured_output = false

[reasoning]
display = "summarized"
"""


def faults(text: str) -> dict[str, str]:
    """The faults of an app file, by key."""
    with pytest.raises(RuleFileError) as caught:
        parse_app("apps/a.toml", text)
    found = caught.value.details["faults"]
    assert isinstance(found, list)
    return dict(found)


def test_an_app_file_says_everything_that_belongs_together() -> None:
    """Prompt, models, tools, servers, features and settings are read; the id is the name of the file."""
    expected = App(
        "coder",
        "Coder",
        "Writes code.",
        "You write code.",
        "openai",
        ("gpt-5.6", "gpt-5*"),
        "gpt-5-mini",
        ("read", "mcp:files"),
        {"files": Server("files", ("--all",), {"HOME": "/x"})},
        ("web_search",),
        {},
        {"reasoning.effort": "low", "reasoning.display": "summarized", "context.size": 20},
    )
    assert expected == parse_app("/home/me/apps/coder.toml", WHOLE)


def test_an_empty_file_is_an_app_without_wishes() -> None:
    """Nothing is required: such an app uses the person's endpoint, model and settings."""
    app = parse_app("C:\\apps\\plain.toml", "")
    assert App("plain", "plain") == app
    assert ("", ()) == (app.default_model, app.requested_features)


def test_one_model_is_a_list_of_one() -> None:
    """``model`` is a list, or one."""
    assert parse_app("a", 'model = ["m"]') == parse_app("a", 'model = "m"')


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("name = 3", "name", "it must be text, not 3"),
        ('system_prompt = " "', "system_prompt", "it must be text"),
        ('sistem_prompt = "x"', "sistem_prompt", "did you mean system_prompt?"),
        ("zzz = 1", "zzz", "there are name, description"),
        ('endpoint = "a b"', "endpoint", "it must be one word"),
        ("model = []", "model", "it must be a list of names"),
        ('model = ["a", 3]', "model.1", "it must be text, not 3"),
        ('model = ["a", "a"]', "model", "a is given twice"),
        ('model = "gpt-*"', "model", "cannot be a pattern"),
        ('model = "a"\nfallback = "b"', "fallback", "b is not among the models"),
        ('fallback = "b"', "fallback", "b is not among the models"),
        ('tools = ["raed"]', "tools.0", "did you mean read?"),
        ("mcp = 3", "mcp", "it must be a table"),
        ("[mcp.x]", "mcp.x", "either a command or a url"),
        ('[mcp.x]\ncommand = "a"\nurl = "b"', "mcp.x", "either a command or a url"),
        ("[mcp.x]\ncommand = 3", "mcp.x.command", "Expected `str`"),
        ("[mcp.x]\ncomand = 3", "mcp.x.comand", "did you mean command?"),
        ("[mcp]\nx = 3", "mcp.x", "it must be a table"),
        ("[features]\nweb_serch = true", "features.web_serch", "did you mean web_search?"),
        ('[features]\nweb_search = "yes"', "features.web_search", "it must be true or false"),
        ("[features]\nstructured_output = true", "features.structured_output", "needs the table [output_schema]"),
        ('[output_schema]\ntype = "object"', "output_schema", "nothing uses it"),
        ('reasoning_effort = "huge"', "reasoning_effort", "allowed: none, minimal"),
        ('reasoning_effort = "low"\n[reasoning]\neffort = "low"', "reasoning.effort", "it is given twice"),
        ('[reasoning]\nefort = "low"', "reasoning.efort", "did you mean reasoning.effort"),
        ("[reasoning]\nkeepLast = 5", "reasoning.keepLast", "is the same for every app"),
        ("reasoning_context = 5", "reasoning_context", "is the same for every app"),
        ('[reasoning]\ncontext = "all"', "reasoning.context", "is the same for every app"),
    ],
)
def test_a_bad_entry_is_refused_with_file_key_path_and_reason(text: str, key: str, reason: str) -> None:
    """An error in an app file can be found without opening the documentation; what is nearly right gets a hint."""
    found = faults(text)
    assert [key] == list(found)
    assert reason in found[key]


def test_all_faults_of_a_file_are_told_at_once() -> None:
    """Nobody mends a file one error at a time."""
    text = 'name = 3\ntools = ["raed"]\nreasoning_effort = "big"\n[mcp.a]\n[mcp.b]\n'
    with pytest.raises(RuleFileError) as caught:
        parse_app("apps/a.toml", text)
    assert "apps/a.toml: 5 faults\n  name: it must be text, not 3\n  mcp.a: a server" in str(caught.value)
    assert ("apps/a.toml", "name") == (caught.value.details["file"], caught.value.details["key"])


def test_a_file_without_a_name_makes_no_app() -> None:
    """The id comes from the file's name, so ``.toml`` alone cannot be called by anything."""
    with pytest.raises(RuleFileError, match="no name that the app could be called by"):
        parse_app("/apps/.toml", "")


def test_what_is_no_toml_is_said_with_its_line() -> None:
    """A syntax error is an app file's error too."""
    with pytest.raises(RuleFileError, match=r"a\.toml, line 2: not valid TOML"):
        parse_app("a.toml", 'name = "x"\n=')


def test_the_first_model_is_the_default_and_a_known_one_is_taken() -> None:
    """The rest of the list is what a person may choose from, by name or pattern."""
    app = App("a", "a", models=("m1", "m2*"))
    assert ("m1", "") == choose_model(app, "")
    assert ("m2-large", "") == choose_model(app, "m2-large")
    assert ("anything", "") == choose_model(App("a", "a"), "anything")


def test_an_unknown_model_falls_back_with_a_warning() -> None:
    """To the declared fallback, else to the first of the list."""
    app = App("a", "a", models=("m1", "m2"))
    assert ("m1", "the app a does not know the model m3: m1 is used (m1, m2)") == choose_model(app, "m3")
    app = App("a", "a", models=("m1", "m2"), fallback="m2")
    assert ("m2", "the app a does not know the model m3: m2 is used (m1, m2)") == choose_model(app, "m3")


def test_the_list_is_about_the_apps_own_endpoint() -> None:
    """Whoever goes elsewhere, or falls over to another place, says which model there is there."""
    app = App("a", "a", endpoint="openai", models=("m1",))
    assert ("m2", "") == choose_model(app, "m2", "anthropic")
    assert ("m1", "") == choose_model(app, "", "anthropic")
    assert "m1" == choose_model(app, "m2", "openai")[0] == choose_model(app, "m2")[0]


@pytest.mark.parametrize(("model", "effort"), [("gpt-5", "minimal"), ("gpt-5-mini", "minimal"), ("gpt-5.6", None)])
def test_apps_that_list_gpt_5_first_think_as_little_as_they_can(model: str, effort: str | None) -> None:
    """The seed's default, for the models that know the word; other models keep their provider's."""
    assert effort == parse_app("a", f'model = ["{model}", "other"]').settings.get("reasoning.effort")
    assert "high" == parse_app("a", f'model = "{model}"\nreasoning_effort = "high"').settings["reasoning.effort"]


def test_the_usual_effort_gives_way_to_what_a_feature_needs() -> None:
    """Nobody is refused for an effort that nobody asked for."""
    assert {} == parse_app("a", 'model = "gpt-5"\n[features]\nweb_search = true').settings


def test_a_constraint_that_the_file_itself_breaks_is_named_at_load() -> None:
    """Features, model and effort of the file are enough to know."""
    text = 'model = ["gpt-5.6", "gpt-5"]\nreasoning_effort = "minimal"\n[features]\nweb_search = true'
    assert {
        "features": "web_search with gpt-5: these models refuse web search together with minimal effort; "
        'take reasoning_effort = "low"'
    } == faults(text)


def test_a_constraint_that_only_the_endpoint_decides_is_named_before_the_network() -> None:
    """The app is fine with one model and refused with another."""
    app = parse_app("a", 'tools = ["read"]\n[features]\nweb_search = true')
    check_constraints(app, "gemini", "gemini-3-pro", "")
    with pytest.raises(SettingError) as caught:
        check_constraints(app, "gemini", "gemini-2.5-pro", "")
    assert "the app a asks gemini-2.5-pro for web_search and tools: these models refuse" in caught.value.message
    assert ("take a model from gemini-3 on, or no tools", "or leave out web_search and tools") == (
        caught.value.next_actions
    )


def test_a_structured_answer_has_a_schema() -> None:
    """The schema is handed on as it is written."""
    app = parse_app("a", '[features]\nstructured_output = true\n[output_schema]\ntype = "object"')
    assert ({"type": "object"}, ("structured_output",)) == (app.output_schema, app.features)


def test_every_row_of_the_data_is_dated_and_names_features_that_there_are() -> None:
    """Constraints are facts about others, so each has a source."""
    data = packaged()
    known = {row.name for row in data.feature} | {"tools"}
    for row in data.constraint:
        assert known >= set(row.features)
        assert "" not in (row.reason, row.advice, row.since, row.source)
    endpoints = {endpoint.id for endpoint in rules.endpoints()}
    for constraint in data.constraint:
        assert endpoints >= set(constraint.endpoints)
    for feature in data.feature:
        assert feature.help
        assert all(endpoints >= set(tool.endpoints) and tool.source for tool in feature.tools)


@given(st.text())
def test_any_text_is_an_app_or_a_reason(text: str) -> None:
    """Whatever stands in a file, the answer is an app or an error of ours."""
    with contextlib.suppress(RuleFileError):
        parse_app("a.toml", text)


def test_a_server_as_text_holds_no_secret() -> None:
    """Errors and traces may show it."""
    given = {"T": "hidden"}
    assert "<Server files>" == repr(Server("files", (), given))
    assert "<Server at a url>" == repr(Server(url="https://me:hidden@host/?key=hidden", headers=given))


def test_an_app_sets_request_fields() -> None:
    """``temperature`` and ``max_tokens`` stand on top, as in other programs' app files; any other field in [params]."""
    app = parse_app("a.toml", "temperature = 0.3\nmax_tokens = 800\n[params]\ntop_p = 0.9\n")
    assert {"params.temperature": 0.3, "params.max_tokens": 800, "params.top_p": 0.9} == app.settings
    assert {"params.temperature": "it is given twice"} == faults("temperature = 0.3\n[params]\ntemperature = 1\n")
