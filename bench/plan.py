"""The next request: first plan, plan from the store, and what each further turn adds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx2
import openai

import thinkback
from bench import conversation
from bench.conversation import Place, light, light_commits, question, turns
from bench.measure import Case, Figure, Group, cold, interleaved, timed
from bench.streams import ANSWER, Provider
from thinkback.log.protocol import Store
from thinkback.log.seal import head_of
from thinkback.model.commits import Commit, Head
from thinkback.stores import open_store
from thinkback.turn.plan import History

# Every finished turn keeps its reasoning here: the most bytes to build, and the headline.
KEEPS = ("kimi", "kimi-k2-thinking")
# Reasoning of finished turns without tools is optional and left out: the decisions are made, the bytes are fewer.
DROPS = ("deepseek", "deepseek-reasoner")
SESSION = "bench"


def _messages(quick: bool) -> int:
    return 2_000 if quick else 10_000


def first(place: Place, log: Sequence[Commit]) -> bytes:
    """The subject: commits as values to the bytes of the body: history, fold, decisions, rendering, join."""
    return bytes(place.plan(History(log)))


def encoded(fragments: list[bytes], body: bytes) -> list[bytes]:
    """What the limit joins: the messages of ``body``, its start on the first and its end on the last of them."""
    start, end = b'{"messages":[', body[body.index(fragments[-1]) + len(fragments[-1]) :]
    return [start + fragments[0], *fragments[1:-1], fragments[-1] + end]


def _sdk(provider: Provider, place: Place, messages: list[dict[str, Any]]) -> Callable[[], object]:
    """The peer: the whole of ``chat.completions.create``, dicts to the parsed answer of an in-memory transport."""
    client = httpx2.Client(transport=provider)
    peer = openai.OpenAI(api_key="none", base_url=place.target.base_url, http_client=client, max_retries=0)
    given: Any = messages
    return lambda: peer.chat.completions.create(model=place.target.model, messages=given)


def _first(at: tuple[str, str], quick: bool) -> Figure:
    messages, headline = _messages(quick), at == KEEPS
    place = conversation.place(*at)
    log = conversation.commits(place, messages)
    plan = place.plan(History(log))
    body = bytes(plan)
    pieces = encoded(plan.messages, body)
    assert body == b",".join(pieces)
    carried = body.count(b'"reasoning_content":')
    assert carried == (messages // 2 if headline else 0), "the rule does not carry what this figure says"
    provider = Provider([ANSWER], "application/json")
    create = _sdk(provider, place, conversation.as_dicts(plan.messages))
    create()
    assert json.loads(provider.request)["messages"] == json.loads(body)["messages"]
    cases = {
        "thinkback": cold(lambda: first(place, log)),
        "join": cold(lambda: b",".join(pieces)),
        "bytes": cold(lambda: bytes(plan)),
    }
    fast = interleaved(cases, rounds=5 if quick else 15)
    slow = interleaved({"thinkback": cases["thinkback"], "openai": cold(create)}, rounds=2 if quick else 5, warm_up=0)
    ratio, peer = fast.ratio("thinkback", "join"), slow.ratio("openai", "thinkback")
    return Figure(
        "plan.first" if headline else "plan.first.dropping",
        fast.median("thinkback") * 1e3,
        "ms",
        ratio.value,
        {"openai create()": peer.value},
        "<= 6x joining encoded messages, >= 40x openai" if headline else "",
        (ratio.value <= 6 and peer.value >= 40) if headline else None,
        ratio.noise,
        f"{messages} messages and a question, {'/'.join(at)}, reasoning of {carried} responses carried, "
        f"{len(body) / 1e6:.1f} MB; join in one copy {fast.median('join') * 1e3:.1f} ms; bytes(plan) of a "
        f"finished plan {fast.median('bytes') * 1e3:.1f} ms; openai: the whole call, dicts to parsed answer, "
        f"{slow.median('openai') * 1e3:.0f} ms",
    )


def _fill(store: Store, log: Sequence[Commit]) -> None:
    """Put ``log`` into ``store``, a thousand commits a step: for reading it does not matter."""
    store.create_session(SESSION, SESSION, 0)
    head = Head()
    for at in range(0, len(log), 1_000):
        part = log[at : at + 1_000]
        store.append(SESSION, f"fill-{at}", part, head)
        head = head_of(list(part))


def _stored(quick: bool) -> Figure:
    messages = _messages(quick)
    place = conversation.place(*KEEPS)
    log = conversation.commits(place, messages)
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as name:
        store = open_store(Path(name) / "log.db", "normal")
        _fill(store, log)
        assert first(place, store.read(SESSION)) == first(place, log)
        samples = interleaved(
            {
                "thinkback": timed(lambda: first(place, store.read(SESSION))),
                "read": timed(lambda: store.read(SESSION)),
            },
            rounds=4 if quick else 11,
        )
        store.close()
    ratio = samples.ratio("thinkback", "read")
    return Figure(
        "plan.stored",
        samples.median("thinkback") * 1e3,
        "ms",
        ratio.value,
        {},
        "<= 2x store.read, which reads and decodes the rows",
        ratio.value <= 2,
        ratio.noise,
        f"{messages} messages, {len(log)} commits from SQLite to the body's bytes; "
        f"store.read alone {samples.median('read') * 1e3:.0f} ms",
    )


class Growing:
    """A conversation that gets longer turn by turn."""

    def __init__(self, place: Place, messages: int, *, record: bool) -> None:
        self._place = place
        self._record = record
        self._turns = turns(place)
        self._history = History(light_commits(place, messages))
        self._questions = count(1)
        plan = place.plan(self._history)
        assert bytes(plan)
        plan.record()

    def sample(self) -> float:
        """Seconds for one turn: its commits taken in and the next plan made, its body an iterable not yet read."""
        drafts = [*next(self._turns).answer, question(next(self._questions))]
        commits = light(drafts, self._history.head)
        start = perf_counter()
        self._history.take(commits)
        plan = self._place.plan(self._history)
        if self._record:
            plan.record()
        return perf_counter() - start


def _turn(quick: bool, *, record: bool) -> Figure:
    place = conversation.place(*KEEPS)
    sizes = (100, 10_000 if quick else 100_000)
    growing = {str(size): Growing(place, size, record=record) for size in sizes}
    cases: dict[str, Case] = {name: each.sample for name, each in growing.items()}
    samples = interleaved(cases, rounds=40 if quick else 80, warm_up=3)
    few, many = (samples.median(str(size)) * 1e3 for size in sizes)
    growth = samples.ratio(str(sizes[1]), str(sizes[0]))
    return Figure(
        "plan.turn.recorded" if record else "plan.turn",
        many,
        "ms/turn",
        None,
        {},
        "" if record else f"<= 0.2 ms, and within 1.5x of the one at {sizes[0]} messages",
        None if record else many <= 0.2 and few <= 0.2 and growth.value <= 1.5,
        growth.noise,
        f"{many:.3f} ms at {sizes[1]} messages, {few:.3f} ms at {sizes[0]}: {growth.value:.2f}x; "
        + ("take, plan and the request's record with its digests" if record else "take and plan, body not read"),
    )


def _session(quick: bool) -> Figure:
    """A turn through the public face: settings, rules, headers, the question's append to a log in memory, the plan."""
    sizes = (100, 10_000 if quick else 100_000)
    cases: dict[str, Case] = {}
    for size in sizes:
        store = thinkback.open(":memory:", rules={}, settings={})
        _fill(store.log, conversation.commits(conversation.place(*KEEPS), size)[:-1])
        session = store.session(SESSION, endpoint=KEEPS[0], model=KEEPS[1], api_key="none", account="bench")

        def case(session: thinkback.Session = session) -> float:
            start = perf_counter()
            session.wire.plan("And what of this?", params={"stream": False})
            taken = perf_counter() - start
            session.wire.ingest(ANSWER, headers={"content-type": "application/json"})
            return taken

        cases[str(size)] = case
    samples = interleaved(cases, rounds=10 if quick else 40, warm_up=3)
    growth = samples.ratio(str(sizes[1]), str(sizes[0]))
    few, many = (samples.median(str(size)) * 1e3 for size in sizes)
    return Figure(
        "plan.turn.session",
        many,
        "ms/turn",
        noise=growth.noise,
        note=f"session.wire.plan(question): {many:.3f} ms at {sizes[1]} messages, {few:.3f} ms at {sizes[0]}: "
        f"{growth.value:.2f}x; settings, rule look-up, headers, append to a log in memory, plan; no aim of its own",
    )


GROUP = Group(
    "plan",
    (
        partial(_first, KEEPS),
        partial(_first, DROPS),
        _stored,
        partial(_turn, record=False),
        partial(_turn, record=True),
        _session,
    ),
)
