"""``/attach``: images and files that go along with the next message."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from thinkback.cli import terminal
from thinkback.cli.chat.slash.export import files
from thinkback.cli.chat.slash.row import Slash, words
from thinkback.model.blocks import Media
from thinkback.session import requests

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat

ATTACH = "attach [PATH... | none]"
NONE = "none"
_LARGEST = 20_000_000
_FAMILIES = ("image", "audio", "video")


def attach(chat: Chat, rest: str) -> None:
    """Attach files, list what is attached, or attach nothing."""
    named = words(rest, ATTACH)
    if named == [NONE]:
        chat.attached.clear()
    else:
        add(chat, [Path(name).expanduser() for name in named])
    terminal.note(describe(chat))


def add(chat: Chat, paths: Iterable[Path]) -> None:
    """Attach files: all of them or, where one is refused, none."""
    chat.attached.extend([_read(chat, path) for path in paths])


def names(chat: Chat) -> str:
    """The files that go along with the next message."""
    return ", ".join(one.name if isinstance(one, Media) else one.partition(":\n")[0] for one in chat.attached)


def describe(chat: Chat) -> str:
    """What is attached, and how to take it off."""
    if not chat.attached:
        return "nothing is attached"
    return f"attached to the next message: {names(chat)}; /attach none removes it"


def let_go(chat: Chat) -> None:
    """Attach nothing to what is said in another session, and say so."""
    if chat.attached:
        terminal.note(f"not attached in another session: {names(chat)}")
        chat.attached.clear()


def _read(chat: Chat, path: Path) -> Media | str:
    """A file as media, or as text with its name. Raises ``UnsupportedContent`` for media the endpoint cannot take."""
    if path.stat().st_size > _LARGEST:
        raise click.UsageError(f"{path.name} has more than {_LARGEST // 1_000_000} MB: attach a part of it")
    data = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or ""
    if kind.partition("/")[0] in _FAMILIES or kind == "application/pdf":
        media = Media(kind, data=base64.b64encode(data).decode(), name=path.name)
        requests.check_message(requests.message([media]), chat.session.target)
        return media
    try:
        return f"{path.name}:\n```\n{data.decode().rstrip()}\n```"
    except UnicodeDecodeError:
        raise click.UsageError(
            f"{path.name} is neither text nor an image, sound, video or PDF: convert it first"
        ) from None


def _paths(before: Sequence[str], begun: str) -> Iterable[str]:
    return files(begun)


ROWS = (Slash("attach", ATTACH, "Attach images and files to the next message.", attach, complete_path=_paths),)
