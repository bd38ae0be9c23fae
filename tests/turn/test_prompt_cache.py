"""What a request read of the prompt cache, what it missed, and why: by records, reported counts and times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.compile.build import Talk, rule, say, target, think
from thinkback.model import canonical
from thinkback.model.blocks import Unknown
from thinkback.model.commits import Message, Usage
from thinkback.model.target import Target
from thinkback.turn.plan import Plan
from thinkback.turn.prompt_cache import CAUSES, LOOKED_AT, REMARK, CacheUse, cache_use, last_sent, told

HERE = target(rule(cache_seconds=300, cache_asked={"ttl": {"5m": 300, "1h": 3600}}))
WARM = Usage(input=20, cached=100, cache_write=9_900)
COLD = Usage(input=10_020, cached=0, cache_write=10_020)


class Asking:
    """A conversation whose requests are answered with counts."""

    def __init__(self) -> None:
        self.talk = Talk().system("Be brief.").tools("look").user("One?")

    def ask(self, usage: Usage | None, to: Target = HERE, remark: str = "", takes: int = 0, **params: Any) -> Plan:
        """The request that was sent, once it is answered, which ``takes`` so many seconds."""
        if self.talk.responses and self.talk.commits[-1].kind != "tool_result":
            self.talk.user("And?")
        plan = self.talk.plan(to, **params)
        self.wait(takes)
        record = plan.record()
        if remark:
            record = msgspec.structs.replace(record, target={**record.target, REMARK: remark})
        response = f"resp{self.talk.responses + 1}"
        self.talk.note("request", record, response)
        self.talk.reply(think("Hm."), say("So."), usage=usage)
        plan.answered(plan.report, self.talk.commits, response)
        return plan

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        self.talk.start += seconds * 1_000_000

    def commit(self, kind: str) -> str:
        """The hash of the first commit of a kind."""
        return next(commit.hash for commit in self.talk.commits if commit.kind == kind)


def collapse(between: Callable[[Asking], Any] = lambda asking: None, **more: Any) -> CacheUse:
    """The use of a request that missed what the last one had, with something between the two."""
    asking = Asking()
    asking.ask(WARM)
    between(asking)
    return cache_use(asking.ask(COLD, **more))


def test_what_was_kept_is_read() -> None:
    """The first request has nothing to miss; the next ones read what was written, less what rounding takes."""
    asking = Asking()
    assert CacheUse(100) == cache_use(asking.ask(WARM))
    assert CacheUse(9_900, 100) == cache_use(asking.ask(Usage(cached=9_900, cache_write=300)))
    assert CacheUse(10_300, 0) == cache_use(asking.ask(Usage(cached=10_300)))


@pytest.mark.parametrize("usage", [None, Usage(input=10_000)])
def test_nothing_is_known_where_nothing_is_reported(usage: Usage | None) -> None:
    """Neither of the request, nor of the next one."""
    asking = Asking()
    plan = asking.ask(usage)
    assert (CacheUse(), "") == (cache_use(plan), told(cache_use(plan)))
    assert CacheUse(0) == cache_use(asking.ask(COLD))
    assert CacheUse() == cache_use(asking.talk.plan(HERE))


CHANGES: dict[str, Callable[[Asking], Any]] = {
    "compacted": lambda asking: asking.talk.compact(asking.commit("user"), asking.commit("assistant")),
    "tools": lambda asking: asking.talk.tools("look", "write"),
    "system": lambda asking: asking.talk.edit(asking.commit("system"), Message("Be long.")),
    "message": lambda asking: asking.talk.edit(asking.commit("user"), Message("Two?")),
    "expired": lambda asking: asking.wait(301),
    "unknown": lambda asking: asking.wait(299),
}


@pytest.mark.parametrize("cause", CHANGES)
def test_a_collapse_has_a_cause(cause: str) -> None:
    """What stands first in a request decides; where nothing changed, time may."""
    use = collapse(CHANGES[cause])
    assert (0, 10_000, cause) == (use.read, use.missed, use.cause)
    assert told(use).startswith("prompt cache: 0 tokens read, 10,000 missed that an earlier request had there: ")


def test_reasoning_that_is_left_out_is_a_cause_of_its_own() -> None:
    """On rows that keep the reasoning of the turn under way alone, once that is over."""
    asking = Asking()
    row = target(rule(later="never"))
    asking.talk.note("request", asking.talk.plan(row).record(), "resp1").reply(think("Hm."), say("So.")).result()
    asking.ask(WARM, to=row)
    assert "reasoning" == cache_use(asking.ask(COLD, to=row)).cause
    assert {"", "reasoning", *CHANGES} == set(CAUSES)


def test_a_checkpoint_that_came_to_nothing_is_none() -> None:
    """It took the place of nothing."""
    assert "unknown" == collapse(lambda asking: asking.talk.compact()).cause


def test_little_is_no_collapse() -> None:
    """Less than 2,000 tokens, or than a twentieth of what was there."""
    asking = Asking()
    asking.ask(Usage(cached=0, cache_write=1_999))
    assert CacheUse(0, 1_999) == cache_use(asking.ask(COLD))
    asking.ask(Usage(cached=0, cache_write=100_000))
    assert CacheUse(95_000, 5_000) == cache_use(asking.ask(Usage(cached=95_000)))


def test_another_place_has_a_cache_of_its_own() -> None:
    """A request elsewhere misses nothing, and one that comes back is judged by the last one here."""
    elsewhere = msgspec.structs.replace(HERE, model="m2")
    asking = Asking()
    asking.ask(WARM)
    assert CacheUse(0) == cache_use(asking.ask(COLD, to=elsewhere))
    assert (0, 10_000) == (lambda use: (use.read, use.missed))(cache_use(asking.ask(COLD)))


def test_a_response_of_several_passes_is_no_measure() -> None:
    """Where the provider ran tools its counts may be those of several requests."""
    asking = Asking()
    asking.ask(WARM)
    asking.talk.note("request", asking.talk.plan(HERE).record(), "resp2")
    asking.talk.reply(Unknown('{"type":"server_tool_use"}'), say("So."), usage=Usage(cached=90_000)).user("And?")
    assert CacheUse(9_990, 10) == cache_use(asking.ask(Usage(cached=9_990)))


def test_a_record_may_say_what_it_is_judged_by() -> None:
    """A conversation that goes on from another place misses what it had on the line it left."""
    before = Asking()
    before.ask(WARM)
    sent = last_sent(before.talk.commits, before.talk.plan(HERE).record().target)
    assert sent is not None
    asking = Asking()
    asking.talk.edit(asking.commit("user"), Message("Two?"))
    assert "message" == cache_use(asking.ask(COLD, remark=canonical.source(sent))).cause
    assert last_sent((), {}) is None


def test_a_cache_lives_from_the_beginning_of_one_request_to_that_of_the_next() -> None:
    """However long the responses take."""
    asking = Asking()
    asking.ask(WARM, takes=200)
    asking.wait(90)
    long = cache_use(asking.ask(COLD, takes=500))
    assert ("unknown", 290) == (long.cause, long.idle)
    asking = Asking()
    asking.ask(WARM, takes=200)
    asking.wait(101)
    assert "expired" == cache_use(asking.ask(COLD)).cause


def test_time_alone_explains_what_a_changed_message_may_explain_too() -> None:
    """A message that a client edits in passing is no cause where nothing was kept any more."""

    def later(asking: Asking) -> None:
        asking.talk.edit(asking.commit("user"), Message("Two?"))
        asking.wait(301)

    assert "expired" == collapse(later).cause


@pytest.mark.parametrize(("ttl", "cause"), [("1h", "unknown"), ("5m", "expired"), ("9y", "expired")])
def test_a_cache_may_be_asked_to_live_longer(ttl: str, cause: str) -> None:
    """In the words that the rule knows, anywhere in the request."""
    use = collapse(lambda asking: asking.wait(301), cache_control={"type": "ephemeral", "ttl": ttl})
    assert (cause, 3600 if ttl == "1h" else 300) == (use.cause, use.kept)


def test_no_whole_session_is_read_for_a_host_that_keeps_nothing() -> None:
    """So many requests back at most."""
    asking = Asking()
    asking.ask(WARM)
    for _ in range(LOOKED_AT - 1):
        asking.ask(None)
    assert (0, 10_000) == (lambda use: (use.read, use.missed))(cache_use(asking.ask(COLD)))
    asking = Asking()
    asking.ask(WARM)
    for _ in range(LOOKED_AT):
        asking.ask(None)
    assert CacheUse(0) == cache_use(asking.ask(COLD))
