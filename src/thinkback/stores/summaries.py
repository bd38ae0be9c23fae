"""What a list of sessions shows: counted over the commits that a session stored itself, and what programs say of it.

Promises: what is kept is what counting it again would give; a session that is not counted (an older format, commits
that were collected) is counted where it is read, and for good by whoever appends to it. Must not: count what is of
another session.
"""

from __future__ import annotations

from collections.abc import Collection

from thinkback.errors import CorruptLogError
from thinkback.log.protocol import About, Summary
from thinkback.log.tally import Tally, left_of, tally, titles_of
from thinkback.model.commits import Usage
from thinkback.stores.database import Family, Key, Rows
from thinkback.stores.errors import no_session
from thinkback.stores.history import key
from thinkback.stores.rows import from_rows


def summaries(rows: Rows, ids: Collection[str] | None = None) -> tuple[dict[str, Summary], list[Key]]:
    """Those of all sessions, or of those that are wanted, by their ids; and which of them had to be counted for it."""
    kept = rows.summaries(ids)
    found = {of.id: Summary(found or counted(rows, of) or Tally(), about) for of, found, about in kept}
    return found, [of for of, found, _ in kept if found is None]


def settle_all(rows: Rows, sessions: Collection[Key]) -> None:
    """Count these sessions for good."""
    for of in sessions:
        settle(rows, of)


def counted(rows: Rows, of: Key) -> Tally | None:
    """The tally of a session, counted again; ``None`` where a commit cannot be read, which ``fsck`` names."""
    try:
        return _counted(rows, of)
    except CorruptLogError:
        return None


def _counted(rows: Rows, of: Key) -> Tally:
    found = Tally(last=rows.latest(of))
    for stored in rows.tallied(of):
        found = found.plus(tally(from_rows(stored, 0)))
    return found


def titles(rows: Rows, of: Key) -> frozenset[str]:
    """What its title may be."""
    return titles_of(commit for stored in rows.tallied(of) for commit in from_rows(stored, 0))


def has_claims(rows: Rows, of: Key) -> bool:
    """True if a provider reported a number that cannot be a count."""
    values = (left_of(commit.value) for stored in rows.tallied(of) for commit in from_rows(stored, 0))
    return any(isinstance(value, Usage) and value.invalid for value in values)


def settle(rows: Rows, of: Key) -> None:
    """Count a session for good that is not counted, with whatever others add meanwhile."""
    if rows.hold_uncounted(of) and (found := counted(rows, of)) is not None:
        rows.put_tally(of, found)


def settle_family(rows: Rows, within: Family) -> None:
    """The same for all sessions of a family, whose shape is held."""
    for of in rows.uncounted(within):
        settle(rows, of)


def describe(rows: Rows, session: str, about: About) -> None:
    """Replace what programs say of a session."""
    if not rows.put_about(key(rows, session), about):
        raise no_session(session)


def disagreement(kept: Tally, found: Tally, titles: frozenset[str], *, claims: bool = False) -> str:
    """How what is kept of a session differs from what was found; empty where it does not.

    Which of its messages was the first cannot be seen any more: its title is one of ``titles``. ``claims``: a provider
    reported a number that cannot be a count, which earlier versions added up.
    """
    names = ("models", "turns", "last") if claims else ("models", "turns", "tokens", "reasoning", "last")
    if kept.title not in titles:
        return f"its title is not of its messages: {kept.title!r}"
    return ", ".join(
        f"its {name} are {getattr(kept, name)}, of its commits {getattr(found, name)}"
        for name in names
        if getattr(kept, name) != getattr(found, name)
    )
