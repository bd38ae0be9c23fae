"""``run``: one prompt, one answer. The answer goes to standard output, the reasoning to standard error.

Where standard output is a terminal the answer streams; elsewhere it is printed when it is whole, because a late
closing tag may turn text into reasoning.
"""

from __future__ import annotations

import json
import os
import select
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from thinkback.cli import complete, exits, hints, terminal
from thinkback.cli.config.apps import app_of, placed, tools_of
from thinkback.cli.options import (
    DIALECTS,
    Names,
    app_option,
    beside_option,
    busy_options,
    continue_option,
    db_option,
    existing_log,
    json_option,
    last_used,
    log_path,
    naming_endpoints,
    open_log,
    opened,
    pairs,
    place_in,
    place_options,
    profile_option,
    refuse_two_sessions,
)
from thinkback.session.destination import Destination, after, check_destination, destination_of

if TYPE_CHECKING:
    from thinkback.cli.chat.drawing.look import Look
    from thinkback.cli.chat.drawing.thinking import Thinking
    from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified
    from thinkback.session.reply import Reply
    from thinkback.session.retry_reasoning_only import ContinuedStream
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore

# Fields of a request, in any dialect, that have options, or a writer, of their own.
_TAKEN = {
    **dict.fromkeys(("messages", "input", "contents"), "PROMPT"),
    **dict.fromkeys(("system", "instructions", "systemInstruction", "system_instruction"), "--system"),
    **dict.fromkeys(("model", "modelId"), "--model"),
    "tools": "a program",
    "stream": "--no-stream",
}
# What of the turn itself is worth a line.
_TOLD = frozenset(
    {"retrying", "failing_over", "repairing", "continuing", "budget", "filling", "compacting", "dropping_thoughts"}
)
# Seconds after which it is said that standard input is waited for.
_SILENCE = 2.0
_HELP = f"""\
Send PROMPT and print the answer; reasoning is shown on standard error. A pipe or a file on standard input is appended
to PROMPT after a blank line; with `-`, or without PROMPT, it is the prompt.

Each run is a new session unless --session names one or --continue is given; a session remembers its endpoint and model.
--param takes field names of the endpoint's own dialect.

{DIALECTS}
"""


@click.command("run", short_help="Send one prompt; print the answer and the reasoning.", help=_HELP)
@click.argument("prompt", required=False, default="")
@click.option(
    "--session",
    "-s",
    metavar="NAME",
    default="",
    shell_complete=complete.sessions,
    help="Continue this session; it is created if it does not exist.",
)
@continue_option
@click.option("--system", metavar="TEXT", help="Set the system prompt from now on.")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    shell_complete=complete.assignments,
    help="Set a setting for this request; repeatable.",
)
@click.option(
    "--param",
    "params",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set a field of the request; dots nest, JSON is parsed; repeatable.",
)
@click.option("--no-stream", is_flag=True, help="Request the whole response at once, without streaming.")
@click.option(
    "--ask-again",
    is_flag=True,
    help="If the model only reasons, request its answer, up to 3 times (formerly --continue).",
)
@click.option("--dry-run", is_flag=True, help="Print the request body; send and store nothing.")
@app_option
@profile_option
@place_options
@beside_option
@busy_options
@db_option
@json_option
def run_command(prompt: str, **given: Any) -> None:
    """Ask and print."""
    refuse_two_sessions(given["session"], given["go_on"])
    text, session = _prompt(prompt), given["session"]
    if given["go_on"]:
        with existing_log(given["db"]) as store:
            session = last_used(store).name
    options = {
        "system": given["system"],
        "settings": _settings(given["settings"]),
        "params": _params(given["params"]),
        "stream": not given["no_stream"],
    }
    place = place_in(given)
    if given["dry_run"]:
        from thinkback.cli.dry_run import dry_run

        dry_run(given["db"], session, place, _names(given), text, options, given["as_json"])
        return
    options["times"] = 3 if given["ask_again"] else 0
    _ask(given["db"], session, place, _names(given), text, options, given["as_json"])


