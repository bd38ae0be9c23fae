"""Takes the pictures of the chat in docs/captures: each a session with the referee in a real terminal.

``make docs`` runs it; a test compares the text of each with what the chat shows now.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
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
_FONTS = re.compile(r"\s*@font-face \{.*?\}\n", re.DOTALL)
_NAMES = {"brown": "yellow", "brightbrown": "bright_yellow"}
_PALETTES = {
    DARK: ((205, 214, 244), [(69, 71, 90), (243, 139, 168), (166, 227, 161), (249, 226, 175)]),
    LIGHT: ((76, 79, 105), [(92, 95, 119), (210, 15, 57), (64, 160, 43), (223, 142, 29)]),
}
_BLUE = {DARK: [(137, 180, 250), (245, 194, 231), (148, 226, 213), (186, 194, 222)]}
_INK = {LIGHT: [(30, 102, 245), (234, 118, 203), (23, 146, 153), (172, 176, 190)]}

QUESTION = "What could be faster in primes.py? Show me how, and what it tries for 91."
REASONING = (
    "A prime number has no divisors but 1 and itself. The square root of 91 is about 9.5, so 2, 3, 5 and 7 are enough "
    "to try.\n\n91 is odd; 9 + 1 = 10 is not divisible by 3; it does not end in 0 or 5. 7 * 13 = 91: it is not prime."
)
ANSWER = """`primes.py` tries **every** number below `n`; those up to the square root are enough:

```python
def is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))
```

| divisor | remainder |
|--------:|----------:|
|       3 |         1 |
|       7 |         0 |
"""


class Scene(NamedTuple):
    """How the turn is looked at: on a terminal of ``columns`` and ``rows`` with ``background``; ``keys`` are pressed at
    its end, and show the text ``shown``.
    """

    columns: int
    rows: int
    background: Rgb = DARK
    environment: tuple[tuple[str, str], ...] = ()
    keys: str = ""
    shown: str = ""


_PLAIN = (("NO_COLOR", "1"),)
SCENES = {
    "dark-40": Scene(40, 33),
    "dark-80": Scene(80, 25),
    "dark-120": Scene(120, 25),
    "light-80": Scene(80, 25, LIGHT),
    "plain-40": Scene(40, 37, environment=_PLAIN),
    "plain-120": Scene(120, 28, environment=_PLAIN),
    "unfolded-80": Scene(80, 32, keys="\x0f", shown="it is not prime"),
}


def play(terminal: Terminal, referee: Referee, scene: Scene) -> None:
    """A turn with a thought, a call that works, one that fails, and an answer."""
    referee.push(
        Step(reasoning="I should look at the file first.", tool_calls=[Call("read", {"path": "primes.py"})]),
        Step(tool_calls=[Call("read", {"path": "missing.py"})]),
        Step(reasoning=REASONING, text=ANSWER),
    )
    enter(terminal, QUESTION, "7          0" if not scene.environment else "|       7 |")
    if scene.keys:
        terminal.send(scene.keys)
        terminal.wait_for(scene.shown)
        at_prompt(terminal)


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
        line += ["--app", "coding"]
        with Terminal(
            line, environment, columns=scene.columns, rows=scene.rows, background=scene.background, directory=work
        ) as it:
            at_prompt(it)
            play(it, referee, scene)
            yield it


def text_of(terminal: Terminal) -> str:
    """What is on the screen, with times that differ from run to run left out."""
    return re.sub(r"(?<=for )\d+ s", "less than a second", terminal.text) + "\n"


def picture(terminal: Terminal, name: str) -> str:
    """The screen as SVG."""
    background, columns = SCENES[name].background, SCENES[name].columns
    rows = terminal.text.count("\n") + 1
    console = Console(record=True, width=columns, file=io.StringIO(), color_system="truecolor", force_terminal=True)
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
    for old in PLACE.glob("*.*"):
        old.unlink()
    for each in SCENES:
        with played(each) as seen:
            (PLACE / f"{each}.svg").write_text(picture(seen, each), encoding="utf-8")
            (PLACE / f"{each}.txt").write_text(text_of(seen), encoding="utf-8")
