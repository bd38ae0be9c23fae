"""``/app``: what a conversation is for. Apps do not share one: another app begins another session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from thinkback.cli import terminal
from thinkback.cli.chat import fresh
from thinkback.cli.chat.slash import attach
from thinkback.cli.chat.slash.row import Slash, words
from thinkback.cli.config.apps import work_of

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat

APP = "app [NAME | none]"
NONE = "none"


def app(chat: Chat, rest: str) -> None:
    """List the apps, take one, or go on without."""
    from thinkback.session import apps

    match words(rest, APP, most=1):
        case [name] if name == NONE:
            chat.session.unset(apps.KEY)
        case [name]:
            apps.find(name)
            _take(chat, name)
        case _:
            from thinkback.cli.config.apps import print_apps

            print_apps(apps.listed())
    now = chat.session.app
    terminal.out(f"session {terminal.clean(chat.session.name)}: {now.name if now is not None else 'no app'}")
    if now is not None and now.tools:
        terminal.note(work_of(chat.session))


def _take(chat: Chat, name: str) -> None:
    from thinkback.session import apps

    session = chat.session
    if session.app is not None and session.app.id == name:
        return
    if not session.log(kinds=("user",)):
        session.set(apps.KEY, name)
        return
    attach.let_go(chat)
    here = session.conversation.configure().place
    chat.session = chat.store.session(
        fresh.name(), endpoint=here.endpoint, model=here.model, base_url=here.base_url, api_key=here.api_key, app=name
    )
    chat.begun[chat.session.id] = None
    terminal.note(f"each app has its own conversations; /resume {session.name} goes back")


def _names(_chat: Chat, before: Sequence[str]) -> Iterable[str]:
    from thinkback.session import apps

    return () if before else (*(row.id for row in apps.listed()), NONE)


ROWS = (Slash("app", APP, "List the apps, or start a new session with one.", app, _names),)
