"""``python -m thinkback_referee``: serve until interrupted, and print each request's verdict."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path

from .personas import HOSTS, models_of
from .played import read_script
from .server import Exchange, Referee, serve

PORT = 8077


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and serve. Exits with code 2 where the script or the address is no good."""
    parser = _parser()
    given = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore SIGINT until a handler is set
        signal.signal(number, lambda *_: stop.set())
    try:
        script = read_script(Path(given.script).read_text(encoding="utf-8")) if given.script else None
    except (OSError, ValueError) as error:
        parser.error(f"the script {given.script} cannot be played: {error}")
    try:
        serve(
            given.host, given.port, pace=given.pace, script=script, drives=True, report=_report, ready=_ready, stop=stop
        )
    except OSError as error:
        parser.error(f"cannot listen on {given.host}:{given.port}: {error.strerror}; choose another --port")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "thinkback-referee",
        description="Serve a strict stand-in for reasoning-model providers on loopback. Any key but `bad-key` will do.",
    )
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="listen on this address (%(default)s)")
    parser.add_argument(
        "--port", metavar="NUMBER", type=int, default=PORT, help="listen on this port; 0 takes a free one (%(default)s)"
    )
    parser.add_argument(
        "--pace", metavar="SECONDS", type=float, default=0.0, help="pause between the pieces of a stream (%(default)s)"
    )
    parser.add_argument("--script", metavar="FILE", help="play the steps of a JSON file to clients that offer tools")
    return parser


def _ready(referee: Referee) -> None:
    width = max(map(len, HOSTS))
    for host in HOSTS:
        print(f"{host:{width}} {referee.base_url(host)}  {', '.join(models_of(host))}")
    print("Set one of these as a client's base URL, with any key. Ctrl-C ends the referee.", flush=True)


def _report(exchange: Exchange) -> None:
    verdict = "accepted" if exchange.status < 400 else exchange.verdict.reason or "as scripted"
    line = f"{exchange.status} {exchange.host or '-'} {exchange.model or '-'}: {verdict}"
    print("".join(letter if letter.isprintable() else " " for letter in line), flush=True)


if __name__ == "__main__":
    main()
