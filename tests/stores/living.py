"""A process that changes a log at random for ever, and says so after each change.

``python -m tests.stores.living LOG NAME SEED DURABILITY`` prints a line once a change has returned. Who has the log
as it was at the start and the seed can make the same changes (``tests.stores.life``).
"""

from __future__ import annotations

import random
import sys
from itertools import count

from tests.stores.life import change
from thinkback.stores import open_store


def main(log: str, name: str, seed: str, durability: str) -> None:
    """Change the log until somebody ends this process."""
    store = open_store(log, "full" if durability == "full" else "normal")
    chance = random.Random(int(seed))
    for number in count():
        change(chance, store, f"{name}-{number}")(store)
        print(number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
