"""An office on a server that goes away: what was told lasts, what fails says so, and all goes on by itself."""

from __future__ import annotations

import psycopg
import pytest

from tests.stores.gateway_state.test_conformance import SLOT, row
from tests.stores.postgres_server import Server
from thinkback.errors import StoreError
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.records import Answered, Claimed, Spent, UnderWay, Use


def test_an_office_survives_a_server_that_crashes() -> None:
    """Without its server every call fails with a word of advice; when it is back, nothing that was told is gone."""
    with Server(durable=True) as server:
        office = open_gateway_state(server.url())
        office.keys.create(row(1))
        office.spending.add([Spent("k1", "total", Use(1, 2, 3, 4))])
        assert Claimed() == office.replays.claim(SLOT, b"body", "a", 0, 100)
        server.crash()
        for work in (
            lambda: office.keys.find(row(1).digest),
            lambda: office.spending.add([Spent("k1", "total", Use(1))]),
            lambda: office.replays.finish(SLOT, "a", b"sealed", 100),
        ):
            with pytest.raises(StoreError) as caught:
                work()
            assert caught.value.next_actions
        server.start()
        assert row(1) == office.keys.find(row(1).digest)
        assert {"total": Use(1, 2, 3, 4)} == office.spending.read("k1")
        assert UnderWay(100) == office.replays.claim(SLOT, b"body", "b", 50, 150)
        assert office.replays.finish(SLOT, "a", b"sealed", 100)
        assert Answered(b"sealed") == office.replays.claim(SLOT, b"body", "b", 50, 150)
        office.close()


def test_nobody_waits_for_the_disk_to_begin_a_request(database: str) -> None:
    """A row of a rate is durable later than what was answered; what else is stored is durable at once."""
    office = open_gateway_state(database)
    with psycopg.connect(database, autocommit=True) as db:
        db.execute("CREATE TABLE durable (slot bytea, how text)")
        db.execute(
            "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO public.durable VALUES (NEW.slot, current_setting('synchronous_commit')); RETURN NULL; END $$"
        )
        db.execute(
            "CREATE CONSTRAINT TRIGGER at_the_end AFTER INSERT OR UPDATE ON thinkback_gateway.replays "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION noted()"
        )
        assert [0.0, 0.0] == [office.rates.take("t", "k", 7) for _ in range(2)]
        office.replays.claim(SLOT, b"body", "me", 1, 2)
        assert [("off",), ("off",), ("on",)] == db.execute("SELECT how FROM durable").fetchall()
    office.close()
