"""A probe of strict hosts: what it concludes is what they demand, and a session goes by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import thinkback
from thinkback.errors import CredentialError, NotFoundError, ProviderError, RuleFileError, SettingError
from thinkback.rules import load_rulebook
from thinkback.session import config, probe
from thinkback_referee import BAD_KEY, HttpError, Referee, Step

KEY = "sk-test-0123456789abcdef"
MUST: dict[str, Any] = {"open_turn": ("must", "should")}
"""Our row calls it a must because the documentation does; the host takes requests without it."""
WITH_TOOLS: dict[str, Any] = {"later": ("must-with-tools", "must-after-tools")}
LATER: dict[str, Any] = {"later": ("must", "must-after-tools")}
"""Our row sends a placeholder where a person leaves reasoning out; the host wants its own reasoning."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty configuration, and a key."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("PROBE_KEY", KEY)
    return tmp_path


def wanted(referee: Referee, endpoint: str, model: str, host: str = "", **changed: Any) -> probe.Wanted:
    return probe.Wanted(endpoint, model, referee.base_url(host or endpoint), key_variable="PROBE_KEY", **changed)


def probed(wanted: probe.Wanted) -> tuple[probe.Prepared, probe.Result]:
    prepared = probe.prepare(wanted)
    return prepared, probe.run(prepared, lambda ask: None)


@pytest.mark.parametrize(
    ("endpoint", "host", "model", "otherwise"),
    [
        ("deepseek", "deepseek", "deepseek-r1", {}),
        ("deepseek", "deepseek", "deepseek-v3.2", {}),
        ("deepseek", "deepseek", "deepseek-v4-pro", {}),
        ("deepseek", "deepseek", "deepseek-chat", {}),
        ("kimi", "kimi", "kimi-k2-thinking", LATER),
        ("kimi", "kimi", "kimi-k2.6", LATER),
        ("kimi", "kimi", "kimi-k3", LATER),
        ("groq", "groq", "qwen/qwen3-32b", {}),
        ("groq", "groq", "openai/gpt-oss-120b", MUST),
        ("groq", "groq", "llama-3.3-70b-versatile", {}),
        ("mistral", "mistral", "mistral-small-latest", {}),
        ("mistral", "mistral", "magistral-medium-latest", {}),
        ("openai-chat", "openai", "gpt-5", {}),
        ("openai", "openai", "gpt-5", MUST),
        ("openai", "openai", "gpt-5.2", MUST),
        ("openai", "openai", "gpt-5.6-sol", MUST),
        ("xai", "xai", "grok-4.5", MUST),
        ("anthropic", "anthropic", "claude-sonnet-4-5", {}),
        ("anthropic", "anthropic", "claude-opus-4-6", {}),
        ("anthropic", "anthropic", "claude-opus-4-8", {}),
        ("anthropic", "anthropic", "claude-opus-5-5", {}),
        # what a turn without tools needs where tools are given is asked of chat completions alone
        ("deepseek-anthropic", "deepseek-anthropic", "deepseek-v4-pro", WITH_TOOLS),
        ("gemini", "gemini", "gemini-2.5-flash", {}),
        ("gemini", "gemini", "gemini-3.5-flash", {}),
        ("gemini-interactions", "gemini-interactions", "gemini-3.5-flash", {}),
        ("gemini-openai", "gemini-openai", "gemini-3.5-flash", {}),
        ("openrouter", "openrouter", "anthropic/claude-haiku-4.5", {}),
        ("openrouter", "openrouter", "google/gemini-3.1-flash-lite-preview", {}),
        ("cohere", "cohere", "command-a-reasoning-08-2025", {}),
        ("ollama-native", "ollama", "qwen3:4b", {"later": ("should", "may")}),
        ("ollama-native", "ollama", "gpt-oss:20b", {**MUST, "later": ("should", "may")}),
        ("bedrock", "bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", {}),
    ],
)
def test_the_probed_row_demands_what_the_host_demands(
    referee: Referee, endpoint: str, host: str, model: str, otherwise: dict[str, Any]
) -> None:
    """The row agrees with the shipped one but where the host is known to differ; it is a row that a file may hold."""
    prepared, result = probed(wanted(referee, endpoint, model, host))
    differences = {found.key: (found.known, found.probed) for found in result.probed.differences}
    differences.pop("refusals", None)
    assert otherwise == differences
    assert prepared.known
    assert [prepared.row] == [load_rulebook({"f": result.text}).rule_for(endpoint, model, config.today())[0].id]


