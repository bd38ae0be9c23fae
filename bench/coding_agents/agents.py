"""The agents: what is installed, how each is run without a person, and what it can do besides.

A row is data. In commands ``{program}`` stands for what is installed, ``{prompt}`` for the person's words, ``{model}``
for the model in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NODE = "node"
"""The lock of Node itself: what most agents run in."""


class Front(NamedTuple):
    """What differs in the file that ``thinkback connect`` writes where the agent speaks with a provider itself:
    ``instead`` of the words ``written``, and an address that ends in ``version`` (None: as the provider's is).
    """

    written: str = ""
    instead: str = ""
    version: str | None = None


class Agent(NamedTuple):
    """``first`` begins a conversation, ``again`` goes on with it in a new process, ``compact`` compacts it; ``kind`` is
    the kind of subagent that there is. Empty: it has none.
    """

    connect: str
    """Its name with ``thinkback connect``."""
    package: str
    program: tuple[str, ...]
    """Below where it is installed; a script of JavaScript is run by Node."""
    first: tuple[str, ...]
    again: tuple[str, ...] = ()
    compact: tuple[str, ...] = ()
    kind: str = ""
    tools: bool = True
    """Whether it calls tools; what the model of one that does not still knows is not judged."""
    fronts: Mapping[str, Front] = {}
    environment: Mapping[str, str] = {}
    again_only: bool = False
    """Whether it is an older version, of which no more than a second question is asked."""
    notes: str = ""

    @property
    def is_python(self) -> bool:
        """Whether it is from PyPI."""
        return self.program[0] == "bin"


_CLAUDE = Agent(
    connect="claude-code",
    package="@anthropic-ai/claude-code",
    program=("node_modules", "@anthropic-ai", "claude-code-{platform}", "claude"),
    first=("{program}", "-p", "--dangerously-skip-permissions", "{prompt}"),
    again=("{program}", "-p", "-c", "--dangerously-skip-permissions", "{prompt}"),
    compact=("{program}", "-p", "-c", "--dangerously-skip-permissions", "/compact"),
    kind="general-purpose",
    fronts={"anthropic": Front(version="")},
    # as root it asks for a sandbox before it runs tools unasked
    environment={"IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
)
_CODEX_FLAGS = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
_CODEX = Agent(
    connect="codex",
    package="@openai/codex",
    program=("node_modules", "@openai", "codex", "bin", "codex.js"),
    first=("{program}", "exec", *_CODEX_FLAGS, "{prompt}"),
    again=("{program}", "exec", "resume", "--last", *_CODEX_FLAGS, "{prompt}"),
    # what it holds is more than that: it compacts before it asks
    compact=(
        *("{program}", "exec", "resume", "--last", *_CODEX_FLAGS),
        *("-c", "model_auto_compact_token_limit=100", "{prompt}"),
    ),
    fronts={"openai-responses": Front()},
)
_OPENAI_COMPATIBLE = '"@ai-sdk/openai-compatible"'
_OPENCODE = Agent(
    connect="opencode",
    package="opencode-ai",
    program=("node_modules", "opencode-{platform}", "bin", "opencode"),
    first=("{program}", "run", "{prompt}"),
    # a session remembers its model
    again=("{program}", "run", "-c", "-m", "thinkback/{model}", "{prompt}"),
    kind="general",
    fronts={
        "openai-chat": Front(),
        "openai-responses": Front(_OPENAI_COMPATIBLE, '"@ai-sdk/openai"'),
        "anthropic": Front(_OPENAI_COMPATIBLE, '"@ai-sdk/anthropic"', "/v1"),
        "gemini": Front(_OPENAI_COMPATIBLE, '"@ai-sdk/google"', "/v1beta"),
    },
    environment={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    },
)
_COMPLETIONS = '"openai-completions"'
_PI = Agent(
    connect="pi",
    package="@earendil-works/pi-coding-agent",
    program=("node_modules", "@earendil-works", "pi-coding-agent", "dist", "bundle", "cli.js"),
    first=("{program}", "-p", "{prompt}"),
    again=("{program}", "-p", "-c", "{prompt}"),
    fronts={
        "openai-chat": Front(),
        "openai-responses": Front(_COMPLETIONS, '"openai-responses"'),
        "anthropic": Front(_COMPLETIONS, '"anthropic-messages"', ""),
        "gemini": Front(_COMPLETIONS, '"google-generative-ai"', "/v1beta"),
    },
    environment={"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"},
    notes="the newest version whose dependencies are all in the registry",
)
_GEMINI_CLI = Agent(
    connect="gemini-cli",
    package="@google/gemini-cli",
    program=("node_modules", "@google", "gemini-cli", "bundle", "gemini.js"),
    first=("{program}", "--yolo", "--skip-trust", "-p", "{prompt}"),
    again=("{program}", "--yolo", "--skip-trust", "--resume", "latest", "-p", "{prompt}"),
    kind="generalist",
    fronts={"gemini": Front(version="")},
)
_QWEN = Agent(
    connect="qwen-code",
    package="@qwen-code/qwen-code",
    program=("node_modules", "@qwen-code", "qwen-code", "cli-entry.js"),
    first=("{program}", "--yolo", "-p", "{prompt}"),
    again=("{program}", "--yolo", "-c", "-p", "{prompt}"),
    compact=("{program}", "--yolo", "-c", "-p", "/compress"),
    kind="general-purpose",
    fronts={"openai-chat": Front()},
    notes="resumed, it moves the date from the first question to the newest: reasoning bound to what stood before it "
    "cannot go back",
)
_AIDER_FLAGS = ("--yes-always", "--no-git", "--no-check-update", "--no-show-model-warnings", "--no-analytics")
_AIDER = Agent(
    connect="aider",
    package="aider-chat",
    program=("bin", "aider"),
    first=("{program}", *_AIDER_FLAGS, "--message", "{prompt}"),
    again=("{program}", *_AIDER_FLAGS, "--restore-chat-history", "--message", "{prompt}"),
    tools=False,
    fronts={"openai-chat": Front()},
    # answers of earlier runs come back as words of its own, with their thinking among them, after answers it made up
    notes="calls no tools, and gives earlier thinking back as text: what its model knows is not judged",
)
_CREWAI = Agent(
    connect="crewai",
    package="crewai",
    program=("bin", "python"),
    first=("{program}", "{here}/with_crewai.py", "{line}", "{prompt}"),
    fronts={"openai-chat": Front()},
    environment={"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"},
    notes="a crew of one agent, whose `llm` is the line that `thinkback connect` prints; it resumes nothing",
)

AGENTS: Mapping[str, Agent] = {
    "codex": _CODEX,
    "claude-code": _CLAUDE,
    "claude-code-audited": _CLAUDE._replace(again_only=True),
    "opencode": _OPENCODE,
    "pi": _PI,
    "pi-audited": _PI._replace(
        package="@mariozechner/pi-coding-agent",
        program=("node_modules", "@mariozechner", "pi-coding-agent", "dist", "cli.js"),
        again_only=True,
        notes="under its earlier name",
    ),
    "gemini-cli": _GEMINI_CLI,
    "qwen-code": _QWEN,
    "qwen-code-audited": _QWEN._replace(
        program=("node_modules", "@qwen-code", "qwen-code", "cli.js"),
        again_only=True,
        notes="makes its first answer up: where each must come with its reasoning, the model is asked without thinking",
    ),
    "aider": _AIDER,
    "crewai": _CREWAI,
}
"""By the name of what is installed: ``locks/NAME.json``, or ``requirements/agent-NAME.txt``."""
STORED: Mapping[str, Agent] = {**AGENTS, "opencode-audited": _OPENCODE._replace(again_only=True)}
"""The same with older versions of which nothing but the history is looked at: they store it in another way."""

SHORT = ("codex", "claude-code")
