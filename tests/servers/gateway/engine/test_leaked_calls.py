"""Calls that leak into reasoning, behind the gateway: text, unless its configuration passes them."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from tests.servers.gateway.harness.engines import JSON, KEY, SSE, TOOL, Logs, Plays, Sealed, ask
from thinkback.rules import load_rulebook
from thinkback.servers.gateway.config.schema import Config, Upstream
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.secrets.sealing import Sealer

SECTION = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"city":"Oslo"}<|tool_call_end|><|tool_calls_section_end|>'
)
CHAT: Any = {"messages": [{"role": "user", "content": "Weather?"}], "tools": [TOOL]}
MESSAGES: Any = {
    "max_tokens": 4000,
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "messages": [{"role": "user", "content": "Weather?"}],
    "tools": [{"name": "get_weather", "input_schema": {"type": "object"}}],
}


def served(leaked_calls: Literal["text", "pass"], endpoint: str, *, stream: bool) -> Engine:
    """A gateway before a server that leaves a call of Kimi in its reasoning."""
    message = {"role": "assistant", "reasoning_content": f"I look. {SECTION}"}
    choice = {"index": 0, "delta" if stream else "message": message, "finish_reason": "stop"}
    body = json.dumps({"id": "c1", "model": "kimi-k2", "choices": [choice]}).encode()
    answer = b"data: " + body + b"\n\ndata: [DONE]\n\n" if stream else body
    plays = Plays(lambda body: (200, SSE if stream else JSON, [answer]))
    place = Upstream(
        endpoint=endpoint, base_url="http://leaky.test/v1", key_env="THINKBACK_TEST_KEY", leaked_calls=leaked_calls
    )
    config = Config(upstreams={"leaky": place})
    return Engine(config, Logs(), Sealer(KEY.encode().ljust(32)), load_rulebook({}), lambda proxy: plays, Sealed())  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("front", "body"), [("openai-chat", CHAT), ("anthropic", MESSAGES)])
@pytest.mark.parametrize(
    ("leaked_calls", "endpoint", "is_call"),
    [("text", "sglang", False), ("pass", "sglang", True), ("pass", "deepseek", False)],
)
def test_a_leaked_call_is_passed_only_where_the_configuration_and_the_rule_say_so(
    leaked_calls: Literal["text", "pass"], endpoint: str, is_call: bool, front: str, body: Any, stream: bool
) -> None:
    """By default the markers reach the client as the reasoning they came in."""
    made = served(leaked_calls, endpoint, stream=stream)
    kept = ask(made, front, {"model": "leaky/kimi-k2-thinking", "stream": stream, **body})
    assert 200 == kept.status
    assert is_call == (b'"tool_calls":[' in kept.body or b'"tool_use"' in kept.body)
    assert is_call != (b"tool_calls_section_begin" in kept.body)
