"""A person's own files: what they may say, what they replace, and how they are refused."""

from __future__ import annotations

import re

import msgspec
import pytest

from thinkback.errors import RuleFileError
from thinkback.model.rule import Controls, Rule
from thinkback.rules import load_rulebook

TODAY = "2026-11-20"
ENDPOINT = '[[endpoint]]\nid = "mine"\nname = "Mine"\nbase_url = "http://10.0.0.5:8000/v1"\nsource = "me"\n'
RULE = '[[rule]]\nid = "mine"\nendpoint = "vllm"\nsource = "me"\nsince = "2026-01-01"\nmodel = ["qwen*"]\n'
MODEL = '[[model]]\nmodel = "qwen*"\nendpoint = "vllm"\nsource = "me"\n'


def test_a_rule_replaces_the_one_with_its_id() -> None:
    """A row with a shipped id takes its place, also when it is about another endpoint."""
    text = RULE.replace('"mine"', '"vllm"').replace('model = ["qwen*"]\n', "")
    assert "me" == load_rulebook({"f": text}).rule_for("vllm", "m", TODAY)[0].source
    moved = load_rulebook({"f": RULE.replace('"mine"', '"sglang-gpt-oss"')})
    assert "gpt-oss" == moved.rule_for("sglang", "gpt-oss-20b", TODAY)[0].id


def test_a_rule_beats_the_shipped_one_of_equal_rank() -> None:
    """Of two rows that name a model equally well and are equally old, the person's holds."""
    text = RULE.replace('"vllm"', '"deepseek"').replace("qwen*", "deepseek-v4*").replace("2026-01-01", "2026-04-24")
    assert "mine" == load_rulebook({"f": text}).rule_for("deepseek", "deepseek-v4-pro", TODAY)[0].id


def test_the_newest_guess_is_the_persons_own() -> None:
    """A newer row of a person is what an unnamed model of that endpoint takes, as a guess."""
    text = RULE.replace('"vllm"', '"deepseek"').replace("2026-01-01", "2026-11-01")
    rule, guessed = load_rulebook({"f": text}).rule_for("deepseek", "deepseek-v9", TODAY)
    assert ("mine", True) == (rule.id, guessed)


def test_a_rule_for_every_endpoint() -> None:
    """A row for any endpoint holds where the endpoint itself does not name the model."""
    text = RULE.replace('"vllm"', '"*"').replace("qwen*", "*glm*").replace("source", 'form = "field"\nsource')
    book = load_rulebook({"f": text})
    assert ("mine", False) == (book.rule_for("venice", "z-ai-glm-5-3", TODAY)[0].id, False)
    assert "glm-4.7" == book.rule_for("zai", "glm-4.7", TODAY)[0].id
    assert "openai-chat" == book.rule_for("openai-chat", "glm-5", TODAY)[0].id
    assert "venice" == book.rule_for("venice", "z-ai-glm-5-3", "2025-12-31")[0].id


def test_a_pattern_without_literal_characters_still_names_models() -> None:
    """A pattern such as ``??`` is less close than any word and closer than nothing."""
    book = load_rulebook({"f": RULE.replace("qwen*", "??")})
    assert "mine" == book.rule_for("vllm", "m1", TODAY)[0].id
    assert "vllm" == book.rule_for("vllm", "m12", TODAY)[0].id


def test_an_endpoint_of_ones_own() -> None:
    """A new endpoint is found by name and by its URL; without rows it is an unknown host, guessed."""
    book = load_rulebook({"f": ENDPOINT})
    assert "mine" == book.endpoint_for_url("http://10.0.0.5:8000/v1").id
    assert "mine" == book.endpoint_for_url("http://10.0.0.5:8000/v1/sub").id
    assert "unknown" == book.endpoint_for_url("http://10.0.0.5:8000/v2").id
    target = book.target("mine", "qwen3-8b", on=TODAY)
    assert ("unknown", True) == (target.rule.id, target.guessed)
    assert "gpt-oss" == book.target("mine", "gpt-oss-20b", on=TODAY).rule.id


