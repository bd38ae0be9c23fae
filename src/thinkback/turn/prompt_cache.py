"""How a request used the prompt cache of its provider, and why much of it was lost: read off the log.

A provider keeps the beginning of a request and charges less where a later one begins alike. Promises: a function of
records, reported counts and times; nothing is said where a provider reports nothing. Pure. Must not: guess what a
provider keeps that never reported it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Commit, Compaction, Request, Usage, surviving
from thinkback.turn.plan import Plan

Cause: TypeAlias = Literal["", "compacted", "tools", "system", "message", "reasoning", "expired", "unknown"]
"""Why most of what was kept was not read; nothing where that is not so."""

LOOKED_AT = 64
"""Earlier requests that are looked at for one that the cache was used for, at most."""
REMARK = "cache"
"""Under this name a record says what it is judged by where that stands on another line."""

CAUSES: tuple[Cause, ...] = get_args(Cause)
LEAST = 2000
"""Tokens that a collapse has at least; fewer are a matter of rounding."""
SHARE = 0.05
"""The part of what was kept that a collapse has at least."""
_PLACE = ("base_url", "dialect", "model", "account")
# What is stored at the moment when the next request begins.
_BEGINS = ("user", "tool_result", "request", "repair")


class CacheUse(msgspec.Struct, frozen=True):
    """``read`` tokens came from the cache, ``missed`` were there a request earlier and did not; ``None``: not known.

    ``cause`` says why where that is a collapse: at least ``LEAST`` tokens and ``SHARE`` of what was there. ``idle`` is
    the time from the beginning of the earlier request to that of this one, and ``kept`` for how long the rule says that
    a provider keeps what was asked for in such words, in seconds.
    """

    read: int | None = None
    missed: int | None = None
    cause: Cause = ""
    idle: int = 0
    kept: int = 0


class Sent(msgspec.Struct, frozen=True):
    """An answered request as a later one is judged by it: digests of its record, when it began, the tokens then kept.

    ``compacted``: a checkpoint was made behind it.
    """

    system: str
    tools: str
    messages: str
    carriers: str
    time: int
    tokens: int
    compacted: bool = False


def cache_use(plan: Plan) -> CacheUse:
    """The use of the request that ``plan`` is of, once it is answered."""
    response, commits = plan.answer
    at = next((at for at in range(len(commits) - 1, -1, -1) if _asks(commits[at], response)), -1)
    asked = surviving(commits[at].value) if at >= 0 else None
    usage = next((found for found in map(_usage, commits[at:]) if found is not None), None)
    if not isinstance(asked, Request) or usage is None or (usage.cached is None and usage.cache_write is None):
        return CacheUse()
    read = usage.cached or 0
    before = _remembered(asked) or last_sent(commits[:at], asked.target)
    if before is None:
        return CacheUse(read)
    missed = max(before.tokens - read, 0)
    if missed < LEAST or missed <= before.tokens * SHARE:
        return CacheUse(read, missed)
    idle, kept = max(_begun(commits, at) - before.time, 0) // 1_000_000, _kept(plan)
    expired = bool(kept) and idle > kept
    return CacheUse(read, missed, _cause(plan, asked, before, expired=expired), idle, kept)


def last_sent(commits: Sequence[Commit], target: Mapping[str, str]) -> Sent | None:
    """The last request to the place of ``target`` (that of a record) that the cache was used for.

    Where a provider ran tools it may have counted several passes, each with the whole request: no measure for another.
    """
    tokens: dict[str, int] = {}
    compacted, looked_at = False, 0
    for at in range(len(commits) - 1, -1, -1):
        commit = commits[at]
        value = surviving(commit.value)
        if isinstance(value, Usage):
            tokens.setdefault(commit.response, (value.cached or 0) + (value.cache_write or 0))
        elif commit.kind == "other":
            tokens[commit.response] = 0
        elif isinstance(value, Compaction):
            compacted = compacted or value.first != "" or value.shortened != ()
        elif isinstance(value, Request):
            found = tokens.get(commit.response, 0)
            if found and all(value.target.get(key) == target.get(key) for key in _PLACE):
                digests = value.system_digest, value.tools_digest, value.messages_digest, value.carriers_digest
                return Sent(*digests, _begun(commits, at), found, compacted)
            looked_at += 1
            if looked_at == LOOKED_AT:
                break
    return None


def told(use: CacheUse) -> str:
    """``use`` in a sentence; nothing where nothing is known."""
    if use.read is None:
        return ""
    missed = "" if use.missed is None else f", {use.missed:,} missed that an earlier request had there"
    why = {
        "": "",
        "compacted": "a checkpoint took the place of earlier messages",
        "tools": "the tools changed",
        "system": "the system prompt changed",
        "message": "an earlier message changed",
        "reasoning": "earlier reasoning changed or was left out",
        "expired": f"it expired: {use.idle:,} s passed, and it was kept for {use.kept:,} s",
        "unknown": f"nothing in the request explains it; {use.idle:,} s passed",
    }[use.cause]
    return f"prompt cache: {use.read:,} tokens read{missed}" + (f": {why}" if why else "")


def _asks(commit: Commit, response: str) -> bool:
    return commit.kind == "request" and commit.response == response


def _usage(commit: Commit) -> Usage | None:
    value = surviving(commit.value)
    return value if isinstance(value, Usage) else None


def _remembered(asked: Request) -> Sent | None:
    """The request before one whose conversation was recorded on another line until then, as its record says."""
    said = asked.target.get(REMARK)
    return canonical.decode(said, Sent) if said else None


def _begun(commits: Sequence[Commit], at: int) -> int:
    """When the request of the record at ``at`` began: a record is stored with the response that ends it."""
    before = commits[at - 1] if at else commits[at]
    return before.time if before.kind in _BEGINS else commits[at].time


def _kept(plan: Plan) -> int:
    """For how many seconds the provider keeps the beginning of this request, in its own words or without any."""
    rule = plan.target.rule
    body = bytes(plan) if rule.cache_asked else b""
    said = (
        seconds
        for name, values in rule.cache_asked.items()
        for value, seconds in values.items()
        if re.search(rf'"{re.escape(name)}"\s*:\s*"{re.escape(value)}"'.encode(), body)
    )
    return max(said, default=rule.cache_seconds)


def _cause(plan: Plan, asked: Request, before: Sent, *, expired: bool) -> Cause:
    """Why ``asked`` read less than was there: what comes first in a request decides, and time before a message that
    may have changed as well.
    """
    if before.compacted:
        return "compacted"
    if before.tools != asked.tools_digest:
        return "tools"
    if before.system != asked.system_digest:
        return "system"
    if expired:
        return "expired"
    begun = plan.beginnings()
    if before.messages not in begun.messages:
        return "message"
    if before.carriers not in begun.carriers:
        return "reasoning"
    return "unknown"
