"""What a longer history costs: opening it, a fork of it, its next turn, its token count.

``python -m bench.growth 100 1000 10000 100000 1000000`` measures logs of so many commits and keeps the figures in
``bench/growth.json``; ``python -m bench.draw`` draws them. In ``make bench`` the longest has 100,000 commits, with
``--quick`` a tenth of that.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import msgspec

import thinkback
from bench import size
from bench.branching import KEEPS, STRAIGHT, forked, place, texts
from bench.conversation import question, turns
from bench.measure import Figure, Group, Samples, interleaved, timed
from thinkback.log.protocol import MAIN, Origin
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Commit, Head, Step
from thinkback.stores import open_store
from thinkback.stores.rows import COLUMNS, unpack
from thinkback.turn.plan import History

FEW, MANY = 100, 100_000
RESULTS = Path(__file__).parent / "growth.json"
_RANGE = f"SELECT {COLUMNS} FROM commits WHERE segment = 1 AND position BETWEEN 0 AND ? ORDER BY position"


def _many(quick: bool) -> int:
    return MANY // 10 if quick else MANY


def _read(path: Path, session: str) -> list[Commit]:
    """The subject: the file opened, the branch found, its commits as values."""
    store = open_store(path)
    found = store.find_session(session)
    assert found is not None
    commits = store.read(found.id, branch=found.branch)
    store.close()
    return commits


def _scan(path: Path, commits: int) -> list[Any]:
    """The limit: raw sqlite3, one range of the rows of as many commits, none decoded."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute(_RANGE, (commits - 1,)).fetchall()
    assert commits == len(rows)
    return rows


def _decoded(path: Path, commits: int) -> list[Any]:
    """The same rows with each payload unpacked and decoded as any JSON."""
    return [msgspec.json.decode(unpack(row[-2], row[-1])) for row in _scan(path, commits)]


def read_samples(commits: int, rounds: int) -> Samples:
    """Seconds to open and read a branch of 20 segments, and to scan as many rows."""
    log = forked(commits)
    assert log.commits == len(_read(log.log, log.session))
    cases = {
        "thinkback": timed(lambda: _read(log.log, log.session)),
        "one segment": timed(lambda: _read(log.plain, STRAIGHT)),
        "scan": timed(lambda: _scan(log.plain, log.commits)),
        "decoded": timed(lambda: _decoded(log.plain, log.commits)),
    }
    return interleaved(cases, rounds)


def _reading(quick: bool) -> Figure:
    log = forked(_many(quick))
    samples = read_samples(_many(quick), 5 if quick else 11)
    ratio, decoded = samples.ratio("thinkback", "scan"), samples.ratio("thinkback", "decoded")
    straight = samples.ratio("thinkback", "one segment")
    return Figure(
        "growth.read",
        samples.median("thinkback") * 1e3,
        "ms",
        ratio.value,
        aim="<= 3x one range scan",
        met=ratio.value <= 3,
        noise=ratio.noise,
        note=f"{log.commits} commits in {log.segments} segments of as many sessions, opened and read to values; raw "
        f"scan of the rows, not decoded, {samples.median('scan') * 1e3:.0f} ms; {decoded.value:.2f}x the scan with "
        f"payloads decoded as JSON; {straight.value:.2f}x the same branch in one segment",
    )


def fork_samples(commits: int, depths: Sequence[int], rounds: int, slow_rounds: int = 0) -> dict[str, Samples]:
    """Seconds at each depth: of a fork and of a branch in the store, of a branch and a fork of an open session.

    The latter two only for as many rounds as asked: they look the hash up, and a fork is read.
    """
    log = forked(commits)
    history = _read(log.log, log.session)
    heads = {str(depth): head_of(history[: min(depth, len(history))]) for depth in depths}
    names = (f"at-{number}" for number in count())
    with thinkback.open(log.copied("forks"), durability="normal", rules={}, settings={}) as store:
        session = store.session(log.session, endpoint=KEEPS[0], model=KEEPS[1], api_key="none")
        refs, create = store.log.refs, store.log.create_session
        works: dict[str, Callable[[Head], object]] = {
            "fork": lambda at: create(name := next(names), name, 0, Origin(session.id, MAIN, at)),
            "branch": lambda at: refs.create(session.id, next(names), at, MAIN),
            "session.branches.branch": lambda at: session.branches.branch(next(names), at.hash),
            "session.branches.fork": lambda at: session.branches.fork(next(names), at.hash),
        }
        samples = {}
        for name, work in works.items():
            cases = {depth: timed(partial(work, head)) for depth, head in heads.items()}
            times = slow_rounds if name.startswith("session") else rounds
            if times:
                samples[name] = interleaved(cases, times)
    return samples


