"""Sessions and their branches: making, moving and forgetting them.

What changes the shape of a family (a new session or branch, a moved or deleted one) first holds the family, so that
nothing is removed from under it. Must not: know what a payload means.
"""

from __future__ import annotations

from thinkback.errors import NotFoundError, StoreError
from thinkback.log.protocol import ERASED_MEMORY, MAIN, About, AppendRequest, BranchInfo, Origin, SessionInfo
from thinkback.model.commits import Head
from thinkback.stores.database import Branch, Database, Key, RepeatError, Rows, Tip
from thinkback.stores.errors import (
    EMPTY,
    branch_taken,
    check_text,
    current_branch,
    head_moved,
    id_taken,
    name_taken,
    no_session,
)
from thinkback.stores.history import find, key, pointer

NO_SETTINGS = "{}"


class LogRefs:
    """The branches in a log; each call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, session: str) -> list[BranchInfo]:
        """Its branches by name."""
        return self._database.read(_list, session)

    def create(self, session: str, name: str, at: Head, via: str = "") -> BranchInfo:
        """A branch at a commit of the session's family."""
        check_text("branch name", name)
        return self._database.write(_create, session, name, at, via)

    def move(self, session: str, name: str, expected: Head, to: Head, via: str = "") -> None:
        """Point a branch elsewhere, if its head is still ``expected``."""
        self._database.write(_move, session, name, expected, to, via)

    def delete(self, session: str, name: str, expected: Head) -> None:
        """Forget the name."""
        self._database.write(_delete, session, name, expected)

    def switch(self, session: str, name: str) -> None:
        """Make it the branch that the session is opened on."""
        self._database.write(switch, session, name)


def _list(rows: Rows, session: str) -> list[BranchInfo]:
    of = key(rows, session)
    found = rows.branches(of)
    if not found:  # a session has at least the branch it is opened on
        raise no_session(session)
    return [BranchInfo(name, tip.head, time) for name, tip, time in sorted(found)]


def _create(rows: Rows, session: str, name: str, at: Head, via: str) -> BranchInfo:
    of, created, _ = held(rows, session)
    if rows.tip(of, name) is not None:
        raise branch_taken(name, session)
    branch = add_branch(rows, of, name, find(rows, of, at, via), created)
    return BranchInfo(name, branch.tip.head, branch.time)


def _move(rows: Rows, session: str, name: str, expected: Head, to: Head, via: str) -> None:
    of, created, _ = held(rows, session)
    _check(rows, of, name, expected)
    add_branch(rows, of, name, find(rows, of, to, via), created)


def _delete(rows: Rows, session: str, name: str, expected: Head) -> None:
    of, _, current = held(rows, session)
    _check(rows, of, name, expected)
    if name == current:
        raise current_branch(name, session)
    rows.delete_branch(of, name)


def switch(rows: Rows, session: str, name: str) -> None:
    """Make a branch the one that the session is opened on."""
    of, _, _ = held(rows, session)
    pointer(rows, of, name)
    rows.switch(of, name)


def held(rows: Rows, session: str) -> tuple[Key, int, str]:
    """A session whose family is held, when it was made, and its current branch. Raises ``NotFoundError``."""
    of = key(rows, session)
    found = rows.hold(of)
    if found is None:
        raise no_session(session)
    return of, *found


def find_session(rows: Rows, name: str) -> SessionInfo | None:
    """The session of that name or id; a name wins."""
    return rows.info(name)


def list_sessions(rows: Rows, most: int | None) -> list[SessionInfo]:
    """All sessions, last updated first, or the first so many of them; the log's memory of erasures is none of them."""
    found = [info for info in rows.infos(None if most is None else most + 1) if info.id != ERASED_MEMORY]
    return found[:most]


def count_sessions(rows: Rows) -> int:
    """Count the sessions of a list."""
    return rows.count_sessions() - (rows.key(ERASED_MEMORY) is not None)


def owned_sessions(rows: Rows, program: str, project: str, is_own: bool) -> list[str]:
    """The ids of the sessions of a program and a project."""
    return [id for id in rows.owned(program, project, is_own) if id != ERASED_MEMORY]


