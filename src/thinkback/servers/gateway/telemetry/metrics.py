"""Measures of the gateway, as Prometheus reads them.

Promises: few families, and a bounded number of series: what a client could choose (models, paths, keys) is no label,
and a name beyond the first ``MOST`` of a label is counted as ``other``.
"""

from __future__ import annotations

import bisect
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from thinkback.proxy.report import Report
from thinkback.servers.gateway.incoming import Notes

MOST = 64
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
Labels = tuple[tuple[str, str], ...]


class Family(NamedTuple):
    """What a measure is."""

    name: str
    kind: str
    help: str


REQUESTS = Family("thinkback_requests_total", "counter", "Requests by the client's dialect, upstream and status.")
SECONDS = Family("thinkback_request_seconds", "histogram", "Time from the request's head to the end of its response.")
PHASES = Family("thinkback_phase_seconds_total", "counter", "Time spent in each phase of requests.")
TOKENS = Family("thinkback_tokens_total", "counter", "Tokens by kind, as upstreams reported them.")
COLLAPSES = Family(
    "thinkback_cache_collapses_total", "counter", "Requests that lost most of their prompt cache, by cause."
)
REATTACH = Family("thinkback_reattach_total", "counter", "Requests by what became of their earlier reasoning.")
DEGRADED = Family("thinkback_degraded_total", "counter", "Responses given while a part was out of order.")
ENDED = Family("thinkback_ended_early_total", "counter", "Responses that ended early, by who ended them.")
OPEN = Family("thinkback_requests_open", "gauge", "Requests that are being answered.")
STREAMS = Family("thinkback_streams_open", "gauge", "Streams that are being written.")
STARTED = Family("thinkback_started_seconds", "gauge", "When the process started, in seconds since 1970.")
DISK = Family("thinkback_disk_free_bytes", "gauge", "Bytes that are free on the disk of store and spool.")
DISK_FULL = Family("thinkback_disk_full", "gauge", "1 while the disk of store or spool counts as full.")
STORE = Family("thinkback_store_up", "gauge", "1 while the store of keys and conversations answers.")
SPOOL = Family("thinkback_spool_bytes", "gauge", "Bytes of steps that wait for the store.")
ATTEMPTS = Family(
    "thinkback_upstream_attempts_total", "counter", "Requests to upstreams, by status, or why there was none."
)
BROKEN = Family("thinkback_upstream_broken_total", "counter", "Responses of upstreams that broke off.")
FAILOVERS = Family("thinkback_failovers_total", "counter", "Requests that left an upstream for another.")
BREAKERS = Family("thinkback_breakers_open", "gauge", "Models of an upstream that are left alone for a while.")
TASK_FAILURES = Family("thinkback_task_failures_total", "counter", "Failures of tasks beside the server, by task.")
FAMILIES = (
    REQUESTS,
    SECONDS,
    PHASES,
    TOKENS,
    COLLAPSES,
    REATTACH,
    DEGRADED,
    ENDED,
    OPEN,
    STREAMS,
    STARTED,
    SPOOL,
    ATTEMPTS,
    BROKEN,
    FAILOVERS,
    BREAKERS,
    DISK,
    DISK_FULL,
    STORE,
    TASK_FAILURES,
)


