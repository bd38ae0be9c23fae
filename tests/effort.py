"""How much a test tries: little and always the same in ``make test``, much and always something new in ``make soak``.

A law (a test with ``@given``) needs nothing for that but, where an example costs more than a few milliseconds, a
smaller ``@settings(max_examples=...)``: a soak multiplies it. A loop that is no law, and a test that needs chance, take
the fixture ``effort``: ``effort.rounds(short, long)`` and ``effort.seed`` (or ``effort.chance``). The module ``random``
is seeded by it before each test. A test that is of no use in a short form has the mark ``soak``.

The coverage of a law does not count (``make test-pure``), but where it has the mark ``covers(True)``; that of a test
with ``covers(False)`` does not either.

``make test`` draws the same examples wherever and in whatever order it runs: they depend on the text of the law alone.
A soak (``--soak SEED --times N``) runs these tests and no others, tries N times as much, and keeps what it finds.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import hypothesis.core
import pytest
from hypothesis import HealthCheck, Phase
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.internal.conjecture import engine, providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.vendor import pretty

EXAMPLES = 50
"""Of each law in ``make test``, where it does not name a number itself."""

FINDS = ".hypothesis/examples"
"""Where a soak keeps what it found, and looks first the next time."""

# Laws say what is true, not how long it takes, and a fixture that is shared by examples is chosen with care.
_ALWAYS: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}


@dataclass(frozen=True)
class Effort:
    """How much one test tries. ``times`` is 0 but in a soak."""

    seed: int
    times: int

    def rounds(self, short: int, long: int) -> int:
        """``short`` in ``make test``; in a soak some times that, at most ``long``."""
        return min(long, short * self.times) if self.times else short

    @property
    def chance(self) -> random.Random:
        """From the seed, from its beginning."""
        return random.Random(self.seed)


@pytest.fixture
def effort(request: pytest.FixtureRequest) -> Effort:
    """How much this test tries, and by which seed."""
    return Effort(_seed(request.node), request.config.getoption("times") if _soaking(request.config) else 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("effort")
    group.addoption("--soak", type=int, metavar="SEED", help="run laws and loops with chance from this seed")
    group.addoption("--times", type=int, default=1, metavar="N", help="how many times as much, with --soak")


def pytest_configure(config: pytest.Config) -> None:
    config.option.randomly_reset_seed = False  # the order of tests is new each time, what they draw is not
    plain = hypothesis.settings.get_profile("default")
    if _soaking(config):
        finds = DirectoryBasedExampleDatabase(config.rootpath / FINDS)
        hypothesis.settings.register_profile("effort", plain, **_ALWAYS, max_examples=EXAMPLES, database=finds)
    else:
        phases = [Phase.explicit, Phase.generate, Phase.shrink]
        hypothesis.settings.register_profile(
            "effort", plain, **_ALWAYS, max_examples=EXAMPLES, derandomize=True, phases=phases
        )
        # Hypothesis also draws constants that it finds in whatever modules are loaded: others in each worker.
        none = Constants()
        vars(providers)["_get_local_constants"] = lambda: none
        engine.MAX_SHRINKING_SECONDS = 30
    hypothesis.settings.load_profile("effort")
    # Schemathesis has put one there that prints no values, for every law.
    vars(hypothesis.core)["RepresentationPrinter"] = pretty.RepresentationPrinter


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _is_covered():
        # What is imported or kept at its first use is so in a test that counts.
        items.sort(key=lambda item: not _counts(item))
    if not _soaking(config):
        return
    left_out = [item for item in items if not _is_for_soak(item)]
    items[:] = [item for item in items if _is_for_soak(item)]
    config.hook.pytest_deselected(items=left_out)
    for law in {function for item in items if hypothesis.is_hypothesis_test(function := _function(item))}:
        own: hypothesis.settings = law._hypothesis_internal_use_settings
        many = own.max_examples * config.getoption("times")
        law._hypothesis_internal_use_settings = hypothesis.settings(own, max_examples=many)


def pytest_runtest_setup(item: pytest.Item) -> None:
    random.seed(_seed(item))
    if _soaking(item.config) and hypothesis.is_hypothesis_test(_function(item)):
        hypothesis.seed(_seed(item))(_function(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Coverage more than doubles what a law takes, and of nearly all sees what examples that a person wrote cover."""
    if not _is_covered() or _counts(item):
        return (yield)
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """A failure in a soak says how to repeat it, and which example keeps it."""
    report = yield
    if report.failed and _soaking(item.config):
        soak, times = item.config.getoption("soak"), item.config.getoption("times")
        repeat = f"python -m pytest -p no:xdist -m '' --soak {soak} --times {times} '{item.nodeid}'"
        report.sections.append(("how to repeat it", "\n".join([repeat, *_examples(str(report.longrepr))])))
    return report


def _examples(text: str) -> list[str]:
    """The decorators that make each failing example of Hypothesis one of the law's own."""
    found = re.findall(r"Failing (?:test case|example): \w+\(\n(.*?)^E? *\)$", text, re.MULTILINE | re.DOTALL)
    return [f"@example(\n{re.sub('^E? *', '    ', arguments, flags=re.MULTILINE).rstrip()}\n)" for arguments in found]


def _is_covered() -> bool:
    return type(sys.gettrace()).__module__.startswith("coverage")


def _counts(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("covers")
    return bool(mark.args[0]) if mark else not hypothesis.is_hypothesis_test(_function(item))


def _is_for_soak(item: pytest.Item) -> bool:
    return (
        hypothesis.is_hypothesis_test(_function(item))
        or item.get_closest_marker("soak") is not None
        or "effort" in getattr(item, "fixturenames", ())
    )


def _function(item: pytest.Item) -> Any:
    return getattr(item, "obj", None)


def _soaking(config: pytest.Config) -> bool:
    return config.getoption("soak") is not None


def _seed(item: pytest.Item) -> int:
    """Of one test: always the same, but in a soak."""
    soak = item.config.getoption("soak")
    return crc32(f"{item.nodeid} {'' if soak is None else soak}".encode())
