"""Measures as Prometheus reads them: well formed, bounded, and of all workers on one page."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from thinkback.proxy.report import Report
from thinkback.servers.gateway.incoming import Notes
from thinkback.servers.gateway.telemetry.metrics import MOST, REQUESTS, SPOOL, Metrics, merged

ROW = re.compile(r'[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? [0-9.e+-]+')


def metrics(worker: str = "") -> Metrics:
    """Measures of a process that started at second 1."""
    return Metrics(worker, clock=lambda: 1.0)


def test_a_request_is_counted_by_dialect_upstream_and_status() -> None:
    """Models, which clients choose, are no labels; what became of reasoning is counted by key as well."""
    made = metrics()
    report = Report(model="m", upstream="deepseek/v4", reattach="partial; missing=2", reasoning_tokens=7)
    notes = Notes(report, degraded="store")
    notes.phases["body"] = 0.25
    made.request("anthropic", 200, 0.3, notes, ended="client", key="k1")
    rows = made.page().splitlines()

    assert 'thinkback_requests_total{front="anthropic",upstream="deepseek",status="200"} 1' in rows
    assert 'thinkback_tokens_total{upstream="deepseek",kind="reasoning"} 7' in rows
    assert 'thinkback_reattach_total{result="partial",key="k1",upstream="deepseek"} 1' in rows
    assert 'thinkback_degraded_total{part="store"} 1' in rows
    assert 'thinkback_ended_early_total{by="client"} 1' in rows
    assert 'thinkback_phase_seconds_total{phase="body"} 0.25' in rows
    assert 'thinkback_request_seconds_bucket{front="anthropic",le="0.25"} 0' in rows
    assert 'thinkback_request_seconds_bucket{front="anthropic",le="0.5"} 1' in rows
    assert 'thinkback_request_seconds_bucket{front="anthropic",le="+Inf"} 1' in rows
    assert 'thinkback_request_seconds_sum{front="anthropic"} 0.3' in rows
    assert 'thinkback_request_seconds_count{front="anthropic"} 1' in rows


def test_a_gauge_is_asked_when_the_page_is() -> None:
    """Values that go up and down are not kept."""
    made = metrics()
    waiting = [3]
    made.gauge(SPOOL, lambda: waiting[0])
    first = made.page()
    waiting[0] = 0

    assert "thinkback_spool_bytes 3\n" in first
    assert "thinkback_spool_bytes 0\n" in made.page()


def test_labels_are_bounded() -> None:
    """More names than ``MOST`` are one."""
    made = metrics()
    for number in range(MOST * 3):
        made.request("openai-chat", 200, 0.1, Notes(Report(upstream=f"u{number}/m")))
    rows = [row for row in made.page().splitlines() if row.startswith(REQUESTS.name)]

    assert MOST + 1 == len(rows)
    assert any('upstream="other"' in row and row.endswith(f" {2 * MOST}") for row in rows)


def test_pages_of_workers_are_one_page() -> None:
    """What is said of a family stands once, above the rows of all."""
    pages = []
    for worker in "01":
        made = metrics(worker)
        made.request("gemini", 200, 0.1, Notes())
        pages.append(made.page())
    page = merged([*pages, ""])

    assert 1 == page.count(f"# TYPE {REQUESTS.name} counter")
    assert 2 == len([row for row in page.splitlines() if row.startswith(f"{REQUESTS.name}{{")])
    assert all(f'worker="{worker}"' in page for worker in "01")
    heads = [row.split()[2] for row in page.splitlines() if row.startswith("# TYPE")]
    at = {name: page.index(f"# TYPE {name} ") for name in heads}
    assert sorted(at.values()) == list(at.values())


@given(st.lists(st.tuples(st.text(max_size=8), st.integers(100, 599), st.floats(0, 1e6)), max_size=20))
def test_every_page_can_be_read(requests: list[tuple[str, int, float]]) -> None:
    """Whatever an upstream is called."""
    made = metrics()
    for name, status, seconds in requests:
        made.request("openai-chat", status, seconds, Notes(Report(upstream=name)))

    assert [] == [row for row in made.page().split("\n") if row and not row.startswith("# ") and not ROW.fullmatch(row)]
