"""Making sessions in a PostgreSQL log, as the root of a new family or in the family of another session."""

from __future__ import annotations

from contextlib import suppress

from thinkback.log.protocol import MAIN, Origin, SessionInfo
from thinkback.stores.postgres.connections import Connection, transaction
from thinkback.stores.postgres.places import Key, family_of, find, given, info, key, stored
from thinkback.stores.postgres.refs import add_branch
from thinkback.stores.sealed import damaged, id_taken, name_taken, no_session

LOOKS = 20

_NAMED = "SELECT 1 FROM thinkback.keys WHERE tenant = %s AND key = %s AND is_name"
_TAKEN = "SELECT 1 FROM thinkback.keys WHERE tenant = %s AND key = %s AND NOT is_name"
_CLAIM = """
INSERT INTO thinkback.keys (tenant, key, is_name, family, session) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_BEGIN_FAMILY = """
INSERT INTO thinkback.families (tenant, family, sessions, segments) VALUES (%s, %s, 1, 0)
ON CONFLICT (tenant, family) DO UPDATE SET sessions = families.sessions + 1 RETURNING sessions
"""
_JOIN_FAMILY = """
UPDATE thinkback.families SET sessions = sessions + 1 WHERE tenant = %s AND family = %s RETURNING sessions
"""
_ROOT = """
SELECT root FROM thinkback.sessions WHERE tenant = %s AND family = %s AND session = %s AND name IS NOT NULL
"""
_SETTINGS = """
UPDATE thinkback.sessions SET settings = %s
WHERE tenant = %s AND family = %s AND session = %s AND name IS NOT NULL
"""
_ADD = """
INSERT INTO thinkback.sessions (tenant, family, session, id, name, root, parent, purpose, branch, created, settings)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, '{}')
"""


class _NameTaken(Exception):
    """Another process makes a session of that name."""


def create(db: Connection, tenant: str, id: str, name: str, time: int, origin: Origin | None) -> SessionInfo:
    """The session of that name, made if there is none."""
    for _ in range(LOOKS):
        if db.execute(_NAMED, (tenant, stored(name))).fetchone() is None:
            with suppress(_NameTaken), transaction(db):
                _make(db, tenant, id, name, time, origin)
        found = info(db, tenant, name)
        if found is not None:  # and not deleted in between
            return found
    raise damaged(f"the name {name!r} leads to no session", name=name)


def begin(db: Connection, tenant: str, id: str, name: str, time: int) -> Key:
    """A session that begins a family, in the caller's transaction. Raises ``StoreError`` for a name that is taken."""
    try:
        return _make(db, tenant, id, name, time, None)
    except _NameTaken:
        raise name_taken(name) from None


def _make(db: Connection, tenant: str, id: str, name: str, time: int, origin: Origin | None) -> Key:
    place, root, above, purpose, parent = None, id, "", "", None
    if origin is not None:
        if db.execute(_TAKEN, (tenant, stored(id))).fetchone():  # what the claim below says where the origin is there
            raise id_taken(id)
        parent = key(db, tenant, origin.session)
        above, purpose = parent.id, origin.purpose
    of = _number(db, tenant, id, parent)
    if parent is not None and origin is not None:
        root = _root(db, parent)
        place = None if origin.at is None else find(db, parent, origin.at, origin.branch)
    if not db.execute(_CLAIM, (tenant, stored(name), True, *of[1:3])).rowcount:
        raise _NameTaken
    if not db.execute(_CLAIM, (tenant, stored(id), False, *of[1:3])).rowcount:
        raise id_taken(id)
    text = (stored(part) for part in (id, name, root, above, purpose, MAIN))
    db.execute(_ADD, (*of[:3], *text, time))
    add_branch(db, of, MAIN, place, time)
    return of


def _root(db: Connection, parent: Key) -> str:
    row = db.execute(_ROOT, parent[:3]).fetchone()
    if row is None:
        raise no_session(parent.id)
    return given(row[0])


def _number(db: Connection, tenant: str, id: str, parent: Key | None) -> Key:
    """The key of a new session; its family's row is held from here on."""
    family = family_of(tenant, id) if parent is None else parent.family
    row = db.execute(_BEGIN_FAMILY if parent is None else _JOIN_FAMILY, (tenant, family)).fetchone()
    if row is None:
        raise damaged(f"family {family} is not counted", session=id)
    return Key(tenant, family, row[0], id)


def write_settings(db: Connection, of: Key, text: str) -> None:
    """Replace the session layer of the settings, a JSON object."""
    if not db.execute(_SETTINGS, (text, *of[:3])).rowcount:
        raise no_session(of.id)
