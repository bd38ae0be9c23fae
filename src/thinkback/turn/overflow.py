"""Whether a provider refused a request, or broke off a response, because the context is full."""

from __future__ import annotations

import re

from thinkback.model.commits import Failure

# Who waits, or pays, is served; that has nothing to do with the context.
_OTHER_STATUSES = frozenset({401, 402, 403, 429})
_TOO_LARGE = 413
_CODES = frozenset(
    {
        "context_length_exceeded",  # OpenAI, Groq, Cerebras, Azure
        "context_window_exceeded",
        "exceed_context_size_error",  # llama.cpp
        "model_max_prompt_tokens_exceeded",  # GitHub
        "request_too_large",  # Anthropic
        "1261",  # Z.ai: prompt exceeds max length
    }
)
# By whom each is said as far as it is known; hosts that run open models pass on the words of their server.
_TEXTS = (
    r"context[ _](length|window|size|limit)[^.]{0,40}(exceed|too (long|large|small))",  # many
    r"(exceed|over|larger than|longer than|greater than)[^.]{0,60}context[ _-]?(length|window|size|limit)",  # OpenAI
    r"maximum (context|prompt|model) length",  # OpenAI, OpenRouter, vLLM, xAI, Mistral
    r"(prompt|input|request|conversation)( text| content)?( \([^)]*\))? is too long",  # Anthropic, Bedrock, Fireworks
    r"prompt too long",
    r"input length and `?max_tokens`? exceed",  # Anthropic
    r"input token count[^.]{0,40}exceeds",  # Gemini
    r"too many (input )?tokens(?!.{0,40}(per (minute|day|second)|wait|throttl))",  # Bedrock, Cohere
    r"total number of tokens[^.]{0,80}(cannot|must not|exceed)",  # Cohere
    r"reduce the length of the (messages|prompt|input)",  # OpenAI, Groq, Cerebras
    r"exceed(ed|s)?[^.]{0,30}(model )?token limit",  # Moonshot
    r"token limit exceeded",
    r"prompt token count[^.]{0,40}exceeds",  # GitHub
    r"prompt exceeds max(imum)? length",  # Z.ai
    r"range of input length should be",  # DashScope
    r"max_new_tokens`? must be <=",  # TGI, Together
    r"input length[^.]{0,40}exceeds",  # Ollama, SGLang, vLLM
)
# Compiled for the first refusal: that takes milliseconds.
_TEXT = f"(?i){'|'.join(_TEXTS)}"


def is_overflow(failure: Failure) -> bool:
    """Whether a shorter history would have been taken."""
    if failure.status in _OTHER_STATUSES or failure.type == "strict":
        return False
    if failure.status == _TOO_LARGE or not _CODES.isdisjoint((failure.code, failure.type)):
        return True
    return re.search(_TEXT, f"{failure.message} {failure.upstream}") is not None
