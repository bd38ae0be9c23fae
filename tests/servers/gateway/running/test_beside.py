"""The process of the viewer, from the side of the gateway."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from thinkback.servers.gateway.config.schema import Config, Logs
from thinkback.servers.gateway.running.beside import ViewerOrder, _Beside
from thinkback.servers.gateway.telemetry.logs import Log


def test_a_process_that_cannot_be_started_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later and later, as one that died; the log says why."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    lines: list[Any] = []

    def write(line: bytes) -> None:
        lines.append(json.loads(line))
        if len(lines) == 2:
            beside.end()

    beside = _Beside(ViewerOrder(Config(), 0), Log(Logs(format="json"), write))
    beside.keep()

    assert ["viewer_died"] * 2 == [line["event"] for line in lines]
    assert {"No such file or directory"} == {line["reason"] for line in lines}
    assert lines[0]["again_in"] < lines[1]["again_in"]
