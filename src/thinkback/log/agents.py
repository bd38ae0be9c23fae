"""What coding agents write around a person's words: which program asked, where its working directory stands, and where
the words of the person begin.

The tables were read off requests of the programs. Promises: linear in the text, whatever it is; what is found is clean
and short. A path is text to be shown. Must not: open it, or decide anything by it.
"""

from __future__ import annotations

import re

from thinkback.model.commits import Message, Payload

WRAPPERS = (
    ("<environment_context>", "</environment_context>"),  # Codex
    ("<user_instructions>", "</user_instructions>"),  # Codex
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),  # Codex
    ("<session_context>", "</session_context>"),  # Gemini CLI
    ("<system-reminder>", "</system-reminder>"),  # Claude Code, Qwen Code
)
"""What a user message begins with, and where that ends, that is not the words of a person."""
_TAG = re.compile(r"<([a-z]+(?:_[a-z]+)+)>")
"""The opening of such a block by other programs (``<current_datetime>``): no element of HTML has a name with ``_``."""
_PERSON = frozenset({"user_input", "user_message", "user_prompt", "user_query", "user_request"})
"""Blocks that have the words of a person inside."""
DIRECTORIES = (
    re.compile(r"<cwd>([^<\n]{1,1000})</cwd>"),  # Codex
    re.compile(r"^ {0,4}(?:- )?(?:Primary w|W)orking directory: (.{1,1000})", re.MULTILINE),  # Claude Code, opencode
    re.compile(r"^- \*\*Workspace Directories:\*\*\n {0,4}- (.{1,1000})", re.MULTILINE),  # Gemini CLI
    re.compile(r"I'm currently working in the directory: (.{1,1000})"),  # Qwen Code
    # Copilot CLI, Cline, pi and others; a path only, as these are words that anybody may write
    re.compile(
        r"^[ \t]{0,8}(?:[-*#] )?\**(?:Your |The )?(?:Current |Primary )?Working Directory\**(?: is)?\**:?\** {0,2}"
        r"[`\"'(]?((?:/|~/|[A-Za-z]:[\\/])[^\n`\"')<]{0,1000})",
        re.MULTILINE | re.IGNORECASE,
    ),
)
"""Where the working directory stands, in a system text or in such a beginning."""
PROGRAMS = (
    ("claude-cli/", "claude-code"),
    ("codex_", "codex"),
    ("codex-", "codex"),
    ("GeminiCLI", "gemini-cli"),
    ("opencode/", "opencode"),
    ("QwenCode/", "qwen-code"),
)
"""How the user agent of a program begins, and what the program is called."""
LIBRARIES = frozenset(
    {
        "ai",
        "ai-sdk",
        "aiohttp",
        "apache-httpclient",
        "asyncanthropic",
        "asyncopenai",
        "axios",
        "bun",
        "curl",
        "dart",
        "deno",
        "faraday",
        "go-http-client",
        "google-genai-sdk",
        "got",
        "guzzlehttp",
        "httpie",
        "httpx",
        "hyper",
        "java",
        "langchain",
        "libcurl",
        "litellm",
        "lwp-request",
        "mozilla",
        "node",
        "node-fetch",
        "okhttp",
        "openai",
        "php",
        "postmanruntime",
        "python",
        "python-httpx",
        "python-requests",
        "python-urllib",
        "reqwest",
        "requests",
        "ruby",
        "undici",
        "urllib3",
        "wget",
    }
)
"""Products that programs are written with, or that show pages: their name says nothing of a program."""
# behind the product of a provider's SDK stands a language, no number: ``OpenAI/Python 2.8``
_PRODUCT = re.compile(r"([A-Za-z][\w.-]{0,39})/v?\d")
_TITLE = re.compile(r"[A-Za-z][\w. -]{0,39}")
_SPACE = re.compile(r"\s*")


def program_of(user_agent: str, title: str = "") -> str:
    """The program that calls itself so, by a row of ``PROGRAMS``, else as it calls itself: as the first product of its
    user agent, or by the ``title`` that it gives hosts of many programs. Empty where only a library is named.
    """
    known = next((name for begin, name in PROGRAMS if user_agent.startswith(begin)), "")
    product = _PRODUCT.match(user_agent)
    if known or (product is not None and product[1].lower() not in LIBRARIES):
        return known or product[1].lower()  # type: ignore[index]
    return title.strip().lower().replace(" ", "-") if _TITLE.fullmatch(title.strip()) else ""


def directory_of(kind: str, value: Payload) -> str:
    """The working directory that a message names, without what no column or terminal should hold; or empty."""
    if not isinstance(value, Message) or kind not in ("system", "user"):
        return ""
    text = value.text if kind == "system" else value.text[: _words_at(value.text)]
    found = next(filter(None, (pattern.search(text) for pattern in DIRECTORIES)), None)
    return "".join(filter(str.isprintable, found[1])).strip() if found is not None else ""


def project_of(directory: str) -> str:
    """The name of a project: that of its folder."""
    return re.split(r"[/\\]", directory.rstrip("/\\"))[-1]


def words_of(text: str) -> str:
    """The words of the person in a user message; empty where it has none."""
    return text[_words_at(text) :]


def _words_at(text: str) -> int:
    """Where they begin. A wrapper without its end is taken for words."""
    at = end = _SPACE.match(text).end()  # type: ignore[union-attr]
    while end >= 0:
        at = _SPACE.match(text, end).end()  # type: ignore[union-attr]
        close = next((close for open, close in WRAPPERS if text.startswith(open, at)), "")
        tag = None if close else _TAG.match(text, at)
        if tag is not None and tag[1] in _PERSON:
            return _SPACE.match(text, tag.end()).end()  # type: ignore[union-attr]
        close = close or (f"</{tag[1]}>" if tag is not None else "")
        found = text.find(close, at) if close else -1
        end = found + len(close) if found >= 0 else -1
    return at
