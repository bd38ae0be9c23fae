"""A turn as it is drawn: thinking, answer, calls and what the turn is doing, each as it arrives.

Owns the output between two prompts. Everything that a model, a tool or a provider sent is made clean first. Nothing
here decides what is stored or sent.
"""

from __future__ import annotations

import importlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias, assert_never

from thinkback.cli import terminal
from thinkback.cli.chat.drawing.answer import Answer
from thinkback.cli.chat.drawing.calls import Calls
from thinkback.cli.chat.drawing.look import Look, words_for
from thinkback.cli.chat.drawing.surface import Surface
from thinkback.cli.chat.drawing.thinking import Thinking
from thinkback.errors import ThinkbackError
from thinkback.model.deltas import ReasoningDelta, Reclassified, Status, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from prompt_toolkit.input import Input

    from thinkback.model.deltas import Delta
    from thinkback.session.reply import Reply, StepReply
    from thinkback.session.transcripts.ink import Style
    from thinkback.wire.result import ReadResult

Section: TypeAlias = Literal["", "thinking", "answer", "line"]
_SECONDS_PER_TICK = 1.0
# a message of the person that takes more rows is shown by its first ones
_MOST_ROWS, _SHOWN_ROWS = 20, 4
# states of a turn whose last response may have been broken off; of one that failed nothing came
_CUT = ("interrupted", "timed_out", "partial_failed")
# outcomes of which the caller tells how often the model was asked
_THOUGHT = ("max_tokens_in_reasoning", "reasoning_only")
_BLANK_LINES = re.compile(r"^(?:[ \t]*\r?\n)+")


