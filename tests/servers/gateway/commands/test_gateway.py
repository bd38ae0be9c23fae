"""``thinkback gateway`` as a person starts it: what it says, refuses, prints, and that it serves and ends."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.cli.conftest import Inside
from tests.docs.test_examples import ROOT
from thinkback.servers.gateway.commands.advising import absent
from thinkback.servers.gateway.commands.gateway import PACKAGES
from thinkback.servers.gateway.config.reading import read_config
from thinkback.servers.gateway.config.schema import Config, Store, Telemetry, Viewer
from thinkback_referee import Referee


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """``thinkback`` with an empty place of its own."""
    return Command(tmp_path)


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    """The same in this process, for what serves nothing."""
    return Inside(tmp_path, monkeypatch, capsys)


@pytest.fixture
def referee() -> Iterator[Referee]:
    """A provider."""
    with Referee() as made:
        yield made


def test_the_extra_brings_what_is_asked_for_at_the_start() -> None:
    """Whoever installs ``thinkback[gateway]`` can start it; only uvloop may be missing."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extra = [re.split(r"[^\w-]", line)[0] for line in declared["project"]["optional-dependencies"]["gateway"]]

    assert extra == sorted([*PACKAGES, "uvloop"])


def test_a_configuration_is_checked_without_serving(inside: Inside) -> None:
    """Everything that is wrong, at once, with exit code 2; nothing is opened."""
    file = inside.place / "gateway.toml"
    file.write_text('[server]\nport = "x"\n[models.a]\ntargets = [{upstream = "opnai", model = "m"}]\n[stor]\n')
    wrong = inside("gateway", "--check", "--config", str(file))
    file.write_text('[models.a]\ntargets = [{upstream = "opnai", model = "m"}]\n')
    unknown = inside("gateway", "--check", "--config", str(file))
    missing = inside("gateway", "--check", "--config", str(inside.place / "none.toml"))

    assert (2, 2, 2) == (wrong.code, unknown.code, missing.code)
    assert "server.port: must be a whole number from 0 up to 65535 (text stands here)" in wrong.err
    assert "stor: there is no such key; did you mean store?" in wrong.err
    assert "models.a.targets[0].upstream" in unknown.err
    assert "did you mean openai" in unknown.err
    assert "none.toml" in missing.err
    assert 0 == inside("gateway", "--check").code
    assert not (inside.place / ".local").exists()


