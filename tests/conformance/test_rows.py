"""Each shipped rule row is needed: with it the referee takes a conversation, without it one is refused or forgotten."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.conformance.moves import KEY, TOOLS
from thinkback.errors import ThinkbackError
from thinkback.model.rule import Rule
from thinkback.rules import load_rulebook
from thinkback.rules.book import Rulebook
from thinkback.session.session import Session
from thinkback.session.store import SessionStore, open
from thinkback_referee import LOST, Referee
from thinkback_referee.personas import PROVIDERS

# Endpoint to the name the referee plays it under, where it plays it in the endpoint's dialect.
HOSTS = {
    "anthropic": "anthropic",
    "azure-openai": "azure",
    "bedrock": "bedrock",
    "bedrock-claude": "bedrock-claude",
    "codex": "codex",
    "cohere": "cohere",
    "copilot": "copilot",
    "deepseek": "deepseek",
    "deepseek-anthropic": "deepseek-anthropic",
    "deepseek-responses": "deepseek",
    "gemini": "gemini",
    "gemini-interactions": "gemini-interactions",
    "gemini-openai": "gemini-openai",
    "groq": "groq",
    "kimi": "kimi",
    "meta": "meta",
    "mistral": "mistral",
    "ollama-native": "ollama",
    "open-responses": "lmstudio",
    "openai": "openai",
    "openrouter": "openrouter",
    "openrouter-responses": "openrouter",
    "vertex": "vertex",
    "vertex-claude": "vertex-claude",
    "xai": "xai",
}
HEADERS = {"codex": {"chatgpt-account-id": "account-1"}}
DAY = "2026-11-21"
# Rows for models that do not reason: there is nothing to give back.
PLAIN = {"gemma3:4b", "llama3.2:3b"}
THOUGHTLESS = {"azure-openai-chat-models", "cohere-plain", "gemini-2.0", "openai-chat-models"}
BOOK = load_rulebook()


class Played(NamedTuple):
    """A rule row and a model of the referee that it is about."""

    row: Rule
    host: str
    model: str


# Where several personas share a host: which of them speaks the endpoint's dialect.
PERSONAS = {"openrouter": "openrouter", "gemini-openai": "gemini_compat", "bedrock-claude": "bedrock"}
OF_DIALECT = {
    "openai-chat": "chat",
    "openai-responses": "responses",
    "gemini-interactions": "interactions",
    "mistral": "chat",
}


def models(endpoint: str, host: str) -> list[str]:
    """The models that the host serves in the endpoint's dialect."""
    dialect = BOOK.endpoint(endpoint).dialect
    served = PROVIDERS[PERSONAS.get(endpoint) or OF_DIALECT.get(dialect, dialect)].models(host)
    return [model for model in served if dialect != "anthropic" or "deepseek" in host or "claude" in model]


def played() -> list[Played]:
    """One model for each row that the referee plays and that takes reasoning back."""
    found: dict[str, Played] = {}
    for endpoint, host in HOSTS.items():
        for model in models(endpoint, host):
            row, _ = BOOK.rule_for(endpoint, model, DAY)
            if row.form != "none" and row.id not in THOUGHTLESS and model not in PLAIN:
                found[row.id] = Played(row, host, model)
    return sorted(found.values(), key=lambda item: item.row.id)


def without(row: Rule) -> Rulebook:
    """The rulebook with ``row`` saying nothing but what controls there are."""
    silent = msgspec.structs.replace(
        row,
        form="none",
        open_turn="never",
        later="never",
        missing=(),
        placeholder="",
        placeholder_on="never",
        signed_calls=False,
        keep_switch=None,
        drop_switch=None,
        server_drop=None,
    )
    return Rulebook(endpoints=(), rules=(silent,), models=())


def talk(store: SessionStore, referee: Referee, case: Played, name: str) -> Session:
    """Two turns with tools; errors are left to what the referee noted."""
    session = store.session(
        name,
        endpoint=case.row.endpoint if case.row.endpoint != "*" else case.host,
        model=case.model,
        base_url=referee.base_url(case.host),
        api_key=KEY,
        headers=HEADERS.get(case.host, {}),
    )
    session.set("reasoning.enabled", value=True)
    session.set("reasoning.effort", "high")
    options: dict[str, Any] = {"tools": TOOLS, "system": "You help."}
    for prompt in ("What is the weather in Oslo and then the time?", "And what is the weather in Rome?"):
        reply = session.chat(prompt, **options)
        while reply.tool_calls:
            results = {call.id: f"result of {call.name}" for call in reply.tool_calls}
            reply = session.generate(tool_results=results, **options)
    return session


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@pytest.mark.parametrize("case", played(), ids=lambda case: case.row.id)
def test_with_its_row_a_model_is_given_what_it_demands(case: Played, referee: Referee, tmp_path: Path) -> None:
    """No request is refused, and the model still knows what it noted in the turn under way."""
    with open(tmp_path / "log.db") as store:
        thinks = any(commit.kind == "reasoning" for commit in talk(store, referee, case, "with").log())
    assert [] == [seen.verdict.reason for seen in referee.requests if seen.status >= 400]
    last = referee.requests[-1].step
    assert last is not None
    if thinks and case.row.open_turn in ("must", "should"):
        assert LOST not in last.text


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@pytest.mark.parametrize("case", played(), ids=lambda case: case.row.id)
def test_without_its_row_a_model_is_not(case: Played, referee: Referee, tmp_path: Path) -> None:
    """Taken out of compile, the row is missed: a request is refused, or the model has lost its notes."""
    with open(tmp_path / "log.db") as store:
        store.__dict__["rulebook"] = without(case.row)
        with contextlib.suppress(ThinkbackError):
            talk(store, referee, case, "without")
    refused = [seen.verdict.reason for seen in referee.requests if seen.status == 400]
    answers = [seen.step.text for seen in referee.requests if seen.step is not None]
    assert refused or any(LOST in answer for answer in answers)