def test_own_hosts_and_account() -> None:
    """Hosts that are given stand in for the base URL, and a configured account is a known one."""
    book = load_rulebook({"f": f'{ENDPOINT}hosts = ["*.mine.example"]\naccount = "acme"\n'})
    assert "mine" == book.endpoint_for_url("https://a.mine.example").id
    assert "unknown" == book.endpoint_for_url("http://10.0.0.5:8000/v1").id
    target = book.target("mine", "m", on=TODAY)
    assert ("acme", True) == (target.account, target.account_known)
    other = book.target("mine", "m", on=TODAY, account="other")
    assert ("other", False) == (other.account, other.account_known)


def test_an_endpoint_url_with_glob_characters_means_itself() -> None:
    """An IPv6 address is not taken for a set of characters."""
    book = load_rulebook({"f": ENDPOINT.replace("10.0.0.5", "[::1]")})
    assert "mine" == book.endpoint_for_url("http://[::1]:8000/v1").id


def test_an_endpoint_without_url_is_found_by_name_only() -> None:
    """A row that leaves the base URL to the caller has nothing to be recognised by."""
    book = load_rulebook({"f": ENDPOINT.replace("http://10.0.0.5:8000/v1", "")})
    assert () == book.endpoint("mine").hosts


def test_an_endpoint_replaces_the_one_with_its_id() -> None:
    """A row with a shipped id takes its place; its rules stay."""
    book = load_rulebook({"f": ENDPOINT.replace('"mine"', '"ollama"')})
    assert "http://10.0.0.5:8000/v1" == book.endpoint("ollama").base_url
    assert "ollama" == book.rule_for("ollama", "m", TODAY)[0].id
    assert 1 == [row.id for row in book.endpoints()].count("ollama")


def test_a_model_replaces_the_one_of_its_endpoint() -> None:
    """A model row takes the place of every shipped one with its endpoint and pattern."""
    text = MODEL.replace('"vllm"', '"*"').replace("qwen*", "deepseek-reasoner") + "context = 7\n"
    book = load_rulebook({"f": text})
    assert 7 == book.model_info("deepseek", "deepseek-reasoner", TODAY).context
    assert 1 == [row.model for row in book.models()].count("deepseek-reasoner")


SERVED = '[[served]]\nendpoint = ["vllm", "kimi"]\nmodels = ["mine-1"]\nsince = "2026-11-01"\nsource = "me"\n'


def test_models_for_lists_are_added() -> None:
    """A person's first, then those that ship, and single models that are known of that endpoint; each once."""
    book = load_rulebook({"f": SERVED + SERVED.replace("mine-1", "kimi-k3") + MODEL.replace("qwen*", "mine-2")})
    kimi = book.served("kimi")
    assert ["mine-1", "kimi-k3"] == kimi[:2]
    assert len(kimi) == len(set(kimi)) > 3
    assert ["mine-1", "kimi-k3", "mine-2"] == book.served("vllm")
    assert "command-a-03-2025" in book.served("cohere")
    assert (["mine-2", "mine-1"], []) == (book.nearest("vllm", "Mine-2"), book.nearest("unknown", "mine-2"))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("mine-1", "mine-*", "served[0].models[0]: write the name of one model: a pattern names none"),
        ("2026-11-01", "soon", "served[0].since: 'soon' is not a date (YYYY-MM-DD)"),
        ('"me"', '""', "served[0].source: say where the facts of this row come from"),
        ("kimi", "nowhere", "served[0].endpoint: no endpoint has the id 'nowhere'"),
    ],
)
def test_malformed_lists_are_refused(old: str, new: str, reason: str) -> None:
    """With the place and the reason."""
    with pytest.raises(RuleFileError, match=re.escape(reason)):
        load_rulebook({"f": SERVED.replace(old, new)})


def test_rules_lists_own_rows_too() -> None:
    """All rows in one list hold the person's, once."""
    book = load_rulebook({"a": ENDPOINT, "b": RULE})
    assert 1 == [row.id for row in book.rules()].count("mine")


LIKE = '[[rule]]\nid = "other"\nlike = "mine"\nmodel = ["yi*"]\nsince = "2026-02-02"\nsource = "you"\n'


def rows(text: str) -> dict[str, Rule]:
    """The rule rows of one file of a person, by id."""
    own = ("mine", "other", "third", "vllm")
    return {row.id: row for row in load_rulebook({"f": text}).rules() if row.id in own}


