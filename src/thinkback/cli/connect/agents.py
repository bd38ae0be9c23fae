"""The table of coding agents: where each keeps its configuration, and what points it at a gateway.

A row is data; nothing here is read or written. In values and paths ``{root}`` stands for the gateway's address,
``{key}`` for its key, ``{variable}`` for the name of the variable that has the key, ``{model}`` for the alias. In
``steps`` ``{shell_key}`` and ``{secret}`` stand for the key as a shell and as Continue name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

When = Literal["always", "file", "environment", "model"]
"""When a setting is written: always, with a key that may stand in the file, with one that may not, with a model."""

NO_KEY = "none"
"""What stands for a key where the gateway asks for none: no agent starts without one."""


class Setting(NamedTuple):
    """One key of an agent's file. ``value`` is a text, or what JSON has around texts."""

    path: tuple[str, ...]
    value: object
    when: When = "always"


class Place(NamedTuple):
    """Where a file may be: in ``below`` of the directory that a variable names, or the variable names the file."""

    variable: str
    below: str = ""
    is_file: bool = False


class File(NamedTuple):
    """One file of an agent: where a variable of ``places`` says, else in ``below`` of the home directory or, with
    ``is_here``, of the working directory. Of ``names`` the last that is there is meant, as it wins, else the first.
    ``owned`` is a table that is ours alone. ``beside`` are keys of the file that lead elsewhere, as the agent's do.
    """

    format: str
    places: tuple[Place, ...]
    below: str
    names: tuple[str, ...]
    settings: tuple[Setting, ...]
    owned: tuple[str, ...] = ()
    is_here: bool = False
    beside: tuple[str, ...] = ()

    @property
    def has_key(self) -> bool:
        """Whether the key is written here, where it may be."""
        return any(setting.when == "file" for setting in self.settings)


class Agent(NamedTuple):
    """A row. ``variable`` is where the agent finds its key in the environment; empty where we name it in its file."""

    title: str
    programs: tuple[str, ...]
    wire: str
    files: tuple[File, ...]
    variable: str = ""
    needs_model: bool = False
    takes_slash: bool = True
    beside: tuple[str, ...] = ()
    """Variables that, where they are set, win over what is written or lead elsewhere."""
    notes: tuple[str, ...] = ()
    without_model: str = ""
    code: str = ""
    steps: tuple[str, ...] = ()
    """Lines for a person, of an agent whose files this command does not write."""


def _model(*path: str, value: object = "{model}") -> Setting:
    return Setting(path, value, "model")


