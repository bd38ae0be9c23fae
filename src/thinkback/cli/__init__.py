"""The command line: one module per group of commands, each imported only when it is asked for."""

from __future__ import annotations

from thinkback.cli.app import main, run

__all__ = ["main", "run"]
