"""``demo``: thinkback at work against the referee, on loopback, with no key and no other network.

Nothing is canned: what is printed comes from the run, and a step that does not happen fails the demo.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from thinkback.cli import terminal
from thinkback.cli.decisions import decision_lines

if TYPE_CHECKING:
    from thinkback.model.deltas import Delta
    from thinkback.session.reply import Reply
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore
    from thinkback.turn.plan import Plan
    from thinkback_referee import Referee

ENDPOINT, MODEL, SESSION = "deepseek", "deepseek-v4-pro", "demo"
PROMPTS = ("What is the weather in Oslo?", "And in both Bergen and Rome?")
WEATHER = {"Oslo": "7°C, light rain", "Bergen": "9°C, heavy rain", "Rome": "21°C, clear sky"}
_INDENT = 10
# Seconds between two pieces of a stream: fast enough to read along, slow enough to see that it streams.
_PACE = 0.03


@click.command("demo", short_help="Watch thinkback work; needs no key and no network.")
@click.option(
    "--pace",
    metavar="SECONDS",
    type=click.FloatRange(min=0, max=1),
    default=_PACE,
    show_default=True,
    help="Pause between the pieces of a stream.",
)
def demo_command(pace: float) -> None:
    """Show a conversation with tools, what was sent back and why, and what happens to a client that drops reasoning.

    A strict stand-in for DeepSeek V4 answers on 127.0.0.1; the demo needs no key and no other network.
    """
    import thinkback
    from thinkback.cli.referee import past_proxies, require_referee

    require_referee()
    from thinkback_referee import Referee

    pen = terminal.pen(sys.stdout)
    path = Path(tempfile.mkdtemp(prefix="thinkback-demo-")) / "demo.db"
    with past_proxies(), Referee(pace=pace) as referee, thinkback.open(path, rules={}, settings={}) as store:
        _heading(pen, "A conversation", f"thinkback talks to {MODEL}, played by the referee at {referee.url}")
        session = store.session(
            SESSION, endpoint=ENDPOINT, model=MODEL, base_url=referee.base_url(ENDPOINT), api_key="demo"
        )
        replies = [_ask(store, session, prompt) for prompt in PROMPTS]
        _check_turns(referee, store, session, replies)
        plan = _explain(pen, store, session)
        _prove(pen, store, session, replies)
        _forget(pen, plan)
    _close(pen, path)


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: {WEATHER.get(city, 'unknown')}"


# -- the conversation ------------------------------------------------------------------------------------------------


def _ask(store: SessionStore, session: Session, prompt: str) -> Reply:
    screen = Screen(store)
    screen.line("you", prompt)
    stream = session.stream(prompt, tools=[get_weather])
    for delta in stream:
        screen.show(delta)
    screen.end()
    terminal.out()
    if not screen.reasoned or not screen.answered:
        _fail("the reasoning or the answer did not stream")
    return stream.reply


class Screen:
    """A turn as it happens: reasoning dim and italic, calls, their results, the answer."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._seen = len(store.commits(SESSION))
        self._flow: terminal.Flow | None = None
        self._label = ""
        self._calls: dict[int, list[str]] = {}
        self.reasoned = self.answered = False

    def show(self, delta: Delta) -> None:
        """One delta."""
        from thinkback.model.deltas import ReasoningDelta, Status, TextDelta, ToolCallDelta

        match delta:
            case ReasoningDelta():
                self.reasoned = True
                self._stream("thinks", delta.text, "dim", "italic")
            case TextDelta():
                self.answered = True
                self._stream("answers", delta.text)
            case ToolCallDelta():
                call = self._calls.setdefault(delta.index, ["", ""])
                call[0] += delta.name
                call[1] += delta.arguments
            case Status(state="tool_started"):
                self._show_calls()
            case Status(state="sending"):
                self._show_results()
            case _:
                pass

    def line(self, label: str, text: str, *styles: terminal.Style) -> None:
        """A whole line."""
        self._stream(label, text, *styles)
        self.end()

    def end(self) -> None:
        """Close the column under way."""
        if self._flow is not None:
            self._flow.end()
        self._flow, self._label = None, ""

    def _stream(self, label: str, text: str, *styles: terminal.Style) -> None:
        if self._flow is None or self._label != label:
            self.end()
            self._flow, self._label = terminal.Flow(sys.stdout, label, _INDENT, styles), label
        self._flow.feed(text)

    def _show_calls(self) -> None:
        self.end()
        for name, arguments in self._calls.values():
            self.line("calls", f"{name}({arguments})", "cyan")
        self._calls.clear()

    def _show_results(self) -> None:
        """Results stand in the log by the time the next request goes out."""
        from thinkback.model.blocks import ToolResult

        commits = self._store.commits(SESSION)
        for commit in commits[self._seen :]:
            if isinstance(commit.value, ToolResult):
                self.line("result", commit.value.content, "cyan")
        self._seen = len(commits)


# -- what it shows ---------------------------------------------------------------------------------------------------


