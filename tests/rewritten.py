"""A plugin that collects nothing: it fills pytest's cache of test modules with rewritten assertions.

``make test`` starts several processes that collect at once. Each would rewrite every module that has no cached form,
which takes longer than the rest of a collection. It must not import test modules.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> object:
    """Rewrite each test module and ``conftest.py`` of which no cached form, or one of another text, is there."""
    state = session.config.stash[rewrite.assertstate_key]
    for module in (*HERE.rglob("test_*.py"), *HERE.rglob("conftest.py")):
        cache = rewrite.get_cache_dir(module)
        cached = cache / (module.stem + rewrite.PYC_TAIL)
        if not sys.dont_write_bytecode and rewrite._read_pyc(module, cached) is None and rewrite.try_makedirs(cache):
            text, code = rewrite._rewrite_test(module, session.config)
            rewrite._write_pyc(state, code, text, cached)
    return True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Nothing was to be collected."""
    session.exitstatus = pytest.ExitCode.OK
