"""``python -m bench.draw``: the figures in ``bench/growth.json`` as curves in ``docs/growth.svg``, plain SVG.

It paints its own background, so that it reads the same on any page, and follows the reader's light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from bench.growth import RESULTS

PICTURE = Path(__file__).parents[1] / "docs" / "growth.svg"
WIDTH, HEIGHT, LEFT, TOP, GAP = 380, 300, 80, 40, 490
LEGEND = 20
Point: TypeAlias = Mapping[str, float]

_STYLE = """
  svg { font: 13px system-ui, sans-serif; }
  .paper { fill: #ffffff; } text { fill: #24292f; } .title { font-weight: 600; font-size: 14px; }
  .grid { stroke: #d8dee4; } .axis { stroke: #57606a; } .line { fill: none; stroke-width: 2; }
  .c0 { stroke: #0550ae; } .c1 { stroke: #bc4c00; } .c2 { stroke: #1a7f37; } .c3 { stroke: #8250df; }
  .c4 { stroke: #bf3989; } .d1 { stroke-dasharray: 7 3; } .d2 { stroke-dasharray: 2 3; }
  .d3 { stroke-dasharray: 9 3 2 3; } .d4 { stroke-dasharray: 4 4; } circle { fill: #ffffff; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    .paper, circle { fill: #0d1117; } text { fill: #e6edf3; } .grid { stroke: #30363d; } .axis { stroke: #8b949e; }
    .c0 { stroke: #79c0ff; } .c1 { stroke: #ffa657; } .c2 { stroke: #7ee787; } .c3 { stroke: #d2a8ff; }
    .c4 { stroke: #ff9bce; }
  }
"""


class Panel(NamedTuple):
    """One diagram: ``series`` names the curve of each figure; both axes are logarithmic."""

    title: str
    unit: str
    series: Mapping[str, str]


PANELS = (
    Panel(
        "One step of an open conversation",
        "milliseconds",
        {
            "append": "append a turn's 7 commits (synchronous NORMAL)",
            "plan": "plan the next request",
            "counts": "count its tokens",
            "fork": "fork at the last commit",
            "search": "search, first page (p95)",
        },
    ),
    Panel(
        "Open a log and read a branch",
        "milliseconds",
        {
            "read": "thinkback, 20 segments, to values",
            "decoded": "raw sqlite3, payloads decoded",
            "scan": "raw sqlite3, one range scan",
        },
    ),
    Panel(
        "Size on disk",
        "megabytes",
        {
            "whole": "log with search index",
            "log": "log",
            "raw": "raw JSON of the messages",
        },
    ),
)


def drawn(points: Sequence[Point]) -> str:
    """The picture of ``points``, each with ``commits`` and what was measured of the figures that the panels name."""
    rows = max(len(panel.series) for panel in PANELS)
    width, height = GAP * len(PANELS) + 20, TOP + HEIGHT + 62 + LEGEND * rows
    parts = [_panel(panel, points, LEFT + GAP * at) for at, panel in enumerate(PANELS)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="What a longer history costs">\n<style>{_STYLE}</style>\n'
        f'<rect class="paper" width="{width}" height="{height}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(panel: Panel, points: Sequence[Point], left: int) -> str:
    curves = [
        (name, [(point["commits"], point[figure]) for point in points if figure in point])
        for figure, name in panel.series.items()
    ]
    xs = [x for _, curve in curves for x, _ in curve]
    every = [value for _, curve in curves for _, value in curve]
    across, up = _scale(xs, left, WIDTH), _scale(every, TOP + HEIGHT, -HEIGHT)
    parts = [_text(left, TOP - 16, panel.title, "title")]
    for tick in _decades(every):
        parts.append(_line("grid", left, up(tick), left + WIDTH, up(tick)))
        parts.append(_text(left - 8, up(tick) + 4, f"{tick:,g}", anchor="end"))
    for tick in _decades(xs):
        parts.append(_line("grid", across(tick), TOP, across(tick), TOP + HEIGHT))
        parts.append(_text(across(tick), TOP + HEIGHT + 18, f"{tick:,.0f}", anchor="middle"))
    parts.append(_line("axis", left, TOP, left, TOP + HEIGHT))
    parts.append(_line("axis", left, TOP + HEIGHT, left + WIDTH, TOP + HEIGHT))
    parts.append(_text(left + WIDTH / 2, TOP + HEIGHT + 38, "commits on the branch", anchor="middle"))
    middle = TOP + HEIGHT / 2
    parts.append(
        f'<text text-anchor="middle" transform="rotate(-90 {left - 54} {middle:g})" x="{left - 54}" y="{middle:g}">'
        f"{escape(panel.unit)}</text>"
    )
    for at, (name, curve) in enumerate(curves):
        places = [(across(x), up(value)) for x, value in curve]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline class="line c{at} d{at}" points="{path}"/>')
        parts += [f'<circle class="c{at}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
        row = TOP + HEIGHT + 62 + LEGEND * at
        parts.append(_line(f"line c{at} d{at}", left, row - 4, left + 34, row - 4))
        parts.append(_text(left + 42, row, name))
    return "\n".join(parts)


def _decades(values: Sequence[float]) -> list[float]:
    """The powers of ten around ``values``."""
    return [10.0**power for power in range(floor(log10(min(values)) + 0.01), ceil(log10(max(values)) - 0.01) + 1)]


def _scale(values: Sequence[float], start: float, length: float) -> Callable[[float], float]:
    """From a value to its place, the decades around ``values`` along ``length``."""
    ends = _decades(values)
    low, high = log10(ends[0]), log10(ends[-1])
    return lambda value: start + length * (log10(value) - low) / ((high - low) or 1)


def _line(kind: str, *ends: float) -> str:
    x1, y1, x2, y2 = (f"{end:.1f}" for end in ends)
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def main() -> None:
    """Draw what was measured last."""
    points = msgspec.json.decode(RESULTS.read_bytes(), type=list[dict[str, float]])
    PICTURE.write_text(drawn(points), encoding="utf-8")


if __name__ == "__main__":
    main()
