"""The audit log: one line for each act, private, countable, and never in the way."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.servers.gateway.harness.offices import Clock
from thinkback.servers.gateway.access import audit
from thinkback.servers.gateway.access.audit import NO_AUDIT, Audit


def rows(path: Path) -> list[dict[str, object]]:
    """What is in the file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_act_is_one_line(tmp_path: Path) -> None:
    """Time, act and facts; the file is its owner's alone, and stays so."""
    path = tmp_path / "audit.jsonl"
    log = Audit(path, now=lambda: datetime(2026, 11, 21, tzinfo=UTC))
    log.note("key.created", key="k1", name="two\nlines")
    path.chmod(0o644)
    log.note("stop")
    time = "2026-11-21T00:00:00.000+00:00"
    assert [{"time": time, "act": "key.created", "key": "k1", "name": "two\nlines"}, {"time": time, "act": "stop"}] == (
        rows(path)
    )
    assert 0o600 == path.stat().st_mode & 0o777


def test_a_file_that_was_put_aside_is_begun_anew(tmp_path: Path) -> None:
    """logrotate may rename it at any time."""
    log = Audit(tmp_path / "audit")
    log.note("start")
    (tmp_path / "audit").rename(tmp_path / "audit.1")
    log.note("stop")
    assert ["start"] == [row["act"] for row in rows(tmp_path / "audit.1")]
    assert ["stop"] == [row["act"] for row in rows(tmp_path / "audit")]


def test_a_log_that_cannot_be_written_stops_nothing_and_is_told_once(tmp_path: Path) -> None:
    """One complaint for each run of failures."""
    told: list[str] = []
    log = Audit(tmp_path / "absent" / "audit", told.append)
    log.note("start")
    log.refused("missing_key", "10.0.0.9")
    assert 1 == len(told)
    (tmp_path / "absent").mkdir()
    log.note("start")
    assert ["start"] == [row["act"] for row in rows(tmp_path / "absent" / "audit")]


def test_counts_are_bounded_and_told_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood from many addresses takes little memory; what was counted is written when it is forgotten or at close."""
    monkeypatch.setattr(audit, "COUNTED", 2)
    log = Audit(tmp_path / "audit", clock=Clock().seconds)
    for address in ("a", "a", "b", "c", "c", "c"):
        log.refused("unknown_key", address)
    assert 2 == len(log._counts)
    log.close()
    log.close()
    assert [("a", None), ("b", None), ("a", 1), ("c", None), ("c", 2)] == [
        (row["from"], row.get("more")) for row in rows(tmp_path / "audit")
    ]


def test_nothing_is_written_where_no_file_is_named() -> None:
    """Without a file there is no audit log, and nothing is counted."""
    NO_AUDIT.note("start")
    NO_AUDIT.refused("missing_key", "10.0.0.9")
    NO_AUDIT.close()
    assert {} == NO_AUDIT._counts


def test_a_device_stays_everybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit log that goes to /dev/null does not take it from all others on the machine."""
    changed: list[int] = []
    monkeypatch.setattr(os, "fchmod", lambda descriptor, mode: changed.append(mode))
    Audit("/dev/null").note("start")

    assert [] == changed


def test_guesses_from_one_address_are_one_line(tmp_path: Path) -> None:
    """However each of them ends: who has no key does not fill the disk."""
    log = Audit(tmp_path / "audit.jsonl")
    for ending in range(100):
        log.refused("unknown_key", "10.0.0.9", ending=f"{ending:04}")
    log.close()

    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [None, 99] == [line.get("more") for line in lines]
