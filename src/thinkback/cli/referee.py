"""``referee``: serve the strict provider stand-in, for trying a client against it; and one that ends with a command.

Promises: ``StandIn`` serves from this process alone, so that nothing is left of it whatever ends the command.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from thinkback.cli import terminal
from thinkback.errors import MissingPackageError, NetworkError, SettingError
from thinkback.session.destination import Destination

if TYPE_CHECKING:
    from types import TracebackType

    from thinkback_referee import Exchange, Referee, Step

ENDPOINT, APP = "referee", "trial"
_PLAYED, _MODEL = "deepseek", "deepseek-v4-pro"
# Seconds between two pieces of a stream: fast enough to read along, slow enough to see that it streams.
_PACE = 0.02


@click.command("referee", short_help="Serve a strict stand-in for providers.")
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    metavar="NUMBER",
    type=click.IntRange(0, 65535),
    default=8077,
    show_default=True,
    help="The port; 0 picks a free one.",
)
@click.option(
    "--pace",
    metavar="SECONDS",
    type=click.FloatRange(min=0, max=10),
    default=0.0,
    show_default=True,
    help="Pause between the pieces of a stream.",
)
@click.option(
    "--script",
    "script",
    metavar="FILE",
    type=click.Path(),
    help="Play the steps of this JSON file to clients that offer tools.",
)
@click.option("--list", "lists", is_flag=True, help="List the base URL and the models of each host, and exit.")
def referee_command(host: str, port: int, pace: float, script: str | None, lists: bool) -> None:
    """Serve a strict stand-in for reasoning providers, which enforces their replay rules with their own error texts.

    Every key is accepted except `bad-key`. Each request is printed with its verdict. Ctrl-C stops the server.

    Without --script the model calls only tools whose names describe a lookup (get_weather, search, read_file), and no
    tool whose name contains a word for an action. An agent that --script drives does what the file says: run it where
    that does no harm.
    """
    require_referee()
    from thinkback_referee import serve

    if lists:
        _list(host, port)
        return
    steps = _steps(script) if script else None
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore SIGINT until told otherwise
        signal.signal(number, lambda *_: stop.set())
    try:
        serve(host, port, pace=pace, script=steps, drives=True, report=_report, ready=_announce, stop=stop)
    except OSError as error:
        raise NetworkError(
            f"cannot listen on {host}:{port}: {error.strerror}", next_actions=("choose another one with --port",)
        ) from None
    terminal.out("referee: ended")


def require_referee() -> None:
    """Raise ``MissingPackageError`` where the referee, a distribution of its own, is not installed."""
    try:
        import thinkback_referee  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "thinkback_referee":
            raise
        raise MissingPackageError(
            "this command needs the referee, the strict stand-in for providers, which is not installed",
            details={"package": "thinkback-referee"},
            next_actions=("run `pip install . ./referee` in a checkout of thinkback",),
        ) from error


def completed(place: Destination) -> Destination:
    """``place`` with the only model that there is, where it is the referee; else as it is."""
    return place._replace(model=place.model or _MODEL) if place.endpoint == ENDPOINT else place


class StandIn:
    """A referee of this command's own, which is started for the first who goes there and ends with the ``with``.

    ``is_told``: that it is no model was said before.
    """

    def __init__(self, *, is_told: bool = False) -> None:
        self._is_told = is_told
        self._started = ExitStack()
        self._base_url = ""

    def at(self, place: Destination, base_url: str = "") -> Destination:
        """``place``; where it is the referee, without a ``base_url``, at the address of the one here, which says when
        it starts that it is no model. Raises ``MissingPackageError`` where it is not installed.
        """
        if place.endpoint != ENDPOINT or base_url:
            return place
        self._base_url = self._base_url or self._start()
        return completed(place)._replace(base_url=self._base_url)

    def _start(self) -> str:
        require_referee()
        from thinkback_referee import Referee, guide_step

        self._started.enter_context(past_proxies())
        pace = _PACE if sys.stdout.isatty() else 0.0
        referee = self._started.enter_context(Referee(pace=pace, house=guide_step))
        if not self._is_told:
            terminal.note("the referee answers here, which needs no key: a stand-in, not a model")
        return referee.base_url(_PLAYED)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._started.close()


@contextmanager
def past_proxies() -> Iterator[None]:
    """While inside, no proxy of the environment gets between this process and loopback."""
    before = {name: os.environ.get(name) for name in ("NO_PROXY", "no_proxy")}
    os.environ.update({name: ",".join(filter(None, (value, "127.0.0.1"))) for name, value in before.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _steps(file: str) -> list[Step]:
    """The script in ``file``. Raises ``SettingError``."""
    from thinkback_referee import read_script

    try:
        return read_script(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SettingError(
            f"the script {file} cannot be played: {reason}",
            next_actions=('write steps such as [{"calls": [{"tool": "read*", "arguments": {"path": "a.txt"}}]}]',),
        ) from None


def _announce(referee: Referee) -> None:
    from thinkback_referee import HOSTS

    url = referee.base_url(_PLAYED)
    terminal.out(f"The referee serves at {referee.url}; Ctrl-C ends it. In another terminal, without a key:")
    terminal.out(f"  thinkback run 'Hello' --endpoint {ENDPOINT} \\")
    terminal.out(f"    --base-url {url}")
    terminal.out(f'In a program: store.session("try", endpoint="{ENDPOINT}", model="{_MODEL}", base_url="{url}")')
    terminal.out("With any key it stands in for:")
    for line in terminal.wrap(", ".join(HOSTS), 2).splitlines():
        terminal.out(line)
    terminal.out("`thinkback referee --list` shows the base URL and the models of each.")
    sys.stdout.flush()


def _list(host: str, port: int) -> None:
    """The base URL and the models of each host, as a referee at ``host`` and ``port`` has them."""
    from thinkback_referee import HOSTS, models_of

    pen = terminal.pen(sys.stdout)
    width = max(map(len, HOSTS))
    for name, path in HOSTS.items():
        terminal.out(f"{pen(terminal.pad(name, width), 'bold')} http://{host}:{port}{path}")
        terminal.out(pen(terminal.wrap(", ".join(models_of(name)), 10), "dim"))


def _report(exchange: Exchange) -> None:
    verdict = "accepted" if exchange.status < 400 else exchange.verdict.reason or "as scripted"
    terminal.out(terminal.clean(f"{exchange.status} {exchange.host or '-'} {exchange.model or '-'}: {verdict}"))
    sys.stdout.flush()
