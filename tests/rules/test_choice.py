"""Which rule row is in force for an endpoint, a model and a day."""

from __future__ import annotations

import pytest

from tests.every import every
from thinkback.errors import NotFoundError, SettingError
from thinkback.model.rule import Endpoint, Later, Rule
from thinkback.model.target import model_matches
from thinkback.rules import Rulebook, load_rulebook

TODAY = "2026-11-20"
BOOK = load_rulebook()

# endpoint, model, day, row, guessed
CHOICES = [
    # one name, three generations
    ("deepseek", "deepseek-reasoner", "2025-06-01", "deepseek-r1", False),
    ("deepseek", "deepseek-reasoner", "2025-11-30", "deepseek-r1", False),
    ("deepseek", "deepseek-reasoner", "2025-12-01", "deepseek-v3.2", False),
    ("deepseek", "deepseek-reasoner", TODAY, "deepseek-v4", False),
    ("deepseek", "deepseek-r1-0528", TODAY, "deepseek-r1", False),
    ("deepseek", "deepseek-v3.1", TODAY, "deepseek-v3", False),
    ("deepseek", "deepseek-v3.2-exp", TODAY, "deepseek-v3.2", False),
    ("deepseek", "deepseek-chat", "2025-06-01", "deepseek-v3", False),
    ("deepseek", "deepseek-chat", "2026-01-01", "deepseek-v3.2-chat", False),
    ("deepseek", "deepseek-chat", TODAY, "deepseek-v4-chat", False),
    ("deepseek", "deepseek-v4-flash", TODAY, "deepseek-v4", False),
    ("deepseek", "DeepSeek-V4-Pro", TODAY, "deepseek-v4", False),
    ("deepseek", "deepseek-flash", TODAY, "deepseek-v4", False),
    ("deepseek", "deepseek-v9", TODAY, "deepseek-v4", True),
    ("deepseek", "deepseek-v9", "2026-01-01", "deepseek-v3.2", True),
    ("deepseek", "deepseek-reasoner", "2020-01-01", "deepseek-r1", True),
    ("kimi", "kimi-k2-thinking-turbo", TODAY, "kimi-k2-thinking", False),
    ("kimi", "kimi-k2-0905-preview", TODAY, "kimi-without-thinking", False),
    ("kimi", "kimi-k2.5", TODAY, "kimi-k2.5", False),
    ("kimi", "kimi-k2.6", TODAY, "kimi-k2.6", False),
    ("kimi", "kimi-k2.7-code", TODAY, "kimi-k2.7", False),
    ("kimi", "kimi-for-coding", TODAY, "kimi-for-coding", False),
    ("kimi", "kimi-k3", TODAY, "kimi-k3", False),
    ("kimi", "kimi-k4", TODAY, "kimi-k3", True),
    ("zai", "glm-4-plus", TODAY, "glm-without-thinking", False),
    ("zai", "glm-4.5-air", TODAY, "glm-4.5", False),
    ("zai", "glm-4.5v", TODAY, "glm-4.5v", False),
    ("zai", "glm-4.6", TODAY, "glm-4.5", False),
    ("zai", "glm-4.7-flash", TODAY, "glm-4.7", False),
    ("zai", "glm-5.1", TODAY, "glm-4.7", False),
    ("zai", "glm-5.2", TODAY, "glm-5.2", False),
    ("zai", "glm-5.3", TODAY, "glm-5.3", False),
    ("zai", "glm-7", TODAY, "glm-5.3", True),
    ("zai-coding", "glm-4.7", TODAY, "glm-coding", False),
    ("zai-coding", "glm-5.2", TODAY, "glm-coding-5.2", False),
    ("zai-coding", "glm-5.3", TODAY, "glm-coding-5.3", False),
    ("minimax", "MiniMax-M2.5", TODAY, "minimax-m2", False),
    ("minimax", "MiniMax-M3", TODAY, "minimax-m3", False),
    ("qwen", "qwen3-max", TODAY, "qwen", False),
    ("qwen", "qwen-plus", TODAY, "qwen", False),
    ("qwen", "qwen3-235b-a22b-thinking-2507", TODAY, "qwen-always-thinking", False),
    ("qwen", "qwq-32b", TODAY, "qwen-always-thinking", False),
    ("qwen", "qwen3.6-plus", TODAY, "qwen3.6", False),
    ("qwen", "qwen4-max", TODAY, "qwen3.8", True),
    ("openrouter", "anthropic/claude-haiku-4.5", TODAY, "openrouter-anthropic", False),
    ("openrouter", "openai/gpt-5.2", TODAY, "openrouter-openai", False),
    ("openrouter", "openai/gpt-oss-120b", TODAY, "openrouter-openai", False),
    ("openrouter", "google/gemini-3.1-pro", TODAY, "openrouter-google", False),
    ("openrouter", "x-ai/grok-4.1-fast", TODAY, "openrouter-xai", False),
    ("openrouter", "deepseek/deepseek-v4-pro", TODAY, "openrouter-deepseek", False),
    ("openrouter", "qwen/qwen3-next-80b-a3b-thinking", TODAY, "openrouter", False),
    ("vercel", "anthropic/claude-sonnet-4", TODAY, "vercel", False),
    ("vercel", "google/gemini-3-pro-preview", TODAY, "vercel-google", False),
    ("snowflake", "claude-sonnet-4-6", TODAY, "snowflake", False),
    ("huggingface", "deepseek-ai/DeepSeek-R1", TODAY, "huggingface", False),
    ("huggingface", "openai/gpt-oss-20b", TODAY, "gpt-oss", False),
    ("xai", "grok-code-fast-1", TODAY, "xai", False),
    ("xai", "grok-4", TODAY, "xai", False),
    ("xai", "grok-4.20-reasoning", TODAY, "xai", False),
    ("xai", "grok-3-mini", TODAY, "xai-effort", False),
    ("xai", "grok-4.3", TODAY, "xai-effort", False),
    ("xai", "grok-3", TODAY, "xai-led-to-4.3", False),
    ("xai", "grok-3", "2026-05-14", "xai-without-reasoning", False),
    ("xai", "grok-4-0709", TODAY, "xai-led-to-4.3", False),
    ("xai", "grok-2-vision", TODAY, "xai-without-reasoning", False),
    ("xai", "grok-4.7", TODAY, "xai-effort", False),
    ("xai-chat", "grok-4-fast-reasoning", TODAY, "xai-chat-led-to-4.3", False),
    ("xai-chat", "grok-4-fast-reasoning", "2026-05-14", "xai-chat", False),
    ("xai", "grok-4-1-fast-non-reasoning", TODAY, "xai-led-to-4.3", False),
    ("xai-chat", "grok-code-fast-1", TODAY, "xai-chat", False),
    ("xai-chat", "grok-4.6", TODAY, "xai-chat-effort", False),
    ("cerebras", "gpt-oss-120b", TODAY, "cerebras-gpt-oss", False),
    ("cerebras", "zai-glm-4.7", TODAY, "cerebras-glm", False),
    ("cerebras", "qwen-3-32b", TODAY, "cerebras", False),
    ("groq", "openai/gpt-oss-120b", TODAY, "groq-gpt-oss", False),
    ("groq", "qwen/qwen3-32b", TODAY, "groq-qwen3", False),
    ("groq", "qwen/qwen3.8-27b", TODAY, "groq-qwen3.8", False),
    ("groq", "deepseek-r1-distill-llama-70b", TODAY, "groq-deepseek-r1", False),
    ("groq", "llama-3.3-70b-versatile", TODAY, "groq", False),
    ("together", "moonshotai/Kimi-K2-Thinking", TODAY, "together", False),
    ("together", "deepseek-ai/DeepSeek-R1", TODAY, "together-deepseek-r1", False),
    ("together", "zai-org/GLM-5.3", TODAY, "together-glm-5.3", False),
    ("together", "openai/gpt-oss-120b", TODAY, "gpt-oss", False),
    ("fireworks", "accounts/fireworks/models/kimi-k2-thinking", TODAY, "fireworks", False),
    ("fireworks", "accounts/fireworks/models/minimax-m2", TODAY, "fireworks-always-thinking", False),
    ("fireworks", "accounts/fireworks/models/gpt-oss-120b", TODAY, "fireworks-gpt-oss", False),
    ("mistral", "mistral-medium-3.5", TODAY, "mistral", False),
    ("mistral", "mistral-small-2603", TODAY, "mistral", False),
    ("mistral", "mistral-small-latest", TODAY, "mistral", False),
    ("mistral", "magistral-medium-latest", TODAY, "magistral", False),
    ("mistral", "zai-glm-5-3", TODAY, "mistral-hosted", False),
    ("mistral", "deepseek-v4-1-flash-1017", TODAY, "mistral-hosted", False),
    ("mistral", "codestral-latest", TODAY, "mistral-without-reasoning", False),
    ("mistral", "mistral-small-2506", TODAY, "mistral-without-reasoning", False),
    ("mistral-responses", "mistral-small-latest", TODAY, "mistral-responses", False),
    ("cohere", "command-a-reasoning-08-2025", TODAY, "cohere", False),
    ("cohere", "command-a-plus-05-2026", TODAY, "cohere", False),
    ("cohere", "command-r-plus-08-2024", TODAY, "cohere-plain", False),
    # hosts that speak several dialects, and the efforts of hosted models
    ("minimax-anthropic", "MiniMax-M3.1-Flash", TODAY, "minimax-anthropic-m3.1", False),
    ("nvidia-nim", "deepseek-ai/deepseek-v4.1-flash", TODAY, "nvidia-nim-deepseek", False),
    ("nvidia-nim", "z-ai/glm-5.3-flash", TODAY, "nvidia-nim-effort", False),
    ("qwen", "qwen3.8-max", TODAY, "qwen3.8", False),
    ("qwen", "kimi-k3", TODAY, "qwen-hosted", False),
    ("mistral", "mistral-large-4-0-8", TODAY, "mistral-large-4", False),
    ("fireworks", "accounts/fireworks/models/glm-5p3", TODAY, "fireworks-effort", False),
    ("fireworks", "accounts/fireworks/routers/kimi-k3-fast", TODAY, "fireworks-kimi-k3", False),
    ("fireworks-anthropic", "accounts/fireworks/models/deepseek-v4p1-flash", TODAY, "fireworks-anthropic", False),
    ("fireworks-anthropic", "accounts/fireworks/models/minimax-m3", TODAY, "fireworks-anthropic-always", False),
    ("kimi-responses", "kimi-k3", TODAY, "kimi-responses", False),
    ("meta-anthropic", "muse-spark-1.3", TODAY, "meta-anthropic", False),
    ("meta-chat", "muse-spark-1.3", TODAY, "meta-chat", False),
    ("openai", "gpt-daybreak-blue-latest", TODAY, "openai-gpt-5.5", False),
    ("opencode-zen-anthropic", "claude-3-5-haiku", TODAY, "opencode-zen-claude-without-thinking", False),
    ("opencode-zen-anthropic", "claude-haiku-4-5", TODAY, "opencode-zen-claude-manual", False),
    ("opencode-zen-anthropic", "claude-opus-4-6", TODAY, "opencode-zen-claude-4-6", False),
    ("opencode-zen-anthropic", "claude-opus-4-8", TODAY, "opencode-zen-claude-adaptive", False),
    ("opencode-zen-anthropic", "claude-sonnet-5", TODAY, "opencode-zen-claude-5", False),
    ("opencode-zen-anthropic", "claude-fable-5", TODAY, "opencode-zen-claude-always", False),
    ("opencode-zen-anthropic", "claude-opus-9", TODAY, "opencode-zen-claude-bound", False),
    ("opencode-zen-anthropic", "claude-opus-5-5", TODAY, "opencode-zen-claude-opus-5-5", False),
    ("opencode-zen-anthropic", "claude-haiku-5-5", TODAY, "opencode-zen-claude-haiku-5-5", False),
    ("opencode-zen-anthropic", "claude-sonnet-5-5", TODAY, "opencode-zen-claude-sonnet-5-5", False),
    ("opencode-zen-anthropic", "claude-fable-5-1", TODAY, "opencode-zen-claude-fable-5-1", False),
    ("opencode-zen-anthropic", "claude-fable-5-2", TODAY, "opencode-zen-claude-fable-5-2", False),
    ("opencode-go-anthropic", "claude-opus-9", TODAY, "opencode-go-claude-bound", False),
    ("opencode-go-anthropic", "claude-haiku-5-5", TODAY, "opencode-go-claude-haiku-5-5", False),
    ("opencode-zen-anthropic", "qwen3.6-plus", TODAY, "opencode-zen-compatible", False),
    ("opencode-zen-anthropic", "qwen3.8-flash", TODAY, "opencode-zen-compatible-effort", False),
    ("opencode-zen-responses", "gpt-5.6-luna", TODAY, "opencode-zen-responses", False),
    ("opencode-zen-responses", "grok-4.7", TODAY, "opencode-zen-grok", False),
    ("opencode-zen-responses", "muse-spark-1.3", TODAY, "opencode-zen-muse", False),
    ("opencode-zen-gemini", "gemini-4-argon", TODAY, "opencode-zen-gemini", False),
    ("opencode-go-anthropic", "qwen3.6-plus", TODAY, "opencode-go-compatible", False),
    ("opencode-go-anthropic", "qwen3.8-flash", TODAY, "opencode-go-compatible-effort", False),
    ("opencode-go-responses", "gpt-5.6-luna", TODAY, "opencode-go-responses", False),
    ("opencode-go-responses", "grok-4.7", TODAY, "opencode-go-grok", False),
    ("opencode-go-responses", "muse-spark-1.3", TODAY, "opencode-go-muse", False),
    ("opencode-go-gemini", "gemini-4-argon", TODAY, "opencode-go-gemini", False),
    ("opencode-zen-responses", "grok-build-0.1", TODAY, "opencode-zen-grok-build", False),
    ("opencode-zen-gemini", "gemini-3.6-flash", TODAY, "opencode-zen-gemini-minimal", False),
    ("opencode-zen-gemini", "gemini-3.1-pro", TODAY, "opencode-zen-gemini-3", False),
    ("opencode-zen-gemini", "gemini-3-flash", TODAY, "opencode-zen-gemini-3-flash", False),
    # OpenAI, in both dialects
    ("openai", "gpt-4o", TODAY, "openai-chat-models", False),
    ("openai", "gpt-5-chat-latest", TODAY, "openai-chat-models", False),
    ("openai", "gpt-5.2-chat-latest", TODAY, "openai-chat-models", False),
    ("openai", "computer-use-preview", TODAY, "openai", False),
    ("openai", "o4-mini", TODAY, "openai-o", False),
    ("openai", "o3-deep-research", TODAY, "openai-o", False),
    ("openai", "gpt-5-mini", TODAY, "openai-gpt-5", False),
    ("openai", "gpt-5-codex", TODAY, "openai-gpt-5", False),
    ("openai", "gpt-5.1", TODAY, "openai-gpt-5.1", False),
    ("openai", "gpt-5.3", TODAY, "openai-gpt-5.1", False),
    ("openai", "gpt-5.1-codex-max", TODAY, "openai-gpt-5-always", False),
    ("openai", "gpt-5.2-pro", TODAY, "openai-gpt-5-always", False),
    ("openai", "gpt-5.4-mini", TODAY, "openai-gpt-5.4", False),
    ("openai", "gpt-5.4-pro", TODAY, "openai-gpt-5.5", False),
    ("openai", "gpt-5.5", TODAY, "openai-gpt-5.5", False),
    ("openai", "gpt-5.6-sol", TODAY, "openai-gpt-5.5", False),
    ("openai", "gpt-6.1-sol", TODAY, "openai-gpt-5.5", False),
    ("openai", "gpt-6.2-astra-law", TODAY, "openai-gpt-6-unconfirmed", False),
    ("openai", "gpt-6-cyber", TODAY, "openai-gpt-6-unconfirmed", False),
    ("meta", "muse-spark-1.3", TODAY, "meta", False),
    ("azure-openai", "my-deployment", TODAY, "azure-openai", False),
    ("azure-openai", "gpt-5.6", TODAY, "azure-openai-named", False),
    ("azure-openai", "team-gpt-4o", TODAY, "azure-openai-chat-models", False),
    ("codex", "gpt-5.4", TODAY, "codex", False),
    ("copilot", "gpt-5.3-codex", TODAY, "copilot-without-items", False),
    ("copilot", "gpt-5.3-codex", "2026-04-30", "copilot", False),
    ("bedrock-mantle-responses", "openai.gpt-5.5", TODAY, "bedrock-mantle-responses", False),
    ("bedrock-mantle-responses", "openai.gpt-oss-120b", TODAY, "bedrock-mantle-responses-gpt-oss", False),
    ("deepseek-responses", "deepseek-v4-flash", TODAY, "deepseek-responses", False),
    ("openrouter-responses", "openai/gpt-6-sol", TODAY, "openrouter-responses", False),
    ("open-responses", "openai/gpt-oss-20b", TODAY, "open-responses", False),
    ("ollama-responses", "qwen3:4b", TODAY, "ollama-responses", False),
    ("openai-chat", "gpt-4o", TODAY, "openai-chat", False),
    ("openai-chat", "o4-mini", TODAY, "openai-chat-reasoning", False),
    ("openai-chat", "gpt-5.5", TODAY, "openai-chat-gpt-5.4", False),
    ("openai-chat", "gpt-5-mini", TODAY, "openai-chat-gpt-5", False),
    ("openai-chat", "gpt-5.2", TODAY, "openai-chat-gpt-5.1", False),
    ("openai-chat", "gpt-5.1-codex-mini", TODAY, "openai-chat-gpt-5-always", False),
    ("openai-chat", "gpt-5.4-mini", TODAY, "openai-chat-gpt-5.4-mainline", False),
    ("openai-chat", "gpt-5.4-pro", TODAY, "openai-chat-gpt-5.4", False),
    ("openai-chat", "gpt-5-chat-latest", TODAY, "openai-chat-without-reasoning", False),
    ("azure-openai-chat", "my-deployment", TODAY, "azure-openai-chat", False),
    ("azure-openai-chat", "gpt-4o", TODAY, "azure-openai-chat-without-reasoning", False),
    # Claude
    ("anthropic", "claude-3-5-sonnet-20241022", TODAY, "claude-without-thinking", False),
    ("anthropic", "claude-3-7-sonnet-20250219", TODAY, "claude-manual", False),
    ("anthropic", "claude-opus-4-20250514", TODAY, "claude-manual", False),
    ("anthropic", "claude-sonnet-4-5-20250929", TODAY, "claude-manual", False),
    ("anthropic", "claude-haiku-4-5", TODAY, "claude-manual", False),
    ("anthropic", "claude-opus-4-5-20251101", TODAY, "claude-opus-4-5", False),
    ("anthropic", "claude-sonnet-4-6", TODAY, "claude-4-6", False),
    ("anthropic", "claude-opus-4-8", TODAY, "claude-adaptive", False),
    ("anthropic", "claude-opus-5", TODAY, "claude-5", False),
    ("anthropic", "claude-sonnet-5-20260601", TODAY, "claude-5", False),
    ("anthropic", "claude-opus-5-5", TODAY, "claude-opus-5-5", False),
    ("anthropic", "claude-sonnet-5-5", TODAY, "claude-sonnet-5-5", False),
    ("anthropic", "claude-haiku-5-5", TODAY, "claude-haiku-5-5", False),
    ("anthropic", "claude-fable-5", TODAY, "claude-always", False),
    ("anthropic", "claude-fable-5-20260701", TODAY, "claude-always", False),
    ("anthropic", "claude-fable-5-1", TODAY, "claude-fable-5-1", False),
    ("anthropic", "claude-fable-5-2", TODAY, "claude-fable-5-2", False),
    ("anthropic", "claude-mythos-5-1", TODAY, "claude-mythos-5-1", False),
    ("anthropic", "claude-mythos-5-2", TODAY, "claude-mythos-5-2", False),
    ("anthropic", "claude-opus-7", TODAY, "claude-bound", False),
    ("vertex-claude", "claude-3-5-haiku@20241022", TODAY, "vertex-claude-without-thinking", False),
    ("vertex-claude", "claude-opus-4-5@20251101", TODAY, "vertex-claude-manual", False),
    ("vertex-claude", "claude-opus-4-6", TODAY, "vertex-claude-4-6", False),
    ("vertex-claude", "claude-opus-4-7", TODAY, "vertex-claude-adaptive", False),
    ("vertex-claude", "claude-opus-5", TODAY, "vertex-claude-5", False),
    ("vertex-claude", "claude-fable-5@20260701", TODAY, "vertex-claude-always", False),
    ("vertex-claude", "claude-fable-5-1", TODAY, "vertex-claude-bound", False),
    ("vertex-claude", "claude-mythos-5-1", TODAY, "vertex-claude-mythos-5-1", False),
    ("vertex-claude", "claude-sonnet-5-5", TODAY, "vertex-claude-sonnet-5-5", False),
    ("vertex-claude", "claude-haiku-5-5", TODAY, "vertex-claude-haiku-5-5", False),
    ("vertex-claude", "claude-opus-5-5", TODAY, "vertex-claude-bound", False),
    ("bedrock-claude", "anthropic.claude-3-5-sonnet-20241022-v2:0", TODAY, "bedrock-claude-without-thinking", False),
    ("bedrock-claude", "us.anthropic.claude-sonnet-4-20250514-v1:0", TODAY, "bedrock-claude-manual", False),
    ("bedrock-claude", "us.anthropic.claude-opus-4-6-v1", TODAY, "bedrock-claude-4-6", False),
    ("bedrock-claude", "us.anthropic.claude-opus-4-8", TODAY, "bedrock-claude-adaptive", False),
    ("bedrock-claude", "us.anthropic.claude-sonnet-5", TODAY, "bedrock-claude-5", False),
    ("bedrock-claude", "us.anthropic.claude-mythos-5-v1:0", TODAY, "bedrock-claude-always", False),
    ("bedrock-claude", "us.anthropic.claude-fable-5-1-v1:0", TODAY, "bedrock-claude-bound", False),
    ("bedrock-claude", "us.anthropic.claude-mythos-5-1", TODAY, "bedrock-claude-mythos-5-1", False),
    ("bedrock-claude", "us.anthropic.claude-sonnet-5-5", TODAY, "bedrock-claude-sonnet-5-5", False),
    ("bedrock-claude", "us.anthropic.claude-haiku-5-5", TODAY, "bedrock-claude-haiku-5-5", False),
    ("bedrock-claude", "us.anthropic.claude-opus-5-5", TODAY, "bedrock-claude-bound", False),
    ("bedrock", "us.anthropic.claude-3-7-sonnet-20250219-v1:0", TODAY, "converse-claude-manual", False),
    ("bedrock", "us.anthropic.claude-sonnet-4-6", TODAY, "converse-claude-4-6", False),
    ("bedrock", "us.anthropic.claude-opus-4-7", TODAY, "converse-claude-adaptive", False),
    ("bedrock", "us.anthropic.claude-opus-5", TODAY, "converse-claude-5", False),
    ("bedrock", "anthropic.claude-fable-5", TODAY, "converse-claude-always", False),
    ("bedrock", "us.anthropic.claude-fable-5-20260701-v1:0", TODAY, "converse-claude-always", False),
    ("bedrock", "us.anthropic.claude-fable-5-2-v1:0", TODAY, "converse-claude-bound", False),
    ("bedrock", "us.anthropic.claude-mythos-5-1", TODAY, "converse-claude-mythos-5-1", False),
    ("bedrock", "us.anthropic.claude-haiku-5-5", TODAY, "converse-claude-haiku-5-5", False),
    ("bedrock", "us.anthropic.claude-sonnet-5-5", TODAY, "converse-claude-sonnet-5-5", False),
    ("bedrock", "us.anthropic.claude-opus-5-5", TODAY, "converse-claude-bound", False),
    ("bedrock", "anthropic.claude-3-5-sonnet-20240620-v1:0", TODAY, "bedrock", False),
    ("bedrock", "us.deepseek.r1-v1:0", TODAY, "bedrock", False),
    ("bedrock", "amazon.nova-lite-v1:0", TODAY, "bedrock", False),
    ("bedrock", "us.amazon.nova-2-lite-v1:0", TODAY, "bedrock-nova-2", False),
    ("bedrock", "openai.gpt-oss-120b-1:0", TODAY, "bedrock-gpt-oss", False),
    ("bedrock", "qwen.qwen3-32b-v1:0", TODAY, "bedrock-qwen3", False),
    ("deepseek-anthropic", "deepseek-v4-pro", TODAY, "deepseek-v4-messages", False),
    ("deepseek-anthropic", "deepseek-v3.2", TODAY, "compatible", False),
    ("kimi-anthropic", "kimi-k2.6", TODAY, "kimi-anthropic", False),
    ("kimi-anthropic", "kimi-k3", TODAY, "kimi-anthropic-always", False),
    ("zai-anthropic", "glm-4.7", TODAY, "zai-anthropic", False),
    ("zai-anthropic", "glm-5.3", TODAY, "zai-anthropic-5.3", False),
    ("minimax-anthropic", "MiniMax-M2.5", TODAY, "minimax-anthropic", False),
    # Gemini
    ("gemini", "gemini-2.0-flash", TODAY, "gemini-2.0", False),
    ("gemini", "gemini-2.5-flash", TODAY, "gemini-2.5", False),
    ("gemini", "gemini-2.5-pro-preview-06-05", TODAY, "gemini-2.5-pro", False),
    ("gemini", "gemini-2.5-flash-lite", TODAY, "gemini-2.5-flash-lite", False),
    ("gemini", "gemini-3-pro-preview", TODAY, "gemini-3", False),
    ("gemini", "gemini-3-flash-preview", TODAY, "gemini-3-flash", False),
    ("gemini", "gemini-3.1-flash-lite", TODAY, "gemini-3-flash", False),
    ("gemini", "gemini-3.6-flash", TODAY, "gemini-minimal", False),
    ("gemini", "gemini-3.5-flash-lite", TODAY, "gemini-minimal", False),
    ("gemini", "gemini-3.7-flash", TODAY, "gemini", False),
    ("gemini", "gemini-flash-latest", TODAY, "gemini", False),
    ("gemini", "gemini-4-pro", TODAY, "gemini", False),
    ("vertex", "gemini-2.0-flash", TODAY, "vertex-2.0", False),
    ("vertex", "gemini-2.5-flash", TODAY, "vertex-2.5", False),
    ("vertex", "gemini-2.5-pro", TODAY, "vertex-2.5-pro", False),
    ("vertex", "gemini-2.5-flash-lite", TODAY, "vertex-2.5-flash-lite", False),
    ("vertex", "gemini-3.1-pro-preview", TODAY, "vertex-3.1-pro", False),
    ("vertex", "gemini-3-pro-preview", TODAY, "vertex-3", False),
    ("vertex", "gemini-3-flash-preview", TODAY, "vertex-3-flash", False),
    ("vertex", "gemini-3.5-flash", TODAY, "vertex-minimal", False),
    ("vertex", "gemini-4-pro", TODAY, "vertex", False),
    ("gemini-interactions", "gemini-3-flash-preview", TODAY, "gemini-interactions", False),
    ("gemini-openai", "gemini-3-pro-preview", TODAY, "gemini-openai", False),
    ("gemini-openai", "gemini-2.5-flash", TODAY, "gemini-openai-2.5", False),
    ("gemini-openai", "models/gemini-2.5-pro", TODAY, "gemini-openai-2.5-pro", False),
    ("ollama-native", "qwen3:4b", TODAY, "ollama-native", False),
    ("ollama-native", "gpt-oss:20b", TODAY, "ollama-native-gpt-oss", False),
    ("vllm", "Qwen/Qwen3-8B", TODAY, "vllm", False),
    ("vllm", "deepseek-ai/DeepSeek-V3.1", TODAY, "vllm-thinking", False),
    ("vllm", "moonshotai/Kimi-K2-Thinking", TODAY, "vllm-kimi", False),
    ("sglang", "moonshotai/Kimi-K2.5", TODAY, "sglang-kimi", False),
    ("vllm", "openai/gpt-oss-20b", TODAY, "vllm-gpt-oss", False),
    ("sglang", "Qwen/Qwen3-8B", TODAY, "sglang", False),
    ("sglang", "openai/gpt-oss-20b", TODAY, "sglang-gpt-oss", False),
    ("llamacpp", "Qwen3-1.7B-Q4_K_M", TODAY, "llamacpp", False),
    ("llamacpp", "openai/gpt-oss-20b", TODAY, "llamacpp-gpt-oss", False),
    ("ollama", "qwen3:4b", TODAY, "ollama", False),
    ("ollama", "gpt-oss:20b", TODAY, "ollama-gpt-oss", False),
    ("ollama-cloud", "qwen3.5:397b", TODAY, "ollama-cloud", False),
    ("ollama-cloud", "gpt-oss:120b", TODAY, "ollama-cloud-gpt-oss", False),
    ("lmstudio", "qwen3-8b", TODAY, "lmstudio", False),
    ("referee", "deepseek-v4-pro", TODAY, "referee", False),
    ("lmstudio", "openai/gpt-oss-20b", TODAY, "lmstudio-gpt-oss", False),
    ("gpustack", "qwen3", TODAY, "gpustack", False),
    ("mistralrs", "Qwen/Qwen3-4B", TODAY, "mistralrs", False),
    ("doubleword", "Qwen/Qwen3.5-9B", TODAY, "doubleword", False),
    ("avian", "moonshotai/kimi-k2.5", TODAY, "avian", False),
    ("venice", "qwen3-5-9b", TODAY, "venice", False),
    ("crusoe", "zai/GLM-5.2", TODAY, "crusoe", False),
    ("bedrock-mantle", "openai.gpt-oss-safeguard-20b", TODAY, "gpt-oss", False),
    ("bedrock-mantle", "qwen.qwen3-32b", TODAY, "bedrock-mantle", False),
    # hosts that came later
    ("copilot-chat", "claude-sonnet-5", TODAY, "copilot-chat", False),
    ("xiaomi-mimo", "mimo-v2.6-pro", TODAY, "xiaomi-mimo", False),
    ("doubao", "doubao-seed-2-1-pro-260915", TODAY, "doubao", False),
    ("stepfun", "step-3.7-flash", TODAY, "stepfun", False),
    ("hunyuan", "hy3", TODAY, "hunyuan", False),
    ("novita", "zai-org/glm-5.3", TODAY, "novita", False),
    ("siliconflow", "Qwen/Qwen3-8B", TODAY, "siliconflow", False),
    ("nvidia-nim", "nvidia/nemotron-3-ultra", TODAY, "nvidia-nim", False),
    ("baseten", "zai-org/GLM-5.3", TODAY, "baseten", False),
    ("deepinfra", "deepseek-ai/DeepSeek-V4-Pro", TODAY, "deepinfra", False),
    ("opencode-zen", "glm-5.3", TODAY, "opencode-zen", False),
    ("opencode-zen", "deepseek-v4-pro", TODAY, "opencode-zen-deepseek", False),
    ("opencode-go", "kimi-k3", TODAY, "opencode-go", False),
    ("opencode-go", "deepseek-v4.1-flash", TODAY, "opencode-go-deepseek", False),
    ("unknown", "anything", TODAY, "unknown", False),
    ("unknown", "gpt-oss-120b", TODAY, "unknown", False),
]