@pytest.mark.parametrize(
    ("host", "model", "dialect"),
    [
        ("deepseek", "deepseek-v4-pro", "openai-chat"),
        ("kimi", "kimi-k3", "openai-chat"),
        ("anthropic", "claude-sonnet-4-5", "anthropic"),
        ("gemini-interactions", "gemini-3.5-flash", "gemini-interactions"),
    ],
)
def test_a_host_that_nobody_knows_is_understood_after_a_probe(
    referee: Referee, host: str, model: str, dialect: str
) -> None:
    """Saved, endpoint and row hold for sessions: nothing is refused in a conversation with tools."""
    prepared, result = probed(wanted(referee, "house", model, host, dialect=dialect))
    assert (False, "house") == (prepared.known, prepared.made.id if prepared.made else "")
    file = probe.save(prepared, result)

    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"{city}: rain"

    before = len(referee.requests)
    with thinkback.open(":memory:") as store:
        session = store.session("talk", endpoint="house", model=model)
        settings = {"reasoning.includeInContext": "false"}
        for prompt in ("What is the weather in Oslo?", "And in Rome?"):
            session.chat(prompt, tools=[get_weather], settings=settings, params=thinking(dialect))
        assert prepared.row == session.target.rule.id
    assert {200} == {exchange.status for exchange in referee.requests[before:]}
    assert KEY not in file.read_text()


def thinking(dialect: str) -> dict[str, Any]:
    """What turns reasoning on, where it is off."""
    if dialect != "anthropic":
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}


def test_a_saved_row_replaces_the_one_of_an_earlier_probe(referee: Referee, place: Path) -> None:
    """It is replaced in the file that has it, whichever that is; the rest of the file stays."""
    _, result = probed(wanted(referee, "deepseek", "deepseek-v4-pro"))
    other = (
        '# mine\n[[rule]]\nid = "other"\nlike = "deepseek-v4"\nmodel = ["x*"]\nsince = "2026-01-01"\nsource = "me"\n'
    )
    old = result.text.replace('open_turn = "must"', 'open_turn = "may"')
    (place / "rules.toml").write_text(f"{old}\n{other}", encoding="utf-8")

    again, second = probed(wanted(referee, "deepseek", "deepseek-v4-pro"))
    assert place / "rules.toml" == probe.save(again, second)
    assert f"{result.text}\n{other}" == (place / "rules.toml").read_text(encoding="utf-8")
    # compared with what is shipped, not with what an earlier probe found
    assert result == second


def test_a_row_of_the_user_is_the_base_and_is_written_out(referee: Referee, place: Path) -> None:
    """A row that is not shipped cannot be relied on in another file, so every key of it is written."""
    mine = '[[rule]]\nid = "mine"\nlike = "deepseek-v4"\nmodel = ["deepseek-v4-pro"]\nsince = "2026-11-01"\n'
    mine += 'source = "me"\n'
    (place / "rules.toml").write_text(mine, encoding="utf-8")
    prepared, result = probed(wanted(referee, "deepseek", "deepseek-v4-pro"))
    assert "mine" == prepared.target.rule.id
    assert "like = " not in result.text
    assert place / "rules" / "probe-deepseek-deepseek-v4-pro.toml" == probe.save(prepared, result)
    rule, _ = load_rulebook(config.user_rule_files()).rule_for("deepseek", "deepseek-v4-pro", config.today())
    assert (prepared.row, prepared.target.rule.controls) == (rule.id, rule.controls)


