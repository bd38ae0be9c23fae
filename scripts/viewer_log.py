"""A log for looking at in the viewer: a tool loop, a refusal that was mended, a change of models, words taken out.

The screenshots of docs/viewer.md are of it, and ``make browser`` looks at it. All of it is made against the referee.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import thinkback
from thinkback.log.protocol import About
from thinkback.log.seal import seal
from thinkback.model.blocks import Origin, Text, ThinkingBlock
from thinkback.model.commits import (
    Draft,
    Head,
    Message,
    Request,
    Response,
    TurnEnded,
    TurnState,
    Usage,
    block_draft,
)
from thinkback.model.commits import Step as CommitStep
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, RejectCarrier, Step

SYSTEM = "You are a careful engineer. Measure before you change anything."
QUESTION = "Why does `primes.py` take nine seconds for n = 10,000,019? Find out, and mend it."
_THOUGHTS = (
    "The person says nine seconds for one number. Trial division up to n would be ten million remainders, which is "
    "about right for CPython. I should read the file before I say so.",
    "As I thought: `range(2, n)`. Divisors come in pairs, so everything beyond the square root repeats what came "
    "before. 3162 candidates instead of ten million.\n\n- stop at `isqrt(n)`\n- 2 alone, then odd numbers only\n\n"
    "I will change the range first, and measure; the second step is worth less.",
    "10,000,019 is prime, so no early exit hides anything: this is the worst case. 0.4 ms against 9.1 s. The odd-only "
    "step would halve 0.4 ms, which nobody would notice. I leave the code short.",
)
_BEFORE = "def is_prime(n):\n    return n > 1 and all(n % d for d in range(2, n))\n"
_AFTER = (
    "from math import isqrt\n\n\ndef is_prime(n):\n    return n > 1 and all(n % d for d in range(2, isqrt(n) + 1))\n"
)
_ANSWER = """It tried **every** number below `n`. Divisors come in pairs, so those up to the square root are enough:

```python
def is_prime(n):
    return n > 1 and all(n % d for d in range(2, isqrt(n) + 1))
```

