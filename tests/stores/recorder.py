"""A process that records responses: forks of one session and sessions of its own, and says so after each.

``python -m tests.stores.recorder LOG COUNT NAME`` prints the id of each step once ``record`` has returned. The session
``shared`` has one step; each fork begins behind it. ``both``: the same new session and branch as other recorders, of
whom one wins.
"""

from __future__ import annotations

import sys

from tests.stores.life import recorded
from thinkback.errors import HeadMovedError
from thinkback.log.protocol import MAIN, AppendRequest, Store
from thinkback.model.commits import Head
from thinkback.stores import open_store


def main(log: str, count: str, name: str) -> None:
    """Record ``count`` times each."""
    store = open_store(log)
    (trunk,) = [branch for branch in store.refs.list("shared") if branch.name == MAIN]
    for number in range(int(count)):
        id = f"{name}-{number}"
        _record(store, recorded(f"{id}-fork", trunk.head, "shared", f"{id}-fork", trunk.name))
        _record(store, recorded(f"{id}-new", Head(), f"{id}-new"))
        _record(store, recorded(f"{id}-both", trunk.head, "shared", f"both-{number}", trunk.name))
        _record(store, recorded(f"{id}-same", Head(), f"same-{number}", created=number, name=f"same-{number}"))
    store.close()


def _record(store: Store, entry: AppendRequest) -> None:
    try:
        if store.recognition.record(entry):
            print(entry.step, flush=True)
    except HeadMovedError:
        print(f"{entry.step} came late", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
