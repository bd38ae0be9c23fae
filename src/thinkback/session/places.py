"""Where sessions are from: the program that asked, and the project.

Promises: what forked from a session is of its project and program, where it says nothing itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from thinkback.log.protocol import About, SessionInfo, Store, Summary
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


def places(log: Store, ids: Iterable[str] | None = None) -> dict[str, Place]:
    """Those of all sessions, or of those of these ids, by their ids."""
    if ids is None:
        return places_of(log.list_sessions(), log.summaries())
    found: dict[str, SessionInfo] = {}
    waiting = [*ids]
    while waiting:
        id = waiting.pop()
        info = log.find_session(id) if id and id not in found else None
        if info is not None and info.id == id:
            found[id] = info
            waiting.append(info.parent)
    return places_of(found.values(), log.summaries(found.keys()))


def places_of(infos: Iterable[SessionInfo], summaries: Mapping[str, Summary]) -> dict[str, Place]:
    """The same, of what was read."""
    found: dict[str, Place] = {}
    for info in sorted(infos, key=lambda info: info.created):
        above, summary = found.get(info.parent, NOWHERE), summaries.get(info.id)
        about = summary.about if summary is not None else About()
        found[info.id] = Place(
            info.name,
            about.program or above.program,
            about.project or above.project,
            title_of(info, summary),
            above.is_imported or bool(about.sources),
        )
    return found


def owners_of(log: Store, program: str, project: str) -> tuple[str, ...] | None:
    """The ids of the sessions of a program and a project; ``None`` where neither is named."""
    if not (program or project):
        return None
    return tuple(log.owned_sessions(program, project, is_own=program == OWN))


def title_of(info: SessionInfo, summary: Summary | None) -> str:
    """What a session is called: as somebody said, else by the first words in it."""
    return info.settings.get(TITLE) or (summary.tally.title if summary is not None else "") or info.purpose


def day_of(microseconds: int) -> str:
    """The day of a time, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(microseconds // 1_000_000))
