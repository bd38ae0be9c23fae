"""What a trial sent, what its client got and what its log has, held against each other.

A response is known by the digest of what it says: its text, and its calls with their ids. ``Marked`` gives each one a
mark of its own, so that no two are alike and equality is that of sets. Promises: nothing here asks the gateway; the
log is read from its file. Must not: excuse what a client had whole.
"""

from __future__ import annotations

import itertools
import json
import re
import socket
import socketserver
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from bench.coding_agents.model import agent_step
from tests.drive.servers import Relay, carried
from thinkback.model.blocks import Text, ToolCall
from thinkback.model.commits import Commit, Request, Response
from thinkback.stores import open_store
from thinkback_referee import Step
from thinkback_referee.persona import View

SETTLED = 1.0
"""Seconds in which a gateway has stored a response that it has read whole."""
# In a response of the gateway's: its id in the head, and the event that ends it, of the dialects that agents stream.
_SAID = re.compile(rb"\r\nthinkback-response: (\w+)\r\n|event: (?:response\.completed|message_stop)\n")
_LONGEST = 256
_BLOCKS = ("assistant", "tool_call")


class Marked:
    """The house model of agents, whose responses are all different: by the ids of their calls, or by their text."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def __call__(self, view: View, seed: int = 0) -> Step:
        """The next response."""
        step, number = agent_step(view, seed), next(self._numbers)
        if not step.tool_calls:
            return replace(step, text=f"{step.text} (response {number})")
        calls = [replace(call, id=f"call_{number}_{at}") for at, call in enumerate(step.tool_calls)]
        return replace(step, tool_calls=calls)


class Sent(NamedTuple):
    """A response of the referee's: when it began, and when no more of it was written; ``whole``: all of it was."""

    digest: str
    place: str
    began: float
    ended: float
    whole: bool


class Stored(NamedTuple):
    """A response in the log. ``recorded``: the gateway had it from a provider; else a client brought it."""

    digests: frozenset[str]
    complete: bool
    recorded: bool


class Account(NamedTuple):
    """``kills`` are the times at which the gateway was killed, ``agent_kills`` those of the agent. ``stored`` is by the
    id of the response, and so is ``acknowledged``: what a client got to its end.
    """

    sent: Sequence[Sent]
    acknowledged: frozenset[str]
    stored: Mapping[str, Stored]
    kills: Sequence[float]
    agent_kills: Sequence[float]

    @property
    def whole(self) -> dict[str, list[str]]:
        """The complete responses that the gateway recorded: ids by digest."""
        found = defaultdict[str, list[str]](list)
        for id, each in self.stored.items():
            if each.recorded and each.complete:
                for digest in each.digests:
                    found[digest].append(id)
        return found

    @property
    def missing(self) -> list[Sent]:
        """What was sent and is not in the log as a complete response."""
        whole = self.whole
        return [each for each in self.sent if each.digest not in whole]

    @property
    def by_gateway(self) -> list[Sent]:
        """The missing ones that were under way when the gateway was killed: it had not read or not stored them."""
        return [each for each in self.missing if _under_way(each, self.kills)]

    @property
    def by_agent(self) -> list[Sent]:
        """The other missing ones that were under way when the agent was killed: the gateway broke them off."""
        rest = (each for each in self.missing if not _under_way(each, self.kills))
        # what it asked for just before it was killed begins a moment later
        return [each for each in rest if _under_way(each, self.agent_kills, SETTLED)]

    @property
    def lost(self) -> list[Sent]:
        """The missing ones that no kill explains."""
        explained = {*self.by_gateway, *self.by_agent}
        return [each for each in self.missing if each not in explained]

    def nearest(self, sent: Sent) -> str:
        """For those who look for what became of it: how it was sent, and the kills on both sides of its beginning."""
        how = f"{'sent whole' if sent.whole else 'cut'} after {sent.ended - sent.began:.2f} s"
        kills = [(kill - sent.began, whose) for whose, each in self._killed.items() for kill in each]
        before = max((each for each in kills if each[0] <= 0), default=None)
        after = min((each for each in kills if each[0] > 0), default=None)
        return ", ".join([how, *(f"{whose} killed at {at:+.2f} s" for at, whose in filter(None, (before, after)))])

    @property
    def _killed(self) -> dict[str, Sequence[float]]:
        return {"gateway": self.kills, "agent": self.agent_kills}

    @property
    def unstored(self) -> list[str]:
        """What a client got to its end and the log does not have complete."""
        return sorted(id for id in self.acknowledged if id not in self.stored or not self.stored[id].complete)

    @property
    def doubled(self) -> list[str]:
        """What the log has more than once, or in several wordings under one id."""
        several = [digest for digest, ids in self.whole.items() if len(ids) > 1]
        return several + [id for id, each in self.stored.items() if each.recorded and len(each.digests) > 1]

    @property
    def made_up(self) -> list[str]:
        """What the log has and nobody sent."""
        return sorted(self.whole.keys() - {each.digest for each in self.sent})

    @property
    def slowest(self) -> float:
        """The longest time that a response was written whole before the kill which kept it from being stored."""
        return max((_lag(each, self.kills) for each in self.by_gateway if each.whole), default=0.0)

    def wrong(self) -> bool:
        """Whether anything is not as it must be."""
        return bool(self.lost or self.unstored or self.doubled or self.made_up)


