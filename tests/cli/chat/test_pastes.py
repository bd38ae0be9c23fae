"""What is pasted at the prompt, read from a pipe as from a terminal: files are attached, large texts are folded."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import TransformationInput
from prompt_toolkit.output import DummyOutput

from thinkback.cli.chat.chat import Chat
from thinkback.cli.chat.pastes import Pastes, Placeholders, file_in
from thinkback.cli.chat.prompt import Prompt, status_text
from thinkback.cli.chat.status import Meter

Entered: TypeAlias = Callable[[str], list[str]]
BACKSPACE, HOME, DELETE, RIGHT, UP = "\x7f", "\x1b[H", "\x1b[3~", "\x1b[C", "\x1b[A"
TEXT = "\n".join(f"line {at}" for at in range(120))


def pasted(text: str) -> str:
    """As a terminal that was asked for it sends a paste."""
    return f"\x1b[200~{text}\x1b[201~"


@pytest.fixture
def entered(chat: Chat, tmp_path: Path) -> Entered:
    """Types keys at one prompt after the other, and gives the lines that were entered."""
    prompt = Prompt(tmp_path / ".history")

    def lines(keys: str) -> list[str]:
        with create_pipe_input() as keyboard, create_app_session(input=keyboard, output=DummyOutput()):
            keyboard.send_text(f"{keys}\r\x04")
            return list(prompt.lines(chat))

    return lines


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """A file whose name wants quoting."""
    file = tmp_path / "a note's copy.txt"
    file.write_text("A note.")
    return file


def test_a_path_is_read_as_terminals_write_it(note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bare, quoted, with backslashes, as an address; alone, and of a file that is there."""
    monkeypatch.setenv("HOME", str(note.parent))
    escaped = str(note).replace(" ", "\\ ").replace("'", "\\'")
    quoted = (shlex.quote(str(note)), f'"{note}" ', escaped)
    for text in (str(note), f"{note}\n", *quoted, note.as_uri(), f"~/{note.name}"):
        assert note == file_in(text), text
    for text in (f"see {note}", f"{note} {note}", str(note.parent), f"{note}x", "\0", "a" * 5000, "it's", "", "a\nb"):
        assert file_in(text) is None, text
    assert file_in(f"file://elsewhere{note}") is None


def test_a_pasted_path_is_attached_and_one_in_a_sentence_is_text(
    entered: Entered, chat: Chat, note: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So is one that is typed, and one of a file that cannot be sent, which is told."""
    (note.parent / "film.bin").write_bytes(b"\xff\xfe\x00")
    film = str(note.parent / "film.bin")

    assert ["Look at it"] == entered(f"{pasted(shlex.quote(str(note)))}Look at it")
    assert ["a note's copy.txt:\n```\nA note.\n```"] == chat.attached
    printed = capsys.readouterr()
    assert f"attached to the next message: {note.name}; /attach none removes it" in printed.err
    assert f"> Look at it\n  [{note.name}]\n" in printed.out
    assert status_text(chat, Meter()).startswith(f" attached: {note.name} · deepseek-v4-pro")

    assert [f"See {note}", str(note), film] == entered(f"See {pasted(str(note))}\r{note}\r{pasted(film)}")
    assert 1 == len(chat.attached)
    assert "film.bin is neither text nor" in capsys.readouterr().err


def test_a_large_paste_is_one_letter_of_the_line_and_is_sent_whole(entered: Entered) -> None:
    """One key deletes it, one goes over it, the history has it whole; a small one stands there as it is."""
    large = pasted(TEXT.replace("\n", "\r\n"))

    assert [f"See {TEXT}!"] == entered(f"See {large}!")
    assert ["See !", "ab"] == entered(f"See {large}{BACKSPACE}!\r{large}{HOME}{DELETE}ab")
    assert [f"{TEXT}{TEXT}?!"] == entered(f"{large}?{HOME}{large}{RIGHT}{RIGHT}!")
    assert [f"{TEXT}{TEXT}?!"] == entered(UP)
    small = pasted("a\rx")
    assert ["a\nb"] == entered(f"{small}{BACKSPACE}b")


def test_a_placeholder_says_how_much_it_stands_for() -> None:
    """In the place of its letter, with the cursor beside or behind it; typed, it is text."""
    pastes = Pastes()
    line = f"a{pastes.fold(TEXT)}b{pastes.fold('x' * 2_001)}"
    given = TransformationInput(BufferControl(), Document(line), 0, lambda at: at, [("", line)], 80, 24)
    shown = Placeholders(pastes).apply_transformation(given)

    label = "[pasted 120 lines]"
    assert f"a{label}b[pasted 2001 letters]" == "".join(fragment[1] for fragment in shown.fragments)
    assert [0, 1, 1 + len(label)] == [shown.source_to_display(at) for at in range(3)]
    assert [0, 1, 1, 2] == [shown.display_to_source(at) for at in (0, 1, len(label), len(label) + 1)]
    assert "x" * 2_000 == pastes.fold("x" * 2_000)
    assert label == pastes.unfold(label)
