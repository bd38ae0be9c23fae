"""Logs of any shape: sessions that fork, branches, merges, edits, marks, checkpoints, erased rows."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.stores.samples import ORIGIN
from tests.stores.test_properties import blocks, texts
from thinkback.log.erasing import tombstone
from thinkback.log.lines import end_of
from thinkback.log.protocol import Origin, SessionInfo, Store
from thinkback.log.seal import seal
from thinkback.model import canonical
from thinkback.model.blocks import ToolResult
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Commit,
    Compaction,
    Content,
    Draft,
    Head,
    Merge,
    Message,
    Priority,
    Repair,
    Request,
    Response,
    Step,
    TurnEnded,
    Usage,
    block_draft,
)
from thinkback.settings.registry import IMPORTED

PLACE = {"endpoint": "e", "account": "acct-1", "base_url": "https://e"}
RECORD = Request(PLACE, {}, ("r",), "{}", "", "", "", "", "", "", "", basis="{}")
MORE = ("reply", "merge", "note", "erase", "settings")
# What may be done to a log; the numbers choose among what is there.
moves = st.lists(
    st.tuples(
        st.sampled_from(
            ["session", "child", "branch", "move", "switch", "user", "reply", "edit", "mark", "checkpoint", *MORE]
        ),
        st.integers(0, 9),
        st.integers(0, 9),
        texts,
        st.lists(blocks.filter(lambda block: not isinstance(block, ToolResult)), max_size=3),
    ),
    max_size=14,
)
Move = tuple[str, int, int, str, list[Any]]


def build(log: Store, sequence: list[Move]) -> None:
    """Do to ``log`` what ``sequence`` says; what cannot be done is passed over."""
    log.create_session("s0", "s0", 5)
    for number, (word, one, two, text, parts) in enumerate(sequence, 1):
        info = _pick(sorted(log.list_sessions(), key=lambda info: info.id), one)
        branch = _pick(log.refs.list(info.id), two)
        line = log.read(info.id, branch=branch.name)
        match word:
            case "session":
                log.create_session(f"s{number}", f"s{number}", number)
            case "child":
                at = _place(line, two) if line and two % 3 else None
                log.create_session(f"s{number}", f"s{number}", number, Origin(info.id, branch.name, at, "try"))
            case "branch":
                log.refs.create(info.id, f"b{number}", _place(line, two) if line else Head())
            case "move":
                log.refs.move(info.id, branch.name, branch.head, _place(line, one + two) if line else Head())
            case "switch":
                log.refs.switch(info.id, branch.name)
            case "settings":
                log.write_settings(info.id, {"reasoning.effort": ("low", "high")[len(text) % 2]})
            case "erase":
                _erase(log, info, line, two, text)
            case _:
                drafts = tuple(_drafts(word, number, two, text, parts, line, log, info))
                step = Step(f"step {number}", drafts, number * 10)
                log.append(info.id, step.id, seal(step, branch.head), branch.head, branch.name)


def _drafts(
    word: str, number: int, two: int, text: str, parts: list[Any], line: list[Commit], log: Store, info: SessionInfo
) -> list[Draft]:
    target = _pick(line, two).hash if line else ""
    match word:
        case "user":
            return [Draft("user", Message(text))]
        case "reply":
            id = f"r{number}"
            header = Draft("response", Response(ORIGIN, blocks=len(parts), envelope=text), id)
            said = [block_draft(block, id, at) for at, block in enumerate(parts)]
            return [Draft("request", RECORD, id), header, *said, Draft("provider_usage", Usage(1, 2), id)]
        case "edit":
            return [Draft("user", Message(text), edit=target)] if target else []
        case "mark":
            return [Draft("annotation", Annotation(target, Priority.PINNED, reason=text, metadata='{"n": 1.50}'))]
        case "checkpoint":
            return [Draft("compaction", Compaction("manual", text, line[0].hash, target))] if line else []
        case "merge":
            other = _pick(log.refs.list(info.id), number).head.hash
            further = (other,) if line and other and other != line[-1].hash else ()
            return [Draft("merge", Merge("b", other, copies=((target, other),)), parents=further)]
        case _:
            return [
                Draft("content", Content("note", text, data='{"a":"b"}')),
                Draft("branch_summary", BranchSummary(text, info.id)),
                Draft("repair", Repair("block", (target,), "refused acct-1", "https://e", "m")),
                Draft("turn_ended", TurnEnded("failed", "of acct-1")),
            ]


def _erase(log: Store, info: SessionInfo, line: list[Commit], two: int, text: str) -> None:
    care: Any = getattr(log, "care", None)
    if line and care is not None:
        commit = _pick(line, two)
        rest = Message(text) if two % 2 and commit.kind == "user" else None
        if not isinstance(commit.value, Response):
            care.erase(info.id, {commit.hash: canonical.encode(tombstone("asked", 9, rest))})


def shape(log: Store) -> list[Any]:
    """All that a log says, whatever it is made of: sessions, branches, and every commit they reach; not that it came in
    a file.
    """
    return [
        (
            msgspec.structs.replace(
                info, updated=0, settings={key: value for key, value in info.settings.items() if key != IMPORTED}
            ),
            log.refs.list(info.id),
            {branch.name: log.read(info.id, branch=branch.name) for branch in log.refs.list(info.id)},
        )
        for info in sorted(log.list_sessions(), key=lambda info: info.id)
    ]


def _pick(of: Any, number: int) -> Any:
    return of[number % len(of)]


def _place(line: list[Commit], number: int) -> Head:
    """A commit that a line may end with: a response is never torn."""
    commit = line[end_of(line, number % len(line))]
    return Head(commit.hash, commit.seq)
