"""The size of the next request: of recorded conversations, what was said before the provider counted it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

import pytest

from tests.exchanges import cases
from thinkback.cli.wire.recorded import Json, Recorded, drafts_of, is_known, response_of, target_of
from thinkback.compile.counts import DEFAULT_RATIO, weigh
from thinkback.errors import ThinkbackError
from thinkback.log.seal import seal
from thinkback.model.commits import Head, Response, Step, Usage
from thinkback.model.target import Settings, Target
from thinkback.rules import load_rulebook
from thinkback.turn.plan import History, Plan
from thinkback.turn.usage import token_use

CASES = cases()
WITHIN, TOKENS = 0.1, 200


class Pair(NamedTuple):
    """A request: how it was estimated, and what the provider counted."""

    name: str
    follows: bool
    estimated: int
    reported: int
    left_out: str

    @property
    def is_near(self) -> bool:
        off = abs(self.estimated - self.reported)
        return off <= TOKENS or off <= WITHIN * self.reported


def plan_of(exchange: Json, target: Target, earlier: list[Recorded]) -> tuple[Plan, bool] | None:
    """Our request in the place of the recorded one, and whether the same model answered before.

    A client that did not have the provider keep earlier reasoning is not said to have.
    """
    log = drafts_of(exchange["request"]["body"], target, earlier)
    keeps = target.rule.keep_switch
    settings = Settings()
    if keeps is not None and not keeps.asked and not target.rule.keeps_when.items() <= log.params.items():
        settings = Settings(include_in_context=False, explicit=frozenset({"reasoning.includeInContext"}))
    origins = [draft.value.origin for draft in log.drafts if isinstance(draft.value, Response)]
    follows = any((made.endpoint, made.requested_model) == (target.base_url, target.model) for made in origins)
    try:
        history = History(seal(Step("replay", tuple(log.drafts), 0), Head()))
        return history.plan(target, settings, None, log.params), follows and log.used > 0
    except ThinkbackError:
        return None


def reported(usage: Usage | None, word: str) -> int | None:
    """The input that the provider counted, cached tokens included."""
    if usage is not None and usage.last_input is not None:
        return usage.last_input
    return token_use(usage, (), word).input


def sent_besides(exchange: Json, plan: Plan) -> int:
    """Tokens of the thoughts that a recorded client of Gemini sent as text, and that our request leaves out.

    Such parts are for display; the provider counts what the client sent.
    """
    ours = bytes(plan).decode()
    parts = (part for turn in exchange["request"]["body"].get("contents", ()) for part in turn.get("parts", ()))
    told = (part["text"] for part in parts if part.get("thought") and part.get("text"))
    return round(sum(weigh(text) for text in told if json.dumps(text, ensure_ascii=False) not in ours) / DEFAULT_RATIO)


def why_left_out(case: Json, exchange: Json, usage: Usage | None) -> str:
    """Server-side tools and media; what a request does not say of itself."""
    body = json.dumps(exchange["request"]["body"])
    if "server-tools" in case["tags"] or '"server_tool_use"' in body:
        return "server-side tools"
    if usage is not None and '"toolUsePromptTokenCount"' in usage.wire:
        return "server-side tools"
    media = ('"image_url"', '"input_image"', '"inline_data"', '"inlineData"', '"fileData"', '"file_data"', '"image"')
    if any(f"{word}:" in body or f'"type": {word}' in body for word in (*media, '"document"', '"input_file"')):
        return "media"
    return "kept by the provider" if "previous_response_id" in exchange["request"]["body"] else ""


def pairs() -> Iterator[Pair]:
    """Every recorded request whose input the provider counted."""
    book = load_rulebook({})
    for _, case in CASES:
        earlier: list[Recorded] = []
        besides = 0
        for at, exchange in enumerate(case["exchanges"]):
            if not is_known(exchange) or not exchange.get("request"):
                continue
            target, request = target_of(exchange, book), None
            result = response_of(exchange, target)
            made = plan_of(exchange, target, earlier)
            if made is not None:
                plan, goes_on = made
                request = plan.record()
                usage = result.usage if result is not None else None
                counted = reported(usage, target.rule.reasoning_tokens)
                if counted:
                    name = f"{case['case'][:60]}#{at} ({target.rule.id})"
                    more = sent_besides(exchange, plan)
                    # The last count has what was sent besides until then.
                    size = plan.counts.effective + more - (besides if goes_on else 0)
                    besides = more
                    yield Pair(name, goes_on, size, counted, why_left_out(case, exchange, usage))
            if result is not None:
                earlier.append(Recorded(result, request))


@pytest.mark.corpus
@pytest.mark.skipif(not CASES, reason="THINKBACK_CORPUS is not set")
def test_the_size_of_a_follow_up_is_what_the_provider_counts() -> None:
    """Within 10 % or 200 tokens for 95 % of the recorded follow-ups; at most a tenth of them is left out. Half of the
    first requests are within a fifth.
    """
    found = list(pairs())
    follow_ups = [pair for pair in found if pair.follows]
    left_out = [pair for pair in follow_ups if pair.left_out]
    told = [pair for pair in follow_ups if not pair.left_out]
    far = [pair for pair in told if not pair.is_near]
    first = sorted(abs(p.estimated - p.reported) / p.reported for p in found if not p.follows and not p.left_out)
    print(f"{len(follow_ups)} follow-ups, {len(left_out)} left out: {Counter(pair.left_out for pair in left_out)}")
    print(f"{len(told) - len(far)} of {len(told)} within {WITHIN:.0%} or {TOKENS} tokens")
    for pair in far:
        print(f"  {pair.name}: {pair.estimated:,}, counted {pair.reported:,}")
    print(f"{len(first)} first requests: median error {median(first):.0%}, p90 {first[len(first) * 9 // 10]:.0%}")

    assert len(left_out) <= len(follow_ups) / 10
    assert len(told) - len(far) >= 0.95 * len(told)
    assert median(first) < 0.2
