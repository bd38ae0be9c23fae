"""Command lines that only read, by their words alone, so that nobody need be asked.

Promises: of what is called safe, nothing writes, runs a program that its words choose, or names a place outside the
directory it runs in. Must not: guess; what is not known is not safe. Where links lead is not seen here, nor what the
configuration of a git repository has git run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# What a shell gives a meaning of its own, quoted or not.
METACHARACTERS = re.compile(r"[;&|<>$`\\(){}\n\r]")
_WORD = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")
_QUOTES = re.compile(r"""['"]""")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
# Wild words that may become an option, or the parent directory.
_TREACHEROUS = re.compile(r"""^[*?\[\-'"]|(?:^|/)\.[^/]*[*?[]""")


class _Reader(NamedTuple):
    """A program that reads. ``letters`` and ``words`` are its options that do more, or that take from a file what to
    read: ``o`` for ``-o``, ``--output``.
    """

    letters: str = ""
    words: tuple[str, ...] = ()


_PLAIN = "basename cat cmp cut df dirname echo false grep head ls nl pwd readlink realpath stat tac tail true which"
_READERS = {
    **dict.fromkeys(_PLAIN.split(), _Reader()),
    **dict.fromkeys(("du", "wc"), _Reader("", ("--files0-from",))),
    **dict.fromkeys(("md5sum", "sha256sum"), _Reader("c", ("--check",))),
    "diff": _Reader("l", ("--paginate",)),
    "file": _Reader("Cf", ("--compile", "--files-from")),
    "rg": _Reader("", ("--pre", "--hostname-bin")),
    "sort": _Reader("oT", ("--output", "--compress-program", "--temporary-directory", "--files0-from")),
    "tree": _Reader("oR"),
}
# Predicates of ``find`` that act begin so, or take places from a file.
_ACTING = ("-delete", "-exec", "-ok", "-fprint", "-fls", "-files0")
_GIT_PLAIN = "blame cat-file diff log ls-files ls-tree rev-list rev-parse show status"
_GIT = {
    **dict.fromkeys(
        _GIT_PLAIN.split(), _Reader("", ("--output", "--ext-diff", "--textconv", "--filters", "--show-signature"))
    ),
    "describe": _Reader("", ("--dirty", "--broken")),
    "grep": _Reader("O", ("--open-files-in-pager", "--ext-grep", "--textconv")),
}
# Subcommands of git that only list where nothing else is said.
_LISTING = {
    "branch": frozenset({"-a", "-r", "-v", "-vv", "--all", "--list", "--remotes", "--show-current"}),
    "remote": frozenset({"-v", "--verbose"}),
    "tag": frozenset({"-l", "--list"}),
}


def is_safe(command: str) -> bool:
    """Whether ``command`` is one simple command that only reads."""
    if METACHARACTERS.search(command) or not command.isprintable() or _QUOTES.search(_WORD.sub("", command)):
        return False
    written = _WORD.findall(command)
    if not written or any(map(_is_treacherous, written)):
        return False
    program, *arguments = (_QUOTES.sub("", word) for word in written)
    if any(map(_leads_outside, arguments)):
        return False
    if program == "find":
        return not any(word.startswith(_ACTING) for word in arguments)
    if program == "git":
        return _git_reads(arguments)
    return program in _READERS and _only_reads(_READERS[program], arguments)


def _git_reads(arguments: Sequence[str]) -> bool:
    name, *rest = arguments or [""]
    if name in _LISTING:
        return _LISTING[name].issuperset(rest)
    # a signature that is to be shown is checked by a program
    return name in _GIT and _only_reads(_GIT[name], rest) and not any("%G" in word for word in rest)


def _only_reads(reader: _Reader, arguments: Sequence[str]) -> bool:
    """Whether no option among ``arguments`` is one that does more; long ones may be cut short."""
    for word in arguments:
        name = word.partition("=")[0]
        if name.startswith("--"):
            if any(option.startswith(name) for option in reader.words) and name != "--":
                return False
        elif name.startswith("-") and not set(reader.letters).isdisjoint(name):
            return False
    return True


def _is_treacherous(word: str) -> bool:
    if not re.search(r"[*?[]", _QUOTED.sub("", word)):
        return False
    return any(map(_TREACHEROUS.search, (word, _QUOTES.sub("", word))))


def _leads_outside(word: str) -> bool:
    """Whether ``word`` may name a place outside the directory: absolute, a home, or through a parent."""
    if ".." in word or (word.startswith("-") and "/" in word):
        return True
    return any(part.startswith(("/", "~")) or part[1:2] == ":" for part in word.split("="))
