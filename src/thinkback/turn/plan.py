"""The plan of the next request: a target, a compiled history and parameters, ready to be sent by anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import msgspec

from thinkback.compile import fold
from thinkback.compile.policy import Inputs
from thinkback.log.seal import head_of
from thinkback.model import canonical
from thinkback.model.blocks import Block
from thinkback.model.commits import Commit, Head, Request, Tool, Tools, decode_payload
from thinkback.model.plan import Counts, Dropped
from thinkback.model.target import Basis, Decision, Settings, Target, merge
from thinkback.turn.controls import control_params
from thinkback.turn.dialects import dialect

_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})
# A shorter one is no secret, and blotting it out would garble every text.
_SHORTEST_SECRET = 6


class Plan:
    """One request before it is sent. ``body`` may be iterated again and again; ``bytes(plan)`` joins it.

    ``url`` and ``headers`` are complete (the key included: it is in no ``repr`` and in no commit). ``decisions``
    tell for each reasoning block what was done and why; ``dropped`` the settings the endpoint cannot express.
    ``held``: it may carry reasoning that is not in the log, so that it cannot be built a second time.
    """

    def __init__(
        self,
        request: fold.Request,
        target: Target,
        head: Head,
        tools: Sequence[Tool],
        params: dict[str, Any],
        known_bases: Set[str] = frozenset(),
    ) -> None:
        self._request = request
        self._known_bases = known_bases
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
        self.held = False

    @property
    def url(self) -> str:
        """Where the body goes; a query of the base URL stays behind the path."""
        base, mark, query = self.target.base_url.partition("?")
        return f"{base}{self.target.endpoint.path}{mark}{query}"

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

    def without_key(self, text: str) -> str:
        """``text`` with the key of this request blotted out, wherever a server repeats it."""
        wanted = {self.target.endpoint.auth.header.lower(), *_SECRET_HEADERS}
        for name, value in self.headers.items():
            secret = value.rpartition(" ")[2]
            if name.lower() in wanted and len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return text

    def record(self) -> Request:
        """The audit record of this request for the log."""
        digests = self._request.digests(self._writer, self._end, self.tools)
        target = self.target
        basis = canonical.encode(Basis(target.endpoint, target.rule, target.info))
        digest = canonical.digest(basis)
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
                **({"held": "true"} if self.held else {}),
            },
            settings=self.settings,
            rules=(target.rule.id,),
            params=canonical.source(self.native),
            head=self.head.hash,
            system_digest=digests.system,
            tools_digest=digests.tools,
            messages_digest=digests.messages,
            carriers_digest=digests.carriers,
            sent_digest=digests.sent,
            basis_digest=digest,
            basis="" if digest in self._known_bases else basis.decode(),
        )

    def __repr__(self) -> str:
        return f"<Plan {self.target.endpoint.id} {self.target.model}: {len(self._request)} messages>"


class History:
    """The commits of a session as values, folded for its target; grows with the log.

    Reasoning that is not to be kept is held here (``hold``) and stands in for what the log has, until ``release``.
    """

    def __init__(self, commits: Sequence[Commit] = ()) -> None:
        self.commits: list[Commit] = []
        self.tools: tuple[Tool, ...] = ()
        self._bases: set[str] = set()
        self._state: fold.State | None = None
        self._waiting: list[Commit] = []
        self._held: dict[tuple[str, int], Block] = {}
        self._before: tuple[int, fold.State | None, list[Commit]] = (0, None, [])
        self.take(commits)

    @property
    def head(self) -> Head:
        """After the last commit."""
        return head_of(self.commits)

    def take(self, commits: Sequence[Commit]) -> None:
        """More commits of the log, in order."""
        whole = [self._whole(commit) for commit in commits] if self._held else commits
        self.commits.extend(whole)
        self._waiting.extend(whole)
        for commit in commits:
            if isinstance(commit.value, Tools):
                self.tools = commit.value.tools
            elif isinstance(commit.value, Request) and commit.value.basis:
                self._bases.add(commit.value.basis_digest)

    def hold(self, response: str, index: int, block: Block) -> None:
        """Keep ``block`` in memory for the commit of that place, which is to come."""
        if not self._held:
            self._before = (len(self.commits), self._state, list(self._waiting))
        self._held[response, index] = block

    def release(self) -> None:
        """Forget what was held: from here on the history is what the log has."""
        if not self._held:
            return
        at, self._state, waiting = self._before
        self.commits[at:] = [self._stored(commit) for commit in self.commits[at:]]
        self._waiting = [*waiting, *self.commits[at:]]
        self._held = {}

    def _whole(self, commit: Commit) -> Commit:
        block = self._held.get((commit.response, commit.index))
        return commit if block is None else msgspec.structs.replace(commit, value=block)

    def _stored(self, commit: Commit) -> Commit:
        if (commit.response, commit.index) not in self._held:
            return commit
        return msgspec.structs.replace(commit, value=decode_payload(commit.payload))

    def plan(self, target: Target, settings: Settings, tools: Sequence[Tool] | None, params: dict[str, Any]) -> Plan:
        """The next request. ``tools=None`` takes those of the log. Raises ``ReplayRefused``."""
        controls, dropped = control_params(settings, target)
        wanted = merge(controls, params)
        writer = dialect(target.endpoint.dialect).writer
        offered = self.tools if tools is None else tuple(tools)
        state = self._fold(Inputs(target, settings, wanted, bool(offered)))
        request = fold.Request(state, writer)
        added = fold.added_params(state.policy, request.off)
        params_sent = merge(merge(added, wanted), _off(added, request))
        plan = Plan(request, target, self.head, offered, params_sent, self._bases)
        plan.dropped, plan.native, plan.held = tuple(dropped), dict(params), bool(self._held)
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