def test_two_models_may_share_a_file(referee: Referee, place: Path) -> None:
    """Names that differ in a slash only give two rows, neither of which replaces the other."""
    prepared, result = probed(wanted(referee, "groq", "qwen/qwen3-32b"))
    other = result.text.replace("qwen/qwen3-32b", "qwen-qwen3-32b")
    second = prepared._replace(row="probed-groq-qwen-qwen3-32b")
    files = {probe.save(prepared, result), probe.save(second, result._replace(text=other))}
    assert {place / "rules" / "probe-groq-qwen-qwen3-32b.toml"} == files
    rules = load_rulebook(config.user_rule_files()).rules()
    assert {"probed-groq-qwen/qwen3-32b", "probed-groq-qwen-qwen3-32b"} <= {rule.id for rule in rules}


def test_an_alias_leads_to_the_same_row(referee: Referee) -> None:
    """The row is called after the endpoint, however that was called."""
    prepared = probe.prepare(wanted(referee, "moonshot", "kimi-k3", "kimi"))
    assert ("probed-kimi-kimi-k3", "kimi") == (prepared.row, prepared.target.endpoint.id)


def test_files_that_are_not_understood_end_it(referee: Referee, place: Path) -> None:
    """Before anything is sent, with file and line."""
    (place / "rules.toml").write_text("oh no", encoding="utf-8")
    with pytest.raises(RuleFileError, match="line 1"):
        probe.prepare(wanted(referee, "deepseek", "deepseek-v4-pro"))


def test_a_busy_host_is_asked_again(referee: Referee) -> None:
    """A 429 is waited for as long as it asks, and is no evidence."""
    referee.push(Step(fault=HttpError(429, headers={"retry-after-ms": "1"})))
    _, result = probed(wanted(referee, "deepseek", "deepseek-v4-pro"))
    assert () == result.probed.differences
    assert 429 == referee.requests[0].status


def test_a_host_that_stays_busy_ends_the_probe(referee: Referee) -> None:
    """After some attempts the probe ends, and says that nothing was saved."""
    referee.push(*(Step(fault=HttpError(429, headers={"retry-after-ms": "1"})) for _ in range(6)))
    with pytest.raises(ProviderError, match="answered 429") as caught:
        probed(wanted(referee, "deepseek", "deepseek-v4-pro"))
    assert ("wait, then probe again: nothing was saved",) == caught.value.next_actions


def test_a_wrong_key_ends_the_probe(referee: Referee, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request is enough, and the key is in no error."""
    monkeypatch.setenv("PROBE_KEY", BAD_KEY)
    with pytest.raises(ProviderError, match="answered 401") as caught:
        probed(wanted(referee, "deepseek", "deepseek-v4-pro"))
    assert 1 == len(referee.requests)
    assert BAD_KEY not in str(caught.value)


def test_nothing_is_sent_without_a_key_or_a_place(referee: Referee, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is not set, an endpoint that is not known and has no address."""
    monkeypatch.delenv("PROBE_KEY")
    with pytest.raises(CredentialError, match="PROBE_KEY is not set"):
        probe.prepare(wanted(referee, "deepseek", "deepseek-v4-pro"))
    with pytest.raises(CredentialError):
        probe.prepare(probe.Wanted("deepseek", "deepseek-v4-pro", referee.base_url("deepseek")))
    with pytest.raises(NotFoundError, match="no endpoint is called 'house'"):
        probe.prepare(probe.Wanted("house", "deepseek-v4-pro"))
    with pytest.raises(SettingError, match="every host"):
        probe.prepare(probe.Wanted("unknown", "deepseek-v4-pro", referee.base_url("deepseek")))
    assert [] == referee.requests


def test_a_new_host_gets_no_key_of_another(referee: Referee, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --key-env nothing is sent for a key, whatever variables the dialect's maker has."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    made = probe.prepare(probe.Wanted("house", "m", "http://127.0.0.1:9/v1", dialect="anthropic")).made
    assert made is not None
    assert ((), True) == (made.auth.env, made.auth.optional)
