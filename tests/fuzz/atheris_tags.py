"""Fuzz the splitter of reasoning tags: ``python -m tests.fuzz.atheris_tags [SECONDS]``.

The first byte says how the text is cut; the pieces must be the same whole and cut, and joined they are the text.
"""

from __future__ import annotations

from itertools import groupby

from tests.fuzz import harness

with harness.instrumented():
    from thinkback.model.think_tags import LONE_CLOSINGS, TAGS, TagSplitter


def split(pieces: list[str]) -> list[tuple[str, str]]:
    """What came out, texts of one kind that stand together as one."""
    splitter = TagSplitter()
    found = [piece for text in pieces for piece in splitter.feed(text)] + splitter.close()
    return [(kind, "".join(piece.text for piece in group)) for kind, group in groupby(found, lambda piece: piece.kind)]


def target(data: bytes) -> None:
    """Raises for any input that breaks a law."""
    how, text = (data[0] if data else 0), data[1:].decode("utf-8", "replace")
    cut = 1 + how % 30
    whole = split([text])
    assert whole == split([text[at : at + cut] for at in range(0, len(text), cut)])
    assert whole == split(list(text))
    assert text == "".join(piece for _, piece in whole)


SEEDS = [
    *(f"\x03 {opening}why{closing}so {opening}x".encode() for opening, closing in TAGS),
    *(f"\x01a {closing} b".encode() for closing in LONE_CLOSINGS),
    b'\x05<think signature="x">a</think>b `<think>` ```\n</think>\n``` <thi',
]

if __name__ == "__main__":
    harness.run("tags", target, SEEDS)