def _names(given: Mapping[str, Any]) -> Names:
    return Names(given["app"], given["profile"])


def _ask(
    db: str, name: str, place: Destination, names: Names, text: str, options: dict[str, Any], as_json: bool
) -> None:
    from thinkback.cli.chat import fresh
    from thinkback.cli.referee import APP, ENDPOINT, StandIn, completed
    from thinkback.errors import ProviderError, ThinkbackError
    from thinkback.session import retry_reasoning_only

    with open_log(log_path(db), asks=True) as store:
        known = store.log.find_session(name) if name else None
        given = place
        commits = store.commits(known.id) if known else ()
        place = completed(destination_of(store, known, commits, place, names.profile))
        if place.endpoint == ENDPOINT and not known:
            names = names._replace(app=names.app or APP)
        place = placed(place, names.app or app_of(known, place), store.rulebook)
        is_told = after(Destination(), commits).endpoint == ENDPOINT
        with naming_endpoints(store, given, place), StandIn(is_told=is_told) as stand_in:
            _check(store, place)
            place = stand_in.at(place, given.base_url)
            session = opened(store, known.name if known else name or _fresh_name(), place, *names)
            with tools_of(session) as tools:
                options |= tools
                try:
                    reply = (
                        retry_reasoning_only.chat(session, text, **options)
                        if as_json
                        else _stream(session, text, options)
                    )
                except KeyboardInterrupt:
                    if session.log(kinds=("request", "response")):
                        terminal.note(
                            f"{hints.command('run', 'MESSAGE', session=session.name)} goes on with this session"
                        )
                    raise
                except ThinkbackError as error:
                    is_misnamed = fresh.is_misnamed(error)
                    sent = session.log(kinds=("request", "response") if name and not is_misnamed else ("response",))
                    is_worth_a_look = isinstance(error, ProviderError) and not is_misnamed
                    if known is not None or is_worth_a_look or sent:
                        raise hints.for_shell(error, session.name) from None
                    fresh.forget(store.log, session.id)  # nobody answered, and who runs it again begins anew
                    raise
        if as_json:
            terminal.print_json(_as_json(session, reply))
    _leave(reply)


def _check(store: SessionStore, place: Destination) -> None:
    """Everything that can be wrong before a request is, so that nothing is stored for it."""
    from thinkback.session import requests

    check_destination(place, store.rulebook)
    where = requests.EndpointConfig(
        model=place.model, endpoint=place.endpoint, base_url=place.base_url, key_env=place.key_env
    )
    where.target(store.rulebook)
    where.headers(store.rulebook, streams=False)
    where.authenticator(store.rulebook)


def _stream(session: Session, text: str, options: dict[str, Any]) -> Reply:
    from thinkback.cli.chat.drawing.look import look_of
    from thinkback.session import retry_reasoning_only

    configuration = session.conversation.current()
    place = configuration.place
    screen = Screen(look_of(configuration.settings(options["settings"]), place.endpoint, place.model))
    with retry_reasoning_only.stream(session, text, **options) as stream:
        try:
            for delta in stream:
                screen.show(delta)
        finally:
            screen.end()
            arrived = _reply_of(stream)
            if arrived is not None and not screen.live:
                _print_answer(arrived.text)
    thought = f"; {hints.command('log', session.name)} shows the reasoning" if screen.folds else ""
    terminal.note(f"session {session.name}: {hints.command('why', session.name)} shows what was sent back{thought}")
    return stream.reply


def _reply_of(stream: ContinuedStream) -> Reply | None:
    """What arrived, also of a turn that failed; ``None`` where an interrupt came first."""
    from thinkback.errors import ThinkbackError

    try:
        return stream.reply
    except ThinkbackError:
        return None


def _print_answer(text: str) -> None:
    if text:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