def create_session(
    rows: Rows, id: str, name: str, time: int, origin: Origin | None, settings: str, about: About
) -> SessionInfo:
    """The session of that name, made with ``settings`` (a JSON object) if there is none."""
    if not rows.has_name(name):
        of = _begin(rows, id, name, time, origin, settings)
        if about != About():
            rows.put_about(of, about)
    found = rows.info(name)
    if found is None:  # deleted in between
        raise RepeatError(f"the name {name!r} leads to no session")
    return found


def _begin(rows: Rows, id: str, name: str, time: int, origin: Origin | None = None, settings: str = NO_SETTINGS) -> Key:
    """A session with its branch, on a new segment or on what it forks from."""
    parent = at = None
    if origin is not None:
        if rows.has_id(id):
            raise id_taken(id)
        parent, _, _ = held(rows, origin.session)
        at = None if origin.at is None else find(rows, parent, origin.at, origin.branch)
    of = rows.add_session(id, name, time, parent, origin.purpose if origin else "", settings)
    add_branch(rows, of, MAIN, at, time)
    return of


def relabel(rows: Rows, session: str, name: str, purpose: str) -> None:
    """Give a session another name and purpose."""
    of, _, _ = held(rows, session)
    known = rows.info(name)
    if known is not None and known.name == name and known.id != session:
        raise name_taken(name)
    rows.relabel(of, name, purpose)


def write_settings(rows: Rows, session: str, text: str) -> None:
    """Replace the session layer of the settings, a JSON object."""
    if not rows.write_settings(key(rows, session), text):
        raise no_session(session)


def open_for(rows: Rows, entry: AppendRequest) -> Key | None:
    """The session of a step with its branch, made where they are not there; ``None`` if the step is.

    A branch for the first step of a conversation becomes the current one of a session of such conversations: a name
    denotes its newest. What the library or a framework keeps under the name stays current. The family is held. Raises
    ``NotFoundError`` for a step that is not a session's first, and ``StoreError`` for names that are taken.
    """
    try:
        of, created, current = held(rows, entry.session)
    except NotFoundError:
        if entry.expected != EMPTY:
            raise
        of, created, current = _begin_for(rows, entry), entry.created, MAIN
        if entry.branch == MAIN:
            return of
    if rows.has_step(of, entry.step):
        return None
    if rows.tip(of, entry.branch) is None:
        add_branch(rows, of, entry.branch, _standing(rows, of, entry.expected, entry.via), created)
        if entry.expected == EMPTY and _has_conversation(rows, of, current):
            rows.switch(of, entry.branch)
    return of


def _has_conversation(rows: Rows, of: Key, branch: str) -> bool:
    """True if a branch has nothing, or answers that are found again by what a program repeats of them."""
    tip = rows.tip(of, branch)
    return tip is None or tip.position < 0 or rows.is_sighted(of, tip.segment)


def _begin_for(rows: Rows, entry: AppendRequest) -> Key:
    """A new session, unless another process makes the same one."""
    try:
        if rows.has_name(entry.name):
            raise name_taken(entry.name)
        of = _begin(rows, entry.session, entry.name, entry.created)
        if entry.about != About():
            rows.put_about(of, entry.about)
        return of
    except StoreError:
        found = rows.key(entry.session)
        if found is not None and rows.hold(found) is not None:
            raise RepeatError(f"session {entry.session} rejected the append") from None
        raise


def _standing(rows: Rows, of: Key, at: Head, via: str) -> tuple[Tip, int] | None:
    """Where a commit stands, on the branch that it was seen on, or wherever it is if that has moved since."""
    try:
        return find(rows, of, at, via)
    except NotFoundError:
        return find(rows, of, at, "")


def add_branch(rows: Rows, of: Key, name: str, at: tuple[Tip, int] | None, created: int) -> Branch:
    """A branch of that name where a commit stands; ``None`` for before the first commit of all."""
    branch = _branch(rows, of, name, at, created)
    rows.put_branch(of, branch)
    return branch


def _branch(rows: Rows, of: Key, name: str, at: tuple[Tip, int] | None, created: int) -> Branch:
    if at is None:
        return Branch(name, Tip(rows.add_segment(of, 0, None), -1, -1, b""), created)
    return Branch(name, *at)


def _check(rows: Rows, of: Key, name: str, expected: Head) -> None:
    """Raise ``HeadMovedError`` if the head of ``name`` is not ``expected``; from here on it stays."""
    actual = pointer(rows, of, name, hold=True).head
    if actual != expected:
        raise head_moved(of.id, expected, actual)