# what an endpoint of one's own is taken for, by its dialect
DIALECTS = {
    "openai-chat": "unknown",
    "openai-responses": "unknown-native",
    "anthropic": "unknown-anthropic",
    "bedrock": "unknown-bedrock",
    "gemini": "unknown-gemini",
    "gemini-interactions": "unknown-gemini-interactions",
    "mistral": "unknown-mistral",
    "cohere": "unknown-cohere",
    "ollama": "unknown-ollama",
    "something-else": "unknown",
}

# row: form, field, demand of the turn under way, of finished turns
WANTS: dict[str, tuple[str, str, str, Later]] = {
    "deepseek-r1": ("none", "reasoning_content", "never", "never"),
    "deepseek-v3.2": ("field", "reasoning_content", "must", "may"),
    "deepseek-v4": ("field", "reasoning_content", "must", "must-after-tools"),
    "kimi-k2-thinking": ("field", "reasoning_content", "must", "must"),
    "kimi-k3": ("field", "reasoning_content", "must", "must"),
    "glm-4.7": ("field", "reasoning_content", "must", "should"),
    "glm-coding": ("field", "reasoning_content", "must", "should"),
    "minimax-m2": ("tags", "reasoning_content", "must", "should"),
    "qwen": ("field", "reasoning_content", "should", "never"),
    "qwen3.6": ("field", "reasoning_content", "should", "may"),
    "openrouter": ("details", "reasoning", "must", "should"),
    "openrouter-google": ("details", "", "must", "should"),
    "vercel": ("details", "reasoning", "must", "should"),
    "snowflake": ("details", "", "must", "should"),
    "xai": ("native", "reasoning_content", "must", "should"),
    "xai-chat": ("field", "reasoning_content", "should", "may"),
    "cerebras-gpt-oss": ("field", "reasoning", "must", "should"),
    "cerebras-glm": ("tags", "reasoning_content", "should", "should"),
    "groq": ("none", "reasoning_content", "never", "never"),
    "groq-qwen3": ("field", "reasoning", "should", "may"),
    "together": ("field", "", "should", "may"),
    "fireworks": ("field", "reasoning_content", "should", "should"),
    "mistral": ("native", "reasoning_content", "should", "should"),
    "mistral-without-reasoning": ("none", "reasoning_content", "never", "never"),
    "cohere": ("native", "reasoning_content", "should", "may"),
    "openai": ("native", "reasoning_content", "must", "should"),
    "azure-openai": ("native", "reasoning_content", "must", "should"),
    "openai-chat": ("none", "reasoning_content", "never", "never"),
    "azure-openai-chat": ("none", "reasoning_content", "never", "never"),
    "deepseek-responses": ("native", "reasoning_content", "must", "should"),
    "open-responses": ("native", "reasoning_content", "should", "may"),
    "claude-manual": ("native", "reasoning_content", "must", "should"),
    "claude-bound": ("native", "reasoning_content", "must", "should"),
    "compatible": ("native", "reasoning_content", "must", "must-after-tools"),
    "deepseek-v4-messages": ("native", "reasoning_content", "must", "must-with-tools"),
    "converse-claude-manual": ("native", "reasoning_content", "must", "should"),
    "bedrock": ("none", "reasoning_content", "never", "never"),
    "gemini": ("native", "reasoning_content", "must", "should"),
    "gemini-2.5": ("native", "reasoning_content", "should", "should"),
    "gemini-interactions": ("native", "reasoning_content", "must", "must"),
    "gemini-openai": ("native", "reasoning_content", "must", "should"),
    "ollama-native": ("native", "reasoning_content", "should", "should"),
    "vllm": ("field", "reasoning", "should", "should"),
    "sglang": ("field", "reasoning_content", "should", "should"),
    "llamacpp": ("field", "reasoning_content", "should", "should"),
    "ollama": ("field", "reasoning", "should", "should"),
    "ollama-cloud": ("field", "reasoning", "should", "should"),
    "gpustack": ("field", "reasoning_content", "should", "may"),
    "crusoe": ("field", "reasoning", "should", "may"),
    "gpt-oss": ("field", "", "must", "may"),
    "unknown": ("field", "", "may", "may"),
}


