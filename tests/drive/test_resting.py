"""What a program does before a response is waited for."""

from __future__ import annotations

from thinkback.drive.resting import REST, before_reads, resting


class Connection:
    """A network stream that counts."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self, size: int, timeout: float | None = None) -> int:
        self.reads += 1
        return size


class Sealed(Connection):
    """One that lets nobody change it."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "read":
            raise AttributeError(name)
        super().__setattr__(name, value)


def test_it_rests_before_each_read_and_not_afterwards() -> None:
    """What is read is what was asked for; the connection is as it was when the response is over."""
    connection, rests = Connection(), list[int]()
    with resting(lambda: rests.append(connection.reads)), before_reads(connection):
        assert [7, 8] == [connection.read(7), connection.read(8, timeout=1.0)]
    connection.read(9)

    assert ([0, 1], 3) == (rests, connection.reads)
    assert REST.get() is None


def test_nothing_rests_where_nobody_wants_it_or_nothing_can_be_watched() -> None:
    """A response is read all the same."""
    rests: list[int] = []
    with before_reads(connection := Connection()):
        assert 7 == connection.read(7)
    with resting(lambda: rests.append(1)), before_reads(None), before_reads(sealed := Sealed()):
        assert 7 == sealed.read(7)

    assert [] == rests
