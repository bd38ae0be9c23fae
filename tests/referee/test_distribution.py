"""The referee as a distribution of its own: what is in it, how it starts, and that its README is true."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from thinkback_referee import HOSTS, Step, read_script

ROOT = Path(__file__).parents[2]
README = (ROOT / "referee" / "README.md").read_text(encoding="utf-8")
BARE = {"PATH": os.environ["PATH"]}


def blocks(language: str) -> list[str]:
    """The examples of the README in ``language``."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize(("project", "package"), [(".", "thinkback"), ("referee", "thinkback_referee")])
def test_each_wheel_has_its_own_package_alone(tmp_path: Path, project: str, package: str) -> None:
    """Neither distribution carries the other's modules; both are typed."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / project, check=True, capture_output=True, env=BARE)
    with ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        metadata = wheel.read(next(name for name in names if name.endswith("/METADATA"))).decode()

    assert {package} == {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert f"{package}/py.typed" in names
    assert [] == re.findall(r"Requires-Dist: thinkback.referee.*", metadata)


def test_it_serves_without_thinkback() -> None:
    """``python -m thinkback_referee`` prints each base URL and ends at a signal with exit code 0."""
    line = [sys.executable, "-S", "-m", "thinkback_referee", "--port", "0"]
    environment = {**BARE, "PYTHONPATH": str(ROOT / "referee" / "src")}
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        served = [process.stdout.readline().split()[0] for _ in HOSTS]
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()

    assert (list(HOSTS), "", 0) == (served, rest, process.returncode)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [(("--script", "no-such-file"), "cannot be played"), (("--host", "192.0.2.1"), "cannot listen on 192.0.2.1:8077")],
)
def test_what_cannot_be_served_ends_with_a_reason(arguments: tuple[str, ...], reason: str) -> None:
    """A script that is not there, an address of another machine: exit code 2."""
    line = [sys.executable, "-m", "thinkback_referee", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False)

    assert (2, True) == (done.returncode, reason in done.stderr)


def test_the_example_for_pytest_passes(tmp_path: Path) -> None:
    """The README's test runs as it stands: pytest finds the plugin by itself."""
    (tmp_path / "test_example.py").write_text(blocks("python")[0])
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert 0 == done.returncode, done.stdout
    assert "1 passed" in done.stdout


def test_the_examples_of_scripts_are_read() -> None:
    """The Python script makes steps, and the file's are those that the command plays."""
    names: dict[str, object] = {}
    exec(blocks("python")[1].replace("print", "str"), names)
    script, steps = names["script"], read_script(blocks("json")[0])

    assert isinstance(script, list)
    assert {Step} == {type(step) for step in [*script, *steps]}
    assert len(json.loads(blocks("json")[0])) == len(steps)
