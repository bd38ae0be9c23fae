"""What became of the earlier answers of a conversation: known, missing, or words that its client brought.

A message of the model's that nothing recorded answers to may be an answer whose reasoning is lost, or one that no model
gave, such as an example in front of the first question. What stands in it, why it was not found and its place tell
which: behind an answer that is known there are no examples.

Promises: what is missing stays so for as long as the conversation has it. Pure. Must not: look anything up.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, Unknown, carriers_of
from thinkback.model.commits import Commit, Draft, Request, Response, surviving
from thinkback.proxy import recognition

REMARK = "lost"
"""Under this name the record of a request has those of the answers it brought that are a model's."""

# A person who writes an example calls it call_1.
_GENERATED = re.compile(r"(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[0-9A-Za-z]{9}")


class Answers(NamedTuple):
    """How many answers of a conversation are known, missing, and brought by the client without a sign of a model."""

    known: int
    missing: int
    brought: int

    def __str__(self) -> str:
        """As the header says it."""
        word = "complete" if self.known else "unknown" if self.brought else "not-needed"
        if self.missing:
            word = "partial" if self.known else "none"
        counts = (("missing", self.missing), ("brought", self.brought))
        return "; ".join([word, *(f"{name}={count}" for name, count in counts if count)])


class _Answer(NamedTuple):
    """Neighbouring responses, which are one message to a client: known if one of them is."""

    is_known: bool
    ids: set[str]
    is_last: bool


def lost(missing: Iterable[tuple[int, str]], request: recognition.Request, asked: Collection[Draft]) -> tuple[str, ...]:
    """Those responses of ``missing`` messages that are a model's wherever they stand.

    They have reasoning, an opaque value, or a call under an id that was generated; or they were recorded, and it is not
    told which is meant, or not kept any more. ``asked`` is what the client sent, with all values as they came.
    """
    genuine = {draft.response for draft in asked if _is_a_models(draft)}
    found = [(why, request.said[at].responses) for at, why in missing]
    return tuple(id for why, ids in found if why not in recognition.NOTHING or genuine.intersection(ids) for id in ids)


def _is_a_models(draft: Draft) -> bool:
    match draft.value:
        case ThinkingBlock():
            return True
        case ToolCall() if _GENERATED.search(draft.value.id):
            return True
        case Text() | ToolCall() | Media() | Unknown():
            return carriers_of(draft.value) != ()
        case _:
            return False


def answers(commits: Sequence[Commit], lost: Collection[str]) -> Answers:
    """The answers in a history that ends with a request, which brought the ``lost`` responses.

    Behind a known answer one that is not known is missing, unless it is the beginning of the next one.
    """
    records = (surviving(commit.value) for commit in commits if commit.kind == "request")
    said = (record.target.get(REMARK, "") for record in records if isinstance(record, Request))
    marked = {*lost, *(id for ids in said for id in ids.split())}
    known = missing = brought = 0
    for answer in _answers(commits):
        if answer.is_known:
            known += 1
        elif (known and not answer.is_last) or not marked.isdisjoint(answer.ids):
            missing += 1
        else:
            brought += 1
    return Answers(known, missing, brought)


def _answers(commits: Sequence[Commit]) -> Iterator[_Answer]:
    """The answers in which something is visible, and all that were recorded."""
    is_known = is_visible = False
    ids: set[str] = set()
    for commit in commits:
        if commit.edit:
            continue
        if commit.kind == "response":
            header = surviving(commit.value)
            is_known = is_known or (isinstance(header, Response) and header.origin.endpoint != "")
            ids.add(commit.response)
        elif commit.kind in ("user", "tool_result"):
            if is_known or is_visible:
                yield _Answer(is_known, ids, is_last=False)
            is_known, is_visible, ids = False, False, set()
        elif commit.response and commit.kind in ("assistant", "tool_call", "media", "other"):
            is_visible = is_visible or not isinstance(commit.value, Text) or commit.value.text.strip() != ""
    if is_known or is_visible:
        yield _Answer(is_known, ids, is_last=True)
