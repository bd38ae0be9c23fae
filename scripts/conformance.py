"""Every dialect to every other and back, as a matrix. ``make conformance`` prints it and keeps it in docs/."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.conformance.moves import PLACES, SITUATIONS, Move, all_moves
from thinkback.session.store import open
from thinkback_referee import Referee

PAGE = Path(__file__).parents[1] / "docs" / "conformance.md"
_HEAD = """# Conformance: every dialect to every other, and back

A conversation begins at the endpoint of its row, goes on at the endpoint of its column, and returns. Each cell holds
four situations in which it moves: after a finished turn, inside an open tool loop, inside one with parallel calls, and
after an interrupted turn. `ok` means that

- both ends accepted every request (the referee judges, and is stricter than the providers);
- no reasoning of the one was sent to the other, or appeared in its answers;
- back at the first endpoint, the opaque values it minted went back to it unchanged.

`make conformance` makes this page; `tests/conformance` fails where a cell would not be `ok`.
"""


def run() -> list[Move]:
    """All moves."""
    with Referee() as referee, tempfile.TemporaryDirectory() as place, open(Path(place) / "log.db") as store:
        return list(all_moves(referee, store))


def matrix(moves: list[Move]) -> str:
    """The moves as a Markdown table, the places beside it, and what went wrong below."""
    cells = {(move.source, move.goal, move.situation): move for move in moves}
    names = [place.dialect for place in PLACES]
    lines = [f"| from, to | {' | '.join(names)} |", f"|---{'|---' * len(names)}|"]
    for source in PLACES:
        row = [_cell([cells[source, goal, s] for s in SITUATIONS]) if goal != source else "" for goal in PLACES]
        lines.append(f"| {source.dialect} | {' | '.join(row)} |")
    lines += ["", "| dialect | endpoint | model |", "|---|---|---|"]
    lines += [f"| {place.dialect} | {place.endpoint} | {place.model} |" for place in PLACES]
    faults = [move for move in moves if move.fault]
    lines += [f"- {m.source.dialect} to {m.goal.dialect}, {m.situation}: {m.fault}" for m in faults]
    carried = sum(move.carried for move in moves)
    lines += ["", f"{len(moves) - len(faults)} of {len(moves)} moves are ok; {carried} opaque values came back."]
    return "\n".join(lines)


def _cell(moves: list[Move]) -> str:
    good = sum(not move.fault for move in moves)
    return "ok" if good == len(moves) else f"{good} of {len(moves)}"


def main() -> None:
    """Print the matrix, keep it, and fail where a cell is not ok."""
    moves = run()
    text = matrix(moves)
    print(text)
    PAGE.write_text(f"{_HEAD}\n{text}\n", encoding="utf-8")
    sys.exit(any(move.fault for move in moves))


if __name__ == "__main__":
    main()
