"""A reader of our output that has seen enough is no failure."""

from __future__ import annotations

import os
import subprocess
import sys

import thinkback


def test_output_that_nobody_reads_any_more_is_no_failure(tmp_path: object) -> None:
    """``thinkback settings | head -1`` ends with 0, and complains of nothing."""
    place = str(tmp_path)
    with thinkback.open(os.path.join(place, "log.db")) as store:
        for number in range(3):
            store.session(f"s{number}").commit("x")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "thinkback", "usage", "--all", "--db", os.path.join(place, "log.db")]
    environment = {**os.environ, "HOME": place, "XDG_CONFIG_HOME": place}
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment, timeout=60)
    os.close(writing)
    assert (0, b"") == (done.returncode, done.stderr)