def test_a_check_says_where_a_configuration_leads_and_what_is_missing(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of providers that are nowhere are told; secrets without which it would not start are a failure. A terminal
    gets whole words.
    """
    file = inside.place / "gateway.toml"
    file.write_text(
        """
        [store]
        path = "/srv/talk"
        [upstreams.house]
        base_url = "http://127.0.0.1:1/v1"
        key_env = "HOUSE_KEY"
        [models.fast]
        targets = [{ upstream = "deepseek", model = "m" }, { upstream = "azure", model = "m" }]
        """
    )
    done = inside("gateway", "--check", "--config", str(file))
    rightly = inside("gateway", "--check", "--config", str(file), HOUSE_KEY="a-key")
    file.write_text('[viewer]\nlisten = "0.0.0.0:8485"\n')
    viewer = inside("gateway", "--check", "--config", str(file))
    file.write_text('[server]\nmetrics_key = "env:M"\n[secrets]\ncurrent = "env:S"\nprevious = "env:T"\n')
    missing = inside("gateway", "--check", "--config", str(file), M="m", T="short")

    assert (0, 0, 2) == (done.code, rightly.code, missing.code)
    assert "stores conversations in /srv/talk\n" in done.out
    assert "upstream house: there is no key HOUSE_KEY; set HOUSE_KEY in the environment\n" in done.out
    assert "upstream house: ready\n" in rightly.out
    assert "model fast at deepseek/m: ready\n" in done.out
    assert "model fast at azure/m: azure-openai has no fixed address" in done.out
    assert "shows them to keys with the right to view at 0.0.0.0:8485, which other machines reach\n" in viewer.out
    plain = inside("gateway", "--check")
    assert f"no {inside.config / 'gateway.toml'}, so the defaults apply: nothing is wrong" in plain.out
    assert "endpoints with a key, for models ENDPOINT/MODEL: deepseek" in plain.out
    assert "; `thinkback keys set ENDPOINT` adds one\n" in plain.out
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    narrow = inside("gateway", "--check", DEEPSEEK_API_KEY="").out
    assert "none (referee/deepseek-v4-pro needs none: `thinkback referee` serves it)" in " ".join(narrow.split())
    assert [] == [row for row in narrow.splitlines() if len(row) > 60 and " " in row.strip()]
    assert ["secrets.current", "secrets.previous"] == re.findall(r"would not start: ([a-z.]+):", missing.err)


def test_a_check_names_the_extras_that_a_configuration_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans, PostgreSQL and the viewer have packages of their own."""
    config = Config(
        store=Store(url="postgresql://h/d"), telemetry=Telemetry(spans=True), viewer=Viewer("127.0.0.1:8485")
    )
    assert [] == list(absent(config))
    for name in ("opentelemetry", "psycopg", "nh3"):
        monkeypatch.setitem(sys.modules, name, None)

    assert [".[otel]", ".[postgres]", ".[viewer]"] == re.findall(r"\.\[\w+\]", " ".join(absent(config)))


def test_a_file_that_cannot_be_read_is_told(inside: Inside) -> None:
    """A directory, and bytes that are no text; for the commands beside the server too."""
    file = inside.place / "gateway.toml"
    file.write_bytes(b"port = \xff")
    for said, given in (("it is not UTF-8 text", file), ("Is a directory", inside.place)):
        for line in (("gateway", "--check"), ("gateway", "keys", "list")):
            done = inside(*line, "--config", str(given))
            assert (2, True) == (done.code, f"cannot be read: {said}" in done.err), done.err


def test_the_configuration_in_force_is_printed_as_a_file(inside: Inside) -> None:
    """What options lay over it included; it can be read again."""
    done = inside("gateway", "--print-config", "--port", "9", "--store", "/srv/x", "--no-auth")
    config = read_config("printed", done.out)

    assert 0 == done.code
    assert (9, True, "/srv/x") == (config.server.port, config.server.no_auth, config.store.path)
    assert Config().timeouts == config.timeouts
    assert tomllib.loads(done.out)["server"]["host"] == "127.0.0.1"


def test_the_file_in_its_usual_place_is_taken(inside: Inside) -> None:
    """``gateway.toml`` in the configuration directory."""
    inside.config.mkdir()
    (inside.config / "gateway.toml").write_text("[server]\nport = 1234\n")

    assert "port = 1234" in inside("gateway", "--print-config").out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "and it has no keys"),
        (("--host", "0.0.0.0", "--no-auth"), "served on loopback alone"),
        (("--store", "postgresql://h/d"), "secrets.current"),
        (("--store", "postgresql://me:secret@h/d"), "a password never stands"),
        (("--port", "70000"), "70000"),
    ],
)
def test_what_is_not_safe_is_not_started(inside: Inside, options: tuple[str, ...], said: str) -> None:
    """Other machines need keys, and secrets do not stand on a command line."""
    given = options if "--store" in options else (*options, "--store", str(inside.place / "store"))
    done = inside("gateway", *given)

    assert 2 == done.code
    assert said in done.err
    assert "secret@" not in done.err


def test_the_start_says_which_upstreams_have_no_key(command: Command) -> None:
    """With the variable that is not set; those that have one are not named."""
    file = command.place / "gateway.toml"
    ways = "".join(
        f'[upstreams.{name}]\nbase_url = "http://127.0.0.1:1/v1"\nkey_env = "{name.upper()}_KEY"\n'
        for name in ("house", "yard")
    )
    file.write_text(f'[store]\npath = "{command.place / "store"}"\n{ways}')
    process = subprocess.Popen(
        command.line("gateway", "--no-auth", "--port", "0", "--config", str(file)),
        env={**command.environment, "YARD_KEY": "a-key"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(6)]
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()

    assert "  upstream house: there is no key HOUSE_KEY; set HOUSE_KEY in the environment\n" == said[4]
    assert (f"  stores conversations in {command.place / 'store'}\n", "") == (said[5], rest)


def test_without_any_configuration_it_serves_and_ends(command: Command, referee: Referee) -> None:
    """Keys of providers from the environment, a log in the user's data directory, Ctrl-C with exit code 0."""
    (rules := command.config / "rules.toml").parent.mkdir()
    rules.write_text(
        f"""
        [[endpoint]]
        id = "deepseek"
        name = "DeepSeek"
        base_url = "{referee.base_url("deepseek")}"
        auth = {{ env = ["DEEPSEEK_API_KEY"] }}
        source = "a test"
        """
    )
    process = subprocess.Popen(
        command.line("gateway", "--no-auth", "--port", "0"),
        env=command.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        said, _, _, _, keyed, place = (process.stdout.readline() for _ in range(6))
        port = int(said.partition(";")[0].rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        body = {"model": "deepseek/deepseek-v4-pro", "messages": [{"role": "user", "content": "Hi."}]}
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()

    assert said.startswith("The gateway serves at http://127.0.0.1:")
    assert "Hi." in answer["choices"][0]["message"]["content"]
    assert 0 == process.returncode
    assert "Traceback" not in errors
    stored = list(command.place.glob("**/gateway/default.db"))
    assert f"  stores conversations in {stored[0].parent}\n" == place
    assert "  endpoints with a key, for models ENDPOINT/MODEL: deepseek" in keyed
    assert 1 == len(stored)
    listed = command("sessions", "--db", str(stored[0]))
    assert response.headers["thinkback-session"][:8] in listed.out
