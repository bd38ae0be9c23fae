"""Names that clients ask for by themselves: patterns, defaults, lists in each client's shape, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.cli.command import Command
from tests.servers.gateway.harness.running import Reply, Running, running
from thinkback.servers.gateway.config.naming import asked_for, filled, meant
from thinkback.servers.gateway.config.schema import Alias, To
from thinkback.servers.gateway.running.server import Start
from thinkback.session.config import keys
from thinkback_referee import Referee

MODELS = {
    "gemini-*": {"targets": [{"upstream": "gemini", "model": "gemini-*"}]},
    "claude-opus-*": {"targets": [{"upstream": "anthropic", "model": "claude-opus-5-5"}]},
    "fast": {"targets": [{"upstream": "deepseek", "model": "deepseek-v4-flash"}]},
    "google": {"targets": [{"upstream": "gemini", "model": "gemini-3-pro-preview"}]},
}
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello."}]}),
    "anthropic": ("/v1/messages", {"max_tokens": 2000, "messages": [{"role": "user", "content": "Hello."}]}),
}


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    """One for all."""
    with Referee() as made:
        yield made


@pytest.fixture(scope="module")
def house(referee: Referee, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway with patterns, and a default upstream for clients of Messages."""
    place = tmp_path_factory.mktemp("names")
    (place / "key").write_text("sk-any")
    (place / "key").chmod(0o600)
    upstreams = {
        name: {"endpoint": name, "base_url": referee.base_url(name), "key_file": str(place / "key")}
        for name in ("deepseek", "anthropic", "gemini")
    }
    with running(
        Start().opens,
        server={"no_auth": True},
        store={"path": str(place / "store")},
        upstreams=upstreams,
        models=MODELS,
        routing={"defaults": {"anthropic": "anthropic"}},
    ) as made:
        yield made


