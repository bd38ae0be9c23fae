"""What became of the earlier answers of a conversation: known, missing, or words that its client brought.

A message of the model's that nothing recorded answers to may be an answer whose reasoning is lost, or one that no model
gave, such as an example in front of the first question. What stands in it, why it was not found and its place tell
which: behind an answer that is known there are no examples.

Promises: what is missing stays so for as long as the conversation has it. Pure. Must not: look anything up.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from thinkback.compile.guard import OTHER_ACCOUNT
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, Unknown, carriers_of
from thinkback.model.commits import Commit, Draft, Repair, Request, Response, surviving
from thinkback.model.target import Decision
from thinkback.proxy import recognition
from thinkback.turn.plan import Plan

REMARK = "lost"
"""Under this name the record of a request has those of the answers it brought that are a model's."""

# A person who writes an example calls it call_1.
_GENERATED = re.compile(r"(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[0-9A-Za-z]{9}")


class Answers(NamedTuple):
    """How many answers of a conversation are known, missing, and brought by the client without a sign of a model.

    ``own`` are those that are not known and whose reasoning the client itself sent, so that it went.
    """

    known: int
    missing: int
    brought: int
    own: int = 0

    def __str__(self) -> str:
        """As the header says it."""
        word = "complete" if self.known or self.own else "unknown" if self.brought else "not-needed"
        if self.missing:
            word = "partial" if self.known or self.own else "none"
        counts = (("missing", self.missing), ("brought", self.brought), ("own", self.own))
        return "; ".join([word, *(f"{name}={count}" for name, count in counts if count)])


class Dropped(NamedTuple):
    """Answers that are known and whose reasoning a request goes without though it could have gone, and why."""

    answers: int
    why: tuple[str, ...]

    def amend(self, reattach: str) -> str:
        """The text of a header for ``Answers``, with this."""
        if not self.why:
            return reattach
        word, _, counts = reattach.partition("; ")
        dropped = [f"dropped={self.answers}"] * (self.answers > 0)
        word = "partial" if word == "complete" else word
        return "; ".join(filter(None, [word, counts, *dropped])) + f"{DROPPED}{', '.join(self.why)}"


NONE_DROPPED = Dropped(0, ())
DROPPED = "; why="
"""The word in a header where reasoning of a known answer was dropped."""
_WHY = {
    "changed": "changed since",
    "bound": "made behind another beginning",
    "invalid": "refused by the provider",
    "not_kept": "not kept",
    "flatten": "flattened to text",
}
# A repair of another stage takes nothing away, or what stays away is among the decisions.
_DROPPED_THERE = "server_drop"


def dropped(plan: Plan, commits: Sequence[Commit]) -> Dropped:
    """What of the known answers in ``commits`` the request ``plan`` goes without.

    What a setting or a rule keeps away, and what another model or host made, could not have gone.
    """
    held = {made.block: why for made in plan.decisions if (why := _why(made))}
    answers = _known(commits, held) if held else {}
    reasons = {held[hash] for hash in answers}
    place = plan.target.base_url, plan.target.model
    repairs = (commit.value for commit in commits if commit.kind == "repair")
    for repair in repairs:
        if isinstance(repair, Repair) and repair.stage == _DROPPED_THERE and (repair.endpoint, repair.model) == place:
            reasons.add("dropped by the provider")
    return Dropped(len(set(answers.values())), tuple(sorted(reasons)))


def _known(commits: Sequence[Commit], hashes: Collection[str]) -> dict[str, str]:
    """The responses of those ``hashes`` that are of one whose maker is known."""
    found: dict[str, str] = {}
    known = ""
    for commit in commits:
        if commit.kind == "response" and not commit.edit:
            header = surviving(commit.value)
            known = commit.response if isinstance(header, Response) and header.origin.endpoint else ""
        if commit.hash in hashes and commit.response == known != "":
            found[commit.hash] = known
    return found


def _why(made: Decision) -> str:
    """Why reasoning that could have gone stays away, in words; nothing for all else."""
    if made.cause == "foreign":
        return OTHER_ACCOUNT if OTHER_ACCOUNT in made.reason else ""
    return _WHY.get(made.cause, "") if made.block else ""


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


_GOES = frozenset({"native", "field", "tags"})


def own_reasoning(plan: Plan, commits: Sequence[Commit]) -> frozenset[str]:
    """The responses that nothing is known of and whose reasoning, which the client brought, goes in ``plan``."""
    going = {made.block for made in plan.decisions if made.action in _GOES and made.what != "text" and made.block}
    if not going:
        return frozenset()
    known = set(_known(commits, going).values())
    return frozenset(commit.response for commit in commits if commit.hash in going and commit.response not in known)


def answers(commits: Sequence[Commit], lost: Collection[str], own: Set[str] = frozenset()) -> Answers:
    """The answers in a history that ends with a request, which brought the ``lost`` responses; ``own`` as in
    ``own_reasoning``.

    Behind a known answer one that is not known is missing, unless it is the beginning of the next one.
    """
    records = (surviving(commit.value) for commit in commits if commit.kind == "request")
    said = (record.target.get(REMARK, "") for record in records if isinstance(record, Request))
    marked = {*lost, *(id for ids in said for id in ids.split())}
    known = missing = brought = own_ones = 0
    for answer in _answers(commits):
        if answer.is_known:
            known += 1
        elif not own.isdisjoint(answer.ids):
            own_ones += 1
        elif (known and not answer.is_last) or not marked.isdisjoint(answer.ids):
            missing += 1
        else:
            brought += 1
    return Answers(known, missing, brought, own_ones)


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
