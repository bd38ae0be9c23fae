"""The configuration file: every default is safe, and a wrong file is told whole, without its values."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import RuleFileError, SettingError
from thinkback.rules import load_rulebook
from thinkback.servers.gateway.config.checking import open_to_strangers
from thinkback.servers.gateway.config.reading import read_config
from thinkback.servers.gateway.config.schema import Config, Server, Viewer
from thinkback.servers.gateway.engine.settings import Effective, said_in
from thinkback.servers.gateway.grant import OPEN
from thinkback.servers.gateway.upstreams.routing import Router


def problems(text: str) -> list[tuple[str, str]]:
    """Key path and what the error says of it, for each problem of ``text``."""
    with pytest.raises(RuleFileError) as caught:
        read_config("gateway.toml", text)
    rows = [line.strip().partition(": ") for line in str(caught.value).splitlines()[1:]]
    return [(path, reason) for path, _, reason in rows]


def test_without_a_file_everything_has_a_safe_default() -> None:
    """An empty file is a whole configuration: loopback, keys asked for, nothing allowed that was not asked for."""
    config = read_config("gateway.toml", "")

    assert Config() == config
    assert ("127.0.0.1", 8484, False, ()) == (
        config.server.host,
        config.server.port,
        config.server.no_auth,
        config.server.cors_origins,
    )


def test_every_problem_is_told_at_once_with_its_key_path_kind_and_reason() -> None:
    """One run of the gateway shows all that is to be mended."""
    text = """
        sever = 1
        [server]
        port = "80"
        hsot = "x"
        no_auth = 1
        allowed_hosts = ["a", 3]
        [store]
        durability = "half"
        [models."m/x"]
        targets = [{upstream = "a"}]
    """

    assert [
        ("sever", "there is no such key; did you mean server?"),
        ("server.port", "must be a whole number from 0 up to 65535 (text stands here)"),
        ("server.hsot", "there is no such key; did you mean host?"),
        ("server.no_auth", "must be true or false (a whole number stands here)"),
        ("server.allowed_hosts[1]", "must be text (a whole number stands here)"),
        ("store.durability", 'must be "full" or "normal" (text stands here)'),
        ('models."m/x".targets[0].model', "is required"),
    ] == problems(text)


def test_what_the_command_line_gave_is_told_as_such() -> None:
    """The file is not searched for what does not stand in it; a plain value that is refused is repeated."""
    text = '[server]\nhost = "0.0.0.0"\n[settings]\nreasoning.effort = "hihg"\n'
    with pytest.raises(RuleFileError) as caught:
        read_config("pub.toml", text, {"server": {"no_auth": True}})

    shown = str(caught.value)
    assert "(127.0.0.1 or ::1) (given on the command line)\n" in shown
    assert "settings.\"reasoning.effort\": cannot be 'hihg' (allowed: none, " in shown
    assert 1 == shown.count("command line")


@pytest.mark.parametrize("name", ["reasoning.budget", "reasoning.budgetAction", "context.limit"])
def test_a_setting_that_the_gateway_does_not_act_on_is_refused(name: str) -> None:
    """At the start and in a request's header, with the reason: otherwise it would seem to be in force."""
    ((place, said),) = problems(f'[server]\nno_auth = true\n[settings]\n{name} = "stop"\n')
    assert f'settings."{name}"' == place
    assert "has no effect in a gateway: " in said
    with pytest.raises(SettingError, match="has no effect in a gateway"):
        said_in({"thinkback-set": f"{name}=stop"})


def test_what_is_wrong_only_together_is_told_too() -> None:
    """Rules that bind several keys are checked once every key is of its kind."""
    text = """
        [server]
        host = "0.0.0.0"
        no_auth = true
        cors_origins = ["*"]
        [store]
        path = "/tmp/x"
        url = "env:DATABASE"
        [upstreams.empty]
        [models.a]
        fallbacks = ["b", "c"]
        [models.b]
        fallbacks = ["a"]
        targets = [{upstream = "", model = "m", weight = 0}]
    """

    assert [
        "server.no_auth",
        "server.cors_origins[0]",
        "store.url",
        "secrets.current",
        "upstreams.empty",
        "models.a.fallbacks[0]",
        "models.a.fallbacks[1]",
        "models.b.targets",
        "models.b.targets[0].upstream",
        "models.b.fallbacks[0]",
    ] == [path for path, _ in problems(text)]


