"""The line that one exchange is recorded on: what the client brought, then what the provider answered, in one step.

Promises: the client's messages and the response they led to are stored in one transaction; where another request went
on from the same place, the step opens a branch; a response that came whole is found again by what a client echoes of
it. Must not: decide what is kept (``recording``), or know a database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from thinkback.errors import HeadMovedError
from thinkback.gateway.grant import Recording
from thinkback.gateway.storing.recording import kept
from thinkback.log.protocol import Entry, Sighting
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Commit, Head, Step

Store = Callable[[Entry], Awaitable[object]]
"""Stores an entry, once by its step's id. Raises ``HeadMovedError`` and ``StoreError``."""


class Recorder:
    """Where one conversation goes on: ``session`` on ``branch`` behind ``at``; a session that is not there is made.

    ``mode`` says how much of what is said may be stored.
    """

    def __init__(
        self, store: Store, session: str, name: str, created: int, branch: str, at: Head, mode: Recording = "full"
    ) -> None:
        self.session = session
        self.branch = branch
        self._store = store
        self._name = name
        self._created = created
        self._at = self._head = at
        self._mode = mode
        self._held: list[Commit] = []

    def hold(self, commits: Sequence[Commit]) -> None:
        """Keep ``commits``, sealed behind what there is, for the next step: they are stored with it."""
        self._held += commits
        self._head = head_of(commits) if commits else self._head

    def sealed(self, step: Step, sightings: Sequence[Sighting] = ()) -> tuple[list[Commit], Entry]:
        """The commits of ``step`` behind what was held, with all that they say, and how both are stored. Pure."""
        commits = seal(step, self._head)
        return commits, Entry(
            session=self.session,
            name=self._name,
            created=self._created,
            step=step.id,
            commits=kept([*self._held, *commits], self._mode),
            expected=self._at,
            branch=self.branch,
            sightings=sightings,
        )

    async def store(self, commits: Sequence[Commit], entry: Entry) -> None:
        """Store what was sealed. A step that was stored by an earlier attempt is not stored again."""
        try:
            await self._store(entry)
        except HeadMovedError:
            await self._open(entry)
        self._held = []
        self._at = self._head = head_of(commits)

    async def _open(self, entry: Entry) -> None:
        """Another request was quicker, or the client went back to an earlier place: a branch from there."""
        branch = f"{entry.branch}-{entry.step[:8]}"
        await self._store(
            Entry(
                entry.session,
                entry.name,
                entry.created,
                entry.step,
                entry.commits,
                entry.expected,
                branch,
                via=entry.branch,
                sightings=entry.sightings,
            )
        )
        self.branch = branch
