"""The fixed conversation of a probe: what is asked, what is answered, and the request that sends it all back."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from thinkback.errors import ProviderError
from thinkback.log.seal import seal
from thinkback.model import canonical
from thinkback.model.blocks import Origin, ToolCall, ToolResult
from thinkback.model.commits import Draft, Failure, Head, Response, Step, Tool, Tools, Usage, block_draft
from thinkback.model.rule import Rule
from thinkback.model.target import Settings, Target, merge
from thinkback.turn import failures
from thinkback.turn.controls import nested
from thinkback.turn.plan import History, Plan
from thinkback.turn.probing.findings import Findings
from thinkback.turn.reading import open_reader
from thinkback.turn.retry import is_retryable
from thinkback.wire.registry import CHAT, dialect
from thinkback.wire.result import ReadResult, WantedOptions

PROMPT = "What is the weather in Oslo right now? Think about it, call get_weather once, then answer in one sentence."
RESULT = "Oslo: rain, 7 degrees"
NEXT = "Is that warm or cold? Think about it, then answer in one word."
PLAIN = "Which is larger, 9.11 or 9.9? Think about it, then answer in one sentence."
SCHEMA = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
TOOL = Tool("get_weather", "The weather in a city.", SCHEMA)
ROUGHLY = len(f"{PROMPT}{RESULT}{NEXT}{PLAIN}{SCHEMA}") // 2
"""Tokens of input that no request exceeds, reasoning that goes back aside."""
# What another model said, which came with nothing that a host could know.
STRANGER = ReadResult(
    Response(Origin(CHAT, "https://stranger.invalid", "stranger")),
    (ToolCall("call_5f3a9c1e7b2d4068a1c3", TOOL.name, '{"city":"Oslo"}'),),
    None,
)
_MESSAGE = re.compile(r'"message"\s*:\s*("(?:[^"\\]|\\.)*")')
_ASKED = frozenset({"reasoning.enabled", "reasoning.effort"})
_INCLUDE = "reasoning.includeInContext"


class Answer(NamedTuple):
    """What the host answered, the whole body."""

    status: int
    content_type: str
    body: bytes


class ProbeSetup(NamedTuple):
    """What all requests of a probe have in common. ``params`` are native parameters, those of the limit with them."""

    target: Target
    tools: tuple[Tool, ...]
    params: dict[str, Any]


def limits(name: str) -> tuple[str, ...]:
    """Where the dialect ``name`` has the limit of the output; of several paths the next where the first is refused."""
    return dialect(name).parameters.names["max_tokens"]


def limited(path: str, limit: int, params: dict[str, Any]) -> dict[str, Any]:
    """``params`` of a person over a limit of the output."""
    return merge(nested(path, limit), params)


def plan_of(asked: ProbeSetup, found: Findings, change: dict[str, Any], drafts: list[Draft]) -> Plan:
    """The request after ``drafts``, under the rule that gives everything back as it came, with ``change``."""
    target, tools = asked.target, asked.tools
    # what a host must not know of is just what is to be found out
    endpoint = msgspec.structs.replace(target.endpoint, strict=False)
    rule = msgspec.structs.replace(as_received(target.rule, found), **change)
    settings = Settings(effort=None if rule.controls.on else "low", display="summarized", explicit=_ASKED)
    if rule.scope == "tool-calls":
        # what is not demanded stays away, so that only messages with calls have any
        settings = msgspec.structs.replace(settings, explicit=_ASKED | {_INCLUDE})
    wanted = WantedOptions(not target.endpoint.stream_path, target.endpoint.stream_usage)
    params = merge(dialect(target.endpoint.dialect).options(wanted), asked.params)
    history = History(seal(Step("probe", (Draft("tools", Tools(tools)), *drafts), 0), Head()))
    plan = history.plan(msgspec.structs.replace(target, rule=rule, endpoint=endpoint), settings, tools, params)
    return msgspec.structs.replace(plan, streams=True)


def as_received(rule: Rule, found: Findings) -> Rule:
    """The rule that gives everything back as it came and lets nothing stand in."""
    demand: Any = "never" if found.form == "none" else "must"
    return msgspec.structs.replace(
        rule,
        form=found.form,
        field=rule.field if found.form == "details" else found.field,
        as_received=False,
        reasoning_field="",
        open_turn=demand,
        later=demand,
        scope="all",
        placeholder="",
        placeholder_on="never",
        missing=("none",),
        signed_calls=False,
        prefix_bound=False,
        thinks_when=(),
        thinks_unless=(),
        server_state=None,
    )


def drafts_of(result: ReadResult, id: str) -> list[Draft]:
    """A response as it would stand in a log."""
    blocks = [block_draft(block, id, at) for at, block in enumerate(result.blocks)]
    return [Draft("response", result.response, id), *blocks]


def results_of(result: ReadResult, id: str) -> list[Draft]:
    """The answers to its calls."""
    calls = [block for block in result.blocks if isinstance(block, ToolCall)]
    return [Draft("tool_result", ToolResult(call.id, RESULT, call.name), id) for call in calls]


def read(plan: Plan, answer: Answer) -> tuple[ReadResult | None, Failure | None]:
    """The answer as values: a result, or why there is none. A key that the host repeats is blotted out.

    What a router passes on from behind it stands for its own words, which say nothing.
    """
    if answer.status != 200:
        failure = failures.read_failure(answer.status, answer.body, plan)
        return None, msgspec.structs.replace(failure, status=answer.status, message=_provider_message(failure))
    reader = open_reader(plan, "probe", answer.content_type)
    reader.feed(answer.body)
    reader.close()
    result = reader.result()
    error = result.response.error
    if error is None:
        return result, None
    # inside a stream the status is in the words
    status = int(error.code) if error.code.isdecimal() else error.status
    return None, msgspec.structs.replace(error, status=status, message=plan.without_key(_provider_message(error)))


def _provider_message(failure: Failure) -> str:
    """The sentence for people in what a host answered."""
    text = failure.upstream or failure.message
    within = _MESSAGE.search(text) if text[:1] in "{[" else None
    return str(canonical.decode(within[1])) if within else text


def stopped(failure: Failure, plan: Plan) -> ProviderError:
    """The error for an answer that says nothing about reasoning."""
    again = "wait, then probe again: nothing was saved"
    if failure.status < 400:
        return ProviderError(
            f"the answer of {plan.target.endpoint.id} broke off: {failure.message}", next_actions=(again,)
        )
    error = failures.refused(failure, plan)
    if is_retryable(failure.status):
        error.next_actions = (again,)
    return error


def counted(usage: Usage | None) -> int | None:
    """All tokens of input, cached ones with them."""
    if usage is None or usage.input is None:
        return None
    beside = (usage.cached or 0) + (usage.cache_write or 0) if "cache_beside_input" in usage.counted else 0
    return usage.input + beside
