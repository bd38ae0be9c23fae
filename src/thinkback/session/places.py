"""Where sessions are from: the program that asked, and the project.

Promises: what forked from a session is of its project and program, where it says nothing itself.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from thinkback.log.protocol import About, Store
from thinkback.settings.registry import TITLE

OWN = "thinkback"
"""The program of sessions of which nobody says another one."""


class Place(NamedTuple):
    """``session`` is its name, ``project`` empty where nobody says it; ``is_imported``: it began in the history of
    ``program``.
    """

    session: str = ""
    program: str = OWN
    project: str = ""
    title: str = ""
    is_imported: bool = False


NOWHERE = Place()


def places(log: Store) -> dict[str, Place]:
    """Those of all sessions, by their ids."""
    summaries = log.summaries()
    found: dict[str, Place] = {}
    for info in sorted(log.list_sessions(), key=lambda info: info.created):
        above = found.get(info.parent, NOWHERE)
        about, title = About(), ""
        if info.id in summaries:
            about, title = summaries[info.id].about, summaries[info.id].tally.title
        title = info.settings.get(TITLE) or title or info.purpose
        is_imported = above.is_imported or bool(about.sources)
        found[info.id] = Place(
            info.name, about.program or above.program, about.project or above.project, title, is_imported
        )
    return found


def day_of(microseconds: int) -> str:
    """The day of a time, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(microseconds // 1_000_000))
