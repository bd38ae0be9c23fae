"""The page on editors: its snippets are what editors read, and it names what there is to choose."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from thinkback.cli.acp import acp_command
from thinkback.servers.acp import options

PAGE = (Path(__file__).parents[2] / "docs" / "editors.md").read_text(encoding="utf-8")


def test_the_snippets_start_the_command_with_options_that_it_has() -> None:
    """Each is JSON, and its arguments are the command and options of it."""
    snippets = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    known = {word for option in acp_command.params if isinstance(option, click.Option) for word in option.opts}

    assert 2 == len(snippets)
    for snippet in snippets:
        command, *arguments = snippet["agent_servers"]["thinkback"]["args"]
        assert "acp" == command
        assert set(arguments[::2]) <= known


def test_every_option_and_mode_is_named() -> None:
    """The command line's options, the modes and the effort stand on the page."""
    words = [option.opts[-1] for option in acp_command.params if option.name in ("app", "profile", "offered", "db")]

    assert [] == [word for word in (*words, *options._MODES, options.EFFORT) if f"`{word}" not in PAGE]
