"""The tag splitter: reasoning inside ``content``, against a plain ``str.find`` that knows one pair of tags."""

from __future__ import annotations

import random
from functools import partial
from importlib.util import find_spec

from bench.measure import Figure, Group, interleaved, timed
from bench.streams import words
from thinkback.model.think_tags import TagSplitter

OPEN, CLOSE = "<think>", "</think>"
_FALSE_STARTS = ("<thi", "</p>", " a < b ", "</thin", "<b>bold</b>")


class FindSplitter:
    """The baseline: text without ``<`` passes through; else find, and hold back only a real partial tag."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """(inside, text) pieces."""
        if not self._held and "<" not in text:
            return [(self._inside, text)]
        text = self._held + text
        pieces: list[tuple[bool, str]] = []
        while True:
            tag = CLOSE if self._inside else OPEN
            at = text.find(tag)
            if at < 0:
                break
            pieces.append((self._inside, text[:at]))
            self._inside = not self._inside
            text = text[at + len(tag) :]
        keep = next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if tag.startswith(text[-size:])), 0)
        self._held = text[len(text) - keep :]
        pieces.append((self._inside, text[: len(text) - keep]))
        return pieces


def content(size: int) -> str:
    """About ``size`` characters: eight thoughts, each at a line's start, answers between them, false starts in both."""
    chance = random.Random(11)

    def prose(length: int) -> str:
        parts: list[str] = []
        while sum(map(len, parts)) < length:
            parts.append(words(chance, 12))
            if chance.random() < 0.2:
                parts.append(chance.choice(_FALSE_STARTS))
        return "".join(parts)

    return "".join(f"{OPEN}{prose(size // 16)}{CLOSE}{prose(size // 16)}\n" for _ in range(8))


def split(pieces: list[str]) -> str:
    """The subject; returns the reasoning."""
    splitter = TagSplitter()
    found = [piece.text for text in pieces for piece in splitter.feed(text) if piece.kind == "reasoning"]
    return "".join(found)


def find(pieces: list[str]) -> str:
    """The baseline; returns the reasoning."""
    splitter = FindSplitter()
    return "".join([text for given in pieces for inside, text in splitter.feed(given) if inside])


def _speed(cut: int, quick: bool) -> Figure:
    text = content(200_000 if quick else 1_000_000)
    pieces = [text[at : at + cut] for at in range(0, len(text), cut)]
    assert split(pieces) == find(pieces) != ""
    samples = interleaved(
        {"thinkback": timed(lambda: split(pieces)), "find": timed(lambda: find(pieces))}, rounds=5 if quick else 9
    )
    ratio = samples.ratio("thinkback", "find")
    return Figure(
        f"tags.{cut}_characters",
        len(text.encode()) / samples.median("thinkback") / 1e6,
        "MB/s",
        ratio.value,
        {},
        "<= 1.25x the time of one str.find splitter",
        ratio.value <= 1.25,
        ratio.noise,
        f"{len(text) / 1e6:.1f} M characters in cuts of {cut}, 18 pairs of tags against one; "
        f"str.find {len(text.encode()) / samples.median('find') / 1e6:.0f} MB/s",
    )


def _peers(quick: bool) -> Figure:
    """Of the published splitters only any-llm's is right at every cut; it holds reasoning back to its end."""
    state = "is installed, but has no splitter of its own to call" if find_spec("any_llm") else "is not installed"
    return Figure(
        "tags.peers",
        None,
        "MB/s",
        aim=">= 5x the peers that are right at every cut",
        note=f"any-llm {state}; pydantic-ai's, litellm's and SGLang's lose or misplace tags at most cuts",
    )


GROUP = Group("tags", (partial(_speed, 4), partial(_speed, 20), _peers))
