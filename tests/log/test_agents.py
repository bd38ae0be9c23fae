"""What coding agents write around a person's words."""

from __future__ import annotations

import time

import pytest

from thinkback.log.agents import directory_of, program_of, project_of, words_of
from thinkback.model.commits import Message, Tools

CODEX = "<environment_context>\n  <cwd>/home/me/shop</cwd>\n  <shell>bash</shell>\n</environment_context>"
CLAUDE = "You are an agent.\n# Environment\n - Primary working directory: /home/me/shop\n - Platform: linux"
OPENCODE = "<env>\n  Working directory: /home/me/shop\n  Platform: linux\n</env>"
GEMINI = "<session_context>\n- **Workspace Directories:**\n  - /home/me/shop\n- **Tree:**\n</session_context>"
QWEN = "<system-reminder>\nI'm currently working in the directory: /home/me/shop\n</system-reminder>\n"


@pytest.mark.parametrize(
    ("agent", "kind", "text", "program"),
    [
        ("codex_exec/0.169.0 (Linux)", "user", CODEX, "codex"),
        ("codex-tui/0.169.0", "user", CODEX, "codex"),
        ("claude-cli/2.1.220 (external, cli)", "system", CLAUDE, "claude-code"),
        ("opencode/1.2.0", "system", OPENCODE, "opencode"),
        ("GeminiCLI/0.61.0/m (linux; x64)", "user", f"{GEMINI}Why?", "gemini-cli"),
        ("QwenCode/0.20.0 (linux; x64)", "user", f"{QWEN}Why?", "qwen-code"),
        ("curl/8", "system", CLAUDE, ""),
        ("copilot/1.0.102 (linux)", "system", "* Current working directory: /home/me/shop\n* Git", "copilot"),
        ("Cline/3.0.65", "system", "# Current Working Directory (/home/me/shop) Files\na.py", "cline"),
        ("OpenAI/JS 6.1", "system", "Current working directory: /home/me/shop", ""),
        (
            "zed/v1.2",
            "user",
            "<environment_details>\n**Working directory:** `/home/me/shop`\n</environment_details>a",
            "zed",
        ),
    ],
)
def test_an_agent_says_where_it_works(agent: str, kind: str, text: str, program: str) -> None:
    """In a system text or before the words of the person; its user agent says which it is."""
    assert (program, "/home/me/shop") == (program_of(agent), directory_of(kind, Message(text)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{CODEX}\n", ""),
        (f" {QWEN}<system-reminder>more</system-reminder>\n\n Why? ", "Why? "),
        (f"{GEMINI}<system-reminder>open", "<system-reminder>open"),
        ("# AGENTS.md instructions for /a\n<INSTRUCTIONS>\nBe.\n</INSTRUCTIONS>Why?", "Why?"),
        ("Why <system-reminder>x</system-reminder>?", "Why <system-reminder>x</system-reminder>?"),
        ("<current_datetime>2026-11-23T20:00Z</current_datetime>\n\nWhy?", "Why?"),
        ("<current_datetime>2026-11-23T20:00Z\nWhy?", "<current_datetime>2026-11-23T20:00Z\nWhy?"),
        ("<open_files>a</open_files><user_query>\nWhy?\n</user_query>", "Why?\n</user_query>"),
        ("<my-button>a</my-button> is red", "<my-button>a</my-button> is red"),
    ],
)
def test_the_words_of_a_person_come_behind_those_of_their_program(text: str, words: str) -> None:
    """One block after the other; one that does not end is theirs."""
    assert words == words_of(text)


def test_a_directory_is_looked_for_where_programs_write_it() -> None:
    """Not in the words of a person, nor in what another kind of commit says; nothing that moves a cursor stays."""
    assert "" == directory_of("user", Message(OPENCODE)) == directory_of("assistant", Message(CLAUDE))
    assert "" == directory_of("system", Tools(()))
    dirty = "- Primary working directory: /a\x1b[2J\u202e\ud800/b\r" + "x" * 2_000
    assert f"/a[2J/b{'x' * 989}" == directory_of("system", Message(dirty))


@pytest.mark.parametrize(("directory", "name"), [("/a/b/", "b"), ("C:\\a\\b", "b"), ("/", ""), ("", "")])
def test_a_project_is_called_as_its_folder(directory: str, name: str) -> None:
    """Of any system."""
    assert name == project_of(directory)


def test_a_text_of_wrappers_alone_takes_no_long() -> None:
    """Nothing is looked at twice."""
    began = time.process_time()
    assert "<system-reminder>" == words_of("<system-reminder></system-reminder> " * 20_000 + "<system-reminder>")
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("agent", "title", "program"),
    [
        ("OpenAI/Python 2.8.0", "Roo Code", "roo-code"),
        ("OpenAI/Python 2.8.0", "a\x1b[2J", ""),
        ("Mozilla/5.0 (X11)", "", ""),
        ("", "", ""),
        ("a" * 60 + "/1", "", ""),
        ("acme.agent_2/0.1 openai/1", "Else", "acme.agent_2"),
    ],
)
def test_an_unknown_agent_is_called_as_it_calls_itself(agent: str, title: str, program: str) -> None:
    """By its product, which is no library; else by its title."""
    assert program == program_of(agent, title)


def test_words_about_a_directory_are_none() -> None:
    """Without a path behind them; and a long line takes no long."""
    assert "" == directory_of("system", Message("The working directory is shown above.\nWorking directories: many"))
    began = time.process_time()
    directory_of("system", Message("* " * 100_000 + "\n" + "working directory " * 50_000))
    assert time.process_time() - began < 5