class Metrics:
    """The measures of one process. ``gauge`` adds one that is asked for when the page is."""

    def __init__(self, worker: str = "", clock: Callable[[], float] = time.time) -> None:
        self._worker: Labels = (("worker", worker),) if worker else ()
        self._counts: dict[Family, defaultdict[Labels, float]] = {family: defaultdict(float) for family in FAMILIES}
        self._spread: dict[Labels, list[float]] = {}
        self._gauges: dict[tuple[Family, Labels], Callable[[], float]] = {}
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self._counts[STARTED][()] = round(clock(), 3)
        # what an alert asks for is there before it happens first, or no rate is ever seen
        self.count(DEGRADED, {"part": "store"}, 0)
        self.gauge(SPOOL, lambda: 0)

    def gauge(self, family: Family, value: Callable[[], float], labels: Mapping[str, str] | None = None) -> None:
        """Ask ``value`` for the measure whenever the page is made."""
        self._gauges[family, tuple((labels or {}).items())] = value

    def count(self, family: Family, labels: Mapping[str, str], by: float = 1) -> None:
        """Add to a counter."""
        counts, row = self._counts[family], tuple(labels.items())
        if row not in counts:
            row = tuple((name, self._bounded(name, value)) for name, value in row)
        counts[row] += by

    def request(self, front: str, status: int, seconds: float, notes: Notes, *, ended: str = "", key: str = "") -> None:
        """One request that is over, of the key with the id ``key``. ``ended``: who ended it before its time."""
        upstream = notes.report.upstream.partition("/")[0] or "none"
        if not ended and notes.report.failure and status < 400:
            ended = "upstream"
        self.count(REQUESTS, {"front": front, "upstream": upstream, "status": str(status)})
        self._time({"front": front}, seconds)
        for phase, took in notes.phases.items():
            self.count(PHASES, {"phase": phase}, took)
        for kind, tokens in _tokens(notes.report):
            self.count(TOKENS, {"upstream": upstream, "kind": kind}, tokens)
        if notes.report.cache_collapse:
            self.count(COLLAPSES, {"upstream": upstream, "cause": notes.report.cache_collapse})
        if notes.report.reattach:
            word = notes.report.reattach.partition(";")[0]
            self.count(REATTACH, {"result": word, "key": key or "none", "upstream": upstream})
        if notes.degraded:
            self.count(DEGRADED, {"part": notes.degraded})
        if ended:
            self.count(ENDED, {"by": ended})

    def page(self) -> str:
        """All of it in Prometheus' text format."""
        for (family, labels), value in self._gauges.items():
            self._counts[family][labels] = value()
        return "".join(f"{line}\n" for family in FAMILIES for line in self._family(family))

    def _family(self, family: Family) -> Iterator[str]:
        rows = list(self._histogram() if family is SECONDS else self._plain(family))
        if rows:
            yield f"# HELP {family.name} {family.help}"
            yield f"# TYPE {family.name} {family.kind}"
            yield from rows

    def _plain(self, family: Family) -> Iterator[str]:
        for labels, value in sorted(self._counts[family].items()):
            yield f"{family.name}{_labels((*labels, *self._worker))} {_number(value)}"

    def _histogram(self) -> Iterator[str]:
        for labels, row in sorted(self._spread.items()):
            own, total = (*labels, *self._worker), 0.0
            for bound, count in zip((*map(_number, BOUNDS), "+Inf"), row, strict=False):
                total += count
                yield f"{SECONDS.name}_bucket{_labels((*own, ('le', bound)))} {_number(total)}"
            yield f"{SECONDS.name}_sum{_labels(own)} {_number(row[-1])}"
            yield f"{SECONDS.name}_count{_labels(own)} {_number(total)}"

    def _time(self, labels: Mapping[str, str], seconds: float) -> None:
        row = self._spread.setdefault(tuple(labels.items()), [0.0] * (len(BOUNDS) + 2))
        row[bisect.bisect_left(BOUNDS, seconds)] += 1
        row[-1] += seconds

    def _bounded(self, name: str, value: str) -> str:
        names = self._names[name]
        if value in names:
            return value
        if len(names) >= MOST:
            return "other"
        names.add(value)
        return value


def merged(pages: list[str]) -> str:
    """The pages of several processes as one: what is said of a family stands once, above all its rows."""
    heads: dict[str, list[str]] = {}
    for page in pages:
        name = ""
        for line in page.splitlines():
            if line.startswith("# HELP "):
                name = line.split(" ", 3)[2]
            rows = heads.setdefault(name, [])
            if not line.startswith("#") or line not in rows:
                rows.append(line)
    return "".join(f"{line}\n" for rows in heads.values() for line in rows)


def _tokens(report: Report) -> Iterator[tuple[str, int]]:
    kinds = (
        ("input", report.input_tokens),
        ("output", report.output_tokens),
        ("reasoning", report.reasoning_tokens),
        ("cached", report.cached_tokens),
        ("cache_missed", report.cache_missed_tokens),
    )
    return ((kind, tokens) for kind, tokens in kinds if tokens)


def _labels(pairs: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))
