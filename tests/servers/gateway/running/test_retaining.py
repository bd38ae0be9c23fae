"""The retention of a gateway: what is older goes, from one process, and not because a clock is wrong."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stores.postgres_server import Server
from thinkback.drive.hooks import Hooks
from thinkback.drive.leases import Holder
from thinkback.errors import ThinkbackError
from thinkback.log.protocol import Query
from thinkback.log.seal import seal
from thinkback.model.commits import Draft, Head, Message, Step
from thinkback.servers.gateway.config.schema import Store as StoreConfig
from thinkback.servers.gateway.running.retaining import AT_ONCE, EVERY, SOON, Retaining
from thinkback.servers.gateway.storing.tenants import TenantLogs
from thinkback.stores.gateway_state import open_gateway_state

DAY = 86_400_000_000
NOW = 20_000 * DAY


class Gateway:
    """What a gateway process has for its retention, with clocks that are set."""

    def __init__(self, place: str, days: int | None = 30) -> None:
        self.time, self.steady = NOW, 0
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.logs, self.office = TenantLogs(place, StoreConfig()), open_gateway_state(place)
        self.retaining = Retaining(
            self.logs,
            self.office,
            place,
            lambda event, fields: self.said.append((event, fields)),
            lambda: self.time,
            lambda: self.steady,
        )
        self.retaining.days = days

    def wait(self, time: int, wall: int | None = None) -> None:
        """Let time go by; the clock on the wall may say otherwise."""
        self.steady += time
        self.time += time if wall is None else wall

    def run(self) -> int:
        """All rounds until there is a pause; how many."""
        rounds = 1
        while self.retaining.step() == SOON:
            rounds += 1
        return rounds

    def say(self, tenant: str, name: str, age: int) -> None:
        """A session of one message, of so many days ago."""
        log, time = self.logs.of(tenant), self.time - age * DAY
        log.create_session(name, name, time)
        commits = seal(Step(name, (Draft("user", Message(f"zebra {name}")),), time), Head())
        log.append(name, name, commits, Head())

    def left(self, tenant: str) -> set[str]:
        """The sessions of a tenant whose words are found."""
        log = self.logs.of(tenant)
        while log.search.fill():
            pass
        return {hit.session for hit in log.search.find(Query("zebra", limit=1000))}

    def close(self) -> None:
        """Close what is open."""
        self.logs.close()
        self.office.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a gateway keeps everything."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        return server.make_database(f"retained {secrets.token_hex(4)}")
    return str(tmp_path)


@pytest.fixture
def gateway(place: str) -> Iterator[Gateway]:
    """One process."""
    made = Gateway(place)
    yield made
    made.close()


def test_what_is_older_is_erased_in_every_tenants_log(gateway: Gateway) -> None:
    """A few sessions at a time; what is younger stays, and grows older; without the setting nothing goes."""
    for number in range(AT_ONCE + 1):
        gateway.say("acme", f"old-{number}", 31)
    gateway.say("acme", "young", 1)
    gateway.say("other", "old", 40)
    gateway.say("other", "last", 0)
    gateway.retaining.days = None
    assert EVERY == gateway.retaining.step()
    assert AT_ONCE + 2 == len(gateway.left("acme"))
    gateway.retaining.days = 30
    assert 3 <= gateway.run()
    assert ({"young"}, {"last"}) == (gateway.left("acme"), gateway.left("other"))
    assert AT_ONCE + 1 == gateway.said[0][1]["commits"]
    for _ in range(30):
        gateway.wait(DAY)
        gateway.run()
    assert (set(), {"last"}) == (gateway.left("acme"), gateway.left("other"))
    assert [] == [problem for log in ("acme", "other") for problem in gateway.logs.of(log).fsck()]


def test_a_session_with_a_turn_under_way_loses_its_words_the_next_time(gateway: Gateway) -> None:
    """The others of the same run lose theirs at once."""
    gateway.say("acme", "busy", 40)
    gateway.say("acme", "idle", 40)
    gateway.say("acme", "young", 0)
    holder = Holder(gateway.logs.of("acme"), "busy", Hooks())
    holder.take("main")
    gateway.run()
    assert {"busy", "young"} == gateway.left("acme")
    holder.release()
    gateway.wait(DAY // 24)
    gateway.run()
    assert {"young"} == gateway.left("acme")


def test_a_clock_that_jumps_erases_nothing_until_it_went_on_for_a_day(gateway: Gateway) -> None:
    """One that is mended before never did; the gateway says that it waits."""
    gateway.say("acme", "today", 0)
    gateway.run()
    gateway.wait(DAY // 24, 4000 * DAY)
    gateway.run()
    assert ({"today"}, "retention_waits") == (gateway.left("acme"), gateway.said[-1][0])
    gateway.wait(DAY // 24, -4000 * DAY)
    gateway.run()
    gateway.wait(DAY // 24, 4000 * DAY)
    gateway.run()
    gateway.wait(DAY // 2)
    gateway.run()
    assert {"today"} == gateway.left("acme")
    gateway.wait(DAY // 2)
    gateway.run()
    assert set() == gateway.left("acme")


def test_a_clock_that_is_wrong_from_the_start_erases_nothing(gateway: Gateway) -> None:
    """The log itself says what time it was."""
    gateway.say("acme", "today", 0)
    gateway.wait(0, 4000 * DAY)
    gateway.run()
    assert {"today"} == gateway.left("acme")


def test_one_process_applies_it(place: str, gateway: Gateway) -> None:
    """Another takes over where that one is gone."""
    for number in range(AT_ONCE + 1):
        gateway.say("acme", f"old-{number}", 31)
    gateway.say("acme", "young", 0)
    assert SOON == gateway.retaining.step()
    other = Gateway(place)
    assert EVERY == other.retaining.step()
    other.wait(DAY // 24)
    other.run()
    assert {"young"} == other.left("acme")
    other.close()


def test_a_log_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    """It is told of."""
    gateway = Gateway(str(tmp_path))
    (tmp_path / "aaa.db").write_bytes(b"not a database, " * 100)
    gateway.say("acme", "old", 31)
    gateway.say("acme", "young", 0)
    with pytest.raises(ThinkbackError):
        gateway.run()
    gateway.run()
    assert {"young"} == gateway.left("acme")
    gateway.close()