def row(id: str) -> Rule:
    """The shipped row with this id."""
    return next(rule for rule in BOOK.rules() if rule.id == id)


@every(("endpoint", "model", "on", "expected", "guessed"), CHOICES)
def test_row_in_force(endpoint: str, model: str, on: str, expected: str, guessed: bool) -> None:
    """Endpoint, longest pattern and day choose the row; a model no row names takes the newest, marked as guessed."""
    rule, was_guessed = BOOK.rule_for(endpoint, model, on)
    assert (rule.id, was_guessed) == (expected, guessed)


def test_every_row_is_chosen_by_some_request() -> None:
    """No shipped row is dead: the tables above reach each of them."""
    assert {rule.id for rule in BOOK.rules()} == {expected for _, _, _, expected, _ in CHOICES} | {*DIALECTS.values()}


@pytest.mark.parametrize(("dialect", "expected"), DIALECTS.items())
def test_an_endpoint_of_ones_own_takes_the_row_of_its_dialect(dialect: str, expected: str) -> None:
    """Without rules of its own an endpoint gets, as a guess, what belongs to the dialect it speaks."""
    place = Endpoint("mine", "Mine", "http://10.0.0.5/v1", dialect=dialect, source="me")
    book = Rulebook(endpoints=(place,), rules=(), models=())
    rule, guessed = book.rule_for("mine", "some-model", TODAY)
    assert (expected, True) == (rule.id, guessed)
    assert {} == rule.controls.effort


