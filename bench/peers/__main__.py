"""``python -m bench.peers``: play every conversation with every peer, print the page and keep it in docs/peers.md."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

from bench.peers import (
    with_anthropic,
    with_langchain,
    with_litellm,
    with_openai,
    with_pydantic_ai,
    with_thinkback,
)
from bench.peers.play import play_all
from bench.peers.table import page
from thinkback import __version__
from thinkback_referee import Referee

PAGE = Path(__file__).parents[2] / "docs" / "peers.md"
PEERS = (
    with_openai.CHAT,
    with_openai.RESPONSES,
    with_anthropic.PEER,
    with_litellm.PEER,
    with_pydantic_ai.PEER,
    with_langchain.PEER,
    with_thinkback.PEER,
)


def main() -> None:
    """Play, print, keep."""
    packages = {package for peer in PEERS for package in peer.packages} - {"thinkback"}
    versions = {"thinkback": __version__, **{package: version(package) for package in packages}}
    # What peers print, log and warn of beside their errors is not the page's.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with Referee() as referee, contextlib.redirect_stdout(io.StringIO()):
        cells = play_all(PEERS, referee)
    text = page(cells, PEERS, versions)
    PAGE.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
