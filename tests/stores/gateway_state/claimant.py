"""A process that claims slots: ``python -m tests.stores.gateway_state.claimant PLACE NAME COUNT`` prints those it got.

It claims the slots 0 to COUNT as ``NAME`` and ends, killed from outside or not, without answering or giving them up.
"""

from __future__ import annotations

import sys

from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.records import Claimed, Slot


def main(place: str, name: str, count: str) -> None:
    """Claim each slot once."""
    office = open_gateway_state(place)
    for number in range(int(count)):
        slot = Slot("t", number.to_bytes(16))
        if office.replays.claim(slot, b"body", name, now=1_000, until=2_000) == Claimed():
            print(number, flush=True)
    office.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
