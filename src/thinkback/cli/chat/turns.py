"""One turn, shown as it runs: Ctrl-C ends it, and whatever becomes of it is told without ending the chat."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from thinkback.cli import exits, hints, terminal
from thinkback.cli.chat import fresh, midturn
from thinkback.cli.chat.approval import asker
from thinkback.cli.chat.drawing.frames import frames
from thinkback.cli.chat.drawing.screen import is_withheld
from thinkback.cli.chat.keyboard import SIGNALLED
from thinkback.cli.options import knowing
from thinkback.errors import BusyError, CredentialError, NetworkError, ThinkbackError
from thinkback.model.deltas import Status
from thinkback.session import retry_reasoning_only
from thinkback.session.config import keys

if TYPE_CHECKING:
    from types import FrameType

    from thinkback.cli.chat.chat import Chat
    from thinkback.session.reply import Reply
    from thinkback.session.requests import CallOptions, Prompt
    from thinkback.session.retry_reasoning_only import ContinuedStream

# Ctrl-C that often at once gives up on ending the turn in good order.
_PATIENCE = 3
# The value of reasoning.display that asks for a summary.
_SUMMARY = "summarized"


def ask(chat: Chat, prompt: Prompt) -> None:
    """Ask ``prompt`` and show what comes; the exit code that this would have is left in ``chat.code``."""
    if not chat.session.conversation.configure().place.is_complete:
        raise click.UsageError("no endpoint or model is set: use /endpoint ID, then /model NAME")
    if not _is_free(chat):
        return
    chat.news.follow(chat)  # a command may have gone to a branch of its own
    chat.news.tell(chat)
    stream: ContinuedStream | None = None
    system = chat.system
    chat.code = 0
    was_misnamed = chat.misnamed.get(chat.session.id, True)
    chat.misnamed[chat.session.id] = False
    chat.screen.begin()
    try:
        with one_interrupt() as over:
            stream = retry_reasoning_only.stream(chat.session, prompt, **_options(chat))
            with stream, frames(chat.screen.show) as show:
                for delta in stream:
                    show(delta)
                    midturn.unfold(chat)
                    if isinstance(delta, Status) and delta.state == "tool_finished":
                        midturn.obey(chat)
            over()
    except KeyboardInterrupt:
        chat.code = exits.INTERRUPTED
        arrived = reply_of(stream)
        chat.screen.finish(arrived, None)
        if arrived is None:
            chat.screen.note("interrupted before the message was stored")
    except ThinkbackError as error:
        chat.code = exits.code_of(error.kind)
        if fresh.is_misnamed(error):
            chat.misnamed[chat.session.id] = was_misnamed
        chat.screen.finish(reply_of(stream), hints.for_chat(_located(chat, error)))
        if isinstance(error, CredentialError) and reply_of(stream) is None and _keeps_key(chat):
            chat.system = system
            chat.misnamed[chat.session.id] = was_misnamed
            ask(chat, prompt)
    except Exception:  # a fault of ours: what arrived is shown, and the loop tells of it
        chat.screen.finish(reply_of(stream), None)
        raise
    else:
        chat.screen.finish(stream.reply, None)
        chat.code = exits.code_after(stream.reply)
        if stream.reply.state not in (None, "completed"):
            chat.code = exits.FAILED
        _report_silence(chat, stream)
        _report_withheld(chat, stream.reply)


def _located(chat: Chat, error: ThinkbackError) -> ThinkbackError:
    """``error`` with the endpoint and its host, where the network failed and it does not say where; with the endpoints
    that know the model, where this one does not.
    """
    place = chat.session.conversation.configure().place
    if known := knowing(chat.store, error, place.endpoint, place.model):
        ways = " or ".join(f"/endpoint {id} {place.model}" for id in known)
        error.next_actions += (f"{place.model} is known at {' and '.join(known)}: {ways}",)
    if isinstance(error, NetworkError) and "server" not in error.details:
        target = chat.session.target
        error.message = f"{target.endpoint.id} at {urlsplit(target.base_url).netloc}: {error.message}"
    return error


def _keeps_key(chat: Chat) -> bool:
    """Ask for the key that the endpoint lacks, and keep it on this machine; whether there is one now."""
    names = chat.session.target.endpoint.auth.env
    if not (chat.reader.is_live and names) or keys.find(names) is not None:
        return False
    said = chat.reader.ask(f"{names[0]} (stored on this machine; Enter for none): ", secret=True).strip()
    if said:
        terminal.note(f"{names[0]} is stored in {keys.keep(names[0], said)}")
    return bool(said)


def _is_free(chat: Chat) -> bool:
    """Whether nobody else has a turn under way here; a person says what becomes of one."""
    try:
        chat.session.conversation.line.refuse_leased()
    except BusyError as error:
        chat.code = exits.BUSY
        terminal.complain(error.message if chat.reader.is_live else str(error))
        return chat.reader.is_live and _makes_way(chat)
    return True


def _makes_way(chat: Chat) -> bool:
    """Wait for somebody else's turn, leave or end it, as the person says; whether to go on."""
    said = chat.reader.ask("wait, beside (a branch of its own), take over, or nothing? [w/b/t/N] ").strip().lower()
    holder = chat.session.conversation.holder
    match said[:1]:
        case "w":
            before, holder.wait = holder.wait, math.inf
            try:
                chat.session.conversation.line.refuse_leased()
            finally:
                holder.wait = before
        case "b":
            terminal.note(f"branch {chat.session.branches.beside().name}")
        case "t":
            chat.session.take_over()
        case _:
            return False
    return True


