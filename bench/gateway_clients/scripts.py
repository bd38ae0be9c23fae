"""All clients: those in Python with their scripts, and what is said of those that run in Node."""

from __future__ import annotations

from bench.gateway_clients import (
    with_agents,
    with_anthropic,
    with_google,
    with_langchain,
    with_litellm,
    with_llm,
    with_openai,
    with_pydantic_ai,
)
from bench.gateway_clients.job import STREAMED, STRUCTURED, Script

PYTHON = (
    with_openai.CHAT,
    with_openai.RESPONSES,
    with_anthropic.MESSAGES,
    with_google.GEMINI,
    with_langchain.CHAT,
    with_langchain.RESPONSES,
    with_langchain.MESSAGES,
    with_langchain.GEMINI,
    with_litellm.CHAT,
    with_litellm.RESPONSES,
    with_litellm.MESSAGES,
    with_litellm.GEMINI,
    with_llm.CHAT,
    with_llm.RESPONSES,
    with_pydantic_ai.CHAT,
    with_pydantic_ai.RESPONSES,
    with_pydantic_ai.MESSAGES,
    with_pydantic_ai.GEMINI,
    with_agents.CHAT,
    with_agents.RESPONSES,
)


_NOT_PYTHON = "it runs in Node; the transport is for Python"


def _node(name: str, front: str, package: str, lines: str, *more: str, shapes: str = "") -> Script:
    modes = ("generateText", STREAMED, *more, STRUCTURED)
    return Script(name, front, ("ai", package), modes, None, lines, {}, shapes, _NOT_PYTHON)


_ADDRESS = "http://127.0.0.1:8484"
_OPENAI = f'const gateway = createOpenAI({{ baseURL: "{_ADDRESS}/v1", apiKey: "tb-..." }});\n'
NODE = (
    _node(
        "ai @ai-sdk/openai, chat",
        "openai-chat",
        "@ai-sdk/openai",
        f'{_OPENAI}await generateText({{ model: gateway.chat("..."), prompt }});',
    ),
    _node(
        "ai @ai-sdk/openai-compatible",
        "openai-chat",
        "@ai-sdk/openai-compatible",
        f'const gateway = createOpenAICompatible({{ name: "gateway", baseURL: "{_ADDRESS}/v1", apiKey: "tb-..." }});\n'
        'await generateText({ model: gateway("..."), prompt });',
    ),
    _node(
        "ai @ai-sdk/openai, Responses",
        "openai-responses",
        "@ai-sdk/openai",
        f'{_OPENAI}await generateText({{ model: gateway.responses("..."), prompt }});',
        "store: false",
    ),
    _node(
        "ai @ai-sdk/anthropic",
        "anthropic",
        "@ai-sdk/anthropic",
        f'const gateway = createAnthropic({{ baseURL: "{_ADDRESS}/v1", apiKey: "tb-..." }});\n'
        'await generateText({ model: gateway("..."), prompt });',
        shapes="claude",
    ),
    _node(
        "ai @ai-sdk/google",
        "gemini",
        "@ai-sdk/google",
        f'const gateway = createGoogleGenerativeAI({{ baseURL: "{_ADDRESS}/v1beta", apiKey: "tb-..." }});\n'
        'await generateText({ model: gateway("..."), prompt });',
    ),
)
