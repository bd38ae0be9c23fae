"""The examples of the documentation, run as they stand."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from tests.cli.conftest import Inside
from thinkback.cli.app import group
from thinkback.cli.chat.table import find
from thinkback.cli.referee import referee_command
from thinkback.rules import load_rulebook
from thinkback_referee import Referee

ROOT = Path(__file__).parents[2]
PORT = next(option.default for option in referee_command.params if option.name == "port")


def point_endpoints_at(referee: Referee, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's rule file that moves the endpoints of the examples to the referee."""
    place.mkdir()
    (place / "rules.toml").write_text(
        f"""
        [[endpoint]]
        id = "deepseek"
        name = "DeepSeek"
        base_url = "{referee.base_url("deepseek")}"
        auth = {{ env = ["DEEPSEEK_API_KEY"] }}
        source = "a test"

        [[endpoint]]
        id = "referee"
        name = "The referee"
        base_url = "{referee.base_url("deepseek")}"
        headers = {{ Authorization = "Bearer any" }}
        auth = {{ scheme = "none" }}
        source = "a test"

        [[endpoint]]
        id = "kimi"
        name = "Kimi"
        base_url = "{referee.base_url("kimi")}"
        auth = {{ env = ["DEEPSEEK_API_KEY"] }}
        source = "a test"

        [[endpoint]]
        id = "anthropic"
        name = "Anthropic"
        base_url = "{referee.base_url("anthropic")}"
        dialect = "anthropic"
        path = "/messages"
        auth = {{ scheme = "header", header = "x-api-key", env = ["ANTHROPIC_API_KEY"] }}
        headers = {{ anthropic-version = "2023-06-01" }}
        source = "a test"
        """
    )
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(place))
    monkeypatch.setenv("DEEPSEEK_API_KEY", "a-key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another-key")


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("library.md", "completed"),
        ("history.md", "both_edit"),
        ("agents.md", "Oslo: rain"),
        ("profiles.md", "claude-opus-4-6 completed"),
    ],
)
@pytest.mark.filterwarnings("ignore:this voids what goes back")
def test_a_guide_runs_as_it_stands(
    page: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every Python block of a guide runs, in order, in one namespace, and every request is accepted."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    with Referee() as referee:
        point_endpoints_at(referee, tmp_path / "configuration", monkeypatch)
        namespace: dict[str, object] = {"__name__": "guide"}
        for block in blocks:
            exec(compile(block, f"docs/{page}", "exec"), namespace)
        statuses = [exchange.status for exchange in referee.requests]

    assert len(blocks) > 4
    assert {200} == set(statuses)
    assert shown in capsys.readouterr().out


def test_the_example_on_the_first_screen_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first Python block of the README runs as it stands beside the referee, and its tool is called.

    What it needs is installed on the page before.
    """
    readme = (ROOT / "README.md").read_text()
    before, block = readme.partition("```python\n")[0], re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    assert block is not None
    assert "pip install . ./referee\n" in before
    assert load_rulebook().endpoint("referee").base_url == f"http://127.0.0.1:{PORT}/deepseek"
    said = 'endpoint="referee"'
    assert said in block[1]
    with Referee() as referee:
        there = f"{said}, base_url={referee.base_url('deepseek')!r}"
        exec(compile(block[1].replace(said, there), "README.md", "exec"), {"__name__": "example"})

    shown = capsys.readouterr().out
    assert "3 tests failed" in shown
    assert "still known" in shown


# -- what is pasted into a shell --------------------------------------------------------------------------------------

PLACE = ("--endpoint", "deepseek", "--model", "deepseek-v4-pro")
PAGES = ("README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md"))))
SESSIONS = ("s", "sky", "review", "talk")
ELSEWHERE = {
    "referee": "serves until it is ended: tests/cli/test_referee_command.py",
    "gateway --": "serves until it is ended: tests/docs/test_gateway_page.py, tests/gateway/commands",
    "view": "serves until it is ended: tests/cli/test_view.py",
    "mcp --": "serves until it is ended: tests/docs/test_mcp_page.py, tests/cli/mcp",
    "keys set anthropic --keyring": "wants a keyring of the system: tests/cli/config/test_keys.py",
    "probe kimi": "costs money, so that it asks on a terminal: tests/cli/config/test_probe.py",
    "probe lab": "is about a host that nobody has: tests/cli/config/test_probe.py",
    "endpoints lab": "is about the same host",
    "import --program": "needs the histories of another program: tests/cli/history/test_exchange.py",
    "chat --app reviewer": "its server of tools is an example: tests/docs/test_apps_page.py",
    "run --app reviewer": "its server of tools is an example: tests/docs/test_apps_page.py",
}
"""Beginnings of commands that are not run here, and why."""


class Pasted(NamedTuple):
    """A command of a page: ``words`` behind the program's name."""

    page: str
    words: tuple[str, ...]

    @property
    def line(self) -> str:
        return shlex.join(self.words)

    @property
    def reason(self) -> str:
        """Why it is not run, if it is not."""
        return next((why for start, why in ELSEWHERE.items() if self.line.startswith(start)), "")


def pasted(page: str) -> Iterator[Pasted]:
    """The commands in the blocks of a page that are for a shell, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines() if language in ("", "sh", "console") else ():
            for piece in re.findall(r"\$\((thinkback .*?)\)", line) or [line.removeprefix("$ ")]:
                yield from _commands(page, piece)


def _commands(page: str, line: str) -> Iterator[Pasted]:
    if not re.match(r"(?:[A-Z_]+=\S* )*thinkback |[a-z ]+ \| thinkback ", line):
        return
    found: list[list[str]] = [[]]
    for word in shlex.split(line, comments=True):
        if word in ("|", "&&"):
            found.append([])
        elif found[-1] or not re.fullmatch(r"[A-Z_]+=.*", word):
            found[-1].append(word)
    yield from (Pasted(page, tuple(words[1:])) for words in found if words[:1] == ["thinkback"])


@pytest.mark.parametrize("page", [page for page in PAGES if any(pasted(page))])
@pytest.mark.filterwarnings("ignore")
def test_what_a_page_says_can_be_pasted(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command of a page, in order, in a place of its own where some conversations were had."""
    inside = Inside(tmp_path, monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    with Referee() as referee:
        point_endpoints_at(referee, inside.config, monkeypatch)
        for name in SESSIONS:
            assert 0 == inside("run", "Hello", "--session", name, *PLACE).code
        (tmp_path / "trial").mkdir()
        shutil.copy(inside.db, tmp_path / "trial" / "default.db")
        (inside.config / "apps").mkdir()
        (example,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "apps.md").read_text(), re.DOTALL)
        (inside.config / "apps" / "reviewer.toml").write_text(example)
        inside("profile", "save", "usual", *PLACE)
        inside("profile", "default", "usual")
        told = []
        for command in pasted(page):
            if not command.reason:
                done = inside(*command.words, stdin=b"sk-0123456789abcdef\n")
                told.append((command.line, done.code, done.err[-300:] if done.code else ""))

    assert [] == [failed for failed in told if failed[1]]
    assert told or all(command.reason for command in pasted(page))


def test_every_reason_is_needed() -> None:
    """What is run elsewhere stands on a page."""
    left = {command.reason for page in PAGES for command in pasted(page)}

    assert set(ELSEWHERE.values()) == left - {""}


# -- what hints, errors, help and pages name in backquotes ------------------------------------------------------------


def named() -> Iterator[tuple[str, str]]:
    """(where, command) of every command in backquotes, in the strings of the sources and on pages; in the sources also
    behind a colon, and of ``hints.command``.
    """
    for page in (*PAGES, "SECURITY.md", "CONTRIBUTING.md"):
        if page == "docs/format.md":  # what digests begin with looks like commands
            continue
        text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        yield from ((page, " ".join(found.split())) for found in re.findall(r"`thinkback\s+([^`]+)`", text))
    for file in sorted((ROOT / "src").rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if file.name == "hints.py" or not re.search(r"[`:] ?thinkback |hints\.command", source):  # patterns, or nothing
            continue
        nodes = list(ast.walk(ast.parse(source)))
        parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in nodes:
            text = ""
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                text = node.value
            elif isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "hints.command":
                line, *names = (ast.unparse(each) for each in node.args)
                options = [f"--{each.arg} X" for each in node.keywords]
                placed = ["codex" if "connect" in line else "X" for _ in names]
                yield file.name, " ".join([re.sub(r"\{.*?\}", "X", line).strip("f'\""), *options, *placed])
            for mark, *found in re.findall(r"(`?)`thinkback\s+([^`{}]+)`|: thinkback ([^`{}.]+)$", text):
                yield f"{'a docstring of ' if mark else ''}{file.name}", " ".join("".join(found).split())


def fault(line: str) -> str:
    """What is wrong with a command line, as click reads it; nothing where it may be typed."""
    words = shlex.split(line)
    found: click.Command = group
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        below = found.get_command(click.Context(found), words[0])
        if below is None:
            return f"there is no {words[0]}"
        found, words = below, words[1:]
    if not words:  # a command as such
        return ""
    try:
        with found.make_context(found.name, words):
            return ""
    except click.exceptions.Exit:
        return ""
    except click.UsageError as error:
        return error.format_message()


def test_every_command_that_is_named_may_be_typed() -> None:
    """It is there and takes what is named with it; prose on pages may leave arguments out."""
    every = {(where, line) for where, line in named() if "|" not in line}

    assert len(every) > 100
    wrong = sorted((where, line, why) for where, line in every if (why := fault(line)))
    partial = re.compile("Missing|.* requires|Invalid value .*: '[A-Z]+' is not one of")
    assert [] == [row for row in wrong if row[0].endswith(".py") or not partial.match(row[2])]


def test_every_slash_command_that_is_named_is_there() -> None:
    """In the chat's notes, errors and help; a name that is no command raises."""
    files = [*(ROOT / "src/thinkback/cli/chat").rglob("*.py"), ROOT / "src/thinkback/cli/hints.py"]
    texts = " ".join(
        str(node.value) if isinstance(node, ast.Constant) else "X"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant | ast.FormattedValue)
    )
    told = re.findall(r"(?<![\w.~/)\]}>-])/([a-z]+)\b(?!/)", texts)

    assert len(set(map(find, told))) > 15


# -- the way through the pages -----------------------------------------------------------------------------------------


def test_the_index_leads_to_every_page_and_no_link_leads_nowhere() -> None:
    """Of the README and of the index, which the README names; the README stays within two screens."""
    links = {}
    for page in (ROOT / "README.md", ROOT / "docs" / "README.md"):
        found = re.findall(r"\]\(([^):#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        links[page.parent.name if page.parent != ROOT else ""] = {(page.parent / link).resolve() for link in found}
    pages = set((ROOT / "docs").glob("*.md")) - {ROOT / "docs" / "README.md"}

    assert set() == {link for found in links.values() for link in found if not link.exists()}
    assert pages <= links["docs"]
    assert ROOT / "docs" / "README.md" in links[""]
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