@every(("id", "expected"), WANTS.items())
def test_what_a_row_wants(id: str, expected: tuple[str, str, str, Later]) -> None:
    """The form and the demands of each family are those of the reference."""
    rule = row(id)
    assert (rule.form, rule.field, rule.open_turn, rule.later) == expected


def test_gpt_oss_must_go_back_within_the_turn_wherever_reasoning_is_taken() -> None:
    """On every known endpoint that takes reasoning at all, gpt-oss must get it back inside the turn."""
    for endpoint in BOOK.endpoints():
        if endpoint.id == "unknown":
            continue
        if BOOK.rule_for(endpoint.id, "some-model", TODAY)[0].form == "none" and endpoint.id != "groq":
            continue
        rule, _ = BOOK.rule_for(endpoint.id, "openai/gpt-oss-120b", TODAY)
        if endpoint.dialect == "openai-chat" and rule.form != "native":
            assert ("must", "field") == (rule.open_turn, rule.form) or rule.form == "details"


def test_deepseek_v4_puts_a_space_on_every_message_of_a_request_with_tools() -> None:
    """Where V4 wants the field and there is no text, one space stands in."""
    rule = row("deepseek-v4")
    assert (" ", "with-tools", "placeholder") == (rule.placeholder, rule.placeholder_on, rule.missing[0])


