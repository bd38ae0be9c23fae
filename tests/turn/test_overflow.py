"""Refusals because the context is full, in the words of those who say so, and refusals that only sound like it."""

from __future__ import annotations

import pytest

from thinkback.model.commits import Failure
from thinkback.turn.overflow import is_overflow

# Who says it, and how (status, type, code, message).
TEXTS = [
    (
        "openai",
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 140012 tokens.",
    ),
    ("openai responses", 0, "", "context_length_exceeded", "Your input exceeds the context window of this model."),
    ("openai without code", 400, "", "", "Your input exceeds the context window of this model. Please adjust it."),
    ("anthropic", 400, "invalid_request_error", "", "prompt is too long: 206640 tokens > 200000 maximum"),
    (
        "anthropic",
        400,
        "invalid_request_error",
        "",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
    ),
    ("anthropic", 413, "request_too_large", "", "Request exceeds the maximum size"),
    ("bedrock", 400, "ValidationException", "", "Input is too long for requested model."),
    ("bedrock", 400, "ValidationException", "", "Too many input tokens. Max input tokens: 8192, request input: 9000"),
    (
        "gemini",
        400,
        "INVALID_ARGUMENT",
        "400",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    ),
    ("mistral", 400, "", "3051", "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    (
        "cohere",
        400,
        "",
        "",
        "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 130000. Shorten it",
    ),
    ("groq", 400, "", "context_length_exceeded", "Please reduce the length of the messages or completion."),
    ("cerebras", 400, "", "", "Please reduce the length of the messages or completion. Current length is 10000"),
    ("xai", 400, "", "", "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    ("moonshot", 400, "", "", "Invalid request: Your request exceeded model token limit: 8192"),
    ("z.ai", 400, "", "1261", "Prompt exceeds max length"),
    ("minimax", 400, "", "2013", "invalid params, context window exceeds limit (2013)"),
    ("dashscope", 400, "", "", "Range of input length should be [1, 98304]"),
    ("github", 400, "", "model_max_prompt_tokens_exceeded", "prompt token count of 140000 exceeds the limit of 128000"),
    (
        "openrouter",
        400,
        "",
        "400",
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens",
    ),
    ("vllm", 400, "BadRequestError", "", "Input length (5000) exceeds model's maximum context length (4096)."),
    (
        "vllm",
        400,
        "",
        "",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that it is not",
    ),
    ("llama.cpp", 400, "exceed_context_size_error", "", "the request exceeds the available context size"),
    ("llama.cpp", 500, "", "", "the request exceeds the available context size, try increasing it"),
    ("lm studio", 400, "", "", "tokens to keep from the initial prompt is greater than the context length"),
    ("sglang", 400, "", "", "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
    ("ollama", 400, "", "", "input length exceeds maximum context length"),
    ("tgi", 422, "", "", "`inputs` tokens + `max_new_tokens` must be <= 4096"),
    ("fireworks", 400, "", "", "The prompt is too long: 140000, model maximum context length: 131071"),
    ("atlas", 400, "", "", "Prompt too long: 5152 tokens exceeds max_seq_len 2048"),
]


@pytest.mark.parametrize(("who", "status", "type", "code", "message"), TEXTS)
def test_the_words_of_a_full_context_are_known(who: str, status: int, type: str, code: str, message: str) -> None:
    """As an HTTP error, inside a stream, or passed on by a router."""
    assert is_overflow(Failure(message, status, type, code)), who
    assert is_overflow(Failure("Provider returned error", status, type, code, upstream=message)), who


@pytest.mark.parametrize(
    "failure",
    [
        Failure("Too many tokens, please wait before trying again.", 429, "ThrottlingException"),
        Failure("Too many tokens per minute for this model", 400),
        Failure("This organization's maximum context length is restricted", 403),
        Failure("Request too large for model: tokens per minute (TPM) limit 6000", 429, code="rate_limit_exceeded"),
        Failure("string too long. Expected a string with maximum length 64", 400, code="string_above_max_length"),
        Failure("Invalid signature in thinking block", 400),
        Failure("the endpoint sent reasoning longer than the context window", type="strict"),
        Failure("max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens", 400),
        Failure("temperature exceeds the maximum", 400),
        Failure("Internal server error", 500),
        Failure("the server was silent for too long: 30 s", type="timeout", code="idle"),
    ],
)
def test_other_refusals_are_no_full_context(failure: Failure) -> None:
    """A rate, a budget for output or a string has nothing to do with the history."""
    assert not is_overflow(failure)
