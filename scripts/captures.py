"""Takes the pictures of the chat in docs/captures: each a session with the referee in a real terminal.

``make docs`` runs it; a test compares the text of each with what the chat shows now.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.cli.chat.terminal import DARK, LIGHT, Cell, Rgb, Terminal
from thinkback_referee import Call, Referee, Step

PLACE = Path(__file__).parents[1] / "docs" / "captures"
SOURCES = Path(__file__).parents[1] / "src"
COLUMNS = 92
_FONTS = re.compile(r"\s*@font-face \{.*?\}\n", re.DOTALL)
_NAMES = {"brown": "yellow", "brightbrown": "bright_yellow"}
_PALETTES = {
    DARK: ((205, 214, 244), [(69, 71, 90), (243, 139, 168), (166, 227, 161), (249, 226, 175)]),
    LIGHT: ((76, 79, 105), [(92, 95, 119), (210, 15, 57), (64, 160, 43), (223, 142, 29)]),
}
_BLUE = {DARK: [(137, 180, 250), (245, 194, 231), (148, 226, 213), (186, 194, 222)]}
_INK = {LIGHT: [(30, 102, 245), (234, 118, 203), (23, 146, 153), (172, 176, 190)]}

QUESTION = "Is 91 a prime number? Show me how to check."
REASONING = (
    "A prime number has no divisors but 1 and itself. The square root of 91 is about 9.5, so 2, 3, 5 and 7 are enough "
    "to try.\n\n91 is odd; 9 + 1 = 10 is not divisible by 3; it does not end in 0 or 5. 7 * 13 = 91: it is not prime."
)
ANSWER = """No: **91 = 7 · 13**. Trying the primes up to its square root is enough:

```python
def is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))
```

| divisor | remainder |
|--------:|----------:|
|       2 |         1 |
|       3 |         1 |
|       7 |         0 |
"""
_LAST_ROW = "      7          0"


class Scene(NamedTuple):
    """What is played before the picture is taken, on a terminal of ``rows`` with ``background``."""

    play: Callable[[Terminal, Referee], None]
    rows: int
    background: Rgb = DARK
    environment: tuple[tuple[str, str], ...] = ()


def full(terminal: Terminal, referee: Referee) -> None:
    """Thinking in full, the answer as Markdown."""
    referee.push(Step(reasoning=REASONING, text=ANSWER))
    enter(terminal, QUESTION, _LAST_ROW)


def collapsed(terminal: Terminal, referee: Referee) -> None:
    """Thinking as one line."""
    referee.push(Step(reasoning=REASONING, text=ANSWER), Step(reasoning="7 * 14 = 98.", text="98."))
    enter(terminal, "/set display.reasoning collapsed", "set by")
    enter(terminal, QUESTION, _LAST_ROW)
    enter(terminal, "And the next multiple of 7?", "98.")


def tools(terminal: Terminal, referee: Referee) -> None:
    """An app with tools: calls, how they ended, and the answer."""
    referee.push(
        Step(reasoning="I should look at the file first.", tool_calls=[Call("read", {"path": "primes.py"})]),
        Step(reasoning="It tries too many divisors.", tool_calls=[Call("read", {"path": "missing.py"})]),
        Step(text="`primes.py` tries **every** number below `n`; the square root is enough."),
    )
    enter(terminal, "What could be faster in primes.py?", "enough.")


def plain(terminal: Terminal, referee: Referee) -> None:
    """``NO_COLOR``: no escape codes, the same words."""
    referee.push(Step(reasoning=REASONING, text=ANSWER))
    enter(terminal, QUESTION, "|       7 |         0 |")


SCENES = {
    "full": Scene(full, 28),
    "light": Scene(full, 28, LIGHT),
    "collapsed": Scene(collapsed, 29),
    "tools": Scene(tools, 21),
    "plain": Scene(plain, 31, environment=(("NO_COLOR", "1"),)),
}


def enter(terminal: Terminal, line: str, shown: str) -> None:
    """Type ``line`` and wait for what it shows, and for the next prompt."""
    terminal.send(f"{line}\r")
    terminal.wait_for(shown)
    at_prompt(terminal)


def at_prompt(terminal: Terminal) -> None:
    """Wait until the next line can be typed."""
    terminal.wait_until(
        lambda: terminal.lines[terminal.cursor[0]] == ">" and terminal.cursor[1] == 2 and " · " in terminal.lines[-1],
        "the prompt, with the status at the bottom",
    )


@contextmanager
def played(name: str) -> Iterator[Terminal]:
    """The terminal of a scene, as it looks at its end."""
    scene = SCENES[name]
    with tempfile.TemporaryDirectory() as place, Referee() as referee:
        work = Path(place, "work")
        work.mkdir()
        (work / "primes.py").write_text("def is_prime(n):\n    return all(n % d for d in range(2, n))\n")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": place,
            "PYTHONPATH": str(SOURCES),
            "PYTHONUTF8": "1",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "THINKBACK_CONFIG_DIR": str(Path(place, "config")),
            "THINKBACK_DB": str(Path(place, "log.db")),
            "DEEPSEEK_API_KEY": "sk-test-0123456789abcdef",
            **dict(scene.environment),
        }
        line = [sys.executable, "-m", "thinkback", "chat", "--session", "primes", "--endpoint", "deepseek"]
        line += ["--model", "deepseek-v4-pro", "--base-url", referee.base_url("deepseek")]
        line += ["--app", "coding"] if name == "tools" else []
        with Terminal(
            line, environment, columns=COLUMNS, rows=scene.rows, background=scene.background, directory=work
        ) as it:
            at_prompt(it)
            scene.play(it, referee)
            yield it


def text_of(terminal: Terminal) -> str:
    """What is on the screen, with times that differ from run to run left out."""
    text = re.sub(r"\d+\.\d s\)", "0.0 s)", terminal.text)
    return re.sub(r"(?<=for )\d+ s", "less than a second", text) + "\n"


def picture(terminal: Terminal, name: str) -> str:
    """The screen as SVG."""
    background = SCENES[name].background
    rows = terminal.text.count("\n") + 1
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for row in range(rows):
        runs = groupby(terminal.cells(row), _style)
        console.print(Text.assemble(*(("".join(cell.text for cell in run), style) for style, run in runs)))
    letters, first = _PALETTES[background]
    theme = TerminalTheme(background, letters, first + (_BLUE.get(background) or _INK[background]))
    return _FONTS.sub("", console.export_svg(title="thinkback chat", theme=theme, unique_id=f"capture-{name}"))


def _style(cell: Cell) -> Style:
    return Style(
        color=_colour(cell.foreground),
        bgcolor=_colour(cell.background),
        italic=cell.italic,
        bold=cell.bold,
        reverse=cell.reverse,
    )


def _colour(name: str) -> Color | None:
    if name == "default":
        return None
    if re.fullmatch("[0-9a-f]{6}", name):
        return Color.parse(f"#{name}")
    return Color.parse(_NAMES.get(name, name.replace("bright", "bright_")))


if __name__ == "__main__":
    PLACE.mkdir(exist_ok=True)
    for each in SCENES:
        with played(each) as seen:
            (PLACE / f"{each}.svg").write_text(picture(seen, each), encoding="utf-8")
            (PLACE / f"{each}.txt").write_text(text_of(seen), encoding="utf-8")
