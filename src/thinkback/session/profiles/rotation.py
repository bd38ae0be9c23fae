"""Which target of a failover or round-robin profile is asked.

The choice is made per turn and stands until its end, tool loops included; only a target that does not answer is left
within a turn. What is known of failures is kept as long as the session's object; who was asked last says the log.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from thinkback.errors import SettingError, ThinkbackError
from thinkback.model.commits import Commit, Request
from thinkback.session.endpoint_config import EndpointConfig, Rulebook
from thinkback.session.ids import outside
from thinkback.session.profiles.files import read
from thinkback.session.profiles.moving import moved, spot_of
from thinkback.settings.profiles import Profile
from thinkback.turn.events import Outcome

COOLDOWN = 60.0
"""Seconds for which a turn does not begin with a target that failed."""


class Driver(Protocol):
    """What is asked of the driver of a turn."""

    @property
    def outcome(self) -> Outcome | None: ...


class Rotating(msgspec.Struct, frozen=True):
    """A profile with its targets as they are now; ``given`` is the place that they are laid on."""

    profile: Profile
    targets: Mapping[str, Profile]
    given: EndpointConfig
    rules: Rulebook

    def place(self, name: str) -> EndpointConfig:
        """Where the target ``name`` is."""
        return moved(self.given, self.rules, spot_of(self.targets[name]))

    def key_missing(self, name: str) -> str:
        """Why the target ``name`` cannot be asked, where no key for it is found; else nothing."""
        return self.place(name).key_missing(self.rules)

    def went_to(self, commits: Sequence[Commit]) -> list[str]:
        """Which of the targets the last request of the log may have gone to, the likeliest first."""
        value = next((c.value for c in reversed(commits) if c.kind == "request"), None)
        if not isinstance(value, Request):
            return []
        found = {name: self.place(name).target(self.rules) for name in self.profile.targets}
        went = tuple(value.target[key] for key in ("endpoint", "base_url", "model"))
        alike = [name for name, to in found.items() if (to.endpoint.id, to.base_url, to.model) == went]
        return sorted(alike, key=lambda name: found[name].account != value.target["account"])


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

    def current(self, rotating: Rotating, commits: Sequence[Commit], last: Driver | None) -> str:
        """The target of the next request; ``last`` drove the last turn, or drives it."""
        if self._is_under_way(last) and self.serving in rotating.profile.targets:
            return self.serving
        return self._choose(rotating, commits, stays=is_open(commits))

    def begin(self, rotating: Rotating, commits: Sequence[Commit], last: Driver | None, *, is_new: bool) -> None:
        """A turn begins, with a message of its own if it ``is_new``: choose. Warns of targets without a key."""
        if last is not None and last.outcome is not None and last.outcome.error is None:
            self._failed.pop(self.serving, None)
        self.serving = self._choose(rotating, commits, stays=not is_new)
        self.tried, self._answer = {}, _last_answer(commits)
        self._begun, self._before = True, last
        for name in rotating.profile.targets:
            self._warn(rotating, name)

    def fail_over(self, rotating: Rotating, commits: Sequence[Commit], reason: str) -> str:
        """The target that takes over from the one that failed for ``reason``; empty where each has been tried."""
        self._forget_answered(commits)
        self.tried[self.serving] = reason
        self._failed[self.serving] = self.clock()
        names = after(rotating.profile.targets, self.serving)
        left = [name for name in names if name not in self.tried and not rotating.key_missing(name)]
        if not left:
            return ""
        self.serving = min(left, key=self._is_cooling)
        return self.serving

    def with_targets(self, rotating: Rotating, commits: Sequence[Commit], error: Exception) -> Exception:
        """``error``, and what became of the other targets that were tried for the same response, or passed over."""
        self._forget_answered(commits)
        if not self.tried or not isinstance(error, ThinkbackError) or "targets" in error.details:
            return error
        why = {**self.tried, self.serving: error.message}
        why |= {
            name: missing
            for name in rotating.profile.targets
            if name not in why and (missing := rotating.key_missing(name))
        }
        if len(why) == 1:
            return error
        return type(error)(
            f"no target answered: {'; '.join(f'{name}: {reason}' for name, reason in why.items())}",
            details={**error.details, "targets": why},
            next_actions=error.next_actions,
        )

    def _choose(self, rotating: Rotating, commits: Sequence[Commit], *, stays: bool) -> str:
        """The target to begin with; who was asked last where what it began goes on (``stays``)."""
        alike, profile = rotating.went_to(commits), rotating.profile
        # Of several that are alike, the one that is known to be it.
        last = self.serving if self.serving in alike else next(iter(alike), "")
        if stays and last and not self._is_cooling(last):
            return last
        names = profile.targets if profile.kind == "failover" else after(profile.targets, last)
        usable = [name for name in names if not rotating.key_missing(name)] or names
        return min(usable, key=self._is_cooling)

    def _is_cooling(self, name: str) -> bool:
        failed = self._failed.get(name)
        return failed is not None and self.clock() - failed < COOLDOWN

    def _is_under_way(self, last: Driver | None) -> bool:
        """Whether the turn that was begun last is not over, or goes on once its calls have results."""
        if not self._begun or last is self._before:
            return self._begun
        return last is None or last.outcome is None or last.outcome.state is None

    def _forget_answered(self, commits: Sequence[Commit]) -> None:
        """What was tried for a response that has come since is no matter any more."""
        answer = _last_answer(commits)
        if answer != self._answer:
            self.tried, self._answer = {}, answer

    def _warn(self, rotating: Rotating, name: str) -> None:
        """Say once of a target that it is passed over for want of a key."""
        missing = rotating.key_missing(name) if name not in self._warned else ""
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


def _last_answer(commits: Sequence[Commit]) -> str:
    return next((c.hash for c in reversed(commits) if c.kind == "response"), "")