@pytest.mark.parametrize(
    ("front", "asked", "reached"),
    [
        ("openai-chat", "gemini-3.1-pro-preview", "gemini/gemini-3.1-pro-preview"),
        ("anthropic", "claude-opus-4-8", "anthropic/claude-opus-5-5"),
        ("anthropic", "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("anthropic", "fast", "deepseek/deepseek-v4-flash"),
        ("anthropic", "deepseek/deepseek-v4-pro", "deepseek/deepseek-v4-pro"),
    ],
)
def test_a_name_of_the_clients_own_leads_somewhere(house: Running, front: str, asked: str, reached: str) -> None:
    """By a pattern, whose * stands in the model; by the default upstream of its front; an alias and a place beat it."""
    path, body = BODIES[front]
    reply = house.ask(path, {**body, "model": asked}, key=None)

    assert (200, reached) == (reply.status, reply.headers.get("thinkback-upstream")), reply.body


def test_an_unknown_name_is_told_the_form_of_one(house: Running) -> None:
    """Where no default is, the error says how places are named."""
    path, body = BODIES["openai-chat"]
    reply = house.ask(path, {**body, "model": "claude-sonnet-4-5"}, key=None)

    assert 404 == reply.status
    assert "ENDPOINT/MODEL" in reply.json["error"]["message"]


def test_a_session_is_named_where_the_log_has_one(referee: Referee, tmp_path: Path) -> None:
    """Neither by a count of tokens nor by an error that stored nothing; by both where it goes on."""
    path, body = BODIES["anthropic"]
    (tmp_path / "key").write_text("sk-any")
    (tmp_path / "key").chmod(0o600)
    base = referee.base_url("anthropic")
    with running(
        Start().opens,
        server={"no_auth": True},
        store={"path": str(tmp_path / "store")},
        upstreams={"anthropic": {"endpoint": "anthropic", "base_url": base, "key_file": str(tmp_path / "key")}},
    ) as house:

        def ask(said: list[Any], path: str = path, **more: Any) -> Reply:
            asked = {**body, "model": "anthropic/claude-sonnet-4-5", "messages": said, **more}
            return house.ask(path, asked, key=None)

        said: list[Any] = [{"role": "user", "content": "Is it cold?"}]
        nothing = [ask(said, f"{path}/count_tokens"), ask(said, tools="none"), ask(said, model="anthropic/")]
        assert [200, 400, 404] == [reply.status for reply in nothing]
        letter = ask([{"role": "user", "content": "x"}], f"{path}/count_tokens")
        assert 0 < letter.json["input_tokens"] < 50  # the letter, and what the template of a chat adds to it
        refused = ask(said, thinking={"type": "none"})
        first = ask(said)
        said += [{"role": "assistant", "content": first.json["content"]}, {"role": "user", "content": "And now?"}]
        later = [first, ask(said, f"{path}/count_tokens"), ask(said, model="anthropic/"), ask(said, stream=True)]
        assert [400, 200, 200, 404, 200] == [reply.status for reply in (refused, *later)]
    (session,) = {reply.headers["thinkback-session"] for reply in later}
    with thinkback.open(tmp_path / "store" / "default.db") as store:
        there = [info.id for info in store.sessions()]
        assert {refused.headers["thinkback-session"], session} == set(there)
        assert all(store.log.read(id) for id in there)
    assert {None} == {reply.headers.get("thinkback-session") for reply in nothing}


def test_gemini_counts_tokens(referee: Referee, tmp_path: Path) -> None:
    """Of contents, and of a whole request that stands in the body; both count the same, and the system counts."""
    (tmp_path / "key").write_text("sk-any")
    (tmp_path / "key").chmod(0o600)
    with running(
        Start().opens,
        server={"no_auth": True},
        store={"path": str(tmp_path / "store")},
        upstreams={"gemini": {"endpoint": "gemini", "key_file": str(tmp_path / "key")}},
    ) as house:
        asked = {"contents": [{"role": "user", "parts": [{"text": "Is it cold? " * 100}]}]}
        told = {**asked, "systemInstruction": {"parts": [{"text": "Be brief. " * 100}]}}
        path = "/v1beta/models/gemini/gemini-3.5-flash:countTokens"
        plain, inside, more = (
            house.ask(path, body, key=None).json
            for body in (
                asked,
                {"generateContentRequest": {"model": "models/other", **asked}},
                {"generateContentRequest": {"model": "models/other", **told}},
            )
        )
    assert ["totalTokens"] == list(plain)
    assert 200 < plain["totalTokens"] == inside["totalTokens"] < more["totalTokens"] - 100


LISTED = {
    "deepseek": ("deepseek", "deepseek-v4-flash"),
    "anthropic": ("anthropic", "claude-haiku-5-5"),
    "gemini": ("gemini", "gemini-3.5-flash"),
    "openai": ("openai", "gpt-5.6-sol"),
    "moon": ("kimi", "kimi-k2.6"),
}
"""By upstream its endpoint and a model that no configuration here names."""
SHAPES = [("/v1/models", {}), ("/v1/models", {"anthropic-version": "2023-06-01"}), ("/v1beta/models", {})]


@pytest.fixture(scope="module")
def plain(referee: Referee, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway that names upstreams alone, one of them by its address."""
    place = tmp_path_factory.mktemp("plain")
    (place / "key").write_text("sk-any")
    (place / "key").chmod(0o600)
    upstreams = {
        name: {"endpoint": endpoint, "base_url": referee.base_url(endpoint), "key_file": str(place / "key")}
        for name, (endpoint, _) in LISTED.items()
    }
    upstreams["sea"] = {"base_url": "https://api.deepseek.com"}
    with running(
        Start().opens, server={"no_auth": True}, store={"path": str(place / "store")}, upstreams=upstreams
    ) as made:
        yield made


@pytest.mark.parametrize(("path", "headers"), SHAPES)
def test_the_catalogue_lists_what_may_be_asked(plain: Running, path: str, headers: dict[str, str]) -> None:
    """Without an alias, in each client's shape, also one by id; upstreams by the names that they have here."""

    def name(listed: dict[str, str]) -> str:
        return listed["id"] if "id" in listed else listed["name"].removeprefix("models/")

    found = plain.ask(path, headers=headers, key=None).json
    names = [name(each) for each in found.get("data", found.get("models"))]
    wanted = [f"{upstream}/{model}" for upstream, (_, model) in LISTED.items()]

    assert {*wanted, "sea/deepseek-v4-pro"} <= set(names)
    assert len(names) == len(set(names)) > 50
    assert wanted == [name(plain.ask(f"{path}/{each}", headers=headers, key=None).json) for each in wanted]


def test_an_endpoint_whose_key_is_set_needs_no_upstream_to_be_listed(
    plain: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may be asked as ``ENDPOINT/MODEL``; one without a key is not listed, and a local server neither."""

    def of(endpoint: str) -> list[str]:
        names = [each["id"] for each in plain.ask("/v1/models", key=None).json["data"]]
        return [name for name in names if name.startswith(f"{endpoint}/")]

    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    assert ([], []) == (of("mistral"), of("ollama"))
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-any")
    assert "mistral/magistral-medium-latest" in of("mistral")
    monkeypatch.delenv("MISTRAL_API_KEY")
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    keys.keep("MISTRAL_API_KEY", "sk-any")
    assert "mistral/magistral-medium-latest" in of("mistral")
    assert of("mistral")[0] == plain.ask(f"/v1/models/{of('mistral')[0]}", key=None).json["id"]


def test_what_is_listed_is_answered(plain: Running) -> None:
    """One of each upstream, by the name in the list."""
    path, body = BODIES["openai-chat"]
    for upstream, (_, model) in LISTED.items():
        reply = plain.ask(path, {**body, "model": f"{upstream}/{model}"}, key=None)
        assert (200, f"{upstream}/{model}") == (reply.status, reply.headers.get("thinkback-upstream")), reply.body


def test_aliases_patterns_and_defaults_are_listed(house: Running) -> None:
    """Models of the catalogue by the names that patterns give them, those of the default by their own."""
    openai = [each["id"] for each in house.ask("/v1/models", key=None).json["data"]]
    anthropic = house.ask("/v1/models", headers={"anthropic-version": "2023-06-01"}, key=None).json
    gemini = [each["name"] for each in house.ask("/v1beta/models", key=None).json["models"]]

    assert {"fast", "google", "gemini-3.5-flash", "gemini-3-pro-preview", "deepseek/deepseek-v4-pro"} <= set(openai)
    assert not any("*" in name for name in openai)
    assert "models/gemini-3.5-flash" in gemini
    named = [each["id"] for each in anthropic["data"]]
    assert (named[0], named[-1]) == (anthropic["first_id"], anthropic["last_id"])
    assert {"claude-haiku-5-5"} <= set(named) - set(openai)
    assert set(openai) < set(named)


@pytest.mark.parametrize("name", ["fast", "gemini-9-new", "deepseek/deepseek-v9"])
def test_one_model_is_found_by_its_name(house: Running, name: str) -> None:
    """Also one that no list has: whoever may ask for it gets an answer here."""
    assert name == house.ask(f"/v1/models/{name}", key=None).json["id"]
    assert f"models/{name}" == house.ask(f"/v1beta/models/{name}", key=None).json["name"]
    assert 404 == house.ask("/v1/models/nowhere", key=None).status


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ('[models."gpt-[45]"]\ntargets = [{upstream = "openai", model = "m"}]', 'models."gpt-[45]"', "matches nothing"),
        ('[models.a]\ntargets = [{upstream = "openai", model = "gpt-*"}]', "models.a.targets[0].model", "as many"),
        ('[models."a**"]\ntargets = [{upstream = "openai", model = "m"}]', 'models."a**"', "two *"),
        ('[models." a"]\ntargets = [{upstream = "openai", model = "m"}]', 'models." a"', "matches nothing"),
        (
            '[models.a]\nfallbacks = ["b*"]\n[models."b*"]\ntargets = [{upstream = "openai", model = "m"}]',
            "",
            "pattern",
        ),
        ('[routing.defaults]\nanthropic = "nowhere"', "routing.defaults.anthropic", "no upstream"),
        ('[routing.defaults]\nnothing = "openai"', "routing.defaults", ""),
    ],
)
def test_a_check_tells_what_can_never_match(tmp_path: Path, text: str, place: str, reason: str) -> None:
    """Each with its key path."""
    (tmp_path / "gateway.toml").write_text(text)
    said = Command(tmp_path)("gateway", "--check", "--config", str(tmp_path / "gateway.toml"))

    assert 2 == said.code
    assert place in said.err
    assert reason in said.err


def test_the_pattern_with_most_letters_decides() -> None:
    """A name beats every pattern; what * stands for is put where the model has one, in order."""
    models = {name: Alias() for name in ("a", "a*", "a-b-*", "*")}

    found = [meant(asked, models) for asked in ("a", "a-b-c", "a-c", "z")]
    assert [("a", ()), ("a-b-*", ("c",)), ("a*", ("-c",)), ("*", ("z",))] == found
    assert None is meant("a*", {"a": Alias()})
    assert "y/x-2" == filled(To("u", "*/x-*"), ("y", "2")).model
    assert ("gpt-4", "") == (asked_for("gpt-*", To("u", "openai/*"), "openai/4"), asked_for("a*", To("u", "m"), "m"))