@pytest.mark.parametrize("id", ["deepseek-v3.2-chat", "deepseek-v4-chat"])
def test_deepseek_chat_demands_only_while_it_thinks(id: str) -> None:
    """The name that does not think by default demands reasoning only when the request turns thinking on."""
    assert ({"thinking.type": "enabled"},) == row(id).thinks_when


@pytest.mark.parametrize("id", ["kimi-k2-thinking", "kimi-k2.5", "kimi-k2.6", "kimi-for-coding", "kimi-k3"])
def test_kimi_demands_reasoning_on_messages_with_calls(id: str) -> None:
    """Only assistant messages with tool calls must carry reasoning, a space where there is none."""
    rule = row(id)
    assert ("tool-calls", "tool-calls", " ") == (rule.scope, rule.placeholder_on, rule.placeholder)


def test_kimi_k3_gets_no_thinking_object() -> None:
    """K3 takes the effort word alone, so nothing in its row writes a thinking object."""
    rule = row("kimi-k3")
    assert (None, {}, {}, {}) == (rule.keep_switch, rule.thinking_off, rule.controls.on, rule.controls.off)


@pytest.mark.parametrize(
    ("id", "params"),
    [
        ("kimi-k2.6", {"thinking": {"type": "enabled", "keep": "all"}}),
        ("glm-4.7", {"thinking": {"type": "enabled", "clear_thinking": False}}),
        ("qwen3.6", {"preserve_thinking": True}),
        ("cerebras-glm", {"clear_thinking": False}),
        ("together", {"chat_template_kwargs": {"clear_thinking": False}}),
        ("fireworks", {"reasoning_history": "preserved"}),
    ],
)
def test_retention_switch(id: str, params: dict[str, object]) -> None:
    """Endpoints that clear earlier reasoning by default get their switch when it is sent."""
    rule = row(id)
    assert rule.keep_switch is not None
    assert params == rule.keep_switch.params