_CLAUDE_CODE = Agent(
    title="Claude Code",
    programs=("claude",),
    wire="Anthropic messages",
    files=(
        File(
            "jsonc",
            (Place("CLAUDE_CONFIG_DIR"),),
            ".claude",
            ("settings.json",),
            (
                Setting(("env", "ANTHROPIC_BASE_URL"), "{root}"),
                Setting(("env", "ANTHROPIC_AUTH_TOKEN"), "{key}", "file"),
                _model("env", "ANTHROPIC_MODEL"),
                _model("env", "ANTHROPIC_DEFAULT_OPUS_MODEL"),
                _model("env", "ANTHROPIC_DEFAULT_SONNET_MODEL"),
                _model("env", "ANTHROPIC_DEFAULT_HAIKU_MODEL"),
            ),
        ),
    ),
    variable="ANTHROPIC_AUTH_TOKEN",
    beside=("ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
    without_model="it requests Anthropic's model names (claude-*): give the gateway aliases for them, or use --model",
)

_CODEX = Agent(
    title="Codex",
    programs=("codex",),
    wire="Responses",
    files=(
        File(
            "toml",
            (Place("CODEX_HOME"),),
            ".codex",
            ("config.toml",),
            (
                Setting(("model_provider",), "thinkback"),
                _model("model"),
                Setting(("model_providers", "thinkback", "name"), "thinkback"),
                Setting(("model_providers", "thinkback", "base_url"), "{root}/v1"),
                Setting(("model_providers", "thinkback", "wire_api"), "responses"),
                Setting(("model_providers", "thinkback", "experimental_bearer_token"), "{key}", "file"),
                Setting(("model_providers", "thinkback", "env_key"), "{variable}", "environment"),
            ),
            ("model_providers", "thinkback"),
        ),
    ),
    notes=("a profile with a model_provider of its own still uses that provider",),
    without_model="it requests OpenAI's model names (gpt-*): give the gateway aliases for them, or use --model",
)

_OPENCODE = Agent(
    title="opencode",
    programs=("opencode",),
    wire="chat completions",
    files=(
        File(
            "jsonc",
            (Place("OPENCODE_CONFIG", is_file=True), Place("XDG_CONFIG_HOME", "opencode")),
            ".config/opencode",
            ("opencode.json", "opencode.jsonc"),
            (
                _model("model", value="thinkback/{model}"),
                _model("small_model", value="thinkback/{model}"),
                Setting(("provider", "thinkback", "npm"), "@ai-sdk/openai-compatible"),
                Setting(("provider", "thinkback", "name"), "thinkback"),
                Setting(("provider", "thinkback", "options", "baseURL"), "{root}/v1"),
                Setting(("provider", "thinkback", "options", "apiKey"), "{key}", "file"),
                Setting(("provider", "thinkback", "options", "apiKey"), "{{env:{variable}}}", "environment"),
                _model("provider", "thinkback", "models", "{model}", "name"),
            ),
            ("provider", "thinkback"),
            beside=("enabled_providers", "disabled_providers"),
        ),
    ),
    needs_model=True,
    beside=("OPENCODE_CONFIG_CONTENT", "OPENCODE_CONFIG_DIR"),
    notes=("an opencode.json of the project takes precedence over this file",),
)

_PI = Agent(
    title="pi",
    programs=("pi",),
    wire="chat completions",
    files=(
        File(
            "jsonc",
            (Place("PI_CODING_AGENT_DIR"),),
            ".pi/agent",
            ("models.json",),
            (
                Setting(("providers", "thinkback", "baseUrl"), "{root}/v1"),
                Setting(("providers", "thinkback", "api"), "openai-completions"),
                Setting(("providers", "thinkback", "apiKey"), "{key}", "file"),
                Setting(("providers", "thinkback", "apiKey"), "${variable}", "environment"),
                _model("providers", "thinkback", "models", value=[{"id": "{model}", "reasoning": True}]),
            ),
            ("providers", "thinkback"),
        ),
        File(
            "jsonc",
            (Place("PI_CODING_AGENT_DIR"),),
            ".pi/agent",
            ("settings.json",),
            (_model("defaultProvider", value="thinkback"), _model("defaultModel")),
        ),
    ),
    needs_model=True,
)

_GEMINI_CLI = Agent(
    title="Gemini CLI",
    programs=("gemini",),
    wire="Gemini",
    files=(
        File(
            "jsonc",
            (Place("GEMINI_CLI_HOME", ".gemini"),),
            ".gemini",
            ("settings.json",),
            (Setting(("security", "auth", "selectedType"), "gemini-api-key"), _model("model", "name")),
        ),
        File(
            "dotenv",
            (Place("GEMINI_CLI_HOME", ".gemini"),),
            ".gemini",
            (".env",),
            (Setting(("GOOGLE_GEMINI_BASE_URL",), "{root}"), Setting(("GEMINI_API_KEY",), "{key}", "file")),
        ),
    ),
    variable="GEMINI_API_KEY",
    beside=(
        "GOOGLE_API_KEY",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_GENAI_USE_GCA",
        "GOOGLE_GEMINI_BASE_URL",
        "GEMINI_MODEL",
    ),
    notes=(
        "it reads only one .env file: one in the project, or in a directory above it, replaces this one",
        "it refuses an http address that is not of this machine",
    ),
    without_model="it requests Google's model names (gemini-*): give the gateway aliases for them, or use --model",
)

_QWEN_CODE = Agent(
    title="Qwen Code",
    programs=("qwen",),
    wire="chat completions",
    files=(
        File(
            "jsonc",
            (Place("QWEN_HOME"),),
            ".qwen",
            ("settings.json",),
            (
                Setting(("security", "auth", "selectedType"), "openai"),
                Setting(("env", "OPENAI_BASE_URL"), "{root}/v1"),
                Setting(("env", "OPENAI_API_KEY"), "{key}", "file"),
                _model("env", "OPENAI_MODEL"),
                _model("model", "name"),
            ),
        ),
    ),
    variable="OPENAI_API_KEY",
    needs_model=True,
    beside=("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"),
)

_AIDER = Agent(
    title="aider",
    programs=("aider",),
    wire="chat completions",
    files=(
        File(
            "yaml",
            (),
            "",
            (".aider.conf.yml",),
            (
                Setting(("openai-api-base",), "{root}/v1"),
                Setting(("openai-api-key",), "{key}", "file"),
                _model("model", value="openai/{model}"),
                _model("weak-model", value="openai/{model}"),
            ),
        ),
    ),
    variable="OPENAI_API_KEY",
    needs_model=True,
    beside=("OPENAI_BASE_URL", "AIDER_OPENAI_API_BASE", "AIDER_OPENAI_API_KEY", "AIDER_MODEL"),
    notes=("a .aider.conf.yml or .env of the repository or the working directory takes precedence over this file",),
)

_CREWAI = Agent(
    title="CrewAI",
    programs=("crewai",),
    wire="chat completions",
    files=(
        File(
            "dotenv",
            (),
            "",
            (".env",),
            (
                Setting(("OPENAI_API_BASE",), "{root}/v1"),
                Setting(("OPENAI_API_KEY",), "{key}", "file"),
                _model("MODEL"),
            ),
            is_here=True,
        ),
    ),
    variable="OPENAI_API_KEY",
    needs_model=True,
    takes_slash=False,
    beside=("BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY", "MODEL"),
    code='LLM(model="{model}", provider="openai", base_url="{root}/v1", api_key={code_key})',
)

AGENTS: Mapping[str, Agent] = MappingProxyType(
    {
        "claude-code": _CLAUDE_CODE,
        "codex": _CODEX,
        "opencode": _OPENCODE,
        "pi": _PI,
        "gemini-cli": _GEMINI_CLI,
        "qwen-code": _QWEN_CODE,
        "aider": _AIDER,
        "crewai": _CREWAI,
    }
)

BY_HAND: Mapping[str, Agent] = MappingProxyType(
    {
        "copilot-cli": Agent(
            title="Copilot CLI",
            programs=("copilot",),
            wire="chat completions",
            files=(),
            beside=("COPILOT_PROVIDER_WIRE_API",),
            notes=("it reads its provider from the environment alone: put the lines where its shell starts",),
            steps=(
                "export COPILOT_PROVIDER_TYPE=openai",
                "export COPILOT_PROVIDER_BASE_URL={root}/v1",
                "export COPILOT_PROVIDER_API_KEY={shell_key}",
                "export COPILOT_MODEL={model}",
            ),
        ),
        "cline": Agent(
            title="Cline",
            programs=("cline",),
            wire="chat completions",
            files=(),
            notes=("in its editors: the provider OpenAI Compatible, with the same address, key and model",),
            steps=("cline auth -p openai-compatible -b {root}/v1 -k {shell_key} -m {model}",),
        ),
        "continue": Agent(
            title="Continue",
            programs=("cn",),
            wire="chat completions",
            files=(),
            notes=("the lines belong under models in ~/.continue/config.yaml; secrets are in ~/.continue/.env",),
            steps=(
                "models:",
                "  - name: thinkback",
                "    provider: openai",
                "    model: {model}",
                "    apiBase: {root}/v1",
                "    apiKey: {secret}",
                "    roles: [chat, edit, apply]",
            ),
        ),
    }
)

OTHER = Agent(
    title="",
    programs=(),
    wire="",
    files=(),
    notes=("a program with settings for one of these protocols needs the address, the key and the model",),
    steps=(
        "OpenAI chat completions, Responses: {root}/v1",
        "Anthropic messages: {root}",
        "Gemini: {root}",
        "model: {model}",
        "key: {shell_key}",
    ),
)
"""Any other program."""


def filled(value: object, terms: Mapping[str, str]) -> object:
    """``value`` with the terms in it, also inside of what JSON has around texts."""
    if isinstance(value, str):
        return value.format_map(terms)
    if isinstance(value, list):
        return [filled(one, terms) for one in value]
    if isinstance(value, dict):
        return {key: filled(one, terms) for key, one in value.items()}
    return value