| n | before | after |
|---|-------:|------:|
| 10,000,019 | 9.1 s | 0.4 ms |
"""


def read(path: str) -> str:
    """Read a file."""
    return _BEFORE


def edit(path: str, old_string: str, new_string: str) -> str:
    """Replace text in a file."""
    return '{"path": "primes.py", "replaced": 1, "lines": [1, 5]}'


def measure(n: int) -> str:
    """Measure how long a number takes."""
    return "0.0004 s"


TOOLS = (read, edit, measure)
_DAY = 86_400_000_000
_MODELS = (
    ("claude-sonnet-4-5", "anthropic", "https://api.anthropic.com"),
    ("claude-sonnet-4-5", "anthropic", "https://api.anthropic.com"),
    ("gpt-5.6", "openai", "https://api.openai.com/v1"),
    ("gemini-2.5-pro", "gemini", "https://generativelanguage.googleapis.com"),
    ("deepseek-v4-pro", "deepseek", "https://api.deepseek.com"),
)


def make(path: str, referee: Referee) -> None:
    """The log at ``path``, with the referee as every provider."""
    with thinkback.open(path, rules={}, settings={}) as store:
        _primes(store, referee)
        _small(store, referee)
        _gone(store, referee)


def _session(store: SessionStore, referee: Referee, name: str, endpoint: str, model: str) -> Session:
    return store.session(name, endpoint=endpoint, model=model, base_url=referee.base_url(endpoint), api_key="a key")


def _primes(store: SessionStore, referee: Referee) -> None:
    """Claude with tools, a refusal that was mended on the way, then a question to DeepSeek."""
    session = _session(store, referee, "primes", "anthropic", "claude-sonnet-4-5")
    session.set("reasoning.effort", "high")
    change = {"path": "primes.py", "old_string": _BEFORE, "new_string": _AFTER}
    referee.push(
        Step(reasoning=_THOUGHTS[0], tool_calls=[Call("read", {"path": "primes.py"})]),
        Step(reasoning=_THOUGHTS[1], tool_calls=[Call("edit", change), Call("measure", {"n": 10_000_019})]),
        Step(reasoning=_THOUGHTS[2], text=_ANSWER),
    )
    session.chat(QUESTION, system=SYSTEM, tools=TOOLS)
    referee.push(
        Step(fault=RejectCarrier()),
        Step(
            reasoning="They ask for the general case; a sieve is the answer there.", text="For *many* numbers: a sieve."
        ),
    )
    session.chat("And if I need all primes below a million?", tools=TOOLS)
    session.use(endpoint="deepseek", model="deepseek-v4-pro", base_url=referee.base_url("deepseek"), api_key="a key")
    referee.push(
        Step(
            reasoning="A second opinion is wanted. The change is right; isqrt is exact where a float root is not.",
            text="I agree with the change. `isqrt` is exact; `int(n ** 0.5)` is not for large `n`.",
        )
    )
    session.chat("A second opinion, please.", tools=TOOLS)


def _small(store: SessionStore, referee: Referee) -> None:
    """Sessions to list: several models, a branch, reasoning that is hidden."""
    for name, endpoint, model, question, thought, answer in (
        (
            "oslo",
            "deepseek",
            "deepseek-v4-pro",
            "What is the weather like in Oslo in May?",
            "Mild.",
            "Mild, and light.",
        ),
        ("cipher", "openai", "gpt-5.6", "Which cipher is this: KHOOR?", "Caesar by three.", "Caesar's: HELLO."),
        ("haiku", "anthropic", "claude-sonnet-4-5", "A haiku on caching", "5-7-5.", "Asked twice, said once."),
        ("totals", "gemini", "gemini-2.5-pro", "Sum 12, 30 and 58", "12+30=42, +58=100.", "100"),
    ):
        session = _session(store, referee, name, endpoint, model)
        referee.push(Step(reasoning=thought, text=answer))
        session.chat(question)


def _gone(store: SessionStore, referee: Referee) -> None:
    """A thought that was erased, one that a person keeps away, and a branch."""
    session = _session(store, referee, "card", "deepseek", "deepseek-v4-pro")
    session.set("reasoning.includeInContext", True)
    for thought, text in (("The card is 4711.", "Noted."), ("A joke would do.", "Ha."), ("Nothing to do.", "Fine.")):
        referee.push(Step(reasoning=thought, text=text))
        session.chat(f"Say something about {len(text)}.")
    thoughts = [commit for commit in session.log() if commit.kind == "reasoning"]
    session.annotate(thoughts[1].hash, thinkback.Priority.SKIP, reason="it was only a joke")
    session.branches.branch("aside", switch=True)
    referee.push(Step(reasoning="Elsewhere.", text="On another branch."))
    session.chat("And on another branch?")
    session.branches.switch("main")
    referee.push(Step(reasoning="All is said.", text="Goodbye."))
    session.chat("Goodbye!")


def make_past(path: str, now: int) -> None:
    """A log at ``path`` of two months until ``now`` (microseconds UTC), for the page of numbers."""
    chance = Random(4)
    with thinkback.open(path, rules={}, settings={}, durability="normal") as store:
        for number in range(120):
            begun = now - int(chance.random() ** 1.5 * 60 * _DAY) - _DAY // 9
            info = store.log.create_session(f"past-{number}", f"past-{number}", begun)
            model, place, host = chance.choice(_MODELS)
            effort = chance.choice(("low", "medium", "high", "high", ""))
            for step in _turns(number, begun, model, place, host, effort, chance):
                head = store.find(info.id).head
                store.log.append(info.id, step.id, seal(step, head), head)
            store.log.describe(info.id, About(chance.choice(("codex", "")), chance.choice(("billing", "weather", ""))))


def _turns(
    number: int, time: int, model: str, place: str, host: str, effort: str, chance: Random
) -> Iterator[CommitStep]:
    settings = {"reasoning.effort": effort} if effort else {}
    for turn in range(chance.randint(1, 4)):
        time += chance.randint(1, 400) * 1_000_000
        question = chance.choice(("Why does the build fail?", "Review this change", "Find the leak"))
        yield CommitStep(f"asked {number} {turn}", (Draft("user", Message(question)),), time)
        for each in range(chance.randint(1, 4)):
            time += chance.randint(2, 90) * 1_000_000
            id, size, asked = f"{number} {turn} {each}", chance.randint(100, 6_000), chance.randint(2_000, 60_000)
            output = size * (3 if effort == "high" else 1)
            request = Request({"endpoint": place}, settings, (), "{}", "", "", "", "", "", "", "")
            origin = Origin("openai-chat", host, model, served_model=model)
            use = Usage(asked, output, int(output * chance.random() * 0.8), int(asked * chance.random()))
            drafts = [Draft("request", request, id), Draft("response", Response(origin, blocks=1), id)]
            drafts += [block_draft(Text("Done."), id, 0), Draft("provider_usage", use, id)]
            yield CommitStep(f"answer {id}", tuple(drafts), time)
        state: TurnState = chance.choice(("completed",) * 9 + ("failed", "interrupted"))
        yield CommitStep(f"end {number} {turn}", (Draft("turn_ended", TurnEnded(state)),), time + 1_000)


def add_long(store: SessionStore, name: str, commits: int) -> None:
    """A session of about so many ``commits``: questions, each with a thought, an answer, and what it used."""
    info = store.log.create_session(name, name, 1)
    origin = Origin("openai-chat", "https://long.test/v1", "reasoner")
    head = info.head
    for number in range(0, commits // 6, 200):
        drafts: list[Draft] = []
        for turn in range(number, number + 200):
            id = f"r{turn}"
            drafts += [
                Draft("user", Message(f"Question {turn}: what is the square of {turn}?")),
                Draft("response", Response(origin, id=id, finish="stop", blocks=2, outcome="answered"), id),
                block_draft(ThinkingBlock(f"{turn} times {turn}, by parts. " * 6), id, 0),
                block_draft(Text(f"It is **{turn * turn}**."), id, 1),
                Draft("provider_usage", Usage(100, 60, 40), id),
                Draft("turn_ended", TurnEnded("completed")),
            ]
        made = seal(CommitStep(f"turns {number}", tuple(drafts), 1_000_000 + number), head)
        store.log.append(info.id, f"turns {number}", made, head)
        head = Head(made[-1].hash, made[-1].seq)


if __name__ == "__main__":
    Path(sys.argv[1]).unlink(missing_ok=True)
    with Referee() as served:
        make(sys.argv[1], served)
