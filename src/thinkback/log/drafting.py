"""From what a person says about a conversation to drafts: messages by hand, thoughts, content types, edits, marks.

Must not: know where they go, or who asked. Raises named errors for what cannot stand in a log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from thinkback.errors import NotFoundError, ThinkbackError, UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import THOUGHT_FORMATS, Block, Origin, Text, ThinkingBlock, ToolResult, carriers_of
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Commit,
    Content,
    Draft,
    Erased,
    Message,
    Payload,
    Priority,
    Response,
    TurnEnded,
    block_draft,
    surviving,
)

BY_HAND = Origin("", "", "")


class ContentType(msgspec.Struct, frozen=True):
    """A content type that a program defined: what its commits are until something else is said of one."""

    name: str
    role: Literal["system", "user", "assistant"] = "user"
    priority: Priority = Priority.NORMAL
    compression_priority: int = 50


class Void(NamedTuple):
    """A carrier that an edit or a SKIP would make worthless: the commit it is on, and its kind."""

    hash: str
    kind: str


def spoken(kind: str, text: str, response: str, thought: ThinkingBlock | None = None) -> tuple[Draft, ...]:
    """A system, user or assistant message by hand; ``response`` is a fresh id, ``thought`` comes before an answer."""
    if not text.strip():
        raise UnsupportedContent(f"the {kind} message is empty", next_actions=("give it a text",))
    if kind != "assistant":
        return (Draft("system" if kind == "system" else "user", Message(text)),)
    blocks: list[Block] = [Text(text)] if thought is None else [thought, Text(text)]
    header = Response(BY_HAND, content="text", blocks=len(blocks), outcome="answered")
    said = [block_draft(block, response, at) for at, block in enumerate(blocks)]
    return Draft("response", header, response), *said, Draft("turn_ended", TurnEnded("completed", "by hand"))


def thought(text: str, format: str) -> ThinkingBlock:
    """Reasoning by hand; ``format`` says where it is from."""
    if not text.strip():
        raise UnsupportedContent("the reasoning is empty", next_actions=("give its text",))
    return ThinkingBlock(text, source_field=format)


def known_format(format: str) -> str:
    """``format`` where it is one of ``THOUGHT_FORMATS``. Raises ``UnsupportedContent``."""
    if format not in THOUGHT_FORMATS:
        raise UnsupportedContent(
            f"reasoning cannot have the format {format!r:.80}",
            details={"format": format, "allowed": THOUGHT_FORMATS},
            next_actions=(f"give one of {', '.join(THOUGHT_FORMATS)}, or leave it out",),
        )
    return format


def content(type: ContentType, text: str, data: Mapping[str, Any] | None) -> Draft:
    """A commit of a content type, with the type's defaults as they are now."""
    source = canonical.source(dict(data)) if data else ""
    return Draft("content", Content(type.name, text, type.role, type.priority, type.compression_priority, source))


def annotation(
    target: str = "",
    priority: Priority | None = None,
    *,
    default: bool = False,
    reason: str = "",
    retain: Sequence[str] = (),
    tags: Iterable[str] = (),
    untag: Iterable[str] = (),
    message: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> Draft:
    """What is said about ``target``; empty, about the commit before."""
    source = canonical.source(dict(metadata)) if metadata else ""
    said = Annotation(target, priority, default, reason, tuple(retain), tuple(tags), tuple(untag), message, source)
    if said == Annotation(target):
        raise ThinkbackError(
            "the annotation says nothing", next_actions=("give a priority, a tag, a message or metadata",)
        )
    return Draft("annotation", said)


def edit(target: Commit, text: str) -> Draft:
    """``target`` with another text. Raises ``UnsupportedContent`` for a commit that has none to change."""
    return Draft(target.kind, _with_text(target, text), edit=target.hash)


def restored(target: Commit, payload: Payload) -> Draft:
    """``target`` as it was once; as it was at first, the edits are taken back.

    Raises ``UnsupportedContent`` for a commit that cannot be edited, or of which nothing is left.
    """
    value = surviving(payload)
    if not isinstance(value, Message | Text | ThinkingBlock | ToolResult | Content | BranchSummary):
        raise _fixed(target, value)
    return Draft(target.kind, value, edit=target.hash)


def _with_text(target: Commit, text: str) -> Payload:
    value = surviving(target.value)
    match value:
        case Message():
            others = tuple(part for part in value.parts if not isinstance(part, Text))
            return Message(text, (Text(text), *others) if others else ())
        case Text():
            return Text(text, value.source_field)
        case ThinkingBlock():
            return ThinkingBlock(text, source_field=value.source_field, kind=value.kind)
        case ToolResult():
            return msgspec.structs.replace(value, content=text, wire="", carriers=(), dialect="")
        case Content() | BranchSummary():
            return msgspec.structs.replace(value, text=text)
        case _:
            raise _fixed(target, value)


def _fixed(target: Commit, value: Payload) -> UnsupportedContent:
    gone = isinstance(value, Erased)
    return UnsupportedContent(
        f"commit {target.hash[:12]} was erased" if gone else f"a commit of kind {target.kind} cannot be edited",
        details={"commit": target.hash},
        next_actions=("edit a message, an answer, a thought, a result or content of your own",),
    )


def voids(commits: Sequence[Commit], target: Commit, *, prefix_bound: bool) -> list[Void]:
    """The carriers that a change of ``target`` makes worthless: those of its response, and where reasoning is bound to
    what stood before it, those of every later response.
    """
    if all(commit.hash != target.hash for commit in commits):
        raise NotFoundError(f"commit {target.hash[:12]} is not in this history")
    return voids_of_all(commits, {target.hash}, prefix_bound=prefix_bound)


def voids_of_all(commits: Sequence[Commit], targets: Collection[str], *, prefix_bound: bool) -> list[Void]:
    """List the carriers that changes of ``targets``, hashes of commits, make worthless: as ``voids`` does of one."""
    changed = [at for at, commit in enumerate(commits) if commit.hash in targets]
    behind = commits[changed[0] :] if prefix_bound and changed else ()
    later = {commit.response for commit in behind if commit.kind == "response"}
    responses = (later | {commits[at].response for at in changed}) - {""}
    return [
        Void(commit.hash, carrier.kind)
        for commit in commits
        if commit.response in responses and not isinstance(value := surviving(commit.value), Erased)
        if commit.kind in ("reasoning", "assistant", "tool_call", "other", "media")
        for carrier in carriers_of(value)  # type: ignore[arg-type]
    ]