def _forking(quick: bool) -> Figure:
    depths = (10, 1_000, _many(quick))
    samples = fork_samples(_many(quick), depths, 9 if quick else 25, 3)
    shallow, deep = str(depths[0]), str(depths[-1])
    ratio = samples["fork"].ratio(deep, shallow)
    branch = samples["branch"].ratio(deep, shallow)
    taken = "; ".join(
        f"{name} " + ", ".join(f"{each.median(str(depth)) * 1e3:.2f}" for depth in depths) + " ms"
        for name, each in samples.items()
    )
    return Figure(
        "growth.fork",
        samples["fork"].median(deep) * 1e3,
        "ms",
        aim="a fork and a branch within 1.5x at any depth",
        met=max(ratio.value, branch.value) <= 1.5,
        noise=ratio.noise,
        note=f"at depth {depths[0]}, {depths[1]} and {depths[2]}: {taken} (of a session by a hash, which is looked up; "
        f"a fork of it is opened); fork {ratio.value:.2f}x, branch {branch.value:.2f}x from {shallow} to {deep}",
    )


class Going:
    """An open conversation on a log of so many commits that goes on: each turn is sealed, stored, taken in, planned."""

    def __init__(self, commits: int) -> None:
        log = forked(commits)
        self._store = open_store(log.copied("going"), "normal")
        self._session, self._history = log.session, History(self._store.read(log.session))
        self._turns, self._number = turns(place(), texts()[1]), count()
        self.append: list[float] = []
        self.plan: list[float] = []
        self.counts: list[float] = []
        start = perf_counter()
        assert place().plan(self._history).counts.effective
        self.first_counts = perf_counter() - start

    def sample(self) -> float:
        """Seconds of one turn: the response and a question stored, the next request planned."""
        number, head = next(self._number), self._history.head
        step = Step(f"{head.seq}", (*next(self._turns).answer, question(number)), head.seq)
        start = perf_counter()
        commits = seal(step, head)
        self._store.append(self._session, step.id, commits, head)
        stored = perf_counter()
        self._history.take(commits)
        plan = place().plan(self._history)
        planned = perf_counter()
        assert plan.counts.effective
        counted = perf_counter()
        self.append.append(stored - start)
        self.plan.append(planned - stored)
        self.counts.append(counted - planned)
        return planned - start

    def close(self) -> None:
        """Close the log."""
        self._store.close()


def going_on(sizes: Sequence[int], rounds: int) -> tuple[Samples, dict[int, Going]]:
    """Conversations of these sizes going on by turns."""
    going = {size: Going(size) for size in sizes}
    samples = interleaved({str(size): each.sample for size, each in going.items()}, rounds, warm_up=3)
    for each in going.values():
        each.close()
        del each.append[:3], each.plan[:3], each.counts[:3]
    return samples, going


def _turn(quick: bool) -> Figure:
    many = _many(quick)
    samples, going = going_on((FEW, many), 40 if quick else 80)
    growth = samples.ratio(str(many), str(FEW))
    few_plan, plan = (median(going[size].plan) * 1e3 for size in (FEW, many))
    few_append, append = (median(going[size].append) * 1e3 for size in (FEW, many))
    return Figure(
        "growth.turn",
        samples.median(str(many)) * 1e3,
        "ms/turn",
        aim=f"within 1.5x of the one at {FEW} commits, the plan of it <= 0.2 ms",
        met=growth.value <= 1.5 and plan <= 0.2,
        noise=growth.noise,
        note=f"{growth.value:.2f}x from {FEW} to {many} commits; plan {few_plan:.3f} -> {plan:.3f} ms; the response "
        f"and a question sealed and stored (7 commits, synchronous NORMAL) {few_append:.3f} -> {append:.3f} ms",
    )


def _counting(quick: bool) -> Figure:
    many = _many(quick)
    _, going = going_on((FEW, many), 40 if quick else 80)
    taken = median(going[many].counts) * 1e3
    return Figure(
        "growth.counts",
        taken,
        "ms",
        aim="< 1 ms after the first",
        met=taken < 1,
        note=f"plan.counts after each turn at {many} commits, {median(going[FEW].counts) * 1e3:.3f} ms at {FEW}; the "
        f"first, with the fold of all commits, {going[many].first_counts * 1e3:.0f} ms",
    )


GROUP = Group("growth", (_reading, _forking, _turn, _counting))


def main(sizes: Sequence[int]) -> None:
    """Measure logs of these sizes and keep what was found beside what is known of others."""
    _, going = going_on(sizes, 80)
    kept = msgspec.json.decode(RESULTS.read_bytes(), type=list[dict[str, float]]) if RESULTS.exists() else []
    points = {point["commits"]: point for point in kept}
    for each in sizes:
        reading, forks, weight = read_samples(each, 3), fork_samples(each, (each,), 15), size.chat(each)
        points[forked(each).commits] = {
            "commits": forked(each).commits,
            "append": median(going[each].append) * 1e3,
            "plan": median(going[each].plan) * 1e3,
            "counts": median(going[each].counts) * 1e3,
            "fork": forks["fork"].median(str(each)) * 1e3,
            "search": weight.page,
            "read": reading.median("thinkback") * 1e3,
            "scan": reading.median("scan") * 1e3,
            "decoded": reading.median("decoded") * 1e3,
            "raw": weight.raw / 1e6,
            "log": weight.log / 1e6,
            "whole": weight.whole / 1e6,
        }
        print(points[forked(each).commits], flush=True)
        ordered = [points[commits] for commits in sorted(points)]
        RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=2) + b"\n")


if __name__ == "__main__":
    main([int(one) for one in sys.argv[1:]] or [FEW, 1_000, 10_000, MANY])