def _under_way(sent: Sent, kills: Sequence[float], lead: float = 0.0) -> bool:
    return any(sent.began - lead <= kill <= sent.ended + SETTLED for kill in kills)


def _lag(sent: Sent, kills: Sequence[float]) -> float:
    return min((kill - sent.ended for kill in kills if sent.began <= kill <= sent.ended + SETTLED), default=0.0)


def digest_of_step(step: Step) -> str:
    """The digest of what the referee's model said."""
    return _digest(step.text, [(call.id, call.name, call.arguments) for call in step.tool_calls])


def _digest(text: str, calls: Sequence[tuple[str, str, object]]) -> str:
    return sha256(json.dumps([text.strip(), *calls], sort_keys=True).encode()).hexdigest()


def stored(directory: Path) -> dict[str, Stored]:
    """The responses in the logs below ``directory``, on all branches of all sessions, by id."""
    found: dict[str, Stored] = {}
    for path in logs(directory):
        with closing(open_store(str(path))) as log:
            for session in log.list_sessions():
                for ref in log.refs.list(session.id):
                    _take(found, log.read(session.id, branch=ref.name))
    return found


def logs(directory: Path) -> list[Path]:
    """The logs of all tenants, without the gateway's own state."""
    return [path for path in sorted(directory.rglob("*.db")) if not path.name.startswith("gateway")]


def _take(found: dict[str, Stored], commits: Sequence[Commit]) -> None:
    """The responses of one line; a copy of one that stands on another line has its id."""
    blocks = defaultdict[str, list[Commit]](list)
    for commit in commits:
        if commit.response and commit.kind in _BLOCKS:
            blocks[commit.response].append(commit)
    sent = {each.response for each in commits if isinstance(each.value, Request) and each.value.sent_digest}
    for commit in commits:
        if isinstance(commit.value, Response):
            id = commit.response
            before = found.get(id, Stored(frozenset(), commit.value.complete, recorded=False))
            recorded = before.recorded or id in sent
            digests = before.digests | ({_said(blocks[id])} if recorded and before.complete else set())
            found[id] = Stored(digests, before.complete, recorded)


def _said(blocks: Sequence[Commit]) -> str:
    values = [commit.value for commit in sorted(blocks, key=lambda commit: commit.index)]
    text = "".join(value.text for value in values if isinstance(value, Text))
    calls = (value for value in values if isinstance(value, ToolCall))
    return _digest(text, [(call.id, call.name, _arguments(call.arguments)) for call in calls])


def _arguments(source: str) -> object:
    """What a call is made with; of a tool that takes any text it is that text."""
    try:
        return json.loads(source or "{}")
    except ValueError:
        return {"input": source}


class Tap(Relay):
    """Stands between a client and the gateway at ``port`` and notes what the client got to its end."""

    def __init__(self, port: int) -> None:
        self.acknowledged: set[str] = set()
        tap = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as gateway:
                    ends = Ends()
                    for data in carried(self.request, gateway):
                        tap.acknowledged.update(ends.take(data))

        super().__init__(Handler)


class Ends:
    """Reads what a gateway answers on one connection for the ends of responses."""

    def __init__(self) -> None:
        self._data = b""
        self._response = ""

    def take(self, data: bytes) -> list[str]:
        """The ids of the responses that end in these bytes."""
        self._data += data
        ended, end = [], 0
        for match in _SAID.finditer(self._data):
            end = match.end() - len(b"\r\n") if match[1] else match.end()
            if match[1]:
                self._response = match[1].decode()
            elif self._response:
                ended.append(self._response)
                self._response = ""
        self._data = self._data[max(end, len(self._data) - _LONGEST) :]
        return ended
