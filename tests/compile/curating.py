"""Strategies: what people say about the commits of a conversation, sense or nonsense."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.compile.build import Talk, say, think
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, carriers_of
from thinkback.model.commits import Commit, Content, Erased, Message, Payload, Priority, decode_payload
from thinkback.model.curation import curate
from thinkback.model.target import Decision

TEXTS = st.sampled_from(["", " ", "a", "other\n", "\ud800"])
OPS = ["annotate", "annotate", "annotate", "edit", "edit", "compact", "erase", "content", "summary"]


def curated(draw: st.DrawFn, talk: Talk) -> None:
    """One thing more that is said about a conversation, or that people put into it."""
    hashes = [commit.hash for commit in talk.commits]
    op = draw(st.sampled_from(OPS)) if hashes else "content"
    match op:
        case "annotate":
            priority = draw(st.sampled_from([Priority.SKIP, Priority.SKIP, Priority.SKIP, *Priority, None]))
            fields: Any = {"default": True} if priority is None else {}
            talk.annotate(draw(st.sampled_from(["", *hashes])), priority, tags=("t",), **fields)
        case "edit":
            target = draw(st.sampled_from(hashes))
            value = _edited(draw, next(commit for commit in talk.commits if commit.hash == target))
            if value is not None:
                talk.edit(target, value)
        case "compact":
            ends = sorted(draw(st.lists(st.integers(0, len(hashes) - 1), min_size=2, max_size=2)))
            results = talk.hashes("tool_result") or [""]
            talk.compact(
                *(hashes[at] for at in ends),
                kept=tuple(draw(st.lists(st.sampled_from(hashes), max_size=3))),
                trimmed=tuple((hash, "trimmed") for hash in draw(st.lists(st.sampled_from(results), max_size=2))),
            )
        case "erase":
            left = draw(st.sampled_from([None, None, say("left"), think("left")]))
            talk.erase(draw(st.sampled_from(hashes)), left, draw(st.integers(0, len(hashes))))
        case "content":
            role = draw(st.sampled_from(["user", "assistant", "system"]))
            talk.content(draw(TEXTS), role, priority=draw(st.sampled_from(list(Priority))))
        case _:
            draw(st.sampled_from([talk.summary, lambda text: talk.note("reasoning", think(text))]))(draw(TEXTS))


def _edited(draw: st.DrawFn, commit: Commit) -> Payload | None:
    """Another content for a commit, or the one it had."""
    text = draw(TEXTS)
    match commit.value:
        case Message() | Text() | Content():
            texts: list[Payload] = [Message(text), say(text), commit.value]
            return draw(st.sampled_from(texts))
        case ThinkingBlock():
            thoughts: list[Payload] = [think(text), think(text, signature="OPQ9"), commit.value]
            return draw(st.sampled_from(thoughts))
        case ToolCall():
            return ToolCall(draw(st.sampled_from(["c1", "c3"])), "look", "{}")
        case ToolResult():
            results: list[Payload] = [ToolResult("c9", text), Message(text)]
            return draw(st.sampled_from(results))
        case _:
            return None


def stored(commit: Commit) -> Block | None:
    """The block that a commit was made of, as far as it is still there."""
    value = commit.value
    if isinstance(value, Erased):
        value = decode_payload(value.remainder.encode()) if value.remainder else value
        if commit.kind == "reasoning":
            return value if isinstance(value, ThinkingBlock) else ThinkingBlock("")
        return None
    return value if isinstance(value, ThinkingBlock | Text | ToolCall | Unknown | Media) else None


def told_of(talk: Talk) -> Counter[tuple[str, str]]:
    """Each carrier of the log, and each reasoning text whose content nobody changed."""
    rewritten, expected = _edited_hashes(talk), Counter[tuple[str, str]]()
    for commit in talk.commits:
        block = stored(commit)
        if commit.edit or block is None:
            continue
        expected.update((commit.hash, carrier.kind) for carrier in carriers_of(block))
        if isinstance(block, ThinkingBlock) and (block.thought or not carriers_of(block)):
            expected[commit.hash, "reasoning"] += commit.hash not in rewritten
    return +expected


def named(talk: Talk, decisions: Sequence[Decision]) -> Counter[tuple[str, str]]:
    """What decisions tell of, but for reasoning that was edited: a thought may be written where there was none."""
    rewritten = _edited_hashes(talk)
    return Counter(
        (decision.block, decision.what)
        for decision in decisions
        if decision.block
        and decision.what != "text"
        and not (decision.what == "reasoning" and decision.block in rewritten)
    )


def _edited_hashes(talk: Talk) -> set[str]:
    curation = curate(talk.commits)
    return {commit.hash for commit in talk.commits if curation.is_changed(commit)}


def content(talk: Talk, commit: Commit) -> Block:
    """The block of a commit as it is now; one that was erased says nothing."""
    value: Any = curate(talk.commits).value(commit)
    return ThinkingBlock("") if isinstance(value, Erased) and commit.kind == "reasoning" else value
