"""What a program wants to be told of, or to have a say in, while a session works.

A ``pre_`` hook may refuse by raising ``Veto``: nothing of what it refused is done. Whatever else happens has happened:
a hook that fails then is warned about and stops nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from thinkback.model.commits import Commit

Hook: TypeAlias = Callable[[Any], object]

# Each event and what its hooks get.
EVENTS: dict[str, str] = {
    "pre_commit": "the drafts of a step (tuple of Draft) before they are stored",
    "post_commit": "the commits of a step (tuple of Commit) once they are stored",
    "reasoning": "a commit of reasoning once it is stored",
    "pre_compile": "the commits (list of Commit) that a request or a compile is made from",
    "pre_send": "a request (Plan) before it goes out",
    "post_response": "the commits of a response (tuple of Commit) once they are stored",
    "pre_tool": "a call (ToolCall) before its function runs",
    "post_tool": "a call and what it gave: (ToolCall, text, whether it failed)",
    "pre_compact": "a checkpoint (Compaction) before it is stored",
    "notice": "a sentence for people (str), such as that a setting cannot be sent; without a hook it is a warning",
    "pre_merge": "the result of a merge (MergeResult) before it is stored",
}


class Hooks:
    """The hooks of a session, by event, in the order they were given."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[Hook]] = {}

    def on(self, event: str, hook: Hook) -> None:
        """Add one. Raises ``ValueError`` for an event that does not exist."""
        if event not in EVENTS:
            raise ValueError(f"there is no event {event!r}; events are {', '.join(EVENTS)}")
        self._hooks.setdefault(event, []).append(hook)

    def off(self, event: str, hook: Hook) -> None:
        """Take one away; nothing happens where it is not there."""
        if hook in self._hooks.get(event, []):
            self._hooks[event].remove(hook)

    def notify(self, text: str, stacklevel: int) -> None:
        """Report ``text`` to people: to the hooks on ``notice``, without any as a warning."""
        if self._hooks.get("notice"):
            self.run("notice", text)
        else:
            warnings.warn(text, stacklevel=stacklevel + 1)

    def run(self, event: str, value: object) -> None:
        """Call the hooks of ``event`` with ``value``. What a ``pre_`` hook raises is raised."""
        for hook in tuple(self._hooks.get(event, ())):
            if event.startswith("pre_"):
                hook(value)
                continue
            try:
                hook(value)
            except Exception as error:  # foreign code, and what it is told of has happened
                warnings.warn(f"a hook on {event} failed: {type(error).__name__}: {error}", stacklevel=2)

    def stored(self, commits: Sequence[Commit]) -> None:
        """Tell of commits that are stored."""
        if not self._hooks:
            return
        self.run("post_commit", tuple(commits))
        if any(commit.kind == "response" for commit in commits):
            self.run("post_response", tuple(commits))
        for commit in commits:
            if commit.kind == "reasoning":
                self.run("reasoning", commit)


NO_HOOKS = Hooks()
