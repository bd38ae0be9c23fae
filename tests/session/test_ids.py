"""Fresh ids."""

from __future__ import annotations

import os
import threading

import pytest

from thinkback.session.ids import new_id


def test_ids_are_24_hex_digits_and_never_the_same() -> None:
    """Whichever threads ask."""
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id() for _ in range(500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {24} == {len(id) for id in made}
    assert 2000 == len(set(made))
    assert all(set(id) <= set("0123456789abcdef") for id in made)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_ids_of_its_own() -> None:
    """What was drawn before the fork is its parent's."""
    new_id()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.write(writing, " ".join(new_id() for _ in range(100)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 65536).decode().split()
    os.close(reading)
    os.close(writing)
    assert 100 == len(theirs)
    assert not set(theirs) & {new_id() for _ in range(100)}
