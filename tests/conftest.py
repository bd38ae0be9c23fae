"""What every test may use: the recorded exchanges, and a count of those that ran."""

from __future__ import annotations

import gc
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.exchanges import Exchange, exchanges

if TYPE_CHECKING:
    from tests.stores.postgres_server import Server

pytest_plugins = ["thinkback_referee.pytest_plugin", "tests.effort"]

RAN: set[object] = set()
"""File and place of each recorded exchange that a test reports, of whichever worker."""


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so it is for what a shell runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What a collection makes stays until the end: the garbage collector need not go through it again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    RAN.update(found for name, found in report.user_properties if name == "exchange")


@pytest.fixture(scope="session", autouse=True)
def no_user_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads the configuration, keys or proxies of whoever runs it, or writes into that person's files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path_factory.getbasetemp() / "no-configuration"))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
        patch.setenv("THINKBACK_USAGE_LOG", str(tmp_path_factory.getbasetemp() / "usage.jsonl"))
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        for name in list(os.environ):
            if name.endswith("_API_KEY") or name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A private PostgreSQL that runs while the tests do, started by the first that wants it."""
    from tests.stores.postgres_server import Server

    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """How the line of a command begins that need not import everything anew."""
    from tests.cli.command import Command
    from tests.cli.warm import warm

    place = tmp_path_factory.mktemp("warm")
    with warm(place, Command(place).environment) as line:
        yield line


@pytest.fixture
def database(postgres: Server) -> str:
    """The address of a new, empty database."""
    return postgres.make_database(f"database {secrets.token_hex(4)}")


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def new_log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """Gives the address of a new, empty log on each database; for examples of a property as well."""
    if request.param == "sqlite":
        return lambda: str(tmp_path_factory.mktemp("log") / "log.db")
    server: Server = request.getfixturevalue("postgres")
    return lambda: server.make_database(f"log {secrets.token_hex(4)}")


@pytest.fixture
def ran(request: pytest.FixtureRequest) -> Callable[[Exchange], None]:
    """Tells the count that a recorded exchange was really tested."""

    def note(exchange: Exchange) -> None:
        request.node.user_properties.append(("exchange", f"{exchange.file} {exchange.at}"))

    return note


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a parameter ``recorded_exchange`` runs once per recorded exchange of its module's ``DIALECT``."""
    if "recorded_exchange" in metafunc.fixturenames:
        dialect = getattr(metafunc.module, "DIALECT", None)
        found = [exchange for exchange in exchanges() if dialect in (None, exchange.data["dialect"])]
        metafunc.parametrize("recorded_exchange", found, ids=[exchange.id for exchange in found])


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> Iterator[None]:
    yield
    ran = len(RAN)
    if os.environ.get("THINKBACK_CORPUS"):
        terminalreporter.write_line(f"corpus: {ran} run, {len(list(exchanges())) - ran} not selected")
    else:
        terminalreporter.write_line("corpus: 0 run (THINKBACK_CORPUS is not set)")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """``make corpus`` is strict: every exchange must have run."""
    if not os.environ.get("THINKBACK_CORPUS_STRICT") or hasattr(session.config, "workerinput"):
        return
    place = Path(os.environ.get("THINKBACK_CORPUS", ""))
    held = len(list(exchanges())) if place.is_dir() else 0
    if held == 0 or len(RAN) < held:
        print(f"\ncorpus: only {len(RAN)} of {held} exchanges ran")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
