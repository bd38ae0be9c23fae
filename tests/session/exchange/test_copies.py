"""Law: import only adds. Copies of one history in any order leave the union of what they have, less what was erased."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thinkback
from tests.formats.samples import CHAT, SAMPLES, jsonl, write_database
from thinkback.formats.registry import MODULES, program
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Annotation, Commit, Compaction, Content, Message, surviving
from thinkback.session.exchange.histories import Took, Wanted, run
from thinkback.session.store import SessionStore

MADE = Path(__file__).parents[2] / "formats" / "made"
REAL = os.environ.get("THINKBACK_HISTORIES", "")
"""A folder with histories that programs wrote here, a folder for each program."""
SEEDS = {name: SAMPLES[name] for name in MODULES} | {
    "chat-jsonl": jsonl({**CHAT[0], "id": "conversation-0001"}),
    **{f"{file.stem}": file.read_bytes() for file in sorted(MADE.iterdir())},
    **{
        f"{path.relative_to(REAL).parts[0]} {path.name}": path.read_bytes()
        for path in sorted(Path(REAL or MADE).rglob("*.jsonl"))
        if REAL
    },
}
ALL = [pytest.param(seed, marks=pytest.mark.corpus) if " " in seed else seed for seed in sorted(SEEDS)]
"""Seeds as parameters: those that programs wrote are not in the project."""
THOUGHTS = {"thinking", "text", "content", "summary", "description", "subject", "reasoning_content", "reasoning"}
FEW = settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))


def program_of(seed: str) -> str:
    """The program that a seed is of."""
    return next(name for name in sorted(MODULES, key=len, reverse=True) if seed.startswith(name))


def said(commit: Commit) -> tuple[str, str]:
    """What a commit says to people: its kind and its words; without words what an opaque value is beside."""
    value = surviving(commit.value)
    match value:
        case Message() | Content() | Text():
            words = value.text
        case ThinkingBlock():
            words = value.thought
        case ToolCall():
            words = f"{value.id} {value.arguments}"
        case ToolResult():
            words = f"{value.id} {value.content}" if value.content else ""
        case Compaction():
            words = value.summary
        case _:
            words = ""
    return commit.kind, words


def lines(store: SessionStore) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """What the branches of each session say, by its id."""
    return {
        info.id: {
            branch.name: [words for commit in store.log.read(info.id, branch=branch.name) if (words := said(commit))[1]]
            for branch in store.log.refs.list(info.id)
        }
        for info in store.sessions()
    }


def everything(store: SessionStore) -> set[tuple[str, str, str]]:
    """All that is said on any branch of any session."""
    return {(id, *each) for id, branches in lines(store).items() for line in branches.values() for each in line}


class Desk:
    """A log, and a file that copies of a history are put into, one after the other."""

    def __init__(self, store: SessionStore, place: Path, name: str) -> None:
        self.store, self.program = store, name
        self._file = place / ("history" + program(name).endings[0])

    def take(self, data: bytes) -> list[Took]:
        """Import a copy."""
        self._file.unlink(missing_ok=True)
        if program(self.program).tables:
            write_database(self._file, data)
        else:
            self._file.write_bytes(data)
        return run(self.store.log, Wanted(self.program, str(self._file)))[0]


def desk(name: str) -> Iterator[Desk]:
    """An empty log."""
    with tempfile.TemporaryDirectory() as place, thinkback.open(":memory:") as store:
        yield Desk(store, Path(place), name)


def walked(value: Any, thoughts: Sequence[str], words: set[str]) -> Any:
    """A value in which the texts of thoughts are empty."""
    if isinstance(value, dict):
        return {
            key: ""
            if key in THOUGHTS and isinstance(each, str) and each not in words and any(each in one for one in thoughts)
            else walked(each, thoughts, words)
            for key, each in value.items()
        }
    return [walked(each, thoughts, words) for each in value] if isinstance(value, list) else value


def records_of(data: bytes) -> list[Any]:
    """The lines, or the document, as values."""
    return [json.loads(line) for line in data.splitlines() if line.strip()]


def stripped(data: bytes, name: str) -> bytes:
    """A copy in which thoughts have no text."""
    told: set[tuple[str, str, str]] = set()
    for one in desk(name):
        one.take(data)
        told = everything(one.store)
    thoughts = [words for _, kind, words in told if kind == "reasoning"]
    words = {words for _, kind, words in told if kind != "reasoning"}
    return jsonl(*walked(records_of(data), thoughts, words))


def cut(data: bytes, name: str, share: float) -> bytes:
    """A copy that ends earlier; the order of a database is no order, and a tree that lost its tip has none."""
    if program(name).tables or name == "chatgpt":
        return data
    found = records_of(data)
    if len(found) > 1:
        return jsonl(*found[: max(int(len(found) * share), 2)])
    inner = found[0][0] if isinstance(found[0], list) else found[0]
    key = next(key for key in ("messages", "steps", "chat_messages") if key in inner)
    inner[key] = inner[key][: max(int(len(inner[key]) * share), 2)]
    return jsonl(*found)


def edited(data: bytes, name: str) -> bytes:
    """A copy in which the answer has other words."""
    return re.sub(rb'(?<=")notes\.txt(?=")', b"other.txt", data)


def copies_of(seed: str) -> dict[str, bytes]:
    """Copies of a history by what was done to them."""
    name, whole = program_of(seed), SEEDS[seed]
    bare = stripped(whole, name)
    return {
        "whole": whole,
        "stripped": bare,
        "cut": cut(whole, name, 0.7),
        "shorter": cut(whole, name, 0.4),
        "stripped and cut": cut(bare, name, 0.6),
        "edited": edited(whole, name),
        "edited and cut": cut(edited(whole, name), name, 0.8),
    }


@pytest.mark.parametrize("seed", ALL)
def test_where_one_copy_contains_the_other_main_shows_the_fuller(seed: str) -> None:
    """In any order: cut and stripped copies of a whole one leave what that alone leaves, and no branch more."""
    copies, name = copies_of(seed), program_of(seed)
    for alone in desk(name):
        alone.take(copies["whole"])
        expected = lines(alone.store)

    @FEW
    @given(st.permutations(["whole", "stripped", "cut", "shorter", "stripped and cut"]))
    def law(order: list[str]) -> None:
        for each in desk(name):
            for copy in order:
                each.take(copies[copy])
            assert expected == lines(each.store)
            assert [0] * len(order) == [sum(took.commits for took in each.take(copies[copy])) for copy in order]
            assert [] == each.store.fsck()

    law()


@pytest.mark.parametrize("seed", ALL)
def test_copies_that_end_anywhere_lose_nothing_of_one_another(seed: str) -> None:
    """Each import leaves what it has, and the whole one leaves what it leaves alone; a second round adds nothing."""
    name, whole = program_of(seed), SEEDS[seed]
    bare, expected = stripped(whole, name), {}
    for only in desk(name):
        only.take(whole)
        expected = lines(only.store)

    @FEW
    @given(st.lists(st.integers(1, 99), min_size=1, max_size=4), st.booleans())
    def law(shares: list[int], is_bare: bool) -> None:
        copies = [cut(bare if is_bare else whole, name, share / 100) for share in shares]
        for each in desk(name):
            held: set[tuple[str, str, str]] = set()
            for copy in copies:
                each.take(copy)
                assert held <= everything(each.store)
                held = everything(each.store)
            each.take(whole)
            assert expected == lines(each.store)
            assert [0] * len(copies) == [sum(took.commits for took in each.take(copy)) for copy in copies]
            assert [] == each.store.fsck()

    law()


@pytest.mark.parametrize("order", [("stripped", "whole"), ("stripped and cut", "stripped", "whole"), ("cut", "whole")])
@pytest.mark.parametrize("seed", ["claude-code", "pi", "gemini-cli"])
def test_a_pin_on_a_lesser_copy_goes_along_to_the_fuller(seed: str, order: tuple[str, ...]) -> None:
    """``main`` shows the fuller as without the pin, which is about the same entry there; again nothing is added."""
    copies, name = copies_of(seed), program_of(seed)
    expected = {}
    for alone in desk(name):
        alone.take(copies["whole"])
        expected = lines(alone.store)
    for each in desk(name):
        each.take(copies[order[0]])
        (info,) = each.store.sessions()
        target = [commit for commit in each.store.commits(info.name) if commit.kind in ("user", "assistant")][-1]
        each.store.session(info.name).annotate(target.hash, "pinned", tags=["look"])
        for copy in order[1:]:
            each.take(copies[copy])
        assert expected == lines(each.store)
        line = each.store.commits(info.name)
        (note,) = [commit.value for commit in line if isinstance(commit.value, Annotation)]
        assert [said(target)] == [said(commit) for commit in line if commit.hash == note.target]
        assert [0] * len(order) == [sum(took.commits for took in each.take(copies[copy])) for copy in order]
        assert [] == each.store.fsck()


@pytest.mark.parametrize("seed", ALL)
def test_any_order_and_repetition_of_copies_leaves_the_union_less_what_was_erased(seed: str) -> None:
    """Edited copies are branches; what was redacted comes back with none of them, and a second round adds nothing."""
    copies, name = copies_of(seed), program_of(seed)
    told = {}
    for label, data in copies.items():
        for alone in desk(name):
            alone.take(data)
            told[label] = everything(alone.store)

    @FEW
    @given(st.lists(st.sampled_from(sorted(copies)), min_size=1, max_size=8), st.integers(0, 8), st.integers(0, 10**6))
    def law(order: list[str], when: int, which: int) -> None:
        for each in desk(name):
            gone: set[tuple[str, str]] = set()
            for at, copy in enumerate(order):
                if at == when:
                    gone = erase(each.store, which)
                each.take(copies[copy])
            union = set().union(*(told[copy] for copy in order))
            there = everything(each.store)
            assert set() == {one for one in there if one[1:] in gone}
            altered = {one for one in union if gone and one[1] in {kind for kind, _ in gone}}
            assert union - altered <= there | altered
            assert [0] * len(order) == [sum(took.commits for took in each.take(copies[copy])) for copy in order]
            assert there == everything(each.store)
            assert [] == each.store.fsck()

    law()


def erase(store: SessionStore, which: int) -> set[tuple[str, str]]:
    """Take the words out of one commit; what may not come back, as it was said."""
    found = [
        (info.name, commit)
        for info in store.sessions()
        for branch in store.log.refs.list(info.id)
        for commit in store.log.read(info.id, branch=branch.name)
        if commit.kind in ("user", "assistant", "reasoning") and said(commit)[1].strip()
        # Made files have the same words for each long text.
        if not said(commit)[1].startswith("(a text of")
    ]
    if not found:
        return set()
    name, commit = found[which % len(found)]
    store.care.redact(commit.hash, re.escape(said(commit)[1]), session=name)
    return {said(commit)}
