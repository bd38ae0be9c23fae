"""``probe``: costs first, the row on standard output, everything else on standard error."""

from __future__ import annotations

import os
import pty
import subprocess
import tomllib

import pytest

from tests.cli.command import KEY, Command
from thinkback_referee import BAD_KEY, Referee

MODEL = ("--model", "deepseek-v4-pro")


def test_without_a_terminal_it_wants_yes(command: Command, referee: Referee) -> None:
    """What it costs is told, nothing is sent, and the exit code says wrong use."""
    done = command("probe", "deepseek", *MODEL, "--base-url", referee.base_url("deepseek"))

    assert (2, "", []) == (done.code, done.out, referee.requests)
    assert "at most 20 requests" in done.err
    assert "4096 tokens of output" in done.err
    assert "price: unknown" in done.err
    assert "add --yes" in done.err


@pytest.mark.parametrize(("answer", "code", "sends"), [(b"n\n", 1, False), (b"y\n", 0, True)])
def test_on_a_terminal_it_asks(command: Command, referee: Referee, answer: bytes, code: int, sends: bool) -> None:
    """A no ends it before anything is sent."""
    master, slave = pty.openpty()
    os.write(master, answer)
    line = command.line("probe", "deepseek", *MODEL, "--base-url", referee.base_url("deepseek"))
    done = subprocess.run(line, stdin=slave, capture_output=True, env=command.environment, timeout=60)
    os.close(slave)
    os.close(master)

    assert (code, sends) == (done.returncode, referee.requests != [])
    assert b"Continue? [y/N]" in done.stderr


def test_the_row_is_printed_with_its_evidence(command: Command, referee: Referee) -> None:
    """Standard output is a rule file; outcomes and differences are beside it, and no key anywhere."""
    url = referee.base_url("kimi")
    done = command("probe", "house", "--model", "kimi-k3", "--base-url", url, "--key-env", "DEEPSEEK_API_KEY", "--yes")
    said = tomllib.loads(done.out)

    assert (0, "house", url) == (done.code, said["endpoint"][0]["id"], said["endpoint"][0]["base_url"])
    assert ("must", "tool-calls", " ") == tuple(said["rule"][0][key] for key in ("open_turn", "scope", "placeholder"))
    assert "the tool's result, without reasoning: refused (400)" in done.err
    assert "reasoning_content is missing" in done.err
    assert "no row was known for this model at this endpoint; compared with unknown" in done.err
    assert "not saved" in done.err
    assert KEY not in done.out + done.err
    assert not command.config.exists()


def test_a_saved_row_is_in_force(command: Command, referee: Referee) -> None:
    """``endpoints`` shows it, ``run`` goes there, and a second probe replaces it."""
    url = referee.base_url("deepseek")
    probe = ("probe", "house", *MODEL, "--base-url", url, "--key-env", "DEEPSEEK_API_KEY", "--yes", "--save")
    first, second = command(*probe), command(*probe, "--json")
    shown = command("endpoints", "house", *MODEL, "--json").json
    answered = command("run", "Hi", "--endpoint", "house", *MODEL)
    file = command.config / "rules" / "probe-house-deepseek-v4-pro.toml"

    assert (0, 0, 0) == (first.code, second.code, answered.code)
    assert str(file) == second.json["saved"]
    assert f"saved in {file}" in first.err
    assert "probed-house-deepseek-v4-pro" == shown["rule"]["id"]
    assert first.out == file.read_text(encoding="utf-8")


def test_json_has_everything(command: Command, referee: Referee) -> None:
    """Outcomes, row, evidence, differences, and what was not probed, for programs."""
    told = command(
        "probe", "deepseek", *MODEL, "--base-url", referee.base_url("deepseek"), "--yes", "--json", "--price", "1,2"
    )
    said = told.json

    assert "price: at most" in told.err
    assert ("deepseek-v4", True, [], None) == (said["compared_with"], said["known"], said["differences"], said["saved"])
    assert "refused without it (400)" == said["evidence"]["open_turn"]
    assert "guard" in said["not_probed"]
    assert {"name", "says", "accepted", "status", "text", "input"} == said["outcomes"][0].keys()
    assert "it requires what the row deepseek-v4 says" in told.err


def test_without_reasoning_nothing_is_saved(command: Command, referee: Referee) -> None:
    """A model that showed no reasoning showed no demands: the row is printed, and kept nowhere."""
    model = ("--model", "llama-3.3-70b-versatile", "--key-env", "DEEPSEEK_API_KEY")
    done = command("probe", "groq", *model, "--base-url", referee.base_url("groq"), "--yes", "--save")

    assert (1, "none") == (done.code, tomllib.loads(done.out)["rule"][0]["form"])
    assert "nothing was saved" in done.err
    assert not command.config.exists()


def test_parameters_go_along(command: Command, referee: Referee) -> None:
    """``--param`` nests by dots and reads JSON; ``--max-tokens`` limits each answer."""
    command(
        "probe",
        "deepseek",
        *MODEL,
        "--base-url",
        referee.base_url("deepseek"),
        "--yes",
        *("--param", "thinking.type=enabled", "--param", "seed=1", "--max-tokens", "99"),
    )
    bodies = [exchange.body for exchange in referee.requests]

    assert bodies
    assert [({"type": "enabled"}, 1, 99)] * len(bodies) == [
        (body["thinking"], body["seed"], body["max_tokens"]) for body in bodies
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--dialect", "klingon"), "there is no 'klingon'"),
        (("--param", "x"), "--param wants KEY=VALUE"),
        (("--price", "cheap"), "--price wants IN,OUT"),
    ],
)
def test_wrong_options_are_refused(command: Command, arguments: tuple[str, ...], says: str) -> None:
    """Before anything else, with what is allowed."""
    done = command("probe", "deepseek", *MODEL, "--yes", *arguments)

    assert 2 == done.code
    assert says in done.err


def test_a_wrong_key_is_told_without_it(command: Command, referee: Referee) -> None:
    """The provider's answer leads to exit code 3."""
    url = referee.base_url("deepseek")
    done = command("probe", "deepseek", *MODEL, "--base-url", url, "--yes", DEEPSEEK_API_KEY=BAD_KEY)

    assert (3, "") == (done.code, done.out)
    assert "answered 401" in done.err
    assert BAD_KEY not in done.err
