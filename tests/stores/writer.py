"""A writer process: appends to branches, in turns, until each has ``COUNT`` of its steps, and says so after each.

``python -m tests.stores.writer LOG COUNT [SESSION BRANCH NAME] ...`` prints the id of each step, ``NAME-0`` and so on,
once ``append`` has returned. Others may write to the same branches: it then appends on top of theirs.
"""

from __future__ import annotations

import sys

from tests.stores.samples import response_step
from thinkback.errors import HeadMovedError
from thinkback.log.protocol import Store
from thinkback.log.seal import seal
from thinkback.model.commits import Step
from thinkback.stores import open_store


def main(log: str, count: str, *jobs: str) -> None:
    """Append the steps ``NAME-0`` ... to each branch."""
    store = open_store(log)
    for number in range(int(count)):
        for session, branch, name in zip(jobs[::3], jobs[1::3], jobs[2::3], strict=True):
            step = response_step(f"{name}-{number}", thought=f"thought {number} " * 200, time=number)
            while not _append(store, session, branch, step):
                pass
            print(step.id, flush=True)
    store.close()


def _append(store: Store, session: str, branch: str, step: Step) -> bool:
    """Append on whatever the head is; ``False`` if somebody else was first."""
    (head,) = [found.head for found in store.refs.list(session) if found.name == branch]
    try:
        return store.append(session, step.id, seal(step, head), head, branch)
    except HeadMovedError:
        return False


if __name__ == "__main__":
    main(*sys.argv[1:])
