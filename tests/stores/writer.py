"""A writer process: appends to one session until it has ``count`` steps, and says so after each.

``python -m tests.stores.writer LOG SESSION NAME COUNT [DURABILITY]`` prints the id of each step once ``append``
has returned. Others may write to the same session: it then appends on top of theirs.
"""

from __future__ import annotations

import sys

from tests.stores.samples import response_step
from thinkback.errors import HeadMovedError
from thinkback.log.seal import seal
from thinkback.stores import open_store


def main(log: str, session: str, name: str, count: str, durability: str = "full") -> None:
    """Append the steps ``NAME-0`` ... that are not there yet."""
    store = open_store(log, "full" if durability == "full" else "normal")
    store.create_session(session, session, 1)
    number = 0
    while number < int(count):
        info = store.find_session(session)
        assert info is not None
        step = response_step(f"{name}-{number}", thought=f"thought {number} " * 200, time=number)
        try:
            fresh = store.append(session, step.id, seal(step, info.head), info.head)
        except HeadMovedError:
            continue
        if fresh:
            print(step.id, flush=True)
        number += 1
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