class Screen:
    """Draws turns on ``stream``; ``look`` is how, or gives it at each turn. ``clock`` is in seconds. Thinking goes to
    ``aside`` where that is another stream. ``shows_thought``: the last thought is on the screen, whole.
    """

    def __init__(
        self,
        stream: TextIO,
        look: Look | Callable[[], Look],
        clock: Callable[[], float] = time.monotonic,
        aside: TextIO | None = None,
    ) -> None:
        self._wanted = look
        self._clock = clock
        self._look = look() if callable(look) else look
        self._surface = Surface(stream, self._look)
        self._beside = self._surface if aside is None else Surface(aside, self._look, asks=False)
        self._said = words_for(self._look)
        self._lock = threading.RLock()
        self._ticker: _Ticker | None = None
        self._open: Thinking | Answer | None = None
        self._last: Section = ""
        self._calls = Calls()
        self._doing = ""
        self._since = 0.0
        self._blank = ""
        self.shows_thought = False

    def take_typed(self) -> str:
        """What a person typed too early for the next prompt, which begins with it."""
        typed, self._surface.typed = self._surface.typed, b""
        return terminal.clean(typed.decode(errors="replace"))

    def keep_typed(self, text: str) -> None:
        """Keep what was typed before a question was asked."""
        self._surface.typed += text.encode(errors="replace")

    def listen(self, keyboard: Input) -> None:
        """Keep what ``keyboard`` reads free of answers of the terminal that come late."""
        self._surface.listen(keyboard)

    def take_look(self) -> None:
        """Look as is wanted now; a turn does so when it begins."""
        with self._lock:
            self._look = self._wanted() if callable(self._wanted) else self._wanted
            self._surface.take(self._look)
            self._beside.take(self._look)
            self._said = words_for(self._look)
            self._surface.hint = self._said.stop

    # -- a turn --------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A turn begins."""
        with self._lock:
            self.take_look()
            self._open, self._last, self._calls, self._blank = None, "", Calls(), ""
            self.shows_thought = False
            self._do(self._said.working)
            if self._surface.draws:
                self._ticker = _Ticker(self)

    def show(self, delta: Delta) -> None:
        """One delta."""
        with self._lock:
            match delta:
                case ReasoningDelta():
                    self._think(delta.text, delta.index)
                case TextDelta():
                    self._say(delta.text)
                case ToolCallDelta():
                    self._call(delta)
                case Reclassified():
                    self._take_back(delta)
                case Status():
                    self._show_status(delta)
                case _:
                    assert_never(delta)

    def finish(self, reply: Reply | None, error: BaseException | None) -> None:
        """The turn is over, with what there is of a reply, and with what went wrong."""
        ticker, self._ticker = self._ticker, None
        if ticker is not None:
            ticker.stop()
        with self._lock:
            self._close()
            self._doing = ""
            self.shows_thought = self._look.mode == "full"
            if reply is not None:
                self._sum_up(reply)
            if error is not None and str(error):
                text = error.for_people() if isinstance(error, ThinkbackError) else str(error)
                self._line(terminal.without_keys(text), "red")
            self.rest()

    def rest(self) -> None:
        """What is shown is over: an empty line parts it from the next prompt."""
        with self._lock:
            if self._last and self._surface.is_terminal:
                self._surface.write(self._surface.line_end)
            self._last = ""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """A place for questions to the person in the middle of a turn: nothing is drawn meanwhile."""
        with self._lock:
            self._close()
            doing, self._doing = self._doing, ""
            self._surface.write("")  # takes the status away: others write here now
            yield
            self._do(doing)

    def tick(self) -> None:
        """Draw what changes by time alone."""
        with self._lock:
            now = self._clock()
            if isinstance(self._open, Thinking):
                self._open.tick(now)
            elif self._doing:
                doing = self._calls.running(now) or f"{self._doing}, {round(now - self._since)} s"
                (self._surface.status if self._open is None else self._surface.footer)(doing)

    def fold(self) -> None:
        """Show the rest of the turn's thinking in full, the thought under way from its beginning; or fold it."""
        with self._lock:
            if self._look.mode == "hidden" or not self._surface.draws:
                return
            self._look = self._look._replace(mode="full" if self._look.mode == "collapsed" else "collapsed")
            if isinstance(self._open, Thinking):
                self._open.fold(self._look.mode)
                self.tick()

    # -- what was said before ------------------------------------------------------------------------------------------

    def thought(self, text: str, seconds: float | None, tokens: int | None, *, estimated: bool = False) -> None:
        """A thought of an earlier turn, ``estimated`` where nobody counted its tokens.

        An empty text is one that the provider did not show.
        """
        if self._look.mode == "hidden":
            return
        with self._lock:
            self._begin_section("thinking")
            self.shows_thought = self._look.mode == "full"
            if not text.strip():
                self._beside.noted(self._said.hidden(tokens))
                return
            if self._look.mode == "full":
                Thinking(self._beside, "full", self._said, 0.0).whole(text)
            self._beside.noted(self._said.done(seconds, tokens, estimated=estimated, shared=True))

    def clear(self) -> None:
        """Empty the screen, and what has left it at the top, where escape codes are welcome."""
        with self._lock:
            self._surface.write("\x1b[H\x1b[2J\x1b[3J" if self._surface.draws else "")
            self.shows_thought = False

    def unfold(self, text: str) -> None:
        """A thought of an earlier turn in full; an empty text is one that the provider did not show."""
        with self._lock:
            self.take_look()
            self._begin_section("thinking")
            if text.strip():
                Thinking(self._beside, "full", self._said, 0.0).whole(text)
            else:
                self._beside.noted(self._said.hidden())
            self.shows_thought = True
            self.rest()

    def message(self, role: str, text: str) -> None:
        """What the person said, or a message of an earlier turn."""
        with self._lock:
            if role == "assistant":
                self._begin_section("answer")
                answer = Answer(self._surface)
                answer.feed(text)
                answer.close()
            elif role == "user":
                self._own(text)
            else:
                self._line(text)

    def _own(self, text: str) -> None:
        """What the person said: marked at its beginning, the rows below it in line with it."""
        self._begin_section("line")
        self._last = ""
        lines = terminal.clean(text.replace("\r\n", "\n")).split("\n")
        rows = [row for line in lines for row in self._rows(line)]
        if len(rows) > _MOST_ROWS:
            left_out = len(rows) - _SHOWN_ROWS
            rows = [*rows[:_SHOWN_ROWS], f"[{left_out} more lines]"]
        for at, row in enumerate(rows):
            self._surface.line(f"{'  ' if at else '> '}{row}".rstrip(), "bold")

    def _rows(self, line: str) -> list[str]:
        if not self._surface.is_terminal:
            return [line]
        return terminal.fit(line, self._surface.columns - 3).split("\n")

    def ended(self, state: str, reason: str = "") -> None:
        """How a turn ended that did not complete; one that was cut short is called partial."""
        behind = f": {reason}" if reason and reason != state.removeprefix("partial_").replace("_", " ") else ""
        self.note(f"({self._said.ended(state, cut=state in _CUT)}{behind})")

    def note(self, text: str) -> None:
        """A line that stands back."""
        with self._lock:
            self._line(text)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _think(self, text: str, index: int) -> None:
        if not isinstance(self._open, Thinking):
            if not text.strip():
                return
            if self._look.mode == "hidden":
                self._close()
            else:
                self._begin_section("thinking")
            self._open = Thinking(self._beside, self._look.mode, self._said, self._clock())
        self._open.feed(text, index, self._clock())

    def _say(self, text: str) -> None:
        if not isinstance(self._open, Answer):
            text = self._blank + text
            if not text.strip():
                self._blank = text
                return
            # blank lines before an answer are none of it
            text = _BLANK_LINES.sub("", text)
            self._begin_section("answer")
            self._open = Answer(self._surface)
        self._open.feed(text)

    def _call(self, delta: ToolCallDelta) -> None:
        self._close()
        name = self._calls.add(delta)
        if delta.name:
            self._do(name)

    def _take_back(self, delta: Reclassified) -> None:
        """What was shown as an answer was thinking: draw it as such, where that can still be done."""
        answer = self._open
        if not isinstance(answer, Answer):
            return
        self._open = None
        text = answer.text
        if not answer.take_back():
            answer.close()
            self._line(f"({self._said.above})")
            return
        self._last = ""
        self._say(text.removesuffix(terminal.clean(delta.text)))
        self._think(delta.text, delta.index)

    def _show_status(self, status: Status) -> None:
        now = self._clock()
        match status.state:
            case "sending":
                self._close()
                self._do(f"{self._said.working}: {status.detail}")
            case "tool_started":
                self._close()
                self._calls.start(status, now)
                self.tick()
            case "tool_finished":
                self._line(self._calls.end(status, now))
                self._do(self._said.working)
            case "asking":
                self._close()  # the question says it
            case "branched":
                self._line(terminal.BRANCHED.format(status.detail))
            case state:
                self._line(f"{state.replace('_', ' ')}: {status.detail}")

    def _sum_up(self, reply: Reply) -> None:
        """What the turn did that nobody saw, and how it ended if not by itself."""
        if self._look.mode != "hidden":
            if hidden := _withheld(reply):
                counts = [step.result.usage.reasoning or 0 for step in hidden if step.result.usage is not None]
                self._note_thinking(self._said.hidden(sum(counts)))
            if reply.outcome == "max_tokens_in_reasoning":
                self._note_thinking(self._said.spent)
        if reply.state in (*_CUT, "failed"):  # what went wrong is told behind it
            self.ended(reply.state)
        elif reply.state not in (None, "completed"):
            self.ended(reply.state, reply.reason)
        elif reply.ending and reply.outcome not in _THOUGHT:
            self.note(f"({reply.ending})")

    # -- sections ------------------------------------------------------------------------------------------------------

    def _note_thinking(self, text: str) -> None:
        self._begin_section("line" if self._beside is self._surface else "thinking")
        self._beside.noted(text)

    def _begin_section(self, section: Section) -> None:
        self._close()
        if section == "thinking" and self._beside is not self._surface:
            return
        if self._last and (section != self._last or section != "line"):
            self._surface.write(self._surface.line_end)
        self._last = section

    def _close(self) -> None:
        """End what is under way."""
        section, self._open = self._open, None
        self._surface.footer("")
        if isinstance(section, Thinking):
            section.close(self._clock())
        elif section is not None:
            section.close()
        self._blank = ""

    def _line(self, text: str, style: Style = "dim") -> None:
        self._begin_section("line")
        for line in text.splitlines() or [""]:
            self._surface.line(line, style)

    def _do(self, doing: str) -> None:
        self._doing, self._since = doing, self._clock()
        self.tick()


def is_withheld(reply: Reply) -> bool:
    """Whether a response of ``reply`` reasoned and the provider shows nothing of it."""
    return bool(_withheld(reply))


def _withheld(reply: Reply) -> list[StepReply]:
    return [step for step in reply.steps if not step.reasoning and _reasoned(step.result)]


def _reasoned(result: ReadResult) -> bool:
    """Whether a response holds reasoning, or reports some."""
    from thinkback.model.blocks import ThinkingBlock, carriers_of

    blocks = [block for block in result.blocks if isinstance(block, ThinkingBlock)]
    counted = result.usage.reasoning if result.usage is not None else None
    return bool(counted) or any(carriers_of(block) for block in blocks)


class _Ticker:
    """Calls a screen's ``tick`` once a second; the first thing that it does is to load what Markdown needs."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="thinkback-screen", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No tick comes after this."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        importlib.import_module("thinkback.cli.chat.drawing.markdown")
        while not self._over.wait(_SECONDS_PER_TICK):
            try:
                self._screen.tick()
            except OSError:  # the terminal is gone; whoever writes next is told
                return
