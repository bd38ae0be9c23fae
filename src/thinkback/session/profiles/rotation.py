"""Which target of a failover or round-robin profile is asked.

The choice is made per turn and stands until its end, tool loops included; only a target that does not answer is left
within a turn. What is known of failures is kept as long as the session's object; who was asked last says the log.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from thinkback.errors import SettingError, ThinkbackError
from thinkback.model.commits import Commit, Request
from thinkback.model.target import Target
from thinkback.session.fresh import outside
from thinkback.session.place import Place
from thinkback.session.profiles.files import read
from thinkback.session.profiles.moving import moved, spot_of
from thinkback.settings.profiles import Profile

if TYPE_CHECKING:
    from thinkback.session.session import Session

COOLDOWN = 60.0
"""Seconds for which a turn does not begin with a target that failed."""


class Rotation:
    """What one session knows of its targets, by their names. ``clock`` gives seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.serving = ""
        self.tried: dict[str, str] = {}
        self._failed: dict[str, float] = {}
        self._warned: set[str] = set()
        self._begun = False
        self._before: object = None
        self._answer = ""

    def current(self, session: Session, profile: Profile) -> str:
        """The target of the next request."""
        if self._is_under_way(session) and self.serving in profile.targets:
            return self.serving
        return self._choose(session, profile, stays=is_open(session._history.commits))

    def begin(self, session: Session, profile: Profile, *, is_new: bool) -> None:
        """A turn begins, with a message of its own if it ``is_new``: choose. Warns of targets without a key."""
        driver = session._last_turn.driver
        if driver is not None and driver.outcome is not None and driver.outcome.error is None:
            self._failed.pop(self.serving, None)
        self.serving = self._choose(session, profile, stays=not is_new)
        self.tried, self._answer = {}, _last_answer(session)
        self._begun, self._before = True, driver
        for name in profile.targets:
            self._warn(session, name)

    def fail_over(self, session: Session, profile: Profile, reason: str) -> str:
        """The target that takes over from the one that failed for ``reason``; empty where each has been tried."""
        self._forget_answered(session)
        self.tried[self.serving] = reason
        self._failed[self.serving] = self.clock()
        names = after(profile.targets, self.serving)
        left = [name for name in names if name not in self.tried and not key_missing(session, name)]
        if not left:
            return ""
        self.serving = min(left, key=self._is_cooling)
        return self.serving

    def told(self, session: Session, profile: Profile, error: Exception) -> Exception:
        """``error``, and what became of the other targets that were tried for the same response, or passed over."""
        self._forget_answered(session)
        if not self.tried or not isinstance(error, ThinkbackError) or "targets" in error.details:
            return error
        why = {**self.tried, self.serving: error.message}
        why |= {
            name: missing for name in profile.targets if name not in why and (missing := key_missing(session, name))
        }
        if len(why) == 1:
            return error
        return type(error)(
            f"no target answered: {'; '.join(f'{name}: {reason}' for name, reason in why.items())}",
            details={**error.details, "targets": why},
            next_actions=error.next_actions,
        )

    def _choose(self, session: Session, profile: Profile, *, stays: bool) -> str:
        """The target to begin with; who was asked last where what it began goes on (``stays``)."""
        last = self._last(session, profile)
        if stays and last and not self._is_cooling(last):
            return last
        names = profile.targets if profile.kind == "failover" else after(profile.targets, last)
        usable = [name for name in names if not key_missing(session, name)] or names
        return min(usable, key=self._is_cooling)

    def _is_cooling(self, name: str) -> bool:
        failed = self._failed.get(name)
        return failed is not None and self.clock() - failed < COOLDOWN

    def _is_under_way(self, session: Session) -> bool:
        """Whether the turn that was begun last is not over, or goes on once its calls have results."""
        driver = session._last_turn.driver
        if not self._begun or driver is self._before:
            return self._begun
        return driver is None or driver.outcome is None or driver.outcome.state is None

    def _last(self, session: Session, profile: Profile) -> str:
        """The target that the last request in the log went to; of several that are alike, the one known to be it."""
        alike = _went_to(session, profile.targets)
        return self.serving if self.serving in alike else next(iter(alike), "")

    def _forget_answered(self, session: Session) -> None:
        """What was tried for a response that has come since is no matter any more."""
        answer = _last_answer(session)
        if answer != self._answer:
            self.tried, self._answer = {}, answer

    def _warn(self, session: Session, name: str) -> None:
        """Say once of a target that it is passed over for want of a key."""
        missing = key_missing(session, name) if name not in self._warned else ""
        if missing:
            self._warned.add(name)
            warnings.warn(f"the target {name} is passed over: {missing}", stacklevel=outside())


def targets(profile: Profile) -> dict[str, Profile]:
    """The targets of ``profile``, read now. Raises ``SettingError`` for one that does not say where requests go."""
    found = {name: read(name) for name in profile.targets}
    for name, target in found.items():
        if target.kind != "model" or not (target.endpoint or target.base_url) or not target.model:
            raise SettingError(
                f"the profile {name} cannot be a target: it must say an endpoint and a model",
                details={"profile": name},
                next_actions=(f"`thinkback profile show {name}` shows what it says",),
            )
    return found


def after(names: Sequence[str], name: str) -> tuple[str, ...]:
    """``names`` in their order, beginning behind ``name`` and going round."""
    at = names.index(name) + 1 if name in names else 0
    return (*names[at:], *names[:at])


def is_open(commits: Sequence[Commit]) -> bool:
    """Whether the last turn goes on: it has asked, and has not ended."""
    last = next((c for c in reversed(commits) if c.kind in ("turn_ended", "user", "response", "tool_result")), None)
    return last is not None and last.kind in ("response", "tool_result")


def key_missing(session: Session, name: str) -> str:
    """Why the target ``name`` cannot be asked, where no key for it is found; else nothing."""
    return _place(session, name).key_missing(session._store.rulebook)


def _went_to(session: Session, names: Sequence[str]) -> list[str]:
    """Which of the targets the last request of the log may have gone to, the likeliest first."""
    value = next((c.value for c in reversed(session._history.commits) if c.kind == "request"), None)
    if not isinstance(value, Request):
        return []
    found: dict[str, Target] = {name: _place(session, name).target(session._store.rulebook) for name in names}
    went = tuple(value.target[key] for key in ("endpoint", "base_url", "model"))
    alike = [name for name, to in found.items() if (to.endpoint.id, to.base_url, to.model) == went]
    return sorted(alike, key=lambda name: found[name].account != value.target["account"])


def _place(session: Session, name: str) -> Place:
    return moved(session._followed.given, session._store.rulebook, spot_of(read(name)))


def _last_answer(session: Session) -> str:
    return next((c.hash for c in reversed(session._history.commits) if c.kind == "response"), "")
