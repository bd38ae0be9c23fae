"""The command in the terminal: how long it takes to start, to answer, and to show the first thought; what a chat costs.

``run`` is measured over a bare exchange of the same bytes with the same referee. The chat runs on a pseudo-terminal
whose other end is this process, before a server that notes when it hands over a token; both ends share its clock.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import thinkback
from bench.measure import Case, Figure, Group, Samples, interleaved, spread
from bench.start import spawned
from bench.tokens import Screen, Token, Tokens

ROOT = Path(__file__).parents[1]
MODEL, KEY = "deepseek-v4-pro", "sk-bench-0123456789"
QUESTION = "Why is the sky blue?"
RUN_AIM, SHOWN_AIM, CPU_AIM, MEMORY_AIM = 150, 30, 0.05, 120
# Words a second, and how many of them a turn has.
RATE, WORDS = 200.0, 1_000
READY = "/help lists the commands"


class Client(NamedTuple):
    """A terminal client: its program, and what it is called with to tell its version, to answer once, and to chat.

    ``ready`` is what its chat says when it waits, ``leads`` what the first token is that it shows: a thought, or, where
    it shows none, the answer. ``{url}`` stands for the base URL.
    """

    program: tuple[str, ...]
    version: tuple[str, ...]
    once: tuple[str, ...]
    chat: tuple[str, ...]
    ready: str
    thinks: bool


def clients() -> dict[str, Client]:
    """thinkback, and those that are installed: ``make peers`` makes an environment with ``llm``."""
    place = ("--endpoint", "deepseek", "--model", MODEL, "--base-url", "{url}")
    ours = (sys.executable, "-c", "import sys; from thinkback.cli import main; sys.exit(main())")
    found = {"thinkback": Client(ours, ("--version",), ("run", *place, QUESTION), ("chat", *place), READY, thinks=True)}
    llm, sgpt = program("llm"), program("sgpt")
    if llm is not None:
        model = ("-m", "bench", "--key", KEY)
        chat = ("chat", *model)
        found["llm"] = Client((str(llm),), ("--version",), (*model, QUESTION), chat, "Type 'exit'", thinks=False)
    if sgpt is not None:
        once = ("--no-cache", "--no-md", QUESTION)
        found["shell-gpt"] = Client((str(sgpt),), ("--version",), once, ("--repl", "temp"), ">>>", thinks=False)
    return found


def program(name: str) -> Path | None:
    """An installed program of the environments for peers; ``THINKBACK_CLIENTS`` names further directories."""
    places = [ROOT / ".venv-peers" / "bin", *map(Path, os.environ.get("THINKBACK_CLIENTS", "").split(os.pathsep))]
    return next((place / name for place in places if str(place) != "." and (place / name).is_file()), None)


@contextmanager
def home(url: str) -> Iterator[dict[str, str]]:
    """An environment in which all of them ask ``url`` and keep what they keep in a directory of their own."""
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as directory:
        place = Path(directory)
        model = f"- model_id: bench\n  model_name: {MODEL}\n  api_base: {url}\n"
        (place / "extra-openai-models.yaml").write_text(model, encoding="utf-8")
        settings = place / ".config" / "shell_gpt"
        settings.mkdir(parents=True)
        said = {"DEFAULT_MODEL": MODEL, "API_BASE_URL": url, "OPENAI_API_KEY": KEY, "USE_LITELLM": "false"}
        said |= {"SHELL_INTERACTION": "false", "OPENAI_USE_FUNCTIONS": "false", "DISABLE_STREAMING": "false"}
        (settings / ".sgptrc").write_text("".join(f"{key}={value}\n" for key, value in said.items()), encoding="utf-8")
        yield {
            "PATH": os.environ["PATH"],
            "HOME": directory,
            "LLM_USER_PATH": directory,
            "PYTHONPATH": str(Path(thinkback.__file__).parents[1]),
            "PYTHONPYCACHEPREFIX": str(place / "cache"),
            "THINKBACK_CONFIG_DIR": str(place / "config"),
            "THINKBACK_DB": str(place / "log.db"),
            "DEEPSEEK_API_KEY": KEY,
            "OPENAI_API_KEY": KEY,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
        }


# -- starting and answering once --------------------------------------------------------------------------------------


@cache
def _versions(quick: bool) -> Samples:
    with home("http://127.0.0.1:9/v1") as environment:
        cases = {
            name: spawned([*client.program, *client.version], _without_path(name, environment))
            for name, client in clients().items()
        }
        return interleaved(cases, rounds=7 if quick else 21, warm_up=2)


def _without_path(name: str, environment: dict[str, str]) -> dict[str, str]:
    """Others import their own packages only."""
    return environment if name == "thinkback" else {k: v for k, v in environment.items() if k != "PYTHONPATH"}


def _version(quick: bool) -> Figure:
    """The whole process, from start to end."""
    samples = _versions(quick)
    taken = samples.median("thinkback") * 1e3
    others = ", ".join(f"{name} {samples.median(name) * 1e3:.0f} ms" for name in samples.seconds if name != "thinkback")
    peers = {name: samples.ratio(name, "thinkback").value for name in samples.seconds if name != "thinkback"}
    return Figure(
        "terminal.version",
        taken,
        "ms",
        peers=peers,
        aim="<= 120 ms, --version, the whole process",
        met=taken <= 120,
        noise=samples.noise("thinkback"),
        note=others or "no other client is installed: make peers",
    )


def bare(url: str) -> Case:
    """The exchange alone: connect, send what ``run`` sends, read to the end."""
    body = b'{"messages":[{"role":"user","content":"%s"}],"model":"%s","stream":true,' % (
        QUESTION.encode(),
        MODEL.encode(),
    )
    body += b'"stream_options":{"include_usage":true}}'
    host, _, path = url.removeprefix("http://").partition("/")
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}

    def case() -> float:
        start = perf_counter()
        connection = http.client.HTTPConnection(host)
        connection.request("POST", f"/{path}/chat/completions", body, headers)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.read()
        connection.close()
        return perf_counter() - start

    return case


def _run(quick: bool) -> Figure:
    """``thinkback run`` over the exchange that it makes."""
    judge = "from thinkback_referee import Referee\nimport sys\nwith Referee() as r:\n"
    judge += "    print(r.base_url('deepseek'), flush=True)\n    sys.stdin.read()\n"
    with subprocess.Popen(
        [sys.executable, "-c", judge], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with home(url) as environment:
            cases = {
                name: spawned(_filled([*client.program, *client.once], url), _without_path(name, environment))
                for name, client in clients().items()
            }
            samples = interleaved({"bare": bare(url), **cases}, rounds=7 if quick else 21, warm_up=2)
        process.stdin.close()
    over = samples.over("thinkback", "bare")
    others = {name: samples.over(name, "bare").value for name in cases if name != "thinkback"}
    note = f"`thinkback run` {samples.median('thinkback') * 1e3:.0f} ms, bare {samples.median('bare') * 1e3:.1f} ms; "
    note += ", ".join(f"{name} {seconds * 1e3:.0f} ms over it" for name, seconds in others.items())
    return Figure(
        "terminal.run",
        over.value * 1e3,
        "ms",
        peers={name: seconds / over.value for name, seconds in others.items()},
        aim=f"<= {RUN_AIM} ms over the bare exchange",
        met=over.value * 1e3 <= RUN_AIM,
        noise=over.noise,
        note=note,
    )


def _filled(command: list[str], url: str) -> list[str]:
    return [word.replace("{url}", url) for word in command]


# -- the chat ----------------------------------------------------------------------------------------------------------


@contextmanager
def chatting(name: str, tokens: Tokens) -> Iterator[Screen]:
    """A chat that waits for the first line."""
    client = clients()[name]
    with (
        home(tokens.url) as environment,
        Screen(_filled([*client.program, *client.chat], tokens.url), _without_path(name, environment)) as screen,
    ):
        screen.wait_for(client.ready)
        screen.rest(0.5)
        yield screen


def shown(name: str, turns: int) -> list[float]:
    """Seconds from the moment that the first token is handed over to the moment that it is on the screen, by turn."""
    thinks, delays = clients()[name].thinks, []
    with Tokens() as tokens, chatting(name, tokens) as screen:
        for turn in range(-2, turns):
            first, last = f"first{turn + 100}x", f"last{turn + 100}x"
            tokens.rate = 20.0  # so that the second token is not yet there
            tokens.answer = [Token(f"{first} ", thinks), Token("is thought. ", thinks), Token(f"And {last}.")]
            screen.enter(f"Question {turn}?")
            seen = screen.wait_for(first)
            if turn >= 0:
                delays.append(seen - tokens.sent[f"{first} "])
            screen.wait_for(last)
            screen.rest(0.1)
    return delays


def share(values: list[float], part: float) -> float:
    """The value that this part of all is not above."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def _shown(quick: bool) -> Figure:
    """From the first byte of reasoning to the screen."""
    turns = 20 if quick else 200
    mine = shown("thinkback", turns)
    others = {name: shown(name, max(turns // 4, 10)) for name in clients() if name != "thinkback"}
    p99, usual = share(mine, 0.99) * 1e3, median(mine) * 1e3
    note = f"p50 {usual:.1f} ms, most {max(mine) * 1e3:.1f} ms, {turns} turns; " + ", ".join(
        f"{name} p50 {median(delays) * 1e3:.1f} ms{'' if clients()[name].thinks else ' (its answer: shows no thought)'}"
        for name, delays in others.items()
    )
    return Figure(
        "terminal.first_thought",
        p99,
        "ms",
        peers={name: median(delays) / median(mine) for name, delays in others.items()},
        aim=f"p99 <= {SHOWN_AIM} ms from the first byte to the screen",
        met=p99 <= SHOWN_AIM,
        noise=spread(mine),
        note=note,
    )


_PROSE = (
    "Light of short waves is **scattered** more than that of long ones, as `Rayleigh` found, and so it comes from all \
sides while the red goes straight on. In the evening its way through the air is longer, most of the blue is lost \
on it, and what is left of the light is red. "
)
_ANSWER = f"{_PROSE}\n\n{_PROSE}\n\n- one thing that is worth to be said\n- another one\n- and the last of them\n\n\
```python\ndef scattered(wave):\n    # the fourth power of it\n    return 1 / wave**4\n```\n\n"


def words(count: int) -> list[Token]:
    """A thought and an answer of so many words in all; the answer is paragraphs, a list and code, again and again."""
    thought = [Token(f"thought{at} " if at % 12 else f"thought{at}.\n", thinks=True) for at in range(count // 2)]
    pieces = _ANSWER.split(" ")
    said = [Token(f"{piece} ") for piece in (pieces * (count // len(pieces) + 1))[: count - count // 2 - 1]]
    return [*thought, *said, Token("\n\ntheend")]


def _cpu(quick: bool) -> Figure:
    """Processor time of the chat for 1,000 words that arrive at the pace of a fast model."""
    count = WORDS if quick else 3 * WORDS
    found = {name: _spent(name, count) for name in clients()}
    mine = found["thinkback"]
    part = mine / (1_000 / RATE)
    others = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found.items() if name != "thinkback")
    return Figure(
        "terminal.cpu",
        mine,
        "s/1000 words",
        peers={name: seconds / mine for name, seconds in found.items() if name != "thinkback"},
        aim=f"< {CPU_AIM:.0%} of a core at {RATE:.0f} words a second",
        met=part < CPU_AIM,
        note=f"{part:.1%} of a core; {others}",
    )


def _spent(name: str, count: int) -> float:
    """Seconds of processor time for 1,000 words."""
    with Tokens() as tokens, chatting(name, tokens) as screen:
        tokens.answer, tokens.rate = [Token("Yes. ", thinks=True), Token("theend")], 0
        screen.enter("A first turn, so that all is loaded?")
        screen.wait_for("theend")
        screen.rest(0.5)
        tokens.answer, tokens.rate = words(count), RATE
        before = screen.seconds()
        screen.enter("And a long one?")
        screen.wait_for("theend", seconds=60 + count / RATE)
        screen.rest(0.5)
        return (screen.seconds() - before) / count * 1_000


def _memory(quick: bool) -> Figure:
    """What the chat holds after so many turns."""
    turns = 100 if quick else 1_000
    with Tokens() as tokens, chatting("thinkback", tokens) as screen:
        at_start = screen.resident() / 2**20
        for turn in range(turns):
            last = f"end{turn}x"
            tokens.answer = [*words(60)[:-1], Token(f" {last}")]
            screen.enter(f"Question {turn}?")
            screen.wait_for(last)
        screen.rest(0.5)
        held = screen.resident() / 2**20
    return Figure(
        "terminal.memory",
        held,
        "MB",
        aim=f"<= {MEMORY_AIM} MB after 1,000 turns",
        met=held <= MEMORY_AIM if turns == 1_000 else None,
        note=f"{turns} turns of 60 words; {at_start:.0f} MB before the first",
    )


_MEASUREMENTS: tuple[Callable[[bool], Figure], ...] = (_version, _run, _shown, _cpu, _memory)
GROUP = Group("terminal", _MEASUREMENTS)
