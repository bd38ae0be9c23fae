"""``python -m bench``: every figure as a table, and ``bench/latest.json``. Figures that miss their aim say "short"."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import textwrap
import time
import traceback
from pathlib import Path

import msgspec

from bench import (
    append,
    clients,
    growth,
    histories,
    ingest,
    logs,
    plan,
    postgres,
    readers,
    search,
    size,
    start,
    tags,
    terminals,
    transport,
    viewer,
)
from bench.measure import Figure, Group

GROUPS: tuple[Group, ...] = (
    start.GROUP,
    ingest.GROUP,
    readers.GROUP,
    clients.GROUP,
    tags.GROUP,
    append.GROUP,
    logs.GROUP,
    postgres.GROUP,
    plan.GROUP,
    growth.GROUP,
    search.GROUP,
    size.GROUP,
    histories.GROUP,
    terminals.GROUP,
    transport.GROUP,
    viewer.GROUP,
)
LATEST = Path(__file__).parent / "latest.json"
_ROW = "{:<22} {:>9} {:<12} {:>8} {:>9} {:>6}  {:<5} {}"


def main() -> int:
    """Run what was asked for; 0 also where figures fall short, 1 where one could not be measured."""
    names = [group.name for group in GROUPS]
    parser = argparse.ArgumentParser(prog="python -m bench", description="What thinkback costs, as ratios.")
    parser.add_argument("--quick", action="store_true", help="smaller inputs, fewer rounds: to see a trend")
    parser.add_argument("--only", metavar="NAME", help=f"one group ({', '.join(names)}); writes no latest.json")
    options = parser.parse_args()
    if options.only is not None and options.only not in names:
        parser.error(f"there is no group {options.only!r}; groups are {', '.join(names)}")
    began = time.monotonic()
    print(f"CPython {platform.python_version()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    print("vs limit: cost (rates: rate) of thinkback / of the limit. peer: cost of the peer / of thinkback.")
    print("+-: half the spread between quartiles over the median.\n")
    print(_ROW.format("figure", "value", "unit", "vs limit", "peer", "+-", "", "aim"))
    figures: list[Figure] = []
    failed = 0
    for measurement in [one for group in GROUPS if options.only in (None, group.name) for one in group.measurements]:
        try:
            figures.append(measurement(options.quick))
        except Exception:  # one figure that cannot be had must not cost the others
            failed += 1
            traceback.print_exc()
        else:
            print(row(figures[-1]), flush=True)
    if options.only is None and not failed:
        LATEST.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")
    short = [figure.name for figure in figures if figure.met is False]
    print(f"\n{time.monotonic() - began:.0f} s; short: {', '.join(short) or 'none'}; could not be measured: {failed}")
    return 1 if failed else 0


def row(figure: Figure) -> str:
    """The line of ``figure``, and its note below."""
    first = next(iter(figure.peers.values()), None)
    line = _ROW.format(
        figure.name,
        "-" if figure.value is None else f"{figure.value:.4g}",
        figure.unit,
        "" if figure.limit_ratio is None else f"{figure.limit_ratio:.2f}x",
        "" if first is None else f"{first:.1f}x",
        "" if figure.noise is None else f"{figure.noise:.0%}",
        {True: "met", False: "short", None: ""}[figure.met],
        figure.aim,
    )
    peers = ", ".join(f"{name}: {ratio:.1f}x" for name, ratio in figure.peers.items())
    notes = "; ".join(filter(None, (figure.note, peers)))
    return line.rstrip() + "\n" + textwrap.indent(textwrap.fill(notes, 110), "    ")


if __name__ == "__main__":
    sys.exit(main())