@pytest.mark.parametrize(
    ("listen", "server"),
    [
        ("127.0.0.1:8485", "127.0.0.1"),
        ("[::1]:0", "::1"),
        ("view.example:443", "view.example"),
        ("8485", ""),
        (":8485", ""),
        ("::1:8485", ""),
        ("127.0.0.1:65536", ""),
        ("127.0.0.1:8484", ""),
        ("http://127.0.0.1:8485", ""),
    ],
)
def test_the_viewer_listens_at_an_address_of_its_own(listen: str, server: str) -> None:
    """With a port, which is another one than the gateway's; its names are checked as the gateway's are."""
    text = f'[viewer]\nlisten = "{listen}"\nallowed_hosts = ["a b"]'
    wrong = ["viewer.listen"] * (not server)

    assert [*wrong, "viewer.allowed_hosts[0]"] == [path for path, _ in problems(text)]
    assert not server or server == Viewer(listen).server.host


SECRET = "sk-live-0123456789"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f'[secrets]\ncurrent = "{SECRET}"', "secrets.current"),
        (f'[secrets]\nprevious = "{SECRET}"', "secrets.previous"),
        (f'[server]\nmetrics_key = "{SECRET}"', "server.metrics_key"),
        (f'[upstreams.a]\nendpoint = "openai"\nkey = "{SECRET}"', "upstreams.a.key"),
        (f'[upstreams.a]\nendpoint = "openai"\nkey_env = "{SECRET}"', "upstreams.a.key_env"),
        (f'[upstreams.a]\nendpoint = "openai"\nheaders = {{x-api-key = "{SECRET}"}}', "upstreams.a.headers.x-api-key"),
        (f'[upstreams.a]\nendpoint = "openai"\nproxy = "http://me:{SECRET}@h"', "upstreams.a.proxy"),
        (f'[upstreams.a]\nbase_url = "http://me:{SECRET}@h"', "upstreams.a.base_url"),
        (f'[store]\nurl = "postgresql://me:{SECRET}@h/d"\n[secrets]\ncurrent = "env:S"', "store.url"),
        (f'[store]\nurl = "postgresql://h/d?password={SECRET}"\n[secrets]\ncurrent = "env:S"', "store.url"),
        (f'[settings]\n"reasoning.effort" = "{SECRET}"', 'settings."reasoning.effort"'),
        (f'[logs]\nlevel = "{SECRET}"', "logs.level"),
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(text: str, path: str) -> None:
    """Secrets are references; one that stands in the file is named by its place alone."""
    found = problems(text)

    assert [path] == [place for place, _ in found]
    assert SECRET not in str(found)


def test_references_to_secrets_are_taken() -> None:
    """Variables and files are how secrets are given."""
    config = read_config(
        "gateway.toml",
        """
        [store]
        url = "env:DATABASE"
        [secrets]
        current = "file:/run/secrets/now"
        previous = "env:BEFORE"
        [upstreams.house]
        base_url = "https://llm.example/v1"
        key_env = "HOUSE_KEY"
        headers = {authorization = "env:HOUSE_HEADER", x-team = "blue"}
        [models.fast]
        targets = [{upstream = "house", model = "m", weight = 2}]
        settings = {reasoning.effort = "low"}
        """,
    )

    assert "HOUSE_KEY" == config.upstreams["house"].key_env
    assert 2 == config.models["fast"].targets[0].weight