def test_a_row_takes_over_what_it_does_not_have() -> None:
    """A row like another one takes its endpoint and every key it lacks; what it has itself holds."""
    found = rows(f'{RULE}form = "field"\nopen_turn = "must"\nlater = "may"\n{LIKE}later = "should"\n')["other"]
    assert ("vllm", "field", "must", "should") == (found.endpoint, found.form, found.open_turn, found.later)


def test_what_a_row_says_of_itself_is_not_taken_over() -> None:
    """Id, models, date, source and differences are each row's own."""
    text = f'{RULE}omits = [{{ key = "reasoning", source = "x" }}]\nadds = [{{ key = "reasoning", source = "x" }}]\n'
    found = rows(text + LIKE.replace('model = ["yi*"]\n', ""))["other"]
    assert ("other", ("*",), "2026-02-02", "you") == (found.id, found.model, found.since, found.source)
    assert ((), ()) == (found.omits, found.adds)


def test_nested_tables_are_replaced_whole() -> None:
    """A table that a row has itself is not filled up from the row it is like, and an empty one takes it away."""
    base = f"{RULE}controls = {{ on = {{ think = true }}, off = {{ think = false }} }}\n"
    assert {} == rows(f"{base}{LIKE}controls.on.think = 1\n")["other"].controls.off
    assert Controls() == rows(f"{base}{LIKE}controls = {{}}\n")["other"].controls


def test_a_row_like_one_that_is_like_another() -> None:
    """A chain is followed to its end, wherever in the file its rows stand."""
    third = LIKE.replace('"other"', '"third"').replace('"mine"', '"other"')
    found = rows(f'{third}{LIKE}later = "may"\n{RULE}form = "tags"\nlater = "should"\n')
    assert ("tags", "may") == (found["third"].form, found["third"].later)


def test_a_row_like_a_shipped_one() -> None:
    """A person's row may be like any row of the package, and moves it to another endpoint if it says so."""
    shipped = rows("")["vllm"]
    found = rows(LIKE.replace('"mine"', '"vllm"'))["other"]
    assert shipped == msgspec.structs.replace(
        found, id="vllm", model=("*",), since=shipped.since, source=shipped.source
    )
    moved = rows(LIKE.replace('"mine"', '"vllm"') + 'endpoint = "*"\n')["other"]
    assert ("*", "reasoning") == (moved.endpoint, moved.field)


def test_a_row_like_the_shipped_one_that_it_replaces() -> None:
    """A row may correct one key of the shipped row with its id; rows of the package like that one stay as they are."""
    book = load_rulebook({"f": LIKE.replace('"other"', '"vllm"').replace('"mine"', '"vllm"') + 'field = "thoughts"\n'})
    found = {row.id: row for row in book.rules()}
    assert ("thoughts", "should") == (found["vllm"].field, found["vllm"].open_turn)
    assert "reasoning" == found["vllm-thinking"].field


def test_a_row_of_the_same_file_comes_before_a_shipped_one() -> None:
    """An id that both have means the row beside it."""
    text = RULE.replace('"mine"', '"vllm"') + 'form = "tags"\n' + LIKE.replace('"mine"', '"vllm"')
    assert "tags" == rows(text)["other"].form