def _explain(pen: terminal.Pen, store: SessionStore, session: Session) -> Plan:
    """The decisions of the last request, recomputed from the log; its digest proves that this is what was sent."""
    plan = session.explain()
    blocks = {commit.hash for commit in store.commits(SESSION) if commit.kind == "reasoning"}
    sent = [decision for decision in plan.decisions if decision.action == "field" and decision.block in blocks]
    if len(sent) < len(PROMPTS) + 1 or len(sent) != len(plan.decisions):
        _fail("the last request did not carry all earlier reasoning back")
    _heading(
        pen,
        "What was sent back, and why",
        f"The last request carried {terminal.plural(len(plan.messages), 'message')} and "
        f"{terminal.plural(len(sent), 'block')} of earlier reasoning. Recomputed from the log; the digest of the "
        "bytes agrees:",
    )
    for line in decision_lines(plan, pen):
        terminal.out(line)
    terminal.out()
    return plan


def _prove(pen: terminal.Pen, store: SessionStore, session: Session, replies: list[Reply]) -> None:
    from thinkback_referee import KNOWN, code_word

    word = code_word(PROMPTS[0])
    noted = next((c for c in store.commits(SESSION) if c.kind == "reasoning" and word in c.value.thought), None)  # type: ignore[union-attr]
    if noted is None or KNOWN.format(word=word) not in replies[-1].text:
        _fail("the model did not get the reasoning of its first turn back")
    where = f"block {terminal.short(noted.hash)}"
    text = f"The model noted {word} in its first thought ({where}), and knows it in its last answer: it came back."
    terminal.out(terminal.wrap(text))
    problems = store.fsck()
    if problems:
        _fail(f"the log is damaged: {problems[0].what}")
    counts = f"The log holds {terminal.plural(len(store.commits(SESSION)), 'commit')}; every hash agrees."
    terminal.out(terminal.wrap(counts))
    terminal.out()


def _forget(pen: terminal.Pen, plan: Plan) -> None:
    """The last request once more by a plain HTTP client: with its reasoning, then without."""
    body = json.loads(bytes(plan))
    body["stream"] = False
    body.pop("stream_options", None)
    kept, _ = _post(plan.url, body)
    without = [{k: v for k, v in message.items() if k != "reasoning_content"} for message in body["messages"]]
    forgotten = sum(a != b for a, b in zip(body["messages"], without, strict=True))
    status, text = _post(plan.url, {**body, "messages": without})
    _heading(
        pen,
        "The same conversation by a client that forgets the reasoning",
        f"A plain HTTP client sends the {len(without)} messages of that last request to the same address, twice.",
    )
    screen_row(f"with reasoning_content ({forgotten} messages)", f"HTTP {kept}", pen, "green")
    screen_row("without it", f"HTTP {status}", pen, "red")
    terminal.out(terminal.wrap(text, 2))
    terminal.out()
    if kept != 200 or status != 400 or "reasoning_content" not in text or not forgotten:
        _fail(f"the forgetful client was answered {status}, not refused")


def screen_row(what: str, answer: str, pen: terminal.Pen, style: terminal.Style) -> None:
    """A request of the plain client and its outcome."""
    terminal.out(f"  {terminal.pad(what, 40)}{pen(answer, style)}")


def _post(url: str, body: dict[str, Any]) -> tuple[int, str]:
    """(status, error text or nothing) of a POST by the standard library alone."""
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, Request, build_opener

    headers = {"Content-Type": "application/json", "Authorization": "Bearer demo"}
    request = Request(url, json.dumps(body).encode(), headers)
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=30) as response:
            response.read()
            return int(response.status), ""
    except HTTPError as error:
        with error:
            return error.code, str(json.loads(error.read())["error"]["message"])


def _check_turns(referee: Referee, store: SessionStore, session: Session, replies: list[Reply]) -> None:
    """Whether the conversation really took place as it was shown."""
    refused = [exchange for exchange in referee.requests if exchange.status != 200]
    if refused:
        _fail(f"the referee refused a request: {refused[0].verdict.reason}")
    if any(reply.state != "completed" or len(reply.steps) != 2 for reply in replies):
        _fail("a turn did not complete in two steps")
    results = [commit for commit in store.commits(SESSION) if commit.kind == "tool_result"]
    if len(results) != len(WEATHER):
        _fail(f"{len(results)} tools ran, not {len(WEATHER)}")


def _close(pen: terminal.Pen, path: Path) -> None:
    thinkback = _program()
    terminal.out(pen("Go on", "bold"))
    for what, command in (
        ("look around in this log", f"{thinkback} log --db {shlex.quote(str(path))}"),
        ("remove it, which nothing else does", f"rm -r {shlex.quote(str(path.parent))}"),
        ("talk to a model of your own", f'{thinkback} run "..." --endpoint ID --model NAME'),
    ):
        terminal.out(f"  {what}:")
        terminal.out(f"    {pen(command, 'cyan')}")


def _program() -> str:
    """This program as the shell finds it that the demo was started from: by name only where that is installed."""
    found, called = shutil.which("thinkback"), sys.argv[0]
    if os.path.isfile(called) and not called.endswith(".py"):
        return "thinkback" if found is not None and os.path.samefile(found, called) else shlex.quote(called)
    # a checkout's sources may be on the path of this process alone
    path = os.environ.get("PYTHONPATH")
    place = f"PYTHONPATH={shlex.quote(path)} " if path else ""
    return f"{place}{shlex.quote(sys.executable)} -m thinkback"


def _heading(pen: terminal.Pen, title: str, text: str) -> None:
    terminal.out(pen(title, "bold"))
    terminal.out(pen(terminal.wrap(text), "dim"))
    terminal.out()


def _fail(what: str) -> NoReturn:
    from thinkback.errors import ThinkbackError

    raise ThinkbackError(f"the demo failed: {what}")
