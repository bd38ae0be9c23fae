"""The input line: prompt_toolkit with a history file, completion, several lines, and keys of our own.

What was entered is taken off the screen and drawn there again as the person's turn, broken between words. A large
paste is one placeholder until then.

The history is private (0600), and a slash command with a key in it never gets there.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from thinkback.cli import terminal
from thinkback.cli.chat import failures, pastes, status, thoughts
from thinkback.cli.chat.slash import attach
from thinkback.cli.chat.table import completions, is_command, table
from thinkback.drive.stopping import STOP
from thinkback.errors import ThinkbackError
from thinkback.settings import KEYS

if TYPE_CHECKING:
    from prompt_toolkit import Application
    from prompt_toolkit.buffer import Buffer

    from thinkback.cli.chat.chat import Chat

MODES = ("collapsed", "full", "hidden")
UNFOLD = "c-o"
_MENU = 6
# Columns for an answer.
_ROOM = 16
MOST_HISTORY = 4_000_000
# What an entry of prompt_toolkit's history begins with.
_ENTRY = b"\n# "
# What a key looks like, or what stands before one. Hashes are hexadecimal and are none.
_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|nvapi|ghp|AIza|AKIA)[-_A-Za-z0-9]{12,}"
    r"|(?:key|token|secret|password)[\s=:]+\S{8,}",
    re.IGNORECASE,
)
_OPAQUE = re.compile(r"(?=[\w+=-]*\d)(?=[\w+=-]*[g-zG-Z])[\w+=-]{28,}")


def history_file() -> Path:
    """Where what was typed is kept: the platform's state directory, which is made private."""
    import platformdirs

    place = Path(platformdirs.user_state_dir("thinkback", appauthor=False))
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place / "history"


