"""The plan of the next request: a target, a compiled history and parameters, ready to be sent by anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from thinkback.compile import fold
from thinkback.compile.policy import Inputs
from thinkback.model import canonical
from thinkback.model.commits import Commit, Head, Request, Tool, Tools
from thinkback.model.plan import Counts, Dropped
from thinkback.model.target import Decision, Settings, Target, merge
from thinkback.turn.controls import control_params
from thinkback.turn.dialects import dialect


class Plan:
    """One request before it is sent. ``body`` may be iterated again and again; ``bytes(plan)`` joins it.

    ``url`` and ``headers`` are complete (the key included: it is in no ``repr`` and in no commit). ``decisions``
    tell for each reasoning block what was done and why; ``dropped`` the settings the endpoint cannot express.
    """

    def __init__(
        self, request: fold.Request, target: Target, head: Head, tools: Sequence[Tool], params: dict[str, Any]
    ) -> None:
        self._request = request
        self._writer = dialect(target.endpoint.dialect).writer
        self._end = self._writer.end(target.model, tools, params)
        self.target = target
        self.head = head
        self.tools = tuple(tools)
        self.params = params
        self.native: dict[str, Any] = {}
        self.dropped: tuple[Dropped, ...] = ()
        self.settings: dict[str, str] = {}
        self.headers: dict[str, str] = {}

    @property
    def url(self) -> str:
        """Where the body goes."""
        return f"{self.target.base_url}{self.target.endpoint.path}"

    @property
    def body(self) -> Iterator[bytes]:
        """The pieces of the request body."""
        return self._request.body(self._writer, self._end)

    def __bytes__(self) -> bytes:
        return b"".join(self.body)

    @property
    def streams(self) -> bool:
        """Whether the response is asked for as a stream."""
        return bool(self.params.get("stream"))

    @property
    def decisions(self) -> list[Decision]:
        """What was done with each carrier and reasoning text, in order of the log."""
        return self._request.decisions()

    @property
    def counts(self) -> Counts:
        """Estimated tokens, stored and sent."""
        return self._request.counts()

    @property
    def messages(self) -> list[bytes]:
        """The messages as JSON, one by one."""
        return list(self._request.fragments())

    def record(self) -> Request:
        """The audit record of this request for the log."""
        digests = self._request.digests(self._writer, self._end, self.tools)
        target = self.target
        return Request(
            target={
                "endpoint": target.endpoint.id,
                "base_url": target.base_url,
                "dialect": target.endpoint.dialect,
                "model": target.model,
                "account": target.account,
                "account_known": "true" if target.account_known else "false",
                "on": target.on,
                "guessed": "true" if target.guessed else "false",
                "endpoint_data": canonical.encode(target.endpoint).decode(),
            },
            settings=self.settings,
            rules=(target.rule.id,),
            params=canonical.encode(self.native).decode(),
            head=self.head.hash,
            system_digest=digests.system,
            tools_digest=digests.tools,
            messages_digest=digests.messages,
            carriers_digest=digests.carriers,
            sent_digest=digests.sent,
            rule=canonical.encode(target.rule).decode(),
        )

    def __repr__(self) -> str:
        return f"<Plan {self.target.endpoint.id} {self.target.model}: {len(self._request)} messages>"


class History:
    """The commits of a session as values, folded for its target; grows with the log."""

    def __init__(self, commits: Sequence[Commit] = ()) -> None:
        self.commits: list[Commit] = []
        self._state: fold.State | None = None
        self._waiting: list[Commit] = []
        self.tools: tuple[Tool, ...] = ()
        self.take(commits)

    @property
    def head(self) -> Head:
        """After the last commit."""
        return Head(self.commits[-1].hash, self.commits[-1].seq) if self.commits else Head()

    def take(self, commits: Sequence[Commit]) -> None:
        """More commits of the log, in order."""
        self.commits.extend(commits)
        self._waiting.extend(commits)
        for commit in commits:
            if isinstance(commit.value, Tools):
                self.tools = commit.value.tools

    def replace(self, commits: Sequence[Commit]) -> None:
        """Start afresh from ``commits``."""
        self.commits, self._waiting, self._state = [], [], None
        self.take(commits)

    def plan(self, target: Target, settings: Settings, tools: Sequence[Tool] | None, params: dict[str, Any]) -> Plan:
        """The next request. ``tools=None`` takes those of the log. Raises ``ReplayRefused``."""
        controls, dropped = control_params(settings, target)
        wanted = merge(controls, params)
        writer = dialect(target.endpoint.dialect).writer
        offered = self.tools if tools is None else tuple(tools)
        state = self._fold(Inputs(target, settings, wanted, bool(offered)))
        request = fold.Request(state, writer)
        added = fold.added_params(state.policy, request.off)
        plan = Plan(request, target, self.head, offered, merge(merge(added, wanted), _off(added, request)))
        plan.dropped, plan.native = tuple(dropped), dict(params)
        return plan

    def _fold(self, inputs: Inputs) -> fold.State:
        writer = dialect(inputs.target.endpoint.dialect).writer
        state = self._state
        if state is None or state.inputs != inputs:
            state = fold.fold(inputs, self.commits, writer)
        elif self._waiting:
            state = fold.extend(state, self._waiting, writer)
        self._waiting = []
        self._state = state
        return state


def _off(added: dict[str, Any], request: fold.Request) -> dict[str, Any]:
    """Thinking off for this turn wins over what the user asked: the request would be refused otherwise."""
    return added if request.off else {}
