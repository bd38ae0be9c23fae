"""A process that spools steps, or drains them: to be killed in the middle.

``python -m tests.servers.gateway.harness.spooler put DIRECTORY COUNT`` prints the id of each step that is kept;
``drain DIRECTORY FILE`` adds the id of each step it stores to FILE.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.servers.gateway.harness.steps import SECRET, entries
from thinkback.log.protocol import AppendRequest
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.servers.gateway.storing.spool import Spool


def main(what: str, directory: str, rest: str) -> None:
    """Put or drain."""
    spool = Spool(directory, Sealer(SECRET))
    if what == "put":
        for entry in entries(int(rest)):
            spool.put("tenant", entry)
            print(entry.step, flush=True)
        return
    stored = Path(rest)

    def record(tenant: str, entry: AppendRequest) -> None:
        done = stored.read_text().split() if stored.exists() else []
        if entry.step not in done:
            with stored.open("a") as file:
                file.write(f"{entry.step}\n")
        print(entry.step, flush=True)

    spool.drain(record)


if __name__ == "__main__":
    main(*sys.argv[1:])
