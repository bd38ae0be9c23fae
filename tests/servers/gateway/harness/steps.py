"""Steps as the gateway records them, and places that they are stored in."""

from __future__ import annotations

from tests.stores.samples import response_step, user_step
from thinkback.errors import HeadMovedError, NotFoundError, StoreError
from thinkback.log.protocol import AppendRequest, Sighting, Store
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Head

SECRET = b"a secret of the tests, and long enough to be one"


def entries(count: int, session: str = "s", name: str = "step") -> list[AppendRequest]:
    """Steps of one session, each on top of the one before."""
    made: list[AppendRequest] = []
    head = Head()
    for number in range(count):
        step = response_step(f"{name}-{number}") if number % 2 else user_step(f"{name}-{number}", f"Question {number}")
        commits = seal(step, head)
        sighting = Sighting(b"scope".ljust(16), bytes([number % 256]) * 16, f"response of {step.id}")
        made.append(AppendRequest(session, f"name of {session}", 7, step.id, commits, head, sightings=[sighting]))
        head = head_of(commits)
    return made


class Recorder:
    """Stores entries in a log, as often as it is allowed to; ``trouble`` is raised instead while it is set."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.trouble: StoreError | None = None
        self.allowed = 1_000_000
        self.stored: list[str] = []

    def __call__(self, tenant: str, entry: AppendRequest) -> bool:
        if self.trouble is not None or not self.allowed:
            raise self.trouble or StoreError("the database went away")
        self.allowed -= 1
        store = self._store
        if store.find_session(entry.session) is None:
            if entry.expected != Head():
                raise NotFoundError("there is no such session")
            store.create_session(entry.session, entry.name, entry.created)
        if entry.branch not in [branch.name for branch in store.refs.list(entry.session)]:
            store.refs.create(entry.session, entry.branch, entry.expected, entry.via)
        new = store.append(entry.session, entry.step, entry.commits, entry.expected, entry.branch)
        if new:
            self.stored.append(entry.step)
        return new


class Refusing(Recorder):
    """One whose heads have always moved."""

    def __call__(self, tenant: str, entry: AppendRequest) -> bool:
        raise HeadMovedError("another one was first")
