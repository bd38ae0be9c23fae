"""What ``make test`` draws is the same for everybody; a soak draws something new and says how to repeat it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

NEEDED = ("-p", "hypothesis.extra.pytestplugin", "-p", "pytest_randomly")
"""A start with all other plugins takes twice as long."""

LAWS = """
import random
from pathlib import Path

from hypothesis import given, seed, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test


def note(drawn):
    with (Path(__file__).parent / "drawn").open("a", encoding="utf-8") as file:
        print(ascii(drawn), file=file)


@given(number=st.integers(), words=st.lists(st.text()), sets=st.frozensets(st.sampled_from("abcdefgh")))
def test_law(number, words, sets):
    note((number, words, sorted(sets)))


@given(number=st.integers())
@settings(max_examples=3)
def test_dear_law(number):
    note(number)


class Machine(RuleBasedStateMachine):
    @rule(number=st.integers())
    def step(self, number):
        note(number)


def test_machine(effort):
    seed(effort.seed)(Machine)
    run_state_machine_as_test(Machine, settings=settings(max_examples=effort.rounds(2, 5), stateful_step_count=5))


def test_loop(effort):
    note([effort.seed, effort.chance.random(), effort.rounds(4, 10), random.random()])
"""

FALSE = """
from hypothesis import given, strategies as st


@given(number=st.integers(), words=st.lists(st.text()))
def test_false(number, words):
    assert number < 1000


def test_plain():
    raise AssertionError
"""

SLOW = """
import time
from pathlib import Path

from hypothesis import given, strategies as st
from hypothesis.internal.conjecture import engine


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now

    def __getattr__(self, name):
        return getattr(time, name)


engine.time = Clock()


@given(st.lists(st.integers(), min_size=20))
def test_slow(numbers):
    engine.time.now += 1
    with (Path(__file__).parent / "drawn").open("a", encoding="utf-8") as file:
        print(sum(map(abs, numbers)) > 10**6, file=file)
    assert sum(map(abs, numbers)) <= 10**6
"""


def ran(
    place: Path, laws: str, *arguments: str, every_plugin: bool = False, **environment: str
) -> tuple[str, list[str]]:
    """Run these tests as a person does; what pytest printed and what was drawn, in the order of the laws' names."""
    (place / "test_laws.py").write_text(laws)
    (place / "drawn").unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.effort", "-p", "no:cacheprovider", "-c", os.devnull]
    kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
    if not every_plugin:
        kept["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        command += NEEDED
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [*command, f"--rootdir={place}", *arguments, str(place)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=place,
        env={**kept, "PYTHONPATH": path, **environment},
    )
    drawn = place / "drawn"
    return done.stdout, sorted(drawn.read_text().splitlines()) if drawn.exists() else []


def test_make_test_draws_the_same_for_everybody(tmp_path: Path) -> None:
    """Neither order nor the environment, nor what else is loaded, changes an example."""
    first, drawn = ran(tmp_path, LAWS, "--randomly-seed=1", PYTHONHASHSEED="1")
    loaded = "import thinkback.errors, thinkback.model.canonical\n"
    second, again = ran(tmp_path, LAWS + loaded, "--randomly-seed=2", CI="1", PYTHONHASHSEED="2")

    assert ("4 passed" in first, "4 passed" in second) == (True, True)
    assert drawn == again
    assert 50 + 3 < len(drawn)


def test_a_soak_draws_as_much_more_as_it_should_by_its_seed(tmp_path: Path) -> None:
    """The same from the same seed; only laws and loops run."""
    laws = LAWS + "\n\ndef test_plain():\n    raise AssertionError\n"
    first, drawn = ran(tmp_path, laws, "--soak", "3", "--times", "2")
    _, again = ran(tmp_path, laws, "--soak", "3", "--times", "2")

    assert "4 passed, 1 deselected" in first
    assert drawn == again
    assert 100 + 6 < len(drawn)


def test_a_failing_example_is_printed(tmp_path: Path) -> None:
    """With its values, whatever other plugins make of it."""
    printed, _ = ran(tmp_path, FALSE, every_plugin=True)

    assert "number=1000" in printed


def test_shrinking_has_its_time(tmp_path: Path) -> None:
    """Half a minute by the clock, where each example takes a second: not the hundreds that Hypothesis would try."""
    printed, tried = ran(tmp_path, SLOW)

    assert "numbers=" in printed
    assert 20 < tried.count("True") < 40
    assert len(tried) < 50 + 40


def test_a_soak_keeps_what_it_finds(tmp_path: Path) -> None:
    """It says how to repeat it, by which example to keep it, and tries it first the next time."""
    printed, _ = ran(tmp_path, FALSE, "--soak", "3", "--times", "20")
    again, _ = ran(tmp_path, FALSE, "--soak", "4", "--times", "1")

    assert "--soak 3 --times 20 'test_laws.py::test_false'" in printed
    assert "@example(\n    number=1000,\n    words=[],  # or any other generated value\n)" in printed
    assert "number=1000" in again
