"""The packages of frameworks: absent where thinkback is worked on, present in the environment of ``make adapters``."""

from __future__ import annotations

import importlib
import os

import pytest


def need(module: str) -> None:
    """Skip the module that asks where a framework's package is not installed; ``make adapters`` fails instead."""
    if os.environ.get("THINKBACK_ADAPTERS"):
        importlib.import_module(module)
    else:
        pytest.importorskip(module, reason=f"{module} is not installed: `make adapters` runs these tests")
