"""The page on keys of a gateway: its commands run, and its codes and files are those of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.docs.test_examples import ROOT
from thinkback.servers.gateway.commands.gateway import gateway_command
from thinkback.servers.gateway.config.reading import read_config

PAGE = (ROOT / "docs" / "gateway-keys.md").read_text(encoding="utf-8")


def test_the_commands_run_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in a place of their own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (block,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines():
        arguments = shlex.split(line.removeprefix("$ thinkback gateway"))
        result = CliRunner().invoke(gateway_command, arguments, standalone_mode=False)
        assert None is result.exception, line


def test_the_configuration_is_one() -> None:
    """It is read without a fault."""
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert "env:THINKBACK_SECRET" == read_config("gateway.toml", block).secrets.current


def test_the_codes_are_those_that_are_said() -> None:
    """Every code on the page stands in the code of the gateway, of its exchanges, or of a client's dialect."""
    places = (ROOT / "src/thinkback" / name for name in ("servers/gateway", "proxy", "wire"))
    source = "".join(file.read_text(encoding="utf-8") for place in places for file in place.rglob("*.py"))
    codes = re.findall(r"`([a-z]+(?:_[a-z]+)+)`", PAGE)
    assert 10 <= len(codes)
    assert [] == [code for code in codes if f'"{code}"' not in source]