def test_coding_plan_needs_no_switch() -> None:
    """The coding plan keeps by default, so no switch is written there."""
    switches = [rule.keep_switch for rule in BOOK.rules() if rule.endpoint == "zai-coding"]
    assert [None, None, None] == switches


def test_openrouter_details_rules() -> None:
    """Gemini text is dropped, Claude text needs its signature and is repeated as plain text, DeepSeek keeps []."""
    rule = row("openrouter")
    assert {"google-gemini-v1": ("reasoning.text",)} == rule.drop_details
    assert ("anthropic-claude-v1",) == rule.need_signature
    assert ("anthropic-claude-v1",) == rule.repeat_text
    assert row("openrouter-deepseek").empty_details


@pytest.mark.parametrize("id", ["ollama", "ollama-gpt-oss", "ollama-cloud", "ollama-cloud-gpt-oss"])
def test_ollama_gets_both_names(id: str) -> None:
    """Ollama's compatible endpoint gets the text under both names, as recorded traffic carries it."""
    assert ("reasoning", ("reasoning_content",)) == (row(id).field, row(id).also)


def test_minimax_goes_back_in_the_form_it_came_in() -> None:
    """Tags by default, details where the answer was split."""
    assert row("minimax-m2").as_received
    assert row("minimax-m3").as_received


