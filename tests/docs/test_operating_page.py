"""The page for operators, and what it installs: the unit, the configuration, the dashboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.image_check import instructions, stages
from tests.docs.test_examples import ROOT
from thinkback.proxy.report import Report
from thinkback.rules import load_rulebook
from thinkback.servers.gateway.config.reading import read_config
from thinkback.servers.gateway.config.schema import Server
from thinkback.servers.gateway.http.listening import GRACE, LAST_BYTES
from thinkback.servers.gateway.incoming import Notes
from thinkback.servers.gateway.telemetry.metrics import (
    COLLAPSES,
    DEGRADED,
    ENDED,
    FAMILIES,
    PHASES,
    REATTACH,
    REQUESTS,
    SECONDS,
    SPOOL,
    STARTED,
    TOKENS,
    Metrics,
)

LABELS = {
    "thinkback_upstream_attempts_total": ("upstream", "outcome"),
    "thinkback_upstream_broken_total": ("upstream",),
    "thinkback_failovers_total": ("upstream",),
    "thinkback_breakers_open": ("upstream",),
    "thinkback_disk_free_bytes": ("disk",),
    "thinkback_disk_full": ("disk",),
    "thinkback_task_failures_total": ("task",),
}
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
UNIT = (DEPLOY / "thinkback-gateway.service").read_text(encoding="utf-8")
RULES = (DEPLOY / "prometheus-rules.yml").read_text(encoding="utf-8")
FAULTS = (DEPLOY / "prometheus-rules.test.yml").read_text(encoding="utf-8")
NAME = re.compile(r"thinkback_[a-z_]+")


def expressions(found: Any) -> Iterator[str]:
    """Every query in a dashboard."""
    if isinstance(found, dict):
        yield from (found[key] for key in ("expr", "query") if isinstance(found.get(key), str))
    for each in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from expressions(each)


def exported() -> tuple[set[str], set[str]]:
    """Names of series and of their labels, as a gateway gives them that counted something in every family."""
    metrics = Metrics("0")
    metrics.gauge(SPOOL, lambda: 1.0)
    notes = Notes(Report(upstream="u/m", reattach="complete", input_tokens=1, cache_collapse="tools"), degraded="store")
    notes.phases["body"] = 1.0
    counted = (REQUESTS, SECONDS, PHASES, TOKENS, COLLAPSES, REATTACH, DEGRADED, ENDED, STARTED, SPOOL)
    metrics.request("anthropic", 200, 1.0, notes, ended="client")
    for family in FAMILIES:
        if family not in counted:
            metrics.count(family, dict.fromkeys(LABELS.get(family.name, ()), "x"))
    page = metrics.page()
    return set(re.findall(r"^([a-z_]+)[{ ]", page, re.MULTILINE)), set(re.findall(r"([a-z_]+)=\"", page))


def test_the_dashboard_shows_the_measures_that_there_are() -> None:
    """Each family has a panel; no query names a series or a label that no gateway exports."""
    board = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    asked = [each for each in expressions(board) if "thinkback_" in each]
    names = {name for each in asked for name in NAME.findall(each)}
    series, labels = exported()
    used = {label for each in asked for label in re.findall(r"\bby \((\w+)\)|(\w+)=~?\"", each) for label in label}

    assert {family.name for family in FAMILIES} == {re.sub(r"_bucket$", "", name) for name in names}
    assert names <= series
    assert used - {""} <= labels | {"job"}
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(places) == len(set(places))


def test_the_alerts_are_on_measures_that_there_are() -> None:
    """Expressions of the rules name series that a gateway exports; the page names each alert; each fault is of one."""
    found = set(NAME.findall(RULES)) | set(NAME.findall(PAGE))
    alerts = set(re.findall(r"alert: (\w+)", RULES))
    named = set(re.findall(r"`(Thinkback\w+)`", PAGE))

    assert len(alerts) > 10
    assert found - {"thinkback_gateway"} <= exported()[0]
    assert alerts == named
    assert set(re.findall(r"alertname: (\w+)", FAULTS)) <= alerts


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_the_alerts_fire_at_faults() -> None:
    """Those of the file, and nothing before them."""
    done = subprocess.run(
        ["promtool", "test", "rules", "prometheus-rules.test.yml"], cwd=DEPLOY, capture_output=True, text=True
    )

    assert 0 == done.returncode, done.stdout + done.stderr


def test_the_unit_is_one(tmp_path: Path) -> None:
    """systemd finds nothing to say of it; it waits for open responses longer than the gateway does."""
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert int(seconds) > Server().drain_timeout + GRACE + 3 * LAST_BYTES
    (command,) = re.findall(r"^ExecStart=(\S+) gateway$", UNIT, re.MULTILINE)
    assert f"{command} gateway --check" in PAGE
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    (unit := tmp_path / "thinkback-gateway.service").write_text(UNIT.replace(command, "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)

    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_the_configuration_of_the_service_is_one() -> None:
    """It stores where the unit lets it write, and names the key that the page makes."""
    config = read_config("deploy", (DEPLOY / "gateway.toml").read_text(encoding="utf-8"), None, load_rulebook())

    assert "StateDirectory=thinkback\n" in UNIT
    assert "/var/lib/thinkback" == config.store.path == str(Path(config.logs.audit).parent)
    assert f"{config.server.metrics_key.removeprefix('env:')}=$(" in PAGE


def test_the_page_names_files_that_there_are() -> None:
    """Everything under deploy/ is on the page."""
    named = set(re.findall(r"deploy/([\w.-]+\w)", PAGE)) - {"gateway.env"}

    assert {each.name for each in DEPLOY.iterdir()} == named


def test_the_image_serves_by_what_the_compose_file_gives_it() -> None:
    """Every line of the Dockerfile is understood; files, base images and variables that are named are there."""
    build, final = stages((DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    compose = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    config = read_config("compose", (DEPLOY / "compose.toml").read_text(encoding="utf-8"), None, load_rulebook())
    (command,) = [json.loads(each.text) for each in final if each.word == "ENTRYPOINT"]
    copied = [part for each in build if each.word == "COPY" for part in each.text.split()[:-1]]

    assert " ".join(command) == re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)[0]
    assert copied
    assert all((ROOT / part).exists() for part in copied)
    assert {"${BASE_IMAGE} AS build", "${BASE_IMAGE}"} == {
        each.text for each in (*build, *final) if each.word == "FROM"
    }
    assert "BASE_IMAGE: ${BASE_IMAGE:?" in compose
    assert "dockerfile: deploy/Dockerfile\n" in compose
    assert "./compose.toml:/etc/thinkback/gateway.toml:ro" in compose
    assert re.findall(r"image: (\S+)$", compose, re.MULTILINE) == ["postgres:17"]
    for reference in (config.store.url, config.secrets.current):
        assert f"{reference.removeprefix('env:')}=" in PAGE
    assert config.store.spool.startswith("/var/lib/thinkback/")
    assert "- spool:/var/lib/thinkback\n" in compose


def test_everything_in_the_image_is_hashed() -> None:
    """Each install names hashed requirements, or takes the wheel that was built in the image and nothing else."""
    build, _ = stages((DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    installs = [each.text for each in build if "pip install" in each.text]
    pinned = [re.findall(r"--requirement /source/(requirements/\S+\.txt)", text) for text in installs]

    assert {"requirements/gateway.txt", "requirements/postgres.txt", "requirements/viewer.txt"} == set(pinned[0])
    for text, files in zip(installs, pinned, strict=True):
        assert ("--require-hashes" in text) is bool(files)
        assert files or {"--no-deps", "--no-index"} <= set(text.split())
        assert all("--hash=sha256:" in (ROOT / file).read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize(
    "line", ["ADD a b", "FROM python:3.13-slim", "ARG BASE_IMAGE=python", "RUN", "ENTRYPOINT thinkback"]
)
def test_a_line_of_a_dockerfile_that_is_not_understood_is_refused(line: str) -> None:
    """No line is passed over."""
    with pytest.raises(ValueError, match=r"not understood|no base image|Expecting value"):
        list(instructions(line))
