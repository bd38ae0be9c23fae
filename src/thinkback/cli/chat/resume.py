"""Going on with a session: what was said and thought before is shown, and requests go where the last one went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkback.cli import terminal
from thinkback.cli.chat import said, thoughts
from thinkback.cli.chat.drawing import calls
from thinkback.cli.chat.slash import attach
from thinkback.cli.options import opened
from thinkback.errors import BusyError
from thinkback.model.blocks import Media, Text, ToolCall, ToolResult
from thinkback.model.commits import Message, TurnEnded
from thinkback.model.curation import curate
from thinkback.session.destination import Destination, destination_of
from thinkback.session.transcripts.endings import endings
from thinkback.session.transcripts.wording import media_label, with_media

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkback.cli.chat.chat import Chat
    from thinkback.model.commits import Commit

TURNS = 10
# What a turn consists of, as far as its end can be told by it.
_TURN = ("user", "assistant", "reasoning", "tool_call", "tool_result", "turn_ended")


def go_on(chat: Chat, name: str) -> None:
    """Make the session ``name``, which must be there, the one of the chat."""
    attach.let_go(chat)
    info, here, book = chat.store.find(name), chat.session.conversation.configure().place, chat.store.rulebook
    place = chat.stand_in.at(destination_of(chat.store, info, chat.store.commits(info.id), Destination()))
    if place.endpoint:
        chat.session = opened(chat.store, info.name, place)
        if chat.session.conversation.configure().place.address(book) == here.address(book):
            chat.session.use(api_key=here.api_key)
    else:  # nothing was asked there yet: it goes where this chat goes
        chat.session = chat.store.session(
            info.name, endpoint=here.endpoint, model=here.model, base_url=here.base_url, api_key=here.api_key
        )
    show(chat)


def show(chat: Chat, turns: int = TURNS) -> None:
    """The last ``turns`` as they were, partial ones marked as such."""
    session = chat.session
    chat.screen.take_look()
    commits = session.log()
    curation = curate(commits)
    begins = [commit.seq for commit in said.messages(commits, curation)]
    first = begins[-turns] if len(begins) > turns else 0
    branch = session.branches.current or "no branch"
    left_out = len(begins) - turns
    earlier = f", {terminal.plural(left_out, 'turn')} before that" if left_out > 0 else ""
    terminal.note(f"session {session.name}, {branch}, {terminal.plural(len(commits), 'commit')}{earlier}")
    draw(chat, commits, commits[first:])
    _report_unanswered(chat, commits)


def _report_unanswered(chat: Chat, commits: Sequence[Commit]) -> None:
    """Say that the last turn has no end: another process has it under way, or it was broken off."""
    kinds = [commit.kind for commit in commits if commit.kind in _TURN and not commit.edit]
    if kinds[-1:] not in (["user"], ["tool_call"], ["tool_result"]):
        return
    try:
        chat.session.conversation.line.refuse_leased()
    except BusyError as error:
        terminal.note(error.message)
    else:
        terminal.note(
            "the last message has no complete answer: the program that sent it stopped; /retry sends it again"
        )


def draw(chat: Chat, commits: Sequence[Commit], shown: Sequence[Commit]) -> None:
    """Those of ``commits`` that are to be ``shown``, as they were said."""
    curation = curate(commits)
    told = endings(commits, shown)
    thought = {one.response: one for one in thoughts.of(chat.session)}
    called: dict[str, str] = {}
    for commit in shown:
        if commit.edit:
            continue
        match curation.value(commit):
            case Message() as message if said.is_automatic(commit, curation):
                chat.screen.note(f"(asked to go on: {message.text})")
            case Message() as message if commit.kind in ("user", "assistant"):
                chat.screen.message(commit.kind, with_media(message))
            case Text() as text if text.text.strip():
                chat.screen.message("assistant", text.text)
            case ToolCall() as call:
                called[call.id] = calls.words(call.name, call.arguments)
            case ToolResult() as result:
                words = called.pop(result.id, result.name)
                chat.screen.note(calls.ended(words, result.content, failed=result.is_error))
            case Media() as media:
                chat.screen.note(media_label(media))
            case TurnEnded() as ended if ended.state != "completed":
                chat.screen.ended(ended.state, ended.reason)
            case _ if commit.kind == "reasoning" and commit.response in thought:
                found = thought.pop(commit.response)
                chat.screen.thought(found.text, found.seconds or None, found.tokens or None, estimated=found.estimated)
            case _:
                pass
        if commit.hash in told:
            chat.screen.note(f"({told[commit.hash]})")
    for words in called.values():
        chat.screen.note(f"{words} · no result")
    chat.screen.rest()
