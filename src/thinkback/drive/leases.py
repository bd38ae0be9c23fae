"""Holding a branch while a turn runs: takes and renews the lease, respects those of others.

Promises: a turn under way is not ended, repaired or overtaken by another session object that looks here first; whoever
lost the lease learns so before it appends. What makes that safe is the compare-and-set of the log. One thread a process
renews, because a turn's own thread waits in foreign code: a silent server, a client's ``chat``, a tool.
Must not: know what a commit means.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Protocol
from weakref import WeakSet

from thinkback.drive.clock import now
from thinkback.drive.hooks import NO_HOOKS, Hooks
from thinkback.errors import BusyError, HeadMovedError, NotFoundError, StoreError, ThinkbackError
from thinkback.log.leases import SECOND, Lease, Owner, is_near, standing
from thinkback.log.protocol import Store
from thinkback.model.commits import Head

PERIOD = 20.0
"""Seconds between renewals."""
MISSED = 3
"""So many of them missed end a lease."""
UNREAD = 9
"""So many of them a stream may wait for its reader."""
# Seconds between looks at a lease that is waited for, as a part of the period.
_LOOK = 1 / 80


class Tenure(Protocol):
    """What a driver says of its turn: that it runs, when it waits for its reader, and when it is over.

    A turn that waits for a person keeps its branch: the person is at another window, and a second one that ended the
    turn would take the question from under their eyes.
    """

    def begin(self) -> None:
        """It runs."""

    def handed(self) -> None:
        """A delta goes to the reader."""

    def back(self) -> None:
        """The reader wants more."""

    def release(self) -> None:
        """It is over."""


class Alone:
    """The tenure of a turn that nobody else can get at."""

    def handed(self) -> None:
        """Nobody waits."""

    begin = back = release = handed


ALONE = Alone()


class Holder:
    """One session object as a holder of leases on ``log``: of one branch of ``session`` at a time.

    ``wait`` is how many seconds it waits for somebody else's to end. ``head`` is where its turn stands. Once the lease
    is ``lost``, somebody else has the branch.
    """

    def __init__(
        self,
        log: Store,
        session: str,
        hooks: Hooks = NO_HOOKS,
        period: float = PERIOD,
        clock: Callable[[], int] = now,
    ) -> None:
        self._log, self._session, self._hooks = log, session, hooks
        self._period, self._clock = period, clock
        self._term = round(MISSED * period * SECOND)
        self._me = here()
        # The lease is taken from the keeper's thread and from the turn's.
        self._lock = threading.RLock()
        self._until = 0
        self._paused = False
        self._handed = 0.0
        self.wait = 0.0
        self.branch = ""
        self.head: Head | None = None
        self.lost = False
        self.replaced = False

    # -- for what is said by hand ----------------------------------------------------------------------------------

    def refuse_leased(self, branch: str) -> None:
        """Wait while somebody else's lease covers ``branch``. Raises ``BusyError`` where it is not worth waiting.

        A stale one is removed, so that its owner, if it is only stopped, notices.
        """
        if self.branch == branch and not self.lost:
            return
        for seconds in self._looks(lambda: self._look(branch)):
            time.sleep(seconds)

    def found(self, branch: str) -> Lease | None:
        """The live lease of somebody else on ``branch``."""
        lease = self._log.leases.find(self._session, branch, self._clock())
        return lease if self._standing(lease) == "live" else None

    def _look(self, branch: str) -> BusyError | None:
        lease = self._log.leases.find(self._session, branch, self._clock())
        match self._standing(lease):
            case "live":
                return busy(lease, self._session, branch)
            case "stale" if lease is not None:
                self._log.leases.release(self._session, branch, lease.owner)
        return None

    @property
    def where(self) -> str:
        """This process, as people name it."""
        return f"process {self._me.pid} on {self._me.host}"

    # -- for a turn ------------------------------------------------------------------------------------------------

    def take(self, branch: str) -> None:
        """Take the lease on ``branch``, waiting if that is wanted. Raises ``BusyError``.

        ``replaced`` says afterwards that it was somebody's who did not end it.
        """
        for seconds in self.takes(branch):
            time.sleep(seconds)

    def takes(self, branch: str) -> Iterator[float]:
        """The same; yields how long to wait before it goes on."""
        return self._looks(lambda: self._try(branch))

    def take_over(self, branch: str) -> None:
        """Take it whoever has it."""
        self._try(branch, by_force=True)

    def begin(self) -> None:
        """Renew it from now on: what was only taken lasts for one term."""
        keeper().renew(self)

    def pause(self) -> None:
        """Let others have the branch while nobody reads what arrives."""
        with self._lock:
            if self.branch and not (self._paused or self.lost):
                self._paused = True
                self._drop()

    def resume(self) -> None:
        """Have it again, if nobody else has it now."""
        with self._lock:
            if self._paused:
                self._paused = False
                self._renew_or_lose()

    def handed(self) -> None:
        """The reader has what arrived, and may take its time."""
        self._handed = time.monotonic()

    def back(self) -> None:
        """The reader wants more."""
        self._handed = 0.0
        if self._paused:
            self.resume()

    def is_sure(self, *, asks: bool = False) -> bool:
        """Whether the branch is still ours. The store is asked where that may have changed, or ``asks`` wants it."""
        with self._lock:
            if self._paused:
                self.resume()
            elif not self.lost and (asks or self._clock() >= self._until):
                self._renew_or_lose()
            return not self.lost

    def lost_to(self) -> StoreError:
        """The error of a turn that lost the branch before it had begun."""
        lease = self.found(self.branch)
        if lease is not None:
            return busy(lease, self._session, self.branch)
        return HeadMovedError(
            f"another process continued branch {self.branch} before this turn began",
            details={"session": self._session, "branch": self.branch},
            next_actions=("read what it added, then send the message again",),
        )

    def follow(self, branch: str) -> None:
        """The turn goes on in a branch that it opened."""
        self.release()
        self._try(branch)
        self.begin()

    def release(self) -> None:
        """Give it back. Where the log cannot be written it runs out by itself."""
        with self._lock:
            keeper().forget(self)
            if self.branch and not (self._paused or self.lost):
                self._drop()
            self.branch, self.head, self.lost, self.replaced = "", None, False, False
            self._paused, self._handed = False, 0.0

    # -- for the keeper --------------------------------------------------------------------------------------------

    @property
    def period(self) -> float:
        """Seconds until it is to be renewed again."""
        return self._period

    def renew(self) -> None:
        """Renew the lease; not of a turn that waits for somebody to read on."""
        with self._lock:
            if not self.branch or self._paused or self.lost:
                return
            if self._handed and time.monotonic() - self._handed > UNREAD * self._period:
                self.pause()
                return
            with suppress(StoreError):  # the next one may succeed
                self._renew_or_lose()

    def _renew_or_lose(self) -> None:
        leases, branch, now = self._log.leases, self.branch, self._clock()
        try:
            if not leases.renew(self._session, branch, self._me, self._term, now):
                # Nobody's: a server that crashed may have lost it, or somebody has ended our turn and gone again.
                is_ours = leases.find(self._session, branch, now) is None and self._stands()
                is_ours = is_ours and leases.take(self._session, branch, self._me, self._term, now).owner == self._me
                self.lost = not is_ours
        except NotFoundError:
            self.lost = True
        self._until = now + self._term

    def _stands(self) -> bool:
        """Whether the branch is where the turn left it."""
        heads = {branch.name: branch.head for branch in self._log.refs.list(self._session)}
        return self.head is None or heads.get(self.branch) == self.head

    # -- how -------------------------------------------------------------------------------------------------------

    def _looks(self, attempt: Callable[[], BusyError | None]) -> Iterator[float]:
        until, is_told = time.monotonic() + self.wait, False
        while (found := attempt()) is not None:
            left = until - time.monotonic()
            if left <= 0:
                raise found
            if not is_told:
                self._hooks.run("notice", f"{found.message}; waiting")
                is_told = True
            yield min(self._period * _LOOK, left)

    def _try(self, branch: str, *, by_force: bool = False) -> BusyError | None:
        """Take the lease if that is possible now."""
        with self._lock:
            if self._me.pid != os.getpid():
                self._me = here()
            if self.branch and self.branch != branch:
                self.release()
            leases, now, self.replaced = self._log.leases, self._clock(), False
            found = leases.take(self._session, branch, self._me, self._term, now)
            while found.owner != self._me:
                if not by_force and self._standing(found) == "live":
                    return busy(found, self._session, branch)
                found = leases.take(self._session, branch, self._me, self._term, self._clock(), found)
                self.replaced = found.owner == self._me
            self.branch, self.lost, self._paused, self._until = branch, False, False, now + self._term
            return None

    def _drop(self) -> None:
        with suppress(ThinkbackError):
            self._log.leases.release(self._session, self.branch, self._me)

    def _standing(self, lease: Lease | None) -> str:
        looks = lease is not None and is_near(lease, self._me)
        return standing(lease, self._me, running(lease.owner.pid) if lease is not None and looks else None)


class Keeper:
    """Renews the leases of this process, on one thread that is there while there are some."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._due: dict[int, float] = {}
        # A turn that nobody holds any more is not renewed.
        self._holders: WeakSet[Holder] = WeakSet()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def renew(self, holder: Holder) -> None:
        """Renew the lease of ``holder`` from now on."""
        with self._changed:
            self._holders.add(holder)
            self._due[id(holder)] = time.monotonic() + holder.period
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="thinkback-leases", daemon=True)
                self._thread.start()
            else:
                self._changed.notify()

    def forget(self, holder: Holder) -> None:
        """Renew it no more."""
        with self._changed:
            self._holders.discard(holder)
            self._due.pop(id(holder), None)

    def _run(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                held = {id(holder): holder for holder in self._holders}
                self._due = {key: due for key, due in self._due.items() if key in held}
                due = [holder for key, holder in held.items() if self._due[key] <= now]
                for holder in due:
                    self._due[id(holder)] = now + holder.period
                if not due:
                    left = min(self._due.values(), default=now + PERIOD) - now
                    del held
                    if not self._changed.wait(left) and not self._due:
                        self._thread = None
                        return
                    continue
            for holder in due:
                holder.renew()
            del due, held, holder


_keeper = Keeper()


def keeper() -> Keeper:
    """That of this process."""
    global _keeper
    if _keeper.pid != os.getpid():  # forked: the thread stayed behind
        _keeper = Keeper()
    return _keeper


def busy(lease: Lease | None, session: str, branch: str) -> BusyError:
    """The error for a branch on which somebody else has a turn under way."""
    assert lease is not None
    owner, since = lease.owner, time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(lease.taken // SECOND))
    return BusyError(
        f"busy: process {owner.pid} on {owner.host} since {since} has a turn under way on branch {branch}",
        details={"session": session, "branch": branch, "process": owner.pid, "host": owner.host, "since": lease.taken},
        next_actions=(
            "wait for its end: --wait, in a program store.session(..., wait=SECONDS)",
            "go on in a branch that begins before that turn: --beside, in a program session.branches.beside()",
            "end that turn and go on here: --take-over, in a program session.take_over()",
        ),
    )


def here() -> Owner:
    """A new owner in this process."""
    host = os.uname().nodename if sys.platform != "win32" else os.environ.get("COMPUTERNAME", "")
    return Owner(secrets.token_hex(12), os.getpid(), running(os.getpid()) or "", _boot(), host)


def running(pid: int) -> str | None:
    """When the process that runs here under ``pid`` began; empty where none does, ``None`` where that is not known."""
    if sys.platform == "win32":  # signal 0 would end it there
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
        return "" if state in (b"Z", b"X") else fields[18].decode()
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        pass
    return None


@cache
def _boot() -> str:
    """Within what a pid means the same: since when the machine runs, and which processes see each other."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