ANYWHERE = RULE.replace('"vllm"', '"*"')
MALFORMED = [
    # TOML itself
    ("a = [1,\n", "line 1: not valid TOML", {"line": 1}),
    ('[[rule]]\nid = "x"\nid = "y"\n', "line 3: not valid TOML", {"line": 3}),
    (f"a = {'9' * 5000}", "rules.toml: not valid TOML", {"line": 0}),
    (f"a = {'[' * 5000}", "rules.toml: not valid TOML", {"line": 0}),
    # unknown keys
    ("rules = 3\n", "rules: is not a key of this table", {"key": "rules"}),
    (f"{RULE}colour = 1\n", "rule[0].colour: is not a key of this table", {"key": "rule[0].colour"}),
    (f'{ENDPOINT}auth = {{ key = "x" }}\n', "endpoint[0].auth.key: is not a key of this table", {}),
    # missing keys
    (ENDPOINT.replace('name = "Mine"\n', ""), "endpoint[0].name: is required", {"key": "endpoint[0].name"}),
    (RULE.replace('source = "me"\n', ""), "rule[0].source: is required", {}),
    (ENDPOINT.replace('source = "me"\n', ""), "endpoint[0].source: say where the facts", {}),
    (RULE.replace('"me"', '""'), "rule[0].source: say where the facts", {}),
    (MODEL.replace('source = "me"\n', ""), "model[0].source: say where the facts", {}),
    # wrong types
    ("rule = 3\n", "rule: Expected `array`, got `int`", {"key": "rule"}),
    (RULE.replace('["qwen*"]', '"qwen*"'), "rule[0].model: Expected `array`, got `str`", {}),
    (RULE.replace('"2026-01-01"', "2026-01-01"), "rule[0].since: Expected `str`, got `date`", {}),
    (f'{MODEL}context = "big"\n', "model[0].context: Expected `int`, got `str`", {}),
    # words that are not allowed
    (
        f'{RULE}form = "prose"\n',
        "rule[0].form: Invalid enum value 'prose', allowed: details, field, native, none, tags",
        {},
    ),
    (
        f'{RULE}missing = ["pray"]\n',
        "rule[0].missing[0]: Invalid enum value 'pray', allowed: dummy, flatten-exchange-to-text, none",
        {},
    ),
    (f'{RULE}guard = {{ unknown_account = "x" }}\n', "unknown_account: Invalid enum value 'x', allowed: drop, try", {}),
    (f"{RULE}[rule.controls.effort]\nbig = {{ x = 1 }}\n", "rule[0].controls.effort.big: not an effort word", {}),
    (f'{MODEL}efforts = ["big"]\n', "model[0].efforts[0]: not an effort word", {}),
    (f"{RULE}[rule.controls.display]\nhidden = {{ x = 1 }}\n", "rule[0].controls.display.hidden: not a word", {}),
    (f"{RULE}[rule.controls.verbosity]\nhuge = {{ x = 1 }}\n", "rule[0].controls.verbosity.huge: not a word", {}),
    (
        f'{RULE}forbids = [{{ path = "x", reason = "y", when = "never" }}]\n',
        "rule[0].forbids[0].when: Invalid enum value 'never', allowed: always, not-thinking, thinking",
        {},
    ),
    # dates
    (RULE.replace("2026-01-01", "2026-02-30"), "rule[0].since: '2026-02-30' is not a date", {}),
    (RULE.replace("2026-01-01", "soon"), "rule[0].since: 'soon' is not a date", {}),
    (f'{MODEL}since = "soon"\n', "model[0].since: 'soon' is not a date", {}),
    # rows that make no sense
    (ENDPOINT.replace('"mine"', '""'), "endpoint[0].id: an endpoint needs a name", {}),
    (ENDPOINT.replace('"mine"', '"*"'), "endpoint[0].id: an endpoint needs a name", {}),
    (ENDPOINT.replace("http://10", "10"), "endpoint[0].base_url: base URL: it must begin with http://", {}),
    (RULE.replace('"mine"', '""'), "rule[0].id: a rule needs a name", {}),
    (RULE.replace('["qwen*"]', "[]"), "rule[0].model: name at least one model", {}),
    (RULE.replace("qwen*", ""), "rule[0].model: name at least one model", {}),
    (ANYWHERE.replace("qwen*", "*"), "rule[0].model: a rule for every endpoint must name its models", {}),
    (f'{RULE}later = "may"\n', 'rule[0].form: form "none" sends nothing', {}),
    (f'{RULE}placeholder_on = "all"\n', "rule[0].placeholder: the text that stands in is empty", {}),
    (f'{RULE}missing = ["placeholder"]\n', "rule[0].placeholder: the text that stands in is empty", {}),
    (f'{RULE}missing = ["thinking-off-for-this-turn"]\n', "rule[0].thinking_off: missing names", {}),
    (f'{RULE}missing = ["dummy"]\n', "rule[0].dummy: missing names a dummy", {}),
    (f'{RULE}limit_param = "max_tokens"\n', "rule[0].limit: limit_param names an output limit", {}),
    (f'{RULE}forbids = [{{ path = "x", reason = "" }}]\n', "rule[0].forbids[0]: say what is refused, and why", {}),
    (f"{RULE}refusals = ['a', '(']\n", "rule[0].refusals[1]: not a regular expression", {}),
    (f'{RULE}adds = [{{ key = "reasoning", source = "" }}]\n', "rule[0].adds[0].source: say where", {}),
    (f'{RULE}omits = [{{ key = "reasoning", source = "" }}]\n', "rule[0].omits[0].source: say where", {}),
    (MODEL.replace("qwen*", ""), "model[0].model: name the model", {}),
    (f"{MODEL}context = -1\n", "model[0].context: cannot be negative", {}),
    (f"{MODEL}max_output = -1\n", "model[0].max_output: cannot be negative", {}),
    (f"{MODEL}overhead.tools = -1\n", "model[0].overhead.tools: cannot be negative", {}),
    # names
    (RULE.replace('"vllm"', '"nowhere"'), "rule[0].endpoint: no endpoint has the id 'nowhere'", {}),
    (RULE.replace('"vllm"', '"azure"'), "rule[0].endpoint: no endpoint has the id 'azure'", {}),
    (MODEL.replace('"vllm"', '"nowhere"'), "model[0].endpoint: no endpoint has the id 'nowhere'", {}),
    (ENDPOINT.replace('"mine"', '"Azure"'), "endpoint[0]: another endpoint is called 'Azure' too", {}),
    (f'{ENDPOINT}aliases = ["vllm"]\n', "endpoint[0]: another endpoint is called 'vllm' too", {}),
    # rows like others
    (f"{RULE}like = 3\n", "rule[0].like: Expected `str`, got `int`", {"key": "rule[0].like"}),
    (f'{MODEL}like = "x"\n', "model[0].like: is not a key of this table", {}),
    (f'{RULE}like = "nothing"\n', "rule[0].like: no rule has the id 'nothing'", {"key": "rule[0].like"}),
    (f'{RULE}like = "mine"\n', "rule[0].like: no other rule has the id 'mine'", {}),
    (RULE + LIKE + LIKE.replace('"mine"', '"nothing"'), "rule[2].like: no rule has the id 'nothing'", {}),
    (f'{RULE}like = "other"\n{LIKE}', "rule[1].like: 'mine' is like this row already", {"key": "rule[1].like"}),
    (
        f'{LIKE.replace("other", "third")}{RULE}like = "other"\n{LIKE}',
        "rule[2].like: 'mine' is like this row already",
        {},
    ),
    (f'{RULE}unconfirmed.colour = "red"\n', "rule[0].unconfirmed.colour: name a key of the row", {}),
    (f'{RULE}unconfirmed.later = ""\n', "rule[0].unconfirmed.later: name a key of the row", {}),
    (f'{RULE}colour = "red"\n{LIKE}', "rule[0].colour: is not a key of this table", {}),
    (LIKE.replace('"mine"', '"groq"') + 'later = "may"\n', 'rule[0].form: form "none" sends nothing', {}),
    (LIKE.replace('"mine"', '"groq"').replace('source = "you"\n', ""), "rule[0].source: is required", {}),
    # given twice
    (RULE + RULE, "rule[1].id: rule mine is given twice, first in rules.toml, rule[0].id", {"key": "rule[1].id"}),
    (ENDPOINT + ENDPOINT, "endpoint[1].id: endpoint mine is given twice", {}),
    (MODEL + MODEL, "model[1]: model vllm qwen* is given twice", {}),
]


@pytest.mark.parametrize(("text", "message", "details"), MALFORMED)
def test_malformed_files_are_refused(text: str, message: str, details: dict[str, object]) -> None:
    """A malformed file is refused with its name, the key path or line, and the reason."""
    with pytest.raises(RuleFileError) as caught:
        load_rulebook({"rules.toml": text})
    error = caught.value
    assert error.message.startswith("rules.toml: ")
    assert message in error.message
    assert {"file": "rules.toml", **details}.items() <= error.details.items()


def test_rows_given_in_two_files_are_refused() -> None:
    """The same row in two files is refused with both named."""
    with pytest.raises(RuleFileError, match=r"b\.toml: rule\[0\]\.id: rule mine is given twice, first in a\.toml"):
        load_rulebook({"a.toml": RULE, "b.toml": RULE})


def test_an_alias_may_repeat_its_own_id() -> None:
    """A name that an endpoint gives itself twice is no clash."""
    assert "mine" == load_rulebook({"f": f'{ENDPOINT}aliases = ["mine", "my"]\n'}).endpoint("my").id
