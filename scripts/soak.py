"""Laws with examples that nobody has tried yet, kills and crashes, until the time is up. ``make soak`` runs it.

It goes over all of them in rounds, each from a seed of its own and of as many examples as the time allows: in the first
as many as in ``make test``, then ever more. What fails says how to repeat it, and is tried first the next time
(``.hypothesis/examples`` keeps it).
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import time

GROWTH = 5
"""How many times as much the next round tries, where time allows it."""

FULL = 400
"""Times what ``make test`` tries: 20,000 examples of a law."""


def next_times(times: int, took: float, left: float) -> int:
    """How much the next round tries, if one of so many ``times`` ``took`` so many seconds; 0 if none fits."""
    return min(times * GROWTH, FULL, int(times * left / took))


def main(arguments: list[str]) -> int:
    """The worst exit code of all rounds."""
    parser = argparse.ArgumentParser(prog="make soak")
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("tests", nargs="*")
    wanted = parser.parse_args(arguments)
    print(f"seed {wanted.seed} (make soak SEED={wanted.seed} begins with the same examples)", flush=True)
    end = time.monotonic() + 60 * wanted.minutes
    round, tried, times, worst = 0, 0, 1, 0
    while times and tried < FULL:
        seed = wanted.seed + round
        print(f"round {round + 1}: {times} times as much as make test, from seed {seed}", flush=True)
        began = time.monotonic()
        options = ["-q", "-m", "", "-n", "auto", "--dist", "worksteal", "--soak", str(seed), "--times", str(times)]
        code = subprocess.run([sys.executable, "-m", "pytest", *options, *wanted.tests]).returncode
        worst, tried, round = max(worst, code), tried + times, round + 1
        now = time.monotonic()
        times = next_times(times, now - began, end - now)
    print(f"{round} rounds, {tried} times as much as make test, seed {wanted.seed}: {'failed' if worst else 'nothing'}")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