@pytest.mark.parametrize(
    "settings", ['reasoning.effort = "low"', '"reasoning.effort" = "low"', 'reasoning = {effort = "low"}']
)
def test_settings_have_their_names_however_they_are_written(settings: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dotted key makes tables in TOML; requests go by the names of settings, at each place where some stand."""
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    text = f"""
        [settings]
        {settings}
        [upstreams.house]
        endpoint = "openai-chat"
        base_url = "https://llm.example/v1"
        settings = {{{settings}}}
        [models.fast]
        targets = [{{upstream = "house", model = "m"}}]
        settings = {{{settings}}}
        [models.other]
        targets = [{{upstream = "openai", model = "gpt-5.5"}}]
        settings = {{{settings}}}
        """
    config = read_config("gateway.toml", text, None, load_rulebook())
    router = Router(config, load_rulebook())
    chosen = [router.choose(name, OPEN).current for name in ("fast", "other", "house/m")]

    assert [{"reasoning.effort": "low"}] * 4 == [config.settings, *(route.settings for route in chosen)]
    assert ["low"] * 3 == [Effective().of(config.settings, route.settings, {}, {}, {}).effort for route in chosen]


def test_what_the_command_says_lies_over_the_file() -> None:
    """Options are checked together with the file."""
    config = read_config("gateway.toml", '[server]\nport = 1\nhost = "::1"', {"server": {"port": 9, "no_auth": True}})

    assert Server(host="::1", port=9, no_auth=True) == config.server


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0"])
def test_a_time_is_a_number_of_seconds(value: str) -> None:
    """TOML knows numbers that no clock does."""
    assert ["server.drain_timeout"] == [path for path, _ in problems(f"[server]\ndrain_timeout = {value}")]


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5)
NAMES = st.sampled_from(["server", "port", "models", "targets", "upstreams", "a", "settings", "reasoning", "headers"])


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner)))
def test_no_file_breaks_the_reader(value: object) -> None:
    """Whatever stands in a table, it is a configuration or a list of problems."""
    from thinkback.servers.gateway.config import reading

    tree = value if isinstance(value, dict) else {"server": value}
    faults = list(reading.faults_of(tree))

    assert all(fault.path and fault.reason for fault in faults)


def test_a_place_for_clients_credentials_has_none_of_its_own_and_is_one_of_its_dialect() -> None:
    """Two of a dialect could not be told apart, and what signs requests cannot be a client's."""
    text = """
        [upstreams.a]
        endpoint = "anthropic"
        credentials = "client"
        key_env = "KEY"
        account = "x"
        headers = { x-api-key = "env:KEY" }
        [upstreams.b]
        base_url = "https://other.example/v1"
        credentials = "client"
        [upstreams.c]
        endpoint = "openai-chat"
        credentials = "client"
        [upstreams.d]
        endpoint = "bedrock"
        base_url = "https://bedrock-runtime.us-east-1.amazonaws.com"
        credentials = "client"
    """
    with pytest.raises(RuleFileError) as caught:
        read_config("gateway.toml", text, None, load_rulebook({}))

    assert [
        "upstreams.a.key_env: is the client's, with credentials = client: leave it out",
        "upstreams.a.account: is the client's, with credentials = client: leave it out",
        "upstreams.a.headers.x-api-key: is the client's, with credentials = client: leave it out",
        "upstreams.c.credentials: upstreams.b takes clients' credentials of the same dialect, openai-chat",
        "upstreams.d.credentials: bedrock takes no key that a client could send: use the gateway's own",
    ] == [line.strip() for line in str(caught.value).splitlines()[1:]]


def test_organisations_are_of_clients_whom_the_provider_names() -> None:
    """And their tenants have names that tenants can have."""
    text = """
        [upstreams.a]
        endpoint = "anthropic"
        organisations = { org = "default" }
        [upstreams.b]
        endpoint = "gemini"
        credentials = "client"
        organisations = { org = "default" }
        [upstreams.c]
        endpoint = "openai"
        credentials = "client"
        organisations = { org = "No Tenant", other = "team-1" }
    """
    with pytest.raises(RuleFileError) as caught:
        read_config("gateway.toml", text, None, load_rulebook({}))

    assert [
        "upstreams.a.organisations: is for clients' own credentials: set credentials = client, or leave it out",
        "upstreams.c.organisations.org: a tenant is named with small letters, digits, - and _, at most 63 of them",
        "upstreams.b.organisations: responses of gemini name no organisation: its clients need keys of the gateway",
    ] == [line.strip() for line in str(caught.value).splitlines()[1:]]


@pytest.mark.parametrize(
    ("server", "upstream", "open"),
    [
        ({}, {}, []),
        ({"allowed_hosts": ["localhost:1", "[::1]", "127.0.0.1"]}, {}, []),
        ({"allowed_hosts": ["llm.example.net"]}, {}, ["mine"]),
        ({"host": "0.0.0.0"}, {}, ["mine"]),
        ({"host": "0.0.0.0"}, {"organisations": {}}, []),
        ({"host": "0.0.0.0"}, {"organisations": {"org": "default"}}, []),
        ({"host": "0.0.0.0"}, {"endpoint": "gemini"}, []),
    ],
)
def test_a_place_that_strangers_may_use_is_known(
    server: dict[str, object], upstream: dict[str, object], open: list[str]
) -> None:
    """Where other machines reach the gateway, by its address or by a proxy's name, and no list says who may come."""
    mine = {"endpoint": "anthropic", "credentials": "client", **upstream}
    config = msgspec.convert({"server": server, "upstreams": {"mine": mine}}, Config)
    assert open == list(open_to_strangers(config, load_rulebook({})))