class Screen:
    """Deltas as they arrive: reasoning on standard error, the answer on standard output if ``live``.

    Text that turns out to be reasoning is shown as such where it was not shown yet: where the answer is not ``live``.
    On a terminal reasoning looks as in the chat, and calls of tools are a line each; elsewhere it is the text.
    ``folds``: of a thought one line is left.
    """

    def __init__(self, look: Look) -> None:
        from thinkback.cli.chat.drawing.calls import Calls
        from thinkback.cli.chat.drawing.look import unfolded
        from thinkback.cli.chat.drawing.surface import Surface

        self.live = sys.stdout.isatty()
        self.folds = False
        self._calls = Calls()
        # nobody would read an answer of the terminal that came late but the shell
        self._surface = Surface(sys.stderr, look, asks=False)
        self._look = look if self._surface.draws else unfolded(look)
        self._thinking: Thinking | None = None
        self._open = ""
        self._ends_line = True
        # The block that was thought last, of the response under way.
        self._thought = -1

    def show(self, delta: Delta) -> None:
        """One delta."""
        from thinkback.model.deltas import ReasoningDelta, Reclassified, Status, TextDelta, ToolCallDelta

        match delta:
            case TextDelta() if self.live:
                self._write(sys.stdout, "answer", delta.text)
            case Reclassified() if self.live:
                self.end()
                terminal.note("(what stands above was reasoning)")
            case ReasoningDelta() | Reclassified() if delta.text and (self._surface.draws or self._is_folded):
                self._think(delta)
            case ReasoningDelta() | Reclassified() if self._look.mode != "hidden":
                self._think_aloud(delta)
            case ToolCallDelta() if self.live:
                self._calls.add(delta)
            case Status(state="tool_started") if self.live:
                self._calls.start(delta, time.monotonic())
            case Status(state="tool_finished") if self.live:
                self.end()
                terminal.note(self._calls.end(delta, time.monotonic()))
            case Status(state="sending"):
                self.end()
                self._thought = -1
            case Status(state="branched"):
                self.end()
                terminal.note(terminal.BRANCHED.format(delta.detail))
            case Status() if delta.state in _TOLD:
                self.end()
                terminal.note(f"{delta.state.replace('_', ' ')}: {delta.detail}")
            case _:
                pass

    def end(self) -> None:
        """Close the line under way."""
        if self._thinking is not None:
            self._thinking.close(time.monotonic())
            self._thinking = None
        if self._open and not self._ends_line:
            stream = sys.stderr if self._open == "reasoning" else sys.stdout
            stream.write("\n")
            stream.flush()
        self._open, self._ends_line = "", True

    def _think(self, delta: ReasoningDelta | Reclassified) -> None:
        from thinkback.cli.chat.drawing.look import words_for
        from thinkback.cli.chat.drawing.thinking import Thinking

        now = time.monotonic()
        self.folds = self._is_folded
        if self._thinking is None:
            self.end()
            self._thinking = Thinking(self._surface, self._look.mode, words_for(self._look), now)
        self._thinking.feed(delta.text, delta.index, now)

    @property
    def _is_folded(self) -> bool:
        return self._look.mode == "collapsed"

    def _think_aloud(self, delta: ReasoningDelta | Reclassified) -> None:
        """Without a terminal: the text, a blank line between thoughts."""
        from thinkback.model.texts import BETWEEN_THOUGHTS

        text = delta.text
        if not text:
            return
        if self._thought not in (-1, delta.index) and self._open == "reasoning":
            text = BETWEEN_THOUGHTS + text.lstrip()
        self._thought = delta.index
        self._write(sys.stderr, "reasoning", text)

    def _write(self, stream: TextIO, what: str, text: str) -> None:
        if self._thinking is not None or self._open != what:
            self.end()
            self._open = what
        stream.write(terminal.clean(text))
        stream.flush()
        self._ends_line = text.endswith("\n")


