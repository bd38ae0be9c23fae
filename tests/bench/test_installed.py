"""What is counted as installed for a requirement: what it brings, and nothing else that is there."""

from __future__ import annotations

from pip._vendor.packaging.requirements import Requirement

from bench.installed import closure, size


def test_extras_and_their_requirements_are_counted_once() -> None:
    """The package itself is counted by its source; what only tests need is not counted."""
    plain, served = (closure(Requirement(wanted)) for wanted in ("thinkback", "thinkback[gateway]"))
    assert (False, True, True) == ("uvicorn" in plain, "uvicorn" in served, "h11" in served)
    assert plain.keys() < served.keys()
    assert "pytest" not in served
    assert size(served["thinkback"]) > 1_000_000