def test_token_accounting() -> None:
    """Reasoning is added to the output on xAI chat and Gemini, and inside it elsewhere."""
    assert ["added"] * 4 == [
        row(id).reasoning_tokens for id in ("xai-chat", "gemini", "vertex-2.5", "gemini-interactions")
    ]
    assert ["inside"] * 4 == [row(id).reasoning_tokens for id in ("deepseek-v4", "xai", "claude-manual", "openai")]


@pytest.mark.parametrize(
    ("model", "reads", "refuses"),
    [
        ("claude-sonnet-4-6", ["claude-opus-4-1", "claude-opus-5"], ["claude-opus-5-5", "claude-fable-5-1", "gpt-5"]),
        ("claude-opus-5-5", ["claude-haiku-5-5"], ["claude-fable-5-1", "claude-opus-5"]),
        ("claude-haiku-5-5", [], ["claude-opus-5-5", "claude-opus-4-6"]),
        ("claude-fable-5-1", ["claude-opus-5", "claude-opus-5-5", "claude-haiku-5-5"], ["claude-fable-5-2"]),
        ("claude-fable-5-2", [], ["claude-fable-5-1", "claude-opus-5"]),
        ("claude-mythos-5-2", ["claude-fable-5-2"], ["claude-fable-5-1"]),
    ],
)
def test_which_claude_reads_which(model: str, reads: list[str], refuses: list[str]) -> None:
    """The fixed sets of models whose blocks a model reads (wire formats 5.5)."""
    guard = BOOK.rule_for("anthropic", model, TODAY)[0].guard
    readable = [
        other
        for other in (*reads, *refuses)
        if model_matches(other, guard.reads) and not model_matches(other, guard.refuses)
    ]
    assert reads == readable