def _leave(reply: Reply) -> None:
    """Tell what kept the answer away, or its end, if anything did."""
    if reply.state is None:
        for call in reply.tool_calls:
            terminal.note(f"the model calls {call.name}({call.arguments}): there is no such tool; --app brings tools")
    elif reply.state != "completed":
        terminal.complain(f"the turn ended: {reply.state}{f': {reply.reason}' if reply.reason else ''}")
        if reply.state == "denied":
            terminal.note(
                "  - `run` asks nobody for approval: use --set permissions.mode=auto, or --set permissions.rules=..."
            )
        sys.exit(exits.FAILED)
    if not reply.ending:
        return
    finish = reply.steps[-1].result.response.finish
    terminal.complain(f"{reply.ending} (it finished with {finish!r})")
    if reply.outcome in ("max_tokens_in_reasoning", "reasoning_only"):
        terminal.note(
            "  - allow more output: --param max_tokens=4096; or ask for less effort: --set reasoning.effort=low; "
            "or ask for its answer: --ask-again"
        )
    sys.exit(exits.code_after(reply))


def _as_json(session: Session, reply: Reply) -> dict[str, Any]:
    import msgspec

    target = session.target
    usage = reply.usage
    return {
        "session": session.name,
        "endpoint": target.endpoint.id,
        "model": target.model,
        "state": reply.state,
        "text": reply.text,
        "reasoning": reply.reasoning,
        "tool_calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.tool_calls],
        "outcome": reply.outcome or None,
        "finish": reply.steps[-1].result.response.finish if reply.steps else None,
        "usage": {name: getattr(usage, name) if usage else None for name in ("input", "output", "reasoning", "cached")},
        "decisions": [msgspec.structs.asdict(decision) for decision in reply.decisions],
        "commits": [commit.hash for step in reply.steps for commit in step.commits],
    }


def _fresh_name() -> str:
    import secrets

    return time.strftime("run-%Y%m%d-%H%M%S-", time.localtime()) + secrets.token_hex(2)


def _prompt(prompt: str) -> str:
    """What is asked: ``prompt``, standard input, or both."""
    said = "" if prompt == "-" else prompt
    is_there = sys.stdin is not None  # the caller may have closed it
    is_all = is_there and (prompt == "-" or (not prompt and not sys.stdin.isatty()))
    read = (sys.stdin.read() if is_all else _fed() if is_there else "").removesuffix("\n")
    for where, text in (("the prompt", said), ("standard input", read)):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            byte = ord(text[error.start]) & 0xFF
            raise click.UsageError(f"{where} is not UTF-8: byte 0x{byte:02x} at character {error.start + 1}") from None
    whole = "\n\n".join(text for text in (said, read) if text.strip())
    if not whole:
        raise click.UsageError("the prompt is empty")
    return whole


def _fed() -> str:
    """What a pipe or file on standard input holds. A terminal, a device and a socket are not read: programs that start
    this leave them open.
    """
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except OSError:  # a stream without a descriptor
        return sys.stdin.read()
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind)):
        return ""
    if sys.platform != "win32" and not select.select([sys.stdin], [], [], _SILENCE)[0]:
        terminal.note("waiting for standard input to end; with < /dev/null the prompt goes alone")
    return sys.stdin.read()


def _settings(given: Sequence[str]) -> Mapping[str, object]:
    from thinkback.settings import Layers

    wanted = dict(pairs("--set", given))
    Layers().replace("call", wanted)
    return wanted


def _params(given: Sequence[str]) -> dict[str, Any]:
    from thinkback.model.target import merge

    params: dict[str, Any] = {}
    for key, text in pairs("--param", given):
        try:
            value: Any = json.loads(text)
        except ValueError:
            value = text
        parts = key.split(".")
        if parts[0] in _TAKEN:
            raise click.UsageError(f"--param cannot set {parts[0]}: use {_TAKEN[parts[0]]}")
        for part in reversed(parts):
            value = {part: value}
        params = merge(params, value)
    return params
