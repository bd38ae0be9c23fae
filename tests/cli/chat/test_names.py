"""Names and values that mean harm, as commands of the chat show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.chat.talks import memory, open_chat, say
from thinkback_referee import Referee, Step

HARM = "\x1b]0;x\x07\x9b2J\u202e"
LINES = f"""
/set
/set permissions.rules
/set reasoning.effort {HARM}
/model m{HARM}
/endpoint deepseek m{HARM}
/endpoint
/why
/why next
/think
/think 1
/branch b{HARM}
/branch
/fork f{HARM}
/usage
/search hello
/resume
/resume no{HARM}
/app x{HARM}
/profile save x{HARM}
/no{HARM}
"""


def test_nothing_in_names_is_obeyed(
    referee: Referee, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of sessions, models, branches, and of rules that came from what a model wanted to run."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    referee.push(Step(reasoning=f"hello{HARM}", text=f"hello{HARM}"))
    with memory() as store:
        chat = open_chat(store, referee, f"talk{HARM}")
        chat.session.set("permissions.rules", f"shell(x{HARM})=allow")
        say(chat, f"hello{HARM}", *LINES.split("\n"))
        shown = capsys.readouterr()

    assert "talk\ufffd]0;x" in shown.out
    assert not set(HARM) & set("\x1b\x07\x9b\u202e") & set(shown.out + shown.err)
