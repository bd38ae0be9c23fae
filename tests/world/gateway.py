"""A gateway in this process before the stand-ins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers.gateway.harness.running import Running, running
from tests.world.server import PLACES, World

OPENS = "thinkback.servers.gateway.running.wiring:open_behind"


def upstreams(world: World) -> dict[str, dict[str, object]]:
    """Each provider under its own name."""
    return {
        name: {"endpoint": place.endpoint, "base_url": world.url(name), "key_env": "WORLD_KEY"}
        for name, place in PLACES.items()
    }


@contextmanager
def gateway(world: World, place: Path, **changes: Mapping[str, Any]) -> Iterator[Running]:
    """It listens while the block runs; its log of ``default`` is ``place/default.db``, or at ``url`` of ``store``."""
    given: dict[str, Mapping[str, Any]] = {"upstreams": upstreams(world), **changes}
    given["server"] = {"no_auth": True, **changes.get("server", {})}
    store = changes.get("store", {})
    given["store"] = store if "url" in store else {"path": str(place), **store}
    with running(OPENS, **given) as house:
        yield house
