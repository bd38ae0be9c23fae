"""The README begins with the two commands that do all the set-up, and these start from a bare checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.test_examples import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_two_commands_stand_above_everything_else() -> None:
    """Under the title and before any other word or picture: ``make demo``, then ``make test``, and nothing besides."""
    opening = re.match(r"# thinkback [^\n]+\n\n```\n(.*?)```\n", README, re.DOTALL)

    assert opening is not None
    assert ["make demo", "make test"] == [line.partition("#")[0].strip() for line in opening[1].splitlines()]


@pytest.mark.parametrize(
    ("target", "environment", "last"), [("demo", ".venv-demo", "demo"), ("test", ".venv", "test-rest")]
)
def test_each_of_them_sets_itself_up(target: str, environment: str, last: str, tmp_path: Path) -> None:
    """In a bare checkout each command first makes its environment, by hashed requirements."""
    for name in ("Makefile", "pyproject.toml", "referee/pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    planned = subprocess.run(
        ["make", "--dry-run", target], cwd=tmp_path, env=bare, capture_output=True, text=True, check=True
    ).stdout
    made = planned.index(f"-m venv {environment}\n")
    installed = planned.index(f"{environment}/bin/python -m pip", made)

    assert "--require-hashes" in planned[installed:].splitlines()[0]
    assert installed < planned.rindex(last)