class PrivateHistory(FileHistory):
    """prompt_toolkit offers this by inheritance only. The file is made for its owner alone."""

    def store_string(self, string: str) -> None:
        """Keep ``string``, unless it is a command with a key in it."""
        if holds_key(string):
            return
        with suppress(OSError):  # a full disk is no reason to end a conversation
            descriptor = os.open(self.filename, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                if os.fstat(descriptor).st_mode & 0o077:
                    os.fchmod(descriptor, 0o600)
            finally:
                os.close(descriptor)
            super().store_string(string)


def trim(file: Path, most: int = MOST_HISTORY) -> None:
    """Forget the older half of a history of more than ``most`` bytes."""
    with suppress(OSError):
        if file.stat().st_size <= most:
            return
        kept = file.read_bytes()[-most // 2 :]
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(kept[kept.find(_ENTRY) :])
        os.replace(draft, file)


def holds_key(line: str) -> bool:
    """Whether ``line`` is a slash command with what may be a key."""
    return line.startswith("/") and bool(
        _KEY.search(line) or _OPAQUE.search(line) or line != terminal.without_keys(line)
    )


class SlashCompleter(Completer):
    """prompt_toolkit offers this by inheritance only."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterable[Completion]:
        """What may go on where the cursor is."""
        if not document.text.startswith("/"):
            return
        try:
            found = completions(self._chat, document.text_before_cursor)
        except (ThinkbackError, OSError):  # whatever is wrong is told when the command runs
            return
        for word, begun in found:
            yield Completion(word, start_position=-len(begun), display_meta=about(document.text, word))


def about(line: str, word: str) -> str:
    """A few words on what a completion is."""
    if " " not in line:
        return table()[word].help
    return KEYS[word].help if word in KEYS else ""


class Prompt:
    """The input line of a terminal."""

    is_live = True

    def __init__(self, history: Path) -> None:
        trim(history)
        self._history = PrivateHistory(str(history))
        self._meter = status.Meter()
        self._status = ""
        self.pastes = pastes.Pastes()

    def lines(self, chat: Chat) -> Iterator[str]:
        """Each message that is entered, until Ctrl-D."""
        session: PromptSession[str] = PromptSession(
            "> ",
            multiline=True,
            prompt_continuation="  ",
            history=self._history,
            completer=SlashCompleter(chat),
            complete_while_typing=True,
            reserve_space_for_menu=_MENU,
            key_bindings=keys(chat, self),
            input_processors=[pastes.Placeholders(self.pastes)],
            bottom_toolbar=lambda: self._status,
            enable_open_in_editor=True,
            enable_suspend=True,
            tempfile_suffix=".md",
            erase_when_done=True,
        )
        chat.screen.listen(session.input)
        while True:
            self.refresh(chat)
            try:
                line = session.prompt(default=chat.screen.take_typed())
                if line.strip():
                    files = f"\n[{attach.names(chat)}]" if chat.attached and not is_command(line) else ""
                    chat.screen.message("user", line + files)
                yield line
            except EOFError:
                return
            except KeyboardInterrupt:  # a dumb terminal has no keys of ours: the line is given up there too
                terminal.note()

    def ask(self, question: str, default: str = "", *, secret: bool = False) -> str:
        """One more message; Ctrl-C and Ctrl-D give up, and so does the end of the turn in which a tool asks."""
        columns = shutil.get_terminal_size().columns
        is_wide = terminal.columns_of(question) + _ROOM <= columns
        message = question if is_wide else "> "  # beside it would be too little to write in
        asking: PromptSession[str] = PromptSession(
            message, multiline=True, key_bindings=line_keys(), is_password=secret
        )
        _forget_typed(asking.app.input)
        if not is_wide:
            terminal.out(textwrap.fill(question.strip(), max(columns - 1, 1)))
        with _ending_with_the_turn(asking.app) as give_up:
            # whoever asks in the middle of a turn has a handler of their own for Ctrl-C, which would be replaced
            return asking.prompt(default=default, handle_sigint=False, pre_run=give_up)

    def refresh(self, chat: Chat) -> None:
        """Work the status out as it is now."""
        self._status = status_text(chat, self._meter)


@contextmanager
def _ending_with_the_turn(app: Application[str]) -> Iterator[Callable[[], None]]:
    """While inside, the end of the turn in which a tool asks ends ``app``. What is yielded ends it if that has been."""
    stop = STOP.get()

    def give_up() -> None:
        if stop.is_set and app.future is not None and not app.future.done():
            app.exit(exception=EOFError())

    def give_up_from_outside() -> None:
        loop = app.loop
        if loop is not None:
            with suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(give_up)

    with stop.calls(give_up_from_outside):
        yield give_up


def _forget_typed(keyboard: Input) -> None:
    """Drop what was typed before a question was asked: it is no answer to it."""
    clear_typeahead(keyboard)
    if sys.platform != "win32":
        import termios

        termios.tcflush(keyboard.fileno(), termios.TCIFLUSH)


def status_text(chat: Chat, meter: status.Meter) -> str:
    """What is attached, and the status line; a fault in a file is told there until it is mended."""
    columns = shutil.get_terminal_size().columns - 2
    before = f"attached: {terminal.one_line(attach.names(chat), columns // 2)} · " if chat.attached else ""
    try:
        return f" {before}{status.line(chat.session, meter, columns - terminal.columns_of(before))}"
    except ThinkbackError as error:
        return f" {terminal.one_line(error.message, 100)}"


def line_keys(whole: Callable[[str], str] = str) -> KeyBindings:
    """Enter sends the ``whole`` of the line, Alt-Enter or a backslash begins a line."""
    bound = KeyBindings()

    @bound.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif buffer.document.char_before_cursor == "\\" and buffer.document.is_cursor_at_the_end:
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            _write_out(buffer, whole)
            buffer.validate_and_handle()

    @bound.add("escape", "enter")
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return bound


def _write_out(buffer: Buffer, whole: Callable[[str], str]) -> None:
    """Have the whole line in ``buffer``, and with it in the history and in an editor."""
    if (text := whole(buffer.text)) != buffer.text:
        buffer.text = text


def keys(chat: Chat, prompt: Prompt) -> KeyBindings:
    """Those, and: Ctrl-C clears, Ctrl-T shows thinking otherwise, Ctrl-O shows the last thought. What is pasted is
    folded where it is large, and attached where it is the path of a file and the line is empty.
    """
    bound = line_keys(prompt.pastes.unfold)

    @bound.add(Keys.BracketedPaste)
    def paste(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        file = None if event.current_buffer.text else pastes.file_in(text)
        if file is None:
            event.current_buffer.insert_text(prompt.pastes.fold(text))
            return
        try:
            attach.add(chat, [file])
        except failures.EXPECTED as error:
            event.current_buffer.insert_text(text)
            _, told = failures.report(error)
            run_in_terminal(lambda: terminal.complain(told))
        else:
            prompt.refresh(chat)
            run_in_terminal(lambda: terminal.note(attach.describe(chat)))

    @bound.add("c-x", "c-e")
    def edit(event: KeyPressEvent) -> None:
        _write_out(event.current_buffer, prompt.pastes.unfold)
        event.current_buffer.open_in_editor()

    @bound.add("c-c")
    def clear(event: KeyPressEvent) -> None:
        if not event.current_buffer.text:
            run_in_terminal(lambda: terminal.note("Ctrl-D leaves"))
        event.current_buffer.reset()

    @bound.add("c-t")
    def cycle(event: KeyPressEvent) -> None:
        now = chat.session.settings.display_reasoning
        chat.session.set("display.reasoning", MODES[(MODES.index(now) + 1) % len(MODES)])
        prompt.refresh(chat)
        event.app.invalidate()

    @bound.add(UNFOLD)
    def unfold(event: KeyPressEvent) -> None:
        run_in_terminal(lambda: thoughts.unfold(chat))

    return bound
