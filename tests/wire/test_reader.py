"""What holds of the response readers of every dialect: broken framings, first failures, ends that are missing."""

from __future__ import annotations

import pytest

from tests.wire.event_stream import event
from thinkback.model.blocks import Origin, Text
from thinkback.model.commits import Failure
from thinkback.wire.dialect import ResponseReader
from thinkback.wire.framing import Framing
from thinkback.wire.registry import PACKAGES, dialect

NETWORK = Failure("gone", type="network")
DAMAGED = event("messageStop", {})[:-1] + b"!"


def reader(name: str, framing: Framing) -> ResponseReader:
    """A reader of a response."""
    return dialect(name).reader(Origin(name, "https://example.org", "model"), framing, None, "r1")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_body_that_its_framing_finds_corrupt_is_malformed(name: str) -> None:
    """The fault is told, not that the end is missing."""
    read = reader(name, "event-stream")

    assert [] == read.feed(DAMAGED) + read.close()
    error = read.result().response.error
    assert error is not None
    assert ("malformed", True) == (error.type, "checksum" in error.message)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_fault_of_the_body_comes_before_that_of_the_connection(name: str) -> None:
    """The first failure stays."""
    read = reader(name, "event-stream")
    read.feed(DAMAGED)
    read.fail(NETWORK)
    read.close()

    error = read.result().response.error
    assert error is not None
    assert "malformed" == error.type


@pytest.mark.parametrize("name", PACKAGES)
def test_the_first_failure_stays_and_nothing_is_read_behind_it(name: str) -> None:
    """Neither another failure nor further bytes change what happened."""
    read = reader(name, "sse")
    read.fail(NETWORK)
    read.fail(Failure("later", type="timeout"))

    assert [] == read.feed(b"data: {]\n\n") + read.close()
    assert NETWORK == read.result().response.error


@pytest.mark.parametrize("name", PACKAGES)
def test_a_last_event_without_its_end_is_cut_off_and_one_in_the_middle_is_malformed(name: str) -> None:
    """So it is in every stream; a document that breaks off is malformed."""
    bodies: list[tuple[Framing, bytes]] = [("sse", b"data: {"), ("sse", b"data: {\n\ndata: {}\n\n"), ("json", b"{")]
    kinds = []
    for framing, raw in bodies:
        read = reader(name, framing)
        read.feed(raw)
        read.close()
        error = read.result().response.error
        kinds.append(error and error.type)

    assert ["truncated", "malformed", "malformed"] == kinds


@pytest.mark.parametrize("name", PACKAGES)
def test_there_is_no_block_before_one_began(name: str) -> None:
    """Asked too early, or for one behind the last, a reader has none."""
    read = reader(name, "sse")

    assert (None, None) == (read.block(0), read.block(-1))


def test_a_block_is_there_as_far_as_it_has_come() -> None:
    """Whoever shows a response while it arrives may look at its blocks."""
    read = reader("openai-chat", "sse")
    read.feed(b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n')
    half = read.block(0)
    read.feed(b'data: {"choices":[{"index":0,"delta":{"content":"lo"}}]}\n\n')

    assert (Text("Hel"), Text("Hello"), None) == (half, read.block(0), read.block(1))


@pytest.mark.parametrize("framing", ["sse", "json"])
@pytest.mark.parametrize("name", PACKAGES)
def test_a_part_of_a_million_values_is_not_read(name: str, framing: Framing) -> None:
    """It would take a hundred times its size in memory, and nothing else would run meanwhile."""
    read = reader(name, framing)
    payload = b'{"a":[%b1]}' % (b"1," * 1_000_001)

    assert [] == read.feed(b"data: %b\n\n" % payload if framing == "sse" else payload) + read.close()
    error = read.result().response.error
    assert error is not None
    assert ("malformed", True) == (error.type, "1,000,000 values" in error.message)


def test_a_part_of_a_million_values_is_not_read_in_pieces_either() -> None:
    """Most of it came behind another event."""
    read = reader("openai-chat", "sse")
    body = b'data: {}\n\ndata: {"a":[%b1]}\n\n' % (b"1," * 1_000_001)
    read.feed(body[:1_200_000])
    read.feed(body[1_200_000:])
    error = read.result().response.error

    assert error is not None
    assert "1,000,000 values" in error.message
