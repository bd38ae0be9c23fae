"""Paths that a model names, confined to the workspace.

A path is resolved when it is used: ``..``, absolute paths and links may lead anywhere within the workspace and nowhere
else. What was resolved is then opened part by part from the workspace's own descriptor, never following a link, so that
one put there in between is refused too. A command that the model runs is not confined: permissions are for that.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from thinkback.errors import NotFoundError, ToolFailed

_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe that nobody writes to must not hang.
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Workspace(NamedTuple):
    """A directory, resolved, and what stays closed to the model wherever it is: files and directories."""

    root: str
    closed: tuple[str, ...] = ()


class WorkspacePath(NamedTuple):
    """Where something stands in the workspace: the parts of its path, and that path as the model is told it."""

    parts: tuple[str, ...]
    shown: str


def workspace_at(path: str | os.PathLike[str], closed: Sequence[str | os.PathLike[str]] = ()) -> Workspace:
    """The workspace at ``path``. Raises ``NotFoundError`` where there is no such directory."""
    root = os.path.realpath(path)
    if not os.path.isdir(root):
        raise NotFoundError(
            f"the workspace {root} is not a directory", details={"path": root}, next_actions=("make it first",)
        )
    return Workspace(root, tuple(os.path.realpath(place) for place in closed))


def resolve(workspace: Workspace, path: str) -> WorkspacePath:
    """Where ``path`` leads now. Raises ``ToolFailed`` outside the workspace."""
    try:
        path.encode()
        real = os.path.realpath(os.path.join(workspace.root, path))
    except ValueError:
        raise ToolFailed(f"{path!r} is not a path: it holds a character that no file name has") from None
    if not _within(real, workspace.root):
        raise ToolFailed(
            f"{path} leads out of the workspace {workspace.root}",
            next_actions=("Only what is in the workspace can be used: give a path in it, relative to it.",),
        )
    if any(_within(real, place) for place in workspace.closed):
        raise ToolFailed(f"{path} belongs to thinkback itself: tools do not touch it")
    shown = os.path.relpath(real, workspace.root)
    return WorkspacePath(() if shown == "." else tuple(shown.split(os.sep)), shown)


def holds_closed(workspace: Workspace, place: WorkspacePath) -> bool:
    """Whether a directory that stays closed is somewhere below ``place``."""
    here = os.path.join(workspace.root, *place.parts)
    return any(os.path.isdir(closed) and _within(closed, here) for closed in workspace.closed)


def _within(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip(os.sep) + os.sep)


@contextmanager
def parent(workspace: Workspace, place: WorkspacePath, *, create: bool = False) -> Iterator[int]:
    """A descriptor of the directory that ``place`` is in; ``create`` makes it. Raises ``OSError``."""
    here = os.open(workspace.root, _DIRECTORY)
    try:
        for part in place.parts[:-1]:
            if create:
                _make(part, here)
            there = os.open(part, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = there
        yield here
    finally:
        os.close(here)


@contextmanager
def opened(workspace: Workspace, place: WorkspacePath) -> Iterator[int]:
    """A descriptor to read the file or directory at ``place``. Raises ``OSError``."""
    with parent(workspace, place) as directory:
        descriptor = os.open(place.parts[-1] if place.parts else ".", os.O_RDONLY | _FILE, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def is_gits(place: WorkspacePath) -> bool:
    """Whether ``place`` is where git keeps what it goes by: programs are named there, which it runs by itself."""
    return any(part.lower() == ".git" for part in place.parts)


def kind(mode: int) -> str:
    """What a file is, in words, from its ``st_mode``; empty for a plain file."""
    if stat.S_ISREG(mode):
        return ""
    return "a directory" if stat.S_ISDIR(mode) else "not a plain file"


@contextmanager
def translate_os_errors(place: WorkspacePath) -> Iterator[None]:
    """What the system says of ``place``, in words for the model."""
    try:
        yield
    except FileNotFoundError:
        raise ToolFailed(
            f"{place.shown} does not exist", next_actions=("list shows what a directory holds.",)
        ) from None
    except IsADirectoryError:
        raise ToolFailed(f"{place.shown} is a directory", next_actions=("Give a file in it.",)) from None
    except NotADirectoryError:
        raise ToolFailed(f"a part of {place.shown} is not a directory, or has become a link meanwhile") from None
    except OSError as error:
        raise ToolFailed(f"{place.shown}: {error.strerror or error}") from None


def _make(name: str, directory: int) -> None:
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        return