def _report_silence(chat: Chat, stream: ContinuedStream) -> None:
    """Say so where the model thought, also when it was asked again, and gave no answer."""
    if not retry_reasoning_only.is_unanswered(stream.reply):
        return
    asked = len(stream.unanswered) + 1
    again = f", asked {asked} times" if asked > 1 else ""
    chat.screen.note(f"the model reasoned and gave no answer{again}")
    chat.screen.note("  - ask for less effort: /set reasoning.effort low; then /retry")


def _report_withheld(chat: Chat, reply: Reply) -> None:
    """Say once how a summary is asked for, where the endpoint has one and none came."""
    session = chat.session
    if chat.is_summary_told or session.settings.display == _SUMMARY or not is_withheld(reply):
        return
    ways = session.target.rule.controls.display
    if ways.get(_SUMMARY) and ways[_SUMMARY] != ways.get(session.settings.display):
        chat.is_summary_told = True
        chat.screen.note(f"  - ask the provider for a summary of it: /set reasoning.display {_SUMMARY}")


def reply_of(stream: ContinuedStream | None) -> Reply | None:
    """What arrived; ``None`` where the turn ended before it began."""
    try:
        return stream.reply if stream is not None else None
    except ThinkbackError:
        return None


def _options(chat: Chat) -> CallOptions:
    options: CallOptions = {"tools": chat.toolbox.tools(chat.session)}
    if chat.reader.is_live:
        options["approve"] = asker(chat)
    if chat.system is not None:
        options["system"], chat.system = chat.system, None
    return options


@contextmanager
def one_interrupt() -> Iterator[Callable[[], None]]:
    """The first Ctrl-C ends the turn; while that is stored, further ones wait, up to a third.

    A window that is closed ends the turn too, and the chat with it. What is yielded says that the turn is over: then
    there is nothing to end.
    """
    count = 0

    def over() -> None:
        nonlocal count
        count += 1

    def interrupt(number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count == 1 or count >= _PATIENCE:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(SIGNALLED + number)

    ends = [getattr(signal, name) for name in ("SIGINT", "SIGHUP", "SIGTERM") if hasattr(signal, name)]
    before = {number: signal.signal(number, interrupt) for number in ends}
    try:
        yield over
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