@pytest.mark.parametrize(
    "model", ["claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-2", "claude-opus-5-5", "claude-haiku-5-5"]
)
@pytest.mark.parametrize(("endpoint", "name"), [("anthropic", "{}"), ("vertex-claude", "{}"), ("bedrock", "us.{}-v1")])
def test_preserved_thinking_is_bound_everywhere(endpoint: str, name: str, model: str) -> None:
    """Blocks of the newest generation are bound to their prefix, account and (in its own dialect) end user."""
    name = name.format(f"anthropic.{model}" if endpoint == "bedrock" else model)
    rule, _ = BOOK.rule_for(endpoint, name, TODAY)
    assert rule.prefix_bound
    assert rule.guard.account


@pytest.mark.parametrize("model", ["claude-fable-5", "claude-opus-5", "claude-opus-4-8", "claude-sonnet-4-6"])
def test_older_thinking_is_not_bound(model: str) -> None:
    """Before Fable 5.1 nothing compares the prefix."""
    assert not BOOK.rule_for("anthropic", model, TODAY)[0].prefix_bound


@pytest.mark.parametrize(
    ("name", "dialect", "expected"),
    [
        ("openai", "openai-responses", "openai"),
        ("openai", "openai-chat", "openai-chat"),
        ("azure", "openai-chat", "azure-openai-chat"),
        ("xai", "openai-chat", "xai-chat"),
        ("ollama", "ollama", "ollama-native"),
        ("ollama", "openai-responses", "ollama-responses"),
        ("google-ai-studio", "gemini-interactions", "gemini-interactions"),
        ("google-ai-studio", "openai-chat", "gemini-openai"),
        ("bedrock-mantle", "openai-responses", "bedrock-mantle-responses"),
        ("deepseek", "openai-responses", "deepseek-responses"),
        ("deepseek", "anthropic", "deepseek-anthropic"),
        ("lmstudio", "openai-responses", "open-responses"),
        ("openrouter", "openai-responses", "openrouter-responses"),
        ("aws-bedrock", "anthropic", "bedrock-claude"),
        ("groq", "anthropic", "groq"),
    ],
)
def test_a_provider_of_several_dialects(name: str, dialect: str, expected: str) -> None:
    """The name of a provider and a dialect give the endpoint for both, else the endpoint of that name."""
    assert expected == BOOK.speaking(name, dialect).id


def test_a_bad_day_is_refused() -> None:
    """A day that is not a date is refused before anything is compared with it."""
    for on in ("today", "2026-13-01", "20261120"):
        with pytest.raises(SettingError, match="is not a date"):
            BOOK.rule_for("deepseek", "deepseek-v4-flash", on)
        with pytest.raises(SettingError, match="is not a date"):
            BOOK.model_info("deepseek", "deepseek-v4-flash", on)


def test_target_of_a_known_endpoint() -> None:
    """A target holds the endpoint found by its alias, its URL, its row and the facts of its model."""
    target = BOOK.target("alibaba", "qwen3.6-plus", on=TODAY)
    assert "qwen" == target.endpoint.id
    assert "https://dashscope-intl.aliyuncs.com/compatible-mode/v1" == target.base_url
    assert ("qwen3.6", 1_000_000, False, TODAY) == (target.rule.id, target.info.context, target.guessed, target.on)
    assert ("", False) == (target.account, target.account_known)


def test_target_takes_the_given_url_and_account() -> None:
    """A given base URL replaces the endpoint's, in its one spelling, and a given account is kept with what is known."""
    target = BOOK.target("vllm", "m", on=TODAY, base_url="HTTP://Box:80/v1/", account="acme", account_known=True)
    assert ("http://box/v1", "acme", True) == (target.base_url, target.account, target.account_known)


@pytest.mark.parametrize("endpoint", ["azure", "snowflake", "gpustack", "bedrock-mantle", "unknown"])
def test_target_without_any_url_is_refused(endpoint: str) -> None:
    """Where the URL depends on the person's own resource, it must be given."""
    with pytest.raises(SettingError, match="has no base URL of its own"):
        BOOK.target(endpoint, "m", on=TODAY)
    assert "m" == BOOK.target(endpoint, "m", on=TODAY, base_url="https://x.example").model


def test_target_of_an_unknown_name_is_refused() -> None:
    """A name that no endpoint has is an error that suggests near ones, or the command that lists them."""
    with pytest.raises(NotFoundError, match="no endpoint is called 'nowhere'") as caught:
        BOOK.target("nowhere", "m", on=TODAY)
    assert "`thinkback endpoints` lists them" == caught.value.next_actions[0]
    with pytest.raises(NotFoundError) as caught:
        BOOK.target("deepsek", "m", on=TODAY)
    assert caught.value.next_actions[0].startswith("did you mean deepseek")


def test_unknown_model_has_no_limits() -> None:
    """Nothing is claimed about a model without a row."""
    info = BOOK.model_info("deepseek", "deepseek-v9", TODAY)
    assert ("deepseek-v9", "deepseek", 0, 0, ()) == (
        info.model, info.endpoint, info.context, info.max_output, info.efforts
    )  # fmt: skip


def test_model_rows_are_dated_and_may_hold_everywhere() -> None:
    """The newest row in force holds, and a row for any endpoint fills in where an endpoint has none."""
    assert 128_000 == BOOK.model_info("deepseek", "deepseek-reasoner", "2025-06-01").context
    assert 1_000_000 == BOOK.model_info("deepseek", "deepseek-reasoner", TODAY).context
    assert ("low", "medium", "high") == BOOK.model_info("groq", "openai/gpt-oss-120b", TODAY).efforts


def test_rulebooks_do_not_share_state() -> None:
    """A person's rows live in their own book only."""
    other = Rulebook(endpoints=(), rules=(), models=())
    assert BOOK.rules() == other.rules()
    assert BOOK.models() == other.models()


def test_a_target_is_the_same_however_many_were_asked_for() -> None:
    """What was found is kept for a while, for each place, model, day and account by itself."""
    book = load_rulebook()
    asked = [
        {"model": f"m{number}", "on": "2026-10-01", "account": str(number % 3), "account_known": number % 2 == 0}
        for number in range(100)
    ]
    first = [book.target("openai", **one) for one in asked]  # type: ignore[arg-type]
    assert first == [load_rulebook().target("openai", **one) for one in asked]  # type: ignore[arg-type]
    assert first == [book.target("openai", **one) for one in reversed(asked)][::-1]  # type: ignore[arg-type]
    assert book.target("openai", "m1", on="2026-10-01") is book.target("openai", "m1", on="2026-10-01")
